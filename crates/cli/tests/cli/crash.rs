//! Killed in the middle: what is not complete has no name.

use std::os::unix::process::ExitStatusExt;
use std::process::{Child, Stdio};
use std::time::{Duration, Instant};

use crate::program::Place;

/// 8 GiB: far more than is written before the end comes.
const LARGE: &str = "--shape 1073741824 --type f64";

/// Starts `outcore`, waits until it has written something under a temporary
/// name, and kills it.
fn kill_in_the_middle(place: &Place, line: &str) {
    let mut child = place
        .command(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("outcore starts");
    let begun = wait_for_data(place, &mut child);
    child.kill().expect("it can be killed");
    let status = child.wait().expect("it ends");
    assert!(begun, "outcore {line} did not begin within a minute");
    assert_eq!(status.signal(), Some(9), "outcore {line} ended too early");
}

fn wait_for_data(place: &Place, child: &mut Child) -> bool {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        if temporary(place).iter().any(|name| holds_data(place, name)) {
            std::thread::sleep(Duration::from_millis(30));
            return true;
        }
        if child.try_wait().expect("a child").is_some() {
            return true;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    false
}

fn holds_data(place: &Place, name: &str) -> bool {
    use std::os::unix::fs::MetadataExt;
    let data = [place.path(name).join("data.bin"), place.path(name)];
    data.iter().any(|path| {
        std::fs::metadata(path).is_ok_and(|file| file.is_file() && file.blocks() >= 2048)
    })
}

/// Names that begin with a dot.
fn temporary(place: &Place) -> Vec<String> {
    let names = place.names().into_iter();
    names.filter(|name| name.starts_with('.')).collect()
}

/// The names without the temporary ones, which are removed: they take room.
fn names_after_a_crash(place: &Place) -> Vec<String> {
    for name in temporary(place) {
        let path = place.path(&name);
        if path.is_dir() {
            std::fs::remove_dir_all(path).unwrap();
        } else {
            std::fs::remove_file(path).unwrap();
        }
    }
    place.names()
}

#[test]
fn a_killed_create_leaves_nothing_under_the_name() {
    let place = Place::new();
    let raw = "raw:a.bin?shape=1073741824&type=f64";
    for (create, name) in [
        (format!("create a.oc {LARGE}"), "a.oc"),
        (format!("create a.npy {LARGE}"), "a.npy"),
        (format!("create {raw}"), "a.bin"),
    ] {
        kill_in_the_middle(&place, &format!("{create} --fill random --ranks 2"));
        // With what it left behind still there, a later run succeeds.
        assert!(!place.path(name).exists(), "{name}");
        let small = create.replace("1073741824", "3");
        place.ok(&format!("{small} --fill 5"));
        let read = small.replace("create", "read");
        let array = read.split(' ').nth(1).unwrap();
        assert_eq!(place.ok(&format!("read {array}")), "5 5 5\n");
        assert!(names_after_a_crash(&place).contains(&name.into()));
    }
}

#[test]
fn a_killed_create_by_force_leaves_the_old_array() {
    let place = Place::new();
    for name in ["a.oc", "a.npy"] {
        place.ok(&format!("create {name} --shape 3 --type u8 --fill index"));
        kill_in_the_middle(
            &place,
            &format!("create {name} {LARGE} --fill random --force"),
        );
        assert_eq!(place.ok(&format!("read {name}")), "0 1 2\n");
        assert_eq!(names_after_a_crash(&place).last().unwrap(), name);
        place.ok(&format!(
            "create {name} --shape 2 --type u8 --fill 4 --force"
        ));
        assert_eq!(place.ok(&format!("read {name}")), "4 4\n");
        std::fs::rename(place.path(name), place.path("done")).unwrap();
        if place.path("done").is_dir() {
            std::fs::remove_dir_all(place.path("done")).unwrap();
        }
    }
}

#[test]
fn a_killed_read_leaves_nothing_or_the_old_file() {
    let place = Place::new();
    place.ok(&format!("create zeros.oc {LARGE}"));
    for output in ["o.npy", "o.bin", "o.oc", "o.txt"] {
        kill_in_the_middle(&place, &format!("read zeros.oc -o {output} --ranks 2"));
        assert_eq!(names_after_a_crash(&place), ["zeros.oc"], "{output}");

        place.ok(&format!("read zeros.oc 5:8 -o {output}"));
        let data = if output == "o.oc" {
            "o.oc/data.bin"
        } else {
            output
        };
        let before = place.bytes(data);
        kill_in_the_middle(&place, &format!("read zeros.oc -o {output} --force"));
        assert_eq!(names_after_a_crash(&place), [output, "zeros.oc"]);
        assert_eq!(place.bytes(data), before, "{output}");

        place.ok(&format!("read zeros.oc 5:7 -o {output} --force"));
        assert!(place.bytes(data) != before, "{output}");
        if output == "o.oc" {
            std::fs::remove_dir_all(place.path(output)).unwrap();
        } else {
            std::fs::remove_file(place.path(output)).unwrap();
        }
    }
}
