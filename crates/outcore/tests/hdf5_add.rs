//! Datasets that are added to HDF5 files of others: what was in the file stays as it
//! was, for us and for the library, and what cannot be added is refused.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;

use outcore::{Array, ArrayDescriptor, ElementType, Error};

/// Name, shape, chunks, the value of the first element, and the dimensions of a file of NetCDF.
type Added = (String, Vec<u64>, Option<Vec<u64>>, u64, Vec<String>);

fn python(folder: &Path, arguments: &[&str]) {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let script = folder.join("hdf5_add.py");
    std::fs::write(&script, include_str!("hdf5_add.py")).unwrap();
    let output = Command::new(&python)
        .arg(&script)
        .args(arguments)
        .current_dir(folder)
        .output()
        .expect("python starts");
    assert!(
        output.stdout.ends_with(b"done to the end\n"),
        "{python} needs h5py and netCDF4 (see OUTCORE_TEST_PYTHON): {}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// The files of h5py and netCDF4.
fn made_by_python() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    python(folder.path(), &["make"]);
    folder
}

fn name(folder: &Path, text: &str) -> String {
    folder.join(text).to_str().unwrap().to_owned()
}

fn theirs(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap();
    let paths = entries.map(|entry| entry.unwrap().path());
    let found = paths.filter(|path| {
        let file = path.file_name().unwrap().to_str().unwrap();
        file.starts_with("theirs") && !file.ends_with(".before")
    });
    let mut found: Vec<PathBuf> = found.collect();
    found.sort();
    found
}

fn values(shape: &[u64], seed: u64) -> Vec<f32> {
    let count = shape.iter().product::<u64>();
    (0..count).map(|at| (at * 7 % 101 + seed) as f32).collect()
}

fn descriptor(shape: &[u64], layout: &str, codecs: &str) -> ArrayDescriptor {
    let descriptor = ArrayDescriptor::new(shape, ElementType::F32)
        .layout(layout.parse().unwrap())
        .attribute("units", "K");
    match codecs {
        "" => descriptor,
        codecs => descriptor.codecs(codecs.parse().unwrap()),
    }
}

/// With names of axes, the first of which the NetCDF file has for another extent.
fn with_axes(mut made: ArrayDescriptor) -> ArrayDescriptor {
    made.axis_names = Some(vec!["time".into(), "place".into()]);
    made
}

/// Adds a dataset; ranks write rows in turn.
fn add(file: &Path, inner: &str, made: &ArrayDescriptor, ranks: u64, seed: u64) -> Added {
    let text = format!("{}:{inner}", file.display());
    let shape = made.shape.clone();
    let columns = shape[1] as usize;
    outcore::run(ranks as usize, |comm| {
        let draft = Array::draft_all(comm, &text, made, false)?;
        let rank = comm.rank() as u64;
        if rank < shape[0] {
            let rows = draft.section(&format!("{rank}:{}:{ranks}, :", shape[0]))?;
            let all = values(&shape, seed);
            let own = all
                .chunks(columns)
                .skip(rank as usize)
                .step_by(ranks as usize);
            draft.write(&rows, &own.flatten().copied().collect::<Vec<f32>>())?;
        }
        let array = draft.commit(comm)?;
        assert_eq!(array.read::<f32>(&array.whole())?, values(&shape, seed));
        Ok::<_, Error>(())
    })
    .unwrap_or_else(|error| panic!("{text}: {error}"));
    let found = Array::open(&text).unwrap();
    let chunks = found.descriptor().arrangement.tile.clone();
    let dimensions = match file.extension().unwrap().to_str() {
        Some("nc") => found.descriptor().axis_names.clone().unwrap_or_default(),
        _ => Vec::new(),
    };
    (inner.into(), shape, chunks, seed, dimensions)
}

fn told(folder: &Path, added: &BTreeMap<String, Vec<Added>>) {
    let text = serde_json::to_vec(added).unwrap();
    std::fs::write(folder.join("added.json"), text).unwrap();
}

/// Into files of all kinds of groups, by 1, 2 and 5 ranks, several in a row; then the
/// library adds to the same groups, and then we do again.
#[test]
fn files_of_others_keep_what_they_have() {
    let folder = made_by_python();
    let folder = folder.path();
    let files = theirs(folder);
    assert_eq!(files.len(), 9);
    for round in 0..2 {
        let mut added = BTreeMap::new();
        for file in &files {
            let listed = outcore::list(file.to_str().unwrap()).unwrap();
            let mut news = Vec::new();
            let plain = descriptor(&[6, 5], "row", "");
            let tiles = descriptor(&[23, 17], "tiled:4x5", "");
            let packed = descriptor(&[60, 41], "tiled:7x9", "shuffle,deflate:1,fletcher32");
            let packed = with_axes(packed);
            let new = |name: &str| format!("{name}{round}");
            news.push(add(file, &new("/neu"), &plain, 1, 1));
            news.push(add(file, &new("/packed by us"), &packed, 5, 2));
            news.push(add(file, &new("/g/tiles"), &tiles, 2, 3));
            if file.extension().unwrap() == "h5" {
                news.push(add(file, &new("/g/inner/größe"), &packed, 2, 4));
                news.push(add(file, &new("/many/new"), &plain, 2, 5));
                news.push(add(file, &new("/tracked only/mm"), &plain, 1, 6));
                let long = format!("/wide/{}/one", "x".repeat(300));
                news.push(add(file, &new(&long), &plain, 1, 7));
                news.push(add(file, &new("/empty/one"), &packed, 1, 8));
            }
            news.push(add(file, &new("/fresh/deep/down/one"), &tiles, 5, 9));
            news.push(add(file, &new("/fresh/deep/two"), &plain, 1, 10));
            for (inner, shape, _, seed, _) in &news {
                let array = Array::open(&format!("{}:{inner}", file.display())).unwrap();
                let found: Vec<f32> = array.read(&array.whole()).unwrap();
                assert_eq!(found, values(shape, *seed), "{}:{inner}", file.display());
            }
            if file.extension().unwrap() == "nc" {
                // The file has another extent under the first name.
                assert_eq!(news[1].4, ["time_60", "place"]);
            }
            // In our eyes, too, nothing else has changed.
            let after = outcore::list(file.to_str().unwrap()).unwrap();
            for item in &listed {
                assert!(after.contains(item), "{}: {}", file.display(), item.path);
            }
            let file = file.file_name().unwrap().to_str().unwrap();
            added.insert(file.to_owned(), news);
        }
        told(folder, &added);
        match round {
            0 => python(folder, &["check", "and-add"]),
            _ => python(folder, &["check"]),
        }
    }
}

/// Where the superblock of a file of the library begins.
fn superblock(bytes: &[u8]) -> usize {
    let signature = b"\x89HDF\r\n\x1a\n";
    let starts = [0, 512, 1024, 2048];
    starts
        .into_iter()
        .find(|start| bytes[*start..].starts_with(signature))
        .unwrap()
}

/// Until the last write, which is one of a few bytes of the superblock, everything that
/// was in the file is where it was.
#[test]
fn one_write_gives_the_name() {
    let folder = made_by_python();
    for path in theirs(folder.path()) {
        let before = std::fs::read(&path).unwrap();
        let listed = outcore::list(path.to_str().unwrap()).unwrap();
        let text = format!("{}:/g/new/one", path.display());
        let made = with_axes(descriptor(&[6, 5], "row", ""));
        let draft = Array::draft(&text, &made, false).unwrap();
        draft.write(&draft.whole(), &values(&[6, 5], 1)).unwrap();
        let unnamed = std::fs::read(&path).unwrap();
        let temporary = Array::open(draft.temporary_name()).unwrap();
        assert_eq!(
            temporary.read::<f32>(&temporary.whole()).unwrap(),
            values(&[6, 5], 1)
        );
        drop(temporary);
        draft.commit().unwrap();
        let after = std::fs::read(&path).unwrap();
        let start = superblock(&before);
        let len = 96;
        for later in [&unnamed, &after] {
            assert!(later[..start] == before[..start]);
            assert!(later[start + len..before.len()] == before[start + len..]);
        }
        assert!(after[start + len..unnamed.len()] == unnamed[start + len..]);
        assert_eq!(
            outcore::list(path.to_str().unwrap()).unwrap().len(),
            listed.len() + 2
        );
        // Without the last write, and without both.
        for first in [&unnamed, &before] {
            let mut bytes = after.clone();
            bytes[start..start + len].copy_from_slice(&first[start..start + len]);
            std::fs::write(&path, bytes).unwrap();
            assert_eq!(outcore::list(path.to_str().unwrap()).unwrap(), listed);
            // What is left behind the end is not found in what comes next.
            let next = format!("{}:/next", path.display());
            let array = Array::create(&next, &made).unwrap();
            assert_eq!(array.read::<f32>(&array.whole()).unwrap(), [0.0; 30]);
        }
    }
}

#[test]
fn a_dropped_draft_leaves_the_file_as_it_was() {
    let folder = made_by_python();
    for path in theirs(folder.path()) {
        let before = outcore::list(path.to_str().unwrap()).unwrap();
        for codecs in ["", "deflate:1"] {
            for replace in [false, true] {
                let text = format!("{}:/g/new", path.display());
                let made = with_axes(descriptor(&[60, 50], "tiled:8x8", codecs));
                let draft = Array::draft(&text, &made, replace).unwrap();
                draft.write(&draft.whole(), &values(&[60, 50], 1)).unwrap();
                drop(draft);
            }
        }
        assert_eq!(outcore::list(path.to_str().unwrap()).unwrap(), before);
    }
    told(
        folder.path(),
        &theirs(folder.path())
            .iter()
            .map(|path| {
                (
                    path.file_name().unwrap().to_str().unwrap().to_owned(),
                    Vec::new(),
                )
            })
            .collect(),
    );
    python(folder.path(), &["check"]);
}

/// Dimensions get their names with the dataset: of those who make the same one, the first.
#[test]
fn datasets_that_are_added_at_the_same_time_share_dimensions() {
    let folder = made_by_python();
    let text = |inner: &str| name(folder.path(), &format!("theirs.nc:{inner}"));
    let drafts = [("a", 5), ("b", 5), ("c", 4), ("d", 3)].map(|(inner, width)| {
        let made = with_axes(descriptor(&[6, width], "row", ""));
        Array::draft(&text(inner), &made, false).unwrap()
    });
    for draft in drafts {
        draft.commit().unwrap();
    }
    for (inner, width) in [
        ("a", "place"),
        ("b", "place"),
        ("c", "place_4"),
        ("d", "place_3"),
    ] {
        let array = Array::open(&text(inner)).unwrap();
        let names = array.descriptor().axis_names.clone().unwrap();
        assert_eq!(names, ["time_6", width], "{inner}");
    }
    let script = "import netCDF4; print(sorted(netCDF4.Dataset('theirs.nc').dimensions))";
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    let output = command
        .args(["-c", script])
        .current_dir(folder.path())
        .output();
    let found = String::from_utf8(output.unwrap().stdout).unwrap();
    let expected = "['lat', 'place', 'place_3', 'place_4', 'time', 'time_6']\n";
    assert_eq!(found, expected);
}

/// Nobody's dataset is lost, nor are chunks that somebody else writes meanwhile.
#[test]
fn many_add_at_the_same_time() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("shared.h5");
    let packed = descriptor(&[40, 40], "tiled:8x8", "deflate:1");
    let text = |inner: &str| format!("{}:{inner}", file.display());
    Array::create(&text("/first"), &packed).unwrap();
    std::thread::scope(|scope| {
        for thread in 0..4u64 {
            let (text, packed) = (&text, &packed);
            scope.spawn(move || {
                for round in 0..8 {
                    let name = text(&format!("/group{}/t{thread}r{round}", round % 3));
                    let seed = 10 * thread + round;
                    let draft = Array::draft(&name, packed, false).unwrap();
                    draft
                        .write(&draft.whole(), &values(&[40, 40], seed))
                        .unwrap();
                    draft.commit().unwrap();
                    let first = Array::open_writable(&text("/first")).unwrap();
                    let rows = first.section(&format!("{thread}::4, :")).unwrap();
                    first.write(&rows, &vec![seed as f32; 400]).unwrap();
                }
            });
        }
    });
    for thread in 0..4u64 {
        for round in 0..8 {
            let name = text(&format!("/group{}/t{thread}r{round}", round % 3));
            let array = Array::open(&name).unwrap();
            let found: Vec<f32> = array.read(&array.whole()).unwrap();
            assert_eq!(found, values(&[40, 40], 10 * thread + round), "{name}");
        }
        let first = Array::open(&text("/first")).unwrap();
        let rows = first.section(&format!("{thread}::4, :")).unwrap();
        let found: Vec<f32> = first.read(&rows).unwrap();
        assert_eq!(found, [(10 * thread + 7) as f32; 400]);
    }
    let script =
        "import h5py; f = h5py.File('shared.h5'); print(sum(len(f[g]) for g in f if g != 'first'))";
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let mut command = Command::new(python);
    let output = command
        .args(["-c", script])
        .current_dir(folder.path())
        .output();
    assert_eq!(output.unwrap().stdout, b"32\n");
}

