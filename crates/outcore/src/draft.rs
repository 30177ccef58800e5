//! [`Draft`]: an array that does not exist yet.
//!
//! It is made under a temporary name beside its place, filled there, and gets
//! its name only when it is complete and on stable storage. Dropped before
//! that, or if the program dies, nothing appears under the name. All ranks
//! together fill a [`SharedDraft`], whose files are rank 0's.
//!
//! A dataset that is added to an HDF5 file of others has no files of its own: it is made
//! in that file without a name, and nothing of it is ever removed.
//!
//! Objects of object stores cannot be renamed. One that is an array by itself is
//! made in a temporary file of this machine, and then uploaded; of a Zarr array
//! there, the chunks are made where they stay, and the description comes last.

use std::ops::Deref;
use std::path::{Path, PathBuf};

use outcore_storage::{Access, Entry, FileStore, Store};
use outcore_transport::Comm;

use crate::array::Array;
use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};
use crate::format::location::USUAL_DATASET;
use crate::format::{Location, hdf5, native, netcdf, npy, place, tiff, zarr};
use crate::hidden_name::hidden_name;
use crate::verify;

/// An array under construction; it can be used like an [`Array`].
#[derive(Debug)]
pub struct Draft {
    array: Array,
    unnamed: Unnamed,
}

/// An array under construction by all ranks; each can use it like an
/// [`Array`].
#[derive(Debug)]
pub struct SharedDraft {
    array: Array,
    /// Rank 0 alone has it.
    draft: Option<Draft>,
}

/// An array that does not have its name yet.
#[derive(Debug)]
pub(crate) struct Unnamed {
    place: Location,
    unfinished: Unfinished,
    replace: bool,
}

/// What there is of it.
#[derive(Debug)]
enum Unfinished {
    /// Files that are its own. Dropped, they are removed.
    Files(Temporary),
    /// A dataset without a name in a file that is not its own.
    Addition(hdf5::Addition),
}

/// An array that has its name, but perhaps not on stable storage yet. Dropped,
/// it removes what it has replaced.
#[derive(Debug)]
pub(crate) struct Named(Unnamed);

/// What is removed unless it is kept.
#[derive(Debug)]
struct Temporary {
    /// What tells it from others of its place.
    id: String,
    path: PathBuf,
    outside: Vec<PathBuf>,
    /// The directories that were made for it, the outermost first.
    made: Vec<PathBuf>,
    kept: bool,
}

impl Temporary {
    /// What another run has left for `place`.
    fn found(place: &Location, id: &str) -> Result<Self> {
        let path = unfinished(place, id)?;
        let outside = match path.is_dir() {
            true => native::files_outside(&path).unwrap_or_default(),
            false => Vec::new(),
        };
        Ok(Self {
            id: id.into(),
            path,
            outside,
            made: Vec::new(),
            kept: false,
        })
    }
}

/// Where the array that is to be at `place` is until it is complete. Nothing but what
/// outcore itself has made has such a name.
pub(crate) fn unfinished(place: &Location, id: &str) -> Result<PathBuf> {
    if !native::is_id(id) {
        return Err(Error::format(
            place,
            "what an interrupted run has left of it is damaged; remove the hidden files beside it",
        ));
    }
    let path = place.path();
    match place {
        Location::Zarr { .. } if place::is_address(path) => Ok(zarr::unfinished(path, id)),
        _ => beside(&place::local(path)?, id),
    }
}

/// Removes the unfinished array that another run has left for `place`; fails if a part of
/// it stays.
pub(crate) fn discard(place: &Location, id: &str) -> Result<()> {
    let mut found = Temporary::found(place, id)?;
    found.kept = true;
    remove(&found.path, &found.outside)
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if !self.kept {
            // What is left has a temporary name.
            let _ = remove(&self.path, &self.outside);
            // As far as nobody else has put anything there.
            for directory in self.made.iter().rev() {
                let _ = std::fs::remove_dir(directory);
            }
        }
    }
}

/// Removes as much as can be, and fails if that is not all.
fn remove(path: &Path, outside: &[PathBuf]) -> Result<()> {
    if place::is_address(path) {
        return zarr::discard(path);
    }
    let gone = |path: &Path, removed: std::io::Result<()>| match removed {
        Err(source) if source.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", path, source))
        }
        _ => Ok(()),
    };
    let removed = match path.is_dir() {
        true => std::fs::remove_dir_all(path),
        false => std::fs::remove_file(path),
    };
    let outcome = gone(path, removed);
    let others = outside
        .iter()
        .map(|file| gone(file, std::fs::remove_file(file)));
    // All are tried.
    others.fold(outcome, Result::and)
}

