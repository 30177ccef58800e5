//! `outcore checkpoint`: checkpoints that a program has saved here.

use outcore::{Checkpoints, DistributedArray, Distribution, Snapshot};
use serde_json::{Value, json};

use crate::program::{Place, complaint};

/// Saves checkpoints of two arrays as `step-1` and so on into `run`, on three
/// ranks.
fn save(place: &Place, steps: u32) {
    let directory = place.path("run");
    outcore::run(3, |comm| {
        let series = Checkpoints::open(comm, directory.to_str().unwrap())?;
        let of = |text, shape: &[u64]| Distribution::parse(text, shape, 3, None).expect("it fits");
        let mut u = DistributedArray::<f64>::new(comm, of("cyclic(7),*", &[512, 700]))?;
        let v = DistributedArray::<u8>::new(comm, of("block", &[9]))?;
        for step in 1..=steps {
            u.fill_with(|index| f64::from(step) * (index[0] * 700 + index[1]) as f64);
            let state = Snapshot::new()
                .with("u", &u)
                .with("v", &v)
                .note("step", step);
            series.save(comm, &format!("step-{step}"), &state)?;
        }
        Ok::<(), outcore::Error>(())
    })
    .expect("it can be saved");
}

/// What a run of a killed program leaves.
fn leave(place: &Place) {
    let name = "run/.new-00000000000000000000000000000000-step-9";
    std::fs::create_dir(place.path(name)).unwrap();
}

fn damage(place: &Place, file: &str, at: usize) {
    let mut bytes = place.bytes(file);
    bytes[at] ^= 1;
    place.write(file, bytes);
}

/// The output of a command that fails, and its message.
fn fails(place: &Place, line: &str) -> (String, String) {
    let mut command = place.command(line.split_whitespace());
    let output = command.output().expect("outcore starts");
    let text = String::from_utf8(output.stdout.clone()).expect("text");
    (text, complaint(&output, 1, line))
}

#[test]
fn list() {
    let place = Place::new();
    save(&place, 2);
    let text = place.ok("checkpoint list run");
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[0].starts_with("name") && lines.len() == 3, "{text}");
    assert!(lines[1].starts_with("step-1       1  20"), "{text}");
    assert!(
        lines[2].ends_with("  2.73 MiB  u 512x700 f64, v 9 u8"),
        "{text}"
    );

    let all: Value = serde_json::from_str(&place.ok("checkpoint list run --json")).expect("JSON");
    let newest = &all["checkpoints"][1];
    assert_eq!(newest["name"], "step-2");
    assert_eq!(newest["notes"], json!({ "step": 2 }));
    assert_eq!(newest["arrays"][0]["shape"], json!([512, 700]));
    assert_eq!(
        (&newest["sequence"], &newest["ranks"], &all["unfinished"]),
        (&json!(2), &json!(3), &json!([]))
    );

    // What it holds are arrays as any others.
    assert!(place.ok("info run/step-2/u.oc").contains("512x700"));
    assert_eq!(
        place.ok_args(&["read", "run/step-2/u.oc", "1, 0:3"]),
        "1400 1402 1404\n"
    );

    damage(&place, "run/step-1/manifest.json", 200);
    leave(&place);
    let text = place.ok("checkpoint list run");
    assert!(
        text.contains("step-1  damaged: run/step-1: manifest.json is damaged: its checksum"),
        "{text}"
    );
    assert!(text.contains("1 unfinished checkpoint is there"), "{text}");
    let all: Value = serde_json::from_str(&place.ok("checkpoint list run --json")).expect("JSON");
    assert!(
        all["checkpoints"][0]["damaged"]
            .as_str()
            .unwrap()
            .contains("manifest.json is damaged")
    );
    assert_eq!(all["unfinished"].as_array().unwrap().len(), 1);
}

