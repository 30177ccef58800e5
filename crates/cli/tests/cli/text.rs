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
