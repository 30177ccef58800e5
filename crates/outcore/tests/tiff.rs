//! TIFF files that are built here, byte by byte, against what they hold: strips
//! and tiles, samples together and apart, all compressions and predictors, both
//! byte orders, both widths of offsets; and damaged ones.

use std::path::Path;

use outcore::{Array, Section};
use proptest::prelude::*;

/// How a file is made.
#[derive(Debug, Clone)]
struct Case {
    big: bool,
    wide: bool,
    pages: u64,
    height: u64,
    width: u64,
    samples: u64,
    planar: bool,
    /// Bytes of a sample, and its format: 1 unsigned, 2 signed, 3 float.
    sample: (usize, u64),
    compression: u64,
    predictor: u64,
    rows: u64,
    /// Height and width of tiles.
    tile: Option<(u64, u64)>,
    /// Bytes between pieces.
    gap: usize,
}

struct Built {
    bytes: Vec<u8>,
    /// In the order of the array, this machine's byte order.
    content: Vec<u8>,
    shape: Vec<u64>,
}

impl Case {
    fn shape(&self) -> Vec<u64> {
        let mut shape = Vec::new();
        if self.pages > 1 {
            shape.push(self.pages);
        }
        if self.planar() {
            shape.push(self.samples);
        }
        shape.extend([self.height, self.width]);
        if self.samples > 1 && !self.planar {
            shape.push(self.samples);
        }
        shape
    }

    fn planar(&self) -> bool {
        self.planar && self.samples > 1
    }

    fn number(&self, number: u64, width: usize) -> Vec<u8> {
        match self.big {
            true => number.to_be_bytes()[8 - width..].to_vec(),
            false => number.to_le_bytes()[..width].to_vec(),
        }
    }

    /// A sample in the order of the file from this machine's.
    fn ordered(&self, sample: &[u8]) -> Vec<u8> {
        let mut sample = sample.to_vec();
        if self.big == cfg!(target_endian = "little") {
            sample.reverse();
        }
        sample
    }

