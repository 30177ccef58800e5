//! [`ArrayDescriptor`]: what must be known of an array to find its elements.
//!
//! The out-of-core array descriptor (OCAD) of Thakur 1995, section 5.4.1, as
//! far as it belongs to the file: global shape, element type, storage order,
//! placement. [`crate::LocalDescriptor`] is all of it, as one rank sees it.

use std::path::PathBuf;

use outcore_geometry::{Arrangement, Layout, element_count};
use outcore_storage::CheckedStore;
use serde_json::{Map, Value};

use crate::codec::Codecs;
use crate::element::{ByteOrder, ElementType};
use crate::error::{Error, Result};
use crate::format::zarr::fill_bytes;
use crate::placement::LocalPlacement;
use crate::placement::parts::Parts;

/// What must be known of an array to find its elements in its files.
///
/// ```
/// use outcore::{ArrayDescriptor, ElementType};
/// let descriptor = ArrayDescriptor::new(&[4096, 4096], ElementType::F32)
///     .layout("tiled:64x64".parse()?)
///     .attribute("units", "kelvin");
/// assert_eq!(descriptor.byte_len()?, 64 << 20);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ArrayDescriptor {
    /// The extent of each axis.
    pub shape: Vec<u64>,
    /// The type of the elements.
    pub element_type: ElementType,
    /// The byte order in the file.
    pub byte_order: ByteOrder,
    /// The order of the elements in the file.
    pub arrangement: Arrangement,
    /// How the data are spread over directories; one file if `None`.
    pub stripes: Option<Stripes>,
    /// How the data are spread over one file a rank; one file if `None`.
    pub local: Option<LocalPlacement>,
    /// How chunks are encoded, in formats that have chunks (which are the tiles of
    /// the arrangement); none leaves them as they are.
    pub codecs: Codecs,
    /// The shape of what is stored together as one object, if that is several
    /// chunks (a shard of Zarr).
    pub shard: Option<Vec<u64>>,
    /// What elements hold that nobody has written; zero if `None`.
    pub fill_value: Option<Value>,
    /// The bytes of a block with a checksum; none are kept if `None`.
    pub checksums: Option<u64>,
    /// The names of the axes, if they have some.
    pub axis_names: Option<Vec<String>>,
    /// Whatever the user wants to keep with the array.
    pub attributes: Map<String, Value>,
}

/// Arrays of more axes are taken for damaged; NetCDF has the same limit.
const MOST_AXES: usize = 1024;

/// Data spread over several directories, which usually lie on several disks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stripes {
    /// The bytes that stay together.
    pub unit: u64,
    /// One directory a disk, absolute.
    pub directories: Vec<PathBuf>,
}

impl ArrayDescriptor {
    /// A row-major array in this machine's byte order, in one file.
    pub fn new(shape: &[u64], element_type: ElementType) -> Self {
        Self {
            shape: shape.to_vec(),
            element_type,
            byte_order: ByteOrder::NATIVE,
            arrangement: Arrangement::default(),
            stripes: None,
            local: None,
            codecs: Codecs::default(),
            shard: None,
            fill_value: None,
            checksums: None,
            axis_names: None,
            attributes: Map::new(),
        }
    }

    /// With the elements in this order.
    pub fn layout(mut self, arrangement: Arrangement) -> Self {
        self.arrangement = arrangement;
        self
    }

    /// With this byte order in the file.
    pub fn byte_order(mut self, byte_order: ByteOrder) -> Self {
        self.byte_order = byte_order;
        self
    }

    /// With the data striped over directories.
    pub fn striped(mut self, stripes: Stripes) -> Self {
        self.stripes = Some(stripes);
        self
    }

    /// With one file a rank.
    pub fn placed(mut self, placement: LocalPlacement) -> Self {
        self.local = Some(placement);
        self
    }

    /// With the elements converted to another type: without a fill value, and without a
    /// `_FillValue` that is no number of the new type.
    pub fn converted(mut self, element_type: ElementType) -> Self {
        if element_type != self.element_type {
            self.fill_value = None;
            let fits = |value: &Value| fill_bytes(value, element_type, ByteOrder::NATIVE).is_ok();
            self.attributes
                .retain(|name, value| name != "_FillValue" || fits(value));
        }
        self.element_type = element_type;
        self.codecs = self.codecs.for_elements(element_type.size() as usize);
        self
    }

    /// Whether elements that nobody has written are zero in every format.
    pub fn begins_with_zeros(&self) -> bool {
        let zero = |value: &Value| {
            let bytes = fill_bytes(value, self.element_type, self.byte_order);
            bytes.is_ok_and(|bytes| bytes.iter().all(|byte| *byte == 0))
        };
        self.fill_value.as_ref().is_none_or(zero)
    }

    /// With chunks encoded so.
    pub fn codecs(mut self, codecs: Codecs) -> Self {
        self.codecs = codecs;
        self
    }

