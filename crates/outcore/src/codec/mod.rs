//! [`Codecs`]: how the bytes of a chunk are encoded, step after step.
//!
//! Encoding applies the steps from the first to the last, decoding from the last to
//! the first. The length of a decoded chunk is known, and so is that of everything
//! between steps that keep or shift lengths; so each step decodes straight into
//! memory of the right length, and nothing that a damaged file says decides how
//! much memory is taken. At most one step of a chain compresses.
//!
//! In texts, steps are joined by commas: `shuffle,deflate:4`, `zstd:3`,
//! `blosc:lz4:5:shuffle`, `none`.

mod blosc;
mod checksum;
mod compressors;
mod lz4;
mod lzf;
mod shuffle;
mod text;
mod translated;

use std::cell::RefCell;

pub use blosc::{Blosc, BloscCompressor, BloscShuffle};

/// One step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Codec {
    /// The first bytes of all elements, then the second ones, and so on.
    Shuffle {
        /// The bytes of an element; 0 until they are known.
        width: usize,
    },
    /// Deflate in the form of zlib (HDF5's `deflate`, Zarr's `zlib`).
    Deflate {
        /// 0 to 9.
        level: u8,
    },
    /// Deflate in the form of gzip.
    Gzip {
        /// 0 to 9.
        level: u8,
    },
    /// Zstandard.
    Zstd {
        /// -7 to 22.
        level: i32,
        /// Whether frames carry a checksum.
        checksum: bool,
    },
    /// Blosc 1.
    Blosc(Blosc),
    /// LZ4 as numcodecs has it: the length before one block.
    Lz4,
    /// LZF, of h5py: HDF5 files that have it are read and changed, none are made.
    Lzf,
    /// CRC32C behind the bytes.
    Crc32c,
    /// Fletcher's checksum as HDF5 has it, behind the bytes.
    Fletcher32,
}

/// The steps that encode a chunk; none leaves it as it is.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Codecs(Vec<Codec>);

thread_local! {
    /// Memory between two steps.
    static BETWEEN: RefCell<[Vec<u8>; 2]> = const { RefCell::new([Vec::new(), Vec::new()]) };
}

/// More memory between steps than this is given back.
const SMALL: usize = 4 << 20;

impl Codec {
    fn compresses(&self) -> bool {
        !matches!(self, Self::Shuffle { .. } | Self::Crc32c | Self::Fletcher32)
    }

    /// What the step makes of `len` bytes, if that is the same for all bytes.
    fn encoded_len(&self, len: usize) -> Option<usize> {
        match self {
            Self::Shuffle { .. } => Some(len),
            Self::Crc32c | Self::Fletcher32 => len.checked_add(4),
            _ => None,
        }
    }

    fn encode(&self, data: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
        out.clear();
        match self {
            Self::Shuffle { width } => {
                out.resize(data.len(), 0);
                shuffle::shuffle(data, *width, out);
                Ok(())
            }
            Self::Deflate { level } => compressors::zlib_compress(data, *level, out),
            Self::Gzip { level } => compressors::gzip_compress(data, *level, out),
            Self::Zstd { level, checksum } => {
                compressors::zstd_compress(data, *level, *checksum, out)
            }
            Self::Blosc(blosc) => blosc.compress(data, out),
            Self::Lz4 => lz4::compress(data, out),
            Self::Lzf => lzf::compress(data, out),
            Self::Crc32c => {
                out.extend_from_slice(data);
                out.extend_from_slice(&crc32c::crc32c(data).to_le_bytes());
                Ok(())
            }
            Self::Fletcher32 => {
                out.extend_from_slice(data);
                out.extend_from_slice(&checksum::fletcher32(data).to_le_bytes());
                Ok(())
            }
        }
    }

