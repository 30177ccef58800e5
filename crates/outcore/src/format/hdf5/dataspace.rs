//! Dataspace messages: the shape of a dataset or attribute.

use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// The shape of a dataset or attribute.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Dataspace {
    /// The extents; none for a single element.
    pub(crate) shape: Vec<u64>,
    /// How far the axes may grow; `u64::MAX` is without limit.
    pub(crate) limits: Vec<u64>,
    /// Whether there is no element at all, not even a shape.
    pub(crate) null: bool,
}

impl Dataspace {
    pub(crate) fn parse(source: &Source, data: &[u8]) -> Parsed<Self> {
        let mut fields = Fields::little("a dataspace", data);
        let version = fields.u8()?;
        let axes = usize::from(fields.u8()?);
        let flags = fields.u8()?;
        let null = match version {
            1 => {
                fields.skip(5)?;
                false
            }
            2 => fields.u8()? == 2,
            _ => return Err(format!("dataspace version {version} is not known").into()),
        };
        if axes > 32 {
            return Err(format!("a dataspace has {axes} axes; at most 32 are possible").into());
        }
        let mut extents =
            || -> Parsed<Vec<u64>> { (0..axes).map(|_| source.length(&mut fields)).collect() };
        let shape = extents()?;
        let limits = match flags & 1 != 0 {
            true => extents()?,
            false => shape.clone(),
        };
        // A limit of all ones, however wide, is none.
        let endless = u64::MAX >> (64 - 8 * source.length_size);
        let limits = limits
            .into_iter()
            .zip(&shape)
            .map(|(limit, extent)| match limit == endless {
                true => u64::MAX,
                false => limit.max(*extent),
            })
            .collect();
        Ok(Self {
            shape,
            limits,
            null,
        })
    }

    /// The number of elements.
    pub(crate) fn count(&self) -> Parsed<u64> {
        if self.null {
            return Ok(0);
        }
        outcore_geometry::element_count(&self.shape).map_err(|error| error.to_string().into())
    }
}
