//! `outcore view`: pixels of known arrays, and what is read for them.

use std::os::unix::fs::MetadataExt;

use crate::program::Place;

/// A picture: width, height, and the pixels row by row.
struct Picture {
    width: usize,
    pixels: Vec<[u8; 3]>,
}

impl Picture {
    fn read(place: &Place, name: &str) -> Self {
        let bytes = place.bytes(name);
        let mut reader = png::Decoder::new(std::io::Cursor::new(&bytes))
            .read_info()
            .expect("a PNG file");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a small picture")];
        let info = reader.next_frame(&mut pixels).expect("pixels");
        assert_eq!(info.color_type, png::ColorType::Rgb);
        let (pixels, rest) = pixels.as_chunks::<3>();
        assert!(rest.is_empty());
        let (width, height) = (info.width as usize, info.height as usize);
        assert_eq!(pixels.len(), width * height);
        Self {
            width,
            pixels: pixels.to_vec(),
        }
    }

    fn rows(&self) -> Vec<Vec<[u8; 3]>> {
        let rows = self.pixels.chunks(self.width);
        rows.map(<[_]>::to_vec).collect()
    }
}

/// Gray values from black to white.
fn grays(values: &[&[u8]]) -> Vec<Vec<[u8; 3]>> {
    let row = |row: &&[u8]| row.iter().map(|value| [*value; 3]).collect();
    values.iter().map(row).collect()
}

/// A .npy file of f64 values.
fn write_npy(place: &Place, name: &str, shape: &str, values: &[f64]) {
    let header = format!("{{'descr': '<f8', 'fortran_order': False, 'shape': ({shape}), }}");
    let header = format!("{header:<117}\n");
    let mut bytes = b"\x93NUMPY\x01\x00\x76\x00".to_vec();
    bytes.extend(header.as_bytes());
    bytes.extend(values.iter().flat_map(|value| value.to_le_bytes()));
    place.write(name, bytes);
}

const PLAIN: &str = "--map gray --range 0,255 --no-legend";

#[test]
fn known_arrays_give_known_pixels() {
    let place = Place::new();
    place.ok("create a.npy --shape 4x6 --type u8 --fill index");
    let told = place.ok(&format!("view a.npy -o a.png --size 6 {PLAIN}"));
    assert!(
        told.starts_with("a.png: 6x4 pixels; a.npy [0:4, 0:6]; 0 to 255"),
        "{told}"
    );
    let expected = grays(&[
        &[0, 1, 2, 3, 4, 5],
        &[6, 7, 8, 9, 10, 11],
        &[12, 13, 14, 15, 16, 17],
        &[18, 19, 20, 21, 22, 23],
    ]);
    assert_eq!(Picture::read(&place, "a.png").rows(), expected);
    // The same whatever the layout, the type and the ranks.
    place.ok("convert a.npy column.oc --layout column");
    place.ok("convert a.npy tiles.oc --layout tiled:2x4");
    for name in ["column.oc", "tiles.oc"] {
        place.ok(&format!(
            "view {name} -o b.png --size 6 --ranks 3 --force {PLAIN}"
        ));
        assert_eq!(place.bytes("b.png"), place.bytes("a.png"), "{name}");
    }
    // Only a part, with a stride of its own, from below enlarged.
    place.ok_args(
        &[
            &["view", "a.npy", "1:4:2, 5:6", "-o", "c.png", "--size", "4"][..],
            &PLAIN.split(' ').collect::<Vec<_>>(),
        ]
        .concat(),
    );
    let picture = Picture::read(&place, "c.png").rows();
    assert_eq!(picture.len(), 4);
    assert_eq!((picture[0][0], picture[1][0]), ([11; 3], [11; 3]));
    assert_eq!((picture[2][0], picture[3][0]), ([23; 3], [23; 3]));
}

