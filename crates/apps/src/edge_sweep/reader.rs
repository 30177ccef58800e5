//! [`EdgeReader`]: a stretch of the edges, piece by piece.

use std::ops::Range;

use bytemuck::Zeroable;
use outcore::{Array, AxisSection, Element, ElementType, Error, Result, Section};

use super::problem::wrong;

/// Goes through a stretch of the edges, whatever their type and layout.
#[derive(Debug)]
pub(super) struct EdgeReader<'a> {
    edges: &'a Array,
    nodes: u64,
    /// What was not read yet.
    rest: Range<u64>,
    /// Edges of a piece.
    most: u64,
    pairs: Vec<[u64; 2]>,
    /// How many of these are used.
    used: usize,
}

/// The bytes that an edge of a piece takes: as it is read, and as a pair.
pub(super) const PIECE_EDGE: u64 = 32;

impl<'a> EdgeReader<'a> {
    /// Of a mesh of `nodes` nodes, in pieces of so many edges.
    pub(super) fn new(edges: &'a Array, nodes: u64, stretch: Range<u64>, most: u64) -> Self {
        Self {
            edges,
            nodes,
            rest: stretch,
            most: most.max(1),
            pairs: Vec::new(),
            used: 0,
        }
    }

    /// How many edges were not used yet.
    pub(super) fn left(&self) -> u64 {
        (self.pairs.len() - self.used) as u64 + (self.rest.end - self.rest.start)
    }

    /// Edges that were not used yet, all of whose nodes exist; none at the end.
    pub(super) fn piece(&mut self) -> Result<&[[u64; 2]]> {
        if self.used == self.pairs.len() && !self.rest.is_empty() {
            let end = self.rest.end.min(self.rest.start + self.most);
            let piece = self.rest.start..end;
            match self.edges.element_type() {
                ElementType::U32 => self.read::<u32>(&piece)?,
                ElementType::U64 => self.read::<u64>(&piece)?,
                ElementType::I32 => self.read::<i32>(&piece)?,
                ElementType::I64 => self.read::<i64>(&piece)?,
                other => {
                    let problem = format!("edges are pairs of node numbers, not {other}");
                    return Err(wrong(self.edges, problem));
                }
            }
            self.rest.start = end;
            self.used = 0;
        }
        Ok(&self.pairs[self.used..])
    }

    /// So many of the last piece are used.
    pub(super) fn used(&mut self, count: usize) {
        self.used += count;
    }

    fn read<T: NodeNumber>(&mut self, piece: &Range<u64>) -> Result<()> {
        let count = (piece.end - piece.start) as usize;
        let axes = vec![
            AxisSection::span(piece.start, piece.end),
            AxisSection::span(0, 2),
        ];
        let section = Section::new(axes).map_err(|error| Error::Invalid(error.to_string()))?;
        let mut values = vec![T::zeroed(); 2 * count];
        self.edges.read_into(&section, &mut values)?;
        self.pairs.clear();
        self.pairs.reserve_exact(count);
        if self.edges.layout().slowest_first() == [0, 1] {
            let pairs = values.as_chunks::<2>().0.iter();
            self.pairs.extend(pairs.map(|pair| pair.map(T::number)));
        } else {
            let (first, second) = values.split_at(count);
            let pairs = first.iter().zip(second);
            self.pairs
                .extend(pairs.map(|(a, b)| [a.number(), b.number()]));
        }
        // What is not negative is below 2^63, and what is negative above.
        let missing = |pair: &[u64; 2]| pair[0].max(pair[1]) >= self.nodes;
        let Some(at) = self.pairs.iter().position(missing) else {
            return Ok(());
        };
        let edge = piece.start + at as u64;
        let [a, b] = self.pairs[at];
        let node = if a >= self.nodes { a } else { b };
        let there = match self.nodes {
            0 => "there are no nodes".to_string(),
            1 => "there is only node 0".to_string(),
            nodes => format!("nodes have the numbers 0 to {}", nodes - 1),
        };
        self.pairs.clear();
        Err(wrong(
            self.edges,
            format!("edge {edge} names node {}, but {there}", T::shown(node)),
        ))
    }
}

/// The types of node numbers.
trait NodeNumber: Element + Zeroable + Copy {
    /// Negative numbers are beyond all nodes.
    fn number(self) -> u64;

    /// The number as it stood in the file.
    fn shown(number: u64) -> String;
}

macro_rules! node_numbers {
    ($($type:ty)*) => {$(
        impl NodeNumber for $type {
            #[inline(always)]
            fn number(self) -> u64 {
                self as u64
            }

            fn shown(number: u64) -> String {
                (number as $type).to_string()
            }
        }
    )*};
}

node_numbers! { u32 u64 i32 i64 }
