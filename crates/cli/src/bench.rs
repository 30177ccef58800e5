//! `outcore bench`: how fast outcore is, beside the limits of this machine.

mod alltoall;
mod checksums;
mod collective;
mod contract;
mod disk_resident;
mod formats;
mod global;
mod gpc;
mod irregular;
mod page;
mod redistribute;
#[cfg(feature = "remote")]
mod remote;
mod stats;
mod transpose;

use std::path::PathBuf;

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, Subcommand, ValueEnum};
use outcore::Result;
use outcore_bench::{
    AppsCase, AppsOptions, DEVICES, IoOptions, Line, SectionPeersOptions, SectionsOptions,
    SweepOptions, apps, csv, io, section_peers, sections, summary, sweep, table,
};

use crate::bytes;
use crate::output::check_free;
use crate::ranks::{ONE_A_CORE, once, print, usual};
use crate::records;
use crate::tuning::Op;

/// Measure outcore beside the limits of this machine and other systems
///
/// With --html the results of any bench become one page with charts as well, which
/// needs nothing else to be read: outcore, the others, the limits, the machine, the
/// command. With --from the page shows results that --csv has printed before.
#[derive(Args)]
#[command(
    arg_required_else_help = true,
    override_usage = "outcore bench <COMMAND> [--html <FILE>]\n       \
                      outcore bench --html <FILE> --from <CSV>...",
    after_help = "\
Examples:
  outcore bench io
  outcore bench transpose --html transpose.html
  outcore bench stats --json > stats.json
  outcore bench --html all.html --from crates/bench/runs/2026-11-18/transpose/*.csv"
)]
pub(crate) struct Bench {
    #[command(subcommand)]
    name: Option<Name>,
    /// Write the results as a page with charts
    #[arg(long, global = true, value_name = "FILE", value_parser = NonEmptyStringValueParser::new())]
    html: Option<String>,
    /// Replace the page if it exists
    #[arg(long, global = true)]
    force: bool,
    /// Print the results as JSON
    #[arg(long, global = true)]
    json: bool,
    /// Instead of measuring, read what --csv has printed
    #[arg(long, value_name = "CSV", num_args = 1.., requires = "html")]
    from: Vec<PathBuf>,
}

#[derive(Subcommand)]
enum Name {
    Io(Io),
    Sections(Sections),
    #[command(mut_arg("ranks", usual("4")))]
    Collective(collective::Collective),
    #[command(mut_arg("ranks", usual("4")))]
    Redistribute(redistribute::Redistribute),
    #[cfg(feature = "remote")]
    Remote(remote::Remote),
    #[command(mut_arg("ranks", usual("4")))]
    Irregular(irregular::Irregular),
    #[command(mut_arg("ranks", usual("2")))]
    DiskResident(disk_resident::DiskResident),
    Checksums(checksums::Checksums),
    Sweep(Sweep),
    Apps(Apps),
    #[command(mut_arg("ranks", usual(ONE_A_CORE)))]
    Alltoall(alltoall::AllToAllBench),
    #[command(mut_arg("ranks", usual("2")))]
    Gpc(gpc::Gpc),
    Stats(stats::Stats),
    Transpose(transpose::Transpose),
    Formats(formats::Formats),
    #[command(mut_arg("ranks", usual("2")))]
    Global(global::Global),
    Contract(contract::Contract),
}

/// Every strategy on the sections of the papers' tables, by one rank
///
/// A summary goes to the standard error: on how many sections auto is within
/// 1.15 times (or 0.05 ms) of the best strategy.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench sections
  outcore bench sections --op write --csv
  outcore bench sections --cold
  outcore bench sections --device disk1995 --op write
  outcore bench sections --peers --python venv/bin/python")]
struct Sections {
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// What is measured
    #[arg(long, value_enum, default_value = "read")]
    op: Op,
    /// Drop the array from the page cache before each repetition
    #[arg(long)]
    cold: bool,
    /// A simulated device, in virtual time, instead of this machine's
    #[arg(long, value_parser = DEVICES, conflicts_with = "cold")]
    device: Option<String>,
    /// Only the sections of arrays of this extent: 4096 or 16384
    #[arg(long, value_parser = clap::builder::PossibleValuesParser::new(["4096", "16384"]))]
    extent: Option<String>,
    /// Instead, read some sections beside numpy.memmap, h5py, zarr and tensorstore
    #[arg(long, conflicts_with_all = ["cold", "device", "extent", "op"])]
    peers: bool,
    /// The Python that has those packages
    #[arg(
        long,
        value_name = "PATH",
        default_value = "python3",
        requires = "peers"
    )]
    python: PathBuf,
    /// Where the array is made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

/// The foundations: contiguous files, runs, planning, messages
///
/// Contestants of one case take turns; times are the best and the median of
/// the repetitions. Started by mpirun (and built with --features mpi), it
/// measures the exchange between MPI processes beside MPI_Alltoallv.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench io
  outcore bench io --csv --peers > io.csv
  mpirun -n 4 outcore bench io --csv")]
struct Io {
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// The size of the contiguous array
    #[arg(long, default_value = "1GiB", value_parser = bytes::parse)]
    size: u64,
    /// Where files are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Build and run other systems' programs as well (needs Open MPI)
    #[arg(long)]
    peers: bool,
}

/// Prefetch, write-behind and reuse, beside the same work step by step
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench sweep
  outcore bench sweep --csv")]
struct Sweep {
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where the array is made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

/// Applications out of core, beside the same work in memory and other systems
///
/// The median filter (3x3, 4096x4096 f32), ten Jacobi sweeps (8192x8192 f32), the
/// product of two matrices (4096x4096 f64), the Fourier transform along both axes
/// (4096x4096 c64) or ten steps over the edges of a mesh (2000x2000 f64 nodes), from
/// files to a new file, with two ranks (or two threads) and memory for an eighth of
/// the data.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench apps --case jacobi
  outcore bench apps --case matmul --extent 8192
  outcore bench apps --case median --csv --peers --python venv/bin/python")]
struct Apps {
    /// The application
    #[arg(long, value_enum)]
    case: Application,
    /// The extent of what is multiplied or transformed [default: 4096], or of the mesh [default: 2000]
    #[arg(long, value_parser = clap::value_parser!(u64).range(1..=65536))]
    extent: Option<u64>,
    /// Print comma-separated values
    #[arg(long)]
    csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Where files are made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
    /// Run other systems as well (NumPy, SciPy, dask, dask-image)
    #[arg(long)]
    peers: bool,
    /// The Python that has their packages
    #[arg(long, default_value = "python3", requires = "peers")]
    python: PathBuf,
}

#[derive(Clone, Copy, ValueEnum)]
enum Application {
    Median,
    Jacobi,
    Matmul,
    Fft,
    Edges,
}

impl Apps {
    fn run(&self) -> Result<Vec<Line>> {
        apps(&AppsOptions {
            case: match self.case {
                Application::Median => AppsCase::Median,
                Application::Jacobi => AppsCase::Jacobi,
                Application::Matmul => AppsCase::Matmul,
                Application::Fft => AppsCase::Fft,
                Application::Edges => AppsCase::Edges,
            },
            extent: self.extent,
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            repeats: self.repeat.into(),
            python: self.peers.then(|| self.python.clone()),
        })
    }
}

impl Bench {
    pub(crate) fn check(&self) -> Result<(), String> {
        match (&self.name, self.from.is_empty()) {
            (None, true) => {
                Err("name a bench, or with --from the files whose results --html shows".into())
            }
            (None, false) if self.json => {
                Err("--from makes a page and prints nothing; leave out --json".into())
            }
            (Some(_), false) => Err("--from shows results that exist; leave out the bench".into()),
            _ => Ok(()),
        }
    }

    pub(crate) fn run(&self) -> Result<()> {
        if let Some(file) = &self.html {
            once(|| check_free(file, self.force))?;
        }
        let Some(name) = &self.name else {
            let file = self.html.as_deref().unwrap_or_default();
            return once(|| page::of_files(file, &self.from));
        };
        let (lines, as_csv) = match name {
            Name::Io(options) => (options.run()?, options.csv),
            Name::Sections(options) => (options.run()?, options.csv),
            Name::Collective(options) => (options.run()?, options.csv),
            Name::Redistribute(options) => (options.run()?, options.csv),
            #[cfg(feature = "remote")]
            Name::Remote(options) => (options.run()?, options.csv),
            Name::Irregular(options) => (options.run()?, options.csv),
            Name::DiskResident(options) => (options.run()?, options.csv),
            Name::Checksums(options) => (options.run()?, options.csv),
            Name::Apps(options) => (options.run()?, options.csv),
            Name::Sweep(options) => (options.run()?, options.csv),
            Name::Alltoall(options) => (options.run()?, options.csv),
            Name::Gpc(options) => (options.run()?, options.csv),
            Name::Stats(options) => (options.run()?, options.csv),
            Name::Transpose(options) => (options.run()?, options.csv),
            Name::Formats(options) => (options.run()?, options.csv),
            Name::Global(options) => (options.run()?, options.csv),
            Name::Contract(options) => (options.run()?, options.csv),
        };
        if lines.is_empty() {
            return Ok(());
        }
        if let Some(file) = &self.html {
            page::of_run(file, &lines)?;
        }
        print(&match (self.json, as_csv) {
            (true, _) => records::json(&csv(&lines)),
            (false, true) => csv(&lines),
            (false, false) => table(&lines),
        })
    }
}

impl Io {
    fn run(&self) -> Result<Vec<Line>> {
        io(&IoOptions {
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            size: self.size,
            repeats: self.repeat.into(),
            peers: self.peers,
        })
    }
}

impl Sections {
    fn run(&self) -> Result<Vec<Line>> {
        let directory = self.directory.clone().unwrap_or_else(std::env::temp_dir);
        let repeats = self.repeat.into();
        if self.peers {
            return section_peers(&SectionPeersOptions {
                directory,
                repeats,
                python: self.python.clone(),
            });
        }
        let lines = sections(&SectionsOptions {
            directory,
            repeats,
            cold: self.cold,
            direction: self.op.direction(),
            device: self.device.clone(),
            extent: self.extent.as_ref().and_then(|text| text.parse().ok()),
        })?;
        eprintln!("{}", summary(&lines));
        Ok(lines)
    }
}

impl Sweep {
    fn run(&self) -> Result<Vec<Line>> {
        sweep(&SweepOptions {
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            repeats: self.repeat.into(),
        })
    }
}