#[test]
fn large_arrays_are_sampled_or_averaged() {
    let place = Place::new();
    place.ok("create a.oc --shape 8x8 --type u8 --fill index");
    place.ok(&format!("view a.oc -o nearest.png --size 4 {PLAIN}"));
    let expected = grays(&[
        &[0, 2, 4, 6],
        &[16, 18, 20, 22],
        &[32, 34, 36, 38],
        &[48, 50, 52, 54],
    ]);
    assert_eq!(Picture::read(&place, "nearest.png").rows(), expected);
    // Means of 0, 1, 8, 9 and so on: 4.5 is drawn as 4.
    for ranks in [1, 3] {
        let ranks = format!("--ranks {ranks} --force");
        let told = place.ok(&format!(
            "view a.oc -o mean.png --size 4 --mean {ranks} {PLAIN}"
        ));
        assert!(told.contains("mean of each 2x2"), "{told}");
        let expected = grays(&[
            &[4, 6, 8, 10],
            &[20, 22, 24, 26],
            &[36, 38, 40, 42],
            &[52, 54, 56, 58],
        ]);
        assert_eq!(Picture::read(&place, "mean.png").rows(), expected);
    }
}

#[test]
fn means_keep_to_the_memory() {
    let place = Place::new();
    place.ok("create a.oc --shape 1000x1000 --type f64 --fill index");
    place.ok("view a.oc -o all.png --mean --size 50");
    place.ok("view a.oc -o little.png --mean --size 50 --memory 512KiB");
    assert_eq!(place.bytes("all.png"), place.bytes("little.png"));
    let told = place.fails(1, "view a.oc -o none.png --size 1000 --memory 1MiB");
    assert!(
        told.contains("--size") && told.contains("needs at least"),
        "{told}"
    );
}

#[test]
fn terabytes_are_seen_at_once() {
    let place = Place::new();
    let file = std::fs::File::create(place.path("huge.bin")).expect("a file");
    // 4 TiB of nothing, but for one byte.
    file.set_len(1 << 42).expect("a sparse file");
    std::os::unix::fs::FileExt::write_at(&file, &[255], 1 << 41).expect("a byte");
    let name = "raw:huge.bin?shape=2097152x2097152&type=u8";
    place.ok(&format!("view {name} -o huge.png --size 32 {PLAIN}"));
    let picture = Picture::read(&place, "huge.png");
    let white: Vec<usize> = (0..picture.pixels.len())
        .filter(|at| picture.pixels[*at] == [255; 3])
        .collect();
    assert_eq!(white, [16 * 32]);
    // Nothing was written, and the file is as empty as before.
    assert!(file.metadata().expect("a file").blocks() < 1024);
}

#[test]
fn a_plane_of_more_axes_is_named() {
    let place = Place::new();
    place.ok("create a.oc --shape 3x2x4 --type u8 --fill index");
    let told = place.ok(&format!("view a.oc -o a.png --size 4 {PLAIN}"));
    assert!(
        told.contains("[0:1, 0:2, 0:4], the first of 3 on axis 0"),
        "{told}"
    );
    assert_eq!(
        Picture::read(&place, "a.png").rows(),
        grays(&[&[0, 1, 2, 3], &[4, 5, 6, 7]])
    );
    let options: Vec<&str> = PLAIN.split(' ').collect();
    let view = |section: &str| {
        let args = [
            "view", "a.oc", section, "-o", "b.png", "--size", "4", "--force",
        ];
        place.ok_args(&[&args[..], &options].concat());
        Picture::read(&place, "b.png").rows()
    };
    assert_eq!(
        view("2, :, :"),
        grays(&[&[16, 17, 18, 19], &[20, 21, 22, 23]])
    );
    // The first and the last axis; of the first three pixels stay three.
    let rows = view(":, 1, :");
    assert_eq!(
        rows,
        grays(&[&[4, 5, 6, 7], &[12, 13, 14, 15], &[20, 21, 22, 23]])
    );
    // In Fortran's notation the same.
    assert_eq!(view("(1:3, 2, 1:4)"), rows);
    // One row, and one element.
    assert_eq!(view("0, 0, :")[0], grays(&[&[0, 1, 2, 3]])[0]);
    assert_eq!(view("0, 0, 3")[0][0], [3; 3]);
}

