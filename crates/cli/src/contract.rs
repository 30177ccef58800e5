//! `outcore contract`: contractions of block-sparse tensors.

use std::path::{Path, PathBuf};

use clap::Args;
use outcore::{
    Array, ArrayDescriptor, Comm, ElementType, Error, Fill, Pieces, Result, SharedDraft, Tuning,
    divide,
};
use outcore_apps::Resources;
use outcore_apps::contract::{
    BlockTensor, Contraction, Expression, Predicate, Segments, Spaces, TensorArrays, Way,
    check_arrays, contract_arrays,
};
use serde_json::json;

use crate::memory::{Memory, Room};
use crate::output::check_distinct;
use crate::ranks::Ranks;
use crate::work::{Closing, Done, Work};

/// Contract two block-sparse tensors
///
/// EXPRESSION names the result, the factors and their indices; what both factors
/// have and the result has not is summed over. Each index is cut into segments,
/// and the blocks that these make are zero or not by --predicate. A tensor T is
/// an array with one axis, T.oc unless --array says otherwise: the blocks that
/// are not zero one after another, in the order of their segments, each in
/// row-major order. With '+=' products are added to what the result holds, if it
/// exists; with '=' they take its place.
///
/// Each block of the result is a task, taken by the next rank that is free, which
/// fetches the blocks of the factors that it needs, the next ones while it
/// multiplies.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore contract 'i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]' --segments O=10,6,4,3 \\
      --segments V=20,12,8,6 --index p=O --index h=V --make --check --ranks 2
  outcore contract 'c[i,j] = a[i,k] * b[k,j]' --segments i=500,300 --segments j=400 \\
      --segments k=1000,1000 --predicate parity --array a=left.npy --memory 256MiB")]
pub(crate) struct Contract {
    /// The contraction, as in `c[i,j] += a[i,k] * b[k,j]`
    expression: Expression,
    /// The segments of a space of indices, as in O=100,60,40,30
    #[arg(long, value_name = "SPACE=LENGTHS", required = true, value_parser = parse_segments)]
    segments: Vec<(String, Segments)>,
    /// The space of an index, or of all indices whose names begin so; without it, the space of
    /// that name
    #[arg(long = "index", value_name = "INDEX=SPACE", value_parser = parse_pair)]
    indices: Vec<(String, String)>,
    /// Which blocks are not zero: all, parity (the sum of the segment numbers is even) or
    /// band:N (they differ by at most N)
    #[arg(long, default_value = "all")]
    predicate: Predicate,
    /// The array of a tensor [default: its name with .oc]
    #[arg(long = "array", value_name = "TENSOR=PATH", value_parser = parse_pair)]
    arrays: Vec<(String, String)>,
    /// Make the factors, of random numbers, from this seed
    #[arg(long, value_name = "SEED", num_args = 0..=1, default_missing_value = "0")]
    make: Option<u64>,
    /// The type of factors that are made
    #[arg(
        long = "type",
        value_name = "TYPE",
        default_value = "f64",
        requires = "make"
    )]
    element_type: ElementType,
    /// Where the factors are meanwhile: shared (where they are), calls (spread over the disks
    /// of the ranks, which serve one another), replicas (a copy for each rank), files (one
    /// a rank, read by all) or striped (the same, in stripes of 128 KiB)
    #[arg(long, value_name = "WAY", default_value = "shared")]
    from: Way,
    /// Where the disks of the ranks are, as directories disk0, disk1, ... that are removed
    /// afterwards [default: beside the result]
    #[arg(long, value_name = "DIRECTORY")]
    disks: Option<PathBuf>,
    /// Compare the result with the plain loop over dense tensors, if they are small
    #[arg(long)]
    check: bool,
    /// Replace arrays that exist
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    memory: Memory,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    ranks: Ranks,
}

fn parse_pair(text: &str) -> Result<(String, String), String> {
    let parts = text.split_once('=');
    let parts = parts.filter(|(name, value)| !name.is_empty() && !value.is_empty());
    let (name, value) = parts.ok_or_else(|| format!("'{text}' is not NAME=VALUE"))?;
    Ok((name.into(), value.into()))
}

fn parse_segments(text: &str) -> Result<(String, Segments), String> {
    let (name, lengths) = parse_pair(text)?;
    let segments = lengths.parse().map_err(|error: Error| error.to_string())?;
    Ok((name, segments))
}

/// What the ranks work on.
struct Opened {
    left: Array,
    right: Array,
    /// The result as it was, if it is added to.
    before: Option<Array>,
}

