//! The same sections from other systems' Python packages and from outcore, each
//! read again and again from an open array into fresh memory, warm.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

use outcore::{Array, Error, Result};

use crate::io::Scratch;
use crate::line::Line;

const PROGRAM: &str = include_str!("../peers/py_sections.py");

/// The sections of the program.
const CASES: [&str; 6] = [
    "0:100 0:100",
    "::16 ::16",
    "500:2500:3 0:64:2",
    "0:16 :",
    ": 0:16",
    "whole",
];
const EXTENT: usize = 4096;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct SectionPeersOptions {
    /// Where files are made for the time being.
    pub directory: PathBuf,
    /// Repetitions; five times as many of short reads.
    pub repeats: usize,
    /// The Python that has the packages.
    pub python: PathBuf,
}

/// Runs outcore, then the others, then outcore again: of its two turns the
/// better one counts, as the machine wanders.
pub fn section_peers(options: &SectionPeersOptions) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "peers");
    let directory = PathBuf::from(scratch.name());
    let file = |action, source| Error::File {
        action,
        path: directory.clone(),
        source,
    };
    let values: Vec<f32> = (0..EXTENT * EXTENT)
        .map(|at| (at & 0xff_ffff) as f32)
        .collect();
    let bytes: Vec<u8> = values
        .iter()
        .flat_map(|value| value.to_le_bytes())
        .collect();
    std::fs::create_dir_all(&directory)
        .and_then(|()| std::fs::write(directory.join("sections.f32"), bytes))
        .and_then(|()| std::fs::write(directory.join("sections.py"), PROGRAM))
        .map_err(|source| file("write", source))?;
    let mut lines = own(&directory, options.repeats, &values)?;
    let others = python(&directory, options)?;
    for (line, again) in lines
        .iter_mut()
        .zip(own(&directory, options.repeats, &values)?)
    {
        if again.best_s < line.best_s {
            *line = again;
        }
    }
    lines.extend(others);
    Ok(lines)
}

fn line(system: &str, case: &str) -> Line {
    Line {
        system: system.into(),
        bench: "sections",
        case: case.into(),
        op: "read",
        strategy: "auto".into(),
        transport: "threads".into(),
        ranks: 1,
        useful_bytes: 0,
        best_s: f64::NAN,
        median_s: f64::NAN,
        ok: false,
    }
}

fn own(directory: &Path, repeats: usize, values: &[f32]) -> Result<Vec<Line>> {
    let path = directory.join("sections.f32");
    let name = format!(
        "raw:{}?shape={EXTENT}x{EXTENT}&type=f32&layout=column",
        path.display()
    );
    let array = Array::open(&name)?;
    let mut lines = Vec::new();
    for case in CASES {
        let text = match case {
            "whole" => ":, :".into(),
            case => case.replace(' ', ", "),
        };
        let section = array.section(&text)?;
        let (rows, columns) = (&section.axes()[0], &section.axes()[1]);
        let expected: Vec<f32> = (0..columns.count())
            .flat_map(|j| (0..rows.count()).map(move |i| (rows.index(i), columns.index(j))))
            .map(|(i, j)| values[i as usize + j as usize * EXTENT])
            .collect();
        let mut right = array.read::<f32>(&section)? == expected;
        let mut times = Vec::new();
        let mut rounds = repeats;
        while times.len() < rounds {
            let start = Instant::now();
            let found: Vec<f32> = array.read(&section)?;
            times.push(start.elapsed().as_secs_f64());
            right &= found.last() == expected.last();
            if times.len() == 1 && times[0] < 1e-3 {
                rounds = 5 * repeats;
            }
        }
        times.sort_by(f64::total_cmp);
        lines.push(Line {
            useful_bytes: expected.len() as u64 * 4,
            best_s: times[0],
            median_s: times[times.len() / 2],
            ok: right,
            ..line("outcore", case)
        });
    }
    Ok(lines)
}

fn python(directory: &Path, options: &SectionPeersOptions) -> Result<Vec<Line>> {
    let failed = |why: String| {
        Error::Invalid(format!(
            "{} cannot run the other systems: {why}; name a Python with numpy, h5py, zarr and \
             tensorstore by --python",
            options.python.display()
        ))
    };
    let ran = Command::new(&options.python)
        .arg(directory.join("sections.py"))
        .arg(directory)
        .arg(options.repeats.to_string())
        .output()
        .map_err(|error| failed(error.to_string()))?;
    if !ran.status.success() {
        return Err(failed(String::from_utf8_lossy(&ran.stderr).trim().into()));
    }
    eprint!("{}", String::from_utf8_lossy(&ran.stderr));
    let mut lines = Vec::new();
    for text in String::from_utf8_lossy(&ran.stdout).lines() {
        let fields: Vec<&str> = text.split(',').collect();
        let [system, case, bytes, best, median, verdict] = fields[..] else {
            return Err(failed(format!("it said '{text}'")));
        };
        let number = |text: &str| text.parse::<f64>().map_err(|_| failed(text.into()));
        lines.push(Line {
            useful_bytes: number(bytes)? as u64,
            best_s: number(best)?,
            median_s: number(median)?,
            ok: verdict == "ok",
            strategy: "own".into(),
            ..line(system, case)
        });
    }
    Ok(lines)
}