impl Draft {
    /// Begins the array `name`, filled as by `Array::create`. Fails if something of that
    /// name exists, unless `replace` is set.
    pub(crate) fn begin(name: &str, descriptor: &ArrayDescriptor, replace: bool) -> Result<Self> {
        let unnamed = Unnamed::begin(name, descriptor, replace)?;
        if let (Some(path), Some(_)) = (unnamed.own_path(), &descriptor.local) {
            let described = native::describe(path)?;
            if let Some((_, files)) = described.parts() {
                files.iter().try_for_each(native::create_part)?;
            }
        }
        let array = Array::open_at(&unnamed.location(), Access::ReadWrite)?;
        Ok(Self { array, unnamed })
    }

    /// Begins a native array beside the one named `name`, which will never have a name.
    pub(crate) fn scratch(name: &str, descriptor: &ArrayDescriptor) -> Result<Self> {
        let beside = Location::of_new(name)?;
        let mut path = place::local(beside.path())?.into_os_string();
        path.push(".oc");
        let place = Location::Native(path.into());
        let files = Temporary::begin(name, &place, descriptor)?;
        let unnamed = Unnamed {
            place,
            unfinished: Unfinished::Files(files),
            replace: false,
        };
        let array = Array::open_at(&unnamed.location(), Access::ReadWrite)?;
        Ok(Self { array, unnamed })
    }

    /// Where its own files are now; `None`: it has none.
    pub(crate) fn own_path(&self) -> Option<&Path> {
        self.unnamed.own_path()
    }

    /// Opens the unfinished array `name` again that another run has left; calls
    /// `distrust` first if what that run has written was damaged. If that fails, it stays.
    fn reopen(
        name: &str,
        id: &str,
        replace: bool,
        distrust: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let place = Location::of_new(name)?;
        check_free(name, &place, replace)?;
        let location = place.at(unfinished(&place, id)?);
        if let Location::Zarr { path, .. } = &location {
            zarr::remove_partial(path)?;
        }
        let array = Array::open_at(&location, Access::ReadWrite)?;
        // Whatever is wrong will be written again, in pieces that heal no block.
        verify::accept_unfinished(&array, distrust)?;
        let temporary = Temporary::found(&place, id)?;
        Ok(Self {
            array,
            unnamed: Unnamed {
                place,
                unfinished: Unfinished::Files(temporary),
                replace,
            },
        })
    }

    /// Leaves the files where they are, for a later run.
    fn keep(self) {
        if let Unfinished::Files(mut temporary) = self.unnamed.unfinished {
            temporary.kept = true;
        }
    }

    /// The text under which other ranks can open the unfinished array.
    pub fn temporary_name(&self) -> &str {
        self.array.name()
    }

    /// Syncs the array, gives it its name, and opens it there for reading and
    /// writing.
    pub fn commit(mut self) -> Result<Array> {
        self.array.sync()?;
        self.unnamed.give_name()?;
        self.open_named()
    }

    /// Opens the array, which has its name.
    fn open_named(self) -> Result<Array> {
        let place = Named(self.unnamed).sync()?;
        Array::open_at(&place, place.access_once_made())
    }
}

impl SharedDraft {
    /// Collective: rank 0 begins the array, and every rank opens it.
    pub(crate) fn begin(
        comm: &Comm,
        name: &str,
        descriptor: &ArrayDescriptor,
        replace: bool,
    ) -> Result<Self> {
        let begun = match comm.rank() {
            0 => Draft::begin(name, descriptor, replace).map(Some),
            _ => Ok(None),
        };
        let draft = comm.agree(begun)?;
        let array = open_of_rank_0(comm, draft.as_deref())?;
        Ok(Self { array, draft })
    }

