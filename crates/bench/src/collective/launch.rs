//! [`launch`]: the bench beside other systems, by one command: Open MPI's
//! launcher starts this program once for each of its libraries for files.

use std::process::Stdio;

use outcore::{Error, Result};

use super::RANKS;
use crate::line::Line;
use crate::peers::launcher;

/// Open MPI's libraries for files.
const LIBRARIES: [&str; 2] = ["romio321", "ompio"];

/// Starts this program with `arguments` as `ranks` MPI processes, once with each
/// library, and collects what it prints: comma-separated values.
pub fn launch(ranks: Option<usize>, arguments: &[String]) -> Result<Vec<Line>> {
    let failed = |why: String| {
        Error::Invalid(format!(
            "mpirun.openmpi: {why}; install Open MPI and build outcore with --features mpi, or \
             leave --peers out"
        ))
    };
    let program = std::env::current_exe().map_err(|error| failed(error.to_string()))?;
    let mut lines = Vec::new();
    for library in LIBRARIES {
        let ran = launcher(ranks.unwrap_or(RANKS))
            .args(["--mca", "io", library])
            .arg(&program)
            .args(arguments)
            .stderr(Stdio::inherit())
            .output()
            .map_err(|error| failed(error.to_string()))?;
        if !ran.status.success() {
            return Err(failed("the ranks failed".into()));
        }
        let text = String::from_utf8_lossy(&ran.stdout);
        lines.extend(
            text.lines()
                .filter_map(|text| Line::parse("collective", text)),
        );
    }
    Ok(lines)
}
