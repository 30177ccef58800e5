//! Fill values: from JSON to the bytes of one element in the order of the machine.

use base64::prelude::{BASE64_STANDARD, Engine};
use half::f16;
use serde_json::{Map, Value};

use crate::element::{ByteOrder, ElementType, swap_bytes};
use crate::format::value::{Items, Plain, json_number, number as json_of};

/// The bytes of an element with this value, as they stand in a file.
pub(crate) fn bytes(
    value: &Value,
    element: ElementType,
    byte_order: ByteOrder,
) -> Result<Vec<u8>, String> {
    let problem = || format!("the fill value {value} is no {element}");
    let mut bytes = match element {
        ElementType::C64 | ElementType::C128 => {
            let part = match element {
                ElementType::C64 => ElementType::F32,
                _ => ElementType::F64,
            };
            match value {
                Value::Null => vec![0; element.size() as usize],
                Value::Array(parts) if parts.len() == 2 => {
                    let both = parts.iter().map(|value| number(value, part));
                    let both: Option<Vec<Vec<u8>>> = both.collect();
                    both.ok_or_else(problem)?.concat()
                }
                real => {
                    let real = number(real, part).ok_or_else(problem)?;
                    [real, vec![0; part.size() as usize]].concat()
                }
            }
        }
        _ => number(value, element).ok_or_else(problem)?,
    };
    let width = element.swap_width();
    if byte_order != ByteOrder::NATIVE && width > 1 {
        swap_bytes(&mut bytes, width);
    }
    Ok(bytes)
}

fn number(value: &Value, element: ElementType) -> Option<Vec<u8>> {
    let size = element.size() as usize;
    if value.is_null() {
        return Some(vec![0; size]);
    }
    if let Some(digits) = value.as_str().and_then(|text| text.strip_prefix("0x")) {
        let bits = u64::from_str_radix(digits, 16).ok()?;
        return match digits.len() == 2 * size {
            true => Some(native(bits, size)),
            false => None,
        };
    }
    match element {
        ElementType::Bool => match value {
            Value::Bool(value) => Some(vec![u8::from(*value)]),
            Value::Number(number) => number.as_u64().filter(|n| *n < 2).map(|n| vec![n as u8]),
            _ => None,
        },
        ElementType::F16 => Some(f16::from_f64(float(value)?).to_ne_bytes().to_vec()),
        ElementType::F32 => Some((float(value)? as f32).to_ne_bytes().to_vec()),
        ElementType::F64 => Some(float(value)?.to_ne_bytes().to_vec()),
        ElementType::U8 | ElementType::U16 | ElementType::U32 | ElementType::U64 => {
            let whole = whole(value)?;
            let most = u64::MAX >> (64 - 8 * size);
            let value = u64::try_from(whole).ok().filter(|value| *value <= most)?;
            Some(native(value, size))
        }
        _ => {
            let whole = whole(value)?;
            let limit = 1i128 << (8 * size - 1);
            (-limit..limit)
                .contains(&whole)
                .then(|| native(whole as u64, size))
        }
    }
}

/// A whole number, which some write with a point.
fn whole(value: &Value) -> Option<i128> {
    let number = value.as_number()?;
    number
        .as_i64()
        .map(i128::from)
        .or_else(|| number.as_u64().map(i128::from))
        .or_else(|| {
            let float = number.as_f64().filter(|float| float.fract() == 0.0)?;
            (float.abs() < 1e18).then_some(float as i128)
        })
}

fn float(value: &Value) -> Option<f64> {
    match value {
        Value::Number(number) => number.as_f64(),
        Value::String(text) => match text.as_str() {
            "NaN" => Some(f64::NAN),
            "Infinity" => Some(f64::INFINITY),
            "-Infinity" => Some(f64::NEG_INFINITY),
            _ => None,
        },
        _ => None,
    }
}

/// The lowest `size` bytes of a number in the order of the machine.
fn native(value: u64, size: usize) -> Vec<u8> {
    match ByteOrder::NATIVE {
        ByteOrder::Little => value.to_le_bytes()[..size].to_vec(),
        ByteOrder::Big => value.to_be_bytes()[8 - size..].to_vec(),
    }
}

/// The attribute of NetCDF for elements that are missing.
pub(super) const MISSING: &str = "_FillValue";

