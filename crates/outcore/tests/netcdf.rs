//! Classic NetCDF files that are built here, byte by byte, against what they hold:
//! sections read and written, all versions, fixed and record variables; new files;
//! offsets beyond 4 GiB; and damaged headers.

use std::path::Path;

use outcore::{Array, ArrayDescriptor, ElementType, Section, list};
use proptest::prelude::*;
use serde_json::json;

/// A variable: its type's number, its shape without records, whether it has them.
#[derive(Debug, Clone)]
struct Variable {
    kind: u32,
    shape: Vec<u64>,
    records: bool,
}

/// The bytes of an element, by the number of the type.
fn size(kind: u32) -> usize {
    [0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8][kind as usize]
}

/// A file, what its variables hold as the file has it, and the length of the header.
struct Built {
    bytes: Vec<u8>,
    contents: Vec<Vec<u8>>,
    header: usize,
}

fn pad(bytes: &mut Vec<u8>) {
    bytes.resize(bytes.len().next_multiple_of(4), 0);
}

/// The header, for data that begin at these offsets. Dimension 0 is that of the
/// records, the others are those of the variables one after another.
fn header(version: u8, records: u64, variables: &[Variable], begins: &[u64]) -> Vec<u8> {
    let mut out = vec![b'C', b'D', b'F', version];
    let count = |out: &mut Vec<u8>, count: u64| match version {
        5 => out.extend(count.to_be_bytes()),
        _ => out.extend((count as u32).to_be_bytes()),
    };
    let name = |out: &mut Vec<u8>, name: &str| {
        count(out, name.len() as u64);
        out.extend(name.as_bytes());
        pad(out);
    };
    let word = |out: &mut Vec<u8>, word: u32| out.extend(word.to_be_bytes());
    count(&mut out, records);
    let extents: Vec<u64> = variables.iter().flat_map(|v| v.shape.clone()).collect();
    word(&mut out, 10);
    count(&mut out, 1 + extents.len() as u64);
    for (number, extent) in [&0].into_iter().chain(&extents).enumerate() {
        name(&mut out, &format!("d{number}"));
        count(&mut out, *extent);
    }
    // Global attributes: a text and three numbers.
    word(&mut out, 12);
    count(&mut out, 2);
    name(&mut out, "title");
    word(&mut out, 2);
    name(&mut out, "hello");
    name(&mut out, "list");
    word(&mut out, 3);
    count(&mut out, 3);
    out.extend([0, 1, 255, 255, 0, 3]);
    pad(&mut out);
    word(&mut out, if variables.is_empty() { 0 } else { 11 });
    count(&mut out, variables.len() as u64);
    let mut dimension = 0;
    for (number, (variable, begin)) in variables.iter().zip(begins).enumerate() {
        name(&mut out, &format!("v{number}"));
        count(
            &mut out,
            variable.shape.len() as u64 + u64::from(variable.records),
        );
        if variable.records {
            count(&mut out, 0);
        }
        for _ in &variable.shape {
            dimension += 1;
            count(&mut out, dimension);
        }
        word(&mut out, 12);
        count(&mut out, 1);
        name(&mut out, "scale_factor");
        word(&mut out, 6);
        count(&mut out, 1);
        out.extend(0.5f64.to_be_bytes());
        word(&mut out, variable.kind);
        count(&mut out, 0xffff_ffff);
        match version {
            1 => word(&mut out, *begin as u32),
            _ => out.extend(begin.to_be_bytes()),
        }
    }
    out
}

