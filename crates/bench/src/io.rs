//! The bench `io`: the foundations beside their limits. Started plainly it
//! measures files, geometry and ranks as threads; started by an MPI launcher,
//! the exchange between MPI processes.

use std::path::PathBuf;

use outcore::{Comm, Error, Result};

use crate::line::Line;
use crate::{exchange, files, geometry, peers};

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct IoOptions {
    /// Where the files are made for the time being.
    pub directory: PathBuf,
    /// The bytes of the contiguous array.
    pub size: u64,
    /// Repetitions.
    pub repeats: usize,
    /// Whether to build and run other systems' programs as well.
    pub peers: bool,
}

/// Runs the bench; under an MPI launcher, only rank 0 returns lines.
pub fn io(options: &IoOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        let lines = outcore::run(1, |comm: &Comm| {
            let lines = exchange::between_processes(comm, options.repeats)?;
            Ok::<_, outcore::Error>(if comm.rank() == 0 { lines } else { Vec::new() })
        })?;
        return Ok(lines.into_iter().flatten().collect());
    }
    prime_memory(options.size)?;
    let mut lines = Vec::new();
    for ranks in [1, 2] {
        lines.extend(files::contiguous(options, ranks)?);
    }
    lines.extend(geometry::walk(options.repeats)?);
    lines.extend(geometry::plan(options)?);
    for pieces in [1, 16] {
        lines.extend(exchange::between_threads(options.repeats, pieces)?);
    }
    lines.extend(exchange::small(options.repeats)?);
    if options.peers {
        lines.extend(peers::all_to_all(&options.directory, 16)?);
    }
    Ok(lines)
}

/// Virtual machines hand free memory back to their host, and getting it again
/// is slow: touches as much as the bench will need, and frees it.
pub(crate) fn prime_memory(bytes: u64) -> Result<()> {
    let mut block: Vec<u8> = Vec::new();
    let needed = usize::try_from(bytes.saturating_mul(3)).unwrap_or(usize::MAX);
    block.try_reserve_exact(needed).map_err(|_| {
        Error::Invalid(format!(
            "an array of {bytes} bytes is too large to be held in memory"
        ))
    })?;
    block.resize(needed, 1);
    std::hint::black_box(&block);
    Ok(())
}

/// A file or directory of a bench, removed with it.
pub(crate) struct Scratch(PathBuf);

impl Scratch {
    /// A name in `directory` that no other bench has.
    pub(crate) fn new(directory: &std::path::Path, name: &str) -> Self {
        Self(directory.join(format!("outcore-bench-{}-{name}", std::process::id())))
    }

    pub(crate) fn name(&self) -> String {
        self.0.to_string_lossy().to_string()
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
