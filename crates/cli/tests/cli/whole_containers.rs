//! `convert --all`: what it refuses, and how it goes on.

use crate::program::Place;

/// A container of three arrays in two groups.
fn container() -> Place {
    let place = Place::new();
    for (name, shape) in [("a", "40x30"), ("g/b", "7x8x9"), ("g/c", "100")] {
        place.ok(&format!(
            "create in.zarr/{name} --shape {shape} --type f32 --fill index"
        ));
    }
    place
}

fn same(place: &Place, output: &str, separator: &str) {
    for name in ["a", "g/b", "g/c"] {
        place.ok(&format!("diff in.zarr/{name} {output}{separator}{name}"));
    }
}

#[test]
fn every_array_gets_its_path() {
    let place = container();
    let told = place.ok("convert in.zarr out.h5 --all --chunks 8x8 --ranks 2");
    assert!(told.contains("3 arrays in out.h5"), "{told}");
    same(&place, "out.h5", ":/");
    let info = place.ok("info out.h5:/a --json");
    assert!(info.contains("tiled:8x8"), "{info}");
    let info = place.ok("info out.h5:/g/b --json");
    assert!(!info.contains("8x8"), "{info}");
    place.ok("convert out.h5 again.zarr --all --verify --type f64");
    let told = place.ok("diff in.zarr/g/b again.zarr/g/b");
    assert!(told.contains("f64") || !told.is_empty(), "{told}");
    assert_eq!(place.names(), ["again.zarr", "in.zarr", "out.h5"]);
}

#[test]
fn what_exists_stays_unless_it_is_continued() {
    let place = container();
    for (output, separator) in [("out.zarr", "/"), ("out.h5", ":/")] {
        place.ok(&format!("convert in.zarr {output} --all"));
        let problem = place.fails(1, &format!("convert in.zarr {output} --all"));
        assert!(problem.contains("exists already"), "{problem}");
        let told = place.ok(&format!("convert in.zarr {output} --all --resume"));
        assert_eq!(told.matches("made before").count(), 3, "{told}");
        same(&place, output, separator);
    }
    // One is missing.
    std::fs::remove_dir_all(place.path("out.zarr/g/b")).unwrap();
    let told = place.ok("convert in.zarr out.zarr --all --resume --verify");
    assert_eq!(told.matches("made before").count(), 2, "{told}");
    same(&place, "out.zarr", "/");
    // Another of that name.
    std::fs::remove_dir_all(place.path("out.zarr/g/b")).unwrap();
    place.ok("create out.zarr/g/b --shape 3x3 --type f32");
    let problem = place.fails(1, "convert in.zarr out.zarr --all --resume");
    assert!(problem.contains("g/b"), "{problem}");
}

#[test]
fn an_array_that_cannot_be_made_leaves_those_that_are() {
    let place = container();
    place.ok("write in.zarr/g/b 0,0,0 --fill nan");
    let problem = place.fails(1, "convert in.zarr out.zarr --all --type i32 --ranks 2");
    assert!(
        problem.contains("1 of 3 arrays are complete in out.zarr") && problem.contains("--resume"),
        "{problem}"
    );
    let listed = place.ok("ls out.zarr");
    assert!(listed.contains("a ") && !listed.contains("b "), "{listed}");
    place.ok("write in.zarr/g/b 0,0,0 --fill 0");
    place.ok("convert in.zarr out.zarr --all --type i32 --resume");
    same(&place, "out.zarr", "/");
}

#[test]
fn wrong_names_are_refused() {
    let place = container();
    for (line, said) in [
        ("convert in.zarr out.npy --all", "--all makes a container"),
        ("convert in.zarr out.h5:/g --all", "ends in .zarr or .h5"),
        ("convert in.zarr out.zarr --all --force", "--force"),
    ] {
        let problem = place.fails(2, line);
        assert!(problem.contains(said), "{problem}");
    }
    for (line, said) in [
        ("convert in.zarr/a out.zarr --all", "leave --all out"),
        (
            "convert in.zarr in.zarr --all",
            "take the place of the input",
        ),
        (
            "convert in.zarr in.zarr/g/new --all",
            "take the place of the input",
        ),
        ("convert missing.zarr out.zarr --all", "missing.zarr"),
    ] {
        let problem = place.fails(1, line);
        assert!(problem.contains(said), "{problem}");
    }
    // What to do is said where it is missing.
    let problem = place.fails(1, "convert in.zarr out.npy");
    assert!(problem.contains("--all"), "{problem}");
    assert_eq!(place.names(), ["in.zarr"]);
}
