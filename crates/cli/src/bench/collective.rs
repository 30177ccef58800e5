//! `outcore bench collective`: all ranks move their sections at once.

use std::path::PathBuf;

use clap::{Args, ValueEnum};
use outcore::{
    Arrangement, ArrayDescriptor, DomainKind, ElementType, Error, Pattern, Result, Strategy,
};
use outcore_bench::{
    CollectiveOptions, DEVICES, Line, Way, collective, collective_summary, launch, papers_cases,
};

use crate::create::{Shape, parse_shape_argument};
use crate::picture::chart;
use crate::ranks::Ranks;
use crate::tuning::Op;
use crate::whole_file;

/// All ranks move their sections at once, by every way and beside other systems
///
/// The sections are the 25 distinct ones of tables 1 to 6 of the papers, or one
/// of your own, in which p is the rank and N the number of ranks. Each way plans
/// once and moves the sections again and again; the times are those of moving.
/// Started by mpirun (and built with --features mpi) the ranks are MPI processes.
///
/// With --peers, MPI-IO (and HDF5 and PnetCDF, where they are installed) take
/// turns with outcore in the same processes: Open MPI starts them, once with
/// ROMIO and once with OMPIO; under mpirun, those of that MPI take part.
///
/// To the standard error go the share of exchange in each two-phase way, and
/// how auto does beside the best other way and the best other system.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench collective --ranks 4
  outcore bench collective --ranks 16 --op write --cases T3-IV,T5-I --csv
  outcore bench collective --section '(1+32*p:16+32*p:1, 1:4096:1)' --state cold
  outcore bench collective --shape 512x512x64 --type f64 --section 'p::N, :, :' --strategy two-phase
  outcore bench collective --peers --ranks 4 --csv --svg read.svg > read.csv
  outcore bench collective --device pfs --ranks 16 --csv
  mpirun -n 4 outcore bench collective --csv")]
pub(super) struct Collective {
    /// An array that exists, instead of a new one; writes put back its own values
    #[arg(long, requires = "section", conflicts_with_all = ["shape", "element_type", "layout", "peers"])]
    array: Option<String>,
    /// The shape of a new array
    #[arg(long, default_value = "4096x4096", value_parser = parse_shape_argument)]
    shape: Shape,
    /// The type of its elements
    #[arg(long = "type", value_name = "TYPE", default_value = "f32")]
    element_type: ElementType,
    /// Its layout
    #[arg(long, default_value = "column")]
    layout: Arrangement,
    /// Only these sections of the tables, as in T1-I,T3-IV
    #[arg(long, value_delimiter = ',', conflicts_with = "section")]
    cases: Vec<String>,
    /// This section instead of those of the tables
    #[arg(long, allow_hyphen_values = true)]
    section: Option<Pattern>,
    /// What is measured
    #[arg(long, value_enum, default_value = "read")]
    op: Op,
    /// The ways that take part
    #[arg(long, value_enum, default_value = "all")]
    strategy: Ways,
    /// The domains of the two-phase method, if not all: auto, static, conforming, dynamic, cyclic,
    /// disks, few:COUNT or weighted
    #[arg(long, value_name = "KIND")]
    domains: Option<DomainKind>,
    #[command(flatten)]
    ranks: Ranks,
    /// Whether the array is in the page cache
    #[arg(long, value_enum, default_value = "warm")]
    state: State,
    /// A simulated device, in virtual time, instead of this machine's
    #[arg(long, value_parser = DEVICES, conflicts_with_all = ["array", "peers", "state"])]
    device: Option<String>,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Plan in each repetition
    #[arg(long)]
    once: bool,
    /// Let other systems take turns as well (needs Open MPI and a build with --features mpi)
    #[arg(long)]
    peers: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Draw the times into FILE
    #[arg(long, value_name = "FILE")]
    svg: Option<String>,
    /// Where the array is made for the time being [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum Ways {
    All,
    Auto,
    Direct,
    Sieving,
    Mapped,
    TwoPhase,
}

#[derive(Clone, Copy, PartialEq, ValueEnum)]
enum State {
    Warm,
    Cold,
}

impl Collective {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        let lines = self.lines()?;
        if lines.is_empty() {
            return Ok(lines);
        }
        eprint!("{}", collective_summary(&lines));
        if let Some(file) = &self.svg {
            whole_file::write_text(file, &chart::draw(&lines))?;
        }
        Ok(lines)
    }

    fn lines(&self) -> Result<Vec<Line>> {
        let options = self.options()?;
        if self.peers && !outcore::under_launcher() {
            return launch(options.ranks, &self.arguments());
        }
        let measured = collective(&options)?;
        for note in measured.notes {
            eprintln!("{note}");
        }
        Ok(measured.lines)
    }

    fn options(&self) -> Result<CollectiveOptions> {
        let ranks = self.ranks.ranks.map(|ranks| ranks as usize);
        Ok(CollectiveOptions {
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
            array: self.array.clone(),
            descriptor: ArrayDescriptor::new(&self.shape.0, self.element_type)
                .layout(self.layout.clone()),
            cases: self.patterns()?,
            direction: self.op.direction(),
            ways: self.ways(),
            ranks,
            repeats: self.repeat.into(),
            cold: self.state == State::Cold,
            once: self.once,
            peers: self.peers,
            device: self.device.clone(),
        })
    }

    fn patterns(&self) -> Result<Vec<(String, Pattern)>> {
        if let Some(section) = &self.section {
            return Ok(vec![("own".into(), section.clone())]);
        }
        let all = papers_cases()?;
        if self.cases.is_empty() {
            return Ok(all);
        }
        let chosen = self.cases.iter().map(|name| {
            let found = all.iter().find(|(known, _)| known == name);
            found.cloned().ok_or_else(|| {
                let known: Vec<&str> = all.iter().map(|(name, _)| name.as_str()).collect();
                Error::Invalid(format!(
                    "the tables have no section {name}; the sections are {}",
                    known.join(", ")
                ))
            })
        });
        chosen.collect()
    }

    fn ways(&self) -> Vec<Way> {
        let wanted = |way: &Way| match (self.strategy, way) {
            (Ways::All, _) | (Ways::Auto, Way::Auto) | (Ways::TwoPhase, Way::TwoPhase(_)) => true,
            (Ways::Direct, Way::Independent(strategy)) => *strategy == Strategy::Direct,
            (Ways::Sieving, Way::Independent(strategy)) => *strategy == Strategy::Sieving,
            (Ways::Mapped, Way::Independent(strategy)) => *strategy == Strategy::Mapped,
            _ => false,
        };
        let mut ways = Way::all();
        if let Some(kind) = self.domains {
            ways.retain(|way| !matches!(way, Way::TwoPhase(_)));
            ways.push(Way::TwoPhase(kind));
        }
        ways.retain(wanted);
        ways
    }

    /// The arguments of this program for its ranks, which print values and draw
    /// nothing.
    fn arguments(&self) -> Vec<String> {
        let mut arguments = Vec::new();
        let mut given = std::env::args().skip(1);
        while let Some(argument) = given.next() {
            match argument.as_str() {
                "--csv" => {}
                "--svg" | "--html" => drop(given.next()),
                text if text.starts_with("--svg=") || text.starts_with("--html=") => {}
                _ => arguments.push(argument),
            }
        }
        arguments.push("--csv".into());
        arguments
    }
}
