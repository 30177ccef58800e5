//! `--checksums`, `outcore verify` and `outcore repair-report`; killed writers.

use std::os::unix::fs::MetadataExt;
use std::os::unix::process::ExitStatusExt;
use std::process::Stdio;

use crate::program::{Place, complaint};

/// Runs a command that must fail, and returns what it printed, and its complaint.
fn bad(place: &Place, line: &str) -> (String, String) {
    let output = place.command(line.split_whitespace()).output().unwrap();
    let message = complaint(&output, 1, line);
    (String::from_utf8(output.stdout).unwrap(), message)
}

fn flip(place: &Place, file: &str, at: usize) {
    let mut bytes = place.bytes(file);
    bytes[at] ^= 16;
    place.write(file, bytes);
}

#[test]
fn a_damaged_block_is_found_reported_and_written_again() {
    let place = Place::new();
    place.ok("create a.oc --shape 100x100 --type i32 --fill index --checksums=1KiB");
    let info = place.ok("info a.oc");
    assert!(
        info.contains("checksums    crc32c of 1024 bytes each"),
        "{info}"
    );
    let told = place.ok("verify a.oc --ranks 2");
    assert!(told.contains("sound: 40 blocks of 1 KiB match"), "{told}");
    let row = place.ok_args(&["read", "a.oc", "7, :"]);

    // Byte 3000 is in block 2, which is elements 512 to 767: rows 5 to 7.
    flip(&place, "a.oc/data.bin", 3000);
    let message = place.fails_args(1, &["read", "a.oc", "7, :"]);
    for part in [
        "block 2 of",
        "data.bin",
        "bytes 2048 to 3071",
        "[5:6, 12:100], [6:7, 0:100], [7:8, 0:68]",
        "repair-report",
    ] {
        assert!(message.contains(part), "{message}");
    }
    // On several ranks, told once.
    let message = place.fails(1, "read a.oc -o b.npy --ranks 3");
    assert!(message.contains("block 2 of"), "{message}");
    assert_eq!(place.names(), ["a.oc"]);
    place.ok_args(&["read", "a.oc", "8:, :"]);

    let (told, message) = bad(&place, "verify a.oc --report r.txt");
    assert!(told.contains("1 of 40 blocks is damaged"), "{told}");
    assert!(told.contains("block 2, bytes 2048 to 3071"), "{told}");
    assert!(message.contains("1 of 40 blocks is damaged"), "{message}");
    let (report, _) = bad(&place, "repair-report a.oc");
    assert_eq!(String::from_utf8(place.bytes("r.txt")).unwrap(), report);
    for line in [
        "    a.oc '5:6, 12:100'\n",
        "    a.oc '6:7, 0:100'\n",
        "    a.oc '7:8, 0:68'\n",
    ] {
        assert!(report.contains(line), "{report}");
    }
    let (json, _) = bad(&place, "repair-report a.oc --json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    let fault = &json["arrays"][0]["faults"][0];
    assert_eq!(fault["pieces"], serde_json::json!([2, 3]));
    assert_eq!(fault["bytes"], serde_json::json!([2048, 3072]));
    assert_eq!(fault["sections"].as_array().unwrap().len(), 3);

    // Whole rows cover the block.
    place.ok_args(&["write", "a.oc", "5:8, :", "--fill", "index"]);
    assert_eq!(place.ok_args(&["read", "a.oc", "7, :"]), row);
    place.ok("verify a.oc");
    // Pieces of it do not, until somebody says that all is well.
    flip(&place, "a.oc/data.bin", 3000);
    for section in ["5:6, 12:100", "6:7, 0:100", "7:8, 0:68"] {
        place.ok_args(&["write", "a.oc", section, "--fill", "index"]);
    }
    bad(&place, "verify a.oc --accept interrupted");
    let told = place.ok("verify a.oc --accept all --json");
    let told: serde_json::Value = serde_json::from_str(&told).unwrap();
    assert_eq!(told["arrays"][0]["accepted"], 1);
    assert_eq!(place.ok_args(&["read", "a.oc", "7, :"]), row);
    assert!(place.ok("repair-report a.oc").contains("nothing to repair"));
}

#[test]
fn every_array_can_be_verified() {
    let place = Place::new();
    place.ok("create a.npy --shape 60x50 --type f32 --fill index");
    place.ok("convert a.npy safe.oc --checksums --layout tiled:16x16");
    place.ok("convert safe.oc copy.oc --layout column");
    place.ok("convert a.npy c.zarr/x --chunks 16x16 --codec zstd:3,crc32c");
    place.ok("convert a.npy c.zarr/y --chunks 16x16 --codec zstd:3");
    place.ok("convert safe.oc back.npy");
    assert_eq!(place.npy("back.npy"), place.npy("a.npy"));
    let told = place.ok("verify a.npy safe.oc copy.oc c.zarr --memory 64MiB");
    for part in [
        "a.npy  no checksums: read through without error",
        "safe.oc  sound: 1 block of 256 KiB matches its checksum,",
        "copy.oc  sound: 1 block of",
        "c.zarr/x  sound: 16 chunks match their checksums",
        "c.zarr/y  no checksums: 16 chunks were decoded without error",
        "5 of 5 without fault",
    ] {
        assert!(told.contains(part), "{told}");
    }
    // What is not stored is compared with nothing.
    place.ok("convert a.npy c.zarr/z --chunks 16x16 --shard 32x32 --codec zstd:3,crc32c");
    for name in ["x/c/0/0", "y/c/3/3", "z/c/0/1"] {
        std::fs::remove_file(place.path(&format!("c.zarr/{name}"))).unwrap();
    }
    let told = place.ok("verify c.zarr --ranks 2");
    for part in [
        "x  sound: 15 chunks match their checksums; 1 is not stored and reads as the fill value",
        "y  no checksums: 15 chunks were decoded without error; 1 is not stored",
        "z  sound: 12 chunks match their checksums; 4 are not stored and read as the fill value",
    ] {
        assert!(told.contains(part), "{told}");
    }
    let json = place.ok("verify c.zarr/z --json");
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    assert_eq!(json["arrays"][0]["not_stored"], 4);
    std::fs::remove_dir_all(place.path("c.zarr/z")).unwrap();
    flip(&place, "c.zarr/x/c/0/1", 9);
    let (told, message) = bad(&place, "verify a.npy c.zarr none.oc");
    assert!(
        told.contains("c.zarr/x  1 of 16 chunks is damaged"),
        "{told}"
    );
    assert!(told.contains("chunk 1"), "{told}");
    assert!(told.contains("none.oc  cannot be read"), "{told}");
    assert!(message.contains("2 of 4 arrays"), "{message}");

    let message = place.fails(2, "create b.npy --shape 3 --type u8 --checksums");
    assert!(message.contains("does not end in .oc"), "{message}");
    let message = place.fails(2, "convert a.npy b.oc --parts 2 --checksums");
    assert!(message.contains("local placement"), "{message}");
    let message = place.fails(1, "create b.oc --shape 3 --type u8 --checksums=3");
    assert!(message.contains("not 3"), "{message}");
    place.fails(2, "verify");
    place.fails(2, "verify a.npy --accept some");
}

/// Writers that are killed leave interrupted blocks, no damaged ones; what they
/// were not writing is as it was.
#[test]
fn a_killed_writer_leaves_interrupted_blocks() {
    let place = Place::new();
    place.ok("create a.oc --shape 2048x2048 --type f64 --fill index --checksums=64KiB");
    place.ok("create right.npy --shape 2048x2048 --type f64 --fill index");
    place.ok("create new.npy --shape 1024x2046 --type f64 --fill random");
    let time = || {
        let file = std::fs::metadata(place.path("a.oc/data.bin")).unwrap();
        (file.mtime(), file.mtime_nsec())
    };
    let (mut turns, mut interrupted) = (0, 0);
    while turns < 3 || interrupted == 0 {
        turns += 1;
        assert!(turns < 200, "no writer was killed in a write");
        // The upper half without two columns: every block is covered in part.
        let args = [
            "write",
            "a.oc",
            "0:1024, 1:2047",
            "--from",
            "new.npy",
            "--ranks",
            "2",
        ];
        let before = time();
        let mut child = place
            .command(args)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        while time() == before && child.try_wait().unwrap().is_none() {
            std::thread::yield_now();
        }
        child.kill().unwrap();
        let status = child.wait().unwrap();
        assert!(status.success() || status.signal() == Some(9), "{status}");
        let output = place
            .command(["verify", "a.oc", "--json"])
            .output()
            .unwrap();
        let told: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let faults = told["arrays"][0]["faults"].as_array().unwrap();
        assert_eq!(output.status.success(), faults.is_empty());
        interrupted += faults.len();
        for fault in faults {
            assert_eq!(fault["kind"], "interrupted", "{fault}");
            assert!(fault["bytes"][1].as_u64().unwrap() <= 16 << 20, "{fault}");
        }
        if let Some(fault) = faults.first() {
            let section = fault["sections"][0].as_str().unwrap();
            let message = place.fails_args(1, &["read", "a.oc", section, "-o", "b.npy"]);
            assert!(message.contains("was being written"), "{message}");
            place.ok("verify a.oc --accept interrupted");
            place.ok("verify a.oc");
        }
    }
    // The two columns, and the other half.
    for section in [":, ::2047", "1024:, :"] {
        place.ok_args(&["read", "a.oc", section, "-o", "found.npy", "--force"]);
        place.ok_args(&[
            "read",
            "right.npy",
            section,
            "-o",
            "expected.npy",
            "--force",
        ]);
        assert_eq!(
            place.bytes("found.npy"),
            place.bytes("expected.npy"),
            "{section}"
        );
    }
}

/// Programs that write elements of the same blocks at the same time.
#[test]
fn several_programs_write_the_same_blocks() {
    let place = Place::new();
    place.ok("create a.oc --shape 100x64 --type i32 --checksums=4KiB");
    let strategies = ["auto", "direct", "sieving", "direct"];
    let writers: Vec<_> = (0..4)
        .map(|writer| {
            let (section, value) = (format!(":, {writer}::4"), writer.to_string());
            let strategy = strategies[writer];
            let args = [
                "write",
                "a.oc",
                &section,
                "--fill",
                &value,
                "--strategy",
                strategy,
            ];
            place.command(args).stdout(Stdio::null()).spawn().unwrap()
        })
        .collect();
    for mut writer in writers {
        assert!(writer.wait().unwrap().success());
    }
    place.ok("verify a.oc");
    let row = "0 1 2 3 ".repeat(16);
    assert_eq!(place.ok_args(&["read", "a.oc", "99, :"]).trim(), row.trim());
}
