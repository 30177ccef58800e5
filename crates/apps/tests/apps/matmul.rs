//! Products of matrices in files, by any number of ranks, against the plain loop.

use std::sync::Arc;

use outcore::storage::{CountedStore, MemoryStore};
use outcore::{
    Array, ArrayDescriptor, ByteOrder, Complex, ElementType, MemoryBudget, PeakMemory, Strategy,
    Tuning,
};
use outcore_apps::Resources;
use outcore_apps::matmul::{Form, Number, multiply};
use proptest::prelude::*;
use proptest::strategy::Strategy as Values;

use crate::arrays::{array, contents, fill, random};
use crate::memory::with_memory;

const LAYOUTS: [&str; 4] = ["row", "column", "tiled:4x5", "tiled:3x7:column"];

#[derive(Debug, Clone)]
struct Case {
    extents: [u64; 3],
    layouts: [&'static str; 3],
    ranks: usize,
    memory: u64,
    form: Form,
    seed: u64,
}

fn case() -> impl Values<Value = Case> {
    let extent = || prop_oneof![Just(0u64), Just(1), 2u64..12, 12u64..90];
    let layout = || proptest::sample::select(LAYOUTS.to_vec());
    let ranks = proptest::sample::select(vec![1usize, 2, 3, 5]);
    let memory = prop_oneof![50u64..4000, 4000u64..100_000, Just(4 << 20)];
    let form = proptest::sample::select(vec![Form::Blocked, Form::Gaxpy]);
    let matrices = (extent(), extent(), extent(), layout(), layout(), layout());
    (matrices, ranks, memory, form, any::<u64>()).prop_map(
        |((m, n, k, a, b, c), ranks, memory, form, seed)| Case {
            extents: [m, n, k],
            layouts: [a, b, c],
            ranks,
            memory,
            form,
            seed,
        },
    )
}

/// Row-major values; whole numbers, so that sums are exact in any order.
fn plain<T: Number + std::ops::Mul<Output = T>>([m, n, k]: [u64; 3], a: &[T], b: &[T]) -> Vec<T> {
    let (m, n, k) = (m as usize, n as usize, k as usize);
    let mut c = vec![T::zeroed(); m * n];
    for i in 0..m {
        for l in 0..k {
            for j in 0..n {
                c[i * n + j] += a[i * k + l] * b[l * n + j];
            }
        }
    }
    c
}

fn check<T>(case: &Case, make: impl Fn(u64) -> T)
where
    T: Number + std::ops::Mul<Output = T> + PartialEq,
{
    let [m, n, k] = case.extents;
    let values = |count, seed| random(count, seed).map(&make).collect::<Vec<T>>();
    let (left, right) = (values(m * k, case.seed), values(k * n, !case.seed));
    let a = array::<T>("a", &[m, k], case.layouts[0]);
    let b = array::<T>("b", &[k, n], case.layouts[1]);
    let c = array::<T>("c", &[m, n], case.layouts[2]);
    fill(&a, &left);
    fill(&b, &right);
    fill(&c, &values(m * n, 7));
    with_memory(case.memory, |budget| {
        outcore::run(case.ranks, |comm| {
            multiply(comm, &a, &b, &c, case.form, &Resources::of(budget.clone()))
        })
    });
    assert!(contents::<T>(&c) == plain(case.extents, &left, &right));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 5, ..ProptestConfig::default() })]
    #[test]
    fn products_in_files_are_the_plain_loop(case in case()) {
        let small = |n: u64| (n % 15) as f64 - 7.0;
        check::<f32>(&case, |n| small(n) as f32);
        check::<f64>(&case, small);
        check::<Complex<f32>>(&case, |n| Complex::new(small(n) as f32, small(n >> 8) as f32));
        check::<Complex<f64>>(&case, |n| Complex::new(small(n), small(n >> 8)));
    }
}

/// An array that counts, of which each run is one access, so that nothing
/// besides is read.
fn counted(name: &str, shape: [u64; 2], layout: &str) -> (Array, Arc<CountedStore<MemoryStore>>) {
    let descriptor = ArrayDescriptor::new(&shape, ElementType::F64);
    let descriptor = descriptor.layout(layout.parse().unwrap());
    let bytes = vec![0; descriptor.byte_len().unwrap() as usize];
    let store = Arc::new(CountedStore::new(MemoryStore::from(bytes)));
    let array = Array::in_store(name, &descriptor, store.clone()).unwrap();
    let tuning = Tuning {
        strategy: Strategy::Direct,
        ..Tuning::default()
    };
    (array.tuned(tuning), store)
}

/// How often each element of A and of B is read, and of C written.
fn times([m, n, k]: [u64; 3], ranks: usize, memory: u64, form: Form) -> [f64; 3] {
    let (a, reads_a) = counted("a", [m, k], "row");
    let (b, reads_b) = counted("b", [k, n], "column");
    let (c, writes_c) = counted("c", [m, n], "row");
    let resources = Resources::of(MemoryBudget::of(memory));
    outcore::run(ranks, |comm| multiply(comm, &a, &b, &c, form, &resources)).unwrap();
    let share = |bytes: u64, elements: u64| bytes as f64 / (8 * elements) as f64;
    assert_eq!(
        reads_a.counts().bytes_written + reads_b.counts().bytes_written,
        0
    );
    [
        share(reads_a.counts().bytes_read, m * k),
        share(reads_b.counts().bytes_read, k * n),
        share(writes_c.counts().bytes_written, m * n),
    ]
}

