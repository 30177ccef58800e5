//! Object headers that are made: version 2, all messages in one block, and a checksum
//! behind them.

use serde_json::{Map, Value};

use super::checksum::lookup3;
use super::messages::attribute;
use super::object_header::{Keeping, ObjectHeader, kind};
use crate::format::value::Plain;

/// The bit of a header that says that messages are numbered as they were made.
const NUMBERED: u8 = 4;

/// The messages of a header, one after another.
#[derive(Debug, Default)]
pub(super) struct NewHeader {
    keeping: Keeping,
    messages: Vec<u8>,
}

impl NewHeader {
    pub(super) fn new() -> Self {
        Self::default()
    }

    /// With the times of another, and its way to keep attributes; without messages.
    pub(super) fn like(header: &ObjectHeader) -> Self {
        Self {
            keeping: header.keeping.clone(),
            messages: Vec::new(),
        }
    }

    /// Adds a message.
    pub(super) fn add(&mut self, kind: u16, data: &[u8]) -> Result<(), String> {
        self.add_marked(kind, (0, 0), data)
    }

    /// Adds a message with these marks, and this number of its making.
    pub(super) fn add_marked(
        &mut self,
        kind: u16,
        (marks, number): (u8, u16),
        data: &[u8],
    ) -> Result<(), String> {
        let kind = u8::try_from(kind).map_err(|_| "a message has a kind that is not known")?;
        let len = u16::try_from(data.len()).map_err(|_| "a message is too long")?;
        self.messages.push(kind);
        self.messages.extend(len.to_le_bytes());
        self.messages.push(marks);
        if self.keeping.flags & NUMBERED != 0 {
            self.messages.extend(number.to_le_bytes());
        }
        self.messages.extend(data);
        Ok(())
    }

    /// Adds a message for each attribute.
    pub(super) fn add_attributes(&mut self, attributes: &Map<String, Value>) -> Result<(), String> {
        for (name, value) in attributes {
            self.add(kind::ATTRIBUTE, &attribute(name, &Plain::of(value)))
                .map_err(|_| format!("the attribute {name} is too long for an HDF5 file"))?;
        }
        Ok(())
    }

    /// The bytes of the header.
    pub(super) fn finish(self) -> Vec<u8> {
        let mut header = b"OHDR\x02".to_vec();
        // The length of the messages takes four bytes.
        header.push(self.keeping.flags | 2);
        header.extend(&self.keeping.values);
        header.extend((self.messages.len() as u32).to_le_bytes());
        header.extend(self.messages);
        header.extend(lookup3(&header).to_le_bytes());
        header
    }
}
