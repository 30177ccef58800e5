//! `outcore man`: the manual, made from what `--help` is made from.
//!
//! The path: the definition of the commands -> a page for each, as a manual page
//! (roff) or as Markdown ([`markdown`]).

mod markdown;

use std::io;
use std::path::{Path, PathBuf};

use clap::{Args, Command, CommandFactory};
use clap_mangen::Man as Page;
use outcore::{Error, Result};

use crate::Cli;
use crate::ranks::{once, print};
use crate::whole_file;

/// Write the manual: a page for each command
///
/// Without a directory the page of outcore itself is printed. With one, a manual
/// page for each command and each of their parts is written there (outcore-read.1,
/// outcore-bench-io.1), or with --markdown a page for each command and a list of
/// them, README.md. Pages that are there already are replaced.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore man | man -l -
  outcore man ~/.local/share/man/man1
  outcore man --markdown docs/commands")]
pub(crate) struct Man {
    /// Where the pages go; made if it is missing
    directory: Option<PathBuf>,
    /// Write Markdown
    #[arg(long, requires = "directory")]
    markdown: bool,
}

impl Man {
    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let mut outcore = Cli::command().disable_help_subcommand(true);
            outcore.build();
            let Some(directory) = &self.directory else {
                return print(&page(&outcore)?);
            };
            std::fs::create_dir_all(directory).map_err(|source| Error::File {
                action: "create",
                path: directory.clone(),
                source,
            })?;
            if !self.markdown {
                return write_pages(&outcore, directory);
            }
            for (name, text) in markdown::pages(&outcore) {
                write(directory, &name, &text)?;
            }
            Ok(())
        })
    }
}

fn write(directory: &Path, name: &str, text: &str) -> Result<()> {
    whole_file::write_text(&directory.join(name).to_string_lossy(), text)
}

/// Writes the pages of a command and of its parts.
fn write_pages(command: &Command, directory: &Path) -> Result<()> {
    for part in parts(command) {
        write_pages(part, directory)?;
    }
    let name = Page::new(command.clone()).get_filename();
    write(directory, &name, &page(command)?)
}

/// A command as a manual page.
fn page(command: &Command) -> Result<String> {
    let page = Page::new(command.clone()).manual("outcore");
    let mut bytes = Vec::new();
    let render = |bytes: &mut Vec<u8>| -> io::Result<()> {
        page.render_title(bytes)?;
        page.render_name_section(bytes)?;
        page.render_synopsis_section(bytes)?;
        page.render_description_section(bytes)?;
        page.render_options_section(bytes)?;
        if parts(command).next().is_some() {
            page.render_subcommands_section(bytes)?;
        }
        Ok(())
    };
    render(&mut bytes).map_err(|error| Error::Invalid(format!("the manual: {error}")))?;
    let mut text = String::from_utf8_lossy(&bytes).into_owned();
    let ending = Ending::of(command);
    if !ending.examples.is_empty() {
        text += ".SH EXAMPLES\n.nf\n";
        text.extend(ending.examples.iter().map(|line| roff(line) + "\n"));
        text += ".fi\n";
    }
    for line in &ending.rest {
        text += &format!(".PP\n{}\n", roff(line));
    }
    Ok(text)
}

/// A line of text as it stands in a manual page.
fn roff(line: &str) -> String {
    let line = line.replace('\\', "\\e").replace('-', "\\-");
    match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line,
    }
}

/// The commands of which a command consists.
fn parts(command: &Command) -> impl Iterator<Item = &Command> {
    let parts = command.get_subcommands();
    parts.filter(|part| part.get_name() != "help" && !part.is_hide_set())
}

/// What stands below the options of a command.
struct Ending {
    /// Lines that can be typed, without indentation.
    examples: Vec<String>,
    /// Other lines.
    rest: Vec<String>,
}

impl Ending {
    fn of(command: &Command) -> Self {
        let text = command.get_after_long_help().or(command.get_after_help());
        let text = text.map_or(String::new(), ToString::to_string);
        let (mut examples, mut rest) = (Vec::new(), Vec::new());
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            match line.strip_prefix("  ") {
                Some(example) => examples.push(example.to_string()),
                None if line == "Examples:" => {}
                None => rest.push(line.to_string()),
            }
        }
        Self { examples, rest }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn without_examples(command: &Command) -> Vec<String> {
        let own = Ending::of(command).examples.is_empty();
        let own = own.then(|| command.get_name().to_string());
        parts(command)
            .flat_map(without_examples)
            .chain(own)
            .collect()
    }

    #[test]
    fn every_command_has_examples() {
        assert_eq!(without_examples(&Cli::command()), Vec::<String>::new());
    }

    #[test]
    fn lines_of_roff() {
        assert_eq!(roff(".a -b \\c"), "\\&.a \\-b \\ec");
    }
}