    /// Collective: rank 0 opens the unfinished array again that another run has
    /// left, and so do all; it calls `distrust` first if what that run has
    /// written was damaged. If any rank fails, it stays.
    pub(crate) fn reopen(
        comm: &Comm,
        name: &str,
        id: &str,
        replace: bool,
        distrust: &dyn Fn() -> Result<()>,
    ) -> Result<Self> {
        let found = match comm.rank() {
            0 => Draft::reopen(name, id, replace, distrust).map(Some),
            _ => Ok(None),
        };
        let draft = comm.agree(found)?;
        match open_of_rank_0(comm, draft.as_deref()) {
            Ok(array) => Ok(Self { array, draft }),
            Err(error) => {
                draft.into_iter().for_each(Draft::keep);
                Err(error)
            }
        }
    }

    /// Leaves the files where they are, for a later run.
    pub(crate) fn keep(self) {
        self.draft.into_iter().for_each(Draft::keep);
    }

    /// What tells its files from others of its place, and where they are, if it has such;
    /// rank 0 alone knows.
    pub(crate) fn own_files(&self) -> Option<(&str, &Path)> {
        match &self.draft.as_ref()?.unnamed.unfinished {
            Unfinished::Files(temporary) => Some((&temporary.id, &temporary.path)),
            Unfinished::Addition(_) => None,
        }
    }

    /// Collective: syncs the array, gives it its name, and opens it there for
    /// reading and writing.
    pub fn commit(mut self, comm: &Comm) -> Result<Array> {
        comm.agree(self.array.sync())?;
        comm.agree(self.give_name())?;
        self.open_named(comm)
    }

    /// Gives the array, which all ranks have synced, its name, on rank 0; if that fails, it
    /// is what it was before.
    pub(crate) fn give_name(&mut self) -> Result<()> {
        match &mut self.draft {
            Some(draft) => draft.unnamed.give_name(),
            None => Ok(()),
        }
    }

    /// Collective: opens the array, which has its name, for reading and writing.
    pub(crate) fn open_named(self, comm: &Comm) -> Result<Array> {
        let made = comm.agree(self.draft.map(Draft::open_named).transpose())?;
        open_of_rank_0(comm, made.as_ref())
    }
}

/// Collective: every rank opens, for reading and writing if it can be written,
/// the array that rank 0 has.
fn open_of_rank_0(comm: &Comm, array: Option<&Array>) -> Result<Array> {
    let mut name = array.map_or(String::new(), |array| array.name().to_string());
    comm.broadcast_string(0, &mut name)?;
    let opened = match array {
        Some(array) => Ok(array.clone()),
        None => Location::of_existing(&name)
            .and_then(|place| Array::open_at(&place, place.access_once_made())),
    };
    Ok(comm.agree(opened)?)
}

impl Deref for SharedDraft {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.array
    }
}

impl Unnamed {
    /// Makes what the array `name` has under a temporary name, except the files of the
    /// ranks if it is placed locally.
    pub(crate) fn begin(name: &str, descriptor: &ArrayDescriptor, replace: bool) -> Result<Self> {
        let place = Location::of_new(name)?;
        if descriptor.checksums.is_some() && !matches!(place, Location::Native(_)) {
            return Err(Error::format(
                name,
                "checksums of blocks are of outcore's own format; give a name that ends in .oc, or \
                 one that ends in .zarr with --codec crc32c",
            ));
        }
        let unfinished = match file_of_others(&place, replace) {
            Some((path, inner)) => {
                let addition = hdf5::Addition::begin(name, path, inner, descriptor, replace);
                Unfinished::Addition(addition?)
            }
            None => {
                check_free(name, &place, replace)?;
                Unfinished::Files(Temporary::begin(name, &place, descriptor)?)
            }
        };
        Ok(Self {
            place,
            unfinished,
            replace,
        })
    }

    /// Where its own files are now; `None`: it has none.
    pub(crate) fn own_path(&self) -> Option<&Path> {
        match &self.unfinished {
            Unfinished::Files(temporary) => Some(&temporary.path),
            Unfinished::Addition(_) => None,
        }
    }

    /// Where it can be opened now.
    fn location(&self) -> Location {
        match &self.unfinished {
            Unfinished::Files(temporary) => self.place.at(temporary.path.clone()),
            Unfinished::Addition(addition) => Location::Hdf5 {
                path: self.place.path().into(),
                inner: Some(addition.temporary_name()),
            },
        }
    }

    /// Gives the array, whose data are on stable storage, its name.
    /// If that fails, there is no array; if it does not, there is one.
    pub(crate) fn name(mut self) -> Result<Named> {
        self.give_name()?;
        Ok(Named(self))
    }

