//! Arrays with checksums: many writers of interleaved elements against an oracle,
//! flipped bytes of any layout found and located, on every rank of a collective,
//! and files of checksums that are not what they should be.

use std::fs::{File, read, write};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::thread;

use outcore::{
    Array, ArrayDescriptor, Checks, Distribution, ElementType, Error, Fault, LocalPlacement,
    MemoryBudget, Problem, Section, Strategy as Method, Tuning, Verified, accept, verify,
};
use proptest::prelude::*;

/// The extents of the arrays: tiles of 4x5 leave room at both edges.
const SHAPE: [u64; 2] = [23, 17];

const LAYOUTS: [&str; 4] = ["row", "column", "tiled:4x5", "tiled:8x8:column"];

fn name(directory: &Path, text: &str) -> String {
    directory.join(text).to_str().unwrap().to_owned()
}

fn create(directory: &Path, layout: &str, block: u64) -> Array {
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::U16)
        .layout(layout.parse().unwrap())
        .checksummed(Some(block));
    Array::create(&name(directory, "a.oc"), &descriptor).unwrap()
}

fn verified(array: &Array, ranks: usize) -> Verified {
    let all = outcore::run(ranks, |comm| {
        verify(comm, array, &MemoryBudget::of(64 << 20), &|_| ())
    });
    let mut all = all.unwrap();
    assert!(all.windows(2).all(|two| two[0] == two[1]));
    all.swap_remove(0)
}

/// The number of an element: in row-major order of the array.
fn number(index: [u64; 2]) -> u16 {
    (index[0] * SHAPE[1] + index[1]) as u16
}

/// Writes the number of each element, plus `more`.
fn fill(array: &Array, more: u16) {
    for row in 0..SHAPE[0] {
        let values: Vec<u16> = (0..SHAPE[1]).map(|at| number([row, at]) + more).collect();
        let section = array.section(&format!("{row}, :")).unwrap();
        array.write(&section, &values).unwrap();
    }
}

fn flip(directory: &Path, file: &str, at: u64, bit: u8) {
    let path = directory.join("a.oc").join(file);
    let file = File::options().read(true).write(true).open(path).unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ (1 << bit)], at).unwrap();
}

