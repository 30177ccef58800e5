//! Interrupted in the middle (ctrl-C): what is unfinished is removed, or kept where a
//! run can go on.

use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

use crate::program::Place;

/// Large enough to be in the middle for a while: 512 MiB of holes.
const LARGE: &str = "--shape 16384x8192 --type f32";

/// Starts `outcore`, waits until something with a temporary name holds data, and
/// sends a signal.
fn interrupt(place: &Place, line: &str, signal: &str) -> Output {
    let begun = |place: &Place| hidden(place).iter().any(|name| blocks(place, name) >= 8192);
    interrupt_when(place, line, signal, &begun)
}

/// The same, when it has `begun`.
fn interrupt_when(
    place: &Place,
    line: &str,
    signal: &str,
    begun: &dyn Fn(&Place) -> bool,
) -> Output {
    let mut child = place
        .command(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("outcore starts");
    wait_until(place, &mut child, begun);
    let sent = Command::new("kill")
        .args([signal, &child.id().to_string()])
        .status();
    assert!(sent.expect("kill runs").success());
    child.wait_with_output().expect("it ends")
}

fn wait_until(place: &Place, child: &mut Child, begun: &dyn Fn(&Place) -> bool) {
    let start = Instant::now();
    while start.elapsed() < Duration::from_secs(60) {
        let ended = child.try_wait().expect("a child").is_some();
        assert!(!ended, "it ended before it was interrupted");
        if begun(place) {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
    panic!("it did not begin within a minute");
}

fn blocks(place: &Place, name: &str) -> u64 {
    use std::os::unix::fs::MetadataExt;
    let files = [place.path(name).join("data.bin"), place.path(name)];
    let found = files.iter().filter_map(|path| std::fs::metadata(path).ok());
    found.map(|file| file.blocks()).max().unwrap_or(0)
}

fn hidden(place: &Place) -> Vec<String> {
    let names = place.names().into_iter();
    names.filter(|name| name.starts_with('.')).collect()
}

fn complaint(output: &Output, status: i32) -> String {
    let text = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(output.status.code(), Some(status), "{text}");
    assert_eq!(text.lines().count(), 1, "{text}");
    text
}

#[test]
fn an_interrupted_convert_is_continued() {
    let place = Place::new();
    place.ok(&format!("create in.npy {LARGE}"));
    place.ok_args(&["write", "in.npy", "::9999, ::99", "--fill", "2.5"]);
    for (signal, status) in [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None)] {
        let line = "convert in.npy out.oc --memory 16MiB --ranks 2";
        let output = interrupt(&place, line, signal);
        assert!(!place.path("out.oc").exists(), "{signal}");
        assert!(place.path(".out.oc.journal").exists(), "{signal}");
        match status {
            Some(status) => {
                let text = complaint(&output, status);
                assert!(text.contains("--resume"), "{text}");
            }
            None => assert_eq!(output.status.code(), None),
        }
        let text = place.ok(&format!("{line} --resume --verify"));
        assert!(
            text.contains("continued") && text.contains("verified"),
            "{text}"
        );
        assert!(hidden(&place).is_empty(), "{signal}: {:?}", hidden(&place));
        std::fs::remove_dir_all(place.path("out.oc")).unwrap();
    }
}

/// Before a run goes on, and after it has ended, there is something that stays.
#[test]
fn what_stays_is_said() {
    let place = Place::new();
    place.ok(&format!("create in.oc {LARGE}"));
    let line = "convert in.oc out.oc --checksums --memory 16MiB --ranks 2";
    complaint(&interrupt(&place, line, "-INT"), 130);
    let again = format!("{line} --resume");
    let mut command = place.command(again.split_whitespace());
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().expect("outcore starts");
    wait_for_handler(&child);
    send(&child, "-INT");
    let text = complaint(&child.wait_with_output().expect("it ends"), 130);
    assert!(text.contains("out.oc is kept"), "{text}");
    assert!(text.contains("--resume goes on"), "{text}");
    let is_there = |place: &Place| place.path("out.oc").exists();
    let stopped = interrupt_when(&place, &format!("{again} --verify"), "-INT", &is_there);
    let text = complaint(&stopped, 130);
    assert!(text.contains("out.oc is complete and stays"), "{text}");
    assert_eq!(place.names(), ["in.oc", "out.oc"]);
}

/// Of a container, the arrays that are complete stay, and the others are made.
#[test]
fn an_interrupted_container_is_continued() {
    let place = Place::new();
    place.ok("create in.zarr/g/first --shape 50x40 --type f32 --fill index");
    place.ok(&format!("create in.zarr/second {LARGE}"));
    for (output, separator, note) in [
        ("out.zarr", "/", ".out.zarr.filling"),
        ("out.h5", ":/", ".out.h5.filling"),
    ] {
        for (signal, status) in [("-INT", Some(130)), ("-KILL", None)] {
            let line = format!("convert in.zarr {output} --all --codec none --memory 16MiB");
            let first = format!("{output}{separator}g/first");
            let begun = |place: &Place| {
                let listed = place.command(["info", &first]).output();
                listed.expect("outcore starts").status.success()
            };
            let stopped = interrupt_when(&place, &line, signal, &begun);
            assert!(place.path(note).exists(), "{signal} {output}");
            match status {
                Some(status) => {
                    let text = complaint(&stopped, status);
                    let said = format!("1 of 2 arrays are complete in {output}");
                    assert!(text.contains(&said) && text.contains("--resume"), "{text}");
                }
                None => assert_eq!(stopped.status.code(), None),
            }
            // Not by another job, and not without being told to.
            let problem = place.fails(1, &line);
            assert!(problem.contains("--resume goes on with that"), "{problem}");
            let problem = place.fails(1, &format!("{line} --type f64 --resume"));
            assert!(problem.contains("other options"), "{problem}");
            let text = place.ok(&format!("{line} --resume --verify --ranks 2"));
            assert_eq!(text.matches("made before").count(), 1, "{text}");
            assert!(hidden(&place).is_empty(), "{:?}", hidden(&place));
            for name in ["g/first", "second"] {
                place.ok(&format!("diff in.zarr/{name} {output}{separator}{name}"));
            }
            let made = place.path(output);
            if made.is_dir() {
                std::fs::remove_dir_all(made).unwrap();
            } else {
                std::fs::remove_file(made).unwrap();
            }
        }
    }
}

#[test]
fn what_cannot_be_continued_is_removed() {
    let place = Place::new();
    place.ok(&format!("create in.npy {LARGE}"));
    for line in [
        "read in.npy -o out.npy --ranks 2",
        "create out.oc --shape 16384x8192 --type f64 --fill random --ranks 2",
        "median in.npy out.npy --window 3x3 --memory 16MiB --ranks 2",
    ] {
        let output = interrupt(&place, line, "-INT");
        let text = complaint(&output, 130);
        assert!(text.contains("interrupted"), "{line}: {text}");
        assert!(text.contains("nothing is left"), "{line}: {text}");
        assert_eq!(place.names(), ["in.npy"], "{line}");
    }
}

/// A dataset that is added to a file has no name before it is complete, and cannot be
/// continued; whatever happens to the program, the file stays what it was.
#[test]
fn an_interrupted_addition_leaves_the_file_as_it_was() {
    let place = Place::new();
    place.ok(&format!("create in.npy {LARGE}"));
    place.ok("create all.h5:/g/first --shape 3 --type u8 --fill index");
    let names = place.names();
    let mut first = blocks(&place, "all.h5");
    for (signal, status) in [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None)] {
        for line in [
            "convert in.npy all.h5:/g/new --memory 16MiB --ranks 2",
            "create all.h5:/other/new --shape 16384x8192 --type f64 --fill random --ranks 2",
            "create all.h5:/more --shape 16384x8192 --type f64 --fill random --codec deflate:1",
        ] {
            let begun = |place: &Place| blocks(place, "all.h5") >= first + 8192;
            let output = interrupt_when(&place, line, signal, &begun);
            match status {
                Some(status) => {
                    let text = complaint(&output, status);
                    assert!(text.contains("interrupted"), "{text}");
                    assert!(!text.contains("--resume"), "{text}");
                }
                None => assert_eq!(output.status.code(), None),
            }
            assert_eq!(place.ok("read all.h5:/g/first"), "0 1 2\n", "{line}");
            assert_eq!(place.ok("ls all.h5").matches("u8").count(), 1, "{line}");
            assert_eq!(place.names(), names, "{line}");
            first = blocks(&place, "all.h5");
        }
    }
    let text = place.fails(1, "convert in.npy all.h5:/g/new --resume");
    assert!(text.contains("cannot be continued"), "{text}");
    place.ok("create all.h5:/g/second --shape 2 --type u8 --fill index");
    assert_eq!(place.ok("read all.h5:/g/second"), "0 1\n");
    assert_eq!(place.ok("read all.h5:/g/first"), "0 1 2\n");
}

#[test]
fn commands_without_an_output_stop_as_well() {
    let place = Place::new();
    // 64 GiB of holes: nobody is done with them before the signal comes.
    place.ok("create a.npy --shape 8589934592 --type f64");
    place.ok("create b.oc --shape 8589934592 --type f64 --checksums");
    for (line, left) in [
        ("verify a.npy --ranks 2", "interrupted"),
        ("verify b.oc a.npy", "interrupted"),
        ("repair-report a.npy", "interrupted"),
        ("stats a.npy --ranks 2", "interrupted"),
        (
            "write a.npy --fill 2",
            "interrupted; what was written until then stays in the array",
        ),
        // Each run has one element.
        (
            "write raw:a.npy?shape=4294967296x2&type=f64&offset=128 :,0 --fill 2 --strategy direct",
            "interrupted; what was written until then stays in the array",
        ),
    ] {
        let mut command = place.command(line.split_whitespace());
        let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().expect("outcore starts");
        wait_for_handler(&child);
        let id = child.id().to_string();
        let sent = Command::new("kill").args(["-INT", &id]).status();
        assert!(sent.expect("kill runs").success());
        let output = child.wait_with_output().expect("it ends");
        let text = complaint(&output, 130);
        assert_eq!(text, format!("outcore: {left}\n"), "{line}");
        assert!(output.stdout.is_empty(), "{line}: {:?}", output.stdout);
    }
}

/// A terminal that goes away stops a program, unless that is to be ignored.
#[test]
fn a_lost_terminal_is_an_interruption() {
    let place = Place::new();
    place.ok("create a.npy --shape 8589934592 --type f64");
    let mut command = place.command(["stats", "a.npy"]);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().expect("outcore starts");
    wait_for_handler(&child);
    send(&child, "-HUP");
    let text = complaint(&child.wait_with_output().expect("it ends"), 129);
    assert!(text.contains("interrupted"), "{text}");
    // Under nohup it goes on until it is told otherwise.
    let program = env!("CARGO_BIN_EXE_outcore");
    let mut command = Command::new("nohup");
    command.args([program, "stats", "a.npy"]);
    let mut command = place.prepare(command);
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = child.spawn().expect("nohup starts");
    wait_for_handler(&child);
    send(&child, "-HUP");
    send(&child, "-INT");
    complaint(&child.wait_with_output().expect("it ends"), 130);
}

#[test]
fn an_interrupted_calibration_keeps_nothing() {
    let place = Place::new();
    let mut command = place.command(["calibrate", "."]);
    command.env("XDG_CACHE_HOME", place.path("cache"));
    let child = command.stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = child.spawn().expect("outcore starts");
    wait_until(&place, &mut child, &|place| !hidden(place).is_empty());
    send(&child, "-INT");
    complaint(&child.wait_with_output().expect("it ends"), 130);
    assert!(place.names().is_empty(), "{:?}", place.names());
}

fn send(child: &Child, signal: &str) {
    let id = child.id().to_string();
    let sent = Command::new("kill").args([signal, &id]).status();
    assert!(sent.expect("kill runs").success());
}

/// Waits until a program handles SIGINT itself.
fn wait_for_handler(child: &Child) {
    loop {
        let path = format!("/proc/{}/status", child.id());
        let status = std::fs::read_to_string(path).expect("a running program");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.expect("a line").trim(), 16).expect("signals");
        // Signals are counted from 1, and this is the second.
        if caught & 2 != 0 {
            return;
        }
        std::thread::sleep(Duration::from_millis(1));
    }
}
