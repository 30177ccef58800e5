//! Every strategy on the papers' sections, on simulated devices: in virtual
//! time, so each is done once and the times are exact.

use std::sync::Arc;
use std::time::Duration;

use outcore::storage::{DeviceModel, MemoryStore, Store, ThrottledStore, Time};
use outcore::{Array, ArrayDescriptor, Direction, Result, StorageProfile, Strategy, Tuning};

use crate::line::Line;
use crate::papers::papers_sections;

/// Devices that are known by name.
pub const DEVICES: [&str; 3] = ["disk1995", "pfs", "object"];

/// The model of a device of [`DEVICES`].
pub fn device(name: &str) -> Option<DeviceModel> {
    match name {
        "disk1995" => Some(DeviceModel::disk1995()),
        "pfs" => Some(DeviceModel::pfs()),
        "object" => Some(DeviceModel::object()),
        _ => None,
    }
}

/// One line a strategy and section of an array of `descriptor`, whose values are
/// `values`.
pub(crate) fn on_device(
    (name, model): (&str, DeviceModel),
    descriptor: &ArrayDescriptor,
    values: &Arc<MemoryStore>,
    direction: Direction,
) -> Result<Vec<Line>> {
    let plain = Array::in_store("values", descriptor, values.clone())?;
    let mut lines = Vec::new();
    for case in papers_sections(descriptor.shape[0])? {
        let bytes = case.section.count() * plain.layout().element_size();
        let mut expected = vec![0; bytes as usize];
        plain.read_bytes(&case.section, &mut expected)?;
        let mut found = expected.clone();
        for strategy in Strategy::ALL {
            if strategy == Strategy::Mapped {
                continue;
            }
            let store = Arc::new(ThrottledStore::new(values.clone(), model, Time::Virtual)?);
            let array = Array::in_store(name, descriptor, store.clone() as Arc<dyn Store>)?
                .with_profile(StorageProfile::of(&model))
                .tuned(Tuning {
                    strategy,
                    ..Tuning::default()
                });
            match direction {
                Direction::Read => {
                    found.fill(0);
                    array.read_bytes(&case.section, &mut found)?;
                }
                Direction::Write => array.write_bytes(&case.section, &expected)?,
            }
            let took: Duration = store.elapsed();
            plain.read_bytes(&case.section, &mut expected)?;
            lines.push(Line {
                system: format!("outcore/{name}"),
                bench: "sections",
                case: case.text.clone(),
                op: direction_name(direction),
                strategy: strategy.name().into(),
                transport: "threads".into(),
                ranks: 1,
                useful_bytes: bytes,
                best_s: took.as_secs_f64(),
                median_s: took.as_secs_f64(),
                ok: found == expected,
            });
        }
    }
    Ok(lines)
}

pub(crate) fn direction_name(direction: Direction) -> &'static str {
    match direction {
        Direction::Read => "read",
        Direction::Write => "write",
    }
}
