//! New HDF5 files with one dataset.
//!
//! Everything before the data is made in memory: a superblock of version 2,
//! the groups on the way to the dataset, and its header. Data begin at a
//! multiple of a page and are zeros until they are written: in one piece, or in
//! chunks one after another, which need no index (HDF5 1.10 and later). So
//! ranks write them like those of any other file. With filters nobody knows how long
//! chunks will be: then the headers are followed by an index of empty entries
//! (`new_index.rs`), and chunks are added behind it as they come.

use std::path::Path;

use outcore_geometry::Order;
use outcore_storage::{FileStore, Store};

use super::checksum::lookup3;
use super::datatype::width_of;
use super::dimensions;
use super::new_index::{NewIndex, PAGE_BITS};
use super::object_header::kind;
use super::superblock::SIGNATURE;
use crate::codec::Codec;
use crate::descriptor::ArrayDescriptor;
use crate::draft::file_end;
use crate::element::{ByteOrder, ElementType};
use crate::error::{Error, Result};
use crate::format::value::{Items, Plain};
use crate::format::zarr::{fill_bytes, usual_chunk};

/// Data begin at a multiple of this.
const PAGE: usize = 4096;

const SUPERBLOCK_LEN: usize = 48;
const UNDEFINED: [u8; 8] = [255; 8];

/// Datasets of more chunks with filters are not made.
const MOST_CHUNKS: u64 = 1 << 25;

/// Creates the file with the dataset `inner` and room for its data; `array`
/// names it in messages.
pub(crate) fn create(
    array: &str,
    path: &Path,
    inner: &str,
    descriptor: &ArrayDescriptor,
) -> Result<()> {
    let wrong = |problem: String| Error::format(array, problem);
    let filtered = with_filters(descriptor).map_err(wrong)?;
    let descriptor = &filtered;
    let layout = descriptor.check(array)?;
    let names: Vec<&str> = inner.split('/').filter(|name| !name.is_empty()).collect();
    if names.is_empty() || names.iter().any(|name| name.len() > 1 << 10) {
        return Err(wrong(
            "a dataset needs a name, as in file.h5:/group/data".into(),
        ));
    }
    if descriptor.arrangement.order != Order::Row {
        return Err(wrong(format!(
            "an HDF5 file holds row order, perhaps in tiles, not {}",
            descriptor.arrangement
        )));
    }
    if descriptor.shard.is_some() {
        return Err(wrong(
            "HDF5 files have no shards; use a name ending in .zarr".into(),
        ));
    }
    if descriptor.stripes.is_some() || descriptor.local.is_some() {
        return Err(wrong(
            "an HDF5 file is one file, neither striped nor placed locally; use a name ending in .oc"
                .into(),
        ));
    }
    let bytes = layout.byte_len();
    // The length of the headers does not depend on the addresses in them.
    let len = headers(&names, descriptor, bytes, 0).map_err(wrong)?.len();
    if let Some(index) = new_index(descriptor).map_err(wrong)? {
        let start = len.next_multiple_of(8) as u64;
        let end = index.len().and_then(|bytes| start.checked_add(bytes));
        let end = end.ok_or_else(|| wrong("it has too many chunks".into()))?;
        let mut head = headers(&names, descriptor, bytes, start).map_err(wrong)?;
        superblock(&mut head, end);
        let store = FileStore::create(path)?;
        store.write_at(0, &head)?;
        return Ok(match index.chunks {
            0 => store.set_len(end)?,
            _ => index.write(&store, start)?,
        });
    }
    let start = len.next_multiple_of(PAGE) as u64;
    let end = file_end(array, start, bytes)?;
    let mut head = headers(&names, descriptor, bytes, start).map_err(wrong)?;
    superblock(&mut head, end);
    let store = FileStore::create(path)?;
    store.write_at(0, &head)?;
    Ok(store.set_len(end)?)
}

