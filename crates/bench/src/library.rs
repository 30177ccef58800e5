//! Other systems as libraries: built from sources of this crate with the
//! compiler of the MPI that this program runs under, and loaded into its
//! processes.

use std::ffi::{CStr, CString, c_void};
use std::path::{Path, PathBuf};
use std::process::Command;

use outcore::{Error, Result};

/// The name of a library, its source and its header, and what it is linked with.
pub(crate) struct Source {
    pub(crate) name: &'static str,
    pub(crate) text: &'static str,
    pub(crate) header: &'static str,
    pub(crate) package: Option<&'static str>,
    /// In which `{mpi}` is the name of the MPI.
    pub(crate) flags: &'static [&'static str],
}

/// Where the library is built.
pub(crate) fn shared(directory: &Path, source: &Source) -> PathBuf {
    directory.join(format!("{}.so", source.name))
}

/// Builds a library in `directory`.
pub(crate) fn build(directory: &Path, source: &Source) -> Result<()> {
    let code = directory.join(format!("{}.c", source.name));
    let written = std::fs::write(directory.join("peer.h"), source.header)
        .and_then(|()| std::fs::write(&code, source.text));
    written.map_err(|error| Error::File {
        action: "write",
        path: code.clone(),
        source: error,
    })?;
    let library = mpi_library();
    let compiler = std::env::var("MPICC").unwrap_or_else(|_| format!("mpicc.{library}"));
    let mut command = Command::new(&compiler);
    command.args(["-shared", "-fPIC", "-O2", "-w", "-o"]);
    command.arg(shared(directory, source)).arg(&code);
    if let Some(package) = source.package {
        let flags = Command::new("pkg-config")
            .args(["--cflags", "--libs", &format!("{package}-{library}")])
            .output();
        let flags = flags.map_err(|error| Error::Invalid(format!("pkg-config: {error}")))?;
        command.args(String::from_utf8_lossy(&flags.stdout).split_whitespace());
    }
    let flags = source
        .flags
        .iter()
        .map(|flag| flag.replace("{mpi}", library));
    let built = command.args(flags).output();
    let built = built.map_err(|error| Error::Invalid(format!("{compiler}: {error}")))?;
    match built.status.success() {
        true => Ok(()),
        false => {
            let why = String::from_utf8_lossy(&built.stderr);
            Err(Error::Invalid(format!("{compiler} failed: {}", why.trim())))
        }
    }
}

/// A library that has been loaded, and stays so.
pub(crate) struct Loaded {
    path: PathBuf,
    handle: *mut c_void,
}

impl Loaded {
    /// Loads what [`build`] has built.
    pub(crate) fn new(path: PathBuf) -> Result<Self> {
        let failed = |what: &str| Error::Invalid(format!("{}: {what}", path.display()));
        let text = CString::new(path.to_string_lossy().as_bytes()).map_err(|_| failed("zero"))?;
        // SAFETY: the text ends with a zero; what is loaded was built from
        // sources of this crate and runs nothing of its own when it is loaded.
        let handle = unsafe { libc::dlopen(text.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
        match handle.is_null() {
            true => Err(failed("it cannot be loaded")),
            false => Ok(Self { path, handle }),
        }
    }

    /// The address of a function.
    pub(crate) fn find(&self, symbol: &CStr) -> Result<*mut c_void> {
        // SAFETY: the library stays loaded, and the text ends with a zero.
        let found = unsafe { libc::dlsym(self.handle, symbol.as_ptr()) };
        match found.is_null() {
            true => {
                let path = self.path.display();
                Err(Error::Invalid(format!(
                    "{path}: it is no library of this bench"
                )))
            }
            false => Ok(found),
        }
    }
}

/// What carries messages between the ranks.
#[cfg(feature = "mpi")]
pub(crate) fn mpi_library() -> &'static str {
    match outcore_transport_mpi::library_version().starts_with("Open MPI") {
        true => "openmpi",
        false => "mpich",
    }
}

/// Never asked for: without MPI a program that a launcher started has refused.
#[cfg(not(feature = "mpi"))]
pub(crate) fn mpi_library() -> &'static str {
    "mpi"
}
