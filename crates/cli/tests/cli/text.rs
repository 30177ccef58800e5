//! Numbers as text.

use crate::program::Place;

#[test]
fn lines_and_empty_lines_show_the_axes() {
    let place = Place::new();
    for (shape, text) in [
        ("4", "0 1 2 3\n"),
        ("2x3", "0 1 2\n3 4 5\n"),
        ("3x1", "0\n1\n2\n"),
        ("1x1x3", "0 1 2\n"),
        ("2x2x2", "0 1\n2 3\n\n4 5\n6 7\n"),
        ("2x1x2", "0 1\n\n2 3\n"),
        ("2x2x1x2", "0 1\n\n2 3\n\n4 5\n\n6 7\n"),
    ] {
        for layout in ["row", "column"] {
            place.ok(&format!(
                "create a.oc --shape {shape} --type i16 --layout {layout} --fill index --force"
            ));
            assert_eq!(place.ok("read a.oc"), text, "{shape} {layout}");
            assert_eq!(
                place.ok("read a.oc -o - --ranks 3"),
                text,
                "{shape} {layout}"
            );
            place.ok("read a.oc -o a.txt --force");
            assert_eq!(place.bytes("a.txt"), text.as_bytes());
            place.ok("read a.oc -o a.csv --force");
            assert_eq!(place.bytes("a.csv"), text.replace(' ', ",").as_bytes());
        }
    }
}

#[test]
fn axes_given_by_one_index_are_dropped() {
    let place = Place::new();
    place.ok("create a.oc --shape 2x3x2 --type i16 --fill index");
    assert_eq!(place.ok("read a.oc 1,:,0"), "6 8 10\n");
    assert_eq!(place.ok("read a.oc :,1,:"), "2 3\n8 9\n");
    assert_eq!(place.ok("read a.oc :,1:2,:"), "2 3\n\n8 9\n");
    assert_eq!(place.ok("read a.oc 1,2,1"), "11\n");
}

#[test]
fn every_type_is_printed_so_that_it_can_be_read_back() {
    let place = Place::new();
    for (element_type, text) in [
        ("bool", "1"),
        ("i8", "-5"),
        ("i64", "-9223372036854775808"),
        ("u64", "18446744073709551615"),
        ("f16", "0.1"),
        ("f32", "0.1"),
        ("f64", "0.30000000000000004"),
        ("f64", "-inf"),
        ("f64", "5e-324"),
        ("c64", "0.1-2.5i"),
        ("c128", "-1+0.30000000000000004i"),
    ] {
        place.ok(&format!(
            "create a.oc --shape 1 --type {element_type} --fill {text} --force"
        ));
        let printed = place.ok("read a.oc");
        place.ok(&format!(
            "create b.oc --shape 1 --type {element_type} --fill {printed} --force"
        ));
        assert_eq!(
            place.bytes("a.oc/data.bin"),
            place.bytes("b.oc/data.bin"),
            "{text} was printed as {printed}"
        );
        assert!(place.bytes("a.oc/data.bin").iter().any(|byte| *byte != 0));
        if !matches!(text, "0.1" | "5e-324") {
            assert_eq!(printed.trim(), text);
        }
    }
}

#[test]
fn more_than_fits_into_one_piece() {
    let place = Place::new();
    place.ok("create a.oc --shape 1100x1000 --type u32 --layout column --fill index");
    place.ok("read a.oc -o a.csv");
    let text = String::from_utf8(place.bytes("a.csv")).unwrap();
    let mut expected = 0u32;
    for line in text.lines() {
        let mut numbers = 0;
        for number in line.split(',') {
            assert_eq!(number.parse(), Ok(expected));
            expected += 1;
            numbers += 1;
        }
        assert_eq!(numbers, 1000);
    }
    assert_eq!(expected, 1_100_000);
}

/// What `read` writes as text, `write` reads, whatever the type and the order.
#[test]
fn text_is_read_back() {
    let place = Place::new();
    let types = [
        "bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64",
        "c128",
    ];
    for (at, kind) in types.iter().enumerate() {
        let layout = ["row", "column", "tiled:3x2x4"][at % 3];
        let shape = format!("--shape 5x6x7 --type {kind} --layout {layout} --force");
        place.ok(&format!("create a.oc {shape} --fill random"));
        for (text, more) in [("a.txt", ""), ("a.csv", "--memory 128KiB --ranks 2")] {
            place.ok(&format!("read a.oc 1:5,::2,: -o {text} --force"));
            place.ok(&format!("create b.oc {shape}"));
            let told = place.ok(&format!("write b.oc 1:5,::2,: --from {text} {more}"));
            assert!(told.starts_with("b.oc: 84 elements written"), "{told}");
            let printed = |array: &str| place.ok(&format!("read {array} 1:5,::2,:"));
            assert_eq!(printed("a.oc"), printed("b.oc"), "{kind} {text}");
        }
    }
    for (kind, text) in [
        ("f32", "NaN inf -inf"),
        ("f64", "-0 1e300 4.9e-324"),
        ("c64", "1+2i NaN+NaNi -inf-3i"),
    ] {
        place.ok(&format!("create c.oc --shape 3 --type {kind} --force"));
        place.write("c.txt", text);
        place.ok("write c.oc --from c.txt");
        place.ok("read c.oc -o d.csv --force");
        place.ok(&format!("create d.oc --shape 3 --type {kind} --force"));
        place.ok("write d.oc --from d.csv");
        assert_eq!(place.ok("read c.oc"), place.ok("read d.oc"));
    }
}

#[test]
fn each_rank_reads_its_own_text() {
    let place = Place::new();
    place.ok("create a.oc --shape 4x3 --type i32 --fill index");
    place.ok("read a.oc p::N,: -o part%r.txt --ranks 2");
    place.ok("create b.oc --shape 4x3 --type i32");
    let told = place.ok("write b.oc p::N,: --from part%r.txt --ranks 2");
    assert!(
        told.starts_with("b.oc: 12 elements written, i32; "),
        "{told}"
    );
    assert_eq!(place.ok("read b.oc"), place.ok("read a.oc"));
}

#[test]
fn text_that_does_not_fit_writes_nothing() {
    let place = Place::new();
    place.ok("create a.oc --shape 2x3 --type u8");
    for (text, words) in [
        (
            "1 2 3\n4 5",
            "has 5 numbers, but section [0:2, 0:3] of a.oc needs 6",
        ),
        ("1 2 3\n4 5 6 7", "has 7 numbers"),
        ("", "has 0 numbers"),
        (
            "1 2 3\n4 256 6",
            "a.csv, line 2: '256' is not a value of type u8",
        ),
        ("1,2,3\n\n4,five,6", "a.csv, line 3: 'five' is not a value"),
        (
            "1,2,3\n4,,6",
            "a.csv, line 2: there is no number between the commas",
        ),
        ("1;2;3", "line 1: '1;2;3'"),
        ("1 2 3 4 5 \u{b5}", "'\u{b5}' is not a value"),
    ] {
        place.write("a.csv", text);
        let message = place.fails(1, "write a.oc --from a.csv");
        assert!(message.contains(words), "{text:?}: {message}");
    }
    place.write("a.csv", [0xff; 6]);
    let message = place.fails(1, "write a.oc --from a.csv");
    assert!(message.contains("something else than numbers"), "{message}");
    place.write("a.csv", "7".repeat(5000));
    place.fails(1, "write a.oc --from a.csv");
    assert!(place.fails(1, "write a.oc --from b.csv").contains("b.csv"));
    assert_eq!(place.ok("read a.oc"), "0 0 0\n0 0 0\n");
}
