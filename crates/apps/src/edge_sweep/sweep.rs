//! [`sweep_edges`]: step after step, slab after slab.

use outcore::{Array, Comm, ElementType, Error, Number, Op, Result, shape_text};

use super::copy::{copy, share};
use super::problem::{EdgeSweep, Swept, check_mesh};
use super::reader::{EdgeReader, PIECE_EDGE};
use super::room::Room;
use super::slab::{Numbered, Slab};
use crate::file_order::check_alike;
use crate::float::Float;
use crate::resources::Resources;

/// What part of the memory for slabs one of them has while all are kept.
const KEPT_SLAB: u64 = 4;

/// Collective: lets values flow along edges. The first of `values` has those of
/// the nodes after the steps that are done; the two arrays, both in row order,
/// take turns. After each step `after` is called by all ranks with the number of
/// steps that are done, and with the array that has their values.
///
/// Of `progress` it is told the bytes of the edges that were gone through.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// use outcore_apps::Resources;
/// use outcore_apps::edge_sweep::{EdgeSweep, Mesh, sweep_edges};
/// # let directory = tempfile::tempdir()?;
/// # let name = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
/// let mesh = Mesh { nodes: 1000, seed: 1 };
/// let edges = Array::create(&name("edges.oc"), &mesh.edge_descriptor())?;
/// let nodes = ArrayDescriptor::new(&[1000], ElementType::F64);
/// let values = [Array::create(&name("a.oc"), &nodes)?, Array::create(&name("b.oc"), &nodes)?];
/// values[0].write(&values[0].section("123")?, &[1.0])?;
/// let sweep = EdgeSweep { done: 0, steps: 10, step_size: 0.125 };
/// let swept = outcore::run(2, |comm| {
///     mesh.write_edges(comm, &edges, &|_| ())?;
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     sweep_edges(comm, &edges, [&values[0], &values[1]], &sweep, &resources, &|_, _| Ok(()))
/// })?;
/// let result = &values[swept[0].holder];
/// let sum: f64 = result.read::<f64>(&result.whole())?.iter().sum();
/// assert_eq!(sum, 1.0); // Nothing gets lost.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn sweep_edges(
    comm: &Comm,
    edges: &Array,
    values: [&Array; 2],
    sweep: &EdgeSweep,
    resources: &Resources<'_>,
    after: &dyn Fn(u64, &Array) -> Result<()>,
) -> Result<Swept> {
    // 1. What cannot be done.
    sweep.check()?;
    check_mesh(edges, values[0])?;
    check_alike(values[0], values[1])?;
    if let Some(array) = values.iter().find(|array| !is_in_row_order(array)) {
        return Err(Error::Invalid(format!(
            "{} ({} in {} layout): values that flow must be in row order",
            array.name(),
            shape_text(array.shape()),
            array.descriptor().arrangement
        )));
    }
    // 2. What the memory is for.
    let room = Room::of(comm, (values[0], &[values[1], edges]), resources)?;
    let steps = Steps {
        comm,
        edges,
        values,
        room: &room,
        resources,
    };
    match values[0].element_type() {
        ElementType::F32 => steps.run::<f32>(sweep, after),
        _ => steps.run::<f64>(sweep, after),
    }
}

fn is_in_row_order(array: &Array) -> bool {
    array.layout().slowest_first().is_sorted() && array.layout().tile().is_none()
}

/// Everything that stays the same.
struct Steps<'a> {
    comm: &'a Comm,
    edges: &'a Array,
    values: [&'a Array; 2],
    room: &'a Room,
    resources: &'a Resources<'a>,
}

/// The slabs of all edges, or none if they do not fit.
#[derive(Debug)]
enum Kept {
    /// Those so far, and their bytes.
    SoFar(Vec<Slab>, u64),
    All(Vec<Slab>),
    No,
}

impl Steps<'_> {
    fn run<T: Float + Number>(
        &self,
        sweep: &EdgeSweep,
        after: &dyn Fn(u64, &Array) -> Result<()>,
    ) -> Result<Swept> {
        let mut kept = Kept::SoFar(Vec::new(), 0);
        let mut swept = Swept {
            holder: 0,
            slabs: 0,
            kept: false,
        };
        for step in sweep.done..sweep.steps {
            let [old, new] = match swept.holder {
                0 => self.values,
                _ => [self.values[1], self.values[0]],
            };
            // 1. What does not flow stays.
            copy::<T>(self.comm, (old, new), self.room.piece)?;
            // 2. What flows.
            let turn = |slab: &Slab| {
                slab.sweep::<T>(self.comm, (old, new), sweep.step_size, self.room)?;
                self.tell(slab);
                Ok(())
            };
            swept.slabs = match &kept {
                Kept::All(slabs) => {
                    slabs.iter().try_for_each(turn)?;
                    slabs.len() as u64
                }
                _ => {
                    let last = step + 1 == sweep.steps;
                    let slabs;
                    (kept, slabs) = self.pass(kept, last, turn)?;
                    slabs
                }
            };
            swept.holder = 1 - swept.holder;
            // 3. Whatever else is to be done with the values.
            after(step + 1, new)?;
        }
        swept.kept = matches!(kept, Kept::All(_));
        Ok(swept)
    }

    /// Collective: makes slab after slab of the edges and calls `turn` with it;
    /// keeps them as long as they fit, unless nobody needs them any more. Returns
    /// how many there were.
    fn pass(
        &self,
        mut kept: Kept,
        last: bool,
        turn: impl Fn(&Slab) -> Result<()>,
    ) -> Result<(Kept, u64)> {
        let Self { comm, room, .. } = self;
        let nodes = self.values[0].shape()[0];
        let stretch = share(self.edges.shape()[0], comm);
        let mut reader = EdgeReader::new(self.edges, nodes, stretch, room.piece / PIECE_EDGE);
        let mut slabs = 0;
        if last {
            kept = Kept::No;
        }
        loop {
            // 1. The next edges of this rank; of some there may be none left.
            let (bytes, before) = match &kept {
                Kept::SoFar(_, before) => (room.slabs / KEPT_SLAB, *before),
                _ => (room.slabs, 0),
            };
            let taken = Numbered::take(&mut reader, nodes, room, bytes);
            let taken = comm.agree(taken)?;
            let full = before + taken.kept_bytes(room) > room.slabs - room.slabs / KEPT_SLAB;
            // 2. All ranks go on alike.
            let told = [u64::from(!taken.is_empty()), u64::from(full)];
            let all = comm.all_reduce(&told, Op::Max)?;
            if all[0] == 0 {
                break;
            }
            if all[1] == 1 {
                kept = Kept::No;
            }
            let slab = taken.scheduled(comm, nodes, room)?;
            turn(&slab)?;
            slabs += 1;
            if let Kept::SoFar(others, before) = &mut kept {
                *before += slab.bytes();
                others.push(slab);
            }
        }
        if let Kept::SoFar(others, _) = kept {
            kept = Kept::All(others);
        }
        Ok((kept, slabs))
    }

    fn tell(&self, slab: &Slab) {
        self.resources
            .tell(slab.edges() * 2 * self.edges.layout().element_size());
    }
}
