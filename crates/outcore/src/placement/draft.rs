//! [`LocalDraft`]: a locally placed array that does not exist yet.
//!
//! Rank 0 makes the directory under a temporary name; each rank makes its own
//! file, which may be on a disk that only it can reach. The array gets its
//! name when all files are complete and on stable storage. Dropped before
//! that, each rank removes what it made. Once the name is given, the array
//! exists: whatever fails afterwards, nobody removes anything.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use outcore_storage::Access;
use outcore_transport::{Comm, Error as TransportError};

use crate::descriptor::ArrayDescriptor;
use crate::draft::{Named, Unnamed};
use crate::error::{Error, Result};
use crate::format::Location;
use crate::placement::local::LocalArray;

/// A locally placed array under construction; it can be used like a
/// [`LocalArray`].
#[derive(Debug)]
pub struct LocalDraft {
    array: LocalArray,
    /// Rank 0 alone has the directory.
    unnamed: Option<Unnamed>,
    own_file: OwnFile,
    name: String,
}

/// A rank's file outside the array's directory, removed unless it is kept.
#[derive(Debug)]
struct OwnFile(Option<PathBuf>);

impl Drop for OwnFile {
    fn drop(&mut self) {
        if let Some(file) = &self.0 {
            // What is left has the name of an array that does not exist.
            let _ = std::fs::remove_file(file);
        }
    }
}

impl LocalDraft {
    /// Collective: begins the array `name`, filled with zeros.
    pub(super) fn begin(
        comm: &Comm,
        name: &str,
        descriptor: &ArrayDescriptor,
        replace: bool,
    ) -> Result<Self> {
        // 1. What all ranks know to be wrong.
        let placement = descriptor.local.as_ref().ok_or_else(|| {
            Error::format(name, "the descriptor does not say how to place it locally")
        })?;
        let ranks = placement.distribution.ranks();
        if ranks != comm.size() as u64 {
            return Err(Error::format(
                name,
                format!(
                    "it is to be placed on {ranks} ranks, but {} run",
                    comm.size()
                ),
            ));
        }
        if !matches!(Location::of_new(name)?, Location::Native(_)) {
            return Err(Error::format(
                name,
                "one file a rank needs a directory: a name that ends in .oc",
            ));
        }
        // 2. Rank 0 makes the directory.
        let made = match comm.rank() {
            0 => Unnamed::begin(name, descriptor, replace).map(Some),
            _ => Ok(None),
        };
        let unnamed = comm.agree(made)?;
        let own_path = unnamed.as_ref().and_then(Unnamed::own_path);
        let mut path = own_path.map_or(String::new(), |path| path.display().to_string());
        comm.broadcast_string(0, &mut path)?;
        // 3. Each rank makes its file.
        let mut own_file = OwnFile(None);
        let array = LocalArray::make_part(Path::new(&path), comm.rank(), &mut own_file.0);
        if placement.directories.is_empty() {
            // It goes with the array's directory.
            own_file.0 = None;
        }
        let array = comm.agree(array)?;
        Ok(Self {
            array,
            unnamed,
            own_file,
            name: name.into(),
        })
    }

    /// Collective: syncs all files, gives the array its name, and opens it
    /// there for reading and writing.
    pub fn commit(self, comm: &Comm) -> Result<LocalArray> {
        self.commit_and(comm, Named::sync)
    }

    /// Commits, with `sync` for the step after the name is given.
    fn commit_and(
        mut self,
        comm: &Comm,
        sync: impl FnOnce(Named) -> Result<Location>,
    ) -> Result<LocalArray> {
        self.array.sync(comm)?;
        // 1. The name: from here on the array exists, or nobody has a file.
        let unnamed = self.unnamed.take();
        let named = comm.agree(unnamed.map(Unnamed::name).transpose());
        if !matches!(named, Err(TransportError::Agreed { .. })) {
            // Also if the ranks cannot talk: then it may have its name.
            self.own_file.0 = None;
        }
        // 2. The name to stable storage.
        comm.agree(named?.map(sync).transpose())?;
        let (rank, ranks) = (comm.rank(), comm.size());
        let opened = LocalArray::open_at(&self.name, rank, Some(ranks), Access::ReadWrite);
        Ok(comm.agree(opened)?)
    }
}

impl Deref for LocalDraft {
    type Target = LocalArray;

    fn deref(&self) -> &LocalArray {
        &self.array
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::array::Array;
    use crate::{Distribution, ElementType, LocalPlacement};

    fn placed(disks: &[tempfile::TempDir]) -> ArrayDescriptor {
        let directories: Vec<PathBuf> = disks.iter().map(|disk| disk.path().into()).collect();
        let ranks = disks.len() as u64;
        let distribution = Distribution::parse("block", &[10], ranks, None).unwrap();
        let placement = LocalPlacement::new(distribution).directories(&directories);
        ArrayDescriptor::new(&[10], ElementType::I32).placed(placement)
    }

    fn files(directory: &Path) -> usize {
        std::fs::read_dir(directory).unwrap().count()
    }

    #[test]
    fn an_array_that_has_its_name_keeps_its_files() {
        let home = tempfile::tempdir().unwrap();
        let disks: Vec<_> = (0..3).map(|_| tempfile::tempdir().unwrap()).collect();
        let path = home.path().join("a.oc");
        let name = path.to_str().unwrap();
        let messages = crate::run(3, |comm| {
            let draft = LocalDraft::begin(comm, name, &placed(&disks), false)?;
            let fails = |_| Err(Error::Invalid("the disk is gone".into()));
            Ok::<_, Error>(draft.commit_and(comm, fails).unwrap_err().to_string())
        });
        let messages = messages.unwrap();
        assert!(
            messages
                .iter()
                .all(|told| told.contains("the disk is gone")),
            "{messages:?}"
        );
        assert!(disks.iter().all(|disk| files(disk.path()) == 1));
        let whole = Array::open(name).unwrap();
        assert_eq!(whole.read::<i32>(&whole.whole()).unwrap(), [0; 10]);
    }

    /// A rank knows its file also if making or opening it failed.
    #[test]
    fn a_file_that_cannot_be_opened_is_removed() {
        let home = tempfile::tempdir().unwrap();
        let disks = [tempfile::tempdir().unwrap()];
        let path = home.path().join("a.oc");
        let unnamed = Unnamed::begin(path.to_str().unwrap(), &placed(&disks), false).unwrap();
        let path = unnamed.own_path().unwrap();
        // There is a file, and yet it failed.
        LocalArray::make_part(path, 0, &mut None).unwrap();
        let mut own_file = OwnFile(None);
        let again = LocalArray::make_part(path, 0, &mut own_file.0);
        assert!(again.is_err());
        assert_eq!(files(disks[0].path()), 1);
        drop(own_file);
        assert_eq!(files(disks[0].path()), 0);
    }
}
