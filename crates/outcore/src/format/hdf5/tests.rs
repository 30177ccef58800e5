//! Files of h5py and netCDF4 are read as they read them; damaged ones are
//! refused.

use std::process::Command;

use outcore_storage::MemoryStore;
use serde_json::{Value, json};

use super::*;
use crate::array::Array;
use crate::error::Error;

/// The interpreter is `OUTCORE_TEST_PYTHON`, or `python3`; it must have h5py
/// and netCDF4.
fn made_by_python() -> tempfile::TempDir {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let folder = tempfile::tempdir().unwrap();
    let output = Command::new(&python)
        .args(["-c", include_str!("tests.py")])
        .current_dir(folder.path())
        .output()
        .expect("python starts");
    assert!(
        output.stdout.ends_with(b"made to the end\n"),
        "{python} needs h5py and netCDF4 (see OUTCORE_TEST_PYTHON): {}",
        String::from_utf8_lossy(&output.stderr)
    );
    folder
}

/// All elements of a dataset, and the descriptor.
pub(super) fn contents(store: Arc<dyn Store>, inner: &str) -> Result<(ArrayDescriptor, Vec<u8>)> {
    let opened = open_store(store, Some(inner), Access::ReadOnly).map_err(Problem::of(inner))?;
    let opened = opened.check(inner, Path::new("memory"))?;
    let len = opened.descriptor.check(inner)?.byte_len();
    // The array from the beginning of a store.
    let fragments = vec![Fragment {
        start: 0,
        len,
        offset: opened.start,
    }];
    let store: Arc<dyn Store> = match opened.start {
        0 => opened.store,
        _ => Arc::new(ScatteredStore::new(
            opened.store,
            fragments,
            len,
            Vec::new(),
        )?),
    };
    let array = Array::in_store(inner, &opened.descriptor, store)?;
    let whole = array.whole();
    let size = whole.count() * opened.descriptor.element_type.size();
    if size > 1 << 24 {
        return Err(Error::format(inner, "too large for a test"));
    }
    let mut bytes = vec![0; size as usize];
    array.read_bytes(&whole, &mut bytes)?;
    Ok((opened.descriptor, bytes))
}

#[test]
fn files_of_others_are_read() {
    let folder = made_by_python();
    let listed = std::fs::read(folder.path().join("list.json")).unwrap();
    let listed: Vec<Known> = serde_json::from_slice(&listed).unwrap();
    assert!(listed.len() > 300, "{}", listed.len());
    for (file, name, shape, element, data) in &listed {
        let path = folder.path().join(file);
        let store = open_file(&path, Access::ReadOnly).unwrap();
        let expected = std::fs::read(folder.path().join(data)).unwrap();
        let (descriptor, found) =
            contents(store, name).unwrap_or_else(|error| panic!("{file}:{name}: {error}"));
        assert_eq!(&descriptor.shape, shape, "{file}:{name}");
        assert_eq!(descriptor.element_type.name(), element, "{file}:{name}");
        assert!(found == expected, "{file}:{name} holds something else");
    }
    // Attributes, trees and choices.
    for number in 0..5 {
        let path = folder.path().join(format!("h{number}.h5"));
        let opened = open(&path, Some("/scalar"), Access::ReadOnly).unwrap();
        let attributes = Value::Object(opened.descriptor.attributes);
        let expected = json!({
            "units": "kelvin", "fixed": "abc", "list": [0, 1, 2], "half": 0.1,
            "texts": ["one", "two"], "yes": true,
        });
        assert_eq!(attributes, expected, "{number}");
        let opened = open(&path, Some("empty"), Access::ReadOnly).unwrap();
        assert_eq!(opened.descriptor.attributes.len(), 30);
        let nodes = list(&path, "").unwrap();
        let of_many = nodes
            .iter()
            .filter(|node| node.path.starts_with("/many/of/them/m"));
        assert_eq!(of_many.count(), 300);
        let tree = nodes.iter().find(|node| node.path == "/chunks/tree");
        let described = tree.unwrap().dataset.as_ref().unwrap();
        let described = described.as_ref().unwrap();
        assert_eq!(described.shape, [40, 33]);
        assert_eq!(described.element_type.name(), "f32");
        let opened = open(&path, Some("/chunks/tree"), Access::ReadOnly).unwrap();
        assert_eq!(described, &opened.descriptor);
        let problem = open(&path, None, Access::ReadOnly).unwrap_err().to_string();
        assert!(problem.contains("/chunks/filtered"), "{problem}");
        let problem = open(&path, Some("/nothing"), Access::ReadOnly).unwrap_err();
        assert!(problem.to_string().contains("no /nothing"), "{problem}");
    }
    let opened = open(
        &folder.path().join("n.nc4"),
        Some("temperature"),
        Access::ReadOnly,
    );
    let attributes = Value::Object(opened.unwrap().descriptor.attributes);
    assert_eq!(attributes, json!({"_FillValue": -1.0, "units": "K"}));
    damaged_files_are_refused(folder.path());
    datasets_of_others_are_written(folder.path(), &listed);
}

