//! New classic NetCDF files with one variable.
//!
//! CDF-2, which most programs read, unless a type, an extent or a long number
//! among the attributes needs CDF-5. The header is made in memory; data begin at
//! a multiple of a page and are zeros until they are written, so ranks write
//! them like those of any other file. An extent of 0 is how the format marks the
//! unlimited dimension, so only the first axis may have none.

use std::path::Path;

use outcore_geometry::Arrangement;
use outcore_storage::{FileStore, Store};

use super::attribute::{self, LONGEST_NAME};
use super::header::Attribute;
use super::kind::Kind;
use super::plain;
use crate::descriptor::ArrayDescriptor;
use crate::draft::file_end;
use crate::error::{Error, Result};

/// Data begin at a multiple of this.
const PAGE: usize = 4096;

/// Creates the file with the variable `inner` and room for its data, which are
/// big-endian whatever the descriptor says; `array` names it in messages.
pub(crate) fn create(
    array: &str,
    path: &Path,
    inner: &str,
    descriptor: &ArrayDescriptor,
) -> Result<()> {
    let bytes = descriptor.check(array)?.byte_len();
    let wrong = |problem: String| Error::format(array, problem);
    let name = plain(inner);
    if !is_name(name) {
        return Err(wrong(format!(
            "'{name}' cannot be the name of a NetCDF variable; classic files have no groups, and \
             names begin with a letter, a digit or _, as in file.nc:temperature"
        )));
    }
    let Some(kind) = Kind::of_element(descriptor.element_type) else {
        return Err(wrong(format!(
            "NetCDF has no type for {}, only i8 to i64, u8 to u64, f32 and f64; use a name \
             ending in .h5, .zarr or .oc",
            descriptor.element_type
        )));
    };
    if descriptor.arrangement != Arrangement::default() {
        return Err(wrong(format!(
            "a NetCDF file holds row order, not {}",
            descriptor.arrangement
        )));
    }
    if !descriptor.codecs.is_empty() || descriptor.shard.is_some() {
        return Err(wrong(
            "a NetCDF file has neither codecs nor shards; use a name ending in .zarr".into(),
        ));
    }
    let one_place = descriptor.check_in_one_place("a NetCDF file");
    one_place.map_err(wrong)?;
    if descriptor.shape.iter().skip(1).any(|extent| *extent == 0) {
        return Err(wrong(
            "only the first axis of a NetCDF variable may have no elements; use a name ending \
             in .oc or .npy"
                .into(),
        ));
    }
    if descriptor.shape.len() > super::header::MOST_AXES {
        return Err(wrong(format!(
            "a NetCDF variable has at most {} axes",
            super::header::MOST_AXES
        )));
    }
    let parts = Parts {
        name,
        kind,
        dimensions: dimensions(descriptor),
        shape: &descriptor.shape,
        attributes: descriptor
            .attributes
            .iter()
            .map(|(name, value)| attribute::of_value(name, value, kind))
            .collect::<std::result::Result<_, String>>()
            .map_err(wrong)?,
        bytes,
    };
    // The length of the header does not depend on the offset in it.
    let len = parts.header(0).len();
    let start = len.next_multiple_of(PAGE) as u64;
    // The library expects variables to end at a multiple of four.
    let end = file_end(array, start, bytes.saturating_add((4 - bytes % 4) % 4))?;
    let store = FileStore::create(path)?;
    store.write_at(0, &parts.header(start))?;
    Ok(store.set_len(end)?)
}

/// What the header of a new file says.
struct Parts<'a> {
    name: &'a str,
    kind: Kind,
    /// One for each axis.
    dimensions: Vec<String>,
    shape: &'a [u64],
    attributes: Vec<Attribute>,
    bytes: u64,
}

