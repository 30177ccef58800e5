//! What can go wrong with arrays.

use std::io;
use std::path::{Path, PathBuf};

use outcore_storage::Address;

use crate::bytes::{bytes_text, least_text};
use crate::element::ElementType;
use crate::global::ProcedureFault;

/// The result of an outcore call.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What can go wrong with arrays: what failed, on which array, and why.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A section, shape or layout does not fit its array.
    #[error("{array}: {source}")]
    Geometry {
        /// The array.
        array: String,
        /// What is wrong with the section, shape or layout.
        source: Box<outcore_geometry::Error>,
    },
    /// The bytes could not be moved.
    #[error(transparent)]
    Storage(#[from] outcore_storage::Error),
    /// The ranks could not talk to one another, or another rank failed.
    #[error(transparent)]
    Transport(#[from] outcore_transport::Error),
    /// A file or directory could not be used.
    #[error("cannot {action} {path}: {source}", path = path.display())]
    File {
        /// What was tried, as in "open".
        action: &'static str,
        /// The file or directory.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// What describes an array is damaged, unknown or contradicts the data.
    #[error("{array}: {problem}")]
    Format {
        /// The array.
        array: String,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The array holds elements of another type.
    #[error("{array} holds {stored} elements, not {asked}")]
    WrongType {
        /// The array.
        array: String,
        /// What it holds.
        stored: ElementType,
        /// What was asked for.
        asked: ElementType,
    },
    /// A buffer of the wrong length.
    #[error("section [{section}] of {array} has {expected} elements, but the buffer holds {found}")]
    BufferLength {
        /// The array.
        array: String,
        /// The section.
        section: String,
        /// Elements of the section.
        expected: u64,
        /// Elements of the buffer.
        found: u64,
    },
    /// An array that was opened for reading only.
    #[error("{array} was opened for reading only")]
    ReadOnly {
        /// The array.
        array: String,
    },
    /// A memory budget that is too small.
    #[error(
        "{purpose} needs at least {} of memory, but the budget is {}; give more (--memory)",
        least_text(*least), bytes_text(*limit)
    )]
    Memory {
        /// What needs the memory, as in "the sweep".
        purpose: String,
        /// The smallest budget of the whole process that works, in bytes.
        least: u64,
        /// The budget of the whole process, in bytes.
        limit: u64,
    },
    /// A task of a pool failed, and all ranks of the pool with it.
    #[error("task {index} failed on rank {rank}: {cause}")]
    Task {
        /// The task; the lowest that failed.
        index: u64,
        /// The rank that did it.
        rank: usize,
        /// What went wrong there.
        cause: String,
    },
    /// A procedure that was called on another rank gave no answer. Only the
    /// caller is told.
    #[error("procedure {procedure} on rank {rank}: {fault}")]
    Procedure {
        /// The rank on which it was called.
        rank: usize,
        /// The name under which it was registered.
        procedure: String,
        /// Why there is no answer.
        fault: ProcedureFault,
    },
    /// The process was told to stop.
    #[error("interrupted")]
    Interrupted,
    /// A run that can be continued was told to stop, or a server has failed.
    #[error(
        "{cause}; what is complete of {array} is kept, and the same command with --resume goes on"
    )]
    Unfinished {
        /// The array that was being made.
        array: String,
        /// Why it is not complete.
        cause: String,
    },
    /// A value that cannot be used as given.
    #[error("{0}")]
    Invalid(String),
}

impl Error {
    pub(crate) fn file(action: &'static str, path: &Path, source: io::Error) -> Self {
        Self::File {
            action,
            path: path.into(),
            source,
        }
    }

    /// [`Error::Unfinished`] instead of an interruption of this rank or of all, where what
    /// there is of `array` stays.
    pub(crate) fn or_unfinished(self, array: &str) -> Self {
        let interrupted = Self::Interrupted.to_string();
        let is_interruption = match &self {
            Self::Interrupted => true,
            Self::Transport(outcore_transport::Error::Agreed { cause, .. }) => {
                *cause == interrupted
            }
            _ => false,
        };
        match is_interruption {
            true => Self::Unfinished {
                array: array.into(),
                cause: interrupted,
            },
            false => self,
        }
    }

    /// Whether a server has failed, and not what was asked of it.
    pub(crate) fn is_of_server(&self) -> bool {
        use std::io::ErrorKind::{InvalidData, NotFound};
        match self {
            Self::Storage(outcore_storage::Error::Object { object, source, .. }) => {
                Address::is_one(object) && !matches!(source.kind(), InvalidData | NotFound)
            }
            _ => false,
        }
    }

    pub(crate) fn format(array: impl ToString, problem: impl Into<String>) -> Self {
        Self::Format {
            array: array.to_string(),
            problem: problem.into(),
        }
    }

    pub(crate) fn geometry(array: impl ToString) -> impl FnOnce(outcore_geometry::Error) -> Self {
        move |source| Self::Geometry {
            array: array.to_string(),
            source: source.into(),
        }
    }
}
