//! [`SweepCheckpoints`]: the values of the nodes after some of the steps, in
//! global order, from which any number of ranks goes on.

use outcore::{Array, Checkpoint, Checkpoints, Comm, ElementType, Error, Result, Savable};
use outcore::{Snapshot, shape_text};

use super::copy::copy_nodes;
use super::problem::EdgeSweep;
use crate::resources::Resources;

/// The name of the values in a checkpoint.
const VALUES: &str = "values";

/// Which steps of which sweep are saved where.
#[derive(Debug)]
pub struct SweepCheckpoints<'a> {
    /// Where.
    pub series: Checkpoints,
    /// After how many steps each; also after the last one.
    pub every: u64,
    /// The sweep.
    pub sweep: EdgeSweep,
    /// How many edges the mesh has.
    pub edges: u64,
    /// What copying may use.
    pub resources: &'a Resources<'a>,
}

impl SweepCheckpoints<'_> {
    /// Collective: saves the values after `step` steps, if these are to be saved.
    pub fn after(&self, comm: &Comm, step: u64, values: &Array) -> Result<()> {
        if !step.is_multiple_of(self.every.max(1)) && step != self.sweep.steps {
            return Ok(());
        }
        let values = Values {
            array: values,
            resources: self.resources,
        };
        let state = Snapshot::new()
            .with(VALUES, &values)
            .note("step", step)
            .note("step size", self.sweep.step_size)
            .note("edges", self.edges);
        let name = format!("step-{step:09}");
        self.series.save(comm, &name, &state).map(drop)
    }

    /// Whether there are checkpoints; asks on one rank and tells all.
    pub fn any(&self, comm: &Comm) -> Result<bool> {
        let listed = match comm.rank() {
            0 => self.series.list().map(|entries| !entries.is_empty()),
            _ => Ok(false),
        };
        let any = [u64::from(comm.agree(listed)?)];
        Ok(comm.all_reduce(&any, outcore::Op::Max)?[0] == 1)
    }

    /// Collective: fills `values` from the newest checkpoint that is intact.
    /// Returns how many steps it is after; `None` if there are no checkpoints.
    pub fn restore(&self, comm: &Comm, values: &Array) -> Result<Option<u64>> {
        let found = self.series.newest_intact(comm, &|_| ())?;
        let Some(found) = found else {
            if self.any(comm)? {
                return Err(Error::Format {
                    array: self.series.directory().into(),
                    problem: "every checkpoint here is damaged".into(),
                });
            }
            return Ok(None);
        };
        let step = self.fitting(&found, values)?;
        let saved = found.array(comm, VALUES)?;
        copy_nodes(comm, &saved, values, self.resources)?;
        Ok(Some(step))
    }

    /// The steps after which a checkpoint was saved, if it is one of this sweep.
    fn fitting(&self, found: &Checkpoint, values: &Array) -> Result<u64> {
        let wrong = |problem: String| Error::Format {
            array: found.path().into(),
            problem,
        };
        let number = |name: &str| found.note(name).and_then(|value| value.as_u64());
        let saved = found.arrays().iter().find(|saved| saved.name() == VALUES);
        let (Some(step), Some(edges), Some(saved)) = (number("step"), number("edges"), saved)
        else {
            return Err(wrong("this is no checkpoint of a sweep over edges".into()));
        };
        let mesh = |edges: u64, shape: &[u64], kind: ElementType| {
            format!("{edges} edges and {} {kind} nodes", shape_text(shape))
        };
        let there = mesh(edges, saved.shape(), saved.element_type());
        let here = mesh(self.edges, values.shape(), values.element_type());
        if there != here {
            return Err(wrong(format!(
                "it was saved with {there}, but the mesh has {here}"
            )));
        }
        let size = found.note("step size").and_then(|value| value.as_f64());
        if size != Some(self.sweep.step_size) {
            let size = size.map_or("another one".into(), |size| size.to_string());
            return Err(wrong(format!(
                "it was saved with steps of the length {size}, not {}",
                self.sweep.step_size
            )));
        }
        if step > self.sweep.steps {
            return Err(wrong(format!(
                "it was saved after {step} steps, which is more than the {} asked for",
                self.sweep.steps
            )));
        }
        Ok(step)
    }
}

/// The values of all nodes, which are in a file.
struct Values<'a> {
    array: &'a Array,
    resources: &'a Resources<'a>,
}

impl Savable for Values<'_> {
    fn shape(&self) -> Vec<u64> {
        self.array.shape().to_vec()
    }

    fn element_type(&self) -> ElementType {
        self.array.element_type()
    }

    fn write(&self, comm: &Comm, array: &Array) -> Result<()> {
        copy_nodes(comm, self.array, array, self.resources)
    }
}
