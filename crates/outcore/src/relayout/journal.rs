//! [`Journal`]: which blocks of an array under construction are complete and on
//! stable storage, in a small file beside it, so that a run that was killed can
//! be continued.
//!
//! The first line says in JSON what is being made, of what, where, and in which
//! blocks; after it, each block has one byte. A rank writes the byte of a block
//! after it has synced the block, so whenever the machine stops, a block with a
//! mark is complete, unless blocks with checksums that were written later are damaged:
//! then the marks of the last pass are taken back. Bytes of different ranks do not meet. The
//! journal is removed when the array has its name, and when making it fails: then all marks are
//! taken back before anything of the array goes, so that nobody goes on from what is half
//! removed. Only a run that was killed or interrupted, or that a server has failed, leaves it
//! behind. The process of rank 0 holds a lock of it, so nobody takes it for abandoned while it is
//! in use.

use std::fs::{File, Metadata};
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::os::fd::AsRawFd;
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use outcore_transport::{Comm, Error as TransportError, Op};
use serde::{Deserialize, Serialize};

use super::leg::Leg;
use super::plan::Decision;
use crate::draft::{parent, rename_to_free, sync_directory};
use crate::error::{Error, Result};
use crate::format::native::new_id;
use crate::hidden_name::hidden_name;
use crate::identity::Identity;
use crate::interrupt::interrupted;

/// Blocks that are complete are synced and marked this often.
const PERIOD: Duration = Duration::from_secs(2);

const FORMAT: &str = "outcore-relayout-journal";
const DONE: u8 = b'#';
const PENDING: u8 = b'.';

/// A first line longer than this is not believed.
const LONGEST: u64 = 16 << 20;

/// What a journal says of its job.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Header {
    pub(super) format: String,
    pub(super) job: Job,
    /// What tells the unfinished array from others of its place.
    pub(super) draft: String,
    /// The number of its file or directory, which it keeps when it gets its name.
    pub(super) number: Option<u64>,
    pub(super) decision: Decision,
    /// How many blocks each pass has.
    pub(super) blocks: Vec<u64>,
}

/// What is made of what.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Job {
    pub(super) input: String,
    /// The files of the input.
    pub(super) files: Vec<Identity>,
    pub(super) axes: Vec<usize>,
    pub(super) output: String,
}

impl Header {
    /// For the unfinished array that is at `path`, with the id `draft`.
    pub(super) fn new(
        job: Job,
        (draft, path): (&str, &Path),
        decision: &Decision,
        blocks: &[u64],
    ) -> Self {
        Self {
            format: FORMAT.into(),
            job,
            draft: draft.into(),
            number: file_number(path),
            decision: decision.clone(),
            blocks: blocks.to_vec(),
        }
    }
}

/// The journal's file; whoever holds it may use it. Dropped, it is removed.
#[derive(Debug)]
pub(super) struct Journal {
    path: PathBuf,
    file: File,
    removed: bool,
}

