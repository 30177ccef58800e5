//! [`RelayoutJob`]: a new array made of another, which gets its name when it is
//! complete and can be continued after an interruption.

use outcore_transport::Comm;

use super::journal::{Header, Job, Journal, Marks, file_number};
use super::plan::{Decision, Ends, Relayout, journal_is_damaged, remove_between};
use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::convert::Fit;
use crate::descriptor::ArrayDescriptor;
use crate::distinct::distinct;
use crate::draft::{SharedDraft, discard, is_added, unfinished};
use crate::error::{Error, Result};
use crate::format::{Location, place};
use crate::identity::identities;

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub struct RelayoutOutput<'a> {
    /// The name, whose ending says the format.
    pub name: &'a str,
    /// What describes it; a `raw:` name describes itself.
    pub descriptor: &'a ArrayDescriptor,
    /// Whether something of this name may be replaced, also what another run has left
    /// unfinished.
    pub replace: bool,
    /// Whether to continue what another run with the same input and output has
    /// left unfinished, if there is such.
    pub resume: bool,
}

/// A new array that is made of another by all ranks.
///
/// What is unfinished has a temporary name. If making it fails, or the value is
/// dropped, it is removed; if the process is killed or interrupted, or a server of object
/// stores fails, it stays, with a journal of what is complete, and can be continued
/// ([`RelayoutOutput::resume`]), on any number of ranks. A dataset that is added to an HDF5
/// file of others cannot be continued: it is in that file, without a name, and nothing of it
/// is kept or removed.
#[derive(Debug)]
pub struct RelayoutJob {
    plan: Relayout,
    /// `None` if it cannot be continued.
    marks: Option<Marks>,
    unfinished: Unfinished,
    /// The array to make.
    name: String,
    resumed: bool,
}

/// What there is of an array before it is complete. Dropped, it is removed.
#[derive(Debug)]
struct Unfinished {
    /// `None`: another run has completed the array, and died before it could say so.
    draft: Option<SharedDraft>,
    /// Rank 0 alone has it, if the array can be continued.
    journal: Option<Journal>,
}

impl Unfinished {
    /// Leaves it for a later run.
    fn keep(mut self) {
        self.draft.take().into_iter().for_each(SharedDraft::keep);
        self.journal.take().into_iter().for_each(Journal::keep);
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        // Before anything is removed, what is complete no longer counts as that.
        if let Some(journal) = &self.journal
            && journal.forget().is_err()
        {
            self.journal = None;
        }
    }
}

impl RelayoutJob {
    /// Collective: begins to make `output` of `source`, whose axis `axes[k]` is its
    /// axis `k`, within the budget of the process; or goes on with it. Nothing
    /// moves yet.
    pub fn begin(
        comm: &Comm,
        source: &Array,
        axes: &[usize],
        output: &RelayoutOutput<'_>,
        budget: &MemoryBudget,
    ) -> Result<Self> {
        Self::begin_converting(comm, source, axes, output, None, budget)
    }

    /// Collective: the same; with `conversion`, elements become those of the type that
    /// the descriptor of the output says, if that is another one.
    pub fn begin_converting(
        comm: &Comm,
        source: &Array,
        axes: &[usize],
        output: &RelayoutOutput<'_>,
        conversion: Option<Fit>,
        budget: &MemoryBudget,
    ) -> Result<Self> {
        let mut stays = output.resume;
        let begun =
            Self::begin_or_go_on(comm, source, axes, output, conversion, budget, &mut stays);
        begun.map_err(|error| match stays {
            true => error.or_unfinished(output.name),
            false => error,
        })
    }

