//! One copy of a distributed array for all ranks of a node, fetched block by block
//! by whoever needs one first, and renewed without the other nodes.
//!
//! `OUTCORE_RANKS=4 cargo run --example node_array`, or built with
//! `--features mpi`: `mpirun -n 4 node_array`. With the argument `apart`, ranks of
//! MPI share no memory: each is a node of its own.

use std::sync::atomic::{AtomicU64, Ordering};

use outcore::{Distribution, Error, GlobalArray, NodeArray, Op, Procedures, Section};

const SHAPE: [u64; 2] = [120, 64];

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    outcore::run(outcore::default_ranks(), |comm| {
        let procedures = Procedures::start(comm)?;
        let ranks = comm.size() as u64;
        let distribution =
            Distribution::parse("cyclic(5),*", &SHAPE, ranks, None).expect("it fits");
        let array = GlobalArray::<f64>::new(comm, Some(&procedures), distribution)?;
        let value = |row: u64, column: u64| (row * SHAPE[1] + column) as f64;
        array.fill_with(comm, |at| value(at[0], at[1]))?;

        // A cache: every rank reads rows of its own choice, twice.
        let mut copy = NodeArray::new(comm, &SHAPE, &[8, 64])?;
        let fetched = AtomicU64::new(0);
        let source = |section: &Section, values: &mut [f64]| {
            fetched.fetch_add(1, Ordering::Relaxed);
            array.get(section, values)
        };
        let mut row = vec![0.0; SHAPE[1] as usize];
        for at in (0..2 * SHAPE[0]).map(|at| (at * 7 + comm.rank() as u64) % SHAPE[0]) {
            copy.get(&source, &array.section(&format!("{at}, :"))?, &mut row)?;
            let right = |(column, found): (usize, &f64)| *found == value(at, column as u64);
            assert!(row.iter().enumerate().all(right));
        }
        // Each block has come to each node once.
        assert_eq!(copy.full_blocks(), copy.blocks());
        let node = copy.node().clone();
        let fetched = node.all_reduce_one(fetched.into_inner(), Op::Sum)?;
        assert_eq!(fetched as usize, copy.blocks());

        // A mirror: all of it at once, renewed when the array has changed.
        array.sync(comm)?;
        array.scale(comm, 2.0)?;
        copy.renew()?;
        let all = copy.fill(&array)?;
        let sum: f64 = all.iter().sum();
        let count = SHAPE[0] * SHAPE[1];
        assert_eq!(sum, (count * (count - 1)) as f64);
        array.close(comm)?;
        if comm.rank() == 0 {
            println!(
                "{} of {} ranks share {} blocks",
                node.size(),
                ranks,
                copy.blocks()
            );
        }
        procedures.close()?;
        Ok::<(), Error>(())
    })?;
    Ok(())
}
