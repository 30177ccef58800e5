//! How the elements of a section move between the caller's buffer and the parts.
//!
//! 1. The items of the section are grouped by part.
//! 2. All holders but one are asked without waiting, each with buffers of its own; but
//!    what is on this node and not long is read here.
//! 3. The last is asked, and what this rank holds or reads itself is moved in place: into
//!    the caller's buffer where that is one stretch of it.
//! 4. The others' answers are put where they belong.

use outcore_geometry::Section;

use super::boxes::{Side, copy_box, stretch};
use super::link::Link;
use super::request::Action;
use super::spread::{Item, NOBODY, Spread};
use crate::error::{Error, Result};
use crate::global::procedure_call::Call;

/// Of a section of several parts so many bytes of one are worth asking its holder, who
/// reads while others do.
const LONG: usize = 16 << 20;

/// A section in the caller's buffer, and the parts that have it.
#[derive(Debug)]
pub(crate) struct Moving<'a> {
    pub(crate) link: &'a Link,
    pub(crate) shape: Vec<u64>,
    pub(crate) size: usize,
}

/// A call on its way, and the items that it is about.
#[derive(Debug)]
pub(crate) struct Underway {
    pub(crate) call: Call,
    pub(crate) items: Vec<Item>,
}

/// The items of a section by part; those of this rank itself apart.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    pub(crate) own: Vec<Vec<Item>>,
    pub(crate) others: Vec<Vec<Item>>,
    /// What nobody holds.
    pub(crate) nobody: Vec<Item>,
}

impl Groups {
    pub(crate) fn new(spread: &Spread, link: &Link, section: &Section) -> Result<Self> {
        let mut groups = Self::default();
        for item in spread.items(section)? {
            if item.part == NOBODY {
                groups.nobody.push(item);
                continue;
            }
            let list = match link.is_own(item.part) {
                true => &mut groups.own,
                false => &mut groups.others,
            };
            match list.last_mut() {
                Some(group) if group[0].part == item.part => group.push(item),
                _ => list.push(vec![item]),
            }
        }
        Ok(groups)
    }
}

impl<'a> Moving<'a> {
    pub(crate) fn new(link: &'a Link, section: &Section, size: usize) -> Self {
        Self {
            link,
            shape: section.shape(),
            size,
        }
    }

    fn side<'s>(&'s self, section: &'s Section) -> Side<'s> {
        Side {
            shape: &self.shape,
            section,
        }
    }

    /// The bytes of some items.
    fn bytes(&self, items: &[Item]) -> usize {
        let count: u64 = items.iter().map(|item| item.local.count()).sum();
        count as usize * self.size
    }

    /// Where the items stand in the caller's buffer, if that is one stretch in
    /// their order.
    fn stretch(&self, items: &[Item]) -> Option<std::ops::Range<usize>> {
        let mut all: Option<std::ops::Range<usize>> = None;
        for item in items {
            let next = stretch(self.side(&item.positions), self.size)?;
            all = match all {
                None => Some(next),
                Some(all) if all.end == next.start => Some(all.start..next.end),
                Some(_) => return None,
            };
        }
        all
    }

    /// Puts the data of items where they belong in the caller's buffer.
    fn spread_out(&self, items: &[Item], data: &[u8], buffer: &mut [u8]) {
        let mut at = 0;
        for item in items {
            let shape = item.local.shape();
            let dense = Section::whole(&shape).expect("an item is part of an array");
            let end = at + item.local.count() as usize * self.size;
            copy_box(
                (
                    &data[at..end],
                    Side {
                        shape: &shape,
                        section: &dense,
                    },
                ),
                (buffer, self.side(&item.positions)),
                self.size,
            );
            at = end;
        }
    }

    /// Collects the data of items from the caller's buffer.
    fn collect(&self, items: &[Item], buffer: &[u8]) -> Vec<u8> {
        let mut data = self.link.buffer(self.bytes(items));
        let mut at = 0;
        for item in items {
            let shape = item.local.shape();
            let dense = Section::whole(&shape).expect("an item is part of an array");
            let end = at + item.local.count() as usize * self.size;
            copy_box(
                (buffer, self.side(&item.positions)),
                (
                    &mut data[at..end],
                    Side {
                        shape: &shape,
                        section: &dense,
                    },
                ),
                self.size,
            );
            at = end;
        }
        data
    }

