//! [`Access`]: sections of all ranks, moved directly and by the extended
//! two-phase method on the simulated Delta.
//!
//! Directly, every rank asks for its own section column by column (Thakur 1995,
//! section 6.2). In two phases (section 6.3) the ranks divide the file into
//! domains, here those of [`Array::file_domains`]; in its domain a rank finds
//! the smallest section that holds everything that is asked for there, and
//! moves it by sieving, one column a request. Writing, it reads each column
//! before, unless the ranks together write all of the smallest section. All
//! input and output goes before or after all messages.

use std::ops::Range;
use std::sync::Arc;

use outcore::storage::MemoryStore;
use outcore::{
    Array, ArrayDescriptor, AxisSection, Direction, DomainKind, ElementType, Result, Section,
};

use super::columns::{Columns, READ, REWRITE, WRITE};
use super::delta::{Delta, Mail};
use super::geometry;

/// When the two-phase method reads a column before it writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ReadBefore {
    /// Where not all of the smallest section is written (the papers).
    IfHoles,
    /// Always (the runs of the thesis, section 6.5.4).
    Always,
}

/// How long a collective call took.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct Took {
    pub(super) seconds: f64,
    /// Of these, the messages that carry data.
    pub(super) messages: f64,
}

/// An array of square shape and single precision in column-major order.
pub(super) fn square(extent: u64) -> Result<Array> {
    let layout = "column".parse().map_err(geometry)?;
    let descriptor = ArrayDescriptor::new(&[extent, extent], ElementType::F32).layout(layout);
    // Nobody reads these bytes, so they take no memory.
    let store = MemoryStore::from(vec![0; (extent * extent * 4) as usize]);
    Array::in_store("the file", &descriptor, Arc::new(store))
}

/// Sections of an array, one a rank, to be read or written.
#[derive(Debug)]
pub(super) struct Access<'a> {
    pub(super) array: &'a Array,
    pub(super) sections: &'a [Section],
    pub(super) direction: Direction,
}

/// What a rank does in its file domain.
struct InDomain {
    /// The smallest section that holds all that is asked for.
    smallest: Section,
    /// Whether all of it is.
    full: bool,
}

impl Access<'_> {
    /// The seconds of the direct method.
    pub(super) fn direct(&self, delta: &Delta) -> Result<f64> {
        let asks = match self.direction {
            Direction::Read => READ,
            Direction::Write => WRITE,
        };
        let layout = self.array.layout();
        let ranks: Result<Vec<Columns>> = self
            .sections
            .iter()
            .map(|section| Columns::of(layout, section, asks))
            .collect();
        Ok(delta.requests(layout.byte_len(), ranks?) as f64 / 1e9)
    }

    /// The time of the extended two-phase method.
    pub(super) fn two_phase(
        &self,
        delta: &Delta,
        kind: DomainKind,
        before: ReadBefore,
    ) -> Result<Took> {
        let layout = self.array.layout();
        let mut mail = vec![Mail::default(); self.sections.len()];
        let mut ranks = Vec::new();
        let domains = self.array.file_domains(kind, self.sections)?;
        for (rank, domain) in domains.iter().enumerate() {
            let columns = self.columns(domain);
            let Some(own) = self.in_domain(rank, &columns, &mut mail)? else {
                continue;
            };
            let asks = match (self.direction, before) {
                (Direction::Read, _) => READ,
                (Direction::Write, ReadBefore::IfHoles) if own.full => WRITE,
                (Direction::Write, _) => REWRITE,
            };
            ranks.push(Columns::of(layout, &own.smallest, asks)?);
        }
        let messages = delta.messages(&mail);
        let time = delta.begin + delta.requests(layout.byte_len(), ranks) + messages;
        Ok(Took {
            seconds: time as f64 / 1e9,
            messages: messages as f64 / 1e9,
        })
    }

    /// The columns of a domain.
    fn columns(&self, domain: &[Range<u64>]) -> Range<u64> {
        let column = self.array.shape()[0] * 4;
        match (domain.first(), domain.last()) {
            (Some(first), Some(last)) => first.start / column..last.end.div_ceil(column),
            _ => 0..0,
        }
    }

    /// What rank `rank` has to do in its columns, if anything, and the mail that
    /// comes of it.
    fn in_domain(
        &self,
        rank: usize,
        columns: &Range<u64>,
        mail: &mut [Mail],
    ) -> Result<Option<InDomain>> {
        let rows = AxisSection::span(0, self.array.shape()[0]);
        let span = AxisSection::span(columns.start, columns.end);
        let domain = Section::new(vec![rows, span]).map_err(geometry)?;
        let mut parts = Vec::new();
        for (asker, section) in self.sections.iter().enumerate() {
            let part = section.intersect(&domain).map_err(geometry)?;
            if part.is_empty() {
                continue;
            }
            if asker != rank {
                let bytes = 4 * part.count();
                for (who, sent, received) in [(rank, bytes, 0), (asker, 0, bytes)] {
                    mail[who].messages += 1;
                    mail[who].sent += sent;
                    mail[who].received += received;
                }
            }
            parts.push(part);
        }
        if parts.is_empty() {
            return Ok(None);
        }
        let hull = |axis: usize| {
            let axes = parts.iter().map(|part| &part.axes()[axis]);
            let first = axes.clone().filter_map(AxisSection::first).min();
            let last = axes.filter_map(AxisSection::last).max();
            AxisSection::span(first.unwrap_or(0), last.map_or(0, |last| last + 1))
        };
        let smallest = Section::new(vec![hull(0), hull(1)]).map_err(geometry)?;
        let full = self.direction == Direction::Write && covers(&parts, &smallest);
        Ok(Some(InDomain { smallest, full }))
    }
}

