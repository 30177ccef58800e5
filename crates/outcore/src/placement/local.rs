//! [`LocalArray`]: local placement, one file a rank (Thakur 1995, section
//! 5.3.2, the Local Placement Model; the file is its Local Array File).
//!
//! A rank works on its own file only: [`LocalArray::part`] is an ordinary
//! [`Array`], the rank's local array with overlap areas round each block.
//! Data of others arrive in the overlap areas by `shift` and anywhere by
//! `multicast`; `load` and `store` bring a global array in and out. All of
//! these are collective: every rank calls them, and all succeed or all return
//! the same error.

use std::path::{Path, PathBuf};

use outcore_geometry::{Distribution, Section};
use outcore_storage::Access;
use outcore_transport::Comm;

use crate::array::Array;
use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
use crate::format::raw::RawFile;
use crate::format::{Location, native};
use crate::placement::draft::LocalDraft;
use crate::placement::parts::{LocalPlacement, Parts, fitting};
use crate::placement::store::check_file;

/// One rank's view of an array that is kept in one file a rank.
///
/// ```
/// use outcore::{
///     Array, ArrayDescriptor, Boundary, Distribution, ElementType, LocalArray, LocalPlacement,
///     MemoryBudget,
/// };
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("field.oc");
/// # let name = name.to_str().unwrap();
/// outcore::run(4, |comm| {
///     let shape = [100, 100];
///     let distribution = Distribution::parse("block,block", &shape, 4, None).unwrap();
///     let placement = LocalPlacement::new(distribution).overlap(&[(1, 1), (1, 1)]);
///     let descriptor = ArrayDescriptor::new(&shape, ElementType::F32);
///     let field = LocalArray::create_all(comm, name, &descriptor, &placement)?;
///
///     // Each rank writes what it owns, and gets its neighbours' rims.
///     field.part().write(&field.owned(), &vec![comm.rank() as f32; 2500])?;
///     field.exchange_overlap(comm, Boundary::Circular)?;
///     let rim: Vec<f32> = field.part().read(&field.part().section("0, 1:51")?)?;
///     assert!(rim.iter().all(|value| *value == [2.0, 3.0, 0.0, 1.0][comm.rank()]));
///
///     // Any program sees one array.
///     let whole = Array::open(name)?;
///     assert_eq!(whole.read::<f32>(&whole.section("0, ::50")?)?, [0.0, 1.0]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone)]
pub struct LocalArray {
    name: String,
    whole: ArrayDescriptor,
    pub(super) parts: Parts,
    rank: usize,
    part: Array,
}

/// A box of elements that one rank owns.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Block {
    /// Where it stands in the global array.
    pub global: Section,
    /// Where it stands in the rank's part.
    pub part: Section,
}

impl LocalArray {
    /// Collective: makes an array of zeros; `descriptor` describes the global
    /// array. Each rank makes its own file.
    pub fn create_all(
        comm: &Comm,
        name: &str,
        descriptor: &ArrayDescriptor,
        placement: &LocalPlacement,
    ) -> Result<Self> {
        let descriptor = descriptor.clone().placed(placement.clone());
        LocalDraft::begin(comm, name, &descriptor, false)?.commit(comm)
    }

    /// Collective: begins an array that gets its name only when it is
    /// complete; with `replace`, in place of the array that has the name now.
    /// `descriptor` says how it is placed ([`ArrayDescriptor::placed`]).
    pub fn draft_all(
        comm: &Comm,
        name: &str,
        descriptor: &ArrayDescriptor,
        replace: bool,
    ) -> Result<LocalDraft> {
        LocalDraft::begin(comm, name, descriptor, replace)
    }

    /// Collective: each rank opens its own file for reading. There must be as
    /// many ranks as the array has files.
    pub fn open_all(comm: &Comm, name: &str) -> Result<Self> {
        Self::open_each(comm, name, Access::ReadOnly)
    }

