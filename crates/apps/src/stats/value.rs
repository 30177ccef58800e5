//! [`Value`]: a number of any element type, integers without rounding.

use std::cmp::Ordering;
use std::fmt;

/// A number: of integer arrays exact, of others as a float.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value {
    /// Of an array of integers or of bool.
    Integer(i128),
    /// Of an array of floats; the modulus of a complex number.
    Real(f64),
}

impl Value {
    /// As a float, rounded if it must be.
    pub fn as_f64(self) -> f64 {
        match self {
            Self::Integer(value) => value as f64,
            Self::Real(value) => value,
        }
    }

    /// How two values of one array compare; none is a NaN.
    pub(crate) fn order(self, other: Self) -> Ordering {
        match (self, other) {
            (Self::Integer(a), Self::Integer(b)) => a.cmp(&b),
            (a, b) => a
                .as_f64()
                .partial_cmp(&b.as_f64())
                .unwrap_or(Ordering::Equal),
        }
    }

    /// In three words, for messages.
    pub(crate) fn words(self) -> [u64; 3] {
        match self {
            Self::Integer(value) => [0, value as u64, (value >> 64) as u64],
            Self::Real(value) => [1, value.to_bits(), 0],
        }
    }

    pub(crate) fn of_words(words: &[u64]) -> Self {
        match words[0] {
            0 => Self::Integer(i128::from(words[1]) | (i128::from(words[2]) << 64)),
            _ => Self::Real(f64::from_bits(words[1])),
        }
    }
}

/// The shortest text that reads back as the same number.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Integer(value) => value.fmt(f),
            Self::Real(value) => real(*value, f),
        }
    }
}

fn real(value: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = value.abs();
    if size != 0.0 && size.is_finite() && !(1e-5..1e16).contains(&size) {
        write!(f, "{value:e}")
    } else {
        write!(f, "{value}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_and_texts() {
        for value in [
            Value::Integer(i128::MIN),
            Value::Integer(-1),
            Value::Integer(1 << 70),
            Value::Real(-0.1),
            Value::Real(f64::INFINITY),
        ] {
            assert_eq!(Value::of_words(&value.words()), value);
        }
        assert_eq!(Value::Real(0.25).to_string(), "0.25");
        assert_eq!(Value::Real(1e300).to_string(), "1e300");
        assert_eq!(Value::Integer(-7).to_string(), "-7");
        assert_eq!(
            Value::Integer(i128::from(u64::MAX)).order(Value::Integer(3)),
            Ordering::Greater
        );
    }
}
