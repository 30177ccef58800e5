//! [`Domains`]: which rank moves which bytes of the file. Pure arithmetic.
//!
//! The mathematics. A domain is a set of byte ranges of the array's data, cut
//! between elements: one range, or one in each cycle of equal length. Laid end
//! to end they are the domain's *local* bytes; window `k` of `w` bytes holds
//! the local bytes `k w .. (k + 1) w`. All of it are closed formulas, so any
//! rank knows the windows of any other without asking, however many there are.
//!
//! Invariants: every byte between the bounds is in one domain, and in one of
//! its windows; the pieces of a window ascend.

use std::collections::BTreeSet;

use outcore_geometry::Layout;

use super::kind::DomainKind;
use super::request::Request;
use super::weights::{Weights, part};
use crate::array::Array;
use crate::error::{Error, Result};

/// Blocks of cyclic domains have about so many bytes.
const GRAIN: u64 = 64 << 10;

/// A range of bytes, and where it stands in the image of its window.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Piece {
    pub(super) start: u64,
    pub(super) end: u64,
    pub(super) at: u64,
}

/// The domains of all ranks that have one, between two offsets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Domains {
    ranks: usize,
    count: usize,
    start: u64,
    end: u64,
    cut: Cut,
    whole: bool,
}

/// Where one domain ends and the next begins.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Cut {
    /// Equal numbers of units, of which the first is at `origin`.
    Blocks { origin: u64, units: u64, unit: u64 },
    /// Equal numbers of bytes that are asked for, rounded to units.
    Weighted { weights: Weights, unit: u64 },
    /// Stripes of one unit each that go round the parts; neighbouring parts
    /// have one domain. The first stripe begins `shift` bytes before the data.
    Stripes { unit: u64, parts: u64, shift: u64 },
}

/// The bytes of one domain: from `first` on, in each cycle, so many. Counted
/// from the beginning of the first stripe.
#[derive(Debug, Clone, Copy)]
struct Reach {
    first: u64,
    share: u64,
    cycle: u64,
    shift: u64,
    /// The local bytes of the domain that lie between the bounds.
    from: u64,
    to: u64,
}

impl Domains {
    /// The domains of `ranks` ranks for requests that lie within `start..end`;
    /// `weights` says how many bytes are asked for where.
    pub(super) fn new(
        kind: DomainKind,
        array: &Array,
        (start, end): (u64, u64),
        ranks: usize,
        weights: impl FnOnce() -> Result<Weights>,
    ) -> Result<Self> {
        let layout = array.layout();
        let bytes = layout.byte_len();
        let whole = kind == DomainKind::Conforming;
        let (start, end) = if whole { (0, bytes) } else { (start, end) };
        let stripes = match kind {
            DomainKind::Disks => Some(stripes(array)?),
            DomainKind::Cyclic => Some((cyclic_unit(layout, end - start, ranks), ranks as u64, 0)),
            _ => None,
        };
        let count = match (kind, stripes) {
            (DomainKind::Few(count), _) => count.clamp(1, ranks),
            (_, Some((_, parts, _))) => parts.min(ranks as u64) as usize,
            _ => ranks,
        };
        let cut = match (kind, stripes) {
            (_, Some((unit, parts, shift))) if count > 1 => Cut::Stripes { unit, parts, shift },
            (DomainKind::Weighted, _) => Cut::Weighted {
                weights: weights()?,
                unit: unit(layout, super::weights::BUCKETS as u64, end - start),
            },
            _ => {
                let slice = unit(layout, 1, bytes);
                let (from, to) = match kind {
                    DomainKind::Static | DomainKind::Conforming => (0, bytes),
                    _ => (start / slice * slice, end.next_multiple_of(slice)),
                };
                let unit = unit(layout, count as u64, to - from);
                Cut::Blocks {
                    origin: from,
                    units: (to - from).div_ceil(unit),
                    unit,
                }
            }
        };
        Ok(Self {
            ranks,
            count,
            start,
            end,
            cut,
            whole,
        })
    }

