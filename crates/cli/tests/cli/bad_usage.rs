//! Wrong usage (status 2) and what cannot be done (status 1), each with a
//! message that says what is wrong.

use crate::program::Place;

#[test]
fn wrong_usage() {
    let place = Place::new();
    place.ok("create a.oc --shape 4x6 --type f32 --fill index");
    for (line, part) in [
        ("nonsense", "unrecognized subcommand 'nonsense'"),
        ("--nonsense", "--nonsense"),
        ("bench fast", "'fast'"),
        ("create", "<PATH>"),
        ("create b.oc", "--shape is missing"),
        ("create b.oc --type f32", "--shape is missing"),
        ("create b.oc --shape 4", "--type is missing"),
        ("create b.oc c.oc --shape 4 --type f32", "'c.oc'"),
        (
            "create b.oc --shape 4y4 --type f32",
            "'4y4' is not a whole number",
        ),
        (
            "create b.oc --shape 4x --type f32",
            "'' is not a whole number",
        ),
        (
            "create b.oc --shape=-4 --type f32",
            "'-4' is not a whole number",
        ),
        (
            "create b.oc --shape 99999999999999999999 --type f32",
            "9999",
        ),
        (
            "create b.oc --shape 4 --type f128",
            "no element type 'f128'",
        ),
        (
            "create b.oc --shape 4 --type f32 --layout diagonal",
            "'diagonal'",
        ),
        ("create b.oc --shape 4 --type f32 --layout tiled:", "tiled:"),
        ("create b.oc --shape 4 --type f32 --layout axes:a", "axes:a"),
        (
            "create b.oc --shape 4 --type f32 --byte-order middle",
            "'middle'",
        ),
        ("create b.oc --shape 4 --type f32 --fill lots", "'lots'"),
        ("create b.oc --shape 4 --type f32 --fill", "--fill"),
        ("create b.oc --shape 4 --type f32 --seed -1", "-1"),
        ("create b.oc --shape 4 --type f32 --seed x", "'x'"),
        (
            "create b.oc --shape 4 --type f32 --attribute units",
            "NAME=VALUE",
        ),
        (
            "create b.oc --shape 4 --type f32 --stripe-unit 1MiB",
            "--stripe-directory",
        ),
        (
            "create b.oc --shape 4 --type f32 --stripe-directory . --stripe-unit 1mile",
            "'mile'",
        ),
        ("create b.oc --shape 4 --type f32 --ranks 0", "'0'"),
        ("create b.oc --shape 4 --type f32 --ranks -1", "-1"),
        ("create b.oc --shape 4 --type f32 --ranks many", "'many'"),
        ("create b.oc --shape 4 --type f32 --ranks 100000", "100000"),
        ("create b.oc --shape 4 --shape 5 --type f32", "--shape"),
        (
            "create raw:b?shape=4&type=u8 --shape 4",
            "--shape cannot be used with a 'raw:'",
        ),
        (
            "create raw:b?shape=4&type=u8 --type u8",
            "--type cannot be used",
        ),
        (
            "create raw:b?shape=4&type=u8 --layout column",
            "--layout cannot be used",
        ),
        (
            "create raw:b?shape=4&type=u8 --byte-order big",
            "--byte-order cannot be used",
        ),
        (
            "create raw:b?shape=4&type=u8 --attribute a=1",
            "--attribute cannot be used",
        ),
        (
            "create raw:b?shape=4&type=u8 --stripe-directory .",
            "--stripe-directory cannot be used",
        ),
        ("info", "<ARRAY>"),
        ("info a.oc b.oc", "'b.oc'"),
        ("info a.oc --ranks 2", "--ranks"),
        ("read", "<ARRAY>"),
        ("read a.oc 0 1", "'1'"),
        ("read a.oc --nonsense", "--nonsense"),
        ("read a.oc -o", "--output <FILE>"),
        ("read a.oc 0 -o x.npy -o y.npy", "--output"),
        ("read a.oc zero", "'zero' is unknown; p is the rank"),
        ("read a.oc 0;1", "';'"),
        ("read a.oc 1.5", "'.'"),
        ("read a.oc 0:1:2:3", "lower:upper:stride"),
        ("read a.oc (1:2,3", "')' is needed"),
        ("read a.oc [0:2]", "without outer brackets"),
        ("read a.oc 0:99999999999999999999", "63 bits"),
        ("read a.oc ,", "an axis is missing"),
        ("read a.oc ...,...", "only once"),
        ("read a.oc p", "must contain %r"),
        ("read a.oc p -o same.npy --ranks 3", "must contain %r"),
        ("read a.oc N-1 -o -", "must contain %r"),
        ("read a.oc --ranks 0", "'0'"),
        ("write", "<ARRAY>"),
        ("write a.oc", "--from <FILE>|--fill <FILL>"),
        ("write a.oc --fill 1 --from b.npy", "cannot be used with"),
        ("write a.oc zero --fill 1", "'zero'"),
        ("write a.oc --force --fill 1", "--force"),
        ("read a.oc --ranks 5000", "from 1 to 1024"),
        (
            "create b.oc --shape -4x4 --type f32",
            "'-4' is not a whole number",
        ),
        ("diff a.oc a.oc --tolerance -1", "'-1' is no tolerance"),
        (
            "fft a.oc b.oc --axes a",
            "'a' is no axis; axes are numbers from 0",
        ),
        ("transpose a.oc b.oc --axes -1,0", "'-1' is no axis"),
        ("mesh b.oc c.oc --nodes 9 --seed -1", "'-1' is no seed"),
        (
            "gather a.oc --indices a.oc -o b.txt",
            "this command writes arrays",
        ),
        ("stats a.oc --axes 0 -o b.csv", "this command writes arrays"),
        ("demo --ranks 0", "'0'"),
        ("demo now", "'now'"),
        ("bench io --repeat 0", "'0'"),
        ("bench io --size big", "big"),
        ("bench io --size 12parsecs", "'parsecs'"),
    ] {
        let message = place.fails(2, line);
        assert!(message.contains(part), "outcore {line}: {message}");
        assert!(!message.contains("error: "), "outcore {line}: {message}");
    }
    for args in [
        &["info", ""][..],
        &["create", "", "--shape", "4", "--type", "u8"],
        &["read", "a.oc", "-o", ""],
        &["stats", "a.oc", "--axes", "0", "-o", ""],
        &["verify", "a.oc", "--report", ""],
        &["repair-report", "a.oc", "-o", ""],
        &["write", "a.oc", "--from", ""],
        &["create", "b.oc", "--shape", "", "--type", "u8"],
        &["create", "b.oc", "--shape", "4", "--type", ""],
    ] {
        place.fails_args(2, args);
    }
    let nested = "(".repeat(10_000);
    place.fails_args(2, &["read", "a.oc", &nested]);
    place.fails_args(2, &["read", "a.oc", &"-".repeat(10_000)]);
    assert_eq!(place.names(), ["a.oc"]);
}

