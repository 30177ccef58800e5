//! Codecs in texts: `zstd:3`, `shuffle,deflate:4`, `blosc:lz4:5:shuffle`, `none`.

use std::fmt;
use std::str::FromStr;

use super::{Blosc, BloscCompressor, BloscShuffle, Codec, Codecs};
use crate::error::Error;

const KNOWN: &str = "codecs are zstd[:LEVEL], gzip[:LEVEL], deflate[:LEVEL], lz4, \
    blosc[:blosclz|lz4|lz4hc|zlib|zstd[:LEVEL[:none|shuffle|bitshuffle]]], shuffle, crc32c, fletcher32 \
    and none; several are joined by commas, as in shuffle,deflate:4";

impl fmt::Display for Codec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Shuffle { .. } => f.write_str("shuffle"),
            Self::Deflate { level } => write!(f, "deflate:{level}"),
            Self::Gzip { level } => write!(f, "gzip:{level}"),
            Self::Zstd { level, checksum } => {
                write!(f, "zstd:{level}")?;
                if *checksum {
                    f.write_str(":checksum")?;
                }
                Ok(())
            }
            Self::Blosc(blosc) => write!(
                f,
                "blosc:{}:{}:{}",
                blosc.compressor.name(),
                blosc.level,
                blosc.shuffle.name()
            ),
            Self::Lz4 => f.write_str("lz4"),
            Self::Lzf => f.write_str("lzf"),
            Self::Crc32c => f.write_str("crc32c"),
            Self::Fletcher32 => f.write_str("fletcher32"),
        }
    }
}

impl fmt::Display for Codecs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_empty() {
            return f.pad("none");
        }
        let steps: Vec<String> = self.steps().iter().map(Codec::to_string).collect();
        f.pad(&steps.join(","))
    }
}

fn level<T: FromStr + PartialOrd + fmt::Display>(
    name: &str,
    text: Option<&str>,
    usual: T,
    (least, most): (T, T),
) -> Result<T, String> {
    let Some(text) = text else { return Ok(usual) };
    let level = text
        .parse()
        .ok()
        .filter(|level| (&least..=&most).contains(&level));
    level.ok_or_else(|| format!("'{text}' is no level of {name}, which are {least} to {most}"))
}

fn named<T: Copy>(all: &[T], name: impl Fn(T) -> &'static str, text: &str) -> Result<T, String> {
    let found = all.iter().find(|one| name(**one) == text);
    found.copied().ok_or_else(|| {
        let names: Vec<&str> = all.iter().map(|one| name(*one)).collect();
        format!("blosc has no '{text}', but {}", names.join(", "))
    })
}

fn step(text: &str) -> Result<Codec, String> {
    let mut words = text.split(':');
    let name = words.next().unwrap_or_default();
    let codec = match name {
        "shuffle" => Codec::Shuffle { width: 0 },
        "deflate" | "zlib" => Codec::Deflate {
            level: level(name, words.next(), 4, (0, 9))?,
        },
        "gzip" => Codec::Gzip {
            level: level(name, words.next(), 5, (0, 9))?,
        },
        "zstd" => Codec::Zstd {
            level: level(name, words.next(), 3, (-7, 22))?,
            checksum: match words.next() {
                None => false,
                Some("checksum") => true,
                Some(other) => return Err(format!("'{other}' after zstd means nothing")),
            },
        },
        "blosc" => Codec::Blosc(Blosc {
            compressor: match words.next() {
                None => BloscCompressor::Lz4,
                Some(text) => named(&BloscCompressor::ALL, BloscCompressor::name, text)?,
            },
            level: level(name, words.next(), 5, (0, 9))?,
            shuffle: match words.next() {
                None => BloscShuffle::Byte,
                Some(text) => named(&BloscShuffle::ALL, BloscShuffle::name, text)?,
            },
            type_size: 0,
            block_size: 0,
        }),
        "lz4" => Codec::Lz4,
        "crc32c" => Codec::Crc32c,
        "fletcher32" => Codec::Fletcher32,
        _ => return Err(format!("there is no codec '{name}'; {KNOWN}")),
    };
    match words.next() {
        None => Ok(codec),
        Some(more) => Err(format!(
            "'{more}' in '{text}' is one word too many; {KNOWN}"
        )),
    }
}

impl FromStr for Codecs {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if text == "none" {
            return Ok(Self::default());
        }
        let steps: Result<Vec<Codec>, String> =
            text.split(',').map(|one| step(one.trim())).collect();
        steps.and_then(Self::new).map_err(Error::Invalid)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_round_trip() {
        for text in [
            "none",
            "zstd:-3",
            "zstd:3:checksum",
            "shuffle,deflate:4,fletcher32",
            "blosc:lz4hc:7:bitshuffle",
            "gzip:9,crc32c",
            "lz4",
        ] {
            assert_eq!(text.parse::<Codecs>().unwrap().to_string(), text);
        }
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("zip", "'zip'"),
            ("zstd:99", "'99'"),
            ("blosc:lz5", "'lz5'"),
            ("shuffle:4", "'4'"),
            ("", "''"),
        ] {
            let message = text.parse::<Codecs>().unwrap_err().to_string();
            assert!(message.contains(part), "{text} -> {message}");
        }
    }
}
