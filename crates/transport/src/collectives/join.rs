//! The values of all ranks joined into one, for everybody.

use bytemuck::Pod;

use super::tags;
use crate::comm::Comm;
use crate::error::Result;

impl Comm {
    /// Collective: gives every rank the values of all ranks joined, equally
    /// many on each. `join` turns the values of some ranks and those of the
    /// ranks that follow them into the values of both; it must be associative.
    ///
    /// For a few values of very many ranks: up a tree and down again, so no
    /// rank handles more messages than the number of ranks has binary digits.
    pub fn all_join<T: Pod>(&self, values: &[T], join: impl Fn(&mut [T], &[T])) -> Result<Vec<T>> {
        let tree = self.tree(0);
        let mut joined = values.to_vec();
        let mut next = vec![T::zeroed(); values.len()];
        // A place is followed by those under its first child, then by those
        // under its second.
        for child in tree.children() {
            let bytes = bytemuck::cast_slice_mut(&mut next);
            self.transport()
                .receive(tree.rank(child), tags::JOIN, bytes)?;
            join(&mut joined, &next);
        }
        if let Some(parent) = tree.parent() {
            self.transport()
                .send(parent, tags::JOIN, bytemuck::cast_slice(&joined))?;
        }
        self.broadcast(0, &mut joined)?;
        Ok(joined)
    }
}
