//! Multicast of out-of-core data: the pivot row of one rank's file goes into
//! the files of all others, as in an elimination.

use outcore::{ArrayDescriptor, Distribution, ElementType, Error, LocalArray, LocalPlacement};

const N: u64 = 48;

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let path = std::env::temp_dir().join(format!("multicast-{}.oc", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;

        // Blocks of rows; each file has one spare row, for the pivot.
        let ranks = comm.size() as u64;
        let shape = [N, N];
        let distribution =
            Distribution::parse("block,*", &shape, ranks, None).expect("a valid distribution");
        let placement = LocalPlacement::new(distribution).overlap(&[(1, 0), (0, 0)]);
        let descriptor = ArrayDescriptor::new(&shape, ElementType::F32);
        let array = LocalArray::create_all(comm, &name, &descriptor, &placement)?;
        let mine = array.owned_globally().axes()[0].bounds();
        let rows: Vec<f32> = (mine.0..mine.1)
            .flat_map(|i| (0..N).map(move |j| (N * i + j) as f32))
            .collect();
        array.part().write(&array.owned(), &rows)?;
        let everybody: Vec<usize> = (0..comm.size()).collect();

        for pivot in [0, N / 2, N - 1] {
            let owner = array.distribution().owner(&[pivot, 0]).expect("inside") as usize;
            // Only its owner looks at where the pivot stands.
            let row = array.to_part(&[pivot, 0]).map_or(0, |at| at[0]);
            let part = array.part();
            let spare = part.section("0:1, :")?;
            let from = part.section(&format!("{row}:{}, :", row + 1))?;
            array.multicast(comm, owner, &from, &everybody, &spare)?;
            let found: Vec<f32> = part.read(&spare)?;
            assert!((0..N).all(|j| found[j as usize] == (N * pivot + j) as f32));
            // What each rank owns is as it was.
            assert_eq!(part.read::<f32>(&array.owned())?, rows);
        }

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{ranks} ranks received three pivot rows in their files");
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
