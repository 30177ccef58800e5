//! [`SlabWriter`]: results written in the axis order of their file, at once or
//! behind.
//!
//! Results that the system keeps in memory before it writes them back are
//! written at once by the caller ([`depth`] 0): that is a copy, best made by the
//! core that has just computed them, while its own cache still has them.
//! Of more, writers have to wait for the device, and a thread does so while the
//! caller goes on computing.
//!
//! The caller computes a section in the axis order of the array it comes from.
//! If the file of the results has the same, it computes straight into the
//! buffer that is written; otherwise into one more buffer, which is reordered.

use outcore::{
    Array, ArrayDescriptor, Element, MemoryBudget, Reservation, Result, Section, WriteBehind,
    reorder,
};

/// How many sections are in flight while the caller fills one more, if all
/// ranks together fill `targets` with arrays like `whole`.
pub(crate) fn depth(targets: &[&Array], whole: &ArrayDescriptor) -> usize {
    let bytes = whole.byte_len().unwrap_or(u64::MAX);
    let bytes = bytes.saturating_mul(targets.len() as u64);
    // The machine's budget is a quarter of the memory that is available; systems
    // begin to write back when a tenth of that is dirty.
    let kept = MemoryBudget::machine().limit() / 4;
    let simulated = targets.iter().any(|target| target.store().time().is_some());
    usize::from(simulated || bytes > kept)
}

/// Writes results, section after section.
#[derive(Debug)]
pub(crate) struct SlabWriter<T: Element> {
    behind: WriteBehind<T>,
    /// The axis orders of computation and file, if they differ, with the
    /// buffer for the former.
    reordering: Option<Reordering<T>>,
    current: Option<(Section, outcore::WriteBuffer<T>)>,
    budget: MemoryBudget,
}

#[derive(Debug)]
struct Reordering<T> {
    computed: Vec<usize>,
    stored: Vec<usize>,
    values: Vec<T>,
    memory: Option<Reservation>,
}

impl<T: Element + bytemuck::Pod> SlabWriter<T> {
    /// A writer to `target` of what is computed in the axis order of `source`.
    pub(crate) fn start(
        source: &Array,
        target: &Array,
        depth: usize,
        budget: &MemoryBudget,
    ) -> Result<Self> {
        let [computed, stored] = [source, target].map(|array| array.layout().slowest_first());
        let reordering = (computed != stored).then(|| Reordering {
            computed: computed.to_vec(),
            stored: stored.to_vec(),
            values: Vec::new(),
            memory: None,
        });
        Ok(Self {
            behind: WriteBehind::start(target, depth, budget)?,
            reordering,
            current: None,
            budget: budget.clone(),
        })
    }

    /// The bytes that sections of `elements` elements need.
    pub(crate) fn need(source: &Array, target: &Array, depth: usize, elements: u64) -> u64 {
        let reordered = source.layout().slowest_first() != target.layout().slowest_first();
        // The copy that is reordered is one buffer more.
        WriteBehind::<T>::need(target, depth + usize::from(reordered), elements)
    }

    /// The place for the results of `section`.
    pub(crate) fn begin(&mut self, section: &Section) -> Result<&mut [T]> {
        let count = section.count() as usize;
        let buffer = self.behind.buffer(count)?;
        let (_, buffer) = self.current.insert((section.clone(), buffer));
        let Some(reordering) = &mut self.reordering else {
            return Ok(buffer);
        };
        if reordering.values.len() < count {
            reordering.memory = None;
            let bytes = count as u64 * size_of::<T>() as u64;
            reordering.memory = Some(self.budget.reserve(bytes, "reordering the result")?);
            reordering.values = vec![T::zeroed(); count];
        }
        Ok(&mut reordering.values[..count])
    }

    /// The place that [`begin`](Self::begin) gave, again.
    pub(crate) fn place(&mut self) -> &mut [T] {
        match (&mut self.reordering, &mut self.current) {
            (Some(reordering), Some((section, _))) => {
                &mut reordering.values[..section.count() as usize]
            }
            (None, Some((_, buffer))) => buffer,
            (_, None) => &mut [],
        }
    }

    /// The results stand in their place: they are written, or begin to be.
    pub(crate) fn end(&mut self) -> Result<()> {
        let Some((section, mut buffer)) = self.current.take() else {
            return Ok(());
        };
        if let Some(Reordering {
            computed,
            stored,
            values,
            ..
        }) = &self.reordering
        {
            let from = bytemuck::cast_slice(&values[..section.count() as usize]);
            let into = bytemuck::cast_slice_mut(&mut buffer);
            reorder(&section.shape(), (from, computed), (into, stored));
        }
        self.behind.write(&section, buffer)
    }

    /// Waits until everything is written.
    pub(crate) fn finish(self) -> Result<()> {
        self.behind.finish()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outcore::ElementType;
    use outcore::storage::MemoryStore;

    use super::*;

    fn array(layout: &str) -> Array {
        let descriptor = ArrayDescriptor::new(&[8, 6], ElementType::F32);
        let descriptor = descriptor.layout(layout.parse().unwrap());
        Array::in_store("a", &descriptor, Arc::new(MemoryStore::from(vec![0; 192]))).unwrap()
    }

    #[test]
    fn what_fits_the_page_cache_is_written_at_once() {
        let target = array("row");
        assert_eq!(depth(&[&target], target.descriptor()), 0);
        let huge = ArrayDescriptor::new(&[1 << 30, 1 << 20], ElementType::F32);
        assert_eq!(depth(&[&target], &huge), 1);
    }

    #[test]
    fn the_stated_memory_is_enough_at_any_depth() {
        let source = array("row");
        for (target, copies) in [(array("row"), 0), (array("column"), 1)] {
            for depth in [0, 1, 2] {
                let need = SlabWriter::<f32>::need(&source, &target, depth, 12);
                assert_eq!(need, (depth as u64 + 1 + copies) * 48);
                let budget = MemoryBudget::of(need);
                let mut writer =
                    SlabWriter::<f32>::start(&source, &target, depth, &budget).unwrap();
                for slab in ["0:2, :", "2:4, :", "4:6, :", "6:8, :"] {
                    let section = source.section(slab).unwrap();
                    writer.begin(&section).unwrap().fill(1.5);
                    writer.end().unwrap();
                }
                writer.finish().unwrap();
                let found: Vec<f32> = target.read(&target.whole()).unwrap();
                assert_eq!(found, [1.5; 48]);
            }
        }
    }
}
