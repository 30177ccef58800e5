//! Fourier transforms and the heat equation on files, by any number of ranks,
//! against plain sums and plain elimination.

use std::f64::consts::PI;
use std::sync::Arc;

use bytemuck::Pod;
use outcore::storage::{CountedStore, MemoryStore};
use outcore::{
    Array, ArrayDescriptor, Complex, Element, ElementType, MemoryBudget, Strategy, Tuning,
};
use outcore_apps::Resources;
use outcore_apps::adi::{Heat, heat_in_memory, solve_heat};
use outcore_apps::fft::{Fourier, Sample, transform, transform_in_memory};
use proptest::prelude::*;
use proptest::strategy::Strategy as Values;

use crate::arrays::{array, contents, fill, random};
use crate::memory::with_memory;

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<u64>,
    layouts: [String; 2],
    ranks: usize,
    memory: u64,
    axes: Vec<usize>,
    inverse: bool,
    seed: u64,
}

fn case() -> impl Values<Value = Case> {
    let extent = || prop_oneof![1 => Just(0u64), 2 => Just(1), 8 => 2u64..12, 2 => 12u64..40];
    let axes = proptest::collection::vec((extent(), any::<bool>(), 1u64..6), 1..4);
    let kind = || proptest::sample::select(vec!["row", "column", "tiled"]);
    let ranks = proptest::sample::select(vec![1usize, 2, 3, 5, 16]);
    let memory = prop_oneof![50u64..4000, 4000u64..100_000, Just(4 << 20)];
    let how = (ranks, memory, any::<bool>(), any::<u64>());
    (axes, kind(), kind(), how).prop_map(|(axes, from, to, (ranks, memory, inverse, seed))| {
        let tile: Vec<String> = axes.iter().map(|(_, _, tile)| tile.to_string()).collect();
        let layout = |kind: &str| match kind {
            "tiled" => format!("tiled:{}", tile.join("x")),
            other => other.into(),
        };
        let along = axes.iter().enumerate().filter(|(_, (_, along, _))| *along);
        Case {
            axes: along.map(|(axis, _)| axis).collect(),
            shape: axes.iter().map(|(extent, ..)| *extent).collect(),
            layouts: [layout(from), layout(to)],
            ranks,
            memory,
            inverse,
            seed,
        }
    })
}

/// The transform by its definition, row-major.
fn plain(values: &[Complex<f64>], case: &Case) -> Vec<Complex<f64>> {
    let mut values = values.to_vec();
    let axes = match case.axes.is_empty() {
        true => (0..case.shape.len()).collect(),
        false => case.axes.clone(),
    };
    for axis in axes {
        let length = case.shape[axis] as usize;
        let apart = case.shape[axis + 1..].iter().product::<u64>() as usize;
        let sign = if case.inverse { 2.0 } else { -2.0 };
        let old = values.clone();
        for (at, value) in values.iter_mut().enumerate() {
            let (index, first) = (at / apart % length, at - at / apart % length * apart);
            let term = |other: usize| {
                let turn = sign * PI * ((index * other) % length) as f64 / length as f64;
                old[first + other * apart] * Complex::from_polar(1.0, turn)
            };
            *value = (0..length).map(term).sum();
            if case.inverse {
                *value /= length as f64;
            }
        }
    }
    values
}

