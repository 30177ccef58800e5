//! [`contest()`]: contestants take turns, on all ranks at once.

use std::time::Duration;

use outcore::{Comm, Result};

use crate::line::Line;

/// Somebody who does the same work as the others of its case.
pub struct Contestant<'a> {
    /// Its line, of which the times and the verdict are still to come.
    pub line: Line,
    /// Done before each repetition, off the clock.
    pub prepare: Box<dyn FnMut() -> Result<()> + 'a>,
    /// The work of this rank.
    pub work: Box<dyn FnMut() -> Result<()> + 'a>,
    /// Whether the work of this rank came out right; off the clock.
    pub check: Box<dyn FnMut() -> bool + 'a>,
    /// How many times the work is done in one repetition.
    pub batch: u32,
}

/// Collective: every contestant does its work `repeats` times, in turns. A
/// repetition lasts from the first rank's start to the last rank's end.
pub fn contest(comm: &Comm, contestants: Vec<Contestant<'_>>, repeats: usize) -> Result<Vec<Line>> {
    contest_within(comm, contestants, repeats, None)
}

/// Collective: the same; who has taken longer than `patience` in all takes no
/// more turns.
pub(crate) fn contest_within(
    comm: &Comm,
    mut contestants: Vec<Contestant<'_>>,
    repeats: usize,
    patience: Option<Duration>,
) -> Result<Vec<Line>> {
    let mut times = vec![Vec::new(); contestants.len()];
    let mut right = vec![true; contestants.len()];
    let mut spent = vec![Duration::ZERO; contestants.len()];
    let tired = |spent: Duration| patience.is_some_and(|patience| spent > patience);
    // The first round warms up and does not count.
    for round in 0..=repeats {
        for at in order(contestants.len(), round) {
            if tired(spent[at]) {
                continue;
            }
            let contestant = &mut contestants[at];
            comm.agree((contestant.prepare)())?;
            comm.barrier()?;
            let start = now();
            let outcome = (0..contestant.batch).try_for_each(|_| (contestant.work)());
            let end = now();
            comm.agree(outcome)?;
            let all = comm.all_gather(&[start.as_nanos() as u64, end.as_nanos() as u64])?;
            let (first, last) = all
                .chunks_exact(2)
                .fold((u64::MAX, 0), |(first, last), times| {
                    (first.min(times[0]), last.max(times[1]))
                });
            right[at] &= (contestant.check)();
            spent[at] += Duration::from_nanos(last - first);
            // Who is tired after one turn has no other.
            if round > 0 || tired(spent[at]) {
                times[at].push((last - first) as f64 / 1e9 / f64::from(contestant.batch));
            }
        }
    }
    let wrong: Vec<u64> = right.iter().map(|right| u64::from(!right)).collect();
    let wrong = comm.all_reduce(&wrong, outcore::Op::Sum)?;
    let lines = contestants.into_iter().zip(times).zip(wrong);
    Ok(lines
        .map(|((contestant, mut times), wrong)| {
            times.sort_by(f64::total_cmp);
            let mut line = contestant.line;
            line.best_s = times.first().copied().unwrap_or(0.0);
            line.median_s = times.get(times.len() / 2).copied().unwrap_or(0.0);
            line.ok = wrong == 0;
            line
        })
        .collect())
}

/// An order of the contestants for a round, the same on all ranks. It differs
/// from round to round, since each finds the processor's caches as the one
/// before it left them.
fn order(contestants: usize, round: usize) -> Vec<usize> {
    let mut order: Vec<usize> = (0..contestants).collect();
    let mut state = round as u64;
    for last in (1..contestants).rev() {
        // Knuth's linear congruential generator; its high bits are random.
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        order.swap(last, (state >> 33) as usize % (last + 1));
    }
    order
}

/// The time of a clock that all processes of one machine share.
#[cfg(target_os = "linux")]
fn now() -> Duration {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a valid timespec.
    unsafe { libc::clock_gettime(libc::CLOCK_MONOTONIC, &mut time) };
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// The time of a clock that the threads of this process share.
#[cfg(not(target_os = "linux"))]
fn now() -> Duration {
    static START: std::sync::OnceLock<std::time::Instant> = std::sync::OnceLock::new();
    START.get_or_init(std::time::Instant::now).elapsed()
}

#[cfg(test)]
mod tests {
    use super::order;

    #[test]
    fn every_round_has_all_contestants_in_another_order() {
        let rounds: Vec<Vec<usize>> = (0..8).map(|round| order(17, round)).collect();
        for (at, round) in rounds.iter().enumerate() {
            let mut sorted = round.clone();
            sorted.sort_unstable();
            assert!(sorted.into_iter().eq(0..17));
            assert!(!rounds[..at].contains(round));
        }
        assert_eq!(order(1, 3), [0]);
    }
}
