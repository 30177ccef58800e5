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
use crate::format::{COPY_ALL, Item, Opened};
use chunks::ZarrChunks;
pub(crate) use create::{
    check, check_group, create, create_group, create_groups, discard, forget_consolidated, publish,
    remove_partial, usual_chunk,
};
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

/// Whether a folder of this name, perhaps with a `/` at its end, holds the description
/// of an array that is not complete.
pub(crate) fn is_unfinished(name: &str) -> bool {
    name.starts_with('.') && name.trim_end_matches('/').ends_with(UNFINISHED)
}

/// Where the chunks of the array are whose description is at `path`.
fn chunks_of(path: &Path) -> &Path {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match path.parent() {
        Some(array) if is_unfinished(&name) && place::is_address(path) => array,
        _ => path,
    }
}

/// The error of a group that was taken for an array.
fn is_group(array: &str, path: &Path) -> Error {
    const SHOWN: usize = 8;
    let mut items = Vec::new();
    let some = |items: &[Item]| arrays(items).nth(SHOWN).is_some();
    let listed = place::objects(path).and_then(|it| collect(&*it, "", &mut items, &some));
    if listed.is_err() {
        return Error::format(array, "this is a Zarr group; name one of its arrays");
    }
    let names: Vec<&str> = arrays(&items).map(|item| &*item.name).collect();
    let names = match names.as_slice() {
        [] => "it holds no array".into(),
        all if all.len() <= SHOWN => format!("name one of its arrays: {}", all.join(", ")),
        all => format!(
            "name one of its arrays: {}, ... (outcore ls shows all)",
            all[..SHOWN].join(", ")
        ),
    };
    Error::format(array, format!("this is a Zarr group; {names}; {COPY_ALL}"))
}

fn arrays(items: &[Item]) -> impl Iterator<Item = &Item> {
    items.iter().filter(|item| item.array.is_some())
}

/// Everything in the group at `path`, or the array itself; groups before what is in
/// them.
pub(crate) fn list(path: &Path) -> Result<Vec<Item>> {
    let objects = place::objects(path)?;
    let mut items = Vec::new();
    collect(&*objects, "", &mut items, &|_| false)?;
    Ok(items)
}

/// Adds what is in a folder, until there is enough.
fn collect(
    objects: &dyn Objects,
    folder: &str,
    items: &mut Vec<Item>,
    enough: &dyn Fn(&[Item]) -> bool,
) -> Result<()> {
    let item = match item(objects, folder) {
        // What is in a group hides none of the others; only the place itself fails.
        Err(error @ (Error::Format { .. } | Error::Geometry { .. })) if !folder.is_empty() => {
            Some(Item {
                name: name_of(objects, folder),
                path: folder.into(),
                array: None,
                problem: Some(error.to_string()),
                attributes: serde_json::Map::new(),
            })
        }
        found => found?,
    };
    let is_group = match &item {
        Some(item) => item.array.is_none() && item.problem.is_none(),
        None => folder.is_empty(),
    };
    items.extend(item);
    if !is_group {
        return Ok(());
    }
    for entry in objects.list(folder)? {
        if enough(items) {
            break;
        }
        // Hidden is what is not complete.
        if entry.is_folder() && !entry.name.starts_with('.') {
            collect(objects, &key(folder, &entry.name), items, enough)?;
        }
    }
    Ok(())
}

/// The array or group in a folder.
fn item(objects: &dyn Objects, folder: &str) -> Result<Option<Item>> {
    let Some(node) = read_node(objects, folder)? else {
        return Ok(None);
    };
    let name = name_of(objects, folder);
    let (array, attributes) = match node {
        Node::Group(attributes) => (None, attributes),
        Node::Array(metadata) => {
            let descriptor = metadata.descriptor(Access::ReadOnly);
            descriptor.check(&name)?;
            (Some(descriptor), metadata.attributes)
        }
    };
    Ok(Some(Item {
        name,
        path: folder.into(),
        array,
        problem: None,
        attributes,
    }))
}

/// What messages call a folder, and what opens the array in it.
fn name_of(objects: &dyn Objects, folder: &str) -> String {
    let place = objects.name();
    match folder {
        "" => place,
        _ => format!("{}/{folder}", place.trim_end_matches('/')),
    }
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
    let array = name_of(objects, folder);
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
    if objects.read(key, LONGEST, &mut bytes)?.is_none() {
        return Ok(None);
    }
    parse(&bytes)
        .map(Some)
        .map_err(|error| Error::format(name(), format!("it is not JSON: {error}")))
}

/// The value of JSON text; NaN, Infinity and -Infinity, which others write as words,
/// become texts.
fn parse(bytes: &[u8]) -> serde_json::Result<Value> {
    serde_json::from_slice(bytes)
        .or_else(|error| serde_json::from_slice(&with_words_quoted(bytes)).map_err(|_| error))
}

/// The same text with quotes round the words that JSON does not have.
fn with_words_quoted(mut rest: &[u8]) -> Vec<u8> {
    const WORDS: [&[u8]; 3] = [b"-Infinity", b"Infinity", b"NaN"];
    let mut quoted = Vec::with_capacity(rest.len() + 64);
    let mut in_text = false;
    while let Some(first) = rest.first() {
        let word = WORDS.iter().find(|word| rest.starts_with(word));
        let taken = match (word, first) {
            (Some(word), _) if !in_text => {
                quoted.push(b'"');
                quoted.extend_from_slice(word);
                quoted.push(b'"');
                rest = &rest[word.len()..];
                continue;
            }
            // What stands behind it does not end the text.
            (_, b'\\') if in_text => rest.len().min(2),
            (_, b'"') => {
                in_text = !in_text;
                1
            }
            _ => 1,
        };
        quoted.extend_from_slice(&rest[..taken]);
        rest = &rest[taken..];
    }
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn words_for_numbers_become_texts() {
        let text =
            br#"{"a": NaN, "b": [-Infinity, Infinity, 1], "NaN \" NaN": "\\", "c": "Infinity"}"#;
        let expected = json!({
            "a": "NaN", "b": ["-Infinity", "Infinity", 1], "NaN \" NaN": "\\", "c": "Infinity",
        });
        assert_eq!(parse(text).unwrap(), expected);
        let problem = parse(b"{\"a\": NaN").unwrap_err();
        assert!(problem.to_string().contains("line 1 column 7"), "{problem}");
    }
}
