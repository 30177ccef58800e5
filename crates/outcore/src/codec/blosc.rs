//! Blosc 1, by its own library: blocks of shuffled bytes, each compressed.

use std::ffi::{CStr, c_void};

use super::wrong_length;

/// What Blosc compresses blocks with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloscCompressor {
    /// Its own.
    BloscLz,
    /// LZ4.
    Lz4,
    /// LZ4, slower and smaller.
    Lz4hc,
    /// Deflate.
    Zlib,
    /// Zstandard.
    Zstd,
}

/// How Blosc sorts bytes before.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BloscShuffle {
    /// Not at all.
    None,
    /// By the byte of an element.
    Byte,
    /// By the bit of an element.
    Bit,
}

/// The settings of Blosc.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Blosc {
    /// What compresses.
    pub compressor: BloscCompressor,
    /// 0 to 9.
    pub level: u8,
    /// What happens before.
    pub shuffle: BloscShuffle,
    /// The bytes of an element; 0 until they are known.
    pub type_size: usize,
    /// The bytes of a block; 0 lets Blosc choose.
    pub block_size: usize,
}

impl BloscCompressor {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::BloscLz,
        Self::Lz4,
        Self::Lz4hc,
        Self::Zlib,
        Self::Zstd,
    ];

    fn c_name(self) -> &'static CStr {
        match self {
            Self::BloscLz => c"blosclz",
            Self::Lz4 => c"lz4",
            Self::Lz4hc => c"lz4hc",
            Self::Zlib => c"zlib",
            Self::Zstd => c"zstd",
        }
    }

    /// The name in texts.
    pub fn name(self) -> &'static str {
        self.c_name().to_str().expect("the names are ASCII")
    }
}

impl BloscShuffle {
    /// All of them.
    pub const ALL: [Self; 3] = [Self::None, Self::Byte, Self::Bit];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Byte => "shuffle",
            Self::Bit => "bitshuffle",
        }
    }
}

/// What Blosc adds at most.
const OVERHEAD: usize = 16;

impl Blosc {
    pub(super) fn compress(&self, data: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        if i32::try_from(data.len() + OVERHEAD).is_err() {
            return Err("Blosc takes chunks below 2 GiB".into());
        }
        out.resize(data.len() + OVERHEAD, 0);
        // SAFETY: both pointers lead to as many bytes as are said, and the name ends
        // with a zero byte; the call keeps none of them.
        let made = unsafe {
            blosc_src::blosc_compress_ctx(
                self.level.into(),
                self.shuffle as i32,
                self.type_size.clamp(1, 255),
                data.len(),
                data.as_ptr().cast::<c_void>(),
                out.as_mut_ptr().cast::<c_void>(),
                out.len(),
                self.compressor.c_name().as_ptr(),
                self.block_size,
                1,
            )
        };
        if made <= 0 {
            return Err(format!("Blosc failed with code {made}"));
        }
        out.truncate(made as usize);
        Ok(())
    }
}

pub(super) fn decompress(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    let mut len = 0;
    // SAFETY: the pointer leads to as many bytes as are said, of which the call looks
    // at the header if there is one.
    let valid = unsafe {
        blosc_src::blosc_cbuffer_validate(data.as_ptr().cast::<c_void>(), data.len(), &mut len)
    };
    if valid < 0 {
        return Err("it has no valid Blosc header; it is damaged".into());
    }
    if len != out.len() {
        return Err(wrong_length(len, out.len()));
    }
    if len == 0 {
        return Ok(());
    }
    // SAFETY: the header says that the source is as long as it is, and the call
    // writes no more than the length of the target.
    let made = unsafe {
        blosc_src::blosc_decompress_ctx(
            data.as_ptr().cast::<c_void>(),
            out.as_mut_ptr().cast::<c_void>(),
            out.len(),
            1,
        )
    };
    match made {
        made if made == out.len() as i32 => Ok(()),
        made if made < 0 => Err("Blosc cannot decode it; it is damaged".into()),
        made => Err(wrong_length(made as usize, out.len())),
    }
}
