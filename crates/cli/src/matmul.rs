//! `outcore matmul`: the product of two matrices.

use clap::builder::NonEmptyStringValueParser;
use clap::{Args, ValueEnum};
use outcore::{Arrangement, Array, ArrayDescriptor, Comm, ElementType, Result, shape_text};
use outcore_apps::Resources;
use outcore_apps::matmul::{self, multiply, product_shape};
use serde_json::json;

use crate::memory::Memory;
use crate::output::check_distinct;
use crate::ranks::Ranks;
use crate::work::{Closing, Done, Work};

/// Multiply two matrices
///
/// A has as many columns as B has rows; both have the same type, f32, f64, c64
/// or c128, and any format and layout. With less memory than the matrices take,
/// parts of them are read again and again, as seldom as possible; the next ones
/// are read while the present ones are multiplied.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore matmul a.oc b.oc c.oc
  outcore matmul a.npy b.npy c.npy --memory 1GiB
  outcore matmul a.oc b.oc c.oc --layout tiled:64x64 --ranks 4
  outcore matmul a.oc b.oc c.oc --form gaxpy --ranks 4 --memory 256MiB")]
pub(crate) struct Matmul {
    /// The left matrix
    #[arg(value_name = "A", value_parser = NonEmptyStringValueParser::new())]
    left: String,
    /// The right matrix
    #[arg(value_name = "B", value_parser = NonEmptyStringValueParser::new())]
    right: String,
    /// The product to make
    #[arg(value_name = "OUT", value_parser = NonEmptyStringValueParser::new())]
    output: String,
    /// How
    #[arg(long, value_enum, default_value = "blocked")]
    form: Form,
    /// The layout of OUT, as for 'create' [default: row]
    #[arg(long)]
    layout: Option<Arrangement>,
    #[command(flatten)]
    memory: Memory,
    /// Replace OUT if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    closing: Closing,
    #[command(flatten)]
    ranks: Ranks,
}

#[derive(Clone, Copy, ValueEnum)]
enum Form {
    /// Blocks of OUT in memory, panels of A and B read ahead: the least is read
    Blocked,
    /// Rows of A in the memory of all ranks, B passes: read and written by all ranks together
    Gaxpy,
}

/// The operands, and what the product will be.
struct Opened {
    left: Array,
    right: Array,
    product: ArrayDescriptor,
}

impl Matmul {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.layout.is_some() && self.output.starts_with("raw:") {
            return Err(
                "--layout cannot be used with a 'raw:' description, which says everything itself"
                    .into(),
            );
        }
        Ok(())
    }

    pub(crate) fn run(&self) -> Result<()> {
        let work = Work {
            label: "multiplying",
            ranks: self.ranks,
            memory: &self.memory,
            json: self.closing.json,
        };
        work.run(
            |comm| self.open(comm),
            |comm, opened, resources| self.make(comm, opened, resources),
        )
    }

    /// Collective: opens the operands; also the bytes of the product.
    fn open(&self, comm: &Comm) -> Result<(Opened, u64)> {
        let left = Array::open_all(comm, &self.left)?;
        let right = Array::open_all(comm, &self.right)?;
        check_distinct(comm, &[&self.left, &self.right], &self.output)?;
        let shape = product_shape(&left, &right)?;
        let mut product = ArrayDescriptor::new(&shape, left.element_type());
        if let Some(layout) = &self.layout {
            product.arrangement = layout.clone();
        }
        let bytes = shape[0].saturating_mul(shape[1]);
        let bytes = bytes.saturating_mul(left.element_type().size());
        let opened = Opened {
            left,
            right,
            product,
        };
        Ok((opened, bytes))
    }

    /// Collective: multiplies.
    fn make(&self, comm: &Comm, opened: &Opened, resources: &Resources<'_>) -> Result<Done> {
        let Opened {
            left,
            right,
            product,
        } = opened;
        let output = Array::draft_all(comm, &self.output, product, self.force)?;
        let form = match self.form {
            Form::Blocked => matmul::Form::Blocked,
            Form::Gaxpy => matmul::Form::Gaxpy,
        };
        multiply(comm, left, right, &output, form, resources)?;
        output.commit(comm)?;
        let operations = match left.element_type() {
            ElementType::C64 | ElementType::C128 => 8.0,
            _ => 2.0,
        };
        let [m, n] = [product.shape[0], product.shape[1]].map(|extent| extent as f64);
        let k = right.shape()[0] as f64;
        Ok(Done {
            inputs: vec![("inputs", json!([left.name(), right.name()]))],
            output: self.output.clone(),
            told: format!(
                "{} times {} {}",
                shape_text(left.shape()),
                shape_text(right.shape()),
                left.element_type()
            ),
            amount: operations * m * n * k,
            unit: "GFLOP/s",
        })
    }
}
