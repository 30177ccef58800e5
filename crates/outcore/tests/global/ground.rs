//! What all tests stand on: numbers that look random, sections, distributions.

use outcore::{AxisDistribution, AxisSection, Comm, Distribution, Error, Procedures, Section};

/// The numbers of ranks that everything is tried with.
pub(crate) const RANKS: [usize; 5] = [1, 2, 3, 5, 16];

/// Whether the parts of others are in reach.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Reach {
    Near,
    Apart,
}

pub(crate) const REACHES: [Reach; 2] = [Reach::Near, Reach::Apart];

/// Runs `program` on so many threads; fails with the error of the first that
/// fails.
pub(crate) fn on<T: Send>(
    ranks: usize,
    program: impl Fn(&Comm) -> Result<T, Error> + Sync,
) -> Vec<T> {
    outcore::run(ranks, program).unwrap()
}

/// Runs `program` with procedures.
pub(crate) fn with_procedures<T: Send>(
    ranks: usize,
    program: impl Fn(&Comm, &Procedures) -> Result<T, Error> + Sync,
) -> Vec<T> {
    on(ranks, |comm| {
        let procedures = Procedures::start(comm)?;
        let result = program(comm, &procedures)?;
        procedures.close()?;
        Ok(result)
    })
}

/// Numbers that look random: splitmix64.
#[derive(Debug, Clone)]
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }

    pub(crate) fn axis(&mut self, extent: u64) -> AxisSection {
        let lower = self.below(extent);
        match self.below(5) {
            0 => AxisSection::span(lower, lower + 1),
            1 => AxisSection::span(0, extent),
            2 => AxisSection::span(lower, lower + 1 + self.below(extent - lower)),
            3 => {
                let upper = lower + 1 + self.below(extent - lower);
                AxisSection::range(lower, upper, 1 + self.below(5)).unwrap()
            }
            _ => {
                let share = 1 + self.below(4);
                let taken: Vec<u64> = (0..extent).filter(|_| self.below(4) < share).collect();
                AxisSection::list(taken).unwrap()
            }
        }
    }

    pub(crate) fn section(&mut self, shape: &[u64]) -> Section {
        Section::new(shape.iter().map(|extent| self.axis(*extent)).collect()).unwrap()
    }

    /// Any distribution of an array of `shape`.
    pub(crate) fn distribution(&mut self, shape: &[u64], ranks: u64) -> Distribution {
        loop {
            let kinds: Vec<AxisDistribution> = shape
                .iter()
                .map(|extent| match self.below(6) {
                    0 => AxisDistribution::Collapsed,
                    1 => AxisDistribution::Cyclic,
                    2 => AxisDistribution::CyclicSize(1 + self.below(5)),
                    3 => AxisDistribution::BlockSize(1 + self.below(*extent)),
                    _ => AxisDistribution::Block,
                })
                .collect();
            let kinds: Vec<String> = kinds.iter().map(ToString::to_string).collect();
            if let Ok(found) = Distribution::parse(&kinds.join(","), shape, ranks, None) {
                return found;
            }
        }
    }

    /// A shape of up to three axes.
    pub(crate) fn shape(&mut self) -> Vec<u64> {
        (0..1 + self.below(3)).map(|_| 1 + self.below(17)).collect()
    }
}

/// Where the elements of a section stand in a dense array of `shape`.
pub(crate) fn places(section: &Section, shape: &[u64]) -> Vec<usize> {
    let mut places = vec![0];
    for (axis, extent) in section.axes().iter().zip(shape) {
        let indices: Vec<u64> = (0..axis.count()).map(|at| axis.index(at)).collect();
        let extended = |place: &usize| {
            let first = place * *extent as usize;
            indices.iter().map(move |index| first + *index as usize)
        };
        places = places.iter().flat_map(extended).collect();
    }
    places
}