fn method(which: usize) -> Tuning {
    Tuning {
        strategy: [Method::Auto, Method::Direct, Method::Sieving][which % 3],
        buffer: Some(300),
        ..Tuning::default()
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    /// Each writer has opened the array by itself and writes its own elements, all
    /// in the same blocks, in its own way.
    #[test]
    fn many_writers_of_interleaved_elements(
        layout in prop::sample::select(LAYOUTS.to_vec()),
        block in 64u64..300,
        stride in 2u64..5,
        rounds in 1u16..4,
        seed in any::<usize>(),
    ) {
        let directory = tempfile::tempdir().unwrap();
        create(directory.path(), layout, block);
        let array = name(directory.path(), "a.oc");
        thread::scope(|scope| {
            for writer in 0..stride * 2 {
                let array = Array::open_writable(&array).unwrap();
                let array = array.tuned(method(seed + writer as usize));
                scope.spawn(move || {
                    let (row, column) = (writer / stride, writer % stride);
                    let text = format!("{row}::2, {column}::{stride}");
                    let section = array.section(&text).unwrap();
                    for round in 1..=rounds {
                        let value = writer as u16 * 100 + round;
                        let values = vec![value; section.count() as usize];
                        array.write(&section, &values).unwrap();
                    }
                });
            }
        });
        let array = Array::open(&array).unwrap();
        for writer in 0..stride * 2 {
            let (row, column) = (writer / stride, writer % stride);
            let section = array.section(&format!("{row}::2, {column}::{stride}")).unwrap();
            let found: Vec<u16> = array.read(&section).unwrap();
            let expected = writer as u16 * 100 + rounds;
            prop_assert!(found.iter().all(|value| *value == expected));
        }
        prop_assert_eq!(verified(&array, 2).faults, []);
    }

    /// A flipped bit anywhere: exactly the sections that have an element of its
    /// block cannot be read, and the report names exactly these elements.
    #[test]
    fn a_flipped_bit_is_found_and_located(
        layout in prop::sample::select(LAYOUTS.to_vec()),
        block in 64u64..300,
        at in any::<prop::sample::Index>(),
        bit in 0u8..8,
        which in 0usize..3,
    ) {
        let directory = tempfile::tempdir().unwrap();
        let array = create(directory.path(), layout, block).tuned(method(which));
        fill(&array, 1);
        let bytes = array.layout().byte_len();
        let at = at.index(bytes as usize) as u64;
        flip(directory.path(), "data.bin", at, bit);
        let damaged = at / block;
        let range = damaged * block..((damaged + 1) * block).min(bytes);
        let found = verified(&array, 3);
        prop_assert_eq!(found.checks, Checks::Blocks);
        prop_assert_eq!(&found.faults, &[Fault {
            pieces: damaged..damaged + 1,
            bytes: range.clone(),
            problem: Problem::Damaged,
        }]);
        let sections: Vec<Section> = found.faults[0].sections(array.layout()).collect();
        for row in 0..SHAPE[0] {
            for column in 0..SHAPE[1] {
                let one = array.section(&format!("{row}, {column}")).unwrap();
                let offset = array.layout().offset(&[row, column]).unwrap();
                let lost = offset < range.end && range.start < offset + 2;
                let told = sections.iter().any(|section| section.contains(&[row, column]));
                prop_assert_eq!(told, lost);
                match array.read::<u16>(&one) {
                    Ok(values) => {
                        prop_assert!(!lost);
                        prop_assert_eq!(values, [number([row, column]) + 1]);
                    }
                    Err(error) => {
                        prop_assert!(lost, "{}", error);
                        let text = error.to_string();
                        prop_assert!(text.contains(&format!("block {damaged} of")), "{}", text);
                        prop_assert!(text.contains("data.bin"), "{}", text);
                        prop_assert!(text.contains("section"), "{}", text);
                        prop_assert!(text.contains("repair-report"), "{}", text);
                    }
                }
            }
        }
        // Written again in whatever pieces, then taken as it is, all is well; only
        // not by sieving, which would have to read what is damaged.
        let array = array.tuned(method(1));
        fill(&array, 7);
        for fault in verified(&array, 1).faults {
            accept(&array, &fault).unwrap();
        }
        prop_assert_eq!(verified(&array, 1).faults, []);
        let whole: Vec<u16> = array.read(&array.section("5, :").unwrap()).unwrap();
        prop_assert_eq!(whole[3], number([5, 3]) + 7);
    }
}

#[test]
fn every_rank_of_a_collective_is_told() {
    let directory = tempfile::tempdir().unwrap();
    let array = create(directory.path(), "row", 64);
    fill(&array, 0);
    flip(directory.path(), "data.bin", 70, 3);
    let told = outcore::run(3, |comm| {
        let part = array.section(&format!("{}::3, :", comm.rank())).unwrap();
        let error = array.read_all::<u16>(comm, &part).unwrap_err();
        Ok::<_, Error>(error.to_string())
    });
    for told in told.unwrap() {
        for part in [
            "block 1 of",
            "bytes 64 to 127",
            "[1:2, 15:17]",
            "does not match",
        ] {
            assert!(told.contains(part), "{told}");
        }
    }
}

#[test]
fn collective_writes_keep_checksums() {
    let directory = tempfile::tempdir().unwrap();
    for layout in LAYOUTS {
        let folder = directory.path().join(layout.replace(':', "-"));
        std::fs::create_dir(&folder).unwrap();
        let array = create(&folder, layout, 100);
        outcore::run(3, |comm| {
            let part = array.section(&format!(":, {}::3", comm.rank()))?;
            let values = vec![comm.rank() as u16 + 1; part.count() as usize];
            array.write_all(comm, &part, &values)
        })
        .unwrap();
        assert_eq!(verified(&array, 2).faults, [], "{layout}");
        let row: Vec<u16> = array.read(&array.section("22, :4").unwrap()).unwrap();
        assert_eq!(row, [1, 2, 3, 1], "{layout}");
    }
}

#[test]
fn stripes_have_checksums_too() {
    let directory = tempfile::tempdir().unwrap();
    let disks = ["one", "two"].map(|disk| directory.path().join(disk));
    for disk in &disks {
        std::fs::create_dir(disk).unwrap();
    }
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::U16)
        .striped(outcore::Stripes {
            unit: 50,
            directories: disks.to_vec(),
        })
        .checksummed(Some(128));
    let array = Array::create(&name(directory.path(), "a.oc"), &descriptor).unwrap();
    fill(&array, 0);
    assert_eq!(verified(&array, 2).faults, []);
    // Byte 10 of the second disk is byte 60 of the array.
    let stripe = std::fs::read_dir(&disks[1]).unwrap().next().unwrap();
    let path = stripe.unwrap().path();
    let mut bytes = read(&path).unwrap();
    bytes[10] ^= 1;
    write(&path, bytes).unwrap();
    let faults = verified(&array, 2).faults;
    assert_eq!(faults.len(), 1);
    assert_eq!(faults[0].pieces, 0..1);
}

