//! [`transform_in_memory`]: the same transforms of an array in memory.

use outcore::Complex;

use super::kernel::Axis;
use super::sample::FftFloat;

/// Where several threads write, each its own lines.
#[derive(Clone, Copy)]
struct Shared<F>(*mut Complex<F>);

// SAFETY: it is used for elements that no other thread uses.
unsafe impl<F> Send for Shared<F> {}

impl<F> Shared<F> {
    fn start(self) -> *mut Complex<F> {
        self.0
    }
}

/// Transforms `values`, an array of `shape` whose last axis is the fastest, along
/// `axes`, by so many threads.
///
/// ```
/// use outcore::Complex;
/// use outcore_apps::fft::transform_in_memory;
///
/// let mut values = vec![Complex::new(1.0f64, 0.0); 12];
/// transform_in_memory(&mut values, &[3, 4], &[0, 1], false, 2);
/// assert!((values[0].re - 12.0).abs() < 1e-12 && values[5].norm() < 1e-12);
/// transform_in_memory(&mut values, &[3, 4], &[0, 1], true, 2);
/// assert!(values.iter().all(|value| (value - 1.0).norm() < 1e-12));
/// ```
pub fn transform_in_memory<F: FftFloat>(
    values: &mut [Complex<F>],
    shape: &[usize],
    axes: &[usize],
    inverse: bool,
    threads: usize,
) {
    assert_eq!(
        values.len(),
        shape.iter().product::<usize>(),
        "the values are those of an array of this shape"
    );
    let threads = threads.max(1);
    if values.is_empty() {
        return;
    }
    for axis in axes {
        let length = shape[*axis];
        let apart: usize = shape[axis + 1..].iter().product();
        if apart == 1 {
            let share = (values.len() / length).div_ceil(threads) * length;
            std::thread::scope(|scope| {
                for lines in values.chunks_mut(share) {
                    scope.spawn(move || Axis::new(length as u64, inverse).along(lines));
                }
            });
            continue;
        }
        let (block, count) = (length * apart, values.len());
        let shared = Shared(values.as_mut_ptr());
        std::thread::scope(|scope| {
            let share = apart.div_ceil(threads);
            for first in (0..apart).step_by(share) {
                scope.spawn(move || {
                    let mut transforms = Axis::<F>::new(length as u64, inverse);
                    for start in (0..count).step_by(block) {
                        // SAFETY: the block is inside the values, and each thread
                        // has columns of its own of it.
                        unsafe {
                            let into = shared.start().add(start);
                            let which = first..apart.min(first + share);
                            transforms.across(into.cast_const(), into, apart, which, |value| value);
                        }
                    }
                });
            }
        });
    }
}
