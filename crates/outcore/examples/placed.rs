//! One program text for arrays in memory that a node shares, in ordinary memory and on
//! disk: the program says how much memory it may use, and the runtime places.
//!
//! With the argument `apart`, ranks of MPI share no memory, as if each had a node of its
//! own.

use outcore::{Comm, Disks, Distribution, Error, MemoryLevels, Place, Placed, Procedures};

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    let ranks = outcore::default_ranks();
    outcore::run(ranks, |comm| {
        let directory = format!("outcore-placed-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let mut directory = directory.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut directory)?;
        let outcome = example(comm, &directory);
        comm.barrier()?;
        if comm.rank() == 0 {
            std::fs::remove_dir_all(&directory).expect("it can be removed");
        }
        outcome
    })?;
    Ok(())
}

fn example(comm: &Comm, directory: &str) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let calls = Procedures::start(comm)?;
    let shape = [300, 100];
    let spread = || Distribution::parse("block,*", &shape, ranks, None).expect("it fits");
    // Room for the part of one array in node memory, and for one in own memory.
    let part = spread().local_count(0) * 8;
    let disks = Disks::pattern(format!("{directory}/{{rank}}"));
    let levels = MemoryLevels::new(part, disks).own(part);

    let mut arrays = Vec::new();
    for name in ["first", "second", "third"] {
        arrays.push(Placed::<f64>::new(comm, &calls, name, spread(), &levels)?);
    }
    let places: Vec<Place> = arrays.iter().map(Placed::place).collect();
    assert_eq!(places, [Place::NodeMemory, Place::OwnMemory, Place::Disk]);
    assert!(arrays[2].why().contains("so it is on disk"));

    // The same calls on all of them.
    for array in &arrays {
        let mine = array.section(&format!("{rank}:300:{ranks}, :"))?;
        array.put(&mine, &vec![rank as f64; mine.count() as usize])?;
        array.sync(comm)?;
        let some = array.section("10:290:7, 3:97:2")?;
        array.accumulate(&some, &vec![1.0; some.count() as usize], 0.25)?;
        array.sync(comm)?;
        let rows = (10..290).step_by(7);
        let expected: Vec<f64> = rows
            .flat_map(|row| [(row % ranks) as f64 + 0.25 * ranks as f64; 47])
            .collect();
        assert!(array.read(&some)? == expected);
        array.sync(comm)?;
    }
    for array in arrays {
        array.close(comm)?;
    }
    // What was given back has room again.
    let fourth = Placed::<f64>::new(comm, &calls, "fourth", spread(), &levels)?;
    assert_eq!(fourth.place(), Place::NodeMemory, "{}", fourth.why());
    fourth.close(comm)?;
    calls.close()
}
