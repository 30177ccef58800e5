//! Every element type in every layout and format, there and back.

use crate::oracle::{BIG, TYPES, element, elements, everything, numbers};
use crate::program::Place;

const SHAPE: [u64; 3] = [3, 4, 5];

/// Layouts with the order of their axes, slowest first.
const LAYOUTS: [(&str, [usize; 3]); 5] = [
    ("row", [0, 1, 2]),
    ("column", [2, 1, 0]),
    ("axes:1,2,0", [1, 2, 0]),
    ("tiled:2x3x2", [0, 1, 2]),
    ("tiled:2x2x3:column", [2, 1, 0]),
];

/// The numbers of the elements in the order of a layout without tiles.
fn in_order(order: &[usize]) -> Vec<u64> {
    numbers(&SHAPE, &everything(&SHAPE), order)
}

#[test]
fn types_layouts_and_formats_round_trip() {
    for (at, element_type) in TYPES.into_iter().enumerate() {
        let place = Place::new();
        for (layout, order) in LAYOUTS {
            let big = (at + order[0]) % 2 == 0;
            let byte_order = if big { "big" } else { "little" };
            let case = format!("{element_type} {layout} {byte_order}");
            place.ok(&format!(
                "create a.oc --shape 3x4x5 --type {element_type} --layout {layout} \
                 --byte-order {byte_order} --fill index --force"
            ));
            // The bytes in the file.
            if !layout.contains("tiled") {
                let expected = elements(element_type, &in_order(&order), big);
                assert_eq!(place.bytes("a.oc/data.bin"), expected, "{case}");
            }
            // Plain bytes: the array's axis order, this machine's byte order.
            place.ok("read a.oc -o b.bin --force");
            let plain = elements(element_type, &in_order(&order), BIG);
            assert_eq!(place.bytes("b.bin"), plain, "{case}");
            // NumPy's format has two axis orders.
            place.ok("read a.oc -o b.npy --force");
            let column = order == [2, 1, 0];
            let npy_order = if column { [2, 1, 0] } else { [0, 1, 2] };
            let expected = elements(element_type, &in_order(&npy_order), BIG);
            assert_eq!(place.npy("b.npy"), expected, "{case}");
            let header = place.npy_header("b.npy");
            let fortran = if column { "True" } else { "False" };
            assert!(
                header.contains(&format!("'fortran_order': {fortran}"))
                    && header.contains("'shape': (3, 4, 5)"),
                "{header}"
            );
            // Back from each of them into the array.
            place.ok("read a.oc -o b.oc --force");
            for source in ["b.bin", "b.npy", "b.oc"] {
                place.ok("write a.oc --fill 0");
                place.ok(&format!("write a.oc --from {source}"));
                place.ok("read a.oc -o again.bin --force");
                assert_eq!(place.bytes("again.bin"), plain, "{case} from {source}");
            }
        }
    }
}

#[test]
fn npy_files_are_made_in_both_orders_and_byte_orders() {
    let place = Place::new();
    for element_type in TYPES {
        for (layout, order) in &LAYOUTS[..2] {
            for (byte_order, big) in [("little", false), ("big", true)] {
                place.ok(&format!(
                    "create a.npy --shape 3x4x5 --type {element_type} --layout {layout} \
                     --byte-order {byte_order} --fill index --force"
                ));
                let expected = elements(element_type, &in_order(order), big);
                assert_eq!(place.npy("a.npy"), expected, "{element_type} {layout}");
                let kind = match element_type {
                    "bool" => "|b1".into(),
                    "i8" | "u8" => format!("|{}1", &element_type[..1]),
                    _ => {
                        let sign = if big { '>' } else { '<' };
                        let bytes = element(element_type, 1, big).len();
                        format!("{sign}{}{bytes}", &element_type[..1])
                    }
                };
                let header = place.npy_header("a.npy");
                assert!(header.contains(&format!("'descr': '{kind}'")), "{header}");
            }
        }
    }
}

#[test]
fn raw_files_are_made_and_read_as_described() {
    let place = Place::new();
    for (layout, order) in &LAYOUTS[..3] {
        for (byte_order, big) in [("little", false), ("big", true)] {
            let raw = format!(
                "raw:a.bin?shape=3x4x5&type=i16&layout={layout}&byteorder={byte_order}&offset=7"
            );
            let made = place.ok(&format!("create {raw} --fill index --force"));
            assert!(made.contains("3x4x5 i16"), "{made}");
            let mut expected = vec![0; 7];
            expected.extend(elements("i16", &in_order(order), big));
            assert_eq!(place.bytes("a.bin"), expected, "{raw}");
            place.ok(&format!("read {raw} -o b.bin --force"));
            let plain = elements("i16", &in_order(order), BIG);
            assert_eq!(place.bytes("b.bin"), plain, "{raw}");
        }
    }
    // Little endian unless it says otherwise, on every machine.
    place.ok("create raw:c.bin?shape=3&type=u16 --fill index");
    assert_eq!(place.bytes("c.bin"), [0, 0, 1, 0, 2, 0]);
}

