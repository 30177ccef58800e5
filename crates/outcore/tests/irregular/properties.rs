//! Random indices, layouts, element types, ranks, windows, carriers, groups and
//! budgets, against an array in memory.

use std::sync::Arc;

use outcore::storage::{FileStore, MemoryStore, Store};
use outcore::{
    Array, ByteOrder, Carrier, Combine, Error, Groups, Indices, Inspector, Irregular, MemoryBudget,
    Number, Schedule, Strategy as Way, Tuning, Variable,
};
use proptest::prelude::*;
use proptest::sample::select;

use crate::oracle::{Target, Value, contents};

/// How indices are given.
#[derive(Debug, Clone, Copy)]
enum Form {
    U32,
    U64,
    Runs,
    Tuples,
}

#[derive(Debug, Clone)]
struct Case {
    target: Target,
    /// The indices of each rank.
    indices: Vec<Vec<u64>>,
    form: Form,
    window: Option<u64>,
    cyclic: bool,
    carrier: Carrier,
    groups: Option<usize>,
    chunk: Option<u64>,
    message: Option<u64>,
    budget: Option<u64>,
    strategy: Way,
    in_file: bool,
}

fn indices(elements: u64, ranks: usize) -> impl Strategy<Value = Vec<Vec<u64>>> {
    let index = 0..elements;
    let any = prop::collection::vec(index.clone(), 0..40);
    let run = (index, 0..20u64)
        .prop_map(move |(first, len)| (first..elements.min(first + len)).collect::<Vec<u64>>());
    let runs = prop::collection::vec(run, 0..5).prop_map(|runs| runs.concat());
    let one = prop_oneof![4 => any, 3 => runs, 1 => Just(Vec::new())];
    let free = prop::collection::vec(one, ranks);
    // All elements, each once, dealt out in any order.
    let all = Just((0..elements).collect::<Vec<u64>>()).prop_shuffle();
    let permuted = all.prop_map(move |all| {
        let share = all.len().div_ceil(ranks).max(1);
        let mut parts: Vec<Vec<u64>> = all.chunks(share).map(<[u64]>::to_vec).collect();
        parts.resize(ranks, Vec::new());
        parts
    });
    prop_oneof![2 => free, 1 => permuted]
}

fn case() -> impl Strategy<Value = Case> {
    let shape = prop_oneof![
        (1..200u64).prop_map(|n| vec![n]),
        (1..15u64, 1..15u64).prop_map(|(a, b)| vec![a, b]),
        (1..6u64, 1..6u64, 1..6u64).prop_map(|(a, b, c)| vec![a, b, c]),
    ];
    let target = (shape, select(vec![0, 0, 0, 2, 3]), 0..4u8, any::<bool>()).prop_map(
        |(shape, components, layout, little)| {
            let components = (components > 0).then_some(components);
            let axes = shape.len() + usize::from(components.is_some());
            let layout = match layout {
                0 if components.is_none() => {
                    format!("tiled:{}", ["3x2x2", "3x2", "3"][3 - axes.clamp(1, 3)])
                }
                1 | 0 => "column".to_string(),
                _ => "row".to_string(),
            };
            let byte_order = match little {
                true => ByteOrder::Little,
                false => ByteOrder::Big,
            };
            Target {
                shape,
                layout,
                components,
                byte_order,
            }
        },
    );
    let ranks = select(vec![1usize, 2, 3, 5, 16]);
    (target, ranks).prop_flat_map(|(target, ranks)| {
        let how = (
            select(vec![Form::U32, Form::U64, Form::Runs, Form::Tuples]),
            select(vec![None, Some(1), Some(2), Some(16), Some(64)]),
            any::<bool>(),
            select(vec![Carrier::Auto, Carrier::Messages]),
        );
        let turns = (
            select(vec![None, None, Some(1), Some(2), Some(3), Some(16)]),
            select(vec![None, None, Some(1), Some(3)]),
            select(vec![None, None, Some(1), Some(24), Some(1000)]),
            select(vec![None, None, Some(1 << 20)]),
            select(Way::ALL.to_vec()),
            any::<bool>(),
        );
        (indices(target.elements(), ranks), how, turns).prop_map(
            move |(
                indices,
                (form, window, cyclic, carrier),
                (groups, chunk, message, budget, strategy, in_file),
            )| Case {
                target: target.clone(),
                indices,
                form,
                window,
                cyclic,
                carrier,
                groups,
                chunk,
                message,
                budget,
                strategy,
                in_file,
            },
        )
    })
}

