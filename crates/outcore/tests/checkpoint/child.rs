//! A program that saves checkpoints, in a process of its own: this test program,
//! started again with the name of the one test below.

use std::os::unix::fs::FileExt;
use std::path::PathBuf;
use std::process::Command;

use outcore::{Checkpoints, Comm, Error};

use crate::place::State;

/// What the process does.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Task {
    /// Saves one more state, and prints what every rank is told.
    Once,
    /// Goes on from the newest state for ever, with a new name for each.
    Steps,
    /// The same, always under the same name.
    Same,
}

/// This test program.
pub(crate) fn program() -> PathBuf {
    std::env::current_exe().expect("this program")
}

/// Lets `command` do a task on the series in `directory`.
pub(crate) fn arguments(command: &mut Command, directory: &str, ranks: usize, task: Task) {
    command
        .args(["--exact", "child::works", "--nocapture"])
        .env("OUTCORE_TEST_SERIES", directory)
        .env("OUTCORE_TEST_RANKS", ranks.to_string())
        .env("OUTCORE_TEST_TASK", format!("{task:?}"));
}

/// Nothing, unless started by another test.
#[test]
fn works() {
    let of = |name: &str| std::env::var(format!("OUTCORE_TEST_{name}"));
    let (Ok(directory), Ok(ranks), Ok(task)) = (of("SERIES"), of("RANKS"), of("TASK")) else {
        return;
    };
    let outcome = outcore::run(ranks.parse().unwrap(), |comm| {
        let series = Checkpoints::open(comm, &directory)?;
        match task.as_str() {
            "Once" => {
                let state = State::of(comm, 2)?;
                let outcome = series.save(comm, "step-2", &state.snapshot());
                println!(
                    "{}",
                    outcome.map_or_else(|e| e.to_string(), |_| "saved".into())
                );
                Ok(())
            }
            "Steps" => for_ever(comm, &series.keep(2), |step| format!("step-{step}")),
            _ => for_ever(comm, &series.keep(1), |_| "state".into()),
        }
    });
    outcome.unwrap();
}

/// Saves state after state. After each, the number of the step is written beside
/// the series.
fn for_ever(comm: &Comm, series: &Checkpoints, name: impl Fn(u64) -> String) -> Result<(), Error> {
    let mut step = match series.latest(comm)? {
        Some(last) => State::load(comm, &last)?.step,
        None => 0,
    };
    let saved = std::fs::File::options()
        .write(true)
        .create(true)
        .truncate(false)
        .open(format!("{}.saved", series.directory()));
    let saved = saved.expect("a file can be made beside the series");
    loop {
        step += 1;
        let state = State::of(comm, step)?;
        series.save(comm, &name(step), &state.snapshot())?;
        if comm.rank() == 0 {
            saved
                .write_all_at(&step.to_le_bytes(), 0)
                .expect("it can be written");
        }
    }
}
