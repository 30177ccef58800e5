//! The bench `irregular`: a file in global order, and a random permutation of
//! its elements that is dealt out to the ranks, each of which has its part in the
//! order in which it was dealt.
//!
//! A contestant that is `reused` carries out what was planned before; one that is
//! `anew` plans in each repetition. Who takes seconds has fewer turns.

mod ground;
mod limits;
mod outcore;
mod peer;
mod pipeline;
mod rejected;
mod take;

use std::path::PathBuf;
use std::time::Duration;

use ::outcore::{Comm, Error, Result};

use crate::contest::contest_within;
use crate::io::{Scratch, prime_memory};
use crate::line::Line;
use ground::{Ground, Value};
use limits::Board;
use peer::Library;

pub use pipeline::irregular_pipeline;
pub use take::{TakeOptions, irregular_scaling, irregular_take};

/// Who has taken longer in all has no more turns.
const PATIENCE: Duration = Duration::from_secs(4);

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct IrregularOptions {
    /// The elements of the file.
    pub elements: u32,
    /// The bytes of an element: 4 or 8.
    pub element: u64,
    /// How many ranks; under an MPI launcher that knows it.
    pub ranks: Option<usize>,
    /// Repetitions.
    pub repeats: usize,
    /// Whether other programs take part; they need MPI processes.
    pub peers: bool,
    /// Where files are made for the time being.
    pub directory: PathBuf,
}

/// Runs the bench; under an MPI launcher, only rank 0 returns something.
pub fn irregular(options: &IrregularOptions) -> Result<Vec<Line>> {
    let ranks = options.ranks.unwrap_or(crate::collective::RANKS);
    let lines = match options.element {
        4 => on_ranks::<f32>(ranks, options),
        _ => on_ranks::<f64>(ranks, options),
    };
    Ok(lines?.into_iter().next().unwrap_or_default())
}

fn on_ranks<T: Value>(ranks: usize, options: &IrregularOptions) -> Result<Vec<Vec<Line>>> {
    let bytes = u64::from(options.elements) * options.element;
    prime_memory(2 * bytes / if ::outcore::under_launcher() { 2 } else { 1 })?;
    // The limits are those of threads, which share memory.
    let board = (!::outcore::under_launcher()).then(|| Board::<T>::new(options.elements as usize));
    ::outcore::run(ranks, |comm: &Comm| {
        let lines = measure(comm, options, board.as_ref())?;
        Ok::<_, Error>(if comm.rank() == 0 { lines } else { Vec::new() })
    })
}

fn measure<T: Value>(
    comm: &Comm,
    options: &IrregularOptions,
    board: Option<&Board<T>>,
) -> Result<Vec<Line>> {
    let checked = match (options.peers, ::outcore::under_launcher(), options.ranks) {
        (true, false, _) => Err(Error::Invalid(
            "other programs take turns with MPI processes, not with threads: start the bench with \
             mpirun"
                .into(),
        )),
        (true, ..) if size_of::<T>() != 8 => Err(Error::Invalid(
            "the other programs move elements of type f64".into(),
        )),
        (_, _, Some(ranks)) if ranks != comm.size() => Err(Error::Invalid(format!(
            "the launcher started {} ranks; leave --ranks out",
            comm.size()
        ))),
        _ => Ok(()),
    };
    comm.agree(checked)?;
    // What rank 0 makes, it removes.
    let scratch = (comm.rank() == 0).then(|| Scratch::new(&options.directory, "irregular"));
    let mut directory = scratch.as_ref().map(Scratch::name).unwrap_or_default();
    comm.broadcast_string(0, &mut directory)?;
    let made = match comm.rank() {
        0 => std::fs::create_dir_all(&directory),
        _ => Ok(()),
    };
    comm.agree(made)?;
    let ground = Ground::<T>::new(comm, &directory, options.elements)?;
    let libraries = match options.peers {
        true => Library::load_all(comm, directory.as_ref())?,
        false => Vec::new(),
    };
    let peers = ground.peers(&libraries)?;
    let schedules = ground.schedules()?;
    let rejected = ground.rejected()?;
    let mut lines = Vec::new();
    for op in ["schedule", "write", "read"] {
        ground.settle()?;
        let mut all = ground.outcore(&schedules, op);
        all.extend(ground.other_programs(&libraries, &peers, op));
        if op != "schedule" {
            all.extend(rejected.contestants(&ground, op));
            if let Some(board) = board {
                all.extend(ground.limits(board, op));
            }
        }
        lines.extend(contest_within(comm, all, options.repeats, Some(PATIENCE))?);
    }
    comm.barrier()?;
    drop(scratch);
    Ok(lines)
}