    /// Decodes into `out`, all of it.
    fn decode(&self, data: &[u8], out: &mut [u8]) -> Result<(), String> {
        match self {
            Self::Shuffle { width } => {
                if data.len() != out.len() {
                    return Err(wrong_length(data.len(), out.len()));
                }
                shuffle::unshuffle(data, *width, out);
                Ok(())
            }
            Self::Deflate { .. } => compressors::zlib_decompress(data, out),
            Self::Gzip { .. } => compressors::gzip_decompress(data, out),
            Self::Zstd { .. } => compressors::zstd_decompress(data, out),
            Self::Blosc(_) => blosc::decompress(data, out),
            Self::Lz4 => lz4::decompress(data, out),
            Self::Lzf => lzf::decompress(data, out),
            Self::Crc32c | Self::Fletcher32 => {
                let bytes = self.checked(data)?;
                if bytes.len() != out.len() {
                    return Err(wrong_length(bytes.len(), out.len()));
                }
                out.copy_from_slice(bytes);
                Ok(())
            }
        }
    }

    /// The bytes before a checksum that fits them.
    fn checked<'a>(&self, data: &'a [u8]) -> Result<&'a [u8], String> {
        let (bytes, sum) = data
            .split_last_chunk::<4>()
            .ok_or("it is too short for its checksum")?;
        let (name, fits) = match self {
            Self::Crc32c => ("CRC32C", crc32c::crc32c(bytes) == u32::from_le_bytes(*sum)),
            _ => ("Fletcher32", checksum::fits_fletcher32(bytes, *sum)),
        };
        match fits {
            true => Ok(bytes),
            false => Err(format!("its {name} checksum does not fit; it is damaged")),
        }
    }
}

fn wrong_length(found: usize, expected: usize) -> String {
    format!("it decodes to {found} bytes instead of {expected}; it is damaged")
}

impl Codecs {
    /// These steps; fails if they cannot be undone with memory of known size.
    pub fn new(steps: Vec<Codec>) -> Result<Self, String> {
        let mut compressing = steps.iter().filter(|step| step.compresses());
        if let (Some(first), Some(second)) = (compressing.next(), compressing.next()) {
            return Err(format!(
                "'{first}' and '{second}' both compress; a chain may compress once"
            ));
        }
        Ok(Self(steps))
    }

    /// The steps, from the first that encodes to the last.
    pub fn steps(&self) -> &[Codec] {
        &self.0
    }

    /// Whether bytes are stored as they are.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The same for elements of so many bytes.
    pub fn for_elements(&self, size: usize) -> Self {
        let steps = self.0.iter().map(|step| match step {
            Codec::Shuffle { width: 0 } => Codec::Shuffle { width: size },
            Codec::Blosc(blosc) if blosc.type_size == 0 => Codec::Blosc(Blosc {
                type_size: size,
                ..*blosc
            }),
            other => *other,
        });
        Self(steps.collect())
    }

    /// In how many forms a chunk is in memory at the same time: decoded, as it is stored,
    /// and one between two steps that do not only look at it.
    pub(crate) fn forms(&self) -> u64 {
        let changing = |step: &&Codec| !matches!(step, Codec::Crc32c | Codec::Fletcher32);
        match (self.0.len(), self.0.iter().filter(changing).count()) {
            (0 | 1, _) => 2,
            // Encoded, it is there with its checksum and without.
            (2, _) | (_, 0 | 1) => 3,
            _ => 4,
        }
    }

    /// Calls `put` with the encoded bytes of `data`.
    pub(crate) fn encode<T>(&self, data: &[u8], put: impl FnOnce(&[u8]) -> T) -> Result<T, String> {
        if self.is_empty() {
            return Ok(put(data));
        }
        with_memory(|[from, to]| {
            for (at, step) in self.0.iter().enumerate() {
                step.encode(if at == 0 { data } else { &from[..] }, to)?;
                std::mem::swap(from, to);
            }
            Ok(put(from))
        })
    }

