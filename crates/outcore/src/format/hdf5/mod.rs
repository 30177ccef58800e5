//! HDF5 files: datasets as arrays, read and written without the HDF5 library.
//!
//! Only metadata are read here; data move through stores like those of every
//! array. Contiguous data are a plain file from an offset on, chunks without
//! filters are scattered pieces of the file, and only chunks with filters are
//! decoded whole. NetCDF-4 files are HDF5 files.
//!
//! The path of a filtered chunk that is written: encoded, written where it was before it was
//! where it is now, or to the end of the file, and at last its entry in the index is
//! changed in its place (`index_in_file.rs`). New datasets with filters are made with
//! an index that has an empty entry for every chunk (`write.rs`), so making one and
//! changing one are the same, by any number of ranks. Datasets that are added to a file
//! are made behind its end, and get their names when they are complete (`add.rs`).

mod add;
mod attribute;
mod checksum;
mod chunk_index;
mod chunks;
mod dataspace;
mod datatype;
mod dimensions;
mod end_of_file;
mod extensible_array;
mod fill_value;
mod filters;
mod first_tree;
mod fixed_array;
mod fractal_heap;
mod global_heap;
mod group;
mod index_in_file;
mod layout;
mod link;
mod messages;
mod new_group;
mod new_header;
mod new_index;
mod object_header;
mod second_tree;
mod slot;
mod source;
mod superblock;
mod tree;
mod write;

use std::path::Path;
use std::sync::{Arc, Mutex};

use outcore_geometry::{Arrangement, Order};
use outcore_storage::{Access, ChunkStore, Fragment, ScatteredStore, Store};
use serde_json::{Map, Value};

use crate::codec::Codecs;
use crate::descriptor::ArrayDescriptor;
use crate::error::Result;
use crate::format::fields::{Parsed, Problem};
use crate::format::value::number;
use crate::format::{Opened, has_at, open_file};
pub(crate) use add::Addition;
use chunk_index::{Grid, Place, Table};
use chunks::{FilteredChunks, Places};
use dataspace::Dataspace;
use datatype::Datatype;
use end_of_file::EndOfFile;
pub(crate) use index_in_file::lock_shared_parts;
use index_in_file::{IndexInFile, lock_for_reading};
use layout::{Chunking, DataLayout};
use object_header::{Message, ObjectHeader, kind};
use slot::Addresses;
use superblock::File;
pub(crate) use superblock::SIGNATURE;
use tree::Node;
pub(crate) use tree::is_unlinked;
pub(crate) use write::{create, create_groups};

/// Opens the dataset `inner` (as in `/group/data`) of a file; without a name,
/// the only one that the file has.
pub(crate) fn open(path: &Path, inner: Option<&str>, access: Access) -> Result<Opened> {
    let name = match inner {
        Some(inner) => format!("{}:{inner}", path.display()),
        None => path.display().to_string(),
    };
    let opened = open_store(open_file(path, access)?, inner, access);
    opened.map_err(Problem::of(&name))?.check(&name, path)
}

