//! Every layout and placement into every other, by many ranks and within small
//! budgets, beside an oracle in memory; and what a store sees of it.

use std::path::Path;
use std::sync::Arc;

use outcore::storage::{CountedStore, MemoryStore, Store};
use outcore::{
    Array, ArrayDescriptor, ByteOrder, Distribution, ElementType, Error, LocalPlacement,
    MemoryBudget, Relayout, RelayoutJob, RelayoutOutput, Result, reorder,
};
use proptest::prelude::*;

/// The bytes of an array in row order, in this machine's byte order.
fn row_major(array: &Array) -> Vec<u8> {
    let mut bytes = vec![0; (array.whole().count() * array.layout().element_size()) as usize];
    array.read_bytes(&array.whole(), &mut bytes).unwrap();
    let mut ordered = vec![0; bytes.len()];
    let rows: Vec<usize> = (0..array.shape().len()).collect();
    reorder(
        array.shape(),
        (&bytes, array.layout().slowest_first()),
        (&mut ordered, &rows),
    );
    ordered
}

fn fill(array: &Array) {
    let bytes = array.whole().count() * array.layout().element_size();
    // Of a bool only two values are valid; any bytes are of the others.
    let most = if array.element_type() == ElementType::Bool {
        2
    } else {
        251
    };
    let bytes: Vec<u8> = (0..bytes)
        .map(|at| ((at * 31 + at / 256) % most) as u8)
        .collect();
    array.write_bytes(&array.whole(), &bytes).unwrap();
}

/// Element by element: the transposed array in row order.
fn transposed(bytes: &[u8], shape: &[u64], axes: &[usize]) -> Vec<u8> {
    let count: u64 = shape.iter().product();
    if count == 0 {
        return Vec::new();
    }
    let size = bytes.len() / count as usize;
    let turned: Vec<u64> = axes.iter().map(|axis| shape[*axis]).collect();
    let mut result = Vec::with_capacity(bytes.len());
    for number in 0..count {
        let (mut rest, mut index) = (number, vec![0; shape.len()]);
        for axis in (0..turned.len()).rev() {
            index[axes[axis]] = rest % turned[axis];
            rest /= turned[axis];
        }
        let at = index.iter().zip(shape).fold(0, |at, (i, n)| at * n + i) as usize;
        result.extend_from_slice(&bytes[at * size..(at + 1) * size]);
    }
    result
}

fn name(directory: &Path, file: &str) -> String {
    directory.join(file).to_str().unwrap().to_string()
}

/// The `seed`-th permutation of so many axes.
fn permutation(axes: usize, mut seed: usize) -> Vec<usize> {
    let mut left: Vec<usize> = (0..axes).collect();
    (0..axes)
        .map(|at| {
            let taken = seed % (axes - at);
            seed /= axes - at;
            left.remove(taken)
        })
        .collect()
}

fn arrangement(shape: &[u64], kind: usize, seed: usize) -> String {
    let tile = || -> Vec<String> {
        let extents = shape.iter().enumerate();
        extents
            .map(|(axis, n)| (1 + (seed + 3 * axis) as u64 % n.max(&1)).to_string())
            .collect()
    };
    match kind {
        0 => "row".into(),
        1 => "column".into(),
        2 => {
            let order: Vec<String> = permutation(shape.len(), seed)
                .iter()
                .map(usize::to_string)
                .collect();
            format!("axes:{}", order.join(","))
        }
        3 if !shape.is_empty() => format!("tiled:{}", tile().join("x")),
        4 if !shape.is_empty() => format!("tiled:{}:column", tile().join("x")),
        _ => "row".into(),
    }
}

