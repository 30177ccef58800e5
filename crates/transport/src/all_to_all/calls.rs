//! The calls: [`Comm::all_to_all`] and its relatives.

use bytemuck::Pod;

use super::algorithm::AllToAll;
use super::run::run;
use super::schedule::steps;
use crate::comm::Comm;
use crate::error::{Error, Result};
use crate::transport::Exchange;

/// What one rank has for each rank, and where it wants what each has for it.
pub(super) struct Parts<'p, 'a> {
    pub(super) sends: &'p [&'a [u8]],
    pub(super) receives: &'p mut [&'a mut [u8]],
    /// The length of all parts of all ranks, if it is the same.
    pub(super) equal: Option<usize>,
}

impl Comm {
    /// Collective: sends the `p`-th of `size` equal parts of `values` to rank
    /// `p`; gives the parts for this rank, in the order of the ranks.
    pub fn all_to_all<T: Pod>(&self, values: &[T]) -> Result<Vec<T>> {
        let mut all = vec![T::zeroed(); values.len()];
        self.all_to_all_into(values, &mut all, AllToAll::Auto)?;
        Ok(all)
    }

    /// Collective: the same into memory that is there, by a certain algorithm,
    /// which must be the same on all ranks.
    ///
    /// ```
    /// use outcore_transport::{AllToAll, Error, threads};
    ///
    /// threads::run(3, |comm| {
    ///     let send: Vec<usize> = (0..3).map(|to| 10 * comm.rank() + to).collect();
    ///     let mut received = [0; 3];
    ///     comm.all_to_all_into(&send, &mut received, AllToAll::Bruck)?;
    ///     assert_eq!(received, [0, 10, 20].map(|from| from + comm.rank()));
    ///     Ok::<_, Error>(())
    /// })
    /// .into_iter()
    /// .for_each(|outcome| outcome.unwrap());
    /// ```
    pub fn all_to_all_into<T: Pod>(
        &self,
        values: &[T],
        into: &mut [T],
        algorithm: AllToAll,
    ) -> Result<()> {
        let size = self.size();
        if !values.len().is_multiple_of(size) {
            return Err(Error::Invalid(format!(
                "{} values cannot be divided among {size} ranks",
                values.len()
            )));
        }
        if values.len() != into.len() {
            return Err(Error::Invalid(format!(
                "as many values come as go, {}, and there is room for {}",
                values.len(),
                into.len()
            )));
        }
        let (values, mut rest) = (
            bytemuck::cast_slice::<T, u8>(values),
            bytemuck::cast_slice_mut::<T, u8>(into),
        );
        let len = values.len() / size;
        let sends: Vec<&[u8]> = (0..size).map(|to| &values[to * len..][..len]).collect();
        let mut receives = Vec::with_capacity(size);
        for _ in 0..size {
            let (part, later) = rest.split_at_mut(len);
            receives.push(part);
            rest = later;
        }
        let parts = Parts {
            sends: &sends,
            receives: &mut receives,
            equal: Some(len),
        };
        self.move_parts(parts, algorithm)
    }

    /// Collective: sends `parts[p]` to rank `p`, however long; gives the parts
    /// for this rank.
    pub fn all_to_allv<T: Pod>(&self, parts: &[Vec<T>]) -> Result<Vec<Vec<T>>> {
        self.check_parts(parts.len())?;
        let counts: Vec<usize> = parts.iter().map(Vec::len).collect();
        let mut all: Vec<Vec<T>> = self
            .all_to_all(&counts)?
            .into_iter()
            .map(|count| vec![T::zeroed(); count])
            .collect();
        let sends: Vec<&[T]> = parts.iter().map(Vec::as_slice).collect();
        let mut receives: Vec<&mut [T]> = all.iter_mut().map(Vec::as_mut_slice).collect();
        self.all_to_allv_into(&sends, &mut receives, AllToAll::Auto)?;
        Ok(all)
    }

    /// Collective: sends `sends[p]` to rank `p` and fills `receives[p]` from
    /// there, by a certain algorithm, which must be the same on all ranks. Both
    /// ends know the lengths, which may differ from pair to pair; where they are
    /// 0 nothing is sent, so that this is all-to-many, many-to-all and
    /// many-to-many as well.
    pub fn all_to_allv_into<T: Pod>(
        &self,
        sends: &[&[T]],
        receives: &mut [&mut [T]],
        algorithm: AllToAll,
    ) -> Result<()> {
        self.check_parts(sends.len())?;
        self.check_parts(receives.len())?;
        let sends: Vec<&[u8]> = sends
            .iter()
            .map(|part| bytemuck::cast_slice(part))
            .collect();
        let mut receives: Vec<&mut [u8]> = receives
            .iter_mut()
            .map(|part| bytemuck::cast_slice_mut(part))
            .collect();
        let parts = Parts {
            sends: &sends,
            receives: &mut receives,
            equal: None,
        };
        self.move_parts(parts, algorithm)
    }

    fn check_parts(&self, parts: usize) -> Result<()> {
        if parts != self.size() {
            let size = self.size();
            return Err(Error::Invalid(format!("{parts} parts for {size} ranks")));
        }
        Ok(())
    }

    fn move_parts(&self, mut parts: Parts<'_, '_>, algorithm: AllToAll) -> Result<()> {
        let size = self.size();
        let auto = algorithm == AllToAll::Auto;
        let first = match auto {
            true => self.choose_all_to_all(parts.equal, true),
            false => algorithm.for_ranks(size),
        };
        let algorithm = match first {
            AllToAll::Shared if self.transport().shares_memory() => AllToAll::Messages,
            AllToAll::Shared => {
                if self.transport().all_to_all(parts.sends, parts.receives)? {
                    return Ok(());
                }
                match auto {
                    true => self.choose_all_to_all(parts.equal, false),
                    false => AllToAll::Messages,
                }
            }
            other => other,
        };
        match steps(algorithm, self.rank(), size) {
            Some(steps) => run(self, &steps, algorithm.forwards(), parts),
            None => parts.at_once(self),
        }
    }
}

impl Parts<'_, '_> {
    /// One exchange of the transport. Where ranks can read one another's memory
    /// this is the exchange through that memory.
    fn at_once(&mut self, comm: &Comm) -> Result<()> {
        let mut exchange = Exchange::with_capacity(self.sends.len(), self.sends.len());
        for (peer, part) in self.sends.iter().enumerate() {
            exchange.send(peer, part);
        }
        for (peer, part) in self.receives.iter_mut().enumerate() {
            exchange.receive(peer, part);
        }
        comm.exchange(&mut exchange)
    }
}
