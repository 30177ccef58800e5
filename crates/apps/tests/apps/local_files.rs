//! Median and Laplace on one file a rank, on any grid of ranks, against the
//! kernels in memory.

use outcore::{
    Array, ArrayDescriptor, Comm, Distribution, Element, ElementType, Error, LocalArray,
    LocalPlacement, MemoryBudget,
};
use outcore_apps::Resources;
use outcore_apps::laplace::{self, Edges, Problem};
use outcore_apps::median::{self, Window};
use proptest::prelude::*;

use crate::arrays::{array, contents, fill, medians, random, swept};
use crate::memory::with_memory;

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<u64>,
    distribution: &'static str,
    ranks: usize,
    layout: &'static str,
    /// How deep the overlap areas are along all axes, and how much deeper along
    /// the last one.
    overlap: u64,
    deeper: u64,
    memory: u64,
    seed: u64,
}

fn case() -> impl Strategy<Value = Case> {
    let shape = prop_oneof![
        (17u64..60).prop_map(|n| vec![n]),
        (17u64..40, 17u64..40).prop_map(|(m, n)| vec![m, n]),
        (17u64..24, 6u64..10, 8u64..12).prop_map(|(l, m, n)| vec![l, m, n]),
    ];
    let ranks = proptest::sample::select(vec![1usize, 2, 3, 5, 16]);
    (
        shape,
        ranks,
        0usize..3,
        any::<bool>(),
        (1u64..3, 0u64..3),
        (
            proptest::sample::select(vec![100u64, 20 << 10, 100 << 10, 4 << 20]),
            any::<u64>(),
        ),
    )
        .prop_map(|(shape, ranks, kind, column, overlap, (memory, seed))| {
            let (overlap, deeper) = overlap;
            let distribution = match (shape.len(), kind, ranks) {
                (1, 0, _) | (1, _, 16) => "block",
                (1, ..) => "cyclic(3)",
                (2, 0, _) => "block,*",
                (2, 1, 1..=3) => "cyclic(4),block",
                (2, ..) => "block,block",
                (_, 0, _) => "block,*,*",
                (_, 1, 1..=5) => "*,*,block",
                _ => "block,block,*",
            };
            let layout = if column { "column" } else { "row" };
            Case {
                shape,
                distribution,
                ranks,
                layout,
                overlap,
                deeper,
                memory,
                seed,
            }
        })
}

impl Case {
    fn descriptor<T: Element>(&self) -> ArrayDescriptor {
        let parsed =
            Distribution::parse(self.distribution, &self.shape, self.ranks as u64, None).unwrap();
        let overlap = self.overlaps();
        ArrayDescriptor::new(&self.shape, T::TYPE)
            .layout(self.layout.parse().unwrap())
            .placed(LocalPlacement::new(parsed).overlap(&overlap))
    }

    fn overlaps(&self) -> Vec<(u64, u64)> {
        let mut overlap = vec![(self.overlap, self.overlap); self.shape.len()];
        if let Some(last) = overlap.last_mut() {
            last.1 += self.deeper;
        }
        overlap
    }

