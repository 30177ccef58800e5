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
use super::dimensions;
use super::messages::{
    UNDEFINED, attribute, attribute_message, data_layout, dataspace, datatype, fill_value, pipeline,
};
use super::new_index::NewIndex;
use super::object_header::kind;
use super::superblock::SIGNATURE;
use crate::descriptor::ArrayDescriptor;
use crate::draft::file_end;
use crate::element::{ByteOrder, ElementType};
use crate::error::{Error, Result};
use crate::format::value::Plain;
use crate::format::zarr::usual_chunk;

/// Data begin at a multiple of this.
const PAGE: usize = 4096;

const SUPERBLOCK_LEN: usize = 48;

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
        match index.chunks {
            0 => store.set_len(end)?,
            _ => index.write(&store, start)?,
        }
        return Ok(());
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
    let index = new_index(descriptor)?;
    let layout = data_layout(descriptor, bytes, start, index.as_ref())?;
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
