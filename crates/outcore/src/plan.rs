//! [`Plan`]: what will be read or written, and where it goes. A value: made
//! without any input or output, printed, tested, executed either way.

use std::fmt;

use outcore_geometry::{Footprint, Runs};

use crate::strategy::choose::Way;
use crate::strategy::fetch::Fetch;
use crate::strategy::sieving::{Accesses, Sieve};
use crate::strategy::{Chunked, Method, Strategy};

/// What moves between a store and a buffer, whichever way.
#[derive(Debug, Clone)]
pub struct Plan {
    /// What is wanted.
    pub(crate) runs: Runs,
    /// Where the array's data begin in the store.
    pub(crate) start: u64,
    /// The width of the numbers whose bytes must be reversed on the way.
    pub(crate) swap: Option<usize>,
    /// How it moves.
    pub(crate) method: Method,
    /// What is asked for in advance, if it is not in the page cache.
    pub(crate) fetch: Option<Fetch>,
}

impl Plan {
    /// The strategy that made it.
    pub fn strategy(&self) -> Strategy {
        self.method.strategy()
    }

    /// How it moves.
    pub(crate) fn way(&self) -> Way {
        Way {
            method: self.method,
            fetch: self.fetch,
        }
    }

    /// The bytes of the section.
    pub fn useful_bytes(&self) -> u64 {
        self.runs.totals().1
    }

    /// How many accesses the store will see for a read (more if it has to
    /// split them); none for copies from a mapping. Takes a walk through the accesses if they are sieved.
    pub fn requests(&self) -> u64 {
        self.accesses().count() as u64
    }

    /// How many bytes a read takes from the store, gaps included.
    pub fn moved_bytes(&self) -> u64 {
        self.accesses().map(|(_, len)| len).sum()
    }

    /// The offset in the store and the length of each access, in ascending
    /// order.
    pub fn accesses(&self) -> Box<dyn Iterator<Item = (u64, u64)> + '_> {
        let start = self.start;
        match self.method {
            Method::Direct => Box::new(
                self.runs
                    .clone()
                    .map(move |run| (start + run.file_offset, run.len)),
            ),
            Method::Sieving(sieve) => {
                let mut accesses = Accesses::new(&self.runs, sieve);
                let mut copies = Vec::new();
                Box::new(std::iter::from_fn(move || {
                    copies.clear();
                    let access = accesses.next(&mut copies)?;
                    Some((start + access.offset, access.len))
                }))
            }
            Method::Mapped(_) => Box::new(std::iter::empty()),
            Method::Chunked(Chunked { size, .. }) => Box::new(
                self.runs
                    .tiles()
                    .map(move |tile| (tile.first_offset() / size * size, size)),
            ),
        }
    }

    /// The bytes of the buffer that sieving needs for this plan.
    pub(crate) fn staging(&self, sieve: Sieve) -> usize {
        let Footprint { start, end, .. } = self.runs.footprint(0);
        sieve.staging(start, end)
    }
}

/// The summary and the first few accesses.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let (runs, useful) = self.runs.totals();
        let (requests, moved) = match self.method {
            Method::Direct => (runs, useful),
            Method::Sieving(_) | Method::Chunked(_) => (self.requests(), self.moved_bytes()),
            Method::Mapped(_) => (0, useful),
        };
        writeln!(f, "strategy  {}", self.strategy())?;
        if let Method::Sieving(sieve) = self.method {
            match sieve.slices {
                None => writeln!(f, "gap       up to {} bytes", sieve.gap)?,
                Some(slices) => writeln!(f, "slices    whole, {} bytes at a time", slices.window)?,
            }
            writeln!(f, "buffer    {} bytes", self.staging(sieve))?;
        }
        if let Some(fetch) = self.fetch {
            writeln!(f, "fetch     ahead, with gaps of up to {} bytes", fetch.gap)?;
        }
        writeln!(f, "runs      {runs}")?;
        writeln!(f, "requests  {requests}")?;
        writeln!(f, "bytes     {useful} useful, {moved} moved")?;
        if let Some(width) = self.swap {
            writeln!(f, "swap      the bytes of each {width}-byte number")?;
        }
        if requests == 0 {
            return Ok(());
        }
        writeln!(f, "{:>20} {:>12}", "offset", "bytes")?;
        for (offset, len) in self.accesses().take(SHOWN) {
            writeln!(f, "{offset:>20} {len:>12}")?;
        }
        let hidden = requests.saturating_sub(SHOWN as u64);
        if hidden > 0 {
            writeln!(f, "{:>20} ({hidden} more)", "...")?;
        }
        Ok(())
    }
}
