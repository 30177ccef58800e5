//! When a rank fails, nobody hangs and everybody learns who failed and why.
//! Each situation is repeated many times, because which rank is where when it
//! happens differs from time to time.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;
use std::time::Duration;

use outcore_transport::{Comm, Error, Exchange, Loan, Op, Result, conformance, threads};

const RANKS: usize = 5;
const ROUNDS: usize = 60;

/// Something that needs every rank of the group.
type Collective = fn(&Comm) -> Result<()>;

/// One exchange in which each rank sends `len` bytes to each.
fn exchange(comm: &Comm, len: usize) -> Result<()> {
    let send = vec![comm.rank() as u8; len];
    let mut receive = vec![0; len * comm.size()];
    let mut pieces = Exchange::new();
    for (peer, piece) in receive.chunks_exact_mut(len).enumerate() {
        pieces.send(peer, &send);
        pieces.receive(peer, piece);
    }
    comm.exchange(&mut pieces)?;
    for (peer, piece) in receive.chunks_exact(len).enumerate() {
        assert!(piece.iter().all(|&byte| usize::from(byte) == peer));
    }
    Ok(())
}

/// Everybody writes its rank into a part of everybody's memory.
fn lend(comm: &Comm) -> Result<bool> {
    let (rank, size) = (comm.rank(), comm.size());
    let all: Vec<usize> = (0..size).collect();
    let mut own = vec![0xff; size * 1000];
    let lent = comm.lend(Loan::Write(&mut own), &all, |loans| {
        for &peer in &all {
            let (start, _) = loans.writable(peer).expect("lent to be written");
            // SAFETY: this part is written by this rank alone.
            unsafe { start.add(rank * 1000).write_bytes(rank as u8, 1000) };
        }
    })?;
    for (peer, part) in own.chunks(1000).enumerate() {
        assert!(part.iter().all(|&byte| usize::from(byte) == peer));
    }
    Ok(lent)
}

const COLLECTIVES: [Collective; 6] = [
    Comm::barrier,
    |comm| exchange(comm, 8),
    |comm| exchange(comm, 100_000),
    |comm| comm.all_reduce_one(comm.rank(), Op::Sum).map(drop),
    |comm| comm.split(Some(0), 0).map(drop),
    |comm| lend(comm).map(drop),
];

/// All outcomes but that of `failed` are its failure with this cause.
fn assert_failed<T: PartialEq + std::fmt::Debug>(
    outcomes: &[Result<T>],
    failed: usize,
    expected: &str,
) {
    for (rank, outcome) in outcomes
        .iter()
        .enumerate()
        .filter(|&(rank, _)| rank != failed)
    {
        let expected = Err(Error::PeerFailed {
            rank: failed,
            cause: expected.into(),
        });
        assert_eq!(outcome, &expected, "on rank {rank}");
    }
}

#[test]
fn an_error_reaches_ranks_in_collectives() {
    for collective in COLLECTIVES {
        for round in 0..ROUNDS {
            let failing = round % RANKS;
            let outcomes = threads::run(RANKS, |comm| {
                for call in 0.. {
                    if comm.rank() == failing && call == round % 7 {
                        return Err(Error::Invalid("out of luck".into()));
                    }
                    collective(comm)?;
                }
                Ok(())
            });
            assert_failed(&outcomes, failing, "out of luck");
            assert_eq!(outcomes[failing], Err(Error::Invalid("out of luck".into())));
        }
    }
}

#[test]
fn an_error_reaches_ranks_in_messages() {
    for large in [false, true] {
        for round in 0..ROUNDS {
            let failing = round % RANKS;
            let outcomes = threads::run(RANKS, |comm| -> Result<()> {
                if comm.rank() == failing {
                    if round % 2 == 0 {
                        thread::yield_now();
                    }
                    return Err(Error::Invalid("no message".into()));
                }
                if large && comm.rank() % 2 == 0 {
                    // Nobody receives it.
                    let message = vec![1; 100_000];
                    comm.send((comm.rank() + 1) % RANKS, 9, &message)
                } else {
                    comm.receive((comm.rank() + 2) % RANKS, 1, &mut [0_u8])
                }
            });
            assert_failed(&outcomes, failing, "no message");
        }
    }
}

#[test]
fn an_error_reaches_ranks_in_other_groups() {
    for round in 0..ROUNDS {
        let failing = round % RANKS;
        let outcomes = threads::run(RANKS, |comm| -> Result<()> {
            // The failing rank is alone in its group; the others go on and on
            // in theirs, without it.
            let colour = u64::from(comm.rank() == failing);
            let part = comm.split(Some(colour), 0)?.expect("has a colour");
            if comm.rank() == failing {
                part.barrier()?;
                return Err(Error::Invalid("elsewhere".into()));
            }
            loop {
                exchange(&part, 5000)?;
                part.barrier()?;
            }
        });
        assert_failed(&outcomes, failing, "elsewhere");
    }
}

