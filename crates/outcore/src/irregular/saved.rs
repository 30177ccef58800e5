//! Schedules on disk: [`Schedule::save`] and [`Schedule::load`].
//!
//! One file for all ranks, of 64-bit words in little-endian order: a head that
//! says what the schedule is for and where each rank's lists stand, and these.
//! Head and lists have a CRC32C each. What was loaded is looked at as if somebody
//! had written it by hand: the copying loops rely on it.

use std::fs::{self, File};
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use outcore_transport::Comm;

use super::lists::{Count, Lists};
use super::places::Places;
use super::schedule::Schedule;
use super::windows::{Domains, Windows};
use crate::array::Array;
use crate::error::{Error, Result};
use crate::hidden_name::hidden_name;

const MAGIC: u64 = u64::from_le_bytes(*b"OUTCSCHD");
const VERSION: u64 = 1;

/// The words before the bounds of domains.
const FIXED: usize = 7;

/// The words of each rank in the head: where its lists begin, how many words
/// they are, elements, entries, whether these are runs, and the checksum.
const EACH: usize = 6;

impl Schedule {
    /// Collective: writes the schedule to a file, in place of one that is there.
    /// It appears under its name when it is complete.
    pub fn save(&self, comm: &Comm, path: impl AsRef<Path>) -> Result<()> {
        let path = path.as_ref();
        comm.agree(self.check_group(comm))?;
        let words = self.words();
        let head = FIXED + self.ranks + 1 + EACH * self.ranks + 1;
        let own = [
            words.len() as u64,
            self.count.elements,
            self.count.entries() as u64,
            u64::from(self.count.runs),
            u64::from(crc32c::crc32c(bytemuck::cast_slice(&words))),
        ];
        let all = comm.all_gather(&own)?;
        let mut table = Vec::with_capacity(EACH * self.ranks);
        let mut next = head as u64;
        for rank in all.chunks_exact(own.len()) {
            table.push(next);
            table.extend_from_slice(rank);
            next += rank[0];
        }
        let draft = draft_of(path);
        let begun = match self.rank {
            0 => File::create(&draft).and_then(|file| file.set_len(8 * next)),
            _ => Ok(()),
        };
        comm.agree(begun.map_err(|error| Error::file("create", &draft, error)))?;
        let mut written = write_words(&draft, table[EACH * self.rank], &words);
        if self.rank == 0 && written.is_ok() {
            written = write_words(&draft, 0, &self.head(&table));
        }
        let outcome = comm.agree(written.map_err(|error| Error::file("write", &draft, error)));
        let named = match (self.rank, &outcome) {
            (0, Ok(())) => rename(&draft, path).map_err(|error| Error::file("name", path, error)),
            (0, Err(_)) => {
                // It has not become anything.
                let _ = fs::remove_file(&draft);
                Ok(())
            }
            _ => Ok(()),
        };
        outcome?;
        Ok(comm.agree(named)?)
    }

    /// Collective: reads a schedule that as many ranks have saved, for an array of
    /// the shape and layout that it was made for.
    pub fn load(comm: &Comm, path: impl AsRef<Path>, array: &Array) -> Result<Self> {
        let path = path.as_ref();
        let own = Loaded::read(comm, path, array);
        let loaded = comm.agree(own)?;
        let frame = (loaded.places, loaded.windows, loaded.domains);
        Self::of_lists(comm, frame, loaded.count, loaded.lists, None)
    }

    /// This rank's part of the file.
    fn words(&self) -> Vec<u64> {
        let mut words = self.count.element_starts.clone();
        if self.count.runs {
            words.extend_from_slice(self.count.entry_starts());
        }
        let lists = &self.list_bytes()[..self.count.bytes()];
        words.extend(lists.chunks(8).map(word));
        words
    }

    fn head(&self, table: &[u64]) -> Vec<u64> {
        let (kind, bounds) = match &self.domains {
            Domains::Stretches(bounds) => (0, bounds.clone()),
            Domains::Cyclic { .. } => (1, vec![0; self.ranks + 1]),
        };
        let mut head = vec![
            MAGIC,
            VERSION,
            self.ranks as u64,
            mark(&self.places),
            u64::from(self.windows.shift),
            self.windows.extent,
            kind,
        ];
        head.extend_from_slice(&bounds);
        head.extend_from_slice(table);
        head.push(u64::from(crc32c::crc32c(bytemuck::cast_slice(&head))));
        head
    }
}

/// What stands in a file, for one rank.
struct Loaded {
    places: Places,
    windows: Windows,
    domains: Domains,
    count: Count,
    lists: Vec<u64>,
}

