//! Where arrays are: files and directories of this machine, or objects at an address.
//!
//! An address (`s3://bucket/key`) is carried as a path, whose text it is; parents and
//! names in it are those of a path. Files, and named byte strings, are opened here, so
//! that those who read and write arrays need not know which of both a path is. Only
//! who makes an array does, since objects have no names that can be changed.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_storage::{Access, Address, Directory, FileStore, Objects, Store};

use crate::error::{Error, Result};

/// What the name of a local file may begin with, before `://`.
const FILE: &str = "file";

/// The path that `text` names, which may be an address.
pub(crate) fn path(text: &str) -> Result<PathBuf> {
    if Address::is_one(text) {
        return Ok(Address::parse(text)?.to_string().into());
    }
    let local = match text.split_once("://") {
        Some((scheme, local)) if scheme.eq_ignore_ascii_case(FILE) => local,
        _ => return Ok(text.into()),
    };
    let local = local.strip_prefix("localhost").unwrap_or(local);
    match local.starts_with('/') {
        true => Ok(local.into()),
        false => Err(Error::format(
            text,
            "after file:// stands the whole path, as in file:///data/field.npy",
        )),
    }
}

/// Whether `path` is an address.
pub(crate) fn is_address(path: &Path) -> bool {
    path.to_str().is_some_and(Address::is_one)
}

/// The address that `path` is; `None`: it is on this machine.
fn address(path: &Path) -> Result<Option<Address>> {
    match path.to_str().filter(|text| Address::is_one(text)) {
        Some(text) => Ok(Some(Address::parse(text)?)),
        None => Ok(None),
    }
}

/// The objects under `path`.
pub(crate) fn objects(path: &Path) -> Result<Arc<dyn Objects>> {
    Ok(match address(path)? {
        Some(address) => remote::objects(&address)?,
        None => Arc::new(Directory::new(path)),
    })
}

/// The bytes of the file at `path`.
pub(crate) fn file(path: &Path, access: Access) -> Result<Arc<dyn Store>> {
    let Some(address) = address(path)? else {
        return Ok(Arc::new(FileStore::open(path, access)?));
    };
    if access == Access::ReadWrite {
        return Err(Error::format(
            address,
            "an object can only be replaced as a whole, not changed; convert it to a file, or to \
             a Zarr array, whose chunks are objects",
        ));
    }
    remote::object(&address)
}

/// Whether `path` is a folder; fails if nothing is there. At an address, all that is no
/// object may be one.
pub(crate) fn is_folder(path: &Path) -> Result<bool> {
    if is_address(path) {
        return Ok(!is_object(path)?);
    }
    let found = std::fs::metadata(path).map_err(|source| Error::file("open", path, source))?;
    Ok(found.is_dir())
}

/// Why there is no array at the address `path`.
pub(crate) fn no_array(path: &Path) -> Error {
    let listed = match address(path) {
        // What is not listed is not there.
        Ok(Some(address)) if address.scheme().is_web() => Ok(Vec::new()),
        _ => objects(path).and_then(|objects| Ok(objects.list("")?)),
    };
    match listed {
        Ok(found) if found.is_empty() => Error::format(path.display(), "nothing is there (404)"),
        Ok(found) => {
            let names: Vec<&str> = found.iter().take(8).map(|entry| &*entry.name).collect();
            Error::format(
                path.display(),
                format!(
                    "this is no array, but there are others under its name: {}",
                    names.join(", ")
                ),
            )
        }
        Err(error) => error,
    }
}

/// Fails if nothing can be made at `path`.
pub(crate) fn check_new(path: &Path) -> Result<()> {
    match address(path)? {
        Some(address) if address.scheme().is_web() => Err(Error::format(
            address,
            "web servers are only read; make it at s3://, gs:// or az://, or in a file",
        )),
        Some(address) if address.key().is_empty() => Err(Error::format(
            address,
            "this is a whole bucket; name something in it, as in s3://bucket/data.zarr",
        )),
        _ => Ok(()),
    }
}

/// Whether a file is at `path`.
pub(crate) fn is_object(path: &Path) -> Result<bool> {
    match address(path)? {
        Some(address) => remote::is_object(&address),
        None => Ok(path.is_file()),
    }
}

