//! `outcore mesh` and `outcore edge-sweep`, with checkpoints and without.

use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;
use std::time::{Duration, Instant};

use crate::program::Place;

fn floats(place: &Place, name: &str) -> Vec<f64> {
    let bytes = place.npy(name);
    let numbers = bytes.as_chunks::<8>().0.iter();
    numbers.map(|number| f64::from_ne_bytes(*number)).collect()
}

/// The .npy file of an array of whole numbers, as f64.
fn whole_numbers(place: &Place, name: &str, values: impl Iterator<Item = f64>) {
    let data: Vec<u8> = values.flat_map(f64::to_ne_bytes).collect();
    place.ok(&format!(
        "create {name} --shape {} --type f64",
        data.len() / 8
    ));
    let header = place.bytes(name).len() - data.len();
    let mut bytes = place.bytes(name);
    bytes[header..].copy_from_slice(&data);
    place.write(name, bytes);
}

/// A mesh of `count` nodes in edges.npy and nodes.npy; the values after `steps`.
fn mesh(place: &Place, count: u64, steps: usize) -> Vec<f64> {
    let told = place.ok(&format!(
        "mesh edges.npy random.npy --nodes {count} --seed 3 --ranks 2"
    ));
    assert!(told.starts_with("edges.npy: "), "{told}");
    let mut values: Vec<f64> = (0..count).map(|node| (node * 37 % 1001) as f64).collect();
    whole_numbers(place, "nodes.npy", values.iter().copied());
    let edges = place.npy("edges.npy");
    let edges: Vec<u32> = edges
        .as_chunks::<4>()
        .0
        .iter()
        .map(|number| u32::from_ne_bytes(*number))
        .collect();
    for _ in 0..steps {
        let old = values.clone();
        for edge in edges.as_chunks::<2>().0 {
            let [a, b] = edge.map(|node| node as usize);
            let amount = 0.125 * (old[b] - old[a]);
            values[a] += amount;
            values[b] -= amount;
        }
    }
    values
}