impl Drop for Journal {
    fn drop(&mut self) {
        if self.removed {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

impl Journal {
    /// Where the journal of the array at `output` is.
    pub(super) fn place(output: &Path) -> PathBuf {
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        parent(output).join(hidden_name("", &name, ".journal"))
    }

    /// The journal that another run has left, which keeps it; `None` if there is
    /// none. Fails if that run is not over.
    pub(super) fn find(output: &Path) -> Result<Option<Self>> {
        let path = Self::place(output);
        let file = match File::options().read(true).write(true).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(source) => return Err(Error::file("open", &path, source)),
        };
        lock(&file, output)?;
        // The run that had it may have removed it before it gave up the lock.
        let is_there = std::fs::metadata(&path).is_ok_and(|found| same_file(&found, &file));
        Ok(is_there.then_some(Self {
            path,
            file,
            removed: false,
        }))
    }

    /// Begins the journal of the array at `output`.
    pub(super) fn begin(output: &Path, header: &Header) -> Result<Self> {
        let path = Self::place(output);
        let failed = |source| Error::file("write", &path, source);
        // It has its name when it is complete.
        let name = output.file_name().unwrap_or_default().to_string_lossy();
        let new = parent(output).join(hidden_name(&format!("{}-", new_id()), &name, ".journal"));
        let mut options = File::options();
        let file = options
            .read(true)
            .write(true)
            .create_new(true)
            .open(&new)
            .map_err(failed)?;
        let mut journal = Self {
            path: new,
            file,
            removed: true,
        };
        lock(&journal.file, output)?;
        let mut text = serde_json::to_vec(header).expect("a header is plain data");
        text.push(b'\n');
        let mut marks = std::io::repeat(PENDING).take(header.blocks.iter().sum());
        let mut write = || {
            journal.file.write_all(&text)?;
            std::io::copy(&mut marks, &mut journal.file)?;
            journal.file.sync_all()
        };
        write().map_err(failed)?;
        rename_to_free(&journal.path, &path).map_err(failed)?;
        journal.path = path;
        sync_directory(parent(output))?;
        Ok(journal)
    }

    /// What it says; fails if it is damaged.
    pub(super) fn header(&self) -> Result<Header> {
        let wrong = |problem: String| {
            Error::format(
                self.path.display(),
                format!("{problem}; remove it to begin anew"),
            )
        };
        let mut line = Vec::new();
        let file =
            File::open(&self.path).map_err(|source| Error::file("open", &self.path, source))?;
        let read = BufReader::new(file.take(LONGEST)).read_until(b'\n', &mut line);
        read.map_err(|source| Error::file("read", &self.path, source))?;
        let header: Header = serde_json::from_slice(&line)
            .map_err(|e| wrong(format!("this journal is damaged: {e}")))?;
        if header.format != FORMAT {
            return Err(wrong("this is no journal of outcore".into()));
        }
        Ok(header)
    }

    /// Takes back the marks of the last pass, that of the array itself.
    pub(super) fn forget_last_pass(&self) -> Result<()> {
        let count = self.header()?.blocks.last().copied().unwrap_or(0);
        let write = || {
            let end = self.file.metadata()?.len();
            let pending = vec![PENDING; count.min(end) as usize];
            self.file
                .write_all_at(&pending, end - pending.len() as u64)?;
            self.file.sync_data()
        };
        write().map_err(|source| Error::file("write", &self.path, source))
    }

    /// Takes back all marks, since what they stand for is about to be removed.
    pub(super) fn forget(&self) -> Result<()> {
        let forget = || {
            let mut file = &self.file;
            file.seek(SeekFrom::Start(0))?;
            let start = BufReader::new(file).take(LONGEST).skip_until(b'\n')? as u64;
            let count = file.metadata()?.len().saturating_sub(start);
            file.seek(SeekFrom::Start(start))?;
            std::io::copy(&mut std::io::repeat(PENDING).take(count), &mut file)?;
            file.sync_data()
        };
        forget().map_err(|source| Error::file("write", &self.path, source))
    }

    /// Leaves it for a later run.
    pub(super) fn keep(mut self) {
        self.removed = false;
    }

    /// From now on it is removed when it is dropped.
    pub(super) fn adopt(mut self) -> Self {
        self.removed = true;
        self
    }
}

/// The number of the file or directory at `path` in its file system.
pub(super) fn file_number(path: &Path) -> Option<u64> {
    Some(std::fs::metadata(path).ok()?.ino())
}

fn same_file(found: &Metadata, file: &File) -> bool {
    let opened = file.metadata();
    opened.is_ok_and(|opened| (opened.dev(), opened.ino()) == (found.dev(), found.ino()))
}

/// Fails if another process has the lock.
fn lock(file: &File, output: &Path) -> Result<()> {
    // SAFETY: the descriptor is open.
    if unsafe { libc::flock(file.as_raw_fd(), libc::LOCK_EX | libc::LOCK_NB) } == 0 {
        return Ok(());
    }
    let error = std::io::Error::last_os_error();
    match error.raw_os_error() {
        Some(libc::EWOULDBLOCK) => Err(Error::format(
            output.display(),
            "another process is making this array now",
        )),
        // A file system without locks.
        _ => Ok(()),
    }
}

/// The marks of all blocks, for one rank.
#[derive(Debug)]
pub(super) struct Marks {
    /// The array that is made.
    array: String,
    path: PathBuf,
    file: File,
    /// Where the marks of each pass begin in the file.
    starts: Vec<u64>,
    found: Vec<Vec<u8>>,
}

impl Marks {
    /// Opens the marks of the journal of the array named `array` at `output`.
    pub(super) fn open(output: &Path, array: &str) -> Result<Self> {
        let path = Journal::place(output);
        let open = || {
            let file = File::options().read(true).write(true).open(&path)?;
            let len = file.metadata()?.len();
            let mut reader = BufReader::new(&file);
            let mut line = Vec::new();
            let mut at = (&mut reader).take(LONGEST).read_until(b'\n', &mut line)? as u64;
            let header: Header = serde_json::from_slice(&line)?;
            let (mut starts, mut found) = (Vec::new(), Vec::new());
            for count in header.blocks {
                if count > len - at {
                    return Err(std::io::ErrorKind::UnexpectedEof.into());
                }
                let mut marks = vec![PENDING; count as usize];
                reader.read_exact(&mut marks)?;
                starts.push(at);
                at += count;
                found.push(marks);
            }
            Ok((file, starts, found))
        };
        let (file, starts, found) = open().map_err(|source| Error::file("read", &path, source))?;
        Ok(Self {
            array: array.into(),
            path,
            file,
            starts,
            found,
        })
    }

    /// Collective: the outcome of all ranks, whose error is [`Error::Unfinished`] if what is
    /// marked stays: there are `marks`, and a rank was told to stop, or a server has failed.
    pub(super) fn agree(marks: Option<&Self>, comm: &Comm, outcome: Result<()>) -> Result<()> {
        let server = matches!(&outcome, Err(error) if error.is_of_server());
        let stays = u8::from(server || interrupted().is_some());
        let Err(error) = comm.agree(outcome) else {
            return Ok(());
        };
        match (marks, comm.all_reduce_one(stays, Op::Max)?) {
            (Some(marks), 1) => Err(Error::Unfinished {
                array: marks.array.clone(),
                cause: match error {
                    TransportError::Agreed { cause, .. } => cause,
                    other => other.to_string(),
                },
            }),
            _ => Err(error.into()),
        }
    }

    /// Whether a block was complete when the marks were opened.
    pub(super) fn has(&self, pass: usize, block: u64) -> bool {
        self.found[pass].get(block as usize) == Some(&DONE)
    }

    /// Whether all blocks of a pass were complete then.
    pub(super) fn is_complete(&self, pass: usize) -> bool {
        self.found[pass].iter().all(|mark| *mark == DONE)
    }

    /// Takes back the marks of a pass, whose file is gone.
    pub(super) fn forget(&self, pass: usize) -> Result<()> {
        let pending = vec![PENDING; self.found[pass].len()];
        let written = self.file.write_all_at(&pending, self.starts[pass]);
        let written = written.and_then(|()| self.file.sync_data());
        written.map_err(|source| Error::file("write", &self.path, source))
    }

    /// What share of all passes was not complete then.
    pub(super) fn left(&self) -> f64 {
        let left = |marks: &Vec<u8>| {
            let left = marks.iter().filter(|mark| **mark != DONE).count();
            left as f64 / marks.len().max(1) as f64
        };
        self.found.iter().map(left).sum::<f64>() / self.found.len().max(1) as f64
    }

    /// For marking blocks of one pass.
    pub(super) fn pass(&self, number: usize) -> PassMarks<'_> {
        let complete = Mutex::new((Instant::now(), Vec::new()));
        PassMarks {
            marks: self,
            number,
            complete,
            targets: Mutex::default(),
        }
    }
}

/// Blocks of one pass, marked by all lanes of a rank.
pub(super) struct PassMarks<'a> {
    marks: &'a Marks,
    number: usize,
    /// When marks were written last, and which blocks are complete since.
    complete: Mutex<(Instant, Vec<u64>)>,
    /// The files that were written since.
    targets: Mutex<Vec<crate::array::Array>>,
}