fn check_transform<S: Sample>(case: &Case, sample: impl Fn(u64) -> S, exactness: f64)
where
    Complex<f64>: From<Widened<S>>,
    Complex<S::Float>: Element + Pod,
{
    let count = case.shape.iter().product();
    let values: Vec<S> = random(count, case.seed).map(sample).collect();
    let wide: Vec<Complex<f64>> = values.iter().map(|value| Widened(*value).into()).collect();
    let expected = plain(&wide, case);
    let source = array::<S>("source", &case.shape, &case.layouts[0]);
    fill(&source, &values);
    let target = array::<Complex<S::Float>>("target", &case.shape, &case.layouts[1]);
    let (between, part) = (
        array::<Complex<S::Float>>("between", &case.shape, "row"),
        array::<S::Float>("part", &case.shape, &case.layouts[1]),
    );
    let fourier = Fourier {
        axes: case.axes.clone(),
        inverse: case.inverse,
    };
    with_memory(case.memory, |budget| {
        outcore::run(case.ranks, |comm| {
            let resources = Resources::of(budget.clone());
            transform(comm, &source, (&target, None), &fourier, &resources)
        })
    });
    with_memory(case.memory, |budget| {
        outcore::run(case.ranks, |comm| {
            let resources = Resources::of(budget.clone());
            let into = (&part, Some(&between));
            transform(comm, &source, into, &fourier, &resources)
        })
    });
    let scale = expected
        .iter()
        .map(|value| value.norm())
        .fold(1.0, f64::max);
    let found: Vec<Complex<S::Float>> = contents(&target);
    let real: Vec<S::Float> = contents(&part);
    for ((found, real), expected) in found.into_iter().zip(real).zip(&expected) {
        let found: Complex<f64> = Complex::new(wide_of(found.re), wide_of(found.im));
        assert!(
            (found - expected).norm() <= exactness * scale,
            "{found} {expected}"
        );
        assert!((wide_of(real) - expected.re).abs() <= exactness * scale);
    }
}

struct Widened<S>(S);

macro_rules! widened {
    ($($sample:ty),*) => {$(
        impl From<Widened<$sample>> for Complex<f64> {
            fn from(value: Widened<$sample>) -> Self {
                let value = value.0.complex();
                Complex::new(value.re.into(), value.im.into())
            }
        }
    )*};
}

widened!(i16, f32, f64, Complex<f32>, Complex<f64>);

fn wide_of<F: Element + Pod>(value: F) -> f64 {
    match F::TYPE {
        ElementType::F32 => bytemuck::cast_slice::<F, f32>(&[value])[0].into(),
        _ => bytemuck::cast_slice::<F, f64>(&[value])[0],
    }
}

fn small(number: u64) -> f64 {
    (number % 201) as f64 - 100.0
}

/// Steps along lines by elimination without any arrangement, row-major.
fn plain_heat(values: &mut [f64], shape: &[u64], heat: &Heat) {
    let axes: Vec<usize> = (0..shape.len()).rev().collect();
    for step in 0..heat.steps {
        let mut order = axes.clone();
        if step % 2 == 1 {
            order.reverse();
        }
        for axis in order {
            plain_heat_along(values, shape, axis, heat.ratio / 2.0);
        }
    }
}

fn plain_heat_along(values: &mut [f64], shape: &[u64], axis: usize, half: f64) {
    let length = shape[axis] as usize;
    let apart = shape[axis + 1..].iter().product::<u64>() as usize;
    for first in 0..values.len() {
        let mut number = first;
        let index: Vec<u64> = (shape.iter().rev())
            .map(|extent| {
                let index = number as u64 % extent;
                number /= *extent as usize;
                index
            })
            .collect();
        let inner = |at: usize| {
            let index = index[shape.len() - 1 - at];
            index > 0 && index + 1 < shape[at]
        };
        let others = (0..shape.len()).filter(|at| *at != axis);
        let begins = index[shape.len() - 1 - axis] == 0;
        if !begins || length < 3 || !others.into_iter().all(inner) {
            continue;
        }
        let old: Vec<f64> = (0..length).map(|at| values[first + at * apart]).collect();
        // Gauss on the whole matrix with rows of 1 for the fixed ends.
        let mut diagonal = vec![1.0 + 2.0 * half; length];
        let mut right = old.clone();
        for at in 1..length - 1 {
            right[at] = old[at] + half * (old[at - 1] - 2.0 * old[at] + old[at + 1]);
        }
        diagonal[0] = 1.0;
        diagonal[length - 1] = 1.0;
        for at in 1..length - 1 {
            let above = if at == 1 { 0.0 } else { -half };
            let factor = -half / diagonal[at - 1];
            diagonal[at] -= factor * above;
            right[at] -= factor * right[at - 1];
        }
        for at in (1..length - 1).rev() {
            right[at] = (right[at] + half * right[at + 1]) / diagonal[at];
        }
        for at in 0..length {
            values[first + at * apart] = right[at];
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..ProptestConfig::default() })]

    #[test]
    fn transforms_are_sums(case in case()) {
        check_transform::<i16>(&case, |number| small(number) as i16, 1e-5);
        check_transform::<f64>(&case, small, 1e-13);
        check_transform::<Complex<f32>>(&case, |n| Complex::new(small(n) as f32, small(n / 300) as f32), 1e-5);
    }

    #[test]
    fn heat_flows_as_lines_are_eliminated(case in case(), steps in 1u64..5, ratio in 0.05f64..4.0) {
        let heat = Heat { steps, ratio };
        let values: Vec<f64> = random(case.shape.iter().product(), case.seed).map(small).collect();
        let mut expected = values.clone();
        plain_heat(&mut expected, &case.shape, &heat);
        let source = array::<f64>("source", &case.shape, "row");
        fill(&source, &values);
        // What is computed first depends on the order of the file.
        let target = array::<f64>("target", &case.shape, &case.layouts[1].replace(":column", ""));
        with_memory(case.memory, |budget| {
            outcore::run(case.ranks, |comm| {
                solve_heat(comm, &source, &target, &heat, &Resources::of(budget.clone()))
            })
        });
        for (found, expected) in contents::<f64>(&target).into_iter().zip(&expected) {
            prop_assert!((found - expected).abs() < 1e-10, "{} {}", found, expected);
        }
        let mut in_memory = values;
        heat_in_memory(&mut in_memory, &case.shape, &heat).unwrap();
        prop_assert_eq!(contents::<f64>(&target), in_memory);
    }
}

