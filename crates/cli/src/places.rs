//! Index files: which elements `gather` and `scatter` move, and which of them each
//! rank moves when.
//!
//! Indices are gone through in rounds, in each of which every rank has as many of
//! them as its memory allows. Of one file for all, each round takes the next
//! stretch and deals it out in blocks, so later positions belong to later rounds
//! or higher ranks. Files of ranks are gone through beside one another, or, where
//! the order of ranks matters and there are several rounds, one after the other.

use std::ops::Range;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, Comm, DistributedArray, Distribution, ElementType, Error, MemoryBudget, Result, reorder,
    shape_text,
};

use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::Ranks;

/// With less a rank would move single elements.
const LEAST: u64 = 64 << 10;

/// Index files are read in pieces of at most so many bytes.
const PIECE: u64 = 1 << 20;

/// What an index takes besides its value: its number, and its place in a schedule.
const INDEX_BYTES: u64 = 8 + 12;

/// What `gather` and `scatter` are told alike.
#[derive(Args)]
pub(crate) struct Listed {
    /// The array
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) array: String,
    /// The indices: integers in a .npy file or any other array, n for row-major numbers of
    /// elements or n x axes for an index along each axis; %r becomes the rank
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    pub(crate) indices: String,
    /// Index only the first K axes: each index then stands for all that the others number
    #[arg(long, value_name = "K", value_parser = clap::value_parser!(u8).range(1..))]
    pub(crate) axes: Option<u8>,
    #[command(flatten)]
    pub(crate) memory: Memory,
    #[command(flatten)]
    pub(crate) ranks: Ranks,
}

impl Listed {
    /// Fails unless `other`, an option's value, has one file a rank as the indices
    /// have.
    pub(crate) fn check(&self, option: &str, other: &str) -> Result<(), String> {
        if self.indices.contains("%r") == other.contains("%r") {
            return Ok(());
        }
        Err(format!(
            "--indices {} and {option} {other} must both contain %r, for one file a rank, or neither",
            self.indices
        ))
    }

    /// Whether each rank has a file of its own.
    pub(crate) fn one_a_rank(&self) -> bool {
        self.indices.contains("%r")
    }

    /// A file's name on this rank.
    pub(crate) fn of_rank(name: &str, comm: &Comm) -> String {
        name.replace("%r", &comm.rank().to_string())
    }

    /// How many axes of `array` are indexed.
    pub(crate) fn indexed(&self, array: &Array) -> Result<usize> {
        let axes = array.shape().len();
        match self.axes.map(usize::from) {
            None => Ok(axes),
            Some(asked) if asked <= axes => Ok(asked),
            Some(asked) => Err(Error::Invalid(format!(
                "{} has {axes} axes, so the first {asked} cannot be indexed",
                array.name()
            ))),
        }
    }

    /// Opens this rank's index file.
    pub(crate) fn open(&self, comm: &Comm, array: &Array) -> Result<IndexFile> {
        let shape = &array.shape()[..self.indexed(array)?];
        IndexFile::open(&Self::of_rank(&self.indices, comm), array.name(), shape)
    }
}

/// An array of indices.
pub(crate) struct IndexFile {
    file: Array,
    /// What is indexed, and of which array.
    shape: Vec<u64>,
    array: String,
    /// The indices that make a tuple; 0 where elements are numbered.
    width: usize,
}

impl IndexFile {
    fn open(name: &str, array: &str, shape: &[u64]) -> Result<Self> {
        let file = Array::open(name)?;
        let kind = file.element_type();
        if !is_integer(kind) {
            return Err(Error::Invalid(format!(
                "{name} holds {kind} values, but indices are integers"
            )));
        }
        let axes = shape.len();
        let width = match file.shape() {
            [_] => 0,
            [_, width] if *width == axes as u64 => axes,
            other => {
                return Err(Error::Invalid(format!(
                    "{name} has the shape {}, but indices of {array} are row-major numbers, [n], \
                     or tuples, [n, {axes}]",
                    shape_text(other)
                )));
            }
        };
        Ok(Self {
            file,
            shape: shape.into(),
            array: array.into(),
            width,
        })
    }

    pub(crate) fn name(&self) -> &str {
        self.file.name()
    }

