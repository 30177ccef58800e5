//! An array on the disks of all ranks: any rank gets, puts and accumulates any section
//! at any time, while the ranks that hold the elements compute; blocks are prefetched,
//! kept in caches, and found again by the next program.
//!
//! With the argument `apart`, ranks of MPI share no memory, as if each had a node of its
//! own.

use outcore::{
    Array, ArrayDescriptor, Comm, DiskOptions, DiskResident, Disks, Distribution, ElementType,
    Error, MemoryBudget, NodeArray, Procedures, Section, Unwritten,
};

const SHAPE: [u64; 2] = [240, 200];

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    let ranks = outcore::default_ranks();
    outcore::run(ranks, |comm| {
        // The directory of rank 0 is the one that all use, as if it were many disks.
        let directory = format!("outcore-disk-resident-{}", std::process::id());
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

fn value(index: u64) -> f64 {
    (index * 7 % 1000) as f64
}

fn example(comm: &Comm, directory: &str) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let calls = Procedures::start(comm)?;
    let spread = Distribution::parse("cyclic(30),*", &SHAPE, ranks, None).expect("it fits");
    let disks = Disks::pattern(format!("{directory}/{{rank}}"));
    let options = DiskOptions::new(disks)
        .block(&[30, 50])
        .cache(&MemoryBudget::of(1 << 20))
        .write_back(true)
        .unwritten(Unwritten::Error);
    let array = DiskResident::<f64>::create(comm, &calls, "field", spread, &options)?;

    // 1. Who reads what nobody has written is told; others go on.
    let corner = array.section("0:3, 0:3")?;
    let error = array.read(&corner).expect_err("nobody has written it");
    assert!(error.to_string().contains("never been written"), "{error}");
    comm.barrier()?;

    // 2. Every rank puts rows wherever they are, without waiting for each.
    let mut underway = Vec::new();
    for row in (rank..SHAPE[0]).step_by(ranks as usize) {
        let values: Vec<f64> = (0..SHAPE[1]).map(|at| value(row * SHAPE[1] + at)).collect();
        underway.push(array.start_put(&array.section(&format!("{row}, :"))?, &values)?);
    }
    underway.into_iter().try_for_each(|put| put.wait())?;
    comm.barrier()?;

    // 3. Every rank adds to the same strided section.
    let strided = array.section("5:240:10, ::25")?;
    let ones = vec![1.0; strided.count() as usize];
    array.accumulate(&strided, &ones, 0.5)?;
    comm.barrier()?;
    let all: Vec<f64> = (0..SHAPE[0] * SHAPE[1])
        .map(|at| {
            let (row, column) = (at / SHAPE[1], at % SHAPE[1]);
            let added = row % 10 == 5 && column % 25 == 0;
            value(at) + if added { 0.5 * ranks as f64 } else { 0.0 }
        })
        .collect();

    // 4. Blocks are prefetched and got while the rank does something else.
    let next = array.section("90:150, 20:120")?;
    array.prefetch(&next)?;
    let get = array.start_get(&next)?;
    let busy: f64 = (0..1000).map(f64::from).sum();
    assert_eq!(busy, 499_500.0);
    let found = get.wait()?;
    assert_eq!(found[0], all[90 * 200 + 20]);

    // 5. In a read-only epoch a rank keeps the blocks of others.
    array.begin_epoch(comm, &MemoryBudget::of(1 << 20))?;
    let whole = Section::whole(&SHAPE).expect("it fits");
    for _ in 0..3 {
        assert!(array.read(&whole)? == all);
    }
    let counts = array.end_epoch(comm)?;
    assert!(counts.misses <= 32 && counts.hits >= 2 * counts.misses);

    // 6. One copy a node, filled from the disks.
    let node = NodeArray::<f64>::new(comm, &SHAPE, &[60, 100])?;
    assert_eq!(node.fill(&array)?[777], all[777]);

    // 7. All together write it to an ordinary file.
    let file = ArrayDescriptor::new(&SHAPE, ElementType::F64);
    let file = Array::create_all(comm, &format!("{directory}/all.oc"), &file)?;
    array.store(comm, &file)?;
    assert!(file.read::<f64>(&whole)? == all);

    // 8. The next program finds it; each part is an ordinary array.
    array.sync_all(comm)?;
    array.close(comm)?;
    let again = DiskResident::<f64>::open(comm, &calls, "field", &options)?;
    assert!(again.read(&next)? == found);
    for (part, held) in again.parts() {
        let name = format!("{directory}/{}/field-{part}.oc", comm.rank());
        assert_eq!(Array::open(&name)?.shape(), held.shape());
    }
    again.remove(comm)?;
    calls.close()
}
