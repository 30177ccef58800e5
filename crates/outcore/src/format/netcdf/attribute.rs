//! Attributes of classic NetCDF files as JSON, and back.
//!
//! Texts are texts, one number is a number, several are a list. A list of texts
//! and whatever else the format has no form for is stored as its JSON text. What
//! the NetCDF library would not open is refused: names that it does not take, and
//! a `_FillValue` that is not one number of its variable's type.

use serde_json::{Map, Value};

use super::header::Attribute;
use super::kind::Kind;
use crate::element::ByteOrder;
use crate::format::fields::{shown, text_of};
use crate::format::value::{self, Items, Plain};
use crate::format::zarr::fill_bytes;

/// The longest name that the NetCDF library reads.
pub(super) const LONGEST_NAME: usize = 256;

/// What stands where nobody has written.
const FILL_VALUE: &str = "_FillValue";

/// What may still be made of a header, so that one of some megabytes does not
/// become gigabytes: variables may share long names, and numbers are larger as
/// JSON.
#[derive(Debug)]
pub(super) struct Room {
    /// Numbers in attributes; of others it is only said how many there are.
    numbers: u64,
    /// Bytes of the names of axes; others have none.
    letters: u64,
}

impl Room {
    pub(super) fn new() -> Self {
        Self {
            numbers: 1 << 20,
            letters: 64 << 20,
        }
    }

    /// These names, if there is room for them.
    pub(super) fn names<'a>(
        &mut self,
        names: impl Iterator<Item = &'a String> + Clone,
    ) -> Option<Vec<String>> {
        let letters = names.clone().map(|name| name.len() as u64).sum::<u64>();
        self.letters = self.letters.checked_sub(letters)?;
        Some(names.cloned().collect())
    }
}

/// What has the type of its variable if it can.
const OF_THE_TYPE: [&str; 4] = ["missing_value", "valid_min", "valid_max", "valid_range"];

/// Attributes as values: of a variable of this type, or of the file.
pub(super) fn values(
    attributes: &[Attribute],
    of: Option<Kind>,
    room: &mut Room,
) -> Map<String, Value> {
    let mut value = |attribute: &Attribute| {
        // The elements of a text are numbers here, and so is what stands for missing ones.
        let element_of_text = of == Some(Kind::Char) && attribute.name == FILL_VALUE;
        if attribute.kind == Kind::Char && !(element_of_text && attribute.count == 1) {
            return text_of(&attribute.bytes).trim_end_matches('\0').into();
        }
        if attribute.count > room.numbers {
            return format!("({} numbers)", attribute.count).into();
        }
        room.numbers -= attribute.count;
        let element = attribute.kind.element();
        let number = |bytes: &[u8]| value::number(element, ByteOrder::Big, bytes);
        let mut numbers = attribute.bytes.chunks(element.size() as usize).map(number);
        match attribute.count {
            1 => numbers.next().unwrap_or(Value::Null),
            _ => numbers.collect(),
        }
    };
    attributes
        .iter()
        .map(|attribute| (attribute.name.clone(), value(attribute)))
        .collect()
}

/// The attribute of a variable of this type that a value becomes; CDF-5 only if
/// `kind` or a long number needs it.
pub(super) fn of_value(name: &str, value: &Value, of: Kind) -> Result<Attribute, String> {
    if name.is_empty() || name.len() > LONGEST_NAME || name.chars().any(char::is_control) {
        return Err(format!(
            "'{}' cannot be the name of a NetCDF attribute, which has 1 to {LONGEST_NAME} bytes \
             and no control characters; use a name ending in .h5, .zarr or .oc",
            shown(name.as_bytes())
        ));
    }
    if name == FILL_VALUE {
        return fill_value(value, of);
    }
    let items = match Plain::of(value) {
        Plain {
            list: true,
            items: Items::Texts(_),
        } => Items::Texts(vec![value.to_string()]),
        plain => plain.items,
    };
    let typed = match OF_THE_TYPE.contains(&name) {
        true => in_type(&items, of),
        false => None,
    };
    let (kind, bytes) = typed.unwrap_or_else(|| in_usual_type(&items));
    Ok(Attribute {
        name: name.into(),
        kind,
        count: bytes.len() as u64 / kind.element().size(),
        bytes,
    })
}

