//! Making a Zarr array: its description, and chunks that are not there yet.

use std::path::Path;

use outcore_storage::{Directory, Entry, Objects};
use serde_json::{Map, Value, json};

use super::metadata::{Encoding, Keys, Metadata, Shard, check_chunk};
use super::{V2_ARRAY, V2_ATTRIBUTES, V3, chunks_of, fill, v2, v3};
use crate::codec::Codec;
use crate::container::Groups;
use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
use crate::format::place;

/// Where groups keep the descriptions of all that is in them: a field of version 3, an
/// object of version 2.
const CONSOLIDATED: &str = "consolidated_metadata";
const V2_CONSOLIDATED: &str = ".zmetadata";

/// The bytes of a chunk if nobody says its shape.
const USUAL_CHUNK: u64 = 1 << 20;

/// Makes the array; `version` is 2 or 3.
pub(crate) fn create(
    array: &str,
    path: &Path,
    descriptor: &ArrayDescriptor,
    version: u8,
) -> Result<()> {
    let wrong = |problem: String| Error::format(array, problem);
    let metadata = metadata(array, descriptor, version)?;
    let objects = place::objects(path)?;
    let put = |name: &str, value: &Value| -> Result<()> {
        Ok(objects.write(name, format!("{value:#}").as_bytes())?)
    };
    if version == 3 {
        return put(V3, &v3::write(&metadata));
    }
    let (document, attributes) = v2::write(&metadata).map_err(wrong)?;
    if !attributes.is_empty() {
        put(V2_ATTRIBUTES, &Value::Object(attributes))?;
    }
    put(V2_ARRAY, &document)
}

/// Gives the array at an address, whose description is at `unfinished`, its description
/// where it is looked for: from then on, it is there.
pub(crate) fn publish(unfinished: &Path) -> Result<()> {
    let (from, to) = (
        place::objects(unfinished)?,
        place::objects(chunks_of(unfinished))?,
    );
    let mut document = Vec::new();
    let mut complete = false;
    // What makes it an array comes last.
    for name in [V2_ATTRIBUTES, V2_ARRAY, V3] {
        if from.read(name, super::LONGEST, &mut document)?.is_some() {
            to.write(name, &document)?;
            complete |= name != V2_ATTRIBUTES;
        }
    }
    match complete {
        true => Ok(()),
        false => Err(Error::format(
            chunks_of(unfinished).display(),
            "another program has removed its description while it was made, and perhaps chunks \
             with it; begin anew",
        )),
    }
}

/// Removes what belongs to the description at `unfinished`: that itself, and if its
/// array has never been complete and nobody else makes it, the chunks.
pub(crate) fn discard(unfinished: &Path) -> Result<()> {
    let array = chunks_of(unfinished);
    let described = |objects: &dyn Objects| -> Result<bool> {
        Ok(objects.length(V3)?.is_some() || objects.length(V2_ARRAY)?.is_some())
    };
    if array == unfinished || !described(&*place::objects(unfinished)?)? {
        // Without its description, nothing says whose the chunks are.
        return Ok(());
    }
    let own = unfinished.file_name().unwrap_or_default().to_string_lossy();
    let of_others = |entry: &Entry| {
        super::is_unfinished(&entry.name) && entry.name.trim_end_matches('/') != own
    };
    let listed = place::objects(array)?.list("")?;
    let removed = match super::is_node(array)? || listed.iter().any(of_others) {
        true => unfinished,
        false => array,
    };
    Ok(place::objects(removed)?.remove_all("")?)
}

/// Fails if a Zarr array cannot be as the descriptor says.
pub(crate) fn check(array: &str, descriptor: &ArrayDescriptor, version: u8) -> Result<()> {
    let metadata = metadata(array, descriptor, version)?;
    match version {
        3 => Ok(()),
        _ => v2::write(&metadata)
            .map(drop)
            .map_err(|problem| Error::format(array, problem)),
    }
}

/// Fails if what is at `path` cannot hold the new array `name` of this version: an
/// array, or a group of the other version.
pub(crate) fn check_group(name: &str, path: &Path, version: u8) -> Result<()> {
    let objects = place::objects(path)?;
    let (found, is_array) = match super::read_json(&*objects, V3)? {
        Some(document) => (3, document["node_type"] == "array"),
        None if objects.length(V2_ARRAY)?.is_some() => (2, true),
        None if objects.length(super::V2_GROUP)?.is_some() => (2, false),
        None => return Ok(()),
    };
    let path = path.display();
    Err(Error::format(
        name,
        match found {
            _ if is_array => format!(
                "{path} is an array, and others cannot be made inside of it; take another name"
            ),
            _ if found == version => return Ok(()),
            2 => format!(
                "the group {path} is of Zarr version 2; begin the name of the new array with \
                 'zarr2:'"
            ),
            _ => format!(
                "the group {path} is of Zarr version 3; leave out 'zarr2:' in the name of the new \
                 array"
            ),
        },
    ))
}

/// Makes `path` a group, if nothing is there yet.
pub(crate) fn create_group(path: &Path, version: u8) -> Result<()> {
    if super::is_node(path)? {
        return Ok(());
    }
    let objects = place::objects(path)?;
    write_group(&*objects, "", version, &Map::new())?;
    Ok(objects.sync()?)
}