fn build(version: u8, records: u64, variables: &[Variable]) -> Built {
    let slab = |v: &Variable| size(v.kind) * v.shape.iter().product::<u64>() as usize;
    let alone = variables.iter().filter(|v| v.records).count() == 1;
    let len = header(version, records, variables, &vec![0; variables.len()]).len();
    // Fixed variables first, then the records.
    let mut data = vec![0; len];
    let mut begins = vec![0; variables.len()];
    let mut contents = vec![Vec::new(); variables.len()];
    let element = |number: usize, at: usize| (number * 89 + at * 7 + at / 256 + 1) as u8;
    for (number, variable) in variables.iter().enumerate().filter(|(_, v)| !v.records) {
        begins[number] = data.len() as u64;
        contents[number] = (0..slab(variable)).map(|at| element(number, at)).collect();
        data.extend(&contents[number]);
        pad(&mut data);
    }
    for record in 0..records.max(1) {
        for (number, variable) in variables.iter().enumerate().filter(|(_, v)| v.records) {
            if record == 0 {
                begins[number] = data.len() as u64;
            }
            if record == records {
                continue;
            }
            let from = contents[number].len();
            let new = (from..from + slab(variable)).map(|at| element(number, at));
            contents[number].extend(new);
            data.extend(&contents[number][from..]);
            if !alone {
                pad(&mut data);
            }
        }
    }
    let head = header(version, records, variables, &begins);
    data[..len].copy_from_slice(&head);
    Built {
        bytes: data,
        contents,
        header: len,
    }
}

/// Big-endian elements as this machine has them, and back.
fn native(bytes: &[u8], size: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    if cfg!(target_endian = "little") {
        bytes.chunks_mut(size).for_each(<[u8]>::reverse);
    }
    bytes
}

/// The row-major numbers of a section's elements.
fn numbers(shape: &[u64], section: &Section) -> Vec<usize> {
    let mut all = vec![0u64];
    for (axis, extent) in section.axes().iter().zip(shape) {
        let indices: Vec<u64> = (0..axis.count()).map(|at| axis.index(at)).collect();
        all = all
            .iter()
            .flat_map(|before| indices.iter().map(move |at| before * extent + at))
            .collect();
    }
    all.into_iter().map(|number| number as usize).collect()
}

fn variables(old: bool) -> impl Strategy<Value = Vec<Variable>> {
    let most = if old { 6u32 } else { 11 };
    let one = (
        1..=most,
        prop::collection::vec(1u64..6, 0..3),
        any::<bool>(),
    );
    let one = one.prop_map(|(kind, shape, records)| Variable {
        kind,
        shape,
        records,
    });
    prop::collection::vec(one, 1..5)
}