/// The descriptor with the filters in their order, and chunks if there are filters.
fn with_filters(descriptor: &ArrayDescriptor) -> std::result::Result<ArrayDescriptor, String> {
    let mut made = descriptor.clone();
    let size = descriptor.element_type.size();
    made.codecs = made.codecs.as_filters()?.for_elements(size as usize);
    if made.arrangement.tile.is_none() && !made.codecs.is_empty() {
        let axes: Vec<usize> = (0..made.shape.len()).collect();
        made.arrangement.tile = Some(usual_chunk(&made.shape, size, &axes));
    }
    Ok(made)
}

/// The index of a dataset with filters.
fn new_index(descriptor: &ArrayDescriptor) -> std::result::Result<Option<NewIndex>, String> {
    let (Some(tile), false) = (&descriptor.arrangement.tile, descriptor.codecs.is_empty()) else {
        return Ok(None);
    };
    let along = descriptor.shape.iter().zip(tile);
    let chunks = along.fold(1u64, |chunks, (extent, tile)| {
        chunks.saturating_mul(extent.div_ceil(*tile))
    });
    if chunks > MOST_CHUNKS {
        return Err(format!(
            "with filters at most {MOST_CHUNKS} chunks are possible, not {chunks}; take larger ones"
        ));
    }
    let size = descriptor.element_type.size();
    let chunk_bytes = tile
        .iter()
        .fold(size, |all, extent| all.saturating_mul(*extent));
    Ok(Some(NewIndex {
        chunks,
        chunk_bytes,
    }))
}

