//! Sum, smallest and largest of any section of a distributed array, computed by
//! the owners of its rows: only the results travel, and no rank stops for it.
//!
//! `OUTCORE_RANKS=4 cargo run --example remote_reduction`, or built with
//! `--features mpi`: `mpirun -n 4 remote_reduction`. With the argument `apart`, ranks of
//! MPI share no memory, as if each had a node of its own.

use outcore::{Call, Error, Procedures};

const ROWS: usize = 101;
const COLUMNS: usize = 64;

/// What the array holds.
fn value(row: usize, column: usize) -> f64 {
    ((row * 37 + column * 11) % 1009) as f64 - 500.0
}

/// Rows and columns, each from, to and by.
type Bounds = [usize; 6];

/// The sum, the smallest and the largest of no numbers.
const NONE: [f64; 3] = [0.0, f64::INFINITY, f64::NEG_INFINITY];

fn join(a: [f64; 3], b: [f64; 3]) -> [f64; 3] {
    [a[0] + b[0], a[1].min(b[1]), a[2].max(b[2])]
}

/// Reduces those elements of a section whose row `part` has.
fn reduce(bounds: Bounds, part: impl Fn(usize) -> Option<Vec<f64>>) -> [f64; 3] {
    let [from, to, by, first, last, step] = bounds;
    let rows = (from..to).step_by(by).filter_map(part);
    let elements = rows.flat_map(|row| {
        let columns = (first..last).step_by(step);
        columns.map(|column| row[column]).collect::<Vec<f64>>()
    });
    elements.fold(NONE, |sofar, x| join(sofar, [x, x, x]))
}

fn to_bytes<const N: usize>(words: [[u8; 8]; N]) -> Vec<u8> {
    words.concat()
}

fn words<const N: usize>(bytes: &[u8]) -> Result<[[u8; 8]; N], Error> {
    let (words, rest) = bytes.as_chunks::<8>();
    let words: Result<[[u8; 8]; N], _> = words.try_into();
    match (words, rest) {
        (Ok(words), []) => Ok(words),
        _ => Err(Error::Invalid(format!(
            "{} bytes are no {N} words",
            bytes.len()
        ))),
    }
}

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        // Row r belongs to rank r % size. What the owner registers sees its part.
        let mine: Vec<Vec<f64>> = (rank..ROWS)
            .step_by(size)
            .map(|row| (0..COLUMNS).map(|column| value(row, column)).collect())
            .collect();
        let procedures = Procedures::start(comm)?;
        let reduction = procedures.register("reduce", move |request, response| {
            let bounds = words(request.header())?.map(usize::from_ne_bytes);
            if bounds[1] > ROWS || bounds[4] > COLUMNS || bounds[2] * bounds[5] == 0 {
                return Err(Error::Invalid(format!("no section: {bounds:?}")));
            }
            let own = |row: usize| (row % size == rank).then(|| mine[row / size].clone());
            response.header = to_bytes(reduce(bounds, own).map(f64::to_ne_bytes));
            Ok(())
        })?;

        // Each rank asks for sections of its own; the owners answer meanwhile.
        for turn in 0..20 {
            let bounds = [
                turn,
                ROWS - rank % 7,
                1 + turn % 3,
                rank % 5,
                COLUMNS,
                1 + turn % 4,
            ];
            let header = to_bytes(bounds.map(usize::to_ne_bytes));
            let mut calls = Vec::new();
            for owner in 0..size {
                calls.push(procedures.start_call(owner, reduction, &header, vec![], vec![])?);
            }
            let mut found = NONE;
            while !calls.is_empty() {
                let first = Call::wait_any(&mut calls)?;
                let answer = calls.swap_remove(first).wait()?;
                found = join(found, words(&answer.header)?.map(f64::from_ne_bytes));
            }
            let all = |row| Some((0..COLUMNS).map(|column| value(row, column)).collect());
            assert_eq!(found, reduce(bounds, all));
        }

        // A section out of range is an error of the caller alone.
        let wrong = to_bytes([0, ROWS + 1, 1, 0, COLUMNS, 1].map(usize::to_ne_bytes));
        let error = procedures.call((rank + 1) % size, reduction, &wrong, &[], &mut []);
        let text = error.expect_err("there are not so many rows").to_string();
        assert!(text.contains("procedure reduce on rank"), "{text}");
        println!("rank {rank}: 20 reductions by {size} owners; and {text}");
        procedures.close()
    })?;
    Ok(())
}