fn name(folder: &Path, text: &str) -> String {
    folder.join(text).to_str().unwrap().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn variables_are_read_and_changed_in_place(
        (version, variables) in prop::sample::select(vec![1u8, 2, 5])
            .prop_flat_map(|version| (Just(version), variables(version != 5))),
        records in 0u64..7,
        steps in prop::collection::vec((0u64..6, 1u64..7, 1u64..4), 3),
    ) {
        let built = build(version, records, &variables);
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.nc");
        std::fs::write(&path, &built.bytes).unwrap();
        let mut contents = built.contents.clone();
        for (number, variable) in variables.iter().enumerate() {
            let name = name(folder.path(), &format!("a.nc:v{number}"));
            let array = Array::open_writable(&name).unwrap();
            let mut shape = variable.shape.clone();
            if variable.records {
                shape.insert(0, records);
            }
            prop_assert_eq!(array.shape(), &shape[..]);
            prop_assert_eq!(array.descriptor().attributes.get("scale_factor"), Some(&json!(0.5)));
            let axes: Vec<String> = shape.iter().zip(&steps).map(|(extent, (from, to, step))| {
                let (from, to) = (from.min(extent), to.min(extent));
                format!("{}:{}:{step}", from.min(to), to)
            }).collect();
            let section = match axes.len() {
                0 => array.whole(),
                _ => array.section(&axes.join(", ")).unwrap(),
            };
            let size = size(variable.kind);
            let chosen = numbers(&shape, &section);
            let expected: Vec<u8> = chosen.iter()
                .flat_map(|at| native(&contents[number][at * size..][..size], size))
                .collect();
            let mut found = vec![0; expected.len()];
            array.read_bytes(&section, &mut found).unwrap();
            prop_assert_eq!(&found, &expected);
            // The same elements, changed.
            found.iter_mut().for_each(|byte| *byte = !*byte);
            array.write_bytes(&section, &found).unwrap();
            for at in chosen {
                contents[number][at * size..][..size].iter_mut().for_each(|byte| *byte = !*byte);
            }
            // All variables hold what they should, and nothing else has changed.
            for (other, variable) in variables.iter().enumerate() {
                let name = self::name(folder.path(), &format!("a.nc:v{other}"));
                let array = Array::open(&name).unwrap();
                let mut found = vec![0; contents[other].len()];
                array.read_bytes(&array.whole(), &mut found).unwrap();
                prop_assert_eq!(&found, &native(&contents[other], self::size(variable.kind)));
            }
        }
        let after = std::fs::read(&path).unwrap();
        prop_assert_eq!(after.len(), built.bytes.len());
        prop_assert_eq!(&after[..built.header], &built.bytes[..built.header]);
    }

    #[test]
    fn damaged_headers_are_refused_or_understood(
        version in prop::sample::select(vec![1u8, 2, 5]),
        variables in variables(true),
        records in 0u64..4,
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let built = build(version, records, &variables);
        let mut bytes = built.bytes;
        for (at, byte) in changes {
            bytes[at.index(built.header)] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        touch(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_understood(
        version in prop::sample::select(vec![1u8, 2, 5]),
        bytes in prop::collection::vec(prop::sample::select(vec![0u8, 0, 0, 0, 1, 2, 4, 10, 11, 12, 255]), 0..300),
    ) {
        touch(&[&[b'C', b'D', b'F', version][..], &bytes].concat());
    }
}

/// Opens whatever there is, and reads the corners of it.
fn touch(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.nc"), bytes).unwrap();
    let name = name(folder.path(), "a.nc");
    let Ok(items) = list(&name) else {
        return;
    };
    for item in items.iter().filter(|item| item.array.is_some()).take(20) {
        let Ok(array) = Array::open(&format!("{name}:{}", item.path)) else {
            continue;
        };
        let shape = array.shape();
        if shape.contains(&0) || shape.is_empty() {
            continue;
        }
        let last: Vec<String> = shape
            .iter()
            .map(|extent| (extent - 1).to_string())
            .collect();
        for corner in [vec!["0".to_string(); shape.len()], last] {
            let section = array.section(&corner.join(", ")).unwrap();
            let mut element = vec![0; array.element_type().size() as usize];
            let _ = array.read_bytes(&section, &mut element);
        }
    }
}

#[test]
fn hostile_counts_are_refused_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let name = name(folder.path(), "a.nc");
    let refused = |bytes: &[u8], words: &str| {
        std::fs::write(&name, bytes).unwrap();
        let problem = Array::open(&name).unwrap_err().to_string();
        assert!(problem.contains(words), "{problem}");
        assert!(problem.contains("a.nc"), "{problem}");
    };
    // 2^32 - 1 dimensions, and a name of 2^62 bytes.
    let many = [&b"CDF\x01\0\0\0\0\0\0\0\x0a\xff\xff\xff\xff"[..], &[0; 64]].concat();
    refused(&many, "ends too early");
    let mut long = b"CDF\x05".to_vec();
    long.extend([0; 8]);
    long.extend([0, 0, 0, 10, 0, 0, 0, 0, 0, 0, 0, 1]);
    long.extend((1u64 << 62).to_be_bytes());
    refused(&long, "ends too early");
    refused(b"CDF\x01", "ends too early");
    let fixed = Variable {
        kind: 6,
        shape: vec![u64::from(u32::MAX), u64::from(u32::MAX), 9],
        records: false,
    };
    refused(
        &header(2, 0, std::slice::from_ref(&fixed), &[300]),
        "2^64 bytes",
    );
    let large = Variable {
        shape: vec![100_000, 100_000],
        ..fixed
    };
    refused(
        &header(2, 0, std::slice::from_ref(&large), &[300]),
        "truncated",
    );
    let grows = Variable {
        records: true,
        ..large
    };
    refused(
        &header(2, 5_000_000, std::slice::from_ref(&grows), &[300]),
        "truncated",
    );
    refused(&header(5, 1 << 60, &[grows], &[u64::MAX]), "2^64");
}

#[test]
fn the_only_variable_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = name(folder.path(), "a.nc");
    let variable = |shape: &[u64]| Variable {
        kind: 5,
        shape: shape.to_vec(),
        records: false,
    };
    let built = build(1, 0, &[variable(&[3]), variable(&[2, 2])]);
    // The first becomes a coordinate variable: its dimension has its name.
    let mut bytes = built.bytes;
    let at = bytes.windows(2).position(|pair| pair == b"d1").unwrap();
    bytes[at] = b'v';
    bytes[at + 1] = b'0';
    std::fs::write(&path, &bytes).unwrap();
    assert_eq!(Array::open(&path).unwrap().shape(), [2, 2]);
    assert_eq!(Array::open(&format!("{path}:v0")).unwrap().shape(), [3]);
    let problem = Array::open(&format!("{path}:other"))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("its variables are v0, v1"), "{problem}");
    bytes[at] = b'd';
    std::fs::write(&path, &bytes).unwrap();
    let problem = Array::open(&path).unwrap_err().to_string();
    assert!(problem.contains("its variables are v0, v1"), "{problem}");
    // Global attributes belong to the file.
    let items = list(&path).unwrap();
    assert_eq!(items[0].attributes.get("title"), Some(&json!("hello")));
    assert_eq!(items[0].attributes.get("list"), Some(&json!([1, -1, 3])));
    assert_eq!(items.len(), 3);
    let names = items[2].array.as_ref().unwrap().axis_names.clone();
    assert_eq!(names.unwrap(), ["d2", "d3"]);
}

