//! `--html`: the lines of any bench as one page: outcore, other systems, and the
//! limits of the machine.
//!
//! The path: lines of a run, or files of them -> [`Row`]s -> for each operation the
//! cases with a bar for each contestant ([`chart`]), in words how outcore does, and
//! all values as a table.

mod chart;
mod row;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use outcore::{Error, Result};
use outcore_bench::Line;

use crate::checkpoint::utc;
use crate::machine;
use crate::page::Page;
use crate::picture::time;
use crate::whole_file;
use row::Role;
pub(super) use row::Row;

/// So many cases are drawn at once; more are folded away.
const MOST_CASES: usize = 24;

/// Writes the page of a run of this program.
pub(super) fn of_run(file: &str, lines: &[Line]) -> Result<()> {
    let rows: Vec<Row> = lines.iter().map(Row::from).collect();
    let bench = rows.first().map_or("", |row| row.bench.as_str());
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let mut page = Page::new(&format!("outcore bench {bench}"));
    let mut facts = machine::facts(&directory(&arguments));
    facts.extend(now().map(|now| ("time", now)));
    facts.push(("command", command(&arguments)));
    page.facts(&facts);
    page.note(READING);
    results(&mut page, &rows);
    whole_file::write_text(file, &page.finish())
}

/// Writes a page of files that `--csv` has printed.
pub(super) fn of_files(file: &str, sources: &[PathBuf]) -> Result<()> {
    let mut page = Page::new("outcore bench: results from files");
    page.note(
        "These values were measured when the files were made, which is not necessarily on the \
         machine that made this page.",
    );
    page.note(READING);
    for source in sources {
        let text = std::fs::read_to_string(source).map_err(|error| Error::File {
            action: "read",
            path: source.clone(),
            source: error,
        })?;
        let rows = Row::of_csv(&text).map_err(|problem| {
            let name = source.display();
            Error::Invalid(format!("{name}: {problem}; it must be what --csv prints"))
        })?;
        page.element("h2", &source.display().to_string());
        if let Some(notes) = notes(source) {
            page.folded("README.md beside it", |page| page.lines(&notes));
        }
        results(&mut page, &rows);
    }
    whole_file::write_text(file, &page.finish())
}

const READING: &str = "Bars are the best times; shorter is faster. The bar of outcore is the way \
    that it chooses itself (auto) where that was measured, otherwise its best; that of another \
    system is its best. The number behind it is its time by that of outcore. Limits are what \
    the machine does without any of the work, such as plain pread or memcpy.";

/// Charts, a summary and the table of some rows.
fn results(page: &mut Page, rows: &[Row]) {
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for row in rows {
        let kind = (row.bench.as_str(), row.op.as_str());
        if !kinds.contains(&kind) {
            kinds.push(kind);
        }
    }
    for (bench, op) in kinds {
        let of_kind = rows.iter().filter(|row| row.bench == bench && row.op == op);
        let of_kind: Vec<&Row> = of_kind.collect();
        let cases = chart::cases(&of_kind);
        page.element("h3", &format!("{bench}: {op}"));
        if let Some(summary) = summary(&cases) {
            page.element("p", &summary);
        }
        let (first, rest) = cases.split_at(cases.len().min(MOST_CASES));
        page.drawing("chart", &chart::draw(first, &cases));
        if !rest.is_empty() {
            page.folded(&format!("{} more cases", rest.len()), |page| {
                page.drawing("chart", &chart::draw(rest, &cases));
            });
        }
    }
    page.folded(&format!("all {} values", rows.len()), |page| {
        let heads = [
            "system",
            "case",
            "op",
            "strategy",
            "transport",
            "ranks",
            "bytes",
            "best",
            "median",
            "per second",
            "",
        ];
        let cells: Vec<Vec<String>> = rows.iter().map(cells).collect();
        page.table(&heads, &cells);
    });
}

