//! [`Addition`]: a dataset that is added to a file that has others.
//!
//! It comes in two steps, and the file is whole before, between and after them:
//!
//! 1. Space at the end of the file is claimed, and the dataset made there, with
//!    everything but a name. It is opened by its address (`file.h5:@4096`) and filled.
//!    The dimensions of NetCDF-4 that the file lacks are made before it, without names, too.
//! 2. The names: nothing that is there is changed. The group it is in is copied to the
//!    end of the file with the new names in it (`new_group.rs`), then the group that
//!    group is in with the copy's address, and so on up to the root. One write of a few
//!    bytes of the superblock then makes the new root the root.
//!
//! A program that dies before that write leaves the old file, and after it the new one;
//! the old groups, and a dataset that got no name, are space that nobody uses (h5repack
//! gives it back). Both steps hold the lock of what all share in a file, and the second
//! reads the groups again under it; so programs that add at the same time all find
//! their datasets, and what one has made a dimension meanwhile is that of the other.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_storage::{Access, FileStore, Store};
use serde_json::Map;

use super::dimensions::{
    AxisNames, REFERENCE_STEP, is_only_dimension, is_scale, is_scale_of, only_dimension,
};
use super::index_in_file::lock_shared_parts;
use super::link::Target;
use super::new_group::{Group, new_group};
use super::object_header::{ObjectHeader, kind};
use super::superblock::File;
use super::tree;
use super::write::{NewDataset, is_netcdf, names_on_the_way};
use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
use crate::format::fields::{Parsed, Problem};

/// A dataset of a file that has no name in it yet. Dropped, it stays without one.
#[derive(Debug)]
pub(crate) struct Addition {
    /// What messages call it.
    array: String,
    path: PathBuf,
    /// The file that was there at the beginning, which device it is on, and its number.
    store: Arc<dyn Store>,
    identity: (u64, u64),
    /// The groups on the way, and the name.
    names: Vec<String>,
    /// Whether another dataset may lose its name to it.
    replace: bool,
    address: u64,
    dimensions: Vec<Dimension>,
}

/// A dimension that a new dataset has, and by which scale.
#[derive(Debug)]
struct Dimension {
    name: String,
    extent: u64,
    /// The address that the dataset refers to, and at which offset it does.
    scale: u64,
    reference: u64,
}

/// Where the scale of a dimension is.
enum Scale {
    /// At this address, under a name.
    Named(u64),
    /// Nowhere, and this name is free for it.
    New(String),
}

impl Addition {
    /// Makes the dataset that is to be `inner` of the file at `path`, without a name.
    pub(crate) fn begin(
        array: &str,
        path: &Path,
        inner: &str,
        descriptor: &ArrayDescriptor,
        replace: bool,
    ) -> Result<Self> {
        // What cannot be made at all is refused before the file is looked at.
        let labels = AxisNames::labels(descriptor.axis_names.as_ref());
        let mut dataset = NewDataset::new(array, descriptor, labels)?;
        let mut scales = Vec::new();
        let store: Arc<dyn Store> = Arc::new(FileStore::open(path, Access::ReadWrite)?);
        // A library that has the file open writes behind its end whenever it likes.
        store.announce_writing()?;
        let mut addition = Self {
            array: array.into(),
            path: path.into(),
            store: Arc::clone(&store),
            identity: identity(path)?,
            names: names_on_the_way(array, inner)?,
            replace,
            address: 0,
            dimensions: Vec::new(),
        };
        let (base, start) = {
            let _lock = lock_shared_parts(&*store)?;
            let file = addition.of(growing(&store))?;
            let groups = addition.of(groups_on_the_way(&file, &addition.names, replace))?;
            let begin = file.end.checked(&*store)?;
            let start = addition.of(file.free(begin))?;
            if let Some(names) = &descriptor.axis_names
                && is_netcdf(path)
            {
                let axes = names.iter().cloned().zip(descriptor.shape.iter().copied());
                let axes = axes.collect::<Vec<_>>();
                let names = addition.dimensions(&file, &groups, &axes, (start, &mut scales))?;
                dataset = NewDataset::new(array, descriptor, names)?;
            }
            addition.address = start + scales.len() as u64;
            let first = dataset.references(addition.address);
            let first = first.map_err(|problem| addition.wrong(problem))?;
            for (dimension, at) in addition.dimensions.iter_mut().zip(0..) {
                dimension.reference = file.source.base + first + at * REFERENCE_STEP;
            }
            let address = tree::unlinked(addition.address);
            if groups
                .first()
                .is_some_and(|root| root.link(&address).is_some())
            {
                return Err(addition.wrong(format!(
                    "the file has a dataset named {address}, a name that the new one has until it \
                     is complete; rename that"
                )));
            }
            let base = file.source.base;
            let end = dataset.end(array, base, addition.address)?;
            // What a program that died has left behind the end must not be found there.
            if store.len()? > begin {
                store.set_len(begin)?;
            }
            // The file is longer before it says so, also on stable storage.
            store.set_len(end)?;
            store.sync()?;
            file.end.claim(&*store, end - begin)?;
            (base, start)
        };
        store.write_at(base + start, &scales)?;
        dataset.write(&*store, base, addition.address)?;
        Ok(addition)
    }