/// One of several placements of local files, or none.
fn placed(descriptor: ArrayDescriptor, kind: usize, ranks: u64) -> ArrayDescriptor {
    let axes = descriptor.shape.len();
    if kind == 0 || axes == 0 {
        return descriptor;
    }
    let (one, more) = [
        ("block", "*"),
        ("cyclic", "block"),
        ("cyclic(2)", "cyclic(3)"),
    ][kind % 3];
    let text: Vec<&str> = (0..axes)
        .map(|axis| if axis == 0 { one } else { more })
        .collect();
    let Ok(distribution) = Distribution::parse(&text.join(","), &descriptor.shape, ranks, None)
    else {
        return descriptor;
    };
    let mut descriptor = descriptor;
    descriptor.arrangement.tile = None;
    let overlap: Vec<(u64, u64)> = (0..axes)
        .map(|axis| (axis as u64 % 2, kind as u64 % 3))
        .collect();
    let placement = LocalPlacement::new(distribution).overlap(&overlap);
    descriptor.placed(placement)
}

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<u64>,
    element: usize,
    layouts: (usize, usize),
    placements: (usize, usize),
    big: (bool, bool),
    seed: usize,
    ranks: usize,
    memory: u64,
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = prop_oneof![
        9 => proptest::collection::vec(1u64..24, 0..4),
        1 => proptest::collection::vec(0u64..3, 1..4),
    ];
    let pair = || (0usize..5, 0usize..5);
    (
        (shape, 0usize..14, pair(), pair()),
        (any::<(bool, bool)>(), 0usize..1000),
        proptest::sample::select(vec![1usize, 2, 3, 5, 16]),
        proptest::sample::select(vec![64u64 << 10, 100 << 10, 4 << 20]),
    )
        .prop_map(
            |((shape, element, layouts, placements), (big, seed), ranks, memory)| Case {
                shape,
                element,
                layouts,
                placements,
                big,
                seed,
                ranks,
                memory,
            },
        )
}

fn check(case: &Case) -> Result<()> {
    let directory = tempfile::tempdir().unwrap();
    let element = ElementType::ALL[case.element];
    let order = |big| {
        if big {
            ByteOrder::Big
        } else {
            ByteOrder::Little
        }
    };
    let describe = |shape: &[u64], layout, placement, big, parts| {
        let text = arrangement(shape, layout, case.seed);
        let descriptor = ArrayDescriptor::new(shape, element)
            .layout(text.parse().unwrap())
            .byte_order(order(big));
        placed(descriptor, placement, parts)
    };
    let axes = permutation(case.shape.len(), case.seed);
    let turned: Vec<u64> = axes.iter().map(|axis| case.shape[*axis]).collect();
    let from = describe(
        &case.shape,
        case.layouts.0,
        case.placements.0,
        case.big.0,
        3,
    );
    let to = describe(&turned, case.layouts.1, case.placements.1, case.big.1, 4);
    let source = Array::create(&name(directory.path(), "a.oc"), &from)?;
    fill(&source);
    let output = name(directory.path(), "b.oc");
    let budget = MemoryBudget::of(case.memory * case.ranks as u64);
    outcore::run(case.ranks, |comm| {
        let source = Array::open_all(comm, source.name())?;
        let output = RelayoutOutput {
            name: &output,
            descriptor: &to,
            replace: false,
            resume: false,
        };
        let job = RelayoutJob::begin(comm, &source, &axes, &output, &budget)?;
        job.run(comm, &|_| ()).map(drop)
    })?;
    assert_eq!(budget.free(), budget.limit());
    let made = Array::open(&output)?;
    assert_eq!(made.descriptor().byte_order, to.byte_order);
    assert_eq!(
        row_major(&made),
        transposed(&row_major(&source), &case.shape, &axes)
    );
    let mut left: Vec<_> = std::fs::read_dir(directory.path())
        .unwrap()
        .map(|f| f.unwrap().file_name())
        .collect();
    left.sort();
    assert_eq!(left, ["a.oc", "b.oc"]);
    Ok(())
}

proptest! {
    #[test]
    fn any_layout_becomes_any_other(case in cases()) {
        check(&case).unwrap();
    }
}

