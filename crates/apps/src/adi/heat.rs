//! [`solve_heat`]: time steps of the heat equation, pass by pass.

use outcore::{Array, Comm, Error, Result};

use super::kernel::Implicit;
use crate::file_order::{check_alike, in_file_order};
use crate::float::Float;
use crate::lines::{LineKernel, LinePass, Piece};
use crate::resources::Resources;

/// What is to be solved.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Heat {
    /// The time steps.
    pub steps: u64,
    /// The length of a step, in the time in which heat crosses an element:
    /// `a dt / h^2`.
    pub ratio: f64,
}

impl Heat {
    fn check(&self, name: &str, shape: &[u64]) -> Result<()> {
        let wrong = |problem: String| Err(Error::Invalid(problem));
        if self.steps == 0 {
            return wrong("0 steps would change nothing; 1 is the least".into());
        }
        if !(self.ratio.is_finite() && self.ratio > 0.0) {
            return wrong(format!(
                "the ratio a dt / h^2 must be a number larger than 0, not {}",
                self.ratio
            ));
        }
        if shape.is_empty() {
            return wrong(format!(
                "{name} has no axes, so heat cannot go anywhere in it"
            ));
        }
        Ok(())
    }

    /// The passes: an axis of `axes`, and how many steps are done along it.
    fn passes(&self, axes: &[usize]) -> Vec<(usize, u64)> {
        let mut passes: Vec<(usize, u64)> = Vec::new();
        for step in 0..self.steps {
            let mut order = axes.to_vec();
            if step % 2 == 1 {
                order.reverse();
            }
            for axis in order {
                match passes.last_mut() {
                    Some((last, times)) if *last == axis => *times += 1,
                    _ => passes.push((axis, 1)),
                }
            }
        }
        passes
    }
}

/// Collective: `target` becomes what `source` is after some time. The outermost
/// elements keep their values. Returns the number of passes over the files.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// use outcore_apps::Resources;
/// use outcore_apps::adi::{Heat, solve_heat};
/// # let directory = tempfile::tempdir()?;
/// # let name = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
/// let descriptor = ArrayDescriptor::new(&[64, 48], ElementType::F64);
/// let plate = Array::create(&name("plate.oc"), &descriptor)?;
/// let later = Array::create(&name("later.oc"), &descriptor)?;
/// plate.write(&plate.section("32, 24")?, &[1.0f64])?;
/// let heat = Heat { steps: 10, ratio: 0.5 };
/// let passes = outcore::run(2, |comm| {
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     solve_heat(comm, &plate, &later, &heat, &resources)
/// })?;
/// assert_eq!(passes, [11, 11]);
/// let sum: f64 = later.read::<f64>(&later.whole())?.iter().sum();
/// assert!((sum - 1.0).abs() < 1e-3); // The edges are far away.
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn solve_heat(
    comm: &Comm,
    source: &Array,
    target: &Array,
    heat: &Heat,
    resources: &Resources<'_>,
) -> Result<u64> {
    heat.check(source.name(), source.shape())?;
    check_alike(source, target)?;
    match source.element_type() {
        outcore::ElementType::F32 => solve::<f32>(comm, (source, target), heat, resources),
        outcore::ElementType::F64 => solve::<f64>(comm, (source, target), heat, resources),
        other => Err(Error::Invalid(format!(
            "{} holds {other} elements; heat is computed in f32 or f64",
            source.name()
        ))),
    }
}

fn solve<T: Float>(
    comm: &Comm,
    (source, target): (&Array, &Array),
    heat: &Heat,
    resources: &Resources<'_>,
) -> Result<u64> {
    // The fastest axis first: its lines are in one piece.
    let axes: Vec<usize> = source
        .layout()
        .slowest_first()
        .iter()
        .rev()
        .copied()
        .collect();
    let passes = heat.passes(&axes);
    let from = |number: usize| if number == 0 { source } else { target };
    let kernel = |from: &Array, (axis, times): (usize, u64)| {
        let order = from.layout().slowest_first();
        let place = order.iter().position(|other| *other == axis);
        let place = place.expect("the order has every axis");
        let whole = in_file_order(from, from.shape());
        Implicit::<T>::new(place, whole, (heat.ratio, times))
    };
    // 1. The memory that any pass needs; later ones are like those of two steps.
    let mut need = 0;
    for (number, pass) in passes.iter().enumerate().take(2 * axes.len()) {
        let source = from(number);
        let lines = LinePass {
            source,
            target,
            axes: &[pass.0],
        };
        need = need.max(lines.least_need(comm, &kernel(source, *pass)));
    }
    let budget = resources.enough(comm, "the heat equation", |_| need)?;
    // 2. Pass after pass; all but the first in place.
    for (number, pass) in passes.iter().enumerate() {
        let source = from(number);
        let lines = LinePass {
            source,
            target,
            axes: &[pass.0],
        };
        lines.run(comm, &mut kernel(source, *pass), (&budget, resources))?;
    }
    Ok(passes.len() as u64)
}

/// The same on an array in memory, whose last axis is the fastest.
pub fn heat_in_memory<T: Float>(values: &mut [T], shape: &[u64], heat: &Heat) -> Result<()> {
    heat.check("the array in memory", shape)?;
    let axes: Vec<usize> = (0..shape.len()).rev().collect();
    let extents: Vec<usize> = shape.iter().map(|extent| *extent as usize).collect();
    let mut old = values.to_vec();
    for (axis, times) in heat.passes(&axes) {
        let mut kernel = Implicit::<T>::new(axis, shape.to_vec(), (heat.ratio, times));
        old.copy_from_slice(values);
        let piece = Piece {
            values: &old,
            shape: &extents,
            start: &vec![0; shape.len()],
        };
        kernel.apply(&piece, values);
    }
    Ok(())
}
