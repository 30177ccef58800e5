//! [`Spectrum`]: the transforms of a tile along some of its axes, by the crate
//! `rustfft`; and [`RealPart`] of that.

use std::sync::Arc;

use outcore::Complex;
use rustfft::{Fft, FftDirection, FftPlanner};

use super::sample::{FftFloat, Sample};
use crate::lines::{Gathered, LineKernel, Piece, width};

/// Transforms along one axis.
pub(super) struct Axis<F: FftFloat> {
    length: usize,
    fft: Arc<dyn Fft<F>>,
    scratch: Vec<Complex<F>>,
    gathered: Gathered<Complex<F>>,
    /// What the results are multiplied with.
    scale: F,
}

impl<F: FftFloat> Axis<F> {
    pub(super) fn new(length: u64, inverse: bool) -> Self {
        let direction = match inverse {
            true => FftDirection::Inverse,
            false => FftDirection::Forward,
        };
        let length = length as usize;
        let fft = FftPlanner::new().plan_fft(length.max(1), direction);
        let zero = Complex::new(F::zero(), F::zero());
        let scale = match inverse {
            true => 1.0 / length.max(1) as f64,
            false => 1.0,
        };
        Self {
            length,
            scratch: vec![zero; fft.get_inplace_scratch_len()],
            fft,
            gathered: Gathered::new(length, zero),
            scale: F::of(scale),
        }
    }

    /// The bytes of this, with about what the planner keeps.
    pub(super) fn bytes(&self) -> u64 {
        let scratch = self.scratch.len().max(self.length) * size_of::<Complex<F>>();
        2 * scratch as u64 + Gathered::<Complex<F>>::bytes(self.length)
    }

    /// Lines in one piece each, one after the other.
    pub(super) fn along(&mut self, lines: &mut [Complex<F>]) {
        self.fft.process_with_scratch(lines, &mut self.scratch);
        if self.scale != F::one() {
            lines
                .iter_mut()
                .for_each(|value| *value = *value * self.scale);
        }
    }

    /// Lines whose elements are `apart`, of which there are as many side by
    /// side; those of numbers `which`, from `from` to `into`, which may be the
    /// same place.
    ///
    /// # Safety
    ///
    /// Both must be valid for `apart` times the length of a line, and nobody
    /// else may use the elements of these lines meanwhile.
    pub(super) unsafe fn across<S: Copy>(
        &mut self,
        from: *const S,
        into: *mut Complex<F>,
        apart: usize,
        which: std::ops::Range<usize>,
        convert: impl Fn(S) -> Complex<F> + Copy,
    ) {
        for first in which.clone().step_by(width::<Complex<F>>()) {
            let count = width::<Complex<F>>().min(which.end - first);
            // SAFETY: as the caller promises.
            unsafe {
                let from = from.add(first);
                self.gathered.take(from, apart, count, convert);
            }
            for number in 0..count {
                let line = self.gathered.line(number);
                self.fft.process_with_scratch(line, &mut self.scratch);
                if self.scale != F::one() {
                    line.iter_mut()
                        .for_each(|value| *value = *value * self.scale);
                }
            }
            // SAFETY: as the caller promises.
            unsafe { self.gathered.put(into.add(first), apart, count) };
        }
    }
}

/// The transforms of a tile along some axes.
pub(super) struct Spectrum<F: FftFloat> {
    /// With the place of each axis in the order of the file.
    axes: Vec<(usize, Axis<F>)>,
}

impl<F: FftFloat> Spectrum<F> {
    /// Along axes given by place and length.
    pub(super) fn new(axes: impl Iterator<Item = (usize, u64)>, inverse: bool) -> Self {
        let axes = axes.map(|(place, length)| (place, Axis::new(length, inverse)));
        Self {
            axes: axes.collect(),
        }
    }
}

impl<F: FftFloat, S: Sample<Float = F>> LineKernel<S, Complex<F>> for Spectrum<F> {
    fn bytes(&self, _: u64) -> u64 {
        self.axes.iter().map(|(_, axis)| axis.bytes()).sum()
    }

    fn apply(&mut self, piece: &Piece<'_, S>, results: &mut [Complex<F>]) {
        if results.is_empty() {
            return;
        }
        let mut first = true;
        for (place, axis) in &mut self.axes {
            let apart: usize = piece.shape[*place + 1..].iter().product();
            if apart == 1 {
                if first {
                    convert(piece.values, results);
                }
                axis.along(results);
            } else {
                let block = axis.length * apart;
                for start in (0..results.len()).step_by(block) {
                    let into = results[start..start + block].as_mut_ptr();
                    let from = &piece.values[start..start + block];
                    // SAFETY: each block is inside its buffer and this call's own.
                    unsafe {
                        match first {
                            true => axis.across(from.as_ptr(), into, apart, 0..apart, S::complex),
                            false => {
                                axis.across(into.cast_const(), into, apart, 0..apart, |value| value)
                            }
                        }
                    }
                }
            }
            first = false;
        }
        if first {
            convert(piece.values, results);
        }
    }
}

fn convert<S: Sample>(from: &[S], into: &mut [Complex<S::Float>]) {
    for (into, from) in into.iter_mut().zip(from) {
        *into = from.complex();
    }
}

/// The real part of transforms.
pub(super) struct RealPart<F: FftFloat> {
    pub(super) of: Spectrum<F>,
    whole: Vec<Complex<F>>,
}

impl<F: FftFloat> RealPart<F> {
    pub(super) fn new(of: Spectrum<F>) -> Self {
        Self {
            of,
            whole: Vec::new(),
        }
    }
}

impl<F: FftFloat, S: Sample<Float = F>> LineKernel<S, F> for RealPart<F> {
    fn bytes(&self, elements: u64) -> u64 {
        let spectrum: &dyn LineKernel<S, Complex<F>> = &self.of;
        spectrum.bytes(elements) + elements * size_of::<Complex<F>>() as u64
    }

    fn apply(&mut self, piece: &Piece<'_, S>, results: &mut [F]) {
        let zero = Complex::new(F::zero(), F::zero());
        self.whole.resize(results.len(), zero);
        self.of.apply(piece, &mut self.whole);
        for (result, value) in results.iter_mut().zip(&self.whole) {
            *result = value.re;
        }
    }
}
