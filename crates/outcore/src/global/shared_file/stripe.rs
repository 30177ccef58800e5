//! [`Stripe`]: one part of a shared file as a store, wherever it is; and [`Stripes`],
//! the parts that a rank holds.
//!
//! A request header is one byte for what is to be done, eight for the part, and an
//! offset and a length for each stretch of bytes; the data of all stretches stand one
//! after the other. The answer's header says how many bytes of each were there.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use outcore_storage::{Error as StoreError, ReadRequest, Result, Store, WriteRequest};

use crate::error::Error;
use crate::global::procedure_call::{Procedure, Procedures};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Action {
    Read,
    Write,
    Length,
    SetLength,
    Sync,
}

const ACTIONS: [Action; 5] = [
    Action::Read,
    Action::Write,
    Action::Length,
    Action::SetLength,
    Action::Sync,
];

/// The parts that a rank holds.
#[derive(Debug)]
pub(super) struct Stripes {
    parts: HashMap<usize, Arc<dyn Store>>,
    closed: AtomicBool,
}

impl Stripes {
    pub(super) fn new(parts: Vec<(usize, Arc<dyn Store>)>) -> Self {
        Self {
            parts: parts.into_iter().collect(),
            closed: AtomicBool::new(false),
        }
    }

    /// Collective: lets others reach the parts.
    pub(super) fn register(
        this: &Arc<Self>,
        calls: &Procedures,
        name: &str,
    ) -> crate::error::Result<Procedure> {
        let served = Arc::downgrade(this);
        calls.register(name, move |request, response| {
            let Some(stripes) = served.upgrade() else {
                return Err(closed());
            };
            let asked = Asked::decode(request.header())?;
            let room: &mut [u8] = match asked.action {
                Action::Read => response.data()?,
                _ => &mut [],
            };
            let data = match asked.action {
                Action::Write => request.data()?,
                _ => &[],
            };
            response.header = stripes.serve(&asked, data, room)?;
            Ok(())
        })
    }

    pub(super) fn close(&self) {
        self.closed.store(true, Ordering::Release);
    }

    /// Does what is asked, and answers with the numbers of the answer's header.
    fn serve(&self, asked: &Asked, data: &[u8], room: &mut [u8]) -> crate::error::Result<Vec<u8>> {
        if self.closed.load(Ordering::Acquire) {
            return Err(closed());
        }
        let Some(store) = self.parts.get(&asked.part) else {
            let part = asked.part;
            return Err(Error::Invalid(format!(
                "part {part} of a shared file is not here"
            )));
        };
        let mut answer = Vec::new();
        let mut at = 0;
        for (offset, len) in &asked.stretches {
            let end = at + *len as usize;
            let short = || Error::Invalid("a buffer is shorter than what is asked for".into());
            match asked.action {
                Action::Read => {
                    let room = room.get_mut(at..end).ok_or_else(short)?;
                    let found = read_what_is_there(&**store, *offset, room)?;
                    answer.extend_from_slice(&(found as u64).to_le_bytes());
                }
                Action::Write => {
                    store.write_at(*offset, data.get(at..end).ok_or_else(short)?)?;
                }
                Action::SetLength => store.set_len(*offset)?,
                Action::Length | Action::Sync => {}
            }
            at = end;
        }
        match asked.action {
            Action::Length => answer.extend_from_slice(&store.len()?.to_le_bytes()),
            Action::Sync => store.sync()?,
            _ => {}
        }
        Ok(answer)
    }
}

fn closed() -> Error {
    Error::Invalid("the rank has closed its part of the shared file".into())
}

/// Reads up to the end of the store; says how many bytes there were.
fn read_what_is_there(store: &dyn Store, offset: u64, room: &mut [u8]) -> Result<usize> {
    match store.read_at(offset, room) {
        Ok(()) => Ok(room.len()),
        Err(StoreError::UnexpectedEnd { .. }) => {
            let found = store.len()?.saturating_sub(offset).min(room.len() as u64) as usize;
            store.read_at(offset, &mut room[..found])?;
            Ok(found)
        }
        Err(error) => Err(error),
    }
}

/// What one request asks for.
struct Asked {
    action: Action,
    part: usize,
    /// Offsets and lengths.
    stretches: Vec<(u64, u64)>,
}

impl Asked {
    fn encode(&self) -> Vec<u8> {
        let mut bytes = vec![self.action as u8];
        bytes.extend_from_slice(&(self.part as u64).to_le_bytes());
        for (offset, len) in &self.stretches {
            bytes.extend_from_slice(&offset.to_le_bytes());
            bytes.extend_from_slice(&len.to_le_bytes());
        }
        bytes
    }