    /// Decodes into `out`, all of it.
    pub(crate) fn decode(&self, encoded: &[u8], out: &mut [u8]) -> Result<(), String> {
        // 1. The length that each step began with.
        let mut lengths = Vec::with_capacity(self.0.len());
        let mut known = Some(out.len());
        for step in &self.0 {
            lengths.push(known);
            known = known.and_then(|len| step.encoded_len(len));
        }
        // 2. Checksums around everything: no copy.
        let mut data = encoded;
        let mut left = self.0.as_slice();
        while let Some((step @ (Codec::Crc32c | Codec::Fletcher32), earlier)) = left.split_last() {
            data = step.checked(data)?;
            left = earlier;
        }
        // 3. The others, the first of them into its place.
        let Some((first, later)) = left.split_first() else {
            if data.len() != out.len() {
                return Err(wrong_length(data.len(), out.len()));
            }
            out.copy_from_slice(data);
            return Ok(());
        };
        if later.is_empty() {
            return first.decode(data, out);
        }
        with_memory(|[from, to]| {
            for (at, step) in later.iter().enumerate().rev() {
                let read = if at + 1 == later.len() {
                    data
                } else {
                    &from[..]
                };
                // Behind a step that compresses, what is there says how long it was.
                let len = match (lengths[at + 1], step) {
                    (Some(len), _) => len,
                    (None, Codec::Crc32c | Codec::Fletcher32) => read.len().saturating_sub(4),
                    (None, _) => read.len(),
                };
                to.resize(len, 0);
                step.decode(read, to)?;
                std::mem::swap(from, to);
            }
            first.decode(from, out)
        })
    }
}

/// Runs `work` with the thread's memory.
fn with_memory<T>(work: impl FnOnce(&mut [Vec<u8>; 2]) -> T) -> T {
    let mut memory = BETWEEN.take();
    let done = work(&mut memory);
    if memory.iter().all(|bytes| bytes.capacity() <= SMALL) {
        BETWEEN.set(memory);
    }
    done
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn all() -> Vec<Codecs> {
        [
            "none",
            "shuffle",
            "deflate:6",
            "gzip:1",
            "zstd:3",
            "zstd:3:checksum",
            "lz4",
            "crc32c",
            "fletcher32",
            "shuffle,deflate:4,fletcher32",
            "zstd:1,crc32c",
            "shuffle,crc32c,zstd:1",
            "deflate:4,shuffle,fletcher32",
            "zstd:1,crc32c,shuffle",
            "blosc:lz4:5:shuffle",
            "blosc:zstd:3:bitshuffle",
            "blosc:blosclz:9:none",
            "blosc:zlib:1:shuffle",
            "blosc:lz4hc:5:shuffle",
        ]
        .iter()
        .map(|text| text.parse::<Codecs>().unwrap().for_elements(4))
        .chain([
            Codecs(vec![Codec::Lzf]),
            Codecs(vec![
                Codec::Shuffle { width: 4 },
                Codec::Lzf,
                Codec::Fletcher32,
            ]),
        ])
        .collect()
    }

    fn encoded(codecs: &Codecs, data: &[u8]) -> Vec<u8> {
        codecs.encode(data, <[u8]>::to_vec).unwrap()
    }

    #[test]
    fn two_compressors_are_refused() {
        let problem = "gzip:1,zstd:1".parse::<Codecs>().unwrap_err().to_string();
        assert!(problem.contains("both compress"), "{problem}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 60, ..ProptestConfig::default() })]

        #[test]
        fn what_is_encoded_is_decoded(
            data in proptest::collection::vec(any::<u8>(), 0..600),
            repeated in 0usize..50,
        ) {
            let data = [data.clone(), data.repeat(repeated)].concat();
            for codecs in all() {
                let stored = encoded(&codecs, &data);
                let mut back = vec![7; data.len()];
                codecs.decode(&stored, &mut back).unwrap();
                prop_assert_eq!(&back, &data, "{}", codecs);
            }
        }

        #[test]
        fn damaged_bytes_are_decoded_or_refused(
            data in proptest::collection::vec(any::<u8>(), 1..300),
            at in any::<prop::sample::Index>(),
            change in 1u8..=255,
            cut in any::<prop::sample::Index>(),
        ) {
            for codecs in all() {
                let mut stored = encoded(&codecs, &data);
                let mut back = vec![0; data.len()];
                let shorter = &stored[..cut.index(stored.len())];
                prop_assert!(codecs.decode(shorter, &mut back).is_err() || codecs.to_string().contains("blosc"));
                let at = at.index(stored.len());
                stored[at] ^= change;
                let _ = codecs.decode(&stored, &mut back);
                let checked = codecs.to_string().contains("32");
                if checked {
                    prop_assert!(codecs.decode(&stored, &mut back).is_err() || back == data);
                }
            }
        }
    }
}
