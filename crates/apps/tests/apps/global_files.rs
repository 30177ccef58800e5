//! Median and Laplace on one global array, by any number of ranks, against the
//! kernels in memory.

use std::sync::Arc;

use outcore::storage::{CountedStore, MemoryStore};
use outcore::{Array, ArrayDescriptor, MemoryBudget, f16};
use outcore_apps::Float;
use outcore_apps::Resources;
use outcore_apps::laplace::{self, Edges, Problem};
use outcore_apps::median::{self, Real, Window};
use proptest::prelude::*;

use crate::arrays::{array, contents, fill, medians, random, swept};
use crate::memory::with_memory;

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<u64>,
    layouts: [&'static str; 2],
    ranks: usize,
    memory: u64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let shapes = prop_oneof![
        proptest::collection::vec(1u64..60, 1..2),
        proptest::collection::vec(1u64..30, 2..3),
        proptest::collection::vec(1u64..9, 3..4),
    ];
    let layout = (0usize..4, 0usize..4);
    let ranks = proptest::sample::select(vec![1usize, 2, 3, 5, 16]);
    let memory = proptest::sample::select(vec![100u64, 2 << 10, 20 << 10, 1 << 20]);
    (shapes, layout, ranks, memory, any::<u64>()).prop_map(|(shape, pick, ranks, memory, seed)| {
        let layouts = match shape.len() {
            1 => ["row", "column", "row", "tiled:7"],
            2 => ["row", "column", "row", "tiled:4x5"],
            _ => ["row", "column", "axes:1,2,0", "tiled:2x3x2"],
        };
        Case {
            shape,
            layouts: [layouts[pick.0], layouts[pick.1]],
            ranks,
            memory,
            seed,
        }
    })
}

fn check_median<T: Real>(case: &Case, halves: &[u64], make: impl Fn(u64) -> T) {
    let shape = &case.shape;
    let window: Vec<u64> = shape
        .iter()
        .zip(halves)
        .map(|(n, half)| (2 * half + 1).min((n - 1) / 2 * 2 + 1))
        .collect();
    let count = shape.iter().product();
    let values: Vec<T> = random(count, case.seed).map(make).collect();
    let [from, to] = case.layouts;
    let (source, target) = (array::<T>("in", shape, from), array::<T>("out", shape, to));
    fill(&source, &values);
    let expected = medians(&values, shape, &window);
    let window = Window::new(&window).unwrap();
    with_memory(case.memory, |budget| {
        outcore::run(case.ranks, |comm| {
            median::filter(
                comm,
                &source,
                &target,
                &window,
                &Resources::of(budget.clone()),
            )
        })
    });
    let found = contents::<T>(&target);
    assert_eq!(
        bytemuck::cast_slice::<T, u8>(&found),
        bytemuck::cast_slice::<T, u8>(&expected)
    );
}

fn check_laplace<T: Float>(case: &Case, edges: Edges, sweeps: u64, fuse: Option<u64>) {
    let shape = &case.shape;
    let count = shape.iter().product();
    let values: Vec<T> = random(count, case.seed)
        .map(|n| T::of(n as f64 / 7.0))
        .collect();
    let [from, to] = case.layouts;
    let source = array::<T>("in", shape, from);
    let results = [array::<T>("a", shape, to), array::<T>("b", shape, to)];
    fill(&source, &values);
    let (expected, change) = swept(&values, shape, edges, sweeps);
    let problem = Problem {
        edges,
        fuse,
        ..Problem::new(sweeps)
    };
    let solution = with_memory(case.memory, |budget| {
        outcore::run(case.ranks, |comm| {
            let resources = Resources::of(budget.clone());
            laplace::solve(comm, &source, &results.each_ref(), &problem, &resources)
        })
    });
    let found = contents::<T>(&results[solution[0].holder]);
    assert_eq!(
        bytemuck::cast_slice::<T, u8>(&found),
        bytemuck::cast_slice::<T, u8>(&expected)
    );
    assert_eq!((solution[0].sweeps, solution[0].change), (sweeps, change));
    assert!(solution.iter().all(|other| *other == solution[0]));
}

