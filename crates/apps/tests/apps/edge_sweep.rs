//! Sweeps over the edges of unstructured meshes, against a plain loop in memory.
//! Values are whole numbers or small fractions of them, so sums are exact in any
//! order, and results are equal bit by bit.

use outcore::{Array, Checkpoints, Comm, Element, Error, MemoryBudget};
use outcore_apps::edge_sweep::{
    EdgeSweep, Mesh, SweepCheckpoints, Swept, copy_nodes, sweep_edges, sweep_in_memory,
};
use outcore_apps::{Float, Resources};
use proptest::prelude::*;
use proptest::strategy::Strategy as Values;

use crate::arrays::{array, contents, fill, random};

#[derive(Debug, Clone)]
struct Case {
    nodes: u64,
    components: u64,
    edges: u64,
    /// Edges join nodes that are at most so far from one another.
    span: u64,
    layouts: [String; 2],
    ranks: usize,
    memory: u64,
    steps: u64,
    seed: u64,
}

fn case() -> impl Values<Value = Case> {
    let size = (
        prop_oneof![1 => Just(1u64), 8 => 2u64..3000],
        1u64..4,
        prop_oneof![1 => Just(0u64), 8 => 1u64..9000],
        prop_oneof![Just(1u64), Just(50), Just(u64::MAX)],
    );
    let layout = || proptest::sample::select(vec!["row", "column", "tiled"]);
    let ranks = proptest::sample::select(vec![1usize, 2, 3, 5]);
    let memory = prop_oneof![Just(64u64 << 10), 64u64 << 10..400 << 10, Just(4 << 20)];
    let how = (ranks, memory, 0u64..4, any::<u64>());
    (size, layout(), layout(), how).prop_map(
        |((nodes, components, edges, span), first, second, (ranks, memory, steps, seed))| {
            let of = |layout: &str, tile: &str| match layout {
                "tiled" => format!("tiled:{tile}"),
                other => other.into(),
            };
            Case {
                nodes,
                components,
                edges,
                span,
                layouts: [of(first, "7x2"), of(second, "5x2")],
                ranks,
                memory: memory * ranks as u64,
                steps,
                seed,
            }
        },
    )
}

/// Edges in memory.
fn edges_of(case: &Case) -> Vec<[u32; 2]> {
    let starts = random(case.edges, case.seed).map(|number| number % case.nodes);
    let ends = random(case.edges, case.seed ^ 77);
    let pairs = starts.zip(ends).map(|(start, number)| {
        let span = case.span.min(case.nodes);
        [start as u32, ((start + number % span) % case.nodes) as u32]
    });
    pairs.collect()
}

/// The values after a sweep by all ranks, and how it went.
fn swept<T: Float>(
    case: &Case,
    edges: &Array,
    source: &Array,
    after: &(dyn Fn(u64, &Array) -> Result<(), Error> + Sync),
) -> Result<(Vec<T>, Swept), Error> {
    let values = [0, 1].map(|_| array::<T>("values", source.shape(), "row"));
    let sweep = EdgeSweep {
        done: 0,
        steps: case.steps,
        step_size: 0.25,
    };
    let results = outcore::run(case.ranks, |comm| {
        let resources = Resources::of(MemoryBudget::of(case.memory));
        copy_nodes(comm, source, &values[0], &resources)?;
        let values = [&values[0], &values[1]];
        sweep_edges(comm, edges, values, &sweep, &resources, after)
    })?;
    Ok((contents(&values[results[0].holder]), results[0]))
}

fn check<T: Float, N: Element + bytemuck::Pod>(case: &Case, number: impl Fn(u32) -> N) {
    let pairs = edges_of(case);
    let edges = array::<N>("edges", &[case.edges, 2], &case.layouts[0]);
    let numbers: Vec<N> = pairs.iter().flatten().map(|node| number(*node)).collect();
    fill(&edges, &numbers);
    let source = array::<T>("nodes", &[case.nodes, case.components], &case.layouts[1]);
    let count = case.nodes * case.components;
    let mut expected: Vec<T> = random(count, case.seed ^ 3)
        .map(|number| T::of((number % 64) as f64))
        .collect();
    fill(&source, &expected);
    let sweep = EdgeSweep {
        done: 0,
        steps: case.steps,
        step_size: 0.25,
    };
    let components = case.components as usize;
    sweep_in_memory(&pairs, &mut expected, components, &sweep);
    let (found, _) = swept::<T>(case, &edges, &source, &|_, _| Ok(())).unwrap();
    assert!(found == expected, "{case:?}");
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

    #[test]
    fn any_mesh_gives_what_a_plain_loop_gives(case in case(), kind in 0..4) {
        match kind {
            0 => check::<f64, u32>(&case, |node| node),
            1 => check::<f64, i64>(&case, i64::from),
            2 => check::<f32, u64>(&case, u64::from),
            _ => check::<f64, i32>(&case, |node| node as i32),
        }
    }
}