    fn build(&self) -> Built {
        let size = self.sample.0;
        let shape = self.shape();
        let count = shape.iter().product::<u64>() as usize * size;
        let content: Vec<u8> = (0..count)
            .map(|at| (at * 5 + at / 40 + at % 3) as u8)
            .collect();
        let (planes, together) = match self.planar() {
            true => (self.samples, 1),
            false => (1, self.samples),
        };
        // One sample by its place in this machine's order.
        let at = |page: u64, plane: u64, y: u64, x: u64, s: u64| {
            let number =
                (((page * planes + plane) * self.height + y) * self.width + x) * together + s;
            &content[number as usize * size..][..size]
        };
        let mut bytes = match (self.big, self.wide) {
            (false, false) => b"II\x2a\0\0\0\0\0".to_vec(),
            (true, false) => b"MM\0\x2a\0\0\0\0".to_vec(),
            (false, true) => b"II\x2b\0\x08\0\0\0\0\0\0\0\0\0\0\0".to_vec(),
            (true, true) => b"MM\0\x2b\0\x08\0\0\0\0\0\0\0\0\0\0".to_vec(),
        };
        let mut link = if self.wide { 8 } else { 4 };
        let offset_width = if self.wide { 8 } else { 4 };
        for page in 0..self.pages {
            // 1. The pieces.
            let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
            let (high, across) = self.tile.unwrap_or((self.rows, self.width));
            for plane in 0..planes {
                for top in (0..self.height).step_by(high as usize) {
                    for left in (0..self.width).step_by(across as usize) {
                        let bottom = match self.tile {
                            Some(_) => top + high,
                            None => (top + high).min(self.height),
                        };
                        let mut piece = Vec::new();
                        for y in top..bottom {
                            let mut row: Vec<Vec<u8>> = Vec::new();
                            for x in left..left + across {
                                for s in 0..together {
                                    let inside = y < self.height && x < self.width;
                                    row.push(match inside {
                                        true => self.ordered(at(page, plane, y, x, s)),
                                        false => vec![0; size],
                                    });
                                }
                            }
                            piece.extend(self.predicted(row, together as usize));
                        }
                        let stored = compressed(self.compression, &piece);
                        bytes.extend(vec![0xee; self.gap]);
                        offsets.push(bytes.len() as u64);
                        lengths.push(stored.len() as u64);
                        bytes.extend(stored);
                    }
                }
            }
            // 2. The directory.
            let (offsets_tag, lengths_tag) = match self.tile {
                Some(_) => (324, 325),
                None => (273, 279),
            };
            let bits = vec![8 * size as u64; self.samples as usize];
            let mut tags = vec![
                (256u64, vec![self.width]),
                (257, vec![self.height]),
                (258, bits),
                (259, vec![self.compression]),
                (262, vec![1]),
                (offsets_tag, offsets),
                (277, vec![self.samples]),
                (lengths_tag, lengths),
                (284, vec![if self.planar { 2 } else { 1 }]),
                (317, vec![self.predictor]),
                (339, vec![self.sample.1; self.samples as usize]),
            ];
            match self.tile {
                Some((high, across)) => {
                    tags.extend([(322, vec![across]), (323, vec![high])]);
                }
                None => tags.push((278, vec![self.rows])),
            }
            tags.sort();
            let mut directory = self.number(tags.len() as u64, if self.wide { 8 } else { 2 });
            for (tag, values) in tags {
                let kind = if self.wide { 16 } else { 4 };
                directory.extend(self.number(tag, 2));
                directory.extend(self.number(kind, 2));
                directory.extend(self.number(values.len() as u64, offset_width));
                let list: Vec<u8> = values
                    .iter()
                    .flat_map(|value| self.number(*value, offset_width))
                    .collect();
                if values.len() == 1 {
                    directory.extend(list);
                } else {
                    directory.extend(self.number(bytes.len() as u64, offset_width));
                    bytes.extend(list);
                }
            }
            let here = self.number(bytes.len() as u64, offset_width);
            bytes[link..link + offset_width].copy_from_slice(&here);
            bytes.extend(directory);
            link = bytes.len();
            bytes.extend(vec![0; offset_width]);
        }
        Built {
            bytes,
            content,
            shape,
        }
    }

    /// A row of samples as differences.
    fn predicted(&self, row: Vec<Vec<u8>>, together: usize) -> Vec<u8> {
        let size = self.sample.0;
        match self.predictor {
            2 => {
                let value = |sample: &[u8]| {
                    let fold = |all: u64, byte: &u8| all << 8 | u64::from(*byte);
                    match self.big {
                        true => sample.iter().fold(0, fold),
                        false => sample.iter().rev().fold(0, fold),
                    }
                };
                let differences = (0..row.len()).map(|at| match at.checked_sub(together) {
                    None => row[at].clone(),
                    Some(before) => {
                        let difference = value(&row[at]).wrapping_sub(value(&row[before]));
                        self.number(difference, size)
                    }
                });
                differences.collect::<Vec<_>>().concat()
            }
            3 => {
                let mut planes = Vec::new();
                for plane in 0..size {
                    let plane = if self.big { plane } else { size - 1 - plane };
                    planes.extend(row.iter().map(|sample| sample[plane]));
                }
                let byte = |at: usize| match at.checked_sub(together) {
                    None => planes[at],
                    Some(before) => planes[at].wrapping_sub(planes[before]),
                };
                (0..planes.len()).map(byte).collect()
            }
            _ => row.concat(),
        }
    }
}

