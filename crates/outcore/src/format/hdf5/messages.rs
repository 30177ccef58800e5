//! The messages of the header of a new dataset: shape, type, layout, filters, fill
//! value, attributes.

use super::chunks::BELIEVED;
use super::datatype::width_of;
use super::new_index::{NewIndex, PAGE_BITS};
use crate::codec::Codec;
use crate::descriptor::ArrayDescriptor;
use crate::element::{ByteOrder, ElementType};
use crate::format::value::{Items, Plain};
use crate::format::zarr::fill_bytes;

/// An address that leads nowhere.
pub(super) const UNDEFINED: [u8; 8] = [255; 8];

/// The message of the filters, in the order in which they are applied.
pub(super) fn pipeline(steps: &[Codec]) -> Vec<u8> {
    let mut message = vec![2, steps.len() as u8];
    for step in steps {
        // Number, name of those that are not HDF5's own, whether chunks may go without
        // it, settings.
        let (id, name, optional, settings): (u16, &[u8], u16, Vec<u32>) = match step {
            Codec::Shuffle { width } => (2, b"", 1, vec![*width as u32]),
            Codec::Fletcher32 => (3, b"", 0, Vec::new()),
            Codec::Zstd { level, .. } => (32015, b"zstd\0", 1, vec![(*level).clamp(1, 22) as u32]),
            Codec::Deflate { level } | Codec::Gzip { level } => {
                (1, b"", 1, vec![u32::from(*level)])
            }
            // Refused before.
            _ => continue,
        };
        message.extend(id.to_le_bytes());
        if id >= 256 {
            message.extend((name.len() as u16).to_le_bytes());
        }
        message.extend(optional.to_le_bytes());
        message.extend((settings.len() as u16).to_le_bytes());
        message.extend(name);
        settings
            .iter()
            .for_each(|value| message.extend(value.to_le_bytes()));
    }
    message
}

/// The message of what elements hold that nobody has written. Without filters that is zero
/// nevertheless, for everybody: room for all data is there from the beginning, and the
/// value only goes along.
pub(super) fn fill_value(descriptor: &ArrayDescriptor) -> std::result::Result<Vec<u8>, String> {
    // Room is made at once, or chunk by chunk.
    let time = match descriptor.codecs.is_empty() {
        true => 0x09,
        false => 0x0b,
    };
    let Some(value) = &descriptor.fill_value else {
        return Ok(vec![3, time]);
    };
    let bytes = fill_bytes(value, descriptor.element_type, descriptor.byte_order)?;
    let mut message = vec![3, time | 0x20];
    message.extend((bytes.len() as u32).to_le_bytes());
    message.extend(bytes);
    Ok(message)
}

/// The message of a shape.
pub(super) fn dataspace(shape: &[u64]) -> Vec<u8> {
    let kind = u8::from(!shape.is_empty());
    let mut space = vec![2, shape.len() as u8, 0, kind];
    shape
        .iter()
        .for_each(|extent| space.extend(extent.to_le_bytes()));
    space
}

/// The message of where `bytes` bytes of data, or their index, begin.
pub(super) fn data_layout(
    descriptor: &ArrayDescriptor,
    bytes: u64,
    start: u64,
    index: Option<&NewIndex>,
) -> std::result::Result<Vec<u8>, String> {
    let Some(tile) = &descriptor.arrangement.tile else {
        let mut layout = vec![3, 1];
        match bytes {
            // The library wants no address of nothing.
            0 => layout.extend(UNDEFINED),
            _ => layout.extend(start.to_le_bytes()),
        }
        layout.extend(bytes.to_le_bytes());
        return Ok(layout);
    };
    let size = descriptor.element_type.size();
    let chunk = tile
        .iter()
        .try_fold(size, |product, extent| product.checked_mul(*extent));
    if chunk.is_none_or(|chunk| chunk > u64::from(u32::MAX)) {
        return Err("a chunk of an HDF5 file has less than 4 GiB; take smaller tiles".into());
    }
    if !descriptor.codecs.is_empty() && chunk.is_some_and(|chunk| chunk > BELIEVED) {
        let most = BELIEVED >> 20;
        return Err(format!(
            "with filters a chunk has at most {most} MiB; take smaller ones (--chunks)"
        ));
    }
    if tile.is_empty() {
        return Err(
            "an array without axes has no chunks, nor filters; leave out --chunks and --codec"
                .into(),
        );
    }
    // Extents are exactly as wide as the largest needs.
    let width = width_of(tile.iter().copied().fold(size, u64::max));
    let mut layout = vec![4, 2, 0, tile.len() as u8 + 1, width as u8];
    for extent in tile.iter().chain([&size]) {
        layout.extend(&extent.to_le_bytes()[..width]);
    }
    match index {
        // Chunks follow one another.
        None => layout.push(2),
        Some(_) => layout.extend([3, PAGE_BITS]),
    }
    match index {
        Some(NewIndex { chunks: 0, .. }) => layout.extend(UNDEFINED),
        None if bytes == 0 => layout.extend(UNDEFINED),
        _ => layout.extend(start.to_le_bytes()),
    }
    Ok(layout)
}

