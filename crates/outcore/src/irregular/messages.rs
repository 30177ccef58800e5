//! Irregular reads and writes in which messages carry the elements.
//!
//! Windows are moved in chunks: some windows of every rank. In each step one
//! group of ranks has to do with the file. Writing, all ranks pack their elements
//! of the group's windows, in the order of their lists, and send them; the ranks
//! of the group put them into their windows and write these. Reading goes the
//! other way. With several groups the input and output of a group goes on beside
//! the exchanges of the next ones (No et al. 1998, section 3.2); with one, after
//! and before them.
//!
//! Both ends know the lengths of all messages. A rank whose input or output fails
//! goes on taking part and writes no more; all agree on the outcome at the end.

use std::ops::Range;

use outcore_transport::{AllToAll, Comm, Exchange, Op};

use super::call::Irregular;
use super::lists::packet;
use super::packed::pack;

use super::pipeline::{Groups, PipelineModel, members};
use super::schedule::Schedule;
use super::variable::Buffer;
use super::window::{Backing, Deed, Part, Segment, WindowWork, store_of};
use super::windows::Domains;
use crate::array::Array;
use crate::budget::{MemoryBudget, Reservation};
use crate::collective::{Moved, beside, gone, leave_together, timed};
use crate::error::{Error, Result};
use crate::execute::points::{Points, Sides};
use crate::fresh;
use crate::strategy::Direction;

/// The bytes of messages that a rank has in memory, where nobody says how many.
const MAIL: u64 = 64 << 20;

/// How messages are to be sent.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Settings {
    pub(super) groups: Groups,
    /// The windows of a rank that are moved at a time.
    pub(super) windows: Option<u64>,
    /// The most bytes of a message.
    pub(super) message: Option<u64>,
}

impl Settings {
    /// Whether something is asked for that only messages have.
    pub(super) fn asks_for_messages(&self) -> bool {
        let groups = matches!(self.groups, Groups::Of(groups) if groups > 1);
        groups || self.windows.is_some() || self.message.is_some()
    }
}

/// The lists of another rank for the windows of this one: where entries stand in
/// their windows.
#[derive(Debug, Default)]
pub(super) struct MailLists {
    offsets: Vec<u32>,
    lengths: Option<Vec<u32>>,
    /// The entries before each window, and in all.
    starts: Vec<usize>,
}

impl MailLists {
    /// The entries of a window, between its image and a packet.
    pub(super) fn points(&self, k: u64) -> Points<'_> {
        let entries = self.starts[k as usize]..self.starts[k as usize + 1];
        packet(&self.offsets, self.lengths.as_deref(), entries)
    }

    pub(super) fn bytes(&self) -> usize {
        4 * (self.offsets.len() + self.lengths.as_ref().map_or(0, Vec::len)) + 8 * self.starts.len()
    }
}

impl Schedule {
    /// Collective: sends lists to those who have to do with them, unless that has
    /// been done.
    pub(super) fn share_lists(&self, comm: &Comm) -> Result<&[MailLists]> {
        if let Some(mail) = self.mail.get() {
            return Ok(mail);
        }
        let lists = self.lists();
        let mut mail: Vec<MailLists> = Vec::with_capacity(self.ranks);
        for incoming in &self.incoming {
            let mut starts = vec![0];
            let mut entries = 0;
            for wanted in &incoming.wanted {
                entries += wanted.entries().len();
                starts.push(entries);
            }
            mail.push(MailLists {
                offsets: fresh::zeroed(entries),
                lengths: incoming.runs.then(|| fresh::zeroed(entries)),
                starts,
            });
        }
        self.send_lists(
            comm,
            lists.offsets(),
            mail.iter_mut().map(|mail| &mut mail.offsets[..]),
        )?;
        // Everybody knows who has runs.
        if self.incoming.iter().any(|incoming| incoming.runs) {
            let lengths = mail.iter_mut().map(|mail| mail.lengths.as_deref_mut());
            let lengths = lengths.map(Option::unwrap_or_default);
            self.send_lists(comm, lists.lengths().unwrap_or_default(), lengths)?;
        }
        Ok(self.mail.get_or_init(|| mail))
    }

