//! [`Blocking`]: into which blocks `C` is cut, so that little is read.
//!
//! The mathematics. `C` (m x n) is cut into `R` rows and `Q` columns of blocks.
//! Whoever computes a block reads `k` columns of its rows of `A` and `k` rows of
//! its columns of `B`, panel after panel of depth `p`; so all ranks together read
//!
//! ```text
//! k (m Q + n R) elements,
//! ```
//!
//! least if the blocks are as large as the memory allows and nearly square. A
//! rank has in memory its block of `h` x `w`, and of both panels the present one
//! and the next:
//!
//! ```text
//! h w + 2 p (h + w) elements.
//! ```
//!
//! With panels as deep as `k`, one that is needed for the next block, too, is
//! kept: going down a column of blocks, a rank reads its columns of `B` once, and
//! `n R` becomes `n` times the rows of the grid of ranks; going along a row of
//! blocks, the same for `A`. That is better where an operand nearly fits.
//!
//! Shallow panels leave more memory for the block, but runs in the file are as
//! short as the panel is shallow, and a kernel on thin blocks spends its time on
//! moving data. Both are told by letting an extent `s` of block or panel (up to
//! [`GOOD`]) cost as much as `s +` [`START`]. A chunk that can be had only whole is decoded
//! for every panel that has a part of it. Of all grids of ranks that divide the
//! work evenly, cuts and depths, the cheapest is taken. If no memory were enough,
//! the result is the smallest that there is.

use super::kernel::scratch;
use super::number::Number;
use crate::fit::largest;

/// Deeper panels and larger blocks gain nothing but the bytes that are not read.
const GOOD: u64 = 512;

/// A chunk that can be had only whole is decoded for every panel with a part of it: along
/// each axis at most so often.
const TIMES: u64 = 32;

/// What an access or a call of the kernel costs, in elements.
const START: f64 = 32.0;

/// What a sieving read or write may use besides its buffer.
pub(super) const STAGING: u64 = 512 << 10;

/// What the blocks depend on.
#[derive(Debug, Clone, Copy)]
pub(super) struct Situation {
    /// The rows of `C`, its columns, and what is summed over.
    pub(super) extents: [u64; 3],
    pub(super) ranks: u64,
    /// The threads of a rank.
    pub(super) threads: usize,
    /// The bytes that a rank may have.
    pub(super) limit: u64,
    /// What chunks of `A`, of `B` and of `C` take that can be had only whole.
    pub(super) decoded: [u64; 3],
    /// The rows and columns of such chunks of `A` and of `B`; 1 where there are none.
    pub(super) chunks: [(u64, u64); 2],
}

impl Situation {
    /// The least height, width and depth that decode no chunk too often.
    fn least(&self) -> [u64; 3] {
        let [(rows, left), (right, columns)] = self.chunks;
        let part = |chunk: u64, extent: u64| chunk.div_ceil(TIMES).clamp(1, extent.max(1));
        let [m, n, k] = self.extents;
        [part(rows, m), part(columns, n), part(left.max(right), k)]
    }
}

/// The operand whose panel stays for the next block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kept {
    Neither,
    A,
    B,
}

/// Into which blocks `C` is cut, and who has which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Blocking {
    /// The rows and columns of the grid of ranks.
    pub(super) grid: (u64, u64),
    /// The rows and columns of blocks that a rank has.
    pub(super) own: (u64, u64),
    /// The depth of a panel.
    pub(super) depth: u64,
    pub(super) kept: Kept,
}

impl Blocking {
    /// The cheapest that fits; the smallest if none does.
    pub(super) fn choose<T: Number>(situation: &Situation) -> Self {
        let [m, n, k] = situation.extents;
        let mut best = None;
        let mut least_cost = f64::INFINITY;
        for grid in even_grids(situation) {
            let [_, _, least_depth] = situation.least();
            let [(_, left), (right, _)] = situation.chunks;
            let deepest = GOOD.max(left).max(right);
            let halves = (0..u64::BITS).map(|e| deepest >> e);
            let depths = halves.take_while(|depth| *depth >= least_depth);
            let shallow = depths.map(|depth| (depth.min(k.max(1)), Kept::Neither));
            let deep = [Kept::A, Kept::B].map(|kept| (k.max(1), kept));
            let (rows, columns) = (m.div_ceil(grid.0).max(1), n.div_ceil(grid.1).max(1));
            for (depth, kept) in shallow.chain(deep) {
                let with = |height: u64, width: u64| Self {
                    grid,
                    own: (rows.div_ceil(height), columns.div_ceil(width)),
                    depth,
                    kept,
                };
                let thinnest = |height: u64| with(height, 1).need::<T>(situation);
                let Some(mut height) = tallest(rows, situation.limit, thinnest) else {
                    continue;
                };
                // Cuts only add to what is read.
                while with(height, columns).cost(situation) < least_cost {
                    let need = |width: u64| with(height, width).need::<T>(situation);
                    if let Some(width) = tallest(columns, situation.limit, need) {
                        let candidate = with(height, width);
                        let cost = candidate.cost(situation);
                        if cost < least_cost {
                            (best, least_cost) = (Some(candidate), cost);
                        }
                    }
                    if height == 1 {
                        break;
                    }
                    // That of one cut more; of many, some more.
                    let lower = rows.div_ceil(rows.div_ceil(height) + 1);
                    height = lower.min(height - 1 - height / 128);
                }
            }
        }
        best.unwrap_or_else(|| Self::smallest::<T>(situation))
    }

