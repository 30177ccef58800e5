//! Who sees what when a procedure fails, when it panics, and when a rank has
//! ended: the caller gets an error that names the rank and the procedure, and
//! everybody goes on.
//!
//! `OUTCORE_RANKS=4 cargo run --example procedure_failures`, or built with
//! `--features mpi`: `mpirun -n 4 procedure_failures`.

use outcore::{Error, ProcedureFault, Procedures};

fn main() -> Result<(), Error> {
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

        // 3. The last rank ends early. Who calls it is told, and does not hang.
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

        // 4. The others go on, and none leaves before all have done.
        let next = (others.rank() + 1) % others.size();
        assert_eq!(call(next, &[8, 2])?.header, [4]);
        others.barrier()?;
        Ok::<(), Error>(())
    })?;
    Ok(())
}
