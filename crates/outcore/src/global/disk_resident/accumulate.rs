//! Sums of what stands in a part and what others send: `there += factor * value`,
//! for every type of numbers. Integers wrap around.

use half::f16;
use num_complex::Complex;

use crate::element::ElementType;
use crate::error::{Error, Result};

/// Adds `factor` times the values to what stands `there`; all are bytes of numbers
/// of one type, as many values as there are numbers.
pub(crate) type AddScaled = fn(there: &mut [u8], values: &[u8], factor: &[u8]);

/// The sum for numbers of a type that is known by its name.
pub(crate) fn add_scaled(element: ElementType) -> Result<AddScaled> {
    Ok(match element {
        ElementType::Bool => {
            return Err(Error::Invalid("bool values have no sum".into()));
        }
        ElementType::I8 => each::<i8>,
        ElementType::I16 => each::<i16>,
        ElementType::I32 => each::<i32>,
        ElementType::I64 => each::<i64>,
        ElementType::U8 => each::<u8>,
        ElementType::U16 => each::<u16>,
        ElementType::U32 => each::<u32>,
        ElementType::U64 => each::<u64>,
        ElementType::F16 => each::<f16>,
        ElementType::F32 => each::<f32>,
        ElementType::F64 => each::<f64>,
        ElementType::C64 => each::<Complex<f32>>,
        ElementType::C128 => each::<Complex<f64>>,
    })
}

trait Sum: bytemuck::Pod {
    fn sum(there: Self, factor: Self, value: Self) -> Self;
}

macro_rules! sums {
    ($($type:ty)* ; $($integer:ty)*) => {
        $(impl Sum for $type {
            fn sum(there: Self, factor: Self, value: Self) -> Self {
                there + factor * value
            }
        })*
        $(impl Sum for $integer {
            fn sum(there: Self, factor: Self, value: Self) -> Self {
                there.wrapping_add(factor.wrapping_mul(value))
            }
        })*
    };
}

sums! { f16 f32 f64 Complex<f32> Complex<f64> ; i8 i16 i32 i64 u8 u16 u32 u64 }

fn each<T: Sum>(there: &mut [u8], values: &[u8], factor: &[u8]) {
    let factor: T = bytemuck::pod_read_unaligned(&factor[..size_of::<T>()]);
    let aligned = (
        bytemuck::try_cast_slice_mut::<u8, T>(there),
        bytemuck::try_cast_slice::<u8, T>(values),
    );
    if let (Ok(there), Ok(values)) = aligned {
        for (there, value) in there.iter_mut().zip(values) {
            *there = T::sum(*there, factor, *value);
        }
        return;
    }
    let size = size_of::<T>();
    let numbers = there.chunks_exact_mut(size).zip(values.chunks_exact(size));
    for (there, value) in numbers {
        let old: T = bytemuck::pod_read_unaligned(there);
        let new = T::sum(old, factor, bytemuck::pod_read_unaligned(value));
        there.copy_from_slice(bytemuck::bytes_of(&new));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sums_of_any_alignment() {
        let add = add_scaled(ElementType::F64).unwrap();
        let mut bytes = [0u8; 33];
        let values: Vec<u8> = [1.0f64, 2.0, 4.0]
            .iter()
            .flat_map(|v| v.to_ne_bytes())
            .collect();
        for start in 0..8 {
            let there = &mut bytes[start..start + 24];
            there.fill(0);
            add(there, &values, &0.5f64.to_ne_bytes());
            add(there, &values, &1.0f64.to_ne_bytes());
            let sums: Vec<f64> = there.chunks(8).map(bytemuck::pod_read_unaligned).collect();
            assert_eq!(sums, [1.5, 3.0, 6.0]);
        }
        let mut there = [250u8];
        add_scaled(ElementType::U8).unwrap()(&mut there, &[3], &[2]);
        assert_eq!(there, [0]);
        assert!(add_scaled(ElementType::Bool).is_err());
    }
}
