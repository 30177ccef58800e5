//! Many ranks on one array, and what happens when one of them fails.

use std::sync::Arc;

use outcore::storage::{Fault, FaultyStore, MemoryStore, Operation, Store};
use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, Pattern, Result, Strategy, Tuning,
};
use tempfile::TempDir;

const RANKS: [usize; 5] = [1, 2, 3, 5, 16];

fn mine(comm: &Comm, array: &Array, pattern: &str) -> outcore::Section {
    let pattern: Pattern = pattern.parse().unwrap();
    pattern
        .section(array.shape(), comm.rank() as u64, comm.size() as u64)
        .unwrap()
}

#[test]
fn interleaved_sections_of_all_ranks_make_the_whole() {
    for ranks in RANKS {
        for layout in ["row", "column", "tiled:5x7"] {
            let directory = TempDir::new().unwrap();
            let name = directory.path().join("a.oc");
            let name = name.to_str().unwrap();
            outcore::run(ranks, |comm| {
                let descriptor = ArrayDescriptor::new(&[48, 60], ElementType::I32)
                    .layout(layout.parse().unwrap());
                let array = Array::create_all(comm, name, &descriptor)?;
                let rows = mine(comm, &array, "p::N, :");
                let mut bytes = vec![0; rows.count() as usize * 4];
                Fill::Index.generate(&array, &rows, &mut bytes)?;
                array.write_bytes(&rows, &bytes)?;
                comm.barrier()?;
                let columns = mine(comm, &array, ":, p::N");
                let (mut found, mut expected) = (
                    vec![0; columns.count() as usize * 4],
                    vec![0; columns.count() as usize * 4],
                );
                array.read_bytes(&columns, &mut found)?;
                Fill::Index.generate(&array, &columns, &mut expected)?;
                assert_eq!(found, expected);
                Ok::<(), Error>(())
            })
            .unwrap();
        }
    }
}

#[test]
fn collective_creation_and_opening_fail_on_all_ranks_alike() {
    for ranks in RANKS {
        let told = outcore::run(ranks, |comm| {
            let descriptor = ArrayDescriptor::new(&[4], ElementType::F32);
            let made = Array::create_all(comm, "/no/such/place/a.oc", &descriptor);
            let opened = Array::open_all(comm, "/no/such/place/a.oc");
            Ok::<_, Error>((
                made.unwrap_err().to_string(),
                opened.unwrap_err().to_string(),
            ))
        })
        .unwrap();
        assert_eq!(told.len(), ranks);
        for (made, opened) in told {
            assert!(
                made.starts_with("rank 0: ") && made.contains("/no/such/place"),
                "{made}"
            );
            assert!(opened.starts_with("rank 0: "), "{opened}");
        }
    }
}

/// Rank 3 of 5 gets an input/output error in the middle of a collective; all
/// ranks return it, and can go on.
#[test]
fn an_io_error_on_one_rank_reaches_all() {
    let told = outcore::run(5, |comm| {
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        store.set_len(4000)?;
        let descriptor = ArrayDescriptor::new(&[10, 100], ElementType::F32);
        let array = Array::in_store("shared", &descriptor, store.clone())?;
        let array = array.tuned(Tuning {
            strategy: Strategy::Direct,
            ..Tuning::default()
        });
        if comm.rank() == 3 {
            store.fail_once(Operation::Read, 4, Fault::Device);
        }
        let section = array.section("::2, ::3")?;
        let outcome = comm.agree(array.read::<f32>(&section)).map(drop);
        let again = comm
            .agree(array.read::<f32>(&section))
            .map(|values| values.len());
        Ok::<_, Error>((outcome.unwrap_err().to_string(), again))
    })
    .unwrap();
    for (error, again) in told {
        assert!(
            error.starts_with("rank 3: ") && error.contains("os error 5"),
            "{error}"
        );
        assert_eq!(again, Ok(5 * 34));
    }
}

/// Rank 2 of 5 leaves with an error while the others wait for it.
#[test]
fn a_rank_that_leaves_with_an_error_releases_the_others() {
    for _ in 0..50 {
        let seen = std::sync::Mutex::new(Vec::new());
        let outcome: Result<Vec<()>> = outcore::run(5, |comm| {
            comm.barrier()?;
            if comm.rank() == 2 {
                return Err(Error::Invalid("rank 2 has no more paper".into()));
            }
            let waiting = comm.all_gather(&[comm.rank() as u64]).map(drop);
            seen.lock()
                .unwrap()
                .push(waiting.clone().unwrap_err().to_string());
            Ok(waiting?)
        });
        assert_eq!(outcome.unwrap_err().to_string(), "rank 2 has no more paper");
        let seen = seen.into_inner().unwrap();
        assert_eq!(seen, vec!["rank 2 failed: rank 2 has no more paper"; 4]);
    }
}

#[test]
fn a_rank_that_panics_releases_the_others() {
    let outcome: Result<Vec<()>> = outcore::run(5, |comm| {
        comm.barrier()?;
        assert!(comm.rank() != 4, "deliberate");
        Ok(comm.barrier()?)
    });
    let message = outcome.unwrap_err().to_string();
    assert!(
        message.contains("rank 4") && message.contains("deliberate"),
        "{message}"
    );
}

#[test]
fn a_rank_with_nothing_to_do_takes_part() {
    outcore::run(5, |comm| {
        let store = Arc::new(MemoryStore::new());
        store.set_len(12)?;
        let descriptor = ArrayDescriptor::new(&[3], ElementType::F32);
        let array = Array::in_store("memory", &descriptor, store)?;
        let shares = outcore::divide(&array.whole(), &[0], comm.size() as u64);
        let values = comm.agree(array.read::<f32>(&shares[comm.rank()]))?;
        assert_eq!(values.len(), usize::from(comm.rank() < 3));
        Ok::<(), Error>(())
    })
    .unwrap();
}