#[test]
fn records_that_nobody_counted_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = name(folder.path(), "a.nc");
    let variables = [1, 3].map(|kind| Variable {
        kind,
        shape: vec![3],
        records: true,
    });
    let mut built = build(1, 4, &variables);
    built.bytes[4..8].fill(0xff);
    std::fs::write(&path, &built.bytes).unwrap();
    assert_eq!(Array::open(&format!("{path}:v1")).unwrap().shape(), [4, 3]);
}

#[test]
fn offsets_beyond_4_gib_are_reached() {
    let folder = tempfile::tempdir().unwrap();
    // A fixed variable of more than 4 GiB.
    let path = name(folder.path(), "fixed.nc");
    let descriptor = ArrayDescriptor::new(&[1300, 1024, 1024], ElementType::F32);
    let array = Array::create(&path, &descriptor).unwrap();
    let last = array.section("1299, 1023, 1020:").unwrap();
    array.write(&last, &[1.5f32, 2.5, 3.5, 4.5]).unwrap();
    drop(array);
    let array = Array::open(&path).unwrap();
    assert_eq!(array.read::<f32>(&last).unwrap(), [1.5, 2.5, 3.5, 4.5]);
    assert_eq!(array.descriptor().attributes.len(), 0);
    // Records of several variables, the last beyond 8 GiB.
    let slab = 1 << 20;
    let variables = [(5, vec![slab]), (1, vec![3]), (4, vec![])].map(|(kind, shape)| Variable {
        kind,
        shape,
        records: true,
    });
    for version in [2, 5] {
        let len = header(version, 0, &variables, &[0; 3]).len() as u64;
        let begins = [len, len + 4 * slab, len + 4 * slab + 4];
        let record = 4 * slab + 8;
        let records = 2100;
        let path = name(folder.path(), "records.nc");
        let file = std::fs::File::create(&path).unwrap();
        let reader = std::fs::File::open(&path).unwrap();
        use std::os::unix::fs::FileExt;
        file.write_all_at(&header(version, records, &variables, &begins), 0)
            .unwrap();
        file.set_len(len + records * record).unwrap();
        let place = begins[2] + (records - 1) * record;
        assert!(place > 8 << 30);
        file.write_all_at(&77i32.to_be_bytes(), place).unwrap();
        let array = Array::open(&format!("{path}:v2")).unwrap();
        assert_eq!(
            array.read::<i32>(&array.section("-2:").unwrap()).unwrap(),
            [0, 77]
        );
        let array = Array::open_writable(&format!("{path}:v1")).unwrap();
        array
            .write(&array.section("-1, 1:").unwrap(), &[5i8, 6])
            .unwrap();
        let mut found = [0; 3];
        reader
            .read_exact_at(&mut found, begins[1] + (records - 1) * record)
            .unwrap();
        assert_eq!(found, [0, 5, 6]);
    }
}

