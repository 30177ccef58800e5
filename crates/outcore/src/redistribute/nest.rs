//! [`Nest`]: the copies of a redistribution as loops, one pair of loops an
//! axis, and the memory between which they go.
//!
//! The product of the strips of all axes is never written down. The slower
//! axes are walked index by index; along the last one each strip is a loop of
//! pieces of equal length, which is what the processor does quickly. The strips
//! of a period are in ascending order on every part, and its rounds follow one
//! another: so memory is gone through in order on both sides, although a strip
//! touches but a part of each line.
//!
//! Trailing axes that lie whole on one rank before and after are part of the
//! element (`unit`).

use outcore_geometry::{AxisExchange, AxisSide, Place, Redistribution, Strip};

use super::loom::{Loom, Thread, piece};
use crate::execute::copy::{streamed, strided};

/// Long pieces are copied past the caches if so many bytes move in all.
const MUCH: usize = 4 << 20;

/// No strip spans more positions than this.
pub(super) const CUT: u64 = 8 << 10;

/// Which end of a strip is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Which {
    /// The local array of the source.
    Source,
    /// The local array of the target.
    Target,
    /// What goes from one to the other, end to end; the slot is the source's.
    PackedBySource,
    /// The same; the slot is the target's.
    PackedByTarget,
}

/// Where the pieces of a move stand, in elements of one axis.
#[derive(Debug, Clone, Copy)]
struct End {
    slot: usize,
    at: usize,
    step: usize,
    advance: usize,
}

impl End {
    fn new(which: Which, strip: &Strip) -> Self {
        let (slot, place): (u64, Place) = match which {
            Which::Source => (strip.source_rank, strip.source),
            Which::Target => (strip.target_rank, strip.target),
            Which::PackedBySource => (strip.source_rank, strip.packed),
            Which::PackedByTarget => (strip.target_rank, strip.packed),
        };
        Self {
            slot: slot as usize,
            at: place.at as usize,
            step: place.step as usize,
            advance: place.advance as usize,
        }
    }
}

/// A strip between two ends: the first is where it comes from, unless the nest
/// is run backwards.
#[derive(Debug, Clone, Copy)]
struct Move {
    len: usize,
    count: usize,
    ends: [End; 2],
}

/// The moves along one axis.
#[derive(Debug, Clone)]
struct Axis {
    strips: Vec<Move>,
    rounds: usize,
    rest: Vec<Move>,
    /// How many slots either end has.
    slots: [usize; 2],
}

/// The moves of all axes, the last one innermost.
#[derive(Debug, Clone)]
pub(super) struct Nest {
    axes: Vec<Axis>,
    /// How many elements move together.
    unit: usize,
    /// Nothing moves at all.
    empty: bool,
}

impl Nest {
    /// The loops of `exchanges`, one an axis of `what`, between two ends.
    pub(super) fn new(what: &Redistribution, exchanges: &[AxisExchange], ends: [Which; 2]) -> Self {
        let sides = what.source().axes().iter().zip(what.target().axes());
        let mut axes: Vec<_> = exchanges.iter().zip(sides).collect();
        let mut unit = 1;
        while let Some((exchange, (source, target))) = axes.last()
            && let Some(whole) = whole(exchange, source, target)
        {
            unit *= whole as usize;
            axes.pop();
        }
        let axis = |(exchange, (source, target)): (&AxisExchange, (&AxisSide, &AxisSide))| {
            let moves =
                |strips: &[Strip]| strips.iter().map(|strip| as_move(strip, ends)).collect();
            let slots = |which: Which| match which {
                Which::Source | Which::PackedBySource => source.ranks() as usize,
                Which::Target | Which::PackedByTarget => target.ranks() as usize,
            };
            Axis {
                strips: moves(exchange.strips()),
                rounds: exchange.rounds() as usize,
                rest: moves(exchange.rest()),
                slots: ends.map(slots),
            }
        };
        Self {
            axes: axes.into_iter().map(axis).collect(),
            unit,
            empty: exchanges.iter().any(|exchange| exchange.total() == 0),
        }
    }

    /// Nothing to do.
    pub(super) fn empty() -> Self {
        Self {
            axes: Vec::new(),
            unit: 1,
            empty: true,
        }
    }

    /// How many units apart the indices of each axis of the loops are in dense
    /// memory of this shape, the last axis fastest.
    pub(super) fn strides(&self, shape: &[u64]) -> Vec<usize> {
        let mut strides = vec![1; self.axes.len()];
        for axis in (1..self.axes.len()).rev() {
            strides[axis - 1] = strides[axis] * shape[axis] as usize;
        }
        strides
    }