    /// Collective: the same; `stays` becomes whether another run has left something that
    /// stays if this fails.
    fn begin_or_go_on(
        comm: &Comm,
        source: &Array,
        axes: &[usize],
        output: &RelayoutOutput<'_>,
        conversion: Option<Fit>,
        budget: &MemoryBudget,
        stays: &mut bool,
    ) -> Result<Self> {
        let made = comm.agree(Location::of_new(output.name))?;
        // What is kept beside the output is on this machine.
        let place = comm.agree(place::local(made.path()))?;
        // 1. Rank 0 looks for what another run has left.
        let job = match comm.rank() {
            0 => Job::of(source, axes, output, conversion).map(Some),
            _ => Ok(None),
        };
        let job = comm.agree(job)?;
        let found = job.as_ref().map(|job| left_behind(job, &made, output));
        let found = comm.agree(found.transpose())?.flatten();
        let mut decision = found.as_ref().map_or(String::new(), |left| {
            serde_json::to_string(&left.header.decision).expect("a decision is plain data")
        });
        comm.broadcast_string(0, &mut decision)?;
        let resumed = !decision.is_empty();
        *stays = resumed;
        // 2. The unfinished array, the plan, and the journal of both.
        let (journal, draft, plan) = if resumed {
            let decision: Decision = comm.agree(serde_json::from_str(&decision))?;
            let left = found.as_ref().map_or("", |left| &left.header.draft);
            let distrust = || match &found {
                Some(left) => left.journal.forget_last_pass(),
                None => Ok(()),
            };
            let mut is_named = [u8::from(found.as_ref().is_some_and(|left| left.is_named))];
            comm.broadcast(0, &mut is_named)?;
            let draft = match is_named {
                [0] => {
                    let replace = output.replace;
                    Some(SharedDraft::reopen(
                        comm,
                        output.name,
                        left,
                        replace,
                        &distrust,
                    )?)
                }
                _ => None,
            };
            let target = match &draft {
                Some(draft) => Array::clone(draft),
                None => Array::open_all(comm, output.name)?,
            };
            let ends = Ends {
                source,
                target: &target,
                axes,
                conversion,
            };
            // What cannot be continued so stays for those who do it otherwise.
            let again = Relayout::again(comm, &ends, decision, budget).and_then(|plan| {
                let blocks = plan.block_counts(comm)?;
                let same = found
                    .as_ref()
                    .is_none_or(|left| left.header.blocks == blocks);
                comm.agree(match same {
                    true => Ok(()),
                    false => Err(journal_is_damaged(output.name)),
                })?;
                Ok(plan)
            });
            let plan = match again {
                Ok(plan) => plan,
                Err(error) => {
                    draft.into_iter().for_each(SharedDraft::keep);
                    return Err(error);
                }
            };
            (found.map(|left| left.journal), draft, plan)
        } else {
            let draft = SharedDraft::begin(comm, output.name, output.descriptor, output.replace)?;
            let target = Array::clone(&draft);
            let ends = Ends {
                source,
                target: &target,
                axes,
                conversion,
            };
            if target.element_type() != output.descriptor.element_type && ends.conversion.is_some()
            {
                // A raw: name says its own type.
                return Err(Error::WrongType {
                    array: output.name.into(),
                    stored: target.element_type(),
                    asked: output.descriptor.element_type,
                });
            }
            let plan = Relayout::of(comm, &ends, budget)?;
            let blocks = plan.block_counts(comm)?;
            let begin = |(files, job): (_, &Job)| {
                let header = Header::new(job.clone(), files, plan.decision(), &blocks);
                Journal::begin(&place, &header)
            };
            let journal = draft.own_files().zip(job.as_ref()).map(begin);
            let journal = comm.agree(journal.transpose())?;
            (journal, Some(draft), plan)
        };
        let mut has_journal = [u8::from(journal.is_some())];
        comm.broadcast(0, &mut has_journal)?;
        let marks = (has_journal == [1]).then(|| Marks::open(&place, output.name));
        let marks = match comm.agree(marks.transpose()) {
            Ok(marks) => marks,
            Err(error) => {
                if resumed {
                    draft.into_iter().for_each(SharedDraft::keep);
                }
                return Err(error.into());
            }
        };
        Ok(Self {
            plan,
            marks,
            unfinished: Unfinished {
                draft,
                journal: journal.map(Journal::adopt),
            },
            name: output.name.into(),
            resumed,
        })
    }

    /// How it moves.
    pub fn plan(&self) -> &Relayout {
        &self.plan
    }

    /// Whether it goes on with what another run has left.
    pub fn resumed(&self) -> bool {
        self.resumed
    }

    /// About how many bytes are still to be moved.
    pub fn remaining(&self) -> u64 {
        let left = self.marks.as_ref().map_or(1.0, Marks::left);
        (self.plan.bytes() as f64 * left) as u64
    }

    /// Collective: moves what is left, gives the array its name, and opens it.
    /// `progress` is told of the bytes of each block when it is written.
    pub fn run(mut self, comm: &Comm, progress: &(dyn Fn(u64) + Sync)) -> Result<Array> {
        if let Err(error) = self.complete(comm, progress) {
            if let Error::Unfinished { .. } = error {
                self.unfinished.keep();
            }
            return Err(error);
        }
        let made = match self.unfinished.draft.take() {
            Some(draft) => draft.open_named(comm),
            None => Array::open_all(comm, &self.name),
        };
        drop(self.unfinished.journal.take());
        made
    }

