//! How fast an exchange of 1 MiB pieces is, against plain `MPI_Alltoallv` of
//! the same bytes: `mpirun -n 4 exchange_speed [BYTES [ROUNDS]]`.
//!
//! The two alternate, and each time is that of the slowest rank; the best of
//! all rounds counts.

use std::time::Instant;

use outcore_transport::{Comm, Error, Exchange, Op, Result};
use outcore_transport_mpi::{all_to_all_v_packed, library_version, run};

fn main() -> Result<()> {
    let mut arguments = std::env::args().skip(1).map(|text| {
        let number = text.parse::<usize>();
        number.map_err(|error| Error::Invalid(format!("{text}: {error}")))
    });
    let piece = arguments.next().unwrap_or(Ok(1 << 20))?;
    let rounds = arguments.next().unwrap_or(Ok(25))?;
    run(|comm| measure(comm, piece, rounds))
}

fn measure(comm: &Comm, piece: usize, rounds: usize) -> Result<()> {
    let size = comm.size();
    let counts = vec![piece; size];
    let send = vec![comm.rank() as u8; size * piece];
    let mut receive = vec![0u8; size * piece];
    let (mut ours, mut plain) = (f64::INFINITY, f64::INFINITY);
    for _ in 0..rounds {
        ours = ours.min(slowest(comm, || {
            let mut exchange = Exchange::new();
            for (peer, piece) in send.chunks_exact(piece).enumerate() {
                exchange.send(peer, piece);
            }
            for (peer, piece) in receive.chunks_exact_mut(piece).enumerate() {
                exchange.receive(peer, piece);
            }
            comm.exchange(&mut exchange)
        })?);
        for (from, piece) in receive.chunks_exact_mut(piece).enumerate() {
            assert!(piece.iter().all(|byte| *byte == from as u8));
            piece.fill(0xff);
        }
        plain = plain.min(slowest(comm, || {
            all_to_all_v_packed(&send, &counts, &mut receive, &counts)
        })?);
        receive.fill(0xff);
    }
    if comm.rank() == 0 {
        println!(
            "{}, {size} ranks, pieces of {piece} bytes: exchange {:.3} ms, MPI_Alltoallv {:.3} ms, ratio {:.2}",
            library_version(),
            ours * 1e3,
            plain * 1e3,
            ours / plain
        );
    }
    Ok(())
}

/// The seconds that `f` takes on the slowest rank.
fn slowest(comm: &Comm, f: impl FnOnce() -> Result<()>) -> Result<f64> {
    comm.barrier()?;
    let start = Instant::now();
    f()?;
    comm.all_reduce_one(start.elapsed().as_secs_f64(), Op::Max)
}
