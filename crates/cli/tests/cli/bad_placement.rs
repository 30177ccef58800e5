//! Local placements that cannot be made or opened: a clear sentence each.

use crate::program::Place;

fn place() -> Place {
    let place = Place::new();
    place.ok("create a.oc --shape 16x20 --type f32 --fill index");
    place
}

#[test]
fn placements_that_cannot_be_made() {
    let place = place();
    for (line, part) in [
        ("--parts 4 --overlap x,1", "'x' is no depth"),
        ("--parts 0", "'0'"),
        ("--grid 2y2", "'2y2' is not a whole number"),
        (
            "--placement global --overlap 1,1",
            "--overlap is for local placement",
        ),
        ("--memory much", "'much'"),
    ] {
        let message = place.fails(2, &format!("convert a.oc b.oc {line}"));
        assert!(message.contains(part), "{line}: {message}");
    }
    let message = place.fails(2, "convert a.oc b.npy --parts 4");
    assert!(message.contains("must end in .oc"), "{message}");
    for (line, part) in [
        ("--parts 4 --overlap 1", "overlap"),
        ("--grid 3x2 --distribution block,*", "axis 1"),
        ("--grid 3", "2 are needed"),
        ("--grid 0x2", "at least 1 rank"),
        ("--distribution diagonal,block", "'diagonal' is none of"),
        (
            "--distribution block(1),* --parts 4",
            "blocks of 4 at least",
        ),
        ("--distribution block --parts 4", "2 are needed"),
        (
            "--parts 4 --memory 100",
            "KiB of memory, but the budget is 100 bytes",
        ),
        ("--parts 2 --directories nowhere", "directories"),
        ("--parts 2 --directories nowhere,nowhere", "nowhere"),
    ] {
        for ranks in [1, 3] {
            let message = place.fails(1, &format!("convert a.oc b.oc {line} --ranks {ranks}"));
            assert!(message.contains(part), "{line}: {message}");
        }
    }
    for (line, part) in [
        (
            "convert nothing.oc b.oc --parts 2",
            "cannot open nothing.oc",
        ),
        ("convert a.oc a.oc --parts 2", "the place of the input"),
    ] {
        let message = place.fails(1, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    assert_eq!(place.names(), ["a.oc"]);
}

#[test]
fn local_files_that_are_missing_or_damaged() {
    let place = place();
    place.ok("convert a.oc parts.oc --parts 4 --overlap 1,0");
    let whole = place.bytes("parts.oc/part2.bin");
    let damages: [(&str, &dyn Fn()); 3] = [
        ("part2", &|| {
            std::fs::remove_file(place.path("parts.oc/part2.bin")).unwrap();
        }),
        ("part2", &|| {
            place.write("parts.oc/part2.bin", &whole[..whole.len() - 1]);
        }),
        ("part2", &|| {
            std::fs::remove_file(place.path("parts.oc/part2.bin")).unwrap();
            std::fs::create_dir(place.path("parts.oc/part2.bin")).unwrap();
        }),
    ];
    for (part, damage) in damages {
        damage();
        for line in [
            "read parts.oc",
            "read parts.oc -o b.npy --ranks 3",
            "write parts.oc --fill 1 --ranks 2",
            "convert parts.oc b.npy",
            "convert parts.oc b.oc --parts 3 --ranks 2",
            "explain parts.oc",
        ] {
            let message = place.fails(1, line);
            assert!(message.contains(part), "{line}: {message}");
        }
    }
    assert_eq!(place.names(), ["a.oc", "parts.oc"]);
}

#[test]
fn applications_on_local_files_that_do_not_fit() {
    let place = place();
    place.ok("convert a.oc parts.oc --parts 4 --overlap 1,0");
    place.ok("convert a.oc deep.oc --parts 4 --overlap 5,0");
    for (line, part) in [
        ("median parts.oc b.oc --window 3x3 --ranks 3", "--parts 3"),
        ("laplace parts.oc b.oc --sweeps 2 --ranks 5", "--parts 5"),
        ("median parts.oc b.oc --window 5x3 --ranks 4", "--overlap"),
        (
            "median deep.oc b.oc --window 11x3 --ranks 4",
            "deeper than the neighbour's block",
        ),
        (
            "laplace deep.oc b.oc --sweeps 6 --fuse 5 --ranks 4",
            "deeper than the neighbour's block",
        ),
    ] {
        let message = place.fails(1, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    // Who needs less than the overlap areas hold gets it.
    place.ok("median deep.oc median.oc --window 3x3");
    place.ok("laplace deep.oc laplace.oc --sweeps 6");
    std::fs::remove_file(place.path("parts.oc/part1.bin")).unwrap();
    for line in [
        "median parts.oc b.oc --window 3x3 --ranks 4",
        "laplace parts.oc b.oc --sweeps 2 --ranks 4",
    ] {
        let message = place.fails(1, line);
        assert!(
            message.contains("the local file of rank 1 is missing"),
            "{line}: {message}"
        );
    }
    let names = ["a.oc", "deep.oc", "laplace.oc", "median.oc", "parts.oc"];
    assert_eq!(place.names(), names);
}

/// The amount that an error names as the least is enough, for every command.
#[test]
fn the_least_memory_that_is_named_works() {
    let place = place();
    place.ok("create wide.oc --shape 40x600 --type f64 --fill random");
    place.ok("convert wide.oc parts.oc --parts 3 --overlap 2,0");
    for line in [
        "read wide.oc ::2,::3 -o b.npy",
        "write wide.oc ::2 --fill 1",
        "convert wide.oc b.oc --parts 3",
        "convert parts.oc b.oc",
        "median wide.oc b.oc --window 3x3",
        "median parts.oc b.oc --window 3x3",
        "laplace wide.oc b.oc --sweeps 2",
        "laplace parts.oc b.oc --sweeps 2",
    ] {
        for ranks in [1, 3] {
            if line.contains("parts.oc b.oc --") && ranks != 3 {
                continue;
            }
            let replace = if line.starts_with("write") {
                ""
            } else {
                "--force"
            };
            let line = format!("{line} {replace} --ranks {ranks} --memory");
            let message = place.fails(1, &format!("{line} 10"));
            let least = message
                .split_once("at least ")
                .and_then(|(_, rest)| rest.split_once(" of memory"));
            let (least, _) = least.unwrap_or_else(|| panic!("{line} 10: {message}"));
            let least = least.replace(' ', "").replace("bytes", "");
            place.ok(&format!("{line} {least}"));
        }
    }
}