#[test]
fn new_files_are_made_whole_or_refused() {
    let folder = tempfile::tempdir().unwrap();
    let make = |text: &str, descriptor: &ArrayDescriptor| {
        let name = name(folder.path(), text);
        Array::create(&name, descriptor).map(|array| array.name().to_owned())
    };
    let version = |text: &str| {
        let mut start = [0; 4];
        let file = std::fs::File::open(folder.path().join(text)).unwrap();
        std::io::Read::read_exact(&mut &file, &mut start).unwrap();
        start[3]
    };
    for element in ElementType::ALL {
        let text = format!("{element}.nc");
        let descriptor = ArrayDescriptor::new(&[3, 5], element).attribute("units", "K");
        let made = make(&text, &descriptor);
        match element.name() {
            "bool" | "f16" | "c64" | "c128" => {
                let problem = made.unwrap_err().to_string();
                assert!(problem.contains("no type for"), "{problem}");
                continue;
            }
            "i8" | "i16" | "i32" | "f32" | "f64" => assert_eq!(version(&text), 2),
            _ => assert_eq!(version(&text), 5),
        }
        let array = Array::open(&made.unwrap()).unwrap();
        assert_eq!(
            (array.shape(), array.element_type()),
            (&[3, 5][..], element)
        );
        assert_eq!(array.descriptor().attributes, descriptor.attributes);
        assert_eq!(
            array.descriptor().axis_names.clone().unwrap(),
            ["axis0", "axis1"]
        );
    }
    let plain = ArrayDescriptor::new(&[3, 4], ElementType::F32);
    let long = plain.clone().attribute("large", 1i64 << 40);
    make("long.nc", &long).unwrap();
    assert_eq!(version("long.nc"), 5);
    let wide = ArrayDescriptor::new(&[1 << 31], ElementType::I8);
    make("wide.nc", &wide).unwrap();
    assert_eq!(version("wide.nc"), 5);
    // Names of axes are kept as far as they can be.
    let mut named = plain.clone();
    named.axis_names = Some(vec!["x".into(), "x".into()]);
    make("named.nc:t", &named).unwrap();
    let array = Array::open(&name(folder.path(), "named.nc")).unwrap();
    assert_eq!(
        array.descriptor().axis_names.clone().unwrap(),
        ["x", "axis1"]
    );
    let scalar = make("scalar.nc", &ArrayDescriptor::new(&[], ElementType::F64)).unwrap();
    assert_eq!(Array::open(&scalar).unwrap().shape(), [0u64; 0]);
    let none = make("none.nc", &ArrayDescriptor::new(&[0, 3], ElementType::I16)).unwrap();
    assert_eq!(Array::open(&none).unwrap().shape(), [0, 3]);
    for (text, descriptor, words) in [
        (
            "a.nc",
            plain.clone().layout("column".parse().unwrap()),
            "row order",
        ),
        (
            "a.nc",
            plain.clone().layout("tiled:2x2".parse().unwrap()),
            "row order",
        ),
        (
            "a.nc",
            plain.clone().codecs("zstd:1".parse().unwrap()),
            "neither codecs",
        ),
        (
            "a.nc",
            ArrayDescriptor::new(&[3, 0], ElementType::F32),
            "only the first axis",
        ),
        ("a.nc:/group/t", plain.clone(), "no groups"),
        ("long.nc", plain.clone(), "exists already"),
        ("a.tif", plain.clone(), "only read"),
    ] {
        let problem = make(text, &descriptor).unwrap_err().to_string();
        assert!(problem.contains(words), "{problem}");
    }
    assert!(!folder.path().join("a.nc").exists());
}