/// The bytes of the element that stands for missing ones, which the attribute may have as a
/// list of one; `None`: it says no such element.
pub(super) fn missing(
    attributes: &Map<String, Value>,
    element: ElementType,
    byte_order: ByteOrder,
) -> Option<Vec<u8>> {
    let value = match attributes.get(MISSING)? {
        Value::Null => return None,
        Value::Array(items) if items.len() == 1 => &items[0],
        value => value,
    };
    bytes(value, element, byte_order).ok()
}

/// The attributes of version 3 as they are in a file: xarray, whose attribute for missing
/// values this is there, has one element, floats as base64 of their eight bytes, so that
/// every NaN is the same; it opens no array with another.
pub(super) fn stored_attributes(
    attributes: &Map<String, Value>,
    element: ElementType,
) -> Map<String, Value> {
    let mut stored = attributes.clone();
    stored.remove(MISSING);
    if let Some(bytes) = missing(attributes, element, ByteOrder::NATIVE) {
        let value = json_of(element, ByteOrder::NATIVE, &bytes);
        let value = match as_float(&value, element) {
            Some(number) => BASE64_STANDARD.encode(number.to_le_bytes()).into(),
            None => value,
        };
        stored.insert(MISSING.into(), value);
    }
    stored
}

/// The other way round.
pub(super) fn read_attributes(attributes: &mut Map<String, Value>, element: ElementType) {
    let number = |text: &str| -> Option<f64> {
        let bytes = BASE64_STANDARD.decode(text).ok()?;
        Some(f64::from_le_bytes(bytes.try_into().ok()?))
    };
    let is_float = matches!(
        element,
        ElementType::F16 | ElementType::F32 | ElementType::F64
    );
    if let Some(value) = attributes.get_mut(MISSING)
        && is_float
        && let Some(number) = value.as_str().and_then(number)
    {
        *value = json_number(number);
    }
}

/// The float that a value is among such elements.
fn as_float(value: &Value, element: ElementType) -> Option<f64> {
    let Items::Floats(items) = Plain::of(&value.as_f64().map_or(value.clone(), Value::from)).items
    else {
        return None;
    };
    let [number] = items[..] else {
        return None;
    };
    match element {
        ElementType::F16 => Some(f16::from_f64(number).into()),
        ElementType::F32 => Some((number as f32).into()),
        ElementType::F64 => Some(number),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn missing_values_are_elements_or_nothing() {
        let stored = |value: Value, element| {
            let attributes = Map::from_iter([(MISSING.to_owned(), value)]);
            stored_attributes(&attributes, element).remove(MISSING)
        };
        assert_eq!(stored(json!([-7]), ElementType::I32), Some(json!(-7)));
        assert_eq!(stored(json!(-7.0), ElementType::I32), Some(json!(-7)));
        let one = BASE64_STANDARD.encode(1f64.to_le_bytes());
        assert_eq!(stored(json!([1]), ElementType::F32), Some(json!(one)));
        for (value, element) in [
            (json!(" "), ElementType::U8),
            (json!("none"), ElementType::F64),
            (json!([1, 2]), ElementType::I32),
            (json!(null), ElementType::I32),
            (json!(300), ElementType::U8),
        ] {
            assert_eq!(stored(value, element), None);
        }
    }

    #[test]
    fn values_of_all_kinds() {
        for (value, element, expected) in [
            (json!(null), ElementType::F32, vec![0; 4]),
            (
                json!("NaN"),
                ElementType::F64,
                f64::NAN.to_ne_bytes().to_vec(),
            ),
            (json!(-2), ElementType::I16, (-2i16).to_ne_bytes().to_vec()),
            (json!(3.0), ElementType::U8, vec![3]),
            (
                json!("0x3fc00000"),
                ElementType::F32,
                1.5f32.to_ne_bytes().to_vec(),
            ),
            (json!(true), ElementType::Bool, vec![1]),
            (
                json!([1.0, "-Infinity"]),
                ElementType::C64,
                [1.0f32.to_ne_bytes(), f32::NEG_INFINITY.to_ne_bytes()].concat(),
            ),
        ] {
            assert_eq!(bytes(&value, element, ByteOrder::NATIVE).unwrap(), expected);
        }
        for (value, element) in [
            (json!(256), ElementType::U8),
            (json!(-1), ElementType::U64),
            (json!(1.5), ElementType::I32),
            (json!("many"), ElementType::F32),
            (json!(128), ElementType::I8),
        ] {
            assert!(bytes(&value, element, ByteOrder::NATIVE).is_err());
        }
    }
}
