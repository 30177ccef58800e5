//! Which elements a section names, in both notations.

use crate::oracle::{BIG, elements, numbers};
use crate::program::Place;

/// A section in NumPy style, in Fortran style, the indices of each axis of an
/// array of 5x6x4, and the shape of the output.
struct Case {
    numpy: &'static str,
    fortran: &'static str,
    indices: [&'static [u64]; 3],
    shape: &'static str,
}

const CASES: [Case; 11] = [
    Case {
        numpy: "",
        fortran: "(:, :, :)",
        indices: [&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3]],
        shape: "(5, 6, 4)",
    },
    Case {
        numpy: "1:5:2, ::3, 2:3",
        fortran: "(2:5:2, ::3, 3:3)",
        indices: [&[1, 3], &[0, 3], &[2]],
        shape: "(2, 2, 1)",
    },
    Case {
        numpy: "-2:, :-4, -1",
        fortran: "(4:5, 1:2, 4)",
        indices: [&[3, 4], &[0, 1], &[3]],
        shape: "(2, 2)",
    },
    Case {
        numpy: "2, 3, 1",
        fortran: "(3, 4, 2)",
        indices: [&[2], &[3], &[1]],
        shape: "()",
    },
    Case {
        numpy: "[0,2,3], [1,5], [0,3]",
        fortran: "([1,3,4], [2,6], [1,4])",
        indices: [&[0, 2, 3], &[1, 5], &[0, 3]],
        shape: "(3, 2, 2)",
    },
    Case {
        numpy: "..., 1",
        fortran: "(1:5, 1:6, 2)",
        indices: [&[0, 1, 2, 3, 4], &[0, 1, 2, 3, 4, 5], &[1]],
        shape: "(5, 6)",
    },
    Case {
        numpy: "4, ..., ::2",
        fortran: "(5, 1:6:1, 1:4:2)",
        indices: [&[4], &[0, 1, 2, 3, 4, 5], &[0, 2]],
        shape: "(6, 2)",
    },
    Case {
        numpy: "3",
        fortran: "(4, :, :)",
        indices: [&[3], &[0, 1, 2, 3, 4, 5], &[0, 1, 2, 3]],
        shape: "(6, 4)",
    },
    Case {
        numpy: "0:2*2, (1+2)*1:10/2, 7%4",
        fortran: "(1:4, 3+1:5, 4)",
        indices: [&[0, 1, 2, 3], &[3, 4], &[3]],
        shape: "(4, 2)",
    },
    Case {
        numpy: "3:3, 0:2, :",
        fortran: "(4:3, 1:2, :)",
        indices: [&[], &[0, 1], &[0, 1, 2, 3]],
        shape: "(0, 2, 4)",
    },
    Case {
        numpy: "5:, [], 0",
        fortran: "(6:5, [], 1)",
        indices: [&[], &[], &[0]],
        shape: "(0, 0)",
    },
];

const SHAPE: [u64; 3] = [5, 6, 4];

#[test]
fn both_notations_name_the_same_elements() {
    let place = Place::new();
    for layout in ["row", "column", "tiled:2x4x3"] {
        let order = if layout == "column" {
            [2, 1, 0]
        } else {
            [0, 1, 2]
        };
        place.ok(&format!(
            "create a.oc --shape 5x6x4 --type i32 --layout {layout} --fill index --force"
        ));
        for case in &CASES {
            let indices = case.indices.map(<[u64]>::to_vec);
            let expected = elements("i32", &numbers(&SHAPE, &indices, &order), BIG);
            for section in [case.numpy, case.fortran] {
                place.ok_args(&["read", "a.oc", section, "-o", "s.npy", "--force"]);
                assert_eq!(place.npy("s.npy"), expected, "{section} of {layout}");
                let header = place.npy_header("s.npy");
                let shape = format!("'shape': {}, }}", case.shape);
                assert!(header.contains(&shape), "{section}: {header}");
                place.ok_args(&["read", "a.oc", section, "-o", "s.bin", "--force"]);
                assert_eq!(place.bytes("s.bin"), expected, "{section} of {layout}");
            }
        }
    }
}

#[test]
fn writing_a_section_changes_its_elements_alone() {
    let place = Place::new();
    for layout in ["row", "column", "axes:1,2,0", "tiled:2x4x3"] {
        for case in &CASES {
            for section in [case.numpy, case.fortran] {
                place.ok(&format!(
                    "create a.oc --shape 5x6x4 --type u8 --layout {layout} --fill index --force"
                ));
                place.ok_args(&["write", "a.oc", section, "--fill", "200"]);
                place.ok("read a.oc -o all.npy --force");
                let indices = case.indices.map(<[u64]>::to_vec);
                let inside = numbers(&SHAPE, &indices, &[0, 1, 2]);
                let order = if layout == "column" {
                    [2, 1, 0]
                } else {
                    [0, 1, 2]
                };
                let every = SHAPE.map(|extent| (0..extent).collect::<Vec<_>>());
                let expected: Vec<u8> = numbers(&SHAPE, &every, &order)
                    .into_iter()
                    .map(|n| if inside.contains(&n) { 200 } else { n as u8 })
                    .collect();
                assert_eq!(place.npy("all.npy"), expected, "{section} of {layout}");
            }
        }
    }
}