#[test]
fn attributes_that_the_library_would_not_open_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let name = name(folder.path(), "a.nc");
    let with = |element, key: &str, value: serde_json::Value| {
        let descriptor = ArrayDescriptor::new(&[3], element).attribute(key, value);
        let made = Array::create(&name, &descriptor).map_err(|error| error.to_string())?;
        std::fs::remove_file(&name).unwrap();
        Ok::<_, String>(made.descriptor().attributes.get(key).cloned())
    };
    let (whole, float) = (ElementType::I16, ElementType::F32);
    for key in ["k".repeat(256), "a/b".into(), "ä b".into()] {
        assert_eq!(with(whole, &key, json!(1)), Ok(Some(json!(1))), "{key}");
    }
    for key in ["k".repeat(257), "".into(), "a\tb".into()] {
        let problem = with(whole, &key, json!(1)).unwrap_err();
        assert!(problem.contains("name of a NetCDF attribute"), "{problem}");
    }
    for (element, value, found) in [
        (whole, json!(-999.0), json!(-999)),
        (whole, json!([7]), json!(7)),
        (float, json!(-999), json!(-999.0)),
        (float, json!("NaN"), json!("NaN")),
        (ElementType::U8, json!(""), json!(0)),
        (ElementType::U8, json!("-"), json!(45)),
    ] {
        let made = with(element, "_FillValue", value.clone());
        assert_eq!(made, Ok(Some(found)), "{value}");
    }
    for value in [
        json!(1e20),
        json!("NaN"),
        json!(0.5),
        json!(40_000),
        json!([1, 2]),
        json!("x"),
    ] {
        let problem = with(whole, "_FillValue", value).unwrap_err();
        assert!(
            problem.contains("must be one number of the variable's type, i16"),
            "{problem}"
        );
        assert!(!std::path::Path::new(&name).exists());
    }
    let converted = |value: serde_json::Value| {
        let descriptor =
            ArrayDescriptor::new(&[3], ElementType::F64).attribute("_FillValue", value);
        descriptor
            .attribute("units", "K")
            .converted(whole)
            .attributes
            .len()
    };
    assert_eq!(converted(json!(-999.0)), 2);
    assert_eq!(converted(json!(1e20)), 1);
}

#[test]
fn headers_are_read_up_to_a_limit() {
    let folder = tempfile::tempdir().unwrap();
    let name = name(folder.path(), "a.nc");
    // Global attributes without values.
    let many = 1_500_000u32;
    let mut bytes = b"CDF\x01\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\x0c".to_vec();
    bytes.extend(many.to_be_bytes());
    let empty = [&[0u8; 4][..], &2u32.to_be_bytes(), &[0; 4]].concat();
    bytes.extend(empty.repeat(many as usize));
    bytes.extend([0; 8]);
    std::fs::write(&name, &bytes).unwrap();
    let problem = list(&name).unwrap_err().to_string();
    assert!(problem.contains("16 MiB are read"), "{problem}");
}

#[test]
fn names_may_be_as_long_as_file_systems_allow() {
    let folder = tempfile::tempdir().unwrap();
    let descriptor = ArrayDescriptor::new(&[3], ElementType::F32);
    for ending in [".nc", ".npy", ".oc", ".zarr", ".h5"] {
        for letter in ["n", "ö"] {
            let text = letter.repeat((255 - ending.len()) / letter.len()) + ending;
            let array = Array::create(&name(folder.path(), &text), &descriptor).unwrap();
            assert_eq!(array.shape(), [3]);
        }
    }
    assert_eq!(folder.path().read_dir().unwrap().count(), 10);
}
