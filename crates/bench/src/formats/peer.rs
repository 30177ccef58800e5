//! [`Peer`]: another library in a process of its own, which takes its time itself
//! (`peers/py_formats.py`, `peers/zarrs`).

use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use outcore::{Error, Result};

use super::FormatsOptions;

const PROGRAM: &str = include_str!("../../peers/py_formats.py");

/// The programs of the others.
pub(super) struct Peers {
    python: Option<PathBuf>,
    program: PathBuf,
    zarrs: Option<PathBuf>,
}

impl Peers {
    pub(super) fn new(options: &FormatsOptions, directory: &Path) -> Result<Self> {
        let program = directory.join("py_formats.py");
        std::fs::write(&program, PROGRAM).map_err(|source| Error::File {
            action: "write",
            path: program.clone(),
            source,
        })?;
        Ok(Self {
            python: options.python.clone(),
            program,
            zarrs: options.zarrs.clone(),
        })
    }

    /// Starts the peer of this name, if it is wanted, with these arguments.
    pub(super) fn start(&self, name: &'static str, arguments: &[String]) -> Result<Option<Peer>> {
        let mut command = match (name, &self.zarrs, &self.python) {
            ("zarrs", Some(zarrs), _) => Command::new(zarrs),
            ("zarrs", None, _) | (_, _, None) => return Ok(None),
            (_, _, Some(python)) => {
                let mut command = Command::new(python);
                command.arg(&self.program).arg(name);
                command
            }
        };
        command.args(arguments);
        Peer::start(name, command).map(Some)
    }
}

/// A process that answers commands; it ends with the value.
pub(super) struct Peer {
    pub(super) name: &'static str,
    child: Child,
    commands: ChildStdin,
    answers: BufReader<ChildStdout>,
}

impl Peer {
    fn start(name: &'static str, mut command: Command) -> Result<Self> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| {
            let program = Path::new(command.get_program()).display();
            Error::Invalid(format!("cannot run {program}: {error}"))
        })?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.expect("both are piped");
        let mut peer = Self {
            name,
            child,
            commands,
            answers: BufReader::new(answers),
        };
        match peer.answer()?.as_str() {
            "ready" => Ok(peer),
            other => Err(peer.failed(other)),
        }
    }

    /// The seconds of a turn.
    pub(super) fn time(&mut self, number: usize) -> Result<f64> {
        let answer = self.ask("time", number)?;
        answer.parse().map_err(|_| self.failed(&answer))
    }

    /// Whether what it reads is right.
    pub(super) fn check(&mut self, number: usize) -> Result<bool> {
        Ok(self.ask("check", number)? == "ok")
    }

    fn ask(&mut self, command: &str, number: usize) -> Result<String> {
        let told = writeln!(self.commands, "{command} {number}");
        told.map_err(|error| self.failed(&error.to_string()))?;
        self.answer()
    }

    fn answer(&mut self) -> Result<String> {
        let mut line = String::new();
        match self.answers.read_line(&mut line) {
            Ok(0) => Err(self.failed("it ended; see above")),
            Ok(_) => Ok(line.trim().into()),
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    fn failed(&self, why: &str) -> Error {
        Error::Invalid(format!(
            "the peer {} failed: {why}; it needs the Python packages numpy, h5py, zarr 3, dask and \
             tensorstore, or leave --peers out",
            self.name
        ))
    }
}

impl Drop for Peer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
