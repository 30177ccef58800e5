//! [`Window`]: how far the neighbourhood of an element reaches.

use std::fmt;
use std::str::FromStr;

use outcore::{Error, Result, parse_shape, shape_text};

/// An odd number of elements along each axis, with the element in the middle.
///
/// ```
/// use outcore_apps::median::Window;
/// let window: Window = "3x5".parse()?;
/// assert_eq!(window.reach(), [1, 2]);
/// window.check(&[100, 100])?;
/// assert!("3x4".parse::<Window>().is_err());
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Window {
    extents: Vec<u64>,
}

impl Window {
    /// A window of these extents, which must be odd.
    pub fn new(extents: &[u64]) -> Result<Self> {
        if let Some(even) = extents.iter().find(|extent| *extent % 2 == 0) {
            return Err(Error::Invalid(format!(
                "window {} has an even extent, {even}; each must be odd, so that an element is in \
                 the middle",
                shape_text(extents)
            )));
        }
        let extents = extents.to_vec();
        Ok(Self { extents })
    }

    /// The extent along each axis.
    pub fn extents(&self) -> &[u64] {
        &self.extents
    }

    /// How far it reaches to either side of its middle, along each axis.
    pub fn reach(&self) -> Vec<u64> {
        self.extents.iter().map(|extent| extent / 2).collect()
    }

    /// Fails unless it has as many axes as an array of `shape` and is nowhere
    /// larger.
    pub fn check(&self, shape: &[u64]) -> Result<()> {
        if self.extents.len() != shape.len() {
            return Err(Error::Invalid(format!(
                "window {self} has {} axes, but the array, {}, has {}; give an extent for each",
                self.extents.len(),
                shape_text(shape),
                shape.len()
            )));
        }
        let mut pairs = self.extents.iter().zip(shape).enumerate();
        if let Some((axis, (wide, extent))) = pairs.find(|(_, (wide, extent))| wide > extent) {
            return Err(Error::Invalid(format!(
                "window {self} is larger than the array, {}: {wide} elements along axis {axis}, \
                 which has {extent}",
                shape_text(shape)
            )));
        }
        Ok(())
    }
}

impl FromStr for Window {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let extents = parse_shape(text).map_err(|error| Error::Invalid(error.to_string()))?;
        Self::new(&extents)
    }
}

impl fmt::Display for Window {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&shape_text(&self.extents))
    }
}
