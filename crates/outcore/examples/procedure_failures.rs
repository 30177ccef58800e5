//! Who sees what when a procedure fails, when it panics, when it takes longer than its
//! caller has patience, and when a rank has ended: the caller gets an error that names
//! the rank and the procedure, and everybody goes on.
//!
//! `OUTCORE_RANKS=4 cargo run --example procedure_failures`, or built with
//! `--features mpi`: `mpirun -n 4 procedure_failures`. With the argument `apart`, ranks
//! of MPI share no memory, as if each had a node of its own.

use std::thread;
use std::time::Duration;

use outcore::{Comm, Error, ProcedureFault, Procedures, ServerOptions};

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, last) = (comm.rank(), comm.size() - 1);
        let procedures = Procedures::start(comm)?;
        let divide = procedures.register("divide", |request, response| {
            let &[dividend, divisor] = request.header() else {
                return Err(Error::Invalid("two numbers are divided".into()));
            };
            // By zero: a panic, in the middle of the server of that rank.
            response.header = vec![dividend / divisor];
            Ok(())
        })?;
        let call = |rank: usize, header: &[u8]| procedures.call(rank, divide, header, &[], &mut []);
        let fault = |outcome: Result<outcore::Reply, Error>| match outcome {
            Err(Error::Procedure { rank, fault, .. }) => (rank, fault),
            other => panic!("no fault of a procedure: {other:?}"),
        };

        // 1. An error of a procedure is its caller's, by name.
        let error = call(last, &[1]).expect_err("one number is too few");
        let expected = format!("procedure divide on rank {last}: two numbers are divided");
        assert_eq!(error.to_string(), expected);

        // 2. A panic of a procedure, too: rank 0 sees it, others do not.
        if rank == 0 {
            let (at, panicked) = fault(call(last, &[7, 0]));
            assert_eq!(at, last);
            assert!(
                matches!(&panicked, ProcedureFault::Panicked(_)),
                "{panicked}"
            );
            println!("rank 0 was told by rank {last}: {panicked}");
        }
        // The server that panicked serves on.
        assert_eq!(call(last, &[42, 6])?.header, [7]);

        // 3. A procedure that takes too long.
        silence(comm)?;

        // 4. The last rank ends early. Who calls it is told, and does not hang.
        let others = comm.split((rank < last || last == 0).then_some(0), 0)?;
        comm.barrier()?;
        let Some(others) = others else {
            println!("rank {rank} ends early");
            return Ok(());
        };
        if last > 0 {
            // It may still serve a few.
            let (at, finished) = loop {
                let outcome = call(last, &[9, 3]);
                if outcome.is_err() {
                    break fault(outcome);
                }
            };
            assert_eq!((at, &finished), (last, &ProcedureFault::Finished));
            println!("rank {rank} was told by nobody: {finished}");
        }

        // 5. The others go on, and none leaves before all have done.
        let next = (others.rank() + 1) % others.size();
        assert_eq!(call(next, &[8, 2])?.header, [4]);
        others.barrier()?;
        Ok::<(), Error>(())
    })?;
    Ok(())
}

/// The last rank is busy for longer than rank 0 has patience; others answer meanwhile,
/// and it does so later.
fn silence(comm: &Comm) -> Result<(), Error> {
    let patience = Duration::from_millis(50);
    let options = ServerOptions {
        patience: Some(patience).filter(|_| comm.rank() == 0),
        ..ServerOptions::default()
    };
    let procedures = Procedures::start_with(comm, options)?;
    let last = comm.size() - 1;
    let pause = procedures.register("pause", |request, response| {
        let millis = request.header().first().copied().unwrap_or(0);
        thread::sleep(Duration::from_millis(u64::from(millis)));
        response.write(0, request.data()?)
    })?;
    let mut room = [0; 3];
    if comm.rank() == 0 && last > 0 {
        let outcome = procedures.call(last, pause, &[250], &[1, 2, 3], &mut room);
        let error = outcome.expect_err("it takes five times as long");
        let expected = format!("procedure pause on rank {last}: no answer for 50ms");
        assert_eq!((error.to_string(), room), (expected, [0; 3]));
        println!("rank 0 has lost patience: {error}");
    }
    // The others wait for as long as it takes.
    let target = if comm.rank() == 0 { 0 } else { last };
    let reply = procedures.call(target, pause, &[], &[4, 5, 6], &mut room)?;
    assert_eq!((reply.len, room), (3, [4, 5, 6]));
    procedures.close()
}
