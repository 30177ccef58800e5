//! Sieving by whole slices makes exactly the requests of the thesis' table 5.3
//! (Thakur 1995, section 5.5.1), and for writes those of its formulas.

use std::sync::Arc;

use outcore::storage::{CountedStore, MemoryStore, Store};
use outcore::{Array, ArrayDescriptor, ElementType, Strategy, Tuning};

/// The thesis' table: section, requests and elements of the direct method and of
/// sieving for a read, and of sieving for a write.
const TABLE: &str = include_str!("../../bench/data/sieving.csv");

struct Row {
    section: String,
    numbers: Vec<u64>,
}

fn rows() -> Vec<Row> {
    let header: Vec<&str> = TABLE.lines().next().unwrap().split(',').collect();
    let columns = [
        "read_requests_direct",
        "read_requests_sieving",
        "read_elements_direct",
        "read_elements_sieving",
        "write_requests_sieving_calc",
        "write_elements_sieving_calc",
    ];
    let rows = TABLE.lines().skip(1).map(|line| {
        // The first field is the section, in quotes and with a comma.
        let (section, rest) = line[1..].split_once('"').unwrap();
        let fields: Vec<&str> = rest.split(',').collect();
        let number = |name: &str| {
            let at = header.iter().position(|column| *column == name).unwrap();
            fields[at].parse().unwrap()
        };
        Row {
            section: section.into(),
            numbers: columns.iter().map(|name| number(name)).collect(),
        }
    });
    rows.collect()
}

#[test]
fn requests_are_those_of_the_thesis() {
    let descriptor = ArrayDescriptor::new(&[2048, 32], ElementType::F32)
        .layout("column".parse().expect("a valid layout"));
    let store = Arc::new(CountedStore::new(MemoryStore::new()));
    store.set_len(descriptor.byte_len().unwrap()).unwrap();
    let array = Array::in_store("thesis", &descriptor, store.clone()).unwrap();
    let values: Vec<f32> = (0..2048 * 32).map(|at| at as f32).collect();
    array.write(&array.whole(), &values).unwrap();
    let direct = array.tuned(Tuning {
        strategy: Strategy::Direct,
        ..Tuning::default()
    });
    let slices = array.tuned(Tuning {
        strategy: Strategy::Sieving,
        buffer: Some(16 * 2048 * 4),
        whole_slices: true,
        ..Tuning::default()
    });
    let rows = rows();
    assert_eq!(rows.len(), 5);
    for Row { section, numbers } in rows {
        let section = array.section(&section).unwrap();
        store.reset();
        let wanted: Vec<f32> = direct.read(&section).unwrap();
        let plain = store.counts();
        store.reset();
        let found: Vec<f32> = slices.read(&section).unwrap();
        let sieved = store.counts();
        assert_eq!(wanted, found);
        store.reset();
        let changed: Vec<f32> = found.iter().map(|value| -value).collect();
        slices.write(&section, &changed).unwrap();
        let written = store.counts();
        let all: Vec<f32> = direct.read(&array.whole()).unwrap();
        assert_eq!(direct.read::<f32>(&section).unwrap(), changed);
        let turned = all.iter().filter(|value| **value < 0.0).count();
        assert_eq!(turned, changed.iter().filter(|value| **value < 0.0).count());
        slices.write(&section, &found).unwrap();
        let counted = [
            plain.reads,
            sieved.reads,
            plain.bytes_read / 4,
            sieved.bytes_read / 4,
            written.reads + written.writes,
            (written.bytes_read + written.bytes_written) / 4,
        ];
        assert_eq!(counted[..], numbers[..], "section [{section}]");
    }
    assert_eq!(array.read::<f32>(&array.whole()).unwrap(), values);
}

#[test]
fn a_window_that_is_covered_is_not_read_before() {
    let descriptor = ArrayDescriptor::new(&[8, 6], ElementType::F64);
    let store = Arc::new(CountedStore::new(MemoryStore::new()));
    store.set_len(descriptor.byte_len().unwrap()).unwrap();
    let array = Array::in_store("rows", &descriptor, store.clone()).unwrap();
    let tuning = Tuning {
        strategy: Strategy::Sieving,
        buffer: Some(2 * 6 * 8),
        whole_slices: true,
        ..Tuning::default()
    };
    let array = array.tuned(tuning);
    array.write(&array.whole(), &[1.0; 48]).unwrap();
    let counts = store.counts();
    assert_eq!((counts.reads, counts.writes), (0, 4));
    // A buffer that holds less than a slice still cuts between elements.
    store.reset();
    let narrow = array.tuned(Tuning {
        buffer: Some(20),
        ..tuning
    });
    let section = array.section("1:3, ::2").unwrap();
    assert_eq!(narrow.read::<f64>(&section).unwrap(), [1.0; 6]);
    assert_eq!(store.counts().reads, 6);
}
