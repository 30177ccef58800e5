//! Object headers: the messages that say what a group or dataset is.
//!
//! Version 1 is what files of the default settings have; version 2 has
//! signatures and checksums. Both go on in continuation blocks elsewhere.

use std::collections::HashSet;

use super::source::Source;
use super::superblock::check;
use crate::format::fields::{Fields, Parsed};

/// Kinds of messages.
pub(crate) mod kind {
    pub(crate) const DATASPACE: u16 = 0x01;
    pub(crate) const LINK_INFO: u16 = 0x02;
    pub(crate) const DATATYPE: u16 = 0x03;
    pub(crate) const OLD_FILL_VALUE: u16 = 0x04;
    pub(crate) const FILL_VALUE: u16 = 0x05;
    pub(crate) const LINK: u16 = 0x06;
    pub(crate) const EXTERNAL_FILES: u16 = 0x07;
    pub(crate) const LAYOUT: u16 = 0x08;
    pub(crate) const GROUP_INFO: u16 = 0x0a;
    pub(crate) const FILTERS: u16 = 0x0b;
    pub(crate) const ATTRIBUTE: u16 = 0x0c;
    pub(crate) const COMMENT: u16 = 0x0d;
    pub(crate) const OLD_TIME: u16 = 0x0e;
    pub(crate) const CONTINUATION: u16 = 0x10;
    pub(crate) const SYMBOL_TABLE: u16 = 0x11;
    pub(crate) const TIME: u16 = 0x12;
    pub(crate) const TREE_WIDTHS: u16 = 0x13;
    pub(crate) const ATTRIBUTE_INFO: u16 = 0x15;
    pub(crate) const REFERENCES: u16 = 0x16;
    pub(crate) const FILE_SPACE: u16 = 0x17;
    pub(crate) const CACHE_IMAGE: u16 = 0x18;
}

/// A header of more blocks, bytes or messages than this is not believed.
const MOST_BLOCKS: usize = 4096;
const MOST_BYTES: usize = 64 << 20;
const MOST_MESSAGES: usize = 1 << 17;

/// One message.
#[derive(Debug)]
pub(crate) struct Message {
    pub(crate) kind: u16,
    /// Whether it only says where the message is.
    pub(crate) shared: bool,
    /// That and what else is marked, and the number of its making where they count.
    pub(crate) marks: (u8, u16),
    /// The address of its data.
    pub(crate) address: u64,
    /// The address of the block that it stands in, and how many bytes of that a
    /// checksum covers; `None` if there is no checksum.
    pub(crate) block: Option<(u64, u64)>,
    pub(crate) data: Vec<u8>,
}

/// How an object keeps its times and attributes: what a header of version 2 says
/// before its messages, without the width of their length.
#[derive(Debug, Clone, Default)]
pub(crate) struct Keeping {
    pub(crate) flags: u8,
    pub(crate) values: Vec<u8>,
}

/// The messages of an object.
#[derive(Debug)]
pub(crate) struct ObjectHeader {
    pub(crate) address: u64,
    pub(crate) messages: Vec<Message>,
    pub(crate) keeping: Keeping,
    /// How many names lead to it.
    pub(crate) names: u32,
}

impl ObjectHeader {
    /// Reads the header at `address`.
    pub(crate) fn read(source: &Source, address: u64) -> Parsed<Self> {
        let start = source.read_up_to(address, 48)?;
        let Start {
            first,
            len,
            style,
            keeping,
            names,
        } = match start.starts_with(b"OHDR") {
            true => second_version(&start)?,
            false => first_version(&start)?,
        };
        let mut header = Self {
            address,
            messages: Vec::new(),
            keeping,
            names,
        };
        let whole = source.read(address, first + len + style.tail())?;
        if let Style::Second { .. } = style {
            check_block(&whole, "an object header")?;
        }
        let body = &whole[first as usize..(first + len) as usize];
        let covered = matches!(style, Style::Second { .. }).then_some((address, first + len));
        let mut waiting = header.take(source, body, (address + first, covered), style)?;
        let (mut seen, mut bytes) = (HashSet::new(), whole.len());
        while let Some((address, len)) = waiting.pop() {
            if !seen.insert(address) {
                return Err("an object header leads back to itself; the file is damaged".into());
            }
            let block = source.read(address, len)?;
            bytes += block.len();
            if seen.len() > MOST_BLOCKS || bytes > MOST_BYTES {
                return Err("an object header goes on without end; the file is damaged".into());
            }
            let more = match style {
                Style::First => header.take(source, &block, (address, None), style)?,
                Style::Second { .. } => {
                    let mut fields = Fields::little("a continuation of an object header", &block);
                    fields.signature(b"OCHK")?;
                    check_block(&block, "a continuation of an object header")?;
                    let body = block.get(4..block.len() - 4).unwrap_or_default();
                    let covered = Some((address, block.len() as u64 - 4));
                    header.take(source, body, (address + 4, covered), style)?
                }
            };
            waiting.extend(more);
        }
        let counted = header.all(kind::REFERENCES).next().map(|message| {
            let mut fields = Fields::little("a count of references", &message.data);
            fields.version(0)?;
            fields.u32()
        });
        header.names = counted.transpose()?.unwrap_or(header.names);
        Ok(header)
    }