#[test]
fn what_fits_is_read_and_written_once() {
    for form in [Form::Blocked, Form::Gaxpy] {
        let once = times([200, 300, 150], 1, 16 << 20, form);
        assert_eq!(once, [1.0; 3], "{form:?}");
    }
    // Blocks of two ranks need the same rows of A, or columns of B.
    let [a, b, c] = times([200, 300, 150], 2, 16 << 20, Form::Blocked);
    assert_eq!((a + b, c), (3.0, 1.0));
}

#[test]
fn an_operand_that_stays_is_read_once() {
    let once = times([20_000, 60, 60], 1, 600 << 10, Form::Blocked);
    assert_eq!(once, [1.0; 3]);
    let once = times([60, 20_000, 60], 1, 600 << 10, Form::Blocked);
    assert_eq!(once, [1.0; 3]);
}

#[test]
fn a_stays_while_columns_of_b_pass() {
    // With half of A in memory, B passes twice.
    let [a, b, c] = times([400, 400, 400], 1, 1_200_000, Form::Gaxpy);
    assert_eq!((a, c), (1.0, 1.0));
    assert!(b >= 2.0 && b.fract() == 0.0, "{b}");
    let [of_all, _, _] = times([400, 400, 400], 3, 3_600_000, Form::Gaxpy);
    assert!(of_all >= 1.0);
}

#[test]
fn the_memory_stays_within_the_budget() {
    // A product of which each matrix has 32 MiB, within 12.
    let budget = 12u64 << 20;
    for form in [Form::Blocked, Form::Gaxpy] {
        for ranks in [1, 3] {
            let [a, b, c] = ["a", "b", "c"].map(|name| array::<f64>(name, &[2048, 2048], "row"));
            let peak = PeakMemory::watch();
            let before = peak.bytes().unwrap_or(0);
            outcore::run(ranks, |comm| {
                let resources = Resources::of(MemoryBudget::of(budget));
                multiply(comm, &a, &b, &c, form, &resources)
            })
            .unwrap();
            let taken = peak.bytes().unwrap_or(0).saturating_sub(before);
            // Tests beside this one take some, too.
            assert!(
                taken <= budget + (64 << 20),
                "{form:?} {ranks}: {} MiB",
                taken >> 20
            );
        }
    }
}

#[test]
fn either_byte_order_is_read_and_written() {
    let directory = tempfile::tempdir().unwrap();
    let make = |name: &str, order: ByteOrder, shape: [u64; 2]| {
        let path = directory.path().join(name);
        let descriptor = ArrayDescriptor {
            byte_order: order,
            ..ArrayDescriptor::new(&shape, ElementType::F32)
        };
        Array::create(path.to_str().unwrap(), &descriptor).unwrap()
    };
    let a = make("a.npy", ByteOrder::Big, [30, 20]);
    let b = make("b.oc", ByteOrder::Little, [20, 40]);
    let c = make("c.oc", ByteOrder::Big, [30, 40]);
    let values = |count| (0..count).map(|n| (n % 13) as f32).collect::<Vec<_>>();
    let (left, right) = (values(600), values(800));
    fill(&a, &left);
    fill(&b, &right);
    for form in [Form::Blocked, Form::Gaxpy] {
        outcore::run(2, |comm| {
            let resources = Resources::of(MemoryBudget::of(1 << 20));
            multiply(comm, &a, &b, &c, form, &resources)
        })
        .unwrap();
        assert!(contents::<f32>(&c) == plain([30, 40, 20], &left, &right));
        fill(&c, &vec![-1.0f32; 1200]);
    }
}

#[test]
fn progress_comes_to_the_bytes_of_the_result() {
    let [a, b, c] = [[70, 50], [50, 90], [70, 90]].map(|shape| array::<f64>("x", &shape, "row"));
    for form in [Form::Blocked, Form::Gaxpy] {
        for memory in [200u64 << 10, 4 << 20] {
            let told = std::sync::atomic::AtomicU64::new(0);
            let tell = |bytes| {
                told.fetch_add(bytes, std::sync::atomic::Ordering::Relaxed);
            };
            let resources = Resources {
                budget: MemoryBudget::of(memory),
                progress: Some(&tell),
            };
            outcore::run(3, |comm| multiply(comm, &a, &b, &c, form, &resources)).unwrap();
            assert_eq!(told.into_inner(), 70 * 90 * 8, "{form:?}");
        }
    }
}

#[test]
fn nonsense_is_refused_with_a_sentence() {
    let resources = Resources::of(MemoryBudget::of(1 << 20));
    let refused = |a: &Array, b: &Array, c: &Array| {
        let outcome = outcore::run(2, |comm| multiply(comm, a, b, c, Form::Blocked, &resources));
        outcome.unwrap_err().to_string()
    };
    let tall = array::<f32>("tall", &[10, 4], "row");
    let wide = array::<f32>("wide", &[4, 10], "row");
    let square = array::<f32>("square", &[10, 10], "row");
    let cube = array::<f32>("cube", &[2, 2, 2], "row");
    let double = array::<f64>("double", &[4, 10], "row");
    let whole = array::<i32>("whole", &[10, 10], "row");
    let message = refused(&tall, &tall, &square);
    assert!(message.contains("tall (10x4 f32) has 4 columns, but tall (10x4 f32) has 10 rows"));
    assert!(refused(&tall, &wide, &tall).contains("must be 10x10 f32"));
    assert!(refused(&cube, &wide, &tall).contains("cube (2x2x2 f32) has 3 axes"));
    assert!(refused(&tall, &double, &square).contains("different types"));
    assert!(refused(&whole, &whole, &whole).contains("whole holds i32 elements"));
    let outcome = outcore::run(2, |comm| {
        let little = Resources::of(MemoryBudget::of(10));
        multiply(comm, &tall, &wide, &square, Form::Gaxpy, &little)
    });
    assert!(outcome.unwrap_err().to_string().contains("needs at least"));
}
