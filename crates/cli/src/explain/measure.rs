//! `--analyze`: how long each strategy really takes.
//!
//! One rank tries every strategy in turn; several ranks, as threads that start
//! together, the strategy that each has chosen. The best of three counts, of
//! slow ones fewer. A write puts back what was read just before, outside of
//! the measured time. A try that takes long has a progress bar of its own.

use std::sync::{PoisonError, RwLock};
use std::thread::{self, Builder};
use std::time::{Duration, Instant};

use outcore::{Array, Error, MemoryBudget, Pieces, Result, Section, Strategy, Tuning};

use super::{Account, Explain};
use crate::progress::Progress;

/// The most that a rank holds in memory.
const PIECE: u64 = 64 << 20;
/// What takes longer is not repeated.
const PATIENCE: Duration = Duration::from_secs(1);
const REPEATS: usize = 3;

impl Explain {
    /// Brings everything between the first and the last element of the sections
    /// into the page cache, unless it is too much to stay there.
    pub(super) fn warm(&self, array: &Array, sections: &[(usize, Section)]) -> Result<()> {
        let Some(slowest) = array.layout().slowest_first().first() else {
            return Ok(());
        };
        let bounds = sections
            .iter()
            .filter(|(_, section)| !section.is_empty())
            .map(|(_, section)| section.axes()[*slowest].bounds());
        let Some((lower, upper)) = bounds.reduce(|a, b| (a.0.min(b.0), a.1.max(b.1))) else {
            return Ok(());
        };
        let between = array.whole().slice(*slowest, lower, upper);
        let bytes = between.count() * array.layout().element_size();
        if bytes > MemoryBudget::machine().limit() {
            return Ok(());
        }
        let progress = Progress::alone("reading", bytes);
        move_pieces(array, &between, PIECE, |piece, values| {
            array.read_bytes(piece, values)?;
            progress.add(values.len() as u64);
            Ok(())
        })
    }

    /// Measures what the accounts predict.
    pub(super) fn measure(&self, accounts: &mut [Account]) -> Result<()> {
        if let [account] = accounts {
            for at in 0..account.estimates.len() {
                let strategy = account.estimates[at].strategy;
                let took = self.measure_ranks(&[(&account.section, strategy)])?;
                account.measured[at] = Some(took[0]);
            }
            if account.estimates.is_empty() {
                let strategy = account.plan.strategy();
                let took = self.measure_ranks(&[(&account.section, strategy)])?;
                account.took = Some(took[0]);
            }
            return Ok(());
        }
        let accesses: Vec<_> = accounts
            .iter()
            .map(|account| (&account.section, account.plan.strategy()))
            .collect();
        let took = self.measure_ranks(&accesses)?;
        for (account, seconds) in accounts.iter_mut().zip(took) {
            let strategy = account.plan.strategy();
            let found = account
                .estimates
                .iter()
                .position(|e| e.strategy == strategy);
            match found {
                Some(at) => account.measured[at] = Some(seconds),
                None => account.took = Some(seconds),
            }
        }
        Ok(())
    }

    /// The seconds that each of these accesses takes when all start together.
    fn measure_ranks(&self, accesses: &[(&Section, Strategy)]) -> Result<Vec<f64>> {
        let open_all = || -> Result<Vec<Array>> {
            let strategies = accesses.iter().map(|(_, strategy)| *strategy);
            strategies.map(|strategy| self.opened(strategy)).collect()
        };
        let mut best = vec![f64::INFINITY; accesses.len()];
        let begin = Instant::now();
        let mut arrays = open_all()?;
        for repeat in 0..REPEATS {
            // What a mapping has touched is not dropped.
            if self.cold && repeat > 0 {
                arrays = open_all()?;
            }
            if self.cold
                && let Some(array) = arrays.first()
            {
                array.store().forget()?;
            }
            let sizes = arrays.iter().map(|array| array.layout().element_size());
            let bytes = accesses
                .iter()
                .zip(sizes)
                .map(|((section, _), size)| section.count() * size)
                .fold(0, u64::saturating_add);
            let label = match accesses {
                [(_, strategy)] => strategy.name(),
                _ => "measuring",
            };
            let progress = &Progress::alone(label, bytes);
            let piece = PIECE / accesses.len() as u64;
            let took = at_once(accesses.len(), |rank| {
                let (section, _) = accesses[rank];
                self.once_through(&arrays[rank], section, piece, progress)
            })?;
            for (best, seconds) in best.iter_mut().zip(took) {
                *best = best.min(seconds);
            }
            if begin.elapsed() > PATIENCE {
                break;
            }
        }
        Ok(best)
    }