fn compressed(compression: u64, data: &[u8]) -> Vec<u8> {
    match compression {
        // Bytes as they are, and a new table before codes get longer.
        5 => {
            let (mut bytes, mut held, mut count) = (Vec::new(), 0u64, 0);
            let codes = data.chunks(200).flat_map(|part| {
                [256]
                    .into_iter()
                    .chain(part.iter().map(|byte| u64::from(*byte)))
            });
            for code in codes.chain([257, 0]) {
                held = held << 9 | code;
                count += 9;
                while count >= 8 {
                    count -= 8;
                    bytes.push((held >> count) as u8);
                }
            }
            bytes
        }
        8 => {
            let mut compressor = libdeflater::Compressor::new(Default::default());
            let mut out = vec![0; compressor.zlib_compress_bound(data.len())];
            let len = compressor.zlib_compress(data, &mut out).unwrap();
            out.truncate(len);
            out
        }
        32773 => {
            let parts = data.chunks(128);
            parts
                .flat_map(|part| [&[part.len() as u8 - 1][..], part].concat())
                .collect()
        }
        50000 => zstd::bulk::compress(data, 1).unwrap(),
        _ => data.to_vec(),
    }
}

fn cases() -> impl Strategy<Value = Case> {
    let samples = prop::sample::select(vec![
        (1usize, 1u64),
        (1, 2),
        (2, 1),
        (2, 2),
        (2, 3),
        (4, 1),
        (4, 3),
        (8, 3),
        (8, 1),
    ]);
    let compression = prop::sample::select(vec![1u64, 1, 1, 5, 8, 32773, 50000]);
    (
        (any::<bool>(), any::<bool>(), any::<bool>(), 1u64..4),
        (
            1u64..20,
            1u64..20,
            prop::sample::select(vec![1u64, 1, 2, 3]),
        ),
        (samples, compression, 1u64..4),
        (
            1u64..25,
            prop::option::of((1u64..9, 1u64..9)),
            prop::sample::select(vec![0usize, 0, 3]),
        ),
    )
        .prop_map(
            |(
                (big, wide, planar, pages),
                (height, width, samples),
                (sample, compression, predictor),
                (rows, tile, gap),
            )| Case {
                big,
                wide,
                pages,
                height,
                width,
                samples,
                planar,
                sample,
                compression,
                predictor: match (compression, predictor) {
                    (1, _) => 1,
                    (_, 3) if sample.1 != 3 => 2,
                    (_, predictor) => predictor,
                },
                rows,
                tile,
                gap,
            },
        )
}

/// The row-major numbers of a section's elements.
fn numbers(shape: &[u64], section: &Section) -> Vec<usize> {
    let mut all = vec![0u64];
    for (axis, extent) in section.axes().iter().zip(shape) {
        let indices: Vec<u64> = (0..axis.count()).map(|at| axis.index(at)).collect();
        all = all
            .iter()
            .flat_map(|before| indices.iter().map(move |at| before * extent + at))
            .collect();
    }
    all.into_iter().map(|number| number as usize).collect()
}

fn put(folder: &Path, bytes: &[u8]) -> String {
    let path = folder.join("a.tif");
    std::fs::write(&path, bytes).unwrap();
    path.to_str().unwrap().to_owned()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn pages_are_read(case in cases(), steps in prop::collection::vec((0u64..9, 1u64..20, 1u64..4), 4)) {
        let built = case.build();
        let folder = tempfile::tempdir().unwrap();
        let array = Array::open(&put(folder.path(), &built.bytes)).unwrap();
        prop_assert_eq!(array.shape(), &built.shape[..]);
        let size = case.sample.0;
        let axes: Vec<String> = built.shape.iter().zip(&steps).map(|(extent, (from, to, step))| {
            let (from, to) = (from.min(extent), to.min(extent));
            format!("{}:{}:{step}", from.min(to), to)
        }).collect();
        for section in [array.whole(), array.section(&axes.join(", ")).unwrap()] {
            let expected: Vec<u8> = numbers(&built.shape, &section).iter()
                .flat_map(|at| built.content[at * size..][..size].to_vec())
                .collect();
            let mut found = vec![0; expected.len()];
            array.read_bytes(&section, &mut found).unwrap();
            prop_assert_eq!(found, expected);
        }
        prop_assert!(Array::open_writable(array.name()).is_err());
    }

    #[test]
    fn damaged_files_are_refused_or_understood(
        case in cases(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 0..4),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let mut bytes = case.build().bytes;
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        if let Some(cut) = cut {
            bytes.truncate(cut.index(bytes.len() + 1));
        }
        touch(&bytes);
    }

    #[test]
    fn any_bytes_are_refused_or_understood(
        start in prop::sample::select(vec![&b"II\x2a\0\x08\0\0\0"[..], b"MM\0\x2a\0\0\0\x08", b"II\x2b\0\x08\0\0\0\x10\0\0\0\0\0\0\0"]),
        bytes in prop::collection::vec(prop::sample::select(vec![0u8, 0, 0, 1, 1, 2, 3, 4, 8, 16, 255]), 0..300),
    ) {
        touch(&[start, &bytes].concat());
    }
}

