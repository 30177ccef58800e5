//! No room: a message, nothing left behind, and what was there is still there.

use std::process::{Command, Stdio};

use crate::program::{Place, complaint};

/// What runs out of room, and the array that it would have made.
const COMMANDS: [(&str, &str); 10] = [
    (
        "create new.oc --shape 500000 --type f64 --fill random",
        "new.oc",
    ),
    (
        "create new.oc --shape 500000 --type f64 --fill random --ranks 3",
        "new.oc",
    ),
    (
        "create new.npy --shape 500000 --type f64 --fill random",
        "new.npy",
    ),
    ("read ../noise.npy -o new.npy --ranks 3", "new.npy"),
    ("read ../noise.npy -o new.oc", "new.oc"),
    ("read ../noise.npy -o new.bin", "new.bin"),
    ("read ../noise.npy -o new.txt", "new.txt"),
    ("transpose ../noise.npy new.npy --ranks 3", "new.npy"),
    ("relayout ../noise.npy new.oc --layout tiled:500", "new.oc"),
    ("convert ../noise.npy new.oc --ranks 2", "new.oc"),
];

/// Runs them in `place`, where there is no room for 4 MB, each twice: with
/// and without something to be replaced.
fn check(place: &Place, run: impl Fn(&str) -> String) {
    for (line, name) in COMMANDS {
        let before = place.names();
        let message = run(line);
        assert!(message.contains("new"), "outcore {line}: {message}");
        assert_eq!(place.names(), before, "outcore {line}");
        place.ok(&format!("read ../noise.npy 0:4 -o {name}"));
        let data = if name == "new.oc" {
            "new.oc/data.bin"
        } else {
            name
        };
        let old = place.bytes(data);
        run(&format!("{line} --force"));
        assert_eq!(place.bytes(data), old, "outcore {line}");
        assert_eq!(place.names(), [name], "outcore {line}");
        if name == "new.oc" {
            std::fs::remove_dir_all(place.path(name)).unwrap();
        } else {
            std::fs::remove_file(place.path(name)).unwrap();
        }
    }
}

/// A file system in memory, until it is dropped.
struct Mounted<'a>(&'a Place);

impl Drop for Mounted<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(self.0.root()).status();
    }
}

/// Needs the right to mount; without it this says so and checks nothing,
/// and [`files_that_may_not_grow`] is what remains.
#[test]
fn a_full_disk() {
    let outside = Place::new();
    outside.ok("create noise.npy --shape 500000 --type f64 --fill random");
    let disk = outside.inside("disk");
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=1m", "outcore-test"])
        .arg(disk.root())
        .stderr(Stdio::null())
        .status();
    if !mounted.is_ok_and(|status| status.success()) {
        println!("NOT CHECKED: nobody but root can mount a small disk");
        return;
    }
    let _mounted = Mounted(&disk);
    println!("checked on a disk of 1 MiB");
    check(&disk, |line| {
        // Some say what they are about to do before they fail.
        let mut command = disk.command(line.split_whitespace());
        let message = complaint(&command.output().expect("outcore starts"), 1, line);
        assert!(message.contains("No space left on device"), "{message}");
        message
    });
    // An array that exists already, sparse, runs full when it is written.
    disk.ok("create a.oc --shape 500000 --type f64");
    let message = disk.fails(1, "write a.oc --from ../noise.npy --ranks 2");
    assert!(message.contains("No space left on device"), "{message}");
}

#[test]
fn files_that_may_not_grow() {
    let outside = Place::new();
    outside.ok("create noise.npy --shape 500000 --type f64 --fill random");
    let place = outside.inside("place");
    check(&place, |line| {
        // 1 MiB a file, and the signal that comes with it ignored.
        let program = env!("CARGO_BIN_EXE_outcore");
        let script = format!("trap '' XFSZ; ulimit -f 1024; exec \"$0\" {line}");
        let mut shell = Command::new("bash");
        shell.args(["-c", &script, program]);
        let output = place.prepare(shell).output().expect("bash");
        let message = complaint(&output, 1, line);
        assert!(message.contains("File too large"), "{message}");
        message
    });
}
