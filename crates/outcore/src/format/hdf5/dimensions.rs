//! The names of the axes of a dataset: labels of its own (`DIMENSION_LABELS`), or the
//! names of the dimension scales that belong to it (`DIMENSION_LIST`), which is what
//! NetCDF-4 has. New datasets get labels; those of NetCDF-4 files get scales.

use serde_json::Value;

use super::attribute::{self, Attribute};
use super::dataspace::Dataspace;
use super::datatype::Class;
use super::global_heap;
use super::messages::{UNDEFINED, attribute_message, dataspace, datatype};
use super::new_header::NewHeader;
use super::object_header::{ObjectHeader, kind};
use super::superblock::File;
use super::tree;
use crate::element::{ByteOrder, ElementType};
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

/// Where the first reference stands in a collection, and how far the next is from one.
pub(super) const FIRST_REFERENCE: u64 = 32;
pub(super) const REFERENCE_STEP: u64 = 24;

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
        // A scale is the coordinates of an axis of its own name.
        return Ok(match axes == 1 && is_scale(file, header.address)? {
            true => complete(vec![scale_name(file, header.address)?]),
            false => None,
        });
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

/// Whether a name in a group leads to the scale of an axis of this extent.
pub(super) fn is_scale_of(file: &File, address: u64, extent: u64) -> Parsed<bool> {
    let header = ObjectHeader::read(&file.source, address)?;
    let shape = match header.find(&file.source, kind::DATASPACE)? {
        Some(space) => Dataspace::parse(&file.source, &space)?.shape,
        None => return Ok(false),
    };
    Ok(shape == [extent] && is_scale(file, address)?)
}

/// How a new dataset tells the names of its axes.
#[derive(Debug)]
pub(super) enum AxisNames {
    /// Not at all.
    None,
    /// By labels of its own.
    Labels(Vec<String>),
    /// By dimension scales at these addresses.
    Scales(Vec<u64>),
    /// By its own name: it is the scale of its only axis.
    Own(String),
}

impl AxisNames {
    /// Labels for the axes, if these have names.
    pub(super) fn labels(names: Option<&Vec<String>>) -> Self {
        names.map_or(Self::None, |names| Self::Labels(names.clone()))
    }

    /// The collection of the values of variable length that attributes lead to; `None`:
    /// there are none.
    pub(super) fn collection(&self) -> Option<Vec<u8>> {
        match self {
            Self::None | Self::Own(_) => None,
            Self::Labels(names) => Some(collection(names.iter().map(|name| name.as_bytes()))),
            Self::Scales(scales) => {
                let references = scales.iter().map(|address| address.to_le_bytes());
                Some(collection(references))
            }
        }
    }

    /// The messages of the attributes; their collection is at `heap`.
    pub(super) fn attributes(&self, heap: u64) -> Vec<Vec<u8>> {
        match self {
            Self::None => Vec::new(),
            Self::Labels(names) => {
                // Texts in UTF-8, of bytes.
                let byte = datatype(ElementType::U8, ByteOrder::Little);
                let kind = [&[0x19, 0x01, 0x01, 0x00, 16, 0, 0, 0][..], &byte].concat();
                let lengths = names.iter().map(|name| name.len() as u32);
                vec![lists(LABELS, &kind, lengths, heap)]
            }
            Self::Scales(scales) => {
                // Lists of references to objects.
                let reference = [0x17, 0, 0, 0, 8, 0, 0, 0];
                let kind = [&[0x19, 0x00, 0x00, 0x00, 16, 0, 0, 0][..], &reference].concat();
                vec![lists(SCALES, &kind, scales.iter().map(|_| 1), heap)]
            }
            Self::Own(name) => scale_attributes(name),
        }
    }
}

/// The header of a scale without coordinates, as NetCDF-4 makes one of a dimension that no
/// variable has the name of.
pub(super) fn only_dimension(extent: u64) -> Result<Vec<u8>, String> {
    let mut header = NewHeader::new();
    header.add(kind::DATASPACE, &dataspace(&[extent]))?;
    header.add(kind::DATATYPE, &datatype(ElementType::F32, ByteOrder::Big))?;
    // Room is made when somebody writes, and nobody does.
    header.add(kind::FILL_VALUE, &[3, 0x0a])?;
    let mut layout = vec![3, 1];
    layout.extend(UNDEFINED);
    layout.extend(extent.saturating_mul(4).to_le_bytes());
    header.add(kind::LAYOUT, &layout)?;
    let name = format!("{NAMELESS} but not a netCDF variable.{extent:10}");
    for attribute in scale_attributes(&name) {
        header.add(kind::ATTRIBUTE, &attribute)?;
    }
    Ok(header.finish())
}

/// What makes a dataset a scale. The library wants texts that end with a zero.
fn scale_attributes(name: &str) -> Vec<Vec<u8>> {
    let text = |key: &str, text: &str| {
        let data = [text.as_bytes(), &[0]].concat();
        let mut kind = vec![0x13, 0, 0, 0];
        kind.extend((data.len() as u32).to_le_bytes());
        attribute_message(key, &kind, &dataspace(&[]), &data)
    };
    vec![text(CLASS, SCALE), text(NAME, name)]
}

/// An attribute of lists that are in the collection at `heap`, one after another.
fn lists(name: &str, kind: &[u8], lengths: impl Iterator<Item = u32>, heap: u64) -> Vec<u8> {
    let (mut data, mut count) = (Vec::new(), 0u32);
    for length in lengths {
        count += 1;
        data.extend(length.to_le_bytes());
        data.extend(heap.to_le_bytes());
        data.extend(count.to_le_bytes());
    }
    attribute_message(name, kind, &dataspace(&[count.into()]), &data)
}

/// A collection of values of variable length.
fn collection(values: impl Iterator<Item: AsRef<[u8]>>) -> Vec<u8> {
    let mut objects = Vec::new();
    for (value, index) in values.zip(1u16..) {
        let value = value.as_ref();
        objects.extend(index.to_le_bytes());
        objects.extend([1, 0, 0, 0, 0, 0]);
        objects.extend((value.len() as u64).to_le_bytes());
        objects.extend(value);
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
