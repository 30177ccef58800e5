//! Outcore's own format: a directory `name.oc/` with a descriptor `array.json`
//! and the data: in one file beside it, in stripe files in the directories that
//! the descriptor lists, or in one file a rank, beside it or in such directories.
//!
//! The names of data files are not free: one data file is always `data.bin`,
//! the file of rank 3 is `part3.bin`, and stripes and parts in other directories
//! are named by the array's id, so a descriptor from a stranger cannot lead to a
//! file of another kind.
//!
//! If `array.json` has `"checksums"`, the blocks of the data have checksums in
//! `checksums.bin` beside it (see [`CheckedStore`]). Programs that do not know them
//! refuse the array, so that none writes past them.

use std::collections::hash_map::RandomState;
use std::hash::{BuildHasher, Hasher};
use std::io::{Read, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_geometry::{Distribution, Layout};
use outcore_storage::{Access, Blocks, CheckedStore, FileStore, Store, StripedStore, refuse_pipe};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::descriptor::{ArrayDescriptor, Stripes};
use crate::error::{Error, Result};
use crate::format::raw::RawFile;
use crate::format::{Opened, open_file};
use crate::placement::LocalPlacement;
use crate::placement::parts::Parts;
use crate::placement::store::PartsStore;

const DESCRIPTOR: &str = "array.json";
const DATA: &str = "data.bin";
const CHECKSUMS: &str = "checksums.bin";
const ALGORITHM: &str = "crc32c";
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
    #[serde(default, skip_serializing_if = "Option::is_none")]
    checksums: Option<Checksums>,
    /// One for each axis.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    axis_names: Option<Vec<String>>,
    #[serde(default)]
    attributes: Map<String, Value>,
}

/// The checksums of blocks.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Checksums {
    algorithm: String,
    /// The bytes of a block.
    block: u64,
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
    /// One file a rank: its local array with overlap areas.
    Local {
        id: String,
        distribution: String,
        grid: Vec<u64>,
        ranks: u64,
        overlap: Vec<(u64, u64)>,
        /// One a rank, or none: beside the descriptor.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        directories: Vec<PathBuf>,
    },
}

/// What a directory says of itself.
pub(crate) struct Described {
    pub(crate) descriptor: ArrayDescriptor,
    files: Files,
}

/// The data files of an array.
enum Files {
    One(PathBuf),
    Stripes(Vec<PathBuf>),
    Parts(Vec<PathBuf>),
}

impl Described {
    /// The part of each rank as a file of its own; none if the array is not
    /// placed locally.
    pub(crate) fn parts(&self) -> Option<(Parts, Vec<RawFile>)> {
        let (Some(placement), Files::Parts(files)) = (&self.descriptor.local, &self.files) else {
            return None;
        };
        let parts = Parts::new(placement, &self.descriptor).expect("the descriptor is checked");
        let file = |(rank, path): (usize, &PathBuf)| RawFile {
            path: path.clone(),
            descriptor: parts.descriptor(&self.descriptor, rank),
            offset: 0,
        };
        let files = files.iter().enumerate().map(file).collect();
        Some((parts, files))
    }
}

pub(crate) fn open(directory: &Path, access: Access) -> Result<Opened> {
    let array = directory.display().to_string();
    let described = describe(directory)?;
    let (store, place): (Arc<dyn Store>, _) = match (&described.files, described.parts()) {
        (_, Some((parts, files))) => {
            let store = PartsStore::open(&array, parts, files, access)?;
            (Arc::new(store), directory.to_path_buf())
        }
        (Files::One(file), _) => (open_file(file, access)?, file.clone()),
        (Files::Stripes(files) | Files::Parts(files), None) => {
            let disks: Result<Vec<_>> = files.iter().map(|file| open_file(file, access)).collect();
            let unit = described.descriptor.stripes.as_ref().map_or(0, |s| s.unit);
            let store = StripedStore::new(disks?, unit)?;
            (Arc::new(store), directory.to_path_buf())
        }
    };
    let opened = Opened {
        descriptor: described.descriptor,
        store,
        start: 0,
    };
    let opened = opened.check(&array, &place)?;
    match opened.descriptor.checksums {
        Some(block) => with_checksums(directory, opened, block, access),
        None => Ok(opened),
    }
}

