//! What can go wrong in a store: each message is one sentence that names the
//! store, the place in it and the cause.

use std::io;
use std::ops::Range;
use std::path::PathBuf;

use crate::checked::BlockFault;

/// The result of an operation on a store.
pub type Result<T> = std::result::Result<T, Error>;

/// Why an operation on a store failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A read reached past the last byte of the store.
    #[error(
        "cannot read {wanted} bytes from {store} at offset {offset}: the store ends at offset {end}"
    )]
    UnexpectedEnd {
        /// The store's name.
        store: String,
        /// Where the read began.
        offset: u64,
        /// How many bytes it asked for.
        wanted: u64,
        /// Where the bytes ended.
        end: u64,
    },

    /// The system refused a read.
    #[error("cannot read from {store} at offset {offset}: {source}")]
    Read {
        /// The store's name.
        store: String,
        /// The first byte that was not read.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },

    /// The system refused a write.
    #[error("cannot write to {store} at offset {offset}: {source}")]
    Write {
        /// The store's name.
        store: String,
        /// The first byte that was not written.
        offset: u64,
        /// What the system said.
        source: io::Error,
    },

    /// A request reaches beyond `i64::MAX`, where no store has bytes.
    #[error(
        "cannot access {len} bytes of {store} at offset {offset}: the largest possible offset is {}",
        i64::MAX
    )]
    OutOfRange {
        /// The store's name.
        store: String,
        /// Where the request begins.
        offset: u64,
        /// How many bytes it names.
        len: u64,
    },

    /// A file could not be opened or created.
    #[error("cannot open {}: {source}", path.display())]
    Open {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },

    /// The length of a store could not be found.
    #[error("cannot find the length of {store}: {source}")]
    Length {
        /// The store's name.
        store: String,
        /// What the system said.
        source: io::Error,
    },

    /// The length of a store could not be changed.
    #[error("cannot set the length of {store} to {len} bytes: {source}")]
    SetLength {
        /// The store's name.
        store: String,
        /// The length asked for.
        len: u64,
        /// What the system said.
        source: io::Error,
    },

    /// Written bytes could not be brought to stable storage.
    #[error("cannot bring {store} to stable storage: {source}")]
    Sync {
        /// The store's name.
        store: String,
        /// What the system said.
        source: io::Error,
    },

    /// A range of bytes could not be locked.
    #[error("cannot lock {len} bytes of {store} at offset {offset}: {source}")]
    Lock {
        /// The store's name.
        store: String,
        /// Where the range begins.
        offset: u64,
        /// How many bytes it has.
        len: u64,
        /// What the system said.
        source: io::Error,
    },

    /// A named object, or a folder of them, could not be had or changed.
    #[error("cannot {action} {object}: {source}")]
    Object {
        /// What was to be done: `read`, `write`, `list`.
        action: &'static str,
        /// The path or address of the object or folder.
        object: String,
        /// Why not.
        source: io::Error,
    },

    /// A key that can name no object.
    #[error("`{}` cannot name an object of {place}: {reason}", key.escape_debug())]
    Key {
        /// Where the object would be.
        place: String,
        /// The key.
        key: String,
        /// What is wrong with it.
        reason: &'static str,
    },

    /// A block with a checksum is not as it was written.
    #[error(
        "block {block} of {store}, bytes {} to {}{meaning}, {}",
        bytes.start, bytes.end.saturating_sub(1), block_fault(*fault)
    )]
    Block {
        /// The store's name.
        store: String,
        /// The number of the block, from 0 on.
        block: u64,
        /// Which bytes it is, the end excluded.
        bytes: Range<u64>,
        /// What these bytes are, in parentheses.
        meaning: String,
        /// What is wrong.
        fault: BlockFault,
    },

    /// A store was asked for with settings that make none.
    #[error("cannot make a {store}: {reason}")]
    Settings {
        /// The kind of store.
        store: &'static str,
        /// What is wrong with the settings.
        reason: String,
    },
}

impl Error {
    /// A failed read of `store` at `offset`.
    pub fn read(store: impl Into<String>, offset: u64, source: io::Error) -> Self {
        let store = store.into();
        Error::Read {
            store,
            offset,
            source,
        }
    }

    /// A failed write to `store` at `offset`.
    pub fn write(store: impl Into<String>, offset: u64, source: io::Error) -> Self {
        let store = store.into();
        Error::Write {
            store,
            offset,
            source,
        }
    }

    /// A failed change of the length of `store`.
    pub fn set_length(store: impl Into<String>, len: u64, source: io::Error) -> Self {
        let store = store.into();
        Error::SetLength { store, len, source }
    }

    /// A named object with which `action` failed.
    pub fn object(action: &'static str, object: impl Into<String>, source: io::Error) -> Self {
        let object = object.into();
        Error::Object {
            action,
            object,
            source,
        }
    }

    /// A failed sync of `store`.
    pub fn sync(store: impl Into<String>, source: io::Error) -> Self {
        let store = store.into();
        Error::Sync { store, source }
    }
}

/// What is wrong with a block, and what can be done.
fn block_fault(fault: BlockFault) -> &'static str {
    match fault {
        BlockFault::Damaged => {
            "does not match its checksum: it was damaged after it was written; write it \
             again; 'outcore repair-report' lists all that is damaged"
        }
        BlockFault::Interrupted => {
            "was being written when the writer failed or died, so it may be old in part; write it \
             again, or take it as it is with 'outcore verify --accept interrupted'"
        }
    }
}