/// A mesh of triangles with values that are whole numbers.
fn triangles(nodes: u64) -> (Mesh, Array, Array, Vec<f64>) {
    let mesh = Mesh { nodes, seed: 4 };
    let edges = array::<u32>("edges", &[mesh.edges(), 2], "row");
    outcore::run(3, |comm| mesh.write_edges(comm, &edges, &|_| ())).unwrap();
    let values: Vec<f64> = random(nodes, 9)
        .map(|number| (number % 512) as f64)
        .collect();
    let source = array::<f64>("nodes", &[nodes], "row");
    fill(&source, &values);
    (mesh, edges, source, values)
}

fn case_of(ranks: usize, memory: u64, steps: u64) -> Case {
    Case {
        nodes: 0,
        components: 1,
        edges: 0,
        span: 0,
        layouts: [String::new(), String::new()],
        ranks,
        memory,
        steps,
        seed: 0,
    }
}

#[test]
fn a_mesh_of_triangles_keeps_its_sum_on_any_number_of_ranks() {
    let (mesh, edges, source, mut expected) = triangles(20_000);
    let pairs: Vec<u32> = contents(&edges);
    let pairs: Vec<[u32; 2]> = pairs.as_chunks::<2>().0.to_vec();
    assert_eq!(pairs.len() as u64, mesh.edges());
    let sum: f64 = expected.iter().sum();
    let sweep = EdgeSweep {
        done: 0,
        steps: 5,
        step_size: 0.25,
    };
    sweep_in_memory(&pairs, &mut expected, 1, &sweep);
    for ranks in [1, 2, 3, 5, 16] {
        for (memory, kept) in [(200 << 10, false), (4 << 20, true)] {
            let case = case_of(ranks, memory * ranks as u64, 5);
            let (found, told) = swept::<f64>(&case, &edges, &source, &|_, _| Ok(())).unwrap();
            assert!(found == expected, "{ranks} {memory}");
            assert_eq!(found.iter().sum::<f64>(), sum);
            // 200 KiB are too little for a third of the edges and their nodes.
            assert!(told.kept == kept || ranks > 3, "{ranks} {memory} {told:?}");
            assert!(kept || told.slabs > 1 || ranks > 3, "{told:?}");
        }
    }
}

#[test]
fn after_every_step_its_values_are_there() {
    let (_, edges, source, mut expected) = triangles(500);
    let pairs: Vec<u32> = contents(&edges);
    let pairs: Vec<[u32; 2]> = pairs.as_chunks::<2>().0.to_vec();
    let mut after_each = Vec::new();
    for done in 0..3 {
        let sweep = EdgeSweep {
            done,
            steps: done + 1,
            step_size: 0.25,
        };
        sweep_in_memory(&pairs, &mut expected, 1, &sweep);
        after_each.push(expected.clone());
    }
    let seen = std::sync::Mutex::new(Vec::new());
    let after = |step: u64, values: &Array| {
        let found = contents::<f64>(values);
        assert!(found == after_each[step as usize - 1], "{step}");
        seen.lock().unwrap().push(step);
        Ok(())
    };
    swept::<f64>(&case_of(2, 1 << 20, 3), &edges, &source, &after).unwrap();
    let mut seen = seen.into_inner().unwrap();
    seen.sort_unstable();
    assert_eq!(seen, [1, 1, 2, 2, 3, 3]);
    // What fails there fails the sweep.
    let fails = |step: u64, _: &Array| match step {
        2 => Err(Error::Invalid("enough".into())),
        _ => Ok(()),
    };
    let error = swept::<f64>(&case_of(3, 1 << 20, 3), &edges, &source, &fails).unwrap_err();
    assert!(error.to_string().contains("enough"), "{error}");
}

#[test]
fn nodes_that_do_not_exist_are_told_with_their_edge() {
    let source = array::<f64>("nodes", &[10], "row");
    let edges = array::<i64>("edges", &[40, 2], "row");
    for (node, told) in [
        (
            10,
            "edges: edge 33 names node 10, but nodes have the numbers 0 to 9",
        ),
        (
            -1,
            "edges: edge 33 names node -1, but nodes have the numbers 0 to 9",
        ),
    ] {
        let mut numbers = vec![0i64; 80];
        numbers[67] = node;
        fill(&edges, &numbers);
        for ranks in [1, 2, 5] {
            let case = case_of(ranks, 1 << 20, 2);
            let error = swept::<f64>(&case, &edges, &source, &|_, _| Ok(())).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
        }
    }
}