/// The same array, whose blocks are compared with their checksums.
fn with_checksums(directory: &Path, opened: Opened, block: u64, access: Access) -> Result<Opened> {
    let array = directory.display().to_string();
    let layout = opened.descriptor.check(&array)?;
    let path = directory.join(CHECKSUMS);
    let remedy = "put it back from a copy, or remove \"checksums\" from array.json to use the data \
                  without them";
    if !path.exists() {
        let problem = format!("it has checksums, but {CHECKSUMS} is missing; {remedy}");
        return Err(Error::format(array, problem));
    }
    let sums = open_file(&path, access)?;
    let bytes = layout.byte_len();
    let (found, needed) = (sums.len()?, CheckedStore::sums_len(Blocks { bytes, block }));
    if found != needed {
        let problem = format!(
            "{CHECKSUMS} has {found} bytes, but the checksums of blocks of {block} bytes need \
             {needed}; {remedy}"
        );
        return Err(Error::format(array, problem));
    }
    let checked = CheckedStore::new(opened.store, sums, block)?
        .with_meaning(move |bytes| sections_text(&layout, &array, bytes));
    Ok(Opened {
        store: Arc::new(checked),
        ..opened
    })
}

/// What the bytes of a file are.
fn sections_text(layout: &Layout, array: &str, bytes: Range<u64>) -> String {
    const MOST: usize = 5;
    let sections: Vec<String> = layout
        .sections_of(bytes)
        .take(MOST + 1)
        .map(|section| format!("[{section}]"))
        .collect();
    match sections.len() {
        0 => format!("no element of {array}"),
        MOST.. if sections.len() > MOST => {
            format!(
                "sections {} and more of {array}",
                sections[..MOST].join(", ")
            )
        }
        1 => format!("section {} of {array}", sections[0]),
        _ => format!("sections {} of {array}", sections.join(", ")),
    }
}

/// Reads and checks the descriptor.
pub(crate) fn describe(directory: &Path) -> Result<Described> {
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
    let axes = descriptor.shape.len();
    descriptor.axis_names = document.axis_names.filter(|names| names.len() == axes);
    descriptor.attributes = document.attributes;
    if let Some(Checksums { algorithm, block }) = document.checksums {
        if algorithm != ALGORITHM {
            return Err(wrong(format!(
                "the checksums are '{algorithm}', but this program knows {ALGORITHM} only"
            )));
        }
        descriptor.checksums = Some(block);
    }
    descriptor.check(&array)?;
    if let Some(problem) = document.placement.problem() {
        return Err(wrong(problem));
    }
    let files = match document.placement {
        Placement::Global { .. } => Files::One(directory.join(DATA)),
        Placement::Striped {
            id,
            unit,
            directories,
        } => {
            let files = stripe_files(&id, &directories);
            descriptor.stripes = Some(Stripes { unit, directories });
            Files::Stripes(files)
        }
        Placement::Local {
            id,
            distribution,
            grid,
            ranks,
            overlap,
            directories,
        } => {
            let distribution =
                Distribution::parse(&distribution, &descriptor.shape, ranks, Some(&grid))
                    .map_err(|e| wrong(e.to_string()))?;
            let placement = LocalPlacement {
                distribution,
                overlap,
                directories,
            };
            Parts::new(&placement, &descriptor).map_err(wrong)?;
            let files = part_files(directory, &id, &placement);
            descriptor.local = Some(placement);
            Files::Parts(files)
        }
    };
    descriptor.check(&array)?;
    Ok(Described { descriptor, files })
}

impl Placement {
    /// What is wrong with the names it leads to.
    fn problem(&self) -> Option<String> {
        let (id, directories) = match self {
            Self::Global { data } if data == DATA => return None,
            Self::Global { data } => {
                return Some(format!(
                    "the data file is named '{data}'; it must be {DATA}"
                ));
            }
            Self::Striped {
                id, directories, ..
            }
            | Self::Local {
                id, directories, ..
            } => (id, directories),
        };
        if !is_id(id) {
            return Some(format!("the id '{id}' is not 32 hexadecimal digits"));
        }
        let relative = directories.iter().find(|path| !path.is_absolute())?;
        Some(format!(
            "the directory '{}' is not an absolute path",
            relative.display()
        ))
    }
}

fn read_document(directory: &Path) -> Result<Document> {
    let array = directory.display();
    let path = directory.join(DESCRIPTOR);
    let opened = refuse_pipe(&path).and_then(|()| std::fs::File::open(&path));
    let file = match opened {
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
        let problem = [
            ("u64", "a whole number from 0 on"),
            ("struct Checksums", "an object"),
            ("internally tagged enum Placement", "an object"),
            ("a map", "an object"),
            ("a sequence", "a list"),
            ("variant identifier", "a text"),
            ("path string", "a path"),
            ("unknown variant", "unknown kind"),
        ];
        let problem = problem.iter().fold(e.to_string(), |text, (theirs, ours)| {
            text.replace(theirs, ours)
        });
        format!("{DESCRIPTOR} is wrong: {problem}")
    })
}

