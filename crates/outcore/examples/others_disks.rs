//! A group of ranks computes and saves its state on the disks of another group,
//! without collective calls; after a failure it goes on from the newest version that is
//! complete.
//!
//! With the argument `apart`, ranks of MPI share no memory, as if each had a node of its
//! own.

use outcore::{Comm, Disks, Error, OthersDisks, Procedures, State};

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    let ranks = outcore::default_ranks();
    outcore::run(ranks, |comm| {
        let directory = format!("outcore-others-disks-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let mut directory = directory.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut directory)?;
        let outcome = example(comm, &directory);
        comm.barrier()?;
        if comm.rank() == 0 {
            std::fs::remove_dir_all(&directory).expect("it can be removed");
        }
        outcome
    })?;
    Ok(())
}

/// A step of the computation.
fn step(values: &mut [f64]) {
    values
        .iter_mut()
        .for_each(|value| *value = *value / 2.0 + 1.0);
}

fn example(comm: &Comm, directory: &str) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank(), comm.size());
    let calls = Procedures::start(comm)?;
    // The first half computes; the other half keeps. One rank alone does both.
    let computing: Vec<usize> = (0..ranks.div_ceil(2)).collect();
    let keeping: Vec<usize> = match ranks {
        1 => vec![0],
        _ => (ranks.div_ceil(2)..ranks).collect(),
    };
    let disks = Disks::pattern(format!("{directory}/{{rank}}"));
    let groups = (computing.as_slice(), keeping.as_slice());
    let kept = OthersDisks::new(comm, &calls, "heat", groups, &disks)?;
    let is_computing = rank < computing.len();

    // 1. Every rank saves after every second step, when it gets there.
    let mut values = vec![rank as f64; 100_000];
    if is_computing {
        for done in 1..=6u64 {
            step(&mut values);
            if done % 2 == 0 {
                kept.save(done, &State::new().with("u", &values).with("done", &[done]))?;
            }
        }
    }
    comm.barrier()?;
    assert_eq!(kept.newest()?, Some(6));
    comm.barrier()?;

    // 2. All but the last fail before they save step 8: that version is not there.
    if is_computing && rank + 1 == computing.len() && computing.len() > 1 {
        kept.save(8, &State::new().with("u", &values).with("done", &[8u64]))?;
    }
    comm.barrier()?;
    assert_eq!(kept.newest()?, Some(6));

    // 3. They go on from step 6; one that replaces another takes its share.
    if is_computing {
        let (version, state) = kept.restore()?.expect("version 6 is complete");
        assert_eq!((version, state.get::<u64>("done")?), (6, vec![6]));
        assert!(state.get::<f64>("u")? == values);
        let next = (rank + 1) % computing.len();
        let expected = (0..6).fold(next as f64, |value, _| value / 2.0 + 1.0);
        assert_eq!(kept.restore_of(6, next)?.get::<f64>("u")?[99], expected);
    }
    comm.barrier()?;

    // 4. The next program finds the states on the disks of those who keep them.
    let again = OthersDisks::new(comm, &calls, "heat", groups, &disks)?;
    assert_eq!(again.newest()?, Some(6));
    if ranks > 1 {
        assert!(!std::path::Path::new(&format!("{directory}/0")).exists());
    }
    comm.barrier()?;
    calls.close()
}
