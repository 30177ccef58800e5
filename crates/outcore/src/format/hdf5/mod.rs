//! HDF5 files: datasets as arrays, read without the HDF5 library.
//!
//! Only metadata are read here; data move through stores like those of every
//! array. Contiguous data are a plain file from an offset on, chunks without
//! filters are scattered pieces of the file, and only chunks with filters are
//! decoded whole. NetCDF-4 files are HDF5 files.

mod attribute;
mod checksum;
mod chunk_index;
mod chunks;
mod dataspace;
mod datatype;
mod extensible_array;
mod fill_value;
mod filters;
mod first_tree;
mod fixed_array;
mod fractal_heap;
mod global_heap;
mod group;
mod layout;
mod object_header;
mod second_tree;
mod source;
mod superblock;
mod tree;
mod write;

use std::path::Path;
use std::sync::Arc;

use outcore_geometry::{Arrangement, Order};
use outcore_storage::{Access, ChunkStore, Fragment, ScatteredStore, Store};

use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
use crate::format::fields::{Parsed, Problem};
use crate::format::{Opened, has_at, open_file};
use chunk_index::{Grid, Table};
use chunks::FilteredChunks;
use dataspace::Dataspace;
use datatype::Datatype;
use layout::{Chunking, DataLayout};
use object_header::{ObjectHeader, kind};
use superblock::File;
pub(crate) use superblock::SIGNATURE;
pub(crate) use tree::Node;
pub(crate) use write::create;

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
pub(crate) fn is_file(path: &Path) -> bool {
    let starts = [0, 512, 1024, 2048, 4096, 8192, 16384, 32768, 65536];
    has_at(path, &SIGNATURE, &starts).unwrap_or(false)
}

/// Whether a file holds this dataset and no other.
pub(crate) fn holds_only(path: &Path, inner: &str) -> bool {
    let nodes = list(path).unwrap_or_default();
    let mut datasets = nodes.iter().filter(|node| node.dataset.is_some());
    let same = |node: &Node| node.path.trim_matches('/') == inner.trim_matches('/');
    matches!((datasets.next(), datasets.next()), (Some(node), None) if same(node))
}

/// The groups and datasets of a file.
pub(crate) fn list(path: &Path) -> Result<Vec<Node>> {
    let listed = open_file(path, Access::ReadOnly)
        .map_err(|error| match error {
            Error::Storage(error) => Problem::Store(error),
            error => Problem::Text(error.to_string()),
        })
        .and_then(File::open)
        .and_then(|file| tree::list(&file));
    listed.map_err(Problem::of(path.display()))
}

/// As `open`, for a file that is any store.
pub(crate) fn open_store(
    store: Arc<dyn Store>,
    inner: Option<&str>,
    access: Access,
) -> Parsed<Opened> {
    let file = File::open(store)?;
    let address = match inner {
        Some(inner) => tree::find(&file, inner)?,
        None => tree::only_dataset(&file)?,
    };
    let header = ObjectHeader::read(&file.source, address)?;
    let dataset = Dataset::read(&file, &header)?;
    let (store, start, tile) = dataset.data(&file, access)?;
    let (element_type, byte_order) = dataset.datatype.element()?;
    let shape = match dataset.space.null {
        true => vec![0],
        false => dataset.space.shape.clone(),
    };
    let order = Order::Row;
    let mut descriptor = ArrayDescriptor::new(&shape, element_type)
        .byte_order(byte_order)
        .layout(Arrangement { order, tile });
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
type Data = (Arc<dyn Store>, u64, Option<Vec<u64>>);

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
        match DataLayout::parse(source, &message.data)? {
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
                Ok((Arc::clone(source.store()), place, None))
            }
            DataLayout::Contiguous { address: None } => Ok((nowhere(bytes, fill)?, 0, None)),
            DataLayout::Contiguous {
                address: Some(address),
            } => Ok((Arc::clone(source.store()), source.place(address)?, None)),
            DataLayout::Chunked(chunking) => self.chunked(file, &chunking, fill, access),
            DataLayout::Virtual => Err("it is a virtual dataset, made of others, which is not \
                                        supported; open those"
                .into()),
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
        let filters = match self.header.find(source, kind::FILTERS)? {
            Some(data) => filters::parse(&data)?,
            None => Vec::new(),
        };
        let steps = chunks::codecs(&filters, self.datatype.size)?;
        let grid = Grid::new(chunking, &self.space, self.datatype.size)?;
        let table = Table::read(source, chunking, &grid, !steps.is_empty())?;
        let tile = Some(grid.chunk.clone());
        let store = Arc::clone(source.store());
        let entries = match table {
            Table::Consecutive(offset) => return Ok((store, offset, tile)),
            Table::Listed(entries) => entries,
        };
        if steps.is_empty() {
            let fragments = entries.iter().map(|(number, place)| Fragment {
                start: number * grid.chunk_bytes,
                len: grid.chunk_bytes,
                offset: place.offset,
            });
            let len = grid.count()?.checked_mul(grid.chunk_bytes);
            let len = len.ok_or("it has more than 2^64 bytes; the file is damaged")?;
            let pattern = fill.unwrap_or_default();
            let scattered = ScatteredStore::new(store, fragments.collect(), len, pattern)?;
            return Ok((Arc::new(scattered), 0, tile));
        }
        if access == Access::ReadWrite {
            return Err(
                "its chunks are stored with filters, so it cannot be changed in place; \
                        convert it, or open it for reading"
                    .into(),
            );
        }
        if chunking.plain_edges {
            return Err(
                "its chunks at the edges are stored without filters, which is not \
                        supported"
                    .into(),
            );
        }
        let chunks = FilteredChunks::new(store, entries, steps, &grid, fill)?;
        Ok((Arc::new(ChunkStore::unchanging(Arc::new(chunks))), 0, tile))
    }
}

#[cfg(test)]
mod tests;
