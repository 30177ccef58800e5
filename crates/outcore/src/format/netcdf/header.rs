//! [`Header`]: what a classic NetCDF file says of itself before its data.
//!
//! Magic bytes with the version, the number of records, then lists of
//! dimensions, attributes and variables; everything is big-endian. Counts have
//! 4 bytes, in CDF-5 8; offsets have 4 bytes in CDF-1, or else 8. Names and
//! values take multiples of 4 bytes.
//!
//! The path of the data: the beginning of the file is read, and more of it as
//! long as the header does not end there. Nothing is believed before its bytes
//! are there, so memory is bounded by the header, and that by [`LONGEST`].

use outcore_storage::Store;

use super::kind::Kind;
use crate::element::ByteOrder;
use crate::format::fields::{Fields, Parsed, Problem, text_of};

/// No more of a header is read: what is made of it takes some times as much
/// memory, and files of thousands of variables need less.
const LONGEST: u64 = 16 << 20;

/// The bytes read first.
const FIRST: u64 = 16 << 10;

/// A variable has no more axes than this: the limit of the NetCDF library.
pub(super) const MOST_AXES: usize = 1024;

/// A named extent.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Dimension {
    pub(super) name: String,
    /// 0 for that of the records.
    pub(super) extent: u64,
}

/// A named value or list of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Attribute {
    pub(super) name: String,
    pub(super) kind: Kind,
    pub(super) count: u64,
    /// As in the file, without what fills them up.
    pub(super) bytes: Vec<u8>,
}

/// An array of the file.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Variable {
    pub(super) name: String,
    /// The numbers of its dimensions; they exist.
    pub(super) dimensions: Vec<usize>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) kind: Kind,
    /// Where its data begin.
    pub(super) begin: u64,
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Header {
    /// 1, 2 or 5.
    pub(super) version: u8,
    /// `None`: as many as the file has.
    pub(super) records: Option<u64>,
    pub(super) dimensions: Vec<Dimension>,
    pub(super) attributes: Vec<Attribute>,
    pub(super) variables: Vec<Variable>,
}

impl Header {
    /// Reads the header of a file.
    pub(super) fn read(store: &dyn Store) -> Parsed<Self> {
        let file = store.len()?;
        let most = file.min(LONGEST);
        let mut len = FIRST.min(file);
        loop {
            let mut bytes = vec![0; len as usize];
            store.read_at(0, &mut bytes)?;
            match Self::parse(&bytes) {
                // Perhaps it is only longer.
                Err(_) if len < most && is_magic(&bytes) => len = (4 * len).min(most),
                Err(Problem::Text(text)) if len < file => {
                    let most = LONGEST >> 20;
                    return Err(format!("{text} (of a header, {most} MiB are read)").into());
                }
                parsed => return parsed,
            }
        }
    }

    /// Understands a header; what follows it does not matter.
    pub(super) fn parse(bytes: &[u8]) -> Parsed<Self> {
        if !is_magic(bytes) {
            return Err("it does not begin with CDF and 1, 2 or 5 as NetCDF files do".into());
        }
        let version = bytes[3];
        let mut reader = Reader {
            fields: Fields::new("the header", &bytes[4..], ByteOrder::Big),
            version,
        };
        let records = reader.count()?;
        let streaming = match version {
            5 => u64::MAX,
            _ => u32::MAX.into(),
        };
        let header = Self {
            version,
            records: (records != streaming).then_some(records),
            dimensions: reader.list(10, "dimensions", Reader::dimension)?,
            attributes: reader.list(12, "attributes", Reader::attribute)?,
            variables: reader.list(11, "variables", Reader::variable)?,
        };
        let known = header.dimensions.len();
        for variable in &header.variables {
            if let Some(number) = variable.dimensions.iter().find(|number| **number >= known) {
                return Err(format!(
                    "the variable {} has dimension {number}, but there are only {known}; the \
                     file is damaged",
                    variable.name
                )
                .into());
            }
        }
        Ok(header)
    }
}

/// Whether a file begins so.
pub(super) fn is_magic(bytes: &[u8]) -> bool {
    matches!(bytes, [b'C', b'D', b'F', 1 | 2 | 5, ..])
}

struct Reader<'a> {
    fields: Fields<'a>,
    version: u8,
}

impl<'a> Reader<'a> {
    /// The next number that is not negative.
    fn count(&mut self) -> Parsed<u64> {
        match self.version {
            5 => self.fields.u64(),
            _ => self.fields.u32().map(u64::from),
        }
    }

    /// So many bytes, and those that fill them up to a multiple of four.
    fn padded(&mut self, count: u64) -> Parsed<&'a [u8]> {
        let bytes = self.fields.stated(count)?;
        self.fields.stated((4 - count % 4) % 4)?;
        Ok(bytes)
    }

    fn name(&mut self) -> Parsed<String> {
        let len = self.count()?;
        Ok(text_of(self.padded(len)?))
    }

    fn kind(&mut self) -> Parsed<Kind> {
        Kind::of_number(self.fields.u32()?, self.version)
    }

    /// The items of a list with this tag; each takes some bytes, so that no
    /// stated number makes more of them than the header has.
    fn list<T>(
        &mut self,
        tag: u32,
        what: &str,
        item: impl Fn(&mut Self) -> Parsed<T>,
    ) -> Parsed<Vec<T>> {
        let found = self.fields.u32()?;
        let count = self.count()?;
        match found {
            _ if found == tag => (0..count).map(|_| item(self)).collect(),
            0 if count == 0 => Ok(Vec::new()),
            _ => Err(
                format!("the list of its {what} has the tag {found}; the file is damaged").into(),
            ),
        }
    }

    fn dimension(&mut self) -> Parsed<Dimension> {
        Ok(Dimension {
            name: self.name()?,
            extent: self.count()?,
        })
    }

    fn attribute(&mut self) -> Parsed<Attribute> {
        let (name, kind) = (self.name()?, self.kind()?);
        let count = self.count()?;
        let bytes = count.saturating_mul(kind.element().size());
        Ok(Attribute {
            name,
            kind,
            count,
            bytes: self.padded(bytes)?.to_vec(),
        })
    }

    fn variable(&mut self) -> Parsed<Variable> {
        let name = self.name()?;
        let axes = self.count()?;
        if axes > MOST_AXES as u64 {
            return Err(format!("the variable {name} has {axes} dimensions, not believed").into());
        }
        let number = |at: u64| usize::try_from(at).unwrap_or(usize::MAX);
        let dimensions = (0..axes)
            .map(|_| self.count().map(number))
            .collect::<Parsed<_>>()?;
        let attributes = self.list(12, "attributes", Self::attribute)?;
        let kind = self.kind()?;
        // The bytes of a record or of all: follows from the shape, and is cut
        // off where they are too many.
        self.count()?;
        let begin = match self.version {
            1 => self.fields.u32()?.into(),
            _ => self.fields.u64()?,
        };
        Ok(Variable {
            name,
            dimensions,
            attributes,
            kind,
            begin,
        })
    }
}