    /// With so many elements along each axis stored as one object.
    pub fn sharded(mut self, shape: &[u64]) -> Self {
        self.shard = Some(shape.to_vec());
        self
    }

    /// With a checksum for each block of so many bytes of the file; if `None`, for
    /// each tile of 4 KiB to 1 MiB, or else for 256 KiB.
    pub fn checksummed(mut self, block: Option<u64>) -> Self {
        let tile = self.arrangement.tile.as_ref().and_then(|tile| {
            let mut extents = tile.iter();
            let bytes = extents.try_fold(self.element_type.size(), |all, n| all.checked_mul(*n))?;
            (4 << 10..=1 << 20).contains(&bytes).then_some(bytes)
        });
        self.checksums = Some(block.or(tile).unwrap_or(256 << 10));
        self
    }

    /// With an attribute.
    pub fn attribute(mut self, name: impl Into<String>, value: impl Into<Value>) -> Self {
        self.attributes.insert(name.into(), value.into());
        self
    }

    /// What describes the transposed array: axis `k` is axis `axes[k]` of this
    /// one. The order in the file is called the same (`row` stays `row`); tiles are
    /// turned with the array. It is placed in one file.
    pub fn transposed(&self, axes: &[usize]) -> Result<Self> {
        check_permutation(axes, self.shape.len())?;
        let mut turned = self.clone();
        turned.shape = permuted(&self.shape, axes);
        let tile = &self.arrangement.tile;
        turned.arrangement.tile = tile.as_ref().map(|tile| permuted(tile, axes));
        turned.axis_names = self.axis_names.as_ref().map(|names| permuted(names, axes));
        turned.shard = self.shard.as_ref().map(|shard| permuted(shard, axes));
        (turned.stripes, turned.local) = (None, None);
        Ok(turned)
    }

    /// The number of elements.
    pub fn element_count(&self) -> Result<u64, outcore_geometry::Error> {
        element_count(&self.shape)
    }

    /// The number of bytes of the data, padding of edge tiles included.
    pub fn byte_len(&self) -> Result<u64, outcore_geometry::Error> {
        Ok(self.to_layout()?.byte_len())
    }

    /// Where each element stands.
    pub(crate) fn to_layout(&self) -> Result<Layout, outcore_geometry::Error> {
        Layout::arranged(&self.shape, self.element_type.size(), &self.arrangement)
    }

    /// Fails if the data are to be spread over several files, which `kind` ("a Zarr
    /// array") cannot be.
    pub(crate) fn check_in_one_place(&self, kind: &str) -> Result<(), String> {
        match (&self.stripes, &self.local) {
            (None, None) => Ok(()),
            _ => Err(format!(
                "{kind} is neither striped nor placed locally; use a name ending in .oc"
            )),
        }
    }

    /// Fails unless the data could exist; `array` names it in the message.
    pub(crate) fn check(&self, array: &str) -> Result<Layout> {
        let axes = self.shape.len();
        if axes > MOST_AXES {
            return Err(Error::format(
                array,
                format!("it has {axes} axes, and more than {MOST_AXES} are not believed"),
            ));
        }
        if let Some(stripes) = &self.stripes {
            if stripes.unit == 0 {
                return Err(Error::format(
                    array,
                    "the stripe unit must be at least 1 byte, not 0",
                ));
            }
            if stripes.directories.is_empty() {
                return Err(Error::format(
                    array,
                    "striping needs at least one directory",
                ));
            }
        }
        if let Some(problem) = self.checksums.and_then(CheckedStore::problem_of) {
            return Err(Error::format(array, problem));
        }
        if self.checksums.is_some() && self.local.is_some() {
            return Err(Error::format(
                array,
                "checksums are kept for arrays in one file or in stripes, not for one file a rank",
            ));
        }
        let layout = self.to_layout().map_err(Error::geometry(array))?;
        if let Some(placement) = &self.local {
            Parts::new(placement, self).map_err(|problem| Error::format(array, problem))?;
        }
        Ok(layout)
    }
}

/// What belongs to axis `axes[k]` in place `k`.
pub(crate) fn permuted<T: Clone>(of_axes: &[T], axes: &[usize]) -> Vec<T> {
    axes.iter().map(|axis| of_axes[*axis].clone()).collect()
}

/// Fails unless `axes` names each of `count` axes once.
pub(crate) fn check_permutation(axes: &[usize], count: usize) -> Result<()> {
    let mut sorted = axes.to_vec();
    sorted.sort_unstable();
    if sorted.iter().copied().eq(0..count) {
        return Ok(());
    }
    let given: Vec<String> = axes.iter().map(usize::to_string).collect();
    Err(Error::Invalid(format!(
        "the axes {} must name each of the {count} axes of the array once, from 0 on",
        given.join(",")
    )))
}
