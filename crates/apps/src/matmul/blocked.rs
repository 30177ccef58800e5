//! The blocked form: each rank computes blocks of `C`, one after the other, from
//! panels of `A` and `B` that are read ahead.
//!
//! A block is kept in memory until it is complete, so every element of `C` is
//! written once. [`Blocking`] says how large blocks and panels are. Panels come
//! from sweeps: the next ones are read while the kernel works on the present
//! ones, and those of the next block while the last one is written. Ranks have
//! nothing to tell each other.

use std::ops::Range;

use outcore::{
    Array, AxisSection, Comm, Error, MemoryBudget, Op, Result, Section, Sweep, SweepOrder, Tile,
};

use super::blocking::{Blocking, Kept, STAGING, Situation};
use super::kernel::{Before, Matrix, multiply_add, scratch};
use super::number::Number;
use super::product::Product;
use crate::cores::threads_of_rank;
use crate::resources::Resources;

/// What memory is needed for.
const PURPOSE: &str = "the product of blocks";

/// Collective: multiplies.
pub(super) fn multiply<T: Number>(
    comm: &Comm,
    product: &Product<'_>,
    resources: &Resources<'_>,
) -> Result<()> {
    // 1. All ranks cut alike, whatever the memory of each.
    let limit = resources.budget.for_rank(comm).limit();
    let situation = Situation {
        extents: product.extents(),
        ranks: comm.size() as u64,
        threads: threads_of_rank(comm)?,
        limit: comm.all_reduce(&[limit], Op::Min)?[0],
        decoded: [product.a, product.b, product.c].map(Array::decoded_bytes),
        chunks: [product.a, product.b].map(whole_chunk),
    };
    let threads = comm.all_reduce(&[situation.threads as u64], Op::Max)?[0];
    let planned = Situation {
        threads: threads as usize,
        ..situation
    };
    let blocking = Blocking::choose::<T>(&planned);
    let budget = resources.enough(comm, PURPOSE, |_| blocking.need::<T>(&planned))?;
    // 2. Each rank its blocks.
    let blocks = Blocks {
        product,
        situation,
        blocking,
        rank: comm.rank() as u64,
        budget: &budget,
    };
    Ok(comm.agree(blocks.multiply::<T>(resources))?)
}

/// The rows and columns of a chunk that can be had only whole.
fn whole_chunk(array: &Array) -> (u64, u64) {
    match array.layout().tile() {
        Some([rows, columns]) if array.whole_chunk() > 0 => (*rows, *columns),
        _ => (1, 1),
    }
}

/// What one rank does.
struct Blocks<'a> {
    product: &'a Product<'a>,
    situation: Situation,
    blocking: Blocking,
    rank: u64,
    budget: &'a MemoryBudget,
}

/// The rows and columns of a block.
type Block = (Range<u64>, Range<u64>);

/// Panels that are being read: those of `A` and of `B`; none of what is kept.
type Coming<T> = (Option<Sweep<T>>, Option<Sweep<T>>);