    fn opened(&self, strategy: Strategy) -> Result<Array> {
        let array = self.open()?;
        let tuning = self.tuning.tuning();
        Ok(array.tuned(Tuning { strategy, ..tuning }))
    }

    /// The seconds of moving `section` once, in pieces that fit into memory.
    fn once_through(
        &self,
        array: &Array,
        section: &Section,
        piece: u64,
        progress: &Progress,
    ) -> Result<f64> {
        let mut seconds = 0.0;
        move_pieces(array, section, piece, |piece, values| {
            if self.rewrite {
                array.read_bytes(piece, values)?;
                if self.cold {
                    array.store().forget()?;
                }
            }
            let start = Instant::now();
            if self.rewrite {
                array.write_bytes(piece, values)?;
            } else {
                array.read_bytes(piece, values)?;
            }
            seconds += start.elapsed().as_secs_f64();
            progress.add(values.len() as u64);
            Ok(())
        })?;
        Ok(seconds)
    }
}

/// Does the `work` of so many ranks on a thread each, which start together once all of
/// them are there; none does if the system refuses one.
fn at_once<T: Send>(ranks: usize, work: impl Fn(usize) -> Result<T> + Sync) -> Result<Vec<T>> {
    // Locked while the threads are made; then it says whether they are to start.
    let gate = RwLock::new(false);
    thread::scope(|scope| {
        let mut all_there = gate.write().unwrap_or_else(PoisonError::into_inner);
        let begin = |rank: usize| {
            let (gate, work) = (&gate, &work);
            let thread = Builder::new().spawn_scoped(scope, move || {
                let start = *gate.read().unwrap_or_else(PoisonError::into_inner);
                start.then(|| work(rank))
            });
            thread.map_err(|error| {
                Error::Invalid(format!(
                    "there is no thread for rank {rank}: {error}; --ranks with a smaller number \
                     needs fewer"
                ))
            })
        };
        let threads: Result<Vec<_>> = (0..ranks).map(begin).collect();
        *all_there = threads.is_ok();
        drop(all_there);
        let joined = threads?.into_iter().map(|thread| thread.join());
        joined
            .filter_map(|done| done.unwrap_or_else(|panic| std::panic::resume_unwind(panic)))
            .collect()
    })
}

/// Cuts `section` into pieces of at most so many bytes, and moves each.
fn move_pieces(
    array: &Array,
    section: &Section,
    most: u64,
    mut each: impl FnMut(&Section, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let size = array.layout().element_size();
    let mut values = Vec::new();
    for piece in Pieces::new(section, array.layout().slowest_first(), most / size) {
        values.resize((piece.count() * size) as usize, 0);
        each(&piece, &mut values)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_start_or_none() {
        let twice = at_once(3, |rank| Ok(2 * rank)).unwrap();
        assert_eq!(twice, [0, 2, 4]);
        let failure = at_once(3, |rank| match rank {
            1 => Err(Error::Invalid("one".into())),
            _ => Ok(()),
        });
        assert_eq!(failure.unwrap_err().to_string(), "one");
    }

    /// The variable under which the test runs itself in a process that gets few threads.
    const FEW: &str = "OUTCORE_TEST_FEW_THREADS";

    #[test]
    fn nobody_waits_for_threads_that_are_refused() {
        if std::env::var_os(FEW).is_some() {
            let outcome = at_once(50, |_| -> Result<()> { panic!("it has started") });
            let problem = outcome.unwrap_err().to_string();
            assert!(problem.contains("no thread for rank"), "{problem}");
            assert!(!problem.contains("for rank 0:"), "{problem}");
            return;
        }
        let name = "explain::measure::tests::nobody_waits_for_threads_that_are_refused";
        // There is room for the stacks of some threads, but not of all.
        let limited = "ulimit -v 4000000; exec \"$0\" --exact \"$1\" --test-threads=1";
        let output = std::process::Command::new("sh")
            .args(["-c", limited])
            .arg(std::env::current_exe().unwrap())
            .arg(name)
            .env(FEW, "yes")
            .env("RUST_MIN_STACK", "1000000000")
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stdout);
        assert!(output.status.success(), "{told}");
        assert!(told.contains("1 passed"), "{told}");
    }
}
