//! Groups that are made: new ones, and copies of groups with one name more or changed.
//!
//! A copy has all messages of the group as they are (attributes, a comment, how
//! attributes are kept and counted), and all its names as messages of the header,
//! however the group had them: in a table of symbols, a heap, or messages. Libraries
//! move them into a heap when they add to such a group themselves.

use serde_json::{Map, Value};

use super::group::{LinkInfo, is_group, links};
use super::link::Link;
use super::messages::UNDEFINED;
use super::new_header::NewHeader;
use super::object_header::{ObjectHeader, kind};
use super::source::Source;
use crate::format::fields::Parsed;

/// Headers with more names, or more bytes, are not made.
const MOST_NAMES: usize = 1 << 16;
const LONGEST: usize = 8 << 20;

/// A new group with these attributes and names in it, which are numbered in this order if
/// it is `numbered`. Its length does not depend on where they lead.
pub(super) fn new_group(
    attributes: &Map<String, Value>,
    links: &[(&str, u64)],
    numbered: bool,
) -> Result<Vec<u8>, String> {
    let mut header = NewHeader::new();
    let info = match numbered {
        true => link_info(LinkInfo::NUMBERED, links.len() as u64),
        false => link_info(0, 0),
    };
    header.add(kind::LINK_INFO, &info)?;
    header.add(kind::GROUP_INFO, &[0, 0])?;
    header.add_attributes(attributes)?;
    for ((name, target), number) in links.iter().zip(0..) {
        let link = Link::to_object(name.as_bytes(), *target, numbered.then_some(number));
        header.add(kind::LINK, link.message())?;
    }
    Ok(header.finish())
}

/// The message of how names are kept: in messages.
fn link_info(flags: u8, next: u64) -> Vec<u8> {
    let mut message = vec![0, flags];
    if flags & LinkInfo::NUMBERED != 0 {
        message.extend(next.to_le_bytes());
    }
    // A heap, a tree of names, and one of numbers.
    message.extend(UNDEFINED);
    message.extend(UNDEFINED);
    if flags & LinkInfo::BY_NUMBER != 0 {
        message.extend(UNDEFINED);
    }
    message
}

/// A group of a file that can be copied.
#[derive(Debug)]
pub(super) struct Group {
    header: ObjectHeader,
    info: Option<LinkInfo>,
    links: Vec<Link>,
}

impl Group {
    /// Reads the group at `address`, which is found at `path`.
    pub(super) fn read(source: &Source, address: u64, path: &str) -> Parsed<Self> {
        let header = ObjectHeader::read(source, address)?;
        if !is_group(&header) {
            return Err(
                format!("{path} is no group, so nothing can be in it; take another name").into(),
            );
        }
        if header.names > 1 {
            return Err(format!(
                "the group {path} has {} names (hard links), and only one of them would lead to \
                 the new dataset; put it into another group, or another file",
                header.names
            )
            .into());
        }
        for message in &header.messages {
            let known = matches!(
                message.kind,
                kind::LINK_INFO
                    | kind::LINK
                    | kind::GROUP_INFO
                    | kind::ATTRIBUTE
                    | kind::COMMENT
                    | kind::OLD_TIME
                    | kind::SYMBOL_TABLE
                    | kind::TIME
                    | kind::ATTRIBUTE_INFO
                    | kind::REFERENCES
            );
            if !known || message.shared {
                return Err(format!(
                    "the header of the group {path} has a message of kind {}{} that cannot be \
                     copied; put the dataset into another group, or another file",
                    message.kind,
                    if message.shared {
                        " that it shares with others,"
                    } else {
                        ""
                    }
                )
                .into());
            }
        }
        Ok(Self {
            info: LinkInfo::of(source, &header)?,
            links: links(source, &header)?,
            header,
        })
    }

    pub(super) fn link(&self, name: &str) -> Option<&Link> {
        self.links.iter().find(|link| link.name == name)
    }

    /// The header of a copy in which these names lead to the objects at these addresses.
    pub(super) fn with(&self, names: &[(&str, u64)]) -> Parsed<Vec<u8>> {
        let (flags, mut next) = self.info.map_or((0, 0), |info| (info.flags, info.next));
        let mut links = self.links.clone();
        for (name, target) in names {
            match links.iter_mut().find(|link| link.name == *name) {
                Some(link) => *link = link.moved(*target),
                None => {
                    let number = (flags & LinkInfo::NUMBERED != 0).then_some(next);
                    links.push(Link::to_object(name.as_bytes(), *target, number));
                    next += u64::from(number.is_some());
                }
            }
        }
        let mut header = NewHeader::like(&self.header);
        header.add(kind::LINK_INFO, &link_info(flags, next))?;
        if !self.header.has(kind::GROUP_INFO) {
            header.add(kind::GROUP_INFO, &[0, 0])?;
        }
        for message in &self.header.messages {
            match message.kind {
                // Times of headers of version 1 have no place in those of version 2.
                kind::LINK_INFO | kind::LINK | kind::SYMBOL_TABLE => {}
                kind::OLD_TIME | kind::TIME | kind::REFERENCES => {}
                kind => header.add_marked(kind, message.marks, &message.data)?,
            }
        }
        for link in &links {
            header.add(kind::LINK, link.message())?;
        }
        let header = header.finish();
        if links.len() > MOST_NAMES || header.len() > LONGEST {
            return Err(format!(
                "a group on the way has {} names, more than outcore puts into a new header; put \
                 the dataset into another group",
                links.len()
            )
            .into());
        }
        Ok(header)
    }
}
