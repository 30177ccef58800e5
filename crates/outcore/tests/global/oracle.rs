//! Programs on threads with data servers, random sections, and arrays in memory to
//! compare with.

use outcore::{Comm, Error, Procedures};

/// The number of ranks that everything is tried on.
pub(crate) const RANKS: [usize; 5] = [1, 2, 3, 5, 16];

/// Runs `program` on so many threads, with a data server each.
pub(crate) fn run<T: Send>(
    ranks: usize,
    program: impl Fn(&Comm, &Procedures) -> Result<T, Error> + Sync,
) -> Vec<T> {
    let outcome = outcore::run(ranks, |comm| {
        let calls = Procedures::start(comm)?;
        let value = program(comm, &calls)?;
        comm.barrier()?;
        calls.close()?;
        Ok::<T, Error>(value)
    });
    outcome.unwrap()
}

/// Numbers that look random, the same in every run.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn below(&mut self, end: u64) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (self.0 >> 33) % end.max(1)
    }

    /// A section of an array of `shape`: spans, strides, lists, single indices.
    pub(crate) fn section(&mut self, shape: &[u64]) -> outcore::Section {
        let axes = shape.iter().map(|extent| {
            let lower = self.below(*extent);
            let upper = lower + 1 + self.below(*extent - lower);
            match self.below(5) {
                0 => outcore::AxisSection::range(lower, upper, 1 + self.below(4)).unwrap(),
                1 => {
                    let list: Vec<u64> = (lower..upper).filter(|_| self.below(2) == 0).collect();
                    match list.is_empty() {
                        true => outcore::AxisSection::span(lower, lower + 1),
                        false => outcore::AxisSection::list(list).unwrap(),
                    }
                }
                _ => outcore::AxisSection::span(lower, upper),
            }
        });
        outcore::Section::new(axes.collect()).unwrap()
    }
}

/// All places of a section in a dense array of `shape`.
pub(crate) fn places(section: &outcore::Section, shape: &[u64]) -> Vec<usize> {
    let mut all = vec![0u64];
    for (axis, extent) in section.axes().iter().zip(shape) {
        let next = |place: &u64| {
            let place = place * extent;
            (0..axis.count())
                .map(move |at| place + axis.index(at))
                .collect::<Vec<_>>()
        };
        all = all.iter().flat_map(next).collect();
    }
    all.into_iter().map(|place| place as usize).collect()
}
