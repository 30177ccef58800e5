//! What commands that work on whole arrays have in common: ranks, memory,
//! progress, and the closing line with time, speed and memory used.

use std::sync::OnceLock;
use std::time::Instant;

use outcore::{Comm, Op, PeakMemory, Result};
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
        let (progress, peak) = (OnceLock::new(), PeakMemory::watch());
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
            let used = comm.all_reduce(&[peak.bytes().unwrap_or(0)], Op::Max)?[0];
            let seconds = start.elapsed().as_secs_f64();
            let said = match comm.rank() {
                0 if self.json => {
                    let unit = done.unit.replace('/', "_per_").to_lowercase();
                    let mut facts = facts(done.told);
                    facts.insert(unit, json!(done.amount / seconds / 1e9));
                    print(&closing(facts, seconds, used))
                }
                0 => print(&format!(
                    "{}; {seconds:.2} s, {:.2} {}; peak memory {}\n",
                    done.told,
                    done.amount / seconds / 1e9,
                    done.unit,
                    bytes::show(used)
                )),
                _ => Ok(()),
            };
            Ok(comm.agree(said)?)
        })
    }
}

/// What was done, as JSON.
fn facts(told: String) -> Map<String, Value> {
    Map::from_iter([("done".to_owned(), told.into())])
}

/// The closing line as JSON: facts, the time and the memory used.
pub(crate) fn closing(mut facts: Map<String, Value>, seconds: f64, peak: u64) -> String {
    facts.insert("seconds".into(), json!(seconds));
    facts.insert("peak_memory_bytes".into(), json!(peak));
    format!("{}\n", Value::Object(facts))
}
