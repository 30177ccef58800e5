//! [`AxisSection`]: which indices of one axis a section takes.
//!
//! Either an arithmetic progression `lower, lower + stride, ...` below
//! `upper`, or an explicit list (the papers' "non-uniform strides"). Indices
//! count from 0 and `upper` is excluded. The bounds are kept as written: the
//! upper bound may lie beyond the last element that the stride reaches, which
//! matters to methods that move everything between the bounds.
//!
//! Invariants: `stride >= 1`, `lower <= upper`, lists strictly ascending.

use std::fmt;
use std::sync::Arc;

use crate::error::{Error, Result};

/// Which indices of one axis a section takes, in ascending order.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct AxisSection(pub(crate) Indices);

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) enum Indices {
    Range { lower: u64, upper: u64, stride: u64 },
    List(Arc<[u64]>),
}

impl AxisSection {
    /// The indices `lower, lower + stride, ...` below `upper`; none if
    /// `upper <= lower`.
    pub fn range(lower: u64, upper: u64, stride: u64) -> Result<Self> {
        if stride == 0 {
            return Err(Error::invalid("a stride must be at least 1, not 0"));
        }
        Ok(Self::progression(lower, upper, stride))
    }

    /// Every index from `lower` up to, but not including, `upper`.
    pub fn span(lower: u64, upper: u64) -> Self {
        Self::progression(lower, upper, 1)
    }

    /// An explicit list, which must be strictly ascending.
    pub fn list(indices: impl Into<Arc<[u64]>>) -> Result<Self> {
        let indices = indices.into();
        if let Some(pair) = indices.windows(2).find(|pair| pair[0] >= pair[1]) {
            return Err(Error::invalid(format!(
                "an index list must be strictly ascending, but {} is followed by {}",
                pair[0], pair[1]
            )));
        }
        if indices.last() == Some(&u64::MAX) {
            return Err(Error::Overflow(format!(
                "the end of an index list with {}",
                u64::MAX
            )));
        }
        Ok(Self(Indices::List(indices)))
    }

    fn progression(lower: u64, upper: u64, stride: u64) -> Self {
        Self(Indices::Range {
            lower,
            upper: upper.max(lower),
            stride,
        })
    }

    /// How many indices there are.
    pub fn count(&self) -> u64 {
        match &self.0 {
            Indices::Range {
                lower,
                upper,
                stride,
            } => (upper - lower).div_ceil(*stride),
            Indices::List(list) => list.len() as u64,
        }
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.count() == 0
    }

    /// The index at `position`, which must be below [`count`](Self::count).
    pub fn index(&self, position: u64) -> u64 {
        debug_assert!(position < self.count());
        match &self.0 {
            Indices::Range { lower, stride, .. } => lower + position * stride,
            Indices::List(list) => list[position as usize],
        }
    }

