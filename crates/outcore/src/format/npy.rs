//! NumPy's `.npy` files: a magic string, a version, the length of the header,
//! the header (a Python dictionary as text), the data.

use std::fmt::Write;
use std::path::Path;

use outcore_geometry::{Arrangement, Order};
use outcore_storage::{Access, FileStore, Store};

use crate::descriptor::ArrayDescriptor;
use crate::draft::file_end;
use crate::element::{ByteOrder, ElementType};
use crate::error::{Error, Result};
use crate::format::{Opened, open_file};

/// What every `.npy` file begins with.
pub(crate) const MAGIC: [u8; 6] = *b"\x93NUMPY";

/// Headers longer than this are not believed.
const LONGEST_HEADER: u64 = 1 << 20;

pub(crate) fn open(path: &Path, access: Access) -> Result<Opened> {
    let array = path.display().to_string();
    let store = open_file(path, access)?;
    let mut prefix = [0; 12];
    let known = store.len()?.min(12) as usize;
    store.read_at(0, &mut prefix[..known])?;
    let (header_start, header_len) =
        header_extent(&prefix[..known]).map_err(|problem| Error::format(&array, problem))?;
    let start = header_start + header_len;
    if header_len > LONGEST_HEADER {
        return Err(Error::format(
            &array,
            format!("a header of {header_len} bytes is not believed"),
        ));
    }
    if start > store.len()? {
        return Err(Error::format(
            &array,
            format!("the header should have {header_len} bytes, but the file ends before"),
        ));
    }
    let mut header = vec![0; header_len as usize];
    store.read_at(header_start, &mut header)?;
    let descriptor =
        parse_header(prefix[6], &header).map_err(|problem| Error::format(&array, problem))?;
    Opened {
        descriptor,
        store,
        start,
    }
    .check(&array, path)
}

/// Creates the file with its header and room for the data; `array` names it
/// in messages.
pub(crate) fn create(array: &str, path: &Path, descriptor: &ArrayDescriptor) -> Result<()> {
    let layout = descriptor.check(array)?;
    let header = header_text(descriptor).map_err(|problem| Error::format(array, problem))?;
    let end = file_end(array, header.len() as u64, layout.byte_len())?;
    let store = FileStore::create(path)?;
    store.write_at(0, &header)?;
    Ok(store.set_len(end)?)
}

/// Where the header begins and how long it is.
fn header_extent(prefix: &[u8]) -> Result<(u64, u64), String> {
    let Some(rest) = prefix.strip_prefix(&MAGIC[..]) else {
        return Err("this is not a .npy file: it does not begin with \\x93NUMPY".into());
    };
    match rest {
        [1, _, a, b, ..] => Ok((10, u16::from_le_bytes([*a, *b]).into())),
        [2 | 3, _, a, b, c, d] => Ok((12, u32::from_le_bytes([*a, *b, *c, *d]).into())),
        [major, minor, ..] if *major == 0 || *major > 3 => Err(format!(
            "its .npy version is {major}.{minor}; known are 1.0, 2.0 and 3.0"
        )),
        _ => Err("the file ends inside the .npy header".into()),
    }
}