    /// By what it is found in its file until it has its name.
    pub(crate) fn temporary_name(&self) -> String {
        tree::unlinked(self.address)
    }

    /// Gives it its name. The data are on stable storage.
    pub(crate) fn link(&self) -> Result<()> {
        let store = &self.store;
        let _lock = lock_shared_parts(&**store)?;
        let file = self.of(growing(store))?;
        let there = ObjectHeader::read(&file.source, self.address);
        if identity(&self.path)? != self.identity || !there.is_ok_and(|made| made.has(kind::LAYOUT))
        {
            return Err(self.wrong(
                "another program has replaced the file while the dataset was made in the old one; \
                 begin anew"
                    .into(),
            ));
        }
        let groups = self.of(groups_on_the_way(&file, &self.names, self.replace))?;
        let new = self.new_dimensions(&file, &groups)?;
        let own = self.names.last().map_or("", String::as_str);
        let mut links: Vec<(&str, u64)> = new.iter().map(|(name, at)| (&**name, *at)).collect();
        links.push((own, self.address));
        self.give_names(&file, &groups, links)
    }

    /// Writes copies of the groups on the way behind the end of the file, the last of them with
    /// these names, too, and makes the first of them the root.
    fn give_names<'a>(
        &'a self,
        file: &File,
        groups: &[Group],
        mut links: Vec<(&'a str, u64)>,
    ) -> Result<()> {
        let (start, mut bytes) = (self.free(file)?, Vec::new());
        for at in (0..self.names.len()).rev() {
            let numbered = is_netcdf(&self.path);
            let header = match groups.get(at) {
                Some(group) => self.of(group.with(&links))?,
                None => new_group(&Map::new(), &links, numbered).map_err(|it| self.wrong(it))?,
            };
            let address = start + bytes.len() as u64;
            bytes.extend(header);
            bytes.resize(bytes.len().next_multiple_of(8), 0);
            links = match at.checked_sub(1) {
                Some(before) => vec![(&self.names[before], address)],
                None => vec![("", address)],
            };
        }
        let begin = file.source.base + start;
        self.store.write_at(begin, &bytes)?;
        self.store.sync()?;
        Ok(file.set_root(links[0].1, begin + bytes.len() as u64)?)
    }

    /// Where something can be written behind the end of the file.
    fn free(&self, file: &File) -> Result<u64> {
        self.of(file.free(file.end.checked(&*self.store)?))
    }