    /// The first index.
    pub fn first(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.index(0))
    }

    /// The last index.
    pub fn last(&self) -> Option<u64> {
        (!self.is_empty()).then(|| self.index(self.count() - 1))
    }

    /// The bounds as written, lower included and upper excluded.
    pub fn bounds(&self) -> (u64, u64) {
        match &self.0 {
            Indices::Range { lower, upper, .. } => (*lower, *upper),
            Indices::List(list) => match (list.first(), list.last()) {
                (Some(first), Some(last)) => (*first, last + 1),
                _ => (0, 0),
            },
        }
    }

    /// The stride of a progression; `None` for a list.
    pub fn stride(&self) -> Option<u64> {
        match &self.0 {
            Indices::Range { stride, .. } => Some(*stride),
            Indices::List(_) => None,
        }
    }

    /// How many of the indices lie below `limit`.
    pub fn count_below(&self, limit: u64) -> u64 {
        match &self.0 {
            Indices::Range {
                lower,
                upper,
                stride,
            } => limit.min(*upper).saturating_sub(*lower).div_ceil(*stride),
            Indices::List(list) => list.partition_point(|index| *index < limit) as u64,
        }
    }

    /// The position of `index`, if it is one of the indices.
    pub fn position(&self, index: u64) -> Option<u64> {
        let position = self.count_below(index);
        (position < self.count() && self.index(position) == index).then_some(position)
    }

    /// The indices at positions `from..to`.
    pub fn slice(&self, from: u64, to: u64) -> Self {
        let to = to.min(self.count());
        let from = from.min(to);
        match &self.0 {
            Indices::Range {
                lower,
                upper,
                stride,
            } => {
                // Beyond the last index the written bound may be unreachable.
                let at = |position: u64| {
                    if position < self.count() {
                        lower + position * stride
                    } else {
                        *upper
                    }
                };
                Self::progression(at(from), at(to), *stride)
            }
            Indices::List(list) => Self(Indices::List(list[from as usize..to as usize].into())),
        }
    }

    /// The indices at the positions that `positions` takes, all of which must
    /// be below [`count`](Self::count).
    pub fn select(&self, positions: &Self) -> Self {
        match (&self.0, &positions.0) {
            (Indices::Range { stride, .. }, Indices::Range { stride: step, .. }) => {
                let (Some(first), Some(last)) = (positions.first(), positions.last()) else {
                    return Self::span(0, 0);
                };
                if first == last {
                    return Self::span(self.index(first), self.index(first) + 1);
                }
                Self::progression(self.index(first), self.index(last) + 1, stride * step)
            }
            _ => {
                let at = (0..positions.count()).map(|k| self.index(positions.index(k)));
                Self(Indices::List(at.collect()))
            }
        }
    }

    /// The indices that both take.
    pub fn intersect(&self, other: &Self) -> Self {
        match (&self.0, &other.0) {
            (
                Indices::Range {
                    lower: l1,
                    upper: u1,
                    stride: s1,
                },
                Indices::Range {
                    lower: l2,
                    upper: u2,
                    stride: s2,
                },
            ) => meet((*l1, *u1, *s1), (*l2, *u2, *s2)),
            (Indices::List(list), _) => keep(list, other),
            (_, Indices::List(list)) => keep(list, self),
        }
    }

    /// The indices below `extent`.
    pub fn clip(&self, extent: u64) -> Self {
        match &self.0 {
            Indices::Range {
                lower,
                upper,
                stride,
            } => Self::progression((*lower).min(extent), (*upper).min(extent), *stride),
            Indices::List(list) => Self(Indices::List(
                list[..self.count_below(extent) as usize].into(),
            )),
        }
    }

    /// The indices moved by `distance`; fails if one would leave the 64-bit
    /// range.
    pub fn translate(&self, distance: i64) -> Result<Self> {
        let shifted = |index: u64| {
            index.checked_add_signed(distance).ok_or_else(|| {
                Error::invalid(format!("index {index} cannot be moved by {distance}"))
            })
        };
        Ok(match &self.0 {
            Indices::Range {
                lower,
                upper,
                stride,
            } => Self::progression(shifted(*lower)?, shifted(*upper)?, *stride),
            Indices::List(list) => {
                let moved: Result<Vec<u64>> = list.iter().map(|index| shifted(*index)).collect();
                Self(Indices::List(moved?.into()))
            }
        })
    }

    /// Every index from the first to the last.
    pub fn bounding(&self) -> Self {
        match (self.first(), self.last()) {
            (Some(first), Some(last)) => Self::span(first, last + 1),
            _ => Self::span(0, 0),
        }
    }
}

/// Two progressions meet in a progression: the first common index by the
/// Chinese remainder theorem, the stride their least common multiple.
fn meet((l1, u1, s1): (u64, u64, u64), (l2, u2, s2): (u64, u64, u64)) -> AxisSection {
    let lower = l1.max(l2);
    let upper = u1.min(u2);
    let none = AxisSection::span(lower, lower);
    let (divisor, inverse) = extended_gcd(s1, s2);
    let apart = l2 as i128 - l1 as i128;
    if lower >= upper || apart % divisor as i128 != 0 {
        return none;
    }
    // x = l1 + s1 * k with s1 * k = l2 - l1 (mod s2).
    let modulus = (s2 / divisor) as i128;
    let k = (apart / divisor as i128 % modulus * inverse).rem_euclid(modulus);
    let common = l1 as i128 + s1 as i128 * k;
    let stride = s1 as i128 * modulus;
    let first = common + (lower as i128 - common).max(0).div_euclid(stride) * stride;
    let first = if first < lower as i128 {
        first + stride
    } else {
        first
    };
    if first >= upper as i128 {
        return none;
    }
    // A stride beyond 64 bits reaches no second index anyway.
    AxisSection::progression(
        first as u64,
        upper,
        u64::try_from(stride).unwrap_or(u64::MAX),
    )
}