/// A wave of one length decays by a known factor in each step.
#[test]
fn a_wave_of_heat_decays_as_it_must() {
    let (shape, heat) = (
        [33u64, 25],
        Heat {
            steps: 7,
            ratio: 0.8,
        },
    );
    let source = array::<f64>("source", &shape, "column");
    let wave =
        |at: u64, extent: u64, waves: f64| (PI * waves * at as f64 / (extent - 1) as f64).sin();
    let value = |at: u64| wave(at / 25, 33, 2.0) * wave(at % 25, 25, 3.0);
    let values: Vec<f64> = (0..33 * 25).map(value).collect();
    fill(&source, &values);
    let target = array::<f64>("target", &shape, "column");
    let passes = outcore::run(3, |comm| {
        let resources = Resources::of(MemoryBudget::of(1 << 20));
        solve_heat(comm, &source, &target, &heat, &resources)
    });
    assert_eq!(passes.unwrap(), [8; 3]);
    let factor = |extent: f64, waves: f64| {
        let decay = heat.ratio * (1.0 - (PI * waves / (extent - 1.0)).cos());
        (1.0 - decay) / (1.0 + decay)
    };
    let decay = (factor(33.0, 2.0) * factor(25.0, 3.0)).powi(7);
    for (found, start) in contents::<f64>(&target).into_iter().zip(values) {
        assert!(
            (found - decay * start).abs() < 1e-12,
            "{found} {}",
            decay * start
        );
    }
}

#[test]
fn transforms_in_memory_are_those_of_files() {
    for threads in [1, 2, 5] {
        let values: Vec<f64> = random(12 * 10 * 7, 3).map(small).collect();
        let source = array::<f64>("source", &[12, 10, 7], "row");
        fill(&source, &values);
        let target = array::<Complex<f64>>("target", &[12, 10, 7], "row");
        outcore::run(1, |comm| {
            let resources = Resources::of(MemoryBudget::of(1 << 20));
            transform(
                comm,
                &source,
                (&target, None),
                &Fourier::default(),
                &resources,
            )
        })
        .unwrap();
        let mut found: Vec<Complex<f64>> = values.iter().map(|value| value.complex()).collect();
        transform_in_memory(&mut found, &[12, 10, 7], &[2, 1, 0], false, threads);
        assert_eq!(contents::<Complex<f64>>(&target), found);
    }
}

/// An array in a store that counts.
fn counted<T: Element>(shape: &[u64]) -> (Arc<CountedStore<MemoryStore>>, Array) {
    let descriptor = ArrayDescriptor::new(shape, T::TYPE);
    let bytes = descriptor.byte_len().unwrap() as usize;
    let store = Arc::new(CountedStore::new(MemoryStore::from(vec![0; bytes])));
    let array = Array::in_store("counted", &descriptor, store.clone()).unwrap();
    let tuning = Tuning {
        strategy: Strategy::Direct,
        ..Tuning::default()
    };
    (store, array.tuned(tuning))
}