fn cells(row: &Row) -> Vec<String> {
    let rate = match row.best_s > 0.0 && row.useful_bytes > 0 {
        true => format!("{:.3} GB", row.useful_bytes as f64 / row.best_s / 1e9),
        false => String::new(),
    };
    vec![
        row.system.clone(),
        row.case.clone(),
        row.op.clone(),
        row.strategy.clone(),
        row.transport.clone(),
        row.ranks.to_string(),
        row.useful_bytes.to_string(),
        time(row.best_s),
        time(row.median_s),
        rate,
        if row.ok { "" } else { "WRONG" }.into(),
    ]
}

/// How outcore does beside the best other system, and beside the limit.
fn summary(cases: &[chart::Case<'_>]) -> Option<String> {
    let ratios = |role: Role| {
        let ratios = cases.iter().filter_map(|case| {
            let us = case.us()?;
            let others = case.bars.iter().filter(|bar| bar.row.role() == role);
            let best = others.map(|bar| bar.row.best_s).reduce(f64::min)?;
            (us > 0.0 && best > 0.0).then_some(best / us)
        });
        let mut ratios: Vec<f64> = ratios.collect();
        ratios.sort_by(f64::total_cmp);
        ratios
    };
    let (peers, limits) = (ratios(Role::Peer), ratios(Role::Limit));
    let mut parts = Vec::new();
    if let Some(middle) = peers.get(peers.len() / 2) {
        let faster = peers.iter().filter(|ratio| **ratio > 1.0).count();
        parts.push(format!(
            "faster than the best other system in {faster} of {} cases, {middle:.2} times as fast \
             in the middle",
            peers.len()
        ));
    }
    if let Some(middle) = limits.get(limits.len() / 2) {
        parts.push(format!(
            "at {middle:.2} of the speed of the limit in the middle"
        ));
    }
    (!parts.is_empty()).then(|| format!("outcore is {}.", parts.join("; ")))
}

/// What people wrote about the values, if it is short enough to be shown.
fn notes(source: &Path) -> Option<String> {
    const MOST: u64 = 64 << 10;
    let path = source.with_file_name("README.md");
    let short = path.metadata().ok()?.len() <= MOST;
    short.then(|| std::fs::read_to_string(path).ok())?
}

fn now() -> Option<String> {
    let now = SystemTime::now()
        .duration_since(SystemTime::UNIX_EPOCH)
        .ok()?;
    Some(format!("{} UTC", utc(now.as_secs())))
}

/// Where the bench made its files.
fn directory(arguments: &[String]) -> PathBuf {
    let mut words = arguments.iter();
    while let Some(word) = words.next() {
        let given = match word.as_str() {
            "--directory" => words.next().map(String::as_str),
            other => other.strip_prefix("--directory="),
        };
        if let Some(given) = given {
            return given.into();
        }
    }
    std::env::temp_dir()
}

/// The command line as it could be typed again.
fn command(arguments: &[String]) -> String {
    let plain = |letter: char| letter.is_ascii_alphanumeric() || "-_=.,/:+%@".contains(letter);
    arguments.iter().fold("outcore".into(), |text, word| {
        match !word.is_empty() && word.chars().all(plain) {
            true => format!("{text} {word}"),
            false => format!("{text} '{}'", word.replace('\'', "'\\''")),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_can_be_typed_again() {
        let words = ["bench", "io", "--section", "p::N, :", "it's"].map(String::from);
        assert_eq!(
            command(&words),
            "outcore bench io --section 'p::N, :' 'it'\\''s'"
        );
    }

    #[test]
    fn directories_are_found() {
        let of = |words: &[&str]| {
            let words: Vec<String> = words.iter().map(ToString::to_string).collect();
            directory(&words)
        };
        assert_eq!(of(&["bench", "--directory", "/a"]), PathBuf::from("/a"));
        assert_eq!(of(&["--directory=/b"]), PathBuf::from("/b"));
        assert_eq!(of(&["--directory"]), std::env::temp_dir());
    }
}