impl Case {
    fn schedule(
        &self,
        comm: &outcore::Comm,
        array: &Array,
        own: &[u64],
    ) -> Result<Schedule, Error> {
        let mut inspector = Inspector::default();
        if let Some(window) = self.window {
            inspector = inspector.window(window);
        }
        if self.cyclic {
            inspector = inspector.cyclic();
        }
        let short: Vec<u32> = own.iter().map(|index| *index as u32).collect();
        let mut runs: Vec<(u64, u64)> = Vec::new();
        for index in own {
            match runs.last_mut() {
                Some((first, len)) if *first + *len == *index => *len += 1,
                _ => runs.extend([(*index, 1), (0, 0)].into_iter().take(1)),
            }
        }
        let tuples: Vec<u64> = own
            .iter()
            .flat_map(|index| {
                let mut rest = *index;
                let mut tuple: Vec<u64> = Vec::new();
                for extent in self.target.shape.iter().rev() {
                    tuple.insert(0, rest % extent);
                    rest /= extent;
                }
                tuple
            })
            .collect();
        let given: Indices<'_> = match self.form {
            Form::U32 => (&short).into(),
            Form::U64 => own.into(),
            Form::Runs => (&runs).into(),
            Form::Tuples => Indices::Tuples(&tuples, self.target.shape.len()),
        };
        inspector.schedule(comm, array, given)
    }

    fn call<'a>(&self, schedule: &'a Schedule, budget: &MemoryBudget) -> Irregular<'a> {
        let mut call = schedule.call().carrier(self.carrier);
        if let Some(groups) = self.groups {
            call = call.groups(Groups::Of(groups));
        }
        if let Some(chunk) = self.chunk {
            call = call.windows(chunk);
        }
        if let Some(message) = self.message {
            call = call.message(message);
        }
        match self.budget {
            Some(_) => call.budget(budget),
            None => call,
        }
    }

    fn check<T: Value + Number>(&self) {
        let directory = tempfile::tempdir().unwrap();
        let descriptor = self.target.descriptor::<T>();
        let bytes = descriptor.byte_len().unwrap();
        let store: Arc<dyn Store> = match self.in_file {
            false => Arc::new(MemoryStore::new()),
            true => Arc::new(FileStore::create(directory.path().join("data")).unwrap()),
        };
        store.set_len(bytes).unwrap();
        let array = Array::in_store("array", &descriptor, store).unwrap();
        let array = array.tuned(Tuning {
            strategy: self.strategy,
            ..Tuning::default()
        });
        // The schedule is for the array without the components of records.
        let plain = Target {
            components: None,
            ..self.target.clone()
        };
        let plain = Array::in_store(
            "plain",
            &plain.descriptor::<u8>(),
            Arc::new(MemoryStore::new()),
        )
        .unwrap();
        let record = self.target.record();
        let elements = self.target.elements() as usize;
        let before: Vec<T> = (0..elements * record)
            .map(|at| T::of(at as u64 + 3))
            .collect();
        write_whole(&array, &before);
        assert_eq!(contents::<T>(&array), before);
        let budget = MemoryBudget::of(self.budget.unwrap_or(1 << 20) * self.indices.len() as u64);
        let values = |rank: usize| -> Vec<T> {
            let count = self.indices[rank].len() * record;
            (0..count)
                .map(|at| T::of((at * 31 + rank * 1009) as u64))
                .collect()
        };
        let all = outcore::run(self.indices.len(), |comm| {
            let own = &self.indices[comm.rank()];
            let schedule = self.schedule(comm, &plain, own)?;
            assert_eq!(schedule.count(), own.len());
            let call = self.call(&schedule, &budget);
            // Read what was there.
            let mut read = vec![T::of(49); own.len() * record];
            call.read(comm, &array, &mut read)?;
            // Write, twice: the second time with what was learnt the first time.
            for _ in 0..2 {
                call.write_all(comm, &mut [Variable::write(&array, &values(comm.rank()))])?;
            }
            comm.barrier()?;
            let written = contents::<T>(&array);
            comm.barrier()?;
            call.accumulate(comm, &array, &values(comm.rank()), Combine::Add)?;
            let mut last = vec![T::of(0); own.len() * record];
            call.read(comm, &array, &mut last)?;
            Ok::<_, Error>((read, written, last))
        })
        .unwrap();
        // The oracle.
        let mut expected = before.clone();
        for (rank, indices) in self.indices.iter().enumerate() {
            let values = values(rank);
            for (at, index) in indices.iter().enumerate() {
                let place = *index as usize * record;
                let (there, own) = (
                    &before[place..place + record],
                    at * record..(at + 1) * record,
                );
                assert_eq!(all[rank].0[own.clone()], *there, "read by rank {rank}");
                expected[place..place + record].copy_from_slice(&values[own]);
            }
        }
        for (_, written, _) in &all {
            assert_eq!(*written, expected);
        }
        for (rank, indices) in self.indices.iter().enumerate() {
            let values = values(rank);
            for (at, index) in indices.iter().enumerate() {
                for component in 0..record {
                    let there = &mut expected[*index as usize * record + component];
                    let new = values[at * record + component];
                    *there = T::combined(Combine::Add, *there, new).unwrap();
                }
            }
        }
        assert_eq!(contents::<T>(&array), expected);
        for (rank, indices) in self.indices.iter().enumerate() {
            for (at, index) in indices.iter().enumerate() {
                let place = *index as usize * record;
                assert_eq!(
                    all[rank].2[at * record..(at + 1) * record],
                    expected[place..place + record]
                );
            }
        }
    }
}

/// Writes all elements, given with the last axis fastest.
fn write_whole<T: Value>(array: &Array, values: &[T]) {
    let shape = array.shape();
    for (number, value) in values.iter().enumerate() {
        let mut rest = number as u64;
        let mut text = Vec::new();
        for extent in shape.iter().rev() {
            text.insert(0, (rest % extent).to_string());
            rest /= extent;
        }
        let section = array.section(&text.join(", ")).unwrap();
        array.write(&section, std::slice::from_ref(value)).unwrap();
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_way_gives_what_the_oracle_says(case in case(), element in 0..4u8) {
        match element {
            0 => case.check::<u8>(),
            1 => case.check::<i32>(),
            2 => case.check::<f64>(),
            _ => case.check::<outcore::Complex<f64>>(),
        }
    }
}
