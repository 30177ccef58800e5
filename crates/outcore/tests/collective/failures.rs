//! What happens when the call of one rank is wrong, or its input or output
//! fails: all ranks return the same error, and can go on.

use std::sync::{Arc, Mutex};

use outcore::storage::{Fault, FaultyStore, MemoryStore, Operation};
use outcore::{
    Array, ArrayDescriptor, Carrier, CollectivePlan, CollectiveWay, Comm, Direction, DomainKind,
    ElementType, Error, Moved, Result, Section, Tuning,
};

const SHAPE: [u64; 2] = [12, 10];

fn array(store: Arc<MemoryStore>) -> (Arc<FaultyStore<Arc<MemoryStore>>>, Array) {
    let faulty = Arc::new(FaultyStore::new(store));
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::I32);
    let array = Array::in_store("shared", &descriptor, faulty.clone()).unwrap();
    (faulty, array)
}

/// Rank `p` of `N` has every `N`th column.
fn columns(comm: &Comm, array: &Array) -> Section {
    let pattern: outcore::Pattern = ":, p::N".parse().unwrap();
    pattern
        .section(array.shape(), comm.rank() as u64, comm.size() as u64)
        .unwrap()
}

/// What all ranks are told, which must be one thing.
fn told(ranks: usize, call: impl Fn(&Comm) -> Result<()> + Send + Sync) -> String {
    let told = outcore::run(ranks, |comm| {
        let told = call(comm).expect_err("one rank fails").to_string();
        comm.barrier()?;
        Ok::<_, Error>(told)
    })
    .unwrap();
    assert!(told.iter().all(|text| *text == told[0]), "{told:?}");
    told[0].clone()
}

#[test]
fn wrong_arguments_of_one_rank_are_told_to_all_before_anything_moves() {
    let memory = Arc::new(MemoryStore::from(vec![7; 480]));
    let (_, array) = array(memory.clone());
    let other = ArrayDescriptor::new(&[12, 40], ElementType::I32);
    let other = Array::in_store("other", &other, memory.clone()).unwrap();
    type Wrong<'a> = &'a (dyn Fn(&Comm) -> Result<()> + Sync);
    let section = |text: &str, shape: &[u64]| Section::parse(text, shape).unwrap();
    let cases: [(Wrong<'_>, &str); 5] = [
        (
            &|comm| array.write_all(comm, &section(":, 3, 1", &[12, 10, 9]), &[1i32; 12]),
            "axes",
        ),
        (
            &|comm| array.write_all(comm, &section(":, 11", &[12, 12]), &[1i32; 12]),
            "axis 1",
        ),
        (
            &|comm| array.write_all(comm, &columns(comm, &array), &[1i32; 7]),
            "buffer holds 7",
        ),
        (
            &|comm| array.write_all(comm, &section(":, 3", &SHAPE), &[1f32; 12]),
            "not f32",
        ),
        (
            &|comm| other.write_all(comm, &section("1, :", &[12, 40]), &[1i32; 40]),
            "not the same collective call",
        ),
    ];
    for (wrong, expected) in cases {
        for ranks in [2, 5] {
            let text = told(ranks, |comm| {
                if comm.rank() == 1 {
                    return wrong(comm);
                }
                let columns = columns(comm, &array);
                array.write_all(comm, &columns, &vec![1i32; columns.count() as usize])
            });
            assert!(
                text.contains(expected) && text.starts_with("rank 1: "),
                "{text}"
            );
            assert_eq!(memory.to_vec(), [7; 480]);
        }
    }
}

/// What ranks do in a trial with faults: each moves every fifth column of the
/// even rows, in windows of two elements.
struct Trial {
    direction: Direction,
    carrier: Carrier,
    kind: DomainKind,
}

impl Trial {
    fn all() -> impl Iterator<Item = Self> {
        let kinds = [DomainKind::Dynamic, DomainKind::Cyclic];
        let carriers = [Carrier::Memory, Carrier::Messages];
        let directions = [Direction::Read, Direction::Write];
        kinds.into_iter().flat_map(move |kind| {
            carriers.into_iter().flat_map(move |carrier| {
                directions.map(|direction| Self {
                    direction,
                    carrier,
                    kind,
                })
            })
        })
    }

    fn rank(&self, comm: &Comm, array: &Array) -> Result<()> {
        let mine = array.section(&format!("::2, {}::5", comm.rank()))?;
        let mut values = vec![comm.rank() as i32; mine.count() as usize];
        let calls = array.collective().window(8).carrier(self.carrier);
        let calls = calls.domains(self.kind);
        match self.direction {
            Direction::Read => {
                calls.read_into(comm, &mine, &mut values)?;
                assert!(values.iter().all(|value| *value == UNTOUCHED));
            }
            Direction::Write => drop(calls.write(comm, &mine, &values)?),
        }
        Ok(())
    }

    /// Only elements of the sections may have changed: the even rows.
    fn check(&self, memory: &MemoryStore) -> Vec<i32> {
        let values: Vec<i32> = bytemuck::pod_collect_to_vec(&memory.to_vec());
        let odd = values.chunks(10).skip(1).step_by(2).flatten();
        assert!(odd.into_iter().all(|value| *value == UNTOUCHED));
        values
    }
}

const UNTOUCHED: i32 = i32::from_ne_bytes([7; 4]);

/// An input or output error of each rank in turn, at each of its first requests;
/// a write with holes reads before it writes, and fails there as well.
#[test]
fn an_error_of_any_aggregator_reaches_all() {
    for trial in Trial::all() {
        let operations = match trial.direction {
            Direction::Read => vec![Operation::Read],
            Direction::Write => vec![Operation::Read, Operation::Write],
        };
        for operation in operations {
            for (failing, pass) in (0..5).flat_map(|rank| [0, 2].map(|pass| (rank, pass))) {
                let memory = Arc::new(MemoryStore::from(vec![7; 480]));
                let struck = Mutex::new(0);
                let outcomes = outcore::run(5, |comm| {
                    let (faulty, array) = array(memory.clone());
                    // Gaps are moved along, so that writes have holes.
                    let array = array.tuned(Tuning {
                        gap: Some(64),
                        ..Tuning::default()
                    });
                    if comm.rank() == failing {
                        faulty.fail_from(operation, pass, Fault::Device);
                    }
                    let outcome = trial.rank(comm, &array).map_err(|error| error.to_string());
                    *struck.lock().unwrap() += faulty.struck();
                    comm.barrier()?;
                    Ok::<_, Error>(outcome)
                })
                .unwrap();
                trial.check(&memory);
                assert!(outcomes.iter().all(|outcome| *outcome == outcomes[0]));
                match &outcomes[0] {
                    Ok(()) => assert_eq!(struck.into_inner().unwrap(), 0, "an error was lost"),
                    Err(text) => {
                        let start = format!("rank {failing}: ");
                        let told = text.starts_with(&start) && text.contains("os error 5");
                        assert!(told, "{text}");
                    }
                }
                // Every rank has a part of the file, so its first request fails.
                assert!(pass > 0 || operation == Operation::Read || outcomes[0].is_err());
            }
        }
    }
}

/// Transfers that are cut short or interrupted are carried on.
#[test]
fn short_and_interrupted_transfers_are_carried_on() {
    for trial in Trial::all() {
        for fault in [Fault::Short, Fault::Interrupted] {
            let memory = Arc::new(MemoryStore::from(vec![7; 480]));
            outcore::run(5, |comm| {
                let (faulty, array) = array(memory.clone());
                faulty.fail_from(Operation::Read, 0, fault);
                faulty.fail_from(Operation::Write, 0, fault);
                trial.rank(comm, &array)?;
                assert!(faulty.struck() > 0);
                Ok::<_, Error>(())
            })
            .unwrap();
            let values = trial.check(&memory);
            if trial.direction == Direction::Write {
                for (at, value) in values.iter().enumerate().filter(|(at, _)| at / 10 % 2 == 0) {
                    assert_eq!(*value, (at % 5) as i32);
                }
            }
        }
    }
}

/// A rank that panics on its way into a call releases all others.
#[test]
fn a_rank_that_dies_is_told_to_all() {
    let memory = Arc::new(MemoryStore::from(vec![7; 480]));
    for dying in 0..3 {
        let (_, array) = array(memory.clone());
        let found = Mutex::new(Vec::new());
        let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            outcore::run(3, |comm| {
                assert!(comm.rank() != dying, "this rank dies");
                let outcome = array.read_all::<i32>(comm, &columns(comm, &array));
                found.lock().unwrap().push(outcome.unwrap_err().to_string());
                Err::<(), _>(Error::Invalid("told".into()))
            })
        }));
        assert!(!matches!(outcome, Ok(Ok(_))));
        let found = found.into_inner().unwrap();
        assert_eq!(found.len(), 2);
        let named = format!("rank {dying}");
        assert!(found.iter().all(|text| text.contains(&named)), "{found:?}");
    }
}

