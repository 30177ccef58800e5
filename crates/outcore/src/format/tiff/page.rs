//! [`Page`]: what the tags of one page say: its form, and where its pieces are.
//!
//! Pieces are strips (some rows, as wide as the image) or tiles. Samples of a
//! pixel stand together (chunky), or each sample has an image of its own, one
//! after another (planar).

use super::compression::Compression;
use super::directory::{Directory, TiffFile};
use super::predictor::Predictor;
use crate::element::ElementType;
use crate::format::fields::Parsed;

mod tag {
    pub(super) const WIDTH: u16 = 256;
    pub(super) const HEIGHT: u16 = 257;
    pub(super) const BITS: u16 = 258;
    pub(super) const COMPRESSION: u16 = 259;
    pub(super) const PHOTOMETRIC: u16 = 262;
    pub(super) const BIT_ORDER: u16 = 266;
    pub(super) const STRIP_OFFSETS: u16 = 273;
    pub(super) const SAMPLES: u16 = 277;
    pub(super) const ROWS: u16 = 278;
    pub(super) const STRIP_LENGTHS: u16 = 279;
    pub(super) const PLANAR: u16 = 284;
    pub(super) const PREDICTOR: u16 = 317;
    pub(super) const TILE_WIDTH: u16 = 322;
    pub(super) const TILE_HEIGHT: u16 = 323;
    pub(super) const TILE_OFFSETS: u16 = 324;
    pub(super) const TILE_LENGTHS: u16 = 325;
    pub(super) const FORMAT: u16 = 339;
    pub(super) const DEPTH: u16 = 32997;
    pub(super) const TILE_DEPTH: u16 = 32998;
}

/// Pixels of more samples are not believed.
const MOST_SAMPLES: u64 = 65535;

/// What is said of each sample may be said so often where there are fewer.
const USUAL_SAMPLES: u64 = 16;

/// Pages of more pieces are not believed.
pub(super) const MOST_PIECES: u64 = 1 << 22;

/// What is alike in all pages of a stack.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    pub(super) height: u64,
    pub(super) width: u64,
    pub(super) samples: u64,
    /// Whether each sample has an image of its own.
    pub(super) planar: bool,
    pub(super) element: ElementType,
    pub(super) compression: Compression,
    pub(super) predictor: Predictor,
    /// Rows and columns of a piece. Strips that are stored as they are make one
    /// piece, as high as the image.
    pub(super) piece: [u64; 2],
    /// Whether pieces are tiles, which are whole even at the edges.
    pub(super) tiled: bool,
}

/// A page.
#[derive(Debug)]
pub(super) struct Page {
    pub(super) form: Form,
    /// The rows of a strip.
    pub(super) rows: u64,
    pub(super) offsets: Vec<u64>,
    /// As many; none if the file does not say.
    pub(super) lengths: Vec<u64>,
}

impl Form {
    /// Images for each page: one, or one for each sample.
    pub(super) fn planes(&self) -> u64 {
        if self.planar { self.samples } else { 1 }
    }

    /// The samples that stand together.
    pub(super) fn together(&self) -> u64 {
        if self.planar { 1 } else { self.samples }
    }

    /// The bytes of so many pixels of one image; fails beyond 63 bits.
    pub(super) fn bytes(&self, rows: u64, columns: u64) -> Parsed<u64> {
        let size = self.element.size() * self.together();
        let bytes = rows.checked_mul(columns).and_then(|n| n.checked_mul(size));
        let bytes = bytes.filter(|bytes| i64::try_from(*bytes).is_ok());
        bytes.ok_or_else(|| "it has more than 2^63 bytes; the file is damaged".into())
    }

    /// What these two are in words, of which at least one is different.
    pub(super) fn difference(&self, other: &Self) -> (String, String) {
        let (mut these, mut those) = (vec![self.words()], vec![other.words()]);
        let details = self.details().into_iter().zip(other.details());
        for (this, that) in details.filter(|(this, that)| this != that) {
            these.push(this);
            those.push(that);
        }
        (these.join(", "), those.join(", "))
    }

    /// What users know of it.
    fn words(&self) -> String {
        let Self {
            height,
            width,
            samples,
            element,
            compression,
            ..
        } = self;
        format!(
            "{height}x{width} of {samples} {element}, {}",
            compression.name()
        )
    }

    /// What they rarely know.
    fn details(&self) -> [String; 3] {
        let [rows, columns] = self.piece;
        [
            match self.planar {
                true => "with an image for each sample".into(),
                false => "with samples together".into(),
            },
            match self.tiled {
                true => format!("in tiles of {rows}x{columns}"),
                false => format!("in strips of {rows} rows"),
            },
            format!("with {}", self.predictor.words()),
        ]
    }
}

impl Page {
    /// Whether the strip or tile of this number was never written: it has no
    /// place or no length, and is zeros.
    pub(super) fn is_nowhere(&self, number: usize) -> bool {
        self.offsets[number] == 0 || self.lengths.get(number) == Some(&0)
    }

