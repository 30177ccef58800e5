//! Smooths an array that is larger than the memory it may use: every rank
//! sweeps over its rows with one row of halo above and below, reads each of
//! them once and ahead of time, and writes the results behind; then smooths the
//! result once more in place.
//!
//! `OUTCORE_RANKS=4 cargo run --example sweep`, or built with
//! `--features mpi`: `mpirun -n 4 sweep`.

use outcore::{Array, ArrayDescriptor, Comm, ElementType, Error, MemoryBudget, Section, Sweep};
use outcore::{Tile, WriteBehind};

const ROWS: u64 = 320;
const COLUMNS: usize = 50;

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        // Rank 0's names are the ones that all use.
        let folder = std::env::temp_dir().join(format!("sweep-{}", std::process::id()));
        let mut folder = folder.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut folder)?;
        if comm.rank() == 0 {
            std::fs::create_dir_all(&folder).expect("a temporary directory");
        }
        comm.barrier()?;

        let descriptor = ArrayDescriptor::new(&[ROWS, COLUMNS as u64], ElementType::F64);
        let from = Array::create_all(comm, &format!("{folder}/from.oc"), &descriptor)?;
        let to = Array::create_all(comm, &format!("{folder}/to.oc"), &descriptor)?;
        let order = from.layout().slowest_first();
        let mine = &outcore::divide(&from.whole(), order, comm.size() as u64)[comm.rank()];
        let rows = mine.axes()[0].bounds();
        let values = (rows.0..rows.1).flat_map(|row| (0..COLUMNS).map(move |_| (row * row) as f64));
        from.write(mine, &values.collect::<Vec<f64>>())?;
        comm.barrier()?;

        // Less than a tenth of this rank's part is ever in memory.
        let budget = MemoryBudget::of(24 << 10);
        smooth(&from, &to, mine, &budget)?;
        comm.barrier()?;
        let found: Vec<f64> = to.read(mine)?;
        for (at, value) in found.iter().enumerate() {
            assert_eq!(
                *value,
                smoothed(rows.0 + (at / COLUMNS) as u64, |row| (row * row) as f64)
            );
        }

        // In place: the halo of the next slab holds old values, but only one
        // rank may do that, as its neighbours' rows change meanwhile.
        comm.barrier()?;
        if comm.rank() == 0 {
            smooth(&to, &to, &to.whole(), &budget)?;
            let once = |row| smoothed(row, |row| (row * row) as f64);
            let found: Vec<f64> = to.read(&to.section(":, 7")?)?;
            assert!(
                (0..ROWS)
                    .zip(found)
                    .all(|(row, value)| value == smoothed(row, once))
            );
        }

        // The explicit form: start to read, do something else, wait.
        comm.barrier()?;
        let column = to.section(":, 0")?;
        let early = to.prefetch::<f64>(&column, &budget)?;
        let sum: f64 = to.read::<f64>(&to.section(":, 1")?)?.iter().sum();
        assert_eq!(early.wait()?.iter().sum::<f64>(), sum);

        clean_up(comm, &folder)
    })?;
    Ok(())
}

/// Writes the means of three rows of `from` to `to`, which may be the same.
fn smooth(from: &Array, to: &Array, rows: &Section, budget: &MemoryBudget) -> Result<(), Error> {
    let mut writer = WriteBehind::<f64>::start(to, 1, &budget.share(2))?;
    let sweep = Sweep::<f64>::of(from)
        .over(rows.clone())
        .halo(&[(1, 1), (0, 0)])
        .ahead(1)
        .budget(&budget.share(2))
        .thickness(Some(4))
        .start::<f64>()?;
    for tile in sweep {
        let tile: Tile<f64> = tile?;
        let first = tile.section().axes()[0].bounds().0;
        let at = |row: u64| tile.values()[(row - first) as usize * COLUMNS];
        let mut result = writer.buffer(tile.core().count() as usize)?;
        let core = tile.core().axes()[0].bounds();
        for (line, row) in result.chunks_exact_mut(COLUMNS).zip(core.0..core.1) {
            line.fill(smoothed(row, at));
        }
        writer.write(tile.core(), result)?;
    }
    writer.finish()
}

/// The mean of a row and its neighbours; at the edges, of itself.
fn smoothed(row: u64, at: impl Fn(u64) -> f64) -> f64 {
    (at(row.saturating_sub(1)) + at(row) + at((row + 1).min(ROWS - 1))) / 3.0
}

fn clean_up(comm: &Comm, folder: &str) -> Result<(), Error> {
    comm.barrier()?;
    if comm.rank() == 0 {
        println!("{} ranks swept over {ROWS} rows in {folder}", comm.size());
        std::fs::remove_dir_all(folder).expect("the arrays can be removed");
    }
    Ok(())
}
