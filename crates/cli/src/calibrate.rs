//! `outcore calibrate`: what the storage costs.

use std::path::PathBuf;

use clap::Args;
use outcore::{Cost, Result, StorageProfile};

use crate::ranks::{once, print};

/// Measure what the storage of a directory costs, once, for the cost model
///
/// Takes a few seconds and a scratch file of 64 MiB. The result is kept in the
/// cache directory ($XDG_CACHE_HOME/outcore or ~/.cache/outcore), for all
/// arrays on the same file system; without it a fast local disk is assumed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore calibrate .
  outcore calibrate /scratch --json")]
pub(crate) struct Calibrate {
    /// A directory on the file system
    directory: PathBuf,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Calibrate {
    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let profile = StorageProfile::measure(&self.directory)?;
            let kept = profile.keep(&self.directory)?;
            if self.json {
                let text = serde_json::to_string_pretty(&profile).expect("numbers can be written");
                return print(&format!("{text}\n"));
            }
            let line = |name: &str, cost: Cost| {
                let rate = 1e-9 / cost.byte;
                format!(
                    "{name:<22} {:>10.3} us each {rate:>8.2} GB/s\n",
                    cost.each * 1e6
                )
            };
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
        })
    }
}