/// Each pass reads and writes every byte once; what fits the memory is one pass.
#[test]
fn every_pass_moves_every_byte_once() {
    for (memory, ranks, passes) in [(64 << 10, 1, 2), (64 << 10, 2, 2), (4 << 20, 1, 1)] {
        let (read, source) = counted::<f32>(&[96, 80]);
        let (written, target) = counted::<Complex<f32>>(&[96, 80]);
        let made = outcore::run(ranks, |comm| {
            let resources = Resources::of(MemoryBudget::of(memory));
            transform(
                comm,
                &source,
                (&target, None),
                &Fourier::default(),
                &resources,
            )
        });
        assert!(made.unwrap().iter().all(|made| *made == passes));
        let bytes = 96 * 80 * 4;
        assert_eq!(read.counts().bytes_read, bytes);
        assert_eq!(written.counts().bytes_written, 2 * bytes * passes);
        assert_eq!(written.counts().bytes_read, 2 * bytes * (passes - 1));
    }
}

#[test]
fn what_makes_no_sense_is_refused() {
    let source = array::<f32>("source", &[8, 6], "row");
    let spectrum = array::<Complex<f32>>("spectrum", &[8, 6], "row");
    let flags = array::<bool>("flags", &[8, 6], "row");
    let told = |from: &Array, to: &Array, axes: &[usize]| {
        let fourier = Fourier {
            axes: axes.to_vec(),
            inverse: false,
        };
        let run = outcore::run(2, |comm| {
            let resources = Resources::of(MemoryBudget::of(1 << 20));
            transform(comm, from, (to, None), &fourier, &resources)
        });
        run.unwrap_err().to_string()
    };
    assert!(told(&source, &spectrum, &[2]).contains("no axis 2"));
    assert!(told(&source, &spectrum, &[0, 0]).contains("twice"));
    assert!(told(&source, &flags, &[0]).contains("c64 elements"));
    assert!(told(&flags, &spectrum, &[0]).contains("no numbers"));
    let heated = |heat: Heat| {
        let run = outcore::run(2, |comm| {
            let resources = Resources::of(MemoryBudget::of(1 << 20));
            solve_heat(comm, &source, &source, &heat, &resources)
        });
        run.unwrap_err().to_string()
    };
    assert!(
        heated(Heat {
            steps: 0,
            ratio: 1.0
        })
        .contains("0 steps")
    );
    assert!(
        heated(Heat {
            steps: 1,
            ratio: f64::NAN
        })
        .contains("NaN")
    );
}

#[test]
fn heat_falls_to_zero_and_not_to_subnormal_numbers() {
    // From one warm edge heat falls by a factor in each element, below all numbers.
    fn cold<T: Element + Pod + Into<f64>>(one: T, least: f64) {
        let length = 2000;
        let mut values = vec![T::zeroed(); length];
        values[0] = one;
        let descriptor = ArrayDescriptor::new(&[length as u64], T::TYPE);
        let like = || Arc::new(MemoryStore::from(bytemuck::cast_slice(&values).to_vec()));
        let source = Array::in_store("warm", &descriptor, like()).unwrap();
        let target = Array::in_store("later", &descriptor, like()).unwrap();
        let heat = Heat {
            steps: 3,
            ratio: 0.5,
        };
        outcore::run(1, |comm| {
            let resources = Resources::of(MemoryBudget::of(4 << 20));
            solve_heat(comm, &source, &target, &heat, &resources)
        })
        .unwrap();
        let found: Vec<T> = target.read(&target.whole()).unwrap();
        let found: Vec<f64> = found.into_iter().map(Into::into).collect();
        assert!(found[1] > 0.0 && found[length - 2] == 0.0);
        assert!(
            found
                .iter()
                .all(|value| *value == 0.0 || value.abs() >= least)
        );
    }
    cold(1.0f32, f32::MIN_POSITIVE.into());
    cold(1.0f64, f64::MIN_POSITIVE);
}
