//! [`BlockTensor`]: a block-sparse tensor, and where its blocks stand.
//!
//! The segments of the indices make a grid of blocks; a predicate on the segment
//! numbers says which are not zero (Krishnamoorthy et al. 2006, section VI). Those
//! stand one after another in a dense array of one axis, in the order of their
//! segment numbers (the last index fastest), and each in row-major order.
//!
//! Invariant: `blocks` ascends by number and by start, without gaps.

use outcore::{Error, Result, reorder};

use super::segments::Segments;

/// Where a block stands in the packed array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Place {
    /// The first element.
    pub start: u64,
    /// The number of elements.
    pub len: u64,
}

/// A tensor of which only some blocks are not zero.
///
/// ```
/// use outcore_apps::contract::{BlockTensor, Predicate};
/// let axes = ["2,3".parse()?, "4,1".parse()?];
/// let tensor = BlockTensor::new("a", &axes, |at| Predicate::Parity.holds(at))?;
/// assert_eq!(tensor.len(), 2 * 4 + 3 * 1);
/// assert_eq!(tensor.find(&[1, 1]).map(|place| place.start), Some(8));
/// assert_eq!(tensor.find(&[0, 1]), None);
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct BlockTensor {
    name: String,
    axes: Vec<Segments>,
    /// The number of each non-zero block in the grid, and where it stands.
    blocks: Vec<(u64, Place)>,
}

impl BlockTensor {
    /// A tensor with these axes; `is_there` says of which segments the blocks are
    /// not zero.
    pub fn new(name: &str, axes: &[Segments], is_there: impl Fn(&[usize]) -> bool) -> Result<Self> {
        let counts = axes.iter().map(|axis| axis.count() as u64);
        let extents = axes.iter().map(|axis| axis.extent());
        let product = |mut of: Box<dyn Iterator<Item = u64> + '_>| {
            of.try_fold(1u64, |all, one| all.checked_mul(one))
        };
        let sizes = product(Box::new(counts)).zip(product(Box::new(extents)));
        // Bytes are counted in 63 bits, and elements have 16 at most.
        let Some((grid, _)) = sizes.filter(|(_, dense)| *dense < 1 << 58) else {
            return Err(Error::Invalid(format!(
                "tensor {name} has too many elements"
            )));
        };
        let mut tensor = Self {
            name: name.into(),
            axes: axes.into(),
            blocks: Vec::new(),
        };
        let mut start = 0;
        let mut segments = vec![0; axes.len()];
        for number in 0..grid {
            if is_there(&segments) {
                let len = tensor.shape(&segments).iter().product();
                tensor.blocks.push((number, Place { start, len }));
                start += len;
            }
            tensor.advance(&mut segments);
        }
        Ok(tensor)
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Its axes, slowest first.
    pub fn axes(&self) -> &[Segments] {
        &self.axes
    }

    /// The elements of all blocks that are not zero.
    pub fn len(&self) -> u64 {
        self.blocks
            .last()
            .map_or(0, |(_, place)| place.start + place.len)
    }

    /// Whether all blocks are zero.
    pub fn is_empty(&self) -> bool {
        self.blocks.is_empty()
    }

    /// The elements of the largest block.
    pub fn largest(&self) -> u64 {
        let lengths = self.blocks.iter().map(|(_, place)| place.len);
        lengths.max().unwrap_or(0)
    }

    /// The extents of the block of these segments.
    pub fn shape(&self, segments: &[usize]) -> Vec<u64> {
        let axes = self.axes.iter().zip(segments);
        axes.map(|(axis, segment)| axis.length(*segment)).collect()
    }

    /// Where the block of these segments stands, unless it is zero.
    pub fn find(&self, segments: &[usize]) -> Option<Place> {
        let number = self.number(segments);
        let found = self.blocks.binary_search_by_key(&number, |(own, _)| *own);
        found.ok().map(|at| self.blocks[at].1)
    }

    /// The blocks that are not zero, with their segments, in order.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = (Vec<usize>, Place)> + '_ {
        let blocks = self.blocks.iter();
        blocks.map(|(number, place)| (self.segments(*number), *place))
    }

    /// The first elements of the parts of `parts` ranks, and the end: whole
    /// blocks, about as many elements each.
    pub fn cuts(&self, parts: usize) -> Vec<u64> {
        let share = |part: usize| (self.len() as u128 * part as u128 / parts as u128) as u64;
        let cut = |part: usize| {
            let at = self
                .blocks
                .partition_point(|(_, place)| place.start < share(part));
            self.blocks
                .get(at)
                .map_or(self.len(), |(_, place)| place.start)
        };
        (0..=parts).map(cut).collect()
    }

    /// All elements in row-major order, zeros included, of the packed ones.
    pub fn unpack<T: bytemuck::Pod>(&self, packed: &[T]) -> Vec<T> {
        let extents = self.extents();
        let mut dense = vec![T::zeroed(); extents.iter().product::<u64>() as usize];
        for (segments, place) in self.blocks() {
            let block = &packed[place.start as usize..][..place.len as usize];
            for (number, at) in self.elements(&segments).enumerate() {
                dense[at] = block[number];
            }
        }
        dense
    }

    /// The packed elements of all of them in row-major order.
    pub fn pack<T: bytemuck::Pod>(&self, dense: &[T]) -> Vec<T> {
        let blocks = self.blocks();
        let elements =
            blocks.flat_map(|(segments, _)| self.elements(&segments).collect::<Vec<_>>());
        elements.map(|at| dense[at]).collect()
    }

    /// The extents of the whole tensor.
    pub fn extents(&self) -> Vec<u64> {
        self.axes.iter().map(Segments::extent).collect()
    }

    /// Where the elements of a block stand in the whole tensor, in the order of
    /// the block.
    fn elements(&self, segments: &[usize]) -> impl Iterator<Item = usize> + use<> {
        let mut places = vec![0usize];
        for (axis, segment) in self.axes.iter().zip(segments) {
            let indices = axis.start(*segment)..axis.start(*segment) + axis.length(*segment);
            let extent = axis.extent() as usize;
            let inner = |before: usize| {
                let indices = indices.clone();
                indices.map(move |index| before * extent + index as usize)
            };
            places = places.into_iter().flat_map(inner).collect();
        }
        places.into_iter()
    }

    fn number(&self, segments: &[usize]) -> u64 {
        let axes = self.axes.iter().zip(segments);
        axes.fold(0, |number, (axis, segment)| {
            number * axis.count() as u64 + *segment as u64
        })
    }

    fn segments(&self, mut number: u64) -> Vec<usize> {
        let mut segments = vec![0; self.axes.len()];
        for (segment, axis) in segments.iter_mut().zip(&self.axes).rev() {
            *segment = (number % axis.count() as u64) as usize;
            number /= axis.count() as u64;
        }
        segments
    }

    /// The segments of the next block of the grid.
    fn advance(&self, segments: &mut [usize]) {
        for (segment, axis) in segments.iter_mut().zip(&self.axes).rev() {
            *segment += 1;
            if *segment < axis.count() {
                return;
            }
            *segment = 0;
        }
    }
}

/// A block of this shape with its axes in another order.
pub(super) fn permuted<T: bytemuck::Pod>(
    shape: &[u64],
    from: (&[T], &[usize]),
    to: (&mut [T], &[usize]),
) {
    let ((source, source_order), (target, target_order)) = (from, to);
    reorder(
        shape,
        (bytemuck::cast_slice(source), source_order),
        (bytemuck::cast_slice_mut(target), target_order),
    );
}
