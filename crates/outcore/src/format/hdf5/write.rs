//! New HDF5 files with one dataset, and the dataset itself, which `add.rs` puts into files
//! of others.
//!
//! Everything before the data is made in memory: a superblock of version 2,
//! the groups on the way to the dataset, and its header. Data begin at a
//! multiple of a page and are zeros until they are written: in one piece, or in
//! chunks one after another, which need no index (HDF5 1.10 and later). So
//! ranks write them like those of any other file. With filters nobody knows how long
//! chunks will be: then the headers are followed by an index of empty entries
//! (`new_index.rs`), and chunks are added behind it as they come.

use std::collections::{BTreeMap, HashMap};
use std::path::Path;

use outcore_geometry::Order;
use outcore_storage::{FileStore, Store};
use serde_json::Map;

use super::add::Addition;
use super::checksum::lookup3;
use super::dimensions::{AxisNames, FIRST_REFERENCE};
use super::messages::{
    UNDEFINED, attribute_message, data_layout, dataspace, datatype, fill_value, pipeline,
};
use super::new_group::new_group;
use super::new_header::NewHeader;
use super::new_index::NewIndex;
use super::object_header::kind;
use super::superblock::SIGNATURE;
use super::tree;
use crate::container::Groups;
use crate::descriptor::ArrayDescriptor;
use crate::draft::file_end;
use crate::error::{Error, Result};
use crate::format::zarr::{fill_bytes, usual_chunk};

/// The attribute of NetCDF for elements that nobody has written.
const FILL_ATTRIBUTE: &str = "_FillValue";

/// Data begin at a multiple of this.
const PAGE: u64 = 4096;

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
    let names = names_on_the_way(array, inner)?;
    if is_netcdf(path) {
        // Its dimensions are datasets, too.
        create_groups(path, &Groups::from([(String::new(), Map::new())]))?;
        return Addition::begin(array, path, inner, descriptor, false)?.link();
    }
    let labels = AxisNames::labels(descriptor.axis_names.as_ref());
    let dataset = NewDataset::new(array, descriptor, labels)?;
    let group = |name: &str, target| {
        let group = new_group(&Map::new(), &[(name, target)], false);
        group.map_err(|problem| Error::format(array, problem))
    };
    let mut address = SUPERBLOCK_LEN as u64;
    for name in &names {
        address += group(name, 0)?.len() as u64;
    }
    let end = dataset.end(array, 0, address)?;
    let mut head = superblock(end);
    for name in &names {
        let next = (head.len() + group(name, 0)?.len()) as u64;
        head.extend(group(name, next)?);
    }
    let store = FileStore::create(path)?;
    store.write_at(0, &head)?;
    dataset.write(&store, 0, address)?;
    Ok(store.set_len(end)?)
}

/// Creates the file with these groups, which are empty.
pub(crate) fn create_groups(path: &Path, groups: &Groups) -> Result<()> {
    let mut inside: HashMap<&str, Vec<&str>> = HashMap::new();
    for group in groups.keys().filter(|group| !group.is_empty()) {
        let around = group.rsplit_once('/').map_or("", |(around, _)| around);
        inside.entry(around).or_default().push(group);
    }
    let header = |group: &str, addresses: &BTreeMap<&str, u64>| {
        let inside = inside.get(group).map_or(&[][..], Vec::as_slice).iter();
        let links = inside.map(|other| {
            let address = addresses.get(other).copied().unwrap_or_default();
            (other.rsplit('/').next().unwrap_or_default(), address)
        });
        let made = new_group(&groups[group], &links.collect::<Vec<_>>(), is_netcdf(path));
        made.map_err(|problem| Error::format(path.display(), problem))
    };
    let (mut addresses, mut end) = (BTreeMap::new(), SUPERBLOCK_LEN as u64);
    for group in groups.keys() {
        // The root is the first.
        let len = header(group, &BTreeMap::new())?.len() as u64;
        addresses.insert(&group[..], end);
        end = (end + len).next_multiple_of(8);
    }
    let store = FileStore::create(path)?;
    store.set_len(end)?;
    store.write_at(0, &superblock(end))?;
    for (group, address) in &addresses {
        store.write_at(*address, &header(group, &addresses)?)?;
    }
    Ok(store.sync()?)
}

/// Whether the name of a file says that NetCDF-4 is to read it: names of axes are
/// dimension scales then, and names in groups are numbered.
pub(super) fn is_netcdf(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("nc" | "nc4"))
}

/// The names of the groups on the way to the dataset `inner`, and its own.
pub(super) fn names_on_the_way(array: &str, inner: &str) -> Result<Vec<String>> {
    let names = tree::names(inner);
    if names.is_empty() || names.iter().any(|name| name.len() > 1 << 10) {
        return Err(Error::format(
            array,
            "a dataset needs a name, as in file.h5:/group/data",
        ));
    }
    Ok(names)
}

/// A dataset that is to be made: a header, perhaps a collection of texts, and then room
/// for data, or an index.
pub(super) struct NewDataset {
    descriptor: ArrayDescriptor,
    names: AxisNames,
    /// The bytes of its data without filters.
    bytes: u64,
    index: Option<NewIndex>,
    /// Those of the header and the collection, which do not depend on addresses.
    head_len: u64,
}