#[test]
fn values_for_a_section_may_lack_the_axes_given_by_one_index() {
    let place = Place::new();
    place.ok("create a.oc --shape 5x6x4 --type u8 --layout column --fill index");
    place.ok("create b.oc --shape 5x6x4 --type u8 --layout tiled:2x2x2");
    for section in ["2,:,1:3", ":,5,0", "[0,4],3:4,:"] {
        place.ok_args(&["read", "a.oc", section, "-o", "part.npy", "--force"]);
        place.ok_args(&["write", "b.oc", section, "--from", "part.npy"]);
        let printed = |array: &str| place.ok_args(&["read", array, section]);
        assert_eq!(printed("a.oc"), printed("b.oc"), "{section}");
    }
}

#[test]
fn long_index_lists() {
    let place = Place::new();
    place.ok("create a.oc --shape 100000 --type u32 --fill index");
    // As long as one argument may be.
    let list: Vec<String> = (0..20_000u32)
        .map(|i| (i * 2 + i % 2).to_string())
        .collect();
    let section = format!("[{}]", list.join(","));
    assert!(section.len() > 100_000 && section.len() < 128 << 10);
    place.ok_args(&["read", "a.oc", &section, "-o", "s.bin", "--ranks", "3"]);
    let expected: Vec<u8> = (0..20_000u32)
        .flat_map(|i| (i * 2 + i % 2).to_ne_bytes())
        .collect();
    assert_eq!(place.bytes("s.bin"), expected);
}

#[test]
fn sections_outside_the_array_are_refused_and_nothing_is_made() {
    let place = Place::new();
    place.ok("create a.oc --shape 5x6x4 --type i32 --fill index");
    place.ok("read a.oc -o before.bin");
    for (section, parts) in [
        ("5", ["axis 0", "last index there is 4"]),
        ("-6", ["axis 0", "5x6x4"]),
        (":, 0:7", ["axis 1", "last index there is 5"]),
        ("(6, 1, 1)", ["axis 0", "5x6x4"]),
        ("(0, 1, 1)", ["axis 0", "5x6x4"]),
        ("(1:5, 1:6)", ["2 axes", "3 are needed"]),
        ("0, 0, 0, 0", ["4 axes", "3 are needed"]),
        ("::0", ["stride 0", "at least 1"]),
        ("::-1", ["stride -1", "at least 1"]),
        ("[3,1]", ["ascending", "3 is followed by 1"]),
        ("[1,1]", ["ascending", "1 is followed by 1"]),
        ("1/0", ["divides", "zero"]),
    ] {
        for args in [
            &["read", "a.oc", section, "-o", "s.npy"][..],
            &["read", "a.oc", section][..],
            &["write", "a.oc", section, "--fill", "1", "--ranks", "3"][..],
        ] {
            let message = place.fails_args(1, args);
            assert!(
                parts.iter().all(|part| message.contains(part)) && message.contains("a.oc"),
                "{section}: {message}"
            );
        }
    }
    assert_eq!(place.names(), ["a.oc", "before.bin"]);
    place.ok("read a.oc -o after.bin");
    assert_eq!(place.bytes("before.bin"), place.bytes("after.bin"));
}

#[test]
fn planes_are_written_from_chunks_and_tiles() {
    let place = Place::new();
    place.ok("create volume.oc --shape 9x30x40 --type f32");
    place.ok("create plane.zarr --shape 30x40 --type f32 --layout tiled:8x16 --fill index");
    place.ok("create plane.oc --shape 1x30x1x40 --type f32 --layout tiled:1x8x1x16 --fill index");
    place.ok("create thick.oc --shape 1x30x40 --type f32 --layout tiled:2x8x16 --fill index");
    let whole = place.ok("read plane.zarr");
    for source in ["plane.zarr", "plane.oc", "thick.oc"] {
        place.ok_args(&[
            "write",
            "volume.oc",
            "7, :, :",
            "--from",
            source,
            "--ranks",
            "2",
        ]);
        assert_eq!(place.ok_args(&["read", "volume.oc", "7, :, :"]), whole);
        place.ok("write volume.oc --fill 0");
    }
    place.ok("create flat.oc --shape 30x40 --type f32");
    let message = place.fails(1, "write flat.oc --from thick.oc");
    assert!(message.contains("longer tiles"), "{message}");
}

#[test]
fn files_of_ranks_need_sections_of_ranks() {
    let place = Place::new();
    place.ok("create a.npy --shape 6 --type f32 --fill index");
    for line in [
        "read a.npy 0:3 -o part%r.npy --ranks 2",
        "read a.npy -o part%r.txt",
        "write a.npy 0:3 --from part%r.npy --ranks 2",
    ] {
        let message = place.fails(2, line);
        assert!(message.contains("%r"), "{message}");
    }
    assert_eq!(place.names(), ["a.npy"]);
}

#[test]
fn reads_and_writes_close_with_time_and_memory() {
    let place = Place::new();
    place.ok("create a.npy --shape 6 --type f32 --fill index");
    for (line, begin) in [
        (
            "read a.npy 0:3 -o b.npy",
            "b.npy: 3 elements of a.npy, f32; ",
        ),
        ("read a.npy 0 -o c.txt", "c.txt: 1 element of a.npy, f32; "),
        (
            "read a.npy p::N -o d%r.npy --ranks 2",
            "d%r.npy: 6 elements of a.npy, f32; ",
        ),
        ("write a.npy --fill 3", "a.npy: 6 elements written, f32; "),
        (
            "write a.npy p::N --fill 3 --ranks 3",
            "a.npy: 6 elements written, f32; ",
        ),
    ] {
        let told = place.ok(line);
        assert!(told.starts_with(begin), "{told}");
        assert!(told.contains(" GB/s; peak memory "), "{told}");
        assert_eq!(told.lines().count(), 1, "{told}");
    }
}