/// The message of the filters, in the order in which they are applied.
fn pipeline(steps: &[Codec]) -> Vec<u8> {
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

/// The message of what elements hold that nobody has written.
fn fill_value(descriptor: &ArrayDescriptor) -> std::result::Result<Vec<u8>, String> {
    if descriptor.codecs.is_empty() {
        // Room is there from the beginning; it holds zeros.
        return Ok(vec![3, 0x09]);
    }
    // Room is made chunk by chunk.
    let Some(value) = &descriptor.fill_value else {
        return Ok(vec![3, 0x0b]);
    };
    let bytes = fill_bytes(value, descriptor.element_type, descriptor.byte_order)?;
    let mut message = vec![3, 0x2b];
    message.extend((bytes.len() as u32).to_le_bytes());
    message.extend(bytes);
    Ok(message)
}

/// Room for the superblock, then the headers of all objects.
fn headers(
    names: &[&str],
    descriptor: &ArrayDescriptor,
    bytes: u64,
    start: u64,
) -> std::result::Result<Vec<u8>, String> {
    let mut file = vec![0; SUPERBLOCK_LEN];
    for name in names {
        let len = group(name, 0).len();
        let next = (file.len() + len) as u64;
        file.extend(group(name, next));
    }
    let dataset = |heap| dataset_header(descriptor, bytes, start, heap);
    // Behind the header, whose length does not depend on addresses.
    let heap = (file.len() + dataset(0)?.len()).next_multiple_of(8);
    file.extend(dataset(heap as u64)?);
    if let Some(names) = &descriptor.axis_names {
        file.resize(heap, 0);
        file.extend(dimensions::collection(names));
    }
    Ok(file)
}

/// The header of the dataset, whose data or index begin at `start`; texts of variable
/// length are at `heap`.
fn dataset_header(
    descriptor: &ArrayDescriptor,
    bytes: u64,
    start: u64,
    heap: u64,
) -> std::result::Result<Vec<u8>, String> {
    let mut messages = Vec::new();
    add(
        &mut messages,
        kind::DATASPACE,
        &dataspace(&descriptor.shape),
    )?;
    let element = datatype(descriptor.element_type, descriptor.byte_order);
    add(&mut messages, kind::DATATYPE, &element)?;
    add(&mut messages, kind::FILL_VALUE, &fill_value(descriptor)?)?;
    let layout = data_layout(descriptor, bytes, start)?;
    add(&mut messages, kind::LAYOUT, &layout)?;
    if !descriptor.codecs.is_empty() {
        add(
            &mut messages,
            kind::FILTERS,
            &pipeline(descriptor.codecs.steps()),
        )?;
    }
    for (name, value) in &descriptor.attributes {
        let attribute = attribute(name, &Plain::of(value));
        add(&mut messages, kind::ATTRIBUTE, &attribute)
            .map_err(|_| format!("the attribute {name} is too long for an HDF5 file"))?;
    }
    if let Some(names) = &descriptor.axis_names {
        let byte = datatype(ElementType::U8, ByteOrder::Little);
        let (name, kind, data) = dimensions::labels(names, heap, byte);
        let space = dataspace(&[names.len() as u64]);
        let message = attribute_message(name, &kind, &space, &data);
        add(&mut messages, kind::ATTRIBUTE, &message)?;
    }
    Ok(header(&messages))
}

fn superblock(file: &mut [u8], end: u64) {
    let mut block = SIGNATURE.to_vec();
    block.extend([2, 8, 8, 0]);
    block.extend(0u64.to_le_bytes());
    block.extend(UNDEFINED);
    block.extend(end.to_le_bytes());
    block.extend((SUPERBLOCK_LEN as u64).to_le_bytes());
    block.extend(lookup3(&block).to_le_bytes());
    file[..SUPERBLOCK_LEN].copy_from_slice(&block);
}

/// Adds a message.
fn add(messages: &mut Vec<u8>, kind: u16, data: &[u8]) -> std::result::Result<(), String> {
    let len = u16::try_from(data.len()).map_err(|_| "a message is too long")?;
    messages.push(kind as u8);
    messages.extend(len.to_le_bytes());
    messages.push(0);
    messages.extend(data);
    Ok(())
}

/// An object header with these messages.
fn header(messages: &[u8]) -> Vec<u8> {
    let mut header = b"OHDR\x02\x02".to_vec();
    header.extend((messages.len() as u32).to_le_bytes());
    header.extend(messages);
    header.extend(lookup3(&header).to_le_bytes());
    header
}

/// A group with one name in it.
fn group(name: &str, target: u64) -> Vec<u8> {
    let mut messages = Vec::new();
    let info = [&[0, 0][..], &UNDEFINED, &UNDEFINED].concat();
    // A name in UTF-8 whose length takes two bytes.
    let mut link = vec![1, 0x11, 1];
    link.extend((name.len() as u16).to_le_bytes());
    link.extend(name.as_bytes());
    link.extend(target.to_le_bytes());
    for (kind, data) in [
        (kind::LINK_INFO, &info[..]),
        (kind::GROUP_INFO, &[0, 0]),
        (kind::LINK, &link),
    ] {
        add(&mut messages, kind, data).expect("names are at most 1024 bytes");
    }
    header(&messages)
}

fn dataspace(shape: &[u64]) -> Vec<u8> {
    let kind = u8::from(!shape.is_empty());
    let mut space = vec![2, shape.len() as u8, 0, kind];
    shape
        .iter()
        .for_each(|extent| space.extend(extent.to_le_bytes()));
    space
}

fn data_layout(
    descriptor: &ArrayDescriptor,
    bytes: u64,
    start: u64,
) -> std::result::Result<Vec<u8>, String> {
    let Some(tile) = &descriptor.arrangement.tile else {
        let mut layout = vec![3, 1];
        layout.extend(start.to_le_bytes());
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
    if tile.is_empty() {
        return Err("an array without axes has no chunks".into());
    }
    // Extents are exactly as wide as the largest needs.
    let width = width_of(tile.iter().copied().fold(size, u64::max));
    let mut layout = vec![4, 2, 0, tile.len() as u8 + 1, width as u8];
    for extent in tile.iter().chain([&size]) {
        layout.extend(&extent.to_le_bytes()[..width]);
    }
    let index = new_index(descriptor)?;
    match index {
        // Chunks follow one another.
        None => layout.push(2),
        Some(_) => layout.extend([3, PAGE_BITS]),
    }
    match index {
        Some(NewIndex { chunks: 0, .. }) => layout.extend(UNDEFINED),
        _ => layout.extend(start.to_le_bytes()),
    }
    Ok(layout)
}

/// The message of a type: complex numbers and booleans as h5py has them.
fn datatype(element: ElementType, order: ByteOrder) -> Vec<u8> {
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
fn attribute(name: &str, value: &Plain) -> Vec<u8> {
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

fn attribute_message(name: &str, kind: &[u8], space: &[u8], data: &[u8]) -> Vec<u8> {
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