#[test]
fn what_is_no_number_has_its_own_colour() {
    let place = Place::new();
    let values = [0.0, f64::NAN, 100.0, f64::INFINITY, f64::NEG_INFINITY, 50.0];
    write_npy(&place, "a.npy", "2, 3", &values);
    place.ok("view a.npy -o a.png --size 3 --map gray --range all --no-legend");
    let nan = [0xd6, 0x27, 0x28];
    let expected = vec![
        vec![[0; 3], nan, [255; 3]],
        vec![[255; 3], [0; 3], [127; 3]],
    ];
    assert_eq!(Picture::read(&place, "a.png").rows(), expected);
    // The mean of what is a number; only without any it is none.
    write_npy(
        &place,
        "m.npy",
        "2, 4",
        &[
            f64::NAN,
            10.0,
            f64::NAN,
            f64::NAN,
            20.0,
            30.0,
            f64::NAN,
            f64::NAN,
        ],
    );
    place.ok("view m.npy -o m.png --size 2 --mean --map gray --range 0,255 --no-legend");
    assert_eq!(
        Picture::read(&place, "m.png").rows(),
        vec![vec![[20; 3], nan]]
    );
    write_npy(&place, "n.npy", "2, 2", &[f64::NAN; 4]);
    let told = place.ok("view n.npy -o n.png");
    assert!(told.contains("nothing finite"), "{told}");
    assert!(place.ok("view n.npy --size 4").starts_with("????\n"));
}

#[test]
fn constant_arrays_and_those_of_other_types() {
    let place = Place::new();
    place.ok("create c.oc --shape 5x5 --type f32 --fill 7");
    let told = place.ok("view c.oc -o c.png --size 5 --map gray --no-legend");
    assert!(told.contains("7 everywhere"), "{told}");
    assert!(
        Picture::read(&place, "c.png")
            .pixels
            .iter()
            .all(|pixel| *pixel == [127; 3])
    );
    place.ok("create b.oc --shape 2x2 --type bool");
    place.ok("write b.oc 0,1 --fill 1");
    let told = place.ok("view b.oc -o b.png --size 2 --map gray --no-legend");
    assert!(told.contains("false to true"), "{told}");
    assert_eq!(
        Picture::read(&place, "b.png").rows(),
        grays(&[&[0, 255], &[0, 0]])
    );
    // 3+4i has the modulus 5; elements that are not there are 0.
    let mut bytes = Vec::new();
    for value in [3.0f32, 4.0, 0.0, 0.0] {
        bytes.extend(value.to_ne_bytes());
    }
    place.write("z.bin", bytes);
    place.ok(
        "view raw:z.bin?shape=1x2&type=c64 -o z.png --size 2 --map gray --range 0,10 --no-legend",
    );
    assert_eq!(
        Picture::read(&place, "z.png").rows()[0],
        grays(&[&[127, 0]])[0]
    );
    for kind in [
        "i8", "i16", "i32", "i64", "u16", "u32", "u64", "f16", "f32", "f64", "c128",
    ] {
        place.ok(&format!(
            "create {kind}.oc --shape 3x3 --type {kind} --fill index"
        ));
        place.ok(&format!("view {kind}.oc -o {kind}.png --size 3 {PLAIN}"));
        let expected = grays(&[&[0, 1, 2], &[3, 4, 5], &[6, 7, 8]]);
        assert_eq!(
            Picture::read(&place, &format!("{kind}.png")).rows(),
            expected,
            "{kind}"
        );
    }
}

