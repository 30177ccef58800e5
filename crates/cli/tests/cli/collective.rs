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
        assert_eq!(lines.len(), 1 + 10 + 1, "{csv}");
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