/// What the library calls a dataset: file, name, shape, type, elements.
type Known = (String, String, Vec<u64>, String, String);

/// Sections of chunked datasets with filters, whatever their index; h5py reads what
/// was written.
fn datasets_of_others_are_written(folder: &Path, listed: &[Known]) {
    let mut script = String::from("import h5py, numcodecs, numpy as np\n");
    let mut changed = 0;
    'datasets: for (file, name, shape, _, data) in listed {
        let path = folder.join(file);
        let Ok(opened) = open(&path, Some(name), Access::ReadWrite) else {
            continue;
        };
        if opened.descriptor.codecs.is_empty() {
            continue;
        }
        let expected = folder.join(data);
        let mut oracle = std::fs::read(&expected).unwrap();
        let array = Array::open_writable(&format!("{}:{name}", path.display())).unwrap();
        let size = array.layout().element_size() as usize;
        // Some rows, twice: with bytes that do not compress, and with bytes that do.
        let row = oracle.len() / shape[0] as usize;
        for (first, noisy) in [(1, true), (1, false), (0, true)] {
            let rows = first..(first + 2).min(shape[0]);
            let section = match shape.len() {
                1 => format!("{}:{}", rows.start, rows.end),
                _ => format!("{}:{}, :", rows.start, rows.end),
            };
            let section = array.section(&section).unwrap();
            let mut values = vec![0u8; section.count() as usize * size];
            let mut state = 0x1234_5678_9abc_def0_u64;
            for value in values.iter_mut().filter(|_| noisy) {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                // One bit: right for booleans, and no NaN.
                *value = (state >> 63) as u8;
            }
            if let Err(problem) = array.write_bytes(&section, &values) {
                let problem = problem.to_string();
                assert!(problem.contains("no entry"), "{file}:{name}: {problem}");
                continue 'datasets;
            }
            oracle[rows.start as usize * row..][..values.len()].copy_from_slice(&values);
        }
        array.sync().unwrap();
        drop(array);
        let store = open_file(&path, Access::ReadOnly).unwrap();
        let found = contents(store, name).unwrap().1;
        assert!(found == oracle, "{file}:{name}");
        std::fs::write(&expected, oracle).unwrap();
        changed += 1;
        if name.starts_with("/blosc") {
            // h5py has no such filter; rows of chunks follow one another.
            script += &format!(
                "d = h5py.File('{file}')['{name}'].id\n\
                 parts = [d.read_direct_chunk((row, 0))[1] for row in (0, 20)]\n\
                 parts = b''.join(map(numcodecs.Blosc().decode, parts))\n\
                 assert parts == open('{data}', 'rb').read(), '{file} {name}'\n"
            );
            continue;
        }
        script += &format!(
            "d = h5py.File('{file}')['{name}']\n\
             assert d[()].astype(d.dtype.newbyteorder('<')).tobytes() == open('{data}', 'rb').read(), '{file} {name}'\n"
        );
    }
    assert!(changed > 90, "{changed}");
    checked_by_python(folder, &script);
}

