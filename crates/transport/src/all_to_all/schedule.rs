//! Schedules: who sends what to whom in which step. Pure functions of the rank
//! and the number of ranks; `run` carries them out.
//!
//! What rank `s` has for rank `t` is the [`Block`] from `s` to `t`. A rank
//! begins with the blocks from itself and must end with those to itself. In a
//! step it sends some blocks that it holds and receives others; what is not for
//! itself it holds until it passes it on. Invariants, for every algorithm and
//! number of ranks (tested up to 64): a rank sends only what it holds; what it
//! sends to a peer in a step is what that peer expects from it in that step, in
//! the same order; every block comes to its target once; all ranks have equally
//! many steps, though some may have nothing to do in one.

use super::algorithm::AllToAll;
use super::{bex, bruck, general, ipex, lex, pex, pex_gen, pex_gen_shift, rex};

/// What one rank has for another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Block {
    /// Whose it is at first.
    pub source: usize,
    /// Who must have it in the end.
    pub target: usize,
}

/// Blocks that go to a peer, or come from there, in one message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parcel {
    /// The other rank.
    pub peer: usize,
    /// In the order in which they stand in the message.
    pub blocks: Vec<Block>,
}

/// What one rank does in one step.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Step {
    /// To whom it sends what.
    pub sends: Vec<Parcel>,
    /// What it gets from whom.
    pub receives: Vec<Parcel>,
}

impl Step {
    /// Sends the own block of `to` there and gets the own block of `from`.
    pub(super) fn direct(rank: usize, to: usize, from: usize) -> Self {
        let parcel = |peer, source, target| Parcel {
            peer,
            blocks: vec![Block { source, target }],
        };
        Self {
            sends: vec![parcel(to, rank, to)],
            receives: vec![parcel(from, from, rank)],
        }
    }

    /// Exchanges own blocks with `partner`, if there is one.
    pub(super) fn pair(rank: usize, partner: Option<usize>) -> Self {
        partner.map_or_else(Self::default, |partner| {
            Self::direct(rank, partner, partner)
        })
    }
}

/// The steps of `rank` among `size`, or `None` for what has no schedule of its
/// own (`auto`, `messages`, `shared`) or needs a power of two that `size` is
/// not ([`AllToAll::for_ranks`]).
pub fn steps(algorithm: AllToAll, rank: usize, size: usize) -> Option<Vec<Step>> {
    if algorithm.for_ranks(size) != algorithm {
        return None;
    }
    let pairs = |partners: Vec<Option<usize>>| {
        let partners = partners.into_iter();
        partners.map(|partner| Step::pair(rank, partner)).collect()
    };
    Some(match algorithm {
        AllToAll::Auto | AllToAll::Messages | AllToAll::Shared => return None,
        AllToAll::Lex => lex::steps(rank, size),
        AllToAll::Pex => pairs(pex::partners(rank, size)),
        AllToAll::Rex => rex::steps(rank, size),
        AllToAll::Bex => pairs(bex::partners(rank, size)),
        AllToAll::PexGen => pairs(pex_gen::partners(rank, size)),
        AllToAll::PexGenShift => pairs(pex_gen_shift::partners(rank, size)),
        AllToAll::Gen => general::steps(rank, size),
        AllToAll::Ipex => ipex::steps(rank, mesh(size)),
        AllToAll::Bruck => bruck::steps(rank, size),
    })
}

/// A mesh of processors, numbered row by row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mesh {
    /// Its rows.
    pub rows: usize,
    /// Its columns.
    pub columns: usize,
}

impl Mesh {
    /// How many processors it has.
    pub fn size(self) -> usize {
        self.rows * self.columns
    }
}

/// The mesh of `size` ranks that is the nearest to a square, with no more rows
/// than columns.
pub fn mesh(size: usize) -> Mesh {
    let rows = (1..=size)
        .take_while(|rows| rows * rows <= size)
        .filter(|rows| size.is_multiple_of(*rows))
        .last()
        .unwrap_or(1);
    Mesh {
        rows,
        columns: size / rows,
    }
}
