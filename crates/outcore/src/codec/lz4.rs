//! LZ4 as numcodecs writes it: the length in 4 bytes, least first, then one block.

use super::wrong_length;

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    let len = u32::try_from(data.len()).map_err(|_| "LZ4 takes chunks below 4 GiB")?;
    out.extend_from_slice(&len.to_le_bytes());
    let start = out.len();
    out.resize(
        start + lz4_flex::block::get_maximum_output_size(data.len()),
        0,
    );
    let made = lz4_flex::block::compress_into(data, &mut out[start..]);
    let made = made.map_err(|error| error.to_string())?;
    out.truncate(start + made);
    Ok(())
}

pub(super) fn decompress(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    let (len, block) = data
        .split_first_chunk::<4>()
        .ok_or("it is too short for LZ4")?;
    let len = u32::from_le_bytes(*len) as usize;
    if len != out.len() {
        return Err(wrong_length(len, out.len()));
    }
    let made = lz4_flex::block::decompress_into(block, out);
    match made.map_err(|error| format!("LZ4 cannot decode it: {error}"))? {
        made if made == out.len() => Ok(()),
        made => Err(wrong_length(made, out.len())),
    }
}
