//! `outcore transpose` and `outcore relayout`; killed in the middle and resumed.

use std::os::unix::process::ExitStatusExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use crate::program::Place;

#[test]
fn transposed_and_back_is_the_same() {
    let place = Place::new();
    place.ok("create a.npy --shape 37x23x11 --type f64 --fill index");
    for (there, back) in [("2,0,1", "1,2,0"), ("1,0,2", "1,0,2"), ("2,1,0", "2,1,0")] {
        let told = place.ok(&format!(
            "transpose a.npy b.oc --axes {there} --ranks 3 --force"
        ));
        assert!(
            told.starts_with("1 pass: ") && told.contains("peak memory"),
            "{told}"
        );
        place.ok(&format!(
            "transpose b.oc c.npy --axes {back} --memory 128KiB --force"
        ));
        assert_eq!(place.bytes("c.npy"), place.bytes("a.npy"), "{there}");
    }
    // Reversed, unless somebody says otherwise.
    place.ok("transpose a.npy d.npy");
    assert_eq!(place.ok("read d.npy 3,5,7"), place.ok("read a.npy 7,5,3"));
    place.ok("transpose a.npy e.npy --layout column");
    // The transposed array in column order has the bytes of the array in row order.
    assert_eq!(place.npy("e.npy"), place.npy("a.npy"));
}

#[test]
fn layouts_there_and_back() {
    let place = Place::new();
    place.ok("create a.npy --shape 120x90 --type i16 --fill index");
    for layout in [
        "column",
        "row",
        "tiled:32x16",
        "tiled:7x90:column",
        "axes:1,0",
    ] {
        place.ok(&format!("relayout a.npy b.oc --layout {layout} --force"));
        assert!(place.ok("info b.oc").contains(layout) || layout == "axes:1,0");
        place.ok("relayout b.oc c.npy --layout row --memory 192KiB --force");
        assert_eq!(place.bytes("c.npy"), place.bytes("a.npy"), "{layout}");
    }
    let raw = "raw:d.bin?shape=120x90&type=i16&layout=column&byteorder=big";
    place.ok(&format!("relayout a.npy {raw}"));
    assert_eq!(place.ok(&format!("read {raw}")), place.ok("read a.npy"));
}

