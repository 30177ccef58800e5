//! The command `outcore`: one file per subcommand.

mod adi;
mod application;
mod bench;
mod bytes;
mod calibrate;
mod checkpoint;
mod checksums;
mod chunks;
mod completions;
mod contents;
mod contract;
mod convert;
mod copy;
mod counted;
mod create;
mod demo;
mod described;
mod diff;
mod edge_sweep;
mod explain;
mod fft;
mod gather;
mod info;
mod laplace;
mod ls;
mod machine;
mod man;
mod matmul;
mod median;
mod memory;
mod mesh;
mod model;
mod numbers;
mod output;
mod page;
mod picture;
mod places;
mod progress;
mod ranks;
mod read;
mod rearrange;
mod records;
mod relayout;
mod remake;
mod repair_report;
mod reproduce;
mod scatter;
mod selection;
mod stats;
mod stats_along;
mod text;
mod transpose;
mod tuning;
mod verify;
mod view;
mod whole_file;
mod work;
mod write;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Arrays larger than memory: create them, look at them, read and write
/// strided sections of them, alone or with many ranks.
///
/// ARRAY is an outcore directory (name.oc), a NumPy file (name.npy), a Zarr array
/// (name.zarr, or name.zarr/path in a group), a dataset of an HDF5 or NetCDF-4 file
/// (name.h5:/group/data), a variable of a NetCDF file (name.nc:temperature), the pages of a
/// TIFF file, or any binary file described as
/// 'raw:data.bin?shape=4096x4096&type=f32&layout=column&offset=0'.
///
/// SECTION is written in NumPy style, from 0 and without the upper bound
/// ('0:100:2, ::16, 7'), or in Fortran style in parentheses, from 1 and with
/// it ('(1:100:2, 1:4096:16)').
#[derive(Parser)]
#[command(
    name = "outcore",
    version,
    max_term_width = 100,
    after_help = "\
Examples:
  outcore demo
  outcore create field.oc --shape 4096x4096 --type f32 --fill index
  outcore read field.oc '::16, :100' -o part.npy --ranks 4
  outcore write field.oc '0, :' --fill 1.5
  outcore gather field.oc --indices wanted.npy -o values.npy --ranks 4
  outcore info field.oc --json
  outcore stats field.oc --bins 40 --range 0,1 --plot
  outcore diff field.oc copy.npy --tolerance 1e-6
  outcore ls climate.zarr
  outcore view field.oc -o field.png
  outcore convert field.oc parts.oc --placement local --parts 4
  outcore transpose field.oc turned.oc --memory 256MiB
  outcore verify field.oc climate.zarr
  outcore checkpoint verify run
  mpirun -n 4 outcore read field.oc -o copy.npy     (built with --features mpi)

Exit status: 0 done, 1 failed, 2 wrong usage. After ctrl-C it is 130; for 'diff' see its help."
)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    #[command(mut_arg("memory", memory::of_pieces))]
    Create(create::Create),
    Info(info::Info),
    Ls(ls::Ls),
    #[command(mut_arg("memory", memory::of_pieces_and_buffers))]
    Read(read::Read),
    View(view::View),
    #[command(mut_arg("memory", memory::of_pieces_and_buffers))]
    Write(write::Write),
    Gather(gather::Gather),
    Scatter(scatter::Scatter),
    Stats(stats::Stats),
    Diff(diff::Diff),
    Convert(convert::Convert),
    #[command(mut_arg("ranks", ranks::usual(ranks::ONE_A_CORE)))]
    Relayout(relayout::Relayout),
    #[command(mut_arg("ranks", ranks::usual(ranks::ONE_A_CORE)))]
    Transpose(transpose::Transpose),
    #[command(mut_arg("ranks", ranks::usual(PARTS)))]
    Median(median::Median),
    #[command(mut_arg("ranks", ranks::usual(PARTS)))]
    Laplace(laplace::Laplace),
    Matmul(matmul::Matmul),
    Contract(contract::Contract),
    Fft(fft::Fft),
    Adi(adi::Adi),
    EdgeSweep(edge_sweep::EdgeSweep),
    #[command(mut_arg("memory", memory::of_pieces))]
    Mesh(mesh::Mesh),
    #[command(mut_arg("ranks", ranks::usual(ranks::ONE_A_CORE)))]
    Verify(verify::Verify),
    #[command(mut_arg("ranks", ranks::usual(ranks::ONE_A_CORE)))]
    RepairReport(repair_report::RepairReport),
    Checkpoint(checkpoint::Checkpoint),
    Explain(explain::Explain),
    #[command(mut_arg("ranks", ranks::usual("one a core, but two at least")))]
    Calibrate(calibrate::Calibrate),
    #[command(mut_arg("ranks", ranks::usual("16")))]
    Demo(demo::Demo),
    Bench(bench::Bench),
    Reproduce(reproduce::Reproduce),
    Model(model::Model),
    Completions(completions::Completions),
    Man(man::Man),
}

/// How many ranks work on an array with a file for each.
const PARTS: &str = "1, or as many as IN has local files";

/// The exit statuses of failures and of wrong usage, and what is added to the number
/// of a signal.
const FAILED: u8 = 1;
const WRONG_USAGE: u8 = 2;
const SIGNAL: u8 = 128;