#[test]
fn what_is_no_mesh_is_refused() {
    let case = case_of(2, 1 << 20, 2);
    let good = array::<u32>("edges", &[3, 2], "row");
    let nodes = array::<f64>("nodes", &[4], "row");
    let wrong = |edges: &Array, nodes: &Array| {
        let values = [0, 1].map(|_| nodes.clone());
        let sweep = EdgeSweep {
            done: 0,
            steps: 1,
            step_size: 0.5,
        };
        outcore::run(2, |comm| {
            let resources = Resources::of(MemoryBudget::of(1 << 20));
            let values = [&values[0], &values[1]];
            sweep_edges(comm, edges, values, &sweep, &resources, &|_, _| Ok(()))
        })
        .unwrap_err()
        .to_string()
    };
    for edges in [
        array::<u32>("edges", &[3, 3], "row"),
        array::<u32>("edges", &[6], "row"),
        array::<f64>("edges", &[3, 2], "row"),
    ] {
        let message = wrong(&edges, &nodes);
        assert!(message.contains("pairs of node numbers"), "{message}");
    }
    let message = wrong(&good, &array::<i32>("nodes", &[4], "row"));
    assert!(message.contains("values of type f32 or f64"), "{message}");
    let message = wrong(&good, &array::<f64>("nodes", &[4, 2], "column"));
    assert!(message.contains("row order"), "{message}");
    let little = Case {
        memory: 100 << 10,
        ..case
    };
    let error = swept::<f64>(&little, &good, &nodes, &|_, _| Ok(())).unwrap_err();
    let told = "the sweep over edges needs at least 128 KiB of memory";
    assert!(error.to_string().contains(told), "{error}");
}

#[test]
fn a_sweep_goes_on_from_a_checkpoint_on_another_number_of_ranks() {
    let (mesh, edges, source, mut expected) = triangles(3000);
    let pairs: Vec<u32> = contents(&edges);
    let pairs: Vec<[u32; 2]> = pairs.as_chunks::<2>().0.to_vec();
    let sweep = |done: u64, steps: u64| EdgeSweep {
        done,
        steps,
        step_size: 0.25,
    };
    sweep_in_memory(&pairs, &mut expected, 1, &sweep(0, 11));
    let directory = tempfile::tempdir().unwrap();
    let directory = directory.path().join("steps");
    let directory = directory.to_str().unwrap();
    let values = [0, 1].map(|_| array::<f64>("values", &[3000], "row"));
    let values = [&values[0], &values[1]];
    let resources = Resources::of(MemoryBudget::of(2 << 20));
    let saved = |comm: &Comm, steps: u64, step_size: f64, edges: u64| {
        Ok::<_, Error>(SweepCheckpoints {
            series: Checkpoints::open(comm, directory)?.keep(2),
            every: 3,
            sweep: EdgeSweep {
                step_size,
                ..sweep(0, steps)
            },
            edges,
            resources: &resources,
        })
    };
    // 5 ranks fail after 8 steps, of which 6 are saved.
    let error = outcore::run(5, |comm| {
        let saved = saved(comm, 11, 0.25, mesh.edges())?;
        assert_eq!(saved.restore(comm, values[0])?, None);
        copy_nodes(comm, &source, values[0], &resources)?;
        let after = |step: u64, values: &Array| match step {
            8 => Err(Error::Invalid("enough".into())),
            _ => saved.after(comm, step, values),
        };
        sweep_edges(comm, &edges, values, &sweep(0, 11), &resources, &after)
    });
    assert!(error.unwrap_err().to_string().contains("enough"));
    // 3 ranks go on.
    let told = outcore::run(3, |comm| {
        let saved = saved(comm, 11, 0.25, mesh.edges())?;
        let done = saved.restore(comm, values[0])?.unwrap();
        assert_eq!(done, 6);
        let after = |step: u64, values: &Array| saved.after(comm, step, values);
        sweep_edges(comm, &edges, values, &sweep(done, 11), &resources, &after)
    });
    assert!(contents::<f64>(values[told.unwrap()[0].holder]) == expected);
    // The last two are kept.
    let list = Checkpoints::existing(directory).unwrap().list().unwrap();
    let names: Vec<&str> = list.iter().map(|entry| entry.name.as_str()).collect();
    assert_eq!(names, ["step-000000009", "step-000000011"]);
    // Other sweeps do not go on from there.
    let other = array::<f64>("values", &[3000, 1], "row");
    for (steps, step_size, edges, values, told) in [
        (
            11,
            0.5,
            mesh.edges(),
            values[0],
            "of the length 0.25, not 0.5",
        ),
        (
            11,
            0.25,
            5,
            values[0],
            "but the mesh has 5 edges and 3000 f64 nodes",
        ),
        (11, 0.25, mesh.edges(), &other, "edges and 3000x1 f64 nodes"),
        (10, 0.25, mesh.edges(), values[0], "saved after 11 steps"),
    ] {
        let error = outcore::run(2, |comm| {
            saved(comm, steps, step_size, edges)?.restore(comm, values)
        });
        let error = error.unwrap_err().to_string();
        assert!(error.contains(told), "{error}");
    }
}
