//! [`LocalDescriptor`]: all that one rank must know of an out-of-core array,
//! the descriptor of Thakur 1995, section 5.4.1 and figure 5.5 (OCAD).
//!
//! The rows of the thesis are the fields here: global size, size of the
//! out-of-core local array (OCLA), processors, storage order, distribution and
//! block size. Those of the in-core local array (ICLA), its bounds with and
//! without overlap area, change with every slab: [`LocalArray::slabs`] gives
//! them for the slabs that fit a memory budget. Indices count from 0, and upper
//! bounds are excluded.
//!
//! Element `i` of the part, with extents `e` (overlap areas included), stands
//! at offset `sum over axes of i_d * product of e_t over the axes t that vary
//! faster than d`.

use std::fmt;

use outcore_geometry::AxisDistribution;

use crate::placement::local::LocalArray;

/// What one rank must know of an array that is kept in one file a rank; one
/// entry for each axis.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LocalDescriptor {
    /// The rank.
    pub rank: usize,
    /// The extents of the global array.
    pub global: Vec<u64>,
    /// The extents of the local array, without overlap areas.
    pub local: Vec<u64>,
    /// The extents of the local array in its file, overlap areas included.
    pub stored: Vec<u64>,
    /// The ranks along each axis.
    pub processors: Vec<u64>,
    /// The rank of each axis in the order of the file: 1 varies fastest.
    pub storage: Vec<usize>,
    /// The kinds of distribution.
    pub distribution: Vec<AxisDistribution>,
    /// The sizes of the blocks.
    pub block: Vec<u64>,
    /// The depths of the overlap areas below and above each block.
    pub overlap: Vec<(u64, u64)>,
}

impl LocalDescriptor {
    /// The number, in the file, of the element at `index` of the part; `None`
    /// outside.
    pub fn offset(&self, index: &[u64]) -> Option<u64> {
        let inside = index.len() == self.stored.len()
            && index
                .iter()
                .zip(&self.stored)
                .all(|(at, extent)| at < extent);
        let mut slowest_first: Vec<usize> = (0..self.stored.len()).collect();
        slowest_first.sort_by_key(|axis| std::cmp::Reverse(self.storage[*axis]));
        let place = |offset: u64, axis: &usize| offset * self.stored[*axis] + index[*axis];
        inside.then(|| slowest_first.iter().fold(0, place))
    }
}

/// The rows of the descriptor, as the thesis draws them.
impl fmt::Display for LocalDescriptor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let overlap = |(below, above): &(u64, u64)| format!("{below}+{above}");
        let rows: [(&str, Vec<String>); 8] = [
            ("global size", texts(&self.global)),
            ("local size", texts(&self.local)),
            ("stored size", texts(&self.stored)),
            ("processors", texts(&self.processors)),
            ("storage order", texts(&self.storage)),
            ("distribution", texts(&self.distribution)),
            ("block size", texts(&self.block)),
            ("overlap", self.overlap.iter().map(overlap).collect()),
        ];
        write!(f, "{:<16}", format!("rank {}", self.rank))?;
        for axis in 0..self.global.len() {
            write!(f, "{:>12}", format!("axis {axis}"))?;
        }
        for (name, row) in rows {
            write!(f, "\n{name:<16}")?;
            for entry in row {
                write!(f, "{entry:>12}")?;
            }
        }
        Ok(())
    }
}

fn texts<T: ToString>(row: &[T]) -> Vec<String> {
    row.iter().map(T::to_string).collect()
}

impl LocalArray {
    /// All that this rank must know of the array.
    pub fn descriptor(&self) -> LocalDescriptor {
        let distribution = self.distribution();
        let axes = self.parts.axes();
        let mut storage = vec![0; axes.len()];
        for (number, axis) in self
            .part()
            .layout()
            .slowest_first()
            .iter()
            .rev()
            .enumerate()
        {
            storage[*axis] = number + 1;
        }
        LocalDescriptor {
            rank: self.rank(),
            global: distribution.shape().to_vec(),
            local: distribution.local_shape(self.rank() as u64),
            stored: self.part().shape().to_vec(),
            processors: distribution.grid().to_vec(),
            storage,
            distribution: distribution.axes().iter().map(|axis| axis.kind()).collect(),
            block: axes.iter().map(|axis| axis.block()).collect(),
            overlap: axes.iter().map(|axis| (axis.below, axis.above)).collect(),
        }
    }
}
