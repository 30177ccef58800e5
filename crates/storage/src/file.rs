//! [`FileStore`]: a local file with positioned reads and writes.
//!
//! A single transfer is one `pread` or `pwrite` of the caller's buffer.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::store::Store;

/// What a file may be used for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Access {
    /// Reads alone; writes fail.
    ReadOnly,
    /// Reads and writes.
    #[default]
    ReadWrite,
}

/// A local file.
#[derive(Debug)]
pub struct FileStore {
    path: PathBuf,
    file: File,
}

impl FileStore {
    /// Opens an existing file.
    pub fn open(path: impl AsRef<Path>, access: Access) -> Result<Self> {
        let mut open = OpenOptions::new();
        open.read(true).write(access == Access::ReadWrite);
        Self::from_open_options(path.as_ref(), &open)
    }

    /// Creates an empty file for reads and writes; fails if the path exists.
    pub fn create(path: impl AsRef<Path>) -> Result<Self> {
        let mut open = OpenOptions::new();
        open.read(true).write(true).create_new(true);
        Self::from_open_options(path.as_ref(), &open)
    }

    fn from_open_options(path: &Path, open: &OpenOptions) -> Result<Self> {
        let path = path.to_owned();
        match open.open(&path) {
            Ok(file) => Ok(FileStore { path, file }),
            Err(source) => Err(Error::Open { path, source }),
        }
    }

    /// The file's path, as it was given.
    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Store for FileStore {
    fn name(&self) -> String {
        self.path.display().to_string()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.file.read_at(buffer, offset)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.file.write_at(data, offset)
    }

    fn len(&self) -> Result<u64> {
        let metadata = self.file.metadata();
        let metadata = metadata.map_err(|source| Error::Length {
            store: self.name(),
            source,
        })?;
        Ok(metadata.len())
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.file
            .set_len(len)
            .map_err(|source| Error::set_length(self.name(), len, source))
    }

    fn sync(&self) -> Result<()> {
        self.file
            .sync_all()
            .map_err(|source| Error::sync(self.name(), source))
    }
}
