//! Random sections of random arrays, which all ranks write and read together in
//! every way: overlapping, empty, strided ones and lists, with any domains and
//! memory. What stands in the file and in memory is what it must be, byte by byte.
//!
//! `OUTCORE_RANKS=4 cargo run --example random_sections`, or built with
//! `--features mpi`: `mpirun -n 4 random_sections`.

#[path = "../tests/collective/oracle.rs"]
mod oracle;

use std::path::Path;
use std::sync::Arc;

use oracle::{Case, cases_of};
use outcore::storage::{Access, FileStore, Store};
use outcore::{Array, Carrier, CollectiveWay, Comm, Direction, DomainKind, Error, MemoryBudget};
use proptest::strategy::{Strategy, ValueTree};
use proptest::test_runner::{Config, RngSeed, TestRunner};

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        // Rank 0's file and seed are the ones that all use.
        let path = std::env::temp_dir().join(format!("random-{}.bin", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;
        let config = Config::default();
        let mut seed = [match config.rng_seed {
            RngSeed::Fixed(seed) => seed,
            RngSeed::Random => u64::from(std::process::id()),
        }];
        comm.broadcast(0, &mut seed)?;
        if comm.rank() == 0 {
            FileStore::create(&name)?;
        }
        comm.barrier()?;

        let cases = config.cases / 8;
        let mut runner = TestRunner::new(Config {
            rng_seed: RngSeed::Fixed(seed[0]),
            ..config
        });
        let ranks = comm.size();
        for number in 0..cases {
            let tree = cases_of(ranks..=ranks).new_tree(&mut runner);
            let mut case = tree.expect("nothing is rejected").current();
            // Processes that share no memory can only send.
            let bytes = case.sections[comm.rank()].count() * case.element_type.size();
            let mut buffer = comm.node_memory(bytes as usize)?;
            if buffer.is_none() && case.carrier == Carrier::Memory {
                case.carrier = Carrier::Auto;
            }
            let mut apart = vec![0; bytes as usize];
            let buffer = buffer.as_deref_mut().unwrap_or(&mut apart);
            let way = CollectiveWay::ALL[number as usize % CollectiveWay::ALL.len()];
            let outcome = check(comm, (&case, way), Path::new(&name), buffer);
            comm.agree(outcome.map_err(|text| format!("{text} ({way}, seed {seed:?}: {case:?})")))?;
        }

        if comm.rank() == 0 {
            println!("{ranks} ranks wrote and read {cases} times what they should (seed {seed:?})");
            std::fs::remove_file(&name).expect("the file can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}

/// One case: all write twice with a plan that is kept, and read what stands there.
fn check(
    comm: &Comm,
    (case, way): (&Case, CollectiveWay),
    path: &Path,
    buffer: &mut [u8],
) -> Result<(), String> {
    let text = |error: &dyn std::fmt::Display| error.to_string();
    let store = FileStore::open(path, Access::ReadWrite).map_err(|error| text(&error))?;
    let store: Arc<dyn Store> = Arc::new(store);
    let mut file = case.contents();
    if comm.rank() == 0 {
        let filled = store.set_len(0).and_then(|()| store.write_at(0, &file));
        filled.map_err(|error| text(&error))?;
    }
    // A plain file can be mapped; one that says it is striped has disks.
    let array = match case.guarded && case.domains != DomainKind::Disks {
        true => Array::in_store("file", &case.descriptor(), store.clone()),
        false => Ok(case.array_in(store.clone())),
    };
    let array = array.map_err(|error| text(&error))?;
    let least = array.collective().least_memory(comm.size()) * comm.size() as u64;
    let budget = MemoryBudget::of(case.memory.unwrap_or(0).max(least));
    let calls = case.calls(&array, &budget).way(way);

    let section = &case.sections[comm.rank()];
    let plan = |direction| calls.plan(comm, section, direction);
    let write = plan(Direction::Write).map_err(|error| text(&error))?;
    let read = plan(Direction::Read).map_err(|error| text(&error))?;
    for round in 0..2 {
        for rank in 0..case.ranks() {
            let data = case.data(rank, round);
            case.apply(&mut file, array.layout(), &case.sections[rank], &data);
        }
        buffer.copy_from_slice(&case.data(comm.rank(), round));
        let written = write.write_bytes(comm, buffer);
        written.map_err(|error| text(&error))?;
        let mut found = vec![0; file.len()];
        let all = store.read_at(0, &mut found);
        all.map_err(|error| text(&error))?;
        comm.barrier().map_err(|error| text(&error))?;
        if found != file {
            return Err(format!("round {round}: the file holds other bytes"));
        }
        let expected = case.expected(&file, array.layout(), section);
        buffer.fill(0xaa);
        let moved = read.read_bytes(comm, buffer);
        let moved = moved.map_err(|error| text(&error))?;
        if buffer != expected || moved.useful != expected.len() as u64 {
            return Err(format!("round {round}: other bytes were read"));
        }
    }
    Ok(())
}