#[test]
fn the_legend_stands_beside_the_picture() {
    let place = Place::new();
    place.ok("create a.oc --shape 200x200 --type f32 --fill index");
    place.ok("view a.oc -o bare.png --size 200 --no-legend --range all");
    place.ok("view a.oc -o a.png --size 200 --range all");
    let (bare, picture) = (
        Picture::read(&place, "bare.png"),
        Picture::read(&place, "a.png"),
    );
    let corner = 18;
    for (row, pixels) in bare.rows().iter().enumerate() {
        assert_eq!(
            picture.rows()[corner + row][corner..corner + 200],
            pixels[..]
        );
    }
    // The scale: the largest value on top, the least below.
    let x = 2 * corner + 200 + 5;
    assert_eq!(bare.pixels[0], [0x44, 0x01, 0x54]);
    assert_eq!(bare.pixels[200 * 200 - 1], [0xfd, 0xe7, 0x25]);
    assert!(picture.rows()[corner][x][0] > 0xf0 && picture.rows()[corner + 199][x][0] == 0x44);
    // Numbers in ink, to the right of the scale.
    let dark = |pixel: &[u8; 3]| *pixel == [0x22, 0x2a, 0x33];
    assert!(
        picture.rows()[corner..corner + 200]
            .iter()
            .any(|row| row[x + 20..].iter().any(dark))
    );
}

#[test]
fn pipes_get_letters_and_terminals_colours() {
    let place = Place::new();
    place.ok("create a.oc --shape 2x10 --type u8 --fill index");
    let args = ["view", "a.oc", "0, :", "--range", "0,10", "--size", "10"];
    let text = place.ok_args(&args);
    assert!(text.starts_with(" .:-=+*#%@\n"), "{text}");
    assert!(
        text.contains("a.oc 2x10 u8") && !text.contains('\x1b'),
        "{text}"
    );
    let text = place.ok("view a.oc --colors 24bit --size 10 --map gray --range 0,255 --no-legend");
    assert!(
        text.contains("\x1b[38;2;0;0;0m\x1b[48;2;0;0;0m\u{2580}")
            || text.contains("\x1b[48;2;10;10;10m")
    );
    assert!(text.ends_with("\x1b[0m\n"), "{text:?}");
    let text = place.ok("view a.oc --colors 256 --size 10");
    assert!(
        text.contains("\x1b[38;5;") && !text.contains(";2;"),
        "{text:?}"
    );
}

#[test]
fn bad_usage() {
    let place = Place::new();
    place.ok("create a.oc --shape 4x4 --type u8 --fill index");
    place.ok("create empty.oc --shape 4x0 --type u8");
    place.write("old.png", "old");
    for (status, line, part) in [
        (2, "view a.oc -o a.jpg", ".png"),
        (2, "view a.oc --range 2,1", "lesser"),
        (2, "view a.oc --range low,high", "range"),
        (2, "view a.oc --size 0", "'0'"),
        (2, "view a.oc --map rainbow", "rainbow"),
        (2, "view a.oc --force", "--output"),
        (2, "view a.oc p,:", "rank to rank"),
        (2, "view a.oc -o a.png --colors 256", "--colors"),
        (1, "view a.oc -o old.png", "--force"),
        (1, "view a.oc -o none/a.png", "none/a.png"),
        (1, "view a.oc 0:5,:", "axis 0"),
        (1, "view a.oc 2:2,:", "nothing to see"),
        (1, "view empty.oc -o a.png", "axis 1 is empty"),
        (1, "view none.oc -o a.png", "none.oc"),
    ] {
        let told = place.fails(status, line);
        assert!(told.contains(part), "{line}: {told}");
    }
    assert_eq!(place.bytes("old.png"), b"old");
    assert_eq!(place.names(), ["a.oc", "empty.oc", "old.png"]);
    place.ok("view a.oc -o old.png --force");
    assert!(place.bytes("old.png").starts_with(b"\x89PNG"));
}
