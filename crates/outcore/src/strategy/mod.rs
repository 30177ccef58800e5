//! How one section moves between file and buffer.
//!
//! A [`Strategy`] is what the caller wants; a [`Method`] is what a plan does.
//! Every method moves exactly the same bytes of the array into the same places
//! of the buffer; they differ in what else they read and in how many requests.

pub(crate) mod batch;
pub(crate) mod calibrate;
pub(crate) mod choose;
pub(crate) mod fetch;
pub(crate) mod profile;
pub(crate) mod rehearse;
pub(crate) mod sieving;
pub(crate) mod slices;

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// How a section is to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Strategy {
    /// What the cost model expects to be fastest.
    #[default]
    Auto,
    /// One access for each run: nothing but what was asked for is moved
    /// (Thakur 1995, section 5.5.1). The best there is when runs are long.
    Direct,
    /// Runs whose gaps cost less than a request are read together and the
    /// wanted elements copied out; for writing, a stretch with gaps is read,
    /// changed and written back under a lock (data sieving, same section).
    Sieving,
    /// Copies straight from and to the page cache, through a mapping that the
    /// open array keeps: no system call for each run. The best there is for
    /// short runs of a file that is in memory.
    Mapped,
    /// Chunk by chunk, each decoded once: what is done with arrays of compressed
    /// chunks, and with no others, whatever was asked for.
    Chunked,
}

impl Strategy {
    /// All that can be asked for.
    pub const ALL: [Self; 4] = [Self::Auto, Self::Direct, Self::Sieving, Self::Mapped];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Direct => "direct",
            Self::Sieving => "sieving",
            Self::Mapped => "mapped",
            Self::Chunked => "chunked",
        }
    }
}

impl fmt::Display for Strategy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Strategy {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|strategy| strategy.name() == text)
            .ok_or_else(|| {
                let known: Vec<&str> = Self::ALL.iter().map(|s| s.name()).collect();
                Error::Invalid(format!(
                    "there is no strategy '{text}'; the strategies are {}",
                    known.join(", ")
                ))
            })
    }
}

/// Which way a section moves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From the file into a buffer.
    Read,
    /// From a buffer into the file.
    Write,
}

/// How the caller wants sections to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Tuning {
    /// The strategy.
    pub strategy: Strategy,
    /// The most memory that one call may use besides the caller's buffer; if nobody
    /// says (`None`), what [`Tuning::buffer`] tells.
    pub buffer: Option<u64>,
    /// The largest gap that sieving moves along; the cost model's if `None`.
    pub gap: Option<u64>,
    /// Sieving moves everything between the section's bounds along the file's
    /// slowest axis, in as many whole slices at a time as the buffer holds,
    /// whatever that costs: the form of the thesis (Thakur 1995, section
    /// 5.5.1). Means something with [`Strategy::Sieving`] alone.
    pub whole_slices: bool,
}

impl Default for Tuning {
    fn default() -> Self {
        Self {
            strategy: Strategy::Auto,
            buffer: None,
            gap: None,
            whole_slices: false,
        }
    }
}

impl Tuning {
    /// The most memory that one call may use besides the caller's buffer: 4 MiB, if
    /// nobody says.
    pub fn buffer(&self) -> u64 {
        self.buffer.unwrap_or(4 << 20)
    }

    /// The same with at most so much memory.
    pub fn within(self, most: u64) -> Self {
        let buffer = Some(self.buffer().min(most));
        Self { buffer, ..self }
    }
}

/// What a plan does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Method {
    /// Each run is one access.
    Direct,
    /// See [`sieving`].
    Sieving(sieving::Sieve),
    /// Through a mapping; where there is none, sieving for reads and direct
    /// for writes.
    Mapped(sieving::Sieve),
    /// Chunk by chunk.
    Chunked(Chunked),
}

/// How chunks are moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Chunked {
    /// The bytes of a chunk.
    pub(crate) size: u64,
    /// The bytes that chunks under way may take.
    pub(crate) room: u64,
}

impl Method {
    pub(crate) fn strategy(self) -> Strategy {
        match self {
            Self::Direct => Strategy::Direct,
            Self::Sieving(_) => Strategy::Sieving,
            Self::Mapped(_) => Strategy::Mapped,
            Self::Chunked(_) => Strategy::Chunked,
        }
    }
}