fn check_together<T: Float>(case: &Case, sweeps: u64, fuse: Option<u64>) {
    let shape = &case.shape;
    let values: Vec<T> = random(shape.iter().product(), case.seed)
        .map(|n| T::of(n as f64 / 7.0))
        .collect();
    let layout = case.layouts[0];
    let source = array::<T>("in", shape, layout);
    let results = [
        array::<T>("a", shape, layout),
        array::<T>("b", shape, layout),
    ];
    fill(&source, &values);
    let (expected, change) = swept(&values, shape, Edges::Fixed, sweeps);
    let problem = Problem {
        fuse,
        ..Problem::new(sweeps)
    };
    let solution = with_memory(case.memory, |budget| {
        outcore::run(case.ranks, |comm| {
            let resources = Resources::of(budget.clone());
            laplace::solve_together(comm, &source, &results.each_ref(), &problem, &resources)
        })
    });
    let found = contents::<T>(&results[solution[0].holder]);
    assert_eq!(
        bytemuck::cast_slice::<T, u8>(&found),
        bytemuck::cast_slice::<T, u8>(&expected)
    );
    assert_eq!((solution[0].sweeps, solution[0].change), (sweeps, change));
    assert!(solution.iter().all(|other| *other == solution[0]));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 4, ..Default::default() })]

    #[test]
    fn blocks_that_all_read_and_write_together_are_the_plain_loop(
        case in case(),
        sweeps in 1u64..8,
        fuse in proptest::option::of(1u64..4),
    ) {
        check_together::<f32>(&case, sweeps, fuse);
        check_together::<f64>(&case, sweeps, fuse);
    }

    #[test]
    fn median_in_files_is_median_in_memory(
        case in case(),
        halves in proptest::collection::vec(0u64..3, 3..4),
    ) {
        check_median(&case, &halves, |n| n as u8);
        check_median(&case, &halves, |n| f32::from_bits(n as u32));
        check_median(&case, &halves, |n| n as i64);
        check_median(&case, &halves, |n| f16::from_bits(n as u16));
    }

    #[test]
    fn laplace_in_files_is_the_plain_loop(
        case in case(),
        periodic in any::<bool>(),
        sweeps in 1u64..12,
        fuse in proptest::option::of(1u64..6),
    ) {
        let edges = if periodic { Edges::Periodic } else { Edges::Fixed };
        check_laplace::<f32>(&case, edges, sweeps, fuse);
        check_laplace::<f64>(&case, edges, sweeps, fuse);
    }
}

#[test]
fn every_element_is_read_once_by_one_rank() {
    let descriptor = ArrayDescriptor::new(&[200, 50], outcore::ElementType::F32);
    let store = Arc::new(CountedStore::new(MemoryStore::from(vec![0; 40_000])));
    let source = Array::in_store("in", &descriptor, store.clone()).unwrap();
    let results = [
        array::<f32>("a", &[200, 50], "row"),
        array::<f32>("b", &[200, 50], "row"),
    ];
    let resources = Resources::of(MemoryBudget::of(16 << 10));
    outcore::run(1, |comm| {
        let window = "5x3".parse().unwrap();
        median::filter(comm, &source, &results[0], &window, &resources)
    })
    .unwrap();
    assert_eq!(store.counts().bytes_read, 40_000);
    store.reset();
    let problem = Problem::new(3);
    let solution = outcore::run(1, |comm| {
        laplace::solve(comm, &source, &results.each_ref(), &problem, &resources)
    })
    .unwrap();
    assert_eq!((solution[0].passes, store.counts().bytes_read), (1, 40_000));
}

#[test]
fn sweeps_end_when_little_changes() {
    let shape = [30, 20];
    let source = array::<f64>("in", &shape, "row");
    source
        .write(&source.section("0, :").unwrap(), &[1.0; 20])
        .unwrap();
    let results = [
        array::<f64>("a", &shape, "row"),
        array::<f64>("b", &shape, "row"),
    ];
    let problem = Problem {
        tolerance: Some(1e-6),
        fuse: Some(7),
        ..Problem::new(100_000)
    };
    let solution = outcore::run(3, |comm| {
        let resources = Resources::of(MemoryBudget::of(1 << 20));
        laplace::solve(comm, &source, &results.each_ref(), &problem, &resources)
    })
    .unwrap()[0];
    assert!(solution.change <= 1e-6 && solution.change > 0.0);
    assert!(
        solution.sweeps % 7 == 0 && solution.sweeps < 10_000,
        "{solution:?}"
    );
    assert_eq!(solution.passes, solution.sweeps / 7);
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let resources = Resources::of(MemoryBudget::of(1 << 20));
    let real = array::<f32>("real", &[10, 10], "row");
    let other = array::<f32>("other", &[10, 11], "row");
    let whole = array::<i32>("whole", &[10, 10], "row");
    let complex = array::<outcore::Complex<f32>>("complex", &[10, 10], "row");
    let median = |source: &Array, target: &Array, window: &str| {
        outcore::run(2, |comm| {
            median::filter(comm, source, target, &window.parse()?, &resources)
        })
        .unwrap_err()
        .to_string()
    };
    assert!(median(&real, &real, "3x4").contains("even extent, 4"));
    assert!(median(&real, &real, "3").contains("1 axes"));
    assert!(median(&real, &real, "3x11").contains("larger than the array, 10x10"));
    assert!(median(&real, &other, "3x3").contains("10x11"));
    assert!(median(&complex, &complex, "3x3").contains("no order"));
    let laplace = |source: &Array, results: &[&Array], problem: &Problem| {
        outcore::run(2, |comm| {
            laplace::solve(comm, source, results, problem, &resources)
        })
        .unwrap_err()
        .to_string()
    };
    assert!(laplace(&whole, &[&whole], &Problem::new(1)).contains("f32 and f64"));
    assert!(laplace(&real, &[&other], &Problem::new(1)).contains("10x11"));
    assert!(laplace(&real, &[&other], &Problem::new(0)).contains("0 sweeps"));
    let negative = Problem {
        tolerance: Some(-1.0),
        ..Problem::new(1)
    };
    assert!(laplace(&real, &[&other], &negative).contains("-1"));
    let twice = Problem {
        fuse: Some(1),
        ..Problem::new(2)
    };
    let result = array::<f32>("result", &[10, 10], "row");
    assert!(laplace(&real, &[&result], &twice).contains("2 arrays"));
}

