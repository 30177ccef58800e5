//! [`Localizer`]: local numbers for the nodes of a slab, as PARTI gives them
//! (Ponnusamy, Saltz, Choudhary, Hwang and Fox 1993).
//!
//! Nodes are numbered in the order in which edges name them first. A table of
//! numbers, found by a hash of the node, says which nodes have one already; it
//! never fills up more than three quarters. If it has a place for every node
//! there is, the node itself is the hash.

/// The numbers of the nodes of one slab.
#[derive(Debug)]
pub(super) struct Localizer {
    /// A local number and one, or 0.
    table: Vec<u32>,
    /// How far hashes are shifted; `None` if nodes are their own.
    shift: Option<u32>,
    /// The node of each local number.
    nodes: Vec<u64>,
}

/// Places in the table for each number that may be given.
const SPARE: u64 = 4;
const TAKEN: u64 = 3;

impl Localizer {
    /// The places of a table that takes at most so many bytes.
    pub(super) fn places(bytes: u64) -> u64 {
        let places = (bytes / 4).clamp(8, 1 << 31);
        1 << places.ilog2()
    }

    /// How many nodes get numbers in a table with so many places.
    pub(super) fn most(places: u64) -> u64 {
        places / SPARE * TAKEN
    }

    /// For at most `most` of `nodes` nodes, with a table of `places`, a power of
    /// two of which three quarters are enough for them.
    pub(super) fn new(nodes: u64, places: u64, most: u64) -> Self {
        let shift = (nodes > places).then(|| 64 - places.trailing_zeros());
        Self {
            table: vec![0; places as usize],
            shift,
            nodes: Vec::with_capacity(most.min(Self::most(places)) as usize),
        }
    }

    /// How many nodes have numbers.
    pub(super) fn count(&self) -> u64 {
        self.nodes.len() as u64
    }

    /// The number of a node.
    #[inline]
    pub(super) fn number(&mut self, node: u64) -> u32 {
        let mask = self.table.len() - 1;
        let mut place = match self.shift {
            None => node as usize,
            Some(shift) => (node.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> shift) as usize,
        };
        loop {
            match self.table[place & mask] {
                0 => {
                    self.nodes.push(node);
                    let count = self.nodes.len() as u32;
                    self.table[place & mask] = count;
                    return count - 1;
                }
                taken if self.nodes[taken as usize - 1] == node => return taken - 1,
                _ => place += 1,
            }
        }
    }

    /// The nodes in the order of their numbers.
    pub(super) fn into_nodes(self) -> Vec<u64> {
        self.nodes
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashMap;

    #[test]
    fn every_node_has_one_number() {
        for (nodes, bytes) in [(40, 1000), (1 << 40, 4096), (1000, 4096), (1 << 62, 64)] {
            let places = Localizer::places(bytes);
            let mut localizer = Localizer::new(nodes, places, u64::MAX);
            let mut numbers = HashMap::new();
            let mut state = 7u64;
            while localizer.count() < Localizer::most(places).min(nodes) {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                let node = (state >> 1) % nodes / 3;
                let fresh = localizer.count() as u32;
                let number = localizer.number(node);
                assert_eq!(number, *numbers.entry(node).or_insert(fresh));
                assert_eq!(localizer.number(node), number);
                if numbers.len() as u64 > nodes / 3 {
                    break;
                }
            }
            let found = localizer.into_nodes();
            assert_eq!(found.len(), numbers.len());
            for (node, number) in numbers {
                assert_eq!(found[number as usize], node);
            }
        }
    }
}
