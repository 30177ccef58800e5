//! What each command prints: help, `info`, `create`, `demo` and `bench`.

use std::process::Stdio;

use serde_json::{Value, json};

use crate::program::{Place, complaint};

#[test]
fn help_and_version() {
    let place = Place::new();
    assert!(place.ok("--version").starts_with("outcore "));
    for line in [
        "--help",
        "-h",
        "help",
        "create --help",
        "info -h",
        "read --help",
        "write -h",
        "demo --help",
        "bench --help",
        "bench io --help",
        "bench sections --help",
        "bench collective --help",
        "explain --help",
        "calibrate --help",
        "checkpoint --help",
        "checkpoint prune -h",
        "help read",
    ] {
        let text = place.ok(line);
        assert!(text.contains("Usage: outcore"), "{line}: {text}");
    }
    assert!(
        place
            .ok("--help")
            .contains("Exit status: 0 done, 1 failed, 2 wrong usage.")
    );
    for command in [
        "create",
        "info",
        "read",
        "write",
        "explain",
        "calibrate",
        "checkpoint",
        "checkpoint list",
        "checkpoint verify",
        "checkpoint prune",
        "demo",
        "bench io",
        "bench sections",
    ] {
        assert!(
            place.ok(&format!("{command} --help")).contains("Examples:"),
            "{command}"
        );
    }
}

#[test]
fn info_in_json() {
    let place = Place::new();
    let info = |name: &str| -> Value {
        serde_json::from_str(&place.ok_args(&["info", name, "--json"])).expect("JSON")
    };
    place.ok_args(&[
        "create",
        "a.oc",
        "--shape",
        "3x4",
        "--type",
        "c64",
        "--layout",
        "tiled:2x2:column",
        "--byte-order",
        "big",
        "--attribute",
        "units=K",
        "--attribute",
        "n=[1, 2.5, null]",
        "--attribute",
        "text=\"7\"",
        "--attribute",
        "seven=7",
        "--attribute",
        "eq=a=b",
        "--attribute",
        "empty=",
        "--attribute",
        "seven=8",
    ]);
    assert_eq!(
        info("a.oc"),
        json!({
            "array": "a.oc", "name": "a.oc", "format": "native", "shape": [3, 4], "type": "c64",
            "byte_order": "big", "layout": "tiled:2x2:column", "elements": 12,
            "bytes": 4 * 4 * 8, "data_offset": 0, "stripes": {}, "placement": {"kind": "global"},
            // Nobody has written an element.
            "stored_bytes": place.bytes("a.oc/array.json").len(),
            "attributes": {
                "units": "K", "n": [1, 2.5, null], "text": "7", "seven": 8, "eq": "a=b",
                "empty": "",
            },
        })
    );
    place.ok("create b.npy --shape 5x2 --type i16 --layout column");
    assert_eq!(
        info("b.npy"),
        json!({
            "array": "b.npy", "name": "b.npy", "format": "npy", "shape": [5, 2], "type": "i16",
            "byte_order": if cfg!(target_endian = "big") { "big" } else { "little" },
            "layout": "column", "elements": 10, "bytes": 20, "stored_bytes": 148, "data_offset": 128,
            "stripes": {}, "placement": {"kind": "global"}, "attributes": {},
        })
    );
    place.write("c.bin", [0; 40]);
    let raw = "raw:c.bin?shape=2x2x2&type=f16&layout=axes:1,0,2&offset=24&byteorder=big";
    assert_eq!(
        info(raw),
        json!({
            "array": raw, "name": raw, "format": "raw", "shape": [2, 2, 2], "type": "f16",
            "byte_order": "big", "layout": "axes:1,0,2", "elements": 8, "bytes": 16,
            "stored_bytes": 16,
            "data_offset": 24, "stripes": {}, "placement": {"kind": "global"}, "attributes": {},
        })
    );
    place.inside("disk");
    place.ok("create s.oc --shape 9 --type u8 --stripe-unit 2KiB --stripe-directory disk");
    let stripes = &info("s.oc")["stripes"];
    assert_eq!(stripes["unit"], 2048);
    let directory = place.path("disk").canonicalize().unwrap();
    assert_eq!(stripes["directories"], json!([directory.to_str().unwrap()]));
    place.ok("create z.oc --shape scalar --type bool");
    assert_eq!(info("z.oc")["shape"], json!([]));
    assert_eq!(info("z.oc")["elements"], 1);
}

#[test]
fn info_for_people() {
    let place = Place::new();
    place.ok("create a.oc --shape 1024x3 --type f32 --attribute units=K");
    let text = place.ok("info a.oc");
    let names: Vec<&str> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    assert_eq!(
        names,
        [
            "name",
            "format",
            "shape",
            "type",
            "byte_order",
            "layout",
            "elements",
            "bytes",
            "stored_bytes",
            "data_offset",
            "placement",
            "attributes"
        ]
    );
    for line in [
        "shape        1024x3\n",
        "bytes        12288 (12 KiB)\n",
        "attributes   {\"units\":\"K\"}\n",
    ] {
        assert!(text.contains(line), "{text}");
    }
}