/// Reads `{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }`, which is
/// UTF-8 from version 3 on, and Latin-1 before.
fn parse_header(version: u8, header: &[u8]) -> Result<ArrayDescriptor, String> {
    let text = match version {
        1 | 2 => header.iter().map(|byte| char::from(*byte)).collect(),
        _ => String::from_utf8(header.to_vec()).map_err(|_| "the .npy header is not text")?,
    };
    let text = text.trim();
    let inner = text
        .strip_prefix('{')
        .and_then(|rest| rest.strip_suffix('}'))
        .ok_or_else(|| format!("the .npy header is not a dictionary: {}", shown(text)))?;
    let (mut descr, mut fortran, mut shape) = (None, None, None);
    let mut rest = inner.trim_start();
    while !rest.is_empty() {
        let (key, after) = quoted(rest)?;
        let value = after
            .trim_start()
            .strip_prefix(':')
            .ok_or_else(|| format!("':' is missing after '{key}' in the .npy header"))?
            .trim_start();
        rest = match key {
            "descr" => {
                if value.starts_with('[') {
                    return Err(
                        "it holds records (a structured dtype); only plain numbers are \
                                supported"
                            .into(),
                    );
                }
                let (code, after) = quoted(value)?;
                descr = Some(parse_descr(code)?);
                after
            }
            "fortran_order" => {
                let word: String = value
                    .chars()
                    .take_while(char::is_ascii_alphabetic)
                    .collect();
                fortran = match word.as_str() {
                    "True" => Some(true),
                    "False" => Some(false),
                    _ => return Err(format!("fortran_order is '{word}', not True or False")),
                };
                &value[word.len()..]
            }
            "shape" => {
                let (list, after) = value
                    .strip_prefix('(')
                    .and_then(|tuple| tuple.split_once(')'))
                    .ok_or_else(|| format!("the shape {} is not a tuple", shown(value)))?;
                shape = Some(parse_tuple(list)?);
                after
            }
            _ => return Err(format!("'{}' is unknown in a .npy header", shown(key))),
        };
        rest = rest.trim_start();
        if let Some(after) = rest.strip_prefix(',') {
            rest = after.trim_start();
        } else if !rest.is_empty() {
            return Err(format!(
                "',' is missing in the .npy header before {}",
                shown(rest)
            ));
        }
    }
    let missing = |key: &str| format!("'{key}' is missing in the .npy header");
    let (element_type, byte_order) = descr.ok_or_else(|| missing("descr"))?;
    let shape: Vec<u64> = shape.ok_or_else(|| missing("shape"))?;
    let order = if fortran.ok_or_else(|| missing("fortran_order"))? {
        Order::Column
    } else {
        Order::Row
    };
    Ok(ArrayDescriptor::new(&shape, element_type)
        .layout(Arrangement { order, tile: None })
        .byte_order(byte_order))
}

/// The text in quotes at the beginning, and what follows.
fn quoted(text: &str) -> Result<(&str, &str), String> {
    let problem = || {
        format!(
            "a quoted text is needed at {} in the .npy header",
            shown(text)
        )
    };
    let quote = text
        .chars()
        .next()
        .filter(|c| matches!(c, '\'' | '"'))
        .ok_or_else(problem)?;
    text[1..].split_once(quote).ok_or_else(problem)
}

fn parse_tuple(list: &str) -> Result<Vec<u64>, String> {
    let extents = list
        .split(',')
        .map(str::trim)
        .filter(|extent| !extent.is_empty());
    extents
        .map(|extent| {
            // Python 2 wrote long numbers with an L.
            let digits = extent.strip_suffix('L').unwrap_or(extent);
            digits
                .parse()
                .map_err(|_| format!("the extent {} is not a whole number", shown(extent)))
        })
        .collect()
}

pub(crate) fn parse_descr(code: &str) -> Result<(ElementType, ByteOrder), String> {
    let (byte_order, name) = match code.split_at_checked(1) {
        Some(("<", name)) => (ByteOrder::Little, name),
        Some((">", name)) => (ByteOrder::Big, name),
        Some(("|" | "=", name)) => (ByteOrder::NATIVE, name),
        _ => (ByteOrder::NATIVE, code),
    };
    let element = ElementType::ALL
        .into_iter()
        .find(|element| numpy_code(*element) == name);
    element.map(|element| (element, byte_order)).ok_or_else(|| {
        format!(
            "its dtype '{}' is not supported; only booleans, integers, floats and complex are",
            shown(code)
        )
    })
}

pub(crate) fn numpy_code(element: ElementType) -> String {
    let kind = match element {
        ElementType::Bool => 'b',
        ElementType::C64 | ElementType::C128 => 'c',
        other => other.name().as_bytes()[0] as char,
    };
    format!("{kind}{}", element.size())
}

/// At most a line of a text that comes from a file.
fn shown(text: &str) -> String {
    text.chars().take(60).flat_map(char::escape_debug).collect()
}