    /// Gets the items of one part, and waits for them.
    pub(crate) fn get_now(&self, items: &[Item], buffer: &mut [u8]) -> Result<()> {
        let action = (Action::Get, &[] as &[u8]);
        if let Some(range) = self.stretch(items) {
            return self.link.ask(action, items, &[], &mut buffer[range]);
        }
        let mut data = self.link.buffer(self.bytes(items));
        let outcome = self.link.ask(action, items, &[], &mut data);
        if outcome.is_ok() {
            self.spread_out(items, &data, buffer);
        }
        self.link.keep(data);
        outcome
    }

    /// Puts the items of one part, or accumulates them, and waits for that.
    pub(crate) fn put_now(
        &self,
        action: (Action, &[u8]),
        items: &[Item],
        buffer: &[u8],
    ) -> Result<()> {
        if let Some(range) = self.stretch(items) {
            return self.link.ask(action, items, &buffer[range], &mut []);
        }
        let data = self.collect(items, buffer);
        let outcome = self.link.ask(action, items, &data, &mut []);
        self.link.keep(data);
        outcome
    }

    pub(crate) fn begin_get(&self, items: Vec<Item>) -> Result<Underway> {
        let room = self.link.buffer(self.bytes(&items));
        let call = self
            .link
            .begin((Action::Get, &[]), &items, Vec::new(), room)?;
        Ok(Underway { call, items })
    }

    pub(crate) fn begin_put(
        &self,
        action: (Action, &[u8]),
        items: Vec<Item>,
        buffer: &[u8],
    ) -> Result<Underway> {
        let data = self.collect(&items, buffer);
        let call = self.link.begin(action, &items, data, Vec::new())?;
        Ok(Underway { call, items })
    }

    /// Waits for elements that were asked for.
    pub(crate) fn finish_get(&self, underway: Underway, buffer: &mut [u8]) -> Result<()> {
        let answer = underway.call.wait()?;
        self.spread_out(&underway.items, &answer.data, buffer);
        self.link.keep(answer.data);
        Ok(())
    }

    pub(crate) fn finish_put(&self, underway: Underway) -> Result<()> {
        let answer = underway.call.wait()?;
        self.link.keep(answer.request);
        Ok(())
    }

    /// Zeros where nobody holds anything.
    pub(crate) fn clear(&self, items: &[Item], buffer: &mut [u8]) {
        for item in items {
            let zeros = vec![0; self.bytes(std::slice::from_ref(item))];
            self.spread_out(std::slice::from_ref(item), &zeros, buffer);
        }
    }

    /// Gets a section.
    pub(crate) fn get(&self, mut groups: Groups, buffer: &mut [u8]) -> Result<()> {
        self.clear(&groups.nobody, buffer);
        let is_here = |items: &mut Vec<Item>| {
            self.link.part(items[0].part).is_some() && self.bytes(items) < LONG
        };
        groups.own.extend(groups.others.extract_if(.., is_here));
        let last = groups.others.pop();
        let mut outcome = Ok(());
        let mut underway = Vec::new();
        for items in groups.others {
            match self.begin_get(items) {
                Ok(call) => underway.push(call),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        for items in groups.own.iter().chain(&last) {
            if outcome.is_ok() {
                outcome = self.get_now(items, buffer);
            }
        }
        // All answers are waited for, whatever failed.
        for call in underway {
            let finished = self.finish_get(call, buffer);
            outcome = outcome.and(finished);
        }
        outcome
    }

    /// Puts a section, or accumulates it.
    pub(crate) fn put(
        &self,
        action: (Action, &[u8]),
        mut groups: Groups,
        buffer: &[u8],
    ) -> Result<()> {
        refuse(&groups.nobody)?;
        let last = groups.others.pop();
        let mut outcome = Ok(());
        let mut underway = Vec::new();
        for items in groups.others {
            match self.begin_put(action, items, buffer) {
                Ok(call) => underway.push(call),
                Err(error) => {
                    outcome = Err(error);
                    break;
                }
            }
        }
        for items in groups.own.iter().chain(&last) {
            if outcome.is_ok() {
                outcome = self.put_now(action, items, buffer);
            }
        }
        for call in underway {
            let finished = self.finish_put(call);
            outcome = outcome.and(finished);
        }
        outcome
    }
}

/// Fails if elements are written that nobody holds.
pub(crate) fn refuse(nobody: &[Item]) -> Result<()> {
    match nobody.is_empty() {
        true => Ok(()),
        false => Err(Error::Invalid(
            "the section reaches into a block that no part holds, which cannot be written".into(),
        )),
    }
}