#[test]
fn mistakes_are_told_in_a_sentence() {
    let place = Place::new();
    place.ok("create a.npy --shape 9x4 --type u8 --fill index");
    place.ok("create b.npy --shape 3 --type u8");
    let before = (place.bytes("a.npy"), place.bytes("b.npy"));
    for (line, part) in [
        ("relayout a.npy c.npy", "--layout"),
        (
            "relayout a.npy raw:c?shape=9x4&type=u8 --layout row",
            "--layout",
        ),
        ("transpose a.npy c.npy --axes 1,x", "'x'"),
        (
            "convert a.npy c.oc --parts 2 --directories .,. --resume",
            "--directories",
        ),
    ] {
        let message = place.fails(2, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    for (line, part) in [
        ("transpose a.npy a.npy --force", "the place of the input"),
        ("transpose a.npy ./a.npy", "the place of the input"),
        ("transpose a.npy b.npy", "exists already"),
        ("transpose a.npy c.npy --axes 0,0", "each of the 2 axes"),
        ("transpose a.npy c.npy --axes 0", "each of the 2 axes"),
        (
            "transpose a.npy c.npy --memory 100KiB --ranks 3",
            "at least 192 KiB",
        ),
        (
            "transpose a.npy raw:c?shape=9x4&type=u8",
            "transposed has 4x9",
        ),
        ("transpose a.npy raw:c?shape=4x9&type=i8", "i8"),
        ("relayout a.npy c.npy --layout tiled:2x2", "tiled:2x2"),
        ("relayout a.npy c.oc --layout tiled:2", "tile 2"),
        ("transpose none.npy c.npy", "none.npy"),
    ] {
        let message = place.fails(1, line);
        assert!(message.contains(part), "{line}: {message}");
    }
    assert_eq!((place.bytes("a.npy"), place.bytes("b.npy")), before);
    assert_eq!(place.names(), ["a.npy", "b.npy"]);
}

/// Starts a transposition and kills it as soon as some blocks are complete, but
/// not all. Returns how many.
fn kill_in_the_middle(place: &Place, line: &str, journal: &str) -> usize {
    let mut child = place
        .command(line.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("outcore starts");
    loop {
        let marks = std::fs::read(place.path(journal)).unwrap_or_default();
        let marks = marks
            .split(|byte| *byte == b'\n')
            .nth(1)
            .unwrap_or_default();
        let done = marks.iter().filter(|mark| **mark == b'#').count();
        if done > 0 {
            child.kill().expect("it can be killed");
            let status = child.wait().expect("it ends");
            assert_eq!(status.signal(), Some(9), "outcore {line} ended too early");
            return done;
        }
        assert!(
            child.try_wait().expect("a child").is_none(),
            "outcore {line} ended too early"
        );
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Many passes over a small array with little memory take long enough to be
/// interrupted between two of them.
#[test]
fn a_killed_run_is_resumed() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    place.ok("transpose a.npy right.npy");
    let line = "transpose a.npy b.npy --memory 192KiB --ranks 2";
    kill_in_the_middle(&place, line, ".b.npy.journal");
    assert!(!place.path("b.npy").exists());
    // Another job, or a changed input, is refused, and nothing is lost.
    let other = place.fails(1, "transpose a.npy b.npy --axes 0,1 --resume");
    assert!(other.contains("another job"), "{other}");
    // On another number of ranks, as long as the memory is enough.
    let told = place.ok("transpose a.npy b.npy --memory 1MiB --ranks 3 --resume");
    assert!(told.starts_with("continued, "), "{told}");
    assert_eq!(place.bytes("b.npy"), place.bytes("right.npy"));
    assert_eq!(place.names(), ["a.npy", "b.npy", "right.npy"]);
    // Nothing is left to continue: it begins anew.
    let told = place.ok("transpose a.npy b.npy --force --resume");
    assert!(told.starts_with("nothing to continue, "), "{told}");
    assert_eq!(place.bytes("b.npy"), place.bytes("right.npy"));
}

#[test]
fn what_was_left_is_refused_or_removed_if_the_input_changed() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    let line = "transpose a.npy b.oc --memory 192KiB --ranks 2";
    kill_in_the_middle(&place, line, ".b.oc.journal");
    let left = place.names();
    place.ok("write a.npy 5,5 --fill 1");
    let message = place.fails(1, &format!("{line} --resume"));
    assert!(message.contains("its input has changed"), "{message}");
    assert_eq!(place.names(), left);
    // Nor is it thrown away by who forgets --resume.
    let message = place.fails(1, "transpose a.npy b.oc");
    assert!(message.contains("--resume goes on with that"), "{message}");
    assert_eq!(place.names(), left);
    place.ok("transpose a.npy b.oc --force");
    place.ok("transpose b.oc c.npy");
    assert_eq!(place.bytes("c.npy"), place.bytes("a.npy"));
    assert_eq!(place.names(), ["a.npy", "b.oc", "c.npy"]);
}

/// What was being written when the run was killed is written again, so that no
/// block stays interrupted.
#[test]
fn a_killed_run_with_checksums_is_resumed() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    let line = "convert a.npy b.oc --layout column --checksums=16KiB --memory 192KiB --ranks 2";
    kill_in_the_middle(&place, line, ".b.oc.journal");
    let told = place.ok(&format!("{line} --resume"));
    assert!(told.starts_with("continued, "), "{told}");
    place.ok("verify b.oc");
    place.ok("convert b.oc c.npy --layout row");
    assert_eq!(place.npy("c.npy"), place.npy("a.npy"));
}

/// If the machine stops, blocks may be damaged that others share with what is marked as
/// complete: then nothing of the array is believed.
#[test]
fn a_run_with_damaged_blocks_is_resumed() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    let line = "convert a.npy b.oc --layout column --checksums=16KiB --memory 192KiB --ranks 2";
    kill_in_the_middle(&place, line, ".b.oc.journal");
    let (header, mut marks) = journal(&place, ".b.oc.journal");
    let counts = header["blocks"].as_array().unwrap();
    let last = counts.last().unwrap().as_u64().unwrap() as usize;
    let start = marks.len() - last;
    marks[start..].fill(b'#');
    write_journal(&place, ".b.oc.journal", &header, &marks);
    let data = format!(".{}-b.oc/data.bin", header["draft"].as_str().unwrap());
    let mut bytes = place.bytes(&data);
    bytes[20_000] ^= 1;
    place.write(&data, bytes);
    let told = place.ok(&format!("{line} --resume"));
    assert!(told.starts_with("continued, "), "{told}");
    place.ok("verify b.oc");
    place.ok("convert b.oc c.npy --layout row");
    assert_eq!(place.npy("c.npy"), place.npy("a.npy"));
}

/// Who begins anew and is killed while removing what was left leaves nothing that would be
/// taken for complete.
#[test]
fn what_is_half_removed_is_not_continued() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    let chunks = "--chunks 50x50 --codec none --layout column";
    place.ok(&format!("convert a.npy right.zarr {chunks}"));
    let line = format!("convert a.npy b.zarr {chunks} --memory 192KiB --ranks 2");
    let hidden = kill_at_the_end(&place, &line, "b.zarr");
    let copied = Command::new("cp")
        .args(["-r", "right.zarr/c", &hidden])
        .current_dir(place.root())
        .status();
    assert!(copied.expect("cp runs").success());
    let rows = || std::fs::read_dir(place.path(&hidden).join("c")).map_or(0, Iterator::count);
    let before = rows();
    let anew = format!("{line} --force");
    let mut child = place
        .command(anew.split_whitespace())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("outcore starts");
    while rows() == before {
        assert!(child.try_wait().expect("a child").is_none(), "it ended");
    }
    child.kill().expect("it can be killed");
    child.wait().expect("it ends");
    let found = std::fs::read(place.path(".b.zarr.journal")).unwrap_or_default();
    let marks = found.split(|byte| *byte == b'\n').nth(1);
    assert!(!marks.unwrap_or_default().contains(&b'#'));
    place.ok(&anew);
    place.ok("diff a.npy b.zarr");
}