impl NewDataset {
    /// Fails if an HDF5 file cannot hold it; `array` names it in messages.
    pub(super) fn new(array: &str, descriptor: &ArrayDescriptor, names: AxisNames) -> Result<Self> {
        let wrong = |problem: String| Error::format(array, problem);
        let descriptor = with_filters(descriptor).map_err(wrong)?;
        let layout = descriptor.check(array)?;
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
        let one_place = descriptor.check_in_one_place("an HDF5 file");
        one_place.map_err(wrong)?;
        let bytes = layout.byte_len();
        let index = new_index(&descriptor).map_err(wrong)?;
        let mut made = Self {
            bytes,
            index,
            head_len: 0,
            descriptor,
            names,
        };
        made.head_len = made.head(0, 0).map_err(wrong)?.len() as u64;
        Ok(made)
    }

    /// Where data or index begin if the dataset is at an address of a file whose
    /// addresses count from `base`.
    fn start(&self, base: u64, address: u64) -> u64 {
        let head_end = base + address + self.head_len;
        let unit = if self.index.is_some() { 8 } else { PAGE };
        head_end.next_multiple_of(unit) - base
    }

    /// The offset at which it ends.
    pub(super) fn end(&self, array: &str, base: u64, address: u64) -> Result<u64> {
        let start = base + self.start(base, address);
        let len = match &self.index {
            None => Some(self.bytes),
            Some(index) => index.len(),
        };
        let len = len.ok_or_else(|| Error::format(array, "it has too many chunks"))?;
        file_end(array, start, len)
    }

    /// Writes what is not zero, at an address of a file whose addresses count from
    /// `base` and that is long enough.
    pub(super) fn write(&self, store: &dyn Store, base: u64, address: u64) -> Result<()> {
        let start = self.start(base, address);
        let head = self.head(address, start);
        let head = head.map_err(|problem| Error::format(store.name(), problem))?;
        store.write_at(base + address, &head)?;
        match &self.index {
            Some(index) if index.chunks > 0 => Ok(index.write(store, base, start)?),
            _ => Ok(()),
        }
    }

    /// The header at an address, for data or an index that begin at `start`, and the
    /// collection of its values of variable length.
    fn head(&self, address: u64, start: u64) -> std::result::Result<Vec<u8>, String> {
        let Some(collection) = self.names.collection() else {
            return self.header(start, 0);
        };
        let heap = self.heap(address)?;
        let mut head = self.header(start, heap)?;
        head.resize((heap - address) as usize, 0);
        head.extend(collection);
        Ok(head)
    }

    /// Where the collection is if the header is at an address: behind that, whose length does
    /// not depend on addresses.
    fn heap(&self, address: u64) -> std::result::Result<u64, String> {
        Ok((address + self.header(0, 0)?.len() as u64).next_multiple_of(8))
    }

    /// Where the first reference to a scale is if the header is at an address.
    pub(super) fn references(&self, address: u64) -> std::result::Result<u64, String> {
        Ok(self.heap(address)? + FIRST_REFERENCE)
    }

    /// The header, for data or an index that begin at `start` and values of variable
    /// length at `heap`.
    fn header(&self, start: u64, heap: u64) -> std::result::Result<Vec<u8>, String> {
        let descriptor = &self.descriptor;
        let mut header = NewHeader::new();
        header.add(kind::DATASPACE, &dataspace(&descriptor.shape))?;
        let element = datatype(descriptor.element_type, descriptor.byte_order);
        header.add(kind::DATATYPE, &element)?;
        header.add(kind::FILL_VALUE, &fill_value(descriptor)?)?;
        let layout = data_layout(descriptor, self.bytes, start, self.index.as_ref())?;
        header.add(kind::LAYOUT, &layout)?;
        if !descriptor.codecs.is_empty() {
            header.add(kind::FILTERS, &pipeline(descriptor.codecs.steps()))?;
        }
        let mut attributes = descriptor.attributes.clone();
        if let Some(value) = attributes.remove(FILL_ATTRIBUTE) {
            // NetCDF wants it in the type of the elements; what is none of these is left out.
            let bytes = fill_bytes(&value, descriptor.element_type, descriptor.byte_order);
            if let Ok(bytes) = bytes {
                let message = attribute_message(FILL_ATTRIBUTE, &element, &dataspace(&[]), &bytes);
                header.add(kind::ATTRIBUTE, &message)?;
            }
        }
        header.add_attributes(&attributes)?;
        for message in self.names.attributes(heap) {
            header.add(kind::ATTRIBUTE, &message)?;
        }
        Ok(header.finish())
    }
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

/// The superblock of a file whose root group follows it.
fn superblock(end: u64) -> Vec<u8> {
    let mut block = SIGNATURE.to_vec();
    block.extend([2, 8, 8, 0]);
    block.extend(0u64.to_le_bytes());
    block.extend(UNDEFINED);
    block.extend(end.to_le_bytes());
    block.extend((SUPERBLOCK_LEN as u64).to_le_bytes());
    block.extend(lookup3(&block).to_le_bytes());
    block
}
