//! All ranks read and write sections of one array together: common, interleaved,
//! overlapping and strided ones, lists, and ranks with nothing to do.
//!
//! `OUTCORE_RANKS=4 cargo run --example collective`, or built with
//! `--features mpi`: `mpirun -n 4 collective`.

use outcore::{Array, ArrayDescriptor, DomainKind, ElementType, Error, Pattern, Section};

const SHAPE: [u64; 2] = [48, 60];

/// What each rank asks for; `p` is its number, `N` how many there are.
const PATTERNS: [&str; 6] = [
    "::, ::",               // all of it, by all
    "p::N, ::",             // interleaved rows
    "p:24+p:2, ::3",        // overlapping
    "::3, p%8:60:7",        // strided
    "p, [0,1,5,6,7,40]",    // a list
    "10:10+(p%3)*5, 20:21", // some have nothing
];

fn section(pattern: &str, rank: usize, ranks: usize) -> Section {
    let pattern: Pattern = pattern.parse().expect("a valid pattern");
    let section = pattern.section(&SHAPE, rank as u64, ranks as u64);
    section.expect("inside the array")
}

/// The indices of a section, in the order of the rows.
fn indices(section: &Section) -> impl Iterator<Item = (u64, u64)> {
    let (rows, columns) = (&section.axes()[0], &section.axes()[1]);
    let row = move |at| (0..columns.count()).map(move |k| (rows.index(at), columns.index(k)));
    (0..rows.count()).flat_map(row)
}

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, ranks) = (comm.rank(), comm.size());
        // Rank 0's name is the one that all use.
        let path = std::env::temp_dir().join(format!("collective-{}.oc", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;
        let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::I64);
        let array = Array::create_all(comm, &name, &descriptor)?;

        let mut expected = vec![0; (SHAPE[0] * SHAPE[1]) as usize];
        let at = |(row, column): (u64, u64)| (row * SHAPE[1] + column) as usize;
        for (step, pattern) in PATTERNS.into_iter().enumerate() {
            // All but those of disks, which one plain file does not have.
            let kinds = DomainKind::ALL.into_iter();
            for kind in kinds.filter(|kind| *kind != DomainKind::Disks) {
                let calls = array.collective().domains(kind).window(1000);
                // Where sections overlap, the highest rank's values are written.
                let value = |rank: usize, at: usize| (step * 1_000_000 + rank * 10_000 + at) as i64;
                for writer in 0..ranks {
                    let written = section(pattern, writer, ranks);
                    indices(&written)
                        .for_each(|index| expected[at(index)] = value(writer, at(index)));
                }
                let mine = section(pattern, rank, ranks);
                let values: Vec<i64> = indices(&mine).map(|index| value(rank, at(index))).collect();
                calls.write(comm, &mine, &values)?;

                // Everybody reads what the next rank has written.
                let next = section(pattern, (rank + 1) % ranks, ranks);
                let found: Vec<i64> = calls.read(comm, &next)?;
                assert!(indices(&next).map(|index| expected[at(index)]).eq(found));
            }
        }
        let all: Vec<i64> = array.read_all(comm, &array.whole())?;
        assert_eq!(all, expected);

        // What one rank cannot do, none does, and all are told.
        let beyond = Section::whole(&[SHAPE[0] + rank as u64, 1]).expect("a section");
        let values = vec![1i64; beyond.count() as usize];
        match array.write_all(comm, &beyond, &values) {
            Ok(()) => assert_eq!(ranks, 1),
            Err(error) => assert!(error.to_string().starts_with("rank 1: "), "{error}"),
        }

        comm.barrier()?;
        if rank == 0 {
            println!("{ranks} ranks wrote and read sections of {name} together");
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