/// Removes what the group at `path` says of all that is in it: it would not tell of what
/// changes there, and those who read it look no further.
pub(crate) fn forget_consolidated(path: &Path) -> Result<()> {
    let objects = place::objects(path)?;
    objects.remove(V2_CONSOLIDATED)?;
    if let Some(Value::Object(mut group)) = super::read_json(&*objects, V3)?
        && group.remove(CONSOLIDATED).is_some()
    {
        let group = Value::Object(group);
        objects.write(V3, format!("{group:#}").as_bytes())?;
    }
    Ok(())
}

/// Removes the chunks of an unfinished array that a killed program was writing.
pub(crate) fn remove_partial(path: &Path) -> Result<()> {
    match place::is_address(path) {
        true => Ok(()),
        false => Ok(Directory::new(path).remove_unfinished()?),
    }
}

/// Makes these groups below `path`.
pub(crate) fn create_groups(path: &Path, groups: &Groups, version: u8) -> Result<()> {
    let objects = place::objects(path)?;
    for (group, kept) in groups {
        let name = group.rsplit('/').next().unwrap_or_default();
        if !group.is_empty() && !is_name(name) {
            return Err(Error::format(
                path.display(),
                format!("'{name}' cannot be the name of a group of a Zarr container"),
            ));
        }
        write_group(&*objects, group, version, kept)?;
    }
    Ok(objects.sync()?)
}

fn write_group(
    objects: &dyn Objects,
    folder: &str,
    version: u8,
    attributes: &Map<String, Value>,
) -> Result<()> {
    let put = |name: &str, document: &Value| {
        let text = format!("{document:#}");
        objects.write(&super::key(folder, name), text.as_bytes())
    };
    if version == 3 {
        let group = json!({ "zarr_format": 3, "node_type": "group", "attributes": attributes });
        return Ok(put(V3, &group)?);
    }
    if !attributes.is_empty() {
        put(V2_ATTRIBUTES, &Value::Object(attributes.clone()))?;
    }
    Ok(put(super::V2_GROUP, &json!({ "zarr_format": 2 }))?)
}

/// Whether a group or array can be found under this name: others are hidden, or mean
/// something to the format or to the file system.
pub(crate) fn is_name(name: &str) -> bool {
    let begins = !name.is_empty() && !name.starts_with('.') && !name.starts_with("__");
    begins && name != V3 && !name.contains('/') && !name.chars().any(char::is_control)
}

fn metadata(array: &str, descriptor: &ArrayDescriptor, version: u8) -> Result<Metadata> {
    let wrong = |problem: String| Error::format(array, problem);
    let one_place = descriptor.check_in_one_place("a Zarr array");
    one_place.map_err(wrong)?;
    let layout = descriptor.check(array)?;
    let (shape, element_type) = (&descriptor.shape, descriptor.element_type);
    let size = element_type.size();
    let chunk = match &descriptor.arrangement.tile {
        Some(tile) => tile.clone(),
        None => usual_chunk(shape, size, layout.slowest_first()),
    };
    check_chunk(&chunk, shape, "chunk").map_err(wrong)?;
    if let Some(shard) = &descriptor.shard {
        check_chunk(shard, shape, "shard").map_err(wrong)?;
        if shard
            .iter()
            .zip(&chunk)
            .any(|(shard, chunk)| shard % chunk != 0)
        {
            return Err(wrong(
                "the extents of a shard must be multiples of the chunk's".into(),
            ));
        }
    }
    if descriptor.codecs.steps().contains(&Codec::Lzf) {
        return Err(wrong(
            "Zarr has no codec 'lzf'; take lz4, or convert the codecs (in_zarr2, in_zarr3)".into(),
        ));
    }
    let value = descriptor.fill_value.clone();
    let fill = fill::bytes(
        value.as_ref().unwrap_or(&Value::Null),
        element_type,
        descriptor.byte_order,
    );
    Ok(Metadata {
        shape: shape.clone(),
        element_type,
        object: descriptor.shard.clone().unwrap_or_else(|| chunk.clone()),
        keys: Keys {
            prefix: version == 3,
            separator: if version == 3 { '/' } else { '.' },
        },
        encoding: Encoding {
            byte_order: descriptor.byte_order,
            slowest_first: layout.slowest_first().to_vec(),
            codecs: descriptor.codecs.for_elements(size as usize),
        },
        shard: descriptor.shard.as_ref().map(|_| Shard {
            chunk,
            index_at_end: true,
            index_checked: true,
        }),
        fill: fill.map_err(wrong)?,
        fill_value: value,
        axis_names: descriptor.axis_names.clone(),
        attributes: descriptor.attributes.clone(),
    })
}

/// A chunk of about the usual size: the array halved along its longest axis until it
/// fits, the slowest first.
pub(crate) fn usual_chunk(shape: &[u64], size: u64, slowest_first: &[usize]) -> Vec<u64> {
    let mut chunk: Vec<u64> = shape.iter().map(|extent| (*extent).max(1)).collect();
    let bytes = |chunk: &[u64]| chunk.iter().fold(size, |all, n| all.saturating_mul(*n));
    while bytes(&chunk) > USUAL_CHUNK {
        let longest = slowest_first.iter().rev().max_by_key(|axis| chunk[**axis]);
        match longest {
            Some(axis) if chunk[*axis] > 1 => chunk[*axis] = chunk[*axis].div_ceil(2),
            _ => break,
        }
    }
    chunk
}
