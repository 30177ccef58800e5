//! Everybody's values for everybody.

use bytemuck::Pod;

use crate::comm::Comm;
use crate::error::Result;
use crate::transport::Exchange;

impl Comm {
    /// Collective: gives every rank the values of all ranks, in the order of
    /// the ranks; each contributes equally many.
    pub fn all_gather<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        self.all_gather_parts(values, &vec![values.len(); self.size()])
    }

    /// Collective: gives every rank the values of each rank, however many
    /// those are.
    pub fn all_gatherv<T: Pod>(&self, values: &[T]) -> Result<Vec<Vec<T>>> {
        let counts = self.all_gather(&[values.len()])?;
        let all = self.all_gather_parts(values, &counts)?;
        let mut rest = all.as_slice();
        let mut part = |count| {
            let (part, later) = rest.split_at(count);
            rest = later;
            part.to_vec()
        };
        Ok(counts.into_iter().map(&mut part).collect())
    }

    /// All values, of which rank `p` contributes `counts[p]`.
    fn all_gather_parts<T: Pod>(&self, values: &[T], counts: &[usize]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); counts.iter().sum()];
        let own = bytemuck::cast_slice(values);
        let lens: Vec<usize> = counts.iter().map(|count| count * size_of::<T>()).collect();
        let bytes = bytemuck::cast_slice_mut(&mut all);
        if self.transport().all_gather(own, &lens, bytes)? {
            return Ok(all);
        }
        if self.transport().shares_memory() {
            self.all_gather_at_once(values, counts, &mut all)?;
        } else {
            self.all_gather_by_doubling(values, counts, &mut all)?;
        }
        Ok(all)
    }

    fn all_gather_at_once<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        mut all: &mut [T],
    ) -> Result<()> {
        let values = bytemuck::cast_slice(values);
        let mut exchange = Exchange::with_capacity(counts.len(), counts.len());
        for (peer, &count) in counts.iter().enumerate() {
            let (part, later) = all.split_at_mut(count);
            all = later;
            exchange.send(peer, values);
            exchange.receive(peer, bytemuck::cast_slice_mut(part));
        }
        self.exchange(&mut exchange)
    }

    /// Bruck's algorithm: with the values of the ranks from this one up to
    /// `held` further on, get those of the next `held` from the rank that has
    /// them, until they come round.
    fn all_gather_by_doubling<T: Pod>(
        &self,
        values: &[T],
        counts: &[usize],
        all: &mut [T],
    ) -> Result<()> {
        let (rank, size) = (self.rank(), self.size());
        // Where the values of the rank so many further on are kept.
        let mut starts = vec![0];
        for step in 0..size {
            starts.push(starts[step] + counts[(rank + step) % size]);
        }
        all[..values.len()].copy_from_slice(values);
        let mut held = 1;
        while held < size {
            let next = held.min(size - held);
            let (have, get) = all.split_at_mut(starts[held]);
            let get = &mut get[..starts[held + next] - starts[held]];
            let mut exchange = Exchange::with_capacity(1, 1);
            exchange.send(
                (rank + size - held) % size,
                bytemuck::cast_slice(&have[..starts[next]]),
            );
            exchange.receive((rank + held) % size, bytemuck::cast_slice_mut(get));
            self.exchange(&mut exchange)?;
            held += next;
        }
        all.rotate_right(counts[..rank].iter().sum());
        Ok(())
    }
}
