//! Every rank writes every Nth row of one array, then reads every Nth column
//! of it, most of which other ranks have written.
//!
//! `OUTCORE_RANKS=4 cargo run --example interleaved`, or built with
//! `--features mpi`: `mpirun -n 4 interleaved`.

use outcore::{Array, ArrayDescriptor, ElementType, Error, Pattern};

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        // Rank 0's name is the one that all use.
        let path = std::env::temp_dir().join(format!("interleaved-{}.oc", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;

        let descriptor = ArrayDescriptor::new(&[120, 90], ElementType::F64);
        let array = Array::create_all(comm, &name, &descriptor)?;
        let section = |pattern: &str| {
            let pattern: Pattern = pattern.parse().expect("a valid pattern");
            pattern
                .section(array.shape(), rank, ranks)
                .expect("inside the array")
        };

        // Element (i, j) becomes 1000 i + j.
        let rows = section("p::N, :");
        let mut values = Vec::new();
        for i in (rank..120).step_by(comm.size()) {
            values.extend((0..90).map(|j| (1000 * i + j) as f64));
        }
        array.write(&rows, &values)?;
        comm.barrier()?;

        let columns = section(":, p::N");
        let found: Vec<f64> = array.read(&columns)?;
        let width = columns.shape()[1];
        for (at, value) in found.iter().enumerate() {
            let (i, j) = (at as u64 / width, rank + at as u64 % width * ranks);
            assert_eq!(*value, (1000 * i + j) as f64);
        }

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{ranks} ranks wrote rows and read columns of {name}");
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
