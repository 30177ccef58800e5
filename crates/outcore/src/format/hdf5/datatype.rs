//! Datatype messages, and which of them are elements of arrays.

use super::source::Source;
use crate::element::{ByteOrder, ElementType};
use crate::format::fields::{Fields, Parsed};

/// Types nested deeper than this, or with more members, are not believed.
const DEEPEST: usize = 16;
const MOST_MEMBERS: u16 = 4096;

/// What elements of a dataset or attribute are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Datatype {
    /// Bytes of an element in the file.
    pub(crate) size: u64,
    pub(crate) class: Class,
}

/// The kinds of types, as far as they are told apart here.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Class {
    /// A whole number or a floating-point number.
    Number(ElementType, ByteOrder),
    /// A text of fixed length; `spaces` fill it up.
    Text { spaces: bool },
    /// A text elsewhere in the file.
    TextElsewhere,
    /// A list of values elsewhere in the file.
    ListElsewhere(Box<Datatype>),
    /// Addresses of objects.
    ObjectReference,
    /// What is not supported, in words.
    Other(String),
}

impl Datatype {
    pub(crate) fn parse(source: &Source, data: &[u8]) -> Parsed<Self> {
        take(source, &mut Fields::little("a datatype", data), DEEPEST)
    }

    /// The type as that of the elements of an array.
    pub(crate) fn element(&self) -> Parsed<(ElementType, ByteOrder)> {
        let other = match &self.class {
            Class::Number(element, order) => return Ok((*element, *order)),
            Class::Text { .. } => format!("texts of {} bytes", self.size),
            Class::TextElsewhere => "texts of variable length".into(),
            Class::ListElsewhere(_) => "lists of variable length".into(),
            Class::ObjectReference => "references to objects".into(),
            Class::Other(words) => words.clone(),
        };
        Err(format!(
            "it holds {other}; only booleans, integers, floats and complex numbers are supported"
        )
        .into())
    }

    /// The type in few words.
    pub(crate) fn words(&self) -> String {
        match &self.class {
            Class::Number(element, ByteOrder::Big) if element.size() > 1 => {
                format!("{element} (big-endian)")
            }
            Class::Number(element, _) => element.to_string(),
            Class::Text { .. } | Class::TextElsewhere => "text".into(),
            Class::ListElsewhere(_) => "lists".into(),
            Class::ObjectReference => "references".into(),
            Class::Other(words) => words.clone(),
        }
    }
}

fn take(source: &Source, fields: &mut Fields<'_>, depth: usize) -> Parsed<Datatype> {
    if depth == 0 {
        return Err("types are nested too deeply; the file is damaged".into());
    }
    let start = fields.u8()?;
    let (class, version) = (start & 15, start >> 4);
    let bits = fields.uint(3)? as u32;
    let size = u64::from(fields.u32()?);
    if size == 0 {
        return Err("a type has elements of 0 bytes; the file is damaged".into());
    }
    let class = match class {
        0 => whole_number(fields, bits, size)?,
        1 => floating_point(fields, bits, size)?,
        2 => {
            fields.skip(2)?;
            Class::Other("times".into())
        }
        3 => Class::Text {
            spaces: bits & 15 == 2,
        },
        4 => {
            fields.skip(4)?;
            let order = byte_order(bits);
            match unsigned(size) {
                Some(element) => Class::Number(element, order),
                None => Class::Other(format!("bit fields of {size} bytes")),
            }
        }
        5 => {
            fields.skip((bits & 255) as usize)?;
            Class::Other(format!("opaque values of {size} bytes"))
        }
        6 => compound(source, fields, (version, bits, size), depth)?,
        7 => match bits & 15 {
            0 => Class::ObjectReference,
            _ => Class::Other("references".into()),
        },
        8 => enumeration(source, fields, (version, bits, size), depth)?,
        9 => {
            let base = take(source, fields, depth - 1)?;
            match bits & 15 {
                1 => Class::TextElsewhere,
                _ => Class::ListElsewhere(Box::new(base)),
            }
        }
        10 => {
            let axes = usize::from(fields.u8()?);
            fields.skip(if version < 3 { 3 + 8 * axes } else { 4 * axes })?;
            let base = take(source, fields, depth - 1)?;
            Class::Other(format!("arrays of {}", base.words()))
        }
        11 => {
            let base = take(source, fields, depth - 1)?;
            complex(&base.class, size)
                .unwrap_or_else(|| Class::Other(format!("complex numbers of {}", base.words())))
        }
        class => return Err(format!("types of class {class} are not known").into()),
    };
    Ok(Datatype { size, class })
}

fn byte_order(bits: u32) -> ByteOrder {
    match bits & 1 {
        0 => ByteOrder::Little,
        _ => ByteOrder::Big,
    }
}