    fn decode(bytes: &[u8]) -> crate::error::Result<Self> {
        let damaged =
            || Error::Invalid("a request for part of a shared file cannot be read".into());
        let (action, rest) = bytes.split_first().ok_or_else(damaged)?;
        let action = *ACTIONS.get(usize::from(*action)).ok_or_else(damaged)?;
        let (numbers, []) = rest.as_chunks::<8>() else {
            return Err(damaged());
        };
        let mut numbers = numbers.iter().map(|bytes| u64::from_le_bytes(*bytes));
        let part = numbers.next().ok_or_else(damaged)? as usize;
        let mut stretches = Vec::new();
        while let Some(offset) = numbers.next() {
            stretches.push((offset, numbers.next().ok_or_else(damaged)?));
        }
        Ok(Self {
            action,
            part,
            stretches,
        })
    }
}

/// One part of a shared file, wherever it is.
pub(super) struct Stripe {
    name: String,
    part: usize,
    calls: Procedures,
    procedure: Procedure,
    rank: usize,
    here: Option<Arc<Stripes>>,
}

impl fmt::Debug for Stripe {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stripe({})", self.name())
    }
}

impl Stripe {
    pub(super) fn new(
        name: &str,
        part: usize,
        (calls, procedure, rank): (Procedures, Procedure, usize),
        here: Option<Arc<Stripes>>,
    ) -> Self {
        Self {
            name: name.into(),
            part,
            calls,
            procedure,
            rank,
            here,
        }
    }

    fn ask(
        &self,
        action: Action,
        stretches: Vec<(u64, u64)>,
        data: &[u8],
        room: &mut [u8],
    ) -> crate::error::Result<Vec<u64>> {
        let asked = Asked {
            action,
            part: self.part,
            stretches,
        };
        let answer = match &self.here {
            Some(stripes) => stripes.serve(&asked, data, room)?,
            None => {
                let header = asked.encode();
                let reply = self
                    .calls
                    .call(self.rank, self.procedure, &header, data, room)?;
                reply.header
            }
        };
        let (numbers, _) = answer.as_chunks::<8>();
        Ok(numbers
            .iter()
            .map(|bytes| u64::from_le_bytes(*bytes))
            .collect())
    }

    fn ended(&self, offset: u64, wanted: usize, found: u64) -> StoreError {
        StoreError::UnexpectedEnd {
            store: self.name(),
            offset,
            wanted: wanted as u64,
            end: offset + found,
        }
    }
}

impl Store for Stripe {
    fn name(&self) -> String {
        format!("{} (part {} on rank {})", self.name, self.part, self.rank)
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let stretch = vec![(offset, buffer.len() as u64)];
        let found = self.ask(Action::Read, stretch, &[], buffer);
        let found = found.map_err(io::Error::other)?;
        Ok(found.first().copied().unwrap_or(0) as usize)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        let stretch = vec![(offset, data.len() as u64)];
        let written = self.ask(Action::Write, stretch, data, &mut []);
        written.map_err(io::Error::other)?;
        Ok(data.len())
    }

    fn len(&self) -> Result<u64> {
        let found = self.ask(Action::Length, Vec::new(), &[], &mut []);
        let found = found.map_err(|error| StoreError::Length {
            store: self.name(),
            source: io::Error::other(error),
        })?;
        Ok(found.first().copied().unwrap_or(0))
    }

    fn set_len(&self, len: u64) -> Result<()> {
        let set = self.ask(Action::SetLength, vec![(len, 0)], &[], &mut []);
        set.map(drop)
            .map_err(|error| StoreError::set_length(self.name(), len, io::Error::other(error)))
    }

    fn sync(&self) -> Result<()> {
        let synced = self.ask(Action::Sync, Vec::new(), &[], &mut []);
        synced
            .map(drop)
            .map_err(|error| StoreError::sync(self.name(), io::Error::other(error)))
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        let [first, _, ..] = requests else {
            return requests
                .iter_mut()
                .try_for_each(|request| self.read_at(request.offset, request.buffer));
        };
        let first = first.offset;
        let stretches: Vec<(u64, u64)> = requests
            .iter()
            .map(|request| (request.offset, request.buffer.len() as u64))
            .collect();
        let bytes: u64 = stretches.iter().map(|(_, len)| len).sum();
        let mut room = vec![0; bytes as usize];
        let found = self.ask(Action::Read, stretches, &[], &mut room);
        let found =
            found.map_err(|error| StoreError::read(self.name(), first, io::Error::other(error)))?;
        let mut rest = room.as_slice();
        for (request, found) in requests.iter_mut().zip(found) {
            let wanted = request.buffer.len();
            if found != wanted as u64 {
                return Err(self.ended(request.offset, wanted, found));
            }
            let (data, after) = rest.split_at(wanted);
            request.buffer.copy_from_slice(data);
            rest = after;
        }
        Ok(())
    }

    fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
        let [first, _, ..] = requests else {
            return requests
                .iter()
                .try_for_each(|request| self.write_at(request.offset, request.data));
        };
        let stretches = requests
            .iter()
            .map(|request| (request.offset, request.data.len() as u64));
        let data: Vec<u8> = requests
            .iter()
            .map(|request| request.data)
            .collect::<Vec<_>>()
            .concat();
        let written = self.ask(Action::Write, stretches.collect(), &data, &mut []);
        written
            .map(drop)
            .map_err(|error| StoreError::write(self.name(), first.offset, io::Error::other(error)))
    }
}
