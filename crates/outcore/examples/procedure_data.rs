//! Procedure calls that carry headers and data of many sizes both ways, many of
//! them under way at once, with every byte checked.
//!
//! `OUTCORE_RANKS=4 cargo run --example procedure_data`, or built with
//! `--features mpi`: `mpirun -n 4 procedure_data`, and with `--apart` as if each
//! rank had a node of its own.

use outcore::{Error, Procedures};

/// Bytes that both sides can compute.
fn bytes(from: usize, to: usize, len: usize) -> Vec<u8> {
    let byte = |at: usize| (at * 7 + at / 251 + from * 31 + to * 17) as u8;
    (0..len).map(byte).collect()
}

fn turned(data: &[u8]) -> Vec<u8> {
    data.iter().map(|byte| !byte).collect()
}

const SIZES: [usize; 8] = [0, 1, 1000, 4032, 4033, 9000, 300_000, 2_000_000];

fn main() -> Result<(), Error> {
    let apart = std::env::args().any(|argument| argument == "--apart");
    #[cfg(feature = "mpi")]
    outcore_transport_mpi::set_node_memory(!apart);
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, size) = (comm.rank(), comm.size());
        let procedures = Procedures::start(comm)?;
        let turn = procedures.register("turn", |request, response| {
            response.header = turned(request.header());
            response.write(0, &turned(request.data()?))
        })?;
        // 1. One after the other, in the caller's memory.
        for (round, len) in SIZES.into_iter().enumerate() {
            let to = (rank + round) % size;
            let header = bytes(rank, to, SIZES[(round * 3 + 1) % 7]);
            let data = bytes(to, rank, len);
            let mut room = vec![0; len + 1];
            let reply = procedures.call(to, turn, &header, &data, &mut room)?;
            assert!(
                reply.header == turned(&header),
                "the header of call {round}"
            );
            assert_eq!(reply.len, len);
            assert!(room[..len] == turned(&data), "the data of call {round}");
        }
        // 2. Many at once, more than there are slots.
        let len = |number: usize| (number * 7919) % 20_000;
        let mut calls = Vec::new();
        for number in 0..100 {
            let to = (rank + number) % size;
            let data = bytes(rank, number, len(number));
            let room = vec![0; data.len()];
            calls.push(procedures.start_call(to, turn, &[number as u8], data, room)?);
        }
        for (number, call) in calls.into_iter().enumerate() {
            let answer = call.wait()?;
            assert_eq!(answer.header, [!(number as u8)]);
            assert!(answer.data == turned(&bytes(rank, number, len(number))));
        }
        let how = if apart { "apart" } else { "together" };
        println!("rank {rank} of {size}, {how}: all came back turned");
        procedures.close()
    })?;
    Ok(())
}
