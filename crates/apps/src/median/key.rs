//! [`Real`]: element types with an order, seen as integers.
//!
//! All kernels compare integers. A float is seen as the integer that sorts
//! like it: its bits, with all but the sign reversed if the sign is set. That
//! is IEEE 754's total order (`f32::total_cmp`): -0 is below +0, a NaN with
//! sign is below everything and one without is above everything. So NaNs take
//! part like very large values, and the median is the same for any kernel and
//! any order of evaluation.

use bytemuck::Pod;
use outcore::{Element, f16};

/// An integer that kernels compare.
pub trait Key: Pod + Ord + Send + Sync {
    /// Of 8-bit keys, the bits to reverse so that they sort as unsigned.
    const BYTE: Option<u8>;
}

macro_rules! keys {
    ($byte:expr => $($type:ty)*) => {$(
        impl Key for $type {
            const BYTE: Option<u8> = $byte;
        }
    )*};
}

keys!(None => i16 i32 i64 u16 u32 u64);
keys!(Some(0) => u8);
keys!(Some(0x80) => i8);

/// An element type with an order.
pub trait Real: Element + Pod {
    /// The integer of the same size that stands for it.
    type Key: Key;

    /// From the bits of a value to its key, and back.
    fn flip(bits: Self::Key) -> Self::Key;
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Real for $type {
            type Key = $type;

            #[inline(always)]
            fn flip(bits: $type) -> $type {
                bits
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty => $key:ty, $unsigned:ty;)*) => {$(
        impl Real for $type {
            type Key = $key;

            #[inline(always)]
            fn flip(bits: $key) -> $key {
                bits ^ ((bits >> (<$key>::BITS - 1)) as $unsigned >> 1) as $key
            }
        }
    )*};
}

integers!(i8 i16 i32 i64 u8 u16 u32 u64);
floats! { f16 => i16, u16; f32 => i32, u32; f64 => i64, u64; }

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keys_of_floats_sort_like_the_total_order() {
        let values = [
            -f32::NAN,
            f32::NEG_INFINITY,
            -1.5,
            -f32::MIN_POSITIVE,
            -0.0,
            0.0,
            1e-40,
            2.0,
            f32::INFINITY,
            f32::NAN,
        ];
        let keys = values.map(|value| f32::flip(value.to_bits() as i32));
        assert!(keys.is_sorted_by(|a, b| a < b), "{keys:?}");
        for (key, value) in keys.into_iter().zip(values) {
            assert_eq!(f32::flip(key), value.to_bits() as i32);
        }
    }
}
