//! `outcore convert`: placements, rank counts and formats, and every command
//! on arrays in local placement.

use serde_json::{Value, json};

use crate::program::Place;

/// The array as text, whatever its format.
fn contents(place: &Place, array: &str) -> String {
    place.ok(&format!("read {array}"))
}

#[test]
fn placements_rank_counts_and_formats_hold_the_same_array() {
    let place = Place::new();
    place.ok("create a.oc --shape 23x17 --type i32 --fill index --attribute units=K");
    let expected = contents(&place, "a.oc");
    place.ok("convert a.oc b.npy --layout column");
    let raw = "raw:c.bin?shape=23x17&type=i32&layout=column&offset=0&byteorder=big";
    place.ok(&format!("convert b.npy {raw}"));
    assert_eq!(contents(&place, raw), expected);
    for (number, options) in [
        "--placement local --parts 4",
        "--placement local --ranks 3",
        "--distribution block,block --grid 2x3 --overlap 1,1 --ranks 2",
        "--distribution *,cyclic(3) --parts 5 --overlap 0,2:1 --layout column --ranks 8",
        "--distribution cyclic,cyclic(2) --parts 16 --ranks 5 --memory 1MiB",
        "--distribution *,* --parts 2",
        "--parts 40 --layout axes:0,1",
    ]
    .iter()
    .enumerate()
    {
        for input in ["a.oc", "b.npy", raw] {
            let local = format!("local{number}.oc");
            place.ok(&format!("convert {input} {local} {options} --force"));
            assert_eq!(contents(&place, &local), expected, "{options}");
        }
        let local = format!("local{number}.oc");
        for ranks in [1, 2, 16] {
            // To other rank counts, keeping distribution and overlap; and back.
            if !options.contains("*,*") {
                place.ok(&format!(
                    "convert {local} other.oc --parts 3 --ranks {ranks} --force"
                ));
                assert_eq!(contents(&place, "other.oc"), expected, "{options}");
            }
            place.ok(&format!("convert {local} back.npy --ranks {ranks} --force"));
            assert_eq!(contents(&place, "back.npy"), expected, "{options}");
            place.ok(&format!(
                "convert {local} back.oc --layout tiled:4x5 --ranks {ranks} --force"
            ));
            assert_eq!(contents(&place, "back.oc"), expected, "{options}");
        }
    }
    let info: Value = serde_json::from_str(&place.ok("info other.oc --json")).unwrap();
    assert_eq!(info["placement"]["ranks"], 3);
    assert_eq!(info["shape"], json!([23, 17]));
}

#[test]
fn every_command_works_on_local_files() {
    let place = Place::new();
    place.ok("create a.oc --shape 20x30 --type f64 --fill index");
    place.ok("convert a.oc p.oc --distribution block,cyclic(4) --grid 2x2 --overlap 1,1");
    for array in ["a.oc", "p.oc"] {
        place.ok(&format!("write {array} ::3,5:20:2 --fill -1.5 --ranks 3"));
        place.ok(&format!(
            "write {array} 7,: --fill index --strategy sieving"
        ));
    }
    assert_eq!(contents(&place, "p.oc"), contents(&place, "a.oc"));
    for (section, ranks) in [("::2,::3", 1), ("4:18,7", 2), ("[1,5,19],3:29", 5)] {
        for output in ["x.npy", "y.npy"] {
            let array = if output == "x.npy" { "a.oc" } else { "p.oc" };
            place.ok(&format!(
                "read {array} {section} -o {output} --ranks {ranks} --force"
            ));
        }
        assert_eq!(place.bytes("x.npy"), place.bytes("y.npy"), "{section}");
    }
    assert!(
        place
            .ok("explain p.oc ::2,::3 --analyze")
            .contains("measured")
    );
    let text = place.ok("info p.oc --rank 3 --memory 1KiB");
    for row in [
        "local, block,cyclic(4) on 2x2 (4 ranks)",
        "rank 3",
        "storage order",
        "cyclic(4)",
        "1+1",
        "in-core lower",
        "upper+overlap",
    ] {
        assert!(text.contains(row), "{row}: {text}");
    }
    let info: Value = serde_json::from_str(&place.ok("info p.oc --rank 3 --json")).unwrap();
    assert_eq!(info["descriptor"]["local"], json!([10, 14]));
    assert_eq!(info["descriptor"]["stored"], json!([12, 22]));
    assert_eq!(info["descriptor"]["processors"], json!([2, 2]));
    assert_eq!(info["placement"]["overlap"], json!([[1, 1], [1, 1]]));
}

