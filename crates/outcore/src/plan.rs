//! [`Plan`]: what will be read or written, and where it goes. A value: made
//! without any input or output, printed, tested, executed either way.

use std::fmt;

use outcore_geometry::Runs;

/// What moves between a store and a buffer, whichever way.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Each run is one access.
    pub(crate) runs: Runs,
    /// Where the array's data begin in the store.
    pub(crate) start: u64,
    /// The width of the numbers whose bytes must be reversed on the way.
    pub(crate) swap: Option<usize>,
    /// What made the plan.
    pub(crate) strategy: &'static str,
}

impl Plan {
    /// How many accesses the store will see (more if it has to split them).
    pub fn requests(&self) -> u64 {
        self.runs.totals().0
    }

    /// Where each access begins in the store, in the order of the accesses.
    pub fn offsets(&self) -> impl Iterator<Item = u64> {
        let start = self.start;
        self.runs.clone().map(move |run| start + run.file_offset)
    }

    /// How many bytes move.
    pub fn bytes(&self) -> u64 {
        self.runs.totals().1
    }
}

/// The summary and the first few accesses.
impl fmt::Display for Plan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 8;
        let (requests, bytes) = self.runs.totals();
        writeln!(f, "strategy  {}", self.strategy)?;
        writeln!(f, "requests  {requests}")?;
        writeln!(f, "bytes     {bytes}")?;
        if let Some(width) = self.swap {
            writeln!(f, "swap      the bytes of each {width}-byte number")?;
        }
        writeln!(
            f,
            "{:>20} {:>20} {:>12}",
            "file offset", "buffer offset", "bytes"
        )?;
        for run in self.runs.clone().take(SHOWN) {
            let at = self.start + run.file_offset;
            writeln!(f, "{at:>20} {:>20} {:>12}", run.buffer_offset, run.len)?;
        }
        let hidden = requests.saturating_sub(SHOWN as u64);
        if hidden > 0 {
            writeln!(f, "{:>20} ({hidden} more)", "...")?;
        }
        Ok(())
    }
}
