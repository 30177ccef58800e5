//! Codecs of one format as another has them: what `convert` makes of the codecs of
//! its input if nobody names others.

use super::{BloscShuffle, Codec, Codecs};

/// The level of deflate that stands for other compressors.
const USUAL_LEVEL: u8 = 4;

impl Codecs {
    /// The nearest that every HDF5 library reads: shuffle, deflate, fletcher32.
    pub fn in_hdf5(&self) -> Self {
        let (mut shuffle, mut deflate, mut sum) = (false, None, false);
        for step in self.steps() {
            match step {
                Codec::Shuffle { .. } => shuffle = true,
                Codec::Deflate { level } | Codec::Gzip { level } => deflate = Some(*level),
                Codec::Crc32c | Codec::Fletcher32 => sum = true,
                Codec::Blosc(blosc) => {
                    shuffle |= blosc.shuffle != BloscShuffle::None;
                    deflate = Some(USUAL_LEVEL);
                }
                Codec::Zstd { .. } | Codec::Lz4 | Codec::Lzf => deflate = Some(USUAL_LEVEL),
            }
        }
        let shuffle = shuffle.then_some(Codec::Shuffle { width: 0 });
        let deflate = deflate.map(|level| Codec::Deflate { level });
        let sum = sum.then_some(Codec::Fletcher32);
        Self([shuffle, deflate, sum].into_iter().flatten().collect())
    }

    /// The same for Zarr 2, which has all but LZF, and reads checksums that come last.
    pub fn in_zarr2(&self) -> Self {
        let steps = self.steps().iter().map(|step| match step {
            Codec::Lzf => Codec::Lz4,
            other => *other,
        });
        let is_sum = |step: &Codec| matches!(step, Codec::Fletcher32 | Codec::Crc32c);
        let (sums, others): (Vec<_>, Vec<_>) = steps.partition(is_sum);
        Self([others, sums].concat())
    }

    /// The nearest that every library of Zarr 3 reads: deflate in the form of gzip,
    /// CRC32C instead of Fletcher's checksum; shuffle is left to compressors that have
    /// it themselves.
    pub fn in_zarr3(&self) -> Self {
        let steps = self.steps().iter().filter_map(|step| match step {
            Codec::Shuffle { .. } => None,
            Codec::Deflate { level } => Some(Codec::Gzip { level: *level }),
            Codec::Lzf => Some(Codec::Gzip { level: USUAL_LEVEL }),
            Codec::Fletcher32 => Some(Codec::Crc32c),
            other => Some(*other),
        });
        Self(steps.collect())
    }

    /// The steps in the order in which HDF5 applies its filters, whatever that of the
    /// text is: shuffle, what compresses, checksum. Fails if a step is no filter.
    pub(crate) fn as_filters(&self) -> Result<Self, String> {
        let rank = |step: &Codec| match step {
            Codec::Shuffle { .. } => Ok(0),
            Codec::Deflate { .. } | Codec::Zstd { .. } => Ok(1),
            Codec::Fletcher32 => Ok(2),
            other => Err(format!(
                "new HDF5 files have no filter '{other}'; theirs are shuffle, deflate:LEVEL, \
                 zstd:LEVEL and fletcher32, as in shuffle,deflate:4"
            )),
        };
        let mut ranked = Vec::new();
        for step in self.steps() {
            ranked.push((rank(step)?, *step));
        }
        ranked.sort_by_key(|(rank, _)| *rank);
        if ranked.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(format!("'{self}' names a filter twice"));
        }
        Ok(Self(ranked.into_iter().map(|(_, step)| step).collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn codecs(text: &str) -> Codecs {
        text.parse().unwrap()
    }

    #[test]
    fn codecs_are_translated() {
        for (text, hdf5, zarr) in [
            ("none", "none", "none"),
            ("gzip:7,crc32c", "deflate:7,fletcher32", "gzip:7,crc32c"),
            (
                "blosc:lz4:5:shuffle",
                "shuffle,deflate:4",
                "blosc:lz4:5:shuffle",
            ),
            (
                "shuffle,deflate:1,fletcher32",
                "shuffle,deflate:1,fletcher32",
                "gzip:1,crc32c",
            ),
            ("zstd:3", "deflate:4", "zstd:3"),
        ] {
            assert_eq!(codecs(text).in_hdf5().to_string(), hdf5);
            assert_eq!(codecs(text).in_zarr3().to_string(), zarr);
        }
    }

    /// As NetCDF-4 applies them.
    #[test]
    fn checksums_come_last() {
        let filters = codecs("fletcher32,shuffle,deflate:4");
        assert_eq!(
            filters.in_zarr2().to_string(),
            "shuffle,deflate:4,fletcher32"
        );
    }

    #[test]
    fn lzf_is_of_hdf5_alone() {
        let lzf = Codecs(vec![Codec::Shuffle { width: 4 }, Codec::Lzf]);
        assert_eq!(lzf.in_hdf5().to_string(), "shuffle,deflate:4");
        assert_eq!(lzf.in_zarr2().to_string(), "shuffle,lz4");
        assert_eq!(lzf.in_zarr3().to_string(), "gzip:4");
        assert!(lzf.as_filters().unwrap_err().contains("'lzf'"));
    }

    #[test]
    fn filters_have_an_order() {
        let ordered = codecs("fletcher32,deflate:4,shuffle").as_filters();
        assert_eq!(ordered.unwrap().to_string(), "shuffle,deflate:4,fletcher32");
        assert!(codecs("lz4").as_filters().unwrap_err().contains("'lz4'"));
        assert!(codecs("shuffle,shuffle").as_filters().is_err());
    }
}
