//! [`Mesh`]: a mesh that is made up, to try things out on.
//!
//! Nodes stand in rows of `w = ceil(sqrt(n))`; each is joined with those to its
//! right, below, and below to the right, as far as these exist: triangles. Then
//! nodes are renumbered at random, so that the nodes of an edge stand anywhere.
//! The new number of a node is computed from the old one alone (a Feistel
//! network: four rounds on the halves of the number, repeated until the result
//! is below `n`), and which edges a node begins follows from closed formulas; so
//! any rank makes any part of a mesh of any size.

use std::ops::Range;

use outcore::{Array, ArrayDescriptor, AxisSection, Comm, ElementType, Error, Result, Section};

use super::copy::share;
use super::problem::wrong;

/// A triangulated mesh with nodes in random order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Mesh {
    /// How many nodes it has.
    pub nodes: u64,
    /// Other seeds give other orders.
    pub seed: u64,
}

/// Edges that are made at a time.
const PIECE: u64 = 1 << 15;

impl Mesh {
    /// The nodes of a row.
    fn width(&self) -> u64 {
        let root = self.nodes.isqrt();
        root + u64::from(root * root < self.nodes)
    }

    /// How many edges begin at nodes before this one, in the order of rows.
    fn edges_before(&self, node: u64) -> u64 {
        let width = self.width();
        // Nodes below `end` that are not the last of their row.
        let inner = |end: u64| end - end.checked_div(width).unwrap_or(0);
        let right = inner(node.min(self.nodes.saturating_sub(1)));
        let down = node.min(self.nodes.saturating_sub(width));
        let diagonal = inner(node.min(self.nodes.saturating_sub(width + 1)));
        right + down + diagonal
    }

    /// How many edges it has.
    pub fn edges(&self) -> u64 {
        self.edges_before(self.nodes)
    }

    /// The array of its edges: numbers are as short as they can be.
    pub fn edge_descriptor(&self) -> ArrayDescriptor {
        let number = match self.nodes <= 1 << 32 {
            true => ElementType::U32,
            false => ElementType::U64,
        };
        ArrayDescriptor::new(&[self.edges(), 2], number)
    }

    /// Collective: writes its edges into an array like that. `progress` gets the
    /// bytes that this rank has written.
    pub fn write_edges(&self, comm: &Comm, edges: &Array, progress: &dyn Fn(u64)) -> Result<()> {
        let wanted = self.edge_descriptor();
        let fits = match edges.shape() == wanted.shape
            && edges.element_type() == wanted.element_type
            && edges.layout().slowest_first() == [0, 1]
        {
            true => Ok(()),
            false => Err(wrong(
                edges,
                format!(
                    "a mesh of {} nodes has {} pairs of {} numbers, in row order",
                    self.nodes,
                    self.edges(),
                    wanted.element_type
                ),
            )),
        };
        comm.agree(fits)?;
        Ok(comm.agree(self.write_part(edges, share(self.nodes, comm), progress))?)
    }

    fn write_part(&self, edges: &Array, nodes: Range<u64>, progress: &dyn Fn(u64)) -> Result<()> {
        let order = Shuffle::new(self.nodes, self.seed);
        let mut start = nodes.start;
        while start < nodes.end {
            let end = nodes.end.min(start + PIECE);
            let pairs: Vec<u64> = (start..end)
                .flat_map(|node| self.of_node(node))
                .flat_map(|(a, b)| [order.of(a), order.of(b)])
                .collect();
            let (first, last) = (self.edges_before(start), self.edges_before(end));
            let axes = vec![AxisSection::span(first, last), AxisSection::span(0, 2)];
            let section = Section::new(axes).map_err(|error| Error::Invalid(error.to_string()))?;
            match edges.element_type() {
                ElementType::U64 => edges.write(&section, &pairs)?,
                _ => {
                    let short: Vec<u32> = pairs.iter().map(|number| *number as u32).collect();
                    edges.write(&section, &short)?;
                }
            }
            progress(section.count() * edges.layout().element_size());
            start = end;
        }
        Ok(())
    }

    /// The edges that begin at a node, before nodes are renumbered.
    fn of_node(&self, node: u64) -> impl Iterator<Item = (u64, u64)> + use<> {
        let (nodes, width) = (self.nodes, self.width());
        let inner = node % width != width - 1;
        let steps = [(1, inner), (width, true), (width + 1, inner)];
        steps
            .into_iter()
            .filter(move |(step, may)| *may && node + step < nodes)
            .map(move |(step, _)| (node, node + step))
    }
}

/// A random order of the numbers below `count`.
#[derive(Debug)]
struct Shuffle {
    count: u64,
    /// Bits of half a number.
    half: u32,
    keys: [u64; 4],
}

impl Shuffle {
    fn new(count: u64, seed: u64) -> Self {
        let bits = 64 - count.saturating_sub(1).leading_zeros();
        let key = |round: u64| scramble(seed.wrapping_mul(4).wrapping_add(round));
        Self {
            count,
            half: bits.div_ceil(2).max(1),
            keys: [0, 1, 2, 3].map(key),
        }
    }

    /// The new number of one below the count.
    fn of(&self, number: u64) -> u64 {
        let mask = (1 << self.half) - 1;
        let mut number = number;
        loop {
            let (mut left, mut right) = (number >> self.half, number & mask);
            for key in self.keys {
                (left, right) = (right, left ^ (scramble(right ^ key) & mask));
            }
            number = left << self.half | right;
            if number < self.count {
                return number;
            }
        }
    }
}

/// Mixes all bits of a number (the finalizer of SplitMix64).
fn scramble(mut number: u64) -> u64 {
    number = number.wrapping_add(0x9E37_79B9_7F4A_7C15);
    number = (number ^ (number >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    number = (number ^ (number >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    number ^ (number >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_shuffled_without_loss() {
        for count in [0, 1, 2, 3, 17, 256, 1000] {
            let order = Shuffle::new(count, 5);
            let mut all: Vec<u64> = (0..count).map(|number| order.of(number)).collect();
            assert!(count < 17 || !all.is_sorted());
            all.sort_unstable();
            assert!(all.into_iter().eq(0..count));
        }
    }

    #[test]
    fn edges_are_counted_by_formulas() {
        for nodes in 0..150 {
            let mesh = Mesh { nodes, seed: 0 };
            let mut edges = 0;
            for node in 0..nodes {
                assert_eq!(mesh.edges_before(node), edges, "{node} of {nodes}");
                edges += mesh.of_node(node).count() as u64;
            }
            assert_eq!(mesh.edges(), edges, "{nodes}");
        }
        // 10 rows of 10: 90 along rows, 90 across, 81 diagonals.
        let mesh = Mesh {
            nodes: 100,
            seed: 0,
        };
        assert_eq!(mesh.edges(), 261);
    }
}
