//! `outcore explain`: strategies, ranks, measurements, pictures.

use serde_json::Value;

use crate::program::Place;

fn json(place: &Place, args: &[&str]) -> Value {
    let text = place.ok_args(&[&["explain"], args, &["--json"]].concat());
    serde_json::from_str(&text).expect("JSON")
}

#[test]
fn explain_says_what_each_strategy_costs() {
    let place = Place::new();
    place.ok("create a.oc --shape 1000x1000 --type f64 --fill index");
    let text = place.ok_args(&["explain", "a.oc", "::10, ::10", "--analyze"]);
    for part in [
        "runs      10000",
        "80000 useful",
        "direct",
        "sieving",
        "mapped",
        "measured ms",
        "expected to be fastest",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert_eq!(text.matches("<- chosen").count(), 1, "{text}");
    assert!(text.lines().all(|line| line == line.trim_end()), "{text}");
    let forced = place.ok_args(&["explain", "a.oc", "::10, ::10", "--strategy", "direct"]);
    assert!(
        forced.contains("requests  10000") && forced.contains("was asked for"),
        "{forced}"
    );
    assert!(!forced.contains("measured"), "{forced}");
    let answer = json(&place, &["a.oc", "(1:1000:10, 1:1000:10)"]);
    assert_eq!(answer["useful_bytes"], 80000);
    assert_eq!(answer["strategies"].as_array().unwrap().len(), 3);
    assert_eq!(answer["strategies"][0]["strategy"], answer["chosen"]);
    assert_eq!(answer["strategies"][0]["measured_s"], Value::Null);
    let write = place.ok_args(&["explain", "a.oc", "::2, ::2", "--op", "write"]);
    assert!(
        write.contains("chosen") || write.contains("fastest"),
        "{write}"
    );
    assert!(place.fails(1, "explain a.oc 0:1001").contains("axis 0"));
}

#[test]
fn analyze_writes_only_on_demand_and_changes_nothing() {
    let place = Place::new();
    place.ok("create a.npy --shape 64x64 --type f32 --fill random");
    let before = place.bytes("a.npy");
    let message = place.fails(2, "explain a.npy --op write --analyze");
    assert!(message.contains("--rewrite"), "{message}");
    place.fails(2, "explain a.npy --rewrite");
    place.fails(2, "explain a.npy --analyze --rewrite");
    let answer = json(
        &place,
        &[
            "a.npy",
            "::2, ::2",
            "--op",
            "write",
            "--analyze",
            "--rewrite",
        ],
    );
    for strategy in answer["strategies"].as_array().unwrap() {
        assert!(strategy["measured_s"].as_f64().unwrap() > 0.0, "{strategy}");
    }
    assert_eq!(place.bytes("a.npy"), before);
}

#[test]
fn every_rank_has_its_line() {
    let place = Place::new();
    place.ok("create a.oc --shape 12x40 --type f64 --fill index");
    let answer = json(&place, &["a.oc", "p::N, ::2", "--ranks", "3", "--analyze"]);
    let ranks = answer["ranks"].as_array().unwrap();
    assert_eq!(ranks.len(), 3);
    for (rank, account) in ranks.iter().enumerate() {
        assert_eq!(account["rank"], rank);
        assert_eq!(account["section"], format!("{rank}:12:3, 0:40:2"));
        assert_eq!(account["runs"], 80);
        assert_eq!(account["useful_bytes"], 640);
    }
    let text = place.ok_args(&["explain", "a.oc", "p::N, ::2", "--ranks", "3"]);
    assert!(text.contains("no element belongs to two ranks"), "{text}");
    let text = place.ok_args(&["explain", "a.oc", "2*p:2*p+4, :", "--ranks", "5"]);
    assert!(
        text.contains("ranks 0 and 1 have 80 elements in common, and 3 more"),
        "{text}"
    );
    // A section for all is divided as `read` divides it.
    let answer = json(&place, &["a.oc", ":, 3", "--ranks", "4"]);
    assert_eq!(answer["ranks"][3]["section"], "9:12, 3:4");
    // One of them.
    let text = place.ok_args(&["explain", "a.oc", "p, :", "--ranks", "12", "--rank", "7"]);
    assert!(
        text.contains("rank      7 of 12") && text.contains("[7:8, 0:40]"),
        "{text}"
    );
    for (line, part) in [
        ("explain a.oc p:N", "rank to rank"),
        ("explain a.oc --rank 1", "--ranks"),
        ("explain a.oc --ranks 3 --rank 3", "the ranks are 0 to 2"),
        ("explain a.oc --ranks 0", "'0'"),
    ] {
        let message = place.fails(2, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    let message = place.fails(1, "explain a.oc p --ranks 13");
    assert!(message.contains("rank 12: "), "{message}");
    // A rank's own section may fit where another's does not.
    place.ok("explain a.oc p --ranks 13 --rank 11");
}

#[test]
fn cold_drops_the_array_first() {
    let place = Place::new();
    for create in [
        "create a.oc --shape 512x512 --type f64 --fill index",
        "create a.npy --shape 512x512 --type f64 --fill index",
        "create b.oc --shape 512x512 --type f64 --fill index --stripe-directory .",
    ] {
        place.ok(create);
        let name = create.split(' ').nth(1).unwrap();
        let text = place.ok_args(&["explain", name, "::2, ::2", "--cold", "--analyze"]);
        assert!(text.contains("dropped from the page cache"), "{text}");
        // Unknown on some systems; and what is in memory only cannot be dropped.
        let cached = |args: &[&str]| json(&place, args)["cached"].as_f64();
        place.ok(&format!("read {name} -o copy.npy --force"));
        let warm = cached(&[name]);
        assert!(warm.is_none_or(|share| share > 0.9), "{warm:?}");
        assert!(cached(&[name, "--cold"]) <= warm);
    }
}

#[test]
fn pictures_are_small_and_well_formed() {
    let place = Place::new();
    place.ok("create tiny.oc --shape 7x9 --type f64");
    place.ok("create line.npy --shape 100000 --type f64");
    place.ok("create cube.oc --shape 30x200x300 --type u8 --layout axes:2,0,1");
    place.ok("create tiled.oc --shape 300x200 --type f32 --layout tiled:16x16");
    place.ok("create big.oc --shape 16384x16384 --type f32");
    place.ok("create huge.oc --shape 524288x524288 --type f32");
    place.ok("create none.oc --shape 0x5 --type f32");
    place.ok("create <&>.oc --shape 7x9 --type f64");
    for args in [
        &["tiny.oc", "::2, ::3"][..],
        &[
            "tiny.oc",
            "p::N, :",
            "--ranks",
            "3",
            "--strategy",
            "sieving",
        ],
        &["<&>.oc", "::2, ::3", "--analyze"],
        &["line.npy", "17:90000:13", "--strategy", "direct"],
        &["cube.oc", "3, ::2, 100:"],
        &[
            "tiled.oc",
            "::5, 3:150",
            "--strategy",
            "sieving",
            "--gap",
            "1MiB",
        ],
        &["big.oc", "::2, ::2", "--strategy", "direct"],
        &["big.oc", "p::N, ::3", "--ranks", "64"],
        &["big.oc", "256*p:256*p+512, [1,5,9]", "--ranks", "63"],
        &["huge.oc", "::2, ::2"],
        &["none.oc"],
        &["big.oc", "5:5, :"],
    ] {
        place.ok_args(&[&["explain"], args, &["--svg", "picture.svg", "--force"]].concat());
        let svg = String::from_utf8(place.bytes("picture.svg")).expect("text");
        assert!(svg.len() < 200 << 10, "{args:?}: {} bytes", svg.len());
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        well_formed(&svg);
    }
    let missing = place.fails(1, "explain tiny.oc --svg nowhere/picture.svg");
    assert!(
        missing.contains("cannot write nowhere/picture.svg"),
        "{missing}"
    );
}

/// Every tag is closed, and texts hold no bare signs.
fn well_formed(svg: &str) {
    let mut open = Vec::new();
    for part in svg.split('<').skip(1) {
        let (tag, text) = part.split_once('>').expect("a tag ends");
        assert!(!text.contains('>'), "{text}");
        for entity in text.split('&').skip(1) {
            let known = ["amp;", "lt;", "gt;", "quot;"];
            assert!(
                known.iter().any(|known| entity.starts_with(known)),
                "{text}"
            );
        }
        assert!(!tag.contains("NaN") && !tag.contains("inf"), "{tag}");
        match tag.strip_prefix('/') {
            Some(name) => assert_eq!(open.pop(), Some(name)),
            None if tag.ends_with('/') => {}
            None => open.extend(tag.split(' ').next()),
        }
    }
    assert!(open.is_empty(), "{open:?}");
}

#[test]
fn chunks_that_are_decoded_have_no_other_strategy() {
    let place = Place::new();
    place.ok("create c.zarr --shape 64x64 --type f32 --chunks 16x16 --codec zstd:3");
    let text = place.ok("explain c.zarr ::2,:32 --html c.html");
    assert!(
        text.contains("chunked: 8 chunks are decoded whole for 1024 elements"),
        "{text}"
    );
    let page = String::from_utf8(place.bytes("c.html")).expect("text");
    for told in [text, page] {
        for wrong in ["sieving", "asked for", "Time line", "predicted"] {
            assert!(!told.contains(wrong), "{wrong}: {told}");
        }
    }
    let text = place.ok("explain c.zarr 0,0 --analyze");
    assert!(
        text.contains("1 chunk is decoded whole for 1 element;"),
        "{text}"
    );
    assert!(text.contains(" measured"), "{text}");
    // Somebody asked for this one.
    place.ok("create a.oc --shape 64x64 --type f32");
    let text = place.ok("explain a.oc ::2 --strategy direct --html a.html");
    assert!(
        text.contains("<- asked for") && !text.contains("chosen"),
        "{text}"
    );
    let page = String::from_utf8(place.bytes("a.html")).expect("text");
    assert!(page.contains("asked for"), "{page}");
}
