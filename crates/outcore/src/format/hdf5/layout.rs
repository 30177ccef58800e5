//! Layout messages: where the data of a dataset are.

use super::object_header::Message;
use super::slot::{Form, Slot};
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// Where the data of a dataset are.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum DataLayout {
    /// In the message itself.
    Compact {
        /// Where in the message, and how many bytes.
        start: usize,
        len: u64,
    },
    /// In one piece; nowhere if nothing was ever written.
    Contiguous { address: Option<u64> },
    /// In chunks.
    Chunked(Chunking),
    /// In other datasets.
    Virtual,
}

/// The chunks of a dataset.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Chunking {
    /// The shape of a chunk; the bytes of an element come last.
    pub(crate) extents: Vec<u64>,
    pub(crate) index: Index,
    /// The index; nowhere if nothing was ever written.
    pub(crate) address: Option<u64>,
    /// Whether chunks that the edge of the array cuts are stored as they are.
    pub(crate) plain_edges: bool,
}

/// How the chunks of a dataset are found.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Index {
    /// A B-tree of version 1.
    Tree,
    /// There is one chunk; if it is filtered, its bytes, what was skipped, and where
    /// that stands.
    Single(Option<(u64, u32, Slot)>),
    /// Chunks lie one after another.
    Implicit,
    /// A fixed array.
    FixedArray,
    /// An extensible array.
    ExtensibleArray,
    /// A B-tree of version 2.
    SecondTree,
}

impl DataLayout {
    pub(crate) fn parse(source: &Source, message: &Message) -> Parsed<Self> {
        let data = &message.data[..];
        let mut fields = Fields::little("a data layout", data);
        let version = fields.u8()?;
        match version {
            1 | 2 => first_versions(source, &mut fields, data.len()),
            3..=5 => {
                let class = fields.u8()?;
                match class {
                    0 => {
                        let len = fields.u16()?.into();
                        let start = data.len() - fields.rest().len();
                        fields.stated(len)?;
                        Ok(Self::Compact { start, len })
                    }
                    1 => Ok(Self::Contiguous {
                        address: source.address(&mut fields)?,
                    }),
                    2 if version == 3 => {
                        let axes = fields.u8()?;
                        let address = source.address(&mut fields)?;
                        let extents = extents(&mut fields, axes, 4)?;
                        Ok(Self::Chunked(Chunking {
                            extents,
                            index: Index::Tree,
                            address,
                            plain_edges: false,
                        }))
                    }
                    2 => Ok(Self::Chunked(chunked(source, &mut fields, message)?)),
                    3 => Ok(Self::Virtual),
                    _ => Err(format!("data layout {class} is not known").into()),
                }
            }
            _ => Err(format!("data layout version {version} is not known").into()),
        }
    }
}

/// Versions 1 and 2.
fn first_versions(source: &Source, fields: &mut Fields<'_>, len: usize) -> Parsed<DataLayout> {
    let (axes, class) = (fields.u8()?, fields.u8()?);
    fields.skip(5)?;
    match class {
        0 => {
            extents(fields, axes, 4)?;
            let size = fields.u32()?.into();
            let start = len - fields.rest().len();
            fields.stated(size)?;
            Ok(DataLayout::Compact { start, len: size })
        }
        1 => Ok(DataLayout::Contiguous {
            address: source.address(fields)?,
        }),
        2 => {
            let address = source.address(fields)?;
            Ok(DataLayout::Chunked(Chunking {
                extents: extents(fields, axes, 4)?,
                index: Index::Tree,
                address,
                plain_edges: false,
            }))
        }
        _ => Err(format!("data layout {class} is not known").into()),
    }
}

/// Versions 4 and 5.
fn chunked(source: &Source, fields: &mut Fields<'_>, message: &Message) -> Parsed<Chunking> {
    let flags = fields.u8()?;
    let (axes, width) = (fields.u8()?, fields.u8()?);
    let extents = extents(fields, axes, width.into())?;
    let index = match fields.u8()? {
        1 => Index::Single(match flags & 2 != 0 {
            true => {
                let at = message.data.len() - fields.rest().len();
                let covered = match message.block {
                    Some((start, len)) => Some((source.place(start)?, len as u32)),
                    None => None,
                };
                let slot = Slot {
                    offset: source.place(message.address + at as u64)?,
                    form: Form::LengthFirst {
                        width: source.length_size as u8,
                        gap: 0,
                    },
                    covered,
                };
                Some((source.length(fields)?, fields.u32()?, slot))
            }
            false => None,
        }),
        2 => Index::Implicit,
        3 => {
            fields.skip(1)?;
            Index::FixedArray
        }
        4 => {
            fields.skip(5)?;
            Index::ExtensibleArray
        }
        5 => {
            fields.skip(6)?;
            Index::SecondTree
        }
        kind => return Err(format!("chunk index {kind} is not known").into()),
    };
    Ok(Chunking {
        extents,
        index,
        address: source.address(fields)?,
        plain_edges: flags & 1 != 0,
    })
}

fn extents(fields: &mut Fields<'_>, axes: u8, width: usize) -> Parsed<Vec<u64>> {
    if axes > 33 {
        return Err(format!("chunks of {axes} axes are not possible").into());
    }
    (0..axes).map(|_| fields.uint(width)).collect()
}
