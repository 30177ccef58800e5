//! [`multiply`]: `C = A B` in files, in either [`Form`].

use outcore::{Array, Comm, Error, Result, shape_text};

use super::number::{Number, of_number};
use super::{blocked, gaxpy};
use crate::resources::Resources;

/// How matrices are multiplied.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Form {
    /// Blocks of `C` in memory, panels of `A` and `B` read ahead: the least that
    /// can be read with the memory.
    #[default]
    Blocked,
    /// Rows of `A` in the memory of all ranks, columns of `B` after one another,
    /// read, summed and written by all ranks together.
    Gaxpy,
}

/// Collective: makes `c` the product of `a` and `b`, which ranks share: any
/// layouts, any float type (the same for all), within the memory of `resources`.
/// All ranks succeed, or all return the same error.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// use outcore_apps::{Resources, matmul};
/// # let directory = tempfile::tempdir()?;
/// # let name = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
/// let matrix = |file: &str, rows: u64, columns: u64| {
///     Array::create(&name(file), &ArrayDescriptor::new(&[rows, columns], ElementType::F64))
/// };
/// let (a, b, c) = (matrix("a.oc", 300, 200)?, matrix("b.oc", 200, 400)?, matrix("c.oc", 300, 400)?);
/// a.write(&a.whole(), &[0.5; 60_000])?;
/// b.write(&b.whole(), &[2.0; 80_000])?;
/// outcore::run(2, |comm| {
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     matmul::multiply(comm, &a, &b, &c, matmul::Form::Blocked, &resources)
/// })?;
/// assert!(c.read::<f64>(&c.whole())?.iter().all(|value| *value == 200.0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn multiply(
    comm: &Comm,
    a: &Array,
    b: &Array,
    c: &Array,
    form: Form,
    resources: &Resources<'_>,
) -> Result<()> {
    let product = Product { a, b, c };
    product.check()?;
    of_number!((a.name(), a.element_type()), T => match form {
        Form::Blocked => blocked::multiply::<T>(comm, &product, resources),
        Form::Gaxpy => gaxpy::multiply::<T>(comm, &product, resources),
    })
}

/// The shape of the product of two matrices; fails with a sentence if there is
/// none.
pub fn product_shape(a: &Array, b: &Array) -> Result<[u64; 2]> {
    let text = |array: &Array| {
        let shape = outcore::shape_text(array.shape());
        format!("{} ({shape} {})", array.name(), array.element_type())
    };
    for array in [a, b] {
        if array.shape().len() != 2 {
            let axes = array.shape().len();
            return Err(Error::Invalid(format!(
                "{} has {axes} axes, but a matrix has 2",
                text(array)
            )));
        }
    }
    if a.element_type() != b.element_type() {
        return Err(Error::Invalid(format!(
            "{} and {} hold elements of different types; 'outcore convert IN OUT --type {}' makes \
             the second like the first",
            text(a),
            text(b),
            a.element_type()
        )));
    }
    let ([m, k], [below, n]) = ([a.shape()[0], a.shape()[1]], [b.shape()[0], b.shape()[1]]);
    if k != below {
        return Err(Error::Invalid(format!(
            "{} has {k} columns, but {} has {below} rows; they must be as many",
            text(a),
            text(b)
        )));
    }
    of_number!((a.name(), a.element_type()), T => {
        let _ = T::ONE;
        Ok([m, n])
    })
}

/// The matrices of a product.
#[derive(Debug)]
pub(super) struct Product<'a> {
    pub(super) a: &'a Array,
    pub(super) b: &'a Array,
    pub(super) c: &'a Array,
}

impl Product<'_> {
    fn check(&self) -> Result<()> {
        let shape = product_shape(self.a, self.b)?;
        if self.c.shape() == shape && self.c.element_type() == self.a.element_type() {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the result {} ({} {}) must be {} {}",
            self.c.name(),
            shape_text(self.c.shape()),
            self.c.element_type(),
            shape_text(&shape),
            self.a.element_type()
        )))
    }

    /// The rows of `C`, its columns, and what is summed over.
    pub(super) fn extents(&self) -> [u64; 3] {
        let [m, n] = [self.c.shape()[0], self.c.shape()[1]];
        [m, n, self.a.shape()[1]]
    }
}