/// Whether a file begins as those of HDF5 do, perhaps after a user block.
pub(crate) fn is_file(path: &Path) -> Result<bool> {
    let starts = [0, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
    has_at(path, &SIGNATURE, &starts)
}

/// Whether a file holds this dataset, the groups on the way to it, and nothing else.
pub(crate) fn holds_only(path: &Path, inner: &str) -> bool {
    let file = open_file(path, Access::ReadOnly).map(File::open);
    matches!(file, Ok(Ok(file)) if tree::is_all(&file, inner).unwrap_or(false))
}

/// A path from the root on as files list it: `/group/data`, that of the root empty.
pub(crate) fn plain_path(path: &str) -> String {
    let names = tree::names(path).into_iter();
    names.map(|name| format!("/{name}")).collect()
}

/// Whether `inner` is a group of the file.
pub(crate) fn is_group(path: &Path, inner: &str) -> Result<bool> {
    let file = File::open(open_file(path, Access::ReadOnly)?);
    let found = file.and_then(|file| tree::group_at(&file, inner));
    let found = found.map_err(Problem::of(format!("{}:{inner}", path.display())))?;
    Ok(found.is_some())
}

/// Whether two paths from the root are the same; without one, a file is not one of its datasets.
pub(crate) fn same_name(one: Option<&str>, other: Option<&str>) -> bool {
    one.map(tree::names) == other.map(tree::names)
}

/// A group or dataset of a file.
#[derive(Debug)]
pub(crate) struct Listed {
    /// From the root on, as in `/group/data`; that of the root is empty.
    pub(crate) path: String,
    /// What describes a dataset, or why it cannot be opened; `None`: a group.
    pub(crate) dataset: Option<Result<ArrayDescriptor>>,
    /// What is kept with it, as far as it can be shown.
    pub(crate) attributes: Map<String, Value>,
}

/// The group `inner` of a file, and the groups and datasets in it.
pub(crate) fn list(path: &Path, inner: &str) -> Result<Vec<Listed>> {
    let store = open_file(path, Access::ReadOnly)?;
    // Indices of chunks are read, too.
    let _lock = lock_for_reading(&*store)?;
    let read = || {
        let file = File::open(Arc::clone(&store))?;
        let top = tree::group_at(&file, inner)?.ok_or_else(|| format!("{inner} is no group"))?;
        let nodes = tree::list_below(&file, plain_path(inner), top)?;
        Ok((file, top, nodes))
    };
    let (file, top, nodes) = read().map_err(Problem::of(path.display()))?;
    let group = |path: String, address| Listed {
        path,
        dataset: None,
        attributes: attributes_at(&file, address),
    };
    let dataset = |node: Node| {
        let name = format!("{}:{}", path.display(), node.path);
        let opened = open_at(&file, node.address(), Access::ReadOnly);
        let opened = opened.map_err(Problem::of(&name));
        let opened = opened.and_then(|opened| opened.check(&name, path));
        let opened = opened.map(|opened| opened.descriptor);
        let attributes = opened.as_ref().map(|made| made.attributes.clone());
        Listed {
            path: node.path,
            attributes: attributes.unwrap_or_default(),
            dataset: Some(opened),
        }
    };
    let listed = |node: Node| match node.dataset {
        Some(_) => dataset(node),
        None => group(node.path.clone(), node.address()),
    };
    // What is only a dimension is the name of an axis of others.
    let is_array = |node: &Node| {
        node.dataset.is_none()
            || !dimensions::is_only_dimension(&file, node.address()).unwrap_or(false)
    };
    let top = group(plain_path(inner), top);
    let nodes = nodes.into_iter().filter(is_array).map(listed);
    Ok([top].into_iter().chain(nodes).collect())
}

/// The attributes of the group at an address, as far as they can be shown.
fn attributes_at(file: &File, address: u64) -> Map<String, Value> {
    let read = || attribute::values(&file.source, &ObjectHeader::read(&file.source, address)?);
    read().unwrap_or_default()
}

/// As `open`, for a file that is any store.
pub(crate) fn open_store(
    store: Arc<dyn Store>,
    inner: Option<&str>,
    access: Access,
) -> Parsed<Opened> {
    let found = |file: &File| match inner {
        Some(inner) => tree::find(file, inner),
        None => tree::only_dataset(file),
    };
    open_found(store, found, access)
}

/// Opens the dataset at the address that `find` finds.
fn open_found(
    store: Arc<dyn Store>,
    find: impl FnOnce(&File) -> Parsed<u64>,
    access: Access,
) -> Parsed<Opened> {
    let locked = Arc::clone(&store);
    if access == Access::ReadWrite {
        locked.announce_writing()?;
    }
    let _lock = lock_for_reading(&*locked)?;
    let file = File::open(store)?;
    if access == Access::ReadWrite && file.in_use {
        return Err(
            "it says that another program has it open for writing; if none has any more, \
             'h5clear -s' corrects that"
                .into(),
        );
    }
    open_at(&file, find(&file)?, access)
}

/// Opens the dataset at an address.
fn open_at(file: &File, address: u64, access: Access) -> Parsed<Opened> {
    let header = ObjectHeader::read(&file.source, address)?;
    let dataset = Dataset::read(file, &header)?;
    let Data { store, start, tile } = dataset.data(file, access)?;
    let (element_type, byte_order) = dataset.datatype.element()?;
    let shape = match dataset.space.null {
        true => vec![0],
        false => dataset.space.shape.clone(),
    };
    let order = Order::Row;
    let mut descriptor = ArrayDescriptor::new(&shape, element_type)
        .byte_order(byte_order)
        .layout(Arrangement { order, tile });
    descriptor.codecs = dataset.codecs(file)?;
    let fill = fill_value::of(&file.source, &header, dataset.datatype.size)?;
    descriptor.fill_value = fill.map(|bytes| number(element_type, byte_order, &bytes));
    descriptor.axis_names = dimensions::names(file, &header, shape.len())?;
    descriptor.attributes = attribute::values(&file.source, &header)?;
    Ok(Opened {
        descriptor,
        store,
        start,
    })
}

/// What the header of a dataset says of its elements.
#[derive(Debug)]
struct Dataset<'a> {
    header: &'a ObjectHeader,
    space: Dataspace,
    datatype: Datatype,
}

