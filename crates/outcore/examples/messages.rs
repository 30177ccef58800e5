//! Messages between ranks: an exchange of memory pieces, collectives, groups.

use outcore::{Error, Exchange, Op};

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let (me, size) = (comm.rank(), comm.size());

        // Everybody sends a different number of bytes to everybody, straight
        // out of one buffer and into another.
        let length = |from: usize, to: usize| 1 + from + 2 * to;
        let outgoing: Vec<Vec<u8>> = (0..size)
            .map(|to| vec![(10 * me + to) as u8; length(me, to)])
            .collect();
        let mut incoming: Vec<Vec<u8>> = (0..size).map(|from| vec![0; length(from, me)]).collect();
        let mut exchange = Exchange::new();
        for (peer, piece) in outgoing.iter().enumerate() {
            exchange.send(peer, piece);
        }
        for (peer, piece) in incoming.iter_mut().enumerate() {
            exchange.receive(peer, piece);
        }
        comm.exchange(&mut exchange)?;
        for (from, piece) in incoming.iter().enumerate() {
            assert!(piece.iter().all(|byte| *byte == (10 * from + me) as u8));
        }

        // A message to the right neighbour, and sums over all ranks.
        let (right, left) = ((me + 1) % size, (me + size - 1) % size);
        comm.send(right, 7, &[me as u64])?;
        let mut neighbour = [0u64];
        comm.receive(left, 7, &mut neighbour)?;
        assert_eq!(neighbour, [left as u64]);
        let total = comm.all_reduce(&[me as u64, 1], Op::Sum)?;
        assert_eq!(total, [(size * (size - 1) / 2) as u64, size as u64]);
        assert_eq!(comm.scan(&[1u64], Op::Sum)?, [me as u64 + 1]);

        // Even and odd ranks form groups of their own.
        let group = comm
            .split(Some(me as u64 % 2), 0)?
            .expect("every rank has a colour");
        assert_eq!(group.rank(), me / 2);
        let members = group.all_gather(&[me as u64])?;
        assert!(members.iter().all(|member| member % 2 == me as u64 % 2));

        if me == 0 {
            println!("{size} ranks exchanged messages");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