#[test]
fn files_of_checksums_that_are_wrong() {
    let directory = tempfile::tempdir().unwrap();
    let array = create(directory.path(), "row", 64);
    fill(&array, 1);
    let (name, path) = (
        array.name().to_owned(),
        directory.path().join("a.oc/checksums.bin"),
    );
    let sums = read(&path).unwrap();
    assert_eq!(sums.len(), 8 * 13);
    let problem = || Array::open(&name).unwrap_err().to_string();
    for wrong in [
        &sums[..sums.len() - 1],
        &sums[..8],
        &[],
        &[&sums[..], &[0]].concat(),
    ] {
        write(&path, wrong).unwrap();
        assert!(problem().contains("checksums.bin has"), "{}", problem());
        assert!(problem().contains("need 104"), "{}", problem());
    }
    std::fs::remove_file(&path).unwrap();
    assert!(
        problem().contains("checksums.bin is missing"),
        "{}",
        problem()
    );
    // The right length, but anything in it.
    for seed in 0..50u32 {
        let garbage = (0..sums.len() as u32).map(|at| (at.wrapping_mul(seed * 2 + 1) >> 2) as u8);
        write(&path, garbage.collect::<Vec<u8>>()).unwrap();
        let array = Array::open_writable(&name).unwrap();
        assert_eq!(verified(&array, 2).faults.len(), 1);
        assert_eq!(verified(&array, 2).faults[0].pieces, 0..13);
        assert!(array.read::<u16>(&array.whole()).is_err());
        array
            .write(&array.section("3, 4").unwrap(), &[1u16])
            .unwrap();
    }
    // All of it written again.
    let array = Array::open_writable(&name).unwrap();
    array.write(&array.whole(), &vec![5u16; 23 * 17]).unwrap();
    assert_eq!(verified(&array, 1).faults, []);

    let json = directory.path().join("a.oc/array.json");
    let text = std::fs::read_to_string(&json).unwrap();
    for (from, to, told) in [
        ("\"block\": 64", "\"block\": 0", "64 to"),
        ("\"block\": 64", "\"block\": 18446744073709551615", "64 to"),
        ("\"block\": 64", "\"block\": -1", "whole number"),
        ("\"block\": 64", "\"block\": 128", "need 56"),
        ("crc32c", "md5", "md5"),
        ("\"block\": 64", "\"block\": 64, \"more\": 1", "more"),
    ] {
        assert!(text.contains(from), "{text}");
        write(&json, text.replace(from, to)).unwrap();
        assert!(problem().contains(told), "{}", problem());
    }
}

