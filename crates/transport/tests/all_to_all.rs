//! The schedules of all algorithms, as values: complete and matching for every
//! number of ranks up to 64, and those of the thesis' tables; and the calls on
//! threads.

use std::collections::BTreeSet;

use outcore_transport::all_to_all::{Block, Step, steps};
use outcore_transport::{AllToAll, Comm, Error, Result, threads};

/// The algorithms that have schedules.
const SCHEDULED: [AllToAll; 9] = [
    AllToAll::Lex,
    AllToAll::Pex,
    AllToAll::Rex,
    AllToAll::Bex,
    AllToAll::PexGen,
    AllToAll::PexGenShift,
    AllToAll::Gen,
    AllToAll::Ipex,
    AllToAll::Bruck,
];

/// Table 4.1 to 4.3 of the thesis: the partner of each of 8 ranks in each step.
const PEX: [[usize; 8]; 7] = [
    [1, 0, 3, 2, 5, 4, 7, 6],
    [2, 3, 0, 1, 6, 7, 4, 5],
    [3, 2, 1, 0, 7, 6, 5, 4],
    [4, 5, 6, 7, 0, 1, 2, 3],
    [5, 4, 7, 6, 1, 0, 3, 2],
    [6, 7, 4, 5, 2, 3, 0, 1],
    [7, 6, 5, 4, 3, 2, 1, 0],
];
const REX: [[usize; 8]; 3] = [PEX[3], PEX[1], PEX[0]];
const BEX: [[usize; 8]; 7] = [
    [7, 2, 1, 4, 3, 6, 5, 0],
    [2, 7, 0, 5, 6, 3, 4, 1],
    [1, 0, 7, 6, 5, 4, 3, 2],
    [4, 5, 6, 7, 0, 1, 2, 3],
    [3, 6, 5, 0, 7, 2, 1, 4],
    [6, 3, 4, 1, 2, 7, 0, 5],
    [5, 4, 3, 2, 1, 0, 7, 6],
];

fn all_steps(algorithm: AllToAll, size: usize) -> Option<Vec<Vec<Step>>> {
    (0..size).map(|rank| steps(algorithm, rank, size)).collect()
}

#[test]
fn the_tables_of_the_thesis() {
    let tables: [(AllToAll, &[[usize; 8]]); 3] = [
        (AllToAll::Pex, &PEX),
        (AllToAll::Rex, &REX),
        (AllToAll::Bex, &BEX),
    ];
    for (algorithm, table) in tables {
        for (rank, steps) in all_steps(algorithm, 8).unwrap().iter().enumerate() {
            let partner = |step: &Step| (step.sends[0].peer, step.receives[0].peer);
            let expected = table.iter().map(|step| (step[rank], step[rank]));
            assert!(steps.iter().map(partner).eq(expected), "{algorithm} {rank}");
        }
    }
}

/// Lets the blocks travel.
#[test]
fn complete_for_every_number_of_ranks() {
    for size in 1..=64 {
        for algorithm in SCHEDULED {
            let Some(all) = all_steps(algorithm, size) else {
                assert!(algorithm.needs_power_of_two() && !size.is_power_of_two());
                assert!(steps(algorithm.for_ranks(size), 0, size).is_some());
                continue;
            };
            assert_eq!(algorithm.for_ranks(size), algorithm);
            let mut held: Vec<BTreeSet<Block>> = (0..size)
                .map(|source| (0..size).map(|target| Block { source, target }).collect())
                .collect();
            for at in 0..all[0].len() {
                let mut travelling = Vec::new();
                for (rank, steps) in all.iter().enumerate() {
                    assert_eq!(steps.len(), all[0].len());
                    for parcel in &steps[at].sends {
                        let there = &all[parcel.peer][at].receives;
                        let matching = there.iter().filter(|other| other.peer == rank);
                        let expected: Vec<_> = matching.flat_map(|other| &other.blocks).collect();
                        assert!(parcel.blocks.iter().eq(expected), "{algorithm} {size} {at}");
                        for block in &parcel.blocks {
                            assert!(held[rank].remove(block), "{algorithm} {size} {at}");
                            travelling.push((parcel.peer, *block));
                        }
                    }
                    let coming = steps[at].receives.iter();
                    let expected = coming.flat_map(|parcel| &parcel.blocks).count();
                    let sent = all.iter().flat_map(|steps| &steps[at].sends);
                    let sent = sent.filter(|parcel| parcel.peer == rank);
                    assert_eq!(expected, sent.flat_map(|parcel| &parcel.blocks).count());
                }
                for (to, block) in travelling {
                    assert!(held[to].insert(block), "{algorithm} {size} {at}");
                }
            }
            for (target, held) in held.iter().enumerate() {
                let expected = (0..size).map(|source| Block { source, target });
                assert!(held.iter().copied().eq(expected), "{algorithm} {size}");
            }
        }
    }
}

