//! [`Fields`]: numbers and texts one after another in bytes that nobody
//! vouches for, and [`Problem`], what is wrong with them. A field that is not
//! there is a problem, never a panic.

use outcore_storage as storage;

use crate::element::ByteOrder;
use crate::error::Error;

/// Why a file could not be understood.
#[derive(Debug)]
pub(crate) enum Problem {
    /// The bytes could not be had.
    Store(storage::Error),
    /// They do not mean what they should.
    Text(String),
}

/// What was understood of a file.
pub(crate) type Parsed<T> = std::result::Result<T, Problem>;

impl Problem {
    /// The same as an error of the array `name`.
    pub(crate) fn of(name: impl ToString) -> impl FnOnce(Problem) -> Error {
        move |problem| match problem {
            Problem::Store(error) => error.into(),
            Problem::Text(text) => Error::format(name, text),
        }
    }
}

impl From<storage::Error> for Problem {
    fn from(error: storage::Error) -> Self {
        Self::Store(error)
    }
}

impl From<String> for Problem {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<&str> for Problem {
    fn from(text: &str) -> Self {
        Self::Text(text.into())
    }
}

/// What is left of some bytes after the fields that were taken.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    rest: &'a [u8],
    order: ByteOrder,
    /// What messages call the bytes.
    what: &'static str,
}

impl<'a> Fields<'a> {
    pub(crate) fn new(what: &'static str, bytes: &'a [u8], order: ByteOrder) -> Self {
        Self {
            rest: bytes,
            order,
            what,
        }
    }

    pub(crate) fn little(what: &'static str, bytes: &'a [u8]) -> Self {
        Self::new(what, bytes, ByteOrder::Little)
    }

    /// What has not been taken.
    pub(crate) fn rest(&self) -> &'a [u8] {
        self.rest
    }

    /// The next `count` bytes.
    pub(crate) fn bytes(&mut self, count: usize) -> Parsed<&'a [u8]> {
        let Some((bytes, rest)) = self.rest.split_at_checked(count) else {
            return Err(format!("{} ends too early; the file is damaged", self.what).into());
        };
        self.rest = rest;
        Ok(bytes)
    }

    /// As `bytes`, of a number of them that the file states.
    pub(crate) fn stated(&mut self, count: u64) -> Parsed<&'a [u8]> {
        self.bytes(usize::try_from(count).unwrap_or(usize::MAX))
    }

    pub(crate) fn skip(&mut self, count: usize) -> Parsed<()> {
        self.bytes(count).map(|_| ())
    }

    /// The next number, of 1 to 8 bytes.
    pub(crate) fn uint(&mut self, width: usize) -> Parsed<u64> {
        if width > 8 {
            return Err(format!("{} has a number of {width} bytes", self.what).into());
        }
        let bytes = self.bytes(width)?;
        let mut number = 0;
        match self.order {
            ByteOrder::Little => bytes
                .iter()
                .rev()
                .for_each(|byte| number = number << 8 | u64::from(*byte)),
            ByteOrder::Big => bytes
                .iter()
                .for_each(|byte| number = number << 8 | u64::from(*byte)),
        }
        Ok(number)
    }

    pub(crate) fn u8(&mut self) -> Parsed<u8> {
        Ok(self.uint(1)? as u8)
    }

    pub(crate) fn u16(&mut self) -> Parsed<u16> {
        Ok(self.uint(2)? as u16)
    }

    pub(crate) fn u32(&mut self) -> Parsed<u32> {
        Ok(self.uint(4)? as u32)
    }

    pub(crate) fn u64(&mut self) -> Parsed<u64> {
        self.uint(8)
    }

    /// Fails unless the next bytes are these.
    pub(crate) fn signature(&mut self, expected: &[u8; 4]) -> Parsed<()> {
        let found = self.bytes(4)?;
        if found == expected {
            return Ok(());
        }
        Err(format!(
            "{} should begin with {}, not with {}; the file is damaged",
            self.what,
            shown(expected),
            shown(found)
        )
        .into())
    }

    /// Fails unless the next byte is this version.
    pub(crate) fn version(&mut self, expected: u8) -> Parsed<()> {
        let found = self.u8()?;
        if found == expected {
            return Ok(());
        }
        Err(format!("{} has version {found}, which is not known", self.what).into())
    }

    /// A text that ends with a zero byte; with `padded`, it takes a multiple
    /// of eight bytes with that.
    pub(crate) fn text(&mut self, padded: bool) -> Parsed<String> {
        let zero = self.rest.iter().position(|byte| *byte == 0);
        let len = zero.ok_or_else(|| format!("{} has a text without an end", self.what))?;
        let taken = match padded {
            true => (len + 1).next_multiple_of(8),
            false => len + 1,
        };
        Ok(text_of(&self.bytes(taken)?[..len]))
    }
}

/// Bytes as text, whatever they are.
pub(crate) fn text_of(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// At most a line of bytes that come from a file.
pub(crate) fn shown(bytes: &[u8]) -> String {
    let text = String::from_utf8_lossy(&bytes[..bytes.len().min(60)]).into_owned();
    text.chars().flat_map(char::escape_debug).collect()
}