/// Opens whatever there is, and reads the corners of it.
fn touch(bytes: &[u8]) {
    let folder = tempfile::tempdir().unwrap();
    let Ok(array) = Array::open(&put(folder.path(), bytes)) else {
        return;
    };
    let last: Vec<String> = array
        .shape()
        .iter()
        .map(|extent| (extent - 1).to_string())
        .collect();
    for corner in [vec!["0".to_string(); last.len()], last] {
        let section = array.section(&corner.join(", ")).unwrap();
        let mut element = vec![0; array.element_type().size() as usize];
        let _ = array.read_bytes(&section, &mut element);
    }
}

fn plain() -> Case {
    Case {
        big: false,
        wide: false,
        pages: 3,
        height: 4,
        width: 5,
        samples: 1,
        planar: false,
        sample: (2, 1),
        compression: 1,
        predictor: 1,
        rows: 2,
        tile: None,
        gap: 0,
    }
}

#[test]
fn what_is_not_supported_is_named() {
    let folder = tempfile::tempdir().unwrap();
    // The value of a tag of the first page; tags have one value of 4 bytes.
    let with = |tag: u64, value: u64| {
        let case = plain();
        let mut bytes = case.build().bytes;
        let entry = [case.number(tag, 2), case.number(4, 2), case.number(1, 4)].concat();
        let at = bytes.windows(8).position(|window| window == entry).unwrap();
        bytes[at + 8..at + 12].copy_from_slice(&case.number(value, 4));
        bytes
    };
    for (tag, value, words) in [
        (259, 7, "compression is JPEG (number 7)"),
        (259, 34925, "LZMA"),
        (258, 12, "12 bits"),
        (258, 1, "1 bits"),
        (262, 6, "YCbCr"),
        (256, 0, "not possible"),
        (256, 4, "page 1 is 4x5"),
        (339, 5, "format 5"),
    ] {
        let name = put(folder.path(), &with(tag, value));
        let problem = Array::open(&name).unwrap_err().to_string();
        assert!(problem.contains(words), "{problem}");
        assert!(problem.contains("a.tif"), "{problem}");
    }
    // A page that follows itself.
    let mut bytes = plain().build().bytes;
    let first: [u8; 4] = bytes[4..8].try_into().unwrap();
    let end = bytes.len() - 4;
    bytes[end..].copy_from_slice(&first);
    let problem = Array::open(&put(folder.path(), &bytes))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("no end"), "{problem}");
    let name = put(folder.path(), &plain().build().bytes);
    let problem = Array::open_writable(&name).unwrap_err().to_string();
    assert!(problem.contains("only read"), "{problem}");
}

/// The bytes with a change of each entry that has one value: `change` gets the tag
/// and the number of its page, and gives the new tag and value.
fn changed(case: &Case, change: impl Fn(u64, u64) -> Option<(u64, u64)>) -> Vec<u8> {
    let mut bytes = case.build().bytes;
    for tag in 256..340 {
        let entry = [case.number(tag, 2), case.number(4, 2), case.number(1, 4)].concat();
        let places = bytes.windows(8).enumerate();
        let places: Vec<usize> = places
            .filter(|(_, window)| *window == entry)
            .map(|(at, _)| at)
            .collect();
        for (page, at) in places.into_iter().enumerate() {
            if let Some((tag, value)) = change(tag, page as u64) {
                bytes[at..at + 2].copy_from_slice(&case.number(tag, 2));
                bytes[at + 8..at + 12].copy_from_slice(&case.number(value, 4));
            }
        }
    }
    bytes
}