    /// Collective: moves what is left, and gives the array its name.
    fn complete(&mut self, comm: &Comm, progress: &(dyn Fn(u64) + Sync)) -> Result<()> {
        let Some(draft) = &mut self.unfinished.draft else {
            return Ok(());
        };
        let marks = self.marks.as_ref();
        self.plan.run_and_mark(comm, progress, marks)?;
        Marks::agree(marks, comm, draft.sync())?;
        Marks::agree(marks, comm, draft.give_name())?;
        if let Some((_, hidden)) = draft.own_files() {
            remove_between(hidden);
        }
        Ok(())
    }
}

/// What another run has left.
struct Left {
    journal: Journal,
    header: Header,
    /// Whether the array has its name: that run was stopped before it could say so.
    is_named: bool,
}

/// What another run has left of `place` that is to be continued. What is to be replaced is
/// removed, and so is a journal of what is gone; what is neither stays, and is an error.
fn left_behind(job: &Job, place: &Location, output: &RelayoutOutput<'_>) -> Result<Option<Left>> {
    let is_added = is_added(output.name, output.replace)?;
    let Some(journal) = Journal::find(&place::local(place.path())?)? else {
        if output.resume && is_added {
            return Err(Error::format(
                output.name,
                "a dataset that is added to a file cannot be continued, since what an \
                 interrupted run has left of it has no name; leave --resume out to begin anew",
            ));
        }
        return Ok(None);
    };
    let begins_anew = output.replace && !output.resume;
    let read = journal.header();
    let read = read.and_then(|header| Ok((unfinished(place, &header.draft)?, header)));
    let (hidden, header) = match read {
        Ok(read) => read,
        Err(_) if begins_anew => {
            drop(journal.adopt());
            return Ok(None);
        }
        Err(error) => return Err(error),
    };
    let is_hidden = place::exists(&hidden)?;
    let is_named = is_named(place, &header, is_hidden, output);
    let is_gone = !is_hidden && !is_named;
    if begins_anew || is_gone {
        journal.forget()?;
        remove_between(&hidden);
        discard(place, &header.draft)?;
        drop(journal.adopt());
        return Ok(None);
    }
    if !output.resume {
        return Err(Error::format(
            place,
            "an interrupted run has left a part of it; --resume goes on with that, --force begins \
             anew",
        ));
    }
    let problem = if header.job.files != job.files && header.job.input == job.input {
        "its input has changed since it was begun"
    } else if &header.job != job {
        "it was begun as another job, with another input, other axes, another output or another \
         number of its parts (--parts)"
    } else if !is_named && is_added {
        "its file is there by now, and has other datasets"
    } else {
        if is_named {
            // What it has replaced, and what it was made of.
            remove_between(&hidden);
            discard(place, &header.draft)?;
        }
        return Ok(Some(Left {
            journal,
            header,
            is_named,
        }));
    };
    let way = "take --force instead of --resume to begin anew";
    Err(Error::format(
        place,
        format!("this cannot be continued: {problem}; {way}"),
    ))
}

/// Whether the array that was begun has its name, and so is complete.
fn is_named(
    place: &Location,
    header: &Header,
    is_hidden: bool,
    output: &RelayoutOutput<'_>,
) -> bool {
    let may_be = match place::is_address(place.path()) {
        // No Zarr array is replaced there, and other objects are hidden until they are.
        true => matches!(place, Location::Zarr { .. }) || !is_hidden,
        // What it has replaced may be as hidden as it was itself.
        false => header.number.is_some() && header.number == file_number(place.path()),
    };
    let marks = || Marks::open(&place::local(place.path())?, output.name);
    let is_made = |made: Array| {
        let like = output.descriptor;
        made.shape() == like.shape && made.element_type() == like.element_type
    };
    may_be
        && marks().is_ok_and(|marks| marks.left() == 0.0)
        && Array::open(output.name).is_ok_and(is_made)
}

impl Job {
    /// What makes `output` of `source`.
    fn of(
        source: &Array,
        axes: &[usize],
        output: &RelayoutOutput<'_>,
        conversion: Option<Fit>,
    ) -> Result<Self> {
        distinct(source.name(), output.name)?;
        Ok(Self {
            input: source.name().into(),
            files: identities(source.name())?,
            axes: axes.to_vec(),
            output: format!("{} {:?} {conversion:?}", output.name, output.descriptor),
        })
    }
}