    /// Refuses domains that an array cannot have.
    pub(super) fn check(kind: DomainKind, array: &Array) -> Result<()> {
        match kind {
            DomainKind::Disks => stripes(array).map(|_| ()),
            _ => Ok(()),
        }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.count
    }

    /// Whether domains are read in full, whatever is asked for.
    pub(super) fn are_read_whole(&self) -> bool {
        self.whole
    }

    /// Whether a window can have several pieces.
    pub(super) fn are_scattered(&self) -> bool {
        matches!(self.cut, Cut::Stripes { .. })
    }

    /// The rank that moves the bytes of a domain.
    pub(super) fn rank(&self, domain: usize) -> usize {
        part(self.ranks as u64, domain as u64, self.count as u64) as usize
    }

    /// The domain of a rank, if it has one.
    pub(super) fn of_rank(&self, rank: usize) -> Option<usize> {
        let domain = (rank as u128 * self.count as u128).div_ceil(self.ranks as u128) as usize;
        (domain < self.count && self.rank(domain) == rank).then_some(domain)
    }

    /// The domain of a byte between the bounds.
    fn of_byte(&self, offset: u64) -> usize {
        let domain = match &self.cut {
            Cut::Blocks {
                origin,
                units,
                unit,
            } => {
                // The last that begins at or before this unit.
                let at = u128::from((offset - origin) / unit) + 1;
                (at * self.count as u128).div_ceil(u128::from(*units)) as usize - 1
            }
            Cut::Weighted { .. } => {
                let (mut low, mut high) = (0, self.count);
                while high - low > 1 {
                    let middle = low.midpoint(high);
                    match self.edge(middle) <= offset {
                        true => low = middle,
                        false => high = middle,
                    }
                }
                low
            }
            Cut::Stripes { unit, parts, shift } => {
                let stripe = (offset + shift) % unit.saturating_mul(*parts) / unit;
                part(self.count as u64, stripe, *parts) as usize
            }
        };
        domain.min(self.count - 1)
    }

    /// Where a domain of one range begins, and the one before it ends.
    fn edge(&self, domain: usize) -> u64 {
        if domain == self.count {
            return self.end;
        }
        let edge = match &self.cut {
            _ if domain == 0 => self.start,
            Cut::Blocks {
                origin,
                units,
                unit,
            } => origin + part(*units, domain as u64, self.count as u64) * unit,
            Cut::Weighted { weights, unit } => weights.cut(domain, self.count) / unit * unit,
            Cut::Stripes { .. } => self.start,
        };
        edge.clamp(self.start, self.end)
    }

    fn reach(&self, domain: usize) -> Reach {
        let mut reach = match &self.cut {
            Cut::Stripes { unit, parts, shift } => {
                let first = |domain: usize| {
                    let stripe =
                        (domain as u128 * u128::from(*parts)).div_ceil(self.count as u128) as u64;
                    stripe.saturating_mul(*unit)
                };
                Reach {
                    first: first(domain),
                    share: first(domain + 1) - first(domain),
                    cycle: unit.saturating_mul(*parts),
                    shift: *shift,
                    from: 0,
                    to: 0,
                }
            }
            _ => Reach {
                first: self.edge(domain),
                share: self.edge(domain + 1) - self.edge(domain),
                cycle: u64::MAX,
                shift: 0,
                from: 0,
                to: 0,
            },
        };
        (reach.from, reach.to) = (reach.below(self.start), reach.below(self.end));
        reach
    }

    /// The domains that hold wanted bytes, in ascending order.
    pub(super) fn touched(&self, request: &Request) -> Vec<usize> {
        let mut touched = BTreeSet::new();
        let mut at = request.start;
        while touched.len() < self.count
            && let Some(pass) = request.runs.window(at, request.end).next()
        {
            let offset = pass.first.file_offset;
            let domain = self.of_byte(offset);
            touched.insert(domain);
            let reach = self.reach(domain);
            at = reach.piece(reach.below(offset), reach.to).1;
        }
        touched.into_iter().collect()
    }

