//! The manual as Markdown: a page for each command, its parts below it, and a
//! list of all.

use clap::{Arg, Command};

use super::{Ending, parts};

const NOTE: &str =
    "<!-- Made by 'outcore man --markdown'; change the definition of the command instead. -->\n";

/// The names and the texts of all pages.
pub(super) fn pages(outcore: &Command) -> Vec<(String, String)> {
    let mut list = format!("{NOTE}\n# Commands\n\n{}\n\n", escaped(&about(outcore)));
    list += "| command | what it does |\n|---|---|\n";
    let mut pages = Vec::new();
    for command in parts(outcore) {
        let name = command.get_name();
        let what = escaped(&first_paragraph(command)).replace('|', "\\|");
        list += &format!("| [{name}]({name}.md) | {what} |\n");
        let mut text = format!("{NOTE}\n");
        section(&mut text, command, 1);
        pages.push((format!("{name}.md"), text));
    }
    ending(&mut list, outcore, 1);
    pages.push(("README.md".into(), list));
    pages
}

/// Adds a command, with headings of this level and below.
fn section(text: &mut String, command: &Command, level: usize) {
    let heading = "#".repeat(level);
    let name = command.get_bin_name().unwrap_or(command.get_name());
    *text += &format!(
        "{heading} {name}\n\n{}\n\n",
        escaped(&first_paragraph(command))
    );
    let usage = command.clone().render_usage().to_string();
    let usage = usage.trim_start_matches("Usage:").lines();
    let usage: Vec<&str> = usage.map(str::trim).collect();
    *text += &format!("```text\n{}\n```\n", usage.join("\n"));
    if let Some((_, more)) = about(command).split_once("\n\n") {
        *text += &format!("\n{}\n", escaped(more));
    }
    let shown =
        |arg: &&Arg| !arg.is_hide_set() && !["help", "version"].contains(&arg.get_id().as_str());
    let arguments = || command.get_arguments().filter(shown);
    for (title, positional) in [("Arguments", true), ("Options", false)] {
        let mut entries = arguments()
            .filter(|arg| arg.is_positional() == positional)
            .peekable();
        if entries.peek().is_some() {
            *text += &format!("\n{heading}# {title}\n\n");
        }
        for arg in entries {
            *text += &entry(arg);
        }
    }
    ending(text, command, level);
    for part in parts(command) {
        text.push('\n');
        section(text, part, level + 1);
    }
}

/// Adds examples and what else stands below the options.
fn ending(text: &mut String, command: &Command, level: usize) {
    let ending = Ending::of(command);
    if !ending.examples.is_empty() {
        let examples: Vec<String> = ending.examples.iter().map(|line| commented(line)).collect();
        let examples = examples.join("\n");
        *text += &format!(
            "\n{}# Examples\n\n```sh\n{examples}\n```\n",
            "#".repeat(level)
        );
    }
    for line in &ending.rest {
        *text += &format!("\n{}\n", escaped(line));
    }
}

/// A line whose remark in parentheses, behind spaces, is a comment of the shell.
fn commented(line: &str) -> String {
    let remark = line
        .strip_suffix(')')
        .and_then(|line| line.rsplit_once("  ("));
    match remark {
        Some((command, remark)) => format!("{command}  # {remark}"),
        None => line.into(),
    }
}

/// An argument or an option as an item of a list.
fn entry(arg: &Arg) -> String {
    let help = arg.get_long_help().or(arg.get_help());
    let mut help =
        escaped(&help.map_or(String::new(), ToString::to_string)).replace("\n\n", "\n\n  ");
    let takes_value = arg.get_action().takes_values();
    let values = arg.get_possible_values();
    let values: Vec<_> = values.iter().filter(|value| !value.is_hide_set()).collect();
    if takes_value && !values.is_empty() {
        let described = values.iter().any(|value| value.get_help().is_some());
        let list = values.iter().map(|value| match value.get_help() {
            Some(about) => format!("`{}` ({})", value.get_name(), escaped(&about.to_string())),
            None => format!("`{}`", value.get_name()),
        });
        let list: Vec<String> = list.collect();
        help += &format!(": {}", list.join(if described { "; " } else { ", " }));
    }
    let defaults = arg.get_default_values();
    if takes_value && !defaults.is_empty() && !arg.is_hide_default_value_set() {
        let defaults = defaults.iter().map(|value| value.to_string_lossy());
        help += &format!(" [default: `{}`]", defaults.collect::<Vec<_>>().join(","));
    }
    // With the letter and the name, and what follows: -o, --output <FILE>.
    format!("- `{}`: {help}\n", spelled(arg))
}

fn spelled(arg: &Arg) -> String {
    let names = arg.get_value_names().unwrap_or_default();
    let values: Vec<String> = names.iter().map(|name| format!("<{name}>")).collect();
    if arg.is_positional() {
        return match values.first() {
            Some(value) => value.clone(),
            None => format!("<{}>", arg.get_id().as_str().to_uppercase()),
        };
    }
    let short = arg.get_short().map(|letter| format!("-{letter}"));
    let long = arg.get_long().map(|name| format!("--{name}"));
    let mut text = short.into_iter().chain(long).collect::<Vec<_>>().join(", ");
    if arg.get_action().takes_values() {
        text += &format!(" {}", values.join(" "));
    }
    text
}

/// All that is said about a command before its usage.
fn about(command: &Command) -> String {
    let text = command.get_long_about().or(command.get_about());
    text.map_or(String::new(), ToString::to_string)
}

fn first_paragraph(command: &Command) -> String {
    let text = about(command);
    text.split("\n\n").next().unwrap_or_default().into()
}

/// The text so that Markdown shows it as it is, except what stands in backquotes.
fn escaped(text: &str) -> String {
    let parts = text.split('`').enumerate().map(|(at, part)| match at % 2 {
        0 => part
            .replace('\\', "\\\\")
            .replace('*', "\\*")
            .replace('<', "&lt;")
            .replace('[', "\\["),
        _ => part.into(),
    });
    parts.collect::<Vec<String>>().join("`")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_become_comments() {
        assert_eq!(
            commented("outcore read a   (prints)"),
            "outcore read a   # prints"
        );
        assert_eq!(
            commented("outcore read a '(1:2)'"),
            "outcore read a '(1:2)'"
        );
        assert_eq!(commented("f (x)"), "f (x)");
    }

    #[test]
    fn texts_are_shown_as_they_are() {
        assert_eq!(escaped("a*b [c] <d> `e*f`"), "a\\*b \\[c] &lt;d> `e*f`");
    }
}
