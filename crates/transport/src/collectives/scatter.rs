//! One rank's values, a part for each rank.

use bytemuck::Pod;

use super::tags;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::transport::Exchange;

impl Comm {
    /// Collective: fills `into` with this rank's part of the values of rank
    /// `root`, which are given there, one part after the other in the order of
    /// the ranks; the other ranks' `values` do not matter. Meant for small
    /// parts; [`Comm::scatterv`] carries large ones as well.
    pub fn scatter<T: Pod>(&self, root: usize, values: &[T], into: &mut [T]) -> Result<()> {
        self.check_root(root)?;
        let (is_root, len) = (self.rank() == root, into.len());
        if is_root && values.len() != len * self.size() {
            return Err(Error::Invalid(format!(
                "{} values cannot be scattered as {len} for each of {} ranks",
                values.len(),
                self.size(),
            )));
        }
        if self.transport().shares_memory() {
            let parts = values.chunks_exact(len.max(1));
            return self.hand_out(root, parts, into);
        }
        // Each place of the tree gets the values of all places below it.
        let tree = self.tree(root);
        let mut all = if is_root { values.to_vec() } else { Vec::new() };
        if is_root {
            // Places are counted from the root.
            all.rotate_left(root * len);
        }
        if let Some(parent) = tree.parent() {
            all.resize(tree.span(tree.place) * len, T::zeroed());
            let bytes = bytemuck::cast_slice_mut(&mut all);
            self.transport().receive(parent, tags::SCATTER, bytes)?;
        }
        for child in tree.children().rev() {
            let start = (child - tree.place) * len;
            let part = &all[start..][..tree.span(child) * len];
            self.transport()
                .send(tree.rank(child), tags::SCATTER, bytemuck::cast_slice(part))?;
        }
        into.copy_from_slice(&all[..len]);
        Ok(())
    }

    /// Collective: gives each rank its part of those of rank `root`, however
    /// long; the other ranks' `parts` do not matter.
    pub fn scatterv<T: Pod>(&self, root: usize, parts: &[Vec<T>]) -> Result<Vec<T>> {
        self.check_root(root)?;
        let is_root = self.rank() == root;
        if is_root && parts.len() != self.size() {
            return Err(Error::Invalid(format!(
                "{} parts cannot be scattered to {} ranks",
                parts.len(),
                self.size(),
            )));
        }
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut count = [0];
        self.scatter(root, &counts, &mut count)?;
        let mut into = vec![T::zeroed(); count[0]];
        self.hand_out(root, parts.iter().map(Vec::as_slice), &mut into)?;
        Ok(into)
    }

    /// One exchange: `root` sends a part to each rank.
    fn hand_out<'a, T: Pod>(
        &self,
        root: usize,
        parts: impl Iterator<Item = &'a [T]>,
        into: &mut [T],
    ) -> Result<()> {
        let mut exchange = Exchange::new();
        if self.rank() == root {
            for (peer, part) in parts.enumerate() {
                exchange.send(peer, bytemuck::cast_slice(part));
            }
        }
        exchange.receive(root, bytemuck::cast_slice_mut(into));
        self.exchange(&mut exchange)
    }
}
