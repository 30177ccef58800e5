//! [`Problem`]: what is to be solved, [`Solution`]: how it ended, and how sweeps
//! are divided into passes.

use outcore::{ElementType, Error, Result};

use super::grid::Edges;

/// Fused beyond this, more sweeps save little: a pass costs about as much as
/// some sweeps, and convergence is tested only between passes.
const MOST_FUSED: u64 = 32;

/// More sweeps in one pass are not believed, so that numbers of planes cannot
/// overflow; the memory allows far fewer.
const MOST_ASKED: u64 = 1 << 32;

/// What is to be solved.
#[derive(Debug, Clone)]
pub struct Problem {
    /// The most Jacobi sweeps to do.
    pub sweeps: u64,
    /// Stop after a pass whose last sweep changed no element by more.
    pub tolerance: Option<f64>,
    /// What happens at the edges of the array.
    pub edges: Edges,
    /// Sweeps in one pass; chosen by the memory if `None`.
    pub fuse: Option<u64>,
}

/// How it ended.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Solution {
    /// The sweeps done.
    pub sweeps: u64,
    /// The passes over the files in which they were done.
    pub passes: u64,
    /// The largest change of an element in the last sweep; NaN if a value was
    /// not a number.
    pub change: f64,
    /// Which of the two arrays holds the result.
    pub holder: usize,
}

impl Problem {
    /// So many sweeps between fixed edges.
    pub fn new(sweeps: u64) -> Self {
        Self {
            sweeps,
            tolerance: None,
            edges: Edges::Fixed,
            fuse: None,
        }
    }

    /// Fails unless it can be solved on the array `name` of this shape.
    pub(super) fn check(&self, name: &str, shape: &[u64]) -> Result<()> {
        let wrong = |problem: String| Err(Error::Invalid(problem));
        if self.sweeps == 0 {
            return wrong("0 sweeps would change nothing; 1 is the least".into());
        }
        check_fused(self.fuse.unwrap_or(1).min(self.sweeps))?;
        if let Some(tolerance) = self.tolerance
            && (tolerance.is_nan() || tolerance < 0.0)
        {
            return wrong(format!(
                "the tolerance must be 0 or larger, not {tolerance}"
            ));
        }
        if shape.is_empty() {
            return wrong(format!(
                "{name} has no axes, so its one element has no neighbours"
            ));
        }
        Ok(())
    }

    /// The sweeps of a pass, all passes alike as far as possible: at most
    /// `most`, which the memory or the overlap areas allow.
    pub(super) fn fused(&self, most: u64) -> u64 {
        let wanted = self.fuse.unwrap_or(MOST_FUSED).min(self.sweeps);
        let fused = wanted.min(most).max(1);
        match self.fuse {
            Some(_) => fused,
            None => self.sweeps.div_ceil(self.sweeps.div_ceil(fused)),
        }
    }

    /// Whether a pass with this largest change was the last.
    pub(super) fn is_converged(&self, change: f64) -> bool {
        self.tolerance.is_some_and(|tolerance| change <= tolerance)
    }
}

/// Fails if so many sweeps in a pass are nonsense.
pub(super) fn check_fused(sweeps: u64) -> Result<()> {
    if (1..=MOST_ASKED).contains(&sweeps) {
        return Ok(());
    }
    Err(Error::Invalid(format!(
        "{sweeps} sweeps in a pass are not possible; from 1 to {MOST_ASKED} are"
    )))
}

pub(super) fn wrong_type(name: &str, element_type: ElementType) -> Error {
    Error::Invalid(format!(
        "{name} holds {element_type} elements; Laplace's equation is solved for f32 and f64"
    ))
}