    /// The same; if that fails, it can be tried again.
    fn give_name(&mut self) -> Result<()> {
        match &mut self.unfinished {
            Unfinished::Files(temporary) => temporary.name(&self.place, self.replace),
            Unfinished::Addition(addition) => addition.link(),
        }
    }
}

impl Temporary {
    /// Makes the files of the array that is to be at `place`.
    fn begin(name: &str, place: &Location, descriptor: &ArrayDescriptor) -> Result<Self> {
        let path = place.path();
        let id = native::new_id();
        let mut temporary = Self {
            path: unfinished(place, &id)?,
            id,
            outside: Vec::new(),
            made: Vec::new(),
            kept: false,
        };
        if let Location::Zarr { path, version } = place {
            zarr::check(name, descriptor, *version)?;
            for group in groups_on_the_way(path) {
                zarr::check_group(name, group, *version)?;
            }
            match place::is_address(path) {
                true => check_alone(name, path, &temporary.path)?,
                false => temporary.make_directories(path)?,
            }
        }
        if let Err(source) = std::fs::metadata(parent(&place::local(path)?)) {
            return Err(Error::file("create", path, source));
        }
        match &place.at(temporary.path.clone()) {
            Location::Native(path) => {
                native::create(name, path, descriptor, &mut temporary.outside)?
            }
            Location::Npy(path) => npy::create(name, path, descriptor)?,
            Location::Zarr { path: own, version } => {
                zarr::create(name, own, descriptor, *version)?;
                if place::is_address(own) {
                    // Who looks after it has said what it makes sees all who did before.
                    check_free(name, place, false)?;
                    check_alone(name, path, own)?;
                }
            }
            Location::Hdf5 { path, inner } => {
                let inner = inner.as_deref().unwrap_or(USUAL_DATASET);
                hdf5::create(name, path, inner, descriptor)?
            }
            Location::Netcdf { path, inner } => {
                let inner = inner.as_deref().unwrap_or(netcdf::USUAL_VARIABLE);
                netcdf::create(name, path, inner, descriptor)?
            }
            Location::Tiff(_) => return Err(Error::format(name, tiff::READ_ONLY)),
            Location::Raw(raw) => {
                let layout = raw.descriptor.check(name)?;
                let end = file_end(name, raw.offset, layout.byte_len())?;
                FileStore::create(&raw.path)?.set_len(end)?;
            }
        }
        Ok(temporary)
    }

    /// Makes the directories of the groups that the array at `path` lies in.
    fn make_directories(&mut self, path: &Path) -> Result<()> {
        for group in groups_on_the_way(path) {
            match std::fs::create_dir(group) {
                Ok(()) => self.made.push(group.into()),
                Err(error) if error.kind() == std::io::ErrorKind::AlreadyExists => {}
                Err(source) => return Err(Error::file("create", group, source)),
            }
        }
        Ok(())
    }

    /// Gives them the name of `place`.
    fn name(&mut self, place: &Location, replace: bool) -> Result<()> {
        let (from, to) = (&self.path, place.path());
        if let Location::Zarr { path, version } = place {
            for group in groups_on_the_way(path) {
                zarr::check_group(&place.to_string(), group, *version)?;
                zarr::create_group(group, *version)?;
                zarr::forget_consolidated(group)?;
            }
        }
        if place::is_address(to) {
            check_free(&place.to_string(), place, replace)?;
            match place::is_address(from) {
                true => zarr::publish(from)?,
                false => place::upload(from, to)?,
            }
            return Ok(());
        }
        if from.is_dir() {
            sync_directory(from)?;
        }
        for file in &self.outside {
            sync_directory(parent(file))?;
        }
        // Other datasets may have been added to the old file meanwhile; from now on none are.
        let old = match place {
            Location::Hdf5 { path, .. } if replace && path.is_file() => {
                Some(FileStore::open(path, Access::ReadWrite)?)
            }
            _ => None,
        };
        if let Some(old) = &old {
            old.announce_writing()?;
        }
        let _nobody_adds = old
            .as_ref()
            .map(|old| hdf5::lock_shared_parts(old))
            .transpose()?;
        if old.is_some() {
            check_free(&place.to_string(), place, replace)?;
        }
        let renaming = |source| Error::file("create", to, source);
        if replace && to.is_dir() && from.is_dir() {
            // The old array is removed under the temporary name.
            let old = native::files_outside(to).unwrap_or_default();
            swap_names(from, to).map_err(renaming)?;
            self.outside = old;
        } else {
            if replace {
                std::fs::rename(from, to).map_err(renaming)?;
            } else {
                rename_to_free(from, to).map_err(renaming)?;
            }
            self.outside.clear();
        }
        Ok(())
    }
}