    /// Finds the dimensions of a dataset with these axes, and puts the scales that the file
    /// lacks, which will be at the address `start`, into `made`.
    fn dimensions(
        &mut self,
        file: &File,
        groups: &[Group],
        axes: &[(String, u64)],
        (start, made): (u64, &mut Vec<u8>),
    ) -> Result<AxisNames> {
        let own = self.names.last().map_or("", String::as_str);
        let names = || axes.iter().map(|(name, _)| name.clone());
        let labels = || AxisNames::Labels(names().collect());
        if names().any(|name| name.is_empty() || name.contains('/')) {
            return Ok(labels());
        }
        if names().eq([own.to_owned()]) {
            return Ok(AxisNames::Own(own.into()));
        }
        let Some(scales) = self.scales(file, groups, axes)? else {
            return Ok(labels());
        };
        let mut new = HashMap::new();
        for ((name, extent), scale) in axes.iter().zip(scales) {
            let scale = match scale {
                Scale::Named(address) => address,
                Scale::New(free) => match new.entry(free) {
                    Entry::Occupied(known) => *known.get(),
                    Entry::Vacant(unknown) => {
                        let scale = only_dimension(*extent).map_err(|it| self.wrong(it))?;
                        let address = start + made.len() as u64;
                        made.extend(scale);
                        made.resize(made.len().next_multiple_of(8), 0);
                        *unknown.insert(address)
                    }
                },
            };
            self.dimensions.push(Dimension {
                name: name.clone(),
                extent: *extent,
                scale,
                reference: 0,
            });
        }
        let scales = self.dimensions.iter().map(|dimension| dimension.scale);
        Ok(AxisNames::Scales(scales.collect()))
    }

    /// Where the scales of these axes are: in the groups on the way, or new in the group of the
    /// dataset. `None`: other objects have their names. The lock of what all share is held.
    fn scales(
        &self,
        file: &File,
        groups: &[Group],
        axes: &[(String, u64)],
    ) -> Result<Option<Vec<Scale>>> {
        let own = self.names.last().map_or("", String::as_str);
        let around = groups.get(self.names.len() - 1);
        let mut new: HashMap<String, u64> = HashMap::new();
        let mut found = Vec::new();
        for (name, extent) in axes {
            // One name has one extent.
            for name in [name.clone(), format!("{name}_{extent}")] {
                if let Some(of) = new.get(&name) {
                    if of == extent {
                        found.push(Scale::New(name));
                        break;
                    }
                    continue;
                }
                let there = groups.iter().rev().find_map(|group| group.link(&name));
                if let Some(Target::Object(address)) = there.map(|link| &link.target)
                    && self.of(is_scale_of(file, *address, *extent))?
                {
                    found.push(Scale::Named(*address));
                    break;
                }
                let taken = around.is_some_and(|group| group.link(&name).is_some());
                if !taken && name != own {
                    new.insert(name.clone(), *extent);
                    found.push(Scale::New(name));
                    break;
                }
            }
        }
        Ok((found.len() == axes.len()).then_some(found))
    }

    /// The names and addresses of the dimensions that get their names with the dataset; it refers
    /// to those that others have made meanwhile.
    fn new_dimensions(&self, file: &File, groups: &[Group]) -> Result<Vec<(String, u64)>> {
        let axes = self.dimensions.iter();
        let axes: Vec<_> = axes.map(|axis| (axis.name.clone(), axis.extent)).collect();
        let scales = self.scales(file, groups, &axes)?.ok_or_else(|| {
            self.wrong(
                "other objects of the file have got the names of its axes; begin anew".into(),
            )
        })?;
        let mut new: Vec<(String, u64)> = Vec::new();
        for (dimension, scale) in self.dimensions.iter().zip(scales) {
            let address = match scale {
                Scale::Named(address) => address,
                Scale::New(name) => match new.iter().find(|known| known.0 == name) {
                    Some((_, address)) => *address,
                    None => {
                        new.push((name, dimension.scale));
                        dimension.scale
                    }
                },
            };
            if address != dimension.scale {
                let store = &self.store;
                store.write_at(dimension.reference, &address.to_le_bytes())?;
            }
        }
        Ok(new)
    }

