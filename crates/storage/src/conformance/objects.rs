//! What every [`Objects`] must do. Each check works in a folder of its own, so
//! one place serves them all.

use std::slice::from_ref;
use std::thread;

use super::expect::*;
use crate::error::Error;
use crate::objects::{Entry, Objects};

/// The bytes of an object, or `None`.
#[track_caller]
fn contents(objects: &dyn Objects, key: &str) -> Option<Vec<u8>> {
    let mut buffer = b"what was there before".to_vec();
    let found = expect("read", objects.read(key, u64::MAX, &mut buffer)).is_some();
    assert_eq!(
        expect("length", objects.length(key)),
        found.then_some(buffer.len() as u64),
        "length of {key}"
    );
    assert!(found || buffer.is_empty(), "bytes of an object not there");
    found.then_some(buffer)
}

#[track_caller]
fn expect_list(objects: &dyn Objects, folder: &str, wanted: &[(&str, Option<u64>)]) {
    let found = expect("list", objects.list(folder));
    let wanted = wanted.iter().map(|&(name, length)| Entry {
        name: name.to_owned(),
        length,
    });
    assert_eq!(found, wanted.collect::<Vec<_>>(), "the folder {folder:?}");
}

pub(super) fn nothing(objects: &dyn Objects) {
    assert!(!objects.name().is_empty(), "a place needs a name");
    assert!(objects.parallel() > 0, "parallel");
    for key in ["nothing", "nothing/c/0/0", ".hidden"] {
        assert_eq!(contents(objects, key), None);
        let part = objects.read_parts(key, from_ref(&(0..4)), &mut [0; 4]);
        assert!(!expect("read_parts", part), "{key} is not there");
        expect("remove", objects.remove(key));
        assert!(expect("open", objects.open(key)).is_none(), "{key}");
    }
    expect("remove_all", objects.remove_all("nothing"));
    expect_list(objects, "nothing", &[]);
    expect("sync", objects.sync());
}

pub(super) fn contents_and_parts(objects: &dyn Objects) {
    for size in [0, 1, 511, 4096, 70_000, 300_001] {
        let key = format!("contents/{size}");
        let data = pattern(0, size, size as u64);
        expect("write", objects.write(&key, &data));
        assert_eq!(contents(objects, &key), Some(data.clone()), "{key}");
        for (offset, len) in [(0, size), (size / 2, size / 3), (size, 0)] {
            let (mut found, wanted) = (vec![0xa5; offset + len], offset..offset + len);
            let part = objects.read_parts(&key, from_ref(&wanted), &mut found);
            assert!(expect("read_parts", part), "{key} is there");
            expect_same(&found[offset..], &data[offset..][..len], offset as u64);
            let before = found[..offset].iter().all(|byte| *byte == 0xa5);
            assert!(before, "bytes before a part of {key}");
        }
        for (offset, len) in [
            (0, size + 1),
            (size, 1),
            (size + 5, 2),
            (size / 2, size + 1),
        ] {
            let (mut buffer, wanted) = (vec![0; offset + len], offset..offset + len);
            match objects.read_parts(&key, from_ref(&wanted), &mut buffer) {
                Err(Error::UnexpectedEnd { end, .. }) => assert_eq!(end, size as u64, "{key}"),
                other => panic!("{len} bytes at {offset} of {size}: {other:?}"),
            }
        }
        // One of exactly the most bytes is read, a longer one is not.
        let mut found = Vec::new();
        let version = expect("read", objects.read(&key, size as u64, &mut found));
        assert!(version.is_some());
        assert_eq!(found, data, "{key}");
        if size > 0 {
            let error = objects.read(&key, size as u64 - 1, &mut found).unwrap_err();
            let told = error.to_string();
            assert!(
                told.contains(&format!("{size} bytes")) && told.contains(&key),
                "{told}"
            );
        }
        let store = expect("open", objects.open(&key));
        let store = store.expect("an object that is there");
        expect_len(&*store, size as u64);
        expect_bytes(&*store, 0, &data);
        expect_unexpected_end("a read", store.read_at(size as u64, &mut [0]));
        assert!(store.write_at(0, b"x").is_err(), "a write to {key}");
    }
}

