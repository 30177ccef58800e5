//! Attributes of datasets and groups, as values that a descriptor holds.
//!
//! Numbers, booleans and texts, alone or in lists of any depth. What has no
//! such form (records, references) is left out, and so is what libraries keep
//! for themselves.

use serde_json::{Map, Value};

use super::dataspace::Dataspace;
use super::datatype::{Class, Datatype};
use super::fractal_heap::FractalHeap;
use super::global_heap;
use super::object_header::{ObjectHeader, kind, shared};
use super::second_tree;
use super::source::Source;
use crate::format::fields::{Fields, Parsed, Problem, text_of};
use crate::format::value::{nested, number};

/// Attributes with more values are left out; extents of 0 count as 1, since lists are as
/// deep as there are axes even if nothing is in them.
const MOST_VALUES: u64 = 1 << 16;

/// Attributes whose texts have more bytes together are left out.
const MOST_TEXT: usize = 64 << 20;

/// Records of attributes in a B-tree, by name.
const NAME_RECORDS: &[u8] = &[8];

/// What the libraries keep for themselves: dimension scales and NetCDF-4.
const HIDDEN: [&str; 9] = [
    "CLASS",
    "NAME",
    "DIMENSION_LIST",
    "REFERENCE_LIST",
    "DIMENSION_LABELS",
    "_Netcdf4Dimid",
    "_Netcdf4Coordinates",
    "_nc3_strict",
    "_NCProperties",
];

/// An attribute as it is in the file.
#[derive(Debug)]
pub(crate) struct Attribute {
    pub(crate) name: String,
    pub(crate) datatype: Datatype,
    pub(crate) space: Dataspace,
    pub(crate) data: Vec<u8>,
}

/// The attributes of an object, as far as they can be shown.
pub(crate) fn values(source: &Source, header: &ObjectHeader) -> Parsed<Map<String, Value>> {
    let mut values = Map::new();
    for attribute in all(source, header)? {
        if HIDDEN.contains(&attribute.name.as_str()) {
            continue;
        }
        match attribute.value(source) {
            Ok(Some(value)) => {
                values.insert(attribute.name, value);
            }
            Ok(None) | Err(Problem::Text(_)) => {}
            Err(problem) => return Err(problem),
        }
    }
    Ok(values)
}

/// All attributes of an object; those that cannot be understood are left out.
pub(crate) fn all(source: &Source, header: &ObjectHeader) -> Parsed<Vec<Attribute>> {
    let mut attributes = Vec::new();
    let mut add = |data: &[u8]| match parse(source, data) {
        Ok(attribute) => {
            attributes.push(attribute);
            Ok(())
        }
        Err(Problem::Text(_)) => Ok(()),
        Err(problem) => Err(problem),
    };
    for message in header.all(kind::ATTRIBUTE) {
        match message.shared {
            true => {
                let data = shared(source, &message.data, kind::ATTRIBUTE);
                data.and_then(|data| add(&data)).or_else(left_out)?;
            }
            false => add(&message.data)?,
        }
    }
    if let Some(data) = header.find(source, kind::ATTRIBUTE_INFO)?
        && let Some((heap, tree)) = elsewhere(source, &data)?
    {
        let heap = FractalHeap::read(source, heap)?;
        second_tree::walk(source, tree, NAME_RECORDS, &mut |found| {
            let record = found.bytes;
            let mut fields = Fields::little("a record of an attribute", record);
            let object = heap.object(fields.bytes(heap.id_len())?);
            object.and_then(|data| add(&data)).or_else(left_out)
        })?;
    }
    Ok(attributes)
}

/// Whether an object has attributes, of whatever form.
pub(crate) fn is_any(source: &Source, header: &ObjectHeader) -> Parsed<bool> {
    if header.has(kind::ATTRIBUTE) {
        return Ok(true);
    }
    let Some(data) = header.find(source, kind::ATTRIBUTE_INFO)? else {
        return Ok(false);
    };
    Ok(elsewhere(source, &data)?.is_some())
}

