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
            "stripes",
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
}
