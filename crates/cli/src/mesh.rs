//! `outcore mesh`: an unstructured mesh to try things out on.

use std::sync::OnceLock;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, ArrayDescriptor, ElementType, Error, Fill, Result, Tuning, shape_text};
use outcore_apps::edge_sweep::Mesh as Triangles;
use serde_json::json;

use crate::copy::Team;
use crate::counted::counted;
use crate::create::fill_section;
use crate::memory::Memory;
use crate::progress::Progress;
use crate::ranks::{Ranks, print};
use crate::selection::parse_seed;
use crate::work::{Begun, Closing};

/// Make a mesh of triangles whose nodes have numbers in random order
///
/// EDGES gets pairs of node numbers (u32, or u64 for more than 2^32 nodes),
/// about three for each node; NODES random values in [0, 1). The same seed gives
/// the same mesh, on any number of ranks.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore mesh edges.oc nodes.oc --nodes 1000000
  outcore mesh edges.npy nodes.npy --nodes 4000000 --type f32 --components 3 --seed 7 --ranks 4")]
pub(crate) struct Mesh {
    /// The array of edges to make
    #[arg(value_name = "EDGES", value_parser = NonEmptyStringValueParser::new())]
    edges: String,
    /// The array of values of the nodes to make
    #[arg(value_name = "NODES", value_parser = NonEmptyStringValueParser::new())]
    nodes: String,
    /// How many nodes
    #[arg(long = "nodes", value_name = "N", value_parser = clap::value_parser!(u64).range(1..=1 << 60))]
    count: u64,
    /// The type of the values
    #[arg(long = "type", value_name = "TYPE", default_value = "f64", value_parser = float)]
    element_type: ElementType,
    /// Values of each node [default: one, and NODES has one axis]
    #[arg(long, value_name = "C", value_parser = clap::value_parser!(u64).range(1..=1 << 20))]
    components: Option<u64>,
    /// For the order of the nodes and their values
    #[arg(long, value_name = "S", default_value = "0", value_parser = parse_seed,
          allow_hyphen_values = true)]
    seed: u64,
    #[command(flatten)]
    memory: Memory,
    /// Replace EDGES and NODES if they exist
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    ranks: Ranks,
}

fn float(text: &str) -> Result<ElementType, String> {
    match text.parse() {
        Ok(element_type @ (ElementType::F32 | ElementType::F64)) => Ok(element_type),
        _ => Err("nodes have values of type f32 or f64".into()),
    }
}

impl Mesh {
    pub(crate) fn check(&self) -> Result<(), String> {
        let place = |name: &str| std::path::absolute(name.trim_end_matches('/')).ok();
        match place(&self.edges) == place(&self.nodes) {
            true => Err(format!(
                "the edges and the nodes are two arrays, which cannot both be '{}'; give them two \
                 names",
                self.nodes
            )),
            false => Ok(()),
        }
    }

    /// Fails if the nodes, which come last, have a name that cannot be given to them.
    fn check_free(&self) -> Result<()> {
        if self.force || Array::existing(&self.nodes)?.is_none() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "{} exists already; --force replaces it",
            self.nodes
        )))
    }

    pub(crate) fn run(&self) -> Result<()> {
        let mesh = Triangles {
            nodes: self.count,
            seed: self.seed,
        };
        let shape: Vec<u64> = [self.count].into_iter().chain(self.components).collect();
        let nodes = ArrayDescriptor::new(&shape, self.element_type);
        let (progress, begun) = (OnceLock::new(), Begun::now());
        self.ranks.run(|comm| {
            let mut room = self.memory.room(comm, "making a mesh")?;
            comm.agree(self.check_free())?;
            let node_bytes = nodes.byte_len();
            let node_bytes = comm.agree(
                node_bytes.map_err(|error| Error::Invalid(format!("{}: {error}", self.nodes))),
            )?;
            let edges = Array::draft_all(comm, &self.edges, &mesh.edge_descriptor(), self.force)?;
            let all = edges.layout().byte_len() + node_bytes;
            let progress = Progress::shared(&progress, "making", comm, all / comm.size() as u64)?;
            mesh.write_edges(comm, &edges, &|bytes| progress.add(bytes))?;
            // Both may be in one file, to which the second can be added when the first is there.
            let edges = edges.commit(comm)?;
            let values = Array::draft_all(comm, &self.nodes, &nodes, self.force)?;
            let tuned = comm.agree(room.tuned(&values, Tuning::default()))?;
            let team = Team {
                comm,
                room,
                progress,
            };
            let fill = Fill::Random(self.seed);
            comm.agree(fill_section(&team, &tuned, &tuned.whole(), &fill))?;
            let values = values.commit(comm)?;
            progress.finish();
            let ended = begun.end(comm)?;
            let told = match comm.rank() {
                0 if self.closing.json => print(&ended.json([
                    ("edges", json!(edges.name())),
                    ("edge_count", json!(mesh.edges())),
                    ("edge_type", json!(edges.element_type().name())),
                    ("nodes", json!(values.name())),
                    ("shape", json!(values.shape())),
                    ("type", json!(values.element_type().name())),
                    ("bytes", json!(all)),
                ])),
                0 => print(&format!(
                    "{}: {}, {}; {}: {} {} nodes\n",
                    edges.name(),
                    counted(mesh.edges(), "edge"),
                    edges.element_type(),
                    values.name(),
                    shape_text(values.shape()),
                    values.element_type(),
                )),
                _ => Ok(()),
            };
            Ok(comm.agree(told)?)
        })
    }
}
