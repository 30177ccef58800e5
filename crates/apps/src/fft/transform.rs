//! [`transform`]: the transform of an array into another one, pass by pass.

use outcore::{Array, Comm, Complex, Element, Error, MemoryBudget, Op, Result};

use super::kernel::{RealPart, Spectrum};
use super::sample::{FftFloat, Sample, of_sample, spectrum_type};
use crate::lines::{LinePass, places};
use crate::resources::Resources;

const PURPOSE: &str = "the Fourier transform";

/// Which transform.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Fourier {
    /// Along which axes; along all, if there are none.
    pub axes: Vec<usize>,
    /// Whether it is the inverse one.
    pub inverse: bool,
}

impl Fourier {
    /// The axes, or why they make no sense.
    fn axes_of(&self, array: &Array) -> Result<Vec<usize>> {
        let all = array.shape().len();
        let mut axes = self.axes.clone();
        axes.sort_unstable();
        axes.dedup();
        if let Some(axis) = axes.iter().find(|axis| **axis >= all) {
            return Err(Error::Invalid(format!(
                "{} has {all} axes, so there is no axis {axis} to transform along",
                array.name()
            )));
        }
        if axes.len() != self.axes.len() {
            return Err(Error::Invalid(
                "an axis is named twice; a transform goes along each once".into(),
            ));
        }
        Ok(match axes.is_empty() {
            true => (0..all).collect(),
            false => axes,
        })
    }
}

/// Collective: the transform of `source` into `target`, which has its shape and
/// the complex type of [`spectrum_type`], or the real one: then only the real
/// part is kept, and `between`, of the complex type, holds what several passes
/// leave to one another. Returns the number of passes over the files.
///
/// ```
/// use outcore::{Array, ArrayDescriptor, Complex, ElementType, MemoryBudget};
/// use outcore_apps::fft::{Fourier, transform};
/// use outcore_apps::Resources;
/// # let directory = tempfile::tempdir()?;
/// # let name = |name: &str| directory.path().join(name).to_str().unwrap().to_string();
/// let image = ArrayDescriptor::new(&[64, 48], ElementType::F32);
/// let image = Array::create(&name("image.oc"), &image)?;
/// image.write(&image.whole(), &vec![1f32; 64 * 48])?;
/// let spectrum = ArrayDescriptor::new(&[64, 48], ElementType::C64);
/// let spectrum = Array::create(&name("spectrum.oc"), &spectrum)?;
/// outcore::run(2, |comm| {
///     let resources = Resources::of(MemoryBudget::of(1 << 20));
///     transform(comm, &image, (&spectrum, None), &Fourier::default(), &resources)
/// })?;
/// let found: Vec<Complex<f32>> = spectrum.read(&spectrum.section("0, 0:2")?)?;
/// assert_eq!(found, [Complex::new(64.0 * 48.0, 0.0), Complex::new(0.0, 0.0)]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn transform(
    comm: &Comm,
    source: &Array,
    (target, between): (&Array, Option<&Array>),
    fourier: &Fourier,
    resources: &Resources<'_>,
) -> Result<u64> {
    let axes = fourier.axes_of(source)?;
    let complex = spectrum_type(source.name(), source.element_type(), false)?;
    let real = spectrum_type(source.name(), source.element_type(), true)?;
    let alike = |array: &Array, element_type| {
        if array.shape() == source.shape() && array.element_type() == element_type {
            return Ok(());
        }
        Err(Error::Invalid(format!(
            "the result {} must have the shape of {} and {element_type} elements",
            array.name(),
            source.name(),
        )))
    };
    let keeps_real = target.element_type() == real;
    alike(target, if keeps_real { real } else { complex })?;
    if let Some(between) = between {
        alike(between, complex)?;
    }
    if source.shape().contains(&0) {
        return Ok(0);
    }
    of_sample!((source.name(), source.element_type()), S => {
        type Float = <S as Sample>::Float;
        let run = Run::<Float> { comm, source, fourier, resources, float: std::marker::PhantomData };
        let passes = run.passes::<S>(&axes)?;
        let middle = match (keeps_real, between) {
            (false, _) => Some(target),
            (true, between) => between,
        };
        run.all::<S>(&passes, target, middle)?;
        Ok(passes.len() as u64)
    })
}

