//! [`Metadata`]: what both versions say of an array.

use outcore_geometry::{Arrangement, Order};
use outcore_storage::Access;
use serde_json::{Map, Value};

use crate::codec::Codecs;
use crate::descriptor::ArrayDescriptor;
use crate::element::{ByteOrder, ElementType};

/// What a description says.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Metadata {
    pub(super) shape: Vec<u64>,
    pub(super) element_type: ElementType,
    /// The shape of what is stored as one object: a chunk, or a shard.
    pub(super) object: Vec<u64>,
    pub(super) keys: Keys,
    /// How an object is encoded, or a chunk of a shard.
    pub(super) encoding: Encoding,
    pub(super) shard: Option<Shard>,
    /// What elements hold that nobody has written, as it stands in the file.
    pub(super) fill: Vec<u8>,
    pub(super) fill_value: Option<Value>,
    pub(super) axis_names: Option<Vec<String>>,
    pub(super) attributes: Map<String, Value>,
}

/// How the elements of a chunk become bytes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Encoding {
    pub(super) byte_order: ByteOrder,
    /// The axes of a chunk from the slowest to the fastest.
    pub(super) slowest_first: Vec<usize>,
    pub(super) codecs: Codecs,
}

/// How chunks lie in a shard.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Shard {
    /// The shape of a chunk.
    pub(super) chunk: Vec<u64>,
    pub(super) index_at_end: bool,
    /// Whether a CRC32C follows the index.
    pub(super) index_checked: bool,
}

/// How objects are named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Keys {
    /// Whether names begin with `c`.
    pub(super) prefix: bool,
    pub(super) separator: char,
}

impl Keys {
    /// The name of the object at these places of the grid.
    pub(super) fn name(&self, place: &[u64]) -> String {
        let mut name = String::with_capacity(8 * place.len() + 2);
        if self.prefix {
            name.push('c');
        } else if place.is_empty() {
            name.push('0');
        }
        for (axis, at) in place.iter().enumerate() {
            if axis > 0 || self.prefix {
                name.push(self.separator);
            }
            name.push_str(&at.to_string());
        }
        name
    }
}

impl Metadata {
    /// The shape of the chunks that this access moves: of a shard only all of it can
    /// be written.
    pub(super) fn chunk(&self, access: Access) -> &[u64] {
        match (&self.shard, access) {
            (Some(shard), Access::ReadOnly) => &shard.chunk,
            _ => &self.object,
        }
    }

    pub(super) fn descriptor(&self, access: Access) -> ArrayDescriptor {
        let tile = match self.shape.is_empty() {
            true => None,
            false => Some(self.chunk(access).to_vec()),
        };
        let mut descriptor = ArrayDescriptor::new(&self.shape, self.element_type)
            .layout(Arrangement {
                order: Order::from_slowest_first(&self.encoding.slowest_first),
                tile,
            })
            .byte_order(self.encoding.byte_order)
            .codecs(self.encoding.codecs.clone());
        descriptor.shard = self.shard.as_ref().map(|_| self.object.clone());
        descriptor.fill_value = self.fill_value.clone();
        descriptor.axis_names = self.axis_names.clone();
        descriptor.attributes = self.attributes.clone();
        descriptor
    }
}

/// The field `name` of an object.
pub(super) fn field<'a>(value: &'a Value, name: &str) -> Result<&'a Value, String> {
    value
        .get(name)
        .ok_or_else(|| format!("'{name}' is missing"))
}

/// A list of extents.
pub(super) fn extents(value: &Value, name: &str) -> Result<Vec<u64>, String> {
    let list = field(value, name)?.as_array();
    let list = list.ok_or_else(|| format!("'{name}' is not a list"))?;
    let extents = list.iter().map(|extent| {
        extent
            .as_u64()
            .ok_or_else(|| format!("'{name}' holds {extent}, which is no whole number from 0 on"))
    });
    extents.collect()
}

/// The extents of the objects of an array; where the array has none, it takes no
/// chunk, whose extent others write as 0.
pub(super) fn object_extents(value: &Value, name: &str, shape: &[u64]) -> Result<Vec<u64>, String> {
    let mut object = extents(value, name)?;
    for (extent, whole) in object.iter_mut().zip(shape) {
        if *whole == 0 {
            *extent = (*extent).max(1);
        }
    }
    check_chunk(&object, shape, "chunk")?;
    Ok(object)
}

/// The names of the axes, if they are as many; `""` is the name of one without.
pub(super) fn axis_names(value: Option<&Value>, axes: usize) -> Option<Vec<String>> {
    let names = value?.as_array().filter(|names| names.len() == axes)?;
    let name = |name: &Value| match name {
        Value::Null => Some(String::new()),
        name => name.as_str().map(str::to_owned),
    };
    let names: Vec<String> = names.iter().map(name).collect::<Option<_>>()?;
    names.iter().any(|name| !name.is_empty()).then_some(names)
}

/// A field that is text.
pub(super) fn text<'a>(value: &'a Value, name: &str) -> Result<&'a str, String> {
    let text = field(value, name)?.as_str();
    text.ok_or_else(|| format!("'{name}' is not text"))
}

/// The extents of a chunk, which has as many axes as the array, none of them empty.
pub(super) fn check_chunk(chunk: &[u64], shape: &[u64], what: &str) -> Result<(), String> {
    if chunk.len() != shape.len() {
        return Err(format!(
            "a {what} has {} axes, but the array has {}",
            chunk.len(),
            shape.len()
        ));
    }
    match chunk.contains(&0) {
        true => Err(format!("a {what} has an extent of 0")),
        false => Ok(()),
    }
}