#[test]
fn attributes_stay_with_an_array_that_is_read_into_another() {
    let place = Place::new();
    place.ok("create a.oc --shape 4 --type u8 --attribute units=K");
    place.ok("read a.oc 1:3 -o b.oc");
    let info: Value = serde_json::from_str(&place.ok("info b.oc --json")).unwrap();
    assert_eq!(info["attributes"], json!({"units": "K"}));
    let message = place.fails(1, "create c.npy --shape 4 --type u8 --attribute units=K");
    assert!(
        message.contains("attributes") && message.contains(".oc"),
        "{message}"
    );
}

#[test]
fn create_says_what_it_made() {
    let place = Place::new();
    assert_eq!(
        place.ok("create a.oc --shape 1024x1024 --type f64"),
        "a.oc: 1024x1024 f64 in row layout, 8 MiB\n"
    );
    // NumPy's names of types, other ways to write a shape.
    for (shape, element_type) in [("2,3", "float32"), ("2X3", "int8"), ("7", "complex128")] {
        place.ok(&format!(
            "create a.oc --shape {shape} --type {element_type} --force"
        ));
    }
    let info: Value = serde_json::from_str(&place.ok("info a.oc --json")).unwrap();
    assert_eq!(info["type"], "c128");
}

#[test]
fn numpy_files_are_known_by_their_beginning_too() {
    let place = Place::new();
    place.ok("create a.npy --shape 3 --type u8 --fill index");
    std::fs::rename(place.path("a.npy"), place.path("a.dat")).unwrap();
    assert_eq!(place.ok("read a.dat"), "0 1 2\n");
}

#[test]
fn demo_that_cannot_speak_fails_and_cleans_up() {
    let place = Place::new();
    let full = std::fs::File::options()
        .write(true)
        .open("/dev/full")
        .expect("/dev/full");
    let root = place.root().to_str().unwrap();
    let output = place
        .command(["demo", "--ranks", "3", "--directory", root])
        .stdout(full)
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    let message = complaint(&output, 1, "demo");
    assert!(
        message.contains("standard output: No space left"),
        "{message}"
    );
    assert!(place.names().is_empty(), "{:?}", place.names());
    // It makes nothing in which it could leave something behind.
    place.fails(1, "demo --directory nowhere");
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn bench_prints_a_table_or_values() {
    let place = Place::new();
    let root = place.root().to_str().unwrap();
    let csv = place.ok(&format!(
        "bench io --csv --size 1MiB --repeat 1 --directory {root}"
    ));
    let mut lines = csv.lines();
    let columns = lines.next().expect("a header").split(',').count();
    assert!(columns > 5);
    let rest: Vec<&str> = lines.collect();
    assert!(rest.len() > 5);
    assert!(
        rest.iter().all(|line| line.split(',').count() == columns),
        "{csv}"
    );
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn a_plain_directory_lists_its_arrays() {
    let place = Place::new();
    place.inside("run");
    place.ok("create run/a.oc --shape 4x6 --type f32");
    place.ok("create run/b.npy --shape 3 --type u8");
    place.ok("create run/c.zarr/t --shape 3 --type u8");
    place.write("run/notes.txt", "none of these");
    place.write("run/broken.npy", "nothing");
    let told = place.ok("ls run");
    let lines: Vec<&str> = told.lines().collect();
    for (line, parts) in lines.iter().zip([
        ["run/", ""],
        ["  a.oc", "4x6 f32"],
        ["  b.npy", "3 u8"],
        ["  broken.npy", ""],
        ["  c.zarr/", ""],
    ]) {
        assert!(parts.iter().all(|part| line.contains(part)), "{told}");
    }
    assert_eq!(lines.len(), 5, "{told}");
}

#[test]
fn nobody_hears_of_ranks_who_did_not_ask_for_them() {
    let place = Place::new();
    place.ok("create a.oc --shape 64x64 --type f64");
    for line in [
        "verify none.oc",
        "repair-report none.oc",
        "transpose none.oc b.oc",
    ] {
        let message = place.fails(1, line);
        assert!(!message.contains("rank"), "{line}: {message}");
        let message = place.fails(1, &format!("{line} --ranks 2"));
        assert!(message.contains("none.oc"), "{line}: {message}");
    }
    for (line, part) in [
        ("calibrate none", "none is no directory"),
        ("info a.oc --rank 0", "are for local placement"),
        ("info a.oc --memory 1MiB", "are for local placement"),
        (
            "median a.oc b.oc --window 3x3 --memory 1KiB",
            "give more (--memory)",
        ),
    ] {
        let message = place.fails(1, line);
        assert!(message.contains(part), "{line}: {message}");
    }
}
