//! [`Manifest`]: what a checkpoint says of itself, in `manifest.json`.
//!
//! Its first field is a checksum (CRC32C) of the whole text, with zeros in its
//! own place; so a manifest that is damaged, cut or edited is told from a good
//! one before anything of it is believed. What it says is checked then as if a
//! stranger had written it: names lead nowhere else, lengths fit shapes, and
//! every block has a checksum.

use std::io::{Read, Write};
use std::path::Path;

use outcore_storage::Blocks;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::name;
use crate::descriptor::ArrayDescriptor;
use crate::element::{ByteOrder, ElementType};
use crate::error::{Error, Result};

/// The file.
pub(super) const MANIFEST: &str = "manifest.json";

const FORMAT: &str = "outcore-checkpoint";
const VERSION: u64 = 1;

/// What stands before the checksum.
const BEFORE: &str = "{\n  \"checksum\": \"";
const NO_CHECKSUM: &str = "00000000";

/// Manifests longer than this are neither written nor believed.
const LONGEST: u64 = 64 << 20;

/// What a checkpoint holds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Manifest {
    /// Later checkpoints of a series have higher numbers.
    pub(super) sequence: u64,
    /// Seconds since 1970.
    pub(super) created: u64,
    /// How many ranks have written it.
    pub(super) ranks: u64,
    pub(super) notes: Map<String, Value>,
    pub(super) arrays: Vec<SavedArray>,
}

/// What a checkpoint says of one of its arrays.
#[derive(Debug, Clone, PartialEq)]
pub struct SavedArray {
    pub(super) name: String,
    pub(super) descriptor: ArrayDescriptor,
    pub(super) blocks: Blocks,
    /// One for each block.
    pub(super) sums: Vec<u32>,
}

impl SavedArray {
    /// The name under which it was saved.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The extent of each axis.
    pub fn shape(&self) -> &[u64] {
        &self.descriptor.shape
    }

    /// The type of the elements.
    pub fn element_type(&self) -> ElementType {
        self.descriptor.element_type
    }

    /// The bytes of all elements.
    pub fn bytes(&self) -> u64 {
        self.blocks.bytes
    }

    /// The directory of the array within that of its checkpoint.
    pub(super) fn file(&self) -> String {
        file(&self.name)
    }
}

/// The directory of the array `name` within that of its checkpoint.
pub(super) fn file(name: &str) -> String {
    format!("{name}.oc")
}

/// `manifest.json`, version 1.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    checksum: String,
    format: String,
    version: u64,
    sequence: u64,
    created: u64,
    ranks: u64,
    notes: Map<String, Value>,
    arrays: Vec<ArrayDocument>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayDocument {
    name: String,
    shape: Vec<u64>,
    #[serde(rename = "type")]
    element_type: String,
    byte_order: String,
    bytes: u64,
    block: u64,
    /// Eight hexadecimal digits for each block.
    crc32c: String,
}

impl Manifest {
    /// Writes it into `directory`, to stable storage.
    pub(super) fn write(&self, directory: &Path) -> Result<()> {
        let path = directory.join(MANIFEST);
        let text = self
            .text()
            .map_err(|problem| Error::format(path.display(), problem))?;
        let write = || {
            let mut file = std::fs::File::create_new(&path)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()
        };
        write().map_err(|source| Error::file("write", &path, source))
    }

    /// The text of the manifest in `directory`, not looked at yet.
    pub(super) fn read(directory: &Path) -> Result<String> {
        let path = directory.join(MANIFEST);
        let mut bytes = Vec::new();
        std::fs::File::open(&path)
            .and_then(|file| file.take(LONGEST + 1).read_to_end(&mut bytes))
            .map_err(|source| match source.kind() {
                std::io::ErrorKind::NotFound => Error::format(
                    directory.display(),
                    format!("this is no checkpoint: there is no {MANIFEST} in it"),
                ),
                _ => Error::file("read", &path, source),
            })?;
        if bytes.len() as u64 > LONGEST {
            return Err(damaged(directory, "it is longer than 64 MiB"));
        }
        String::from_utf8(bytes).map_err(|_| damaged(directory, "it is not text"))
    }

    /// What the text from `directory` says.
    pub(super) fn parse(directory: &Path, text: &str) -> Result<Self> {
        Self::of_text(text).map_err(|problem| damaged(directory, &problem))
    }