#[test]
fn tiles_stand_one_after_another() {
    let place = Place::new();
    place.ok("create a.oc --shape 3x4 --type u8 --layout tiled:2x3 --fill index");
    #[rustfmt::skip]
    let expected = [
        0, 1, 2, 4, 5, 6,    3, 0, 0, 7, 0, 0,
        8, 9, 10, 0, 0, 0,   11, 0, 0, 0, 0, 0,
    ];
    assert_eq!(place.bytes("a.oc/data.bin"), expected);
}

#[test]
fn stripes_are_dealt_out_over_directories() {
    let place = Place::new();
    place.inside("one");
    place.inside("two");
    let create = "create a.oc --shape 10 --type u8 --fill index --stripe-unit 3 \
                  --stripe-directory one --stripe-directory two";
    place.ok(create);
    let stripe = |directory: &str| {
        let names = place.inside(directory).names();
        assert_eq!(names.len(), 1, "{names:?}");
        place.bytes(&format!("{directory}/{}", names[0]))
    };
    assert_eq!(stripe("one"), [0, 1, 2, 6, 7, 8]);
    assert_eq!(stripe("two"), [3, 4, 5, 9]);
    assert_eq!(place.ok("read a.oc ::3"), "0 3 6 9\n");
    place.ok("write a.oc 2:5 --fill 77 --ranks 3");
    assert_eq!(place.ok("read a.oc"), "0 1 77 77 77 5 6 7 8 9\n");
    // What is replaced leaves no stripes behind.
    place.ok(&format!("{create} --force"));
    assert_eq!(stripe("one"), [0, 1, 2, 6, 7, 8]);
    assert_eq!(place.ok("read a.oc"), "0 1 2 3 4 5 6 7 8 9\n");
}

#[test]
fn arrays_without_axes_and_without_elements() {
    let place = Place::new();
    for name in ["a.oc", "a.npy", "raw:a.bin?shape=scalar&type=f64"] {
        let described = if name.starts_with("raw:") {
            ""
        } else {
            "--shape scalar --type f64"
        };
        place.ok(&format!("create {name} {described} --fill 2.5 --ranks 3"));
        assert_eq!(place.ok(&format!("read {name}")), "2.5\n");
        assert_eq!(place.ok(&format!("read {name} ()")), "2.5\n");
        place.ok(&format!("read {name} -o s.npy --ranks 5 --force"));
        assert_eq!(place.npy("s.npy"), 2.5f64.to_ne_bytes());
        assert!(place.npy_header("s.npy").contains("'shape': ()"));
        place.ok(&format!("write {name} --from s.npy --ranks 2"));
    }
    for shape in ["0", "0x5", "3x0x2", "0x1099511627776x1099511627776"] {
        for name in ["e.oc", "e.npy"] {
            place.ok(&format!(
                "create {name} --shape {shape} --type f64 --fill index --ranks 3 --force"
            ));
            assert_eq!(place.ok(&format!("read {name}")), "", "{shape}");
            place.ok(&format!("read {name} -o f.npy --ranks 5 --force"));
            assert_eq!(place.npy("f.npy"), [0u8; 0], "{shape}");
            place.ok(&format!("read {name} -o f.txt --force"));
            assert_eq!(place.bytes("f.txt"), [0u8; 0], "{shape}");
            place.ok(&format!("write {name} --from f.npy"));
        }
    }
    assert!(
        place
            .npy_header("f.npy")
            .contains("(0, 1099511627776, 1099511627776)")
    );
}

#[test]
fn a_tebibyte_is_made_at_once_and_takes_no_space() {
    let place = Place::new();
    place.ok("create a.oc --shape 524288x524288 --type f32");
    place.ok("write a.oc -1,::262144 --fill 7.25");
    assert_eq!(
        place.ok("read a.oc -2:,[0,1,262144]"),
        "0 0 0\n7.25 0 7.25\n"
    );
    place.ok("read a.oc ::131072,::131072 -o s.npy --ranks 3");
    assert_eq!(place.npy("s.npy"), [0; 64]);
    use std::os::unix::fs::MetadataExt;
    let data = std::fs::metadata(place.path("a.oc/data.bin")).expect("the data");
    assert_eq!(data.len(), 1 << 40);
    assert!(data.blocks() < 2048, "{} blocks", data.blocks());
}

