//! From everybody something different for everybody.

use bytemuck::Pod;

use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::transport::Exchange;

impl Comm {
    /// Collective: sends the `p`-th of `size` equal parts of `values` to rank
    /// `p`; gives the parts for this rank, in the order of the ranks.
    pub fn all_to_all<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let size = self.size();
        if !values.len().is_multiple_of(size) {
            return Err(Error::Invalid(format!(
                "{} values cannot be divided among {size} ranks",
                values.len()
            )));
        }
        let len = (values.len() / size).max(1);
        let mut all = vec![T::zeroed(); values.len()];
        self.swap(values.chunks_exact(len), all.chunks_exact_mut(len))?;
        Ok(all)
    }

    /// Collective: sends `parts[p]` to rank `p`, however long; gives the parts
    /// for this rank.
    pub fn all_to_allv<T: Pod>(&self, parts: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        if parts.len() != self.size() {
            return Err(Error::Invalid(format!(
                "{} parts for {} ranks",
                parts.len(),
                self.size()
            )));
        }
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut all: Vec<Vec<T>> = self
            .all_to_all(&counts)?
            .into_iter()
            .map(|count| vec![T::zeroed(); count])
            .collect();
        let all_parts = all.iter_mut().map(Vec::as_mut_slice);
        self.swap(parts.iter().map(Vec::as_slice), all_parts)?;
        Ok(all)
    }

    /// One exchange: a part to each rank, and one from each.
    pub(super) fn swap<'a, T: Pod>(
        &self,
        sends: impl Iterator<Item = &'a [T]>,
        receives: impl Iterator<Item = &'a mut [T]>,
    ) -> Result<()> {
        let mut exchange = Exchange::with_capacity(self.size(), self.size());
        for (peer, part) in sends.enumerate() {
            exchange.send(peer, bytemuck::cast_slice(part));
        }
        for (peer, part) in receives.enumerate() {
            exchange.receive(peer, bytemuck::cast_slice_mut(part));
        }
        self.exchange(&mut exchange)
    }
}
