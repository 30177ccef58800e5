//! Zarr, versions 2 and 3: a directory (or a prefix of a bucket) with a description
//! and one object a chunk, or one a shard of several chunks.
//!
//! An array is a tiled layout over a store of chunks: the tiles are the chunks, so
//! sections, collectives and relayouts work as on any array. Opened for reading, the
//! chunks of a sharded array are those inside the shards, which are read one by one;
//! opened for writing, they are the shards, which can only be written whole.

mod chunks;
mod create;
mod fill;
mod metadata;
mod shard;
mod v2;
mod v3;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_storage::{Access, ChunkStore, Objects};
use serde_json::Value;

use crate::error::{Error, Result};
use crate::format::place;
use crate::format::{Item, Opened};
use chunks::ZarrChunks;
pub(crate) use create::{create, create_group, discard, publish, usual_chunk};
pub(crate) use fill::bytes as fill_bytes;
use metadata::Metadata;

/// What version 3 calls its description.
const V3: &str = "zarr.json";
/// What version 2 calls those of an array, of a group, and attributes.
const V2_ARRAY: &str = ".zarray";
const V2_GROUP: &str = ".zgroup";
const V2_ATTRIBUTES: &str = ".zattrs";

/// Descriptions longer than this are not believed.
const LONGEST: u64 = 16 << 20;

/// What is at a place.
enum Node {
    Array(Box<Metadata>),
    Group(serde_json::Map<String, Value>),
}

/// Whether a Zarr array or group is at `path`.
pub(crate) fn is_node(path: &Path) -> Result<bool> {
    let objects = place::objects(path)?;
    for name in [V3, V2_ARRAY, V2_GROUP] {
        if objects.length(name)?.is_some() {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether a Zarr array is at `path`.
pub(crate) fn is_array(path: &Path) -> bool {
    let node = place::objects(path).and_then(|objects| read_node(&*objects, ""));
    matches!(node, Ok(Some(Node::Array(_))))
}

pub(crate) fn open(path: &Path, access: Access) -> Result<Opened> {
    let array = path.display().to_string();
    let objects = place::objects(path)?;
    let metadata = match read_node(&*objects, "")? {
        Some(Node::Array(metadata)) => metadata,
        Some(Node::Group(_)) => return Err(is_group(&array, path)),
        None if place::is_address(path) => return Err(place::no_array(path)),
        None => {
            return Err(Error::format(
                &array,
                format!("this is not a Zarr array: it has neither {V3} nor {V2_ARRAY}"),
            ));
        }
    };
    let descriptor = metadata.descriptor(access);
    descriptor.check(&array)?;
    let place = chunks_of(path);
    let chunks = ZarrChunks::new(place, place::objects(place)?, *metadata, access)?;
    let store = match access {
        Access::ReadOnly => ChunkStore::unchanging(Arc::new(chunks)),
        Access::ReadWrite => ChunkStore::new(Arc::new(chunks)),
    };
    Ok(Opened {
        descriptor,
        store: Arc::new(store),
        start: 0,
    })
}

/// How the folder ends in which an array at an address that is not complete has its
/// description; it begins with a dot.
const UNFINISHED: &str = ".unfinished";

/// Where the description of a new array at the address `path` is until the array is
/// complete: in a folder of its own, while the chunks are where they stay, since
/// objects have no names that can be changed.
pub(crate) fn unfinished(path: &Path, id: &str) -> PathBuf {
    path.join(format!(".{id}{UNFINISHED}"))
}

/// Where the chunks of the array are whose description is at `path`.
fn chunks_of(path: &Path) -> &Path {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let unfinished = name.starts_with('.') && name.ends_with(UNFINISHED);
    match path.parent() {
        Some(array) if unfinished && place::is_address(path) => array,
        _ => path,
    }
}

/// The error of a group that was taken for an array.
fn is_group(array: &str, path: &Path) -> Error {
    const SHOWN: usize = 8;
    let Ok(items) = list(path) else {
        return Error::format(array, "this is a Zarr group; name one of its arrays");
    };
    let names = items.iter().filter(|item| item.array.is_some());
    let names: Vec<String> = names.map(|item| format!("{array}/{}", item.path)).collect();
    let names = match names.as_slice() {
        [] => "it holds no array".into(),
        all if all.len() <= SHOWN => format!("name one of its arrays: {}", all.join(", ")),
        all => format!(
            "name one of its {} arrays: {}, ... (outcore ls shows all)",
            all.len(),
            all[..SHOWN].join(", ")
        ),
    };
    Error::format(array, format!("this is a Zarr group; {names}"))
}

/// Everything in the group at `path`, or the array itself; groups before what is in
/// them.
pub(crate) fn list(path: &Path) -> Result<Vec<Item>> {
    let objects = place::objects(path)?;
    let mut items = Vec::new();
    collect(&*objects, "", &mut items)?;
    Ok(items)
}

fn collect(objects: &dyn Objects, folder: &str, items: &mut Vec<Item>) -> Result<()> {
    match read_node(objects, folder)? {
        Some(Node::Array(metadata)) => {
            items.push(Item {
                path: folder.into(),
                attributes: metadata.attributes.clone(),
                array: Some(metadata.descriptor(Access::ReadOnly)),
                problem: None,
            });
            return Ok(());
        }
        Some(Node::Group(attributes)) => items.push(Item {
            path: folder.into(),
            attributes,
            array: None,
            problem: None,
        }),
        None if folder.is_empty() => {}
        None => return Ok(()),
    }
    for entry in objects.list(folder)? {
        if entry.is_folder() {
            collect(objects, &key(folder, &entry.name), items)?;
        }
    }
    Ok(())
}

/// The key of `name` in a folder.
fn key(folder: &str, name: &str) -> String {
    match folder {
        "" => name.into(),
        _ => format!("{folder}/{name}"),
    }
}

fn read_node(objects: &dyn Objects, folder: &str) -> Result<Option<Node>> {
    let read = |name: &str| read_json(objects, &key(folder, name));
    let array = match folder {
        "" => objects.name(),
        _ => format!("{}/{folder}", objects.name()),
    };
    if let Some(document) = read(V3)? {
        let wrong = |problem| Error::format(&array, format!("in {V3}, {problem}"));
        return Ok(Some(v3::read(&document).map_err(wrong)?));
    }
    let attributes = || -> Result<_> {
        Ok(match read(V2_ATTRIBUTES)? {
            Some(Value::Object(attributes)) => attributes,
            _ => serde_json::Map::new(),
        })
    };
    if let Some(document) = read(V2_ARRAY)? {
        let wrong = |problem| Error::format(&array, format!("in {V2_ARRAY}, {problem}"));
        let metadata = v2::read(&document, attributes()?).map_err(wrong)?;
        return Ok(Some(Node::Array(Box::new(metadata))));
    }
    match read(V2_GROUP)? {
        Some(_) => Ok(Some(Node::Group(attributes()?))),
        None => Ok(None),
    }
}

fn read_json(objects: &dyn Objects, key: &str) -> Result<Option<Value>> {
    let name = || format!("{}/{key}", objects.name());
    let mut bytes = Vec::new();
    if !objects.read(key, LONGEST, &mut bytes)? {
        return Ok(None);
    }
    let value = serde_json::from_slice(&bytes);
    value
        .map(Some)
        .map_err(|error| Error::format(name(), format!("it is not JSON: {error}")))
}
