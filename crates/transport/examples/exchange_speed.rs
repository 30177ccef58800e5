//! How fast threads exchange: `exchange_speed [RANKS]`.
//!
//! Prints the bandwidth of an exchange of large pieces between two ranks, next
//! to that of two threads that copy as many bytes and do nothing else; and the
//! time of one all-to-all among RANKS ranks (16), for several lengths. Each
//! figure is the best of several batches, the slowest rank counting.

use std::hint::black_box;
use std::time::Instant;

use outcore_transport::{Comm, Error, Exchange, Op, threads};

const PIECE: usize = 1 << 20;
const BATCHES: usize = 9;

fn main() -> Result<(), Error> {
    let ranks = match std::env::args().nth(1).map(|text| text.parse()) {
        None => 16,
        Some(Ok(ranks)) => ranks,
        Some(Err(error)) => return Err(Error::Invalid(format!("RANKS: {error}"))),
    };
    let pairs = run(2, |comm| {
        let copy = seconds(comm, 100, copying(&vec![1; PIECE]))?;
        let swap = seconds(comm, 100, swapping(comm, &vec![1; PIECE]))?;
        Ok((copy, swap))
    })?;
    let (copy, swap) = pairs[0];
    let rate = |seconds: f64| 2.0 * PIECE as f64 / seconds / 1e9;
    println!(
        "copy of 1 MiB on each of 2 threads:    {:6.2} GB/s",
        rate(copy)
    );
    println!(
        "exchange of 1 MiB between 2 ranks:     {:6.2} GB/s, {:.2} of the copy",
        rate(swap),
        copy / swap
    );
    for (len, calls) in [
        (8, 1000),
        (64, 1000),
        (512, 500),
        (4096, 200),
        (32768, 40),
        (262_144, 6),
    ] {
        let times = run(ranks, |comm| {
            let mut receive = vec![0; len * ranks];
            let send = vec![1; len * ranks];
            seconds(comm, calls, || all_to_all(comm, &send, &mut receive, len))
        })?;
        println!(
            "all-to-all of {len:6} bytes, {ranks} ranks:  {:9.1} us a call",
            times[0] * 1e6
        );
    }
    Ok(())
}

/// Runs `f` on every rank; the first error if there is one.
fn run<T: Send>(
    ranks: usize,
    f: impl Fn(&Comm) -> Result<T, Error> + Sync,
) -> Result<Vec<T>, Error> {
    threads::run(ranks, f).into_iter().collect()
}

/// The best time of one call, over batches of so many.
fn seconds(
    comm: &Comm,
    calls: usize,
    mut call: impl FnMut() -> Result<(), Error>,
) -> Result<f64, Error> {
    let mut best = f64::INFINITY;
    for _ in 0..BATCHES {
        comm.barrier()?;
        let start = Instant::now();
        for _ in 0..calls {
            call()?;
        }
        let time = start.elapsed().as_secs_f64() / calls as f64;
        best = best.min(comm.all_reduce_one(time, Op::Max)?);
    }
    Ok(best)
}

fn copying(from: &[u8]) -> impl FnMut() -> Result<(), Error> {
    let mut into = vec![0; from.len()];
    move || {
        into.copy_from_slice(black_box(from));
        black_box(&mut into);
        Ok(())
    }
}

fn swapping(comm: &Comm, from: &[u8]) -> impl FnMut() -> Result<(), Error> {
    let mut into = vec![0; from.len()];
    let peer = 1 - comm.rank();
    move || {
        let mut exchange = Exchange::new();
        exchange.send(peer, from);
        exchange.receive(peer, &mut into);
        comm.exchange(&mut exchange)
    }
}

fn all_to_all(comm: &Comm, send: &[u8], receive: &mut [u8], len: usize) -> Result<(), Error> {
    let mut exchange = Exchange::with_capacity(comm.size(), comm.size());
    for (peer, piece) in send.chunks_exact(len).enumerate() {
        exchange.send(peer, piece);
    }
    for (peer, piece) in receive.chunks_exact_mut(len).enumerate() {
        exchange.receive(peer, piece);
    }
    comm.exchange(&mut exchange)
}