/// A store, where the data begin in it, and the shape of its tiles.
struct Data {
    store: Arc<dyn Store>,
    start: u64,
    tile: Option<Vec<u64>>,
}

impl Data {
    fn plain(store: Arc<dyn Store>, start: u64) -> Self {
        let tile = None;
        Self { store, start, tile }
    }
}

impl<'a> Dataset<'a> {
    fn read(file: &File, header: &'a ObjectHeader) -> Parsed<Self> {
        let source = &file.source;
        let message = |kind, what| -> Parsed<Vec<u8>> {
            let found = header.find(source, kind)?;
            found.ok_or_else(|| format!("the dataset has no {what}; the file is damaged").into())
        };
        Ok(Self {
            header,
            space: Dataspace::parse(source, &message(kind::DATASPACE, "shape")?)?,
            datatype: Datatype::parse(source, &message(kind::DATATYPE, "type")?)?,
        })
    }

    /// Where the data are.
    fn data(&self, file: &File, access: Access) -> Parsed<Data> {
        let source = &file.source;
        // A type that is no element is refused before anything is made of it.
        self.datatype.element()?;
        let size = self.datatype.size;
        let bytes = self.space.count()?.checked_mul(size);
        let bytes = bytes.ok_or("it has more than 2^64 bytes; the file is damaged")?;
        if self.header.has(kind::EXTERNAL_FILES) {
            return Err("its data are in other files, which is not supported".into());
        }
        let layouts = self.header.all(kind::LAYOUT).next();
        let message = layouts.ok_or("the dataset has no data layout; the file is damaged")?;
        let fill = fill_value::of(source, self.header, size)?;
        let nowhere = |len: u64, fill: Option<Vec<u8>>| -> Parsed<Arc<dyn Store>> {
            let inner = Arc::clone(source.store());
            let pattern = fill.unwrap_or_default();
            Ok(Arc::new(ScatteredStore::new(
                inner,
                Vec::new(),
                len,
                pattern,
            )?))
        };
        match DataLayout::parse(source, message)? {
            DataLayout::Compact { start, len } => {
                if access == Access::ReadWrite {
                    return Err(
                        "its data are in the header (compact), which is not rewritten; \
                                open it for reading"
                            .into(),
                    );
                }
                if len < bytes {
                    return Err("the header has too few data; the file is damaged".into());
                }
                let place = source.place(message.address + start as u64)?;
                Ok(Data::plain(Arc::clone(source.store()), place))
            }
            DataLayout::Contiguous { address: None } => Ok(Data::plain(nowhere(bytes, fill)?, 0)),
            DataLayout::Contiguous {
                address: Some(address),
            } => Ok(Data::plain(
                Arc::clone(source.store()),
                source.place(address)?,
            )),
            DataLayout::Chunked(chunking) => self.chunked(file, &chunking, fill, access),
            DataLayout::Virtual => Err("it is a virtual dataset, made of others, which is not \
                                        supported; open those"
                .into()),
        }
    }

