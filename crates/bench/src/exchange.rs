//! Messages between ranks: large exchanges beside `memcpy` (threads) or
//! `MPI_Alltoallv` (processes), and small all-to-alls.

use std::cell::RefCell;

use outcore::{Comm, Exchange, Result};

use crate::contest::{Contestant, contest};
use crate::line::Line;

const PIECE: usize = 1 << 20;

fn line(comm: &Comm, system: &str, case: String, strategy: &str, bytes: usize) -> Line {
    Line {
        system: system.into(),
        bench: "io",
        case,
        op: "exchange",
        strategy: strategy.into(),
        transport: "threads".into(),
        ranks: comm.size(),
        useful_bytes: bytes as u64,
        best_s: 0.0,
        median_s: 0.0,
        ok: true,
    }
}

fn pattern(from: usize, to: usize, at: usize) -> u8 {
    (from * 37 + to * 11 + at * 7 + at / 4093) as u8
}

/// Two ranks send each other `pieces` pieces of 1 MiB; two threads copy as many.
pub(crate) fn between_threads(repeats: usize, pieces: usize) -> Result<Vec<Line>> {
    let lines = outcore::run(2, |comm| {
        let (me, peer) = (comm.rank(), 1 - comm.rank());
        let length = pieces * PIECE;
        let send: Vec<u8> = (0..length).map(|at| pattern(me, peer, at)).collect();
        let received = RefCell::new(vec![0u8; length]);
        let copied = RefCell::new(vec![0u8; length]);
        let (send, received, copied) = (&send, &received, &copied);
        let case = format!("{pieces} x 1 MiB each way");
        let batch = (64 / pieces).max(4) as u32;
        let exchanger = Contestant {
            line: line(comm, "outcore", case.clone(), "exchange", 2 * length),
            prepare: Box::new(move || {
                received.borrow_mut().fill(0);
                Ok(())
            }),
            work: Box::new(move || {
                let mut into = received.borrow_mut();
                let mut exchange = Exchange::new();
                send.chunks(PIECE)
                    .for_each(|piece| exchange.send(peer, piece));
                into.chunks_mut(PIECE)
                    .for_each(|piece| exchange.receive(peer, piece));
                Ok(comm.exchange(&mut exchange)?)
            }),
            check: Box::new(move || {
                let received = received.borrow();
                (0..length).all(|at| received[at] == pattern(peer, me, at))
            }),
            batch,
        };
        let copier = Contestant {
            line: line(comm, "memcpy", case, "2 threads", 2 * length),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                let mut into = copied.borrow_mut();
                into.chunks_mut(PIECE)
                    .zip(send.chunks(PIECE))
                    .for_each(|(to, from)| {
                        std::hint::black_box(to).copy_from_slice(std::hint::black_box(from));
                    });
                Ok(())
            }),
            check: Box::new(move || *copied.borrow() == *send),
            batch,
        };
        contest(comm, vec![exchanger, copier], repeats)
    });
    Ok(lines?.swap_remove(0))
}

/// 8 bytes between each pair of 16 ranks.
pub(crate) fn small(repeats: usize) -> Result<Vec<Line>> {
    let lines = outcore::run(16, |comm| {
        let (me, size) = (comm.rank(), comm.size());
        let send: Vec<u64> = (0..size).map(|to| (me * 1000 + to) as u64).collect();
        let received = RefCell::new(Vec::new());
        let (send, received) = (&send, &received);
        let caller = Contestant {
            line: Line {
                op: "all-to-all",
                ..line(
                    comm,
                    "outcore",
                    "8 B a pair".into(),
                    "exchange",
                    8 * size * size,
                )
            },
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                *received.borrow_mut() = comm.all_to_all(send)?;
                Ok(())
            }),
            check: Box::new(move || {
                let received = received.borrow();
                (0..size).all(|from| received[from] == (from * 1000 + me) as u64)
            }),
            batch: 300,
        };
        contest(comm, vec![caller], repeats)
    });
    Ok(lines?.swap_remove(0))
}

/// Every MPI process sends 1 MiB to every other, beside `MPI_Alltoallv` on
/// data that are packed already.
#[cfg(feature = "mpi")]
pub(crate) fn between_processes(comm: &Comm, repeats: usize) -> Result<Vec<Line>> {
    let (me, size) = (comm.rank(), comm.size());
    let version = outcore_transport_mpi::library_version();
    let library = if version.starts_with("Open MPI") {
        "openmpi"
    } else {
        "mpich"
    };
    let send: Vec<u8> = (0..size * PIECE)
        .map(|at| pattern(me, at / PIECE, at % PIECE))
        .collect();
    let (received, packed) = (
        RefCell::new(vec![0u8; size * PIECE]),
        RefCell::new(vec![0u8; size * PIECE]),
    );
    let (send, received, packed) = (&send, &received, &packed);
    let case = "1 MiB a pair";
    let as_expected = move |found: &[u8]| {
        (0..size * PIECE).all(|at| found[at] == pattern(at / PIECE, me, at % PIECE))
    };
    let exchanger = Contestant {
        line: line(
            comm,
            "outcore",
            case.into(),
            "exchange",
            size * size * PIECE,
        ),
        prepare: Box::new(move || {
            received.borrow_mut().fill(0);
            Ok(())
        }),
        work: Box::new(move || {
            let mut into = received.borrow_mut();
            let mut exchange = Exchange::new();
            send.chunks(PIECE)
                .enumerate()
                .for_each(|(peer, piece)| exchange.send(peer, piece));
            into.chunks_mut(PIECE)
                .enumerate()
                .for_each(|(peer, piece)| exchange.receive(peer, piece));
            Ok(comm.exchange(&mut exchange)?)
        }),
        check: Box::new(move || as_expected(&received.borrow())),
        batch: 4,
    };
    let counts = vec![PIECE; size];
    let yardstick = Contestant {
        line: line(
            comm,
            "MPI_Alltoallv",
            case.into(),
            "packed",
            size * size * PIECE,
        ),
        prepare: Box::new(move || {
            packed.borrow_mut().fill(0);
            Ok(())
        }),
        work: Box::new(move || {
            Ok(outcore_transport_mpi::all_to_all_v_packed(
                send,
                &counts,
                &mut packed.borrow_mut(),
                &counts,
            )?)
        }),
        check: Box::new(move || as_expected(&packed.borrow())),
        batch: 4,
    };
    let mut lines = contest(comm, vec![exchanger, yardstick], repeats)?;
    lines
        .iter_mut()
        .for_each(|line| line.transport = library.into());
    Ok(lines)
}

/// Never reached: without MPI a program that a launcher started has refused.
#[cfg(not(feature = "mpi"))]
pub(crate) fn between_processes(_: &Comm, _: usize) -> Result<Vec<Line>> {
    Ok(Vec::new())
}