impl Named {
    /// Returns when the name is on stable storage.
    pub(crate) fn sync(self) -> Result<Location> {
        let place = self.0.place.clone();
        match &self.0.unfinished {
            Unfinished::Addition(addition) => addition.sync()?,
            Unfinished::Files(_) if place::is_address(place.path()) => {}
            Unfinished::Files(_) => sync_directory(parent(place.path()))?,
        }
        Ok(place)
    }
}

impl Deref for Draft {
    type Target = Array;

    fn deref(&self) -> &Array {
        &self.array
    }
}

/// The HDF5 file that a new array is added to, and its name in there; `None`: it gets a
/// file of its own, perhaps in place of one that holds nothing else.
fn file_of_others(place: &Location, replace: bool) -> Option<(&Path, &str)> {
    let Location::Hdf5 { path, inner } = place else {
        return None;
    };
    let inner = inner.as_deref().unwrap_or(USUAL_DATASET);
    let exists = !place::is_address(path) && path.is_file() && hdf5::is_file(path).unwrap_or(false);
    let added = exists && !(replace && hdf5::holds_only(path, inner));
    added.then_some((path, inner))
}

/// Whether the new array `name` has no files of its own.
pub(crate) fn is_added(name: &str, replace: bool) -> Result<bool> {
    Ok(file_of_others(&Location::of_new(name)?, replace).is_some())
}

/// The groups that a Zarr array at `path` lies in, from the one that ends in .zarr on.
pub(crate) fn groups_on_the_way(path: &Path) -> Vec<&Path> {
    let ends = |path: &&Path| path.extension().is_some_and(|ending| ending == "zarr");
    let around = parent(path);
    let Some(root) = around.ancestors().find(ends) else {
        return Vec::new();
    };
    let mut inside: Vec<&Path> = around.ancestors().collect();
    inside.retain(|path| path.starts_with(root));
    inside.reverse();
    inside
}

/// Fails if something has the name that must not be replaced: anything at all
/// without `replace`; with it, what is not an array or file of the same kind.
fn check_free(name: &str, place: &Location, replace: bool) -> Result<()> {
    if place::is_address(place.path()) {
        return check_free_address(name, place, replace);
    }
    let Ok(found) = place.path().symlink_metadata() else {
        return Ok(());
    };
    if !replace {
        return Err(Error::format(
            name,
            match place {
                Location::Netcdf { .. } => {
                    "the file exists already, and variables are not added to classic NetCDF files; \
                     name another file (one ending in .h5 can be added to), or ask for it to be \
                     replaced (--force), if it has no other variables"
                }
                _ => {
                    "something of this name exists already; remove it, or ask for it to be \
                     replaced (--force)"
                }
            },
        ));
    }
    let same_kind = match place {
        Location::Native(path) => found.is_dir() && native::is_array(path),
        Location::Npy(_) | Location::Raw(_) => found.is_file(),
        Location::Zarr { path, .. } => found.is_dir() && zarr::is_array(path),
        // The other datasets of a file would go with it.
        Location::Hdf5 { path, inner } => {
            hdf5::holds_only(path, inner.as_deref().unwrap_or(USUAL_DATASET))
        }
        Location::Netcdf { path, inner } => {
            netcdf::holds_only(path, inner.as_deref().unwrap_or(netcdf::USUAL_VARIABLE))
        }
        Location::Tiff(_) => false,
    };
    if same_kind {
        return Ok(());
    }
    Err(Error::format(
        name,
        "there is something else of this name (a directory, another format, or a file with other \
         datasets), which --force does not replace; remove it or take another name",
    ))
}

/// The same at an address. An object is replaced in one step, a Zarr array is not.
fn check_free_address(name: &str, place: &Location, replace: bool) -> Result<()> {
    let path = place.path();
    let problem = match place {
        Location::Zarr { .. } if zarr::is_node(path)? => {
            "something of this name exists already, and the objects of a Zarr array cannot be \
             replaced in one step; remove it, or take another name"
        }
        Location::Zarr { .. } => return Ok(()),
        _ if replace || !place::is_object(path)? => return Ok(()),
        _ => {
            "something of this name exists already; remove it, or ask for it to be replaced \
             (--force)"
        }
    };
    Err(Error::format(name, problem))
}