    /// Collective: sends the entries of `list` to those whose windows they are in;
    /// nothing if there are none.
    fn send_lists<'m>(
        &self,
        comm: &Comm,
        list: &[u32],
        into: impl Iterator<Item = &'m mut [u32]>,
    ) -> Result<()> {
        let mut ordered = Vec::new();
        let sends: Vec<&[u32]> = match &self.domains {
            _ if list.is_empty() => vec![&[]; self.ranks],
            Domains::Stretches(bounds) => {
                let starts = self.count.entry_starts();
                let ends = bounds
                    .windows(2)
                    .map(|ends| [ends[0], ends[1]].map(|end| starts[end as usize]));
                ends.map(|[start, end]| &list[start as usize..end as usize])
                    .collect()
            }
            Domains::Cyclic { .. } => {
                let mut counts = Vec::with_capacity(self.ranks);
                for rank in 0..self.ranks {
                    let before = ordered.len();
                    for window in self.domains.windows(rank) {
                        ordered.extend_from_slice(&list[self.wanted(window).entries()]);
                    }
                    counts.push(ordered.len() - before);
                }
                let mut rest = &ordered[..];
                counts
                    .into_iter()
                    .map(|count| rest.split_off(..count).unwrap_or_default())
                    .collect()
            }
        };
        let mut into: Vec<&mut [u32]> = into.collect();
        Ok(comm.all_to_allv_into(&sends, &mut into, AllToAll::Auto)?)
    }

    /// The elements that this rank wants of windows of another one.
    fn sent(&self, to: usize, chunk: &Range<u64>) -> u64 {
        let windows = chunk.start..chunk.end.min(self.domains.count(to));
        let wanted = windows.map(|k| self.wanted(self.domains.window(to, k)).elements());
        wanted.sum()
    }

    /// The elements that another rank wants of windows of this one.
    fn received(&self, from: usize, chunk: &Range<u64>) -> u64 {
        let all = &self.incoming[from].wanted;
        let end = chunk.end.min(all.len() as u64);
        let wanted = &all[chunk.start.min(end) as usize..end as usize];
        wanted.iter().map(|wanted| wanted.elements()).sum()
    }
}

/// In which steps everything is moved: the same on all ranks.
#[derive(Debug, Clone, Copy)]
struct Steps {
    groups: usize,
    /// The windows of a chunk, and how many chunks there are.
    windows: u64,
    chunks: u64,
    /// Messages that are longer are sent in so many pieces of so many bytes.
    pieces: usize,
    piece: usize,
}

impl Steps {
    fn chunk(&self, number: u64) -> Range<u64> {
        let start = number * self.windows;
        start..start.saturating_add(self.windows)
    }
}

/// The elements that others want of one chunk, in messages: rank after rank for
/// each variable.
#[derive(Debug, Default)]
struct Mail {
    data: Vec<Vec<u8>>,
}