#[test]
fn volumes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    for depth in [32997, 32998] {
        // Whether samples stand together does not matter for one.
        let bytes = changed(&plain(), |tag, _| (tag == 284).then_some((depth, 8)));
        let problem = Array::open(&put(folder.path(), &bytes)).unwrap_err();
        assert!(
            problem.to_string().contains("are volumes (ImageDepth)"),
            "{problem}"
        );
        let bytes = changed(&plain(), |tag, _| (tag == 284).then_some((depth, 1)));
        Array::open(&put(folder.path(), &bytes)).unwrap();
    }
}

#[test]
fn pages_that_differ_are_told_apart() {
    let folder = tempfile::tempdir().unwrap();
    let mut strips = plain();
    (strips.compression, strips.rows) = (8, 2);
    let mut tiles = strips.clone();
    tiles.tile = Some((2, 5));
    let mut planes = strips.clone();
    (planes.samples, planes.planar, planes.rows) = (2, true, 4);
    for (case, tags, words) in [
        (
            &strips,
            &[(317, 2)][..],
            "is 4x5 of 1 u16, deflate, with predictor 2, but the pages before are 4x5 of 1 u16, \
             deflate, with no predictor;",
        ),
        (&strips, &[(278, 3)], "in strips of 3 rows, but"),
        (&tiles, &[(323, 3)], "in tiles of 3x5, but"),
        (
            &planes,
            &[(284, 1), (278, 2)],
            "with samples together, in strips of 2 rows, but",
        ),
    ] {
        let bytes = changed(case, |tag, page| {
            let found = tags.iter().find(|(other, _)| *other == tag);
            found.copied().filter(|_| page == 1)
        });
        let problem = Array::open(&put(folder.path(), &bytes)).unwrap_err();
        assert!(problem.to_string().contains(words), "{problem}");
    }
}

/// A page of bytes in strips of so many rows, or in square tiles; each is in the
/// file, or has a length of 0, or nothing at all.
#[derive(Clone)]
enum Piece {
    Stored(Vec<u8>),
    WithoutLength(Vec<u8>),
    Nowhere,
}

fn page(
    [height, width]: [u64; 2],
    rows: Result<u64, u64>,
    compression: u64,
    pieces: &[Piece],
) -> Vec<u8> {
    let mut bytes = b"II\x2a\0\0\0\0\0".to_vec();
    let (mut offsets, mut lengths) = (Vec::new(), Vec::new());
    for piece in pieces {
        let (data, offset, len) = match piece {
            Piece::Stored(data) => (&data[..], bytes.len(), data.len()),
            Piece::WithoutLength(data) => (&data[..], bytes.len(), 0),
            Piece::Nowhere => (&[][..], 0, 0),
        };
        bytes.extend(data);
        offsets.push(offset as u64);
        lengths.push(len as u64);
    }
    let mut tags = vec![
        (256, vec![width]),
        (257, vec![height]),
        (258, vec![8]),
        (259, vec![compression]),
    ];
    match rows {
        Ok(rows) => tags.extend([(273, offsets), (278, vec![rows]), (279, lengths)]),
        Err(side) => tags.extend([
            (322, vec![side]),
            (323, vec![side]),
            (324, offsets),
            (325, lengths),
        ]),
    }
    let case = plain();
    let mut directory = case.number(tags.len() as u64, 2);
    for (tag, values) in tags {
        let list: Vec<u8> = values.iter().flat_map(|n| case.number(*n, 4)).collect();
        directory.extend(
            [
                case.number(tag, 2),
                case.number(4, 2),
                case.number(values.len() as u64, 4),
            ]
            .concat(),
        );
        match values.len() {
            1 => directory.extend(list),
            _ => {
                directory.extend(case.number(bytes.len() as u64, 4));
                bytes.extend(list);
            }
        }
    }
    let here = case.number(bytes.len() as u64, 4);
    bytes[4..8].copy_from_slice(&here);
    bytes.extend(directory);
    bytes.extend([0; 4]);
    bytes
}

