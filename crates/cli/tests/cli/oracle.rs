//! What arrays must hold, worked out element by element without outcore.

/// All element types.
pub(crate) const TYPES: [&str; 14] = [
    "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64",
    "c128",
];

/// The bytes of the number `n` (below 128) as `--fill index` stores it.
pub(crate) fn element(element_type: &str, n: u64, big: bool) -> Vec<u8> {
    assert!(n < 128);
    let parts: Vec<Vec<u8>> = match element_type {
        "bool" => vec![vec![(n % 2) as u8]],
        "i8" | "u8" => vec![vec![n as u8]],
        "i16" | "u16" => vec![(n as u16).to_be_bytes().into()],
        "i32" | "u32" => vec![(n as u32).to_be_bytes().into()],
        "i64" | "u64" => vec![n.to_be_bytes().into()],
        "f16" => vec![half(n).to_be_bytes().into()],
        "f32" => vec![(n as f32).to_be_bytes().into()],
        "f64" => vec![(n as f64).to_be_bytes().into()],
        "c64" => vec![(n as f32).to_be_bytes().into(), vec![0; 4]],
        "c128" => vec![(n as f64).to_be_bytes().into(), vec![0; 8]],
        other => panic!("no type {other}"),
    };
    let ordered = parts.into_iter().map(|mut part| {
        if !big {
            part.reverse();
        }
        part
    });
    ordered.flatten().collect()
}

/// A small whole number as an IEEE half-precision float.
fn half(n: u64) -> u16 {
    let Some(exponent) = n.checked_ilog2() else {
        return 0;
    };
    let fraction = (n << 10 >> exponent) as u16 & 0x3ff;
    (exponent as u16 + 15) << 10 | fraction
}

/// Whether this machine stores the most significant byte first.
pub(crate) const BIG: bool = cfg!(target_endian = "big");

/// The bytes of an array of numbers.
pub(crate) fn elements(element_type: &str, numbers: &[u64], big: bool) -> Vec<u8> {
    numbers
        .iter()
        .flat_map(|n| element(element_type, *n, big))
        .collect()
}

/// The row-major numbers of the elements of an array of `shape` at the given
/// indices of each axis, with the axes running in `order`, slowest first.
pub(crate) fn numbers(shape: &[u64], indices: &[Vec<u64>], order: &[usize]) -> Vec<u64> {
    let step = |axis: usize| -> u64 { shape[axis + 1..].iter().product() };
    order.iter().fold(vec![0], |sums, axis| {
        let along = &indices[*axis];
        sums.iter()
            .flat_map(|sum| along.iter().map(move |i| sum + i * step(*axis)))
            .collect()
    })
}

/// All indices of each axis.
pub(crate) fn everything(shape: &[u64]) -> Vec<Vec<u64>> {
    shape.iter().map(|extent| (0..*extent).collect()).collect()
}
