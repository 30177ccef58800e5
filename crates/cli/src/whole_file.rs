//! Files that have their name when they are complete.

use std::fs::File;
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};

use outcore::{Error, Result, hidden_name};

/// Writes a file under another name beside `name`, in place of which it then
/// goes; nothing is left if that fails. What is no file, such as a pipe, is
/// written itself.
pub(crate) fn write(name: &str, fill: impl FnOnce(&File) -> Result<()>) -> Result<()> {
    let path = Path::new(name);
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let file = File::options().write(true).open(path);
        return fill(&file.map_err(failed(name))?);
    }
    let (temporary, file) = unfinished(path).map_err(failed(name))?;
    let named = || {
        file.sync_all()?;
        std::fs::rename(&temporary, path)
    };
    let outcome = fill(&file).and_then(|()| named().map_err(failed(name)));
    if outcome.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    outcome
}

/// The same with a text.
pub(crate) fn write_text(name: &str, text: &str) -> Result<()> {
    write(name, |mut file| {
        io::Write::write_all(&mut file, text.as_bytes()).map_err(failed(name))
    })
}

/// The error of a file that cannot be written.
pub(crate) fn failed(name: &str) -> impl Fn(io::Error) -> Error {
    let path = PathBuf::from(name);
    move |source| Error::File {
        action: "write",
        path: path.clone(),
        source,
    }
}

/// A new, hidden file beside `path`.
fn unfinished(path: &Path) -> io::Result<(PathBuf, File)> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let process = std::process::id();
    let mut number = 0;
    loop {
        let hidden = hidden_name(&format!("{process}-{number}-"), &name, "");
        let hidden = path.with_file_name(hidden);
        match File::create_new(&hidden) {
            // Left by a process of the same number, or put there by somebody.
            Err(error) if error.kind() == ErrorKind::AlreadyExists => number += 1,
            created => return Ok((hidden, created?)),
        }
    }
}