fn unsigned(size: u64) -> Option<ElementType> {
    Some(match size {
        1 => ElementType::U8,
        2 => ElementType::U16,
        4 => ElementType::U32,
        8 => ElementType::U64,
        _ => return None,
    })
}

fn whole_number(fields: &mut Fields<'_>, bits: u32, size: u64) -> Parsed<Class> {
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let element = match (size, bits & 8 != 0) {
        (1, true) => Some(ElementType::I8),
        (2, true) => Some(ElementType::I16),
        (4, true) => Some(ElementType::I32),
        (8, true) => Some(ElementType::I64),
        (size, _) => unsigned(size),
    };
    let full = offset == 0 && u64::from(precision) == size * 8;
    Ok(match element {
        Some(element) if full => Class::Number(element, byte_order(bits)),
        _ => Class::Other(format!("integers of {precision} bits in {size} bytes")),
    })
}

fn floating_point(fields: &mut Fields<'_>, bits: u32, size: u64) -> Parsed<Class> {
    let (offset, precision) = (fields.u16()?, fields.u16()?);
    let parts = [fields.u8()?, fields.u8()?, fields.u8()?, fields.u8()?];
    let bias = fields.u32()?;
    // Where exponent and mantissa begin and how long they are, as in IEEE 754.
    let element = match (size, parts, bias) {
        (2, [10, 5, 0, 10], 15) => Some(ElementType::F16),
        (4, [23, 8, 0, 23], 127) => Some(ElementType::F32),
        (8, [52, 11, 0, 52], 1023) => Some(ElementType::F64),
        _ => None,
    };
    let whole = offset == 0 && u64::from(precision) == size * 8 && bits & 0x40 == 0;
    Ok(match element {
        Some(element) if whole => Class::Number(element, byte_order(bits)),
        _ => Class::Other(format!("floats of {precision} bits in {size} bytes")),
    })
}

/// Complex numbers of two floats.
fn complex(part: &Class, size: u64) -> Option<Class> {
    match (part, size) {
        (Class::Number(ElementType::F32, order), 8) => {
            Some(Class::Number(ElementType::C64, *order))
        }
        (Class::Number(ElementType::F64, order), 16) => {
            Some(Class::Number(ElementType::C128, *order))
        }
        _ => None,
    }
}

/// Records: h5py and others store complex numbers as those of two floats.
fn compound(
    source: &Source,
    fields: &mut Fields<'_>,
    (version, bits, size): (u8, u32, u64),
    depth: usize,
) -> Parsed<Class> {
    let count = bits as u16;
    if count > MOST_MEMBERS {
        return Err(format!("a type of {count} members is not believed").into());
    }
    let mut members = Vec::new();
    for _ in 0..count {
        let name = fields.text(version < 3)?;
        let offset = match version {
            3.. => fields.uint(width_of(size))?,
            _ => fields.u32()?.into(),
        };
        if version == 1 {
            // Axes of the member, which newer versions put into its type.
            let axes = fields.u8()?;
            fields.skip(27)?;
            if axes > 0 {
                let base = take(source, fields, depth - 1)?;
                members.push((name, offset, Class::Other(base.words())));
                continue;
            }
        }
        members.push((name, offset, take(source, fields, depth - 1)?.class));
    }
    if let [(real, 0, first), (imaginary, offset, second)] = &members[..] {
        let names = (real.as_str(), imaginary.as_str());
        let known = [("r", "i"), ("real", "imag"), ("re", "im")].contains(&names);
        if let (true, true, true, Some(class)) = (
            known,
            first == second,
            *offset == size / 2,
            complex(first, size),
        ) {
            return Ok(class);
        }
    }
    let names: Vec<&str> = members.iter().map(|(name, ..)| name.as_str()).collect();
    let names: String = names.join(", ").chars().take(60).collect();
    Ok(Class::Other(format!("records ({names})")))
}

/// Bytes that a number up to `limit` takes.
pub(crate) fn width_of(limit: u64) -> usize {
    (limit.checked_ilog2().unwrap_or(0) / 8 + 1) as usize
}

/// Enumerations: h5py stores booleans as one of FALSE and TRUE.
fn enumeration(
    source: &Source,
    fields: &mut Fields<'_>,
    (version, bits, size): (u8, u32, u64),
    depth: usize,
) -> Parsed<Class> {
    let count = bits as u16;
    let base = take(source, fields, depth - 1)?;
    let mut names = Vec::new();
    for _ in 0..count {
        names.push(fields.text(version < 3)?);
    }
    let values = fields.stated(u64::from(count).saturating_mul(base.size))?;
    let boolean = base.size == 1 && names == ["FALSE", "TRUE"] && values == [0, 1];
    if size != base.size {
        return Err("an enumeration differs from its numbers; the file is damaged".into());
    }
    Ok(match base.class {
        Class::Number(..) if boolean => Class::Number(ElementType::Bool, ByteOrder::NATIVE),
        class => class,
    })
}