/// The message of a type: complex numbers and booleans as h5py has them.
pub(super) fn datatype(element: ElementType, order: ByteOrder) -> Vec<u8> {
    let big = u8::from(order == ByteOrder::Big);
    let head = |class: u8, bits: [u8; 3], size: u64| -> Vec<u8> {
        let mut head = vec![0x10 | class];
        head.extend(bits);
        head.extend((size as u32).to_le_bytes());
        head
    };
    let size = element.size();
    match element {
        ElementType::Bool => {
            let mut message = head(8, [2, 0, 0], 1);
            message.extend(datatype(ElementType::I8, ByteOrder::Little));
            message.extend(b"FALSE\0\0\0TRUE\0\0\0\0\0\x01");
            message
        }
        ElementType::F16 | ElementType::F32 | ElementType::F64 => {
            let (exponent, mantissa): (u8, u8) = match element {
                ElementType::F16 => (5, 10),
                ElementType::F32 => (8, 23),
                _ => (11, 52),
            };
            // The leading bit of the mantissa is implied; the sign comes last.
            let mut message = head(1, [0x20 | big, size as u8 * 8 - 1, 0], size);
            message.extend([0, 0, size as u8 * 8, 0]);
            message.extend([mantissa, exponent, 0, mantissa]);
            message.extend(((1u32 << (exponent - 1)) - 1).to_le_bytes());
            message
        }
        ElementType::C64 | ElementType::C128 => {
            let part = match element {
                ElementType::C64 => ElementType::F32,
                _ => ElementType::F64,
            };
            let mut message = head(6, [2, 0, 0], size);
            for (name, offset) in [(b'r', 0u32), (b'i', size as u32 / 2)] {
                message.extend([name, 0, 0, 0, 0, 0, 0, 0]);
                message.extend(offset.to_le_bytes());
                message.extend([0; 28]);
                message.extend(datatype(part, order));
            }
            message
        }
        whole => {
            let signed = whole.name().starts_with('i');
            let mut message = head(0, [big | u8::from(signed) << 3, 0, 0], size);
            message.extend([0, 0, size as u8 * 8, 0]);
            message
        }
    }
}

/// An attribute message; texts have a fixed length and are UTF-8.
pub(super) fn attribute(name: &str, value: &Plain) -> Vec<u8> {
    let number = |element| datatype(element, ByteOrder::Little);
    let (kind, data): (Vec<u8>, Vec<u8>) = match &value.items {
        Items::Booleans(items) => (
            number(ElementType::Bool),
            items.iter().map(|item| u8::from(*item)).collect(),
        ),
        Items::Integers(items) => (
            number(ElementType::I64),
            items.iter().flat_map(|item| item.to_le_bytes()).collect(),
        ),
        Items::Large(items) => (
            number(ElementType::U64),
            items.iter().flat_map(|item| item.to_le_bytes()).collect(),
        ),
        Items::Floats(items) => (
            number(ElementType::F64),
            items.iter().flat_map(|item| item.to_le_bytes()).collect(),
        ),
        Items::Texts(items) => {
            let size = items.iter().map(String::len).max().unwrap_or(0).max(1);
            let mut kind = vec![0x13, 0x11, 0, 0];
            kind.extend((size as u32).to_le_bytes());
            let data = items.iter().flat_map(|item| {
                let zeros = std::iter::repeat_n(0, size - item.len());
                item.bytes().chain(zeros)
            });
            (kind, data.collect())
        }
    };
    let space = match value.list {
        true => dataspace(&[value.items.len() as u64]),
        false => dataspace(&[]),
    };
    attribute_message(name, &kind, &space, &data)
}

/// The message of an attribute whose type, shape and data are given as they stand in
/// the file.
pub(super) fn attribute_message(name: &str, kind: &[u8], space: &[u8], data: &[u8]) -> Vec<u8> {
    let mut message = vec![3, 0];
    for len in [name.len() + 1, kind.len(), space.len()] {
        message.extend((len as u16).to_le_bytes());
    }
    message.push(1);
    message.extend(name.as_bytes());
    message.push(0);
    message.extend(kind);
    message.extend(space);
    message.extend(data);
    message
}
