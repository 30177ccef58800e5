//! `outcore edge-sweep`: flow along the edges of an unstructured mesh.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, ArrayDescriptor, Checkpoints, Comm, Error, Result, Scratch, shape_text};
use outcore_apps::Resources;
use outcore_apps::edge_sweep::{
    EdgeSweep as Steps, SweepCheckpoints, Swept, check_mesh, copy_nodes, sweep_edges,
};
use serde_json::json;

use crate::counted::counted;
use crate::memory::Memory;
use crate::output::check_distinct;
use crate::ranks::Ranks;
use crate::work::{Closing, Done, Work};

/// Let values flow along the edges of an unstructured mesh, step by step
///
/// EDGES are pairs of node numbers, from 0 (shape Mx2; u32, u64, i32 or i64);
/// NODES the values of the nodes (shape N, or NxC for several each; f32 or f64).
/// In each step, for each edge, the part --step-size of the difference of its
/// nodes flows from the higher to the lower one; their sum stays. OUT, the values
/// after all steps, is like NODES, in row order.
///
/// Edges are gone through in slabs that fit the memory, and the values of their
/// nodes read and changed through index schedules. Schedules are kept for all
/// steps if the memory is enough for those of all edges.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore mesh edges.oc nodes.oc --nodes 1000000
  outcore edge-sweep edges.oc nodes.oc later.oc --steps 100 --step-size 0.1
  outcore edge-sweep edges.oc nodes.oc later.oc --steps 100 --step-size 0.1 --memory 64MiB \\
      --ranks 4 --checkpoint steps --every 10 --keep 2
  outcore edge-sweep edges.oc nodes.oc later.oc --steps 100 --step-size 0.1 --memory 64MiB \\
      --ranks 3 --checkpoint steps --every 10 --keep 2 --restart")]
pub(crate) struct EdgeSweep {
    /// The edges of the mesh
    #[arg(value_name = "EDGES", value_parser = NonEmptyStringValueParser::new())]
    edges: String,
    /// The values of its nodes
    #[arg(value_name = "NODES", value_parser = NonEmptyStringValueParser::new())]
    nodes: String,
    /// The array to make
    #[arg(value_name = "OUT", value_parser = NonEmptyStringValueParser::new())]
    output: String,
    /// The steps
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    steps: u64,
    /// The part of a difference that flows along an edge in a step
    #[arg(
        long,
        value_name = "S",
        default_value = "0.1",
        allow_hyphen_values = true
    )]
    step_size: f64,
    #[command(flatten)]
    memory: Memory,
    /// Save the values in DIR after some of the steps
    #[arg(long, value_name = "DIR", value_parser = NonEmptyStringValueParser::new())]
    checkpoint: Option<String>,
    /// After how many steps each, and after the last one
    #[arg(long, value_name = "N", default_value = "10", requires = "checkpoint",
          value_parser = clap::value_parser!(u64).range(1..))]
    every: u64,
    /// How many checkpoints stay
    #[arg(long, value_name = "K", default_value = "2", requires = "checkpoint",
          value_parser = clap::value_parser!(u64).range(1..))]
    keep: u64,
    /// Go on from the newest checkpoint in DIR, saved by any number of ranks; from NODES if there is none
    #[arg(long, visible_alias = "resume", requires = "checkpoint")]
    restart: bool,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    ranks: Ranks,
}

impl EdgeSweep {
    /// What is left when it is stopped.
    pub(crate) fn left(&self) -> String {
        let nothing = "nothing is left of the unfinished output";
        match &self.checkpoint {
            None => nothing.into(),
            Some(directory) => format!(
                "{nothing}, but with --restart it goes on from the newest checkpoint in \
                 {directory}, if one was complete"
            ),
        }
    }

    pub(crate) fn run(&self) -> Result<()> {
        let work = Work {
            label: "sweeping",
            ranks: self.ranks,
            memory: &self.memory,
            json: self.closing.json,
        };
        work.run(
            |comm| self.open(comm),
            |comm, (edges, nodes), resources| self.make(comm, (edges, nodes), resources),
        )
    }

