//! Other systems on the same work: small C programs, built and run where
//! their libraries are installed.

use std::path::{Path, PathBuf};
use std::process::Command;

use outcore::{Error, Result};

use crate::line::Line;

const ALL_TO_ALL: &str = include_str!("../peers/alltoall.c");

/// Open MPI's `MPI_Alltoall` of 8 bytes a pair.
pub(crate) fn all_to_all(scratch: &Path, ranks: usize) -> Result<Vec<Line>> {
    let directory = scratch.join(format!("outcore-peers-{}", std::process::id()));
    let outcome = run_all_to_all(&directory, ranks);
    let _ = std::fs::remove_dir_all(&directory);
    outcome
}

/// Compiles a program for Open MPI in `directory`: its name, its text, and the
/// libraries that it needs.
pub(crate) fn build(
    directory: &Path,
    (name, text): (&str, &str),
    libraries: &[&str],
) -> Result<PathBuf> {
    let (source, program) = (directory.join(format!("{name}.c")), directory.join(name));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&source, text))
        .map_err(|source| Error::File {
            action: "write",
            path: directory.into(),
            source,
        })?;
    let built = Command::new("mpicc.openmpi")
        .args(["-O2", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .args(libraries)
        .output();
    let built = built.map_err(|error| failed("cannot run mpicc.openmpi", error.to_string()))?;
    match built.status.success() {
        true => Ok(program),
        false => Err(failed(
            "mpicc.openmpi failed",
            String::from_utf8_lossy(&built.stderr).into(),
        )),
    }
}

/// What went wrong with a program of another system.
pub(crate) fn failed(what: &str, why: String) -> Error {
    Error::Invalid(format!(
        "{what}: {why}; install Open MPI and what it needs, or leave --peers out"
    ))
}

fn run_all_to_all(directory: &Path, ranks: usize) -> Result<Vec<Line>> {
    let program = build(directory, ("alltoall", ALL_TO_ALL), &[])?;
    let ran = launcher(ranks)
        .arg(&program)
        .args(["9", "60", "8"])
        .output()
        .map_err(|error| failed("cannot run mpirun.openmpi", error.to_string()))?;
    let text = String::from_utf8_lossy(&ran.stdout);
    let line = text
        .lines()
        .find(|line| line.contains("pair=8B"))
        .ok_or_else(|| {
            failed(
                "the peer program said nothing",
                String::from_utf8_lossy(&ran.stderr).into(),
            )
        })?;
    let fields: Vec<&str> = line.split(',').collect();
    let number = |at: usize| {
        fields
            .get(at)
            .and_then(|field| field.parse::<f64>().ok())
            .unwrap_or(f64::NAN)
    };
    Ok(vec![Line {
        system: "openmpi".into(),
        bench: "io",
        case: "8 B a pair".into(),
        op: "all-to-all",
        strategy: "MPI_Alltoall".into(),
        transport: "openmpi".into(),
        ranks,
        useful_bytes: number(3) as u64,
        best_s: number(4),
        median_s: number(5),
        ok: fields.last() == Some(&"ok"),
    }])
}

/// Open MPI's launcher, for more ranks than there are processors.
pub(crate) fn launcher(ranks: usize) -> Command {
    let mut command = Command::new("mpirun.openmpi");
    command
        .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
        .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
        .args(["--oversubscribe", "--mca", "mpi_yield_when_idle", "1"])
        .args(["-n", &ranks.to_string()]);
    command
}
