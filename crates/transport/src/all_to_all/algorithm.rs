//! [`AllToAll`]: the ways in which all ranks send something to all others.

use std::fmt;
use std::str::FromStr;

use crate::error::{Error, Result};

/// How everybody sends to everybody. The costs of each, and when it pays, are
/// in the README of this folder.
///
/// PEX, REX and BEX are for numbers of ranks that are powers of two; for others
/// [`AllToAll::for_ranks`] says what is done in their place.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum AllToAll {
    /// Whichever the cost model expects to be the fastest; the same on all
    /// ranks.
    Auto,
    /// Linear exchange: in step `i` everybody sends to rank `i`.
    Lex,
    /// Pairwise exchange: in step `i` with the rank whose number differs in the
    /// bits of `i`. Powers of two only.
    Pex,
    /// Recursive exchange: with the same rank of the other half, what is for
    /// that half; then in the halves. Powers of two only.
    Rex,
    /// Balanced exchange: pairwise, with ranks counted from another one, so that
    /// few pairs at a time are far apart. Powers of two only.
    Bex,
    /// Pairwise exchange for any number of ranks: as for the next power of two,
    /// without the ranks that do not exist.
    PexGen,
    /// The same, with the ranks in the middle of the next power of two.
    PexGenShift,
    /// General: in step `i` to the rank `i` further on, from the one `i` before.
    Gen,
    /// Indirect pairwise exchange on a mesh: along rows, in bundles for whole
    /// columns, then along columns.
    Ipex,
    /// Bruck's: what has to travel `d` ranks goes `2^b` of them in step `b` if
    /// that bit of `d` is set.
    Bruck,
    /// One exchange of the transport, all messages at once.
    Messages,
    /// Through memory that the ranks share: threads, or processes of one node.
    Shared,
}

impl AllToAll {
    /// All but `Auto`.
    pub const ALL: [Self; 11] = [
        Self::Lex,
        Self::Pex,
        Self::Rex,
        Self::Bex,
        Self::PexGen,
        Self::PexGenShift,
        Self::Gen,
        Self::Ipex,
        Self::Bruck,
        Self::Messages,
        Self::Shared,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Lex => "lex",
            Self::Pex => "pex",
            Self::Rex => "rex",
            Self::Bex => "bex",
            Self::PexGen => "pex-gen",
            Self::PexGenShift => "pex-gen-shift",
            Self::Gen => "gen",
            Self::Ipex => "ipex",
            Self::Bruck => "bruck",
            Self::Messages => "messages",
            Self::Shared => "shared",
        }
    }

    /// Whether it works for powers of two only.
    pub fn needs_power_of_two(self) -> bool {
        matches!(self, Self::Pex | Self::Rex | Self::Bex)
    }

    /// What is done on so many ranks: itself, or where it needs a power of two
    /// and this is none, its nearest relative for any number. PEX-GEN takes the
    /// place of PEX and PEX-GEN-SHIFT that of BEX (pairs of renumbered ranks),
    /// Bruck's algorithm that of REX (few steps, bundles that are passed on).
    pub fn for_ranks(self, ranks: usize) -> Self {
        if ranks.is_power_of_two() {
            return self;
        }
        match self {
            Self::Pex => Self::PexGen,
            Self::Bex => Self::PexGenShift,
            Self::Rex => Self::Bruck,
            other => other,
        }
    }

    /// Whether ranks pass on what is for others.
    pub fn forwards(self) -> bool {
        matches!(self, Self::Rex | Self::Ipex | Self::Bruck)
    }
}

impl fmt::Display for AllToAll {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for AllToAll {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let mut known = Self::ALL.into_iter().chain([Self::Auto]);
        known.find(|known| known.name() == text).ok_or_else(|| {
            let names: Vec<&str> = Self::ALL.iter().map(|known| known.name()).collect();
            Error::Invalid(format!(
                "there is no all-to-all algorithm {text}: auto or one of {}",
                names.join(", ")
            ))
        })
    }
}
