//! [`Domains`]: which rank moves which bytes of the file. Pure arithmetic.
//!
//! The mathematics. A domain is a set of byte ranges of the array's data, cut
//! between elements. Laid end to end they are the domain's *local* bytes;
//! window `k` of `w` bytes holds the local bytes `k w .. (k + 1) w`. So any rank
//! knows the windows of any other without asking.
//!
//! Invariants: every byte between the bounds is in one domain, and in one of
//! its windows; the pieces of a window ascend.

use std::fmt;
use std::str::FromStr;

use outcore_geometry::Layout;

use super::request::Request;
use crate::error::Error;

/// How the file is divided among the ranks that read and write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DomainKind {
    /// What is expected to be fastest.
    #[default]
    Auto,
    /// Equal parts of the whole array, whatever is asked for (Thakur 1995,
    /// section 6.3).
    Static,
    /// Equal parts of what lies between the first and the last byte that is
    /// asked for.
    Dynamic,
}

impl DomainKind {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::Auto, Self::Static, Self::Dynamic];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }
}

impl fmt::Display for DomainKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for DomainKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let found = Self::ALL.into_iter().find(|kind| kind.name() == text);
        found.ok_or_else(|| {
            let known: Vec<&str> = Self::ALL.iter().map(|kind| kind.name()).collect();
            Error::Invalid(format!(
                "there are no domains '{text}'; the kinds are {}",
                known.join(", ")
            ))
        })
    }
}

/// A range of bytes, and where it stands in the image of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) at: u64,
}

/// The domains of all ranks: domain `d` belongs to rank `d`. Equal numbers of
/// units, of which the first is at `origin`; of the first and the last domain
/// that has any, only what lies between the bounds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Domains {
    ranks: usize,
    origin: u64,
    units: u64,
    unit: u64,
    start: u64,
    end: u64,
}

impl Domains {
    /// The domains of `ranks` ranks for requests that lie within `start..end`.
    pub(super) fn new(
        kind: DomainKind,
        layout: &Layout,
        (start, end): (u64, u64),
        ranks: usize,
    ) -> Self {
        let whole = layout.byte_len();
        let slice = unit(layout, 1, whole);
        let (from, to) = match kind {
            DomainKind::Static => (0, whole),
            DomainKind::Auto | DomainKind::Dynamic => {
                (start / slice * slice, end.next_multiple_of(slice))
            }
        };
        let unit = unit(layout, ranks as u64, to - from);
        Self {
            ranks,
            origin: from,
            units: (to - from).div_ceil(unit),
            unit,
            start,
            end,
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.ranks
    }

    /// The rank that moves the bytes of a domain.
    pub(super) fn rank(&self, domain: usize) -> usize {
        domain
    }

    /// The domain of a rank, if it has one.
    pub(super) fn of_rank(&self, rank: usize) -> Option<usize> {
        (rank < self.ranks).then_some(rank)
    }

    /// The domains that hold wanted bytes, in ascending order.
    pub(super) fn touched(&self, request: &Request) -> Vec<usize> {
        (0..self.ranks)
            .filter(|domain| self.touches(*domain, request))
            .collect()
    }

    /// Whether a domain holds wanted bytes.
    pub(super) fn touches(&self, domain: usize, request: &Request) -> bool {
        let (start, end) = self.range(domain);
        !request.share(start, end).is_empty()
    }

    /// The bytes of a domain.
    pub(super) fn length(&self, domain: usize) -> u64 {
        let (start, end) = self.range(domain);
        end - start
    }

    /// The pieces of window `k` of `w` bytes of a domain, in ascending order.
    pub(super) fn pieces(
        &self,
        domain: usize,
        k: u64,
        w: u64,
    ) -> impl Iterator<Item = Piece> + use<> {
        let (start, end) = self.range(domain);
        let from = start.saturating_add(k.saturating_mul(w)).min(end);
        let to = from.saturating_add(w).min(end);
        let piece = Piece {
            start: from,
            end: to,
            at: 0,
        };
        (from < to).then_some(piece).into_iter()
    }

    fn range(&self, domain: usize) -> (u64, u64) {
        let edge = |at: usize| {
            let units = u128::from(self.units) * at as u128 / self.ranks as u128;
            (self.origin + units as u64 * self.unit).clamp(self.start, self.end)
        };
        (edge(domain), edge(domain + 1))
    }
}

/// The bytes of a slice of the slowest axis (a layer of tiles), if `span` bytes
/// have at least `parts` of them; else of a slice of the next axis, and so on.
fn unit(layout: &Layout, parts: u64, span: u64) -> u64 {
    let element = layout.element_size();
    let mut unit = layout.byte_len();
    for axis in layout.slowest_first() {
        let thickness = layout.tile().map_or(1, |tile| tile[*axis]);
        unit /= layout.shape()[*axis].div_ceil(thickness).max(1);
        if unit >= element && span / unit >= parts {
            return unit;
        }
    }
    element
}
