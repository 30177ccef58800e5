//! Descriptors from strangers are read or refused with a sentence; and what a
//! descriptor tells of a rank.

use outcore::{
    Array, ArrayDescriptor, Distribution, ElementType, LocalArray, LocalPlacement, MemoryBudget,
};
use proptest::prelude::*;
use tempfile::TempDir;

fn with_text(change: impl Fn(String) -> String) -> Result<(), String> {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.oc");
    let name = path.to_str().unwrap();
    let distribution = Distribution::parse("block,cyclic(2)", &[8, 9], 4, None).unwrap();
    let placement = LocalPlacement::new(distribution).overlap(&[(1, 1), (0, 2)]);
    let descriptor = ArrayDescriptor::new(&[8, 9], ElementType::F32).placed(placement);
    Array::create(name, &descriptor).unwrap();
    let file = path.join("array.json");
    let text = std::fs::read_to_string(&file).unwrap();
    std::fs::write(&file, change(text)).unwrap();
    let whole = Array::open(name)
        .map(drop)
        .map_err(|error| error.to_string());
    let part = LocalArray::open_part(name, 0)
        .map(drop)
        .map_err(|error| error.to_string());
    if let (Err(problem), Ok(())) = (&whole, &part) {
        // A file of another rank may be what is wrong.
        assert!(problem.contains("rank"), "{problem}");
    }
    whole.and(part)
}

#[test]
fn mistakes_are_named() {
    with_text(|text| text).unwrap();
    for (from, to, part) in [
        ("block,cyclic(2)", "block,blok", "blok"),
        ("block,cyclic(2)", "block", "1 axes"),
        ("block,cyclic(2)", "*,*", "exactly 1 rank"),
        ("\"ranks\": 4", "\"ranks\": 5", "but there are 5"),
        ("\"ranks\": 4", "\"ranks\": 0", "at least 1 rank"),
        ("\"ranks\": 4", "\"ranks\": -1", "a whole number"),
        ("\"ranks\": 4", "\"rank\": 4", "rank"),
        ("\"shape\": [\n    8,", "\"shape\": [\n    7000,", "has"),
        (
            "\"layout\": \"row\"",
            "\"layout\": \"tiled:2x2\"",
            "tiled:2x2",
        ),
        ("\"id\": \"", "\"id\": \"../", "32 hexadecimal digits"),
        (
            "\"overlap\"",
            "\"directories\": [\"a\"], \"overlap\"",
            "absolute",
        ),
        (
            "\"overlap\"",
            "\"directories\": [\"/a\"], \"overlap\"",
            "1 directories for 4 ranks",
        ),
        (
            "\"kind\": \"local\"",
            "\"kind\": \"elsewhere\"",
            "elsewhere",
        ),
    ] {
        let message = with_text(|text| {
            assert!(text.contains(from), "{from} in {text}");
            text.replacen(from, to, 1)
        })
        .unwrap_err();
        assert!(message.contains(part), "{from} -> {to}: {message}");
    }
    let grid = |grid: &str, ranks: &str| {
        with_text(|text| {
            let start = text.find("\"grid\"").unwrap();
            let end = start + text[start..].find(']').unwrap();
            let text = format!("{}\"grid\": [{grid}{}", &text[..start], &text[end..]);
            text.replace("\"ranks\": 4", &format!("\"ranks\": {ranks}"))
        })
        .unwrap_err()
    };
    assert!(grid("2, 3", "6").contains("missing"));
    assert!(grid("4294967296, 4294967295", "18446744069414584320").contains("63 bits"));
    assert!(grid("1000000, 1000000", "1000000000000").contains("65536 files"));
    assert!(grid("0, 4", "0").contains("at least 1"));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 5, ..Default::default() })]

    #[test]
    fn a_damaged_descriptor_is_read_or_refused(at in 0usize..500, byte in 32u8..127) {
        let _ = with_text(|text| {
            let mut bytes = text.into_bytes();
            let at = at % bytes.len();
            bytes[at] = byte;
            String::from_utf8(bytes).unwrap()
        });
    }
}

#[test]
fn the_descriptor_of_a_rank_has_every_row() {
    let directory = TempDir::new().unwrap();
    let path = directory.path().join("a.oc");
    let name = path.to_str().unwrap();
    let distribution = Distribution::parse("block,cyclic(3)", &[10, 20], 6, None).unwrap();
    let placement = LocalPlacement::new(distribution).overlap(&[(1, 1), (0, 2)]);
    let descriptor = ArrayDescriptor::new(&[10, 20], ElementType::F64)
        .layout("column".parse().unwrap())
        .placed(placement);
    Array::create(name, &descriptor).unwrap();
    let local = LocalArray::open_part(name, 5).unwrap();
    let told = local.descriptor();
    assert_eq!(told.rank, 5);
    assert_eq!(told.global, [10, 20]);
    assert_eq!(told.processors, [3, 2]);
    assert_eq!(told.block, [4, 3]);
    // Rows 8 and 9; columns 3-5, 9-11 and 15-17.
    assert_eq!(told.local, [2, 9]);
    assert_eq!(told.stored, [4, 15]);
    assert_eq!(told.storage, [1, 2]);
    assert_eq!(told.overlap, [(1, 1), (0, 2)]);
    assert_eq!(told.offset(&[2, 3]), Some(3 * 4 + 2));
    assert_eq!(told.offset(&[4, 0]), None);
    assert_eq!(local.to_global(&[1, 5]), Some(vec![8, 9]));
    assert_eq!(local.to_global(&[0, 5]), None);
    assert_eq!(local.to_part(&[9, 17]), Some(vec![2, 12]));
    let text = told.to_string();
    assert!(text.contains("cyclic(3)") && text.contains("0+2"), "{text}");

    // 4 rows of a column, 8 bytes each: two columns and two of overlap.
    let slabs: Vec<_> = local.slabs(1, &MemoryBudget::of(128)).unwrap().collect();
    assert_eq!(slabs.len(), 6);
    assert_eq!(slabs[1].lower, [1, 2]);
    assert_eq!(slabs[1].upper, [3, 3]);
    assert_eq!(slabs[1].lower_with_overlap, [0, 2]);
    assert_eq!(slabs[1].upper_with_overlap, [4, 5]);
    let small = local
        .slabs(1, &MemoryBudget::of(95))
        .map(drop)
        .unwrap_err()
        .to_string();
    assert!(small.contains("at least 96 bytes"), "{small}");
}
