//! `--json`: every command that takes it closes with one object, in the same names
//! and units.

use serde_json::Value;

use crate::program::Place;

#[test]
fn commands_close_with_one_object() {
    let place = Place::new();
    for line in [
        "create a.npy --shape 40x30 --type f32 --fill random --json",
        "create i.npy --shape 50 --type u32 --fill index --json",
        "create m.npy --shape 30x20 --type f32 --fill random --json",
        "write a.npy 0:3,:: --fill 1 --json --ranks 2",
        "write a.npy p:8:2,: --from a%r.npy --json --ranks 2",
        "read a.npy ::2,: -o half.npy --json --ranks 2",
        "gather a.npy --indices i.npy -o got.npy --json --ranks 2",
        "scatter a.npy --indices i.npy --values got.npy --combine add --json",
        "mesh edges.oc nodes.oc --nodes 100 --json --ranks 3",
        "edge-sweep edges.oc nodes.oc flown.oc --steps 2 --json",
        "convert a.npy b.oc --json --verify",
        "transpose a.npy t.npy --json",
        "relayout a.npy tiles.oc --layout tiled:8x8 --json",
        "stats a.npy --json",
        "stats a.npy --json --axis 1 -o means.npy",
        "diff a.npy b.oc --json --tolerance 1e9",
        "median a.npy smooth.npy --window 3x3 --json",
        "laplace a.npy solved.npy --sweeps 2 --json",
        "fft a.npy spectrum.oc --json",
        "adi a.npy later.npy --steps 1 --ratio 0.5 --json",
        "matmul a.npy m.npy product.npy --json",
        "view a.npy -o a.png --json --force",
        "contract c[i,j]=a[i,k]*b[k,j] --segments i=3,4 --segments j=5 --segments k=2,2 --make --force --json",
    ] {
        for rank in 0..2 {
            place.ok(&format!(
                "create a{rank}.npy --shape 4x30 --type f32 --force"
            ));
        }
        let printed = place.ok(line);
        let found: Value = serde_json::from_str(&printed).expect(line);
        for (name, least) in [("seconds", 0.0), ("peak_memory_bytes", 1.0)] {
            let number = found[name].as_f64();
            assert!(
                number.is_some_and(|number| number >= least),
                "{line}: {printed}"
            );
        }
        // What makes an array of another says which.
        if line.starts_with("create") || found.get("done").is_some() {
            for name in ["output", "shape", "type", "bytes"] {
                assert!(!found[name].is_null(), "{line}: {name} of {printed}");
            }
        }
        let names: Vec<&String> = found.as_object().expect(line).keys().collect();
        let plain = |name: &&String| name.chars().all(|c| c.is_ascii_lowercase() || c == '_');
        assert!(names.iter().all(plain), "{line}: {names:?}");
    }
}

/// Tables are lists of objects, with numbers where there are numbers.
#[test]
fn tables_become_lists() {
    let place = Place::new();
    for (line, column) in [
        ("model alltoall --json", "model_corrected_s"),
        ("model alltoall --mesh 4x4 --bytes 1KiB --json", "model_s"),
        ("reproduce --table T5.3 --json", "simulated"),
        (
            "bench alltoall --ranks 2 --bytes 1KiB --repeat 1 --json",
            "best_s",
        ),
    ] {
        // A bench says on standard error what stands out.
        let args: Vec<&str> = line.split_whitespace().collect();
        let output = place.command(&args).output().expect("outcore starts");
        assert!(output.status.success(), "{line}");
        let printed = String::from_utf8(output.stdout).expect("text");
        let found: Vec<Value> = serde_json::from_str(&printed).expect(line);
        assert!(found.len() > 1, "{line}: {printed}");
        assert!(found[0][column].is_number(), "{line}: {}", found[0]);
    }
}

#[test]
fn facts_have_the_same_names_everywhere() {
    let place = Place::new();
    place.ok("create a.npy --shape 4x6 --type f32 --fill index");
    let parsed = |line: &str| -> Value { serde_json::from_str(&place.ok(line)).expect(line) };
    assert_eq!(parsed("info a.npy --json")["array"], "a.npy");
    let verified = parsed("verify a.npy --json");
    assert_eq!(verified["arrays"][0]["array"], "a.npy");
    assert!(
        verified["peak_memory_bytes"]
            .as_u64()
            .is_some_and(|bytes| bytes > 0)
    );
    let along = parsed("stats a.npy --axes 0 --json");
    assert_eq!(along["rows"][0]["count"].to_string(), "4");
    assert_eq!(along["rows"][0]["nans"].to_string(), "0");
    assert_eq!(along["passes"], 1);
    assert!(along["gb_per_s"].as_f64().is_some());
    let together = &parsed("explain a.npy ::2 --ranks 2 --json")["collective"];
    assert!(together["estimates"][0]["predicted_s"].as_f64().is_some());
    place.ok("transpose a.npy t.npy");
    let made = parsed("matmul a.npy t.npy p.npy --json");
    assert_eq!(made["shape"], serde_json::json!([4, 4]));
    assert_eq!(made["inputs"][1], "t.npy");
}
