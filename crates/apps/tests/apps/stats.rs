//! Statistics along axes and of sections beside plain loops, with little memory.

use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget, Section};
use outcore_apps::Resources;
use outcore_apps::stats::{Part, Question, Value, along, stats};

/// An array whose element [i, j, k] is a mix of its indices, some of them NaN.
fn array(directory: &std::path::Path, layout: &str) -> (Array, Vec<f64>) {
    let shape = [9, 14, 11];
    let descriptor = ArrayDescriptor::new(&shape, ElementType::F64).layout(layout.parse().unwrap());
    let name = directory.join(format!("{}.oc", layout.replace([':', ','], "-")));
    let array = Array::create(name.to_str().unwrap(), &descriptor).unwrap();
    let mut values = Vec::new();
    for i in 0..9u64 {
        for j in 0..14u64 {
            for k in 0..11u64 {
                let mixed = (i * 7919 + j * 104_729 + k * 1_299_709) % 1009;
                let value = match mixed % 17 {
                    0 => f64::NAN,
                    _ => 1e6 + mixed as f64 / 8.0,
                };
                let at = array.section(&format!("{i}, {j}, {k}")).unwrap();
                array.write(&at, &[value]).unwrap();
                values.push(value);
            }
        }
    }
    (array, values)
}

/// Mean and deviation of what is no NaN.
fn plain(values: &[f64]) -> (f64, f64) {
    let good: Vec<f64> = values.iter().copied().filter(|v| !v.is_nan()).collect();
    let mean = good.iter().sum::<f64>() / good.len() as f64;
    let squares: f64 = good.iter().map(|value| (value - mean).powi(2)).sum();
    (mean, (squares / good.len() as f64).sqrt())
}

#[test]
fn whatever_the_layout_the_ranks_and_the_memory() {
    let directory = tempfile::tempdir().unwrap();
    let mut first = None;
    for layout in ["row", "column", "axes:1,2,0", "tiled:4x5x3"] {
        let (array, values) = array(directory.path(), layout);
        let (mean, deviation) = plain(&values);
        for (ranks, memory) in [(1, 1 << 20), (2, 1 << 17), (5, 320 << 10)] {
            let found = outcore::run(ranks, |comm| {
                let part = Part {
                    array: &array,
                    section: &array.whole(),
                };
                let resources = Resources::of(MemoryBudget::of(memory));
                let answer = stats(comm, &part, &Question::default(), &resources)?;
                let most = answer.summary.most().unwrap();
                Ok::<_, outcore::Error>((answer.summary, part.index(&most)))
            });
            for (found, at) in found.unwrap() {
                assert!((found.mean() - mean).abs() < 1e-9, "{layout}");
                assert!((found.deviation() - deviation).abs() < 1e-9, "{layout}");
                let nans = values.iter().filter(|value| value.is_nan()).count();
                assert_eq!(found.nans() as usize, nans);
                let text = format!("{}, {}, {}", at[0], at[1], at[2]);
                let there = array.read::<f64>(&array.section(&text).unwrap()).unwrap();
                assert_eq!(found.most().unwrap().value, Value::Real(there[0]));
                // The first in the order of the file, so the same for all ranks.
                if layout == "row" {
                    assert_eq!(*first.get_or_insert(at.clone()), at);
                }
            }
        }
    }
}

#[test]
fn along_every_choice_of_axes() {
    let directory = tempfile::tempdir().unwrap();
    for layout in ["row", "axes:2,0,1", "tiled:4x5x3"] {
        let (array, values) = array(directory.path(), layout);
        for axes in [
            vec![0],
            vec![1],
            vec![2],
            vec![0, 2],
            vec![1, 2],
            vec![0, 1, 2],
        ] {
            let left: Vec<usize> = (0..3).filter(|axis| !axes.contains(axis)).collect();
            let mut expected = std::collections::BTreeMap::<Vec<u64>, Vec<f64>>::new();
            for (at, value) in values.iter().enumerate() {
                let index = [at as u64 / 154, at as u64 / 11 % 14, at as u64 % 11];
                let key = left.iter().map(|axis| index[*axis]).collect();
                expected.entry(key).or_default().push(*value);
            }
            // So little memory that there are several groups.
            for (ranks, memory) in [(1, 70 << 10), (3, 220 << 10)] {
                let order = array.layout().slowest_first().to_vec();
                let left_order: Vec<usize> = order
                    .iter()
                    .filter_map(|axis| left.iter().position(|kept| kept == axis))
                    .collect();
                let seen = outcore::run(ranks, |comm| {
                    let part = Part {
                        array: &array,
                        section: &array.whole(),
                    };
                    let resources = Resources::of(MemoryBudget::of(memory));
                    let mut seen = Vec::new();
                    along(comm, &part, &axes, &resources, |group: &Section, found| {
                        for (at, found) in found.iter().enumerate() {
                            let mut rest = at as u64;
                            let mut key = vec![0; left.len()];
                            for axis in left_order.iter().rev() {
                                let taken = &group.axes()[*axis];
                                key[*axis] = taken.index(rest % taken.count());
                                rest /= taken.count();
                            }
                            seen.push((key, *found));
                        }
                        Ok(())
                    })?;
                    Ok::<_, outcore::Error>(seen)
                });
                let seen: Vec<_> = seen.unwrap().into_iter().flatten().collect();
                assert_eq!(seen.len(), expected.len(), "{layout} {axes:?}");
                for (key, found) in seen {
                    let (mean, deviation) = plain(&expected[&key]);
                    assert!(
                        (found.mean() - mean).abs() < 1e-9,
                        "{layout} {axes:?} {key:?}"
                    );
                    assert!((found.deviation() - deviation).abs() < 1e-8);
                    let all = expected[&key].len() as u64;
                    assert_eq!(found.count + found.nans, all);
                }
            }
        }
    }
}
