//! One rank's values for everybody.

use bytemuck::Pod;

use super::tags;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::transport::Exchange;

impl Comm {
    /// Collective: overwrites `values` with those of rank `root`, of which
    /// there are as many.
    pub fn broadcast<T: Pod>(&self, root: usize, values: &mut [T]) -> Result<()> {
        self.check_root(root)?;
        let bytes: &mut [u8] = bytemuck::cast_slice_mut(values);
        if self.transport().shares_memory() {
            return self.broadcast_at_once(root, bytes);
        }
        let tree = self.tree(root);
        if let Some(parent) = tree.parent() {
            self.transport().receive(parent, tags::BROADCAST, bytes)?;
        }
        for child in tree.children().rev() {
            self.transport()
                .send(tree.rank(child), tags::BROADCAST, bytes)?;
        }
        Ok(())
    }

    /// Collective: overwrites `values` with those of rank `root`, however many
    /// those are.
    pub fn broadcast_vec<T: Pod>(&self, root: usize, values: &mut Vec<T>) -> Result<()> {
        let mut count = [values.len() as u64];
        self.broadcast(root, &mut count)?;
        let count = usize::try_from(count[0])
            .map_err(|_| Error::Invalid(format!("no memory for {} values", count[0])))?;
        values.resize(count, T::zeroed());
        self.broadcast(root, values)
    }

    /// Collective: overwrites `text` with that of rank `root`.
    pub fn broadcast_string(&self, root: usize, text: &mut String) -> Result<()> {
        let mut bytes = std::mem::take(text).into_bytes();
        self.broadcast_vec(root, &mut bytes)?;
        *text = String::from_utf8(bytes)
            .map_err(|error| Error::Invalid(format!("broadcast of a string: {error}")))?;
        Ok(())
    }

    fn broadcast_at_once(&self, root: usize, bytes: &mut [u8]) -> Result<()> {
        let mut exchange = Exchange::new();
        if self.rank() == root {
            let bytes = &*bytes;
            for peer in (0..self.size()).filter(|&peer| peer != root) {
                exchange.send(peer, bytes);
            }
            return self.exchange(&mut exchange);
        }
        exchange.receive(root, bytes);
        self.exchange(&mut exchange)
    }
}
