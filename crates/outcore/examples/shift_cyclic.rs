//! A shift along CYCLIC(m) axes: every block of every rank's file has overlap
//! areas of its own, which get the neighbouring blocks' planes. The axes are
//! rings, so the planes of the last block come before the first.

use outcore::{
    ArrayDescriptor, Boundary, Distribution, ElementType, Error, LocalArray, LocalPlacement,
};

const SHAPE: [u64; 2] = [60, 32];

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let path = std::env::temp_dir().join(format!("shift-cyclic-{}.oc", std::process::id()));
        let mut name = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut name)?;

        // Rows in blocks of 3, columns in blocks of 4; two rows and one column
        // of overlap round each block; column-major files.
        let ranks = comm.size() as u64;
        let distribution = Distribution::parse("cyclic(3),cyclic(4)", &SHAPE, ranks, None)
            .expect("a valid distribution");
        let placement = LocalPlacement::new(distribution).overlap(&[(2, 2), (1, 1)]);
        let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::F64)
            .layout("column".parse().expect("a layout"));
        let array = LocalArray::create_all(comm, &name, &descriptor, &placement)?;

        // Element (i, j) becomes 1000 i + j, block by block.
        let value = |i: u64, j: u64| (1000 * i + j) as f64;
        for block in array.blocks() {
            let ((top, bottom), (left, right)) = (
                block.global.axes()[0].bounds(),
                block.global.axes()[1].bounds(),
            );
            let columns = left..right;
            let values: Vec<f64> = columns
                .flat_map(|j| (top..bottom).map(move |i| value(i, j)))
                .collect();
            array.part().write(&block.part, &values)?;
        }

        // Rows first, then columns: so corners arrive, too.
        array.shift(comm, 0, 2, Boundary::Circular)?;
        array.shift(comm, 1, 1, Boundary::Circular)?;

        let mut rims = 0;
        for block in array.blocks() {
            let bounds = |axis: usize| {
                (
                    block.part.axes()[axis].bounds(),
                    block.global.axes()[axis].bounds().0,
                )
            };
            let (((top, bottom), first_row), ((left, right), first_column)) =
                (bounds(0), bounds(1));
            let around = array.part().section(&format!(
                "{}:{}, {}:{}",
                top - 2,
                bottom + 2,
                left - 1,
                right + 1
            ))?;
            let found: Vec<f64> = array.part().read(&around)?;
            let height = bottom - top + 4;
            for (at, found) in found.iter().enumerate() {
                let (di, dj) = (at as u64 % height, at as u64 / height);
                let i = (first_row + di + SHAPE[0] - 2) % SHAPE[0];
                let j = (first_column + dj + SHAPE[1] - 1) % SHAPE[1];
                assert_eq!(*found, value(i, j), "({i}, {j})");
            }
            rims += 1;
        }

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{ranks} ranks; rank 0 has {rims} blocks, each with its neighbours' planes");
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
