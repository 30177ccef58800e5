//! Bad input: one clear sentence that names the array, the value and what
//! would be right; no panic, and nothing left behind.

use std::path::Path;

use outcore::{Array, ArrayDescriptor, ElementType, Stripes};
use tempfile::TempDir;

fn message<T: std::fmt::Debug>(result: outcore::Result<T>) -> String {
    result.unwrap_err().to_string()
}

fn name(directory: &TempDir, file: &str) -> String {
    directory.path().join(file).to_str().unwrap().to_string()
}

fn is_empty(directory: &TempDir) -> bool {
    std::fs::read_dir(directory.path())
        .unwrap()
        .next()
        .is_none()
}

#[test]
fn sections_and_buffers_that_do_not_fit() {
    let directory = TempDir::new().unwrap();
    let name = name(&directory, "a.oc");
    let array = Array::create(&name, &ArrayDescriptor::new(&[10, 20], ElementType::F32)).unwrap();
    for (text, parts) in [
        ("0:11", vec!["a.oc", "axis 0", "10x20", "0:11"]),
        (":, 20", vec!["a.oc", "axis 1", "last index there is 19"]),
        ("1,2,3", vec!["3 axes where 2"]),
        ("a:b", vec!["'a' is unknown"]),
        ("(1:10)", vec!["1 axes where 2"]),
    ] {
        let message = message(array.section(text));
        assert!(
            parts.iter().all(|part| message.contains(part)),
            "{text} -> {message}"
        );
    }
    let section = array.section("0:2, 0:3").unwrap();
    let wrong = message(array.read::<f64>(&section));
    assert!(wrong.contains("holds f32 elements, not f64"), "{wrong}");
    let wrong = message(array.write(&section, &[0f32; 5]));
    assert!(
        wrong.contains("has 6 elements, but the buffer holds 5"),
        "{wrong}"
    );
    let wrong = message(Array::open(&name).unwrap().write(&section, &[0f32; 6]));
    assert!(wrong.contains("for reading only"), "{wrong}");
    // A section of another, larger array.
    let other = outcore::Section::parse("0:50, 0:3", &[100, 20]).unwrap();
    assert!(message(array.read::<f32>(&other)).contains("10x20"));
}

#[test]
fn names_that_lead_nowhere() {
    let directory = TempDir::new().unwrap();
    for (file, part) in [
        ("missing.oc", "No such file"),
        ("missing.npy", "No such file"),
    ] {
        let message = message(Array::open(&name(&directory, file)));
        assert!(
            message.contains(part) && message.contains(file),
            "{message}"
        );
    }
    let plain = name(&directory, "plain.bin");
    std::fs::write(&plain, "hello").unwrap();
    let unknown = message(Array::open(&plain));
    assert!(
        unknown.contains("raw:") && unknown.contains("plain.bin"),
        "{unknown}"
    );
    let short = message(Array::open(&format!("raw:{plain}?shape=4&type=f32")));
    assert!(
        short.contains("has 5 bytes") && short.contains("needs 16"),
        "{short}"
    );
    let empty = message(Array::open(directory.path().to_str().unwrap()));
    assert!(empty.contains("no array.json"), "{empty}");
}

#[test]
fn arrays_that_cannot_be_made_leave_nothing() {
    let directory = TempDir::new().unwrap();
    let f32s = |shape: &[u64]| ArrayDescriptor::new(shape, ElementType::F32);
    let make = |file: &str, descriptor: &ArrayDescriptor| {
        message(Array::create(&name(&directory, file), descriptor))
    };
    assert!(make("a.oc", &f32s(&[1 << 62, 4])).contains("63 bits"));
    assert!(make("a.npy", &f32s(&[u64::MAX])).contains("63 bits"));
    assert!(make("a.dat", &f32s(&[4])).contains(".oc"));
    let tiled = f32s(&[4, 4]).layout("tiled:2x2".parse().unwrap());
    assert!(make("a.npy", &tiled).contains("row or column"));
    let tiled = f32s(&[4, 4]).layout("tiled:2".parse().unwrap());
    assert!(make("a.oc", &tiled).contains("1 axes where 2"));
    let zero = f32s(&[4, 4]).layout("tiled:0x2".parse().unwrap());
    assert!(make("a.oc", &zero).contains("at least 1"));
    let stripes = |unit, path: &str| Stripes {
        unit,
        directories: vec![path.into()],
    };
    let missing = f32s(&[4]).striped(stripes(8, "/no/such/disk"));
    assert!(make("a.oc", &missing).contains("/no/such/disk"));
    let zero = f32s(&[4]).striped(stripes(0, "/tmp"));
    assert!(make("a.oc", &zero).contains("stripe unit"));
    assert!(make("no/such/place/a.oc", &f32s(&[4])).contains("no/such/place"));
    assert!(is_empty(&directory));
}

