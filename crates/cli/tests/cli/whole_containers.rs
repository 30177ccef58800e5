//! `convert --all`: what it makes, and what it refuses.

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
fn what_exists_stays() {
    let place = container();
    for (output, separator) in [("out.zarr", "/"), ("out.h5", ":/"), ("out.nc4", ":/")] {
        place.ok(&format!("convert in.zarr {output} --all"));
        for line in ["", " --resume"] {
            let problem = place.fails(1, &format!("convert in.zarr {output} --all{line}"));
            assert!(problem.contains("exists already"), "{problem}");
        }
        same(&place, output, separator);
    }
}

#[test]
fn an_array_that_cannot_be_made_leaves_those_that_are() {
    let place = container();
    place.ok("write in.zarr/g/b 0,0,0 --fill nan");
    let line = "convert in.zarr out.zarr --all --type i32";
    for more in [" --ranks 2", " --resume"] {
        let problem = place.fails(1, &format!("{line}{more}"));
        assert!(
            problem.contains("1 of 3 arrays are complete in out.zarr")
                && problem.contains("--resume"),
            "{problem}"
        );
    }
    let listed = place.ok("ls out.zarr");
    assert!(listed.contains("a ") && !listed.contains("b "), "{listed}");
    place.ok("write in.zarr/g/b 0,0,0 --fill 0");
    let problem = place.fails(1, &format!("{line} --resume"));
    assert!(
        problem.contains("its input has changed") && problem.contains(".out.zarr.filling"),
        "{problem}"
    );
    // Without what was begun, its note means nothing.
    std::fs::remove_dir_all(place.path("out.zarr")).unwrap();
    place.ok(line);
    same(&place, "out.zarr", "/");
    assert_eq!(place.names(), ["in.zarr", "out.zarr"]);
}

#[test]
fn wrong_names_are_refused() {
    let place = container();
    for (line, said) in [
        ("convert in.zarr out.npy --all", "--all makes a container"),
        (
            "convert in.zarr out.h5:/g --all",
            "ends in .zarr, .h5 or .nc4",
        ),
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

#[test]
fn nothing_is_begun_where_no_container_can_be() {
    let place = container();
    place.ok("create array.zarr --shape 4 --type f32");
    place.ok("create zarr2:second.zarr/a --shape 4 --type f32");
    for (output, said) in [
        ("array.zarr/sub", "array.zarr is an array"),
        ("second.zarr/sub", "of Zarr version 2"),
    ] {
        for more in ["", " --resume"] {
            let problem = place.fails(1, &format!("convert in.zarr {output} --all{more}"));
            assert!(
                problem.contains(said) && !problem.contains("--resume"),
                "{problem}"
            );
        }
        let folder = place.path(output.split('/').next().unwrap());
        let left = std::fs::read_dir(folder).unwrap();
        let left: Vec<_> = left.map(|entry| entry.unwrap().file_name()).collect();
        let of_it = |name: &std::ffi::OsString| name.to_string_lossy().contains("sub");
        assert!(!left.iter().any(of_it), "{left:?}");
    }
    place.ok("convert in.zarr zarr2:second.zarr/sub --all");
    same(&place, "second.zarr/sub", "/");
}
