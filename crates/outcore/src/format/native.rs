//! Outcore's own format: a directory `name.oc/` with a descriptor `array.json`
//! and the data, in one file beside it or in stripe files in the directories
//! that the descriptor lists.
//!
//! The names of data files are not free: one data file is always `data.bin`,
//! and stripe files are named by the array's id, so a descriptor from a
//! stranger cannot lead to a file of another kind.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_storage::{Access, FileStore, Store, StripedStore};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::descriptor::{ArrayDescriptor, Stripes};
use crate::error::{Error, Result};
use crate::format::{Opened, open_file};

const DESCRIPTOR: &str = "array.json";
const DATA: &str = "data.bin";
const FORMAT: &str = "outcore-array";
const VERSION: u64 = 1;

/// Descriptors longer than this are not believed.
const LONGEST_DESCRIPTOR: u64 = 16 << 20;

/// `array.json`, version 1.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    format: String,
    version: u64,
    shape: Vec<u64>,
    #[serde(rename = "type")]
    element_type: String,
    byte_order: String,
    layout: String,
    placement: Placement,
    #[serde(default)]
    attributes: Map<String, Value>,
}

/// Where the data are.
#[derive(Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
enum Placement {
    /// One file of all elements, beside the descriptor.
    Global { data: String },
    /// One file a directory, dealt out in stripes.
    Striped {
        id: String,
        unit: u64,
        directories: Vec<PathBuf>,
    },
}

pub(crate) fn open(directory: &Path, access: Access) -> Result<Opened> {
    let array = directory.display().to_string();
    let document = read_document(directory)?;
    let wrong = |problem: String| Error::format(&array, format!("in {DESCRIPTOR}, {problem}"));
    let mut descriptor = ArrayDescriptor::new(
        &document.shape,
        document
            .element_type
            .parse()
            .map_err(|e: Error| wrong(e.to_string()))?,
    );
    descriptor.byte_order = document
        .byte_order
        .parse()
        .map_err(|e: Error| wrong(e.to_string()))?;
    descriptor.arrangement = document
        .layout
        .parse()
        .map_err(|e: outcore_geometry::Error| wrong(e.to_string()))?;
    descriptor.attributes = document.attributes;
    descriptor.check(&array)?;
    let store: Arc<dyn Store>;
    let place;
    match document.placement {
        Placement::Global { data } => {
            if data != DATA {
                return Err(wrong(format!(
                    "the data file is named '{data}'; it must be {DATA}"
                )));
            }
            place = directory.join(DATA);
            store = open_file(&place, access)?;
        }
        Placement::Striped {
            id,
            unit,
            directories,
        } => {
            if !is_id(&id) {
                return Err(wrong(format!("the id '{id}' is not 32 hexadecimal digits")));
            }
            if let Some(relative) = directories.iter().find(|path| !path.is_absolute()) {
                return Err(wrong(format!(
                    "the stripe directory '{}' is not an absolute path",
                    relative.display()
                )));
            }
            descriptor.stripes = Some(Stripes {
                unit,
                directories: directories.clone(),
            });
            descriptor.check(&array)?;
            let files = stripe_files(&id, &directories);
            let disks: Result<Vec<_>> = files.iter().map(|file| open_file(file, access)).collect();
            store = Arc::new(StripedStore::new(disks?, unit)?);
            place = directory.to_path_buf();
        }
    }
    Opened {
        descriptor,
        store,
        start: 0,
    }
    .check(&array, &place)
}

fn read_document(directory: &Path) -> Result<Document> {
    let array = directory.display();
    let path = directory.join(DESCRIPTOR);
    let file = match std::fs::File::open(&path) {
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            return Err(Error::format(
                array,
                format!("this directory is not an outcore array: it has no {DESCRIPTOR}"),
            ));
        }
        other => other.map_err(|source| Error::file("open", &path, source))?,
    };
    let mut bytes = Vec::new();
    file.take(LONGEST_DESCRIPTOR + 1)
        .read_to_end(&mut bytes)
        .map_err(|source| Error::file("read", &path, source))?;
    if bytes.len() as u64 > LONGEST_DESCRIPTOR {
        return Err(Error::format(
            array,
            format!("{DESCRIPTOR} is longer than 16 MiB"),
        ));
    }
    parse_document(&bytes).map_err(|problem| Error::format(array, problem))
}

