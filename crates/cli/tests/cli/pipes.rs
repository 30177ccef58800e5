//! Output that nobody takes, or that cannot be taken.

use std::fs::File;
use std::io::{BufRead, BufReader};
use std::os::unix::fs::FileTypeExt;
use std::process::{Command, Stdio};

use crate::program::{Place, complaint};

fn full() -> File {
    let full = File::options().write(true).open("/dev/full");
    full.expect("/dev/full, which is always full")
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let place = Place::new();
    place.ok("create a.oc --shape 1000x1000 --type f64 --fill index");
    for line in ["read a.oc", "read a.oc --ranks 3", "read a.oc -o -"] {
        let mut child = place
            .command(line.split(' '))
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        // What `head -1` does: takes a line and leaves.
        let mut first = String::new();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        out.read_line(&mut first).unwrap();
        drop(out);
        let output = child.wait_with_output().unwrap();
        assert!(first.starts_with("0 1 2 3 "), "{first}");
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    }
    for line in [
        "info a.oc",
        "info a.oc --json",
        "create b.oc --shape 3 --type u8",
        "--help",
    ] {
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let output = place
            .command(line.split(' '))
            .stdout(writer)
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{line}");
        assert_eq!(String::from_utf8_lossy(&output.stderr), "", "{line}");
    }
    assert_eq!(place.ok("read b.oc"), "0 0 0\n");
}

#[test]
fn output_that_cannot_be_written_is_a_failure() {
    let place = Place::new();
    place.ok("create a.oc --shape 4x4 --type f64 --fill index");
    for line in [
        "--help",
        "read --help",
        "read a.oc",
        "read a.oc --ranks 3",
        "info a.oc",
        "info a.oc --json",
    ] {
        let command = place
            .command(line.split(' '))
            .stdout(full())
            .output()
            .unwrap();
        let message = complaint(&command, 1, line);
        assert!(
            message.contains("cannot write to standard output: No space left on device"),
            "{message}"
        );
    }
}

#[test]
fn messages_that_cannot_be_written_do_no_harm() {
    let place = Place::new();
    for (line, status) in [("info nothing.oc", 1), ("create a.oc", 2), ("nonsense", 2)] {
        let status_found = place
            .command(line.split(' '))
            .stdout(Stdio::null())
            .stderr(full())
            .status()
            .unwrap();
        assert_eq!(status_found.code(), Some(status), "{line}");
    }
}

#[test]
fn a_named_pipe_is_written_and_stays() {
    let place = Place::new();
    place.ok("create a.oc --shape 2x3 --type u8 --fill index");
    let pipe = place.path("pipe.csv");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let taken = std::thread::spawn({
        let pipe = pipe.clone();
        move || std::fs::read_to_string(pipe).unwrap()
    });
    place.ok("read a.oc -o pipe.csv --force");
    assert!(pipe.metadata().unwrap().file_type().is_fifo());
    assert_eq!(taken.join().unwrap(), "0,1,2\n3,4,5\n");
    assert_eq!(place.names(), ["a.oc", "pipe.csv"]);
}

#[test]
fn planted_links_are_not_followed() {
    let place = Place::new();
    place.ok("create a.oc --shape 2x3 --type u8 --fill index");
    place.write("victim", "mine");
    // The shell becomes the program, and keeps its number.
    let script = "for number in 0- 1- ''; do ln -s victim .$$-$number$2; done; exec \"$0\" $1 $2";
    for (arguments, output) in [
        ("read a.oc -o", "out.csv"),
        ("view a.oc -o", "out.png"),
        ("repair-report a.oc -o", "out.txt"),
    ] {
        let mut command = Command::new("sh");
        command.args([
            "-c",
            script,
            env!("CARGO_BIN_EXE_outcore"),
            arguments,
            output,
        ]);
        let told = place.prepare(command).output().unwrap();
        assert!(told.status.success(), "{told:?}");
        assert_eq!(place.bytes("victim"), b"mine", "{output}");
        assert!(!place.path(output).is_symlink(), "{output}");
        assert!(place.bytes(output).len() > 5, "{output}");
    }
}