#[test]
fn fills() {
    let place = Place::new();
    for (element_type, fill, printed) in [
        ("i8", "-128", "-128 -128"),
        (
            "u64",
            "18446744073709551615",
            "18446744073709551615 18446744073709551615",
        ),
        ("f64", "-0.1", "-0.1 -0.1"),
        ("f32", "NaN", "NaN NaN"),
        ("f16", "1.5", "1.5 1.5"),
        ("bool", "true", "1 1"),
        ("c64", "1-2i", "1-2i 1-2i"),
        ("c128", "3", "3+0i 3+0i"),
        ("i32", "index", "0 1"),
        ("i32", "zero", "0 0"),
    ] {
        place.ok(&format!(
            "create a.oc --shape 2 --type {element_type} --fill {fill} --force"
        ));
        assert_eq!(place.ok("read a.oc"), format!("{printed}\n"));
        place.ok(&format!(
            "create b.oc --shape 2 --type {element_type} --force"
        ));
        place.ok(&format!("write b.oc --fill {fill}"));
        assert_eq!(place.ok("read b.oc"), format!("{printed}\n"));
    }
    // Random values depend on the seed and the index alone.
    let random = |line: &str| {
        place.ok(&format!(
            "create r.oc --shape 100 --type f64 --force {line}"
        ));
        place.ok("read r.oc -o r.bin --force");
        place.bytes("r.bin")
    };
    let seven = random("--fill random --seed 7");
    assert_eq!(seven, random("--fill random --seed 7 --layout tiled:9"));
    assert_ne!(seven, random("--fill random --seed 8"));
    let (values, _) = seven.as_chunks::<8>();
    let values: Vec<f64> = values.iter().map(|v| f64::from_ne_bytes(*v)).collect();
    assert!(values.iter().all(|value| (0.0..1.0).contains(value)));
    let mean = values.iter().sum::<f64>() / 100.0;
    assert!((0.3..0.7).contains(&mean), "{mean}");
    place.ok("create w.oc --shape 100 --type f64");
    place.ok("write w.oc ::2 --fill random --seed 7");
    place.ok("write w.oc 1::2 --fill random --seed 7");
    place.ok("read w.oc -o w.bin");
    assert_eq!(place.bytes("w.bin"), seven);
}

#[test]
fn the_name_of_an_output_says_its_format() {
    let place = Place::new();
    place.ok("create a.oc --shape 12x10 --type f32 --fill index");
    place.ok("create i.npy --shape 5 --type u32 --fill index");
    for (name, format) in [
        ("o.npy", "npy"),
        ("o.oc", "native"),
        ("o.zarr", "zarr"),
        ("g.zarr/t", "zarr"),
        ("o.h5", "hdf5"),
        ("t.h5:/group/t", "hdf5"),
        ("o.hdf5", "hdf5"),
        ("o.nc", "netcdf"),
        ("t.nc:t", "netcdf"),
    ] {
        let made = |line: &str| {
            place.ok(line);
            let facts = place.ok(&format!("info {name} --json"));
            let facts: serde_json::Value = serde_json::from_str(&facts).expect("JSON");
            assert_eq!(facts["format"], format, "{line}");
        };
        made(&format!("read a.oc ::2,3: -o {name} --ranks 2"));
        place.ok(&format!("diff {name} a.oc --section-b ::2,3:"));
        // What was read can be written back.
        place.ok(&format!("write a.oc ::2,3: --from {name}"));
        made(&format!("gather a.oc --indices i.npy -o {name} --force"));
        place.ok(&format!("diff {name} a.oc --section-b 0,:5"));
        made(&format!("stats a.oc --axes 0 --of max -o {name} --force"));
    }
    // An axis of one index, in chunks and without.
    place.ok("read a.oc 7,: -o row.zarr");
    place.ok("read a.oc 7,: -o row.h5");
    assert_eq!(place.ok("read row.zarr"), place.ok("read row.h5"));
    let message = place.fails(1, "read a.oc -o o.tif");
    assert!(message.contains("only read"), "{message}");
    assert!(!place.path("o.tif").exists());
}

/// Groups on the way to a Zarr array are there when it is, not before.
#[test]
fn a_zarr_array_that_is_not_made_leaves_no_group() {
    let place = Place::new();
    let line = "create new.zarr/a/t --shape 8 --type f32 --chunks 3 --shard 4";
    let message = place.fails(1, line);
    assert!(message.contains("multiples of the chunk's"), "{message}");
    assert!(place.names().is_empty());
    place.write("short.npy", "this is no array");
    place.fails(1, "convert short.npy new.zarr/a/t");
    assert_eq!(place.names(), ["short.npy"]);
    place.ok("create new.zarr/a/t --shape 8 --type f32 --chunks 4");
    let before = place.inside("new.zarr").names();
    place.fails(
        1,
        "create new.zarr/b/t --shape 8 --type f32 --chunks 3 --shard 4",
    );
    assert_eq!(place.inside("new.zarr").names(), before);
    assert!(place.ok("ls new.zarr").contains("t"));
}