impl Irregular<'_> {
    /// Collective: in messages. The inner outcome is that of this rank's own
    /// input and output.
    pub(super) fn by_messages(
        &self,
        comm: &Comm,
        buffers: &mut [Buffer<'_>],
        parts: &[Part],
        (deed, work): (Deed, &mut WindowWork),
        budget: Option<&MemoryBudget>,
    ) -> Result<Result<()>> {
        let schedule = self.schedule;
        let lists = schedule.share_lists(comm)?;
        let records: Vec<usize> = buffers.iter().map(|buffer| buffer.record).collect();
        let (steps, _reserved) = self.steps(comm, parts, &records, deed, budget)?;
        let arrays: Vec<Array> = parts.iter().filter_map(array_of).collect();
        let is_beside = steps.groups > 1;
        let mut outcome = Ok(());
        let mut rounds = Rounds {
            schedule,
            comm,
            steps,
            records: &records,
            store: store_of(parts),
            packets: Mail::default(),
            moved: Moved::default(),
        };
        let mut job = |arrays: &[Array], mail: &mut Mail, chunk: u64| {
            if outcome.is_ok() {
                let chunk = steps.chunk(chunk);
                outcome = serve(
                    schedule,
                    lists,
                    (parts, arrays),
                    &records,
                    (mail, chunk),
                    (deed, work),
                );
            }
        };
        beside(is_beside, &arrays, &mut job, |beside| {
            let own = schedule.rank;
            let group = (0..steps.groups)
                .find(|group| members(schedule.ranks, steps.groups, *group).contains(&own));
            let mut free = Some(Mail::default());
            let reads = deed.direction() == Direction::Read;
            if reads && steps.chunks > 0 {
                let mut mail = free.take().ok_or_else(gone)?;
                mail.enter(schedule, &steps.chunk(0), &records);
                beside.give(mail, 0);
            }
            for (number, step) in (0..steps.chunks)
                .flat_map(|number| (0..steps.groups).map(move |step| (number, step)))
            {
                let mine = Some(step) == group;
                if reads {
                    let mail = match mine {
                        true => Some(beside.take().ok_or_else(gone)?),
                        false => None,
                    };
                    rounds.receive((number, step), mail.as_ref(), buffers)?;
                    if let Some(mut mail) = mail
                        && number + 1 < steps.chunks
                    {
                        mail.enter(schedule, &steps.chunk(number + 1), &records);
                        beside.give(mail, number + 1);
                    }
                    continue;
                }
                let mut mail = match mine {
                    true => Some(free.take().or_else(|| beside.take()).ok_or_else(gone)?),
                    false => None,
                };
                if let Some(mail) = &mut mail {
                    mail.enter(schedule, &steps.chunk(number), &records);
                }
                rounds.send((number, step), mail.as_mut(), buffers)?;
                if let Some(mail) = mail {
                    beside.give(mail, number);
                }
            }
            while beside.take().is_some() {}
            rounds.moved.io += beside.waited;
            Ok::<(), Error>(())
        })?;
        rounds.moved.useful = work.moved.useful;
        rounds.moved.rounds = steps.chunks * steps.groups as u64;
        work.moved = rounds.moved.with_work(&work.moved, is_beside);
        Ok(outcome)
    }

    /// Collective: how many groups, how many windows at a time.
    fn steps(
        &self,
        comm: &Comm,
        parts: &[Part],
        records: &[usize],
        deed: Deed,
        budget: Option<&MemoryBudget>,
    ) -> Result<(Steps, Option<Reservation>)> {
        let schedule = self.schedule;
        let ranks = schedule.ranks;
        let record: u64 = records.iter().sum::<usize>() as u64;
        let most = (0..ranks)
            .map(|rank| schedule.domains.count(rank))
            .max()
            .unwrap_or(0);
        // The chunk: all windows, unless their messages are too long.
        let room = budget.map_or(MAIL, MemoryBudget::free);
        let need = |windows: u64| {
            let chunks =
                (0..most.div_ceil(windows)).map(|chunk| chunk * windows..chunk * windows + windows);
            let bytes = chunks.map(|chunk| {
                let sent: u64 = (0..ranks).map(|to| schedule.sent(to, &chunk)).sum();
                let received: u64 = (0..ranks).map(|from| schedule.received(from, &chunk)).sum();
                (sent + received) * record
            });
            bytes.max().unwrap_or(0)
        };
        let mut windows = self.settings.windows.unwrap_or(most).clamp(1, most.max(1));
        while windows > 1 && need(windows) > room {
            windows = windows.div_ceil(2);
        }
        let windows = comm.all_reduce_one(windows, Op::Min)?;
        let reserved = match budget {
            None => None,
            Some(budget) => {
                let reserved = budget.reserve(need(windows), "the messages of an irregular call");
                Some(comm.agree(reserved)?)
            }
        };
        let chunks = most.div_ceil(windows);
        let groups = match self.settings.groups {
            Groups::Of(groups) => groups.clamp(1, ranks),
            Groups::Auto => {
                let bytes = record
                    * (windows << schedule.windows.shift)
                        .min(schedule.places.extent().div_ceil(ranks as u64));
                PipelineModel::of(comm, parts, deed.direction(), (bytes, chunks))?
                    .best()
                    .0
            }
        };
        // Long messages are cut.
        let mut pieces = (1, usize::MAX);
        if let Some(piece) = self.settings.message {
            let all = (0..chunks).map(|chunk| chunk * windows..chunk * windows + windows);
            let longest = all.flat_map(|chunk| (0..ranks).map(move |to| schedule.sent(to, &chunk)));
            let widest = records.iter().max().copied().unwrap_or(0) as u64;
            let longest = longest.max().unwrap_or(0) * widest;
            let longest = comm.all_reduce_one(longest, Op::Max)?;
            pieces = (longest.div_ceil(piece).max(1) as usize, piece as usize);
        }
        let steps = Steps {
            groups,
            windows,
            chunks,
            pieces: pieces.0,
            piece: pieces.1,
        };
        Ok((steps, reserved))
    }
}

