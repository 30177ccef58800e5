//! Elements of one rank.

use std::sync::Arc;

use outcore::storage::{FileStore, MemoryStore, Store};
use outcore::{Array, ArrayDescriptor, Combine, ElementType, Indices, Strategy as Way, Tuning};
use proptest::prelude::*;
use proptest::sample::select;

use crate::oracle::contents;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn what_is_taken_was_put(
        shape in prop_oneof![
            (1..3000u64).prop_map(|n| vec![n]),
            (1..40u64, 1..40u64).prop_map(|(a, b)| vec![a, b]),
        ],
        layout in select(vec!["row", "column", "tiled"]),
        some in prop::collection::vec((any::<u64>(), 1..9u64), 0..60),
        form in 0..3u8,
        strategy in select(Way::ALL.to_vec()),
        buffer in select(vec![4096u64, 4 << 20]),
        in_file in any::<bool>(),
    ) {
        let elements: u64 = shape.iter().product();
        let layout = match layout {
            "tiled" => format!("tiled:{}", ["3", "3x5"][shape.len() - 1]),
            other => other.to_string(),
        };
        let descriptor = ArrayDescriptor::new(&shape, ElementType::I32);
        let descriptor = descriptor.layout(layout.parse().unwrap());
        let directory = tempfile::tempdir().unwrap();
        let store: Arc<dyn Store> = match in_file {
            true => Arc::new(FileStore::create(directory.path().join("data")).unwrap()),
            false => Arc::new(MemoryStore::new()),
        };
        store.set_len(descriptor.byte_len().unwrap()).unwrap();
        let array = Array::in_store("array", &descriptor, store).unwrap();
        let array = array.tuned(Tuning { strategy, buffer: Some(buffer), ..Tuning::default() });
        // In what form indices are given, and what they are.
        let numbers: Vec<u64> = some.iter().map(|(index, _)| index % elements).collect();
        let short: Vec<u32> = numbers.iter().map(|index| *index as u32).collect();
        let runs: Vec<(u64, u64)> = some.iter()
            .map(|(index, len)| (index % elements, (*len).min(elements - index % elements)))
            .collect();
        let (given, all): (Indices<'_>, Vec<u64>) = match form {
            0 => ((&short).into(), numbers.clone()),
            1 => ((&numbers).into(), numbers.clone()),
            _ => ((&runs).into(), runs.iter().flat_map(|(first, len)| *first..first + len).collect()),
        };
        let values: Vec<i32> = (1..=all.len() as i32).collect();
        array.put(given, &values).unwrap();
        let mut expected = vec![0; elements as usize];
        for (index, value) in all.iter().zip(&values) {
            expected[*index as usize] = *value;
        }
        prop_assert_eq!(contents::<i32>(&array), expected.clone());
        let taken: Vec<i32> = array.take(given).unwrap();
        let wanted: Vec<i32> = all.iter().map(|index| expected[*index as usize]).collect();
        prop_assert_eq!(taken, wanted);
        array.put_combined(given, &values, Combine::Max).unwrap();
        for (index, value) in all.iter().zip(&values) {
            let there = &mut expected[*index as usize];
            *there = (*there).max(*value);
        }
        prop_assert_eq!(contents::<i32>(&array), expected);
    }
}

#[test]
fn indices_outside_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("array.npy");
    let descriptor = ArrayDescriptor::new(&[10], ElementType::F64);
    let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
    array.put(&[1u64], &[1.0]).unwrap();
    let error = array.take::<f64>(&[0u32, 10]).unwrap_err().to_string();
    assert!(
        error.contains("index number 1 asks for element 10"),
        "{error}"
    );
    assert!(array.put(&[3u64, 10], &[2.0, 2.0]).is_err());
    assert!(array.put(&[3u64, 4], &[2.0]).is_err());
    assert!(array.put(&[3u64], &[2i32]).is_err());
    assert!(
        array
            .put_combined(&[3u64], &[2.0f32], Combine::Add)
            .is_err()
    );
    assert_eq!(array.take::<f64>(&[1u64, 3]).unwrap(), [1.0, 0.0]);
    let nothing: &[u64] = &[];
    assert_eq!(array.take::<f64>(nothing).unwrap(), [0.0; 0]);
}

#[test]
fn complex_numbers_have_no_order() {
    let store = Arc::new(MemoryStore::new());
    store.set_len(160).unwrap();
    let descriptor = ArrayDescriptor::new(&[10], ElementType::C128);
    let array = Array::in_store("complex", &descriptor, store).unwrap();
    let one = outcore::Complex::new(1.0, 2.0);
    array
        .put_combined(&[3u64, 3], &[one, one], Combine::Add)
        .unwrap();
    assert_eq!(
        array.take::<outcore::Complex<f64>>(&[3u64]).unwrap(),
        [one + one]
    );
    let error = array
        .put_combined(&[3u64], &[one], Combine::Min)
        .unwrap_err();
    assert!(error.to_string().contains("c128 numbers have no min"));
}