impl Parts<'_> {
    fn version(&self) -> u8 {
        let old = self.kind.is_old()
            && self
                .attributes
                .iter()
                .all(|attribute| attribute.kind.is_old())
            && self.shape.iter().all(|extent| *extent <= i32::MAX as u64);
        if old { 2 } else { 5 }
    }

    /// The header, for data that begin at `start`.
    fn header(&self, start: u64) -> Vec<u8> {
        let version = self.version();
        let mut out = Writer {
            bytes: vec![b'C', b'D', b'F', version],
            wide: version == 5,
        };
        // No records, whether there is an unlimited dimension or not.
        out.count(0);
        // Axes of one name are one dimension.
        let mut names: Vec<&String> = Vec::new();
        let mut extents = Vec::new();
        let mut numbers = Vec::new();
        for (name, extent) in self.dimensions.iter().zip(self.shape) {
            let known = names.iter().position(|known| *known == name);
            numbers.push(known.unwrap_or(names.len()));
            if known.is_none() {
                names.push(name);
                extents.push(*extent);
            }
        }
        out.tag(10, names.len());
        for (name, extent) in names.iter().zip(extents) {
            out.name(name);
            out.count(extent);
        }
        out.tag(12, 0);
        out.tag(11, 1);
        out.name(self.name);
        out.count(numbers.len() as u64);
        numbers.iter().for_each(|number| out.count(*number as u64));
        out.tag(12, self.attributes.len());
        for attribute in &self.attributes {
            out.name(&attribute.name);
            out.word(attribute.kind.number());
            out.count(attribute.count);
            out.padded(&attribute.bytes);
        }
        out.word(self.kind.number());
        // A record of an array without records would be this long.
        let fixed = self.shape.iter().filter(|extent| **extent > 0);
        let slab = match self.bytes {
            0 => fixed.fold(self.kind.element().size(), |all, n| all.saturating_mul(*n)),
            bytes => bytes,
        };
        let padded = slab.saturating_add((4 - slab % 4) % 4);
        out.count(match out.wide {
            true => padded,
            false => padded.min(u32::MAX.into()),
        });
        out.bytes.extend(start.to_be_bytes());
        out.bytes
    }
}

struct Writer {
    bytes: Vec<u8>,
    /// Whether counts have 8 bytes.
    wide: bool,
}

impl Writer {
    fn word(&mut self, word: u32) {
        self.bytes.extend(word.to_be_bytes());
    }

    /// A number that the version has room for.
    fn count(&mut self, count: u64) {
        match self.wide {
            true => self.bytes.extend(count.to_be_bytes()),
            false => self.word(count as u32),
        }
    }

    /// The beginning of a list.
    fn tag(&mut self, tag: u32, count: usize) {
        self.word(if count == 0 { 0 } else { tag });
        self.count(count as u64);
    }

    fn padded(&mut self, bytes: &[u8]) {
        self.bytes.extend(bytes);
        self.bytes.resize(self.bytes.len().next_multiple_of(4), 0);
    }

    fn name(&mut self, name: &str) {
        self.count(name.len() as u64);
        self.padded(name.as_bytes());
    }
}

/// The names of the dimensions: those of the axes as far as they can be used, or
/// else invented.
fn dimensions(descriptor: &ArrayDescriptor) -> Vec<String> {
    let shape = &descriptor.shape;
    let given = |axis: usize| {
        let name = descriptor.axis_names.as_ref()?.get(axis)?;
        is_name(name).then(|| name.clone())
    };
    let mut names: Vec<String> = Vec::new();
    for axis in 0..shape.len() {
        // One name for two axes of different extents does not work.
        let fits = |name: &String| {
            let before = names.iter().position(|known| known == name);
            before.is_none_or(|before| shape[before] == shape[axis])
        };
        let name = given(axis).filter(fits);
        names.push(name.unwrap_or_else(|| invented(axis, &names)));
    }
    names
}

/// A name for an axis that no axis before it has.
fn invented(axis: usize, before: &[String]) -> String {
    let mut name = format!("axis{axis}");
    while before.contains(&name) {
        name.push('_');
    }
    name
}

/// Whether the NetCDF library takes it for a name.
fn is_name(name: &str) -> bool {
    let first = name.chars().next();
    let begins = first
        .is_some_and(|first| first.is_ascii_alphanumeric() || first == '_' || !first.is_ascii());
    let allowed = |char: char| !char.is_control() && char != '/';
    begins && name.len() <= LONGEST_NAME && name.chars().all(allowed) && !name.ends_with(' ')
}
