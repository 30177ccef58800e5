//! [`contract_arrays`]: a contraction of tensors whose packed elements are in
//! ordinary arrays, of any float type; [`check_arrays`] compares its result with
//! the plain loop.

use std::path::Path;
use std::time::Instant;

use outcore::{Array, Comm, ElementType, Error, Result};

use super::contraction::Contraction;
use super::counter::TaskCounter;
use super::einsum::einsum;
use super::execute::{Contracted, Tensors, contract};
use super::file_blocks::{FileBlocks, check_packed};
use super::segments::Spaces;
use super::way::{Placing, Way};
use crate::matmul::{Number, of_number};
use crate::resources::Resources;

/// The most elements, and multiplications, that the plain loop is tried with.
const MOST_ELEMENTS: u64 = 1 << 26;
const MOST_MULTIPLICATIONS: u64 = 1 << 33;

/// The arrays of the tensors of a contraction, each of one axis.
#[derive(Debug, Clone, Copy)]
pub struct TensorArrays<'a> {
    /// The result, opened for writing.
    pub output: &'a Array,
    /// The left factor.
    pub left: &'a Array,
    /// The right factor.
    pub right: &'a Array,
}

impl TensorArrays<'_> {
    /// Fails unless the arrays have the lengths of the packed tensors and the same
    /// type.
    pub fn check(&self, contraction: &Contraction) -> Result<()> {
        check_packed(contraction.output(), self.output)?;
        check_packed(contraction.left(), self.left)?;
        check_packed(contraction.right(), self.right)?;
        for other in [self.right, self.output] {
            if other.element_type() != self.left.element_type() {
                return Err(Error::Invalid(format!(
                    "{} holds {} elements, but {} holds {}",
                    self.left.name(),
                    self.left.element_type(),
                    other.name(),
                    other.element_type()
                )));
            }
        }
        Ok(())
    }
}

/// What a contraction of arrays took.
#[derive(Debug, Clone, Copy)]
pub struct Spent {
    /// What was done.
    pub contracted: Contracted,
    /// The seconds until the factors were where they should be.
    pub placing: f64,
    /// The seconds of the contraction.
    pub contracting: f64,
}

/// Collective: contracts tensors in arrays that all ranks reach; first the factors
/// are brought to where `way` says, in `directory`. All ranks succeed, or all
/// return the same error.
pub fn contract_arrays(
    comm: &Comm,
    contraction: &Contraction,
    arrays: TensorArrays<'_>,
    (way, directory): (Way, &Path),
    resources: &Resources<'_>,
) -> Result<Spent> {
    comm.agree(arrays.check(contraction))?;
    let left = arrays.left;
    of_number!((left.name(), left.element_type()), T => {
        contract_of::<T>(comm, contraction, arrays, (way, directory), resources)
    })
}

fn contract_of<T: Number>(
    comm: &Comm,
    contraction: &Contraction,
    arrays: TensorArrays<'_>,
    (way, directory): (Way, &Path),
    resources: &Resources<'_>,
) -> Result<Spent> {
    let start = Instant::now();
    let open = || {
        Ok::<_, Error>([
            FileBlocks::whole(contraction.output(), arrays.output.clone())?,
            FileBlocks::whole(contraction.left(), arrays.left.clone())?,
            FileBlocks::whole(contraction.right(), arrays.right.clone())?,
        ])
    };
    let [output, left, right] = comm.agree(open())?;
    let factors = Placing::start(comm, way, directory)?;
    let placed = |tensor, blocks: &FileBlocks| factors.place::<T>(tensor, blocks, resources);
    let left_placed = placed(contraction.left(), &left)?;
    let right_placed = match contraction.left().name() == contraction.right().name() {
        true => None,
        false => placed(contraction.right(), &right)?,
    };
    let placing = start.elapsed().as_secs_f64();
    let tensors = Tensors {
        output: &output,
        left: left_placed.as_deref().unwrap_or(&left),
        right: right_placed.as_deref().unwrap_or(&right),
    };
    let counter = TaskCounter::new(comm, factors.procedures(), contraction.groups())?;
    let contracted = contract(comm, contraction, &tensors, &counter, resources)?;
    drop((left_placed, right_placed));
    factors.close()?;
    Ok(Spent {
        contracted,
        placing,
        contracting: start.elapsed().as_secs_f64() - placing,
    })
}

/// Fails unless the result of a contraction is what the plain loop over dense
/// tensors gives; `before` is what the result held before. For small tensors only.
pub fn check_arrays(
    contraction: &Contraction,
    spaces: &Spaces,
    arrays: TensorArrays<'_>,
    before: Option<&Array>,
) -> Result<()> {
    let tensors = [
        contraction.output(),
        contraction.left(),
        contraction.right(),
    ];
    let indices = contraction.expression().indices();
    let mut loops = 1u64;
    for index in &indices {
        loops = loops.saturating_mul(spaces.of(index)?.extent());
    }
    let mut dense = tensors
        .iter()
        .map(|tensor| tensor.extents().iter().product::<u64>());
    if loops > MOST_MULTIPLICATIONS || dense.any(|elements| elements > MOST_ELEMENTS) {
        return Err(Error::Invalid(format!(
            "the plain loop over dense tensors would take {loops} multiplications, which is too \
             much to check against; leave the check out"
        )));
    }
    let left = arrays.left;
    of_number!((left.name(), left.element_type()), T => {
        check_of::<T>(contraction, spaces, arrays, before)
    })
}

fn check_of<T: Number>(
    contraction: &Contraction,
    spaces: &Spaces,
    arrays: TensorArrays<'_>,
    before: Option<&Array>,
) -> Result<()> {
    let read = |array: &Array| array.read::<T>(&array.whole());
    let expression = contraction.expression();
    let output = contraction.output();
    let old = match (expression.adds, before) {
        (true, Some(before)) => read(before)?,
        _ => vec![T::zeroed(); output.len() as usize],
    };
    let mut dense = output.unpack(&old);
    let (left, right) = (read(arrays.left)?, read(arrays.right)?);
    let (left, right) = (
        contraction.left().unpack(&left),
        contraction.right().unpack(&right),
    );
    let extent = |index: &str| Ok(spaces.of(index)?.extent());
    einsum(expression, extent, (&left, &right), &mut dense)?;
    let (expected, found) = (output.pack(&dense), read(arrays.output)?);
    // Sums in another order differ by rounding, of the largest that occur.
    let sizes = expected.iter().map(|value| value.distance(T::zeroed()));
    let rounding = match T::TYPE {
        ElementType::F32 | ElementType::C64 => 1e-4,
        _ => 1e-11,
    };
    let most = rounding * sizes.fold(1.0, f64::max);
    let wrong = expected.iter().zip(&found).position(|(expected, found)| {
        // What is not a number is wrong, too.
        !expected.distance(*found).le(&most)
    });
    match wrong {
        None => Ok(()),
        Some(at) => Err(Error::Invalid(format!(
            "element {at} of {} is {}, but the plain loop gives {}",
            output.name(),
            T::TYPE.text(bytemuck::bytes_of(&found[at])),
            T::TYPE.text(bytemuck::bytes_of(&expected[at]))
        ))),
    }
}
