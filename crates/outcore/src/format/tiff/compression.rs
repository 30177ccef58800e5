//! [`Compression`]: how strips and tiles are stored.

use super::{lzw, packbits};
use crate::codec::{Codec, Codecs};
use crate::format::fields::Parsed;

/// One that can be undone here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Compression {
    None,
    Lzw,
    Deflate,
    PackBits,
    Zstd,
}

/// No compression makes more than so many bytes of one.
pub(super) const MOST_RATIO: u64 = 64 << 10;

impl Compression {
    pub(super) fn of_number(number: u64) -> Parsed<Self> {
        let other = match number {
            1 => return Ok(Self::None),
            5 => return Ok(Self::Lzw),
            8 | 32946 => return Ok(Self::Deflate),
            32773 => return Ok(Self::PackBits),
            50000 => return Ok(Self::Zstd),
            2 => "CCITT run lengths",
            3 => "CCITT fax, group 3",
            4 => "CCITT fax, group 4",
            6 => "JPEG (old)",
            7 => "JPEG",
            33003..=33005 | 34712 => "JPEG 2000",
            34887 => "LERC",
            34925 => "LZMA",
            50001 => "WebP",
            50002 | 52546 => "JPEG XL",
            _ => "unknown",
        };
        Err(format!(
            "its compression is {other} (number {number}), which is not supported; rewrite it \
             without, or with deflate, LZW, PackBits or Zstandard"
        )
        .into())
    }

    pub(super) fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Lzw => "lzw",
            Self::Deflate => "deflate",
            Self::PackBits => "packbits",
            Self::Zstd => "zstd",
        }
    }

    /// Decodes into `out`, all of it.
    pub(super) fn decode(self, stored: &[u8], out: &mut [u8]) -> Result<(), String> {
        let mut by =
            |step| Codecs::new(vec![step]).and_then(|codecs| codecs.decode(stored, &mut *out));
        match self {
            Self::None => Codecs::default().decode(stored, out),
            Self::Lzw => lzw::decode(stored, out),
            Self::PackBits => packbits::decode(stored, out),
            Self::Deflate => by(Codec::Deflate { level: 0 }),
            Self::Zstd => by(Codec::Zstd {
                level: 0,
                checksum: false,
            }),
        }
    }
}
