//! [`Location`]: which array a text names, and in which format it is.

use std::fmt;
use std::io::Read;
use std::path::{Path, PathBuf};

use crate::error::{Error, Result};
use crate::format::npy;
use crate::format::raw::RawFile;

/// Where an array is and in which format.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Location {
    /// A directory with a descriptor and data.
    Native(PathBuf),
    /// A NumPy file.
    Npy(PathBuf),
    /// Any file, described in the text itself.
    Raw(Box<RawFile>),
}

impl Location {
    /// The array that exists under `text`.
    pub(crate) fn of_existing(text: &str) -> Result<Self> {
        if let Some(raw) = text.strip_prefix("raw:") {
            return Ok(Self::Raw(RawFile::parse(raw)?.into()));
        }
        let path = PathBuf::from(text);
        let metadata =
            std::fs::metadata(&path).map_err(|source| Error::file("open", &path, source))?;
        if metadata.is_dir() {
            return Ok(Self::Native(path));
        }
        if path.extension().is_some_and(|extension| extension == "npy") || begins_as_npy(&path)? {
            return Ok(Self::Npy(path));
        }
        Err(Error::format(
            text,
            format!(
                "this is neither an outcore directory nor a .npy file; describe plain data as \
                 'raw:{text}?shape=4096x4096&type=f32&layout=row&offset=0'"
            ),
        ))
    }

    /// The array that is to be made under `text`, whose ending names the format.
    pub(crate) fn of_new(text: &str) -> Result<Self> {
        if let Some(raw) = text.strip_prefix("raw:") {
            return Ok(Self::Raw(RawFile::parse(raw)?.into()));
        }
        let path = PathBuf::from(text.trim_end_matches('/'));
        match path.extension().and_then(|extension| extension.to_str()) {
            Some("oc") => Ok(Self::Native(path)),
            Some("npy") => Ok(Self::Npy(path)),
            _ => Err(Error::format(
                text,
                "the name of a new array must end in .oc (outcore's own format) or .npy (NumPy), \
                 or be a 'raw:' description",
            )),
        }
    }

    /// The file or directory.
    pub(crate) fn path(&self) -> &Path {
        match self {
            Self::Native(path) | Self::Npy(path) => path,
            Self::Raw(raw) => &raw.path,
        }
    }

    /// The name of the format.
    pub(crate) fn format(&self) -> &'static str {
        match self {
            Self::Native(_) => "native",
            Self::Npy(_) => "npy",
            Self::Raw(_) => "raw",
        }
    }

    /// The same format elsewhere.
    pub(crate) fn at(&self, path: PathBuf) -> Self {
        match self {
            Self::Native(_) => Self::Native(path),
            Self::Npy(_) => Self::Npy(path),
            Self::Raw(raw) => {
                let mut moved = raw.clone();
                moved.path = path;
                Self::Raw(moved)
            }
        }
    }
}

fn begins_as_npy(path: &Path) -> Result<bool> {
    let mut start = [0; npy::MAGIC.len()];
    let mut file = std::fs::File::open(path).map_err(|source| Error::file("open", path, source))?;
    Ok(file.read_exact(&mut start).is_ok() && start == npy::MAGIC)
}

/// The text that names the array.
impl fmt::Display for Location {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Native(path) | Self::Npy(path) => write!(f, "{}", path.display()),
            Self::Raw(raw) => write!(f, "{raw}"),
        }
    }
}
