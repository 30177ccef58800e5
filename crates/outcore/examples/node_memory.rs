//! A collective plan that is executed again and again, with buffers that the
//! ranks of a node reach: whoever reads a part of the file puts the data straight
//! into the buffers of all. Ordinary buffers, and messages, give the same.
//!
//! `OUTCORE_RANKS=4 cargo run --example node_memory`, or built with
//! `--features mpi`: `mpirun -n 4 node_memory`.

use outcore::{Array, ArrayDescriptor, Carrier, Direction, ElementType, Error, Pattern, Section};

const SHAPE: [u64; 2] = [64, 90];

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let path = std::env::temp_dir().join(format!("node-memory-{}.oc", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;
        let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::U16);
        let array = Array::create_all(comm, &name, &descriptor)?;

        // Each rank writes every Nth row, and reads columns, some of them common.
        let section = |text: &str| -> Result<_, Error> {
            let pattern: Pattern = text.parse().expect("a valid pattern");
            Ok(pattern.section(&SHAPE, rank, ranks).expect("inside"))
        };
        let (rows, columns) = (section("p::N, ::")?, section("::, p:90:5")?);
        let value = |row: u64, column: u64, step: u64| (row * 90 + column + step * 7) as u16;
        let mut given = comm.node_memory(rows.count() as usize * 2)?;
        let mut got = comm.node_memory(columns.count() as usize * 2)?;
        for carrier in [Carrier::Auto, Carrier::Messages] {
            let calls = array.collective().carrier(carrier).window(700);
            let write = calls.plan(comm, &rows, Direction::Write)?;
            let read = calls.plan(comm, &columns, Direction::Read)?;
            for step in 0..6 {
                // Node memory if there is some; in every third step not, on some ranks.
                let node = step % 3 != 2 || rank % 3 == 1;
                let (mut own_given, mut own_got) = (Vec::new(), Vec::new());
                let data = buffer(given.as_deref_mut().filter(|_| node), &rows, &mut own_given);
                let mut at = 0;
                for row in (0..rows.axes()[0].count()).map(|at| rows.axes()[0].index(at)) {
                    for column in 0..SHAPE[1] {
                        data[at..at + 2].copy_from_slice(&value(row, column, step).to_ne_bytes());
                        at += 2;
                    }
                }
                write.write_bytes(comm, data)?;
                let found = buffer(got.as_deref_mut().filter(|_| node), &columns, &mut own_got);
                found.fill(0xff);
                read.read_bytes(comm, found)?;
                let mut pairs = found.chunks_exact(2);
                for row in 0..SHAPE[0] {
                    for at in 0..columns.axes()[1].count() {
                        let column = columns.axes()[1].index(at);
                        let expected = value(row, column, step).to_ne_bytes();
                        assert_eq!(pairs.next(), Some(&expected[..]), "step {step}");
                    }
                }
                // Nobody writes the next step before all have read this one.
                comm.barrier()?;
            }
        }
        if rank == 0 {
            let kind = if given.is_some() { "shared" } else { "own" };
            println!("{ranks} ranks wrote and read {name} with buffers in {kind} memory");
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}

/// Node memory, or else ordinary memory for the section.
fn buffer<'a>(node: Option<&'a mut [u8]>, section: &Section, own: &'a mut Vec<u8>) -> &'a mut [u8] {
    node.unwrap_or_else(|| {
        own.resize(section.count() as usize * 2, 0);
        own
    })
}
