//! [`Way`]: how outcore moves the sections of all ranks.

use std::fmt;

use outcore::{Array, Collective, CollectiveWay, DomainKind, Strategy};

/// How outcore moves the sections of all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// What it chooses itself.
    Auto,
    /// Every rank for itself.
    Independent(Strategy),
    /// The extended two-phase method.
    TwoPhase(DomainKind),
}

impl Way {
    /// All that every array allows; of two-phase with few domains, that with
    /// two.
    pub fn all() -> Vec<Self> {
        let alone = [Strategy::Direct, Strategy::Sieving, Strategy::Mapped];
        let kinds = [
            DomainKind::Static,
            DomainKind::Conforming,
            DomainKind::Dynamic,
            DomainKind::Cyclic,
            DomainKind::Few(2),
            DomainKind::Weighted,
        ];
        let alone = alone.into_iter().map(Self::Independent);
        let together = kinds.into_iter().map(Self::TwoPhase);
        [Self::Auto]
            .into_iter()
            .chain(alone)
            .chain(together)
            .collect()
    }
}

impl Way {
    /// Calls that move sections so.
    pub(super) fn calls(self, array: &Array) -> Collective<'_> {
        let calls = array.collective();
        match self {
            Self::Auto => calls,
            Self::Independent(strategy) => calls.way(CollectiveWay::Independent(strategy)),
            Self::TwoPhase(kind) => calls.way(CollectiveWay::TwoPhase).domains(kind),
        }
    }
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Auto => f.pad("auto"),
            Self::Independent(strategy) => f.pad(strategy.name()),
            Self::TwoPhase(kind) => f.pad(&format!("two-phase/{kind}")),
        }
    }
}
