//! Deflate by libdeflate, and Zstandard. A thread keeps what they need from one
//! chunk to the next.

use std::cell::RefCell;

use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};

use super::wrong_length;

thread_local! {
    static INFLATE: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
    static DEFLATE: RefCell<Option<(u8, Compressor)>> = const { RefCell::new(None) };
    static UNZSTD: RefCell<Option<zstd::bulk::Decompressor<'static>>> = const { RefCell::new(None) };
    static ZSTD: RefCell<Option<(i32, bool, zstd::bulk::Compressor<'static>)>> = const { RefCell::new(None) };
}

fn with_compressor<T>(level: u8, work: impl FnOnce(&mut Compressor) -> T) -> Result<T, String> {
    DEFLATE.with_borrow_mut(|kept| {
        if kept.as_ref().is_none_or(|(at, _)| *at != level) {
            let level = CompressionLvl::new(i32::from(level))
                .map_err(|_| format!("deflate has no level {level}; levels are 0 to 9"))?;
            *kept = None;
            kept.replace((0, Compressor::new(level)));
        }
        let (at, compressor) = kept.as_mut().expect("it has just been made");
        *at = level;
        Ok(work(compressor))
    })
}

pub(super) fn zlib_compress(data: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
    let made = with_compressor(level, |compressor| {
        out.resize(compressor.zlib_compress_bound(data.len()), 0);
        compressor.zlib_compress(data, out)
    })?;
    out.truncate(made.map_err(|error| error.to_string())?);
    Ok(())
}

pub(super) fn gzip_compress(data: &[u8], level: u8, out: &mut Vec<u8>) -> Result<(), String> {
    let made = with_compressor(level, |compressor| {
        out.resize(compressor.gzip_compress_bound(data.len()), 0);
        compressor.gzip_compress(data, out)
    })?;
    out.truncate(made.map_err(|error| error.to_string())?);
    Ok(())
}

fn inflate(
    out: &mut [u8],
    work: impl FnOnce(&mut Decompressor, &mut [u8]) -> Result<usize, DecompressionError>,
) -> Result<(), String> {
    let made =
        INFLATE.with_borrow_mut(|kept| work(kept.get_or_insert_with(Decompressor::new), out));
    match made {
        Ok(made) if made == out.len() => Ok(()),
        Ok(made) => Err(wrong_length(made, out.len())),
        Err(DecompressionError::BadData) => Err("deflate cannot decode it; it is damaged".into()),
        Err(DecompressionError::InsufficientSpace) => Err(format!(
            "it decodes to more than {} bytes; it is damaged",
            out.len()
        )),
    }
}

pub(super) fn zlib_decompress(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    inflate(out, |decompressor, out| {
        decompressor.zlib_decompress(data, out)
    })
}

pub(super) fn gzip_decompress(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    inflate(out, |decompressor, out| {
        decompressor.gzip_decompress(data, out)
    })
}

pub(super) fn zstd_compress(
    data: &[u8],
    level: i32,
    checksum: bool,
    out: &mut Vec<u8>,
) -> Result<(), String> {
    ZSTD.with_borrow_mut(|kept| {
        let fits = |kept: &(i32, bool, _)| (kept.0, kept.1) == (level, checksum);
        if !kept.as_ref().is_some_and(fits) {
            let make = || {
                let mut compressor = zstd::bulk::Compressor::new(level)?;
                compressor.include_checksum(checksum)?;
                compressor.include_contentsize(true)?;
                std::io::Result::Ok(compressor)
            };
            let made = make().map_err(|error| format!("zstd cannot begin: {error}"))?;
            *kept = Some((level, checksum, made));
        }
        let (.., compressor) = kept.as_mut().expect("it has just been made");
        out.resize(zstd::zstd_safe::compress_bound(data.len()), 0);
        let made = compressor.compress_to_buffer(data, out.as_mut_slice());
        out.truncate(made.map_err(|error| format!("zstd failed: {error}"))?);
        Ok(())
    })
}

pub(super) fn zstd_decompress(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    UNZSTD.with_borrow_mut(|kept| {
        if kept.is_none() {
            let made = zstd::bulk::Decompressor::new();
            *kept = Some(made.map_err(|error| format!("zstd cannot begin: {error}"))?);
        }
        let decompressor = kept.as_mut().expect("it has just been made");
        let made = decompressor.decompress_to_buffer(data, out);
        match made.map_err(|error| format!("zstd cannot decode it: {error}"))? {
            made if made == out.len() => Ok(()),
            made => Err(wrong_length(made, out.len())),
        }
    })
}
