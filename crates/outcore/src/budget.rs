//! [`MemoryBudget`]: how much memory the buffers of an operation may take.
//!
//! A budget is passed down, never global. It is an account: whoever wants a
//! buffer reserves its bytes first and gives them back by dropping the
//! [`Reservation`]. Clones share the account. Ranks that are threads of one
//! process divide one budget by [`MemoryBudget::share`], and each share has an
//! account of its own, so that nobody can take a neighbour's part.
//!
//! What a transport keeps for itself is not in the account, as the buffers of an
//! MPI library are not: between processes of one node that is the segment for
//! all-to-all, made at the first such call, 8 MiB at most for all ranks of a group together.
//!
//! Invariant: what is reserved never exceeds the limit. A budget that is too
//! small is [`Error::Memory`], which names the smallest budget of the whole
//! process that works: what a share lacks is told times the number of shares.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use outcore_transport::Comm;

use crate::error::{Error, Result};

/// The budget where the system does not tell how much memory is available.
const UNKNOWN: u64 = 1 << 30;

/// A cap on the memory of buffers; clones share one account.
///
/// ```
/// use outcore::MemoryBudget;
/// let budget = MemoryBudget::of(4 << 20);
/// let buffer = budget.reserve(3 << 20, "the buffer")?;
/// assert_eq!(budget.free(), 1 << 20);
/// drop(buffer);
/// let error = budget.require(12 << 20, "the sweep").unwrap_err();
/// assert_eq!(
///     error.to_string(),
///     "the sweep needs at least 12 MiB of memory, but the budget is 4 MiB; give more (--memory)"
/// );
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct MemoryBudget {
    account: Arc<Account>,
}

#[derive(Debug)]
struct Account {
    limit: u64,
    used: AtomicU64,
    /// The budget that this one is a share of: how many shares, of how much.
    shares: u64,
    whole: u64,
    /// Whether somebody has said how much it is.
    is_given: bool,
}

/// Memory taken from a budget; dropping it gives it back.
#[derive(Debug)]
pub struct Reservation {
    account: Arc<Account>,
    bytes: u64,
}

impl MemoryBudget {
    /// A budget of so many bytes.
    pub fn of(bytes: u64) -> Self {
        Self::new(bytes, (1, bytes), true)
    }

    /// A quarter of the memory that is available now.
    pub fn machine() -> Self {
        let bytes = available_bytes().map_or(UNKNOWN, |bytes| bytes / 4);
        Self::new(bytes, (1, bytes), false)
    }

    fn new(limit: u64, (shares, whole): (u64, u64), is_given: bool) -> Self {
        let used = AtomicU64::new(0);
        Self {
            account: Arc::new(Account {
                limit,
                used,
                shares,
                whole,
                is_given,
            }),
        }
    }

    /// The most bytes that may be reserved at a time.
    pub fn limit(&self) -> u64 {
        self.account.limit
    }

    /// Whether somebody has said how much it is: it is not that of the machine.
    pub(crate) fn is_given(&self) -> bool {
        self.account.is_given
    }

    /// The bytes that are not reserved now.
    pub fn free(&self) -> u64 {
        self.limit() - self.account.used.load(Ordering::Relaxed)
    }

    /// An equal share of the limit for one of `parts`, with an account of its
    /// own.
    pub fn share(&self, parts: usize) -> Self {
        let parts = parts.max(1) as u64;
        let (shares, whole) = (self.account.shares, self.account.whole);
        let of = (shares.saturating_mul(parts), whole);
        Self::new(self.limit() / parts, of, self.account.is_given)
    }

    /// What one rank may use: a share if the ranks are threads of this
    /// process, all of it if the rank is a process.
    pub fn for_rank(&self, comm: &Comm) -> Self {
        if comm.transport().shares_memory() {
            self.share(comm.size())
        } else {
            self.clone()
        }
    }

    /// Fails unless the limit is at least `least`, what `purpose` needs.
    pub fn require(&self, least: u64, purpose: &str) -> Result<()> {
        if least <= self.limit() {
            return Ok(());
        }
        Err(self.too_small(least, purpose))
    }

    /// Takes `bytes` from the budget, or says what would be enough.
    pub fn reserve(&self, bytes: u64, purpose: &str) -> Result<Reservation> {
        let taken = |used: u64| used.checked_add(bytes).filter(|sum| *sum <= self.limit());
        let used = &self.account.used;
        match used.fetch_update(Ordering::Relaxed, Ordering::Relaxed, taken) {
            Ok(_) => Ok(Reservation {
                account: Arc::clone(&self.account),
                bytes,
            }),
            Err(used) => Err(self.too_small(used.saturating_add(bytes), purpose)),
        }
    }

    fn too_small(&self, least: u64, purpose: &str) -> Error {
        Error::Memory {
            purpose: purpose.into(),
            least: least.saturating_mul(self.account.shares),
            limit: self.account.whole,
        }
    }
}

impl Reservation {
    /// How many bytes it holds.
    pub fn bytes(&self) -> u64 {
        self.bytes
    }
}

impl Drop for Reservation {
    fn drop(&mut self) {
        self.account.used.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The memory that programs could use without swapping.
pub(crate) fn available_bytes() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let line = text
        .lines()
        .find(|line| line.starts_with("MemAvailable:"))?;
    let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
    Some(kibibytes * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reservations_are_counted_and_given_back() {
        let budget = MemoryBudget::of(100);
        let first = budget.reserve(60, "a").unwrap();
        assert!(budget.clone().reserve(41, "b").is_err());
        let second = budget.clone().reserve(40, "b").unwrap();
        assert_eq!((budget.free(), first.bytes()), (0, 60));
        drop((first, second));
        assert_eq!(budget.free(), 100);
        assert!(budget.reserve(u64::MAX, "c").is_err());
    }

    #[test]
    fn a_share_names_what_the_whole_needs() {
        let budget = MemoryBudget::of(8 << 20);
        let share = budget.share(2).share(2);
        assert_eq!(share.limit(), 2 << 20);
        let all = share.reserve(2 << 20, "a").unwrap();
        assert_eq!((share.free(), budget.free()), (0, 8 << 20));
        drop(all);
        let message = share.require(3 << 20, "the sweep").unwrap_err().to_string();
        assert_eq!(
            message,
            "the sweep needs at least 12 MiB of memory, but the budget is 8 MiB; give more (--memory)"
        );
    }

    #[test]
    fn ranks_that_are_threads_divide_it() {
        let budget = MemoryBudget::of(3000);
        let limits = crate::run(3, |comm| Ok::<_, Error>(budget.for_rank(comm).limit())).unwrap();
        assert_eq!(limits, [1000; 3]);
    }

    #[test]
    fn the_machine_has_memory() {
        assert!(MemoryBudget::machine().limit() > 0);
    }
}
