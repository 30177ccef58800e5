//! A file of bytes striped over the disks of all ranks: opened by all, read and
//! written anywhere by anyone; and an array that lies in it.
//!
//! With the argument `apart`, ranks of MPI share no memory, as if each had a node of its
//! own.

use outcore::{
    Array, ArrayDescriptor, Comm, DiskOptions, Disks, ElementType, Error, Procedures, SharedFile,
};

fn main() -> Result<(), Error> {
    #[cfg(feature = "mpi")]
    if std::env::args().any(|argument| argument == "apart") {
        outcore_transport_mpi::set_node_memory(false);
    }
    let ranks = outcore::default_ranks();
    outcore::run(ranks, |comm| {
        let directory = format!("outcore-shared-file-{}", std::process::id());
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
    let (rank, ranks) = (comm.rank(), comm.size());
    let calls = Procedures::start(comm)?;
    let options = DiskOptions::new(Disks::pattern(format!("{directory}/{{rank}}")));
    let file = SharedFile::create(comm, &calls, "records", 1 << 12, &options)?;

    // 1. Records of 1000 bytes, dealt to the ranks: they lie across stripes.
    let records = 64;
    for record in (rank..records).step_by(ranks) {
        file.write_at(1000 * record as u64, &[record as u8; 1000])?;
    }
    comm.barrier()?;
    assert_eq!(file.len()?, 64_000);
    let mut all = vec![0; 64_000];
    file.read_at(0, &mut all)?;
    assert!(
        all.chunks(1000)
            .enumerate()
            .all(|(at, record)| record == [at as u8; 1000])
    );
    assert!(file.read_at(63_999, &mut [0; 2]).is_err());
    comm.barrier()?;

    // 2. The next program finds it.
    file.sync()?;
    file.close(comm)?;
    let file = SharedFile::open(comm, &calls, "records", &options)?;
    let mut some = [0; 4];
    file.read_at(8_998, &mut some)?;
    assert_eq!(some, [8, 8, 9, 9]);
    file.remove(comm)?;

    // 3. An array in a shared file.
    let file = SharedFile::create(comm, &calls, "array", 1 << 12, &options)?;
    if rank == 0 {
        file.set_len(100 * 80 * 8)?;
    }
    comm.barrier()?;
    let descriptor = ArrayDescriptor::new(&[100, 80], ElementType::F64);
    let array = Array::in_store("array in a shared file", &descriptor, file.as_store())?;
    let rows = array.section(&format!("{rank}:100:{ranks}, :"))?;
    array.write(&rows, &vec![rank as f64; rows.count() as usize])?;
    comm.barrier()?;
    let column: Vec<f64> = array.read(&array.section(":, 33")?)?;
    assert!(
        column
            .iter()
            .enumerate()
            .all(|(row, value)| *value == (row % ranks) as f64)
    );
    comm.barrier()?;
    file.remove(comm)?;
    calls.close()
}
