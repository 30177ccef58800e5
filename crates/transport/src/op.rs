//! [`Op`]: the usual ways to combine two values, and [`Element`]: the types
//! that know them.

use bytemuck::Pod;

/// A way to combine the values of two ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Op {
    /// The sum; of integers modulo 2 to the number of bits.
    Sum,
    /// The product; of integers modulo 2 to the number of bits.
    Product,
    /// The smaller one; a NaN loses against a number.
    Min,
    /// The larger one; a NaN loses against a number.
    Max,
    /// Bits set in both; integers only.
    BitAnd,
    /// Bits set in either; integers only.
    BitOr,
}

/// A number that ranks can combine.
pub trait Element: Pod {
    /// How `op` combines two numbers of this type; `None` if it cannot.
    fn combine(op: Op) -> Option<Combine<Self>>;

    /// The value that changes nothing when combined by `op`.
    fn identity(op: Op) -> Self;
}

/// Combines elementwise: `accumulated[i] = op(accumulated[i], next[i])`.
pub type Combine<T> = fn(accumulated: &mut [T], next: &[T]);

/// A [`Combine`] from an expression of two values.
macro_rules! elementwise {
    ($a:ident, $b:ident => $value:expr) => {
        Some(|accumulated, next| {
            for (left, &$b) in accumulated.iter_mut().zip(next) {
                let $a = *left;
                *left = $value;
            }
        })
    };
}

macro_rules! integers {
    ($($type:ty)*) => {$(
        impl Element for $type {
            fn combine(op: Op) -> Option<Combine<Self>> {
                match op {
                    Op::Sum => elementwise!(a, b => a.wrapping_add(b)),
                    Op::Product => elementwise!(a, b => a.wrapping_mul(b)),
                    Op::Min => elementwise!(a, b => a.min(b)),
                    Op::Max => elementwise!(a, b => a.max(b)),
                    Op::BitAnd => elementwise!(a, b => a & b),
                    Op::BitOr => elementwise!(a, b => a | b),
                }
            }

            fn identity(op: Op) -> Self {
                match op {
                    Op::Sum | Op::BitOr => 0,
                    Op::Product => 1,
                    Op::Min => Self::MAX,
                    Op::Max => Self::MIN,
                    Op::BitAnd => !0,
                }
            }
        }
    )*};
}

macro_rules! floats {
    ($($type:ty)*) => {$(
        impl Element for $type {
            fn combine(op: Op) -> Option<Combine<Self>> {
                match op {
                    Op::Sum => elementwise!(a, b => a + b),
                    Op::Product => elementwise!(a, b => a * b),
                    Op::Min => elementwise!(a, b => a.min(b)),
                    Op::Max => elementwise!(a, b => a.max(b)),
                    Op::BitAnd | Op::BitOr => None,
                }
            }

            fn identity(op: Op) -> Self {
                match op {
                    Op::Product => 1.0,
                    Op::Min => Self::INFINITY,
                    Op::Max => Self::NEG_INFINITY,
                    Op::Sum | Op::BitAnd | Op::BitOr => 0.0,
                }
            }
        }
    )*};
}

integers!(u8 u16 u32 u64 u128 usize i8 i16 i32 i64 i128 isize);
floats!(f32 f64);
