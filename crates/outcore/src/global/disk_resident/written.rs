//! [`Written`]: which cells of a part have ever been written, one byte a cell in a
//! file beside the part. A byte is set when the elements are in the file (or, if
//! they are written back later, in the cache), and never taken back.

use std::path::Path;
use std::sync::atomic::{AtomicU8, Ordering};

use outcore_storage::{Access, FileStore, MemoryStore, Store};

use crate::error::{Error, Result};

/// Which cells have been written.
#[derive(Debug)]
pub(crate) struct Written {
    cells: Vec<AtomicU8>,
    file: Box<dyn Store>,
}

impl Written {
    /// Makes the file for so many cells, none of them written.
    pub(crate) fn create(path: &Path, cells: u64) -> Result<()> {
        let file = FileStore::create(path)?;
        file.set_len(cells)?;
        Ok(file.sync()?)
    }

    pub(crate) fn open(path: &Path, cells: u64) -> Result<Self> {
        let file = FileStore::open(path, Access::ReadWrite)?;
        if file.len()? != cells {
            return Err(Error::format(
                path.display(),
                format!("it should have one byte for each of {cells} blocks"),
            ));
        }
        let mut bytes = vec![0; cells as usize];
        file.read_at(0, &mut bytes)?;
        Ok(Self {
            cells: bytes.into_iter().map(AtomicU8::new).collect(),
            file: Box::new(file),
        })
    }

    /// For a part that is in memory itself.
    pub(crate) fn in_memory(cells: u64) -> Result<Self> {
        Ok(Self {
            cells: (0..cells).map(|_| AtomicU8::new(0)).collect(),
            file: Box::new(MemoryStore::new()),
        })
    }

    pub(crate) fn is_written(&self, cell: u64) -> bool {
        self.cells[cell as usize].load(Ordering::Acquire) != 0
    }

    pub(crate) fn mark(&self, cell: u64) -> Result<()> {
        if self.is_written(cell) {
            return Ok(());
        }
        self.file.write_at(cell, &[1])?;
        self.cells[cell as usize].store(1, Ordering::Release);
        Ok(())
    }

    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.file.sync()?)
    }
}
