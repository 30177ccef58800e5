//! The bench `contract`: the paper's contraction of block-sparse tensors on disks
//! (Krishnamoorthy et al. 2006, sections VI and VII), scaled to fit this machine.
//!
//! `i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]`; indices `p` run over the
//! segments 100, 60, 40 and 30 times the scale, `h` over `k` times as long ones.
//! The memory of a rank is the paper's 6 GB times the fourth power of the scale,
//! as the tensors are. One thread a rank multiplies. Contestants are the ways to
//! the blocks: procedure calls to the rank that has them on its disk (the paper's
//! GPC-IO), copies for every rank (with and without the time to make them), and
//! one file a rank on storage that all share, whole or in stripes of 128 KiB.
//!
//! Cold: inputs are dropped from the page cache before each turn. Copies are on
//! disk (synced) when they are made, and dropped as well, since the memory of the
//! paper's nodes holds an eighth of them; beside that the same is measured with
//! copies that may stay in the page cache, which all ranks of a machine share.

mod claims;
mod made_up;
mod stage;
mod summary;

use std::path::PathBuf;

use outcore::{Comm, Error, Result};
use outcore_apps::contract::{Contraction, Predicate, Segments, Spaces, Way, least_memory};

use crate::io::Scratch;
use crate::line::Line;
pub use claims::contract_claims;
use stage::Stage;
pub use summary::contract_summary;

/// What is contracted.
const EXPRESSION: &str = "i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]";

/// The segments of the occupied orbitals.
const OCCUPIED: [u64; 4] = [100, 60, 40, 30];

/// The memory of a node, in bytes.
const NODE: f64 = 6e9;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct ContractOptions {
    /// Where the files of the ranks are made for the time being.
    pub directory: PathBuf,
    /// How long segments are, in those of the paper.
    pub scale: f64,
    /// How much longer those of the virtual orbitals are: strong scaling.
    pub ks: Vec<u64>,
    /// The same for each rank: weak scaling.
    pub ls: Vec<u64>,
    /// The numbers of ranks.
    pub ranks: Vec<usize>,
    /// Whether inputs are dropped from the page cache before each turn: one or both.
    pub cold: Vec<bool>,
    /// The ways to the blocks.
    pub ways: Vec<Way>,
    /// Which blocks are not zero.
    pub predicate: Predicate,
    /// Repetitions.
    pub repeats: usize,
}

/// One measurement: a problem, and who works on it.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Case {
    scale: f64,
    k: u64,
    /// The class of a weak-scaling problem.
    l: Option<u64>,
    ranks: usize,
    cold: bool,
    predicate: Predicate,
}

impl Case {
    fn name(&self) -> String {
        let kind = self.l.map_or("strong".into(), |l| format!("weak l {l}"));
        let blocks = match self.predicate {
            Predicate::All => String::new(),
            other => format!(" {other}"),
        };
        let Self {
            scale, k, ranks, ..
        } = self;
        let state = if self.cold { "cold" } else { "warm" };
        format!("{kind} scale {scale}{blocks} k {k} ranks {ranks} {state}")
    }

    fn contraction(&self) -> Result<Contraction> {
        let occupied = Segments::new(&OCCUPIED)?.scaled(self.scale)?;
        let spaces = Spaces::default()
            .with_space("V", occupied.scaled(self.k as f64)?)
            .with_space("O", occupied)
            .with_index("p", "O")?
            .with_index("h", "V")?;
        let holds = |_: &str, segments: &[usize]| self.predicate.holds(segments);
        Contraction::new(EXPRESSION.parse()?, &spaces, holds)
    }

    /// The memory of a rank: as much of the tensors at `k = 1` as a node of the paper
    /// had, and enough for two pairs of blocks.
    fn memory(&self, contraction: &Contraction) -> u64 {
        let block = contraction
            .left()
            .largest()
            .max(contraction.right().largest());
        let least = least_memory::<f64>(contraction) + 2 * 8 * block;
        ((NODE * self.scale.powi(4)) as u64).max(least)
    }
}

/// Runs the bench.
pub fn contract(options: &ContractOptions) -> Result<Vec<Line>> {
    if outcore::under_launcher() {
        return Err(Error::Invalid(
            "this bench starts its own ranks; start it without a launcher".into(),
        ));
    }
    let mut lines = Vec::new();
    for ranks in &options.ranks {
        let strong = options.ks.iter().map(|k| (*k, None));
        let weak = options.ls.iter().map(|l| (l * *ranks as u64, Some(*l)));
        for (k, l) in strong.chain(weak) {
            for cold in &options.cold {
                let case = Case {
                    scale: options.scale,
                    k,
                    l,
                    ranks: *ranks,
                    cold: *cold,
                    predicate: options.predicate,
                };
                lines.extend(measure(options, &case)?);
            }
        }
    }
    Ok(lines)
}

fn measure(options: &ContractOptions, case: &Case) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "contract");
    let directory = PathBuf::from(scratch.name());
    let contraction = case.contraction()?;
    let all = outcore::run(case.ranks, |comm: &Comm| {
        let stage = Stage::new(comm, case, &contraction, &directory)?;
        let lines = stage.contest(options)?;
        Ok::<_, Error>(if comm.rank() == 0 { lines } else { Vec::new() })
    })?;
    Ok(all.into_iter().flatten().collect())
}