/// The addresses of the heap and of the tree of attributes that are not in the header.
fn elsewhere(source: &Source, info: &[u8]) -> Parsed<Option<(u64, u64)>> {
    let mut fields = Fields::little("an attribute info message", info);
    fields.version(0)?;
    let flags = fields.u8()?;
    fields.skip(if flags & 1 != 0 { 2 } else { 0 })?;
    let (heap, tree) = (source.address(&mut fields)?, source.address(&mut fields)?);
    Ok(heap.zip(tree))
}

/// What is not understood is left out; what cannot be read is an error.
fn left_out(problem: Problem) -> Parsed<()> {
    match problem {
        Problem::Text(_) => Ok(()),
        problem => Err(problem),
    }
}

fn parse(source: &Source, data: &[u8]) -> Parsed<Attribute> {
    let mut fields = Fields::little("an attribute", data);
    let version = fields.u8()?;
    let flags = fields.u8()?;
    if !matches!(version, 1..=3) {
        return Err(format!("attribute version {version} is not known").into());
    }
    let sizes = [fields.u16()?, fields.u16()?, fields.u16()?];
    fields.skip(if version == 3 { 1 } else { 0 })?;
    let mut part = |size: u16| {
        let size = usize::from(size);
        let taken = match version {
            1 => size.next_multiple_of(8),
            _ => size,
        };
        fields.bytes(taken).map(|bytes| &bytes[..size])
    };
    let (name, datatype, space) = (part(sizes[0])?, part(sizes[1])?, part(sizes[2])?);
    let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
    let datatype = match version > 1 && flags & 1 != 0 {
        true => Datatype::parse(source, &shared(source, datatype, kind::DATATYPE)?)?,
        false => Datatype::parse(source, datatype)?,
    };
    if version > 1 && flags & 2 != 0 {
        return Err("shared dataspaces are not supported".into());
    }
    Ok(Attribute {
        name: text_of(name),
        datatype,
        space: Dataspace::parse(source, space)?,
        data: fields.rest().to_vec(),
    })
}

impl Attribute {
    /// The value; `None` if it has no form.
    pub(crate) fn value(&self, source: &Source) -> Parsed<Option<Value>> {
        if self.space.null {
            return Ok(Some(Value::Null));
        }
        let extents = self.space.shape.iter();
        let lists = extents.fold(1u64, |all, extent| all.saturating_mul((*extent).max(1)));
        if lists > MOST_VALUES {
            return Ok(None);
        }
        let count = self.space.count()?;
        let mut text = 0;
        let mut fields = Fields::little("an attribute", &self.data);
        let mut values = Vec::new();
        for _ in 0..count {
            let bytes = fields.stated(self.datatype.size)?;
            match one(source, &self.datatype, bytes)? {
                Some(value) => {
                    text += value.as_str().map_or(0, str::len);
                    values.push(value);
                }
                None => return Ok(None),
            }
            if text > MOST_TEXT {
                return Ok(None);
            }
        }
        // NetCDF-4 writes single values as lists of one.
        let shape = match (&self.datatype.class, &self.space.shape[..]) {
            (Class::Number(..) | Class::TextElsewhere, [1]) => &[],
            (_, shape) => shape,
        };
        Ok(Some(nested(shape, &mut values.into_iter())))
    }
}

/// One value; `None` if it has no form.
fn one(source: &Source, datatype: &Datatype, bytes: &[u8]) -> Parsed<Option<Value>> {
    Ok(Some(match &datatype.class {
        Class::Number(element, order) => number(*element, *order, bytes),
        Class::Text { spaces } => {
            let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
            let text = text_of(text);
            match spaces {
                true => text.trim_end_matches(' ').into(),
                false => text.into(),
            }
        }
        Class::TextElsewhere => {
            let mut fields = Fields::little("a text", bytes);
            match fields.u32()? {
                0 => "".into(),
                len => {
                    let text = global_heap::object(source, &mut fields)?;
                    let text = &text[..text.len().min(len as usize)];
                    text_of(text.split(|byte| *byte == 0).next().unwrap_or_default()).into()
                }
            }
        }
        _ => return Ok(None),
    }))
}