    /// That with the least need: blocks of one element, if chunks allow that.
    fn smallest<T: Number>(situation: &Situation) -> Self {
        let [m, n, k] = situation.extents;
        let [height, width, depth] = situation.least();
        let depths = [
            (depth, Kept::Neither),
            (k.max(1), Kept::A),
            (k.max(1), Kept::B),
        ];
        let single = |grid: (u64, u64)| {
            let own = (
                m.div_ceil(grid.0 * height).max(1),
                n.div_ceil(grid.1 * width).max(1),
            );
            depths.map(|(depth, kept)| Self {
                grid,
                own,
                depth,
                kept,
            })
        };
        let all = even_grids(situation).into_iter().flat_map(single);
        all.min_by_key(|blocking| blocking.need::<T>(situation))
            .expect("one rank is a grid")
    }

    /// The largest block.
    pub(super) fn block(&self, situation: &Situation) -> (u64, u64) {
        let [m, n, _] = situation.extents;
        let (down, across) = self.cuts();
        (m.div_ceil(down), n.div_ceil(across))
    }

    /// The rows and columns of blocks of all ranks.
    pub(super) fn cuts(&self) -> (u64, u64) {
        let cuts = |ranks: u64, own: u64| ranks.saturating_mul(own).max(1);
        (cuts(self.grid.0, self.own.0), cuts(self.grid.1, self.own.1))
    }

    /// How many panels each block has.
    pub(super) fn panels(&self, situation: &Situation) -> u64 {
        situation.extents[2].div_ceil(self.depth)
    }

    /// The bytes that a rank needs.
    pub(super) fn need<T: Number>(&self, situation: &Situation) -> u64 {
        let (h, w) = self.block(situation);
        if h == 0 || w == 0 {
            return 0;
        }
        let size = size_of::<T>() as u64;
        let bytes = |elements: u64| elements.saturating_mul(size);
        let (block, left, right) = (
            bytes(h.saturating_mul(w)),
            bytes(h.saturating_mul(self.depth)),
            bytes(w.saturating_mul(self.depth)),
        );
        // The last panel of all needs no successor.
        let (down, across) = self.own;
        let all = down
            .saturating_mul(across)
            .saturating_mul(self.panels(situation));
        let of_a = if self.kept == Kept::A { down } else { all }.clamp(1, 2);
        let of_b = if self.kept == Kept::B { across } else { all }.clamp(1, 2);
        // Deep panels of two blocks are read at a time, of others those of one sweep.
        let (sweeps_of_a, sweeps_of_b) = match self.panels(situation) {
            1 => (of_a, of_b),
            _ => (1, 1),
        };
        let [chunks_of_a, chunks_of_b, chunks_of_c] = situation.decoded;
        let depth = [h, w, self.depth];
        let parts = [
            block,
            left.saturating_mul(of_a),
            right.saturating_mul(of_b),
            left.min(STAGING).saturating_mul(of_a),
            right.min(STAGING).saturating_mul(of_b),
            block.min(STAGING),
            scratch::<T>(depth, situation.threads),
            chunks_of_a.saturating_mul(sweeps_of_a),
            chunks_of_b.saturating_mul(sweeps_of_b),
            chunks_of_c,
        ];
        parts.into_iter().fold(0, u64::saturating_add)
    }

    /// How often all ranks together read each element of `A`, and of `B`.
    pub(super) fn reads(&self, situation: &Situation) -> (u64, u64) {
        let [m, n, _] = situation.extents;
        let (down, across) = self.cuts();
        // Blocks without elements read nothing.
        let (down, across) = (down.min(m), across.min(n));
        match self.kept {
            Kept::Neither => (across, down),
            Kept::A => (self.grid.1.min(n), down),
            Kept::B => (across, self.grid.0.min(m)),
        }
    }

    fn cost(&self, situation: &Situation) -> f64 {
        let [m, n, k] = situation.extents;
        let (of_a, of_b) = self.reads(situation);
        let (h, w) = self.block(situation);
        let start = |extent: u64| 1.0 + START / extent.clamp(1, GOOD) as f64;
        let [(rows, left), (right, columns)] = situation.chunks;
        let often = |chunk: u64, extent: u64| (chunk as f64 / extent.max(1) as f64).max(1.0);
        let (a, b) = (
            m as f64 * of_a as f64 * often(rows, h) * often(left, self.depth),
            n as f64 * of_b as f64 * often(columns, w) * often(right, self.depth),
        );
        let read = a + b;
        k.max(1) as f64 * read * start(self.depth) * start(h) * start(w)
    }
}

