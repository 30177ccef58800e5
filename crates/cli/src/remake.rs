//! [`Remake`]: one array made of another, and compared with it.

use std::time::Instant;

use outcore::{
    Array, ArrayDescriptor, Comm, Error, Fit, LocalArray, MemoryBudget, RelayoutJob,
    RelayoutOutput, Result,
};
use outcore_apps::Resources;
use outcore_apps::diff::{Side, Tolerance, diff};
use outcore_apps::stats::Part;

use crate::bytes;
use crate::progress::Progress;
use crate::ranks::{cause, is_interruption, print};

/// What is to be made of an array.
pub(crate) struct Wanted {
    /// Axis `k` of the output is axis `axes[k]` of the input.
    pub(crate) axes: Vec<usize>,
    pub(crate) descriptor: ArrayDescriptor,
    /// How elements become those of another type, if that was asked for.
    pub(crate) conversion: Option<Fit>,
}

/// Which array of which, and how.
pub(crate) struct Remake<'a> {
    pub(crate) input: &'a str,
    pub(crate) output: &'a str,
    /// Whether an output that exists may be replaced.
    pub(crate) force: bool,
    /// Whether to continue what another run has left.
    pub(crate) resume: bool,
    /// Whether a line says what will be done.
    pub(crate) announced: bool,
    pub(crate) budget: &'a MemoryBudget,
}

/// What was made.
pub(crate) struct Remade {
    pub(crate) source: Array,
    pub(crate) wanted: Wanted,
    /// How many bytes of the input have moved.
    pub(crate) moved: u64,
    /// When the work began.
    pub(crate) start: Instant,
}

impl Remake<'_> {
    /// Collective: makes the array. `bar` shows how far that is, of so many bytes that
    /// this rank moves.
    pub(crate) fn make<'a>(
        &self,
        comm: &Comm,
        wanted: &dyn Fn(&Array, &Comm) -> Result<Wanted>,
        bar: &dyn Fn(u64) -> Result<&'a Progress>,
    ) -> Result<Remade> {
        let source = Array::open_all(comm, self.input)?;
        let wanted = comm.agree(wanted(&source, comm))?;
        let bytes = source.whole().count() * source.layout().element_size();
        let start = Instant::now();
        // The part of the array that this run moves.
        let mut part = 1.0;
        if makes_own_files(&wanted.descriptor, comm) {
            let progress = bar(bytes / comm.size() as u64)?;
            let draft = LocalArray::draft_all(comm, self.output, &wanted.descriptor, self.force)?;
            let own = self.budget.for_rank(comm);
            comm.agree(draft.load_part(&source, &own, &|bytes| progress.add(bytes)))?;
            draft.commit(comm)?;
        } else {
            let output = RelayoutOutput {
                name: self.output,
                descriptor: &wanted.descriptor,
                replace: self.force,
                resume: self.resume,
            };
            let (axes, conversion) = (&wanted.axes, wanted.conversion);
            let job = RelayoutJob::begin_converting(
                comm,
                &source,
                axes,
                &output,
                conversion,
                self.budget,
            );
            let job = told_once(comm, job)?;
            comm.agree(match comm.rank() == 0 && self.announced {
                true => self.announce(&job),
                false => Ok(()),
            })?;
            if job.resumed() {
                part = job.remaining() as f64 / job.plan().bytes().max(1) as f64;
            }
            let share = job.remaining() / comm.size() as u64;
            let progress = bar(share)?;
            told_once(comm, job.run(comm, &|bytes| progress.add(bytes)))?;
        }
        Ok(Remade {
            source,
            wanted,
            moved: (part * bytes as f64) as u64,
            start,
        })
    }

    /// Collective: compares the output, read again, with what it was made of.
    pub(crate) fn compare<'a>(
        &self,
        comm: &Comm,
        source: &Array,
        wanted: &Wanted,
        bar: &dyn Fn(u64) -> Result<&'a Progress>,
    ) -> Result<()> {
        let made = Array::open_all(comm, self.output)?;
        let turned = source.permuted(&wanted.axes)?;
        let order: Vec<usize> = (0..wanted.axes.len()).collect();
        let whole = turned.whole();
        let [left, right] = [&turned, &made].map(|array| Side {
            part: Part {
                array,
                section: &whole,
            },
            axes: &order,
        });
        let bytes = whole.count() * source.layout().element_size() / comm.size() as u64;
        let progress = bar(bytes)?;
        let resources = Resources {
            budget: self.budget.clone(),
            progress: Some(&|bytes| progress.add(bytes)),
        };
        let sides = (&left, &right);
        let exact = Tolerance::default();
        let found = diff(comm, sides, &exact, wanted.conversion, &resources);
        if let Err(error) = &found
            && is_interruption(error)
        {
            comm.agree(Err(format!(
                "{}; {} is complete and stays, but not all of it was compared with {}",
                cause(error),
                self.output,
                self.input
            )))?;
        }
        let found = found?;
        let Some(first) = found.first else {
            return Ok(());
        };
        Err(Error::Invalid(format!(
            "{} differs from {} in {} elements, the first of them {:?}: it was written or read \
             wrongly, or {} has changed meanwhile; make it again",
            self.output,
            self.input,
            found.beyond,
            right.index(&left, &first),
            self.input
        )))
    }

    /// Says what will be done.
    fn announce(&self, job: &RelayoutJob) -> Result<()> {
        let begun = match (self.resume, job.resumed()) {
            (true, true) => format!(
                "continued, {} of {} left; ",
                bytes::show(job.remaining()),
                bytes::show(job.plan().bytes())
            ),
            (true, false) => "nothing to continue, begun anew; ".into(),
            (false, _) => String::new(),
        };
        print(&format!("{begun}{}\n", job.plan()))
    }
}

/// What all ranks have come to; one of them tells that something is unfinished.
fn told_once<T>(comm: &Comm, outcome: Result<T>) -> Result<T> {
    match outcome {
        Err(error @ Error::Unfinished { .. }) => Ok(comm.agree(Err(error))?),
        other => other,
    }
}

/// Whether each rank makes its own file, on a disk that others may not be able to reach.
fn makes_own_files(descriptor: &ArrayDescriptor, comm: &Comm) -> bool {
    let placement = descriptor.local.as_ref();
    placement.is_some_and(|placement| {
        !placement.directories.is_empty() && placement.distribution.ranks() == comm.size() as u64
    })
}