#[test]
fn a_dataset_is_replaced_when_it_is_complete() {
    let folder = made_by_python();
    let made = descriptor(&[6, 5], "row", "");
    for path in theirs(folder.path()) {
        let inner = match path.extension().unwrap().to_str() {
            Some("nc") => "/g/u",
            _ => "/g/inner/d",
        };
        let text = format!("{}:{inner}", path.display());
        let before = Array::open(&text).unwrap();
        let old = before.descriptor().clone();
        let draft = Array::draft(&text, &made, true).unwrap();
        draft.write(&draft.whole(), &values(&[6, 5], 3)).unwrap();
        assert_eq!(*Array::open(&text).unwrap().descriptor(), old);
        draft.commit().unwrap();
        let array = Array::open(&text).unwrap();
        assert_eq!(
            array.read::<f32>(&array.whole()).unwrap(),
            values(&[6, 5], 3)
        );
        let listed = outcore::list(path.to_str().unwrap()).unwrap();
        assert!(
            listed
                .iter()
                .any(|item| item.path.starts_with("g/") && item.array.is_some())
        );
    }
    // A file with nothing else is replaced as a whole.
    let text = name(folder.path(), "alone.h5:/data");
    Array::create(&text, &descriptor(&[1000, 1000], "row", "")).unwrap();
    let draft = Array::draft(&text, &made, true).unwrap();
    draft.commit().unwrap();
    let len = std::fs::metadata(folder.path().join("alone.h5"))
        .unwrap()
        .len();
    assert!(len < 10_000, "{len}");
}

