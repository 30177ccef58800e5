//! `outcore explain`: what moving a section would do, and why.
//!
//! The path: the section of each rank -> an [`Account`] of it (plan and
//! estimates, and with --analyze the measured times) -> text, JSON and a
//! picture of the accounts.

mod account;
mod collective;
mod measure;
mod page;
mod report;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, Error, Result, Section, divide};

use crate::output::check_free;
use crate::ranks::{once, parse_ranks, print};
use crate::selection::Selection;
use crate::tuning::{Op, TuningOptions};
use crate::whole_file;
use account::Account;

/// Say how a section would be moved, what each strategy would cost, and why
///
/// The costs are those of the storage (see `outcore calibrate`) and of the
/// present state of the page cache; --cold drops the array from that first.
/// With --analyze the section is really read, by every strategy in turn, and
/// the measured times stand beside the predicted ones: from the page cache,
/// into which the section is read before, or with --cold from the device.
///
/// With --ranks N the access of each rank is explained: its own section if
/// SECTION depends on the rank (p, N), otherwise its share of the section, as
/// `outcore read` and `write` divide it. Predictions are those of a rank that
/// has the storage for itself; with --analyze all ranks read at the same time.
/// Then follows what the ranks would do together: the way that all of them take,
/// and which part of the file each would read or write for all in two phases.
///
/// --svg draws the array with the elements that are taken, the file with the
/// bytes that are wanted and those that are moved along, the requests, and the
/// times. --html makes a page of it that needs nothing else to be read, with the
/// numbers as tables and a time line.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore explain field.oc '::16, ::16'
  outcore explain field.oc '(1:100:1, 1:4096:1)' --op write
  outcore explain field.oc '::16, ::16' --analyze --cold --svg cold.svg
  outcore explain field.oc 'p::N, :' --ranks 8 --svg ranks.svg
  outcore explain field.oc 'p::N, :' --ranks 8 --html ranks.html
  outcore explain field.oc '(1+32*p:16+32*p:1, 1:4096:1)' --ranks 16 --domains static
  outcore explain field.oc 'p::N, :' --ranks 8 --rank 3")]
pub(crate) struct Explain {
    #[command(flatten)]
    selection: Selection,
    /// What is to be done
    #[arg(long, value_enum, default_value = "read")]
    op: Op,
    /// Explain the access of each of N ranks
    #[arg(long, value_name = "N", value_parser = parse_ranks, allow_hyphen_values = true)]
    ranks: Option<u32>,
    /// Of these, explain only rank R
    #[arg(long, value_name = "R", requires = "ranks")]
    rank: Option<u32>,
    /// Move the section by every strategy, and say how long each took
    #[arg(long)]
    analyze: bool,
    /// Let --analyze write, too: it writes back the values that it has just
    /// read, so nobody else may write the array meanwhile
    #[arg(long, requires = "analyze")]
    rewrite: bool,
    /// Drop the array from the page cache first (before each measurement)
    #[arg(long)]
    cold: bool,
    /// Draw it into FILE
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    svg: Option<String>,
    /// Write it all as a page
    #[arg(long, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    html: Option<String>,
    /// Replace files that exist
    #[arg(long)]
    force: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tuning: TuningOptions,
}

impl Explain {
    pub(crate) fn check(&self) -> Result<(), String> {
        let section = &self.selection.section;
        if section.depends_on_rank() && self.ranks.is_none() {
            return Err(format!(
                "section '{section}' differs from rank to rank; --ranks N says how many there \
                 are, and --rank R explains one of them"
            ));
        }
        if let (Some(rank), Some(ranks)) = (self.rank, self.ranks)
            && rank >= ranks
        {
            return Err(format!(
                "there is no rank {rank} of {ranks}; the ranks are 0 to {}",
                ranks - 1
            ));
        }
        if self.analyze && self.op == Op::Write && !self.rewrite {
            return Err(
                "--analyze reads; with --op write it would have to write the array: --rewrite \
                 lets it write back the values that it reads, if nobody else writes meanwhile"
                    .into(),
            );
        }
        if self.rewrite && self.op == Op::Read {
            return Err("--rewrite is for --op write".into());
        }
        Ok(())
    }

    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let mut files = [&self.svg, &self.html].into_iter().flatten();
            files.try_for_each(|file| check_free(file, self.force))?;
            let array = self.open()?;
            let sections = self.sections(&array)?;
            if self.cold {
                array.store().forget()?;
            } else if self.analyze {
                self.warm(&array, &sections)?;
            }
            let cached = array.cached(&array.whole())?;
            let direction = self.op.direction();
            let together = self.together(&sections)?;
            let mut accounts = Vec::new();
            for (rank, section) in sections {
                accounts.push(Account::of(&array, rank, section, direction)?);
            }
            if self.analyze {
                self.measure(&mut accounts)?;
            }
            if self.svg.is_some() || self.html.is_some() {
                let mut picture = self.picture(&array, &accounts, cached);
                picture.domains = self.domains(&together);
                if let Some(file) = &self.svg {
                    whole_file::write_text(file, &picture.draw()?)?;
                }
                if let Some(file) = &self.html {
                    let page = self.page(&array, &accounts, &picture, &together)?;
                    whole_file::write_text(file, &page)?;
                }
            }
            if self.json {
                let mut answer = self.json(&array, &accounts, cached);
                if let Some(together) = &together {
                    answer["collective"] = together.json();
                }
                return print(&format!("{answer:#}\n"));
            }
            let mut text = self.text(&array, &accounts, cached)?;
            if let Some(together) = &together {
                text += &report::trimmed(&together.text(&array));
            }
            print(&text)
        })
    }

    fn open(&self) -> Result<Array> {
        let name = &self.selection.array;
        let array = if self.rewrite {
            Array::open_writable(name)?
        } else {
            Array::open(name)?
        };
        Ok(array.tuned(self.tuning.tuning()))
    }

    /// The ranks to explain, and the section of each.
    fn sections(&self, array: &Array) -> Result<Vec<(usize, Section)>> {
        let ranks = self.ranks.unwrap_or(1) as usize;
        let asked = (0..ranks).filter(|rank| self.rank.is_none_or(|one| one as usize == *rank));
        if self.selection.section.depends_on_rank() {
            let section = |rank: usize| match self.selection.of(array, rank, ranks) {
                Ok(section) => Ok((rank, section)),
                Err(error) => Err(Error::Invalid(format!("rank {rank}: {error}"))),
            };
            return asked.map(section).collect();
        }
        let section = self.selection.of(array, 0, 1)?;
        let shares = divide(&section, array.layout().slowest_first(), ranks as u64);
        Ok(asked.map(|rank| (rank, shares[rank].clone())).collect())
    }
}
