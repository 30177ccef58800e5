//! [`Pass`]: some fused sweeps over a region, from one file into another, by
//! one rank.
//!
//! The path of the data: a [`Sweep`] reads slabs of planes, each plane once, and
//! ahead unless they are in the page cache; the [front](super::wavefront) takes
//! them in order and computes finished planes into a buffer; full buffers are
//! written. The front keeps what slabs have in common, so slabs need no halo.

use outcore::{Array, MemoryBudget, Result, Section, Sweep};

use super::region::Region;
use super::wavefront::{Sink, Wavefront};
use crate::fit::largest;
use crate::float::Float;
use crate::resources::Resources;
use crate::slab_writer::SlabWriter;

/// About so many bytes in a slab: enough for efficient requests, and little
/// enough to stay in the cache between reading, computing and writing.
const GOOD: u64 = 1 << 20;

/// The share of a section in the page cache from which on it counts as cached.
const CACHED: f64 = 0.99;

/// What memory is needed for.
pub(super) const PURPOSE: &str = "the Laplace solver";

/// Some fused sweeps over a region.
#[derive(Debug)]
pub(super) struct Pass<'a> {
    pub(super) source: &'a Array,
    pub(super) target: &'a Array,
    pub(super) region: Region,
    /// Slabs in flight to the target.
    pub(super) behind: usize,
}

impl Pass<'_> {
    /// Does it within `budget`; returns the largest change of the last sweep.
    pub(super) fn run<T: Float>(
        &self,
        budget: &MemoryBudget,
        resources: &Resources<'_>,
    ) -> Result<f64> {
        if self.region.is_empty() {
            return Ok(0.0);
        }
        // 1. The thickest slabs that fit.
        let thickness = self.fitting::<T>(budget.limit());
        let _front = budget.reserve(self.front_bytes::<T>(), PURPOSE)?;
        let mut front: Wavefront<T> = self.region.front()?;
        let mut sink = Slabs {
            writer: SlabWriter::start(self.source, self.target, self.behind, budget)?,
            pass: self,
            resources,
            thickness,
            begun: 0,
            placed: 0,
        };
        // 2. Read, sweep, write.
        for (number, planes) in self.region.needed() {
            let section = self.region.section(self.source, planes.clone())?;
            let ahead = match planes.end - planes.start > thickness {
                true => self.ahead(&section)?,
                // A single slab: there is nothing to do meanwhile.
                false => 0,
            };
            let plan = Sweep::<T>::of(self.source).over(section).ahead(ahead);
            let sweep = plan.thickness(Some(thickness)).budget(budget);
            let mut number = number;
            for tile in sweep.start::<T>()? {
                let tile = tile?;
                front.push(number, tile.values(), &mut sink)?;
                number += (tile.core().count() / self.region.plane_len()) as i64;
            }
        }
        front.finish(&mut sink)?;
        sink.finish()?;
        Ok(front.change())
    }

    /// The bytes that slabs of this thickness need, all buffers together.
    pub(super) fn need<T: Float>(&self, thickness: u64) -> u64 {
        if self.region.is_empty() {
            return 0;
        }
        let plane = self.region.plane_len();
        let elements = thickness.min(self.region.planes()).saturating_mul(plane);
        // Where planes come again, every stretch but the first begins at plane
        // 0, and none of these is longer than the second.
        let stretches = self.region.needed().take(2);
        let sweeps = stretches.filter_map(|(_, planes)| {
            let section = self.region.section(self.source, planes).ok()?;
            Some(Sweep::<T>::of(self.source).over(section).need(thickness))
        });
        let writer = SlabWriter::<T>::need(self.source, self.target, self.behind, elements);
        let reader = sweeps.max().unwrap_or(0);
        reader
            .saturating_add(writer)
            .saturating_add(self.front_bytes::<T>())
    }

    /// How many slabs are read ahead: none of what is in the page cache, since
    /// there a copy is all that reading takes, and it is best made by the core
    /// that needs it.
    fn ahead(&self, section: &Section) -> Result<usize> {
        let cached = self.source.cached(section)?.unwrap_or(0.0);
        Ok(usize::from(cached < CACHED))
    }

    fn front_bytes<T: Float>(&self) -> u64 {
        Wavefront::<T>::bytes(self.region.sweeps(), self.region.plane_len())
    }

    fn fitting<T: Float>(&self, limit: u64) -> u64 {
        let plane = self.region.plane_len() * size_of::<T>() as u64;
        let mut most = (GOOD / plane.max(1)).max(1);
        let axis = self.source.layout().slowest_first()[0];
        let tile = self.source.layout().tile().map_or(1, |tile| tile[axis]);
        most = most.next_multiple_of(tile);
        let thickness = largest(most, limit, |thickness| self.need::<T>(thickness)).unwrap_or(1);
        if thickness > tile {
            thickness / tile * tile
        } else {
            thickness
        }
    }
}