#[test]
fn verify() {
    let place = Place::new();
    save(&place, 3);
    for line in ["checkpoint verify run", "checkpoint verify run --ranks 5"] {
        let text = place.ok(line);
        assert!(
            text.starts_with("step-1  intact, 2.73 MiB\nstep-2  intact"),
            "{text}"
        );
        assert!(text.contains("3 of 3 intact; 8.20 MiB in "), "{text}");
    }
    damage(&place, "run/step-2/u.oc/data.bin", 5);
    damage(&place, "run/step-2/u.oc/data.bin", (2 << 20) + 9);
    let (text, message) = fails(&place, "checkpoint verify run");
    assert!(
        text.contains(
            "step-2  damaged: array 'u' is damaged in block 0: bytes 0 to 1048575 of its file\n"
        ),
        "{text}"
    );
    assert!(
        text.contains("step-2  damaged: array 'u' is damaged in block 2: bytes 2097152 to 2867199"),
        "{text}"
    );
    assert!(text.contains("2 of 3 intact"), "{text}");
    assert!(
        message.contains("run: 1 of 3 checkpoints is damaged"),
        "{message}"
    );
    let (text, _) = fails(&place, "checkpoint verify run step-2 --json --ranks 1");
    let found: Value = serde_json::from_str(&text).expect("JSON");
    assert_eq!(
        found["checkpoints"][0]["damage"][1],
        json!({ "array": "u", "blocks": [2, 3], "bytes": [2_097_152, 2_867_200] })
    );
    assert_eq!(
        (&found["intact"], &found["checkpoints"][0]["intact"]),
        (&json!(0), &json!(false))
    );
    assert_eq!(found["bytes"], found["checkpoints"][0]["bytes"]);
    for closing in ["gb_per_s", "seconds", "peak_memory_bytes"] {
        assert!(found[closing].as_f64().is_some(), "{closing}: {text}");
    }
    assert!(
        place
            .ok("checkpoint verify run step-3")
            .contains("1 of 1 intact")
    );
    // What is for arrays only is not ignored.
    for option in ["--report r.txt --force", "--accept all", "--memory 1MiB"] {
        for name in ["run", "run/step-3"] {
            let message = place.fails(1, &format!("verify {name} {option}"));
            let first = option.split(' ').next().unwrap();
            let sentence = format!("{name} holds checkpoints, for which there is no {first};");
            assert!(message.contains(&sentence), "{message}");
        }
    }
    assert!(!place.path("r.txt").exists());

    std::fs::remove_file(place.path("run/step-1/v.oc/data.bin")).unwrap();
    damage(&place, "run/step-3/manifest.json", 100);
    leave(&place);
    let (text, message) = fails(&place, "checkpoint verify run --ranks 3");
    assert!(
        text.contains("step-1  damaged: cannot open run/step-1/v.oc/data.bin: No such file"),
        "{text}"
    );
    assert!(
        text.contains("step-3  damaged: run/step-3: manifest.json is damaged"),
        "{text}"
    );
    assert!(
        text.contains("0 of 3 intact") && text.contains("1 unfinished"),
        "{text}"
    );
    assert!(
        message.contains("3 of 3 checkpoints are damaged"),
        "{message}"
    );
}

#[test]
fn prune() {
    let place = Place::new();
    save(&place, 5);
    leave(&place);
    assert_eq!(
        place.ok("checkpoint prune run --keep 3"),
        "removed step-1, step-2 and 1 unfinished checkpoint\n"
    );
    assert_eq!(
        place.ok("checkpoint prune run --keep 3"),
        "nothing to remove\n"
    );
    let removed: Value =
        serde_json::from_str(&place.ok("checkpoint prune run --keep 1 --json")).expect("JSON");
    assert_eq!(
        removed,
        json!({ "removed": ["step-3", "step-4"], "unfinished": 0 })
    );
    assert_eq!(place.inside("run").names(), [".lock", "step-5"]);
    assert!(place.ok("checkpoint verify run").contains("1 of 1 intact"));
}

#[test]
fn what_is_no_series() {
    let place = Place::new();
    for action in ["list", "verify", "prune --keep 1"] {
        let message = place.fails(1, &format!("checkpoint {action} nothing"));
        assert!(
            message.contains("cannot open nothing: No such file"),
            "{message}"
        );
    }
    place.write("file", "x");
    assert!(
        place
            .fails(1, "checkpoint list file")
            .contains("file: this is no directory")
    );
    place.inside("empty");
    assert_eq!(
        place.ok("checkpoint list empty"),
        "there are no checkpoints in empty\n"
    );
    assert!(
        place
            .fails(1, "checkpoint verify empty")
            .contains("there are no checkpoints in empty")
    );
    assert_eq!(
        place.ok("checkpoint prune empty --keep 1"),
        "nothing to remove\n"
    );
    save(&place, 1);
    let message = place.fails(1, "checkpoint list run/step-1");
    assert!(
        message.contains("run/step-1 is one checkpoint; give the directory"),
        "{message}"
    );
    let message = place.fails(1, "checkpoint list run/step-1/u.oc");
    assert!(message.contains("is an array"), "{message}");
    let message = place.fails(1, "checkpoint verify run step-2");
    assert!(
        message.contains("there is no checkpoint 'step-2' in run; there are step-1"),
        "{message}"
    );
    place.fails(2, "checkpoint prune run");
    place.fails(2, "checkpoint prune run --keep 0");
}

#[test]
fn control_characters_of_names_are_shown() {
    let place = Place::new();
    save(&place, 1);
    std::fs::rename(place.path("run/step-1"), place.path("run/e\x1b[2J")).unwrap();
    for line in ["checkpoint list run", "checkpoint verify run"] {
        let output = place.command(line.split(' ')).output().unwrap();
        let told = String::from_utf8([output.stdout, output.stderr].concat()).unwrap();
        assert!(told.contains("e\\u{1b}[2J  "), "{line}: {told:?}");
        assert!(!told.contains('\x1b'), "{line}: {told:?}");
    }
}
