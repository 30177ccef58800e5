//! [`CollectiveWay`]: how the sections of all ranks move, and its names.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;
use crate::strategy::Strategy;

/// How the sections of all ranks move.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CollectiveWay {
    /// What is expected to be fastest; the ranks decide together.
    #[default]
    Auto,
    /// Every rank for itself. Where sections that are written overlap, each
    /// rank writes what no higher one does; if that is no small number of
    /// regular parts, two phases are taken.
    Independent(Strategy),
    /// Each rank reads or writes a part of the file, and the ranks exchange.
    TwoPhase,
}

impl CollectiveWay {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Auto,
        Self::Independent(Strategy::Auto),
        Self::Independent(Strategy::Direct),
        Self::Independent(Strategy::Sieving),
        Self::Independent(Strategy::Mapped),
        Self::TwoPhase,
    ];
}

impl fmt::Display for CollectiveWay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Independent(Strategy::Auto) => "independent",
            Self::Independent(strategy) => strategy.name(),
            Self::TwoPhase => "two-phase",
        })
    }
}

impl FromStr for CollectiveWay {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        let named = |way: &Self| way.to_string() == text;
        let found = Self::ALL.into_iter().find(named);
        found.ok_or_else(|| {
            let known = Self::ALL.map(|way| way.to_string());
            Error::Invalid(format!(
                "there is no way '{text}'; the ways are {}",
                known.join(", ")
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for way in CollectiveWay::ALL {
            assert_eq!(way.to_string().parse::<CollectiveWay>().unwrap(), way);
        }
        let error = "both".parse::<CollectiveWay>().unwrap_err().to_string();
        assert!(error.contains("direct") && error.contains("two-phase"));
    }
}
