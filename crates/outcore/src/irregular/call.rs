//! [`Irregular`]: carries a schedule out.
//!
//! Ranks that share memory lend each other their lists and packets, which hold
//! the elements of a rank in the order of its lists ([`Comm::lend_all`]): each
//! rank goes through the windows of its own domain and copies elements between the
//! window and everybody's packets. Long elements and runs are copied straight
//! between windows and values, if these are within reach. Others send messages
//! (`messages.rs`), in which elements are in the order of the lists as well.

use std::slice;
use std::time::{Duration, Instant};

use outcore_transport::{Comm, Loan, Loans};

use super::combine::{self, Combine, Number};
use super::lists::Lists;
use super::messages::{MailLists, Settings};
use super::packed::pack;
use super::pipeline::Groups;
use super::places::Places;
use super::schedule::Schedule;
use super::variable::{Buffer, Variable};
use super::window::{Backing, Deed, Part, Segment, WindowWork};
use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::collective::{Carrier, Moved, leave_together, timed};
use crate::element::Element;
use crate::error::{Error, Result};
use crate::execute::points::{Points, Sides};
use crate::strategy::Direction;

/// How a schedule is to be carried out; made by [`Schedule::call`].
#[derive(Debug, Clone)]
pub struct Irregular<'a> {
    pub(super) schedule: &'a Schedule,
    pub(super) settings: Settings,
    carrier: Carrier,
    budget: Option<MemoryBudget>,
}

impl<'a> Irregular<'a> {
    pub(super) fn new(schedule: &'a Schedule) -> Self {
        Self {
            schedule,
            settings: Settings::default(),
            carrier: Carrier::Auto,
            budget: None,
        }
    }

    /// How elements come from the ranks that read a part of the file to those who
    /// want them, and back.
    #[must_use]
    pub fn carrier(mut self, carrier: Carrier) -> Self {
        self.carrier = carrier;
        self
    }