    /// The strips of all axes.
    pub(super) fn strips(&self) -> usize {
        let axes = self.axes.iter();
        axes.map(|axis| axis.strips.len() + axis.rest.len()).sum()
    }

    /// Copies elements of `size` bytes between the parts of both ends; only
    /// those of one part of the second end if one is given.
    ///
    /// # Safety
    ///
    /// All parts that the moves reach must be memory of the shape given with
    /// them, to be read (from) and written (to), used by nobody else, except
    /// that others may read what is only read here.
    pub(super) unsafe fn run(&self, trip: &Trip<'_>, size: usize) {
        if self.empty {
            return;
        }
        let bytes = self.unit * size;
        let mut row = Row {
            trip,
            bytes,
            much: self.units().saturating_mul(bytes) >= MUCH,
            bases: [Vec::new(), Vec::new()],
            loom: Loom::default(),
        };
        let mut at = [vec![(0, 0); self.axes.len()], vec![(0, 0); self.axes.len()]];
        // SAFETY: passed on to the caller.
        unsafe { self.walk(0, &mut at, &mut row) }
        if row.much {
            streamed();
        }
    }

    /// How many units move.
    fn units(&self) -> usize {
        let units = |moves: &[Move]| -> usize { moves.iter().map(|it| it.len * it.count).sum() };
        let axes = self.axes.iter();
        axes.map(|axis| units(&axis.strips) * axis.rounds + units(&axis.rest))
            .product()
    }

    /// Goes through the axes from `axis` on; `at` has the slots and indices of
    /// the slower ones.
    ///
    /// # Safety
    ///
    /// As [`Nest::run`].
    unsafe fn walk(&self, axis: usize, at: &mut [Vec<(usize, usize)>; 2], row: &mut Row<'_>) {
        let Some(current) = self.axes.get(axis) else {
            // SAFETY: passed on to the caller.
            return unsafe { row.single(at) };
        };
        if axis + 1 == self.axes.len() {
            row.enter(at, current.slots);
            // SAFETY: passed on to the caller.
            return unsafe { row.along(current, axis) };
        }
        let rounds = (0..current.rounds).flat_map(|round| {
            let strips = current.strips.iter();
            strips.map(move |strip| (round, strip))
        });
        for (round, strip) in rounds.chain(current.rest.iter().map(|strip| (0, strip))) {
            if !row.trip.takes(axis, strip) {
                continue;
            }
            for (piece, element) in (0..strip.count)
                .flat_map(|piece| (0..strip.len).map(move |element| (piece, element)))
            {
                for (end, at) in strip.ends.iter().zip(at.iter_mut()) {
                    let index = end.at + piece * end.step + round * end.advance + element;
                    at[axis] = (end.slot, index);
                }
                // SAFETY: passed on to the caller.
                unsafe { self.walk(axis + 1, at, row) }
            }
        }
    }
}

/// The length of an axis that lies whole on one rank before and after.
fn whole(exchange: &AxisExchange, source: &AxisSide, target: &AxisSide) -> Option<u64> {
    let [strip] = exchange.rest() else {
        return None;
    };
    let one = source.ranks() == 1 && target.ranks() == 1 && strip.count == 1;
    let all = strip.len == source.local_count(0) && strip.len == target.local_count(0);
    (one && all).then_some(strip.len)
}

fn as_move(strip: &Strip, ends: [Which; 2]) -> Move {
    Move {
        len: strip.len as usize,
        count: strip.count as usize,
        ends: ends.map(|which| End::new(which, strip)),
    }
}

/// Memory of one rank, or of one packet: where it begins, and its
/// [strides](Nest::strides).
#[derive(Debug, Clone)]
pub(super) struct Part {
    pub(super) start: *mut u8,
    pub(super) strides: Vec<usize>,
}

/// The parts of one end: which one is meant follows from the slots.
#[derive(Debug, Clone)]
pub(super) struct Ends {
    pub(super) parts: Vec<Option<Part>>,
    pub(super) base: usize,
    pub(super) weights: Vec<usize>,
}

impl Ends {
    fn part(&self, slots: impl Iterator<Item = usize>) -> Option<&Part> {
        let weighted = slots.zip(&self.weights).map(|(slot, weight)| slot * weight);
        let place = self.base + weighted.sum::<usize>();
        self.parts.get(place).and_then(Option::as_ref)
    }
}

/// Between what a nest is run, and which way.
#[derive(Debug)]
pub(super) struct Trip<'a> {
    /// In the order of the ends of the nest.
    pub(super) ends: [&'a Ends; 2],
    /// From the second end to the first.
    pub(super) backwards: bool,
    /// Only what has these slots on the second end.
    pub(super) only: Option<&'a [usize]>,
}

