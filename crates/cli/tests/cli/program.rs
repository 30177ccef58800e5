//! Starting `outcore` in a directory of its own.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tempfile::TempDir;

/// What launchers of parallel programs put into the environment.
const LAUNCHER_VARIABLES: [&str; 5] = [
    "OMPI_COMM_WORLD_RANK",
    "MV2_COMM_WORLD_RANK",
    "PMI_RANK",
    "SLURM_STEP_NUM_TASKS",
    "PMIX_RANK",
];

/// A directory in which `outcore` is started.
pub(crate) struct Place {
    _temporary: Option<TempDir>,
    path: PathBuf,
}

impl Place {
    /// A new directory, which goes away with the value.
    pub(crate) fn new() -> Self {
        let temporary = tempfile::tempdir().expect("a temporary directory");
        Self {
            path: temporary.path().into(),
            _temporary: Some(temporary),
        }
    }

    /// A directory inside this one, made if it is missing.
    pub(crate) fn inside(&self, name: &str) -> Self {
        std::fs::create_dir_all(self.path(name)).expect("a directory");
        Self {
            _temporary: None,
            path: self.path(name),
        }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn root(&self) -> &Path {
        &self.path
    }

    /// `outcore` with arguments, not started yet.
    pub(crate) fn command<A: AsRef<OsStr>>(&self, args: impl IntoIterator<Item = A>) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_outcore"));
        command.args(args);
        self.prepare(command)
    }

    /// Lets a command run here, and as if no launcher had started it.
    pub(crate) fn prepare(&self, mut command: Command) -> Command {
        command.current_dir(&self.path);
        for variable in LAUNCHER_VARIABLES {
            command.env_remove(variable);
        }
        command
    }

    /// Runs a command line whose words are separated by spaces; it must
    /// succeed and say nothing on standard error. Returns what it printed.
    pub(crate) fn ok(&self, line: &str) -> String {
        self.ok_args(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// As [`Place::ok`], for arguments that hold spaces.
    pub(crate) fn ok_args(&self, args: &[&str]) -> String {
        let output = self.command(args).output().expect("outcore starts");
        let complaint = String::from_utf8_lossy(&output.stderr);
        assert!(
            output.status.success() && complaint.is_empty(),
            "outcore {args:?} ended with {}: {complaint}",
            output.status
        );
        String::from_utf8(output.stdout).expect("text")
    }

    /// Runs a command line that must fail with this status and a message
    /// without a word of Rust. Returns the message.
    pub(crate) fn fails(&self, status: i32, line: &str) -> String {
        self.fails_args(status, &line.split_whitespace().collect::<Vec<_>>())
    }

    /// As [`Place::fails`], for arguments that hold spaces.
    pub(crate) fn fails_args(&self, status: i32, args: &[&str]) -> String {
        let output = self.command(args).output().expect("outcore starts");
        assert!(
            output.stdout.is_empty(),
            "outcore {args:?} failed and printed {:?}",
            String::from_utf8_lossy(&output.stdout)
        );
        complaint(&output, status, &format!("{args:?}"))
    }

    pub(crate) fn bytes(&self, name: &str) -> Vec<u8> {
        std::fs::read(self.path(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The elements of a .npy file, without its header.
    pub(crate) fn npy(&self, name: &str) -> Vec<u8> {
        let bytes = self.bytes(name);
        bytes[header_end(&bytes)..].to_vec()
    }

    /// The text of the header of a .npy file.
    pub(crate) fn npy_header(&self, name: &str) -> String {
        let bytes = self.bytes(name);
        String::from_utf8(bytes[10..header_end(&bytes)].to_vec()).expect("text")
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) {
        std::fs::write(self.path(name), bytes).expect("a file can be written");
    }

    /// The names in the directory, in order.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.path).expect("the directory exists");
        let mut names: Vec<String> = entries
            .map(|entry| entry.expect("an entry").file_name().into_string().unwrap())
            .collect();
        names.sort();
        names
    }
}

/// Where the data of a .npy file begin.
fn header_end(bytes: &[u8]) -> usize {
    assert_eq!(&bytes[..8], b"\x93NUMPY\x01\x00");
    let end = 10 + usize::from(u16::from_le_bytes([bytes[8], bytes[9]]));
    assert_eq!(end % 64, 0, "data are aligned");
    end
}

/// The message of a failed `outcore`.
pub(crate) fn complaint(output: &Output, status: i32, what: &str) -> String {
    let message = String::from_utf8(output.stderr.clone()).expect("text");
    assert_eq!(
        output.status.code(),
        Some(status),
        "outcore {what}: {message}"
    );
    assert!(
        message.starts_with("outcore: "),
        "outcore {what}: {message}"
    );
    for word in ["panicked", "RUST_BACKTRACE", "overflow", "src/", "unwrap"] {
        assert!(!message.contains(word), "outcore {what}: {message}");
    }
    // A failure is one sentence; wrong usage may add how it is used.
    if status == 1 {
        assert_eq!(message.lines().count(), 1, "outcore {what}: {message}");
    }
    message
}
