//! Shapes as text (`4096x4096`) and their checked products.

use crate::error::{Error, Result};

/// Writes a shape as `4096x4096`; no axes at all as `scalar`.
pub fn shape_text(shape: &[u64]) -> String {
    if shape.is_empty() {
        return "scalar".into();
    }
    let extents: Vec<String> = shape.iter().map(u64::to_string).collect();
    extents.join("x")
}

/// Reads `4096x4096`, `4096,4096`, `7` or `scalar`.
pub fn parse_shape(text: &str) -> Result<Vec<u64>> {
    if text.trim() == "scalar" {
        return Ok(Vec::new());
    }
    let mut position = 0;
    let mut shape = Vec::new();
    for part in text.split(['x', 'X', ',']) {
        let extent = part.trim().parse::<u64>().map_err(|_| Error::Text {
            what: "shape",
            text: text.into(),
            position,
            problem: format!(
                "'{}' is not a whole number from 0 to {}; write e.g. 4096x4096",
                part.trim(),
                i64::MAX
            ),
        })?;
        shape.push(extent);
        position += part.chars().count() + 1;
    }
    Ok(shape)
}

/// The number of elements of a shape; fails beyond 2^63 - 1.
pub fn element_count(shape: &[u64]) -> Result<u64> {
    checked_product(shape.iter().copied()).ok_or_else(|| {
        Error::Overflow(format!(
            "the number of elements of shape {}",
            shape_text(shape)
        ))
    })
}

/// The product of `factors` if it is below 2^63; zero wins over overflow.
pub(crate) fn checked_product(factors: impl Iterator<Item = u64> + Clone) -> Option<u64> {
    if factors.clone().any(|factor| factor == 0) {
        return Some(0);
    }
    let mut product = 1u64;
    for factor in factors {
        product = product.checked_mul(factor)?;
        if product > i64::MAX as u64 {
            return None;
        }
    }
    Some(product)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_round_trip() {
        for shape in [vec![], vec![7], vec![4096, 4096], vec![0, 3]] {
            assert_eq!(parse_shape(&shape_text(&shape)).unwrap(), shape);
        }
        assert_eq!(parse_shape("2, 3").unwrap(), [2, 3]);
    }

    #[test]
    fn bad_shapes_are_refused() {
        for text in ["", "4x", "-1x4", "4x4.5", "99999999999999999999", "axb"] {
            assert!(parse_shape(text).is_err(), "{text}");
        }
    }

    #[test]
    fn products_are_checked() {
        assert_eq!(element_count(&[]).unwrap(), 1);
        assert_eq!(element_count(&[u64::MAX, 0, u64::MAX]).unwrap(), 0);
        assert!(element_count(&[1 << 32, 1 << 31]).is_err());
        assert_eq!(element_count(&[1 << 31, 1 << 31]).unwrap(), 1 << 62);
    }
}