impl Blocks<'_> {
    fn multiply<T: Number>(&self, resources: &Resources<'_>) -> Result<()> {
        let blocks = self.own();
        let (Some(first), [.., k]) = (blocks.first(), self.situation.extents) else {
            return Ok(());
        };
        // 1. Memory for the largest block, and for the kernel.
        let (h, w) = self.blocking.block(&self.situation);
        let size = size_of::<T>() as u64;
        let extents = [h, w, self.blocking.depth];
        let kernel = scratch::<T>(extents, self.situation.threads);
        let held = kernel + h * w * size + self.product.c.decoded_bytes();
        let _memory = self.budget.reserve(held, PURPOSE)?;
        let mut values = zeros::<T>((h * w) as usize)?;
        let c = within(self.product.c);
        let mut kept: (Option<Tile<T>>, Option<Tile<T>>) = (None, None);
        let mut coming = self.start::<T>(first, None)?;
        for (at, block) in blocks.iter().enumerate() {
            let shape = (length(&block.0), length(&block.1));
            let next = blocks.get(at + 1);
            let result = &mut values[..shape.0 * shape.1];
            let bytes = result.len() as u64 * size;
            if k == 0 {
                result.fill(T::zeroed());
                resources.tell(bytes);
            }
            // 2. Panel after panel; what comes next is asked for before it is
            //    needed, and where there is memory for it.
            let panels = self.blocking.panels(&self.situation);
            let mut started = None;
            let mut done = 0;
            for panel in 0..panels {
                kept = (renew(kept.0, &mut coming.0)?, renew(kept.1, &mut coming.1)?);
                if panels == 1 {
                    started = Some(self.start_next(block, next)?);
                }
                let (Some(a), Some(b)) = &kept else {
                    return Err(Error::Invalid("a panel is missing".into()));
                };
                let result = Matrix {
                    values: &mut *result,
                    shape,
                    by_rows: by_rows(self.product.c),
                };
                let before = match panel {
                    0 => Before::Replaced,
                    _ => Before::AddedTo,
                };
                let (left, right) = (matrix(self.product.a, a), matrix(self.product.b, b));
                multiply_add(result, left, right, before, self.situation.threads)?;
                let told = (u128::from(bytes) * u128::from(panel + 1) / u128::from(panels)) as u64;
                resources.tell(told - done);
                done = told;
                if panels > 1 {
                    kept = (None, None);
                }
            }
            // 3. The block is complete.
            coming = match started {
                Some(started) => started,
                None => {
                    // Their memory is free before that of the next is taken.
                    drop(coming);
                    self.start_next(block, next)?
                }
            };
            c.write(&section(&block.0, &block.1)?, result)?;
        }
        Ok(())
    }

    /// This rank's blocks that have elements, in an order in which a panel that
    /// is kept serves as many as possible.
    fn own(&self) -> Vec<Block> {
        let [m, n, _] = self.situation.extents;
        let ((down, across), own) = (self.blocking.cuts(), self.blocking.own);
        let place = (
            self.rank / self.blocking.grid.1,
            self.rank % self.blocking.grid.1,
        );
        let rows = (0..own.0).map(|i| piece(m, down, place.0 * own.0 + i));
        let columns = (0..own.1).map(|j| piece(n, across, place.1 * own.1 + j));
        let (rows, columns): (Vec<_>, Vec<_>) = (
            rows.filter(|rows| !rows.is_empty()).collect(),
            columns.filter(|columns| !columns.is_empty()).collect(),
        );
        let along = |row: &Range<u64>| -> Vec<Block> {
            let blocks = columns.iter().map(|column| (row.clone(), column.clone()));
            blocks.collect()
        };
        let down = |column: &Range<u64>| -> Vec<Block> {
            let blocks = rows.iter().map(|row| (row.clone(), column.clone()));
            blocks.collect()
        };
        match self.blocking.kept {
            Kept::B => columns.iter().flat_map(down).collect(),
            Kept::A | Kept::Neither => rows.iter().flat_map(along).collect(),
        }
    }

    fn start_next<T: Number>(&self, block: &Block, next: Option<&Block>) -> Result<Coming<T>> {
        next.map_or(Ok((None, None)), |next| self.start(next, Some(block)))
    }

    /// Begins to read the panels of a block, but what is kept of the one before.
    fn start<T: Number>(&self, block: &Block, before: Option<&Block>) -> Result<Coming<T>> {
        let (k, depth) = (self.situation.extents[2], self.blocking.depth);
        if k == 0 {
            return Ok((None, None));
        }
        let keeps = |operand: Kept, same: bool| self.blocking.kept == operand && same;
        let keeps_a = keeps(Kept::A, before.is_some_and(|before| before.0 == block.0));
        let keeps_b = keeps(Kept::B, before.is_some_and(|before| before.1 == block.1));
        let sweep = |array: &Array, region: Section, tile: [u64; 2]| {
            let plan = Sweep::<T>::of(&within(array))
                .over(region)
                .order(SweepOrder::Tiles(tile.to_vec()))
                .budget(self.budget);
            // A kernel on several processors leaves some of them to a reader.
            let plan = match self.situation.threads {
                1 => plan,
                _ => plan.ahead(1),
            };
            plan.start::<T>().map(Some)
        };
        let (rows, columns) = block;
        Ok((
            match keeps_a {
                true => None,
                false => {
                    let tile = [rows.end - rows.start, depth];
                    sweep(self.product.a, section(rows, &(0..k))?, tile)?
                }
            },
            match keeps_b {
                true => None,
                false => {
                    let tile = [depth, columns.end - columns.start];
                    sweep(self.product.b, section(&(0..k), columns)?, tile)?
                }
            },
        ))
    }
}

/// The next panel of a sweep; the one at hand if none comes.
fn renew<T: Number>(
    kept: Option<Tile<T>>,
    coming: &mut Option<Sweep<T>>,
) -> Result<Option<Tile<T>>> {
    match coming {
        None => Ok(kept),
        Some(sweep) => {
            drop(kept);
            let next = sweep.next().transpose()?;
            if sweep.tiles_left() == 0 {
                *coming = None;
            }
            Ok(next)
        }
    }
}