    /// How many indices it has.
    pub(crate) fn count(&self) -> u64 {
        self.file.shape()[0]
    }

    /// The bytes of an index in the file.
    pub(crate) fn index_bytes(&self) -> u64 {
        self.width.max(1) as u64 * self.file.layout().element_size()
    }

    /// The numbers of the elements at `positions`, if all are in the array.
    pub(crate) fn read(
        &self,
        positions: Range<u64>,
        room: u64,
        progress: &Progress,
    ) -> Result<Vec<u64>> {
        let mut numbers = Vec::with_capacity((positions.end - positions.start) as usize);
        self.each(positions, room, |number| numbers.push(number), progress)?;
        Ok(numbers)
    }

    /// Fails if an index at `positions` is not in the array.
    pub(crate) fn check(
        &self,
        positions: Range<u64>,
        room: u64,
        progress: &Progress,
    ) -> Result<()> {
        self.each(positions, room, |_| (), progress)
    }

    /// Calls `visit` with the number of each element.
    fn each(
        &self,
        positions: Range<u64>,
        room: u64,
        mut visit: impl FnMut(u64),
        progress: &Progress,
    ) -> Result<()> {
        let elements: u64 = self.shape.iter().product();
        let order = self.file.layout().slowest_first();
        let most = (room.min(PIECE) / 2 / self.index_bytes()).max(1);
        let (mut bytes, mut ordered) = (Vec::new(), Vec::new());
        let mut first = positions.start;
        while first < positions.end {
            let end = positions.end.min(first + most);
            let section = self.file.whole().slice(0, first, end);
            bytes.resize(((end - first) * self.index_bytes()) as usize, 0);
            self.file.read_bytes(&section, &mut bytes)?;
            let tuples = match order {
                [1, 0] => {
                    ordered.resize(bytes.len(), 0);
                    reorder(&section.shape(), (&bytes, order), (&mut ordered, &[0, 1]));
                    &ordered
                }
                _ => &bytes,
            };
            let (mut axis, mut number) = (0, 0);
            let mut position = first;
            integers(self.file.element_type(), tuples, |index| {
                let index = index.map_err(|index| {
                    self.wrong(position, &format!("{index}, but they begin at 0"))
                })?;
                if self.width == 0 {
                    if index >= elements {
                        let problem =
                            format!("{index}, but {} has {elements} elements", self.array);
                        return Err(self.wrong(position, &problem));
                    }
                    number = index;
                } else {
                    let extent = self.shape[axis];
                    if index >= extent {
                        let problem = format!(
                            "{index} along axis {axis}, where {} has {extent}",
                            self.array
                        );
                        return Err(self.wrong(position, &problem));
                    }
                    number = number * extent + index;
                    axis += 1;
                    if axis < self.width {
                        return Ok(());
                    }
                }
                visit(number);
                (axis, number) = (0, 0);
                position += 1;
                Ok(())
            })?;
            progress.add(bytes.len() as u64);
            first = end;
        }
        Ok(())
    }

    fn wrong(&self, position: u64, problem: &str) -> Error {
        Error::Invalid(format!(
            "{}: index number {position} is {problem}",
            self.name()
        ))
    }
}

fn is_integer(kind: ElementType) -> bool {
    use ElementType::{I8, I16, I32, I64, U8, U16, U32, U64};
    matches!(kind, I8 | I16 | I32 | I64 | U8 | U16 | U32 | U64)
}

/// Calls `visit` with each of the integers in `bytes`; a negative one is an error.
fn integers(
    kind: ElementType,
    bytes: &[u8],
    mut visit: impl FnMut(std::result::Result<u64, i64>) -> Result<()>,
) -> Result<()> {
    macro_rules! each {
        ($type:ty, $convert:expr) => {{
            let (integers, _) = bytes.as_chunks::<{ size_of::<$type>() }>();
            let convert: fn($type) -> std::result::Result<u64, i64> = $convert;
            integers
                .iter()
                .try_for_each(|integer| visit(convert(<$type>::from_ne_bytes(*integer))))
        }};
    }
    match kind {
        ElementType::U8 => each!(u8, |it| Ok(it.into())),
        ElementType::U16 => each!(u16, |it| Ok(it.into())),
        ElementType::U32 => each!(u32, |it| Ok(it.into())),
        ElementType::U64 => each!(u64, Ok),
        ElementType::I8 => each!(i8, |it| u64::try_from(it).map_err(|_| it.into())),
        ElementType::I16 => each!(i16, |it| u64::try_from(it).map_err(|_| it.into())),
        ElementType::I32 => each!(i32, |it| u64::try_from(it).map_err(|_| it.into())),
        _ => each!(i64, |it| u64::try_from(it).map_err(|_| it)),
    }
}

