//! [`DomainKind`]: the ways to divide a file among ranks, and their names.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// How the file is divided among the ranks that read and write it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum DomainKind {
    /// What is expected to be fastest.
    #[default]
    Auto,
    /// Equal parts of the whole array, whatever is asked for (Thakur 1995,
    /// section 6.3).
    Static,
    /// The same, and each part is read in full: the basic two-phase method,
    /// which reads in the distribution that conforms to the file and
    /// redistributes in memory.
    Conforming,
    /// Equal parts of what lies between the first and the last byte that is
    /// asked for.
    Dynamic,
    /// Blocks of the array dealt out in turn.
    Cyclic,
    /// Whole stripes of a striped store, those of one disk all to one rank.
    Disks,
    /// As `Dynamic`, but for at most so many ranks.
    Few(usize),
    /// Parts of which equally many bytes are asked for.
    Weighted,
}

impl DomainKind {
    /// All of them, `Few` once.
    pub const ALL: [Self; 8] = [
        Self::Auto,
        Self::Static,
        Self::Conforming,
        Self::Dynamic,
        Self::Cyclic,
        Self::Disks,
        Self::Few(1),
        Self::Weighted,
    ];
}

impl fmt::Display for DomainKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Auto => "auto",
            Self::Static => "static",
            Self::Conforming => "conforming",
            Self::Dynamic => "dynamic",
            Self::Cyclic => "cyclic",
            Self::Disks => "disks",
            Self::Few(count) => return f.pad(&format!("few:{count}")),
            Self::Weighted => "weighted",
        })
    }
}

impl FromStr for DomainKind {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self, Error> {
        if let Some(count) = text.strip_prefix("few:") {
            let count = count.parse().ok().filter(|count| *count > 0);
            return count.map(Self::Few).ok_or_else(|| {
                Error::Invalid(format!(
                    "'{text}' does not say how many ranks; few:4 would be four"
                ))
            });
        }
        let named = |kind: &&Self| kind.to_string() == text;
        let found = Self::ALL.iter().find(named);
        found.copied().ok_or_else(|| {
            Error::Invalid(format!(
                "there are no domains '{text}'; the kinds are auto, static, conforming, dynamic, \
                 cyclic, disks, few:COUNT and weighted"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_and_written() {
        for kind in DomainKind::ALL {
            assert_eq!(kind.to_string().parse::<DomainKind>().unwrap(), kind);
        }
        assert_eq!("few:17".parse::<DomainKind>().unwrap(), DomainKind::Few(17));
        for bad in ["", "few", "few:", "few:0", "few:-1", "few:x", "Static"] {
            let error = bad.parse::<DomainKind>().unwrap_err().to_string();
            assert!(
                error.contains("domains") || error.contains("four"),
                "{error}"
            );
        }
    }
}
