//! [`Link`]: how requests reach the holders of parts: in place if this rank holds
//! the part, by a procedure call otherwise; reads may be done in place all the same
//! ([`Near`]).

use std::sync::{Arc, Mutex, PoisonError};

use outcore_transport::Comm;

use super::holder::Holder;
use super::near::Near;
use super::part::Part;
use super::request::{Action, Asked, decode, encode};
use super::spread::Item;
use crate::error::Result;
use crate::format::native::new_id;
use crate::global::procedure_call::{Call, Procedure, Procedures};

/// Buffers that are kept for the next request: new memory costs more than a copy.
const SPARE: usize = 8;

/// Buffers longer than this are not kept.
const LONGEST_SPARE: usize = 4 << 20;

/// Collective: a name for a procedure that no other has, though an array or file may
/// be closed and opened again.
pub(crate) fn once(comm: &Comm, name: &str) -> Result<String> {
    let mut id = new_id();
    id.truncate(8);
    comm.broadcast_string(0, &mut id)?;
    Ok(format!("{name} ({id})"))
}

/// The way to the holders of the parts of one array.
#[derive(Debug)]
pub(crate) struct Link {
    calls: Procedures,
    procedure: Procedure,
    holder: Arc<Holder>,
    /// Which rank holds each part.
    holders: Vec<usize>,
    rank: usize,
    near: Near,
    spare: Mutex<Vec<Vec<u8>>>,
    /// Hints whose answers nobody waits for.
    hints: Mutex<Vec<Call>>,
}

impl Link {
    /// Collective: registers the procedure that serves others.
    pub(crate) fn new(
        comm: &Comm,
        calls: &Procedures,
        (name, near): (&str, Near),
        holder: Arc<Holder>,
        holders: Vec<usize>,
    ) -> Result<Self> {
        let (rank, served) = (comm.rank(), Arc::downgrade(&holder));
        let name = once(comm, &format!("disk-resident array {name}"))?;
        let procedure = calls.register(&name, move |request, response| {
            let Some(holder) = served.upgrade() else {
                return Err(crate::error::Error::Invalid(
                    "the rank has closed its part of the array".into(),
                ));
            };
            let asked = decode(request.header())?;
            holder.serve(asked, request.data()?, response.data()?)
        })?;
        Ok(Self {
            calls: calls.clone(),
            procedure,
            holder,
            holders,
            rank,
            near,
            spare: Mutex::default(),
            hints: Mutex::default(),
        })
    }

    pub(crate) fn holder(&self) -> &Arc<Holder> {
        &self.holder
    }

    /// The rank that holds a part.
    pub(crate) fn rank_of(&self, part: usize) -> usize {
        self.holders[part]
    }

    pub(crate) fn holders(&self) -> &[usize] {
        &self.holders
    }

    pub(crate) fn is_own(&self, part: usize) -> bool {
        self.holders[part] == self.rank
    }

    /// A part that this rank can read itself: its own, or one of its node.
    pub(crate) fn part(&self, part: usize) -> Option<&Part> {
        match self.holder.part(part) {
            Some(part) => Some(part),
            None => self.holders.get(part).and_then(|_| self.near.part(part)),
        }
    }

    /// Asks the holder of the items' part, and waits for the answer.
    pub(crate) fn ask(
        &self,
        (action, factor): (Action, &[u8]),
        items: &[Item],
        data: &[u8],
        room: &mut [u8],
    ) -> Result<()> {
        let part = items.first().map_or(0, |item| item.part);
        self.ask_part((action, factor), part, (items, data), room)
    }

    /// The same, also without items.
    pub(crate) fn ask_part(
        &self,
        (action, factor): (Action, &[u8]),
        part: usize,
        (items, data): (&[Item], &[u8]),
        room: &mut [u8],
    ) -> Result<()> {
        if self.is_own(part) {
            return self
                .holder
                .serve(Asked::new(action, part, factor, items), data, room);
        }
        if let (Action::Get | Action::Prefetch, Some(near)) = (action, self.near.part(part)) {
            return near.serve(&Asked::new(action, part, factor, items), data, room);
        }
        let header = encode(action, part, factor, items.iter());
        let rank = self.holders[part];
        self.calls.call(rank, self.procedure, &header, data, room)?;
        Ok(())
    }

    /// Asks without waiting. The buffers come back with the answer.
    pub(crate) fn begin(
        &self,
        (action, factor): (Action, &[u8]),
        items: &[Item],
        data: Vec<u8>,
        room: Vec<u8>,
    ) -> Result<Call> {
        let part = items.first().map_or(0, |item| item.part);
        let header = encode(action, part, factor, items.iter());
        let rank = self.holders[part];
        self.calls
            .start_call(rank, self.procedure, &header, data, room)
    }

    /// Tells the holder that items will be asked for.
    pub(crate) fn hint(&self, items: &[Item]) -> Result<()> {
        let part = items.first().map_or(0, |item| item.part);
        if self.part(part).is_some() {
            return self.ask((Action::Prefetch, &[]), items, &[], &mut []);
        }
        let call = self.begin((Action::Prefetch, &[]), items, Vec::new(), Vec::new())?;
        let mut hints = self.hints.lock().unwrap_or_else(PoisonError::into_inner);
        // What came of earlier ones does not matter.
        hints.retain_mut(|hint| matches!(hint.test(), Ok(false)));
        hints.push(call);
        Ok(())
    }

    /// A buffer of `bytes` bytes, whatever they are.
    pub(crate) fn buffer(&self, bytes: usize) -> Vec<u8> {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        let fitting = spare.iter().position(|buffer| buffer.capacity() >= bytes);
        let buffer = fitting.map(|at| spare.swap_remove(at));
        drop(spare);
        let mut buffer = buffer.unwrap_or_default();
        buffer.resize(bytes, 0);
        buffer
    }

    /// Keeps a buffer for later.
    pub(crate) fn keep(&self, buffer: Vec<u8>) {
        let mut spare = self.spare.lock().unwrap_or_else(PoisonError::into_inner);
        if spare.len() < SPARE && (1..=LONGEST_SPARE).contains(&buffer.capacity()) {
            spare.push(buffer);
        }
    }
}
