//! Values of attributes between the numbers of a file and JSON.
//!
//! Numbers that JSON has no word for are texts: `NaN`, `Infinity`,
//! `-Infinity`; a complex number is a list of two.

use half::f16;
use serde_json::Value;

use crate::element::{ByteOrder, ElementType, swap_bytes};

/// A number given by its bytes in a file, which are as many as it has.
pub(crate) fn number(element: ElementType, order: ByteOrder, bytes: &[u8]) -> Value {
    let mut bytes = bytes.to_vec();
    if order != ByteOrder::NATIVE {
        swap_bytes(&mut bytes, element.swap_width());
    }
    fn read<T: bytemuck::AnyBitPattern>(bytes: &[u8]) -> T {
        bytemuck::pod_read_unaligned(bytes)
    }
    let bytes = &bytes[..];
    match element {
        ElementType::Bool => (bytes != [0]).into(),
        ElementType::I8 => read::<i8>(bytes).into(),
        ElementType::I16 => read::<i16>(bytes).into(),
        ElementType::I32 => read::<i32>(bytes).into(),
        ElementType::I64 => read::<i64>(bytes).into(),
        ElementType::U8 => read::<u8>(bytes).into(),
        ElementType::U16 => read::<u16>(bytes).into(),
        ElementType::U32 => read::<u32>(bytes).into(),
        ElementType::U64 => read::<u64>(bytes).into(),
        ElementType::F16 => json_number(read::<f16>(bytes).into()),
        // Through its text, so that 0.1 does not become 0.10000000149011612.
        ElementType::F32 => json_number(read::<f32>(bytes).to_string().parse().unwrap_or(f64::NAN)),
        ElementType::F64 => json_number(read(bytes)),
        ElementType::C64 => {
            let parts: [f32; 2] = read(bytes);
            Value::Array(parts.map(|part| json_number(part.into())).into())
        }
        ElementType::C128 => {
            let parts: [f64; 2] = read(bytes);
            Value::Array(parts.map(json_number).into())
        }
    }
}

/// A number as JSON; what JSON has no word for is a text, as in Zarr: `NaN`, `Infinity`,
/// `-Infinity`.
pub fn json_number(number: f64) -> Value {
    match number {
        f64::INFINITY => "Infinity".into(),
        f64::NEG_INFINITY => "-Infinity".into(),
        number if number.is_nan() => "NaN".into(),
        number => number.into(),
    }
}

/// Values in lists as deep as the shape has axes.
pub(crate) fn nested(shape: &[u64], values: &mut dyn Iterator<Item = Value>) -> Value {
    match shape {
        [] => values.next().unwrap_or(Value::Null),
        [extent, inner @ ..] => (0..*extent).map(|_| nested(inner, values)).collect(),
    }
}

/// A value in a form that files have: one item, or a list of items of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Plain {
    /// Whether it is a list.
    pub(crate) list: bool,
    pub(crate) items: Items,
}

/// Items of one kind.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Items {
    Booleans(Vec<bool>),
    Integers(Vec<i64>),
    /// Some of them beyond 63 bits.
    Large(Vec<u64>),
    Floats(Vec<f64>),
    Texts(Vec<String>),
}

impl Plain {
    /// The value; what has no such form is its JSON text.
    pub(crate) fn of(value: &Value) -> Self {
        let one = std::slice::from_ref(value);
        let (list, items) = match value {
            Value::Array(items) if !items.is_empty() => (true, &items[..]),
            _ => (false, one),
        };
        let items = Items::of(items);
        match items {
            Some(items) => Self { list, items },
            None => Self {
                list: false,
                items: Items::Texts(vec![value.to_string()]),
            },
        }
    }
}

impl Items {
    fn of(values: &[Value]) -> Option<Self> {
        fn each<T>(values: &[Value], to: impl Fn(&Value) -> Option<T>) -> Option<Vec<T>> {
            values.iter().map(to).collect()
        }
        let text = |value: &Value| value.as_str().map(str::to_string);
        let float = |value: &Value| match value.as_str() {
            Some("NaN") => Some(f64::NAN),
            Some("Infinity") => Some(f64::INFINITY),
            Some("-Infinity") => Some(f64::NEG_INFINITY),
            _ => value.as_f64(),
        };
        None.or_else(|| each(values, Value::as_bool).map(Self::Booleans))
            .or_else(|| each(values, Value::as_i64).map(Self::Integers))
            .or_else(|| each(values, Value::as_u64).map(Self::Large))
            .or_else(|| each(values, float).map(Self::Floats))
            .or_else(|| each(values, text).map(Self::Texts))
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Booleans(items) => items.len(),
            Self::Integers(items) => items.len(),
            Self::Large(items) => items.len(),
            Self::Floats(items) => items.len(),
            Self::Texts(items) => items.len(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn values_have_plain_forms() {
        let form = |value: Value| Plain::of(&value).items;
        assert_eq!(form(json!(true)), Items::Booleans(vec![true]));
        assert_eq!(form(json!([1, -2])), Items::Integers(vec![1, -2]));
        assert_eq!(form(json!([1, 2.5])), Items::Floats(vec![1.0, 2.5]));
        assert_eq!(form(json!("Infinity")), Items::Floats(vec![f64::INFINITY]));
        assert_eq!(form(json!("kelvin")), Items::Texts(vec!["kelvin".into()]));
        assert_eq!(
            form(json!({"a": 1})),
            Items::Texts(vec!["{\"a\":1}".into()])
        );
        assert_eq!(
            form(json!([1, "a"])),
            Items::Texts(vec!["[1,\"a\"]".into()])
        );
        assert_eq!(form(json!([])), Items::Texts(vec!["[]".into()]));
    }

    #[test]
    fn numbers_are_read_in_both_orders() {
        let big = |element, bytes: &[u8]| number(element, ByteOrder::Big, bytes);
        assert_eq!(big(ElementType::I16, &[0xff, 0xfe]), json!(-2));
        assert_eq!(big(ElementType::F32, &0.1f32.to_be_bytes()), json!(0.1));
        assert_eq!(big(ElementType::F64, &f64::NAN.to_be_bytes()), json!("NaN"));
        let little = number(ElementType::U64, ByteOrder::Little, &[255; 8]);
        assert_eq!(little, json!(u64::MAX));
    }
}
