//! Collective reads, writes and benches.

use crate::program::Place;

#[test]
fn the_bench_measures_every_way() {
    let place = Place::new();
    for (op, state) in [("read", "warm"), ("write", "warm"), ("write", "cold")] {
        let run = place
            .command(
                format!(
                    "bench collective --shape 60x50 --type f64 --section p::N,: --ranks 3 --op {op} \
                     --state {state} --repeat 2 --csv --directory . --svg times.svg"
                )
                .split_whitespace(),
            )
            .output()
            .expect("outcore starts");
        let (csv, notes) = (
            String::from_utf8(run.stdout).unwrap(),
            String::from_utf8(run.stderr).unwrap(),
        );
        assert!(run.status.success(), "{notes}");
        let lines: Vec<&str> = csv.lines().collect();
        assert!(
            lines[0].starts_with("system,bench,case,op,strategy"),
            "{csv}"
        );
        for way in ["auto", "direct", "sieving", "mapped", "two-phase/cyclic"] {
            let own = format!("outcore,collective,own p::N;:,{op},{way},threads,3,24000,");
            assert!(
                lines.iter().any(|line| line.starts_with(&own)),
                "{own}: {csv}"
            );
        }
        // Plain requests, and where all is read the file from end to end.
        let limits = if op == "read" { 2 } else { 1 };
        assert_eq!(lines.len(), 1 + 10 + limits, "{csv}");
        assert!(lines[1..].iter().all(|line| line.ends_with(",ok")), "{csv}");
        assert!(notes.contains("% of the time is exchange"), "{notes}");
        assert!(notes.contains("auto and the best own way"), "{notes}");
        let picture = String::from_utf8(place.bytes("times.svg")).unwrap();
        assert!(picture.contains("outcore auto") && picture.ends_with("</svg>\n"));
    }
    // What was made is gone, and what was there is as it was.
    assert_eq!(place.names(), ["times.svg"]);
    place.ok("create a.oc --shape 40x30 --type f32 --fill index");
    let before = place.bytes("a.oc/data.bin");
    let run = place.command(
        "bench collective --array a.oc --section :,2*p:2*p+4 --ranks 4 --op write --repeat 2 \
         --strategy two-phase --domains few:2"
            .split_whitespace(),
    );
    let run = { run }.output().expect("outcore starts");
    assert!(run.status.success());
    assert_eq!(place.bytes("a.oc/data.bin"), before);
    for (line, part) in [
        ("bench collective --domains round", "'round'"),
        ("bench collective --strategy fast", "'fast'"),
        ("bench collective --array a.oc", "--section"),
        ("bench collective --ranks 0", "'0'"),
    ] {
        let message = place.fails(2, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    let message = place.fails(1, "bench collective --cases T9-I");
    assert!(message.contains("no section T9-I"), "{message}");
    let message = place.fails(1, "bench collective --array a.oc --section p:41 --ranks 2");
    assert!(message.contains("axis 0"), "{message}");
    let forced = "bench collective --array a.oc --section p::N --ranks 2 --strategy two-phase \
                  --domains disks";
    let message = place.fails(1, forced);
    assert!(message.contains("striped"), "{message}");
}

/// Rows of the files that several ranks write, each with its number in all places.
fn parts(place: &Place, ranks: u8, bytes: usize) {
    for rank in 0..ranks {
        place.write(&format!("part{rank}.bin"), vec![rank + 1; bytes]);
    }
}

#[test]
fn where_sections_overlap_the_highest_rank_writes() {
    let place = Place::new();
    // Each rank has six rows, four of them in common with its neighbours.
    for (columns, memory) in [(7usize, None), (6000, Some("256KiB"))] {
        parts(&place, 4, 6 * columns);
        for layout in ["row", "column", "tiled:4x3"] {
            for choice in [
                "--strategy auto",
                "--strategy direct",
                "--strategy sieving",
                "--strategy two-phase",
                "--domains static",
                "--domains cyclic",
                "--domains few:2",
            ] {
                let memory = memory.map_or(String::new(), |memory| format!("--memory {memory}"));
                place.ok(&format!(
                    "create a.oc --shape 14x{columns} --type u8 --layout {layout} --force"
                ));
                place.ok(&format!(
                    "write a.oc 2*p:2*p+6,: --from part%r.bin --ranks 4 {choice} {memory}"
                ));
                place.ok("read a.oc -o all.npy --force");
                let found = place.npy("all.npy");
                let column_first = place.npy_header("all.npy").contains("True");
                for row in 0..14 {
                    let writer = (0..4)
                        .rev()
                        .find(|rank| (2 * rank..2 * rank + 6).contains(&row));
                    let expected = writer.map_or(0, |rank| rank as u8 + 1);
                    for column in [0, 1, columns / 2, columns - 1] {
                        let at = match column_first {
                            true => column * 14 + row,
                            false => row * columns + column,
                        };
                        assert_eq!(found[at], expected, "{layout} {choice} {row} {column}");
                    }
                }
                place.ok(&format!(
                    "read a.oc 2*p:2*p+6,: -o own%r.npy --force --ranks 4 {choice} {memory}"
                ));
                for rank in 0..4 {
                    let section = format!("{}:{},:", 2 * rank, 2 * rank + 6);
                    place.ok_args(&["read", "a.oc", &section, "-o", "one.npy", "--force"]);
                    assert_eq!(
                        place.bytes(&format!("own{rank}.npy")),
                        place.bytes("one.npy")
                    );
                }
            }
        }
    }
}

#[test]
fn every_rank_tells_what_is_wrong_with_one() {
    let place = Place::new();
    place.ok("create a.oc --shape 8x5 --type u8");
    parts(&place, 3, 10);
    place.write("part3.bin", [0; 9]);
    let line = "write a.oc 2*p:2*p+2,: --from part%r.bin --ranks 4";
    let message = place.fails(1, line);
    assert!(
        message.contains("rank 3") && message.contains("9 bytes"),
        "{message}"
    );
    assert!(place.bytes("a.oc/data.bin").iter().all(|byte| *byte == 0));
    let message = place.fails(1, "read a.oc 2*p:2*p+2,: -o own%r.npy --ranks 5");
    assert!(message.contains("rank 4"), "{message}");
    let message = place.fails(1, "read a.oc p,: -o own%r.npy --ranks 2 --domains disks");
    assert!(message.contains("striped"), "{message}");
    assert!(!place.names().iter().any(|name| name.starts_with("own")));
    for line in [
        "read a.oc --strategy both",
        "read a.oc --domains round",
        "write a.oc --fill 1 --domains few:0",
    ] {
        place.fails(2, line);
    }
}

#[test]
fn the_bench_on_devices_is_the_same_in_every_run() {
    let place = Place::new();
    for (device, ways) in [("disk1995", 10), ("object", 9)] {
        for op in ["read", "write"] {
            let line = format!(
                "bench collective --device {device} --shape 96x64 --section p::N,3: --ranks 3 --op {op} --csv"
            );
            let run = || {
                let run = place.command(line.split_whitespace()).output().unwrap();
                assert!(run.status.success());
                (
                    String::from_utf8(run.stdout).unwrap(),
                    String::from_utf8(run.stderr).unwrap(),
                )
            };
            let (csv, notes) = run();
            assert_eq!(csv, run().0);
            assert_eq!(csv.lines().count(), 1 + ways, "{csv}");
            assert!(
                csv.lines().skip(1).all(|line| line.ends_with(",ok")),
                "{csv}"
            );
            assert!(notes.contains("expected of two-phase/dynamic"), "{notes}");
            assert!(
                notes.contains("auto and the best own way: not slower in 1 of 1"),
                "{notes}"
            );
        }
    }
    place.fails(2, "bench collective --device pfs --peers");
    place.fails(2, "bench collective --device floppy");
}

#[test]
fn messages_are_measured_and_kept() {
    let place = Place::new();
    let run = |line: &str| {
        let mut command = place.command(line.split_whitespace());
        let output = command
            .env("XDG_CACHE_HOME", place.root())
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        (
            output.status.success(),
            text,
            String::from_utf8(output.stderr).unwrap(),
        )
    };
    let (ok, text, _) = run("calibrate --transport --ranks 3");
    assert!(ok && text.contains("for ranks of threads"), "{text}");
    let (_, json, _) = run("calibrate --transport --json");
    let cost: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert!(cost["meeting"].as_f64().unwrap() > 0.0);
    assert!(cost["message"]["each"].as_f64().unwrap() > 0.0);
    assert!(cost["all_to_all"]["meeting"].as_f64().unwrap() > 0.0);
    let kept = String::from_utf8(place.bytes("outcore/transports.json")).unwrap();
    let kept: serde_json::Value = serde_json::from_str(&kept).unwrap();
    assert_eq!(kept["threads"], cost);
    let (ok, _, message) = run("calibrate --transport --ranks 1");
    assert!(!ok && message.contains("two or more"), "{message}");
    let (ok, _, message) = run("calibrate . --ranks 2");
    assert!(!ok && message.contains("--transport"), "{message}");
    assert!(!run("calibrate").0);
}

#[test]
fn explain_tells_what_ranks_do_together() {
    let place = Place::new();
    place.ok("create a.oc --shape 64x64 --type f32 --layout column --fill index");
    // Overlapping, distinct, strided.
    for (section, useful) in [
        ("(1:10:1, 1+8*p:16+8*p:1)", 4 * 640),
        ("(1+8*p:8+8*p:1, 1:64:1)", 4 * 2048),
        ("(p+1:64:nprocs, p+1:64:nprocs)", 4 * 1024),
    ] {
        let args = ["a.oc", section, "--ranks", "4", "--domains", "dynamic"];
        for op in ["read", "write"] {
            let text = place.ok_args(&[&["explain"], &args[..], &["--op", op]].concat());
            assert!(text.contains("together  two-phase"), "{text}");
            assert!(text.contains("expected "), "{text}");
            assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
            let json = place.ok_args(
                &[
                    &["explain"],
                    &args[..],
                    &["--op", op, "--json", "--svg", "a.svg", "--force"],
                ]
                .concat(),
            );
            let answer: serde_json::Value = serde_json::from_str(&json).expect("JSON");
            let expected = answer["collective"]["estimates"]
                .as_array()
                .expect("a list");
            let seconds = |at: usize| expected[at]["predicted_s"].as_f64().unwrap();
            assert!((1..expected.len()).all(|at| seconds(at - 1) <= seconds(at)));
            let domains = answer["collective"]["domains"].as_array().expect("domains");
            assert_eq!(domains.len(), 4);
            let sum = |key: &str| -> u64 {
                domains
                    .iter()
                    .map(|domain| domain[key].as_u64().unwrap())
                    .sum()
            };
            assert_eq!(sum("useful_bytes"), useful, "{section} {op}");
            let bounds = &answer["collective"]["bounds"];
            let span = bounds[1].as_u64().unwrap() - bounds[0].as_u64().unwrap();
            assert_eq!(sum("bytes"), span, "the domains are what lies between");
            assert!(sum("moved_bytes") <= span && sum("requests") > 0);
            let picture = String::from_utf8(place.bytes("a.svg")).unwrap();
            assert!(picture.contains("in two phases"), "{section}");
        }
    }
    let message = place.fails(1, "explain a.oc p::N --ranks 4 --domains disks");
    assert!(message.contains("striped"), "{message}");
    let text = place.ok("explain a.oc p::N --ranks 4 --strategy mapped");
    assert!(text.contains("together  mapped"), "{text}");
    assert!(
        !place
            .ok("explain a.oc p::N --ranks 4 --rank 1")
            .contains("together")
    );
}
