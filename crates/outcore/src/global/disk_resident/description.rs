//! What the parts of a disk-resident array say of the whole, among the attributes
//! of each: so every part can be told from those of other arrays, and any later
//! program with a rank for each part opens the array again.

use outcore_geometry::Distribution;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::options::Unwritten;
use super::spread::{Blocks, Spread};
use crate::error::{Error, Result};

/// The attribute's name.
pub(crate) const ATTRIBUTE: &str = "disk_resident";

/// What all parts say alike.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Description {
    /// The same for all parts of an array, and for no other.
    pub(crate) id: String,
    pub(crate) shape: Vec<u64>,
    pub(crate) parts: usize,
    #[serde(rename = "type")]
    pub(crate) element_type: String,
    spread: Written,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) block: Option<Vec<u64>>,
    unwritten: String,
}

/// A spread as it is written.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase", deny_unknown_fields)]
enum Written {
    Distribution {
        kinds: String,
        grid: Vec<u64>,
    },
    Blocks {
        lengths: Vec<Vec<u64>>,
        parts: Vec<Option<usize>>,
    },
}

impl Description {
    pub(crate) fn new(
        id: String,
        spread: &Spread,
        element_type: String,
        block: Option<Vec<u64>>,
        unwritten: Unwritten,
    ) -> Self {
        Self {
            id,
            shape: spread.shape().to_vec(),
            parts: spread.parts(),
            element_type,
            spread: match spread {
                Spread::Distribution(distribution) => Written::Distribution {
                    kinds: distribution.to_string(),
                    grid: distribution.grid().to_vec(),
                },
                Spread::Blocks(blocks) => Written::Blocks {
                    lengths: blocks.lengths(),
                    parts: blocks.owners(),
                },
            },
            block,
            unwritten: unwritten.name().into(),
        }
    }

    /// The attribute of part `part`.
    pub(crate) fn attribute(&self, part: usize) -> Result<Value> {
        let text = serde_json::to_value((part, self));
        text.map_err(|error| Error::Invalid(format!("the array cannot be described: {error}")))
    }

    /// Reads the attribute of a part of `array`.
    pub(crate) fn read(array: &str, attribute: Option<&Value>) -> Result<(usize, Self)> {
        let attribute = attribute.ok_or_else(|| {
            Error::format(array, "this array is not part of a disk-resident array")
        })?;
        serde_json::from_value(attribute.clone()).map_err(|error| {
            Error::format(
                array,
                format!("its attribute '{ATTRIBUTE}' is wrong: {error}"),
            )
        })
    }

    pub(crate) fn to_text(&self) -> Result<String> {
        serde_json::to_string(self)
            .map_err(|error| Error::Invalid(format!("the array cannot be described: {error}")))
    }

    pub(crate) fn from_text(text: &str) -> Result<Self> {
        serde_json::from_str(text)
            .map_err(|error| Error::Invalid(format!("a description cannot be read: {error}")))
    }

    /// Refuses blocks that the array cannot be kept in.
    pub(crate) fn check_block(&self) -> Result<()> {
        let axes = self.shape.len();
        match &self.block {
            Some(block) if block.len() != axes || block.contains(&0) => {
                Err(Error::Invalid(format!(
                    "blocks of {block:?} do not fit an array of {:?}: {axes} extents are needed, \
                     none of them 0",
                    self.shape
                )))
            }
            _ => Ok(()),
        }
    }

    /// Which part holds which element.
    pub(crate) fn spread(&self) -> Result<Spread> {
        let spread = match &self.spread {
            Written::Distribution { kinds, grid } => {
                let parts = self.parts as u64;
                Distribution::parse(kinds, &self.shape, parts, Some(grid))
                    .map_err(Error::geometry("a disk-resident array"))?
                    .into()
            }
            Written::Blocks { lengths, parts } => {
                Spread::from(Blocks::given(lengths, self.parts, parts)?)
            }
        };
        match spread.shape() == self.shape {
            true => Ok(spread),
            false => Err(Error::Invalid(
                "the blocks of a disk-resident array do not make up its shape".into(),
            )),
        }
    }

    pub(crate) fn unwritten(&self) -> Unwritten {
        match self.unwritten == Unwritten::Error.name() {
            true => Unwritten::Error,
            false => Unwritten::Zeros,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spreads_are_read_as_they_were_written() {
        let distribution = Distribution::parse("cyclic(3),block", &[10, 20], 6, None).unwrap();
        let lengths = [vec![3, 4], vec![5, 6, 7]];
        let blocks = Blocks::new(&lengths, 2, |at| (at[1] > 0).then_some(at[0] as usize)).unwrap();
        for spread in [Spread::from(distribution), Spread::from(blocks)] {
            let unwritten = Unwritten::Error;
            let text = Description::new("x".into(), &spread, "f64".into(), None, unwritten);
            let attribute = text.attribute(1).unwrap();
            let (part, read) = Description::read("a", Some(&attribute)).unwrap();
            assert_eq!((part, &read), (1, &text));
            assert_eq!(read.spread().unwrap(), spread);
            assert_eq!(
                Description::from_text(&text.to_text().unwrap()).unwrap(),
                text
            );
            assert_eq!(read.unwritten(), unwritten);
        }
        assert!(Description::read("a", None).is_err());
    }
}