#[test]
fn existing_arrays_are_replaced_only_on_demand() {
    let directory = TempDir::new().unwrap();
    for file in ["a.oc", "a.npy"] {
        let name = name(&directory, file);
        let old = ArrayDescriptor::new(&[4], ElementType::F32);
        Array::create(&name, &old)
            .unwrap()
            .write(&Array::open(&name).unwrap().whole(), &[1f32; 4])
            .unwrap();
        assert!(message(Array::create(&name, &old)).contains("exists already"));
        // A draft that is given up leaves the old array as it was.
        let new = ArrayDescriptor::new(&[2], ElementType::I64);
        drop(Array::draft(&name, &new, true).unwrap());
        let kept = Array::open(&name).unwrap();
        assert_eq!(kept.read::<f32>(&kept.whole()).unwrap(), [1.0; 4]);
        Array::draft(&name, &new, true).unwrap().commit().unwrap();
        assert_eq!(Array::open(&name).unwrap().descriptor().shape, [2]);
    }
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 2);
}

#[test]
fn what_is_no_array_is_never_replaced() {
    let directory = TempDir::new().unwrap();
    let name = name(&directory, "keep.oc");
    std::fs::create_dir(&name).unwrap();
    std::fs::write(Path::new(&name).join("diary.txt"), "dear").unwrap();
    let descriptor = ArrayDescriptor::new(&[4], ElementType::F32);
    let refused = message(Array::draft(&name, &descriptor, true));
    assert!(
        refused.contains("does not replace") && refused.contains("keep.oc"),
        "{refused}"
    );
    assert!(Path::new(&name).join("diary.txt").exists());
}

#[test]
fn axes_of_one_index_come_and_go_in_every_order() {
    let directory = TempDir::new().unwrap();
    for layout in ["row", "column", "axes:1,0,2"] {
        let name = name(
            &directory,
            &format!("{}.oc", layout.replace([':', ','], "")),
        );
        let descriptor =
            ArrayDescriptor::new(&[3, 1, 5], ElementType::I32).layout(layout.parse().unwrap());
        let array = Array::create(&name, &descriptor).unwrap();
        let values: Vec<i32> = (0..15).collect();
        array.write(&array.whole(), &values).unwrap();
        for shape in [vec![3, 5], vec![1, 3, 5, 1], vec![3, 1, 1, 5]] {
            let seen = array.with_unit_axes(&shape).unwrap();
            assert_eq!(seen.shape(), shape);
            assert_eq!(
                seen.read::<i32>(&seen.whole()).unwrap(),
                values,
                "{layout} {shape:?}"
            );
        }
        assert!(message(array.with_unit_axes(&[5, 3])).contains("does not fit"));
    }
}

#[test]
fn axes_of_one_index_come_and_go_beside_tiles() {
    let directory = TempDir::new().unwrap();
    let arrays = [
        (
            "tiled:2x4",
            vec![3, 5],
            vec![vec![1, 3, 5], vec![3, 1, 5, 1]],
        ),
        (
            "tiled:2x1x4",
            vec![3, 1, 5],
            vec![vec![3, 5], vec![1, 3, 5, 1]],
        ),
        (
            "tiled:2x3x4",
            vec![3, 1, 5],
            vec![vec![1, 3, 1, 5], vec![3, 1, 1, 5]],
        ),
        (
            "tiled:2x1x4:column",
            vec![3, 1, 5],
            vec![vec![3, 5], vec![1, 3, 5]],
        ),
        (
            "tiled:2x3x4:axes:2,0,1",
            vec![3, 1, 5],
            vec![vec![3, 1, 5, 1]],
        ),
    ];
    for (at, (layout, stored, shapes)) in arrays.into_iter().enumerate() {
        let name = name(&directory, &format!("{at}.oc"));
        let descriptor =
            ArrayDescriptor::new(&stored, ElementType::I32).layout(layout.parse().unwrap());
        let array = Array::create(&name, &descriptor).unwrap();
        let values: Vec<i32> = (0..15).collect();
        array.write(&array.whole(), &values).unwrap();
        for shape in shapes {
            let seen = array.with_unit_axes(&shape).unwrap();
            let found = seen.read::<i32>(&seen.whole()).unwrap();
            assert_eq!(found, values, "{layout} {shape:?}");
        }
        if layout.contains("2x3x4") {
            let refused = message(array.with_unit_axes(&[3, 5]));
            assert!(refused.contains("longer tiles"), "{refused}");
        }
    }
}

