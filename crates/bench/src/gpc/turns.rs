//! Contestants of rank 0 alone, who take turns; every call is timed.

use std::time::{Duration, Instant};

use outcore::Result;

/// Somebody who does the same as the others of its case.
pub(super) struct Player<'a> {
    pub(super) system: &'static str,
    pub(super) strategy: &'static str,
    /// How long it computes between its calls, off the clock.
    pub(super) pause: Duration,
    pub(super) call: Box<dyn FnMut() -> Result<()> + 'a>,
    /// Whether what came is right.
    pub(super) check: Box<dyn FnMut() -> Result<bool> + 'a>,
}

/// What was measured of one.
#[derive(Debug, Default)]
pub(super) struct Times {
    /// All calls, ascending.
    calls: Vec<f64>,
    pub(super) ok: bool,
}

impl Times {
    /// The best call.
    pub(super) fn best(&self) -> f64 {
        self.quantile(0.0)
    }

    /// What so large a part of the calls took at most.
    pub(super) fn quantile(&self, part: f64) -> f64 {
        let last = self.calls.len().saturating_sub(1);
        let place = (last as f64 * part).round() as usize;
        self.calls.get(place).copied().unwrap_or(0.0)
    }
}

/// How long a turn is.
const TURN: Duration = Duration::from_millis(50);

/// The most calls in one.
const MOST: usize = 20_000;

/// Lets all have `rounds` turns, after one that does not count.
pub(super) fn take_turns(players: &mut [Player<'_>], rounds: usize) -> Result<Vec<Times>> {
    let mut all: Vec<Times> = players.iter().map(|_| Times::default()).collect();
    for round in 0..=rounds {
        for step in 0..players.len() {
            let place = (step + round) % players.len();
            let (player, times) = (&mut players[place], &mut all[place]);
            let began = Instant::now();
            let (mut calls, mut last) = (0, began);
            while calls < MOST && last - began < TURN {
                let paused = last;
                while last - paused < player.pause {
                    last = Instant::now();
                }
                (player.call)()?;
                let now = Instant::now();
                if round > 0 {
                    times.calls.push((now - last).as_secs_f64());
                }
                (calls, last) = (calls + 1, now);
            }
            times.ok = (player.check)()? && (times.ok || round == 0);
        }
    }
    for times in &mut all {
        times.calls.sort_by(f64::total_cmp);
    }
    Ok(all)
}
