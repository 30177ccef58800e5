//! [`Body`]: what a plan does in one way or the other.

use super::independent::Independent;
use super::request::Request;
use super::two_phase::TwoPhase;

/// What one rank does, in one of the ways.
#[derive(Debug)]
pub(super) enum Body {
    Independent(Box<Independent>),
    TwoPhase(Box<TwoPhase>),
}

impl Body {
    /// What this rank asks for.
    pub(super) fn own(&self) -> &Request {
        match self {
            Self::Independent(alone) => alone.own(),
            Self::TwoPhase(plan) => plan.own(),
        }
    }

    /// The memory that it takes, and the least with which it could do.
    pub(super) fn need(&self) -> (u64, u64) {
        match self {
            Self::Independent(alone) => (alone.need(), 0),
            Self::TwoPhase(plan) => plan.need(),
        }
    }
}
