//! All-to-all: every algorithm on parts of several lengths, beside `MPI_Alltoall`
//! of the library that carries the messages.

use std::cell::RefCell;
use std::time::Instant;

use outcore::{AllToAll, Comm, Op, Result};

use crate::contest::{Contestant, contest};
use crate::line::Line;

/// What is measured.
#[derive(Debug, Clone)]
pub struct AllToAllOptions {
    /// The bytes from each rank to each.
    pub bytes: Vec<usize>,
    /// How.
    pub algorithms: Vec<AllToAll>,
    /// Repetitions of each contestant.
    pub repeats: usize,
}

/// So long a repetition takes: long enough for the clock, and for ranks that
/// share a processor to have their turns.
const REPETITION: f64 = 0.02;

/// The most calls in one.
const MOST_CALLS: f64 = 20_000.0;

/// Collective: all algorithms on all lengths; all ranks get the lines.
pub fn all_to_all(comm: &Comm, options: &AllToAllOptions) -> Result<Vec<Line>> {
    let mut lines = Vec::new();
    for &bytes in &options.bytes {
        lines.extend(one_length(comm, options, bytes)?);
    }
    Ok(lines)
}

fn one_length(comm: &Comm, options: &AllToAllOptions, bytes: usize) -> Result<Vec<Line>> {
    let (rank, size) = (comm.rank(), comm.size());
    let pattern = |from: usize, to: usize, at: usize| (from * 37 + to * 11 + at * 7) as u8;
    let sent: Vec<u8> = (0..size)
        .flat_map(|to| (0..bytes).map(move |at| pattern(rank, to, at)))
        .collect();
    let received = RefCell::new(vec![0u8; size * bytes]);
    let (sent, received) = (&sent, &received);
    let mut ways: Vec<(String, String, Way<'_>)> = Vec::new();
    for &algorithm in &options.algorithms {
        let way = Box::new(move || {
            let mut into = received.borrow_mut();
            Ok(comm.all_to_all_into(sent, &mut into, algorithm)?)
        });
        ways.push(("outcore".into(), algorithm.name().into(), way));
    }
    let carrier = carrier(comm);
    if let Some(way) = library(sent, received) {
        ways.push((carrier.into(), "MPI_Alltoall".into(), way));
    }
    let mut contestants = Vec::new();
    for (system, strategy, mut way) in ways {
        let batch = calls(comm, &mut way)?;
        contestants.push(Contestant {
            line: Line {
                system,
                bench: "alltoall",
                case: format!("{bytes} B a pair"),
                op: "all-to-all",
                strategy,
                transport: carrier.into(),
                ranks: size,
                useful_bytes: (bytes * size * size) as u64,
                best_s: 0.0,
                median_s: 0.0,
                ok: true,
            },
            prepare: Box::new(move || {
                received.borrow_mut().fill(0);
                Ok(())
            }),
            work: way,
            check: Box::new(move || {
                let received = received.borrow();
                let mut places = received.iter().enumerate();
                places.all(|(at, byte)| *byte == pattern(at / bytes, rank, at % bytes))
            }),
            batch,
        });
    }
    contest(comm, contestants, options.repeats)
}

type Way<'a> = Box<dyn FnMut() -> Result<()> + 'a>;

/// Collective: how many calls make a repetition.
fn calls(comm: &Comm, way: &mut Way<'_>) -> Result<u32> {
    const TRIES: u32 = 4;
    way()?;
    comm.barrier()?;
    let start = Instant::now();
    (0..TRIES).try_for_each(|_| way())?;
    let seconds = start.elapsed().as_secs_f64() / f64::from(TRIES);
    let slowest = comm.all_reduce_one(seconds, Op::Max)?;
    Ok((REPETITION / slowest).clamp(1.0, MOST_CALLS) as u32)
}

/// What carries messages between the ranks.
fn carrier(comm: &Comm) -> &'static str {
    match comm.transport().name() {
        name if name == "threads" => "threads",
        name if name.starts_with("Open MPI") => "openmpi",
        _ => "mpich",
    }
}

/// The call of the MPI library itself, if the ranks are MPI processes.
#[cfg(feature = "mpi")]
fn library<'a>(sent: &'a [u8], received: &'a RefCell<Vec<u8>>) -> Option<Way<'a>> {
    outcore::under_launcher().then(|| -> Way<'a> {
        Box::new(move || {
            let mut into = received.borrow_mut();
            Ok(outcore_transport_mpi::all_to_all_equal(sent, &mut into)?)
        })
    })
}

/// None: without MPI the ranks are threads.
#[cfg(not(feature = "mpi"))]
fn library<'a>(_: &'a [u8], _: &'a RefCell<Vec<u8>>) -> Option<Way<'a>> {
    None
}

/// For each length: how auto does beside the best algorithm and the library.
pub fn all_to_all_summary(lines: &[Line]) -> String {
    let mut cases: Vec<&str> = lines.iter().map(|line| line.case.as_str()).collect();
    cases.dedup();
    let mut text = String::new();
    for case in cases {
        let of = |line: &&Line| line.case == case;
        let here: Vec<&Line> = lines.iter().filter(of).collect();
        let ours = |line: &&&Line| line.system == "outcore";
        let auto = here
            .iter()
            .filter(ours)
            .find(|line| line.strategy == "auto");
        let Some(auto) = auto else { continue };
        let others = here.iter().filter(|line| line.strategy != "auto");
        let fastest = |a: &&&Line, b: &&&Line| a.best_s.total_cmp(&b.best_s);
        text += &format!("{case}: auto {:.2} us", auto.best_s * 1e6);
        if let Some(best) = others.clone().filter(ours).min_by(fastest) {
            let ratio = auto.best_s / best.best_s;
            text += &format!(", {ratio:.2} of {}", best.strategy);
        }
        if let Some(best) = others.filter(|line| !ours(line)).min_by(fastest) {
            let ratio = auto.best_s / best.best_s;
            text += &format!(", {ratio:.2} of {}", best.strategy);
        }
        text += "\n";
    }
    text
}