#[test]
fn ranks_with_different_memory_do_the_same_passes() {
    let shape = [64, 64];
    let values: Vec<f64> = random(64 * 64, 5).map(|n| n as f64).collect();
    let source = array::<f64>("in", &shape, "row");
    let results = [
        array::<f64>("a", &shape, "row"),
        array::<f64>("b", &shape, "row"),
    ];
    fill(&source, &values);
    let solve = |least: u64| {
        outcore::run(3, |comm| {
            let memory = [1 << 20, least, 1 << 20][comm.rank()];
            let resources = Resources::of(MemoryBudget::of(memory));
            let problem = Problem::new(10);
            laplace::solve(comm, &source, &results.each_ref(), &problem, &resources)
        })
    };
    let solutions = solve(24 << 10).unwrap();
    assert!(solutions.iter().all(|other| *other == solutions[0]));
    assert!(solutions[0].passes > 3, "{:?}", solutions[0]);
    let found = contents::<f64>(&results[solutions[0].holder]);
    assert_eq!(found, swept(&values, &shape, Edges::Fixed, 10).0);
    let message = solve(1 << 10).unwrap_err().to_string();
    assert!(
        message.contains("rank 1") && message.contains("at least"),
        "{message}"
    );
}

#[test]
fn any_number_of_sweeps_is_done_or_refused() {
    let solve = |shape: &[u64], sweeps: u64, fuse: Option<u64>, edges: Edges| {
        let source = array::<f32>("in", shape, "row");
        let results = [
            array::<f32>("a", shape, "row"),
            array::<f32>("b", shape, "row"),
        ];
        let problem = Problem {
            fuse,
            edges,
            ..Problem::new(sweeps)
        };
        let solved = outcore::run(2, |comm| {
            let resources = Resources::of(MemoryBudget::of(1 << 20));
            laplace::solve(comm, &source, &results.each_ref(), &problem, &resources)
        });
        let solution = solved.map(|solutions| (solutions[0].sweeps, solutions[0].passes));
        solution.map_err(|error| error.to_string())
    };
    for edges in [Edges::Fixed, Edges::Periodic] {
        for shape in [&[9][..], &[9, 8]] {
            let done = solve(shape, 5, Some(u64::MAX), edges);
            assert_eq!(done, Ok((5, 1)));
            let message = solve(shape, u64::MAX, Some(u64::MAX), edges).unwrap_err();
            assert!(message.contains("not possible"), "{message}");
            let message = solve(shape, u64::MAX, Some(1 << 32), edges).unwrap_err();
            assert!(message.contains("at least"), "{message}");
        }
        let done = solve(&[0, 8], u64::MAX, None, edges);
        assert_eq!(done, Ok((u64::MAX, 0)));
    }
    let grid = laplace::Grid::new(&[3, 3], Edges::Periodic);
    for sweeps in [0, usize::MAX] {
        let error = laplace::relax(&grid, &[0.0; 9], 0..3, sweeps, &mut [0.0; 9]).unwrap_err();
        assert!(error.to_string().contains("not possible"), "{error}");
    }
    assert!(laplace::relax(&grid, &[0.0; 9], 2..4, 1, &mut [0.0; 6]).is_err());
}

#[test]
fn long_windows_along_one_axis_take_little_memory() {
    let (shape, window) = ([6000], [2001]);
    let values: Vec<u16> = random(6000, 3).map(|n| n as u16).collect();
    let (source, target) = (
        array::<u16>("in", &shape, "row"),
        array::<u16>("out", &shape, "row"),
    );
    fill(&source, &values);
    outcore::run(2, |comm| {
        let resources = Resources::of(MemoryBudget::of(256 << 10));
        median::filter(comm, &source, &target, &Window::new(&window)?, &resources)
    })
    .unwrap();
    assert_eq!(contents::<u16>(&target), medians(&values, &shape, &window));
}
