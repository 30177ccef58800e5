//! [`ExchangeCost`]: what it costs ranks to come to terms and to send each other
//! data. Assumed, or measured once and kept.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::OnceLock;
use std::time::Instant;

use outcore_storage::cores;
use outcore_transport::{AllToAll, AllToAllCost, Comm, Exchange, Op};
use serde::{Deserialize, Serialize};

use crate::error::{Error, Result};
use crate::interrupt;
use crate::strategy::profile::Cost;

/// So often a thing is done in a row, since who comes last waits for nobody;
/// and of so many rows the fastest counts.
const ROW: usize = 16;
const ROWS: usize = 5;

/// The bytes of a message that tells what each costs, and what a byte does.
const SMALL: usize = 64;
const LARGE: usize = 1 << 20;

/// What messages between ranks cost, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct ExchangeCost {
    /// Coming to terms, for each doubling of the number of ranks.
    pub meeting: f64,
    /// A message between two ranks: the time of one processor.
    pub message: Cost,
    /// What `auto` chooses all-to-all algorithms by.
    #[serde(with = "KeptAllToAllCost", default)]
    pub all_to_all: AllToAllCost,
}

/// How [`AllToAllCost`] is kept.
#[derive(Serialize, Deserialize)]
#[serde(remote = "AllToAllCost")]
struct KeptAllToAllCost {
    step: f64,
    message: f64,
    byte: f64,
    meeting: f64,
    shared_byte: f64,
}

impl Default for ExchangeCost {
    /// Ranks on one machine.
    fn default() -> Self {
        Self {
            meeting: 5e-6,
            message: Cost {
                each: 2e-6,
                byte: 0.16e-9,
            },
            all_to_all: AllToAllCost::default(),
        }
    }
}

impl ExchangeCost {
    /// Collective: measures the ranks of a group, of which there must be two or
    /// more. All get the same numbers.
    pub fn measure(comm: &Comm) -> Result<Self> {
        if comm.size() < 2 {
            return Err(Error::Invalid(
                "one rank alone exchanges nothing: start two or more".into(),
            ));
        }
        let ranks = comm.size() as f64;
        let abreast = (cores() as f64).clamp(1.0, ranks);
        let terms = fastest(comm, || Ok(comm.agree(Ok::<_, Error>(()))?))?;
        let small = fastest(comm, || everybody_sends(comm, SMALL))?;
        let large = fastest(comm, || everybody_sends(comm, LARGE))?;
        let messages = ranks * (ranks - 1.0) / abreast;
        let each = (small - terms).max(small * 0.1) / messages;
        let byte = (large - small).max(0.0) / messages / LARGE as f64;
        let own = [terms / ranks.log2(), each, byte];
        // What the slowest has seen.
        let all = comm.all_reduce(&own, Op::Max)?;
        Ok(Self {
            meeting: all[0],
            message: Cost {
                each: all[1],
                byte: all[2],
            },
            all_to_all: measure_all_to_all(comm)?,
        })
    }

    /// Collective: a handle on the same group that chooses all-to-all algorithms
    /// by what rank 0 has kept, on all ranks.
    pub(crate) fn adopted(comm: &Comm) -> outcore_transport::Result<Comm> {
        let own = Self::kept(comm).all_to_all;
        let mut told = [
            own.step,
            own.message,
            own.byte,
            own.meeting,
            own.shared_byte,
        ];
        // Threads have read the same file.
        if !comm.transport().shares_memory() {
            comm.broadcast(0, &mut told)?;
        }
        let [step, message, byte, meeting, shared_byte] = told;
        Ok(comm.with_all_to_all_cost(AllToAllCost {
            step,
            message,
            byte,
            meeting,
            shared_byte,
        }))
    }

    /// Keeps it for programs whose ranks are connected in the same way.
    pub fn keep(&self, comm: &Comm) -> Result<PathBuf> {
        let mut all = read_kept();
        all.insert(comm.transport().name(), *self);
        let text = serde_json::to_string_pretty(&all).expect("numbers can be written");
        crate::strategy::calibrate::keep_text(FILE, &text)
    }

    /// What was kept for such ranks when this process first asked, or what is
    /// assumed.
    pub fn kept(comm: &Comm) -> Self {
        static KEPT: OnceLock<BTreeMap<String, ExchangeCost>> = OnceLock::new();
        let all = KEPT.get_or_init(read_kept);
        let kept = all.get(&comm.transport().name());
        kept.copied().unwrap_or_default()
    }
}

const FILE: &str = "transports.json";

fn read_kept() -> BTreeMap<String, ExchangeCost> {
    let path = crate::strategy::calibrate::cache_file(FILE);
    let text = path.and_then(|path| std::fs::read(path).ok());
    text.and_then(|text| serde_json::from_slice(&text).ok())
        .unwrap_or_default()
}

/// Collective: the seconds of `work`; fails on all ranks after a signal.
fn fastest(comm: &Comm, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..ROWS {
        comm.agree(interrupt::check())?;
        let start = Instant::now();
        (0..ROW).try_for_each(|_| work())?;
        best = best.min(start.elapsed().as_secs_f64() / ROW as f64);
    }
    Ok(best)
}

/// Collective: fits the model of all-to-all to what some algorithms take with
/// short and with longer parts.
fn measure_all_to_all(comm: &Comm) -> Result<AllToAllCost> {
    const SHORT: usize = 8;
    const LONG: usize = 64 << 10;
    let ranks = comm.size();
    let seconds = |algorithm: AllToAll, bytes: usize| {
        let (sent, mut received) = (vec![7u8; bytes * ranks], vec![0u8; bytes * ranks]);
        let own = fastest(comm, || {
            Ok(comm.all_to_all_into(&sent, &mut received, algorithm)?)
        })?;
        Ok::<_, Error>(comm.all_reduce_one(own, Op::Max)?)
    };
    let [shared, messages, general] =
        [AllToAll::Shared, AllToAll::Messages, AllToAll::Gen].map(|way| seconds(way, SHORT));
    let (shared, messages, general) = (shared?, messages?, general?);
    let others = (ranks - 1) as f64;
    // Messages: one step, all messages; general: a step for each. Two ranks
    // cannot tell them apart.
    let step = match ranks {
        2 => messages / 2.0,
        _ => (general - messages) / (others - 1.0),
    };
    let step = step.clamp(0.0, messages);
    let byte = |short: f64, long: f64| (long - short).max(0.0) / others / (LONG - SHORT) as f64;
    Ok(AllToAllCost {
        step,
        message: (messages - step) / others,
        byte: byte(messages, seconds(AllToAll::Messages, LONG)?),
        meeting: shared / f64::from(ranks.next_power_of_two().trailing_zeros()),
        shared_byte: byte(shared, seconds(AllToAll::Shared, LONG)?),
    })
}

/// Every rank sends every other one so many bytes.
fn everybody_sends(comm: &Comm, bytes: usize) -> Result<()> {
    let sent = vec![7u8; bytes];
    let mut received = vec![0u8; bytes * (comm.size() - 1)];
    let others = (0..comm.size()).filter(|rank| *rank != comm.rank());
    let mut exchange = Exchange::new();
    for (rank, into) in others.zip(received.chunks_exact_mut(bytes)) {
        exchange.send(rank, &sent);
        exchange.receive(rank, into);
    }
    Ok(comm.exchange(&mut exchange)?)
}