#[test]
fn a_file_that_got_others_meanwhile_is_not_replaced() {
    let folder = tempfile::tempdir().unwrap();
    let made = descriptor(&[6, 5], "row", "");
    let text = name(folder.path(), "a.h5:/data");
    Array::create(&text, &made).unwrap();
    let draft = Array::draft(&text, &made, true).unwrap();
    Array::create(&name(folder.path(), "a.h5:/other"), &made).unwrap();
    let problem = draft.commit().unwrap_err().to_string();
    assert!(problem.contains("other datasets"), "{problem}");
    Array::open(&name(folder.path(), "a.h5:/other")).unwrap();
}

#[test]
fn what_cannot_be_added_is_refused() {
    let folder = made_by_python();
    let folder = folder.path();
    let made = descriptor(&[6, 5], "row", "");
    let refused = |text: &str, replace: bool, expected: &str| {
        let file = folder.join(text.split(':').next().unwrap());
        let before = std::fs::read(&file).unwrap();
        let problem = Array::draft(&name(folder, text), &made, replace).map(drop);
        let problem = problem.expect_err(text).to_string();
        assert!(problem.contains(expected), "{text}: {problem}");
        assert!(
            problem.contains(text.split(':').next().unwrap()),
            "{problem}"
        );
        assert!(std::fs::read(&file).unwrap() == before, "{text}");
    };
    for number in [0, 3] {
        let file = |inner: &str| format!("theirs{number}.h5:{inner}");
        refused(&file("/zuletzt"), false, "--force");
        refused(&file("/g/inner/hard"), false, "already");
        refused(&file("/g"), true, "no dataset");
        refused(&file("/g"), false, "no dataset");
        refused(&file("/type"), true, "no dataset");
        refused(&file("/soft"), true, "symbolic");
        refused(&file("/soft/new"), false, "symbolic");
        refused(&file("/outside/new"), false, "external");
        refused(&file("/zuletzt/new"), false, "no group");
        refused(&file("/"), false, "needs a name");
    }
    refused("hardlinked.h5:/a/b/new", false, "2 names");
    refused("root_linked.h5:/new", false, "2 names");
    refused("space.h5:/new", false, "h5repack");
    refused("narrow.h5:/new", false, "addresses of 4");
    refused("open.h5:/new", false, "h5clear");
    // Beside what is refused, the same file takes others.
    Array::create(&name(folder, "hardlinked.h5:/a/new"), &made).unwrap();
    // Of two who begin the same, one gets the name.
    let text = name(folder, "theirs0.h5:/same");
    let first = Array::draft(&text, &made, false).unwrap();
    let second = Array::draft(&text, &made, false).unwrap();
    second.commit().unwrap();
    let problem = first.commit().unwrap_err().to_string();
    assert!(problem.contains("already"), "{problem}");
    // Classic NetCDF.
    Array::create(&name(folder, "classic.nc:a"), &descriptor(&[3], "row", "")).unwrap();
    refused("classic.nc:b", false, "classic NetCDF");
    std::fs::write(folder.join("text.h5"), "no HDF5 file").unwrap();
    refused("text.h5:/new", false, "exists already");
}

/// What was made in a file that is gone is not looked for in another.
#[test]
fn a_file_that_was_replaced_meanwhile_is_left_alone() {
    let folder = tempfile::tempdir().unwrap();
    let made = descriptor(&[6, 5], "row", "");
    let file = folder.path().join("a.h5");
    let new = |inner: &str| name(folder.path(), &format!("a.h5:{inner}"));
    Array::create(&new("/first"), &made).unwrap();
    let whole = std::fs::read(&file).unwrap();
    for in_place in [false, true] {
        let draft = Array::draft(&new("/second"), &made, false).unwrap();
        if !in_place {
            std::fs::remove_file(&file).unwrap();
        }
        std::fs::write(&file, &whole).unwrap();
        let problem = draft.commit().unwrap_err().to_string();
        assert!(
            problem.contains("replaced") || problem.contains("end of the file"),
            "{problem}"
        );
        assert!(std::fs::read(&file).unwrap() == whole);
    }
    Array::create(&new("/second"), &made).unwrap();
}