fn array_of(part: &Part) -> Option<Array> {
    match &part.backing {
        Backing::File(array, _) => Some(Array::clone(array)),
        Backing::Memory { .. } => None,
    }
}

impl Mail {
    /// Makes room for what all ranks want of a chunk of this rank's windows.
    fn enter(&mut self, schedule: &Schedule, chunk: &Range<u64>, records: &[usize]) {
        let elements: u64 = (0..schedule.ranks)
            .map(|from| schedule.received(from, chunk))
            .sum();
        self.resize(elements as usize, records);
    }

    fn resize(&mut self, elements: usize, records: &[usize]) {
        self.data.resize_with(records.len(), Vec::new);
        for (data, record) in self.data.iter_mut().zip(records) {
            let bytes = elements * record;
            match bytes <= data.capacity() {
                true => data.resize(bytes, 0),
                false => *data = fresh::zeroed(bytes),
            }
        }
    }
}

/// Does `deed` to a chunk of this rank's windows, whose elements are in `mail`.
fn serve(
    schedule: &Schedule,
    lists: &[MailLists],
    (parts, arrays): (&[Part], &[Array]),
    records: &[usize],
    (mail, chunk): (&mut Mail, Range<u64>),
    (deed, work): (Deed, &mut WindowWork),
) -> Result<()> {
    // The arrays may have another clock here.
    let mut arrays = arrays.iter();
    let parts: Vec<Part> = parts
        .iter()
        .map(|part| match (&part.backing, arrays.next()) {
            (Backing::File(_, start), Some(array)) => Part {
                backing: Backing::File(Box::new(array.clone()), *start),
                ..part.clone()
            },
            _ => part.clone(),
        })
        .collect();
    let mut before = 0;
    let starts: Vec<Vec<*mut u8>> = (0..schedule.ranks)
        .map(|from| {
            let data = mail.data.iter_mut().zip(records);
            let starts = data.map(|(data, record)| data[before * record..].as_mut_ptr());
            let starts = starts.collect();
            before += schedule.received(from, &chunk) as usize;
            starts
        })
        .collect();
    let mut done = vec![0; schedule.ranks];
    let own = chunk.start..chunk.end.min(schedule.domains.count(schedule.rank));
    for k in own {
        let window = schedule
            .windows
            .range(schedule.domains.window(schedule.rank, k));
        let mut segments = Vec::new();
        for (from, list) in lists.iter().enumerate() {
            let elements = schedule.incoming[from].wanted[k as usize].elements();
            if elements == 0 {
                continue;
            }
            segments.push(Segment {
                points: list.points(k),
                elements,
                values: &starts[from],
                packed: done[from],
            });
            done[from] += elements as usize;
        }
        for part in &parts {
            // SAFETY: the mail has room for all elements of the chunk, and the
            // lists say where those of each rank stand in their windows.
            unsafe {
                work.visit(
                    part,
                    (&window, &schedule.filled[k as usize]),
                    &segments,
                    deed,
                )?
            };
        }
    }
    Ok(())
}