    /// Whether a domain holds wanted bytes.
    pub(super) fn touches(&self, domain: usize, request: &Request) -> bool {
        let reach = self.reach(domain);
        let wanted = |local: u64| {
            let (start, end) = reach.piece(local, reach.to);
            (!request.share(start, end).is_empty(), end)
        };
        let mut local = reach.below(request.start);
        let end = reach.below(request.end).min(reach.to);
        while local < end {
            let (found, next) = wanted(local);
            if found {
                return true;
            }
            local = reach.below(next);
        }
        false
    }

    /// The bytes of a domain.
    pub(super) fn length(&self, domain: usize) -> u64 {
        let reach = self.reach(domain);
        reach.to - reach.from
    }

    /// The bytes of the longest domain, or a stripe more.
    pub(super) fn longest(&self) -> u64 {
        match &self.cut {
            // No block is more than a unit longer than the others, but for the
            // bounds.
            Cut::Blocks { units, unit, .. } => {
                let units = units.div_ceil(self.count as u64);
                units.saturating_mul(*unit).min(self.end - self.start)
            }
            Cut::Stripes { unit, parts, shift } => {
                let cycle = unit.saturating_mul(*parts);
                let (first, last) = (self.start + shift, self.end + shift);
                let begun = u64::from(last % cycle > first % cycle);
                let share = parts.div_ceil(self.count as u64).saturating_mul(*unit);
                let cycles = last / cycle - first / cycle + begun;
                cycles.saturating_mul(share).min(self.end - self.start)
            }
            // As many steps as there are domains, each a few divisions.
            Cut::Weighted { .. } => (0..self.count())
                .map(|domain| self.length(domain))
                .max()
                .unwrap_or(0),
        }
    }

    /// The pieces of window `k` of `w` bytes of a domain, in ascending order.
    pub(super) fn pieces(
        &self,
        domain: usize,
        k: u64,
        w: u64,
    ) -> impl Iterator<Item = Piece> + use<> {
        let reach = self.reach(domain);
        let from = reach.from.saturating_add(k.saturating_mul(w)).min(reach.to);
        let to = from.saturating_add(w).min(reach.to);
        let mut local = from;
        std::iter::from_fn(move || {
            if local >= to {
                return None;
            }
            let (start, end) = reach.piece(local, to);
            let at = local - from;
            local += end - start;
            Some(Piece { start, end, at })
        })
    }
}

impl Reach {
    /// How many local bytes stand before an offset of the data.
    fn below(&self, offset: u64) -> u64 {
        let place = offset + self.shift;
        let cycles = place / self.cycle;
        let inside = (place % self.cycle).saturating_sub(self.first);
        cycles * self.share + inside.min(self.share)
    }

    /// The bytes of the data from the local byte `local` on, which must be
    /// below `to`, up to the end of the piece or of `to`.
    fn piece(&self, local: u64, to: u64) -> (u64, u64) {
        let (cycle, inside) = (local / self.share, local % self.share);
        let start = cycle * self.cycle + self.first + inside - self.shift;
        (start, start + (self.share - inside).min(to - local))
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

/// Slices for blocks of `GRAIN` bytes, or fewer if not all ranks would get a
/// block.
fn cyclic_unit(layout: &Layout, span: u64, ranks: usize) -> u64 {
    let slice = unit(layout, ranks as u64, span);
    let most = span / slice / ranks as u64;
    slice * (GRAIN / slice).min(most).max(1)
}

/// The stripes of an array's store: their length, the number of disks, and how
/// far before the data one begins on the first disk, rounded to an element.
fn stripes(array: &Array) -> Result<(u64, u64, u64)> {
    let refused = |why: String| Error::Invalid(format!("{}: {why}", array.name()));
    let Some(striping) = array.store().striping() else {
        return Err(refused(
            "domains 'disks' need a store that is striped over disks".into(),
        ));
    };
    let (unit, element) = (striping.unit(), array.layout().element_size());
    if !unit.is_multiple_of(element) {
        return Err(refused(format!(
            "domains 'disks' need stripes of whole elements, but {unit} is no multiple of {element}"
        )));
    }
    let parts = striping.disks() as u64;
    let shift = array.data_offset() % unit.saturating_mul(parts);
    Ok((unit, parts, shift.next_multiple_of(element)))
}

#[cfg(test)]
mod tests;
