//! `outcore bench redistribute`: arrays in memory move between distributions.

use std::path::PathBuf;

use clap::Args;
use outcore::{ElementType, Error, RedistributionMethod, Result, parse_shape};
use outcore_bench::{Line, RedistributeCase, RedistributeOptions, redistribute};

use crate::create::{Shape, parse_shape_argument};
use crate::ranks::Ranks;

/// Arrays in memory move between distributions, beside other systems and memcpy
///
/// Without --from and --to, the six cases of the thesis' figures: cyclic(11) to
/// cyclic(3), cyclic(15) to cyclic(10), cyclic(4) to cyclic(2) and block to
/// cyclic of 16Mi elements, (cyclic(11), cyclic(11)) to (cyclic(3), cyclic(3))
/// and (block, *) to (*, block) of 4096x4096. Names without 'kept' plan in each
/// repetition. Started by mpirun (and built with --features mpi) the ranks are
/// MPI processes; with --peers, ScaLAPACK's pdgemr2d (where it is installed),
/// MPI_Alltoallw and packing with MPI_Alltoallv take turns with outcore.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench redistribute --ranks 4
  outcore bench redistribute --shape 16777216 --type f64 --from 'cyclic(11)' --to 'cyclic(3)' --repeat 7
  outcore bench redistribute --shape 4096x4096 --from 'block,*' --to '*,block' --csv
  outcore bench redistribute --shape 1024x1024 --from 'block,block' --grid 2x2 --to 'cyclic,*' --method all
  mpirun -n 4 outcore bench redistribute --peers --csv")]
pub(super) struct Redistribute {
    /// The shape of the array
    #[arg(long, default_value = "16777216", value_parser = parse_shape_argument, requires = "from")]
    shape: Shape,
    /// The type of its elements
    #[arg(long = "type", value_name = "TYPE", default_value = "f64")]
    element_type: ElementType,
    /// How it is distributed before: block, block(m), cyclic, cyclic(m) or * for each axis
    #[arg(long, requires = "to")]
    from: Option<String>,
    /// How it is distributed after
    #[arg(long, requires = "from")]
    to: Option<String>,
    /// The grid of ranks before [default: nearly square]
    #[arg(long, requires = "from")]
    grid: Option<String>,
    /// The grid of ranks after [default: nearly square]
    #[arg(long, requires = "from")]
    to_grid: Option<String>,
    /// Methods that take part besides auto: all, general, gcd, lcm, direct or by-axis
    #[arg(long)]
    method: Option<String>,
    #[command(flatten)]
    ranks: Ranks,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Let other systems take turns as well (under mpirun)
    #[arg(long)]
    peers: bool,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Where the other systems are built [default: the system's temporary directory]
    #[arg(long)]
    directory: Option<PathBuf>,
}

impl Redistribute {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        redistribute(&RedistributeOptions {
            cases: self.cases()?,
            element: self.element_type.size(),
            methods: self.methods()?,
            ranks: self.ranks.ranks.map(|ranks| ranks as usize),
            repeats: self.repeat.into(),
            peers: self.peers,
            directory: self.directory.clone().unwrap_or_else(std::env::temp_dir),
        })
    }

    fn cases(&self) -> Result<Vec<RedistributeCase>> {
        let (Some(from), Some(to)) = (&self.from, &self.to) else {
            return Ok(RedistributeCase::all());
        };
        let grid = |text: &Option<String>| {
            let grid = text.as_deref().map(parse_shape).transpose();
            grid.map_err(|error| Error::Invalid(format!("the grid: {error}")))
        };
        Ok(vec![RedistributeCase {
            shape: self.shape.0.clone(),
            from: (from.clone(), grid(&self.grid)?),
            to: (to.clone(), grid(&self.to_grid)?),
        }])
    }

    fn methods(&self) -> Result<Vec<RedistributionMethod>> {
        match self.method.as_deref() {
            None => Ok(Vec::new()),
            Some("all") => Ok(RedistributionMethod::ALL[1..].to_vec()),
            Some(name) => Ok(vec![name.parse()?]),
        }
    }
}
