//! [`DistributedArray`]: an array in the memory of many ranks.
//!
//! Each rank holds the elements that its distribution gives it, dense, with
//! the last axis fastest. The parts are node memory where there is such a thing
//! ([`Comm::node_memory`]): ranks of one node then move elements straight from
//! one part to another.
//!
//! From and to arrays on disk, parts move by collective calls, piece by piece:
//! a piece is a box of local indices, whose place in the whole array is a
//! section of strides or, for CYCLIC(m), of index lists, as for the parts of
//! local files. Buffers of files have the axis order of the file, and are
//! reordered where that is another one.

use std::ops::Range;

use bytemuck::Pod;
use outcore_geometry::{AlignedDistribution, Alignment, Distribution, Pieces, Section, shape_text};
use outcore_transport::{Comm, NodeMemory, Op};

use crate::array::Array;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::redistribute::{RedistributionPlan, Transfer, check_ranks};
use crate::reorder::reorder;
use crate::strategy::Direction;

/// The elements of a piece that is read or written: its lists take as much
/// memory as itself at most.
const PIECE: u64 = 1 << 20;

/// An array in the memory of many ranks.
///
/// ```
/// use outcore::{Comm, DistributedArray, Distribution};
/// outcore::run(3, |comm: &Comm| {
///     let distribution = Distribution::parse("cyclic(2),*", &[10, 4], 3, None).expect("it fits");
///     let mut array = DistributedArray::<u32>::new(comm, distribution)?;
///     array.fill_with(|index| (10 * index[0] + index[1]) as u32);
///     assert_eq!(array.owner(&[5, 3]), Some(2));
///     let all = array.gather(comm, 0)?;
///     assert_eq!(all.map(|all| all[4 * 5 + 3]), (comm.rank() == 0).then_some(53));
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug)]
pub struct DistributedArray<T> {
    distribution: AlignedDistribution,
    rank: u64,
    memory: Memory<T>,
}

#[derive(Debug)]
enum Memory<T> {
    Node(NodeMemory),
    Own(Vec<T>),
}

impl<T: Pod> DistributedArray<T> {
    /// Collective: an array of zeros. There must be at least as many ranks as
    /// the distribution has; those beyond own nothing.
    pub fn new(comm: &Comm, distribution: Distribution) -> Result<Self> {
        Self::aligned(comm, distribution.into())
    }

    /// Collective: an array of zeros that is aligned with a template.
    pub fn aligned(comm: &Comm, distribution: AlignedDistribution) -> Result<Self> {
        let count = Self::count(comm, &distribution)?;
        let memory = match comm.node_memory(count * size_of::<T>())? {
            Some(memory) => Memory::Node(memory),
            None => Memory::Own(vec![T::zeroed(); count]),
        };
        Ok(Self::with(comm, distribution, memory))
    }

    /// An array of zeros in ordinary memory, which ranks that are processes do
    /// not reach.
    pub fn private(comm: &Comm, distribution: AlignedDistribution) -> Result<Self> {
        let count = Self::count(comm, &distribution)?;
        let memory = Memory::Own(vec![T::zeroed(); count]);
        Ok(Self::with(comm, distribution, memory))
    }

    fn count(comm: &Comm, distribution: &AlignedDistribution) -> Result<usize> {
        check_ranks(comm, distribution.ranks())?;
        let count = distribution.local_count(comm.rank() as u64);
        let bytes = count.checked_mul(size_of::<T>() as u64);
        bytes
            .and_then(|bytes| usize::try_from(bytes).ok())
            .map(|_| count as usize)
            .ok_or_else(|| Error::Invalid(format!("{count} elements do not fit into memory")))
    }

    fn with(comm: &Comm, distribution: AlignedDistribution, memory: Memory<T>) -> Self {
        Self {
            distribution,
            rank: comm.rank() as u64,
            memory,
        }
    }

    /// How the array is distributed.
    pub fn distribution(&self) -> &AlignedDistribution {
        &self.distribution
    }

    /// The shape of the whole array.
    pub fn shape(&self) -> &[u64] {
        self.distribution.shape()
    }

    /// The shape of this rank's part.
    pub fn local_shape(&self) -> Vec<u64> {
        self.distribution.local_shape(self.rank)
    }

    /// This rank's part: dense, the last axis fastest.
    pub fn local(&self) -> &[T] {
        match &self.memory {
            Memory::Node(memory) => bytemuck::cast_slice(memory),
            Memory::Own(values) => values,
        }
    }

    /// This rank's part, to be changed.
    pub fn local_mut(&mut self) -> &mut [T] {
        match &mut self.memory {
            Memory::Node(memory) => bytemuck::cast_slice_mut(memory),
            Memory::Own(values) => values,
        }
    }

    /// The rank that owns an element, the first if there are copies; `None`
    /// outside the array.
    pub fn owner(&self, index: &[u64]) -> Option<usize> {
        let owners = self.distribution.owners(index);
        owners.first().map(|rank| *rank as usize)
    }

