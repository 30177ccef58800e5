//! `outcore demo`: an array larger than the memory used, and 16 ranks on it.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::time::{Duration, Instant};

use clap::Args;
use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, Op, Pattern, Pieces, Result, shape_text,
};
use serde_json::json;

use crate::bytes;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::work::{Begun, Closing};

const EXTENT: u64 = 16384;

/// The largest piece that a rank holds; two of them at a time.
const PIECE: u64 = 2 << 20;

/// Show what outcore does: an array of 1 GiB, 16 ranks, little memory
///
/// Makes an array of 1 GiB, has the ranks write and read interleaved strided
/// sections of it, checks every value, and says how fast that was and how much
/// memory it took. Nothing is left behind.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore demo
  outcore demo --ranks 4 --directory /scratch
  outcore demo --json")]
pub(crate) struct Demo {
    #[command(flatten)]
    ranks: Ranks,
    /// Where the array is made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    #[command(flatten)]
    closing: Closing,
}

/// One part of the demo: what each rank does with which section.
struct Step {
    title: &'static str,
    pattern: &'static str,
    write: bool,
}

const STEPS: [Step; 4] = [
    Step {
        title: "write every Nth row",
        pattern: "p::N, :",
        write: true,
    },
    Step {
        title: "read other ranks' rows",
        pattern: "N-1-p::N, :",
        write: false,
    },
    Step {
        title: "read blocks, Fortran style",
        pattern: "(1+1024*p:1024+1024*p:1, 4097:12288:1)",
        write: false,
    },
    Step {
        title: "read a sparse grid",
        pattern: "64*p::1024, 64*p::64",
        write: false,
    },
];

impl Demo {
    pub(crate) fn run(&self) -> Result<()> {
        let base = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let begun = Begun::now();
        let ranks = self.ranks.usually(16);
        let bars: [OnceLock<Progress>; STEPS.len()] = Default::default();
        ranks.run(|comm| {
            let directory = comm.agree(Scratch::new(comm, &base))?;
            let outcome = self.run_steps(comm, &directory.0, &begun, &bars);
            // Nobody removes the directory while others still work in it.
            comm.barrier()?;
            outcome
        })
    }

    fn run_steps(
        &self,
        comm: &Comm,
        directory: &Path,
        begun: &Begun,
        bars: &[OnceLock<Progress>],
    ) -> Result<()> {
        let say = |text: String| {
            let speaks = comm.rank() == 0 && !self.closing.json;
            comm.agree(if speaks { print(&text) } else { Ok(()) })
        };
        let name = directory.join("demo.oc");
        let descriptor = ArrayDescriptor::new(&[EXTENT, EXTENT], ElementType::U32);
        let array = Array::create_all(comm, &name.to_string_lossy(), &descriptor)?;
        let kind = if comm.transport().shares_memory() {
            "threads"
        } else {
            "MPI processes"
        };
        say(format!(
            "array    {} {}, {}, in {}\nranks    {} {kind}\n\n{:<28} {:<40} {:>9} {:>8} {:>11}\n",
            shape_text(array.shape()),
            array.element_type(),
            bytes::show(array.layout().byte_len()),
            directory.display(),
            comm.size(),
            "each rank p of N",
            "section",
            "bytes",
            "seconds",
            "rate"
        ))?;
        let mut steps = Vec::new();
        for (step, bar) in STEPS.iter().zip(bars) {
            let (moved, took) = run_step(comm, &array, step, bar)?;
            let seconds = took.as_secs_f64();
            let rate = moved as f64 / seconds / 1e9;
            say(format!(
                "{:<28} {:<40} {:>9} {seconds:>8.2} {rate:>6.2} GB/s\n",
                step.title,
                step.pattern,
                bytes::show(moved),
            ))?;
            steps.push(json!({
                "step": step.title,
                "section": step.pattern,
                "bytes": moved,
                "seconds": seconds,
                "gb_per_s": rate,
            }));
        }
        let ended = begun.end(comm)?;
        if self.closing.json {
            let facts = [
                ("shape", json!(array.shape())),
                ("type", json!(array.element_type().name())),
                ("bytes", json!(array.layout().byte_len())),
                ("ranks", json!(comm.size())),
                ("steps", json!(steps)),
            ];
            let told = match comm.rank() {
                0 => print(&ended.json(facts)),
                _ => Ok(()),
            };
            return Ok(comm.agree(told)?);
        }
        let each = if comm.transport().shares_memory() {
            ""
        } else {
            " in one process"
        };
        Ok(say(format!(
            "\nevery value read was right; {:.1} s in all; peak memory {}{each}\n",
            ended.seconds,
            bytes::show(ended.peak)
        ))?)
    }
}

/// Collective: the bytes moved by all ranks, and how long that took.
fn run_step(
    comm: &Comm,
    array: &Array,
    step: &Step,
    bar: &OnceLock<Progress>,
) -> Result<(u64, Duration)> {
    let pattern: Pattern = step.pattern.parse().expect("the demo's patterns are valid");
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    // With more than 16 ranks the blocks of the last ones lie outside.
    let section = match pattern.section(array.shape(), rank, ranks) {
        Ok(section) => section,
        Err(_) => outcore::Section::empty(array.shape().len()),
    };
    let size = array.layout().element_size();
    let total = comm.all_reduce(&[section.count() * size], Op::Sum)?[0];
    let progress = Progress::shared(bar, step.title, comm, section.count() * size)?;
    let room = Memory::default().room(comm, step.title)?;
    let most = room.elements(2, size).min(PIECE / size);
    let pieces = Pieces::new(&section, array.layout().slowest_first(), most);
    comm.barrier()?;
    let start = Instant::now();
    comm.agree(move_and_check(array, pieces, step, progress))?;
    let took = start.elapsed();
    progress.finish();
    Ok((total, took))
}

fn move_and_check(array: &Array, pieces: Pieces, step: &Step, progress: &Progress) -> Result<()> {
    let size = array.layout().element_size();
    let (mut expected, mut found) = (Vec::new(), Vec::new());
    for piece in pieces {
        expected.resize((piece.count() * size) as usize, 0);
        Fill::Index.generate(array, &piece, &mut expected)?;
        if step.write {
            array.write_bytes(&piece, &expected)?;
        } else {
            found.resize(expected.len(), 0);
            array.read_bytes(&piece, &mut found)?;
            if found != expected {
                return Err(Error::Invalid(format!(
                    "section [{piece}] holds wrong values"
                )));
            }
        }
        progress.add(expected.len() as u64);
    }
    Ok(())
}

/// A directory that rank 0 makes, and removes when everybody is done.
struct Scratch(PathBuf, bool);

impl Scratch {
    fn new(comm: &Comm, base: &Path) -> Result<Self> {
        let mut name = format!("outcore-demo-{}", std::process::id());
        comm.broadcast_string(0, &mut name)?;
        let path = base.join(name);
        if comm.rank() == 0 {
            std::fs::create_dir(&path).map_err(|source| Error::File {
                action: "create",
                path: path.clone(),
                source,
            })?;
        }
        Ok(Self(path, comm.rank() == 0))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        if self.1 {
            let _ = std::fs::remove_dir_all(&self.0);
        }
    }
}