/// Makes the directory with its descriptor and room for the data, except the
/// files of ranks, which [`create_part`] makes. `array` names it in messages.
/// What was made outside the directory, or will be, is added to `outside`.
pub(crate) fn create(
    array: &str,
    directory: &Path,
    descriptor: &ArrayDescriptor,
    outside: &mut Vec<PathBuf>,
) -> Result<()> {
    let layout = descriptor.check(array)?;
    std::fs::create_dir(directory).map_err(|source| Error::file("create", directory, source))?;
    let placement = match (&descriptor.stripes, &descriptor.local) {
        (None, None) => {
            FileStore::create(directory.join(DATA))?.set_len(layout.byte_len())?;
            Placement::Global { data: DATA.into() }
        }
        (None, Some(placement)) => {
            let id = new_id();
            let directories = placement.directories.iter().map(|path| absolute(path));
            let placement = LocalPlacement {
                directories: directories.collect::<Result<_>>()?,
                ..placement.clone()
            };
            if !placement.directories.is_empty() {
                outside.extend(part_files(directory, &id, &placement));
            }
            let distribution = &placement.distribution;
            Placement::Local {
                id,
                distribution: distribution.to_string(),
                grid: distribution.grid().to_vec(),
                ranks: distribution.ranks(),
                overlap: placement.overlap,
                directories: placement.directories,
            }
        }
        (Some(stripes), _) => {
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
    let (bytes, checksums) = (layout.byte_len(), descriptor.checksums);
    if let Some(block) = checksums {
        let sums = FileStore::create(directory.join(CHECKSUMS))?;
        sums.set_len(CheckedStore::sums_len(Blocks { bytes, block }))?;
    }
    let document = Document {
        format: FORMAT.into(),
        version: VERSION,
        shape: descriptor.shape.clone(),
        element_type: descriptor.element_type.to_string(),
        byte_order: descriptor.byte_order.to_string(),
        layout: descriptor.arrangement.to_string(),
        placement,
        checksums: checksums.map(|block| Checksums {
            algorithm: ALGORITHM.into(),
            block,
        }),
        axis_names: descriptor.axis_names.clone(),
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

/// Makes the file of one rank, with zeros.
pub(crate) fn create_part(file: &RawFile) -> Result<()> {
    let layout = file.descriptor.check(&file.path.display().to_string())?;
    Ok(FileStore::create(&file.path)?.set_len(layout.byte_len())?)
}

/// The same path from everywhere. The directory need not exist here: that of
/// another rank may be on a disk of another machine.
fn absolute(path: &Path) -> Result<PathBuf> {
    let path = path.canonicalize().or_else(|_| std::path::absolute(path));
    path.map_err(|source| Error::file("use", Path::new("a directory of a rank"), source))
}

/// Whether a directory is an outcore array, be it one that cannot be read.
pub(crate) fn is_array(directory: &Path) -> bool {
    directory.join(DESCRIPTOR).is_file()
}

/// The files outside the directory that belong to the array in it.
pub(crate) fn files_outside(directory: &Path) -> Result<Vec<PathBuf>> {
    let described = describe(directory)?;
    Ok(match described.files {
        Files::Stripes(files) => files,
        Files::Parts(files) => {
            let inside = |file: &PathBuf| file.parent() == Some(directory);
            files.into_iter().filter(|file| !inside(file)).collect()
        }
        Files::One(_) => Vec::new(),
    })
}

fn part_files(directory: &Path, id: &str, placement: &LocalPlacement) -> Vec<PathBuf> {
    if placement.directories.is_empty() {
        let ranks = 0..placement.distribution.ranks();
        return ranks
            .map(|rank| directory.join(format!("part{rank}.bin")))
            .collect();
    }
    let named = placement.directories.iter().enumerate();
    named
        .map(|(rank, path)| path.join(format!("outcore-{id}.part{rank}")))
        .collect()
}

fn stripe_files(id: &str, directories: &[PathBuf]) -> Vec<PathBuf> {
    let named = directories.iter().enumerate();
    named
        .map(|(disk, path)| path.join(format!("outcore-{id}.stripe{disk}")))
        .collect()
}

pub(crate) fn is_id(id: &str) -> bool {
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
