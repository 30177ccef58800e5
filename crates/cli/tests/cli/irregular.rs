//! `gather` and `scatter`: elements at listed places.

use std::process::Command;

use crate::program::Place;

/// A one-axis .npy file of these numbers.
fn save<const N: usize>(place: &Place, name: &str, kind: &str, numbers: &[[u8; N]]) {
    save_shaped(place, name, kind, &format!("({},)", numbers.len()), numbers);
}

fn save_shaped<const N: usize>(
    place: &Place,
    name: &str,
    kind: &str,
    shape: &str,
    numbers: &[[u8; N]],
) {
    let header = format!("{{'descr': '{kind}', 'fortran_order': False, 'shape': {shape}, }}");
    let mut bytes = b"\x93NUMPY\x01\x00".to_vec();
    let len = (10 + header.len() + 1).next_multiple_of(64);
    bytes.extend(((len - 10) as u16).to_le_bytes());
    bytes.extend(header.as_bytes());
    bytes.resize(len - 1, b' ');
    bytes.push(b'\n');
    bytes.extend(numbers.concat());
    place.write(name, bytes);
}

fn save_u64(place: &Place, name: &str, numbers: &[u64]) {
    let numbers: Vec<[u8; 8]> = numbers.iter().map(|it| it.to_le_bytes()).collect();
    save(place, name, "<u8", &numbers);
}

fn save_f64(place: &Place, name: &str, numbers: &[f64]) {
    let numbers: Vec<[u8; 8]> = numbers.iter().map(|it| it.to_le_bytes()).collect();
    save(place, name, "<f8", &numbers);
}

fn load_f64(place: &Place, name: &str) -> Vec<f64> {
    let bytes = place.npy(name);
    let numbers = bytes.chunks_exact(8);
    numbers
        .map(|bytes| f64::from_le_bytes(bytes.try_into().unwrap()))
        .collect()
}

/// Knuth's linear congruential generator; its high bits are random.
fn random(count: usize, below: u64) -> Vec<u64> {
    let mut state = 1u64;
    let next = |_| {
        state = state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        (state >> 33) % below
    };
    (0..count).map(next).collect()
}

#[test]
fn elements_are_gathered_and_scattered_by_any_number_of_ranks() {
    let place = Place::new();
    for layout in ["row", "column", "tiled:7x5"] {
        for (ranks, memory) in [
            (1, ""),
            (3, ""),
            (2, "--memory 128KiB"),
            (5, "--memory 320KiB"),
        ] {
            let shape = format!("--shape 60x70 --type f64 --layout {layout} --force");
            place.ok(&format!("create a.oc {shape} --fill index"));
            let indices = random(20_000, 60 * 70);
            save_u64(&place, "i.npy", &indices);
            let told = place.ok(&format!(
                "gather a.oc --indices i.npy -o v.npy --ranks {ranks} {memory} --force"
            ));
            assert_eq!(told.contains("rounds"), !memory.is_empty(), "{told}");
            let expected: Vec<f64> = indices.iter().map(|index| *index as f64).collect();
            assert_eq!(load_f64(&place, "v.npy"), expected);
            // Of several values for one element, the last stays.
            let values: Vec<f64> = (0..indices.len()).map(|at| at as f64 + 0.5).collect();
            save_f64(&place, "w.npy", &values);
            place.ok(&format!(
                "scatter a.oc --indices i.npy --values w.npy --ranks {ranks} {memory}"
            ));
            let mut all: Vec<f64> = (0..60 * 70).map(f64::from).collect();
            for (index, value) in indices.iter().zip(&values) {
                all[*index as usize] = *value;
            }
            place.ok("convert a.oc all.npy --layout row --force");
            assert_eq!(
                load_f64(&place, "all.npy"),
                all,
                "{layout} {ranks} {memory}"
            );
            // Sums are of whole numbers, so their order does not matter.
            place.ok(&format!("create a.oc {shape} --fill index"));
            place.ok(&format!(
                "scatter a.oc --indices i.npy --values v.npy --combine add --ranks {ranks} {memory}"
            ));
            let mut all: Vec<f64> = (0..60 * 70).map(f64::from).collect();
            for index in &indices {
                all[*index as usize] += *index as f64;
            }
            place.ok("convert a.oc all.npy --layout row --force");
            assert_eq!(
                load_f64(&place, "all.npy"),
                all,
                "{layout} {ranks} {memory}"
            );
        }
    }
}

