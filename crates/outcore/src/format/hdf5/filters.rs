//! Filter pipeline messages: what was done to chunks before they were stored.

use crate::format::fields::{Fields, Parsed, text_of};

/// Pipelines of more filters are not possible.
const MOST: u8 = 32;

/// One step of a pipeline.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Filter {
    pub(crate) id: u16,
    /// What the file calls it.
    pub(crate) name: String,
    pub(crate) settings: Vec<u32>,
}

/// The filters of a dataset, in the order in which they were applied.
pub(crate) fn parse(data: &[u8]) -> Parsed<Vec<Filter>> {
    let mut fields = Fields::little("a filter pipeline", data);
    let version = fields.u8()?;
    let count = fields.u8()?;
    match version {
        1 => fields.skip(6)?,
        2 => {}
        _ => return Err(format!("filter pipeline version {version} is not known").into()),
    }
    if count > MOST {
        return Err(format!("{count} filters are not possible; the file is damaged").into());
    }
    (0..count)
        .map(|_| {
            let id = fields.u16()?;
            let name_len = match version == 1 || id >= 256 {
                true => fields.u16()?,
                false => 0,
            };
            fields.skip(2)?;
            let settings = usize::from(fields.u16()?);
            let name = fields.bytes(usize::from(name_len))?;
            if version == 1 {
                fields.skip(usize::from(name_len).next_multiple_of(8) - usize::from(name_len))?;
            }
            let name = name.split(|byte| *byte == 0).next().unwrap_or_default();
            let name = text_of(name);
            let values = fields.bytes(4 * settings)?;
            if version == 1 && settings % 2 == 1 {
                fields.skip(4)?;
            }
            let settings = values
                .chunks_exact(4)
                .map(|value| Fields::little("a filter", value).u32())
                .collect::<Parsed<_>>()?;
            Ok(Filter { id, name, settings })
        })
        .collect()
}

impl Filter {
    /// What users know the filter as.
    pub(crate) fn words(&self) -> String {
        let known = match self.id {
            1 => "deflate",
            2 => "shuffle",
            3 => "fletcher32",
            4 => "szip",
            5 => "nbit",
            6 => "scaleoffset",
            307 => "bzip2",
            32000 => "lzf",
            32001 => "blosc",
            32004 => "lz4",
            32008 => "bitshuffle",
            32013 => "zfp",
            32015 => "zstd",
            32026 => "blosc2",
            id => return format!("{} (number {id})", self.name),
        };
        known.into()
    }
}