    /// Keeps the memory of buffers within `budget`, whatever that costs in time.
    #[must_use]
    pub fn budget(mut self, budget: &MemoryBudget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// So many groups of ranks take turns in reading and writing, each while the
    /// next ones exchange messages (No et al. 1998, section 3.2). One group is the
    /// plain collective form. Means something with messages alone.
    #[must_use]
    pub fn groups(mut self, groups: Groups) -> Self {
        self.settings.groups = groups;
        self
    }

    /// So many windows of each rank, the chunk, are moved at a time in messages.
    #[must_use]
    pub fn windows(mut self, windows: u64) -> Self {
        self.settings.windows = Some(windows.max(1));
        self
    }

    /// Messages of at most so many bytes: longer ones are sent in several.
    #[must_use]
    pub fn message(mut self, bytes: u64) -> Self {
        self.settings.message = Some(bytes.max(1));
        self
    }

    /// Collective: see [`Schedule::read`].
    pub fn read<T: Element>(&self, comm: &Comm, array: &Array, values: &mut [T]) -> Result<Moved> {
        self.read_all(comm, &mut [Variable::read(array, values)])
    }

    /// Collective: see [`Schedule::write`].
    pub fn write<T: Element>(&self, comm: &Comm, array: &Array, values: &[T]) -> Result<Moved> {
        self.write_all(comm, &mut [Variable::write(array, values)])
    }

    /// Collective: see [`Schedule::accumulate`].
    pub fn accumulate<T: Number>(
        &self,
        comm: &Comm,
        array: &Array,
        values: &[T],
        combine: Combine,
    ) -> Result<Moved> {
        let deed = combine::of::<T>(combine).map(Deed::Combine);
        self.files(comm, &mut [Variable::write(array, values)], deed)
    }

    /// Collective: the same with values given as the bytes of this machine's
    /// numbers, of the type that the array has.
    pub fn accumulate_bytes(
        &self,
        comm: &Comm,
        array: &Array,
        values: &[u8],
        combine: Combine,
    ) -> Result<Moved> {
        let deed = combine::of_type(array.element_type(), combine).map(Deed::Combine);
        self.files(comm, &mut [Variable::write_bytes(array, values)], deed)
    }

    /// Collective: reads several arrays at a time.
    pub fn read_all(&self, comm: &Comm, variables: &mut [Variable<'_>]) -> Result<Moved> {
        self.files(comm, variables, Ok(Deed::Read))
    }

    /// Collective: writes several arrays at a time.
    pub fn write_all(&self, comm: &Comm, variables: &mut [Variable<'_>]) -> Result<Moved> {
        self.files(comm, variables, Ok(Deed::Store))
    }

    fn files(
        &self,
        comm: &Comm,
        variables: &mut [Variable<'_>],
        deed: Result<Deed>,
    ) -> Result<Moved> {
        let own = deed.and_then(|deed| Ok((self.parts(comm, variables, deed)?, deed)));
        let (parts, deed) = comm.agree(own)?;
        let axes = self.schedule.shape().len();
        let buffers = variables.iter_mut().map(|variable| variable.buffer(axes));
        let mut buffers: Vec<Buffer<'_>> = buffers.collect();
        let moved = self.run(comm, &mut buffers, &parts, deed)?;
        drop(buffers);
        comm.agree(variables.iter_mut().try_for_each(Variable::accept))?;
        Ok(moved)
    }

    /// What is moved, if all of it is as the schedule says.
    fn parts(&self, comm: &Comm, variables: &mut [Variable<'_>], deed: Deed) -> Result<Vec<Part>> {
        let schedule = self.schedule;
        schedule.check_group(comm)?;
        let mut parts = Vec::new();
        for (number, variable) in variables.iter_mut().enumerate() {
            variable.check_direction(deed.direction())?;
            let array = variable.array();
            let axes = schedule.shape().len();
            let (places, records) = Places::of_layout(array.layout(), axes)?;
            if places != schedule.places {
                return Err(Error::format(
                    array.name(),
                    "the schedule is for arrays of another shape or layout",
                ));
            }
            let element = array.layout().element_size();
            let record = records.components * element;
            variable.check_length(schedule.count.elements, record)?;
            let planes = if records.apart { records.components } else { 1 };
            let size = if records.apart { element } else { record };
            for plane in 0..planes {
                let start = plane * places.extent() * element;
                let mut part = Part {
                    backing: Backing::File(Box::new(array.clone()), start),
                    size: size as usize,
                    stride: record as usize,
                    variable: number,
                    shift: (plane * element) as usize,
                    mapping: None,
                };
                part.map(deed, schedule.extent())?;
                parts.push(part);
            }
        }
        Ok(parts)
    }

    /// Collective: the movement itself; all ranks have found that they can.
    pub(super) fn run(
        &self,
        comm: &Comm,
        buffers: &mut [Buffer<'_>],
        parts: &[Part],
        deed: Deed,
    ) -> Result<Moved> {
        let schedule = self.schedule;
        let budget = self.budget.as_ref().map(|budget| budget.for_rank(comm));
        let image =
            parts.iter().map(|part| part.size as u64).max().unwrap_or(1) << schedule.windows.shift;
        let decoded = parts.iter().map(Part::decoded_bytes).max().unwrap_or(0);
        let of = |budget: &MemoryBudget| (budget.limit().saturating_sub(decoded) / 4).max(1);
        let room = budget.as_ref().map(of);
        let limit = room
            .unwrap_or(u64::MAX)
            .min(image.max(1))
            .min(LARGEST_IMAGE);
        // What is mapped is read into images only where memory is no matter.
        let is_mapped = parts.iter().all(|part| part.mapping.is_some());
        let limit = match is_mapped && budget.is_some() {
            true => 0,
            false => limit,
        };
        let need = (limit + limit / 8).saturating_add(decoded);
        let _image = match &budget {
            None => None,
            Some(budget) => Some(comm.agree(budget.reserve(need, "an irregular call"))?),
        };
        let mut work = WindowWork::new(limit);
        let record: usize = buffers.iter().map(|buffer| buffer.record).sum();
        work.moved.useful = schedule.count.elements * record as u64;
        let by_memory = self.carrier != Carrier::Messages && !self.settings.asks_for_messages();
        // Through memory that others reach: packets take more of it than a budget has.
        let is_short = schedule.bytes_each(record as u64) < STRAIGHT;
        let ways: &[Through] = match (by_memory, &budget, is_short) {
            (false, _, _) => &[],
            (true, Some(_), _) => &[Through::Values],
            (true, None, true) => &[Through::Packets, Through::Kernel, Through::Values],
            (true, None, false) => &[Through::Values, Through::Packets, Through::Kernel],
        };
        for way in ways {
            let outcome = match way {
                Through::Values => self.lent(comm, buffers, parts, (deed, &mut work))?,
                Through::Packets => self.by_shadow(comm, buffers, parts, (deed, &mut work))?,
                Through::Kernel => self.by_kernel(comm, buffers, parts, (deed, &mut work))?,
            };
            if let Some(outcome) = outcome {
                return finish(comm, parts, outcome, work);
            }
        }
        if self.carrier == Carrier::Memory {
            return Err(Error::Invalid(
                "the ranks do not reach one another's memory".into(),
            ));
        }
        let outcome = self.by_messages(comm, buffers, parts, (deed, &mut work), budget.as_ref())?;
        finish(comm, parts, outcome, work)
    }

    /// Lends the values; `None` on all ranks, with nothing done, if some are out
    /// of reach.
    fn lent(
        &self,
        comm: &Comm,
        buffers: &mut [Buffer<'_>],
        parts: &[Part],
        (deed, work): (Deed, &mut WindowWork),
    ) -> Result<Option<Result<()>>> {
        let records: Vec<usize> = buffers.iter().map(|buffer| buffer.record).collect();
        let mut loans = vec![Loan::Read(self.schedule.list_bytes())];
        loans.extend(buffers.iter_mut().map(Buffer::loan));
        let mut outcome = Ok(());
        let lent = comm.lend_all(&mut loans, &self.wanting(), |loans| {
            outcome = self.visit(loans, &records, parts, (deed, work, None));
        })?;
        Ok(lent.then_some(outcome))
    }

    /// The same with values in node memory, in the order of the lists.
    fn by_shadow(
        &self,
        comm: &Comm,
        buffers: &mut [Buffer<'_>],
        parts: &[Part],
        (deed, work): (Deed, &mut WindowWork),
    ) -> Result<Option<Result<()>>> {
        let schedule = self.schedule;
        let records: Vec<usize> = buffers.iter().map(|buffer| buffer.record).collect();
        let mut shadow = schedule
            .shadow
            .lock()
            .unwrap_or_else(|broken| broken.into_inner());
        if !shadow.make(comm, schedule, records.iter().sum())? {
            return Ok(None);
        }
        let Some(memory) = &mut shadow.memory else {
            return Ok(None);
        };
        let need = schedule.count() * records.iter().sum::<usize>();
        if deed.direction() == Direction::Write {
            work.moved.copy += self.pack_all(&mut memory[..need], buffers, Direction::Write);
        }
        let own = match deed.direction() {
            Direction::Read => Loan::Write(&mut memory[..need]),
            Direction::Write => Loan::Read(&memory[..need]),
        };
        let lists = match comm.transport().shares_memory() {
            true => OtherLists::Lent,
            false => OtherLists::Sent(schedule.share_lists(comm)?),
        };
        let mut loans = vec![own];
        if matches!(lists, OtherLists::Lent) {
            loans.insert(0, Loan::Read(schedule.list_bytes()));
        }
        let mut outcome = Ok(());
        let lent = comm.lend_all(&mut loans, &self.wanting(), |loans| {
            outcome = self.visit(loans, &records, parts, (deed, work, Some(&lists)));
        })?;
        if !lent {
            return Ok(None);
        }
        if deed.direction() == Direction::Read {
            work.moved.copy += self.pack_all(&mut memory[..need], buffers, Direction::Read);
        }
        Ok(Some(outcome))
    }

    /// Copies all elements of this rank between its values and a packet in the
    /// order of its lists, variable after variable; how long that takes.
    pub(super) fn pack_all(
        &self,
        packet: &mut [u8],
        buffers: &mut [Buffer<'_>],
        direction: Direction,
    ) -> Duration {
        let schedule = self.schedule;
        let started = Instant::now();
        let windows = 0..schedule.windows.count();
        let pieces: Vec<_> = windows
            .map(|window| schedule.wanted(window))
            .map(|wanted| (wanted.entries(), wanted.first_element as usize))
            .collect();
        let mut rest = packet;
        for buffer in buffers {
            let (own, later) = rest.split_at_mut(schedule.count() * buffer.record);
            rest = later;
            let sides = Sides {
                image: own.as_mut_ptr(),
                values: buffer.start(),
                size: buffer.record,
                stride: buffer.record,
            };
            // SAFETY: the values were found to have all elements, and so has the
            // packet.
            unsafe { pack(schedule.lists(), &pieces, sides, direction) };
        }
        started.elapsed()
    }

    /// The ranks that want something of this rank's windows.
    pub(super) fn wanting(&self) -> Vec<usize> {
        let wants = |rank: &usize| {
            let incoming = &self.schedule.incoming[*rank];
            incoming.wanted.iter().any(|wanted| wanted.elements() > 0)
        };
        (0..self.schedule.ranks).filter(wants).collect()
    }

    /// Goes through the windows of this rank, with the lists and values (or
    /// packets) that all who want something of them have lent.
    fn visit(
        &self,
        loans: &Loans,
        records: &[usize],
        parts: &[Part],
        (deed, work, packed): (Deed, &mut WindowWork, Option<&OtherLists<'_>>),
    ) -> Result<()> {
        let schedule = self.schedule;
        let mut others: Vec<Other<'_>> = Vec::new();
        for rank in self.wanting() {
            others.push(self.other(rank, loans, records, (deed, packed))?);
        }
        let mut segments = Vec::with_capacity(others.len());
        for k in 0..schedule.domains.count(schedule.rank) {
            let window = schedule
                .windows
                .range(schedule.domains.window(schedule.rank, k));
            segments.clear();
            for other in &others {
                let wanted = schedule.incoming[other.rank].wanted[k as usize];
                if wanted.elements() == 0 {
                    continue;
                }
                let entries = wanted.entries();
                let points: Points<'_> = match (packed, &other.lists) {
                    (Some(OtherLists::Sent(lists)), _) => lists[other.rank].points(k),
                    (Some(OtherLists::Lent), Some(lists)) => lists.to_packet(entries),
                    (None, Some(lists)) => lists.to_values(entries),
                    (_, None) => continue,
                };
                segments.push(Segment {
                    points,
                    elements: wanted.elements(),
                    values: &other.values,
                    packed: match packed {
                        Some(_) => wanted.first_element as usize,
                        None => 0,
                    },
                });
            }
            for part in parts {
                // SAFETY: lists were made so that their entries lie in their
                // windows and values; the values are lent, of the length that
                // the lists are for, and every place in them belongs to one
                // window, and so to one rank.
                unsafe {
                    work.visit(
                        part,
                        (&window, &schedule.filled[k as usize]),
                        &segments,
                        deed,
                    )?;
                }
            }
        }
        Ok(())
    }

    /// What a rank has lent, if it is what the schedule says.
    fn other<'l>(
        &self,
        rank: usize,
        loans: &'l Loans,
        records: &[usize],
        (deed, packed): (Deed, Option<&OtherLists<'_>>),
    ) -> Result<Other<'l>> {
        let incoming = &self.schedule.incoming[rank];
        let lent = loans.all_of(rank);
        let wrong = || {
            Error::Invalid(format!(
                "rank {rank} does not lend the {} elements of its schedule",
                incoming.elements
            ))
        };
        let (lists, values) = match packed {
            Some(OtherLists::Sent(_)) => (None, lent),
            _ => {
                let (lists, values) = lent.split_first().ok_or_else(wrong)?;
                let (start, len) = lists.readable();
                // SAFETY: lent to be read for the length of the visit.
                let lists = unsafe { slice::from_raw_parts(start, len) };
                let lists = Lists::new(lists, incoming.entries, incoming.runs)?;
                (Some(lists), values)
            }
        };
        let all: usize = records.iter().sum();
        let expected: Vec<usize> = match packed {
            Some(_) => vec![all],
            None => records.to_vec(),
        };
        let mut starts = Vec::with_capacity(records.len());
        for (reach, record) in values.iter().zip(&expected) {
            let (start, len) = match deed.direction() {
                Direction::Read => reach.writable().ok_or_else(wrong)?,
                Direction::Write => (reach.readable().0.cast_mut(), reach.readable().1),
            };
            if len as u64 != incoming.elements * *record as u64 {
                return Err(wrong());
            }
            starts.push(start);
        }
        if starts.len() != expected.len() {
            return Err(wrong());
        }
        if packed.is_some() {
            let mut start = starts[0];
            starts.clear();
            for record in records {
                starts.push(start);
                start = start.wrapping_add(incoming.elements as usize * record);
            }
        }
        Ok(Other {
            rank,
            lists,
            values: starts,
        })
    }
}

/// Elements that stand together in so many bytes are copied straight between
/// windows and values. Shorter ones would each take a cache line of the values,
/// once in every window; going through packets, which are in the order of the
/// windows, fetches each line once.
const STRAIGHT: u64 = 64;

/// Images are not larger, even of windows that are.
const LARGEST_IMAGE: u64 = 16 << 20;

/// How ranks of one node reach one another's elements.
enum Through {
    /// Values are lent.
    Values,
    /// Packets in node memory are.
    Packets,
    /// The kernel copies from and to packets.
    Kernel,
}

/// Where the lists of other ranks are, if packets are lent and not values.
enum OtherLists<'a> {
    /// They are lent as well.
    Lent,
    /// Their owners have sent what is needed of them.
    Sent(&'a [MailLists]),
}

/// The lists of another rank, if it has lent them, and where its values begin.
struct Other<'a> {
    rank: usize,
    lists: Option<Lists<'a>>,
    values: Vec<*mut u8>,
}

/// Collective: all have done their part, or all fail alike.
fn finish(comm: &Comm, parts: &[Part], outcome: Result<()>, work: WindowWork) -> Result<Moved> {
    let mut moved = work.moved;
    match super::window::store_of(parts) {
        None => drop(comm.agree(outcome)?),
        Some(store) => timed(store, &mut moved.exchange, || {
            comm.agree(outcome)?;
            leave_together(store, comm)
        })?,
    }
    Ok(moved)
}
