//! Files that have their name when they are complete.

use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};

use outcore::{Error, Result, hidden_name};

/// Writes a file under another name beside `name`, in place of which it then
/// goes; nothing is left if that fails. What is no file, such as a pipe, is
/// written itself.
pub(crate) fn write(name: &str, fill: impl FnOnce(&File) -> io::Result<()>) -> Result<()> {
    let failed = |source| Error::File {
        action: "write",
        path: PathBuf::from(name),
        source,
    };
    let path = Path::new(name);
    if path.metadata().is_ok_and(|there| !there.is_file()) {
        let file = File::options().write(true).open(path).map_err(failed)?;
        return fill(&file).map_err(failed);
    }
    let last = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary =
        path.with_file_name(hidden_name(&format!("{}-", std::process::id()), &last, ""));
    let file = File::create(&temporary).map_err(failed)?;
    let outcome = fill(&file)
        .and_then(|()| file.sync_all())
        .and_then(|()| std::fs::rename(&temporary, path));
    if outcome.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    outcome.map_err(failed)
}

/// The same with a text.
pub(crate) fn write_text(name: &str, text: &str) -> Result<()> {
    write(name, |mut file| {
        io::Write::write_all(&mut file, text.as_bytes())
    })
}