/// The exchanges, and what this rank packs for them.
struct Rounds<'a> {
    schedule: &'a Schedule,
    comm: &'a Comm,
    steps: Steps,
    records: &'a [usize],
    store: Option<&'a dyn outcore_storage::Store>,
    /// What this rank sends, or receives, of the windows of one group.
    packets: Mail,
    moved: Moved,
}

impl Rounds<'_> {
    fn members(&self, step: usize) -> Range<usize> {
        members(self.schedule.ranks, self.steps.groups, step)
    }

    /// The elements that this rank wants of each rank of a group.
    fn counts(&self, (number, step): (u64, usize)) -> Vec<(usize, usize)> {
        let chunk = self.steps.chunk(number);
        let members = self.members(step);
        members
            .map(|to| (to, self.schedule.sent(to, &chunk) as usize))
            .collect()
    }

    /// Sends this rank's elements, and receives those of all in `mail`.
    fn send(
        &mut self,
        at: (u64, usize),
        mail: Option<&mut Mail>,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        let counts = self.counts(at);
        self.pack(at, &counts, buffers, Direction::Write);
        let mut incoming = mail.map(|mail| self.cut(at.0, mail)).unwrap_or_default();
        let mut packets = std::mem::take(&mut self.packets);
        let outgoing = cut(&mut packets, &counts, self.records).into_iter();
        let outgoing: Vec<(usize, &[u8])> = outgoing.map(|(rank, piece)| (rank, &*piece)).collect();
        let outcome = self.exchange(&outgoing, &mut incoming);
        self.packets = packets;
        outcome
    }

    /// Sends the elements of others from `mail`, and receives this rank's own.
    fn receive(
        &mut self,
        at: (u64, usize),
        mail: Option<&Mail>,
        buffers: &mut [Buffer<'_>],
    ) -> Result<()> {
        let counts = self.counts(at);
        let elements = counts.iter().map(|(_, count)| count).sum();
        let mut packets = std::mem::take(&mut self.packets);
        packets.resize(elements, self.records);
        let mut outgoing: Vec<(usize, &[u8])> = Vec::new();
        if let Some(mail) = mail {
            let counts = self.received(at.0);
            for (data, record) in mail.data.iter().zip(self.records) {
                let mut rest = &data[..];
                for (rank, count) in &counts {
                    let (piece, later) = rest.split_at(count * record);
                    rest = later;
                    outgoing.push((*rank, piece));
                }
            }
        }
        let mut incoming = cut(&mut packets, &counts, self.records);
        let outcome = self.exchange(&outgoing, &mut incoming);
        self.packets = packets;
        outcome?;
        self.pack(at, &counts, buffers, Direction::Read);
        Ok(())
    }

    fn received(&self, number: u64) -> Vec<(usize, usize)> {
        let chunk = self.steps.chunk(number);
        let ranks = 0..self.schedule.ranks;
        ranks
            .map(|from| (from, self.schedule.received(from, &chunk) as usize))
            .collect()
    }

    /// The pieces of each rank in the mail of a chunk.
    fn cut<'m>(&self, number: u64, mail: &'m mut Mail) -> Vec<(usize, &'m mut [u8])> {
        cut(mail, &self.received(number), self.records)
    }

    /// The exchange itself, in as many turns as messages have pieces.
    fn exchange(
        &mut self,
        outgoing: &[(usize, &[u8])],
        incoming: &mut [(usize, &mut [u8])],
    ) -> Result<()> {
        let Steps { pieces, piece, .. } = self.steps;
        let (comm, store) = (self.comm, self.store);
        for (rank, message) in outgoing {
            self.moved.send(comm, *rank, message);
        }
        let started = std::time::Instant::now();
        if pieces == 1 {
            self.all_to_all(outgoing, incoming)?;
        }
        // Cut into pieces, a message is not sent all at once.
        let turns = if pieces == 1 { 0 } else { pieces };
        for turn in 0..turns {
            let part = |len: usize| {
                let start = len.min(turn.saturating_mul(piece));
                start..len.min(start.saturating_add(piece))
            };
            let mut exchange = Exchange::with_capacity(outgoing.len(), incoming.len());
            for (rank, message) in outgoing {
                exchange.send(*rank, &message[part(message.len())]);
            }
            for (rank, message) in incoming.iter_mut() {
                let part = part(message.len());
                exchange.receive(*rank, &mut message[part]);
            }
            comm.exchange(&mut exchange)?;
        }
        match store {
            None => {
                self.moved.exchange += started.elapsed();
                Ok(())
            }
            Some(store) => {
                if store.time().is_none() {
                    self.moved.exchange += started.elapsed();
                }
                timed(store, &mut self.moved.exchange, || {
                    leave_together(store, comm)
                })
            }
        }
    }

    /// All pieces of one variable after the other, whole.
    fn all_to_all(
        &self,
        outgoing: &[(usize, &[u8])],
        incoming: &mut [(usize, &mut [u8])],
    ) -> Result<()> {
        let (ranks, variables) = (self.schedule.ranks, self.records.len());
        let each = |pieces: usize| (pieces / variables.max(1)).max(1);
        let mut outgoing = outgoing.chunks(each(outgoing.len()));
        let mut incoming = incoming.chunks_mut(each(incoming.len()));
        for _ in 0..variables {
            let mut sends: Vec<&[u8]> = vec![&[]; ranks];
            for (rank, piece) in outgoing.next().unwrap_or_default() {
                sends[*rank] = piece;
            }
            let mut receives: Vec<&mut [u8]> = Vec::new();
            receives.resize_with(ranks, Default::default);
            for (rank, piece) in incoming.next().unwrap_or_default() {
                receives[*rank] = piece;
            }
            self.comm
                .all_to_allv_into(&sends, &mut receives, AllToAll::Auto)?;
        }
        Ok(())
    }

    /// Copies this rank's elements of the windows of a group between its values
    /// and the packets.
    fn pack(
        &mut self,
        (number, _): (u64, usize),
        counts: &[(usize, usize)],
        buffers: &mut [Buffer<'_>],
        direction: Direction,
    ) {
        let started = std::time::Instant::now();
        let schedule = self.schedule;
        let chunk = self.steps.chunk(number);
        let elements = counts.iter().map(|(_, count)| count).sum();
        self.packets.resize(elements, self.records);
        let lists = schedule.lists();
        let mut pieces = Vec::new();
        let mut before = 0;
        for (to, _) in counts {
            let windows = chunk.start..chunk.end.min(schedule.domains.count(*to));
            for k in windows {
                let wanted = schedule.wanted(schedule.domains.window(*to, k));
                pieces.push((wanted.entries(), before));
                before += wanted.elements() as usize;
            }
        }
        for (packets, buffer) in self.packets.data.iter_mut().zip(buffers) {
            let sides = Sides {
                image: packets.as_mut_ptr(),
                values: buffer.start(),
                size: buffer.record,
                stride: buffer.record,
            };
            // SAFETY: the packets have room for these elements, and the values,
            // of the length that was checked, for all.
            unsafe { pack(lists, &pieces, sides, direction) };
        }
        self.moved.copy += started.elapsed();
    }
}

/// Memory of all variables cut into the pieces of each rank.
fn cut<'m>(
    mail: &'m mut Mail,
    counts: &[(usize, usize)],
    records: &[usize],
) -> Vec<(usize, &'m mut [u8])> {
    let mut pieces = Vec::with_capacity(counts.len() * records.len());
    for (data, record) in mail.data.iter_mut().zip(records) {
        let mut rest = &mut data[..];
        for (rank, count) in counts {
            let (piece, later) = rest.split_at_mut(count * record);
            rest = later;
            pieces.push((*rank, piece));
        }
    }
    pieces
}
