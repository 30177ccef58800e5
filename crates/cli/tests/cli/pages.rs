//! Pages of `explain --html` and `bench --html`.

use std::path::Path;

use crate::html::text_of;
use crate::program::Place;

fn page(place: &Place, name: &str) -> String {
    String::from_utf8(place.bytes(name)).expect("text")
}

#[test]
fn explain_makes_a_page_of_one_rank() {
    let place = Place::new();
    place.ok("create a<b.oc --shape 300x400 --type f64 --fill index");
    let args = ["explain", "a<b.oc", "::10, ::10", "--analyze"];
    let told = place.ok_args(&[&args[..], &["--html", "e.html"]].concat());
    assert!(told.contains("<- chosen"), "{told}");
    let text = text_of(&page(&place, "e.html"));
    for part in [
        "a&lt;b.oc: 300x400 f64",
        "Time line",
        "when which part of the file is moved (measured times)",
        "sieving",
        "chosen",
        "expected to be fastest",
        "9.38 KiB",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // Every strategy with its number of requests.
    assert!(text.contains(" 1200 "), "{text}");
    assert_eq!(place.names(), ["a<b.oc", "e.html"]);
}

#[test]
fn explain_makes_a_page_of_many_ranks() {
    let place = Place::new();
    place.ok("create a.oc --shape 64x64 --type f64 --fill index");
    place.ok_args(&[
        "explain",
        "a.oc",
        "p::N, :",
        "--ranks",
        "4",
        "--strategy",
        "direct",
        "--html",
        "e.html",
        "--svg",
        "e.svg",
    ]);
    let page = page(&place, "e.html");
    let text = text_of(&page);
    for part in [
        "[3:64:4, 0:64]",
        "no element belongs to two ranks",
        "Domains of the file",
        "32 KiB",
        "two-phase/",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    // The picture of --svg stands in the page as it is.
    let svg = String::from_utf8(place.bytes("e.svg")).expect("text");
    assert!(page.contains(svg.trim_end()));
    // An empty section has a page, too.
    place.ok_args(&["explain", "a.oc", "0:0, :", "--html", "empty.html"]);
    text_of(&String::from_utf8(place.bytes("empty.html")).expect("text"));
    let told = place.fails_args(1, &["explain", "a.oc", "--html", "none/e.html"]);
    assert!(told.contains("none/e.html"), "{told}");
}

#[test]
fn a_bench_becomes_a_page() {
    let place = Place::new();
    let output = place
        .command([
            "bench", "global", "--ranks", "2", "--repeat", "1", "--bytes", "64,4096", "--sides",
            "4", "--csv", "--html", "b.html",
        ])
        .output()
        .expect("outcore starts");
    assert!(output.status.success());
    let csv = String::from_utf8(output.stdout).expect("text");
    let text = text_of(&page(&place, "b.html"));
    for part in [
        "cores",
        "memory",
        "outcore bench global --ranks 2",
        "memcpy",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(text.contains(&format!("all {} values", csv.lines().count() - 1)));
    // The same from the file of its values.
    place.write("b.csv", &csv);
    place.ok("bench --html again.html --from b.csv");
    let again = text_of(&page(&place, "again.html"));
    let charts = |text: &str| text[text.find("global: get").expect("a chart")..].to_string();
    assert_eq!(charts(&text), charts(&again));
}

#[test]
fn values_of_files_stand_in_the_page() {
    let place = Place::new();
    place.write("README.md", "made on a <fast> machine\nwith 2 cores");
    place.write(
        "x.csv",
        "system,bench,case,op,strategy,transport,ranks,useful_bytes,best_s,median_s,ok\n\
         outcore,demo,a & b,read,auto,threads,2,1000000,0.002000000,0.003,ok\n\
         outcore,demo,a & b,read,direct,threads,2,1000000,0.001000000,0.003,ok\n\
         pread,demo,a & b,read,block,threads,2,1000000,0.001000000,0.0015,ok\n\
         h5py,demo,a & b,read,own,threads,2,1000000,0.500000000,0.6,WRONG\n",
    );
    place.ok("bench --html x.html --from x.csv x.csv");
    let text = text_of(&page(&place, "x.html"));
    for part in [
        "demo: read",
        "a &amp; b",
        "logarithmic scale",
        // What outcore chooses itself counts, not its best.
        "2.00 ms",
        "x0.50",
        "500 ms  x250",
        "WRONG",
        "faster than the best other system in 1 of 1 cases, 250.00 times as fast in the middle",
        "at 0.50 of the speed of the limit",
        "0.500 GB",
        "made on a &lt;fast&gt; machine\nwith 2 cores",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("demo: read").count(), 2);
    place.write("bad.csv", "a,b\n1,2\n");
    let told = place.fails(1, "bench --html y.html --from bad.csv");
    assert!(told.contains("bad.csv") && told.contains("--csv"), "{told}");
    let told = place.fails(1, "bench --html y.html --from none.csv");
    assert!(told.contains("none.csv"), "{told}");
    place.fails(2, "bench --from x.csv");
    place.fails(2, "bench --html y.html");
    place.fails(2, "bench io --html y.html --from x.csv");
    let told = place.fails(2, "bench --from x.csv --html y.html io");
    assert!(told.contains("leave out the bench"), "{told}");
    assert!(!place.names().contains(&"y.html".to_string()));
}

#[test]
fn kept_runs_become_pages() {
    let place = Place::new();
    let runs = Path::new(env!("CARGO_MANIFEST_DIR")).join("../bench/runs");
    for run in [
        "2026-11-18/transpose/peers.csv",
        "2026-11-17/collective/read-4-warm.csv",
    ] {
        let run = runs.join(run);
        let run = run.to_str().expect("a readable path");
        place.ok_args(&["bench", "--html", "runs.html", "--force", "--from", run]);
        let text = text_of(&page(&place, "runs.html"));
        assert!(text.contains("README.md beside it") || !text.contains("transpose:"));
        assert!(text.contains("faster than the best other system"), "{text}");
    }
}
