//! The bench `collective`: all ranks move their sections at once, by every way
//! that outcore has and beside other systems.
//!
//! The path: a case (a pattern) -> the section of each rank -> [`Entrant`]s, who
//! open what they need and move the section -> [`contest()`] -> lines. Other
//! systems are libraries that are loaded into the same MPI processes, so that
//! they take turns with outcore, too ([`peer`]).

mod cases;
mod device;
mod entrant;
mod launch;
mod peer;
mod summary;
mod way;

use std::path::PathBuf;

use outcore::{Array, ArrayDescriptor, Comm, Direction, Error, Pattern, Result};

use crate::io::Scratch;
use crate::line::Line;
use crate::sections::fill;
pub use cases::papers_cases;
use entrant::{Case, Ground};
pub use launch::launch;
use peer::Library;
pub use summary::collective_summary;
pub use way::Way;

/// The ranks, if nobody says how many.
pub(crate) const RANKS: usize = 4;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct CollectiveOptions {
    /// Where the array is made for the time being.
    pub directory: PathBuf,
    /// An array that exists, instead; writes put back what is in it.
    pub array: Option<String>,
    /// What is made otherwise.
    pub descriptor: ArrayDescriptor,
    /// The sections, and what they are called.
    pub cases: Vec<(String, Pattern)>,
    /// Which way.
    pub direction: Direction,
    /// How.
    pub ways: Vec<Way>,
    /// How many ranks; under an MPI launcher that knows it.
    pub ranks: Option<usize>,
    /// Repetitions.
    pub repeats: usize,
    /// Whether the array is dropped from the page cache before each repetition.
    pub cold: bool,
    /// Whether to plan in each repetition, instead of once for all.
    pub once: bool,
    /// Whether other systems take part; they need MPI processes.
    pub peers: bool,
    /// A simulated device instead of this machine's.
    pub device: Option<String>,
}

/// What was measured.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// One a contestant.
    pub lines: Vec<Line>,
    /// How much of the time was exchange; who could not take part.
    pub notes: Vec<String>,
}

/// Runs the bench; under an MPI launcher, only rank 0 returns something.
pub fn collective(options: &CollectiveOptions) -> Result<Measured> {
    if let Some(name) = &options.device {
        if outcore::under_launcher() {
            return Err(Error::Invalid(
                "on simulated devices ranks are threads; start it without a launcher".into(),
            ));
        }
        let model = crate::simulated::device(name)
            .ok_or_else(|| Error::Invalid(format!("there is no device {name}")))?;
        return device::on_device((name, model), options);
    }
    let all = outcore::run(options.ranks.unwrap_or(RANKS), |comm: &Comm| {
        let measured = measure(comm, options)?;
        let first = comm.rank() == 0;
        Ok::<_, Error>(if first { measured } else { Measured::default() })
    })?;
    Ok(all.into_iter().next().unwrap_or_default())
}

fn measure(comm: &Comm, options: &CollectiveOptions) -> Result<Measured> {
    if options.ranks.is_some_and(|ranks| ranks != comm.size()) {
        return Err(Error::Invalid(format!(
            "the launcher started {} ranks; leave --ranks out",
            comm.size()
        )));
    }
    // What rank 0 makes, it removes; nobody else may, whose name is the same.
    let scratch = (comm.rank() == 0).then(|| Scratch::new(&options.directory, "collective.oc"));
    let mut name = scratch
        .as_ref()
        .map(Scratch::name)
        .unwrap_or_default()
        .into_bytes();
    comm.broadcast_vec(0, &mut name)?;
    let name = String::from_utf8_lossy(&name).into_owned();
    let made = match (&options.array, comm.rank()) {
        (None, 0) => make(&name, &options.descriptor),
        _ => Ok(()),
    };
    comm.agree(made)?;
    let libraries = match options.peers {
        true => Library::load_all(comm, &name)?,
        false => Vec::new(),
    };
    let ground = Ground::new(comm, options, name, libraries)?;
    let mut measured = Measured::default();
    for (name, pattern) in &options.cases {
        let case = Case::new(&ground, name, pattern)?;
        let found = case.measure()?;
        measured.lines.extend(found.lines);
        measured.notes.extend(found.notes);
    }
    comm.barrier()?;
    drop(scratch);
    Ok(measured)
}

/// Makes an array in which each element has its number, and brings it into the
/// page cache in the way of a reader who goes from its beginning to its end.
fn make(name: &str, descriptor: &ArrayDescriptor) -> Result<()> {
    let array = Array::create(name, descriptor)?;
    fill(&array)?;
    array.sync()?;
    array.store().forget()?;
    let mut block = vec![0; 1 << 20];
    let mut at = 0;
    let len = array.store().len()?;
    while at < len {
        let part = block.len().min((len - at) as usize);
        array.store().read_at(at, &mut block[..part])?;
        at += part as u64;
    }
    Ok(())
}