    /// What is exchanged must not be deeper than the shortest block.
    fn is_possible(&self) -> bool {
        let parsed =
            Distribution::parse(self.distribution, &self.shape, self.ranks as u64, None).unwrap();
        parsed.axes().iter().all(|axis| {
            let last = (axis.extent() - 1) % axis.block() + 1;
            last >= self.overlap
        })
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases / 20, ..Default::default() })]

    #[test]
    fn local_median_is_median_in_memory(case in case(), short in 0usize..3) {
        prop_assume!(case.is_possible());
        let directory = tempfile::tempdir().unwrap();
        let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
        let values: Vec<f32> =
            random(case.shape.iter().product(), case.seed).map(|n| n as f32).collect();
        let global = array::<f32>("global", &case.shape, case.layout);
        fill(&global, &values);
        let mut extents = vec![2 * case.overlap + 1; case.shape.len()];
        if let Some(extent) = extents.get_mut(short) { *extent = 1; }
        let window = Window::new(&extents).unwrap();
        let descriptor = case.descriptor::<f32>();
        with_memory(case.memory, |budget| outcore::run(case.ranks, |comm| {
            let make = |file| LocalArray::draft_all(comm, &name(file), &descriptor, true);
            let (source, target) = (make("in.oc")?.commit(comm)?, make("out.oc")?.commit(comm)?);
            source.load(comm, &global, &MemoryBudget::of(4 << 20))?;
            let resources = Resources::of(budget.clone());
            median::filter_local(comm, &source, &target, &window, &resources)
        }));
        let found = contents::<f32>(&Array::open(&name("out.oc")).unwrap());
        prop_assert_eq!(found, medians(&values, &case.shape, &extents));
    }

    #[test]
    fn local_laplace_is_the_plain_loop(
        case in case(),
        periodic in any::<bool>(),
        sweeps in 1u64..8,
        fuse in proptest::option::of(1u64..3),
    ) {
        prop_assume!(case.is_possible());
        let directory = tempfile::tempdir().unwrap();
        let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
        let values: Vec<f64> =
            random(case.shape.iter().product(), case.seed).map(|n| n as f64 / 7.0).collect();
        let global = array::<f64>("global", &case.shape, case.layout);
        fill(&global, &values);
        let edges = if periodic { Edges::Periodic } else { Edges::Fixed };
        let fuse = fuse.map(|fuse| fuse.min(case.overlap));
        let problem = Problem { edges, fuse, ..Problem::new(sweeps) };
        let descriptor = case.descriptor::<f64>();
        let solutions = with_memory(case.memory, |budget| outcore::run(case.ranks, |comm| {
            let make = |file| LocalArray::draft_all(comm, &name(file), &descriptor, true);
            let source = make("in.oc")?.commit(comm)?;
            let results = [make("a.oc")?.commit(comm)?, make("b.oc")?.commit(comm)?];
            source.load(comm, &global, &MemoryBudget::of(4 << 20))?;
            let resources = Resources::of(budget.clone());
            laplace::solve_local(comm, &source, &results.each_ref(), &problem, &resources)
        }));
        let holder = ["a.oc", "b.oc"][solutions[0].holder];
        let found = contents::<f64>(&Array::open(&name(holder)).unwrap());
        let (expected, change) = swept(&values, &case.shape, edges, sweeps);
        prop_assert_eq!(found, expected);
        prop_assert_eq!(solutions[0].change, change);
        prop_assert!(solutions.iter().all(|other| *other == solutions[0]));
    }
}

#[test]
fn shallow_overlap_areas_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
    let shape = vec![20, 20];
    let case = Case {
        shape,
        distribution: "block,*",
        ranks: 2,
        layout: "row",
        overlap: 1,
        deeper: 0,
        memory: 1 << 20,
        seed: 0,
    };
    let descriptor = case.descriptor::<f32>();
    let messages = outcore::run(2, |comm| {
        let make = |file| LocalArray::draft_all(comm, &name(file), &descriptor, false);
        let (source, target) = (make("in.oc")?.commit(comm)?, make("out.oc")?.commit(comm)?);
        let resources = Resources::of(MemoryBudget::of(1 << 20));
        let window = "5x3".parse()?;
        let median = median::filter_local(comm, &source, &target, &window, &resources);
        let problem = Problem {
            fuse: Some(2),
            ..Problem::new(4)
        };
        let laplace = laplace::solve_local(comm, &source, &[&target], &problem, &resources);
        Ok::<_, outcore::Error>([
            median.unwrap_err().to_string(),
            laplace.unwrap_err().to_string(),
        ])
    })
    .unwrap();
    for message in messages.into_iter().flatten() {
        assert!(
            message.contains("1 deep") && message.contains("outcore convert"),
            "{message}"
        );
    }
}

/// A local array of 20x20 on two ranks, and two like it.
fn three_like(
    comm: &Comm,
    name: &dyn Fn(&str) -> String,
    descriptor: &ArrayDescriptor,
) -> Result<[LocalArray; 3], Error> {
    let make = |file| LocalArray::draft_all(comm, &name(file), descriptor, false)?.commit(comm);
    Ok([make("in.oc")?, make("a.oc")?, make("b.oc")?])
}