    pub(super) fn read(file: &TiffFile, directory: &Directory) -> Parsed<Self> {
        let number =
            |tag, usual: u64| -> Parsed<u64> { Ok(file.number(directory, tag)?.unwrap_or(usual)) };
        let (height, width) = (number(tag::HEIGHT, 0)?, number(tag::WIDTH, 0)?);
        let samples = number(tag::SAMPLES, 1)?;
        if height == 0 || width == 0 || samples == 0 || samples > MOST_SAMPLES {
            return Err(format!(
                "a page of {height}x{width} pixels of {samples} samples is not possible; the \
                 file is damaged"
            )
            .into());
        }
        if number(tag::DEPTH, 1)?.max(number(tag::TILE_DEPTH, 1)?) > 1 {
            return Err("its pages are volumes (ImageDepth), which is not supported".into());
        }
        let element = element(file, directory, samples)?;
        if number(tag::PHOTOMETRIC, 1)? == 6 {
            return Err("its colours are YCbCr, which is not supported".into());
        }
        if number(tag::BIT_ORDER, 1)? != 1 {
            return Err(
                "its bits are in reverse order (FillOrder 2), which is not supported".into(),
            );
        }
        let compression = Compression::of_number(number(tag::COMPRESSION, 1)?)?;
        let predictor = match compression {
            Compression::None => Predictor::None,
            _ => Predictor::of_number(number(tag::PREDICTOR, 1)?, element)?,
        };
        let rows = number(tag::ROWS, height)?.clamp(1, height);
        let tile = file.number(directory, tag::TILE_WIDTH)?;
        let (offsets_tag, lengths_tag) = match tile {
            Some(_) => (tag::TILE_OFFSETS, tag::TILE_LENGTHS),
            None => (tag::STRIP_OFFSETS, tag::STRIP_LENGTHS),
        };
        let cut = match tile {
            Some(width) => [number(tag::TILE_HEIGHT, 0)?, width],
            None => [rows, width],
        };
        if cut.contains(&0) {
            return Err("its tiles have no extent; the file is damaged".into());
        }
        let form = Form {
            height,
            width,
            samples,
            planar: samples > 1 && number(tag::PLANAR, 1)? == 2,
            element,
            compression,
            predictor,
            piece: match (tile, compression) {
                (None, Compression::None) => [height, width],
                _ => cut,
            },
            tiled: tile.is_some(),
        };
        let pieces = height
            .div_ceil(cut[0])
            .checked_mul(width.div_ceil(cut[1]))
            .and_then(|pieces| pieces.checked_mul(form.planes()))
            .filter(|pieces| *pieces <= MOST_PIECES)
            .ok_or("a page of so many strips or tiles is not believed")?;
        let list = |tag| -> Parsed<Vec<u64>> {
            Ok(file.numbers(directory, tag, pieces)?.unwrap_or_default())
        };
        let (offsets, lengths) = (list(offsets_tag)?, list(lengths_tag)?);
        let known = lengths.len() as u64;
        let stated = known == pieces || (known == 0 && compression == Compression::None);
        if offsets.len() as u64 != pieces || !stated {
            return Err(format!(
                "a page has {} offsets and {known} lengths of its {pieces} strips or tiles; the \
                 file is damaged",
                offsets.len()
            )
            .into());
        }
        // Zeros, or data of whoever did not say how many: programs differ.
        let lengths_are_zero = known > 0 && lengths.iter().all(|len| *len == 0);
        if compression == Compression::None && lengths_are_zero && !offsets.contains(&0) {
            return Err(
                "a page says where its strips or tiles are, but all of them have 0 bytes; the \
                 file is damaged"
                    .into(),
            );
        }
        Ok(Self {
            form,
            rows,
            offsets,
            lengths,
        })
    }
}

/// The type of the samples, which must be the same for all of them.
fn element(file: &TiffFile, directory: &Directory, samples: u64) -> Parsed<ElementType> {
    let same = |tag, usual: u64| -> Parsed<u64> {
        let all = file.numbers(directory, tag, samples.max(USUAL_SAMPLES))?;
        let all = all.unwrap_or_default();
        let first = all.first().copied().unwrap_or(usual);
        match all.iter().all(|number| *number == first) {
            true => Ok(first),
            false => Err("its samples differ in type, which is not supported".into()),
        }
    };
    let (bits, format) = (same(tag::BITS, 1)?, same(tag::FORMAT, 1)?);
    Ok(match (format, bits) {
        (1 | 4, 8) => ElementType::U8,
        (1 | 4, 16) => ElementType::U16,
        (1 | 4, 32) => ElementType::U32,
        (1 | 4, 64) => ElementType::U64,
        (2, 8) => ElementType::I8,
        (2, 16) => ElementType::I16,
        (2, 32) => ElementType::I32,
        (2, 64) => ElementType::I64,
        (3, 16) => ElementType::F16,
        (3, 32) => ElementType::F32,
        (3, 64) => ElementType::F64,
        (6, 64) => ElementType::C64,
        (6, 128) => ElementType::C128,
        _ => {
            return Err(format!(
                "samples of {bits} bits (format {format}) are not supported, only whole numbers \
                 of 8 to 64 bits, floats of 16 to 64 and complex"
            )
            .into());
        }
    })
}