/// The largest extent that fits. All of it may fit where a little less does not:
/// then no next panel is needed.
fn tallest(most: u64, limit: u64, need: impl Fn(u64) -> u64) -> Option<u64> {
    match need(most) <= limit {
        true => Some(most),
        false => largest(most, limit, need),
    }
}

/// The grids of all ranks that give no rank much more than its share.
fn even_grids(situation: &Situation) -> Vec<(u64, u64)> {
    let [m, n, _] = situation.extents;
    let ranks = situation.ranks;
    let grids: Vec<(u64, u64)> = (1..=ranks)
        .filter(|rows| ranks.is_multiple_of(*rows))
        .map(|rows| (rows, ranks / rows))
        .collect();
    let share =
        |(rows, columns): &(u64, u64)| m.div_ceil(*rows) as f64 * n.div_ceil(*columns) as f64;
    let least = grids.iter().map(share).fold(f64::INFINITY, f64::min);
    let even = |grid: &(u64, u64)| share(grid) <= 1.05 * least;
    grids.into_iter().filter(even).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn situation(extents: [u64; 3], ranks: u64, limit: u64) -> Situation {
        Situation {
            extents,
            ranks,
            threads: 1,
            limit,
            decoded: [0; 3],
            chunks: [(1, 1); 2],
        }
    }

    #[test]
    fn chunks_are_not_decoded_for_every_panel() {
        let chunked = Situation {
            decoded: [32 << 20; 3],
            chunks: [(4, 1 << 20), (1 << 20, 4)],
            ..situation([4, 4, 1 << 22], 1, 512 << 20)
        };
        assert!(Blocking::choose::<f32>(&chunked).depth >= 1 << 20);
        for ranks in [1, 3] {
            let poor = Situation {
                ranks,
                limit: 0,
                ..chunked
            };
            let limit = Blocking::choose::<f32>(&poor).need::<f32>(&poor);
            assert!(limit < 110 << 20, "{limit}");
            let poor = Situation { limit, ..poor };
            let depth = Blocking::choose::<f32>(&poor).depth;
            assert!(depth >= (1 << 20) / TIMES, "{depth}");
        }
    }

    #[test]
    fn what_fits_is_read_once() {
        for limit in [16 << 20, 64 << 20] {
            let fits = situation([1000, 900, 1100], 1, limit);
            let blocking = Blocking::choose::<f64>(&fits);
            assert_eq!(blocking.reads(&fits), (1, 1));
            // So that reading is beside computing.
            let blocks = blocking.own.0 * blocking.own.1;
            assert!(blocking.panels(&fits) * blocks > 1);
        }
    }

    #[test]
    fn more_memory_means_fewer_bytes() {
        let mut last = f64::INFINITY;
        for limit in [1 << 16, 1 << 20, 8 << 20, 48 << 20, 200 << 20] {
            for ranks in [1, 2, 6] {
                let at = situation([4096, 3000, 5000], ranks, limit);
                let blocking = Blocking::choose::<f64>(&at);
                assert!(blocking.need::<f64>(&at) <= limit, "{at:?} {blocking:?}");
                if ranks == 1 {
                    let (of_a, of_b) = blocking.reads(&at);
                    let read = (4096 * of_a + 3000 * of_b) as f64;
                    assert!(read <= last, "{at:?} {blocking:?}");
                    last = read;
                }
            }
        }
    }

    #[test]
    fn blocks_come_close_to_the_optimum() {
        // A square block of all the memory s s elements: k (m n + n m) / s.
        let at = situation([8192, 8192, 8192], 1, 64 << 20);
        let (of_a, of_b) = Blocking::choose::<f64>(&at).reads(&at);
        let side = ((64u64 << 20) as f64 / 8.0).sqrt();
        assert!(
            (of_a + of_b) as f64 <= 1.4 * 2.0 * 8192.0 / side,
            "{of_a} {of_b}"
        );
    }

    #[test]
    fn an_operand_that_fits_is_read_once() {
        let tall = situation([1_000_000, 200, 200], 1, 2 << 20);
        let blocking = Blocking::choose::<f64>(&tall);
        assert_eq!((blocking.kept, blocking.reads(&tall)), (Kept::B, (1, 1)));
        let wide = situation([200, 1_000_000, 200], 2, 4 << 20);
        let blocking = Blocking::choose::<f32>(&wide);
        assert_eq!(blocking.reads(&wide).1, 1, "{blocking:?}");
    }

    #[test]
    fn any_extents_have_a_least_need() {
        for extents in [
            [0, 5, 5],
            [5, 0, 5],
            [5, 5, 0],
            [1, 1, 1],
            [1 << 40, 1 << 40, 1 << 40],
        ] {
            let at = situation(extents, 3, 0);
            let blocking = Blocking::choose::<f32>(&at);
            let need = blocking.need::<f32>(&at);
            let enough = Situation { limit: need, ..at };
            assert!(Blocking::choose::<f32>(&enough).need::<f32>(&enough) <= need);
            assert!(need < 4096, "{extents:?}: {need}");
        }
    }
}