#[test]
fn nothing_asked_for() {
    let place = Place::new();
    for (args, usage) in [
        (&[][..], "Usage: outcore <COMMAND>"),
        (&["bench"], "Usage: outcore bench <COMMAND>"),
    ] {
        let output = place.command(args).output().unwrap();
        let help = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}");
        assert!(help.contains(usage), "{args:?}: {help}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn arrays_that_cannot_be_made() {
    let place = Place::new();
    for (line, part) in [
        ("create b.txt --shape 4 --type f32", "must end in .oc"),
        ("create b --shape 4 --type f32", "must end in .oc"),
        ("create .oc --shape 4 --type f32", "must end in .oc"),
        (
            "create b.npy --shape 4x4 --type f32 --layout tiled:2x2",
            "row or column order",
        ),
        (
            "create b.npy --shape 4x4x4 --type f32 --layout axes:1,0,2",
            "row or column order",
        ),
        (
            "create b.npy --shape 4 --type f32 --stripe-directory .",
            "neither striped nor placed locally",
        ),
        (
            "create b.oc --shape 4 --type f32 --layout axes:1,0",
            "axis order",
        ),
        (
            "create b.oc --shape 4x4 --type f32 --layout axes:0,0",
            "axis order",
        ),
        (
            "create b.oc --shape 4 --type f32 --layout tiled:2x2",
            "2 axes where 1",
        ),
        (
            "create b.oc --shape 4x4 --type f32 --layout tiled:0x2",
            "extent of 0",
        ),
        (
            "create b.oc --shape 4 --type i32 --fill 1.5",
            "'1.5' is not a value of type i32",
        ),
        (
            "create b.oc --shape 4 --type u8 --fill -1",
            "'-1' is not a value of type u8",
        ),
        (
            "create b.oc --shape 4 --type u8 --fill 256",
            "'256' is not a value of type u8",
        ),
        (
            "create b.oc --shape 4 --type bool --fill 2",
            "'2' is not a value of type bool",
        ),
        ("create b.oc --shape 4 --type f32 --fill 1+2i", "type f32"),
        (
            "create b.oc --shape 4294967296x4294967296 --type u8",
            "63 bits",
        ),
        (
            "create b.oc --shape 9223372036854775807 --type f64",
            "63 bits",
        ),
        (
            "create b.oc --shape 4 --type u8 --stripe-directory nowhere",
            "nowhere",
        ),
        (
            "create b.oc --shape 4 --type u8 --stripe-directory . --stripe-unit 0",
            "stripe unit",
        ),
        ("create raw:b.bin", "shape and type are missing"),
        ("create raw:b.bin?shape=4", "type is missing"),
        (
            "create raw:b.bin?shape=4&type=u8&ofset=3",
            "'ofset' is unknown",
        ),
        ("create raw:?shape=4&type=u8", "file name is missing"),
    ] {
        let message = place.fails(1, line);
        assert!(message.contains(part), "outcore {line}: {message}");
        assert!(!message.contains("rank 0"), "outcore {line}: {message}");
    }
    assert!(place.names().is_empty(), "{:?}", place.names());
}

#[test]
fn arrays_that_cannot_be_opened() {
    let place = Place::new();
    place.inside("empty.oc");
    place.write("plain.bin", [0; 10]);
    place.write("wrong.npy", "this is not NumPy's");
    place.write("short.npy", b"\x93NUMPY\x01\x00\xff");
    place.ok("create cut.npy --shape 100 --type f64");
    std::fs::File::options()
        .write(true)
        .open(place.path("cut.npy"))
        .and_then(|file| file.set_len(500))
        .unwrap();
    for (name, part) in [
        ("nothing.oc", "cannot open nothing.oc: No such file"),
        ("raw:nothing.bin?shape=4&type=u8", "nothing.bin"),
        ("empty.oc", "no array.json"),
        (".", "no array.json"),
        ("plain.bin", "neither an outcore directory"),
        ("plain.bin/", "plain.bin"),
        ("raw:plain.bin", "shape and type are missing"),
        ("raw:plain.bin?shape=11&type=u8", "10 bytes"),
        ("raw:plain.bin?shape=2&type=u8&offset=9", "10 bytes"),
        ("raw:plain.bin?shape=2&type=u9", "u9"),
        ("raw:plain.bin?shape=2&type=u8&layout=up", "up"),
        ("wrong.npy", "NUMPY"),
        ("short.npy", "ends inside"),
        ("cut.npy", "500 bytes"),
    ] {
        for command in ["info", "read"] {
            let message = place.fails(1, &format!("{command} {name}"));
            assert!(message.contains(part), "{command} {name}: {message}");
        }
        place.fails(1, &format!("read {name} -o out.npy --ranks 3"));
        place.fails(1, &format!("write {name} --fill 1 --ranks 3"));
    }
    assert!(!place.names().contains(&"out.npy".into()));
    for (json, part) in [
        ("", "not JSON"),
        ("{}", "format"),
        (
            r#"{"format": "outcore-array", "version": 99}"#,
            "version 99",
        ),
        (
            r#"{"format": "outcore-array", "version": 1}"#,
            "missing field",
        ),
    ] {
        place.inside("empty.oc").write("array.json", json);
        let message = place.fails(1, "info empty.oc");
        assert!(message.contains(part), "{json}: {message}");
    }
}

#[test]
fn values_that_do_not_fit() {
    let place = Place::new();
    place.ok("create a.oc --shape 4x6 --type f32 --fill index");
    place.ok("read a.oc -o before.bin");
    place.ok("create doubles.npy --shape 4x6 --type f64");
    place.ok("create square.npy --shape 4x4 --type f32");
    place.write("short.bin", [0; 95]);
    place.write("long.bin", [0; 97]);
    for (line, parts) in [
        (
            "write a.oc --from doubles.npy",
            ["doubles.npy holds f64", "not f32"],
        ),
        ("write a.oc --from square.npy", ["4x4", "4x6"]),
        (
            "write a.oc 0:2 --from raw:long.bin?shape=3x6&type=f32",
            ["3x6", "2x6"],
        ),
        ("write a.oc --from short.bin", ["95 bytes", "96"]),
        ("write a.oc --from long.bin", ["97 bytes", "needs 96"]),
        (
            "write a.oc --from nothing.npy",
            ["cannot open nothing.npy", "No such file"],
        ),
        (
            "write a.oc --from nothing.bin",
            ["nothing.bin", "No such file"],
        ),
        ("write a.oc --fill 1+2i", ["'1+2i'", "f32"]),
        ("write a.oc --fill true", ["'true'", "f32"]),
        ("write a.oc --fill 1e300", ["a.oc: '1e300'", "f32"]),
        ("write a.oc --fill 1e999", ["'1e999'", "f32"]),
    ] {
        for ranks in [1, 3] {
            let message = place.fails(1, &format!("{line} --ranks {ranks}"));
            assert!(
                parts.iter().all(|part| message.contains(part)),
                "outcore {line}: {message}"
            );
        }
    }
    place.ok("read a.oc -o after.bin");
    assert_eq!(place.bytes("before.bin"), place.bytes("after.bin"));
    for (kind, large) in [("f16", "1e5"), ("f64", "1e400"), ("c64", "1e300+1i")] {
        let create = format!("create large.oc --force --shape 4 --type {kind} --fill");
        let message = place.fails(1, &format!("{create} {large}"));
        assert!(message.contains(&format!("'{large}'")), "{message}");
        place.ok(&format!("{create} inf"));
    }
}

#[test]
fn an_output_does_not_take_the_place_of_its_input() {
    let place = Place::new();
    place.ok("create a.oc --shape 8x8 --type f64 --fill random");
    place.ok("create b.npy --shape 8x8 --type f64 --fill random");
    place.ok("create i.npy --shape 4 --type u64 --fill index");
    place.ok("mesh edges.npy nodes.npy --nodes 100");
    let names = place.names();
    let before = ["a.oc/data.bin", "b.npy", "i.npy", "edges.npy", "nodes.npy"];
    let contents = || before.map(|name| place.bytes(name));
    let old = contents();
    for line in [
        "read a.oc -o a.oc",
        "read a.oc -o ./a.oc/ --ranks 2",
        "read a.oc -o raw:a.oc/data.bin?shape=8x8&type=f64",
        "read b.npy p:8:4,: -o %r/../b.npy --ranks 1",
        "gather a.oc --indices i.npy -o i.npy",
        "gather b.npy --indices i.npy -o b.npy",
        "stats b.npy --axes 0 -o b.npy",
        "median a.oc a.oc --window 3x3",
        "laplace a.oc a.oc --sweeps 2",
        "fft a.oc a.oc",
        "adi a.oc a.oc --steps 1",
        "matmul a.oc b.npy b.npy",
        "edge-sweep edges.npy nodes.npy nodes.npy --steps 1",
        "convert a.oc a.oc",
    ] {
        if line.contains("%r") {
            place.inside("0");
        }
        let message = place.fails(1, &format!("{line} --force"));
        assert!(
            message.contains("take the place of the input"),
            "{line}: {message}"
        );
        let _ = std::fs::remove_dir(place.path("0"));
        assert_eq!(place.names(), names, "{line}");
    }
    let message = place.fails(2, "mesh x.npy ./x.npy --nodes 10");
    assert!(message.contains("two names"), "{message}");
    assert!(contents() == old);
}

#[test]
fn files_are_not_replaced_without_being_asked_for() {
    let place = Place::new();
    place.ok("create a.oc --shape 8x8 --type f64 --fill index");
    place.write("there.svg", "mine");
    for (line, file) in [
        ("stats a.oc --plot", "there.svg"),
        ("explain a.oc --svg", "there.svg"),
        ("explain a.oc --html", "there.svg"),
        ("verify a.oc --report", "there.svg"),
        ("repair-report a.oc -o", "there.svg"),
        ("bench io --html", "there.svg"),
    ] {
        let message = place.fails(1, &format!("{line} {file}"));
        assert!(
            message.contains("there.svg exists already; --force"),
            "{line}: {message}"
        );
        let message = place.fails(1, &format!("{line} none/there.svg"));
        assert!(message.contains("no directory none"), "{line}: {message}");
        assert_eq!(place.bytes(file), b"mine", "{line}");
        if !line.starts_with("bench") {
            place.ok(&format!("{line} {file} --force"));
            assert_ne!(place.bytes(file), b"mine", "{line}");
            place.write(file, "mine");
        }
    }
    assert_eq!(place.names(), ["a.oc", "there.svg"]);
}
