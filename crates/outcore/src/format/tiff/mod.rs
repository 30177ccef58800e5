//! TIFF files: their pages as one array, read only.
//!
//! Pages of equal shape and type are `[page, y, x]`; one page alone is `[y, x]`.
//! Pixels of several samples add an axis: `[.., y, x, sample]`, or
//! `[.., sample, y, x]` if each sample has an image of its own. Smaller copies of
//! a page, and masks, are left out.
//!
//! Only directories are read here. Strips that are stored as they are become
//! stretches of the file, joined where they follow one another; tiles that are
//! stored as they are become the tiles of the layout; what is compressed becomes
//! chunks.

mod chunks;
mod compression;
mod directory;
mod lzw;
mod packbits;
mod page;
mod predictor;

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;

use outcore_geometry::{Arrangement, Order};
use outcore_storage::{Access, ChunkStore, Fragment, ScatteredStore, Store};
use serde_json::{Map, Value};

use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
use crate::format::fields::{Parsed, Problem};
use crate::format::{Opened, first_bytes, open_file};
use chunks::EncodedChunks;
use compression::Compression;
use directory::{Directory, TiffFile};
use page::{Form, MOST_PIECES, Page};

/// Why nothing is written.
pub(crate) const READ_ONLY: &str =
    "TIFF files are only read here; convert it to a name ending in .zarr, .h5, .nc, .npy or .oc";

/// Files of more pages are not believed.
const MOST_PAGES: usize = 1 << 20;

/// Strips and tiles of all pages that are looked at, joined or not.
const MOST_LISTED: u64 = 1 << 26;

/// The tag that tells smaller copies and masks from pages.
const KIND: u16 = 254;

/// Texts that are shown as attributes.
const TEXTS: [(u16, &str); 7] = [
    (269, "DocumentName"),
    (270, "ImageDescription"),
    (271, "Make"),
    (272, "Model"),
    (305, "Software"),
    (306, "DateTime"),
    (315, "Artist"),
];

/// Whether a file begins as TIFF files do.
pub(crate) fn is_file(path: &Path) -> Result<bool> {
    Ok(first_bytes(path)?.is_some_and(|start| directory::is_magic(&start)))
}

/// Opens the pages of a file.
pub(crate) fn open(path: &Path, access: Access) -> Result<Opened> {
    let name = path.display();
    if access == Access::ReadWrite {
        return Err(Error::format(name, READ_ONLY));
    }
    let opened = open_store(open_file(path, access)?);
    let name = name.to_string();
    opened.map_err(Problem::of(&name))?.check(&name, path)
}

/// As `open`, for a file that is any store.
fn open_store(store: Arc<dyn Store>) -> Parsed<Opened> {
    let (file, first) = TiffFile::open(store)?;
    let mut stack = Stack::default();
    let mut attributes = Map::new();
    let mut seen = HashSet::new();
    let mut at = first;
    while at != 0 {
        if !seen.insert(at) || seen.len() > MOST_PAGES {
            return Err("its pages have no end; the file is damaged".into());
        }
        let directory = file.directory(at)?;
        let kind = file.number(&directory, KIND)?.unwrap_or(0);
        if kind & 0b101 == 0 {
            if stack.form.is_none() {
                attributes = texts(&file, &directory)?;
            }
            stack.add(&file, Page::read(&file, &directory)?)?;
        }
        at = directory.next;
    }
    let Some(form) = stack.form.clone() else {
        return Err("it has no pages".into());
    };
    if form.compression != Compression::None {
        attributes.insert("Compression".into(), form.compression.name().into());
    }
    let mut descriptor = stack.descriptor(&form).byte_order(file.order);
    descriptor.attributes = attributes;
    // Before anything is made of it: this many bytes could exist.
    let bytes = descriptor.byte_len();
    let bytes = bytes.map_err(|problem| format!("{problem}; the file is damaged"))?;
    let (store, start) = stack.data(file, form, bytes)?;
    Ok(Opened {
        descriptor,
        store,
        start,
    })
}

fn texts(file: &TiffFile, directory: &Directory) -> Parsed<Map<String, Value>> {
    let mut attributes = Map::new();
    for (tag, name) in TEXTS {
        if let Some(text) = file.text(directory, tag)? {
            attributes.insert(name.into(), text.into());
        }
    }
    Ok(attributes)
}

/// The pages so far.
#[derive(Debug, Default)]
struct Stack {
    form: Option<Form>,
    pages: u64,
    listed: u64,
    /// What is stored as it is: stretches of the array.
    fragments: Vec<Fragment>,
    /// What is compressed: each strip or tile.
    places: Vec<(u64, u64)>,
}