#[test]
fn what_has_no_such_checksums_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::F32).checksummed(None);
    assert_eq!(descriptor.checksums, Some(256 << 10));
    for file in ["a.npy", "a.zarr", "a.h5"] {
        let error = Array::create(&name(directory.path(), file), &descriptor).unwrap_err();
        assert!(error.to_string().contains(".oc"), "{error}");
    }
    let distribution = Distribution::parse("block,*", &SHAPE, 2, None).unwrap();
    let placed = descriptor.clone().placed(LocalPlacement::new(distribution));
    let error = Array::create(&name(directory.path(), "a.oc"), &placed).unwrap_err();
    assert!(error.to_string().contains("one file a rank"), "{error}");
    let odd = descriptor.checksummed(Some(10));
    let error = Array::create(&name(directory.path(), "a.oc"), &odd).unwrap_err();
    assert!(error.to_string().contains("not 10"), "{error}");
    assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    // A tile is a block if it has a sensible size.
    let tiled = |layout: &str| {
        let descriptor = ArrayDescriptor::new(&[500, 500], ElementType::F64);
        let descriptor = descriptor.layout(layout.parse().unwrap());
        descriptor.checksummed(None).checksums
    };
    assert_eq!(tiled("tiled:64x64"), Some(32 << 10));
    assert_eq!(tiled("tiled:8x8"), Some(256 << 10));
    assert_eq!(tiled("tiled:500x500"), Some(256 << 10));
}

#[test]
fn arrays_without_checksums_are_read_through() {
    let directory = tempfile::tempdir().unwrap();
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::U16);
    let array = Array::create(&name(directory.path(), "a.npy"), &descriptor).unwrap();
    let found = verified(&array, 2);
    assert_eq!((found.checks, found.bytes), (Checks::Nothing, 23 * 17 * 2));
    assert_eq!(found.faults, []);
    let fault = Fault {
        pieces: 0..1,
        bytes: 0..1,
        problem: Problem::Damaged,
    };
    assert!(accept(&array, &fault).is_err());
    // Chunks with checksums: the damaged one is named, the others are looked at.
    let chunked = descriptor
        .layout("tiled:8x8".parse().unwrap())
        .codecs("zstd:1,crc32c".parse().unwrap());
    let array = Array::create(&name(directory.path(), "a.zarr"), &chunked).unwrap();
    fill(&array, 1);
    assert_eq!(verified(&array, 2).checks, Checks::Chunks);
    let chunk = directory.path().join("a.zarr/c/1/2");
    let mut bytes = read(&chunk).unwrap();
    let middle = bytes.len() / 2;
    bytes[middle] ^= 4;
    write(&chunk, bytes).unwrap();
    let array = Array::open(array.name()).unwrap();
    let found = verified(&array, 2);
    assert_eq!((found.pieces, found.faults.len()), (9, 1));
    let fault = &found.faults[0];
    assert_eq!(fault.pieces, 5..6);
    let sections: Vec<String> = fault
        .sections(array.layout())
        .map(|s| s.to_string())
        .collect();
    assert_eq!(sections, ["8:16, 16:17"]);
    assert!(matches!(&fault.problem, Problem::Unreadable(text) if text.contains("CRC32C")));
    // What they have in common is said once, as it does not say where.
    for name in ["0/0", "0/1", "0/2", "1/0", "1/1"] {
        write(directory.path().join("a.zarr/c").join(name), "no chunk").unwrap();
    }
    for ranks in [1, 2] {
        let found = verified(&array, ranks);
        let pieces: Vec<_> = found.faults.iter().map(|fault| &fault.pieces).collect();
        assert_eq!(pieces, [&(0..6)], "{:?}", found.faults);
        assert_eq!((found.wrong(), found.is_sound()), (6, false));
    }
}