#[test]
fn short_last_strips_and_missing_tiles_are_believed() {
    let folder = tempfile::tempdir().unwrap();
    let read = |bytes: Vec<u8>| {
        let array = Array::open(&put(folder.path(), &bytes)).unwrap();
        array.read::<u8>(&array.whole()).unwrap()
    };
    // Zeros but the last row, which has its own strip.
    for compression in [8, 50000] {
        let stored = |data: &[u8]| Piece::Stored(compressed(compression, data));
        let pieces = [stored(&vec![0; 20_000_000]), stored(&[7; 2000])];
        let found = read(page([10_001, 2000], Ok(10_000), compression, &pieces));
        assert!(found[..20_000_000].iter().all(|byte| *byte == 0));
        assert!(found[20_000_000..] == [7; 2000]);
    }
    let tile = Piece::Stored(compressed(50000, &vec![7; 1 << 22]));
    let pieces = [Piece::Nowhere, tile];
    let found = read(page([2048, 4096], Err(2048), 50000, &pieces));
    assert!(
        found
            .chunks(4096)
            .all(|row| row[..2048] == [0; 2048] && row[2048..] == [7; 2048])
    );
    let pieces = [Piece::Nowhere];
    let bytes = page([10_000, 10_000], Err(10_000), 50000, &pieces);
    let problem = Array::open(&put(folder.path(), &bytes)).unwrap_err();
    assert!(problem.to_string().contains("not believed"), "{problem}");
}

#[test]
fn what_was_never_written_is_zeros() {
    let folder = tempfile::tempdir().unwrap();
    let open = |bytes: &[u8]| Array::open(&put(folder.path(), bytes));
    let whole = [[1; 16], [2; 16], [3; 16]];
    for compression in [1, 8] {
        for rows in [Ok(4), Err(4)] {
            for lacking in 0..3 {
                for nowhere in [true, false] {
                    let mut pieces =
                        whole.map(|data| Piece::Stored(compressed(compression, &data)));
                    let mut expected = whole.concat();
                    expected[16 * lacking..][..16].fill(0);
                    pieces[lacking] = match nowhere {
                        true => Piece::Nowhere,
                        false => Piece::WithoutLength(vec![9; 16]),
                    };
                    let array = open(&page([12, 4], rows, compression, &pieces)).unwrap();
                    let found: Vec<u8> = array.read(&array.whole()).unwrap();
                    assert_eq!(
                        found, expected,
                        "{compression} {rows:?} {lacking} {nowhere}"
                    );
                }
            }
        }
    }
    let array = open(&page([8, 4], Ok(4), 1, &[Piece::Nowhere, Piece::Nowhere])).unwrap();
    assert_eq!(array.read::<u8>(&array.whole()).unwrap(), [0; 32]);
    // Nobody knows whether these are zeros.
    let unsaid = Piece::WithoutLength(vec![9; 16]);
    let problem = open(&page([8, 4], Ok(4), 1, &[unsaid.clone(), unsaid])).unwrap_err();
    assert!(
        problem.to_string().contains("all of them have 0 bytes"),
        "{problem}"
    );
    // Whole pages, the last among them.
    let mut case = plain();
    case.rows = 4;
    let built = case.build();
    for lacking in 0..3 {
        let bytes = changed(&case, |tag, page| {
            let gone = matches!(tag, 273 | 279) && page == lacking;
            gone.then_some((tag, 0))
        });
        let array = open(&bytes).unwrap();
        let mut expected = built.content.clone();
        expected[40 * lacking as usize..][..40].fill(0);
        let mut found = vec![0; expected.len()];
        array.read_bytes(&array.whole(), &mut found).unwrap();
        assert_eq!(found, expected, "{lacking}");
    }
}