pub(super) fn replacement_and_removal(objects: &dyn Objects) {
    let key = "changes/object";
    for size in [1000, 10, 5000, 0, 7] {
        let data = pattern(0, size, size as u64);
        expect("write", objects.write(key, &data));
        assert_eq!(contents(objects, key), Some(data));
    }
    expect_list(objects, "changes", &[("object", Some(7))]);
    expect("remove", objects.remove(key));
    assert_eq!(contents(objects, key), None);
    expect_list(objects, "changes", &[]);
}

pub(super) fn folders(objects: &dyn Objects) {
    let keys = [
        "f/b/c/0",
        "f/b/c/1",
        "f/b.x",
        "f/a",
        "f/.meta",
        "f/with space+%&=#é",
    ];
    for key in keys {
        expect("write", objects.write(key, key.as_bytes()));
    }
    let length = |key: &str| Some(key.len() as u64);
    let wanted = [
        (".meta", length(keys[4])),
        ("a", length(keys[3])),
        ("b", None),
        ("b.x", length(keys[2])),
        ("with space+%&=#é", length(keys[5])),
    ];
    expect_list(objects, "f", &wanted);
    expect_list(objects, "f/b", &[("c", None)]);
    expect_list(objects, "f/b/c", &[("0", Some(7)), ("1", Some(7))]);
    expect_list(objects, "f/b/c/0", &[]);
    let root = expect("list", objects.list(""));
    let f = root.iter().find(|entry| entry.name == "f");
    assert!(
        f.is_some_and(Entry::is_folder),
        "the folder f is in {root:?}"
    );
    // A folder is no object.
    assert_eq!(contents(objects, "f/b"), None);
    expect("remove", objects.remove("f/b"));
    for key in keys {
        assert_eq!(contents(objects, key), Some(key.as_bytes().to_vec()));
    }
    expect("remove_all", objects.remove_all("f/b"));
    assert_eq!(contents(objects, keys[0]), None);
    assert_eq!(contents(objects, keys[2]), Some(keys[2].into()));
    expect("remove_all", objects.remove_all("f"));
    expect_list(objects, "f", &[]);
}

pub(super) fn impossible_keys(objects: &dyn Objects) {
    for key in [
        "", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/./b", "a\0b", "a\nb",
    ] {
        let refused = [
            objects.length(key).err(),
            objects.read(key, 1, &mut Vec::new()).err(),
            objects.read_parts(key, &[], &mut []).err(),
            objects.write(key, b"x").err(),
            objects.remove(key).err(),
            objects.open(key).err(),
        ];
        for error in refused {
            assert!(
                matches!(error, Some(Error::Key { .. })),
                "{key:?}: {error:?}"
            );
        }
    }
    assert!(objects.list("../x").is_err(), "a folder outside");
    assert!(objects.remove_all("../x").is_err(), "a folder outside");
}

/// Many threads write objects of their own and one in common, and read all.
pub(super) fn many_threads(objects: &dyn Objects) {
    const THREADS: u64 = 8;
    const ROUNDS: u64 = 6;
    thread::scope(|scope| {
        for thread in 0..THREADS {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    let key = format!("threads/{round}/{thread}");
                    let data = pattern(round, 3000, thread);
                    expect("write", objects.write(&key, &data));
                    assert_eq!(contents(objects, &key), Some(data));
                    // All of one writer's bytes, never a mixture.
                    let data = vec![thread as u8; 100 + thread as usize];
                    expect("write", objects.write("threads/common", &data));
                    let mut found = Vec::new();
                    let version = objects.read("threads/common", 1000, &mut found);
                    assert!(expect("read", version).is_some());
                    let writer = found.first().copied().unwrap_or(0);
                    assert_eq!(found, vec![writer; 100 + writer as usize], "a mixture");
                }
            });
        }
    });
    for round in 0..ROUNDS {
        let listed = expect("list", objects.list(&format!("threads/{round}")));
        assert_eq!(listed.len() as u64, THREADS, "{listed:?}");
    }
    expect("sync", objects.sync());
}