#[test]
fn a_failing_rank_waits_for_readers_of_its_memory() {
    // Whoever leaves an exchange overwrites and frees what it had lent; the
    // others must not notice. `exchange` looks at every byte.
    for round in 0..ROUNDS {
        let calls = AtomicUsize::new(0);
        let outcomes = threads::run(RANKS, |comm| -> Result<()> {
            loop {
                let mut send = vec![comm.rank() as u8; 300_000];
                let mut receive = vec![0; send.len()];
                let mut pieces = Exchange::new();
                pieces.send((comm.rank() + 1) % RANKS, &send);
                let from = (comm.rank() + RANKS - 1) % RANKS;
                pieces.receive(from, &mut receive);
                if calls.fetch_add(1, Ordering::Relaxed) == 20 + round {
                    comm.transport().fail("now");
                }
                let outcome = comm.exchange(&mut pieces);
                send.fill(0xff);
                outcome?;
                assert!(receive.iter().all(|&byte| usize::from(byte) == from));
            }
        });
        for outcome in outcomes {
            let Err(Error::PeerFailed { cause, .. }) = outcome else {
                panic!("{outcome:?}");
            };
            assert_eq!(cause, "now");
        }
    }
}

#[test]
fn a_failing_rank_waits_for_visitors() {
    for round in 0..ROUNDS {
        let failing = round % RANKS;
        let outcomes = threads::run(RANKS, |comm| conformance::check_loan_failure(comm, failing));
        let cause = format!("deliberate failure of rank {failing}");
        assert_failed(&outcomes, failing, &cause);
        assert_eq!(outcomes[failing], Err(Error::Invalid(cause)));
    }
}

#[test]
fn a_panic_of_a_visitor_is_reported() {
    for round in 0..ROUNDS {
        let failing = round % RANKS;
        let outcomes = threads::run(RANKS, |comm| -> Result<()> {
            let all: Vec<usize> = (0..RANKS).collect();
            for call in 0.. {
                let mut own = vec![0; 1000];
                comm.lend(Loan::Write(&mut own), &all, |_| {
                    if comm.rank() == failing && call == round % 7 {
                        // Without the hook, which would print it.
                        std::panic::resume_unwind(Box::new(format!("round {round}")));
                    }
                })?;
            }
            Ok(())
        });
        assert_failed(&outcomes, failing, &format!("panicked: round {round}"));
    }
}

#[test]
fn a_panic_is_reported() {
    for round in 0..10 {
        let failing = round % RANKS;
        let outcomes = threads::run(RANKS, |comm| -> Result<()> {
            comm.barrier()?;
            if comm.rank() == failing {
                // Without the hook, which would print it.
                std::panic::resume_unwind(Box::new(format!("round {round}")));
            }
            comm.barrier()
        });
        assert_failed(&outcomes, failing, &format!("panicked: round {round}"));
        let expected = Err(Error::Panicked {
            rank: failing,
            message: format!("round {round}"),
        });
        assert_eq!(outcomes[failing], expected);
    }
}

/// Rank 0 gives up while others still need it.
fn assert_absence(outcomes: &[Result<()>], absent: usize) {
    assert_eq!(outcomes[absent], Ok(()));
    for outcome in outcomes.iter().skip(1) {
        let Err(Error::PeerFailed { rank, cause }) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(*rank, absent);
        assert!(cause.starts_with("it has already finished"), "{cause}");
    }
}

#[test]
fn a_rank_that_has_finished_is_not_waited_for() {
    for round in 0..ROUNDS {
        for collective in COLLECTIVES {
            let outcomes = threads::run(RANKS, |comm| {
                collective(comm)?;
                if comm.rank() == 0 {
                    return Ok(());
                }
                collective(comm)
            });
            assert_absence(&outcomes, 0);
        }
        let outcomes = threads::run(RANKS, |comm| match comm.rank() {
            0 => Ok(()),
            rank if rank % 2 == round % 2 => comm.receive(0, 1, &mut [0_u8]),
            _ => comm.send(0, 1, &vec![0_u8; 100_000]),
        });
        assert_absence(&outcomes, 0);
    }
}

#[test]
fn a_rank_may_finish_before_the_others() {
    for _ in 0..ROUNDS {
        let outcomes = threads::run(RANKS, |comm| {
            // What rank 0 has sent arrives, and the others can go on.
            let part = comm.split(Some(u64::from(comm.rank() == 0)), 0)?;
            if comm.rank() == 0 {
                return comm.send(1, 1, &[7_u8]);
            }
            let part = part.expect("has a colour");
            for _ in 0..20 {
                part.barrier()?;
            }
            if comm.rank() == 1 {
                thread::yield_now();
                comm.receive(0, 1, &mut [0_u8])?;
            }
            exchange(&part, 3000)
        });
        assert_eq!(outcomes, vec![Ok(()); RANKS]);
    }
}

