//! Local placement: one file a rank, with overlap areas. A global array is
//! taken apart, each rank computes the sum of every element's 3x3 neighbours
//! from its own file alone, and the result is put together again. It is the
//! same on any number of ranks, corners included.

use outcore::{
    Array, ArrayDescriptor, Boundary, Distribution, ElementType, Error, Fill, LocalArray,
    LocalPlacement, MemoryBudget,
};

const ROWS: u64 = 96;
const COLUMNS: u64 = 75;

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let path = std::env::temp_dir().join(format!("local-placement-{}", std::process::id()));
        let mut home = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut home)?;
        if comm.rank() == 0 {
            std::fs::create_dir(&home).expect("the directory can be made");
        }
        comm.barrier()?;
        let name = |array: &str| format!("{home}/{array}.oc");
        let budget = MemoryBudget::of(256 << 10);

        // The global array: element (i, j) is its number.
        let descriptor = ArrayDescriptor::new(&[ROWS, COLUMNS], ElementType::I64);
        let source = Array::create_all(comm, &name("source"), &descriptor)?;
        if comm.rank() == 0 {
            let mut bytes = vec![0; (ROWS * COLUMNS * 8) as usize];
            Fill::Index.generate(&source, &source.whole(), &mut bytes)?;
            source.write_bytes(&source.whole(), &bytes)?;
        }
        comm.barrier()?;

        // One file a rank, with an overlap area of one row and one column.
        let ranks = comm.size() as u64;
        let distribution = Distribution::parse("block,block", &[ROWS, COLUMNS], ranks, None)
            .expect("a valid distribution");
        let placement = LocalPlacement::new(distribution).overlap(&[(1, 1), (1, 1)]);
        let field = LocalArray::create_all(comm, &name("field"), &descriptor, &placement)?;
        let sums = LocalArray::create_all(comm, &name("sums"), &descriptor, &placement)?;
        field.load(comm, &source, &budget)?;
        field.exchange_overlap(comm, Boundary::Nearest)?;

        // The slab loop: fetch a slab with its overlap, compute, store.
        for slab in field.slabs(2, &budget.for_rank(comm))? {
            let fetched: Vec<i64> = field.part().read(&slab.with_overlap())?;
            let shape = slab.core().shape();
            let (height, width) = (shape[0] as usize, shape[1] as usize);
            let mut result = Vec::with_capacity(height * width);
            for i in 0..height {
                for j in 0..width {
                    let row = |di: usize| (i + di) * (width + 2) + j;
                    let three = |di| fetched[row(di)..row(di) + 3].iter().sum::<i64>();
                    result.push(three(0) + three(1) + three(2));
                }
            }
            sums.part().write(&slab.core(), &result)?;
        }

        // Put together again: one file, the same whatever the number of ranks.
        let target = Array::create_all(comm, &name("target"), &descriptor)?;
        sums.store(comm, &target, &budget)?;
        let found: Vec<i64> = target.read(&target.whole())?;
        let nearest = |at: u64, d: i64, extent: u64| (at as i64 + d).clamp(0, extent as i64 - 1);
        for (at, found) in found.iter().enumerate() {
            let (i, j) = (at as u64 / COLUMNS, at as u64 % COLUMNS);
            let mut sum = 0;
            for (di, dj) in (-1..=1).flat_map(|di| (-1..=1).map(move |dj| (di, dj))) {
                sum += nearest(i, di, ROWS) * COLUMNS as i64 + nearest(j, dj, COLUMNS);
            }
            assert_eq!(*found, sum, "element ({i}, {j})");
        }

        // The local files themselves are an array for any program.
        let whole = Array::open_all(comm, &name("sums"))?;
        assert_eq!(whole.read::<i64>(&whole.whole())?, found);

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{ranks} local files:\n{}", field.descriptor());
            std::fs::remove_dir_all(&home).expect("the arrays can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