impl Contract {
    /// What is left when it is stopped.
    pub(crate) fn left(&self) -> &'static str {
        match self.make {
            Some(_) => "factors that --make has made stay, the unfinished result does not",
            None => "nothing is left of the unfinished output",
        }
    }

    /// The contraction, if the arguments make one.
    fn contraction(&self) -> Result<(Contraction, Spaces)> {
        let mut spaces = Spaces::default();
        for (name, segments) in &self.segments {
            spaces = spaces.with_space(name, segments.clone());
        }
        for (index, space) in &self.indices {
            spaces = spaces.with_index(index, space)?;
        }
        let holds = |_: &str, segments: &[usize]| self.predicate.holds(segments);
        let contraction = Contraction::new(self.expression.clone(), &spaces, holds)?;
        Ok((contraction, spaces))
    }

    pub(crate) fn check(&self) -> Result<(), String> {
        let terms = self.expression.terms();
        for (name, _) in &self.arrays {
            if terms.iter().all(|term| term.name != *name) {
                return Err(format!(
                    "--array {name}: {} has no such tensor",
                    self.expression
                ));
            }
        }
        self.contraction()
            .map(drop)
            .map_err(|error| error.to_string())
    }

    fn path(&self, tensor: &BlockTensor) -> String {
        let mut given = self.arrays.iter();
        let given = given.find(|(name, _)| name == tensor.name());
        given.map_or_else(|| format!("{}.oc", tensor.name()), |(_, path)| path.clone())
    }

    pub(crate) fn run(&self) -> Result<()> {
        let (contraction, spaces) = self.contraction()?;
        let work = Work {
            label: "contracting",
            ranks: self.ranks,
            memory: &self.memory,
            json: self.closing.json,
        };
        work.run(
            |comm| self.open(comm, &contraction),
            |comm, opened, resources| {
                self.contract(comm, (&contraction, &spaces), opened, resources)
            },
        )
    }

    /// Collective: makes or opens the factors; also the bytes that will be
    /// multiplied.
    fn open(&self, comm: &Comm, contraction: &Contraction) -> Result<(Opened, u64)> {
        let (left, right) = (contraction.left(), contraction.right());
        if let Some(seed) = self.make {
            self.make(comm, left, seed)?;
            if left.name() != right.name() {
                self.make(comm, right, seed + 1)?;
            }
        }
        let left = Array::open_all(comm, &self.path(left))?;
        let right = Array::open_all(comm, &self.path(right))?;
        let path = self.path(contraction.output());
        check_distinct(comm, &[left.name(), right.name()], &path)?;
        let before = match self.expression.adds {
            true => existing(comm, &path)?,
            false => None,
        };
        let bytes = contraction
            .elements_asked()
            .saturating_mul(left.element_type().size());
        let opened = Opened {
            left,
            right,
            before,
        };
        Ok((opened, bytes))
    }

    /// Collective: makes a factor of random numbers.
    fn make(&self, comm: &Comm, tensor: &BlockTensor, seed: u64) -> Result<()> {
        let descriptor = ArrayDescriptor::new(&[tensor.len()], self.element_type);
        let array = Array::draft_all(comm, &self.path(tensor), &descriptor, self.force)?;
        let room = self.memory.room(comm, "making a tensor")?;
        let made = each_piece((comm, room), &array, |piece, bytes| {
            Fill::Random(seed).generate(&array, piece, bytes)
        });
        comm.agree(made)?;
        array.commit(comm).map(drop)
    }

    /// Collective: contracts.
    fn contract(
        &self,
        comm: &Comm,
        (contraction, spaces): (&Contraction, &Spaces),
        opened: &Opened,
        resources: &Resources<'_>,
    ) -> Result<Done> {
        // 1. A new result, which holds what is added to.
        let path = self.path(contraction.output());
        let tensor = contraction.output();
        let number = opened.left.element_type();
        let descriptor = ArrayDescriptor::new(&[tensor.len()], number);
        let replace = self.force || opened.before.is_some();
        let output = Array::draft_all(comm, &path, &descriptor, replace)?;
        if let Some(before) = &opened.before {
            self.copy(comm, before, &output)?;
        }
        // 2. The contraction, with the factors on the disks of the ranks.
        let arrays = TensorArrays {
            output: &output,
            left: &opened.left,
            right: &opened.right,
        };
        let disks = Disks::new(comm, self.disks.as_deref(), &path)?;
        let way = (self.from, &*disks.path);
        let spent = contract_arrays(comm, contraction, arrays, way, resources);
        drop(disks);
        let spent = spent?;
        // 3. What should have come out.
        if self.check {
            let checked = match comm.rank() {
                0 => check_arrays(contraction, spaces, arrays, opened.before.as_ref()),
                _ => Ok(()),
            };
            comm.agree(checked)?;
        }
        output.commit(comm)?;
        let done = spent.contracted;
        let operations = match number {
            ElementType::C64 | ElementType::C128 => 8.0,
            _ => 2.0,
        };
        Ok(Done {
            inputs: vec![("inputs", json!([opened.left.name(), opened.right.name()]))],
            output: path,
            told: format!(
                "{} in {number}: {} products of blocks in {} tasks, {:.0}% of the time in \
                 multiplications{}",
                self.expression,
                done.pairs,
                done.tasks,
                100.0 * done.multiplying_share(),
                if self.check { "; checked" } else { "" }
            ),
            amount: operations * contraction.multiplications() as f64,
            unit: "GFLOP/s",
        })
    }

    /// Collective: the result as it was, into the new one.
    fn copy(&self, comm: &Comm, before: &Array, output: &SharedDraft) -> Result<()> {
        let mut room = self.memory.room(comm, "copying a tensor")?;
        let before = &comm.agree(room.tuned(before, Tuning::default()))?;
        let alike =
            before.shape() == output.shape() && before.element_type() == output.element_type();
        let copied = match alike {
            true => each_piece((comm, room), output, |piece, bytes| {
                before.read_bytes(piece, bytes)
            }),
            false => Err(Error::Invalid(format!(
                "{} exists, but is not the tensor that would be added to: {} elements of {}",
                before.name(),
                output.shape()[0],
                output.element_type()
            ))),
        };
        Ok(comm.agree(copied)?)
    }
}