/// The header that NumPy would write, padded so that data begin at a multiple
/// of 64 bytes.
fn header_text(descriptor: &ArrayDescriptor) -> Result<Vec<u8>, String> {
    let fortran = match (&descriptor.arrangement.tile, &descriptor.arrangement.order) {
        (None, Order::Row) => "False",
        (None, Order::Column) => "True",
        _ => {
            return Err(format!(
                "a .npy file holds row or column order, not {}",
                descriptor.arrangement
            ));
        }
    };
    if !descriptor.attributes.is_empty() {
        return Err("a .npy file holds no attributes; use a name ending in .oc".into());
    }
    descriptor.check_in_one_place("a .npy file")?;
    let prefix = match (descriptor.element_type.size(), descriptor.byte_order) {
        (1, _) => '|',
        (_, ByteOrder::Little) => '<',
        (_, ByteOrder::Big) => '>',
    };
    let code = numpy_code(descriptor.element_type);
    let mut text = format!("{{'descr': '{prefix}{code}', 'fortran_order': {fortran}, 'shape': (");
    for extent in &descriptor.shape {
        let _ = write!(text, "{extent}, ");
    }
    if descriptor.shape.len() > 1 {
        text.truncate(text.len() - 2);
    } else if descriptor.shape.len() == 1 {
        text.truncate(text.len() - 1);
    }
    text.push_str("), }");
    // Version 1 suffices: the header stays far below 64 KiB.
    let unpadded = MAGIC.len() + 4 + text.len() + 1;
    text.extend(std::iter::repeat_n(
        ' ',
        unpadded.next_multiple_of(64) - unpadded,
    ));
    text.push('\n');
    let length = u16::try_from(text.len()).map_err(|_| "too many axes for a .npy file")?;
    Ok([&MAGIC[..], &[1, 0], &length.to_le_bytes(), text.as_bytes()].concat())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn headers_round_trip() {
        for element in ElementType::ALL {
            for (shape, layout) in [(vec![], "row"), (vec![5], "row"), (vec![3, 0, 7], "column")] {
                for order in [ByteOrder::Little, ByteOrder::Big] {
                    let mut descriptor = ArrayDescriptor::new(&shape, element)
                        .layout(layout.parse().unwrap())
                        .byte_order(order);
                    let bytes = header_text(&descriptor).unwrap();
                    assert_eq!(bytes.len() % 64, 0);
                    let (start, length) = header_extent(&bytes[..12]).unwrap();
                    assert_eq!(start + length, bytes.len() as u64);
                    if element.size() == 1 {
                        descriptor.byte_order = ByteOrder::NATIVE;
                    }
                    assert_eq!(
                        parse_header(1, &bytes[start as usize..]).unwrap(),
                        descriptor
                    );
                }
            }
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (header, part) in [
            ("{}", "'descr' is missing"),
            ("[1]", "not a dictionary"),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': (-1,)}",
                "'-1'",
            ),
            (
                "{'descr': '<f4', 'fortran_order': Maybe, 'shape': (1,)}",
                "Maybe",
            ),
            (
                "{'descr': '<f4', 'fortran_order': False, 'shape': 7}",
                "not a tuple",
            ),
            (
                "{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (1,)}",
                "records",
            ),
            (
                "{'descr': '|O', 'fortran_order': False, 'shape': (1,)}",
                "'|O'",
            ),
            ("{'colour': 'red'}", "'colour'"),
            ("{'descr' '<f4'}", "':' is missing"),
        ] {
            let message = parse_header(3, header.as_bytes()).unwrap_err();
            assert!(
                message.contains(part.trim_matches('\'')),
                "{header} -> {message}"
            );
        }
    }

    #[test]
    fn older_headers_are_latin_1() {
        let header =
            b"{'descr': [('gr\xf6\xdfe', '<f4')], 'fortran_order': False, 'shape': (3,), }";
        for version in [1, 2] {
            let problem = parse_header(version, header).unwrap_err();
            assert!(problem.contains("records"), "{problem}");
        }
        let problem = parse_header(3, header).unwrap_err();
        assert!(problem.contains("not text"), "{problem}");
    }

    proptest! {
        #[test]
        fn any_header_is_read_or_refused(bytes in proptest::collection::vec(any::<u8>(), 0..120)) {
            let _ = parse_header(1, &bytes);
            let _ = parse_header(3, &bytes);
            let _ = header_extent(&bytes[..bytes.len().min(12)]);
        }

        #[test]
        fn likely_headers_are_read_or_refused(
            text in "\\{?('(descr|shape|fortran_order)'[: ]{0,2}('[<>|]?[fiuc][0-9]'|True|False|\\([0-9, -]{0,9}\\)),? ?){0,4}\\}?"
        ) {
            let _ = parse_header(3, text.as_bytes());
        }
    }
}