impl Trip<'_> {
    fn takes(&self, axis: usize, strip: &Move) -> bool {
        self.only
            .is_none_or(|slots| slots[axis] == strip.ends[1].slot)
    }
}

/// One line of elements along the last axis.
struct Row<'a> {
    trip: &'a Trip<'a>,
    bytes: usize,
    /// Whether long pieces are copied past the caches.
    much: bool,
    /// For each slot of either end where the line begins.
    bases: [Vec<*mut u8>; 2],
    loom: Loom,
}

impl Row<'_> {
    fn base(&self, end: usize, at: &[(usize, usize)], slot: Option<usize>, last: usize) -> *mut u8 {
        let before = at[..last].iter().map(|(slot, _)| *slot);
        let Some(part) = self.trip.ends[end].part(before.chain(slot)) else {
            return std::ptr::null_mut();
        };
        let offsets = at[..last].iter().zip(&part.strides);
        let offset: usize = offsets.map(|((_, index), stride)| index * stride).sum();
        part.start.wrapping_add(offset * self.bytes)
    }

    fn enter(&mut self, at: &[Vec<(usize, usize)>; 2], slots: [usize; 2]) {
        for (end, (at, slots)) in at.iter().zip(slots).enumerate() {
            let last = at.len() - 1;
            let mut bases = std::mem::take(&mut self.bases[end]);
            bases.clear();
            bases.extend((0..slots).map(|slot| self.base(end, at, Some(slot), last)));
            self.bases[end] = bases;
        }
    }

    /// # Safety
    ///
    /// As [`Nest::run`].
    unsafe fn single(&self, at: &[Vec<(usize, usize)>; 2]) {
        let [one, other] = [0, 1].map(|end| self.base(end, &at[end], None, at[end].len()));
        // SAFETY: passed on to the caller.
        unsafe { self.copy([(one, 0), (other, 0)], 1, self.bytes) }
    }

    /// # Safety
    ///
    /// As [`Nest::run`].
    unsafe fn along(&mut self, axis: &Axis, number: usize) {
        // Rounds: strips of single pieces as threads, others one by one.
        let mut loom = std::mem::take(&mut self.loom);
        loom.clear();
        let mut others = false;
        for strip in axis
            .strips
            .iter()
            .filter(|strip| self.trip.takes(number, strip))
        {
            match strip.count {
                1 => loom.add(self.thread(strip)),
                _ => others = true,
            }
        }
        // SAFETY: passed on to the caller.
        unsafe { loom.weave(axis.rounds, self.much) }
        self.loom = loom;
        let takes = |strip: &&Move| self.trip.takes(number, strip);
        for round in 0..if others { axis.rounds } else { 0 } {
            let strips = axis.strips.iter().filter(|strip| strip.count > 1);
            for strip in strips.filter(takes) {
                // SAFETY: passed on to the caller.
                unsafe { self.strip(strip, round) }
            }
        }
        for strip in axis.rest.iter().filter(takes) {
            // SAFETY: passed on to the caller.
            unsafe { self.strip(strip, 0) }
        }
    }

    /// A strip of single pieces, one a round.
    fn thread(&self, strip: &Move) -> Thread {
        let [one, other] = [0, 1].map(|end| {
            let place = &strip.ends[end];
            let start = self.bases[end][place.slot].wrapping_add(place.at * self.bytes);
            (start, place.advance * self.bytes)
        });
        let (from, to, end) = match self.trip.backwards {
            true => (other, one, 0),
            false => (one, other, 1),
        };
        Thread {
            from,
            to,
            part: strip.ends[end].slot,
            len: strip.len * self.bytes,
        }
    }

    /// One round of a strip.
    ///
    /// # Safety
    ///
    /// As [`Nest::run`].
    #[inline]
    unsafe fn strip(&self, strip: &Move, round: usize) {
        let bytes = self.bytes;
        let ends = [0, 1].map(|end| {
            let place = &strip.ends[end];
            let offset = (place.at + round * place.advance) * bytes;
            let start = self.bases[end][place.slot].wrapping_add(offset);
            (start, place.step * bytes)
        });
        // SAFETY: passed on to the caller.
        unsafe { self.copy(ends, strip.count, strip.len * bytes) }
    }

    /// # Safety
    ///
    /// As [`Nest::run`].
    #[inline]
    unsafe fn copy(&self, [one, other]: [(*mut u8, usize); 2], count: usize, len: usize) {
        let (from, to) = match self.trip.backwards {
            true => (other, one),
            false => (one, other),
        };
        // SAFETY: passed on to the caller.
        unsafe {
            match count {
                1 => piece(from.0.cast_const(), to.0, len, self.much),
                _ => strided((from.0.cast_const(), from.1), to, (count, len)),
            }
        }
    }
}
