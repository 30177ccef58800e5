//! `outcore stats`, `outcore diff` and `outcore convert --type`.

use std::process::Command;

use crate::program::Place;

/// The interpreter is `OUTCORE_TEST_PYTHON`, or `python3`; it must have NumPy.
#[test]
fn numpy_finds_the_same() {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let place = Place::new();
    place.write("check.py", include_str!("stats_agrees.py"));
    let mut command = Command::new(&python);
    command.args(["check.py", env!("CARGO_BIN_EXE_outcore")]);
    let output = place.prepare(command).output().expect("python starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && printed.ends_with("checked to the end\n"),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn what_is_printed() {
    let place = Place::new();
    place.ok("create a.oc --shape 4x5 --type i32 --fill index");
    let text = place.ok("stats a.oc");
    for line in [
        "a.oc: 4x5 i32",
        "count      20",
        "NaN        0",
        "min        0 at [0, 0]",
        "max        19 at [3, 4]",
        "mean       9.5",
        "deviation  5.766281297335398",
        "sum        190",
    ] {
        assert!(text.lines().any(|found| found == line), "{line}\n{text}");
    }
    let text = place.ok_args(&[
        "stats", "a.oc", "1:3, ::2", "--range", "0,20", "--bins", "2",
    ]);
    assert!(text.contains("a.oc [1:3, 0:5:2]: 2x3 i32"), "{text}");
    assert!(text.contains("min        5 at [1, 0]"), "{text}");
    assert!(text.contains("1 pass"), "{text}");
    let text = place.ok("stats a.oc --plot");
    assert!(text.contains("2 passes") && text.contains('█'), "{text}");
    place.ok("stats a.oc --plot bins.svg");
    let picture = String::from_utf8(place.bytes("bins.svg")).unwrap();
    assert!(
        picture.starts_with("<svg") && picture.contains("a.oc"),
        "{picture}"
    );
    let text = place.ok("stats a.oc --axis 0");
    let rows: Vec<&str> = text.lines().collect();
    assert_eq!(rows.len(), 7, "{text}");
    let columns: Vec<&str> = rows[3].split_whitespace().collect();
    assert_eq!(columns[..6], ["[2]", "4", "0", "2", "17", "9.5"], "{text}");
    let json = place.ok("stats a.oc --axis 0,1 --json");
    assert!(
        json.contains("\"sum\":190.0") && json.ends_with("}\n"),
        "{json}"
    );
}

#[test]
fn nothing_and_single_elements() {
    let place = Place::new();
    place.ok("create empty.npy --shape 0x3 --type f32");
    let text = place.ok("stats empty.npy --bins 3");
    assert!(
        text.contains("count      0") && text.contains("min        none"),
        "{text}"
    );
    place.ok("stats empty.npy --axis 0");
    place.ok("stats empty.npy --axis 1 --json");
    place.ok("diff empty.npy empty.npy");
    place.ok("create one.npy --shape 1 --type u8 --fill 7");
    assert!(place.ok("stats one.npy --ranks 4").contains("sum        7"));
    assert!(place.ok("stats one.npy 0").contains("max        7 at [0]"));
}

#[test]
fn what_cannot_be_asked_for() {
    let place = Place::new();
    place.ok("create a.npy --shape 6x4 --type f32 --fill index");
    place.fails(2, "stats a.npy p --ranks 2");
    place.fails(2, "stats a.npy --range 3,1");
    place.fails(2, "stats a.npy --plot picture.png");
    place.fails(2, "stats a.npy -o b.npy");
    let message = place.fails(1, "stats a.npy --axis 2");
    assert!(message.contains("counted from 0"), "{message}");
    let message = place.fails(1, "stats a.npy --memory 1KiB");
    assert!(message.contains("needs at least"), "{message}");
    place.fails(1, "stats missing.npy");
    place.fails(2, "diff a.npy missing.npy");
    place.fails(2, "diff a.npy");
    place.fails(2, "diff a.npy a.npy --tolerance -1");
    place.ok("create b.npy --shape 4x6 --type f32 --fill index");
    let message = place.fails(2, "diff a.npy b.npy");
    assert!(message.contains("6x4 and 4x6"), "{message}");
}

#[test]
fn differences_and_tolerances() {
    let place = Place::new();
    place.ok("create a.npy --shape 6x4 --type f32 --fill index");
    place.ok("convert a.npy b.oc --layout column --type f64");
    place.ok_args(&["write", "b.oc", "2, 3", "--fill", "11.5"]);
    let status = |line: &[&str]| {
        let output = place.command(line).output().expect("outcore starts");
        assert!(output.stderr.is_empty(), "{output:?}");
        let text = String::from_utf8(output.stdout).unwrap();
        (output.status.code(), text)
    };
    let (code, text) = status(&["diff", "a.npy", "b.oc"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("absolute   0.5 at [2, 3]: 11 and 11.5"),
        "{text}"
    );
    assert!(text.contains("differing  1\n"), "{text}");
    for enough in [["--tolerance", "0.5"], ["--relative", "0.05"]] {
        let (code, text) = status(&[&["diff", "a.npy", "b.oc"][..], &enough].concat());
        assert_eq!(code, Some(0), "{text}");
        assert!(text.contains("the same within the tolerance"), "{text}");
    }
    assert_eq!(
        status(&["diff", "a.npy", "b.oc", "--relative", "0.04"]).0,
        Some(1)
    );
    // A plane of one beside an array without that axis.
    place.ok_args(&["read", "b.oc", "2, :", "-o", "row.npy"]);
    let (code, text) = status(&["diff", "b.oc", "row.npy", "--section-a", "2, :"]);
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = status(&["diff", "a.npy", "row.npy", "--section-a", "2, :"]);
    assert_eq!(code, Some(1), "{text}");
    assert!(text.contains("at [2, 3] and [3]: 11 and 11.5"), "{text}");
}

#[test]
fn numbers_that_do_not_fit_are_refused() {
    let place = Place::new();
    place.ok("create a.npy --shape 10x30 --type i32 --fill index");
    let message = place.fails(1, "convert a.npy b.npy --type u8 --json");
    assert!(
        message.contains("256") && message.contains("[8, 16]"),
        "{message}"
    );
    assert_eq!(place.names(), ["a.npy"]);
    place.ok("convert a.npy b.npy --type u8 --saturate --verify");
    assert_eq!(
        place.ok_args(&["read", "b.npy", "8, 14:18"]),
        "254 255 255 255\n"
    );
    place.ok("create nan.npy --shape 3 --type f32 --fill nan");
    place.fails(1, "convert nan.npy c.npy --type i64 --saturate --json");
    place.ok("convert nan.npy c.npy --type f16");
    assert_eq!(place.ok("read c.npy"), "NaN NaN NaN\n");
    place.fails(2, "convert a.npy c.npy --saturate");
    let raw = "raw:c.bin?shape=10x30&type=f64";
    place.fails(1, &format!("convert a.npy {raw} --type f32 --json"));
    place.ok(&format!("convert a.npy {raw} --type f64"));
}

#[test]
fn the_closing_line_as_json() {
    let place = Place::new();
    place.ok("create a.npy --shape 30x20 --type f32 --fill index");
    for line in [
        "convert a.npy b.oc --verify --json",
        "transpose a.npy c.npy --verify --json",
        "relayout a.npy d.npy --layout column --verify --json",
        "median a.npy e.npy --window 3x3 --json",
        "read a.npy -o f.npy --json",
    ] {
        let text = place.ok(line);
        assert_eq!(text.lines().count(), 1, "{line}: {text}");
        assert!(
            text.starts_with('{') && text.contains("\"seconds\":"),
            "{line}: {text}"
        );
    }
}

#[test]
fn infinities_have_no_histogram_of_all() {
    let place = Place::new();
    place.ok("create a.npy --shape 4 --type f32 --fill inf");
    let message = place.fails(1, "stats a.npy --plot");
    assert!(
        message.contains("a.npy") && message.contains("--range LOW,HIGH"),
        "{message}"
    );
    place.ok("stats a.npy --range 0,1 --plot");
    // What is left out of a picture is said in it.
    place.ok("create b.npy --shape 9 --type f32 --fill nan");
    place.ok("write b.npy 2: --fill index");
    place.ok("stats b.npy --plot b.svg");
    let svg = String::from_utf8(place.bytes("b.svg")).expect("text");
    assert!(svg.contains("2 NaN left out"), "{svg}");
}

#[test]
fn described_outputs_hold_what_is_found() {
    let place = Place::new();
    place.ok("create a.npy --shape 6x4x3 --type f64 --fill index");
    let line = "stats a.npy --axes 1 --of max -o";
    place.ok(&format!("{line} max.npy"));
    let raw = "raw:max.bin?shape=6x3&type=f64&layout=column";
    place.ok(&format!("{line} {raw}"));
    place.ok(&format!("convert {raw} back.npy --layout row"));
    assert_eq!(place.bytes("back.npy"), place.bytes("max.npy"));
    for raw in [
        "raw:x.bin?shape=18&type=f64",
        "raw:x.bin?shape=6x3&type=f32",
    ] {
        let message = place.fails(1, &format!("{line} {raw}"));
        assert!(message.contains("what is written is 6x3 f64"), "{message}");
    }
    assert!(!place.path("x.bin").exists());
}