    /// Returns when the name is on stable storage.
    pub(crate) fn sync(&self) -> Result<()> {
        Ok(self.store.sync()?)
    }

    fn wrong(&self, problem: String) -> Error {
        Error::format(&self.array, problem)
    }

    fn of<T>(&self, parsed: Parsed<T>) -> Result<T> {
        parsed.map_err(Problem::of(&self.array))
    }
}

/// The device of the file at `path`, and its number there.
fn identity(path: &Path) -> Result<(u64, u64)> {
    let found = std::fs::metadata(path).map_err(|source| Error::file("open", path, source))?;
    Ok((found.dev(), found.ino()))
}

/// The file, if datasets can be added to it.
fn growing(store: &Arc<dyn Store>) -> Parsed<File> {
    let file = File::open(Arc::clone(store))?;
    if file.source.offset_size != 8 || file.source.length_size != 8 {
        return Err(format!(
            "the file has addresses of {} and lengths of {} bytes, and datasets are added only \
             where both have 8, as almost all programs make them; name another file",
            file.source.offset_size, file.source.length_size
        )
        .into());
    }
    if !file.begins_at_base {
        return Err(
            "something stands before the file that it does not know of; cut that off, or name \
             another file"
                .into(),
        );
    }
    if file.in_use {
        return Err(
            "another program has the file open for writing, or did not close it; close it there, \
             or remove the mark with 'h5clear -s'"
                .into(),
        );
    }
    let Some(extension) = file.extension else {
        return Ok(file);
    };
    let extension = ObjectHeader::read(&file.source, extension)?;
    let foreign = |message: &&super::Message| message.kind != kind::TREE_WIDTHS;
    match extension.messages.iter().find(foreign) {
        None => Ok(file),
        Some(message) if message.kind == kind::FILE_SPACE => Err(
            "the file keeps its own account of free space, which outcore does not; rewrite it \
             with 'h5repack -S FSM_AGGR -P 0 -T 1 -G 4096', or name another file"
                .into(),
        ),
        Some(message) => Err(format!(
            "the file has settings (superblock extension, kind {}) that outcore does not keep up \
             with; rewrite it with 'h5repack', or name another file",
            message.kind
        )
        .into()),
    }
}

/// The groups that exist of those in which the last of `names` will be, from the root
/// on. Fails if it cannot be there.
fn groups_on_the_way(file: &File, names: &[String], replace: bool) -> Parsed<Vec<Group>> {
    let (mut groups, mut address) = (Vec::new(), file.root);
    for (at, name) in names.iter().enumerate() {
        let path = |names: &[String]| format!("/{}", names.join("/"));
        let group = Group::read(&file.source, address, &path(&names[..at]))?;
        let target = group.link(name).map(|link| link.target.clone());
        groups.push(group);
        address = match target {
            None => break,
            Some(Target::Object(address)) => address,
            Some(_) => {
                return Err(format!(
                    "{} is a symbolic or external link, which datasets are not added through; \
                     name what it leads to",
                    path(&names[..=at])
                )
                .into());
            }
        };
        if at + 1 < names.len() {
            continue;
        }
        let taken = ObjectHeader::read(&file.source, address)?;
        if !taken.has(kind::LAYOUT) {
            return Err(format!(
                "{} is no dataset, so it is not replaced; take another name",
                path(names)
            )
            .into());
        }
        if is_only_dimension(file, address)? {
            return Err(format!(
                "{} is a dimension of other variables already, and has no coordinates; make \
                 coordinates before the variables that have their axis, or take another name",
                path(names)
            )
            .into());
        }
        if !replace {
            return Err(format!(
                "the file has a dataset {} already; take another name, or ask for it to be \
                 replaced (--force)",
                path(names)
            )
            .into());
        }
        if is_scale(file, address)? {
            return Err(format!(
                "{} is the dimension of other variables, which refer to it, so it is not \
                 replaced; 'outcore write' changes its values",
                path(names)
            )
            .into());
        }
    }
    Ok(groups)
}