#[test]
fn a_replaced_striped_array_takes_its_stripes_along() {
    let directory = TempDir::new().unwrap();
    let disk = TempDir::new().unwrap();
    let stripes = Stripes {
        unit: 8,
        directories: vec![disk.path().into(), disk.path().into()],
    };
    let name = name(&directory, "a.oc");
    let descriptor = ArrayDescriptor::new(&[40], ElementType::F32).striped(stripes);
    drop(Array::draft(&name, &descriptor, false).unwrap());
    assert!(is_empty(&disk) && is_empty(&directory));
    Array::create(&name, &descriptor).unwrap();
    assert_eq!(std::fs::read_dir(disk.path()).unwrap().count(), 2);
    let plain = ArrayDescriptor::new(&[40], ElementType::F32);
    Array::draft(&name, &plain, true).unwrap().commit().unwrap();
    assert!(is_empty(&disk));
}

/// The ten corruptions, and more.
#[test]
fn hostile_descriptors() {
    let directory = TempDir::new().unwrap();
    let name = name(&directory, "a.oc");
    Array::create(&name, &ArrayDescriptor::new(&[4, 6], ElementType::F32)).unwrap();
    let path = Path::new(&name).join("array.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let swap = |from: &str, to: &str| {
        assert!(good.contains(from), "{from} in {good}");
        good.replacen(from, to, 1)
    };
    let cases = [
        ("cut", good[..good.len() / 2].to_string(), "not JSON"),
        ("binary", "\u{0}\u{1}\u{2}".into(), "not JSON"),
        ("empty", String::new(), "not JSON"),
        ("another kind of document", "[1, 2]".into(), "format"),
        ("format", swap("outcore-array", "zarr"), "format"),
        ("version", swap("\"version\": 1", "\"version\": 99"), "version 99"),
        ("no version", swap("\"version\": 1,", ""), "no version"),
        ("negative extent", swap("    4,", "    -4,"), "-4"),
        ("absurd shape", swap("    4,", "    9223372036854775807,"), "63 bits"),
        ("too large for the data", swap("    4,", "    5,"), "needs 120"),
        ("fractional extent", swap("    4,", "    4.5,"), "4.5"),
        ("unknown type", swap("\"f32\"", "\"f31\""), "f31"),
        ("unknown layout", swap("\"row\"", "\"zigzag\""), "zigzag"),
        ("tiles of nothing", swap("\"row\"", "\"tiled:0x0\""), "at least 1"),
        ("unknown byte order", swap("\"little\"", "\"middle\""), "middle"),
        ("path traversal", swap("data.bin", "../../etc/passwd"), "../../etc/passwd"),
        ("absolute data file", swap("data.bin", "/etc/passwd"), "/etc/passwd"),
        ("unknown placement", swap("\"global\"", "\"orbit\""), "orbit"),
        ("unknown field", swap("\"layout\"", "\"lay-out\""), "lay-out"),
        (
            "stripes that are other files",
            swap("\"kind\": \"global\",", "\"kind\": \"striped\", \"id\": \"../x\", \"unit\": 4, \"directories\": [\"/etc\"],")
                .replace("\"data\": \"data.bin\"", "\"attributes\": {}")
                .replacen(", \"attributes\": {}", "", 1),
            "array.json",
        ),
    ];
    for (what, text, part) in cases {
        std::fs::write(&path, &text).unwrap();
        let message = message(Array::open(&name));
        assert!(
            message.contains(part) && message.contains("a.oc"),
            "{what}: {message}\n{text}"
        );
    }
    std::fs::write(&path, &good).unwrap();
    Array::open(&name).unwrap();
    // A truncated data file.
    std::fs::File::options()
        .write(true)
        .open(Path::new(&name).join("data.bin"))
        .unwrap()
        .set_len(50)
        .unwrap();
    let short = message(Array::open(&name));
    assert!(
        short.contains("has 50 bytes") && short.contains("needs 96"),
        "{short}"
    );
}

