//! What commands that work on whole arrays have in common: ranks, memory,
//! progress, and the closing line with time, speed and memory used.

use std::sync::OnceLock;
use std::time::Instant;

use outcore::{Array, Comm, Op, PeakMemory, Result};
use outcore_apps::Resources;
use serde_json::{Map, Value, json};

use crate::bytes;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};

/// Work for all ranks.
pub(crate) struct Work<'a> {
    /// What the progress bar says.
    pub(crate) label: &'static str,
    pub(crate) ranks: Ranks,
    pub(crate) memory: &'a Memory,
    /// Whether the closing line is JSON.
    pub(crate) json: bool,
}

/// The option `--json` of commands that close with a line about their work.
#[derive(clap::Args)]
pub(crate) struct Closing {
    /// Print what was done as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// What to tell about work that is done.
pub(crate) struct Done {
    /// The arrays that it was made of, under the names that they have in JSON.
    pub(crate) inputs: Vec<(&'static str, Value)>,
    /// The array that was made.
    pub(crate) output: String,
    /// What was done, without time and memory.
    pub(crate) told: String,
    /// How much it was.
    pub(crate) amount: f64,
    /// In what the amount in a second is told, a billion of the amount's own.
    pub(crate) unit: &'static str,
}

impl Work<'_> {
    /// Opens on every rank, which also says how many bytes will be made, makes,
    /// and tells how it went.
    pub(crate) fn run<S>(
        &self,
        open: impl Fn(&Comm) -> Result<(S, u64)> + Sync,
        make: impl Fn(&Comm, &S, &Resources<'_>) -> Result<Done> + Sync,
    ) -> Result<()> {
        let (progress, begun) = (OnceLock::new(), Begun::now());
        let budget = self.memory.budget();
        self.ranks.run(|comm| {
            let (opened, bytes) = open(comm)?;
            let start = Instant::now();
            let progress =
                Progress::shared(&progress, self.label, comm, bytes / comm.size() as u64)?;
            let resources = Resources {
                budget: budget.clone(),
                progress: Some(&|bytes| progress.add(bytes)),
            };
            let done = make(comm, &opened, &resources)?;
            progress.finish();
            let ended = begun.end_since(comm, start)?;
            let rate = ended.rate(done.amount);
            let said = match comm.rank() {
                0 if self.json => {
                    let unit = done.unit.replace('/', "_per_").replace(' ', "_");
                    let unit = unit.to_lowercase();
                    let own = [("done", done.told.into()), (&*unit, json!(rate))];
                    let own = own.into_iter().chain(done.inputs);
                    Array::open(&done.output)
                        .and_then(|made| print(&ended.json(own.chain(made_facts(&made)))))
                }
                0 => print(&format!(
                    "{}; {:.2} s, {rate:.2} {}; peak memory {}\n",
                    done.told,
                    ended.seconds,
                    done.unit,
                    bytes::show(ended.peak)
                )),
                _ => Ok(()),
            };
            Ok(comm.agree(said)?)
        })
    }
}

/// What JSON says of an array that was made.
pub(crate) fn made_facts(made: &Array) -> [(&'static str, Value); 5] {
    [
        ("output", json!(made.name())),
        ("shape", json!(made.shape())),
        ("type", json!(made.element_type().name())),
        ("layout", json!(made.descriptor().arrangement.to_string())),
        ("bytes", json!(made.layout().byte_len())),
    ]
}

/// A run from its beginning.
pub(crate) struct Begun {
    start: Instant,
    peak: PeakMemory,
}

/// What a run has taken.
pub(crate) struct Ended {
    pub(crate) seconds: f64,
    /// Bytes of the process that used most.
    pub(crate) peak: u64,
}

impl Begun {
    pub(crate) fn now() -> Self {
        Self {
            start: Instant::now(),
            peak: PeakMemory::watch(),
        }
    }

    /// Collective: what it has taken until now.
    pub(crate) fn end(&self, comm: &Comm) -> Result<Ended> {
        self.end_since(comm, self.start)
    }

    /// Collective: the same, if the time began later.
    pub(crate) fn end_since(&self, comm: &Comm, start: Instant) -> Result<Ended> {
        let peak = comm.all_reduce(&[self.peak.bytes().unwrap_or(0)], Op::Max)?[0];
        let seconds = start.elapsed().as_secs_f64();
        Ok(Ended { seconds, peak })
    }
}

impl Ended {
    /// An amount in a second, in billions.
    pub(crate) fn rate(&self, amount: f64) -> f64 {
        amount / self.seconds / 1e9
    }

    /// The end of a closing line, for so many bytes.
    pub(crate) fn words(&self, bytes: u64) -> String {
        format!(
            "{:.2} s, {:.2} GB/s; peak memory {}",
            self.seconds,
            self.rate(bytes as f64),
            bytes::show(self.peak)
        )
    }

    /// The closing line as JSON: facts, the time and the memory used.
    pub(crate) fn json<N: Into<String>>(
        &self,
        facts: impl IntoIterator<Item = (N, Value)>,
    ) -> String {
        let facts = facts.into_iter();
        let mut all = Map::from_iter(facts.map(|(name, value)| (name.into(), value)));
        all.insert("seconds".into(), json!(self.seconds));
        all.insert("peak_memory_bytes".into(), json!(self.peak));
        format!("{}\n", Value::Object(all))
    }
}
