//! [`Location`]: which array a text names, and in which format it is.

use std::fmt;
use std::path::{Path, PathBuf};

use outcore_storage::Access;

use crate::error::{Error, Result};
use crate::format::raw::RawFile;
use crate::format::{has_at, hdf5, native, netcdf, npy, place, tiff, zarr};

/// Where an array is and in which format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Location {
    /// A directory with a descriptor and data.
    Native(PathBuf),
    /// A NumPy file.
    Npy(PathBuf),
    /// Any file, described in the text itself.
    Raw(Box<RawFile>),
    /// A Zarr array: a directory with a description and chunks.
    Zarr {
        /// Where it is.
        path: PathBuf,
        /// The version that a new one has.
        version: u8,
    },
    /// A dataset of an HDF5 (or NetCDF-4) file.
    Hdf5 {
        /// The file.
        path: PathBuf,
        /// The dataset, as in `/group/data`; `None`: the only one.
        inner: Option<String>,
    },
    /// A variable of a classic NetCDF file.
    Netcdf {
        /// The file.
        path: PathBuf,
        /// The variable; `None`: the only one that is no coordinate.
        inner: Option<String>,
    },
    /// The pages of a TIFF file.
    Tiff(PathBuf),
}

/// The dataset of a new HDF5 file if nobody names it.
pub(crate) const USUAL_DATASET: &str = "/data";

/// What the name of a new array of version 2 begins with.
const ZARR_2: &str = "zarr2:";

impl Location {
    /// The array that exists under `text`.
    pub(crate) fn of_existing(text: &str) -> Result<Self> {
        if let Some(raw) = text.strip_prefix("raw:") {
            return Ok(Self::Raw(RawFile::parse(raw)?.into()));
        }
        let is_there = |path: &Path| holds_names(path) || path.is_file();
        // What has the whole name is no part of something else.
        if !Path::new(text).exists()
            && let Some((path, inner)) = with_inner(text, is_there)?
        {
            let named = Some(inner.into());
            if hdf5::is_file(&path)? {
                return Ok(Self::Hdf5 { path, inner: named });
            }
            if netcdf::is_file(&path)? {
                return Ok(Self::Netcdf { path, inner: named });
            }
            if path.is_file() {
                return Err(Error::format(
                    path.display(),
                    format!(
                        "this is neither an HDF5 nor a NetCDF file, so there is no {inner} in it"
                    ),
                ));
            }
        }
        let path = place::path(text.strip_prefix(ZARR_2).unwrap_or(text))?;
        // A web server does not say what is a folder.
        if (place::is_address(&path) && is_zarr(&path)) || place::is_folder(&path)? {
            if !native::is_array(&path) && (is_zarr(&path) || zarr::is_node(&path)?) {
                return Ok(Self::Zarr { path, version: 3 });
            }
            if place::is_address(&path) {
                return Err(place::no_array(&path));
            }
            return Ok(Self::Native(path));
        }
        if path.extension().is_some_and(|extension| extension == "npy")
            || has_at(&path, &npy::MAGIC, &[0])?
        {
            return Ok(Self::Npy(path));
        }
        if hdf5::is_file(&path)? {
            return Ok(Self::Hdf5 { path, inner: None });
        }
        if netcdf::is_file(&path)? {
            return Ok(Self::Netcdf { path, inner: None });
        }
        if tiff::is_file(&path)? {
            return Ok(Self::Tiff(path));
        }
        Err(Error::format(
            text,
            format!(
                "this is neither an outcore directory nor a Zarr array nor an HDF5, NetCDF, TIFF or .npy file; describe \
                 plain data as 'raw:{text}?shape=4096x4096&type=f32&layout=row&offset=0'"
            ),
        ))
    }

