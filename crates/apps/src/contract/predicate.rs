//! [`Predicate`]: which blocks of a tensor are not zero, by the numbers of their
//! segments.

use std::fmt;
use std::str::FromStr;

use outcore::Error;

/// A rule that says which blocks are not zero. Programs may give any other one as
/// a function of the segment numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Predicate {
    /// All of them.
    #[default]
    All,
    /// Those whose segment numbers have an even sum, as symmetries of molecules
    /// have it.
    Parity,
    /// Those whose segment numbers differ by so many at most.
    Band(usize),
}

impl Predicate {
    /// Whether the block of these segments is not zero.
    pub fn holds(self, segments: &[usize]) -> bool {
        match self {
            Self::All => true,
            Self::Parity => segments.iter().sum::<usize>() % 2 == 0,
            Self::Band(width) => {
                let (least, most) = (segments.iter().min(), segments.iter().max());
                least
                    .zip(most)
                    .is_none_or(|(least, most)| most - least <= width)
            }
        }
    }
}

impl fmt::Display for Predicate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::All => f.write_str("all"),
            Self::Parity => f.write_str("parity"),
            Self::Band(width) => write!(f, "band:{width}"),
        }
    }
}

impl FromStr for Predicate {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let band = text
            .strip_prefix("band:")
            .and_then(|width| width.parse().ok());
        match (text, band) {
            ("all", _) => Ok(Self::All),
            ("parity", _) => Ok(Self::Parity),
            (_, Some(width)) => Ok(Self::Band(width)),
            _ => Err(Error::Invalid(format!(
                "'{text}' is not one of all, parity and band:N"
            ))),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_there_and_back() {
        for text in ["all", "parity", "band:0", "band:12"] {
            assert_eq!(text.parse::<Predicate>().unwrap().to_string(), text);
        }
        for text in ["", "band", "band:x", "odd"] {
            assert!(text.parse::<Predicate>().is_err());
        }
        assert!(Predicate::Band(0).holds(&[]) && Predicate::Band(1).holds(&[3, 2, 3]));
        assert!(!Predicate::Band(1).holds(&[3, 1]) && !Predicate::Parity.holds(&[1, 2]));
    }
}