/// Killed after the new array has its name and before the one that it has replaced is
/// removed, which is then hidden as the new one was.
#[test]
fn a_replaced_array_does_not_come_back() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    place.ok("convert a.npy right.oc --layout column");
    let line = "convert a.npy b.oc --layout column --memory 192KiB --ranks 2";
    for way in ["--resume", "--resume --force"] {
        place.ok("create b.oc --shape 3000x2000 --type f32 --fill 7 --force");
        let hidden = kill_at_the_end(&place, &format!("{line} --force"), "b.oc");
        place.write(
            &format!("{hidden}/data.bin"),
            place.bytes("right.oc/data.bin"),
        );
        let exchanged = [("b.oc", "old"), (&*hidden, "b.oc"), ("old", &*hidden)];
        for (from, to) in exchanged {
            std::fs::rename(place.path(from), place.path(to)).unwrap();
        }
        let told = place.ok(&format!("{line} {way}"));
        assert!(told.starts_with("continued, 0 bytes of"), "{told}");
        place.ok("diff a.npy b.oc");
        assert_eq!(place.names(), ["a.npy", "b.oc", "right.oc"], "{way}");
    }
}

/// What is left of an HDF5 file of its own is told from what is added to one.
#[test]
fn a_killed_run_that_makes_an_hdf5_file() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    place.ok("transpose a.npy right.h5:/a");
    // Another program makes the file.
    let line = "transpose a.npy all.h5:/a --memory 192KiB --ranks 2";
    kill_in_the_middle(&place, line, ".all.h5.journal");
    place.ok("create all.h5:/b --shape 3 --type u8 --fill index");
    let message = place.fails(1, &format!("{line} --resume"));
    assert!(message.contains("other datasets") && message.contains("take --force"));
    let message = place.fails(1, line);
    assert!(message.contains("--force begins anew"), "{message}");
    place.ok(&format!("{line} --force"));
    place.ok("diff right.h5:/a all.h5:/a");
    assert_eq!(place.ok("read all.h5:/b"), "0 1 2\n");
    // Killed when it has its name.
    let line = "transpose a.npy own.h5:/a --memory 192KiB --ranks 2";
    let hidden = kill_at_the_end(&place, line, "own.h5");
    place.write(&hidden, place.bytes("right.h5"));
    std::fs::rename(place.path(&hidden), place.path("own.h5")).unwrap();
    place.ok(&format!("{line} --resume"));
    place.ok("diff right.h5:/a own.h5:/a");
    let names = ["a.npy", "all.h5", "own.h5", "right.h5"];
    assert_eq!(place.names(), names);
}

/// A journal of what somebody has removed means nothing.
#[test]
fn what_was_left_may_be_removed() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    let line = "transpose a.npy b.oc --memory 192KiB --ranks 2";
    for way in ["--resume", ""] {
        kill_in_the_middle(&place, line, ".b.oc.journal");
        for name in place.names() {
            if name.starts_with('.') && name.ends_with(".oc") {
                std::fs::remove_dir_all(place.path(&name)).unwrap();
            }
        }
        place.ok(&format!("{line} {way}"));
        assert_eq!(place.names(), ["a.npy", "b.oc"]);
        std::fs::remove_dir_all(place.path("b.oc")).unwrap();
    }
}