    /// Collective: each rank opens its own file for reading and writing.
    pub fn open_writable_all(comm: &Comm, name: &str) -> Result<Self> {
        Self::open_each(comm, name, Access::ReadWrite)
    }

    /// Not collective: the view of any rank, for reading.
    pub fn open_part(name: &str, rank: usize) -> Result<Self> {
        Self::open_at(name, rank, None, Access::ReadOnly)
    }

    /// Not collective: the view of any rank, for reading and writing.
    pub fn open_part_writable(name: &str, rank: usize) -> Result<Self> {
        Self::open_at(name, rank, None, Access::ReadWrite)
    }

    fn open_each(comm: &Comm, name: &str, access: Access) -> Result<Self> {
        let opened = Self::open_at(name, comm.rank(), Some(comm.size()), access);
        Ok(comm.agree(opened)?)
    }

    /// Opens the part of `rank`; the array must be for `ranks` if given.
    pub(super) fn open_at(
        name: &str,
        rank: usize,
        ranks: Option<usize>,
        access: Access,
    ) -> Result<Self> {
        let location = Location::of_existing(name)?;
        let described = match &location {
            Location::Native(path) => Some(native::describe(path)?),
            _ => None,
        };
        let parts = described.as_ref().and_then(|described| described.parts());
        let (Some(described), Some((parts, files))) = (described, parts) else {
            return Err(Error::format(
                name,
                "this array is in one file, not in one file a rank; 'outcore convert IN OUT \
                 --placement local' makes such a one",
            ));
        };
        let (found, running) = (parts.ranks(), ranks.unwrap_or(parts.ranks()));
        if found != running {
            return Err(Error::format(
                name,
                format!(
                    "it has local files for {}, but {}; run it on {found}, or make local files \
                     for {running} with 'outcore convert {name} NEW.oc --placement local --parts \
                     {running}'",
                    count(found),
                    match running {
                        1 => "1 rank runs".to_string(),
                        more => format!("{more} ranks run"),
                    }
                ),
            ));
        }
        let file = files.into_iter().nth(rank).ok_or_else(|| {
            let problem = format!(
                "it has local files for {}, so there is no rank {rank}",
                count(found)
            );
            Error::format(name, problem)
        })?;
        Self::open_file(name, described.descriptor, parts, rank, (file, access))
    }

    fn open_file(
        name: &str,
        whole: ArrayDescriptor,
        parts: Parts,
        rank: usize,
        (file, access): (RawFile, Access),
    ) -> Result<Self> {
        check_file(name, rank, &file, &file.descriptor.check(name)?)?;
        let part = Array::open_at(&Location::Raw(file.into()), access)?;
        Ok(Self {
            name: name.into(),
            whole,
            parts,
            rank,
            part,
        })
    }

    /// Makes the file of `rank` in the array at `path`, which has none yet,
    /// and opens it. `made` gets the file's path before there is a file, so
    /// that it is known whatever fails afterwards.
    pub(super) fn make_part(path: &Path, rank: usize, made: &mut Option<PathBuf>) -> Result<Self> {
        let name = path.display().to_string();
        let described = native::describe(path)?;
        let (parts, files) = described.parts().ok_or_else(|| {
            Error::format(&name, "its descriptor does not say how to place it locally")
        })?;
        let file = files.into_iter().nth(rank).ok_or_else(|| {
            Error::format(
                &name,
                format!("it is placed on fewer ranks than {}", rank + 1),
            )
        })?;
        *made = Some(file.path.clone());
        native::create_part(&file)?;
        let file = (file, Access::ReadWrite);
        Self::open_file(&name, described.descriptor, parts, rank, file)
    }

    /// The text that names the whole array.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What describes the global array.
    pub fn whole(&self) -> &ArrayDescriptor {
        &self.whole
    }

    /// Which rank owns which element.
    pub fn distribution(&self) -> &Distribution {
        self.parts.distribution()
    }

