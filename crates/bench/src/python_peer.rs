//! [`PythonPeer`]: another system as a contestant, in a Python process of its
//! own that waits for its turns (`peers/py_apps.py`).

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::rc::Rc;

use outcore::{Error, Result};

use crate::contest::Contestant;
use crate::line::Line;

const PROGRAM: &str = include_str!("../peers/py_apps.py");

/// A Python process that takes commands; it ends with the value.
pub(crate) struct PythonPeer {
    name: &'static str,
    child: Child,
    pipes: RefCell<(ChildStdin, BufReader<ChildStdout>)>,
}

impl PythonPeer {
    /// Starts `peer` on a file of `extent` x `extent` f32 values (f64 for
    /// products, with the other operand beside it; c64 for transforms), with so
    /// much memory if it asks; waits until it is ready.
    pub(crate) fn start(
        python: &Path,
        peer: &'static str,
        (input, extent): (&Path, u64),
        scratch: &Path,
        memory: Option<u64>,
    ) -> Result<Self> {
        let program = scratch.join("py_apps.py");
        std::fs::create_dir_all(scratch)
            .and_then(|()| std::fs::write(&program, PROGRAM))
            .map_err(|source| Error::File {
                action: "write",
                path: program.clone(),
                source,
            })?;
        let threads = if peer.starts_with("dask") { "1" } else { "2" };
        let mut command = Command::new(python);
        if let Some(bytes) = memory {
            command.env("PEER_MEMORY", format!("{bytes}B"));
        }
        command
            .arg(&program)
            .arg(peer)
            .arg(input)
            .arg(extent.to_string())
            .arg(scratch)
            .env("OPENBLAS_NUM_THREADS", threads)
            .env("OMP_NUM_THREADS", threads);
        Self::start_command(command, peer)
    }

    /// Starts a command that is `peer`; waits until it is ready.
    pub(crate) fn start_command(mut command: Command, peer: &'static str) -> Result<Self> {
        let started = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn();
        let mut child = started.map_err(|error| {
            let program = Path::new(command.get_program()).display();
            Error::Invalid(format!("cannot run {program}: {error}"))
        })?;
        let pipes = child.stdin.take().zip(child.stdout.take());
        let (commands, answers) = pipes.expect("both are piped");
        let peer = Self {
            name: peer,
            child,
            pipes: RefCell::new((commands, BufReader::new(answers))),
        };
        peer.answer("ready").map(|_| peer)
    }

    /// Has a command done; whether the answer was ok.
    pub(crate) fn ask(&self, command: &str) -> Result<bool> {
        let told = writeln!(self.pipes.borrow_mut().0, "{command}");
        told.map_err(|error| self.failed(&error.to_string()))?;
        self.answer("ok")
    }

    /// The process as a contestant of this line.
    pub(crate) fn contestant<'a>(self, line: Line) -> Contestant<'a> {
        let process = Rc::new(self);
        let ask = |command: &'static str| {
            let process = Rc::clone(&process);
            move || process.ask(command)
        };
        let (prepare, run, check) = (ask("prepare"), ask("run"), ask("check"));
        Contestant {
            line,
            prepare: Box::new(move || prepare().map(drop)),
            work: Box::new(move || run().map(drop)),
            check: Box::new(move || check().unwrap_or(false)),
            batch: 1,
        }
    }

    fn answer(&self, wanted: &str) -> Result<bool> {
        let mut line = String::new();
        let read = self.pipes.borrow_mut().1.read_line(&mut line);
        match read {
            Ok(0) => Err(self.failed("it ended; see above")),
            Ok(_) => Ok(line.trim() == wanted),
            Err(error) => Err(self.failed(&error.to_string())),
        }
    }

    fn failed(&self, why: &str) -> Error {
        Error::Invalid(format!(
            "the peer {} failed: {why}; it needs the Python packages numpy, scipy, dask, dask-image \
             and zarr (rechunker: zarr below 3; places: numpy and h5py; object stores: tensorstore), \
             or leave --peers out",
            self.name
        ))
    }
}

impl Drop for PythonPeer {
    fn drop(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