/// gcd(a, b) and the inverse of a/gcd modulo b/gcd.
fn extended_gcd(a: u64, b: u64) -> (u64, i128) {
    let (mut r0, mut r1) = (a as i128, b as i128);
    let (mut x0, mut x1) = (1i128, 0i128);
    while r1 != 0 {
        let quotient = r0 / r1;
        (r0, r1) = (r1, r0 - quotient * r1);
        (x0, x1) = (x1, x0 - quotient * x1);
    }
    (r0 as u64, x0)
}

fn keep(list: &[u64], other: &AxisSection) -> AxisSection {
    let kept: Vec<u64> = list
        .iter()
        .copied()
        .filter(|i| other.position(*i).is_some())
        .collect();
    AxisSection(Indices::List(kept.into()))
}

impl fmt::Display for AxisSection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Indices::Range {
                lower,
                upper,
                stride: 1,
            } => write!(f, "{lower}:{upper}"),
            Indices::Range {
                lower,
                upper,
                stride,
            } => write!(f, "{lower}:{upper}:{stride}"),
            Indices::List(list) => {
                write!(f, "[")?;
                for (position, index) in list.iter().enumerate() {
                    write!(f, "{}{index}", if position == 0 { "" } else { "," })?;
                }
                write!(f, "]")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn indices(axis: &AxisSection) -> Vec<u64> {
        (0..axis.count())
            .map(|position| axis.index(position))
            .collect()
    }

    fn axis() -> impl Strategy<Value = AxisSection> {
        prop_oneof![
            (0u64..40, 0u64..60, 1u64..12)
                .prop_map(
                    |(lower, upper, stride)| AxisSection::range(lower, upper, stride).unwrap()
                ),
            proptest::collection::btree_set(0u64..60, 0..12)
                .prop_map(|set| AxisSection::list(set.into_iter().collect::<Vec<_>>()).unwrap()),
        ]
    }

    proptest! {
        #[test]
        fn intersection_is_that_of_the_sets(a in axis(), b in axis()) {
            let (left, right) = (indices(&a), indices(&b));
            let both: Vec<u64> = left.into_iter().filter(|i| right.contains(i)).collect();
            prop_assert_eq!(indices(&a.intersect(&b)), both);
        }

        #[test]
        fn clip_slice_and_positions_agree(a in axis(), limit in 0u64..70, from in 0u64..20, to in 0u64..20) {
            let all = indices(&a);
            let below: Vec<u64> = all.iter().copied().filter(|i| *i < limit).collect();
            prop_assert_eq!(a.count_below(limit), below.len() as u64);
            prop_assert_eq!(indices(&a.clip(limit)), below);
            let (from_c, to_c) = ((from as usize).min(all.len()), (to as usize).min(all.len()));
            let expected = if from_c < to_c { all[from_c..to_c].to_vec() } else { vec![] };
            prop_assert_eq!(indices(&a.slice(from, to)), expected);
            for (position, index) in all.iter().enumerate() {
                prop_assert_eq!(a.position(*index), Some(position as u64));
            }
            prop_assert_eq!(a.first(), all.first().copied());
            prop_assert_eq!(a.last(), all.last().copied());
        }

        #[test]
        fn selection_composes(a in axis(), b in axis()) {
            let b = b.clip(a.count());
            let expected: Vec<u64> = indices(&b).iter().map(|at| a.index(*at)).collect();
            prop_assert_eq!(indices(&a.select(&b)), expected);
        }

        #[test]
        fn translation_goes_there_and_back(a in axis(), distance in 0i64..1000) {
            let there = a.translate(distance).unwrap();
            prop_assert_eq!(indices(&there.translate(-distance).unwrap()), indices(&a));
        }
    }

    #[test]
    fn huge_strides_meet_without_overflow() {
        let a = AxisSection::range(5, u64::MAX, u64::MAX / 2).unwrap();
        let b = AxisSection::range(5, u64::MAX, u64::MAX / 3).unwrap();
        assert_eq!(indices(&a.intersect(&b)), [5]);
        assert!(AxisSection::span(0, 3).translate(-1).is_err());
    }

    #[test]
    fn bad_axes_are_refused() {
        assert!(AxisSection::range(0, 4, 0).is_err());
        assert!(AxisSection::list(vec![1, 1]).is_err());
        assert!(AxisSection::list(vec![3, 1]).is_err());
    }
}
