//! Global heaps: values of variable length.

use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// Collections longer than this are not believed.
const LONGEST: u64 = 16 << 20;

/// The object that the next fields (address of a collection, number in it)
/// name.
pub(crate) fn object(source: &Source, fields: &mut Fields<'_>) -> Parsed<Vec<u8>> {
    let address = source.defined(fields)?;
    let wanted = fields.u32()?;
    let head_len = 8 + source.length_size as u64;
    let head = source.read(address, head_len)?;
    let mut head = Fields::little("a collection of values", &head);
    head.signature(b"GCOL")?;
    head.version(1)?;
    head.skip(3)?;
    let len = source.length(&mut head)?;
    if len > LONGEST {
        return Err(format!("a collection of {len} bytes is not believed").into());
    }
    source.search(len)?;
    let body = source.read(address + head_len, len.saturating_sub(head_len))?;
    let mut fields = Fields::little("a collection of values", &body);
    while fields.rest().len() >= 8 + source.length_size {
        let number = fields.u16()?;
        fields.skip(6)?;
        let len = source.length(&mut fields)?;
        if number == 0 {
            break;
        }
        let object = fields.stated(len)?;
        if u32::from(number) == wanted {
            return Ok(object.to_vec());
        }
        let padding = len.next_multiple_of(8) - len;
        fields.stated(padding.min(fields.rest().len() as u64))?;
    }
    Err("a value of variable length is missing; the file is damaged".into())
}
