//! Named byte strings in a directory.

use std::fs;

use outcore_storage::{Directory, Error, Objects, conformance};

#[test]
fn directory() {
    let folder = tempfile::tempdir().unwrap();
    conformance::check_objects(&Directory::new(folder.path().join("not/yet/there")));
    let left = fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(left, 1, "something stands beside the directory");
}

#[test]
fn what_a_killed_writer_leaves_is_not_listed() {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join(".17-0.partial"), b"half").unwrap();
    let objects = Directory::new(folder.path());
    objects.write("whole", b"whole").unwrap();
    let names: Vec<_> = objects.list("").unwrap();
    assert_eq!(names.len(), 1, "{names:?}");
    objects.remove_all("").unwrap();
    assert!(!folder.path().exists());
}

#[test]
fn a_write_that_fails_leaves_nothing_and_says_where() {
    let folder = tempfile::tempdir().unwrap();
    let objects = Directory::new(folder.path());
    objects.write("a/b", b"first").unwrap();
    // A folder is in the way, and then an object where a folder would have to be.
    for key in ["a", "a/b/c"] {
        let error = objects.write(key, b"second").unwrap_err();
        let path = folder.path().join(key).display().to_string();
        assert!(matches!(
            error,
            Error::Object {
                action: "write",
                ..
            }
        ));
        assert!(error.to_string().contains(&path), "{error}");
    }
    let names = |folder: &str| -> Vec<_> {
        let folder = fs::read_dir(folder).unwrap();
        folder.map(|entry| entry.unwrap().file_name()).collect()
    };
    assert_eq!(names(folder.path().to_str().unwrap()), ["a"]);
    assert_eq!(names(folder.path().join("a").to_str().unwrap()), ["b"]);
    assert_eq!(fs::read(folder.path().join("a/b")).unwrap(), b"first");
}