    fn text(&self) -> Result<String, String> {
        let array = |array: &SavedArray| ArrayDocument {
            name: array.name.clone(),
            shape: array.descriptor.shape.clone(),
            element_type: array.descriptor.element_type.to_string(),
            byte_order: array.descriptor.byte_order.to_string(),
            bytes: array.blocks.bytes,
            block: array.blocks.block,
            crc32c: array.sums.iter().map(|sum| format!("{sum:08x}")).collect(),
        };
        let document = Document {
            checksum: NO_CHECKSUM.into(),
            format: FORMAT.into(),
            version: VERSION,
            sequence: self.sequence,
            created: self.created,
            ranks: self.ranks,
            notes: self.notes.clone(),
            arrays: self.arrays.iter().map(array).collect(),
        };
        let mut text = serde_json::to_string_pretty(&document)
            .map_err(|error| format!("the notes cannot be written: {error}"))?;
        text.push('\n');
        if text.len() as u64 > LONGEST {
            return Err("notes and arrays are so many that it would exceed 64 MiB".into());
        }
        let sum = crc32c::crc32c(text.as_bytes());
        text.replace_range(checksum_place(), &format!("{sum:08x}"));
        Ok(text)
    }

    fn of_text(text: &str) -> Result<Self, String> {
        let written = text
            .get(checksum_place())
            .filter(|_| text.starts_with(BEFORE));
        let written = written.and_then(|digits| u32::from_str_radix(digits, 16).ok());
        let written = written.ok_or("it does not begin with its checksum")?;
        let end = checksum_place().end;
        let mut sum = crc32c::crc32c(BEFORE.as_bytes());
        sum = crc32c::crc32c_append(sum, NO_CHECKSUM.as_bytes());
        sum = crc32c::crc32c_append(sum, &text.as_bytes()[end..]);
        if sum != written {
            return Err(format!(
                "its checksum is {written:08x}, but that of what it says is {sum:08x}"
            ));
        }
        let value: Value =
            serde_json::from_str(text).map_err(|e| format!("it is not JSON: {e}"))?;
        if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
            return Err(format!("it does not say \"format\": \"{FORMAT}\""));
        }
        match value.get("version").and_then(Value::as_u64) {
            Some(VERSION) => {}
            Some(other) => {
                return Err(format!(
                    "it has version {other}, but this program knows version {VERSION} only"
                ));
            }
            None => return Err("it has no version".into()),
        }
        let document: Document = serde_json::from_value(value).map_err(|e| e.to_string())?;
        let arrays: Result<Vec<_>, _> = document.arrays.into_iter().map(SavedArray::new).collect();
        let arrays = arrays?;
        check_different(arrays.iter().map(|array| array.name.as_str()))?;
        Ok(Self {
            sequence: document.sequence,
            created: document.created,
            ranks: document.ranks,
            notes: document.notes,
            arrays,
        })
    }

    /// The bytes of all arrays.
    pub(super) fn bytes(&self) -> u64 {
        let each = self.arrays.iter().map(SavedArray::bytes);
        each.fold(0, u64::saturating_add)
    }
}

impl SavedArray {
    fn new(document: ArrayDocument) -> Result<Self, String> {
        let ArrayDocument { name, .. } = document;
        name::check("variable", &name)?;
        let wrong =
            |problem: String| format!("of array '{name}' it says what cannot be: {problem}");
        let element_type: Result<ElementType> = document.element_type.parse();
        let element_type = element_type.map_err(|e| wrong(e.to_string()))?;
        let byte_order: Result<ByteOrder> = document.byte_order.parse();
        let byte_order = byte_order.map_err(|e| wrong(e.to_string()))?;
        let descriptor = ArrayDescriptor::new(&document.shape, element_type).byte_order(byte_order);
        let bytes = descriptor.byte_len().map_err(|e| wrong(e.to_string()))?;
        if bytes != document.bytes {
            return Err(wrong(format!(
                "{} bytes, where its shape and type need {bytes}",
                document.bytes
            )));
        }
        if document.block == 0 {
            return Err(wrong("blocks of 0 bytes".into()));
        }
        let blocks = Blocks {
            bytes,
            block: document.block,
        };
        let digits = document.crc32c.as_bytes().chunks(8);
        let sum = |digits: &[u8]| {
            let text = std::str::from_utf8(digits).ok();
            let text = text.filter(|text| text.len() == 8 && !text.starts_with('+'));
            text.and_then(|text| u32::from_str_radix(text, 16).ok())
        };
        let sums: Option<Vec<u32>> = digits.map(sum).collect();
        let sums = sums.ok_or_else(|| wrong("checksums that are no hexadecimal numbers".into()))?;
        if sums.len() as u64 != blocks.count() {
            return Err(wrong(format!(
                "{} checksums, where there are {} blocks",
                sums.len(),
                blocks.count()
            )));
        }
        Ok(Self {
            name,
            descriptor,
            blocks,
            sums,
        })
    }
}

