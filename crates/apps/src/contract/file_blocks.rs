//! [`FileBlocks`]: blocks in files that a rank reaches itself: one array for all,
//! a copy of its own, or one file a rank on storage that all share.
//!
//! The last is what the paper does on a parallel file system (Krishnamoorthy et
//! al. 2006, section IV.B): each process creates a file for the blocks allotted to
//! it, and all processes read all files, which the file system keeps on one disk
//! each or stripes over all of them.

use std::path::Path;
use std::sync::Arc;

use outcore::{
    Array, ArrayDescriptor, AxisSection, Comm, Element, Error, Result, Section, Stripes,
};

use super::blocks::{Blocks, Fetch};
use super::reader::{Reader, result_of};
use super::tensor::{BlockTensor, Place};

/// Blocks of which no more than this share is in the page cache are read by the
/// reader's thread.
pub(super) const WARM: f64 = 0.9;

/// The stripes of the paper's file system.
pub const STRIPE: u64 = 128 << 10;

/// The packed elements of a tensor in one file or several.
#[derive(Debug)]
pub struct FileBlocks {
    /// The first element of each part, and the end.
    cuts: Vec<u64>,
    parts: Vec<Arc<Array>>,
    reader: Reader,
}

/// How files of the ranks lie on the storage that all share.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spread {
    /// Each in one directory.
    Whole,
    /// Each in stripes of so many bytes over the directories of all ranks.
    Striped(u64),
}

impl FileBlocks {
    /// All blocks of a tensor in one array of one axis.
    pub fn whole(tensor: &BlockTensor, array: Array) -> Result<Self> {
        check_packed(tensor, &array)?;
        Ok(Self {
            cuts: vec![0, tensor.len()],
            parts: vec![Arc::new(array)],
            reader: Reader::start()?,
        })
    }

    /// Collective: makes one file a rank in `directory`, each for the blocks that
    /// are allotted to the rank, all zeros, for all to read and write.
    pub fn create_parts<T: Element>(
        comm: &Comm,
        directory: &Path,
        tensor: &BlockTensor,
        spread: Spread,
    ) -> Result<Self> {
        let cuts = tensor.cuts(comm.size());
        let (start, end) = (cuts[comm.rank()], cuts[comm.rank() + 1]);
        let mut descriptor = ArrayDescriptor::new(&[end - start], T::TYPE);
        comm.agree(make_directory(&disk(directory, comm.rank())))?;
        if let Spread::Striped(unit) = spread {
            let own = &format!("{}-{}.stripes", tensor.name(), comm.rank());
            let directories = (0..comm.size()).map(|rank| {
                let path = disk(directory, rank).join(own);
                make_directory(&path)?;
                std::path::absolute(&path).map_err(|source| Error::File {
                    action: "find",
                    path,
                    source,
                })
            });
            let directories = comm.agree(directories.collect::<Result<_>>())?;
            descriptor = descriptor.striped(Stripes { unit, directories });
        }
        let made = Array::create(&part_name(directory, tensor, comm.rank()), &descriptor);
        comm.agree(made.map(drop))?;
        Self::open_parts(comm, directory, tensor)
    }

    /// Collective: opens files that were made so by as many ranks.
    pub fn open_parts(comm: &Comm, directory: &Path, tensor: &BlockTensor) -> Result<Self> {
        let cuts = tensor.cuts(comm.size());
        let open = |rank: usize| {
            let array = Array::open_writable(&part_name(directory, tensor, rank))?;
            let length = cuts[rank + 1] - cuts[rank];
            if array.shape() != [length] {
                return Err(Error::Invalid(format!(
                    "{} should hold {length} elements of {}; it was made by another number of \
                     ranks or with other segments",
                    array.name(),
                    tensor.name()
                )));
            }
            Ok(Arc::new(array))
        };
        let parts: Result<Vec<_>> = (0..comm.size()).map(open).collect();
        let opened = parts.and_then(|parts| Ok((parts, Reader::start()?)));
        let (parts, reader) = comm.agree(opened)?;
        Ok(Self {
            cuts,
            parts,
            reader,
        })
    }

    /// The arrays that hold the blocks.
    pub fn arrays(&self) -> impl Iterator<Item = &Array> {
        self.parts.iter().map(|part| &**part)
    }

    /// The part that holds a block, and where it stands there.
    fn find(&self, place: Place) -> Result<(&Arc<Array>, Section)> {
        // Blocks are whole in their part; parts that are empty begin where the
        // next one does.
        let part = self.cuts.partition_point(|cut| *cut <= place.start);
        let part = part.clamp(1, self.parts.len()) - 1;
        let start = place.start - self.cuts[part];
        let section = span(start, place.len)?;
        Ok((&self.parts[part], section))
    }
}

impl<T: Element> Blocks<T> for FileBlocks {
    fn fetch(&self, place: Place, mut buffer: Vec<T>) -> Result<Fetch<'_, T>> {
        let (array, section) = self.find(place)?;
        if array.cached(&section)?.is_none_or(|share| share >= WARM) {
            return Ok(Fetch::new(move || {
                array.read_into(&section, &mut buffer)?;
                Ok(buffer)
            }));
        }
        let array = Arc::clone(array);
        let arrives = self.reader.give(move || {
            array.read_into(&section, &mut buffer)?;
            Ok(buffer)
        });
        Ok(Fetch::new(move || result_of(&arrives)))
    }

    fn store(&self, place: Place, values: &[T]) -> Result<()> {
        let (array, section) = self.find(place)?;
        array.write(&section, values)
    }

    fn decoded_bytes(&self) -> u64 {
        self.arrays().map(Array::decoded_bytes).max().unwrap_or(0)
    }

    fn sync(&self) -> Result<()> {
        self.arrays().try_for_each(Array::sync)
    }

    fn forget(&self) -> Result<()> {
        self.arrays()
            .try_for_each(|array| Ok(array.store().forget()?))
    }
}

/// So many elements of one axis.
pub(super) fn span(start: u64, len: u64) -> Result<Section> {
    let section = Section::new(vec![AxisSection::span(start, start + len)]);
    section.map_err(|error| Error::Invalid(error.to_string()))
}

/// Fails unless the array has one axis with the packed elements of the tensor.
pub(super) fn check_packed(tensor: &BlockTensor, array: &Array) -> Result<()> {
    if array.shape() == [tensor.len()] {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{} ({}) should have one axis of {} elements, the blocks of {} that are not zero",
        array.name(),
        outcore::shape_text(array.shape()),
        tensor.len(),
        tensor.name()
    )))
}

/// The directory of one rank.
fn disk(directory: &Path, rank: usize) -> std::path::PathBuf {
    directory.join(format!("disk{rank}"))
}

fn part_name(directory: &Path, tensor: &BlockTensor, rank: usize) -> String {
    let name = format!("{}-{rank}.oc", tensor.name());
    disk(directory, rank).join(name).to_string_lossy().into()
}

/// Makes a directory unless it is there.
pub(super) fn make_directory(path: &Path) -> Result<()> {
    std::fs::create_dir_all(path).map_err(|source| Error::File {
        action: "create",
        path: path.into(),
        source,
    })
}