/// The attribute of this name, which must be one number of the variable's type.
fn fill_value(value: &Value, kind: Kind) -> Result<Attribute, String> {
    let element = kind.element();
    let one = match value {
        Value::Array(items) if items.len() == 1 => &items[0],
        value => value,
    };
    let bytes = match (one, kind) {
        // A byte of a text, of which a zero is not shown.
        (Value::String(text), Kind::Ubyte) if text.len() < 2 => {
            Some(vec![text.bytes().next().unwrap_or(0)])
        }
        (Value::Null, _) => None,
        (one, _) => fill_bytes(one, element, ByteOrder::Big).ok(),
    };
    let bytes = bytes.ok_or_else(|| {
        format!(
            "{FILL_VALUE} is {}, but must be one number of the variable's type, {element}; use a \
             name ending in .h5, .zarr or .oc",
            shown(value.to_string().as_bytes())
        )
    })?;
    Ok(Attribute {
        name: FILL_VALUE.into(),
        kind,
        count: 1,
        bytes,
    })
}

/// Numbers in a type that holds them.
fn in_usual_type(items: &Items) -> (Kind, Vec<u8>) {
    match items {
        Items::Booleans(items) => (
            Kind::Byte,
            items.iter().map(|item| u8::from(*item)).collect(),
        ),
        Items::Integers(items) => {
            let short: Result<Vec<i32>, _> = items.iter().map(|item| (*item).try_into()).collect();
            match short {
                Ok(short) => (
                    Kind::Int,
                    short.iter().flat_map(|n| n.to_be_bytes()).collect(),
                ),
                Err(_) => (
                    Kind::Int64,
                    items.iter().flat_map(|n| n.to_be_bytes()).collect(),
                ),
            }
        }
        Items::Large(items) => (
            Kind::Uint64,
            items.iter().flat_map(|n| n.to_be_bytes()).collect(),
        ),
        Items::Floats(items) => (
            Kind::Double,
            items.iter().flat_map(|n| n.to_be_bytes()).collect(),
        ),
        Items::Texts(items) => (Kind::Char, items.concat().into_bytes()),
    }
}

/// Numbers in the type of the variable; `None` if one does not fit.
fn in_type(items: &Items, kind: Kind) -> Option<(Kind, Vec<u8>)> {
    let numbers: Vec<i128> = match items {
        Items::Integers(items) => items.iter().map(|n| (*n).into()).collect(),
        Items::Large(items) => items.iter().map(|n| (*n).into()).collect(),
        Items::Floats(items) => {
            let bytes = match kind {
                Kind::Float => items
                    .iter()
                    .flat_map(|n| (*n as f32).to_be_bytes())
                    .collect(),
                Kind::Double => items.iter().flat_map(|n| n.to_be_bytes()).collect(),
                _ => return None,
            };
            return Some((kind, bytes));
        }
        Items::Booleans(_) | Items::Texts(_) => return None,
    };
    let size = kind.element().size() as usize;
    let mut bytes = Vec::new();
    for number in numbers {
        match kind {
            Kind::Float => bytes.extend((number as f32).to_be_bytes()),
            Kind::Double => bytes.extend((number as f64).to_be_bytes()),
            Kind::Char => return None,
            _ => {
                let bits = 8 * size as u32;
                let signed = matches!(kind, Kind::Byte | Kind::Short | Kind::Int | Kind::Int64);
                let (low, high) = match signed {
                    true => (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
                    false => (0, (1i128 << bits) - 1),
                };
                if number < low || number > high {
                    return None;
                }
                bytes.extend(&number.to_be_bytes()[16 - size..]);
            }
        }
    }
    Some((kind, bytes))
}
