//! Killed at random moments, fifty times: the newest checkpoint is complete, and
//! is the last that was saved or the one after it.

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use crate::child::{self, Task};
use crate::place::{Place, State};

/// How often the program is killed.
const KILLS: u64 = 50;

/// Marsaglia's xorshift, with a fixed seed.
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        self.0 % limit
    }
}

#[test]
fn at_fifty_random_moments() {
    let mut random = Random(0x9e37_79b9_7f4a_7c15);
    let places = [(Place::new(), Task::Steps), (Place::new(), Task::Same)];
    let (mut in_the_middle, mut restored, mut steps) = (0, 0, [0, 0]);
    for kill in 0..KILLS {
        let which = (kill % 2) as usize;
        let (place, task) = &places[which];
        let mut command = Command::new(child::program());
        let ranks = 1 + random.below(5) as usize;
        child::arguments(&mut command, &place.series(), ranks, *task);
        let mut process = command.stdout(Stdio::null()).spawn().expect("it starts");
        // The first time, and every other time, when it has saved something.
        let (begun, before) = (Instant::now(), saved(place));
        let waits = before.is_none() || random.below(2) == 0;
        while waits && saved(place) == before {
            assert!(
                begun.elapsed() < Duration::from_secs(60),
                "nothing was saved"
            );
            std::thread::sleep(Duration::from_millis(1));
        }
        std::thread::sleep(Duration::from_micros(random.below(100_000)));
        process.kill().expect("it can be killed");
        process.wait().expect("it ends");

        let last = saved(place).expect("something was saved");
        let left = place.names().iter().any(|name| name.starts_with('.'));
        in_the_middle += u64::from(left);
        let ranks = 1 + random.below(5) as usize;
        let found = place.on(ranks, |comm, series| {
            let latest = series.latest(comm).unwrap().expect("there is always one");
            State::load(comm, &latest).unwrap().step
        });
        assert!(
            found.iter().all(|step| [last, last + 1].contains(step)),
            "{found:?} after {last}"
        );
        assert!(found[0] >= steps[which]);
        steps[which] = found[0];
        restored += 1;
    }
    println!(
        "{restored} of {KILLS} restored; {in_the_middle} killed while files had no name; \
         {} and {} checkpoints saved",
        steps[0], steps[1]
    );
    assert_eq!(restored, KILLS);
    assert!(
        in_the_middle > KILLS / 10,
        "only {in_the_middle} were killed in the middle"
    );
}

/// The last step of which the program knew that it was saved.
fn saved(place: &Place) -> Option<u64> {
    let bytes = std::fs::read(place.path("series.saved")).ok()?;
    Some(u64::from_le_bytes(bytes.try_into().ok()?))
}
