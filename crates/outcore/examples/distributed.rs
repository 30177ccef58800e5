//! An array distributed over the ranks as in High Performance Fortran: each
//! rank writes what it owns under (CYCLIC(3), BLOCK).

use outcore::{Array, ArrayDescriptor, Distribution, ElementType, Error, Op};

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let me = comm.rank() as u64;
        let path = std::env::temp_dir().join(format!("distributed-{}.oc", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;

        let shape = [50, 34];
        let array =
            Array::create_all(comm, &name, &ArrayDescriptor::new(&shape, ElementType::I64))?;
        let distribution =
            Distribution::parse("cyclic(3), block", &shape, comm.size() as u64, None)
                .expect("a valid distribution");

        // A rank's part of the global array is a short list of sections.
        for section in distribution.local_sections(me) {
            array.write(&section, &vec![me as i64; section.count() as usize])?;
        }
        comm.barrier()?;

        // Everybody finds every element with the rank that owns it.
        let owners: Vec<i64> = array.read(&array.whole())?;
        for (at, owner) in owners.iter().enumerate() {
            let index = [at as u64 / shape[1], at as u64 % shape[1]];
            assert_eq!(distribution.owner(&index), Some(*owner as u64));
        }
        let all = comm.all_reduce(&[distribution.local_count(me)], Op::Sum)?;
        assert_eq!(all, [shape[0] * shape[1]]);

        comm.barrier()?;
        if comm.rank() == 0 {
            println!(
                "{} ranks on a grid of {:?}",
                comm.size(),
                distribution.grid()
            );
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