#[test]
fn local_disks_hold_the_files_until_they_are_replaced() {
    let place = Place::new();
    let (one, two) = (place.inside("one"), place.inside("two"));
    place.ok("create a.oc --shape 9x4 --type u8 --fill index");
    place.ok("convert a.oc p.oc --parts 2 --directories one,two");
    assert_eq!(contents(&place, "p.oc"), contents(&place, "a.oc"));
    let first = one.names();
    assert!(
        first.len() == 1 && first[0].ends_with(".part0"),
        "{first:?}"
    );
    assert!(two.names()[0].ends_with(".part1"));
    place.fails(1, "convert a.oc p.oc --parts 2 --directories one,two");
    assert_eq!(one.names(), first);
    place.ok("convert a.oc p.oc --parts 2 --directories one,two --force");
    assert!(one.names().len() == 1 && one.names() != first);
    let message = place.fails(1, "convert p.oc ./p.oc --placement global --force");
    assert!(message.contains("the place of the input"), "{message}");
    place.ok("convert a.oc p.oc --placement global --force");
    assert!(one.names().is_empty() && two.names().is_empty());
    assert_eq!(contents(&place, "p.oc"), contents(&place, "a.oc"));
    assert_eq!(place.names(), ["a.oc", "one", "p.oc", "two"]);
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let place = Place::new();
    place.ok("create a.oc --shape 9x4 --type u8 --fill index");
    for (line, part) in [
        (
            "convert a.oc b.oc --placement global --parts 2",
            "--parts is for local placement",
        ),
        ("convert a.oc b.npy --parts 2", "must end in .oc"),
        ("convert a.oc b.oc --parts 0", "'0'"),
        ("convert a.oc b.oc --overlap 1,x", "'x'"),
        ("convert a.oc b.oc --placement far", "far"),
        (
            "convert a.oc raw:b?shape=9x4&type=u8 --layout row",
            "--layout",
        ),
        ("convert a.oc", "<OUT>"),
    ] {
        let message = place.fails(2, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    for (line, part) in [
        (
            "convert a.oc b.oc --parts 2 --overlap 1",
            "overlap is given for 1 axes",
        ),
        ("convert a.oc b.oc --distribution blok,*", "blok"),
        ("convert a.oc b.oc --distribution block", "1 axes"),
        (
            "convert a.oc b.oc --grid 2x2 --parts 3 --distribution block,block",
            "4 ranks",
        ),
        ("convert a.oc b.oc --grid 2x2", "exactly 1 rank"),
        (
            "convert a.oc b.oc --parts 2 --directories .",
            "1 directories for 2 ranks",
        ),
        (
            "convert a.oc b.oc --parts 2 --layout tiled:2x2",
            "tiled:2x2",
        ),
        ("convert a.oc b.oc --parts 2 --memory 3", "64 KiB"),
        ("convert a.oc raw:b?shape=4x9&type=u8", "4x9"),
        ("convert a.oc raw:b?shape=9x4&type=i8", "i8"),
        ("convert a.oc b.bin", ".oc"),
        ("convert c.oc b.oc", "c.oc"),
        ("convert a.oc a.oc", "the place of the input"),
    ] {
        let message = place.fails(1, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    assert_eq!(place.names(), ["a.oc"]);
    place.ok("convert a.oc p.oc --parts 3");
    let message = place.fails(1, "info p.oc --rank 3");
    assert!(message.contains("no rank 3"), "{message}");
    std::fs::remove_file(place.path("p.oc/part2.bin")).unwrap();
    for line in ["read p.oc 0,0", "info p.oc", "convert p.oc b.npy --ranks 2"] {
        let message = place.fails(1, line);
        assert!(
            message.contains("the local file of rank 2 is missing"),
            "{message}"
        );
    }
}