    /// An element of this rank's part.
    pub fn get(&self, index: &[u64]) -> Option<&T> {
        let local = self.distribution.to_local(self.rank, index)?;
        let shape = self.local_shape();
        let place = local.iter().zip(&shape);
        let place = place.fold(0, |place, (at, extent)| place * extent + at);
        self.local().get(place as usize)
    }

    /// This rank's elements with their places in the whole array.
    pub fn iter(&self) -> impl Iterator<Item = (Vec<u64>, &T)> {
        let places = Indices::new(self.indices());
        places.zip(self.local())
    }

    /// Sets every element to `value`.
    pub fn fill(&mut self, value: T) {
        self.local_mut().fill(value);
    }

    /// Sets every element to a value of its place in the whole array.
    pub fn fill_with(&mut self, mut value: impl FnMut(&[u64]) -> T) {
        let mut places = Indices::new(self.indices());
        for element in self.local_mut() {
            if let Some(place) = places.step() {
                *element = value(place);
            }
        }
    }

    /// Replaces every element by what `change` makes of it.
    pub fn map(&mut self, mut change: impl FnMut(T) -> T) {
        let values = self.local_mut().iter_mut();
        values.for_each(|value| *value = change(*value));
    }

    /// The indices that this rank has along each axis, ascending.
    fn indices(&self) -> Vec<Vec<u64>> {
        let shape = self.local_shape();
        if shape.contains(&0) || self.distribution.local_count(self.rank) == 0 {
            return vec![Vec::new(); shape.len().max(1)];
        }
        let whole = Section::whole(&shape).expect("a part is smaller than its array");
        let globals = self.distribution.globals(self.rank, &whole);
        let axes = globals.axes().iter();
        axes.map(|axis| (0..axis.count()).map(|at| axis.index(at)).collect())
            .collect()
    }

    /// Collective: the same array, distributed as `to` says.
    pub fn redistribute(&self, comm: &Comm, to: &AlignedDistribution) -> Result<Self> {
        let plan = RedistributionPlan::new(comm, &self.distribution, to)?;
        let mut moved = match self.memory {
            Memory::Node(_) => Self::aligned(comm, to.clone())?,
            Memory::Own(_) => Self::private(comm, to.clone())?,
        };
        plan.move_array(comm, self, &mut moved)?;
        Ok(moved)
    }

    /// Collective: the array after its template has been distributed anew: HPF's
    /// REDISTRIBUTE.
    pub fn with_template(&self, comm: &Comm, template: &Distribution) -> Result<Self> {
        let alignment = self.distribution.alignment().clone();
        let to = alignment.distribute(template.clone());
        self.redistribute(comm, &to.map_err(Error::geometry("a distributed array"))?)
    }

    /// Collective: the array aligned otherwise with a template of the same
    /// distribution: HPF's REALIGN.
    pub fn realign(&self, comm: &Comm, alignment: Alignment) -> Result<Self> {
        let to = alignment.distribute(self.distribution.template().clone());
        self.redistribute(comm, &to.map_err(Error::geometry("a distributed array"))?)
    }

    /// Collective: `self[section] = other[other_section]`.
    pub fn assign(
        &mut self,
        comm: &Comm,
        section: &Section,
        (other, other_section): (&Self, &Section),
    ) -> Result<()> {
        let from = (&other.distribution, other_section);
        let to = (&self.distribution, section);
        let plan = RedistributionPlan::of_sections(comm, from, to)?;
        plan.move_array(comm, other, self)
    }

    /// Collective: the whole array on rank `root`, the last axis fastest; `None`
    /// on the others.
    pub fn gather(&self, comm: &Comm, root: usize) -> Result<Option<Vec<T>>> {
        let plan = self.to_root(comm, root)?;
        let mut all = vec![T::zeroed(); self.at_root(comm, root)];
        plan.run(comm, &mut [Transfer::new(self.local(), &mut all)])?;
        Ok((comm.rank() == root).then_some(all))
    }

    /// Collective: takes the elements from `all` of rank `root`, which holds the
    /// whole array there, and nothing on the others.
    pub fn scatter(&mut self, comm: &Comm, root: usize, all: &[T]) -> Result<()> {
        let plan = self.to_root(comm, root)?;
        let expected = self.at_root(comm, root);
        let checked = match all.len() == expected {
            true => Ok(()),
            false => Err(Error::Invalid(format!(
                "rank {} brings {} elements to be scattered, where {expected} are needed",
                comm.rank(),
                all.len()
            ))),
        };
        comm.agree(checked)?;
        plan.run_back(comm, &mut [Transfer::new(all, self.local_mut())])
    }

    fn to_root(&self, comm: &Comm, root: usize) -> Result<RedistributionPlan> {
        if root >= comm.size() {
            return Err(Error::Invalid(format!(
                "there is no rank {root} among {}",
                comm.size()
            )));
        }
        RedistributionPlan::to_rank(comm, &self.distribution, root)
    }

