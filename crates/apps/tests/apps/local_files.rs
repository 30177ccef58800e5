//! Median and Laplace on one file a rank, on any grid of ranks, against the
//! kernels in memory.

use outcore::{
    Array, ArrayDescriptor, Distribution, Element, LocalArray, LocalPlacement, MemoryBudget,
};
use outcore_apps::Resources;
use outcore_apps::laplace::{self, Edges, Problem};
use outcore_apps::median::{self, Window};
use proptest::prelude::*;

use crate::arrays::{array, contents, fill, medians, random, swept};

#[derive(Debug, Clone)]
struct Case {
    shape: Vec<u64>,
    distribution: &'static str,
    ranks: usize,
    layout: &'static str,
    overlap: u64,
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
        1u64..3,
        any::<u64>(),
    )
        .prop_map(|(shape, ranks, kind, column, overlap, seed)| {
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
                seed,
            }
        })
}

impl Case {
    fn descriptor<T: Element>(&self) -> ArrayDescriptor {
        let parsed =
            Distribution::parse(self.distribution, &self.shape, self.ranks as u64, None).unwrap();
        let overlap = vec![(self.overlap, self.overlap); self.shape.len()];
        ArrayDescriptor::new(&self.shape, T::TYPE)
            .layout(self.layout.parse().unwrap())
            .placed(LocalPlacement::new(parsed).overlap(&overlap))
    }

    /// Overlap areas must not be deeper than the shortest block.
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
    #![proptest_config(ProptestConfig::with_cases(24))]

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
        outcore::run(case.ranks, |comm| {
            let budget = MemoryBudget::of(1 << 20);
            let make = |file| LocalArray::draft_all(comm, &name(file), &descriptor, false);
            let (source, target) = (make("in.oc")?.commit(comm)?, make("out.oc")?.commit(comm)?);
            source.load(comm, &global, &budget)?;
            median::filter_local(comm, &source, &target, &window, &Resources::of(budget))
        })
        .unwrap();
        let found = contents::<f32>(&Array::open(&name("out.oc")).unwrap());
        prop_assert_eq!(found, medians(&values, &case.shape, &extents));
    }

    #[test]
    fn local_laplace_is_the_plain_loop(
        case in case(),
        periodic in any::<bool>(),
        sweeps in 1u64..8,
    ) {
        prop_assume!(case.is_possible());
        let directory = tempfile::tempdir().unwrap();
        let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
        let values: Vec<f64> =
            random(case.shape.iter().product(), case.seed).map(|n| n as f64 / 7.0).collect();
        let global = array::<f64>("global", &case.shape, case.layout);
        fill(&global, &values);
        let edges = if periodic { Edges::Periodic } else { Edges::Fixed };
        let problem = Problem { edges, ..Problem::new(sweeps) };
        let descriptor = case.descriptor::<f64>();
        let solutions = outcore::run(case.ranks, |comm| {
            let budget = MemoryBudget::of(4 << 20);
            let make = |file| LocalArray::draft_all(comm, &name(file), &descriptor, false);
            let source = make("in.oc")?.commit(comm)?;
            let results = [make("a.oc")?.commit(comm)?, make("b.oc")?.commit(comm)?];
            source.load(comm, &global, &budget)?;
            let resources = Resources::of(budget);
            laplace::solve_local(comm, &source, &results.each_ref(), &problem, &resources)
        })
        .unwrap();
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
