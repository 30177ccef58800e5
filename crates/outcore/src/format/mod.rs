//! From the name of an array to its descriptor and its bytes, one file per
//! format. Everything above sees only an [`Opened`].

pub(crate) mod location;
pub(crate) mod native;
pub(crate) mod npy;
pub(crate) mod raw;

use std::path::Path;
use std::sync::Arc;

use outcore_storage::{Access, FileStore, Store};

use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
pub(crate) use location::Location;

/// An array's descriptor and its bytes.
#[derive(Debug)]
pub(crate) struct Opened {
    pub(crate) descriptor: ArrayDescriptor,
    pub(crate) store: Arc<dyn Store>,
    /// Where the data begin in the store.
    pub(crate) start: u64,
}

impl Opened {
    /// Fails if the store is too short for the data that the descriptor names.
    fn check(self, array: &str, file: &Path) -> Result<Self> {
        let layout = self.descriptor.check(array)?;
        let needed = self.start.checked_add(layout.byte_len()).ok_or_else(|| {
            Error::format(
                array,
                format!("offset {} and the data exceed 2^64 bytes", self.start),
            )
        })?;
        let found = self.store.len()?;
        if found < needed {
            return Err(Error::format(
                array,
                format!(
                    "{} has {found} bytes, but shape {} of {} in layout {} needs {needed}; \
                     the file is truncated or the description is wrong",
                    file.display(),
                    outcore_geometry::shape_text(&self.descriptor.shape),
                    self.descriptor.element_type,
                    self.descriptor.arrangement,
                ),
            ));
        }
        Ok(self)
    }
}

/// Opens an array of any format.
pub(crate) fn open(location: &Location, access: Access) -> Result<Opened> {
    match location {
        Location::Native(path) => native::open(path, access),
        Location::Npy(path) => npy::open(path, access),
        Location::Raw(raw) => raw.open(access),
    }
}

pub(crate) fn open_file(path: &Path, access: Access) -> Result<Arc<dyn Store>> {
    Ok(Arc::new(FileStore::open(path, access)?))
}
