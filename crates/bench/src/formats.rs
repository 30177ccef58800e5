//! The bench `formats`: sections of Zarr and HDF5 files, and a conversion between the
//! two, beside the libraries that people read and convert them with.
//!
//! Files are in the page cache, and nobody syncs. Contestants take turns; in a turn a
//! section is read again and again for some milliseconds, by the contestant's own
//! clock, and the best time counts.

mod convert;
mod peer;
mod sections;

use std::path::PathBuf;

use outcore::{Error, Result};

use crate::io::Scratch;
use crate::line::Line;
use peer::Peers;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct FormatsOptions {
    /// Where files are made for the time being.
    pub directory: PathBuf,
    /// The extent of the square array whose sections are read; 0: none.
    pub extent: u64,
    /// The extent of the square array that is converted; 0: none.
    pub convert: u64,
    /// Turns of each contestant.
    pub repeats: usize,
    /// The Python that has the packages of the others, if they are wanted.
    pub python: Option<PathBuf>,
    /// The program of `peers/zarrs`, if it is wanted.
    pub zarrs: Option<PathBuf>,
}

/// Runs the bench.
pub fn formats(options: &FormatsOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench starts its own ranks; start it without a launcher".into(),
        ));
    }
    let scratch = Scratch::new(&options.directory, "formats");
    let directory = PathBuf::from(scratch.name());
    std::fs::create_dir_all(&directory).map_err(|source| Error::File {
        action: "create",
        path: directory.clone(),
        source,
    })?;
    let peers = Peers::new(options, &directory)?;
    let mut lines = Vec::new();
    if options.extent > 0 {
        lines.extend(sections::run(options, &directory, &peers)?);
    }
    if options.convert > 0 {
        lines.extend(convert::run(options, &directory, &peers)?);
    }
    Ok(lines)
}

/// The value of an element: its number, as far as f32 holds it.
fn value(number: u64) -> f32 {
    (number & 0xff_ffff) as f32
}

/// A line whose times are still to come.
fn line(system: &str, case: &str, op: &'static str) -> Line {
    Line {
        system: system.into(),
        bench: "formats",
        case: case.into(),
        op,
        strategy: "auto".into(),
        transport: "threads".into(),
        ranks: 1,
        useful_bytes: 0,
        best_s: f64::NAN,
        median_s: f64::NAN,
        ok: true,
    }
}

/// The line with what its turns took.
fn timed(line: Line, mut times: Vec<f64>) -> Line {
    times.sort_by(f64::total_cmp);
    Line {
        best_s: times.first().copied().unwrap_or(f64::NAN),
        median_s: times.get(times.len() / 2).copied().unwrap_or(f64::NAN),
        ..line
    }
}