impl Command {
    /// What is wrong with the arguments as far as they tell it themselves.
    fn check(&self) -> Result<(), String> {
        match self {
            Self::Create(command) => command.check(),
            Self::Read(command) => command.check(),
            Self::Write(command) => command.check(),
            Self::View(command) => command.check(),
            Self::Gather(command) => command.check(),
            Self::Scatter(command) => command.check(),
            Self::Stats(command) => command.check(),
            Self::Diff(command) => command.check(),
            Self::Convert(command) => command.check(),
            Self::Relayout(command) => command.check(),
            Self::Transpose(command) => command.check(),
            Self::Explain(command) => command.check(),
            Self::Matmul(command) => command.check(),
            Self::Contract(command) => command.check(),
            Self::Bench(command) => command.check(),
            Self::Mesh(command) => command.check(),
            Self::Info(_)
            | Self::Ls(_)
            | Self::Median(_)
            | Self::Laplace(_)
            | Self::Fft(_)
            | Self::Adi(_)
            | Self::EdgeSweep(_)
            | Self::Verify(_)
            | Self::RepairReport(_)
            | Self::Checkpoint(_)
            | Self::Calibrate(_)
            | Self::Demo(_)
            | Self::Reproduce(_)
            | Self::Model(_)
            | Self::Completions(_)
            | Self::Man(_) => Ok(()),
        }
    }
}

impl Command {
    /// What is left when a signal stops it; none of commands that make nothing.
    fn left(&self) -> Option<String> {
        let nothing = || Some("nothing is left of the unfinished output".to_owned());
        match self {
            Self::Write(_) | Self::Scatter(_) => {
                Some("what was written until then stays in the array".into())
            }
            Self::EdgeSweep(command) => Some(command.left()),
            Self::Contract(command) => Some(command.left().into()),
            Self::Mesh(_) => {
                Some("edges that are complete stay, nothing is left of what is unfinished".into())
            }
            Self::Read(command) => command.makes_file().then(nothing).flatten(),
            Self::Stats(command) => command.makes_array().then(nothing).flatten(),
            Self::Create(_)
            | Self::Gather(_)
            | Self::Convert(_)
            | Self::Relayout(_)
            | Self::Transpose(_)
            | Self::Median(_)
            | Self::Laplace(_)
            | Self::Matmul(_)
            | Self::Fft(_)
            | Self::Adi(_) => nothing(),
            _ => None,
        }
    }
}

fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        // Help and version, which were asked for.
        Err(answer) if !answer.use_stderr() => {
            return match ranks::printed(answer.print()) {
                Ok(()) => ExitCode::SUCCESS,
                Err(error) => failed(&error, None, FAILED),
            };
        }
        Err(error) => {
            let text = error.to_string();
            match text.strip_prefix("error: ") {
                Some(problem) => complain(problem.trim_end()),
                // Nothing was asked for, and the help is the answer.
                None => drop(write!(std::io::stderr(), "{text}")),
            }
            return WRONG_USAGE.into();
        }
    };
    if let Err(problem) = cli.command.check() {
        complain(&problem);
        return WRONG_USAGE.into();
    }
    outcore::stop_on_signals();
    if let Command::Diff(command) = &cli.command {
        // Its exit status says whether arrays differ.
        let launched = outcore::check_launch().map_err(Into::into);
        return match launched.and_then(|()| command.run()) {
            Ok(status) => status,
            Err(error) => failed(&error, None, diff::TROUBLE),
        };
    }
    let left = cli.command.left();
    let outcome = outcore::check_launch()
        .map_err(Into::into)
        .and_then(|()| match cli.command {
            Command::Create(command) => command.run(),
            Command::Info(command) => command.run(),
            Command::Ls(command) => command.run(),
            Command::Read(command) => command.run(),
            Command::View(command) => command.run(),
            Command::Write(command) => command.run(),
            Command::Gather(command) => command.run(),
            Command::Scatter(command) => command.run(),
            Command::Stats(command) => command.run(),
            Command::Diff(_) => Ok(()),
            Command::Convert(command) => command.run(),
            Command::Relayout(command) => command.run(),
            Command::Transpose(command) => command.run(),
            Command::Median(command) => command.run(),
            Command::Laplace(command) => command.run(),
            Command::Matmul(command) => command.run(),
            Command::Contract(command) => command.run(),
            Command::Fft(command) => command.run(),
            Command::Adi(command) => command.run(),
            Command::EdgeSweep(command) => command.run(),
            Command::Mesh(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::RepairReport(command) => command.run(),
            Command::Checkpoint(command) => command.run(),
            Command::Explain(command) => command.run(),
            Command::Calibrate(command) => command.run(),
            Command::Demo(command) => command.run(),
            Command::Bench(command) => command.run(),
            Command::Reproduce(command) => command.run(),
            Command::Model(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        });
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error, left.as_deref(), FAILED),
    }
}

/// Says what failed, and what is `left` if a signal stopped it; the exit status is that
/// of the signal, or else `status`.
fn failed(error: &outcore::Error, left: Option<&str>, status: u8) -> ExitCode {
    if ranks::speaks_for(error) {
        complain(&match outcore::interrupted() {
            Some(_) => match left.filter(|_| ranks::is_interruption(error)) {
                Some(left) => format!("{}; {left}", ranks::cause(error)),
                None => ranks::cause(error),
            },
            None => ranks::message(error),
        });
    }
    match outcore::interrupted() {
        Some(signal) => (SIGNAL + signal as u8).into(),
        None => status.into(),
    }
}

/// Says what is wrong, if anybody can still be told.
fn complain(problem: &str) {
    let lines: Vec<String> = problem.split('\n').map(ranks::shown).collect();
    let _ = writeln!(std::io::stderr(), "outcore: {}", lines.join("\n"));
}
