//! Other systems on the same work: small C programs, built and run where
//! their libraries are installed.

use std::path::Path;
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

fn run_all_to_all(directory: &Path, ranks: usize) -> Result<Vec<Line>> {
    let failed = |what: &str, why: String| {
        Error::Invalid(format!(
            "{what}: {why}; install Open MPI or leave --peers out"
        ))
    };
    let (source, program) = (directory.join("alltoall.c"), directory.join("alltoall"));
    std::fs::create_dir_all(directory)
        .and_then(|()| std::fs::write(&source, ALL_TO_ALL))
        .map_err(|source| Error::File {
            action: "write",
            path: directory.into(),
            source,
        })?;
    let built = Command::new("mpicc.openmpi")
        .args(["-O2", "-w", "-o"])
        .arg(&program)
        .arg(&source)
        .output();
    let built = built.map_err(|error| failed("cannot run mpicc.openmpi", error.to_string()))?;
    if !built.status.success() {
        return Err(failed(
            "mpicc.openmpi failed",
            String::from_utf8_lossy(&built.stderr).into(),
        ));
    }
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