#[test]
fn any_number_of_ranks_and_any_memory_give_the_same() {
    let place = Place::new();
    let expected = mesh(&place, 20_000, 6);
    place.ok("convert edges.npy column.oc --layout column");
    for ranks in [1, 2, 3, 5] {
        for (memory, how) in [
            ("128KiB", "schedules made anew in each step"),
            ("8MiB", "schedules kept for all steps"),
        ] {
            for edges in ["edges.npy", "column.oc"] {
                let memory = match memory {
                    "128KiB" => format!("{}KiB", 128 * ranks),
                    other => other.to_string(),
                };
                let told = place.ok(&format!(
                    "edge-sweep {edges} nodes.npy out.npy --steps 6 --step-size 0.125 --force \
                     --ranks {ranks} --memory {memory}"
                ));
                assert!(told.starts_with("6 steps over 594"), "{told}");
                assert!(told.contains("between 20000 f64 nodes in "), "{told}");
                assert!(told.contains(how) || ranks == 5, "{told}");
                assert!(told.contains(" million edges/s; peak memory "), "{told}");
                assert!(floats(&place, "out.npy") == expected, "{ranks} {memory}");
            }
        }
    }
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn nodes_may_have_several_values() {
    let place = Place::new();
    place.ok("mesh edges.oc nodes.oc --nodes 500 --type f32 --components 3");
    assert!(place.ok("info nodes.oc").contains("500x3"));
    let told = place.ok("edge-sweep edges.oc nodes.oc a.npy --steps 3 --ranks 1");
    assert!(told.contains("500x3 f32 nodes in 1 slab"), "{told}");
    // The layout of the nodes does not matter.
    place.ok("convert nodes.oc tiled.oc --layout tiled:64x2");
    place.ok("edge-sweep edges.oc tiled.oc b.npy --steps 3 --ranks 1");
    assert_eq!(place.npy("a.npy"), place.npy("b.npy"));
}

/// Names of the checkpoints in a directory.
fn checkpoints(place: &Place, directory: &str) -> Vec<String> {
    let entries = std::fs::read_dir(place.path(directory))
        .into_iter()
        .flatten();
    let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names: Vec<String> = names.filter(|name| !name.starts_with('.')).collect();
    names.sort();
    names
}

#[test]
fn a_killed_sweep_goes_on_with_another_number_of_ranks() {
    let place = Place::new();
    // Whole numbers below 1024 are multiples of 2^-36 after 12 steps of an
    // eighth: exact in any order.
    let expected = mesh(&place, 30_000, 9);
    let line = |ranks: u32, more: &str| {
        format!(
            "edge-sweep edges.npy nodes.npy out.npy --steps 9 --step-size 0.125 --memory 1MiB \
             --ranks {ranks} --checkpoint saved --every 2 --keep 3 {more}"
        )
    };
    let mut killed = 0;
    for (round, ranks) in [4, 2, 3, 5, 1].into_iter().enumerate() {
        let before = checkpoints(&place, "saved");
        let line = line(ranks, if round == 0 { "" } else { "--restart" });
        let mut child = place
            .command(line.split_whitespace())
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("outcore starts");
        let begun = Instant::now();
        while checkpoints(&place, "saved") == before
            && child.try_wait().expect("a child").is_none()
            && begun.elapsed() < Duration::from_secs(60)
        {
            std::thread::sleep(Duration::from_micros(200));
        }
        child.kill().expect("it can be killed");
        killed += usize::from(child.wait().expect("it ends").signal() == Some(9));
        assert!(!checkpoints(&place, "saved").is_empty());
        if place.path("out.npy").exists() {
            break;
        }
    }
    assert!(killed > 0);
    let told = place.ok(&line(3, "--restart --force"));
    assert!(
        told.starts_with("steps ") || told.starts_with("all 9 steps"),
        "{told}"
    );
    assert!(floats(&place, "out.npy") == expected);
    let last = checkpoints(&place, "saved");
    assert_eq!(last.last().unwrap(), "step-000000009");
    // Whoever is killed between a new one and the removal of the oldest leaves
    // one too many, until one is saved by somebody who lives on.
    assert!(last.len() <= 3 + killed);
    // A finished sweep is told to be so, and can be made longer.
    let told = place.ok(&line(2, "--restart --force"));
    assert!(told.starts_with("all 9 steps over "), "{told}");
    assert!(floats(&place, "out.npy") == expected);
    let longer = line(2, "--restart --force").replace("--steps 9", "--steps 12");
    assert!(place.ok(&longer).starts_with("steps 10 to 12 over "));
    assert_eq!(checkpoints(&place, "saved").len(), 3);
    place.ok(
        "edge-sweep edges.npy nodes.npy whole.npy --steps 12 --step-size 0.125 --memory 1MiB \
         --ranks 2",
    );
    assert!(floats(&place, "out.npy") == floats(&place, "whole.npy"));
}

#[test]
fn what_is_wrong_is_said() {
    let place = Place::new();
    mesh(&place, 400, 0);
    let sweep = |edges: &str, nodes: &str, more: &str| {
        format!("edge-sweep {edges} {nodes} out.npy --steps 2 --memory 1MiB --ranks 2 {more}")
    };
    // Node 399 is not among 399.
    place.ok("create few.oc --shape 399 --type f64");
    let message = place.fails(1, &sweep("edges.npy", "few.oc", ""));
    assert!(
        message.contains(" names node 399, but nodes have the numbers 0 to 398"),
        "{message}"
    );
    assert!(message.contains("edges.npy: edge "), "{message}");
    place.ok("create three.oc --shape 9x3 --type u32");
    place.ok("create real.oc --shape 9x2 --type f32");
    for edges in ["three.oc", "real.oc", "nodes.npy"] {
        let message = place.fails(1, &sweep(edges, "nodes.npy", ""));
        assert!(
            message.contains("pairs of node numbers, of shape Mx2"),
            "{message}"
        );
    }
    let message = place.fails(1, &sweep("edges.npy", "edges.npy", ""));
    assert!(message.contains("values of type f32 or f64"), "{message}");
    let message = place.fails(1, &sweep("edges.npy", "nodes.npy", "--step-size nan"));
    assert!(
        message.contains("length of a step must be a number"),
        "{message}"
    );
    let little = sweep("edges.npy", "nodes.npy", "").replace("1MiB", "100KiB");
    let message = place.fails(1, &little);
    assert!(message.contains("needs at least 128 KiB"), "{message}");
    for more in ["--restart", "--every 2", "--keep 2"] {
        let message = place.fails(2, &sweep("edges.npy", "nodes.npy", more));
        assert!(message.contains("--checkpoint"), "{message}");
    }
    assert!(!place.path("out.npy").exists());
    // Checkpoints of others are neither used nor mixed with.
    place.ok(&sweep("edges.npy", "nodes.npy", "--checkpoint saved"));
    let again = "--checkpoint saved --force";
    let message = place.fails(1, &sweep("edges.npy", "nodes.npy", again));
    assert!(message.contains("--restart goes on"), "{message}");
    let other = "--checkpoint saved --force --restart --step-size 0.3";
    let message = place.fails(1, &sweep("edges.npy", "nodes.npy", other));
    assert!(message.contains("of the length 0.1, not 0.3"), "{message}");
    // A damaged one is not believed.
    let data = place.path("saved/step-000000002/values.oc/data.bin");
    let mut bytes = std::fs::read(&data).unwrap();
    bytes[100] ^= 1;
    std::fs::write(&data, bytes).unwrap();
    let message = place.fails(
        1,
        &sweep(
            "edges.npy",
            "nodes.npy",
            "--checkpoint saved --force --restart",
        ),
    );
    assert!(
        message.contains("every checkpoint here is damaged"),
        "{message}"
    );
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn meshes_are_the_same_on_any_number_of_ranks() {
    let place = Place::new();
    place.ok("mesh a.npy x.npy --nodes 1000 --seed 5");
    for ranks in [2, 3, 7] {
        place.ok(&format!(
            "mesh b.npy y.npy --nodes 1000 --seed 5 --ranks {ranks} --force"
        ));
        assert_eq!(place.bytes("a.npy"), place.bytes("b.npy"));
        assert_eq!(place.bytes("x.npy"), place.bytes("y.npy"));
    }
    place.ok("mesh one.npy z.npy --nodes 1");
    assert!(place.npy("one.npy").is_empty());
    let message = place.fails(2, "mesh c.npy d.npy --nodes 10 --type i32");
    assert!(message.contains("f32 or f64"), "{message}");
}

#[test]
fn both_arrays_of_a_mesh_may_be_in_one_file() {
    let place = Place::new();
    place.ok("mesh edges.npy nodes.npy --nodes 500");
    for line in [
        "mesh m.h5:/edges m.h5:/nodes --nodes 500",
        "mesh m.h5:/edges m.h5:/nodes --nodes 500 --force --ranks 2",
    ] {
        place.ok(line);
        for name in ["edges", "nodes"] {
            place.ok(&format!("convert m.h5:/{name} {name}2.npy --force"));
            let (one, other) = (format!("{name}.npy"), format!("{name}2.npy"));
            assert_eq!(place.bytes(&one), place.bytes(&other));
        }
    }
    // Nothing is made if the second cannot be.
    let message = place.fails(1, "mesh new.npy m.h5:/nodes --nodes 500");
    assert!(message.contains("m.h5:/nodes exists already"), "{message}");
    place.fails(1, "mesh new.npy nodes.xyz --nodes 500");
    assert!(!place.path("new.npy").exists());
}