    fn at_root(&self, comm: &Comm, root: usize) -> usize {
        match comm.rank() == root {
            true => self.shape().iter().product::<u64>() as usize,
            false => 0,
        }
    }
}

impl<T: Pod + Element> DistributedArray<T> {
    /// Collective: reads all elements from `array`, of the same shape and type.
    pub fn load(&mut self, comm: &Comm, array: &Array) -> Result<()> {
        let pieces = self.pieces(comm, array, Direction::Read)?;
        let (order, mut turned) = (array.layout().slowest_first(), Vec::new());
        for piece in pieces {
            let values = &mut self.local_mut()[piece.range.clone()];
            let calls = array.collective();
            if piece.shape_order == order {
                calls.read_into(comm, &piece.section, values)?;
                continue;
            }
            turned.resize(values.len(), T::zeroed());
            calls.read_into(comm, &piece.section, &mut turned)?;
            let from: &[u8] = bytemuck::cast_slice(&turned);
            let to = bytemuck::cast_slice_mut(values);
            reorder(
                &piece.section.shape(),
                (from, order),
                (to, &piece.shape_order),
            );
        }
        Ok(())
    }

    /// Collective: writes all elements to `array`, of the same shape and type.
    /// Of an array that is replicated the copies must be the same.
    pub fn store(&self, comm: &Comm, array: &Array) -> Result<()> {
        let pieces = self.pieces(comm, array, Direction::Write)?;
        let (order, mut turned) = (array.layout().slowest_first(), Vec::new());
        for piece in pieces {
            let values = &self.local()[piece.range.clone()];
            let calls = array.collective();
            if piece.shape_order == order {
                calls.write(comm, &piece.section, values)?;
                continue;
            }
            turned.resize(values.len(), T::zeroed());
            let from: &[u8] = bytemuck::cast_slice(values);
            let to = bytemuck::cast_slice_mut(&mut turned);
            reorder(
                &piece.section.shape(),
                (from, &piece.shape_order),
                (to, order),
            );
            calls.write(comm, &piece.section, &turned)?;
        }
        Ok(())
    }

    /// Collective: this rank's part in pieces, as many on all ranks: with empty
    /// ones where others have more.
    fn pieces(&self, comm: &Comm, array: &Array, direction: Direction) -> Result<Vec<Piece>> {
        let checked = match array.shape() == self.shape() {
            true => array.check_access(T::TYPE, direction),
            false => Err(Error::format(
                array.name(),
                format!(
                    "its shape is {}, but the distributed array's is {}",
                    shape_text(array.shape()),
                    shape_text(self.shape())
                ),
            )),
        };
        comm.agree(checked)?;
        let shape = self.local_shape();
        let own: Vec<usize> = (0..shape.len()).collect();
        let mut pieces = Vec::new();
        if self.distribution.local_count(self.rank) > 0 {
            let whole = Section::whole(&shape).map_err(Error::geometry(array.name()))?;
            let mut at = 0;
            for local in Pieces::new(&whole, &own, PIECE) {
                let end = at + local.count() as usize;
                pieces.push(Piece {
                    section: self.distribution.globals(self.rank, &local),
                    range: at..end,
                    shape_order: own.clone(),
                });
                at = end;
            }
        }
        let most = comm.all_reduce(&[pieces.len() as u64], Op::Max)?[0] as usize;
        pieces.resize_with(most, || Piece {
            section: Section::empty(shape.len()),
            range: 0..0,
            shape_order: own.clone(),
        });
        Ok(pieces)
    }
}

/// A box of local indices: adjacent in memory, since the last axes are whole.
struct Piece {
    /// Where it stands in the whole array.
    section: Section,
    /// Where it stands in the part.
    range: Range<usize>,
    /// The axis order of the part.
    shape_order: Vec<usize>,
}

/// Every combination of indices, the last axis fastest.
struct Indices {
    lists: Vec<Vec<u64>>,
    places: Vec<usize>,
    index: Vec<u64>,
    begun: bool,
}

impl Indices {
    fn new(lists: Vec<Vec<u64>>) -> Self {
        Self {
            places: vec![0; lists.len()],
            index: lists
                .iter()
                .filter_map(|list| list.first().copied())
                .collect(),
            begun: false,
            lists,
        }
    }

    fn step(&mut self) -> Option<&[u64]> {
        if self.index.len() < self.lists.len() {
            return None;
        }
        if !std::mem::replace(&mut self.begun, true) {
            return Some(&self.index);
        }
        for axis in (0..self.lists.len()).rev() {
            self.places[axis] = (self.places[axis] + 1) % self.lists[axis].len();
            self.index[axis] = self.lists[axis][self.places[axis]];
            if self.places[axis] > 0 {
                return Some(&self.index);
            }
        }
        None
    }
}

impl Iterator for Indices {
    type Item = Vec<u64>;

    fn next(&mut self) -> Option<Vec<u64>> {
        self.step().map(<[u64]>::to_vec)
    }
}
