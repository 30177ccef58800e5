//! `outcore bench remote`: sections of arrays in an object store.

use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

use clap::Args;
use outcore::{Error, Result, bytes_text};
use outcore_bench::{Line, ObjectServer, RemoteOptions, remote};

use crate::bytes;

/// Read sections of arrays in an object store, beside one request at a time
///
/// Without --at, a small server of objects is started on the loopback interface, which
/// answers each request after --latency, and a second process measures; so the memory
/// that is told is that of the reader alone. With --at, the store is a real one, with
/// credentials from the environment; what is made there is removed.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore bench remote --csv
  outcore bench remote --latency 100
  outcore bench remote --peers --python venv/bin/python
  outcore bench remote --at s3://bucket/some/folder")]
pub(super) struct Remote {
    /// Where the arrays are made for the time being
    #[arg(long, value_name = "ADDRESS", conflicts_with = "latency")]
    at: Option<String>,
    /// Milliseconds before the bench's own server answers
    #[arg(long, value_name = "MS", default_value_t = 20)]
    latency: u64,
    /// The memory cap
    #[arg(long, default_value = "64MiB", value_parser = bytes::parse)]
    memory: u64,
    /// Print comma-separated values
    #[arg(long)]
    pub(super) csv: bool,
    /// Repetitions of each contestant
    #[arg(long, default_value_t = 7, value_parser = clap::value_parser!(u16).range(1..))]
    repeat: u16,
    /// Run tensorstore as well
    #[arg(long)]
    peers: bool,
    /// The Python that has it
    #[arg(
        long,
        value_name = "PATH",
        default_value = "python3",
        requires = "peers"
    )]
    python: PathBuf,
}

impl Remote {
    pub(super) fn run(&self) -> Result<Vec<Line>> {
        let Some(at) = &self.at else {
            return self.with_server();
        };
        let (lines, peak) = remote(&RemoteOptions {
            at: at.clone(),
            memory: self.memory,
            repeats: self.repeat.into(),
            python: self.peers.then(|| self.python.clone()),
        })?;
        if let Some(peak) = peak {
            eprintln!("peak memory of this process {}", bytes_text(peak));
        }
        Ok(lines)
    }

    /// Serves, and lets another process measure.
    fn with_server(&self) -> Result<Vec<Line>> {
        let failed = |source| Error::File {
            action: "start",
            path: "a server of objects".into(),
            source,
        };
        let latency = Duration::from_millis(self.latency);
        let server = ObjectServer::start(latency).map_err(failed)?;
        let program = std::env::current_exe().map_err(failed)?;
        let mut command = Command::new(program);
        command.args(["bench", "remote", "--at", "s3://bench/arrays"]);
        command.args(["--memory", &self.memory.to_string()]);
        command.args(["--repeat", &self.repeat.to_string()]);
        command.arg("--csv").stdout(Stdio::piped());
        if self.peers {
            command.arg("--peers").arg("--python").arg(&self.python);
        }
        command.env("AWS_ENDPOINT_URL", server.endpoint());
        command.env("AWS_ALLOW_HTTP", "true");
        command.env("AWS_ACCESS_KEY_ID", "bench");
        command.env("AWS_SECRET_ACCESS_KEY", "bench");
        let child = command.spawn().map_err(failed)?;
        let output = child.wait_with_output().map_err(failed)?;
        match output.status.success() {
            true => Ok(lines(&String::from_utf8_lossy(&output.stdout))),
            false => Err(Error::Invalid("the measuring process has failed".into())),
        }
    }
}

/// What the other process has printed.
fn lines(text: &str) -> Vec<Line> {
    let lines = text.lines().filter_map(|line| Line::parse("remote", line));
    let with_commas = |line: Line| Line {
        case: line.case.replace(';', ","),
        ..line
    };
    lines.map(with_commas).collect()
}
