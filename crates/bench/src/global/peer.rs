//! [`global_peers`]: Global Arrays on the same work. It is built as static
//! libraries, so it is a program of its own; it and this one, both started by Open
//! MPI's launcher, take turns.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use outcore::{Error, Result};

use super::GlobalOptions;
use crate::line::Line;
use crate::peers::launcher;

const SOURCE: &str = include_str!("../../peers/global_arrays.c");

/// What the program is linked with.
const LIBRARIES: [&str; 7] = [
    "-lga-openmpi",
    "-lscalapack-openmpi",
    "-llapack",
    "-lblas",
    "-larmci-openmpi",
    "-lgfortran",
    "-lm",
];

/// How often each has its turn.
const TURNS: usize = 3;

/// The milliseconds of a repetition of the peer.
const MILLISECONDS: &str = "20";

fn failed(what: &str, why: impl ToString) -> Error {
    Error::Invalid(format!(
        "{what}: {}; install Open MPI and Global Arrays and build outcore with --features mpi, or \
         leave --peers out",
        why.to_string().trim()
    ))
}

/// Builds Global Arrays' program in `directory`, and lets it and this program, with
/// `arguments`, take turns as so many MPI processes.
pub fn global_peers(
    directory: &Path,
    ranks: usize,
    options: &GlobalOptions,
    arguments: &[String],
) -> Result<Vec<Line>> {
    let here = directory.join(format!("outcore-global-peer-{}", std::process::id()));
    let outcome = in_turns(&here, ranks, options, arguments);
    let _ = std::fs::remove_dir_all(&here);
    outcome
}

fn in_turns(
    here: &Path,
    ranks: usize,
    options: &GlobalOptions,
    arguments: &[String],
) -> Result<Vec<Line>> {
    let program = build(here)?;
    let own = std::env::current_exe().map_err(|error| failed("this program", error))?;
    let mut all: Vec<(Line, Vec<f64>)> = Vec::new();
    for _ in 0..TURNS {
        let mut lines = Vec::new();
        let text = output(launcher(ranks).arg(&own).args(arguments))?;
        lines.extend(text.lines().filter_map(|text| Line::parse("global", text)));
        let text = output(
            launcher(ranks)
                .arg(&program)
                .args([&options.repeats.to_string(), MILLISECONDS])
                .args([list(&options.bytes), list(&options.sides)]),
        )?;
        lines.extend(text.lines().filter_map(|text| peer_line(text, ranks)));
        for line in lines {
            let same = |known: &Line| {
                (&known.system, known.op, &known.case) == (&line.system, line.op, &line.case)
            };
            match all.iter_mut().find(|(known, _)| same(known)) {
                Some((known, medians)) => {
                    known.best_s = known.best_s.min(line.best_s);
                    known.ok &= line.ok;
                    medians.push(line.median_s);
                }
                None => {
                    let median = line.median_s;
                    all.push((line, vec![median]));
                }
            }
        }
    }
    let middle = |(mut line, mut medians): (Line, Vec<f64>)| {
        medians.sort_by(f64::total_cmp);
        line.median_s = medians[medians.len() / 2];
        line
    };
    Ok(all.into_iter().map(middle).collect())
}

fn list<T: ToString>(numbers: &[T]) -> String {
    let texts: Vec<String> = numbers.iter().map(ToString::to_string).collect();
    texts.join(",")
}

fn output(command: &mut Command) -> Result<String> {
    let ran = command.stderr(Stdio::inherit()).output();
    let ran = ran.map_err(|error| failed("mpirun.openmpi", error))?;
    match ran.status.success() {
        true => Ok(String::from_utf8_lossy(&ran.stdout).into_owned()),
        false => Err(failed("mpirun.openmpi", "the ranks failed")),
    }
}

fn build(here: &Path) -> Result<PathBuf> {
    let (source, program) = (here.join("global_arrays.c"), here.join("global_arrays"));
    std::fs::create_dir_all(here)
        .and_then(|()| std::fs::write(&source, SOURCE))
        .map_err(|error| Error::File {
            action: "write",
            path: here.into(),
            source: error,
        })?;
    let built = Command::new("mpicc.openmpi")
        .args(["-O2", "-w", "-o"])
        .args([&program, &source])
        .args(LIBRARIES)
        .output()
        .map_err(|error| failed("mpicc.openmpi", error))?;
    match built.status.success() {
        true => Ok(program),
        false => Err(failed(
            "mpicc.openmpi",
            String::from_utf8_lossy(&built.stderr),
        )),
    }
}

/// A line of the peer: `op,case,bytes,best,median,verdict`.
fn peer_line(text: &str, ranks: usize) -> Option<Line> {
    let fields: Vec<&str> = text.split(',').collect();
    let [op, case, bytes, best, median, verdict] = fields[..] else {
        return None;
    };
    let known = ["get", "put", "accumulate", "read-increment"];
    Some(Line {
        system: "global-arrays".into(),
        bench: "global",
        case: case.into(),
        op: known.into_iter().find(|known| *known == op)?,
        strategy: "NGA".into(),
        transport: "openmpi".into(),
        ranks,
        useful_bytes: bytes.parse().ok()?,
        best_s: best.parse().ok()?,
        median_s: median.parse().ok()?,
        ok: verdict == "ok",
    })
}