    /// The rank whose part this is.
    pub fn rank(&self) -> usize {
        self.rank
    }

    /// The rank's own file: its local array, overlap areas included.
    pub fn part(&self) -> &Array {
        &self.part
    }

    /// What the rank owns, as a section of its part: the part without overlap
    /// areas. One box unless an axis is CYCLIC.
    ///
    /// Along a CYCLIC(m) axis with m > 1 it is a list of all local indices, 8
    /// bytes each, unless the rank has one block there. Where an axis may be
    /// huge, go through [`LocalArray::blocks`] instead, which lists nothing.
    pub fn owned(&self) -> Section {
        self.owned_box().1
    }

    /// What the rank owns, as a section of the global array, of the same
    /// shape as [`LocalArray::owned`]; with the same lists, so see there.
    pub fn owned_globally(&self) -> Section {
        self.owned_box().0
    }

    fn owned_box(&self) -> (Section, Section) {
        self.parts.sections(self.rank, &self.local())
    }

    /// All local indices, without overlap areas.
    pub(super) fn local(&self) -> Section {
        let shape = self.distribution().local_shape(self.rank as u64);
        Section::whole(&shape).expect("a local array has at most as many elements as the whole")
    }

    /// What the rank owns, block by block: the boxes between overlap areas.
    /// BLOCK axes have one, CYCLIC(m) axes one for every `m` indices.
    pub fn blocks(&self) -> impl Iterator<Item = Block> + '_ {
        let local = self.distribution().local_shape(self.rank as u64);
        let lengths: Vec<u64> = self.parts.axes().iter().map(|axis| axis.block()).collect();
        let counts: Vec<u64> = local
            .iter()
            .zip(&lengths)
            .map(|(n, m)| n.div_ceil(*m))
            .collect();
        let all: u64 = counts.iter().product();
        (0..all).map(move |number| {
            let mut rest = number;
            let mut axes = Vec::with_capacity(counts.len());
            for axis in (0..counts.len()).rev() {
                let start = rest % counts[axis] * lengths[axis];
                rest /= counts[axis];
                let end = (start + lengths[axis]).min(local[axis]);
                axes.push(outcore_geometry::AxisSection::span(start, end));
            }
            axes.reverse();
            let (global, part) = self.parts.sections(self.rank, &fitting(axes));
            Block { global, part }
        })
    }

    /// The global index of the element at `index` of the part; `None` in
    /// overlap areas and outside.
    pub fn to_global(&self, index: &[u64]) -> Option<Vec<u64>> {
        if index.len() != self.parts.axes().len() {
            return None;
        }
        let axes = self.parts.axes().iter().zip(index);
        let local: Option<Vec<u64>> = axes.map(|(axis, at)| axis.local(*at)).collect();
        self.distribution().to_global(self.rank as u64, &local?)
    }

    /// Where the element at `index` of the global array stands in the part;
    /// `None` if another rank owns it.
    pub fn to_part(&self, index: &[u64]) -> Option<Vec<u64>> {
        if self.distribution().owner(index)? != self.rank as u64 {
            return None;
        }
        let axes = self.parts.axes().iter().zip(index);
        Some(axes.map(|(axis, at)| axis.locate(*at).1).collect())
    }

    /// Collective: returns when everything written is on stable storage.
    pub fn sync(&self, comm: &Comm) -> Result<()> {
        Ok(comm.agree(self.part.sync())?)
    }

    /// Fails, on all ranks alike, unless `comm` is the group that opened it.
    pub(super) fn check_group(&self, comm: &Comm) -> Result<()> {
        if comm.size() == self.parts.ranks() {
            return Ok(());
        }
        Err(Error::format(
            &self.name,
            format!(
                "its {} must all take part, but the group has {}",
                count(self.parts.ranks()),
                comm.size()
            ),
        ))
    }
}

fn count(ranks: usize) -> String {
    match ranks {
        1 => "1 rank".into(),
        more => format!("{more} ranks"),
    }
}
