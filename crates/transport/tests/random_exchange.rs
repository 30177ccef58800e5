//! Random exchanges, cut at random, against what each rank must get.

use outcore_transport::{Error, Exchange, threads};
use proptest::prelude::*;

/// The bytes that go from one rank to another, and where each side cuts them.
#[derive(Debug, Clone)]
struct Transfer {
    bytes: Vec<u8>,
    send_cuts: Vec<usize>,
    receive_cuts: Vec<usize>,
}

fn transfers() -> impl Strategy<Value = (usize, Vec<Transfer>)> {
    let length = prop_oneof![
        3 => Just(0),
        3 => 1..64_usize,
        2 => 64..3000_usize,
        1 => 3000..20_000_usize,
    ];
    let transfer = length.prop_flat_map(|length| {
        let cuts = || prop::collection::vec(0..=length, 0..6);
        let bytes = prop::collection::vec(any::<u8>(), length);
        (bytes, cuts(), cuts()).prop_map(|(bytes, mut send_cuts, mut receive_cuts)| {
            send_cuts.sort_unstable();
            receive_cuts.sort_unstable();
            Transfer {
                bytes,
                send_cuts,
                receive_cuts,
            }
        })
    });
    (1..8_usize).prop_flat_map(move |ranks| {
        let all = prop::collection::vec(transfer.clone(), ranks * ranks);
        (Just(ranks), all)
    })
}

proptest! {
    #[test]
    fn everybody_gets_what_was_sent((ranks, transfers) in transfers()) {
        let between = |from: usize, to: usize| &transfers[from * ranks + to];
        let outcomes = threads::run(ranks, |comm| {
            let rank = comm.rank();
            // Twice, as memory is kept from one call to the next.
            for _ in 0..2 {
                let mut buffers: Vec<Vec<u8>> = (0..ranks)
                    .map(|from| vec![0; between(from, rank).bytes.len()])
                    .collect();
                let mut exchange = Exchange::new();
                for (from, buffer) in buffers.iter_mut().enumerate() {
                    let (mut rest, mut start) = (buffer.as_mut_slice(), 0);
                    for &cut in &between(from, rank).receive_cuts {
                        let (piece, later) = rest.split_at_mut(cut - start);
                        exchange.receive(from, piece);
                        (rest, start) = (later, cut);
                    }
                    exchange.receive(from, rest);
                }
                for to in (0..ranks).rev() {
                    let transfer = between(rank, to);
                    let mut start = 0;
                    for &cut in transfer.send_cuts.iter().chain([&transfer.bytes.len()]) {
                        exchange.send(to, &transfer.bytes[start..cut]);
                        start = cut;
                    }
                }
                comm.exchange(&mut exchange)?;
                for (from, buffer) in buffers.iter().enumerate() {
                    if *buffer != between(from, rank).bytes {
                        return Err(Error::Invalid(format!("rank {rank}: wrong from rank {from}")));
                    }
                }
            }
            Ok(())
        });
        prop_assert_eq!(outcomes, vec![Ok(()); ranks]);
    }
}