/// Collective: the array whose place a new one named `path` would take, if there is one.
fn existing(comm: &Comm, path: &str) -> Result<Option<Array>> {
    let found = match comm.rank() {
        0 => Array::existing(path),
        _ => Ok(None),
    };
    let found = comm.agree(found)?;
    let mut name = found.map_or_else(String::new, |found| found.name().into());
    comm.broadcast_string(0, &mut name)?;
    match name.is_empty() {
        true => Ok(None),
        false => Array::open_all(comm, &name).map(Some),
    }
}

/// Makes this rank's share of an array, in pieces for which there is room.
fn each_piece(
    (comm, mut room): (&Comm, Room),
    array: &Array,
    make: impl Fn(&outcore::Section, &mut [u8]) -> Result<()>,
) -> Result<()> {
    let size = array.element_type().size();
    let share = divide(&array.whole(), &[0], comm.size() as u64).swap_remove(comm.rank());
    let array = room.tuned(array, Tuning::default())?;
    let mut bytes = Vec::new();
    for piece in Pieces::new(&share, &[0], room.elements(1, size)) {
        bytes.resize((piece.count() * size) as usize, 0);
        make(&piece, &mut bytes)?;
        array.write_bytes(&piece, &bytes)?;
    }
    Ok(())
}

/// The file or directory of the array `name`. Of an address that is nothing but its
/// scheme, which has no directory: then the current one takes its place.
fn file_of(name: &str) -> &Path {
    let described = ["raw:", "zarr2:"].iter();
    let name = (described
        .filter_map(|start| name.strip_prefix(start))
        .next())
    .unwrap_or(name);
    Path::new(name.split(':').next().unwrap_or(name))
}

/// The directory of the ranks' disks, removed with the value.
struct Disks {
    path: PathBuf,
    /// Whether this rank removes it.
    removes: bool,
}

impl Disks {
    /// Collective: a directory for all ranks, in the one given or beside `result`.
    fn new(comm: &Comm, given: Option<&Path>, result: &str) -> Result<Self> {
        let mut name = match given {
            Some(given) => given.join(format!("contract-{}", std::process::id())),
            None => {
                let parent = file_of(result).parent().unwrap_or(Path::new(""));
                parent.join(format!(".contract-{}.disks", std::process::id()))
            }
        }
        .to_string_lossy()
        .to_string();
        comm.broadcast_string(0, &mut name)?;
        Ok(Self {
            path: name.into(),
            removes: comm.rank() == 0,
        })
    }
}

impl Drop for Disks {
    fn drop(&mut self) {
        if self.removes {
            let _ = std::fs::remove_dir_all(&self.path);
        }
    }
}
