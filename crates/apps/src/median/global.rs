//! [`filter`]: the median filter on one global file, by ranks that divide it.

use outcore::{Array, Comm, ElementType, Error, MemoryBudget, Result, divide};

use super::pass::{PURPOSE, Pass};
use super::window::Window;
use crate::file_order::check_alike;
use crate::resources::Resources;
use crate::slab_writer::depth;

/// Evaluates an expression with a Rust type in place of an element type that
/// has an order; fails for the others, with the array's name.
macro_rules! of_real {
    (($name:expr, $element:expr), $rust:ident => $body:expr) => {{
        use outcore::ElementType as E;
        macro_rules! with {
            ($type:ty) => {{
                type $rust = $type;
                $body
            }};
        }
        match $element {
            E::I8 => with!(i8),
            E::I16 => with!(i16),
            E::I32 => with!(i32),
            E::I64 => with!(i64),
            E::U8 => with!(u8),
            E::U16 => with!(u16),
            E::U32 => with!(u32),
            E::U64 => with!(u64),
            E::F16 => with!(outcore::f16),
            E::F32 => with!(f32),
            E::F64 => with!(f64),
            other => Err($crate::median::global::no_order($name, other)),
        }
    }};
}

pub(super) use of_real;

/// Collective: writes the median of the window around each element of `source`
/// to the same place of `target`. Each rank computes its share, in slabs that
/// fit the memory.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, ElementType, MemoryBudget};
/// use outcore_apps::{Resources, median};
/// # let directory = tempfile::tempdir()?;
/// # let name = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
/// let descriptor = ArrayDescriptor::new(&[300, 400], ElementType::U8);
/// let image = Array::create(&name("image.oc"), &descriptor)?;
/// let smooth = Array::create(&name("smooth.oc"), &descriptor)?;
/// image.write(&image.section("::7, ::7")?, &vec![255u8; 43 * 58])?;
/// let window = "3x3".parse()?;
/// outcore::run(2, |comm| {
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     median::filter(comm, &image, &smooth, &window, &resources)
/// })?;
/// assert!(smooth.read::<u8>(&smooth.whole())?.iter().all(|value| *value == 0));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn filter(
    comm: &Comm,
    source: &Array,
    target: &Array,
    window: &Window,
    resources: &Resources<'_>,
) -> Result<()> {
    // 1. What all ranks see alike.
    window.check(source.shape())?;
    check_alike(source, target)?;
    // 2. Each rank its share of the slowest axis.
    let shares = divide(
        &source.whole(),
        source.layout().slowest_first(),
        comm.size() as u64,
    );
    let pass = Pass {
        source,
        target,
        window,
        region: shares[comm.rank()].clone(),
        behind: depth(&[target], source.descriptor()),
    };
    of_real!((source.name(), source.element_type()), T => {
        let need = |budget: &MemoryBudget| pass.need_within::<T>(budget.limit());
        let budget = resources.enough(comm, PURPOSE, need)?;
        // 3. All fail alike.
        Ok(comm.agree(pass.run::<T>(&budget, resources))?)
    })
}

pub(super) fn no_order(name: &str, element_type: ElementType) -> Error {
    Error::Invalid(format!(
        "{name} holds {element_type} elements, which have no order; a median needs integers or \
         floats"
    ))
}
