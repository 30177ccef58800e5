//! The bench `sweep`: what prefetch, write-behind and reuse gain, beside the
//! same work done step by step.
//!
//! On a slow device (in real time, and exactly in virtual time) reading a slab,
//! computing on it and writing it take equal time, `u`: 16 slabs then take
//! `32 u` without and `17 u` with prefetch, and with writing `48 u` without
//! and `18 u` with write-behind as well. What sweeps cost on a file is in
//! `file`.

mod file;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outcore::storage::{DeviceModel, MemoryStore, Queues, Store, ThrottledStore, Time};
use outcore::{
    Array, ArrayDescriptor, ElementType, Error, MemoryBudget, Result, Sweep, WriteBehind,
};

use crate::contest::{Contestant, contest};
use crate::line::Line;

const SLABS: u64 = 16;
/// Columns of the slow array, of one byte each.
const COLUMNS: u64 = 10_000;
/// How long a slab takes to read, to compute on, and to write.
const UNIT: Duration = Duration::from_millis(10);

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct SweepOptions {
    /// Where the file is made for the time being.
    pub directory: PathBuf,
    /// Repetitions.
    pub repeats: usize,
}

/// What a contestant does on the slow device.
#[derive(Debug, Clone, Copy)]
struct Way {
    case: &'static str,
    strategy: &'static str,
    ahead: usize,
    /// Rows of a slab that the next one needs again.
    halo: u64,
    reuse: bool,
    /// Whether the slabs are written, too, and with how many in flight.
    write: Option<usize>,
}

const READ_ONLY: &str = "16 slabs read";
const IN_PLACE: &str = "16 slabs read and written";
const HALO: &str = "16 slabs with a halo of 1";

const WAYS: [Way; 7] = [
    Way {
        case: READ_ONLY,
        strategy: "none",
        ahead: 0,
        halo: 0,
        reuse: false,
        write: None,
    },
    Way {
        case: READ_ONLY,
        strategy: "prefetch",
        ahead: 1,
        halo: 0,
        reuse: false,
        write: None,
    },
    Way {
        case: IN_PLACE,
        strategy: "none",
        ahead: 0,
        halo: 0,
        reuse: false,
        write: Some(0),
    },
    Way {
        case: IN_PLACE,
        strategy: "prefetch+write-behind",
        ahead: 1,
        halo: 0,
        reuse: false,
        write: Some(1),
    },
    Way {
        case: HALO,
        strategy: "none",
        ahead: 0,
        halo: 1,
        reuse: false,
        write: None,
    },
    Way {
        case: HALO,
        strategy: "reuse",
        ahead: 0,
        halo: 1,
        reuse: true,
        write: None,
    },
    Way {
        case: HALO,
        strategy: "prefetch+reuse",
        ahead: 1,
        halo: 1,
        reuse: true,
        write: None,
    },
];

/// Runs the bench.
pub fn sweep(options: &SweepOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench is for one rank; start it without a launcher".into(),
        ));
    }
    let mut lines = Vec::new();
    for case in [READ_ONLY, IN_PLACE, HALO] {
        let ways = || WAYS.iter().filter(move |way| way.case == case);
        for way in ways() {
            let seconds = way.run(Time::Virtual)?.as_secs_f64();
            let mut line = way.line("virtual time");
            (line.best_s, line.median_s) = (seconds, seconds);
            lines.push(line);
        }
        let contestants = || ways().map(|way| way.contestant()).collect();
        let measured = outcore::run(1, |comm| contest(comm, contestants(), options.repeats))?;
        lines.extend(measured.into_iter().flatten());
    }
    lines.extend(file::summed(options)?);
    Ok(lines)
}

impl Way {
    fn line(&self, time: &str) -> Line {
        line(
            self.strategy != "none",
            format!("{} ({time})", self.case),
            self.strategy,
            SLABS * COLUMNS,
        )
    }

    fn contestant(&self) -> Contestant<'_> {
        let way = *self;
        Contestant {
            line: self.line("real time"),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || way.run(Time::Real).map(drop)),
            check: Box::new(|| true),
            batch: 1,
        }
    }

    /// Sweeps; returns the time on the device's clock.
    fn run(&self, time: Time) -> Result<Duration> {
        let rows = SLABS * if self.halo > 0 { 2 } else { 1 };
        let bytes = SLABS * COLUMNS;
        let model = DeviceModel {
            latency: Duration::ZERO,
            bandwidth: COLUMNS as f64 / UNIT.as_secs_f64(),
            // One for reading and one for writing.
            queues: Queues::Streams(2),
        };
        let store = ThrottledStore::new(MemoryStore::from(vec![1; bytes as usize]), model, time)?;
        let clock = Arc::new(store);
        let shared: Arc<dyn Store> = clock.clone();
        let shape = [rows, bytes / rows];
        let array = Array::in_store(
            "slow",
            &ArrayDescriptor::new(&shape, ElementType::U8),
            shared,
        )?;
        let budget = MemoryBudget::of(1 << 20);
        let depth = self.write.filter(|depth| *depth > 0);
        let mut writer = depth.map(|depth| WriteBehind::<u8>::start(&array, depth, &budget));
        let sweep = Sweep::<u8>::of(&array)
            .halo(&[(self.halo, self.halo), (0, 0)])
            .ahead(self.ahead)
            .reuse(self.reuse)
            .thickness(Some(rows / SLABS))
            .budget(&budget)
            .start::<u8>()?;
        for tile in sweep {
            let tile = tile?;
            match time {
                Time::Virtual => clock.spend(UNIT),
                Time::Real => compute(UNIT),
            }
            match (&mut writer, self.write) {
                (Some(Ok(writer)), _) => {
                    let mut values = writer.buffer(tile.values().len())?;
                    values.copy_from_slice(tile.values());
                    writer.write(tile.core(), values)?;
                }
                (None, Some(_)) => array.write(tile.core(), tile.values())?,
                _ => {}
            }
        }
        if let Some(writer) = writer {
            writer?.finish()?;
        }
        Ok(clock.elapsed())
    }
}

/// Keeps a processor busy.
fn compute(time: Duration) {
    let start = Instant::now();
    while start.elapsed() < time {
        std::hint::spin_loop();
    }
}

fn line(swept: bool, case: String, strategy: &str, useful_bytes: u64) -> Line {
    Line {
        system: if swept { "outcore" } else { "step by step" }.into(),
        bench: "sweep",
        case,
        op: "sweep",
        strategy: strategy.into(),
        transport: "threads".into(),
        ranks: 1,
        useful_bytes,
        best_s: 0.0,
        median_s: 0.0,
        ok: true,
    }
}