    /// Collective: opens the mesh; also the bytes of edges that will be gone
    /// through.
    fn open(&self, comm: &Comm) -> Result<((Array, Array), u64)> {
        let edges = Array::open_all(comm, &self.edges)?;
        let nodes = Array::open_all(comm, &self.nodes)?;
        check_mesh(&edges, &nodes)?;
        check_distinct(comm, &[&self.edges, &self.nodes], &self.output)?;
        let bytes = edges.layout().byte_len().saturating_mul(self.steps);
        Ok(((edges, nodes), bytes))
    }

    /// Collective: sweeps.
    fn make(
        &self,
        comm: &Comm,
        (edges, nodes): (&Array, &Array),
        resources: &Resources<'_>,
    ) -> Result<Done> {
        let mut sweep = Steps {
            done: 0,
            steps: self.steps,
            step_size: self.step_size,
        };
        sweep.check()?;
        // Steps go to and fro between the output and another array; the last of all is
        // one into the output.
        let like = ArrayDescriptor::new(nodes.shape(), nodes.element_type());
        let output = Array::draft_all(comm, &self.output, &like, self.force)?;
        let scratch = Scratch::beside(comm, &self.output, &like)?;
        let is_odd = self.steps % 2 == 1;
        let values: [&Array; 2] = match is_odd {
            true => [&scratch, &output],
            false => [&output, &scratch],
        };
        let saved = self.checkpoints(comm, edges, &sweep, resources)?;
        let restored = match &saved {
            Some(saved) if self.restart => saved.restore(comm, values[0])?,
            _ => None,
        };
        match restored {
            Some(done) => {
                sweep.done = done;
                // As much as this rank would have gone through before.
                let bytes = edges.layout().byte_len().saturating_mul(done);
                resources.tell(bytes / comm.size() as u64);
            }
            None => copy_nodes(comm, nodes, values[0], resources)?,
        }
        let after = |step: u64, values: &Array| match &saved {
            Some(saved) => saved.after(comm, step, values),
            None => Ok(()),
        };
        let swept = sweep_edges(comm, edges, values, &sweep, resources, &after)?;
        if swept.holder != usize::from(is_odd) {
            // Those of a restart began in the middle.
            copy_nodes(comm, &scratch, &output, resources)?;
        }
        output.commit(comm)?;
        Ok(Done {
            inputs: vec![
                ("edges", json!(edges.name())),
                ("nodes", json!(nodes.name())),
                ("steps", json!(sweep.steps)),
            ],
            output: self.output.clone(),
            told: told(&sweep, (edges, nodes), &swept),
            // Told in millions.
            amount: edges.shape()[0] as f64 * (sweep.steps - sweep.done) as f64 * 1e3,
            unit: "million edges/s",
        })
    }

    /// Collective: where steps are saved, if they are.
    fn checkpoints<'a>(
        &self,
        comm: &Comm,
        edges: &Array,
        sweep: &Steps,
        resources: &'a Resources<'a>,
    ) -> Result<Option<SweepCheckpoints<'a>>> {
        let Some(directory) = &self.checkpoint else {
            return Ok(None);
        };
        let series = Checkpoints::open(comm, directory)?;
        let saved = SweepCheckpoints {
            series: series.keep(usize::try_from(self.keep).unwrap_or(usize::MAX)),
            every: self.every,
            sweep: *sweep,
            edges: edges.shape()[0],
            resources,
        };
        if !self.restart && saved.any(comm)? {
            return Err(Error::Invalid(format!(
                "there are checkpoints in {directory}, perhaps of another run; --restart goes on \
                 from the newest, or name another directory"
            )));
        }
        Ok(Some(saved))
    }
}

/// What was done.
fn told(sweep: &Steps, (edges, nodes): (&Array, &Array), swept: &Swept) -> String {
    let steps = match sweep.done {
        0 => counted(sweep.steps, "step"),
        done => format!("steps {} to {}", done + 1, sweep.steps),
    };
    let mesh = format!(
        "{} between {} {} nodes",
        counted(edges.shape()[0], "edge"),
        shape_text(nodes.shape()),
        nodes.element_type()
    );
    if sweep.done == sweep.steps {
        return format!("all {} over {mesh} were done", counted(sweep.steps, "step"));
    }
    let slabs = counted(swept.slabs, "slab");
    let schedules = match (sweep.steps - sweep.done, swept.kept) {
        (1, _) => "schedules made for one step",
        (_, true) => "schedules kept for all steps",
        (_, false) => "schedules made anew in each step",
    };
    format!("{steps} over {mesh} in {slabs}, {schedules}")
}
