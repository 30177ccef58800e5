//! Writers of different elements never undo each other's work, whatever
//! strategies they use at the same time: those that write back what is between
//! their elements hold a lock that the others share.

use std::sync::Barrier;

use outcore::{Array, ArrayDescriptor, ElementType, Strategy, Tuning};

const WRITERS: u64 = 4;
const ROUNDS: u32 = 60;

#[test]
fn neighbours_of_every_strategy_keep_their_elements() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("shared.oc");
    let name = name.to_str().unwrap();
    let descriptor = ArrayDescriptor::new(&[64, 256], ElementType::U32);
    let array = Array::create(name, &descriptor).unwrap();
    array.write(&array.whole(), &vec![0u32; 64 * 256]).unwrap();
    let strategies = [
        Strategy::Direct,
        Strategy::Sieving,
        Strategy::Mapped,
        Strategy::Sieving,
    ];
    let start = Barrier::new(WRITERS as usize);
    std::thread::scope(|scope| {
        for (writer, strategy) in strategies.into_iter().enumerate() {
            // Half of them share an open array, half have one of their own.
            let array = match writer % 2 {
                0 => array.clone(),
                _ => Array::open_writable(name).unwrap(),
            };
            let start = &start;
            scope.spawn(move || {
                let array = array.tuned(Tuning {
                    strategy,
                    buffer: Some(4096),
                    gap: Some(4096),
                    ..Tuning::default()
                });
                let section = array.section(&format!(":, {writer}::{WRITERS}")).unwrap();
                start.wait();
                for round in 1..=ROUNDS {
                    let values = vec![round; section.count() as usize];
                    array.write(&section, &values).unwrap();
                    assert_eq!(array.read::<u32>(&section).unwrap(), values);
                }
            });
        }
    });
    let values: Vec<u32> = array.read(&array.whole()).unwrap();
    assert!(values.iter().all(|value| *value == ROUNDS));
}