#[test]
fn lengths_that_do_not_match_are_reported() {
    for (sent, expected) in [(8, 9), (0, 5), (5, 0), (100_000, 1), (1, 100_000)] {
        for by_message in [false, true] {
            for _ in 0..ROUNDS / 4 {
                let outcomes = threads::run(RANKS, |comm| -> Result<()> {
                    let (send, mut receive) = (vec![1_u8; sent], vec![0_u8; expected]);
                    match comm.rank() {
                        1 if by_message => comm.send(3, 0, &send)?,
                        3 if by_message => comm.receive(1, 0, &mut receive)?,
                        rank => {
                            let mut pieces = Exchange::new();
                            if rank == 1 {
                                pieces.send(3, &send);
                            }
                            if rank == 3 {
                                pieces.receive(1, &mut receive);
                            }
                            comm.exchange(&mut pieces)?;
                        }
                    }
                    comm.barrier()
                });
                let mismatch = Error::LengthMismatch {
                    from: 1,
                    to: 3,
                    sent: sent as u64,
                    expected: expected as u64,
                };
                assert_failed(&outcomes, 3, &mismatch.to_string());
                assert_eq!(outcomes[3], Err(mismatch));
            }
        }
    }
}

#[test]
fn ranks_that_do_not_exist_are_reported() {
    let calls: [Collective; 5] = [
        |comm| comm.send(RANKS, 0, &[1_u8]),
        |comm| comm.receive(RANKS, 0, &mut [1_u8]),
        |comm| {
            let mut pieces = Exchange::new();
            pieces.send(RANKS, &[1]);
            comm.exchange(&mut pieces)
        },
        |comm| comm.broadcast(RANKS, &mut [1_u8]),
        |comm| comm.lend(Loan::Read(&[1]), &[0, RANKS], |_| {}).map(drop),
    ];
    for call in calls {
        let outcomes = threads::run(RANKS, |comm| {
            if comm.rank() == 2 {
                call(comm)?;
            }
            comm.barrier()
        });
        let error = Error::NoSuchRank {
            rank: RANKS,
            size: RANKS,
        };
        assert_failed(&outcomes, 2, &error.to_string());
        assert_eq!(outcomes[2], Err(error));
    }
}

#[test]
fn a_large_message_to_oneself_is_kept() {
    let outcomes = threads::run(2, |comm| -> Result<()> {
        let message = vec![comm.rank(); 1 << 17];
        comm.send(comm.rank(), 1, &message)?;
        let mut received = vec![0; message.len()];
        comm.receive(comm.rank(), 1, &mut received)?;
        assert_eq!(received, message);
        Ok(())
    });
    assert_eq!(outcomes, vec![Ok(()); 2]);
}

#[test]
fn a_program_without_ranks_is_refused() {
    let outcomes = threads::run(0, |_| -> Result<()> { Ok(()) });
    assert!(matches!(outcomes[..], [Err(Error::Invalid(_))]));
}

#[test]
fn many_ranks_wake_up() {
    for round in 0..10 {
        let ranks = 128;
        let outcomes = threads::run(ranks, |comm| -> Result<()> {
            comm.barrier()?;
            if comm.rank() == round * 12 {
                // The others are asleep by then.
                thread::sleep(Duration::from_millis(5));
                return Err(Error::Invalid("late".into()));
            }
            exchange(comm, 10)
        });
        assert_failed(&outcomes, round * 12, "late");
    }
}

#[test]
fn the_failure_suite_passes() {
    for round in 0..ROUNDS {
        let failing = round % RANKS;
        let outcomes = threads::run(RANKS, |comm| conformance::check_failure(comm, failing));
        assert_failed(
            &outcomes,
            failing,
            &format!("deliberate failure of rank {failing}"),
        );
    }
}

#[test]
fn who_only_asks_learns_of_a_failure() {
    for failing in 0..RANKS {
        let outcomes = threads::run(RANKS, |comm| conformance::check_notice(comm, failing));
        let cause = format!("deliberate failure of rank {failing}");
        assert_failed(&outcomes, failing, &cause);
    }
}

#[test]
fn who_only_asks_learns_of_an_end() {
    for ending in 0..RANKS {
        let outcomes = threads::run(RANKS, |comm| conformance::check_end(comm, ending));
        assert_eq!(outcomes, vec![Ok(()); RANKS]);
    }
}