/// Which positions of its index file each rank moves in which round.
pub(crate) struct Rounds {
    /// The most indices of a rank in a round.
    each: u64,
    /// How many indices each rank's file has; one number if it is one file.
    counts: Vec<u64>,
    dealing: Dealing,
    /// What reading indices may take.
    pub(crate) room: u64,
    /// What a call may take, of all ranks of this process.
    pub(crate) staging: MemoryBudget,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Dealing {
    /// Of one file, blocks of each stretch.
    Blocks,
    /// Of files of their own, side by side.
    Beside,
    /// Of files of their own, one file after the other.
    InTurn,
}

/// What decides on the rounds.
pub(crate) struct Load {
    /// The bytes of an index's values in memory.
    pub(crate) record: u64,
    /// Whether each rank has a file of its own.
    pub(crate) one_a_rank: bool,
    /// Whether values of higher ranks must come later.
    pub(crate) in_order: bool,
    /// What chunks of the arrays take that can be had only whole: of the one at listed
    /// places, and of others beside it.
    pub(crate) decoded: (u64, u64),
    /// For messages.
    pub(crate) purpose: &'static str,
}

impl Rounds {
    /// Collective: as few as the memory allows.
    pub(crate) fn new(comm: &Comm, file: &IndexFile, memory: &Memory, load: &Load) -> Result<Self> {
        let share = memory.budget().for_rank(comm);
        let per = INDEX_BYTES.saturating_add(load.record);
        let (of_array, of_others) = load.decoded;
        let decoded = of_array
            .saturating_add(of_others)
            .saturating_add(file.file.decoded_bytes());
        let least = LEAST.max(per.saturating_mul(2)).saturating_add(decoded);
        comm.agree(share.require(least, load.purpose))?;
        let limit = share.limit() - decoded;
        let room = (limit / 16).min(2 * PIECE);
        let each = ((limit - limit / 4 - room) / per).max(1);
        // A call divides its memory among the ranks that are threads.
        let calls = (limit / 4).saturating_add(of_array);
        let threads = match comm.transport().shares_memory() {
            true => comm.size() as u64,
            false => 1,
        };
        let told = comm.all_gather(&[file.count(), each])?;
        let each = told.chunks_exact(2).map(|rank| rank[1]).min().unwrap_or(1);
        let mut counts: Vec<u64> = told.chunks_exact(2).map(|rank| rank[0]).collect();
        if counts.iter().all(|count| *count == 0) {
            return Err(Error::Invalid(format!("{} has no indices", file.name())));
        }
        let dealing = match load.one_a_rank {
            false => {
                let first = counts[0];
                let same = counts.iter().all(|count| *count == first);
                comm.agree(match same {
                    true => Ok(()),
                    false => Err(Error::Invalid(format!(
                        "{} has not the same length on all ranks",
                        file.name()
                    ))),
                })?;
                counts.truncate(1);
                Dealing::Blocks
            }
            true if load.in_order && counts.iter().any(|count| *count > each) => Dealing::InTurn,
            true => Dealing::Beside,
        };
        let most = counts.iter().copied().max().unwrap_or(0);
        let ranks = comm.size() as u64;
        let need = match dealing {
            Dealing::Blocks => most.div_ceil(ranks),
            _ => most,
        };
        Ok(Self {
            each: each.min(need).max(1),
            counts,
            dealing,
            room,
            staging: MemoryBudget::of(calls.saturating_mul(threads)),
        })
    }

    /// How many there are.
    pub(crate) fn count(&self, ranks: usize) -> u64 {
        let of = |count: &u64| count.div_ceil(self.each);
        match self.dealing {
            Dealing::Blocks => self.counts[0].div_ceil(self.each * ranks as u64),
            Dealing::Beside => self.counts.iter().map(of).max().unwrap_or(0),
            Dealing::InTurn => self.counts.iter().map(of).sum(),
        }
    }