#[test]
fn striped_descriptors_cannot_name_foreign_files() {
    let directory = TempDir::new().unwrap();
    let disk = TempDir::new().unwrap();
    let name = name(&directory, "a.oc");
    let stripes = Stripes {
        unit: 8,
        directories: vec![disk.path().into()],
    };
    Array::create(
        &name,
        &ArrayDescriptor::new(&[40], ElementType::F32).striped(stripes),
    )
    .unwrap();
    let path = Path::new(&name).join("array.json");
    let good = std::fs::read_to_string(&path).unwrap();
    let id = good
        .split("\"id\": \"")
        .nth(1)
        .unwrap()
        .split('"')
        .next()
        .unwrap();
    for (text, part) in [
        (good.replace(id, "../../../etc/passwd"), "32 hexadecimal"),
        (
            good.replace(disk.path().to_str().unwrap(), "relative/place"),
            "absolute",
        ),
        (good.replace("\"unit\": 8", "\"unit\": 0"), "stripe unit"),
        (good.replace(id, &"0".repeat(32)), "No such file"),
    ] {
        std::fs::write(&path, text).unwrap();
        let message = message(Array::open(&name));
        assert!(message.contains(part), "{message}");
    }
}

#[test]
fn damaged_npy_files() {
    let directory = TempDir::new().unwrap();
    let name = name(&directory, "a.npy");
    Array::create(&name, &ArrayDescriptor::new(&[4, 6], ElementType::F32)).unwrap();
    let good = std::fs::read(&name).unwrap();
    for length in [0, 3, 6, 9, 11, 40, 127, 128, 200] {
        std::fs::write(&name, &good[..length]).unwrap();
        assert!(message(Array::open(&name)).contains("a.npy"), "{length}");
    }
    for at in 0..128 {
        let mut bytes = good.clone();
        bytes[at] = bytes[at].wrapping_add(17);
        std::fs::write(&name, &bytes).unwrap();
        let _ = Array::open(&name);
    }
}

#[test]
fn bytes_that_are_no_bool_are_an_error() {
    let directory = TempDir::new().unwrap();
    let file = name(&directory, "b.bin");
    std::fs::write(&file, [0, 1, 7, 1]).unwrap();
    let array = Array::open(&format!("raw:{file}?shape=4&type=bool")).unwrap();
    assert!(message(array.read::<bool>(&array.whole())).contains("no bool"));
    assert_eq!(
        array.read::<bool>(&array.section("0:2").unwrap()).unwrap(),
        [false, true]
    );
}

#[cfg(target_os = "linux")]
#[test]
fn pipes_and_endless_shapes_are_refused_at_once() {
    let directory = tempfile::tempdir().unwrap();
    let pipe = name(&directory, "pipe.npy");
    let made = std::process::Command::new("mkfifo").arg(&pipe).status();
    assert!(made.unwrap().success());
    let text = message(Array::open(&pipe));
    assert!(text.contains("pipe"), "{text}");
    let folder = name(&directory, "pipe.oc");
    std::fs::create_dir(&folder).unwrap();
    let inside = name(&directory, "pipe.oc/array.json");
    std::fs::rename(&pipe, &inside).unwrap();
    let text = message(Array::open(&folder));
    assert!(text.contains("pipe"), "{text}");
    let many = ArrayDescriptor::new(&[1; 2000], ElementType::U8);
    let text = message(Array::create(&name(&directory, "axes.oc"), &many));
    assert!(text.contains("2000 axes"), "{text}");
}

#[test]
fn a_full_disk_and_missing_permission() {
    let array = Array::open_writable("raw:/dev/full?shape=4&type=f32");
    // A device has no length; what matters is that it says so and names itself.
    assert!(message(array).contains("/dev/full"));
    let directory = TempDir::new().unwrap();
    let name = name(&directory, "a.npy");
    Array::create(&name, &ArrayDescriptor::new(&[4], ElementType::F32)).unwrap();
    let mut permissions = std::fs::metadata(&name).unwrap().permissions();
    permissions.set_readonly(true);
    std::fs::set_permissions(&name, permissions).unwrap();
    // The superuser may write anything; others are told.
    if let Err(error) = Array::open_writable(&name) {
        assert!(error.to_string().contains("ermission"), "{error}");
    }
}
