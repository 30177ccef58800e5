//! `outcore completions`: scripts that let a shell complete commands and options.

use clap::{Args, CommandFactory};
use clap_complete::Shell;
use outcore::Result;

use crate::Cli;
use crate::ranks::{once, print};

/// Print the script that lets a shell complete the commands and options of outcore
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore completions bash > ~/.local/share/bash-completion/completions/outcore
  outcore completions zsh > ~/.zfunc/_outcore
  outcore completions fish > ~/.config/fish/completions/outcore.fish")]
pub(crate) struct Completions {
    /// The shell
    #[arg(value_enum)]
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let mut script = Vec::new();
            clap_complete::generate(self.shell, &mut Cli::command(), "outcore", &mut script);
            print(&String::from_utf8_lossy(&script))
        })
    }
}
