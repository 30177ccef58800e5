//! [`State`]: named values of one rank, and how they are written.
//!
//! A share begins with 8 bytes that tell what it is, the length of its header and
//! the header (JSON: version, member, members, and name, type and bytes of each
//! entry); the values follow, and a CRC32C of everything before it ends it.

use bytemuck::Pod;
use serde::{Deserialize, Serialize};

use crate::element::{Element, ElementType};
use crate::error::{Error, Result};

const MAGIC: &[u8; 8] = b"OCSTATE1";

/// Named values of one rank.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct State {
    entries: Vec<(String, ElementType, Vec<u8>)>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Header {
    version: u64,
    member: usize,
    members: usize,
    entries: Vec<(String, String, u64)>,
}

impl State {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With values under a name.
    pub fn with<T: Element>(mut self, name: &str, values: &[T]) -> Self {
        let bytes = bytemuck::cast_slice(values).to_vec();
        self.entries.push((name.into(), T::TYPE, bytes));
        self
    }

    /// The names, in the order in which they were given.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.entries.iter().map(|(name, ..)| name.as_str())
    }

    /// The values under a name.
    pub fn get<T: Element + Pod>(&self, name: &str) -> Result<Vec<T>> {
        let entry = self.entries.iter().find(|(found, ..)| found == name);
        let (_, stored, bytes) =
            entry.ok_or_else(|| Error::Invalid(format!("the state has nothing named '{name}'")))?;
        if *stored != T::TYPE {
            return Err(Error::WrongType {
                array: format!("'{name}' of the state"),
                stored: *stored,
                asked: T::TYPE,
            });
        }
        Ok(bytemuck::pod_collect_to_vec(bytes))
    }

    pub(super) fn to_bytes(&self, version: u64, member: usize, members: usize) -> Result<Vec<u8>> {
        let entries = self.entries.iter();
        let header = Header {
            version,
            member,
            members,
            entries: entries
                .map(|(name, kind, bytes)| (name.clone(), kind.to_string(), bytes.len() as u64))
                .collect(),
        };
        let header = serde_json::to_vec(&header)
            .map_err(|error| Error::Invalid(format!("a state cannot be described: {error}")))?;
        let data: usize = self.entries.iter().map(|(_, _, bytes)| bytes.len()).sum();
        let mut bytes = Vec::with_capacity(20 + header.len() + data);
        bytes.extend_from_slice(MAGIC);
        bytes.extend_from_slice(&(header.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&header);
        self.entries
            .iter()
            .for_each(|(_, _, values)| bytes.extend_from_slice(values));
        let sum = crc32c::crc32c(&bytes);
        bytes.extend_from_slice(&sum.to_le_bytes());
        Ok(bytes)
    }

    pub(super) fn from_bytes(
        name: &str,
        bytes: &[u8],
        (version, member, members): (u64, usize, usize),
    ) -> Result<Self> {
        let what = || format!("share {member} of version {version} of '{name}'");
        let wrong = |problem: &str| Error::format(what(), problem);
        let damaged = || wrong("it is damaged: its checksum does not fit its bytes");
        let (body, sum) = bytes.split_last_chunk::<4>().ok_or_else(damaged)?;
        if crc32c::crc32c(body) != u32::from_le_bytes(*sum) {
            return Err(damaged());
        }
        let short = || wrong("it is no state");
        let body = body.strip_prefix(MAGIC).ok_or_else(short)?;
        let (length, body) = body.split_first_chunk::<8>().ok_or_else(short)?;
        let length = usize::try_from(u64::from_le_bytes(*length)).map_err(|_| short())?;
        let (header, mut values) = body.split_at_checked(length).ok_or_else(short)?;
        let header: Header = serde_json::from_slice(header)
            .map_err(|error| wrong(&format!("its header is wrong: {error}")))?;
        if (header.version, header.member, header.members) != (version, member, members) {
            return Err(wrong("it is of another version or another group"));
        }
        let mut entries = Vec::with_capacity(header.entries.len());
        for (name, kind, bytes) in header.entries {
            let bytes = usize::try_from(bytes).map_err(|_| short())?;
            let (taken, rest) = values.split_at_checked(bytes).ok_or_else(short)?;
            entries.push((name, kind.parse()?, taken.to_vec()));
            values = rest;
        }
        Ok(Self { entries })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_read_as_it_was_written() {
        let state = State::new()
            .with("a", &[1.5f64, 2.5])
            .with("b", &[true])
            .with::<u8>("c", &[]);
        let bytes = state.to_bytes(3, 1, 2).unwrap();
        assert_eq!(State::from_bytes("s", &bytes, (3, 1, 2)).unwrap(), state);
        assert_eq!(state.get::<f64>("a").unwrap(), [1.5, 2.5]);
        assert!(state.get::<f32>("a").is_err() && state.get::<f64>("z").is_err());
        assert!(State::from_bytes("s", &bytes, (4, 1, 2)).is_err());
        for at in 0..bytes.len() {
            let mut damaged = bytes.clone();
            damaged[at] ^= 4;
            assert!(State::from_bytes("s", &damaged, (3, 1, 2)).is_err());
            assert!(State::from_bytes("s", &bytes[..at], (3, 1, 2)).is_err());
        }
    }
}