#[test]
fn what_is_said_of_samples_is_as_long_as_they_are_many() {
    let folder = tempfile::tempdir().unwrap();
    let case = plain();
    let mut bytes = case.build().bytes;
    let entry = [case.number(258, 2), case.number(4, 2), case.number(1, 4)].concat();
    let at = bytes.windows(8).position(|window| window == entry).unwrap();
    bytes[at + 4..at + 8].copy_from_slice(&case.number(65535, 4));
    let problem = Array::open(&put(folder.path(), &bytes)).unwrap_err();
    assert!(problem.to_string().contains("at most 16"), "{problem}");
}

#[test]
fn small_files_do_not_ask_for_large_memory() {
    let folder = tempfile::tempdir().unwrap();
    let mut case = plain();
    case.compression = 8;
    case.tile = Some((8, 8));
    let mut bytes = case.build().bytes;
    // Tiles of 8192x8192 in a file of some hundred bytes.
    for tag in [322, 323] {
        let entry = [case.number(tag, 2), case.number(4, 2), case.number(1, 4)].concat();
        let places: Vec<usize> = (0..bytes.len() - 8)
            .filter(|at| bytes[*at..*at + 8] == entry[..])
            .collect();
        for at in places {
            bytes[at + 8..at + 12].copy_from_slice(&case.number(8192, 4));
        }
    }
    let problem = Array::open(&put(folder.path(), &bytes))
        .unwrap_err()
        .to_string();
    assert!(problem.contains("not believed"), "{problem}");
}

#[test]
fn pages_beyond_4_gib_are_reached() {
    use std::os::unix::fs::FileExt;
    let folder = tempfile::tempdir().unwrap();
    let mut case = plain();
    (case.wide, case.pages, case.rows) = (true, 1, 4);
    let bytes = case.build().bytes;
    let name = put(folder.path(), &bytes);
    let file = std::fs::OpenOptions::new().write(true).open(&name).unwrap();
    // The only strip moves behind 5 GiB.
    let place = 5u64 << 30;
    let entry = [case.number(273, 2), case.number(16, 2), case.number(1, 8)].concat();
    let at = bytes
        .windows(12)
        .position(|window| window == entry)
        .unwrap();
    file.write_all_at(&case.number(place, 8), at as u64 + 12)
        .unwrap();
    let values: Vec<u8> = (0..20u16).flat_map(|n| n.to_le_bytes()).collect();
    file.write_all_at(&values, place).unwrap();
    let array = Array::open(&name).unwrap();
    assert_eq!(array.data_offset(), place);
    let whole: Vec<u16> = array.read(&array.whole()).unwrap();
    assert_eq!(whole, (0..20).collect::<Vec<u16>>());
}

/// Small files of libtiff (by Pillow) and of imagecodecs, which hold the same
/// numbers.
#[test]
fn files_of_libtiff_are_read() {
    let number = |at: u64| ((at * at * 2654435761) >> 20) % 23 + at / 700;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tiff_files");
    let open = |name: &str| {
        let array = Array::open(folder.join(name).to_str().unwrap()).unwrap();
        assert_eq!(array.shape(), [96, 90], "{name}");
        array
    };
    let all = 0..96 * 90;
    for (name, divisor) in [
        ("lzw.tif", 1),
        ("lzw_predictor.tif", 1),
        ("packbits.tif", 8),
    ] {
        let array = open(name);
        let expected: Vec<u8> = all.clone().map(|at| (number(at) / divisor) as u8).collect();
        assert!(
            array.read::<u8>(&array.whole()).unwrap() == expected,
            "{name}"
        );
    }
    let array = open("deflate_predictor.tif");
    let expected: Vec<u16> = all.clone().map(|at| number(at) as u16).collect();
    assert!(array.read::<u16>(&array.whole()).unwrap() == expected);
    let array = open("float_predictor.tif");
    let expected: Vec<f32> = all.map(|at| number(at) as f32 / 4.0).collect();
    assert!(array.read::<f32>(&array.whole()).unwrap() == expected);
}