    /// The array that is to be made under `text`, whose ending names the format.
    pub(crate) fn of_new(text: &str) -> Result<Self> {
        if let Some(raw) = text.strip_prefix("raw:") {
            let raw = RawFile::parse(raw)?;
            place::check_new(&raw.path)?;
            return Ok(Self::Raw(raw.into()));
        }
        let (text, version) = match text.strip_prefix(ZARR_2) {
            Some(text) => (text, 2),
            None => (text, 3),
        };
        let path = place::path(text.trim_end_matches('/'))?;
        place::check_new(&path)?;
        if version == 2 || is_zarr(&path) {
            return Ok(Self::Zarr { path, version });
        }
        let (file, inner) = match with_inner(text, holds_names)? {
            Some((file, inner)) => (file, Some(inner.to_owned())),
            None => (path.clone(), None),
        };
        let ending = file.extension().and_then(|ending| ending.to_str());
        if let Some("h5" | "hdf5") = ending {
            return Ok(Self::Hdf5 {
                path: file,
                inner: inner.or_else(|| Some(USUAL_DATASET.into())),
            });
        }
        if let Some("nc" | "nc4") = ending {
            let inner = inner.or_else(|| Some(netcdf::USUAL_VARIABLE.into()));
            // Files of NetCDF-4 that exist can be added to.
            let newer = ending == Some("nc4")
                || !place::is_address(&file) && file.is_file() && hdf5::is_file(&file)?;
            return Ok(match newer {
                true => Self::Hdf5 { path: file, inner },
                false => Self::Netcdf { path: file, inner },
            });
        }
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("tif" | "tiff") => Err(Error::format(text, tiff::READ_ONLY)),
            Some("oc") if place::is_address(&path) => Err(Error::format(
                text,
                "outcore's own format needs a file system; make a Zarr array there (a name ending \
                 in .zarr), or a .npy object",
            )),
            Some("oc") => Ok(Self::Native(path)),
            Some("npy") => Ok(Self::Npy(path)),
            _ => Err(Error::format(
                text,
                "the name of a new array must end in .oc (outcore's own format), .zarr (or lie in \
                 such a directory), .h5, .nc or .nc4 (NetCDF-4), perhaps with a name in it, as in \
                 file.h5:/group/data or file.nc:temperature, or .npy (NumPy), or be a 'raw:' \
                 description",
            )),
        }
    }

    /// The file or directory.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Native(path)
            | Self::Npy(path)
            | Self::Zarr { path, .. }
            | Self::Hdf5 { path, .. }
            | Self::Netcdf { path, .. }
            | Self::Tiff(path) => path,
            Self::Raw(raw) => &raw.path,
        }
    }

    /// A path that no other array has: of a dataset without a name, a hidden one beside
    /// its file, which has others; else the file or directory.
    pub(crate) fn own_path(&self) -> PathBuf {
        match self {
            Self::Hdf5 {
                path,
                inner: Some(inner),
            } if hdf5::is_unlinked(inner) => {
                let file = path.file_name().unwrap_or_default().to_string_lossy();
                path.with_file_name(format!(".{file}{inner}"))
            }
            _ => self.path().into(),
        }
    }

    /// Which array of a file it is, if that was said.
    pub(crate) fn inner(&self) -> Option<&str> {
        match self {
            Self::Hdf5 { inner, .. } | Self::Netcdf { inner, .. } => inner.as_deref(),
            _ => None,
        }
    }

    /// How a new array can be used once it has its name: objects cannot be changed.
    pub(crate) fn access_once_made(&self) -> Access {
        match self {
            Self::Zarr { .. } => Access::ReadWrite,
            _ if place::is_address(self.path()) => Access::ReadOnly,
            _ => Access::ReadWrite,
        }
    }

    /// The name of the format.
    pub(crate) fn format(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Npy(_) => "npy",
            Self::Raw(_) => "raw",
            Self::Zarr { .. } => "zarr",
            Self::Hdf5 { .. } => "hdf5",
            Self::Netcdf { .. } => "netcdf",
            Self::Tiff(_) => "tiff",
        }
    }

    /// The same format elsewhere.
    pub(crate) fn at(&self, path: PathBuf) -> Self {
        match self {
            Self::Native(_) => Self::Native(path),
            Self::Npy(_) => Self::Npy(path),
            Self::Zarr { version, .. } => Self::Zarr {
                path,
                version: *version,
            },
            Self::Hdf5 { inner, .. } => Self::Hdf5 {
                path,
                inner: inner.clone(),
            },
            Self::Netcdf { inner, .. } => Self::Netcdf {
                path,
                inner: inner.clone(),
            },
            Self::Tiff(_) => Self::Tiff(path),
            Self::Raw(raw) => {
                let mut moved = raw.clone();
                moved.path = path;
                Self::Raw(moved)
            }
        }
    }
}

/// The file and the name in it, of `file.h5:/group/data`: the first colon before which
/// stands what `is_file` takes for a file that can hold names.
fn with_inner(text: &str, is_file: impl Fn(&Path) -> bool) -> Result<Option<(PathBuf, &str)>> {
    // The colons of an address, and of its host, are none of this.
    let behind = |at: usize| {
        let host = at + "://".len();
        text[host..].find('/').map_or(text.len(), |end| host + end)
    };
    let start = text.find("://").map_or(0, behind);
    for (at, _) in text[start..].match_indices(':') {
        let (file, inner) = (&text[..start + at], &text[start + at + 1..]);
        if file.is_empty() || inner.is_empty() {
            continue;
        }
        let path = place::path(file)?;
        if is_file(&path) {
            return Ok(Some((path, inner)));
        }
    }
    Ok(None)
}

/// Whether a name says that this is an HDF5 or a NetCDF file.
fn holds_names(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("h5" | "hdf5" | "nc" | "nc4"))
}

/// Whether a directory in the path has the ending of Zarr.
fn is_zarr(path: &Path) -> bool {
    path.components().any(|part| {
        Path::new(&part)
            .extension()
            .is_some_and(|ending| ending == "zarr")
    })
}

/// The text that names the array.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(path) | Self::Npy(path) | Self::Zarr { path, .. } | Self::Tiff(path) => {
                write!(f, "{}", path.display())
            }
            Self::Raw(raw) => write!(f, "{raw}"),
            Self::Hdf5 { path, inner } | Self::Netcdf { path, inner } => match inner {
                Some(inner) => write!(f, "{}:{inner}", path.display()),
                None => write!(f, "{}", path.display()),
            },
        }
    }
}
