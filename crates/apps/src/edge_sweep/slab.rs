//! [`Slab`]: some edges of each rank, with local numbers of their nodes, and the
//! schedule with which all ranks read and change these.

use outcore::{Array, Combine, Comm, Inspector, Result, Schedule};

use super::kernel::flow;
use super::localizer::Localizer;
use super::reader::EdgeReader;
use super::room::Room;
use crate::float::Float;

/// Edges between local numbers, and the nodes that have these.
#[derive(Debug)]
pub(super) struct Numbered {
    edges: Vec<[u32; 2]>,
    nodes: Vec<u64>,
}

/// Edges, and where their nodes are.
#[derive(Debug)]
pub(super) struct Slab {
    edges: Vec<[u32; 2]>,
    schedule: Schedule,
}

/// The bytes of an edge between local numbers, and of the number of a node.
const EDGE: u64 = 8;
const NODE: u64 = 8;

impl Numbered {
    /// Takes as many edges as fit `bytes`.
    pub(super) fn take(
        reader: &mut EdgeReader<'_>,
        nodes: u64,
        room: &Room,
        bytes: u64,
    ) -> Result<Self> {
        // A third is for the table while nodes get numbers. When they have them
        // the schedule takes its place, and then values that of the nodes.
        let places = Localizer::places(bytes / 3);
        let node = room.entry + NODE.max(2 * room.record);
        let bytes = bytes - room.tables.min(bytes);
        let numbering = bytes.saturating_sub(4 * places);
        let left = reader.left();
        let most = left.min(bytes / EDGE);
        let mut localizer = Localizer::new(nodes, places, left.saturating_mul(2).min(nodes));
        let mut edges: Vec<[u32; 2]> = Vec::with_capacity(most as usize);
        loop {
            let piece = reader.piece()?;
            let mut taken = 0;
            for [a, b] in piece {
                let (after, named) = (edges.len() as u64 + 1, localizer.count() + 2);
                let fits = EDGE * after + NODE * named <= numbering
                    && EDGE * after + node * named <= bytes
                    && named <= Localizer::most(places);
                // One edge always does.
                if !fits && after > 1 {
                    break;
                }
                edges.push([localizer.number(*a), localizer.number(*b)]);
                taken += 1;
            }
            let whole = taken == piece.len();
            let end = piece.is_empty();
            reader.used(taken);
            if end || !whole {
                break;
            }
        }
        Ok(Self {
            edges,
            nodes: localizer.into_nodes(),
        })
    }

    pub(super) fn is_empty(&self) -> bool {
        self.edges.is_empty()
    }

    /// The bytes that it takes if it is kept, at most.
    pub(super) fn kept_bytes(&self, room: &Room) -> u64 {
        EDGE * self.edges.len() as u64 + room.entry * self.nodes.len() as u64 + room.tables
    }

    /// Collective: the schedule of the nodes, of which there are so many, and
    /// which are forgotten.
    pub(super) fn scheduled(mut self, comm: &Comm, nodes: u64, room: &Room) -> Result<Slab> {
        let inspector = Inspector::default().window(room.window);
        let schedule = inspector.of_shape(comm, &[nodes], &self.nodes)?;
        self.edges.shrink_to_fit();
        Ok(Slab {
            edges: self.edges,
            schedule,
        })
    }
}

impl Slab {
    /// How many edges of this rank it has.
    pub(super) fn edges(&self) -> u64 {
        self.edges.len() as u64
    }

    /// The bytes that it takes.
    pub(super) fn bytes(&self) -> u64 {
        EDGE * self.edges() + self.schedule.memory() as u64
    }

    /// Collective: adds to `new` what flows along the edges between values in
    /// `old`.
    pub(super) fn sweep<T: Float + outcore::Number>(
        &self,
        comm: &Comm,
        (old, new): (&Array, &Array),
        step_size: f64,
        room: &Room,
    ) -> Result<()> {
        let components = old.shape()[1..].iter().product::<u64>() as usize;
        let count = self.schedule.count() * components;
        let mut values = vec![T::of(0.0); count];
        let call = self.schedule.call().budget(&room.calls);
        call.read(comm, old, &mut values)?;
        let mut sums = vec![T::of(0.0); count];
        let step_size = T::of(step_size);
        flow(&self.edges, &values, &mut sums, components, step_size);
        drop(values);
        call.accumulate(comm, new, &sums, Combine::Add)?;
        Ok(())
    }
}