/// Whether anything is at `path`.
pub(crate) fn exists(path: &Path) -> Result<bool> {
    match is_address(path) {
        true => Ok(!objects(path)?.list("")?.is_empty()),
        false => path
            .try_exists()
            .map_err(|source| Error::file("open", path, source)),
    }
}

/// A file of this machine that stands for `path` until that is complete: itself, or
/// one among the temporary files of this user with a name of its own.
pub(crate) fn local(path: &Path) -> Result<PathBuf> {
    const LONGEST: usize = 160;
    if !is_address(path) {
        return Ok(path.into());
    }
    let text = path.to_string_lossy();
    let plain = |letter: char| match letter.is_ascii_alphanumeric() || ".-".contains(letter) {
        true => letter,
        false => '_',
    };
    // The end names the format; other addresses may look the same.
    let letters: Vec<char> = text.chars().map(plain).collect();
    let end = &letters[letters.len().saturating_sub(LONGEST)..];
    let end: String = end.iter().collect();
    let own = crc32c::crc32c(text.as_bytes());
    Ok(own_directory()?.join(format!("{own:08x}-{end}")))
}

/// A directory among the temporary files in which nobody else can put anything: what
/// is found there, journals among it, is believed.
fn own_directory() -> Result<PathBuf> {
    use std::os::unix::fs::{DirBuilderExt, MetadataExt};
    // SAFETY: the call takes nothing and cannot fail.
    let user = unsafe { libc::geteuid() };
    let path = std::env::temp_dir().join(format!("outcore-{user}"));
    let failed = |source| Error::file("use", &path, source);
    if let Err(error) = std::fs::DirBuilder::new().mode(0o700).create(&path)
        && error.kind() != std::io::ErrorKind::AlreadyExists
    {
        return Err(failed(error));
    }
    let found = path.symlink_metadata().map_err(failed)?;
    match found.is_dir() && found.uid() == user && found.mode() & 0o077 == 0 {
        true => Ok(path),
        false => Err(Error::format(
            path.display(),
            "others could write there; remove it, or set TMPDIR to another directory",
        )),
    }
}

/// Makes the object at `to` of the file `from`.
pub(crate) fn upload(from: &Path, to: &Path) -> Result<()> {
    let file = FileStore::open(from, Access::ReadOnly)?;
    match address(to)? {
        Some(address) => remote::upload(&address, &file),
        None => Err(Error::format(to.display(), "this is no address")),
    }
}

#[cfg(feature = "remote")]
mod remote {
    use std::sync::Arc;

    use outcore_storage::{Address, Bucket, Objects, Store};

    use crate::error::Result;

    pub(super) fn objects(address: &Address) -> Result<Arc<dyn Objects>> {
        Ok(Arc::new(Bucket::at(address)?))
    }

    pub(super) fn is_object(address: &Address) -> Result<bool> {
        Ok(Bucket::at(address)?.is_object()?)
    }

    pub(super) fn object(address: &Address) -> Result<Arc<dyn Store>> {
        Ok(Arc::new(Bucket::at(address)?.object()?))
    }

    pub(super) fn upload(address: &Address, file: &dyn Store) -> Result<()> {
        Ok(Bucket::at(address)?.upload(file)?)
    }
}

/// A build without object stores says so.
#[cfg(not(feature = "remote"))]
mod remote {
    use std::sync::Arc;

    use outcore_storage::{Address, Objects, Store};

    use crate::error::{Error, Result};

    fn missing<T>(address: &Address) -> Result<T> {
        Err(Error::format(
            address,
            "this program was built without object stores; build it with --features remote",
        ))
    }

    pub(super) fn objects(address: &Address) -> Result<Arc<dyn Objects>> {
        missing(address)
    }

    pub(super) fn is_object(address: &Address) -> Result<bool> {
        missing(address)
    }

    pub(super) fn object(address: &Address) -> Result<Arc<dyn Store>> {
        missing(address)
    }

    pub(super) fn upload(address: &Address, _: &dyn Store) -> Result<()> {
        missing(address)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_address_has_a_name_of_its_own() {
        let name = |text: &str| local(Path::new(text)).unwrap();
        let (one, other) = (name("s3://b/a/b.npy"), name("s3://b/a_b.npy"));
        assert_ne!(one, other);
        assert_eq!(one, name("s3://b/a/b.npy"));
        assert!(one.to_string_lossy().ends_with("b.npy"));
    }
}