#[test]
fn ranks_have_files_of_their_own() {
    let place = Place::new();
    place.ok("create a.npy --shape 1000 --type f64 --fill index");
    let lists = [random(9000, 1000), Vec::new(), random(5000, 1000)];
    for (rank, list) in lists.iter().enumerate() {
        save_u64(&place, &format!("i{rank}.npy"), list);
        let values: Vec<f64> = (0..list.len()).map(|at| (at * 3 + rank) as f64).collect();
        save_f64(&place, &format!("w{rank}.npy"), &values);
    }
    for memory in ["", "--memory 200KiB"] {
        place.ok("create a.npy --shape 1000 --type f64 --fill index --force");
        place.ok(&format!(
            "gather a.npy --indices i%r.npy -o v%r.npy --ranks 3 {memory} --force"
        ));
        for (rank, list) in lists.iter().enumerate() {
            let expected: Vec<f64> = list.iter().map(|index| *index as f64).collect();
            assert_eq!(load_f64(&place, &format!("v{rank}.npy")), expected);
        }
        // The highest rank's last value stays, in however many rounds.
        place.ok(&format!(
            "scatter a.npy --indices i%r.npy --values w%r.npy --ranks 3 {memory}"
        ));
        let mut all: Vec<f64> = (0..1000).map(f64::from).collect();
        for (rank, list) in lists.iter().enumerate() {
            for (at, index) in list.iter().enumerate() {
                all[*index as usize] = (at * 3 + rank) as f64;
            }
        }
        assert_eq!(load_f64(&place, "a.npy"), all, "{memory}");
    }
}

#[test]
fn bad_input_is_refused_and_nothing_is_written() {
    let place = Place::new();
    place.ok("create a.npy --shape 10x3 --type f64 --fill index");
    save_u64(&place, "good.npy", &[0, 29, 7]);
    save_u64(&place, "far.npy", &[0, 29, 30]);
    save_u64(&place, "none.npy", &[]);
    save(&place, "negative.npy", "|i1", &[[3], [255], [0]]);
    save_f64(&place, "three.npy", &[1.0, 2.0, 3.0]);
    save_f64(&place, "two.npy", &[1.0, 2.0]);
    save(&place, "wide.npy", "<f4", &[[0u8; 4]; 3]);
    save_shaped(&place, "pairs.npy", "|u1", "(2, 2)", &[[0], [1], [9], [3]]);
    save_shaped(&place, "triples.npy", "|u1", "(1, 3)", &[[0], [1], [2]]);
    place.write("empty.npy", b"");
    let before = (place.bytes("a.npy"), place.names());
    for (line, part) in [
        (
            "--indices far.npy",
            "far.npy: index number 2 is 30, but a.npy has 30 elements",
        ),
        (
            "--indices negative.npy",
            "negative.npy: index number 1 is -1, but they begin at 0",
        ),
        (
            "--indices pairs.npy",
            "index number 1 is 3 along axis 1, where a.npy has 3",
        ),
        (
            "--indices triples.npy",
            "shape 1x3, but indices of a.npy are row-major numbers",
        ),
        (
            "--indices three.npy",
            "three.npy holds f64 values, but indices are integers",
        ),
        ("--indices none.npy", "none.npy has no indices"),
        ("--indices empty.npy", "empty.npy"),
        ("--indices missing.npy", "missing.npy"),
        (
            "--indices good.npy --axes 3",
            "has 2 axes, so the first 3 cannot be indexed",
        ),
        (
            "--indices good.npy --axes 1",
            "index number 1 is 29, but a.npy has 10",
        ),
    ] {
        for ranks in [1, 3] {
            let gather = format!("gather a.npy {line} -o new.npy --ranks {ranks}");
            let message = place.fails(1, &gather);
            assert!(message.contains(part), "{gather}: {message}");
        }
    }
    for (line, part) in [
        (
            "--indices far.npy --values three.npy",
            "index number 2 is 30",
        ),
        (
            "--indices negative.npy --values three.npy",
            "index number 1 is -1",
        ),
        (
            "--indices good.npy --values two.npy",
            "two.npy has the shape 2, but the 3 indices of good.npy need values of shape 3",
        ),
        ("--indices good.npy --values wide.npy", "f32"),
        ("--indices good.npy --values missing.npy", "missing.npy"),
        ("--indices none.npy --values two.npy", "shape 2"),
    ] {
        for ranks in [1, 3] {
            let scatter = format!("scatter a.npy {line} --ranks {ranks}");
            let message = place.fails(1, &scatter);
            assert!(message.contains(part), "{scatter}: {message}");
        }
    }
    place.fails(1, "gather missing.oc --indices good.npy -o new.npy");
    place.fails(1, "gather a.npy --indices good.npy -o two.npy");
    place.fails(2, "gather a.npy --indices good.npy");
    place.fails(2, "gather a.npy --indices good%r.npy -o new.npy");
    place.fails(2, "scatter a.npy --indices good.npy --values v%r.npy");
    place.fails(
        2,
        "scatter a.npy --indices good.npy --values three.npy --combine mul",
    );
    assert_eq!((place.bytes("a.npy"), place.names()), before);
}