/// Killed when all is written: no pass is made again, and nothing is left of any.
#[test]
fn a_complete_array_only_gets_its_name() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    place.ok("transpose a.npy right.oc");
    let line = "transpose a.npy b.oc --memory 192KiB --ranks 2";
    for cannot_be_made in [false, true] {
        let hidden = kill_at_the_end(&place, line, "b.oc");
        place.write(
            &format!("{hidden}/data.bin"),
            place.bytes("right.oc/data.bin"),
        );
        let [first, second] = ["pass1", "pass2"].map(|pass| format!("{hidden}.{pass}"));
        if cannot_be_made {
            std::fs::remove_file(place.path(&first)).unwrap();
            std::fs::create_dir(place.path(&first)).unwrap();
        } else {
            place.write(&second, place.bytes(&first));
        }
        place.ok(&format!("{line} --resume"));
        assert_eq!(
            place.bytes("b.oc/data.bin"),
            place.bytes("right.oc/data.bin")
        );
        if cannot_be_made {
            std::fs::remove_dir(place.path(&first)).unwrap();
        }
        assert_eq!(place.names(), ["a.npy", "b.oc", "right.oc"]);
        std::fs::remove_dir_all(place.path("b.oc")).unwrap();
    }
}

/// Kills a run that makes `output`, and marks all blocks as complete. Returns the hidden name
/// of what it has left.
fn kill_at_the_end(place: &Place, line: &str, output: &str) -> String {
    let name = format!(".{output}.journal");
    kill_in_the_middle(place, line, &name);
    let (header, marks) = journal(place, &name);
    write_journal(place, &name, &header, &vec![b'#'; marks.len()]);
    format!(".{}-{output}", header["draft"].as_str().unwrap())
}

/// The first line of a journal, and its marks.
fn journal(place: &Place, name: &str) -> (serde_json::Value, Vec<u8>) {
    let bytes = place.bytes(name);
    let end = bytes.iter().position(|byte| *byte == b'\n').unwrap();
    let header = serde_json::from_slice(&bytes[..end]).unwrap();
    (header, bytes[end + 1..].to_vec())
}

fn write_journal(place: &Place, name: &str, header: &serde_json::Value, marks: &[u8]) {
    place.write(name, [header.to_string().as_bytes(), b"\n", marks].concat());
}

/// What a journal says leads to nothing but what outcore makes beside the output.
#[test]
fn a_journal_that_says_anything_harms_nothing_and_ends_with_a_sentence() {
    let place = Place::new();
    place.ok("create a.npy --shape 3000x2000 --type f32 --fill random");
    place.ok("transpose a.npy right.npy");
    std::fs::create_dir(place.path("precious")).unwrap();
    place.write("precious/all", "all");
    let line = "transpose a.npy b.npy --memory 192KiB --ranks 2";
    kill_in_the_middle(&place, line, ".b.npy.journal");
    let (header, marks) = journal(&place, ".b.npy.journal");
    let outside = place.path("precious");
    let changes: [(&str, serde_json::Value); 8] = [
        ("/draft", "precious".into()),
        ("/draft", "../precious".into()),
        ("/draft", outside.to_str().unwrap().into()),
        ("/blocks", serde_json::json!([1u64 << 62])),
        ("/blocks", serde_json::json!([])),
        ("/decision/stages/0/choice/block", serde_json::json!([0, 0])),
        ("/decision/stages/0/choice/block", serde_json::json!([])),
        ("/decision/lane", 0.into()),
    ];
    for (pointer, value) in changes {
        let mut changed = header.clone();
        *changed.pointer_mut(pointer).expect(pointer) = value.clone();
        write_journal(&place, ".b.npy.journal", &changed, &marks);
        let left = place.names();
        let message = place.fails(1, &format!("{line} --resume"));
        assert!(message.contains("damaged"), "{pointer} {value}: {message}");
        // What a right journal could continue is still there.
        assert_eq!(place.names(), left, "{pointer} {value}");
    }
    // With --force nothing is removed but what is beside the output.
    let mut changed = header.clone();
    changed["draft"] = outside.to_str().unwrap().into();
    write_journal(&place, ".b.npy.journal", &changed, &marks);
    place.ok(&format!("{line} --force"));
    assert_eq!(place.bytes("precious/all"), b"all");
    assert_eq!(place.bytes("b.npy"), place.bytes("right.npy"));
}