/// Runs a script to its end.
pub(super) fn checked_by_python(folder: &Path, script: &str) {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    std::fs::write(
        folder.join("check.py"),
        format!("{script}print('checked to the end')\n"),
    )
    .unwrap();
    let output = Command::new(&python)
        .arg("check.py")
        .current_dir(folder)
        .output()
        .expect("python starts");
    assert!(
        output.stdout.ends_with(b"checked to the end\n"),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

#[test]
fn new_files_with_filters_are_read_by_others() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = String::from("import h5py, netCDF4, subprocess\n");
    let mut number = 0;
    let filters = [
        "deflate:4",
        "shuffle,deflate:1,fletcher32",
        "fletcher32",
        "deflate:9,shuffle",
    ];
    // Edges that are cut, one chunk, chunks beyond the array, pages of entries.
    let shapes: [(&[u64], &[u64]); 5] = [
        (&[5, 7], &[2, 3]),
        (&[5, 7], &[5, 7]),
        (&[3, 4], &[8, 3]),
        (&[40, 41], &[2, 2]),
        (&[4, 5, 6], &[3, 2, 4]),
    ];
    for (at, element) in crate::ElementType::ALL.into_iter().enumerate() {
        for (other, (shape, chunk)) in shapes.into_iter().enumerate() {
            let order = match (at + other) % 2 {
                0 => crate::ByteOrder::Little,
                _ => crate::ByteOrder::Big,
            };
            number += 1;
            let path = folder.path().join(format!("{number}.h5"));
            let arrangement = Arrangement {
                order: Order::Row,
                tile: Some(chunk.to_vec()),
            };
            let codecs: Codecs = filters[(at + other) % filters.len()].parse().unwrap();
            let descriptor = ArrayDescriptor::new(shape, element)
                .layout(arrangement)
                .byte_order(order)
                .codecs(codecs.clone())
                .attribute("units", "kelvin");
            create("new", &path, "/group/data", &descriptor).unwrap();
            let array = Array::open_writable(&format!("{}:/group/data", path.display())).unwrap();
            let found = array.descriptor();
            assert_eq!(
                found.codecs,
                codecs
                    .as_filters()
                    .unwrap()
                    .for_elements(element.size() as usize)
            );
            assert_eq!(found.arrangement, descriptor.arrangement);
            let whole = array.whole();
            let size = (whole.count() * element.size()) as usize;
            let mut bytes = vec![9; size];
            array.read_bytes(&whole, &mut bytes).unwrap();
            assert!(bytes.iter().all(|byte| *byte == 0), "new chunks are zeros");
            // Two of three rows; the others stay as nobody wrote them.
            let every = array
                .section(&["::2", ", :", ", :"][..shape.len()].concat())
                .unwrap();
            let values: Vec<u8> = (0..every.count() * element.size())
                .map(|at| (at * 7 % 3 % 2) as u8)
                .collect();
            array.write_bytes(&every, &values).unwrap();
            array.sync().unwrap();
            let reopened = Array::open(&format!("{}:/group/data", path.display())).unwrap();
            reopened.read_bytes(&whole, &mut bytes).unwrap();
            let mut back = vec![0; values.len()];
            reopened.read_bytes(&every, &mut back).unwrap();
            assert!(back == values, "{number}");
            std::fs::write(folder.path().join(format!("{number}.bin")), &bytes).unwrap();
            script += &format!(
                "d = h5py.File('{number}.h5')['group/data']\n\
                 assert d[()].astype(d.dtype.newbyteorder('<')).tobytes() == open('{number}.bin', 'rb').read(), {number}\n\
                 assert d.attrs['units'] == b'kelvin' and d.chunks == tuple({chunk:?}), {number}\n\
                 subprocess.run(['h5dump', '-p', '-d', '/group/data', '{number}.h5'], check=True, stdout=subprocess.DEVNULL)\n"
            );
            if !matches!(element.name(), "c64" | "c128" | "f16" | "bool") {
                script += &format!(
                    "v = netCDF4.Dataset('{number}.h5')['group/data']\n\
                     v.set_auto_mask(False)\n\
                     assert (v[:] == d[()]).all(), {number}\n"
                );
            }
        }
    }
    checked_by_python(folder.path(), &script);
}

/// Every bit of the metadata of a new file, one at a time: values or an error, for
/// reading and for writing.
#[test]
fn damaged_new_files_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("new.h5");
    let descriptor = ArrayDescriptor::new(&[9, 7], crate::ElementType::U16)
        .layout("tiled:4x3".parse().unwrap())
        .codecs("shuffle,deflate:4,fletcher32".parse().unwrap())
        .attribute("units", "kelvin");
    create("new", &path, "/g/d", &descriptor).unwrap();
    let array = Array::open_writable(&format!("{}:/g/d", path.display())).unwrap();
    let values: Vec<u16> = (0..63).map(|at| at * 999).collect();
    array.write(&array.whole(), &values).unwrap();
    drop(array);
    let whole = std::fs::read(&path).unwrap();
    let expected = contents(Arc::new(MemoryStore::from(whole.clone())), "/g/d")
        .unwrap()
        .1;
    let mut refused = 0;
    for bit in 0..whole.len() * 8 {
        let mut changed = whole.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let store: Arc<dyn Store> = Arc::new(MemoryStore::from(changed));
        match contents(Arc::clone(&store), "/g/d") {
            Ok((descriptor, found)) => {
                assert!(found == expected || descriptor.shape != [9, 7], "bit {bit}");
            }
            Err(_) => refused += 1,
        }
        if let Ok(opened) = open_store(Arc::clone(&store), Some("/g/d"), Access::ReadWrite) {
            let bytes = vec![5; (opened.store.len().unwrap() as usize).min(100)];
            let _ = opened.store.write_at(opened.start, &bytes);
            assert!(store.len().unwrap() < 1 << 20, "bit {bit}");
        }
    }
    assert!(
        refused > whole.len() * 6,
        "{refused} of {}",
        whole.len() * 8
    );
    for len in 0..whole.len() {
        let store: Arc<dyn Store> = Arc::new(MemoryStore::from(whole[..len].to_vec()));
        assert!(contents(store, "/g/d").is_err(), "{len}");
    }
}

