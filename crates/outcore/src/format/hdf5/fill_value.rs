//! Fill value messages: what elements are that were never written.

use super::object_header::{ObjectHeader, kind};
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// The bytes of the fill value as they are in the file; `None` if it is zero.
pub(crate) fn of(source: &Source, header: &ObjectHeader, size: u64) -> Parsed<Option<Vec<u8>>> {
    let value = if let Some(data) = header.find(source, kind::FILL_VALUE)? {
        newer(&data)?
    } else if let Some(data) = header.find(source, kind::OLD_FILL_VALUE)? {
        let mut fields = Fields::little("a fill value", &data);
        let len = fields.u32()?;
        fields.stated(len.into())?.to_vec()
    } else {
        Vec::new()
    };
    if value.is_empty() || value.iter().all(|byte| *byte == 0) {
        return Ok(None);
    }
    if value.len() as u64 != size {
        return Err(format!(
            "the fill value has {} bytes and an element {size}; the file is damaged",
            value.len()
        )
        .into());
    }
    Ok(Some(value))
}

fn newer(data: &[u8]) -> Parsed<Vec<u8>> {
    let mut fields = Fields::little("a fill value", data);
    let version = fields.u8()?;
    let defined = match version {
        1 | 2 => {
            fields.skip(2)?;
            fields.u8()? != 0 || version == 1
        }
        3 => fields.u8()? & 0x20 != 0,
        _ => return Err(format!("fill value version {version} is not known").into()),
    };
    if !defined {
        return Ok(Vec::new());
    }
    let len = fields.u32()?;
    // Versions below 3 write an undefined value as one of -1 bytes.
    match i32::try_from(len) {
        Ok(_) => Ok(fields.stated(len.into())?.to_vec()),
        Err(_) => Ok(Vec::new()),
    }
}
