//! Checks the MPI transport on the ranks it is started on:
//!
//! ```text
//! mpirun -n 3 mpi-conformance               all that a transport must do
//!   --parts BYTES                           the same with messages cut into parts
//!   --apart                                 the same as if on several nodes
//!   --staged                                the same without the kernel's copies
//!   --fail R                                rank R fails: everybody gets its error
//!   --fail-large R                          the same in the middle of large messages
//!   --fail-loan R                           the same in the middle of visits to memory
//!   --fail-notice R                         the same while the others only ask
//!   --end R                                 rank R ends: the others learn it
//!   --early R                               rank R ends while the others wait for it
//!   --mismatch                              the last rank sends more than is expected
//!   --mismatch-exchange                     the same in an exchange, but fewer
//!   --mismatch-all-to-all                   the last rank has parts of another length
//!   --leave R                               rank R makes one run, the others two
//!   --error R                               rank R fails and everybody ends with 1
//!   --again                                 a failed run, then one that succeeds
//!   --panic R                               rank R panics: the job ends
//!   --exit R                                rank R ends its process: the job ends
//!   --big                                   2 GiB + 1 MiB from rank 0 to rank 1
//! ```
//!
//! Ends with 0 if every rank got what it should, else with 1.

use std::process::ExitCode;

use outcore_transport::{AllToAll, Comm, Error, Exchange, Result, conformance};
use outcore_transport_mpi::{
    library_version, run, set_kernel_copies, set_largest_message, set_node_memory,
};

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mode = arguments.first().map_or("", String::as_str);
    let number = arguments.get(1).map_or(Some(0), |text| text.parse().ok());
    let Some(number) = number else {
        eprintln!("not a number: {}", arguments[1]);
        return ExitCode::FAILURE;
    };
    let passed = match mode {
        "" => report(run(whole)),
        "--parts" => {
            set_largest_message(number);
            report(run(whole))
        }
        "--apart" => {
            set_node_memory(false);
            report(run(whole))
        }
        "--staged" => {
            set_kernel_copies(false);
            report(run(whole))
        }
        "--fail" => failure(number, |comm| conformance::check_failure(comm, number)),
        "--fail-large" => failure(number, |comm| fail_among_large(comm, number)),
        "--fail-loan" => failure(number, |comm| conformance::check_loan_failure(comm, number)),
        "--fail-notice" => failure(number, |comm| conformance::check_notice(comm, number)),
        "--end" => report(run(|comm| conformance::check_end(comm, number))),
        "--early" => early(number),
        "--mismatch" => mismatch(|comm, last| {
            if comm.rank() == last {
                comm.send(0, 1, &[0u8; 100])?;
            }
            if comm.rank() == 0 {
                comm.receive(last, 1, &mut [0u8; 99])?;
            }
            Ok(())
        }),
        "--mismatch-exchange" => mismatch(|comm, last| {
            let mut place = [0; 99];
            let mut exchange = Exchange::new();
            if comm.rank() == last {
                exchange.send(0, &[0; 90]);
            }
            if comm.rank() == 0 {
                exchange.receive(last, &mut place);
            }
            comm.exchange(&mut exchange)
        }),
        "--mismatch-all-to-all" => mismatch_all_to_all(),
        "--leave" => leave(number),
        "--error" => report(run(|comm| conformance::check_failure(comm, number))),
        "--again" => {
            let failed = failure(0, |comm| conformance::check_failure(comm, 0));
            failed && report(run(whole)) && report(run(whole))
        }
        "--panic" => report(run(|comm| {
            assert_ne!(comm.rank(), number, "a panic on purpose");
            comm.barrier()
        })),
        "--exit" => report(run(|comm| {
            if comm.rank() == number {
                std::process::exit(0);
            }
            comm.barrier()
        })),
        "--big" => report(run(big)),
        _ => {
            eprintln!("unknown argument: {mode}");
            false
        }
    };
    if passed {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Prints an error; whether there was none.
fn report(outcome: Result<()>) -> bool {
    if let Err(error) = &outcome {
        eprintln!("{error}");
    }
    outcome.is_ok()
}

/// All that a transport must do, on the world and on halves of it.
fn whole(comm: &Comm) -> Result<()> {
    conformance::check(comm)?;
    // Both halves at the same time, in the reverse order of the ranks.
    let half = comm.split(Some(comm.rank() as u64 % 2), -(comm.rank() as i64))?;
    conformance::check(&half.expect("a colour was given"))?;
    pieces(comm)?;
    if comm.rank() == 0 {
        println!("{} ranks of {}: passed", comm.size(), library_version());
    }
    Ok(())
}

/// An exchange that sends each rank several pieces of its own length.
fn pieces(comm: &Comm) -> Result<()> {
    let (rank, size) = (comm.rank(), comm.size());
    let len = |from: usize, to: usize| 1000 * (from + 1) + 7 * to;
    let byte = |from: usize, to: usize, at: usize| (from * 31 + to * 17 + at) as u8;
    let data: Vec<Vec<u8>> = (0..size)
        .map(|to| (0..len(rank, to)).map(|at| byte(rank, to, at)).collect())
        .collect();
    let mut results: Vec<Vec<u8>> = (0..size).map(|from| vec![0; len(from, rank)]).collect();
    let mut exchange = Exchange::new();
    for (to, data) in data.iter().enumerate() {
        let (front, back) = data.split_at(100 * to);
        exchange.send(to, front);
        exchange.send(to, back);
    }
    for (from, result) in results.iter_mut().enumerate() {
        let (front, back) = result.split_at_mut(333);
        exchange.receive(from, front);
        exchange.receive(from, back);
    }
    comm.exchange(&mut exchange)?;
    for (from, result) in results.iter().enumerate() {
        let wrong = (0..result.len()).find(|&at| result[at] != byte(from, rank, at));
        if let Some(at) = wrong {
            let text = format!("rank {rank}: byte {at} from rank {from} is wrong");
            return Err(Error::Invalid(text));
        }
    }
    Ok(())
}

/// Runs `f`, in which rank `failing` fails; whether this rank got its error.
fn failure(failing: usize, f: impl FnOnce(&Comm) -> Result<()>) -> bool {
    let mut rank = 0;
    let outcome = run(|comm| {
        rank = comm.rank();
        f(comm)
    });
    let right = match &outcome {
        Ok(()) => false,
        Err(Error::PeerFailed { rank: failed, .. }) => *failed == failing && rank != failing,
        Err(_) => rank == failing,
    };
    match outcome {
        Ok(()) => eprintln!("rank {rank}: no error"),
        Err(error) => println!("rank {rank}: {error}"),
    }
    right
}

/// Large messages are under way in all directions when `failing` fails; the
/// memory is freed and used again as soon as the calls are over.
fn fail_among_large(comm: &Comm, failing: usize) -> Result<()> {
    const LEN: usize = 8 << 20;
    comm.barrier()?;
    if comm.rank() == failing {
        return Err(Error::Invalid("a failure on purpose".into()));
    }
    let send = vec![1; LEN];
    let mut receive = vec![vec![0; LEN]; comm.size()];
    let mut exchange = Exchange::new();
    for (peer, receive) in receive.iter_mut().enumerate() {
        exchange.send(peer, &send);
        exchange.receive(peer, receive);
    }
    let outcome = comm.exchange(&mut exchange);
    drop((send, receive));
    // Later calls have to fail as well.
    let next = (comm.rank() + 1) % comm.size();
    let later = comm.send(next, 1, &vec![2u8; LEN]);
    assert!(later.is_err(), "a call succeeded in a failed run");
    outcome
}

/// Rank `ending` ends at once, after a message that has to arrive; the others
/// wait for it in a barrier.
fn early(ending: usize) -> bool {
    let (mut rank, mut size) = (0, 0);
    let outcome = run(|comm| {
        (rank, size) = (comm.rank(), comm.size());
        if rank == ending {
            for to in (0..size).filter(|&to| to != ending) {
                comm.send(to, 5, &[to as u64])?;
            }
            return Ok(());
        }
        std::thread::sleep(std::time::Duration::from_millis(100));
        let mut got = [0u64];
        comm.receive(ending, 5, &mut got)?;
        assert_eq!(got, [rank as u64]);
        comm.barrier()
    });
    match outcome {
        Ok(()) => rank == ending || size == 1,
        Err(Error::PeerFailed {
            rank: failed,
            cause,
        }) => {
            println!("rank {rank}: rank {failed} failed: {cause}");
            failed == ending && rank != ending
        }
        Err(error) => report(Err(error)),
    }
}

/// Runs `f`, in which rank 0 expects 99 bytes of the last rank and gets more
/// or fewer.
fn mismatch(f: impl FnOnce(&Comm, usize) -> Result<()>) -> bool {
    let mut rank = 0;
    let outcome = run(|comm| {
        rank = comm.rank();
        f(comm, comm.size() - 1)?;
        comm.barrier()
    });
    match outcome {
        Err(Error::LengthMismatch { sent, expected, .. }) => {
            println!("rank {rank}: sent {sent}, expected {expected}");
            rank == 0 && sent != 99 && expected == 99
        }
        Err(Error::PeerFailed { rank: 0, .. }) => rank != 0,
        Err(error) => report(Err(error)),
        Ok(()) => false,
    }
}

/// In an all-to-all the last rank has parts of 9 bytes, the others of 8: each
/// rank must be told, by whatever it does.
fn mismatch_all_to_all() -> bool {
    let mut algorithms = AllToAll::ALL.into_iter().chain([AllToAll::Auto]);
    algorithms.all(|algorithm| {
        let outcome = run(|comm| {
            let len = if comm.rank() + 1 == comm.size() { 9 } else { 8 };
            let sent = vec![1u8; len * comm.size()];
            let mut received = vec![0u8; len * comm.size()];
            comm.all_to_all_into(&sent, &mut received, algorithm)?;
            comm.barrier()
        });
        let told = |text: &str| text.contains("which expected");
        match outcome {
            Err(error @ (Error::LengthMismatch { .. } | Error::PeerFailed { .. })) => {
                println!("{algorithm}: {error}");
                told(&error.to_string())
            }
            other => {
                eprintln!("{algorithm}: {other:?}");
                false
            }
        }
    })
}

/// Rank `leaving` ends its process after one run; in the second the others
/// wait for it, in the third they do not.
fn leave(leaving: usize) -> bool {
    let mut rank = 0;
    let first = report(run(|comm| {
        rank = comm.rank();
        comm.barrier()
    }));
    if rank == leaving {
        return first;
    }
    let second = run(|comm| comm.barrier());
    let missed = matches!(second, Err(Error::PeerFailed { rank, .. }) if rank == leaving);
    let third = run(|comm| comm.send(comm.rank(), 1, &[1u8]));
    first && missed && report(third)
}

/// More than 2^31 bytes in one piece; ranks above 1 have nothing to do.
fn big(comm: &Comm) -> Result<()> {
    const LEN: usize = (2 << 30) + (1 << 20);
    let mut bytes = Vec::new();
    let mut exchange = Exchange::new();
    match comm.rank() {
        0 => {
            bytes.resize(LEN, 0u8);
            (bytes[0], bytes[LEN / 2], bytes[LEN - 1]) = (1, 2, 3);
            exchange.send(1, &bytes);
        }
        1 => {
            bytes.resize(LEN, 0u8);
            exchange.receive(0, &mut bytes);
        }
        _ => {}
    }
    comm.exchange(&mut exchange)?;
    if comm.rank() == 1 {
        assert_eq!((bytes[0], bytes[LEN / 2], bytes[LEN - 1]), (1, 2, 3));
        println!("{LEN} bytes arrived");
    }
    Ok(())
}