    /// How many indices there are in all files.
    pub(crate) fn indices(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// How many indices this rank reads in all.
    pub(crate) fn share(&self, rank: usize, ranks: usize) -> u64 {
        match self.dealing {
            Dealing::Blocks => self.counts[0] / ranks as u64,
            _ => self.counts[rank],
        }
    }

    /// The positions of `rank` in a round.
    pub(crate) fn positions(&self, round: u64, rank: usize, ranks: usize) -> Range<u64> {
        let own = |round: u64, count: u64| {
            let start = (round * self.each).min(count);
            start..(start + self.each).min(count)
        };
        match self.dealing {
            Dealing::Blocks => {
                let (rank, ranks) = (rank as u64, ranks as u64);
                let start = round * self.each * ranks;
                let len = (self.counts[0] - start).min(self.each * ranks);
                let bound =
                    |rank| start + (u128::from(len) * u128::from(rank) / u128::from(ranks)) as u64;
                bound(rank)..bound(rank + 1)
            }
            Dealing::Beside => own(round, self.counts[rank]),
            Dealing::InTurn => {
                let rounds = |count: &u64| count.div_ceil(self.each);
                let before: u64 = self.counts[..rank].iter().map(rounds).sum();
                match round.checked_sub(before) {
                    Some(round) if round < rounds(&self.counts[rank]) => {
                        own(round, self.counts[rank])
                    }
                    _ => 0..0,
                }
            }
        }
    }

    /// Collective: memory for the values of a round, which ranks of a node reach.
    pub(crate) fn values(&self, comm: &Comm, record: u64) -> Result<DistributedArray<u8>> {
        let ranks = comm.size() as u64;
        let bytes = self.each * record;
        let blocks = Distribution::parse("block", &[bytes * ranks], ranks, None);
        let blocks = blocks.map_err(|error| Error::Invalid(error.to_string()))?;
        DistributedArray::new(comm, blocks)
    }

    /// Collective: fails if any index of any rank is not in the array.
    pub(crate) fn check_all(
        &self,
        comm: &Comm,
        file: &IndexFile,
        progress: &Progress,
    ) -> Result<()> {
        let (rank, ranks) = (comm.rank(), comm.size());
        let check = || {
            (0..self.count(ranks)).try_for_each(|round| {
                file.check(self.positions(round, rank, ranks), self.room, progress)
            })
        };
        Ok(comm.agree(check())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(each: u64, counts: &[u64], dealing: Dealing) -> Rounds {
        Rounds {
            each,
            counts: counts.into(),
            dealing,
            room: 0,
            staging: MemoryBudget::of(0),
        }
    }

    #[test]
    fn a_file_is_dealt_out_in_order() {
        for (each, count, ranks) in [(3, 20, 2), (5, 20, 4), (1, 7, 3), (100, 7, 3), (4, 1, 5)] {
            let rounds = rounds(each, &[count], Dealing::Blocks);
            let all = (0..rounds.count(ranks)).flat_map(|round| {
                let of = |rank| rounds.positions(round, rank, ranks);
                (0..ranks).flat_map(of).collect::<Vec<_>>()
            });
            assert!(all.eq(0..count), "{each} {count} {ranks}");
        }
    }

    #[test]
    fn files_in_turn_are_in_the_order_of_ranks() {
        let counts = [5, 0, 7, 1];
        let rounds = rounds(2, &counts, Dealing::InTurn);
        let mut found = Vec::new();
        for round in 0..rounds.count(4) {
            for rank in 0..4 {
                let positions = rounds.positions(round, rank, 4);
                found.extend(positions.map(|position| (rank, position)));
            }
        }
        let all = (0..4).flat_map(|rank| (0..counts[rank]).map(move |position| (rank, position)));
        assert!(found.into_iter().eq(all));
    }

    #[test]
    fn files_beside_one_another_are_read_to_their_ends() {
        let rounds = rounds(2, &[5, 0, 7], Dealing::Beside);
        assert_eq!(rounds.count(3), 4);
        for (rank, count) in [5, 0, 7].into_iter().enumerate() {
            let all = (0..4).flat_map(|round| rounds.positions(round, rank, 3));
            assert!(all.eq(0..count));
        }
    }
}
