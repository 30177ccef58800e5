//! Everybody's values for one rank.

use bytemuck::Pod;

use super::tags;
use crate::comm::Comm;
use crate::error::Result;
use crate::transport::Exchange;

impl Comm {
    /// Collective: gives rank `root` the values of all ranks, in the order of
    /// the ranks; each contributes equally many. Meant for small
    /// contributions; [`Comm::gatherv`] carries large ones as well.
    pub fn gather<T: Pod>(&self, root: usize, values: &[T]) -> Result<Option<Vec<T>>> {
        self.check_root(root)?;
        if self.transport().shares_memory() {
            let is_root = self.rank() == root;
            let count = if is_root {
                values.len() * self.size()
            } else {
                0
            };
            let mut all = vec![T::zeroed(); count];
            let parts = chunks(&mut all, values.len(), self.size());
            self.collect(root, values, parts)?;
            return Ok(is_root.then_some(all));
        }
        // Each place of the tree holds the values of all places below it.
        let tree = self.tree(root);
        let mut all = vec![T::zeroed(); values.len() * tree.span(tree.place)];
        all[..values.len()].copy_from_slice(values);
        for child in tree.children() {
            let start = (child - tree.place) * values.len();
            let part = &mut all[start..][..tree.span(child) * values.len()];
            self.transport().receive(
                tree.rank(child),
                tags::GATHER,
                bytemuck::cast_slice_mut(part),
            )?;
        }
        if let Some(parent) = tree.parent() {
            self.transport()
                .send(parent, tags::GATHER, bytemuck::cast_slice(&all))?;
            return Ok(None);
        }
        // Places are counted from the root.
        all.rotate_right(root * values.len());
        Ok(Some(all))
    }

    /// Collective: gives rank `root` the values of each rank, however many
    /// those are.
    pub fn gatherv<T: Pod>(&self, root: usize, values: &[T]) -> Result<Option<Vec<Vec<T>>>> {
        let counts = self.gather(root, &[values.len()])?;
        let is_root = counts.is_some();
        let mut all: Vec<Vec<T>> = counts
            .unwrap_or_default()
            .into_iter()
            .map(|count| vec![T::zeroed(); count])
            .collect();
        self.collect(root, values, all.iter_mut().map(Vec::as_mut_slice))?;
        Ok(is_root.then_some(all))
    }

    /// One exchange: everybody sends to `root`, which has a part for each.
    fn collect<'a, T: Pod>(
        &self,
        root: usize,
        values: &'a [T],
        parts: impl Iterator<Item = &'a mut [T]>,
    ) -> Result<()> {
        let mut exchange = Exchange::new();
        exchange.send(root, bytemuck::cast_slice(values));
        for (peer, part) in parts.enumerate() {
            exchange.receive(peer, bytemuck::cast_slice_mut(part));
        }
        self.exchange(&mut exchange)
    }
}

/// Cuts `all`, unless it is empty, into `count` parts of `len` values.
fn chunks<T>(all: &mut [T], len: usize, count: usize) -> impl Iterator<Item = &mut [T]> {
    all.chunks_exact_mut(len.max(1)).take(count)
}
