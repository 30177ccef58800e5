//! [`Scratch`]: an array that holds values only while another one is made.
//!
//! It is of outcore's own format, whatever that of the other is, and lies hidden beside
//! it; for one at an address, among the temporary files of this user. Dropped, or at the
//! end of a program that failed, it is removed: so it takes no space of a file of others,
//! and no name at an address.

use std::ops::Deref;

use outcore_storage::Access;
use outcore_transport::Comm;

use crate::array::Array;
use crate::descriptor::ArrayDescriptor;
use crate::draft::Draft;
use crate::error::Result;
use crate::format::Location;

/// An array of all ranks that is never given a name; each can use it like an [`Array`].
///
/// ```
/// use outcore::{ArrayDescriptor, ElementType, Scratch};
/// # let directory = tempfile::tempdir()?;
/// # let name = directory.path().join("result.npy");
/// # let name = name.to_str().unwrap();
/// outcore::run(2, |comm| {
///     let like = ArrayDescriptor::new(&[30, 20], ElementType::F64);
///     let between = Scratch::beside(comm, name, &like)?;
///     assert_eq!(between.shape(), [30, 20]);
///     Ok::<(), outcore::Error>(())
/// })?;
/// assert_eq!(directory.path().read_dir()?.count(), 0);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Scratch {
    array: Array,
    /// Rank 0 alone has it.
    _files: Option<Draft>,
}

impl Scratch {
    /// Collective: makes one beside the array named `name`, with the shape, the type and
    /// the layout of `like`.
    pub fn beside(comm: &Comm, name: &str, like: &ArrayDescriptor) -> Result<Self> {
        let descriptor =
            ArrayDescriptor::new(&like.shape, like.element_type).layout(like.arrangement.clone());
        let begun = match comm.rank() {
            0 => Draft::scratch(name, &descriptor).map(Some),
            _ => Ok(None),
        };
        let files = comm.agree(begun)?;
        let path = files.as_ref().and_then(Draft::own_path);
        let mut path = path.map_or(String::new(), |path| path.to_string_lossy().into());
        comm.broadcast_string(0, &mut path)?;
        let opened = match &files {
            Some(draft) => Ok(Array::clone(draft)),
            None => Array::open_at(&Location::Native(path.into()), Access::ReadWrite),
        };
        Ok(Self {
            array: comm.agree(opened)?,
            _files: files,
        })
    }
}

impl Deref for Scratch {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.array
    }
}
