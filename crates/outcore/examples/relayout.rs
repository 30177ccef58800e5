//! A matrix is transposed from file to file, cut into tiles, and dealt out to one
//! file for each of three ranks and then of five, by all ranks together and with
//! little memory.

use outcore::{
    Array, ArrayDescriptor, Distribution, ElementType, Error, Fill, LocalPlacement, MemoryBudget,
    RelayoutJob, RelayoutOutput, default_ranks,
};

fn main() -> Result<(), Error> {
    let directory = std::env::temp_dir();
    outcore::run(default_ranks(), |comm| {
        let mut id = [u64::from(std::process::id())];
        comm.broadcast(0, &mut id)?;
        let name = |file: &str| {
            let file = format!("outcore-relayout-{}-{file}", id[0]);
            directory.join(file).to_string_lossy().to_string()
        };
        let shape = [700, 300];
        let descriptor = ArrayDescriptor::new(&shape, ElementType::F64);
        let matrix = Array::create_all(comm, &name("matrix.oc"), &descriptor)?;
        if comm.rank() == 0 {
            let mut bytes = vec![0; 700 * 300 * 8];
            Fill::Index.generate(&matrix, &matrix.whole(), &mut bytes)?;
            matrix.write_bytes(&matrix.whole(), &bytes)?;
        }
        comm.barrier()?;

        // Memory for a fraction of the matrix, which has 1.6 MiB.
        let budget = MemoryBudget::of((64 << 10) * comm.size() as u64);
        let mut made = Vec::new();
        let mut make =
            |source: &Array, axes: &[usize], file: &str, descriptor: &ArrayDescriptor| {
                let output = RelayoutOutput {
                    name: &name(file),
                    descriptor,
                    replace: false,
                    resume: false,
                };
                let array =
                    RelayoutJob::begin(comm, source, axes, &output, &budget)?.run(comm, &|_| ())?;
                made.push(name(file));
                Ok::<_, Error>(array)
            };
        let turned = descriptor.transposed(&[1, 0])?;
        let transposed = make(&matrix, &[1, 0], "turned.npy", &turned)?;
        let tiled = turned
            .clone()
            .layout("tiled:64x32".parse().expect("a layout"));
        let tiles = make(&transposed, &[0, 1], "tiles.oc", &tiled)?;
        let dealt = |text: &str, ranks| {
            let distribution = Distribution::parse(text, &shape, ranks, None).expect("it fits");
            descriptor.clone().placed(LocalPlacement::new(distribution))
        };
        let three = make(&tiles, &[1, 0], "three.oc", &dealt("block,*", 3))?;
        let five = make(&three, &[0, 1], "five.oc", &dealt("cyclic(7),*", 5))?;

        let column: Vec<f64> = transposed.read(&transposed.section("7, :")?)?;
        assert!(
            column
                .iter()
                .enumerate()
                .all(|(row, value)| *value == (row * 300 + 7) as f64)
        );
        let whole: Vec<f64> = five.read(&five.whole())?;
        assert!(
            whole
                .iter()
                .enumerate()
                .all(|(at, value)| *value == at as f64)
        );
        comm.barrier()?;
        if comm.rank() == 0 {
            made.push(name("matrix.oc"));
            for name in made {
                let _ = std::fs::remove_dir_all(&name).or_else(|_| std::fs::remove_file(&name));
            }
        }
        Ok::<(), Error>(())
    })?;
    println!("the same matrix in five files");
    Ok(())
}