impl PassMarks<'_> {
    /// A block is written. If the last marks are old, syncs what is written and
    /// marks it.
    pub(super) fn done(&self, block: u64, leg: &Leg) -> Result<()> {
        let target = leg.target.array()?;
        let mut targets = self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        if !targets.iter().any(|known| known.name() == target.name()) {
            targets.push(target.clone());
        }
        drop(targets);
        let mut complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        complete.1.push(block);
        if complete.0.elapsed() < PERIOD {
            return Ok(());
        }
        complete.0 = Instant::now();
        let blocks = std::mem::take(&mut complete.1);
        drop(complete);
        self.mark(blocks)
    }

    /// Marks everything that is complete.
    pub(super) fn finish(&self) -> Result<()> {
        let mut complete = self.complete.lock().unwrap_or_else(PoisonError::into_inner);
        let blocks = std::mem::take(&mut complete.1);
        drop(complete);
        self.mark(blocks)
    }

    fn mark(&self, mut blocks: Vec<u64>) -> Result<()> {
        let known = || self.targets.lock().unwrap_or_else(PoisonError::into_inner);
        let targets = std::mem::take(&mut *known());
        if let Err(error) = targets.iter().try_for_each(|target| target.sync()) {
            // What is marked later needs them still.
            known().extend(targets);
            return Err(error);
        }
        let Marks {
            path, file, starts, ..
        } = self.marks;
        blocks.sort_unstable();
        let write = || {
            for run in blocks.chunk_by(|one, next| one + 1 == *next) {
                file.write_all_at(&vec![DONE; run.len()], starts[self.number] + run[0])?;
            }
            file.sync_data()
        };
        write().map_err(|source| Error::file("write", path, source))
    }
}