impl Stack {
    fn add(&mut self, file: &TiffFile, page: Page) -> Parsed<()> {
        let form = self.form.get_or_insert_with(|| page.form.clone());
        if *form != page.form {
            let (this, before) = page.form.difference(form);
            return Err(format!(
                "page {} is {this}, but the pages before are {before}; only equal pages are one \
                 array",
                self.pages,
            )
            .into());
        }
        // Pages may share lists, so a small file can have many long ones.
        self.listed += page.offsets.len() as u64 + form.samples;
        let kept = self.fragments.len().max(self.places.len()) as u64;
        if self.listed > MOST_LISTED || kept > MOST_PIECES {
            return Err("it has more strips or tiles than are believed".into());
        }
        match page.form.compression {
            Compression::None => self.add_plain(file, &page)?,
            _ => self.add_encoded(file, &page)?,
        }
        self.pages += 1;
        Ok(())
    }

    fn add_encoded(&mut self, file: &TiffFile, page: &Page) -> Parsed<()> {
        for (number, (offset, len)) in page.offsets.iter().zip(&page.lengths).enumerate() {
            if page.is_nowhere(number) {
                self.places.push((0, 0));
                continue;
            }
            check_inside(file, *offset, *len)?;
            self.places.push((*offset, *len));
        }
        Ok(())
    }

    /// Strips and tiles that are stored as they are, in the order of the layout;
    /// those that are nowhere leave gaps, which are zeros.
    fn add_plain(&mut self, file: &TiffFile, page: &Page) -> Parsed<()> {
        let form = &page.form;
        let [rows, columns] = match form.tiled {
            true => form.piece,
            false => [page.rows, form.width],
        };
        let whole = form.bytes(rows, columns)?;
        let strips = form.height.div_ceil(rows);
        let all = match form.tiled {
            true => whole.checked_mul(page.offsets.len() as u64),
            false => form.bytes(form.height, columns)?.checked_mul(form.planes()),
        };
        let mut start = all
            .and_then(|all| all.checked_mul(self.pages))
            .ok_or("it has more than 2^64 bytes; the file is damaged")?;
        for (number, offset) in page.offsets.iter().enumerate() {
            let len = match form.tiled {
                true => whole,
                false => {
                    let above = number as u64 % strips * rows;
                    form.bytes(rows.min(form.height - above), columns)?
                }
            };
            if !page.is_nowhere(number) {
                let stated = page.lengths.get(number);
                if stated.is_some_and(|stated| *stated < len) {
                    return Err(format!(
                        "a strip or tile at offset {offset} should have {len} bytes; the file is \
                         damaged"
                    )
                    .into());
                }
                check_inside(file, *offset, len)?;
                self.join(Fragment {
                    start,
                    len,
                    offset: *offset,
                });
            }
            let next = start.checked_add(len);
            start = next.ok_or("it has more than 2^64 bytes; the file is damaged")?;
        }
        Ok(())
    }

    /// Adds a stretch; one that continues the last makes it longer.
    fn join(&mut self, new: Fragment) {
        if let Some(last) = self.fragments.last_mut()
            && last.start + last.len == new.start
            && last.offset + last.len == new.offset
        {
            last.len += new.len;
            return;
        }
        self.fragments.push(new);
    }

    fn descriptor(&self, form: &Form) -> ArrayDescriptor {
        let strips = !form.tiled && form.compression == Compression::None;
        let mut axes = Vec::new();
        if self.pages > 1 {
            axes.push(("page", self.pages, 1));
        }
        if form.planar {
            axes.push(("sample", form.samples, 1));
        }
        axes.push(("y", form.height, form.piece[0]));
        axes.push(("x", form.width, form.piece[1]));
        if form.samples > 1 && !form.planar {
            axes.push(("sample", form.samples, form.samples));
        }
        let shape: Vec<u64> = axes.iter().map(|(_, extent, _)| *extent).collect();
        let tile = axes.iter().map(|(.., tile)| *tile).collect();
        let mut descriptor = ArrayDescriptor::new(&shape, form.element).layout(Arrangement {
            order: Order::Row,
            tile: (!strips).then_some(tile),
        });
        let names = axes.iter().map(|(name, ..)| (*name).into());
        descriptor.axis_names = Some(names.collect());
        descriptor
    }

    /// The store with the `bytes` of the layout, and where they begin in it.
    fn data(self, file: TiffFile, form: Form, bytes: u64) -> Parsed<(Arc<dyn Store>, u64)> {
        if form.compression != Compression::None {
            let chunks = EncodedChunks::new(file.store, self.places, form, file.order)?;
            return Ok((Arc::new(ChunkStore::unchanging(Arc::new(chunks))), 0));
        }
        if let [only] = self.fragments[..]
            && (only.start, only.len) == (0, bytes)
        {
            return Ok((file.store, only.offset));
        }
        let scattered = ScatteredStore::new(file.store, self.fragments, bytes, Vec::new())?;
        Ok((Arc::new(scattered), 0))
    }
}

fn check_inside(file: &TiffFile, offset: u64, len: u64) -> Parsed<()> {
    match offset.checked_add(len) {
        Some(end) if end <= file.len => Ok(()),
        _ => Err(format!(
            "a strip or tile of {len} bytes at offset {offset} is not in the file, which has {} \
             bytes; it is truncated or damaged",
            file.len
        )
        .into()),
    }
}