/// A matrix larger than the budget, in as many passes as were said.
#[test]
fn small_budgets_take_more_passes() {
    let directory = tempfile::tempdir().unwrap();
    let descriptor = ArrayDescriptor::new(&[1500, 1100], ElementType::F32);
    let source = Array::create(&name(directory.path(), "a.oc"), &descriptor).unwrap();
    fill(&source);
    let expected = transposed(&row_major(&source), source.shape(), &[1, 0]);
    for (memory, ranks, passes) in [
        (64u64 << 10, 1, 3),
        (384 << 10, 2, 2),
        (1 << 20, 3, 2),
        (24 << 20, 2, 1),
    ] {
        let target = name(directory.path(), &format!("{memory}.npy"));
        let turned = descriptor.transposed(&[1, 0]).unwrap();
        let found = outcore::run(ranks, |comm| {
            let source = Array::open_all(comm, source.name())?;
            let target = Array::create_all(comm, &target, &turned)?;
            let plan = Relayout::plan(comm, &source, &target, &[1, 0], &MemoryBudget::of(memory))?;
            let moved = std::sync::atomic::AtomicU64::new(0);
            plan.run(comm, &|bytes| {
                let _ = moved.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
            })?;
            let moved = comm.all_reduce(&[moved.into_inner()], outcore::Op::Sum)?[0];
            assert_eq!(moved, plan.bytes());
            Ok::<_, Error>(plan.passes())
        });
        assert!(
            found.unwrap().iter().all(|found| *found == passes),
            "{memory}"
        );
        assert_eq!(
            row_major(&Array::open(&target).unwrap()),
            expected,
            "{memory}"
        );
    }
    let files = std::fs::read_dir(directory.path()).unwrap();
    assert!(
        files
            .map(|f| f.unwrap().file_name().into_string().unwrap())
            .all(|f| !f.contains("pass"))
    );
}

/// An array in a store that counts; it cannot be mapped, so every byte is a
/// request's.
fn counted(shape: &[u64], layout: &str) -> (Array, Arc<CountedStore<MemoryStore>>) {
    let descriptor = ArrayDescriptor::new(shape, ElementType::F32).layout(layout.parse().unwrap());
    let memory = MemoryStore::new();
    memory.set_len(descriptor.byte_len().unwrap()).unwrap();
    let store = Arc::new(CountedStore::new(memory));
    (
        Array::in_store("counted", &descriptor, store.clone()).unwrap(),
        store,
    )
}

#[test]
fn each_byte_is_read_and_written_once_in_long_requests() {
    let shape = [2048, 2048];
    let bytes = 4 * 2048 * 2048;
    for (from, to, budget, reads, writes) in [
        // 6 MiB of 8 for the block: 1024 x 1024, so 4 KiB at a time.
        ("row", "column", 8u64 << 20, 4096, 4096),
        ("row", "row", 16 << 20, 64, 64),
        // Tiles are read whole, up to what is staged.
        ("tiled:256x256", "row", 16 << 20, 64, 64),
        ("row", "tiled:256x256", 16 << 20, 64, 64),
    ] {
        for ranks in [1, 2] {
            let ((source, read), (target, written)) = (counted(&shape, from), counted(&shape, to));
            fill(&source);
            read.reset();
            written.reset();
            outcore::run(ranks, |comm| {
                let budget = MemoryBudget::of(budget * ranks as u64);
                Relayout::plan(comm, &source, &target, &[0, 1], &budget)?.run(comm, &|_| ())
            })
            .unwrap();
            let (read, written) = (read.counts(), written.counts());
            assert_eq!(
                (read.bytes_read, read.bytes_written),
                (bytes, 0),
                "{from} {to}"
            );
            assert_eq!(
                (written.bytes_read, written.bytes_written),
                (0, bytes),
                "{from} {to}"
            );
            println!(
                "{from} -> {to} on {ranks}: {} reads, {} writes",
                read.reads, written.writes
            );
            assert!(read.reads <= 2 * reads, "{from} {to}: {} reads", read.reads);
            assert!(
                written.writes <= 2 * writes,
                "{from} {to}: {} writes",
                written.writes
            );
            assert_eq!(row_major(&source), row_major(&target), "{from} {to}");
        }
    }
}

