//! Completions, manual pages, and the pages under docs/commands.

use std::path::Path;

use crate::program::Place;

#[test]
fn shells_get_their_scripts() {
    let place = Place::new();
    for (shell, part) in [
        ("bash", "complete -F _outcore"),
        ("zsh", "#compdef outcore"),
        ("fish", "complete -c outcore"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let script = place.ok(&format!("completions {shell}"));
        assert!(script.contains(part), "{shell}");
        assert!(script.contains("transpose"), "{shell}");
    }
    assert!(place.fails(2, "completions csh").contains("csh"));
    assert!(place.fails(2, "completions").contains("SHELL"));
}

#[test]
fn every_command_has_a_manual_page() {
    let place = Place::new();
    assert!(place.ok("man").contains(".TH outcore 1"));
    assert_eq!(place.ok("man pages/man1"), "");
    let pages = place.inside("pages/man1");
    for name in ["outcore.1", "outcore-view.1", "outcore-bench-io.1"] {
        let text = String::from_utf8(pages.bytes(name)).expect("text");
        for heading in ["NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES"] {
            assert!(
                text.contains(&format!(".SH {heading}")),
                "{name}: {heading}"
            );
        }
    }
    assert!(pages.names().len() > 30);
    // Again, in place of the pages that are there.
    place.ok("man pages/man1");
    place.write("file", "");
    assert!(place.fails(1, "man file/man1").contains("file/man1"));
    assert!(place.fails(2, "man --markdown").contains("DIRECTORY"));
}

#[test]
fn the_documented_commands_are_those_of_the_program() {
    let place = Place::new();
    place.ok("man --markdown commands");
    let made = place.inside("commands");
    let kept = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/commands");
    let entries = std::fs::read_dir(&kept).expect("docs/commands exists");
    let mut names: Vec<String> = entries
        .map(|entry| entry.expect("an entry").file_name().into_string().unwrap())
        .collect();
    names.sort();
    let remedy = "run 'outcore man --markdown docs/commands' and commit what it makes";
    assert_eq!(names, made.names(), "{remedy}");
    for name in names {
        let text = std::fs::read(kept.join(&name)).expect("a page");
        assert!(text == made.bytes(&name), "docs/commands/{name}: {remedy}");
    }
}
