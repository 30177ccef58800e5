//! On a simulated device the cost model rehearses the requests: what it
//! predicts is what they take, and `auto` is as fast as the best strategy.

use std::sync::Arc;

use outcore::storage::{DeviceModel, MemoryStore, Store, ThrottledStore, Time};
use outcore::{Array, ArrayDescriptor, Direction, ElementType, StorageProfile, Strategy, Tuning};

const SECTIONS: [&str; 6] = [
    "0:16, :",
    ":, 0:16",
    "10:200, 20:220",
    "::16, ::16",
    "5:500:3, 0:64:2",
    "7::64, 9::128",
];

fn took(model: DeviceModel, section: &str, direction: Direction, strategy: Strategy) -> (f64, f64) {
    let descriptor = ArrayDescriptor::new(&[512, 512], ElementType::F32)
        .layout("column".parse().expect("a valid layout"));
    let memory = Arc::new(MemoryStore::new());
    memory.set_len(512 * 512 * 4).unwrap();
    let store = Arc::new(ThrottledStore::new(memory, model, Time::Virtual).unwrap());
    let array = Array::in_store("device", &descriptor, store.clone()).unwrap();
    let array = array
        .with_profile(StorageProfile::of(&model))
        .tuned(Tuning {
            strategy,
            buffer: Some(256 << 10),
            ..Tuning::default()
        });
    let section = array.section(section).unwrap();
    let estimates = array.estimates(&section, direction).unwrap();
    let chosen = array.plan(&section, direction).unwrap().strategy();
    let predicted = estimates.iter().find(|e| e.strategy == chosen).unwrap();
    let mut values = vec![1.5f32; section.count() as usize];
    match direction {
        Direction::Read => array.read_into(&section, &mut values).unwrap(),
        Direction::Write => array.write(&section, &values).unwrap(),
    }
    (predicted.seconds, store.elapsed().as_secs_f64())
}

#[test]
fn what_is_predicted_is_what_it_takes() {
    let models = [
        DeviceModel::disk1995(),
        DeviceModel::pfs(),
        DeviceModel::object(),
    ];
    for model in models {
        for section in SECTIONS {
            for direction in [Direction::Read, Direction::Write] {
                let times = [Strategy::Direct, Strategy::Sieving].map(|strategy| {
                    let (predicted, took) = took(model, section, direction, strategy);
                    // Copies take real time, which the device does not count.
                    let copies = 1e-3;
                    assert!(
                        predicted >= took * 0.999_999 && predicted <= took + copies,
                        "{strategy} {direction:?} [{section}]: {predicted} but {took}"
                    );
                    took
                });
                let (_, auto) = took(model, section, direction, Strategy::Auto);
                let best = times[0].min(times[1]);
                assert!(auto <= best * 1.15, "{direction:?} [{section}] {model:?}");
            }
        }
    }
}