/// Indices of the last round are looked at before the first writes.
#[test]
fn nothing_is_written_if_one_of_many_indices_is_wrong() {
    let place = Place::new();
    place.ok("create a.npy --shape 1000 --type f64 --fill index");
    let mut indices = random(50_000, 1000);
    *indices.last_mut().unwrap() = 1000;
    save_u64(&place, "i.npy", &indices);
    save_f64(&place, "v.npy", &vec![0.5; indices.len()]);
    let before = place.bytes("a.npy");
    for line in [
        "scatter a.npy --indices i.npy --values v.npy --memory 64KiB",
        "scatter a.npy --indices i.npy --values v.npy --memory 256KiB --ranks 3",
    ] {
        let message = place.fails(1, line);
        assert!(message.contains("index number 49999 is 1000"), "{message}");
    }
    assert_eq!(place.bytes("a.npy"), before);
    let message = place.fails(1, "gather a.npy --indices i.npy -o w.npy --memory 1000");
    assert!(
        message.contains("needs at least 64 KiB of memory"),
        "{message}"
    );
}

/// The interpreter is `OUTCORE_TEST_PYTHON`, or `python3`; it must have NumPy.
#[test]
fn numpy_takes_and_puts_the_same() {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let place = Place::new();
    place.write("check.py", include_str!("irregular_agrees.py"));
    let mut command = Command::new(&python);
    command.args(["check.py", env!("CARGO_BIN_EXE_outcore")]);
    let output = place.prepare(command).output().expect("python starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.ends_with("checked to the end\n"), "{printed}");
}

/// A name that describes a file is taken at its word, so it must describe what is written.
#[test]
fn described_outputs_hold_what_is_gathered() {
    let place = Place::new();
    place.ok("create a.npy --shape 60x70 --type f64 --fill index");
    let rows: Vec<u64> = random(500, 60);
    save_u64(&place, "i.npy", &rows);
    let line = "gather a.npy --axes 1 --indices i.npy -o";
    place.ok(&format!("{line} rows.npy"));
    for (layout, ranks, memory) in [
        ("row", 1, "1MiB"),
        ("column", 1, "1MiB"),
        ("column", 3, "256KiB"),
        ("tiled:7x5", 2, "1MiB"),
    ] {
        let raw = format!("raw:rows.bin?shape=500x70&type=f64&layout={layout}");
        place.ok(&format!(
            "{line} {raw} --force --ranks {ranks} --memory {memory}"
        ));
        place.ok(&format!("convert {raw} back.npy --layout row --force"));
        assert_eq!(place.bytes("back.npy"), place.bytes("rows.npy"), "{raw}");
    }
    for raw in [
        "raw:x.bin?shape=500&type=f64",
        "raw:x.bin?shape=500x71&type=f64",
        "raw:x.bin?shape=500x70&type=f32",
    ] {
        let message = place.fails(1, &format!("{line} {raw}"));
        assert!(
            message.contains("what is written is 500x70 f64"),
            "{message}"
        );
    }
    assert!(!place.path("x.bin").exists());
}
