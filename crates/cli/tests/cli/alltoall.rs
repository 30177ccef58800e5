//! `outcore model alltoall` and `outcore bench alltoall`.

use crate::program::Place;

#[test]
fn the_model_stands_beside_the_tables() {
    let place = Place::new();
    let csv = place.ok("model alltoall --csv");
    assert_eq!(csv.lines().count(), 211, "{csv}");
    let row = csv
        .lines()
        .find(|line| line.starts_with("T4.4,pex,16x32,16384,"));
    assert!(row.is_some(), "{csv}");
    let text = place.ok("model alltoall --table T4.10");
    assert_eq!(text.lines().count(), 32, "{text}");
    assert_eq!(text.matches("misprinted").count(), 1, "{text}");
    // The fastest first.
    let mesh = place.ok("model alltoall --mesh 16x32 --bytes 16KiB");
    assert!(mesh.lines().nth(1).unwrap().starts_with("gen "), "{mesh}");
    assert!(mesh.lines().last().unwrap().starts_with("rex"), "{mesh}");
    let tree = place.ok("model alltoall --fat-tree 256 --links 1 --bytes 16KiB --csv");
    assert!(tree.lines().nth(1).unwrap().starts_with("bex"), "{tree}");
    for wrong in [
        "--mesh 16 --bytes 8",
        "--mesh 0x4 --bytes 8",
        "--fat-tree 12 --bytes 8",
    ] {
        place.fails(1, &format!("model alltoall {wrong}"));
    }
    place.fails(2, "model alltoall --mesh 4x4");
    place.fails(2, "model alltoall --fat-tree 16 --links 0 --bytes 8");
    place.fails(2, "model alltoall --table T4.1");
}

#[test]
fn every_algorithm_takes_part_in_the_bench() {
    let place = Place::new();
    let run = |line: &str| {
        let mut command = place.command(line.split_whitespace());
        let output = command.output().expect("outcore starts");
        assert!(output.status.success(), "{line}");
        let text = |bytes| String::from_utf8(bytes).expect("text");
        (text(output.stdout), text(output.stderr))
    };
    let (csv, summary) = run("bench alltoall --bytes 8,1KiB --ranks 3 --repeat 1 --csv");
    // Two lengths, eleven algorithms and auto.
    assert_eq!(csv.lines().count(), 1 + 2 * 12, "{csv}");
    let mut lines = csv.lines().skip(1);
    assert!(lines.all(|line| line.ends_with(",ok")), "{csv}");
    assert!(summary.contains("1024 B a pair: auto"), "{summary}");
    let (csv, _) = run("bench alltoall --bytes 8 --ranks 2 --repeat 1 --algorithm gen --csv");
    assert_eq!(csv.lines().count(), 2, "{csv}");
    let message = place.fails(1, "bench alltoall --algorithm fast");
    assert!(message.contains("pex-gen-shift"), "{message}");
    place.fails(1, "bench alltoall --bytes 0");
}