    /// Takes the messages of one block; returns where the header goes on.
    fn take(
        &mut self,
        source: &Source,
        block: &[u8],
        (address, covered): (u64, Option<(u64, u64)>),
        style: Style,
    ) -> Parsed<Vec<(u64, u64)>> {
        let mut fields = Fields::little("a message of an object header", block);
        let mut more = Vec::new();
        while fields.rest().len() >= style.prefix() {
            let (kind, len, flags, number) = match style {
                Style::First => {
                    let message = (fields.u16()?, fields.u16()?, fields.u8()?, 0);
                    fields.skip(3)?;
                    message
                }
                Style::Second { ordered } => {
                    let (kind, len, flags) = (fields.u8()?.into(), fields.u16()?, fields.u8()?);
                    let number = if ordered { fields.u16()? } else { 0 };
                    (kind, len, flags, number)
                }
            };
            let at = address + (block.len() - fields.rest().len()) as u64;
            let data = fields.bytes(len.into())?;
            match kind {
                0 => {}
                kind::CONTINUATION => {
                    let mut fields = Fields::little("a continuation message", data);
                    more.push((source.defined(&mut fields)?, source.length(&mut fields)?));
                }
                _ if self.messages.len() == MOST_MESSAGES => {
                    return Err(format!(
                        "an object header of more than {MOST_MESSAGES} messages is not believed"
                    )
                    .into());
                }
                _ => self.messages.push(Message {
                    kind,
                    shared: flags & 2 != 0,
                    marks: (flags, number),
                    address: at,
                    block: covered,
                    data: data.to_vec(),
                }),
            }
        }
        Ok(more)
    }

    /// The first message of a kind, wherever its data are.
    pub(crate) fn find(&self, source: &Source, kind: u16) -> Parsed<Option<Vec<u8>>> {
        match self.messages.iter().find(|message| message.kind == kind) {
            None => Ok(None),
            Some(message) if message.shared => shared(source, &message.data, kind).map(Some),
            Some(message) => Ok(Some(message.data.clone())),
        }
    }

    /// All messages of a kind, wherever their data are.
    pub(crate) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages
            .iter()
            .filter(move |message| message.kind == kind)
    }

    pub(crate) fn has(&self, kind: u16) -> bool {
        self.all(kind).next().is_some()
    }
}

/// The message that a shared message stands for: that of the same kind of
/// another object.
pub(crate) fn shared(source: &Source, data: &[u8], kind: u16) -> Parsed<Vec<u8>> {
    let mut fields = Fields::little("a shared message", data);
    let version = fields.u8()?;
    let way = fields.u8()?;
    match (version, way) {
        (1, _) => fields.skip(6)?,
        (2, _) | (3, 2) => {}
        _ => return Err("messages in a table of shared messages are not supported".into()),
    }
    let owner = source.defined(&mut fields)?;
    let header = ObjectHeader::read(source, owner)?;
    let own = header.all(kind).find(|message| !message.shared);
    let message = own.ok_or("a shared message is missing; the file is damaged")?;
    Ok(message.data.clone())
}

/// How messages stand in a block.
#[derive(Debug, Clone, Copy)]
enum Style {
    First,
    Second { ordered: bool },
}

impl Style {
    /// Bytes before the data of a message.
    fn prefix(self) -> usize {
        match self {
            Self::First => 8,
            Self::Second { ordered } => 4 + if ordered { 2 } else { 0 },
        }
    }

    /// Bytes after the messages of the first block.
    fn tail(self) -> u64 {
        match self {
            Self::First => 0,
            Self::Second { .. } => 4,
        }
    }
}

/// What a header begins with.
struct Start {
    /// Where the messages begin, and how many bytes they have.
    first: u64,
    len: u64,
    style: Style,
    keeping: Keeping,
    names: u32,
}

fn first_version(start: &[u8]) -> Parsed<Start> {
    let mut fields = Fields::little("an object header", start);
    fields.version(1)?;
    // Reserved, number of messages.
    fields.skip(3)?;
    let names = fields.u32()?;
    Ok(Start {
        first: 16,
        len: fields.u32()?.into(),
        style: Style::First,
        keeping: Keeping::default(),
        names,
    })
}

fn second_version(start: &[u8]) -> Parsed<Start> {
    let mut fields = Fields::little("an object header", start);
    fields.signature(b"OHDR")?;
    fields.version(2)?;
    let flags = fields.u8()?;
    let times = if flags & 0x20 != 0 { 16 } else { 0 };
    let bounds = if flags & 0x10 != 0 { 4 } else { 0 };
    let values = fields.bytes(times + bounds)?.to_vec();
    let len = fields.uint(1 << (flags & 3))?;
    let first = (start.len() - fields.rest().len()) as u64;
    let ordered = flags & 4 != 0;
    if len > MOST_BYTES as u64 {
        return Err(format!("an object header of {len} bytes is not believed").into());
    }
    let flags = flags & !3;
    Ok(Start {
        first,
        len,
        style: Style::Second { ordered },
        keeping: Keeping { flags, values },
        // Unless a message says another number.
        names: 1,
    })
}

/// Fails unless the last four bytes are the checksum of the others.
pub(crate) fn check_block(block: &[u8], what: &str) -> Parsed<()> {
    let Some((covered, sum)) = block.split_last_chunk::<4>() else {
        return Err(format!("{what} ends too early; the file is damaged").into());
    };
    check(covered, u32::from_le_bytes(*sum), what)
}
