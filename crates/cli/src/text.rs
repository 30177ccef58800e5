//! Numbers as text: the last axis along the line, one line for each index of
//! the axis before, an empty line where an axis before that goes on.

use std::io::Write;
use std::path::{Path, PathBuf};

use outcore::{Array, Error, Pattern, Pieces, Result, Section, reorder};

/// Elements in memory at a time.
const PIECE: u64 = 1 << 20;

/// Prints `section` to `output` (- for standard output): to a .csv file with
/// commas, otherwise with spaces.
pub(crate) fn write(
    array: &Array,
    section: &Section,
    pattern: &Pattern,
    output: &str,
    force: bool,
) -> Result<()> {
    let separator = if output.ends_with(".csv") { "," } else { " " };
    let failed = |source| Error::File {
        action: "write",
        path: PathBuf::from(output),
        source,
    };
    if output == "-" {
        let out = std::io::BufWriter::new(std::io::stdout().lock());
        return lines(array, section, pattern, separator, out);
    }
    let path = Path::new(output);
    if path.exists() && !force {
        return Err(Error::Invalid(format!(
            "{output} exists already; --force replaces it"
        )));
    }
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let temporary = path.with_file_name(format!(".{}-{name}", std::process::id()));
    let file = std::fs::File::create(&temporary).map_err(failed)?;
    let written = lines(
        array,
        section,
        pattern,
        separator,
        std::io::BufWriter::new(file),
    );
    let outcome = written.and_then(|()| std::fs::rename(&temporary, path).map_err(failed));
    if outcome.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    outcome
}

fn lines(
    array: &Array,
    section: &Section,
    pattern: &Pattern,
    separator: &str,
    mut out: impl Write,
) -> Result<()> {
    let failed = |source| Error::File {
        action: "write to",
        path: "the output".into(),
        source,
    };
    let dropped = pattern.single_axes(section.axes().len());
    let shape = section.shape();
    let row_major: Vec<usize> = (0..shape.len()).collect();
    // How many elements make a line, and how many the block up to each empty line.
    let kept: Vec<u64> = row_major
        .iter()
        .filter(|axis| !dropped.contains(axis))
        .map(|axis| shape[*axis])
        .collect();
    let mut blocks: Vec<u64> = Vec::new();
    let mut block = 1;
    for extent in kept.iter().rev() {
        block *= extent;
        blocks.push(block);
    }
    let size = array.layout().element_size();
    let (mut bytes, mut ordered) = (Vec::new(), Vec::new());
    let mut number = 0u64;
    for piece in Pieces::new(section, &row_major, PIECE) {
        bytes.resize((piece.count() * size) as usize, 0);
        ordered.resize(bytes.len(), 0);
        array.read_bytes(&piece, &mut bytes)?;
        let order = array.layout().slowest_first();
        reorder(&piece.shape(), (&bytes, order), (&mut ordered, &row_major));
        for element in ordered.chunks_exact(size as usize) {
            number += 1;
            let ends = blocks.iter().filter(|block| number % **block == 0).count();
            let last = ends > 0 || blocks.is_empty();
            let after = if last { "\n" } else { separator };
            let text = array.element_type().text(element);
            write!(out, "{text}{after}").map_err(failed)?;
            if ends > 1 && ends < blocks.len() {
                out.write_all(b"\n").map_err(failed)?;
            }
        }
    }
    out.flush().map_err(failed)
}
