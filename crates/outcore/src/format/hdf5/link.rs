//! [`Link`]: a name in a group and what it leads to, with the message that says so.

use super::source::Source;
use crate::format::fields::{Fields, Parsed, text_of};

/// Bits of a link message: it has a number of its making, a kind, a character set.
const NUMBERED: u8 = 4;
const HAS_KIND: u8 = 8;
const HAS_CHARACTERS: u8 = 16;

/// Kinds of links that this knows; those from `OTHERS` on have a length before their
/// data.
const SOFT: u8 = 1;
const OTHERS: u8 = 64;

/// A name in a group.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) target: Target,
    /// The message as newer groups have it. Of an object, its address comes last.
    message: Vec<u8>,
}

/// What a name leads to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    /// The object header at this address.
    Object(u64),
    /// Another path in the file.
    Path(String),
    /// Something in another file.
    Elsewhere,
}

impl Link {
    /// The link that a message says.
    pub(crate) fn parse(source: &Source, data: &[u8]) -> Parsed<Self> {
        let mut fields = Fields::little("a link", data);
        fields.version(1)?;
        let flags = fields.u8()?;
        let kind = match flags & HAS_KIND != 0 {
            true => fields.u8()?,
            false => 0,
        };
        fields.skip(if flags & NUMBERED != 0 { 8 } else { 0 })?;
        fields.skip(if flags & HAS_CHARACTERS != 0 { 1 } else { 0 })?;
        let len = fields.uint(1 << (flags & 3))?;
        let name = text_of(fields.stated(len)?);
        let target = match kind {
            0 => Target::Object(source.defined(&mut fields)?),
            SOFT => {
                let len = fields.u16()?;
                Target::Path(text_of(fields.stated(len.into())?))
            }
            OTHERS.. => {
                let len = fields.u16()?;
                fields.stated(len.into())?;
                Target::Elsewhere
            }
            // Kinds that nobody has defined.
            _ => {
                fields.skip(fields.rest().len())?;
                Target::Elsewhere
            }
        };
        // Older headers fill messages up.
        let message = data[..data.len() - fields.rest().len()].to_vec();
        Ok(Self {
            name,
            target,
            message,
        })
    }

    /// A name for the object at an address; `number` is that of its making in groups
    /// that count.
    pub(crate) fn to_object(name: &[u8], address: u64, number: Option<u64>) -> Self {
        let mut message = head(name, 0, number);
        message.extend(address.to_le_bytes());
        Self {
            name: text_of(name),
            target: Target::Object(address),
            message,
        }
    }

    /// A name for another path.
    pub(crate) fn to_path(name: &[u8], path: &[u8]) -> Parsed<Self> {
        let mut message = head(name, SOFT, None);
        let len = u16::try_from(path.len()).map_err(|_| "a symbolic link is too long")?;
        message.extend(len.to_le_bytes());
        message.extend(path);
        Ok(Self {
            name: text_of(name),
            target: Target::Path(text_of(path)),
            message,
        })
    }

    /// The same name for another object; addresses have 8 bytes.
    pub(crate) fn moved(&self, address: u64) -> Self {
        let mut message = self.message.clone();
        message.truncate(message.len() - 8);
        message.extend(address.to_le_bytes());
        Self {
            name: self.name.clone(),
            target: Target::Object(address),
            message,
        }
    }

    /// The message that says it.
    pub(crate) fn message(&self) -> &[u8] {
        &self.message
    }
}

/// What the message of a link begins with.
fn head(name: &[u8], kind: u8, number: Option<u64>) -> Vec<u8> {
    // How many bytes the length of the name takes, as a power of two.
    let width = match name.len() {
        0..0x100 => 0,
        0x100..0x1_0000 => 1,
        _ => 2,
    };
    let mut flags = width | HAS_CHARACTERS;
    flags |= if kind == 0 { 0 } else { HAS_KIND };
    flags |= if number.is_some() { NUMBERED } else { 0 };
    let mut message = vec![1, flags];
    message.extend((kind != 0).then_some(kind));
    message.extend(number.into_iter().flat_map(u64::to_le_bytes));
    let characters = std::str::from_utf8(name).is_ok();
    message.push(u8::from(characters));
    message.extend(&(name.len() as u32).to_le_bytes()[..1 << width]);
    message.extend(name);
    message
}
