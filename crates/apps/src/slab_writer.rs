//! [`SlabWriter`]: results written behind, in the axis order of their file.
//!
//! The caller computes a section in the axis order of the array it comes from.
//! If the file of the results has the same, it computes straight into the
//! buffer that is written; otherwise into one more buffer, which is reordered.

use outcore::{Array, Element, MemoryBudget, Reservation, Result, Section, WriteBehind, reorder};

/// Sections in flight; the caller fills one more.
const DEPTH: usize = 1;

/// Writes results in the background.
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
    pub(crate) fn start(source: &Array, target: &Array, budget: &MemoryBudget) -> Result<Self> {
        let [computed, stored] = [source, target].map(|array| array.layout().slowest_first());
        let reordering = (computed != stored).then(|| Reordering {
            computed: computed.to_vec(),
            stored: stored.to_vec(),
            values: Vec::new(),
            memory: None,
        });
        Ok(Self {
            behind: WriteBehind::start(target, DEPTH, budget)?,
            reordering,
            current: None,
            budget: budget.clone(),
        })
    }

    /// The bytes that sections of `elements` elements need.
    pub(crate) fn need(source: &Array, target: &Array, elements: u64) -> u64 {
        let reordered = source.layout().slowest_first() != target.layout().slowest_first();
        let copy = u64::from(reordered) * elements * size_of::<T>() as u64;
        WriteBehind::<T>::need(DEPTH, elements).saturating_add(copy)
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

    /// The results stand in their place: they are written from now on.
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