/// Finished planes, written slab by slab.
struct Slabs<'a, T: Float> {
    writer: SlabWriter<T>,
    pass: &'a Pass<'a>,
    resources: &'a Resources<'a>,
    thickness: u64,
    /// The planes of the slabs begun so far, and those that have a place.
    begun: u64,
    placed: u64,
}

impl<T: Float> Sink<T> for Slabs<'_, T> {
    fn place(&mut self) -> Result<&mut [T]> {
        let (region, length) = (&self.pass.region, self.pass.region.plane_len() as usize);
        if self.placed == self.begun {
            self.writer.end()?;
            let end = region.planes().min(self.begun + self.thickness);
            let planes = region.in_file(self.begun)..region.in_file(end);
            let section = region.section(self.pass.source, planes)?;
            let bytes = region.core_len(end - self.begun) * size_of::<T>() as u64;
            self.resources.tell(bytes.saturating_mul(region.sweeps()));
            self.writer.begin(&section)?;
            self.begun = end;
        }
        let slab = self.writer.place();
        let from_end = (self.begun - self.placed) as usize * length;
        self.placed += 1;
        let start = slab.len() - from_end;
        Ok(&mut slab[start..start + length])
    }
}

impl<T: Float> Slabs<'_, T> {
    fn finish(mut self) -> Result<()> {
        self.writer.end()?;
        self.writer.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::time::Duration;

    use outcore::storage::{DeviceModel, MemoryStore, Queues, ThrottledStore, Time};
    use outcore::{ArrayDescriptor, Block, ElementType};

    use super::super::grid::Edges;
    use super::*;

    /// An array that no page cache holds, so that it is read ahead.
    fn cold(name: &str) -> Array {
        let model = DeviceModel {
            latency: Duration::from_micros(1),
            bandwidth: 1e9,
            queues: Queues::Streams(1),
        };
        let memory = MemoryStore::from(vec![0; 22 * 20 * 4]);
        let store = ThrottledStore::new(memory, model, Time::Virtual).unwrap();
        let descriptor = ArrayDescriptor::new(&[22, 20], ElementType::F32);
        Array::in_store(name, &descriptor, Arc::new(store)).unwrap()
    }

    #[test]
    fn the_stated_memory_is_enough_for_boxes_narrower_than_the_file() {
        let (source, target) = (cold("in"), cold("out"));
        // 20 of 60 rows with a neighbour's at both ends; the whole axis of 14
        // columns between overlap areas.
        let block = Block {
            global: Section::parse("20:40, 0:14", &[60, 14]).unwrap(),
            part: source.section("1:21, 3:17").unwrap(),
        };
        for behind in [0, 1] {
            let pass = Pass {
                source: &source,
                target: &target,
                region: Region::of_block(&source, &block, &[60, 14], Edges::Fixed, 1),
                behind,
            };
            for thickness in 1..=22 {
                let budget = MemoryBudget::of(pass.need::<f32>(thickness));
                pass.run::<f32>(&budget, &Resources::of(budget.clone()))
                    .unwrap();
            }
        }
    }
}
