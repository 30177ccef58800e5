//! Names that are awkward, and names that are taken.

use std::os::unix::ffi::OsStrExt;

use crate::program::{Place, complaint};

#[test]
fn any_name_is_taken_as_it_is() {
    let place = Place::new();
    for stem in [
        "with space",
        "a?b&c=d",
        "50%",
        "%r",
        "ünï–ço∂é",
        "raw",
        "x.y",
        "'q'",
        "a#b",
        "*",
    ] {
        // In what is made, %r would become the rank.
        let made = stem.replace("%r", "%");
        for ending in ["oc", "npy"] {
            let (name, copy) = (
                format!("{stem}.{ending}"),
                format!("copy of {made}.{ending}"),
            );
            place.ok_args(&[
                "create", &name, "--shape", "2x3", "--type", "u8", "--fill", "index",
            ]);
            assert!(place.ok_args(&["info", &name]).contains(&name));
            assert_eq!(place.ok_args(&["read", &name, "1"]), "3 4 5\n");
            place.ok_args(&["read", &name, "-o", &copy]);
            place.ok_args(&["write", &name, "--fill", "0"]);
            place.ok_args(&["write", &name, "--from", &copy, "--ranks", "2"]);
            assert_eq!(place.ok_args(&["read", &name]), "0 1 2\n3 4 5\n", "{name}");
        }
        let plain = format!("{made}.data");
        let raw = format!("raw:{plain}?shape=2x3&type=u8");
        place.ok_args(&["read", &format!("{stem}.oc"), "-o", &plain]);
        assert_eq!(place.bytes(&plain), [0, 1, 2, 3, 4, 5], "{plain}");
        assert_eq!(place.ok_args(&["read", &raw, "1"]), "3 4 5\n");
        place.ok_args(&["write", &format!("{stem}.npy"), "--from", &plain]);
        place.ok_args(&["create", &raw, "--fill", "7", "--force"]);
        assert_eq!(place.bytes(&plain), [7; 6], "{plain}");
        let text = format!("{made}.txt");
        place.ok_args(&["read", &format!("{stem}.oc"), "-o", &text]);
        assert_eq!(place.bytes(&text), b"0 1 2\n3 4 5\n", "{text}");
    }
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn names_may_begin_with_a_dash_behind_two() {
    let place = Place::new();
    place.ok("create --shape 3 --type u8 --fill index -- -a.npy");
    assert!(place.ok("info -- -a.npy").contains("name         -a.npy\n"));
    assert_eq!(place.ok("read -- -a.npy -1"), "2\n");
    assert_eq!(place.ok("read ./-a.npy -1"), "2\n");
    place.ok("read --output=-b.npy -- -a.npy -2:");
    place.ok("write --from=-b.npy -- -a.npy -2:");
    assert_eq!(place.names(), ["-a.npy", "-b.npy"]);
    place.fails(2, "create -a.npy --shape 3 --type u8");
}

#[test]
fn a_name_that_is_no_text_is_refused() {
    let place = Place::new();
    let name = std::ffi::OsStr::from_bytes(b"a\xffb.npy");
    let output = place
        .command([std::ffi::OsStr::new("info"), name])
        .output()
        .unwrap();
    assert!(complaint(&output, 2, "info").contains("UTF-8"));
}

#[test]
fn names_in_other_directories_and_with_a_slash_at_the_end() {
    let place = Place::new();
    place.inside("deep/er");
    place.ok("create deep/er/a.oc/ --shape 3 --type u8 --fill index");
    assert_eq!(place.ok("read deep/er/a.oc/"), "0 1 2\n");
    place.ok("read deep/er/a.oc -o deep/a.npy");
    let absolute = place.path("deep/b.bin");
    place.ok_args(&["read", "deep/a.npy", "-o", absolute.to_str().unwrap()]);
    assert_eq!(place.bytes("deep/b.bin"), [0, 1, 2]);
    assert_eq!(place.inside("deep").names(), ["a.npy", "b.bin", "er"]);
    for line in [
        "create nowhere/a.oc --shape 3 --type u8",
        "read deep/a.npy -o nowhere/a.npy",
        "read deep/a.npy -o nowhere/a.bin",
        "read deep/a.npy -o nowhere/a.txt",
    ] {
        let message = place.fails(1, line);
        let told = message.contains("No such file") || message.contains("there is no directory");
        assert!(told && message.contains("nowhere"), "{message}");
    }
    assert_eq!(place.names(), ["deep"]);
}

#[test]
fn what_exists_is_replaced_only_by_force() {
    let place = Place::new();
    place.ok("create a.oc --shape 3 --type u8 --fill index");
    for output in ["o.npy", "o.oc", "o.bin", "o.txt", "o.csv"] {
        place.ok(&format!("read a.oc -o {output}"));
        let data = if output == "o.oc" {
            "o.oc/data.bin"
        } else {
            output
        };
        let before = place.bytes(data);
        let message = place.fails(1, &format!("read a.oc 0:2 -o {output}"));
        assert_eq!(
            message,
            format!("outcore: {output} exists already; --force replaces it\n")
        );
        assert_eq!(place.bytes(data), before);
        place.ok(&format!("read a.oc 0:2 -o {output} --force"));
        assert!(place.bytes(data) != before, "{output}");
    }
    for name in ["c.oc", "c.npy"] {
        let create = format!("create {name} --shape 3 --type u8");
        place.ok(&format!("{create} --fill 1"));
        let message = place.fails(1, &create);
        assert!(
            message.contains(name) && message.contains("--force"),
            "{message}"
        );
        assert_eq!(place.ok(&format!("read {name}")), "1 1 1\n");
        place.ok(&format!("{create} --fill 2 --force"));
        assert_eq!(place.ok(&format!("read {name}")), "2 2 2\n");
        // A failure before the end leaves the old one.
        place.fails(
            1,
            &format!("create {name} --shape 4 --type u8 --fill 300 --force"),
        );
        assert_eq!(place.ok(&format!("read {name}")), "2 2 2\n");
    }
    // A dangling link is something, too.
    for output in ["l.npy", "l.txt", "l.bin"] {
        std::os::unix::fs::symlink("nowhere", place.path(output)).unwrap();
        place.fails(1, &format!("read a.oc -o {output}"));
        assert!(place.path(output).is_symlink());
    }
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn an_array_does_not_replace_itself() {
    let place = Place::new();
    for name in ["a.oc", "a.npy"] {
        place.ok(&format!("create {name} --shape 5 --type u8 --fill index"));
        let line = format!("read {name} ::2 -o {name} --force --ranks 2");
        assert!(
            place
                .fails(1, &line)
                .contains("take the place of the input")
        );
        assert_eq!(place.ok(&format!("read {name}")), "0 1 2 3 4\n");
    }
}

#[test]
fn directories_are_not_overwritten_by_files() {
    let place = Place::new();
    place.ok("create a.oc --shape 3 --type u8");
    for output in ["d.npy", "d.bin", "d.txt"] {
        place.inside(output).write("kept", "kept");
        let message = place.fails(1, &format!("read a.oc -o {output} --force"));
        assert!(message.contains(output), "{message}");
        assert_eq!(place.inside(output).names(), ["kept"]);
    }
    place.write("f.oc", "kept");
    place.fails(1, "read a.oc -o f.oc --force");
    assert_eq!(place.bytes("f.oc"), b"kept");
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

/// A container stands for all arrays in it, however it is named.
#[test]
fn arrays_of_a_container_are_found_under_their_whole_names() {
    let place = Place::new();
    let make = "--shape 4x5 --type u8 --fill index";
    place.ok(&format!("create x.zarr/g/t {make} --chunks 2x2"));
    place.ok(&format!("create zarr2:group.zarr/t {make} --chunks 2x2"));
    std::fs::rename(place.path("group.zarr"), place.path("group")).unwrap();
    place.ok(&format!("create x.h5:/g/t {make}"));
    place.ok(&format!("create x.nc:t {make}"));
    let here = place.root().display().to_string();
    for (name, array) in [
        ("x.zarr".to_owned(), "x.zarr/g/t".to_owned()),
        ("x.zarr/".into(), "x.zarr/g/t".into()),
        ("./x.zarr/g".into(), "./x.zarr/g/t".into()),
        (
            format!("file://{here}/x.zarr"),
            format!("{here}/x.zarr/g/t"),
        ),
        ("zarr2:group".into(), "group/t".into()),
        ("x.h5".into(), "x.h5:/g/t".into()),
        (format!("file://{here}/x.h5"), format!("{here}/x.h5:/g/t")),
        ("x.nc".into(), "x.nc:t".into()),
    ] {
        let told = place.ok(&format!("verify {name}"));
        let begins = told.starts_with(&format!("{array}  "));
        assert!(begins && told.contains("1 of 1 without fault"), "{told}");
        let told = place.ok(&format!("repair-report {name}"));
        assert_eq!(told, format!("{array}: nothing to repair\n"));
        assert_eq!(place.ok(&format!("read {array} 0")), "0 1 2 3 4\n");
    }
}

/// Nothing that a file holds reaches the terminal as something that it would obey.
#[test]
fn control_characters_of_files_are_shown() {
    let place = Place::new();
    let make = "--shape 4 --type u8";
    place.ok(&format!("create x.zarr/t {make}"));
    place.ok(&format!("create x.zarr/bad {make}"));
    place.ok_args(&["create", "x.h5:/e\x1b[2J", "--shape", "4", "--type", "u8"]);
    let change = |file: &str, name: &str, value: serde_json::Value| {
        let mut document: serde_json::Value = serde_json::from_slice(&place.bytes(file)).unwrap();
        document[name] = value;
        place.write(file, document.to_string());
    };
    let attributes = serde_json::json!({ "key\x1b[2J\u{9b}2J": "value\x1b[2J\u{9b}2J" });
    change("x.zarr/zarr.json", "attributes", attributes.clone());
    change("x.zarr/t/zarr.json", "attributes", attributes);
    let names = serde_json::json!(["axis\x1b[2J"]);
    change("x.zarr/t/zarr.json", "dimension_names", names);
    change("x.zarr/bad/zarr.json", "data_type", "what\u{9b}2J".into());
    for (line, status, shown) in [
        ("ls x.zarr", 0, "key\\u{1b}[2J\\u{9b}2J: "),
        ("ls x.zarr", 0, "axes axis\\u{1b}[2J"),
        ("ls x.zarr", 0, "what\\u{9b}2J"),
        ("ls x.h5", 0, "e\\u{1b}[2J"),
        ("info x.zarr/t", 0, "\\u{9b}2J"),
        ("verify x.h5", 0, "x.h5:/e\\u{1b}[2J  "),
        ("verify x.zarr", 1, "what\\u{9b}2J"),
        ("repair-report x.h5", 0, "x.h5:/e\\u{1b}[2J: "),
        ("repair-report x.zarr", 1, "what\\u{9b}2J"),
    ] {
        let output = place.command(line.split(' ')).output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert_eq!(output.status.code(), Some(status), "{line}: {told}");
        assert!(told.contains(shown), "{line}: {told:?}");
        let obeyed = told
            .chars()
            .any(|letter| letter.is_control() && letter != '\n');
        assert!(!obeyed, "{line}: {told:?}");
    }
}