/// Chunks of the target are encoded once: no more threads share the memory than have room for one.
#[test]
fn every_lane_has_room_for_a_chunk() {
    let directory = tempfile::tempdir().unwrap();
    let plain = ArrayDescriptor::new(&[4096, 4096], ElementType::F32);
    let source = Array::create(&name(directory.path(), "a.npy"), &plain).unwrap();
    let chunked = plain.clone().layout("tiled:1024x2048".parse().unwrap());
    let sharded = plain.clone().layout("tiled:256x512".parse().unwrap());
    for (file, target) in [
        ("b.zarr", chunked.codecs("zstd:1".parse().unwrap())),
        (
            "c.zarr",
            sharded
                .codecs("zstd:1".parse().unwrap())
                .sharded(&[1024, 2048]),
        ),
    ] {
        let target = Array::create(&name(directory.path(), file), &target).unwrap();
        outcore::run(1, |comm| {
            // Of 8 MiB; two threads would have less beside what is decoded.
            let budget = MemoryBudget::of(44 << 20);
            let plan = Relayout::plan(comm, &source, &target, &[0, 1], &budget)?;
            let text = plan.to_string();
            let block = text
                .split("blocks of ")
                .nth(1)
                .and_then(|rest| rest.split(' ').next());
            let extents = block.unwrap().split('x').map(|n| n.parse::<u64>().unwrap());
            let whole = extents
                .zip([1024, 2048])
                .all(|(extent, chunk)| extent % chunk == 0);
            assert!(whole, "{text}");
            Ok::<_, Error>(())
        })
        .unwrap();
    }
}

#[test]
fn mistakes_reach_every_rank_and_leave_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let descriptor = ArrayDescriptor::new(&[30, 20], ElementType::F32);
    let source = Array::create(&name(directory.path(), "a.oc"), &descriptor).unwrap();
    fill(&source);
    let before = row_major(&source);
    let other = ArrayDescriptor::new(&[30, 20], ElementType::F64);
    let many = MemoryBudget::of(1 << 20);
    for (output, descriptor, axes, budget, part) in [
        (
            "b.oc",
            &descriptor,
            vec![1, 0],
            &many,
            "transposed has 20x30",
        ),
        ("b.oc", &descriptor, vec![0, 0], &many, "the axes 0,0"),
        ("b.oc", &descriptor, vec![0], &many, "each of the 2 axes"),
        ("b.oc", &other, vec![0, 1], &many, "f64"),
        (
            "b.oc",
            &descriptor,
            vec![0, 1],
            &MemoryBudget::of(1000),
            "at least 192 KiB",
        ),
        (
            "a.oc",
            &descriptor,
            vec![0, 1],
            &many,
            "the place of the input",
        ),
        ("b.txt", &descriptor, vec![0, 1], &many, ".oc"),
    ] {
        let output = name(directory.path(), output);
        let messages = outcore::run(3, |comm| {
            let source = Array::open_all(comm, source.name())?;
            let output = RelayoutOutput {
                name: &output,
                descriptor,
                replace: true,
                resume: false,
            };
            let job = RelayoutJob::begin(comm, &source, &axes, &output, budget);
            Ok::<_, Error>(job.unwrap_err().to_string())
        });
        for message in messages.unwrap() {
            assert!(message.contains(part), "{part}: {message}");
        }
        assert_eq!(
            std::fs::read_dir(directory.path()).unwrap().count(),
            1,
            "{part}"
        );
    }
    assert_eq!(row_major(&source), before);
}