/// Fails if there are objects where the chunks of a new array are to be, besides its own
/// description at `own`.
fn check_alone(name: &str, path: &Path, own: &Path) -> Result<()> {
    let own = own.file_name().unwrap_or_default();
    let mut others = place::objects(path)?.list("")?;
    others.retain(|entry| own != entry.name.trim_end_matches('/'));
    let begun = |entry: &Entry| zarr::is_unfinished(&entry.name);
    if others.is_empty() {
        return Ok(());
    }
    Err(Error::format(
        name,
        match others.iter().any(begun) {
            true => {
                "another program is making an array of this name, or was killed while it did; if \
                 none is, remove the objects under this name, or else take another name"
            }
            false => {
                "there are objects under this name, though no array: an interrupted run may have \
                 left them; remove them, or take another name"
            }
        },
    ))
}

/// Where the data end; fails beyond what a file can hold.
pub(crate) fn file_end(array: &str, start: u64, len: u64) -> Result<u64> {
    let end = start
        .checked_add(len)
        .filter(|end| i64::try_from(*end).is_ok());
    end.ok_or_else(|| Error::format(array, "the file would exceed 2^63 - 1 bytes"))
}

/// A hidden name in the same directory and with the same ending.
pub(crate) fn beside(path: &Path, id: &str) -> Result<PathBuf> {
    let name = path.file_name().ok_or_else(|| {
        Error::format(
            path.display(),
            "this is not the name of a file or directory",
        )
    })?;
    let hidden = hidden_name(&format!("{id}-"), &name.to_string_lossy(), "");
    Ok(parent(path).join(hidden))
}

pub(crate) fn parent(path: &Path) -> &Path {
    match path.parent() {
        Some(parent) if parent != Path::new("") => parent,
        _ => Path::new("."),
    }
}

pub(crate) fn sync_directory(path: &Path) -> Result<()> {
    let sync = || std::fs::File::open(path)?.sync_all();
    sync().map_err(|source| Error::file("sync", path, source))
}

/// Exchanges two names in one step; `None` where the system cannot.
pub(crate) fn exchange_names(a: &Path, b: &Path) -> Option<std::io::Result<()>> {
    #[cfg(target_os = "linux")]
    return rename_with(a, b, libc::RENAME_EXCHANGE);
    #[cfg(not(target_os = "linux"))]
    None
}

/// Exchanges two names, in one step where the system has it.
fn swap_names(a: &Path, b: &Path) -> std::io::Result<()> {
    if let Some(done) = exchange_names(a, b) {
        return done;
    }
    let third = a.with_extension("old");
    std::fs::rename(b, &third)?;
    if let Err(error) = std::fs::rename(a, b) {
        // The old one keeps its name.
        std::fs::rename(&third, b)?;
        return Err(error);
    }
    std::fs::rename(third, a)
}

/// Renames unless something has the new name by now.
pub(crate) fn rename_to_free(from: &Path, to: &Path) -> std::io::Result<()> {
    #[cfg(target_os = "linux")]
    if let Some(done) = rename_with(from, to, libc::RENAME_NOREPLACE) {
        return done;
    }
    if to.symlink_metadata().is_ok() {
        return Err(std::io::ErrorKind::AlreadyExists.into());
    }
    std::fs::rename(from, to)
}

/// `renameat2` with flags; `None` where the file system does not have them.
#[cfg(target_os = "linux")]
fn rename_with(from: &Path, to: &Path, flags: libc::c_uint) -> Option<std::io::Result<()>> {
    use std::ffi::CString;
    use std::os::unix::ffi::OsStrExt;
    let text = |path: &Path| CString::new(path.as_os_str().as_bytes());
    let (from, to) = match (text(from), text(to)) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(error), _) | (_, Err(error)) => return Some(Err(error.into())),
    };
    let at = libc::AT_FDCWD;
    // SAFETY: both pointers are NUL-terminated strings that live through the call.
    let code = unsafe { libc::renameat2(at, from.as_ptr(), at, to.as_ptr(), flags) };
    if code == 0 {
        return Some(Ok(()));
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EINVAL | libc::ENOSYS | libc::EOPNOTSUPP) => None,
        _ => Some(Err(error)),
    }
}