    /// What encodes its chunks.
    fn codecs(&self, file: &File) -> Parsed<Codecs> {
        match self.header.find(&file.source, kind::FILTERS)? {
            Some(data) => chunks::codecs(&filters::parse(&data)?, self.datatype.size),
            None => Ok(Codecs::default()),
        }
    }

    fn chunked(
        &self,
        file: &File,
        chunking: &Chunking,
        fill: Option<Vec<u8>>,
        access: Access,
    ) -> Parsed<Data> {
        let source = &file.source;
        let codecs = self.codecs(file)?;
        let grid = Grid::new(chunking, &self.space, self.datatype.size)?;
        let table = Table::read(source, chunking, &grid, !codecs.is_empty())?;
        let tile = Some(grid.chunk.clone());
        let store = Arc::clone(source.store());
        let entries = match table {
            Table::Consecutive(start) => return Ok(Data { store, start, tile }),
            Table::Listed(entries) => entries,
        };
        if codecs.is_empty() {
            let fragments = entries.iter().map(|(number, place)| Fragment {
                start: number * grid.chunk_bytes,
                len: grid.chunk_bytes,
                offset: place.offset,
            });
            let len = grid.count()?.checked_mul(grid.chunk_bytes);
            let len = len.ok_or("it has more than 2^64 bytes; the file is damaged")?;
            let pattern = fill.unwrap_or_default();
            let scattered = ScatteredStore::new(store, fragments.collect(), len, pattern)?;
            let (store, start) = (Arc::new(scattered), 0);
            return Ok(Data { store, start, tile });
        }
        if chunking.plain_edges {
            return Err(
                "its chunks at the edges are stored without filters, which is not \
                        supported"
                    .into(),
            );
        }
        let places = match access {
            Access::ReadOnly => Places::Known(entries),
            Access::ReadWrite => {
                let end = writable_end(file, &entries)?;
                // Where entries lead is read again when it is needed.
                drop(entries);
                Places::InFile(IndexInFile {
                    store: Arc::clone(&store),
                    addresses: Addresses {
                        base: source.base,
                        size: source.offset_size,
                    },
                    end,
                    slots: chunk_index::slots(source, chunking, &grid)?,
                    most: chunks::most_stored(&grid),
                    moved: Mutex::default(),
                })
            }
        };
        let chunks = Arc::new(FilteredChunks::new(store, places, codecs, &grid, fill)?);
        let store: Arc<dyn Store> = match access {
            Access::ReadOnly => Arc::new(ChunkStore::unchanging(chunks)),
            Access::ReadWrite => Arc::new(ChunkStore::new(chunks)),
        };
        let start = 0;
        Ok(Data { store, start, tile })
    }
}

/// Where the file says where it ends, if it may grow behind its chunks.
fn writable_end(file: &File, chunks: &[(u64, Place)]) -> Parsed<EndOfFile> {
    let end = file.end.read(&**file.source.store())?;
    // `Table::read` has checked that no sum overflows.
    if chunks
        .iter()
        .any(|(_, place)| place.offset + place.len > end)
    {
        return Err("the file says that it ends before its chunks; it is damaged".into());
    }
    if file.says(kind::FILE_SPACE)? {
        return Err(
            "the file keeps its own account of free space, which outcore does not; copy the \
             dataset with 'outcore convert', and write the copy"
                .into(),
        );
    }
    Ok(file.end)
}

#[cfg(test)]
mod tests;
#[cfg(test)]
mod tests_of_changes;