/// Fails if a name comes twice.
pub(super) fn check_different<'a>(names: impl Iterator<Item = &'a str>) -> Result<(), String> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    match names.windows(2).find(|pair| pair[0] == pair[1]) {
        Some(pair) => Err(format!("there are two arrays of the name '{}'", pair[0])),
        None => Ok(()),
    }
}

/// Where the digits of the checksum stand.
fn checksum_place() -> std::ops::Range<usize> {
    BEFORE.len()..BEFORE.len() + NO_CHECKSUM.len()
}

fn damaged(directory: &Path, problem: &str) -> Error {
    Error::format(
        directory.display(),
        format!("{MANIFEST} is damaged: {problem}"),
    )
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn example() -> Manifest {
        let array = |name: &str, shape: &[u64]| {
            let descriptor = ArrayDescriptor::new(shape, ElementType::F64);
            let blocks = crate::checkpoint::checksum::cut(descriptor.byte_len().unwrap());
            SavedArray {
                name: name.into(),
                descriptor,
                blocks,
                sums: (0..blocks.count()).map(|block| 77 + block as u32).collect(),
            }
        };
        let mut notes = Map::new();
        notes.insert("time".into(), json!(0.1 + 0.2));
        notes.insert("who".into(), json!("x \"y\" z"));
        Manifest {
            sequence: 12,
            created: 1_700_000_000,
            ranks: 5,
            notes,
            arrays: vec![array("u", &[1000, 1000]), array("v", &[3])],
        }
    }

    /// The text with one field replaced, and with the checksum of that.
    fn forged(from: &str, to: &str) -> String {
        let mut text = example().text().unwrap();
        assert!(text.contains(from), "{from}");
        text = text.replacen(from, to, 1);
        text.replace_range(checksum_place(), NO_CHECKSUM);
        let sum = crc32c::crc32c(text.as_bytes());
        text.replace_range(checksum_place(), &format!("{sum:08x}"));
        text
    }

    #[test]
    fn what_is_written_is_read() {
        let text = example().text().unwrap();
        assert_eq!(Manifest::of_text(&text).unwrap(), example());
        assert!(serde_json::from_str::<Value>(&text).is_ok());
        assert_eq!(Manifest::of_text(&forged("12", "13")).unwrap().sequence, 13);
    }

    #[test]
    fn hostile_manifests_are_refused_with_a_sentence() {
        for (from, to, expected) in [
            ("\"u\"", "\"../u\"", "cannot be the name"),
            ("\"u\"", "\"/etc/passwd\"", "cannot be the name"),
            ("\"u\"", "\"v\"", "two arrays of the name 'v'"),
            ("8000000", "8000001", "8000001 bytes, where"),
            ("8000000", "-1", "expected u64"),
            ("1048576", "0", "blocks of 0 bytes"),
            ("1048576", "1", "8000000 blocks"),
            (
                "1048576",
                "18446744073709551615",
                "where there are 1 blocks",
            ),
            ("0000004d", "0000004", "no hexadecimal"),
            ("0000004d", "+000004d", "no hexadecimal"),
            ("0000004d", "é00004d", "no hexadecimal"),
            ("\"f64\"", "\"f65\"", "no element type"),
            ("\"little\"", "\"middle\"", "middle"),
            (
                "      1000,\n",
                "      4294967296,\n 4294967296,\n",
                "what cannot be",
            ),
            ("      1000,\n", "      0,\n", "what cannot be"),
            ("outcore-checkpoint", "outcore-array", "does not say"),
            ("\"version\": 1", "\"version\": 2", "version 2"),
            ("\"version\": 1,", "", "no version"),
            ("\"ranks\"", "\"rank\"", "unknown field"),
        ] {
            let problem = Manifest::of_text(&forged(from, to)).unwrap_err();
            assert!(problem.contains(expected), "{from} -> {to}: {problem}");
        }
    }

    proptest! {
        #[test]
        fn any_damage_is_noticed(at in any::<prop::sample::Index>(), byte in 0u8..128) {
            let text = example().text().unwrap();
            let mut bytes = text.clone().into_bytes();
            let at = at.index(bytes.len());
            let cut = &text[..at];
            prop_assert!(Manifest::of_text(cut).is_err());
            prop_assume!(bytes[at] != byte);
            bytes[at] = byte;
            let damaged = String::from_utf8(bytes).unwrap();
            // Digits of a checksum may be written in either case.
            if !damaged.eq_ignore_ascii_case(&text) {
                prop_assert!(Manifest::of_text(&damaged).is_err());
            }
        }
    }
}