/// Truncated and changed files: an answer or an error, never a panic.
fn damaged_files_are_refused(folder: &Path) {
    let names = [
        "/chunks/tree",
        "/chunks/filtered",
        "/chunks/grows_packed",
        "/chunks/grows_twice",
        "/long/packed",
        "/many/of/them/m7",
        "/empty",
        "/compact",
    ];
    for number in 0..2 {
        let whole = std::fs::read(folder.join(format!("h{number}.h5"))).unwrap();
        let try_all = |bytes: Vec<u8>| {
            let store: Arc<dyn Store> = Arc::new(MemoryStore::from(bytes));
            names
                .iter()
                .filter(|name| contents(Arc::clone(&store), name).is_ok())
                .count()
        };
        assert_eq!(try_all(whole.clone()), names.len());
        let step = (whole.len() / 200).next_multiple_of(64);
        for len in (0..whole.len()).step_by(step) {
            try_all(whole[..len].to_vec());
        }
        let mut state = 0x9e37_79b9_7f4a_7c15_u64;
        for _ in 0..200 {
            let mut changed = whole.clone();
            for _ in 0..20 {
                state = state
                    .wrapping_mul(6364136223846793005)
                    .wrapping_add(1442695040888963407);
                let at = (state >> 20) as usize % changed.len();
                changed[at] ^= 1 << (state >> 61);
            }
            try_all(changed);
        }
    }
}

#[test]
fn new_files_are_read_by_h5py() {
    let folder = tempfile::tempdir().unwrap();
    let mut script = String::from("import h5py, numpy as np\n");
    let mut number = 0;
    for element in crate::ElementType::ALL {
        for (shape, layout) in [
            (vec![5, 7], "row"),
            (vec![5, 7], "tiled:2x3"),
            (vec![], "row"),
        ] {
            for order in [crate::ByteOrder::Little, crate::ByteOrder::Big] {
                number += 1;
                let path = folder.path().join(format!("{number}.h5"));
                let mut descriptor = ArrayDescriptor::new(&shape, element)
                    .layout(layout.parse().unwrap())
                    .byte_order(order)
                    .attribute("units", "kelvin")
                    .attribute("list", json!([1, 2, 3]))
                    .attribute("half", 0.5)
                    .attribute("yes", true);
                descriptor.fill_value = Some(match element.name() {
                    "bool" => json!(true),
                    "c64" | "c128" => json!([1.0, 0.0]),
                    name if name.starts_with('f') => json!(1.0),
                    _ => json!(1),
                });
                create("new", &path, "/group/data", &descriptor).unwrap();
                // Room for all elements is there, and is zero.
                let file = open_file(&path, Access::ReadOnly).unwrap();
                let unwritten = contents(file, "/group/data").unwrap().1;
                assert!(unwritten.iter().all(|byte| *byte == 0));
                std::fs::copy(&path, folder.path().join(format!("new{number}.h5"))).unwrap();
                let opened = open(&path, Some("/group/data"), Access::ReadWrite).unwrap();
                let mut found = opened.descriptor.clone();
                if element.size() == 1 {
                    found.byte_order = order;
                }
                assert_eq!(found, descriptor);
                let len = descriptor.byte_len().unwrap() as usize;
                let bytes: Vec<u8> = (0..len).map(|at| (at % 2) as u8).collect();
                opened.store.write_at(opened.start, &bytes).unwrap();
                opened.store.sync().unwrap();
                let mut expected =
                    vec![0; (element.size() * shape.iter().product::<u64>()) as usize];
                let file = open_file(&path, Access::ReadOnly).unwrap();
                expected.copy_from_slice(&contents(file, "/group/data").unwrap().1);
                std::fs::write(folder.path().join(format!("{number}.bin")), expected).unwrap();
                script += &format!(
                    "d = h5py.File('{number}.h5')['group/data']\n\
                     assert d[()].astype(d.dtype.newbyteorder('<')).tobytes() == open('{number}.bin', 'rb').read(), {number}\n\
                     assert d.fillvalue == 1 and not np.any(h5py.File('new{number}.h5')['group/data'][()]), {number}\n\
                     assert d.attrs['units'] == b'kelvin' and d.attrs['half'] == 0.5 and d.attrs['yes'] and list(d.attrs['list']) == [1, 2, 3]\n\
                     assert d.shape == tuple({shape:?}), d.shape\n"
                );
            }
        }
    }
    checked_by_python(folder.path(), &script);
}
