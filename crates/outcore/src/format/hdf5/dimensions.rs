//! The names of the axes of a dataset: labels of its own (`DIMENSION_LABELS`), or the
//! names of the dimension scales that belong to it (`DIMENSION_LIST`), which is what
//! NetCDF-4 has. New datasets get labels.

use serde_json::Value;

use super::attribute::{self, Attribute};
use super::datatype::Class;
use super::global_heap;
use super::object_header::ObjectHeader;
use super::superblock::File;
use super::tree;
use crate::format::fields::{Fields, Parsed, Problem};

const LABELS: &str = "DIMENSION_LABELS";
const SCALES: &str = "DIMENSION_LIST";
const NAME: &str = "NAME";
const CLASS: &str = "CLASS";

/// The class of dimension scales.
const SCALE: &str = "DIMENSION_SCALE";

/// What NetCDF-4 writes instead of a name if no variable has the dimension's.
const NAMELESS: &str = "This is a netCDF dimension";

/// Collections of texts have so many bytes at least.
const LEAST_COLLECTION: usize = 4096;

/// The names of the axes, if all have one; what cannot be understood has none.
pub(crate) fn names(
    file: &File,
    header: &ObjectHeader,
    axes: usize,
) -> Parsed<Option<Vec<String>>> {
    let found = find(file, header, axes);
    match found {
        Err(Problem::Text(_)) => Ok(None),
        found => found,
    }
}

fn find(file: &File, header: &ObjectHeader, axes: usize) -> Parsed<Option<Vec<String>>> {
    let attributes = attribute::all(&file.source, header)?;
    let named = |name: &str| attributes.iter().find(|attribute| attribute.name == name);
    let complete = |names: Vec<String>| {
        let all = axes > 0 && names.len() == axes && names.iter().all(|name| !name.is_empty());
        all.then_some(names)
    };
    if let Some(labels) = named(LABELS)
        && let Some(Value::Array(labels)) = labels.value(&file.source)?
    {
        let texts = labels
            .iter()
            .map(|label| label.as_str().unwrap_or_default());
        if let Some(names) = complete(texts.map(str::to_owned).collect()) {
            return Ok(Some(names));
        }
    }
    let Some(scales) = named(SCALES) else {
        return Ok(None);
    };
    let mut names = Vec::new();
    for scale in first_scales(file, scales, axes)? {
        names.push(scale_name(file, scale)?);
    }
    Ok(complete(names))
}

/// The address of the first scale of each axis.
fn first_scales(file: &File, scales: &Attribute, axes: usize) -> Parsed<Vec<u64>> {
    let source = &file.source;
    let known = matches!(&scales.datatype.class, Class::ListElsewhere(base)
        if base.class == Class::ObjectReference);
    if !known || scales.space.count()? != axes as u64 {
        return Err("scales in a form that is not known".into());
    }
    let mut fields = Fields::little("a list of scales", &scales.data);
    let mut first = Vec::new();
    for _ in 0..axes {
        let mut entry = Fields::little("a list of scales", fields.stated(scales.datatype.size)?);
        if entry.u32()? == 0 {
            return Err("an axis has no scale".into());
        }
        let references = global_heap::object(source, &mut entry)?;
        first.push(source.defined(&mut Fields::little("a reference", &references))?);
    }
    Ok(first)
}

fn scale_name(file: &File, address: u64) -> Parsed<String> {
    if let Some(name) = text(file, address, NAME)?
        && !name.is_empty()
        && !name.starts_with(NAMELESS)
    {
        return Ok(name);
    }
    // It has the name under which it is found.
    let paths = tree::paths(file)?;
    let path = paths.get(&address).map_or("", String::as_str);
    Ok(path.rsplit('/').next().unwrap_or_default().into())
}

/// Whether the dataset at an address is a dimension scale: the coordinates of an axis.
pub(super) fn is_scale(file: &File, address: u64) -> Parsed<bool> {
    Ok(text(file, address, CLASS)?.is_some_and(|class| class == SCALE))
}

/// Whether it is one without coordinates: a dimension of NetCDF-4 and nothing else.
pub(super) fn is_only_dimension(file: &File, address: u64) -> Parsed<bool> {
    Ok(text(file, address, NAME)?.is_some_and(|name| name.starts_with(NAMELESS)))
}

/// An attribute that is a text.
fn text(file: &File, address: u64, name: &str) -> Parsed<Option<String>> {
    let header = ObjectHeader::read(&file.source, address)?;
    let attributes = attribute::all(&file.source, &header)?;
    let found = attributes.iter().find(|attribute| attribute.name == name);
    Ok(match found {
        Some(attribute) => match attribute.value(&file.source)? {
            Some(Value::String(text)) => Some(text),
            _ => None,
        },
        None => None,
    })
}

/// The attribute of labels as its parts: name, type, data; texts are in the collection
/// at `heap`.
pub(super) fn labels(
    names: &[String],
    heap: u64,
    byte: Vec<u8>,
) -> (&'static str, Vec<u8>, Vec<u8>) {
    // Texts of variable length in UTF-8, of bytes.
    let mut datatype = vec![0x19, 0x01, 0x01, 0x00];
    datatype.extend(16u32.to_le_bytes());
    datatype.extend(byte);
    let mut data = Vec::new();
    for (name, index) in names.iter().zip(1u32..) {
        data.extend((name.len() as u32).to_le_bytes());
        data.extend(heap.to_le_bytes());
        data.extend(index.to_le_bytes());
    }
    (LABELS, datatype, data)
}

/// The collection of the texts of labels.
pub(super) fn collection(names: &[String]) -> Vec<u8> {
    let mut objects = Vec::new();
    for (name, index) in names.iter().zip(1u16..) {
        objects.extend(index.to_le_bytes());
        objects.extend([1, 0, 0, 0, 0, 0]);
        objects.extend((name.len() as u64).to_le_bytes());
        objects.extend(name.as_bytes());
        objects.resize(objects.len().next_multiple_of(8), 0);
    }
    // The head, the objects, and what is free, which counts its own head.
    let size = (16 + objects.len() + 16).max(LEAST_COLLECTION);
    let mut collection = b"GCOL\x01\0\0\0".to_vec();
    collection.extend((size as u64).to_le_bytes());
    collection.extend(objects);
    let free = size - collection.len();
    collection.extend([0; 8]);
    collection.extend((free as u64).to_le_bytes());
    collection.resize(size, 0);
    collection
}
