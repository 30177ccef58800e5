//! [`RelayoutJob`]: a new array made of another, which gets its name when it is
//! complete and can be continued after an interruption.

use std::path::{Path, PathBuf};

use outcore_transport::Comm;

use super::journal::{Header, Job, Journal, Marks};
use super::plan::{Decision, Ends, Relayout, remove_between, stopped};
use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::convert::Fit;
use crate::descriptor::ArrayDescriptor;
use crate::distinct::distinct;
use crate::draft::{SharedDraft, discard};
use crate::error::{Error, Result};
use crate::format::{Location, native, place};

/// What is to be made.
#[derive(Debug, Clone, Copy)]
pub struct RelayoutOutput<'a> {
    /// The name, whose ending says the format.
    pub name: &'a str,
    /// What describes it; a `raw:` name describes itself.
    pub descriptor: &'a ArrayDescriptor,
    /// Whether something of this name may be replaced.
    pub replace: bool,
    /// Whether to continue what another run with the same input and output has
    /// left unfinished, if there is such. Otherwise it is removed.
    pub resume: bool,
}

/// A new array that is made of another by all ranks.
///
/// What is unfinished has a temporary name. If making it fails, or the value is
/// dropped, it is removed; if the process is killed or interrupted, it stays, with a
/// journal of what is complete, and can be continued ([`RelayoutOutput::resume`]), on any number
/// of ranks.
#[derive(Debug)]
pub struct RelayoutJob {
    plan: Relayout,
    draft: SharedDraft,
    marks: Marks,
    /// Rank 0 alone has it.
    journal: Option<Journal>,
    /// The array to make.
    name: String,
    resumed: bool,
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
        let place = comm.agree(Location::of_new(output.name))?;
        // What is kept beside the output is on this machine.
        let place = comm.agree(place::local(place.path()))?;
        // 1. Rank 0 looks for what another run has left.
        let job = || Job::of(source, axes, output, conversion);
        let found = match comm.rank() {
            0 => job().and_then(|job| left_behind(&job, &place, output.resume)),
            _ => Ok(None),
        };
        let found = comm.agree(found)?;
        let mut decision = found.as_ref().map_or(String::new(), |(_, header)| {
            serde_json::to_string(&header.decision).expect("a decision is plain data")
        });
        comm.broadcast_string(0, &mut decision)?;
        let resumed = !decision.is_empty();
        // 2. The unfinished array, the plan, and the journal of both.
        let (journal, draft, plan) = if resumed {
            let decision: Decision = comm.agree(serde_json::from_str(&decision))?;
            let left = found
                .as_ref()
                .map_or(Path::new(""), |(_, header)| &header.draft);
            let draft = SharedDraft::reopen(comm, output.name, left, output.replace)?;
            let target = Array::clone(&draft);
            let ends = Ends {
                source,
                target: &target,
                axes,
                conversion,
            };
            let plan = Relayout::again(comm, &ends, decision, budget)?;
            (found.map(|(journal, _)| journal.adopt()), draft, plan)
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
            let begin = |path: &Path| {
                Journal::begin(&place, &Header::new(job()?, path, plan.decision(), &blocks))
            };
            let journal = comm.agree(draft.path().map(begin).transpose())?;
            (journal, draft, plan)
        };
        let marks = comm.agree(Marks::open(&place))?;
        Ok(Self {
            plan,
            draft,
            marks,
            journal,
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
        let shares = self.marks.shares();
        let left: f64 = shares.iter().map(|share| 1.0 - share).sum();
        (self.plan.bytes() as f64 * left / shares.len().max(1) as f64) as u64
    }

    /// Collective: moves what is left, gives the array its name, and opens it.
    /// `progress` is told of the bytes of each block when it is written.
    pub fn run(self, comm: &Comm, progress: &(dyn Fn(u64) + Sync)) -> Result<Array> {
        if let Err(error) = self.plan.run_and_mark(comm, progress, Some(&self.marks)) {
            if !stopped(comm)? {
                return Err(error);
            }
            let array = self.name.clone();
            self.draft.keep();
            if let Some(journal) = self.journal {
                journal.keep();
            }
            return Err(Error::Unfinished { array });
        }
        let made = self.draft.commit(comm)?;
        drop(self.journal);
        Ok(made)
    }
}

/// The journal of an unfinished array at `place` that is to be continued. What
/// is not continued is removed.
fn left_behind(job: &Job, place: &Path, resume: bool) -> Result<Option<(Journal, Header)>> {
    let Some(journal) = Journal::find(place)? else {
        return Ok(None);
    };
    if !resume {
        if let Ok(header) = journal.header() {
            remove_between(&header.draft);
            discard(&header.draft);
        }
        drop(journal.adopt());
        return Ok(None);
    }
    let header = journal.header()?;
    let problem = if header.job.files != job.files && header.job.input == job.input {
        "its input has changed since it was begun"
    } else if &header.job != job {
        "it was begun as another job, with another input, other axes or another output"
    } else if !place::exists(&header.draft) {
        "its unfinished array is gone"
    } else {
        return Ok(Some((journal, header)));
    };
    Err(Error::format(
        place.display(),
        format!("this cannot be continued: {problem}; leave --resume out to begin anew"),
    ))
}

impl Job {
    /// What makes `output` of `source`.
    fn of(
        source: &Array,
        axes: &[usize],
        output: &RelayoutOutput<'_>,
        conversion: Option<Fit>,
    ) -> Result<Self> {
        let files = match Location::of_existing(source.name()) {
            Ok(location) => data_files(&location)?,
            // It is in a store that has no name.
            Err(_) => Vec::new(),
        };
        distinct(source.name(), output.name)?;
        let known = files
            .iter()
            .map(|path| identity(path))
            .collect::<Result<Vec<_>>>()?;
        Ok(Self {
            input: source.name().into(),
            files: known,
            axes: axes.to_vec(),
            output: format!("{} {:?} {conversion:?}", output.name, output.descriptor),
        })
    }
}

/// The files that hold an array.
fn data_files(location: &Location) -> Result<Vec<PathBuf>> {
    let path = location.path();
    if place::is_address(path) {
        // Objects do not say when they changed in a way that all stores share.
        return Ok(Vec::new());
    }
    let Location::Native(_) = location else {
        return Ok(vec![path.to_path_buf()]);
    };
    let failed = |source| Error::file("open", path, source);
    let mut files = native::files_outside(path)?;
    for entry in std::fs::read_dir(path).map_err(failed)? {
        files.push(entry.map_err(failed)?.path());
    }
    files.sort();
    Ok(files)
}

/// What changes if the file does.
fn identity(path: &Path) -> Result<(PathBuf, u64, i128, u64)> {
    use std::os::unix::fs::MetadataExt;
    let found = std::fs::metadata(path).map_err(|source| Error::file("open", path, source))?;
    let changed = i128::from(found.mtime()) * 1_000_000_000 + i128::from(found.mtime_nsec());
    let path = path.canonicalize().unwrap_or_else(|_| path.to_path_buf());
    Ok((path, found.len(), changed, found.ino()))
}