/// A run of all passes.
struct Run<'a, F> {
    comm: &'a Comm,
    source: &'a Array,
    fourier: &'a Fourier,
    resources: &'a Resources<'a>,
    float: std::marker::PhantomData<F>,
}

impl<F: FftFloat + Sample<Float = F>> Run<'_, F>
where
    Complex<F>: Sample<Float = F>,
{
    /// The axes of each pass: the fastest first, and as many together as fit the
    /// memory and leave work for all ranks. Alike on all ranks.
    fn passes<S: Sample<Float = F>>(&self, axes: &[usize]) -> Result<Vec<Vec<usize>>> {
        let limit = self.resources.budget.for_rank(self.comm).limit();
        let limit = self.comm.all_reduce(&[limit], Op::Min)?[0];
        let order = self.source.layout().slowest_first().iter().rev();
        let order = order.copied().filter(|axis| axes.contains(axis));
        let mut passes: Vec<Vec<usize>> = Vec::new();
        for axis in order {
            if let Some(last) = passes.last_mut() {
                last.push(axis);
                let kernel = RealPart::new(self.spectrum(self.source, last));
                let pass = self.pass(self.source, self.source, last);
                if pass.suits::<S, F>((self.comm.size() as u64, limit), &kernel) {
                    continue;
                }
                last.pop();
            }
            passes.push(vec![axis]);
        }
        if passes.is_empty() {
            passes.push(Vec::new());
        }
        Ok(passes)
    }

    fn pass<'a>(&self, source: &'a Array, target: &'a Array, axes: &'a [usize]) -> LinePass<'a> {
        LinePass {
            source,
            target,
            axes,
        }
    }

    fn spectrum(&self, array: &Array, axes: &[usize]) -> Spectrum<F> {
        let order = array.layout().slowest_first();
        let places = places(array, axes).into_iter();
        let lengths = places.map(|place| (place, array.shape()[order[place]]));
        Spectrum::new(lengths, self.fourier.inverse)
    }

    /// The passes: from the source to the middle, there in place, and the last
    /// one to the target.
    fn all<S: Sample<Float = F>>(
        &self,
        passes: &[Vec<usize>],
        target: &Array,
        middle: Option<&Array>,
    ) -> Result<()> {
        let last = passes.len() - 1;
        let Some(middle) = middle.or((last == 0).then_some(target)) else {
            return Err(Error::Invalid(format!(
                "{} passes need an array between them for the complex values",
                passes.len()
            )));
        };
        let into = |number: usize| if number == last { target } else { middle };
        // 1. The memory that any pass needs.
        let mut need = 0;
        for (number, axes) in passes.iter().enumerate() {
            need = need.max(match number {
                0 => self.need::<S>(self.source, into(number), axes),
                _ => self.need::<Complex<F>>(middle, into(number), axes),
            });
        }
        let budget = self.resources.enough(self.comm, PURPOSE, |_| need)?;
        // 2. Pass after pass.
        for (number, axes) in passes.iter().enumerate() {
            match number {
                0 => self.one::<S>(self.source, into(number), axes, &budget)?,
                _ => self.one::<Complex<F>>(middle, into(number), axes, &budget)?,
            }
        }
        Ok(())
    }

    fn need<S: Sample<Float = F>>(&self, source: &Array, target: &Array, axes: &[usize]) -> u64 {
        let pass = self.pass(source, target, axes);
        let spectrum = self.spectrum(source, axes);
        match target.element_type() == <F as Element>::TYPE {
            true => pass.least_need::<S, F>(self.comm, &RealPart::new(spectrum)),
            false => pass.least_need::<S, Complex<F>>(self.comm, &spectrum),
        }
    }

    fn one<S: Sample<Float = F>>(
        &self,
        source: &Array,
        target: &Array,
        axes: &[usize],
        budget: &MemoryBudget,
    ) -> Result<()> {
        let pass = self.pass(source, target, axes);
        let mut spectrum = self.spectrum(source, axes);
        let memory = (budget, self.resources);
        match target.element_type() == <F as Element>::TYPE {
            true => pass.run::<S, F>(self.comm, &mut RealPart::new(spectrum), memory),
            false => pass.run::<S, Complex<F>>(self.comm, &mut spectrum, memory),
        }
    }
}
