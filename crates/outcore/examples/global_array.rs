//! A matrix in the memory of all ranks, to which everybody adds at any time, whole
//! matrices multiplied, and many random operations at once with every sum
//! verified: straight in the memory of the node, and through the servers of owners
//! that are out of reach.
//!
//! `OUTCORE_RANKS=4 cargo run --example global_array`, or built with
//! `--features mpi`: `mpirun -n 4 global_array`. With the argument `apart`, ranks
//! of MPI share no memory, as if each had a node of its own.

use outcore::{AxisSection, Comm, Distribution, Error, GlobalArray, Op, Procedures, Section};

const SHAPE: [u64; 2] = [48, 40];

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    outcore::run(outcore::default_ranks(), |comm| {
        let procedures = Procedures::start(comm)?;
        products(comm, &procedures)?;
        let near = |text: &str, shape: &[u64]| {
            GlobalArray::new(comm, Some(&procedures), distribution(comm, text, shape))
        };
        let sum = stress(comm, near, 4000)?;
        let apart = |text: &str, shape: &[u64]| {
            GlobalArray::apart(comm, &procedures, distribution(comm, text, shape))
        };
        stress(comm, apart, 400)?;
        procedures.close()?;
        if comm.rank() == 0 {
            println!("{} ranks have added up to {sum}", comm.size());
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}

fn distribution(comm: &Comm, text: &str, shape: &[u64]) -> Distribution {
    Distribution::parse(text, shape, comm.size() as u64, None).expect("it fits")
}

/// Whole arrays: `(a b)` transposed is `b` transposed times `a` transposed.
fn products(comm: &Comm, procedures: &Procedures) -> Result<(), Error> {
    let new = |text, shape: [u64; 2]| {
        GlobalArray::<f64>::new(comm, Some(procedures), distribution(comm, text, &shape))
    };
    let (a, b) = (new("block,*", [30, 20])?, new("*,cyclic(3)", [20, 25])?);
    a.fill_with(comm, |at| (at[0] * 7 + at[1] * 3) as f64 % 11.0 - 5.0)?;
    b.fill_with(comm, |at| (at[0] * 5 + at[1]) as f64 % 13.0 - 6.0)?;
    let (turned_a, turned_b) = (new("cyclic,*", [20, 30])?, new("block,*", [25, 20])?);
    turned_a.transpose_from(comm, &a)?;
    turned_b.transpose_from(comm, &b)?;
    let (product, turned) = (new("block,*", [30, 25])?, new("*,block", [25, 30])?);
    product.matmul(comm, &a, &b)?;
    turned.matmul(comm, &turned_b, &turned_a)?;
    let back = new("cyclic(4),*", [30, 25])?;
    back.transpose_from(comm, &turned)?;
    back.add(comm, (1.0, &back), (-1.0, &product))?;
    assert_eq!(back.dot(comm, &back)?, 0.0);
    assert!(product.dot(comm, &product)? > 0.0);
    product.close(comm)
}

/// Everybody adds to random sections, draws numbers and writes to a place of its
/// own; in the end each sum is what all have added. Returns the sum of all.
fn stress(
    comm: &Comm,
    new: impl Fn(&str, &[u64]) -> Result<GlobalArray<i64>, Error>,
    operations: u64,
) -> Result<i64, Error> {
    let sums = new("cyclic(7),block", &SHAPE)?;
    let counter = new("block", &[1])?;
    let notes = new("cyclic", &[comm.size() as u64])?;
    let me = comm.rank() as u64;
    let mut random = Random(me + 1);
    let mut added = vec![0i64; (SHAPE[0] * SHAPE[1]) as usize];
    let mut drawn = Vec::new();
    for turn in 0..operations {
        let section = random.section();
        match random.below(4) {
            0 => {
                let values: Vec<i64> = (0..section.count() as i64).collect();
                sums.accumulate(&section, &values, 2)?;
                for (at, value) in places(&section).into_iter().zip(values) {
                    added[at] += 2 * value;
                }
            }
            1 => drawn.push(counter.read_increment(&[0], 1)?),
            2 => {
                notes.put_one(&[me], turn as i64)?;
                assert_eq!(notes.get_one(&[me])?, turn as i64);
            }
            _ => assert!(sums.read(&section)?.iter().all(|sum| *sum >= 0)),
        }
    }
    sums.sync(comm)?;
    assert_eq!(sums.read(&sums.whole())?, comm.all_reduce(&added, Op::Sum)?);
    // No number was drawn twice, and none left out.
    let mut all = comm.all_gatherv(&drawn)?.concat();
    all.sort_unstable();
    assert!(all.iter().copied().eq(0..all.len() as i64));
    let total = comm.all_reduce_one(added.iter().sum::<i64>(), Op::Sum)?;
    sums.close(comm)?;
    Ok(total)
}

/// Where the elements of a section stand in a dense matrix.
fn places(section: &Section) -> Vec<usize> {
    let [rows, columns] = [0, 1].map(|axis| {
        let axis = &section.axes()[axis];
        (0..axis.count()).map(move |at| axis.index(at) as usize)
    });
    rows.flat_map(|row| {
        columns
            .clone()
            .map(move |column| row * SHAPE[1] as usize + column)
    })
    .collect()
}

/// Numbers that look random: Knuth's linear congruential generator.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % limit
    }

    fn section(&mut self) -> Section {
        let axes = SHAPE.map(|extent| {
            let lower = self.below(extent);
            let upper = lower + 1 + self.below(extent - lower);
            AxisSection::range(lower, upper, 1 + self.below(3)).expect("a stride of 1 to 3")
        });
        Section::new(axes.into()).expect("a small section")
    }
}
