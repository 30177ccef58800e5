//! `outcore matmul` on every format, layout and type.

use crate::program::Place;

/// The f64 values of a .npy file in its own order.
fn values(place: &Place, name: &str) -> Vec<f64> {
    let bytes = place.npy(name);
    let (numbers, rest) = bytes.as_chunks::<8>();
    assert!(rest.is_empty());
    numbers
        .iter()
        .map(|number| f64::from_ne_bytes(*number))
        .collect()
}

#[test]
fn every_format_layout_and_form_gives_the_product() {
    let place = Place::new();
    // Row-major numbers: sums of products are whole numbers, and exact.
    place.ok("create a.npy --shape 40x30 --type f64 --fill index");
    place.ok("create b.npy --shape 30x50 --type f64 --fill index");
    let (a, b) = (values(&place, "a.npy"), values(&place, "b.npy"));
    let mut expected = vec![0.0; 40 * 50];
    for i in 0..40 {
        for k in 0..30 {
            for j in 0..50 {
                expected[i * 50 + j] += a[i * 30 + k] * b[k * 50 + j];
            }
        }
    }
    let raw = "raw:a.bin?shape=40x30&type=f64&byteorder=big";
    place.ok(&format!("convert a.npy {raw}"));
    place.ok("convert a.npy a.oc --layout tiled:16x8");
    place.ok("convert b.npy b.oc --layout column");
    place.ok("convert b.npy parts.oc --distribution block,block --parts 4");
    for (left, right) in [("a.npy", "b.npy"), (raw, "b.oc"), ("a.oc", "parts.oc")] {
        for (form, ranks) in [("blocked", 1), ("blocked", 3), ("gaxpy", 1), ("gaxpy", 5)] {
            let options = format!("--form {form} --ranks {ranks} --memory 512KiB --force");
            for layout in ["row", "column", "tiled:7x9"] {
                let told = place.ok(&format!(
                    "matmul {left} {right} c.oc --layout {layout} {options}"
                ));
                assert!(told.starts_with("40x30 times 30x50 f64; "), "{told}");
                assert!(told.contains("GFLOP/s; peak memory"), "{told}");
                place.ok("convert c.oc c.npy --layout row --force");
                assert!(
                    values(&place, "c.npy") == expected,
                    "{left} {right} {form} {layout}"
                );
            }
        }
    }
    // Whatever was temporary is gone.
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn any_float_type_and_output_format() {
    let place = Place::new();
    for number in ["f32", "f64", "c64", "c128"] {
        place.ok(&format!(
            "create a.oc --shape 20x20 --type {number} --fill 2 --force"
        ));
        for output in [
            "c.oc",
            "c.npy",
            &format!("raw:c.bin?shape=20x20&type={number}"),
        ] {
            place.ok(&format!("matmul a.oc a.oc {output} --force --ranks 2"));
            let text = place.ok_args(&["read", output, "19, 19"]);
            assert!(text.trim().starts_with("80"), "{number} {output}: {text}");
        }
    }
    // Nothing to sum up.
    place.ok("create thin.oc --shape 5x0 --type f32");
    place.ok("create flat.oc --shape 0x4 --type f32");
    place.ok("matmul thin.oc flat.oc zeros.npy");
    assert!(place.npy("zeros.npy").iter().all(|byte| *byte == 0));
    assert_eq!(place.npy("zeros.npy").len(), 80);
    place.ok("create square.oc --shape 4x4 --type f32");
    place.ok("matmul flat.oc square.oc none.npy");
    assert!(place.npy("none.npy").is_empty());
}

#[test]
fn bad_requests_are_refused() {
    let place = Place::new();
    place.ok("create a.oc --shape 100x80 --type f32");
    place.ok("create b.oc --shape 80x60 --type f32");
    place.ok("create double.oc --shape 80x60 --type f64");
    place.ok("create whole.oc --shape 80x80 --type i32");
    place.ok("create cube.oc --shape 8x8x8 --type f32");
    let fails = |status, line: &str, words: &str| {
        let message = place.fails(status, line);
        assert!(message.contains(words), "{line}: {message}");
    };
    fails(
        1,
        "matmul b.oc a.oc x.oc",
        "has 60 columns, but a.oc (100x80 f32) has 100 rows",
    );
    fails(1, "matmul a.oc double.oc x.oc", "different types");
    fails(1, "matmul whole.oc whole.oc x.oc", "holds i32 elements");
    fails(
        1,
        "matmul cube.oc b.oc x.oc",
        "has 3 axes, but a matrix has 2",
    );
    fails(1, "matmul missing.oc b.oc x.oc", "missing.oc");
    fails(1, "matmul a.oc b.oc b.oc", "take the place");
    fails(1, "matmul a.oc b.oc x.oc --memory 100", "needs at least");
    fails(
        1,
        "matmul a.oc b.oc x.oc --memory 100 --form gaxpy --ranks 3",
        "needs at least",
    );
    fails(1, "matmul a.oc b.oc x.npy --layout tiled:4x4", "x.npy");
    fails(2, "matmul a.oc b.oc x.oc --form magic", "--form");
    fails(2, "matmul a.oc b.oc", "OUT");
    fails(
        2,
        "matmul a.oc b.oc raw:x.bin?shape=100x60&type=f32 --layout row",
        "--layout",
    );
    fails(
        1,
        "matmul a.oc b.oc raw:x.bin?shape=100x61&type=f32",
        "100x6",
    );
    assert_eq!(
        place.names(),
        ["a.oc", "b.oc", "cube.oc", "double.oc", "whole.oc"]
    );
}
