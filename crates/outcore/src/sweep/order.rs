//! [`SweepOrder`]: in which order an array is gone through, and the steps that
//! follow from it.
//!
//! A step has a *core*, its share of the swept region, and a *section*: the
//! core with the halo around it, as far as the array reaches. The cores are
//! disjoint and together the region.

use outcore_geometry::{AxisSection, Pieces, Section};

/// In which order an array is gone through.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SweepOrder {
    /// Slabs along the slowest axis of the file: the largest contiguous reads.
    Slabs,
    /// Slabs along the given axis.
    Along(usize),
    /// Tiles of the given shape, in the order of the file.
    Tiles(Vec<u64>),
}

/// One step of a sweep.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Step {
    /// What this step is for.
    pub(crate) core: Section,
    /// The core and its halo, inside the array.
    pub(crate) section: Section,
}

/// The steps of a sweep, in order.
#[derive(Debug, Clone)]
pub(crate) struct Steps {
    pub(crate) cores: Pieces,
    /// How far the halo reaches below and above the core, for each axis.
    pub(crate) halo: Vec<(u64, u64)>,
    /// The shape of the array.
    pub(crate) shape: Vec<u64>,
}

impl Iterator for Steps {
    type Item = Step;

    fn next(&mut self) -> Option<Step> {
        let core = self.cores.next()?;
        let section = with_halo(&core, &self.halo, &self.shape);
        Some(Step { core, section })
    }
}

/// `core` and `halo` around it, as far as the array of `shape` reaches. Axes
/// with a halo must have no stride.
fn with_halo(core: &Section, halo: &[(u64, u64)], shape: &[u64]) -> Section {
    let axes = core.axes().iter().zip(halo).zip(shape);
    let axes = axes.map(|((axis, (below, above)), extent)| {
        if (*below, *above) == (0, 0) {
            return axis.clone();
        }
        let (Some(first), Some(last)) = (axis.first(), axis.last()) else {
            return axis.clone();
        };
        let upper = last.saturating_add(1).saturating_add(*above).min(*extent);
        AxisSection::span(first.saturating_sub(*below), upper)
    });
    Section::new(axes.collect()).expect("a section inside an array has at most its elements")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halos_end_at_the_array() {
        let region = Section::parse("2:10, 1:4", &[12, 5]).unwrap();
        let steps = Steps {
            cores: Pieces::of_shape(&region, &[0, 1], &[3, 3]),
            halo: vec![(3, 2), (0, 0)],
            shape: vec![12, 5],
        };
        let found: Vec<(String, String)> = steps
            .map(|step| (step.core.to_string(), step.section.to_string()))
            .collect();
        let wanted = [
            ("2:5, 1:4", "0:7, 1:4"),
            ("5:8, 1:4", "2:10, 1:4"),
            ("8:10, 1:4", "5:12, 1:4"),
        ];
        assert_eq!(found, wanted.map(|(a, b)| (a.into(), b.into())));
    }

    #[test]
    fn a_halo_is_around_what_is_there_not_around_the_bounds() {
        let region = Section::parse("3:10:100", &[12]).unwrap();
        let around = with_halo(&region, &[(1, 1)], &[12]);
        assert_eq!(around.to_string(), "2:5");
    }
}