#[test]
fn only_what_is_needed_of_overlap_areas_is_exchanged() {
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
    // Blocks of 10 and 10 rows in parts of 16: 3 rows of overlap at both ends.
    let distribution = Distribution::parse("block,*", &[20, 20], 2, None).unwrap();
    let placement = LocalPlacement::new(distribution).overlap(&[(3, 3), (2, 2)]);
    let descriptor = ArrayDescriptor::new(&[20, 20], ElementType::F32).placed(placement);
    outcore::run(2, |comm| {
        let [source, a, b] = three_like(comm, &name, &descriptor)?;
        let (part, owned) = (source.part(), source.owned());
        let seen = || -> Result<[Vec<f32>; 2], Error> {
            // The rows beside the block towards the other rank, from afar; the
            // first column of the block.
            let rows = ["13:16, 2", "0:3, 2"][comm.rank()];
            let mut rows: Vec<f32> = part.read(&part.section(rows)?)?;
            if comm.rank() == 0 {
                rows.reverse();
            }
            Ok([rows, part.read(&part.section("5, 0:2")?)?])
        };
        part.write(&owned, &[1.0f32; 200])?;
        let resources = Resources::of(MemoryBudget::of(1 << 20));
        let problem = Problem {
            fuse: Some(1),
            ..Problem::new(2)
        };
        laplace::solve_local(comm, &source, &[&a, &b], &problem, &resources)?;
        assert_eq!(seen()?, [vec![0.0, 0.0, 1.0], vec![0.0, 0.0]]);
        median::filter_local(comm, &source, &a, &"5x3".parse()?, &resources)?;
        assert_eq!(seen()?, [vec![0.0, 1.0, 1.0], vec![0.0, 1.0]]);
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn overlap_areas_deeper_than_a_block_do_no_harm() {
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
    // The last rank has one row of the eleven.
    let distribution = Distribution::parse("cyclic(5),*", &[11, 8], 3, None).unwrap();
    let placement = LocalPlacement::new(distribution).overlap(&[(3, 3), (0, 0)]);
    let descriptor = ArrayDescriptor::new(&[11, 8], ElementType::F32).placed(placement);
    let values: Vec<f32> = random(88, 4).map(|n| n as f32).collect();
    let global = array::<f32>("global", &[11, 8], "row");
    fill(&global, &values);
    let solutions = outcore::run(3, |comm| {
        let [source, a, b] = three_like(comm, &name, &descriptor)?;
        source.load(comm, &global, &MemoryBudget::of(1 << 20))?;
        let resources = Resources::of(MemoryBudget::of(1 << 20));
        laplace::solve_local(comm, &source, &[&a, &b], &Problem::new(4), &resources)
    })
    .unwrap();
    let holder = ["a.oc", "b.oc"][solutions[0].holder];
    let found = contents::<f32>(&Array::open(&name(holder)).unwrap());
    assert_eq!(found, swept(&values, &[11, 8], Edges::Fixed, 4).0);
}

#[test]
fn errors_name_the_array_and_not_a_file_of_it() {
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
    let distribution = Distribution::parse("block,*", &[20, 20], 2, None).unwrap();
    let placement = LocalPlacement::new(distribution);
    let descriptor = ArrayDescriptor::new(&[20, 20], ElementType::C64).placed(placement);
    let messages = outcore::run(2, |comm| {
        let [source, a, b] = three_like(comm, &name, &descriptor)?;
        let resources = Resources::of(MemoryBudget::of(1 << 20));
        let window = "1x1".parse()?;
        let median = median::filter_local(comm, &source, &a, &window, &resources);
        let problem = Problem::new(4);
        let laplace = laplace::solve_local(comm, &source, &[&a, &b], &problem, &resources);
        Ok::<_, Error>([median.unwrap_err(), laplace.unwrap_err()])
    })
    .unwrap();
    for error in messages.into_iter().flatten() {
        let expected = format!("{} holds c64 elements", name("in.oc"));
        assert!(error.to_string().starts_with(&expected), "{error}");
    }
}