impl Loaded {
    fn read(comm: &Comm, path: &Path, array: &Array) -> Result<Self> {
        let damaged = |problem: &str| Error::format(path.display(), problem);
        let opened = |error| Error::file("open", path, error);
        let file = File::open(path).map_err(opened)?;
        let len = file.metadata().map_err(opened)?.len();
        let read = |first: u64, count: u64| {
            let end = first.checked_add(count).and_then(|end| end.checked_mul(8));
            if end.is_none_or(|end| end > len) {
                return Err(damaged("the schedule is cut off"));
            }
            let mut words = vec![0u64; count as usize];
            let bytes = bytemuck::cast_slice_mut(&mut words);
            let read = file.read_exact_at(bytes, 8 * first);
            read.map_err(|error| Error::file("read", path, error))?;
            words
                .iter_mut()
                .for_each(|word| *word = u64::from_le(*word));
            Ok(words)
        };
        // 1. The head.
        let fixed = read(0, FIXED as u64)?;
        if fixed[0] != MAGIC {
            return Err(damaged("this is no schedule"));
        }
        if fixed[1] != VERSION {
            return Err(damaged("the schedule is of another version of outcore"));
        }
        let ranks = comm.size();
        if fixed[2] != ranks as u64 {
            return Err(damaged(&format!(
                "the schedule is for {} ranks, not for {ranks}",
                fixed[2]
            )));
        }
        let head = read(0, (FIXED + ranks + 1 + EACH * ranks + 1) as u64)?;
        let (head, check) = head.split_at(head.len() - 1);
        if u64::from(crc32c::crc32c(bytemuck::cast_slice(head))) != check[0] {
            return Err(damaged("the head of the schedule is damaged"));
        }
        let (places, _) = Places::of_layout(array.layout(), array.shape().len())?;
        if head[3] != mark(&places) || head[5] != places.extent() {
            return Err(damaged(&format!(
                "the schedule is for arrays of another shape or layout than {}",
                array.name()
            )));
        }
        let wrong = || damaged("the schedule contradicts itself");
        let shift = u32::try_from(head[4]).ok().filter(|shift| *shift < 32);
        let windows = Windows {
            shift: shift.ok_or_else(wrong)?,
            extent: places.extent(),
        };
        let bounds = &head[FIXED..FIXED + ranks + 1];
        let domains = match head[6] {
            0 => Domains::Stretches(bounds.to_vec()),
            _ => Domains::Cyclic {
                ranks: ranks as u64,
                windows: windows.count(),
            },
        };
        let in_order = bounds.is_sorted() && bounds[0] == 0 && bounds[ranks] == windows.count();
        if head[6] > 1 || head[6] == 0 && !in_order {
            return Err(wrong());
        }
        // 2. This rank's lists.
        let own = &head[FIXED + ranks + 1 + EACH * comm.rank()..][..EACH];
        let [first, count, elements, entries, runs, check] = own else {
            return Err(wrong());
        };
        let words = read(*first, *count)?;
        if u64::from(crc32c::crc32c(bytemuck::cast_slice(&words))) != *check {
            return Err(damaged(&format!(
                "the lists of rank {} are damaged",
                comm.rank()
            )));
        }
        let tables = windows.count() as usize + 1;
        let runs = *runs != 0;
        let lists_at = if runs { 2 * tables } else { tables };
        let lists = words.get(lists_at..).ok_or_else(wrong)?.to_vec();
        let starts = |part: usize| words[part * tables..(part + 1) * tables].to_vec();
        let entry_starts = if runs { starts(1) } else { Vec::new() };
        let count = Count::restored(*elements, runs, starts(0), entry_starts);
        let (ends, entry_starts) = (&count.element_starts, count.entry_starts());
        let sound = ends.is_sorted()
            && entry_starts.is_sorted()
            && (ends[0], entry_starts[0]) == (0, 0)
            && ends.last() == Some(elements)
            && entry_starts.last() == Some(entries)
            && lists.len().checked_mul(8) == Some(count.bytes().next_multiple_of(8));
        if !sound {
            return Err(wrong());
        }
        let view = Lists::new(bytemuck::cast_slice(&lists), count.entries(), runs)?;
        if !view.is_within(ends, entry_starts, windows) {
            return Err(wrong());
        }
        Ok(Self {
            places,
            windows,
            domains,
            count,
            lists,
        })
    }
}

/// A number in which arrays differ that need other schedules.
fn mark(places: &Places) -> u64 {
    u64::from(crc32c::crc32c(format!("{places:?}").as_bytes()))
}

/// Up to eight bytes as a word of this machine.
fn word(bytes: &[u8]) -> u64 {
    let mut word = [0; 8];
    word[..bytes.len()].copy_from_slice(bytes);
    u64::from_ne_bytes(word)
}

fn draft_of(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(hidden_name("", &name, ".partial"))
}

fn write_words(path: &Path, first: u64, words: &[u64]) -> io::Result<()> {
    let file = File::options().write(true).open(path)?;
    let words: Vec<u64> = words.iter().map(|word| word.to_le()).collect();
    file.write_all_at(bytemuck::cast_slice(&words), 8 * first)?;
    file.sync_all()
}

fn rename(draft: &Path, path: &Path) -> io::Result<()> {
    fs::rename(draft, path)?;
    let parent = path
        .parent()
        .filter(|parent| !parent.as_os_str().is_empty());
    File::open(parent.unwrap_or(Path::new(".")))?.sync_all()
}
