//! [`LocalDraft`]: a locally placed array that does not exist yet.
//!
//! Rank 0 makes the directory under a temporary name; each rank makes its own
//! file, which may be on a disk that only it can reach. The array gets its
//! name when all files are complete and on stable storage. Dropped before
//! that, each rank removes what it made.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use outcore_storage::Access;
use outcore_transport::Comm;

use crate::descriptor::ArrayDescriptor;
use crate::draft::Unnamed;
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
        let mut path = unnamed.as_ref().map_or(String::new(), |unnamed| {
            unnamed.path().display().to_string()
        });
        comm.broadcast_string(0, &mut path)?;
        // 3. Each rank makes its file.
        let array = LocalArray::make_part(Path::new(&path), comm.rank());
        let own_file = OwnFile(match (&array, placement.directories.is_empty()) {
            (Ok(array), false) => Some(array.file().to_path_buf()),
            _ => None,
        });
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
    pub fn commit(mut self, comm: &Comm) -> Result<LocalArray> {
        self.array.sync(comm)?;
        let unnamed = self.unnamed.take();
        comm.agree(unnamed.map(Unnamed::name).transpose())?;
        self.own_file.0 = None;
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