/// A plan is executed with the wrong buffer, or the wrong way, by one rank.
#[test]
fn wrong_executions_of_a_plan_are_told_to_all() {
    let memory = Arc::new(MemoryStore::from(vec![7; 480]));
    let (_, array) = array(memory.clone());
    type Wrong<'a> = &'a (dyn Fn(&Comm, &CollectivePlan) -> Result<Moved> + Sync);
    let cases: [(Wrong<'_>, &str); 4] = [
        (
            &|comm, plan| plan.write(comm, &[1i32; 23]),
            "buffer holds 23",
        ),
        (&|comm, plan| plan.write(comm, &[1f32; 24]), "not f32"),
        (
            &|comm, plan| plan.read_into(comm, &mut [1i32; 24]),
            "not a read",
        ),
        (
            &|comm, plan| {
                let alone = comm.split(Some(comm.rank() as u64), 0)?.unwrap();
                let error = plan.write(&alone, &[1i32; 24]).unwrap_err().to_string();
                comm.agree(Err(error))?
            },
            "rank 2 of 5 is executed by rank 0 of 1",
        ),
    ];
    for (number, (wrong, expected)) in cases.into_iter().enumerate() {
        let text = told(5, |comm| {
            let mine = columns(comm, &array);
            let calls = array.collective().way(CollectiveWay::TwoPhase);
            let plan = calls.plan(comm, &mine, Direction::Write)?;
            if comm.rank() == 2 {
                return wrong(comm, &plan).map(drop);
            }
            if number == 3 {
                comm.split(Some(comm.rank() as u64), 0)?;
                return Ok(comm.agree(Ok::<(), String>(()))?);
            }
            plan.write(comm, &[1i32; 24]).map(drop)
        });
        assert!(
            text.contains(expected) && text.starts_with("rank 2: "),
            "{text}"
        );
        assert_eq!(memory.to_vec(), [7; 480]);
    }
}
