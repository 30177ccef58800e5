//! Attributes of classic NetCDF files as JSON, and back.
//!
//! Texts are texts, one number is a number, several are a list. A list of texts
//! and whatever else the format has no form for is stored as its JSON text.

use serde_json::{Map, Value};

use super::header::Attribute;
use super::kind::Kind;
use crate::element::ByteOrder;
use crate::format::fields::text_of;
use crate::format::value::{self, Items, Plain};

/// All attributes of a file as values have at most so many numbers; of the
/// others it is only said how many there are.
pub(super) const MOST_NUMBERS: u64 = 1 << 20;

/// What has the type of its variable.
const OF_THE_TYPE: [&str; 5] = [
    "_FillValue",
    "missing_value",
    "valid_min",
    "valid_max",
    "valid_range",
];

/// Attributes as values; `left` is how many numbers may still be made.
pub(super) fn values(attributes: &[Attribute], left: &mut u64) -> Map<String, Value> {
    let mut value = |attribute: &Attribute| {
        if attribute.kind == Kind::Char {
            return text_of(&attribute.bytes).trim_end_matches('\0').into();
        }
        if attribute.count > *left {
            return format!("({} numbers)", attribute.count).into();
        }
        *left -= attribute.count;
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
pub(super) fn of_value(name: &str, value: &Value, of: Kind) -> Attribute {
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
    let count = bytes.len() as u64 / kind.element().size();
    Attribute {
        name: name.into(),
        kind,
        count,
        bytes,
    }
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