/// The `at`-th of `parts` nearly equal pieces of an extent.
pub(super) fn piece(extent: u64, parts: u64, at: u64) -> Range<u64> {
    let bound = |at: u64| (u128::from(extent) * u128::from(at) / u128::from(parts.max(1))) as u64;
    bound(at)..bound(at + 1)
}

fn length(range: &Range<u64>) -> usize {
    (range.end - range.start) as usize
}

/// The section of a matrix with these rows and columns.
pub(super) fn section(rows: &Range<u64>, columns: &Range<u64>) -> Result<Section> {
    let axes = [rows, columns].map(|range| AxisSection::span(range.start, range.end));
    Section::new(axes.to_vec()).map_err(|error| Error::Invalid(error.to_string()))
}

/// Whether buffers of the array have contiguous rows.
pub(super) fn by_rows(array: &Array) -> bool {
    array.layout().slowest_first() == [0, 1]
}

/// The array, moved with little memory besides buffers.
pub(super) fn within(array: &Array) -> Array {
    array.tuned(array.tuning().within(STAGING))
}

/// A panel as the kernel takes it.
fn matrix<'a, T: Number>(array: &Array, panel: &'a Tile<T>) -> Matrix<&'a [T]> {
    let shape = panel.section().shape();
    Matrix {
        values: panel.values(),
        shape: (shape[0] as usize, shape[1] as usize),
        by_rows: by_rows(array),
    }
}

/// A buffer of so many zeros.
pub(super) fn zeros<T: Number>(count: usize) -> Result<Vec<T>> {
    bytemuck::allocation::try_zeroed_vec(count).map_err(|()| {
        Error::Invalid("the budget of the product is more memory than there is".into())
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use outcore::storage::{CountedStore, MemoryStore};
    use outcore::{ArrayDescriptor, ElementType, Strategy, Tuning};

    use super::*;

    /// An array that counts, each run of which is one access.
    fn counted(shape: [u64; 2], layout: &str) -> (Array, Arc<CountedStore<MemoryStore>>) {
        let descriptor = ArrayDescriptor::new(&shape, ElementType::F32);
        let descriptor = descriptor.layout(layout.parse().unwrap());
        let bytes = vec![0; descriptor.byte_len().unwrap() as usize];
        let store = Arc::new(CountedStore::new(MemoryStore::from(bytes)));
        let array = Array::in_store("matrix", &descriptor, store.clone()).unwrap();
        let tuning = Tuning {
            strategy: Strategy::Direct,
            ..array.tuning()
        };
        (array.tuned(tuning), store)
    }

    #[test]
    fn as_many_bytes_are_read_as_the_formula_says() {
        for (extents, layout) in [
            ([300, 200, 250], "row"),
            ([200, 300, 100], "column"),
            ([500, 20, 30], "row"),
            ([7, 400, 33], "tiled:16x16"),
            ([1, 300, 300], "row"),
        ] {
            let [m, n, k] = extents;
            let (a, from_a) = counted([m, k], layout);
            let (b, from_b) = counted([k, n], "row");
            let (c, _) = counted([m, n], layout);
            let product = Product {
                a: &a,
                b: &b,
                c: &c,
            };
            for (ranks, memory) in [
                (1, 1 << 16),
                (1, 1 << 18),
                (2, 1 << 18),
                (3, 1 << 19),
                (4, 1 << 22),
            ] {
                let situations = outcore::run(ranks, |comm| {
                    let resources = Resources::of(MemoryBudget::of(memory));
                    multiply::<f32>(comm, &product, &resources)?;
                    Ok::<_, Error>(Situation {
                        extents,
                        ranks: ranks as u64,
                        threads: threads_of_rank(comm)?,
                        limit: resources.budget.for_rank(comm).limit(),
                        decoded: [0; 3],
                        chunks: [(1, 1); 2],
                    })
                });
                let situation = situations.unwrap()[0];
                let (of_a, of_b) = Blocking::choose::<f32>(&situation).reads(&situation);
                let found = [&from_a, &from_b].map(|store| store.counts().bytes_read);
                assert_eq!(found, [4 * m * k * of_a, 4 * k * n * of_b], "{situation:?}");
                from_a.reset();
                from_b.reset();
            }
        }
    }
}
