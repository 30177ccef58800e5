//! `outcore checkpoint`: what programs have saved with `Checkpoints`; one file
//! per subcommand.

mod list;
mod prune;
mod time;
mod verify;

use std::path::Path;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand};
use outcore::{Checkpoints, Error, Result};

use crate::ranks::{ONE_A_CORE, Ranks, usual};
pub(crate) use time::utc;

/// List, verify and remove checkpoints that programs have saved
///
/// A series of checkpoints is a directory; each checkpoint in it is a directory
/// with a manifest and one array for each variable, which all other commands
/// read: 'outcore info run/step-000012/u.oc'.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore checkpoint list run
  outcore checkpoint verify run --ranks 2
  outcore checkpoint verify run step-000012 --json
  outcore checkpoint prune run --keep 3")]
pub(crate) struct Checkpoint {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand)]
enum Action {
    List(list::List),
    #[command(mut_arg("ranks", usual(ONE_A_CORE)))]
    Verify(verify::Verify),
    Prune(prune::Prune),
}

impl Checkpoint {
    pub(crate) fn run(&self) -> Result<()> {
        match &self.action {
            Action::List(command) => command.run(),
            Action::Verify(command) => command.run(),
            Action::Prune(command) => command.run(),
        }
    }
}

/// As `checkpoint verify`, of a series or of one checkpoint.
pub(crate) fn verify_checkpoints(directory: &str, json: bool, ranks: Ranks) -> Result<()> {
    verify::Verify::of(directory, json, ranks).run()
}

/// The argument DIR.
#[derive(Args)]
struct Series {
    /// The directory of the series
    #[arg(value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    directory: String,
}

impl Series {
    /// The series, unless the directory is something else.
    fn open(&self) -> Result<Checkpoints> {
        let series = Checkpoints::existing(&self.directory)?;
        let path = Path::new(&self.directory);
        for (file, what) in [
            ("manifest.json", "one checkpoint"),
            ("array.json", "an array"),
        ] {
            if path.join(file).is_file() {
                return Err(Error::Invalid(format!(
                    "{} is {what}; give the directory that holds the checkpoints",
                    self.directory
                )));
            }
        }
        Ok(series)
    }
}

/// `1 unfinished checkpoint ...`, if there are such.
fn unfinished_text(count: usize) -> String {
    let what = match count {
        0 => return String::new(),
        1 => "1 unfinished checkpoint is".into(),
        _ => format!("{count} unfinished checkpoints are"),
    };
    format!(
        "{what} there, being saved now or left by a run that was killed; the next save removes \
         what is left\n"
    )
}