/// Reads `array.json`; the version is looked at before anything else.
fn parse_document(bytes: &[u8]) -> Result<Document, String> {
    let value: Value =
        serde_json::from_slice(bytes).map_err(|e| format!("{DESCRIPTOR} is not JSON: {e}"))?;
    if value.get("format").and_then(Value::as_str) != Some(FORMAT) {
        return Err(format!(
            "{DESCRIPTOR} does not say \"format\": \"{FORMAT}\""
        ));
    }
    match value.get("version") {
        Some(version) if version.as_u64() == Some(VERSION) => {}
        Some(version) => {
            return Err(format!(
                "{DESCRIPTOR} has version {version}, but this program knows version {VERSION} only"
            ));
        }
        None => return Err(format!("{DESCRIPTOR} has no version")),
    }
    serde_json::from_value(value).map_err(|e| {
        // Rust's name of the type says nothing to a user.
        let problem = e.to_string().replace("u64", "a whole number from 0 on");
        format!("{DESCRIPTOR} is wrong: {problem}")
    })
}

/// Makes the directory with its descriptor and room for the data. `array`
/// names it in messages. What was made outside the directory is added to
/// `outside` as soon as it exists.
pub(crate) fn create(
    array: &str,
    directory: &Path,
    descriptor: &ArrayDescriptor,
    outside: &mut Vec<PathBuf>,
) -> Result<()> {
    let layout = descriptor.check(array)?;
    std::fs::create_dir(directory).map_err(|source| Error::file("create", directory, source))?;
    let placement = match &descriptor.stripes {
        None => {
            FileStore::create(directory.join(DATA))?.set_len(layout.byte_len())?;
            Placement::Global { data: DATA.into() }
        }
        Some(stripes) => {
            let id = new_id();
            let directories: Result<Vec<PathBuf>> = stripes
                .directories
                .iter()
                .map(|path| {
                    path.canonicalize()
                        .map_err(|source| Error::file("use", path, source))
                })
                .collect();
            let directories = directories?;
            let mut disks: Vec<Arc<dyn Store>> = Vec::new();
            for file in stripe_files(&id, &directories) {
                disks.push(Arc::new(FileStore::create(&file)?));
                outside.push(file);
            }
            StripedStore::new(disks, stripes.unit)?.set_len(layout.byte_len())?;
            Placement::Striped {
                id,
                unit: stripes.unit,
                directories,
            }
        }
    };
    let document = Document {
        format: FORMAT.into(),
        version: VERSION,
        shape: descriptor.shape.clone(),
        element_type: descriptor.element_type.to_string(),
        byte_order: descriptor.byte_order.to_string(),
        layout: descriptor.arrangement.to_string(),
        placement,
        attributes: descriptor.attributes.clone(),
    };
    let path = directory.join(DESCRIPTOR);
    let text = serde_json::to_string_pretty(&document)
        .map_err(|e| Error::format(array, format!("the attributes cannot be written: {e}")))?;
    let write = || {
        let mut file = std::fs::File::create_new(&path)?;
        file.write_all(text.as_bytes())?;
        file.write_all(b"\n")?;
        file.sync_all()
    };
    write().map_err(|source| Error::file("write", &path, source))
}

/// Whether a directory is an outcore array, be it one that cannot be read.
pub(crate) fn is_array(directory: &Path) -> bool {
    directory.join(DESCRIPTOR).is_file()
}

/// The files outside the directory that belong to the array in it.
pub(crate) fn files_outside(directory: &Path) -> Result<Vec<PathBuf>> {
    Ok(match read_document(directory)?.placement {
        Placement::Global { .. } => Vec::new(),
        Placement::Striped {
            id, directories, ..
        } if is_id(&id) => stripe_files(&id, &directories),
        Placement::Striped { .. } => Vec::new(),
    })
}

fn stripe_files(id: &str, directories: &[PathBuf]) -> Vec<PathBuf> {
    let named = directories.iter().enumerate();
    named
        .map(|(disk, path)| path.join(format!("outcore-{id}.stripe{disk}")))
        .collect()
}

fn is_id(id: &str) -> bool {
    id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}

/// 128 random bits, from the seeds that the standard library draws for its
/// hash tables.
pub(crate) fn new_id() -> String {
    let half = || RandomState::new().build_hasher().finish();
    format!("{:016x}{:016x}", half(), half())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn any_descriptor_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            prop_assert!(parse_document(&bytes).is_err());
        }

        #[test]
        fn a_damaged_descriptor_is_read_or_refused(at in 0usize..300, byte in any::<u8>()) {
            let mut text = br#"{"format": "outcore-array", "version": 1, "shape": [3, 4],
                "type": "f32", "byte_order": "little", "layout": "tiled:2x2",
                "placement": {"kind": "global", "data": "data.bin"}, "attributes": {"a": [1]}}"#.to_vec();
            let at = at % text.len();
            text[at] = byte;
            let _ = parse_document(&text);
            let _ = parse_document(&text[..at]);
        }
    }
}
