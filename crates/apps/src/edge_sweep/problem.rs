//! [`EdgeSweep`]: what is to be done, and which arrays are a mesh.

use outcore::{Array, ElementType, Error, Result, shape_text};

/// The steps of a sweep.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct EdgeSweep {
    /// The steps that are done already.
    pub done: u64,
    /// The steps in all.
    pub steps: u64,
    /// The length of a step: which part of a difference flows along an edge.
    pub step_size: f64,
}

impl EdgeSweep {
    /// Fails unless something can be done.
    pub fn check(&self) -> Result<()> {
        if !self.step_size.is_finite() {
            return Err(Error::Invalid(format!(
                "the length of a step must be a number, not {}",
                self.step_size
            )));
        }
        if self.steps < self.done {
            return Err(Error::Invalid(format!(
                "{} steps are done already, which is more than the {} asked for",
                self.done, self.steps
            )));
        }
        Ok(())
    }
}

/// What a sweep was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Swept {
    /// Which of the two arrays has the result.
    pub holder: usize,
    /// In how many slabs the edges were gone through in the last step.
    pub slabs: u64,
    /// Whether schedules were made once for all steps.
    pub kept: bool,
}

/// Fails unless `edges` are pairs of node numbers and `nodes` have values that
/// can flow. Whether the nodes of all edges exist is found out in a sweep.
pub fn check_mesh(edges: &Array, nodes: &Array) -> Result<()> {
    let numbers = matches!(
        edges.element_type(),
        ElementType::U32 | ElementType::U64 | ElementType::I32 | ElementType::I64
    );
    if edges.shape().len() != 2 || edges.shape()[1] != 2 || !numbers {
        let problem = "edges are pairs of node numbers, of shape Mx2 and type u32, u64, i32 or i64";
        return Err(wrong(edges, format!("{problem}; this is {}", what(edges))));
    }
    check_nodes(nodes)
}

/// Fails unless nodes have values that can flow.
pub(super) fn check_nodes(nodes: &Array) -> Result<()> {
    let values = matches!(nodes.element_type(), ElementType::F32 | ElementType::F64);
    if nodes.shape().is_empty() || !values {
        let problem = "nodes have values of type f32 or f64, one each (shape N) or several (NxC)";
        return Err(wrong(nodes, format!("{problem}; this is {}", what(nodes))));
    }
    Ok(())
}

fn what(array: &Array) -> String {
    format!("{} {}", shape_text(array.shape()), array.element_type())
}

/// Something is wrong with an array.
pub(super) fn wrong(array: &Array, problem: String) -> Error {
    Error::Format {
        array: array.name().into(),
        problem,
    }
}