/// How many steps each takes, and that only those that pass on do so.
#[test]
fn steps_and_what_is_passed_on() {
    for size in 2usize..=64 {
        let doublings = size.next_power_of_two().ilog2() as usize;
        for algorithm in SCHEDULED {
            let Some(all) = all_steps(algorithm, size) else {
                continue;
            };
            let expected = match algorithm {
                AllToAll::Lex => size,
                AllToAll::Rex | AllToAll::Bruck => doublings,
                AllToAll::PexGen | AllToAll::PexGenShift => size.next_power_of_two() - 1,
                AllToAll::Ipex if !size.is_power_of_two() => all[0].len(),
                _ => size - 1,
            };
            assert_eq!(all[0].len(), expected, "{algorithm} {size}");
            let passed_on = all.iter().enumerate().any(|(rank, steps)| {
                let sends = steps.iter().flat_map(|step| &step.sends);
                let mut blocks = sends.flat_map(|parcel| &parcel.blocks);
                blocks.any(|block| block.source != rank)
            });
            assert!(algorithm.forwards() || !passed_on, "{algorithm} {size}");
        }
    }
}

#[test]
fn names() {
    for algorithm in AllToAll::ALL.into_iter().chain([AllToAll::Auto]) {
        assert_eq!(algorithm.name().parse(), Ok(algorithm));
        assert_eq!(algorithm.to_string(), algorithm.name());
    }
    let error = "pexx".parse::<AllToAll>().unwrap_err().to_string();
    assert!(error.contains("pex-gen-shift"), "{error}");
    assert_eq!(AllToAll::Pex.for_ranks(6), AllToAll::PexGen);
    assert_eq!(AllToAll::Rex.for_ranks(6), AllToAll::Bruck);
    assert_eq!(AllToAll::Bex.for_ranks(6), AllToAll::PexGenShift);
    assert_eq!(AllToAll::Rex.for_ranks(16), AllToAll::Rex);
}

/// What every algorithm does on a rank that brings another length: that rank or
/// its peers say so, and nobody waits for ever.
#[test]
fn wrong_lengths_are_told_to_all() {
    for algorithm in AllToAll::ALL.into_iter().chain([AllToAll::Auto]) {
        for ranks in [2, 3, 5, 8] {
            let outcomes: Vec<Result<(), Error>> = threads::run(ranks, |comm| {
                let len = if comm.rank() == 1 { 3 } else { 2 };
                let mut into = vec![0u64; len * ranks];
                comm.all_to_all_into(&vec![7; len * ranks], &mut into, algorithm)
            });
            let text = |outcome: &Result<(), Error>| match outcome {
                Err(error) => error.to_string(),
                Ok(()) => "no error".to_owned(),
            };
            for outcome in &outcomes {
                assert!(
                    text(outcome).contains("which expected"),
                    "{algorithm} {outcomes:?}"
                );
            }
        }
    }
}

/// A rank that does not come is noticed by the others.
#[test]
fn a_failing_rank_is_told_to_all() {
    for algorithm in AllToAll::ALL.into_iter().chain([AllToAll::Auto]) {
        let outcomes: Vec<Result<(), Error>> = threads::run(5, |comm| {
            let mut into = [0u8; 5];
            comm.all_to_all_into(&[1; 5], &mut into, algorithm)?;
            if comm.rank() == 3 {
                return Err(Error::Invalid("no luck".into()));
            }
            comm.all_to_all_into(&[2; 5], &mut into, algorithm)
        });
        for (rank, outcome) in outcomes.iter().enumerate() {
            let expected = match rank {
                3 => "no luck",
                _ => "rank 3 failed: no luck",
            };
            assert_eq!(outcome.as_ref().unwrap_err().to_string(), expected);
        }
    }
}

#[test]
fn refused_arguments() {
    let comm: Comm = threads::solo();
    let refused = |outcome: Result<()>| matches!(outcome, Err(Error::Invalid(_)));
    assert!(refused(comm.all_to_all_into(
        &[1u8],
        &mut [0; 2],
        AllToAll::Auto
    )));
    assert!(refused(comm.all_to_allv_into::<u8>(
        &[],
        &mut [],
        AllToAll::Gen
    )));
    let outcome = comm.all_to_allv_into(&[&[1u8][..]], &mut [&mut [0; 2]], AllToAll::Gen);
    assert!(
        matches!(outcome, Err(Error::LengthMismatch { .. })),
        "{outcome:?}"
    );
    // Two ranks cannot share three values.
    let outcomes = threads::run(2, |comm| match comm.all_to_all(&[1, 2, 3]) {
        Err(Error::Invalid(text)) => Ok::<_, Error>(text),
        other => Err(Error::Invalid(format!("{other:?}"))),
    });
    assert!(
        outcomes.iter().all(|outcome| outcome.is_ok()),
        "{outcomes:?}"
    );
}
