//! [`Keeper`]: the files of shares in the directory of a rank that keeps them.
//!
//! Share 3 of version 12 of `run`, which 4 members save, is `run-12-3of4.state`, or, while
//! it is being written, `.run-12-3of4.unfinished`. The name decides nothing but where it
//! is: what a share is, its header says. Shares of groups of other sizes stay untouched.

use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use crate::draft::sync_directory;
use crate::error::{Error, Result};
use crate::hidden_name::hidden_name;

/// The memory for a look at a share.
const BUFFER: usize = 1 << 20;

/// What a keeper is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Action {
    /// To begin a share of so many bytes.
    Begin,
    /// To write data at an offset of it.
    Append,
    /// To give it its name, if its checksum is this one.
    Commit,
    /// For the versions and members of all shares.
    List,
    /// For the length of a share.
    Length,
    /// For bytes of a share from an offset on.
    Read,
    /// To remove the member's shares of versions before this one.
    RemoveBefore,
    /// To remove the shares of all members of this version and later ones.
    RemoveFrom,
}

const ACTIONS: [Action; 8] = [
    Action::Begin,
    Action::Append,
    Action::Commit,
    Action::List,
    Action::Length,
    Action::Read,
    Action::RemoveBefore,
    Action::RemoveFrom,
];

/// What one request asks for.
#[derive(Debug, PartialEq)]
pub(super) struct Asked {
    pub(super) action: Action,
    pub(super) version: u64,
    pub(super) member: u64,
    /// A length, an offset, a checksum or a version.
    pub(super) number: u64,
}

impl Asked {
    pub(super) fn encode(&self) -> Vec<u8> {
        let numbers = [self.action as u64, self.version, self.member, self.number];
        numbers
            .iter()
            .flat_map(|number| number.to_le_bytes())
            .collect()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        let damaged = || Error::Invalid("a request to a keeper of states cannot be read".into());
        let (numbers, []) = bytes.as_chunks::<8>() else {
            return Err(damaged());
        };
        let numbers: Vec<u64> = numbers
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect();
        let [action, version, member, number] = numbers[..] else {
            return Err(damaged());
        };
        let action = *ACTIONS.get(action as usize).ok_or_else(damaged)?;
        Ok(Self {
            action,
            version,
            member,
            number,
        })
    }
}

/// The shares that a rank keeps.
#[derive(Debug)]
pub(super) struct Keeper {
    name: String,
    /// Of the group whose shares they are.
    members: usize,
    directory: Option<PathBuf>,
}

impl Keeper {
    /// Shares in `directory`; without one, the rank keeps none. What was left
    /// unfinished there is removed.
    pub(super) fn new((name, members): (&str, usize), directory: Option<PathBuf>) -> Result<Self> {
        let keeper = Self {
            name: name.into(),
            members,
            directory,
        };
        if let Some(directory) = &keeper.directory {
            for file in files(directory)? {
                let left = file
                    .strip_prefix('.')
                    .and_then(|file| file.strip_suffix(".unfinished"));
                if left.is_some_and(|share| keeper.parse(share).is_some()) {
                    let _ = std::fs::remove_file(directory.join(file));
                }
            }
        }
        Ok(keeper)
    }

    /// The version and member of a share of this group, by what its name has between the
    /// dots.
    fn parse(&self, share: &str) -> Option<(u64, u64)> {
        let numbers = share.strip_prefix(&self.name)?.strip_prefix('-')?;
        let (version, member) = numbers.split_once('-')?;
        let (member, members) = member.split_once("of")?;
        let (member, members): (u64, usize) = (member.parse().ok()?, members.parse().ok()?);
        let fits = members == self.members && member < members as u64;
        fits.then_some((version.parse().ok()?, member))
    }

    /// Does what is asked; the answer's header.
    pub(super) fn serve(&self, asked: &Asked, data: &[u8], room: &mut [u8]) -> Result<Vec<u8>> {
        let Some(directory) = &self.directory else {
            return Err(Error::Invalid(format!(
                "no states of '{}' are kept here",
                self.name
            )));
        };
        let share = format!(
            "{}-{}-{}of{}",
            self.name, asked.version, asked.member, self.members
        );
        let named = directory.join(format!("{share}.state"));
        let hidden = directory.join(hidden_name("", &share, ".unfinished"));
        match asked.action {
            Action::Begin => {
                let begun = File::create(&hidden).and_then(|file| file.set_len(asked.number));
                begun.map_err(|source| Error::file("create", &hidden, source))?;
            }
            Action::Append => {
                let written = File::options()
                    .write(true)
                    .open(&hidden)
                    .and_then(|file| file.write_all_at(data, asked.number));
                written.map_err(|source| Error::file("write", &hidden, source))?;
            }
            Action::Commit => commit((&hidden, &named), asked.number, directory)?,
            Action::List => {
                let mut answer = Vec::new();
                for file in files(directory)? {
                    let share = file
                        .strip_suffix(".state")
                        .and_then(|share| self.parse(share));
                    let Some((version, member)) = share else {
                        continue;
                    };
                    answer.extend_from_slice(&version.to_ne_bytes());
                    answer.extend_from_slice(&member.to_ne_bytes());
                }
                return Ok(answer);
            }
            Action::Length => {
                let found = std::fs::metadata(&named);
                let found = found.map_err(|source| Error::file("find", &named, source))?;
                return Ok(found.len().to_ne_bytes().to_vec());
            }
            Action::Read => {
                let read =
                    File::open(&named).and_then(|file| file.read_exact_at(room, asked.number));
                read.map_err(|source| Error::file("read", &named, source))?;
            }
            Action::RemoveBefore | Action::RemoveFrom => {
                for file in files(directory)? {
                    let share = file
                        .strip_suffix(".state")
                        .and_then(|share| self.parse(share));
                    let useless = |(version, member): (u64, u64)| match asked.action {
                        Action::RemoveBefore => version < asked.number && member == asked.member,
                        _ => version >= asked.number,
                    };
                    if share.is_some_and(useless) {
                        // What cannot be removed is in nobody's way.
                        let _ = std::fs::remove_file(directory.join(file));
                    }
                }
            }
        }
        Ok(Vec::new())
    }
}

/// Gives a share its name when it is on stable storage and reads back as it was sent.
fn commit((hidden, named): (&Path, &Path), expected: u64, directory: &Path) -> Result<()> {
    let read_back = || {
        let file = File::open(hidden)?;
        file.sync_all()?;
        let (mut sum, mut at, mut buffer) = (0, 0, vec![0; BUFFER]);
        loop {
            let count = file.read_at(&mut buffer, at)?;
            if count == 0 {
                return Ok(sum);
            }
            sum = crc32c::crc32c_append(sum, &buffer[..count]);
            at += count as u64;
        }
    };
    let sum: u32 = read_back().map_err(|source| Error::file("read", hidden, source))?;
    if u64::from(sum) != expected {
        return Err(Error::format(
            hidden.display(),
            "what was read back is not what was sent, so the state was not saved",
        ));
    }
    std::fs::rename(hidden, named).map_err(|source| Error::file("create", named, source))?;
    sync_directory(directory)
}

/// The names of the files in a directory.
fn files(directory: &Path) -> Result<Vec<String>> {
    let list = std::fs::read_dir(directory).and_then(|entries| {
        let names = entries.map(|entry| Ok(entry?.file_name().to_string_lossy().to_string()));
        names.collect()
    });
    list.map_err(|source| Error::file("read", directory, source))
}