/// Whether some parts of a section together are all of it.
fn covers(parts: &[Section], whole: &Section) -> bool {
    if parts.iter().map(Section::count).sum::<u64>() < whole.count() {
        return false;
    }
    let (rows, columns) = (&whole.axes()[0], &whole.axes()[1]);
    let first = rows.first().unwrap_or(0);
    (0..columns.count()).all(|at| {
        let column = columns.index(at);
        let mut found = vec![false; rows.count() as usize];
        let here = parts
            .iter()
            .filter(|part| part.axes()[1].position(column).is_some());
        for part in here {
            let rows = &part.axes()[0];
            (0..rows.count()).for_each(|at| found[(rows.index(at) - first) as usize] = true);
        }
        found.into_iter().all(|found| found)
    })
}

#[cfg(test)]
mod tests {
    use super::super::delta::DELTA;
    use super::*;

    fn sections(array: &Array, texts: &[&str]) -> Vec<Section> {
        texts
            .iter()
            .map(|text| array.section(text).unwrap())
            .collect()
    }

    #[test]
    fn parts_cover_a_section_or_leave_holes() {
        let array = square(8).unwrap();
        let of = |texts: &[&str]| sections(&array, texts);
        let whole = array.section("1:5, 2:4").unwrap();
        assert!(covers(&of(&["1:3, 2:4", "3:5, 2:4"]), &whole));
        assert!(covers(&of(&["1:5:2, 2:4", "2:5:2, 2:4"]), &whole));
        assert!(!covers(&of(&["1:3, 2:4"]), &whole));
        // As many elements, but some twice.
        assert!(!covers(&of(&["1:3, 2:4", "2:4, 2:4"]), &whole));
    }

    #[test]
    fn common_columns_are_read_once_and_sent() {
        let array = square(1024).unwrap();
        let both = sections(&array, &["0:512, 0:2", "0:512, 0:2"]);
        let access = Access {
            array: &array,
            sections: &both,
            direction: Direction::Read,
        };
        let took = access
            .two_phase(&DELTA, DomainKind::Dynamic, ReadBefore::IfHoles)
            .unwrap();
        // One message out and one in, of one column each.
        let message = 2 * DELTA.message + (2048.0 * DELTA.message_byte) as u64;
        assert_eq!(took.messages, message as f64 / 1e9);
        // Each rank reads one column of half a block, on a disk of its own.
        let one = DELTA.read_call + DELTA.read_block + DELTA.fetch + (2048.0 * DELTA.byte) as u64;
        assert_eq!(took.seconds, (DELTA.begin + one + message) as f64 / 1e9);
        // Directly, the second one at each disk waits for the first.
        let again = DELTA.read_block + (2048.0 * DELTA.byte) as u64;
        assert_eq!(
            access.direct(&DELTA).unwrap(),
            (2 * one + again) as f64 / 1e9
        );
    }

    #[test]
    fn a_rank_alone_reads_before_it_writes_only_where_there_are_holes() {
        let array = square(1024).unwrap();
        let took = |texts: &[&str], before| {
            let access = Access {
                array: &array,
                sections: &sections(&array, texts),
                direction: Direction::Write,
            };
            let took = access.two_phase(&DELTA, DomainKind::Dynamic, before);
            took.unwrap().seconds
        };
        let dense = took(&["0:512, 0:4"], ReadBefore::IfHoles);
        assert!(dense < took(&["0:512, 0:4"], ReadBefore::Always));
        let holes = took(&["0:512:2, 0:4"], ReadBefore::IfHoles);
        assert!(dense < holes);
    }
}
