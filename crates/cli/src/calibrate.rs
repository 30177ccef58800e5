//! `outcore calibrate`: what the storage costs, and messages between ranks.

use std::path::{Path, PathBuf};

use clap::Args;
use outcore::{AllToAllCost, Cost, Error, ExchangeCost, Result, StorageProfile};

use crate::bytes::show;
use crate::progress::Progress;
use crate::ranks::{Ranks, once, print};

/// Measure what the storage of a directory costs, once, for the cost model
///
/// Takes a second or so on a fast disk and perhaps a minute on a slow one or over a
/// network, and a scratch file of 64 MiB, which is removed. The result is kept in the
/// cache directory ($XDG_CACHE_HOME/outcore or ~/.cache/outcore), for all
/// arrays on the same file system; without it a fast local disk is assumed.
///
/// With --transport, measure instead what it costs ranks to come to terms and to
/// send each other data, alone and all to all: threads of this machine or, under
/// mpirun, processes.
/// That is kept for all programs whose ranks are connected by the same library.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore calibrate .
  outcore calibrate /scratch --json
  outcore calibrate --transport --ranks 4
  mpirun -n 16 outcore calibrate --transport")]
pub(crate) struct Calibrate {
    /// A directory on the file system
    #[arg(required_unless_present = "transport", conflicts_with = "transport")]
    directory: Option<PathBuf>,
    /// Measure messages between ranks instead
    #[arg(long)]
    transport: bool,
    #[command(flatten)]
    ranks: Ranks,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Calibrate {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.directory {
            Some(_) if self.ranks.ranks.is_some() => Err(Error::Invalid(
                "storage is measured by one rank; --ranks goes with --transport".into(),
            )),
            Some(directory) => once(|| self.storage(directory)),
            None => self.transport(),
        }
    }

    fn storage(&self, directory: &Path) -> Result<()> {
        if !directory.is_dir() {
            return Err(Error::Invalid(format!(
                "{} is no directory; name one on the file system to measure",
                directory.display()
            )));
        }
        let progress = Progress::alone("measuring", StorageProfile::MEASURED);
        let profile = StorageProfile::measure(directory, &|bytes| progress.add(bytes))?;
        progress.finish();
        let kept = profile.keep(directory)?;
        if self.json {
            return print(&json(serde_json::to_value(profile)));
        }
        print(&format!(
            "{}{}{:<22} {:>10.1} at a time\n{}{}{}{:<22} {:>10.3} us each\nkept in {}\n",
            line("read, in the cache", profile.cached_read),
            line("read, from the device", profile.cold_read),
            "  the latter",
            profile.parallel,
            line("write", profile.write),
            line("copy", profile.copy),
            line("copy from a mapping", profile.mapped),
            "first write to a page",
            profile.first_write * 1e6,
            kept.display()
        ))
    }

    fn transport(&self) -> Result<()> {
        let cores = outcore::storage::cores() as u32;
        let ranks = match (self.ranks.ranks, outcore::under_launcher()) {
            (None, false) => Some(cores.max(2)),
            (asked, _) => asked,
        };
        Ranks::of(ranks).run(|comm| {
            let cost = ExchangeCost::measure(comm)?;
            let told = match comm.rank() {
                0 => cost.keep(comm).and_then(|kept| {
                    if self.json {
                        return print(&json(serde_json::to_value(cost)));
                    }
                    print(&format!(
                        "{:<22} {:>10.3} us for each doubling of the ranks\n{}{}kept in {} for ranks of {}\n",
                        "coming to terms",
                        cost.meeting * 1e6,
                        line("message", cost.message),
                        all_to_all(&cost.all_to_all, comm.size()),
                        kept.display(),
                        comm.transport().name()
                    ))
                }),
                _ => Ok(()),
            };
            Ok::<_, Error>(comm.agree(told)?)
        })
    }
}

fn json(profile: serde_json::Result<serde_json::Value>) -> String {
    format!("{:#}\n", profile.expect("numbers can be written"))
}

/// What all-to-all costs, and what is chosen for these ranks.
fn all_to_all(cost: &AllToAllCost, ranks: usize) -> String {
    let message = Cost {
        each: cost.message,
        byte: cost.byte,
    };
    let shared = Cost {
        each: cost.meeting,
        byte: cost.shared_byte,
    };
    let chosen = [8, 1 << 10, 32 << 10, 1 << 20].map(|bytes| {
        let best = cost.best(ranks, bytes, true);
        format!("{best} for {}", show(bytes as u64))
    });
    format!(
        "{:<22} {:>10.3} us each\n{}{}{:<22} {}\n",
        "all-to-all: step",
        cost.step * 1e6,
        line("  its messages", message),
        line("  shared, by doubling", shared),
        "  chosen",
        chosen.join(", ")
    )
}

fn line(name: &str, cost: Cost) -> String {
    let rate = 1e-9 / cost.byte;
    format!(
        "{name:<22} {:>10.3} us each {rate:>8.2} GB/s\n",
        cost.each * 1e6
    )
}
