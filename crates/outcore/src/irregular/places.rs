//! [`Places`]: where elements stand, counted in records from the beginning of
//! the file; or, for arrays in the memory of all ranks, in whose part.

use outcore_geometry::{AlignedDistribution, Layout, shape_text};

use crate::error::{Error, Result};

/// Where each element of an array stands.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Places {
    /// The shape that is indexed.
    shape: Vec<u64>,
    kind: Kind,
    /// Beyond the last place.
    extent: u64,
}

#[derive(Debug, Clone, PartialEq)]
enum Kind {
    /// Elements stand in the order of their numbers.
    InOrder,
    /// The step of each axis.
    Strided(Vec<u64>),
    /// The extent of a tile along each axis, the step from one tile to the next,
    /// and that inside a tile.
    Tiled(Vec<[u64; 3]>),
    /// Parts of ranks, each of which begins a multiple of `span` away.
    Parts {
        distribution: Box<AlignedDistribution>,
        own_template: bool,
        local_steps: Vec<Vec<u64>>,
        span: u64,
    },
}

/// How the records of an array stand in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Records {
    /// The elements of a record.
    pub(crate) components: u64,
    /// Whether each component has a part of the file of its own.
    pub(crate) apart: bool,
}

impl Places {
    /// Of the first `axes` axes of an array: the others are components of a
    /// record. They must be the fastest ones of the file, or the slowest ones.
    pub(crate) fn of_layout(layout: &Layout, axes: usize) -> Result<(Self, Records)> {
        let (shape, order) = (layout.shape(), layout.slowest_first());
        let cannot = |problem: &str| {
            Error::Invalid(format!(
                "indices of {axes} axes of an array of shape {} in the order {}: {problem}",
                shape_text(shape),
                layout.arrangement()
            ))
        };
        if axes > shape.len() {
            return Err(cannot("it has not so many"));
        }
        let (indexed, rest) = shape.split_at(axes);
        let components = rest.iter().product::<u64>();
        let slow: Vec<usize> = order.iter().copied().filter(|axis| *axis < axes).collect();
        let fast_last = order[..axes] == slow[..];
        let inner: Vec<usize> = order.iter().copied().filter(|axis| *axis >= axes).collect();
        if !inner.is_sorted() {
            return Err(cannot("the components of a record are not in order"));
        }
        let apart = components > 1 && !fast_last;
        if apart && order[rest.len()..] != slow[..] {
            return Err(cannot("a record is neither in one piece nor in planes"));
        }
        let elements = indexed.iter().product::<u64>();
        let (kind, extent) = match layout.tile() {
            Some(_) if !rest.is_empty() => {
                return Err(cannot("records in tiles can only be indexed by all axes"));
            }
            Some(tile) => {
                let mut kinds = vec![[0; 3]; axes];
                let (mut inside, mut outside) = (1, tile.iter().product::<u64>());
                for axis in slow.iter().rev() {
                    kinds[*axis] = [tile[*axis], outside, inside];
                    inside *= tile[*axis];
                    outside *= indexed[*axis].div_ceil(tile[*axis]);
                }
                (Kind::Tiled(kinds), if elements == 0 { 0 } else { outside })
            }
            None if slow.is_sorted() => (Kind::InOrder, elements),
            None => {
                let (mut steps, mut step) = (vec![0; axes], 1);
                for axis in slow.iter().rev() {
                    steps[*axis] = step;
                    step *= indexed[*axis];
                }
                (Kind::Strided(steps), elements)
            }
        };
        let places = Self {
            shape: indexed.to_vec(),
            kind,
            extent,
        };
        Ok((places, Records { components, apart }))
    }

    /// Of an array in the memory of all ranks, whose parts begin at multiples of
    /// `1 << shift`, which is the second result.
    pub(crate) fn of_parts(distribution: &AlignedDistribution) -> (Self, u32) {
        let ranks = distribution.ranks();
        let most = (0..ranks).map(|rank| distribution.local_count(rank)).max();
        let span = most.unwrap_or(0).max(1).next_power_of_two();
        let own = AlignedDistribution::from(distribution.template().clone()) == *distribution;
        let steps = |rank: u64| {
            let shape = distribution.local_shape(rank);
            let mut steps = vec![1; shape.len()];
            for axis in (1..shape.len()).rev() {
                steps[axis - 1] = steps[axis] * shape[axis];
            }
            steps
        };
        let places = Self {
            shape: distribution.shape().to_vec(),
            kind: Kind::Parts {
                own_template: own,
                local_steps: (0..ranks).map(steps).collect(),
                distribution: Box::new(distribution.clone()),
                span,
            },
            extent: span.saturating_mul(ranks),
        };
        (places, span.trailing_zeros())
    }

    /// The shape that is indexed.
    pub(crate) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// Beyond the last place.
    pub(crate) fn extent(&self) -> u64 {
        self.extent
    }

    /// Whether elements stand in the order of their numbers.
    pub(crate) fn in_order(&self) -> bool {
        self.kind == Kind::InOrder
    }

    /// Where the element with this number, which the array has, stands.
    pub(crate) fn of(&self, number: u64) -> u64 {
        match &self.kind {
            Kind::InOrder => number,
            Kind::Strided(steps) => {
                let mut rest = number;
                let mut place = 0;
                for (step, extent) in steps.iter().zip(&self.shape).rev() {
                    place += rest % extent * step;
                    rest /= extent;
                }
                place
            }
            Kind::Tiled(axes) => {
                let mut rest = number;
                let mut place = 0;
                for ([tile, outside, inside], extent) in axes.iter().zip(&self.shape).rev() {
                    let index = rest % extent;
                    place += index / tile * outside + index % tile * inside;
                    rest /= extent;
                }
                place
            }
            Kind::Parts {
                distribution,
                own_template,
                local_steps,
                span,
            } => {
                let mut index = vec![0; self.shape.len()];
                let mut rest = number;
                for (at, extent) in index.iter_mut().zip(&self.shape).rev() {
                    *at = rest % extent;
                    rest /= extent;
                }
                let template = distribution.template();
                let (owner, local) = match own_template {
                    true => (template.owner(&index), template.to_local(&index)),
                    false => {
                        let owner = distribution.owners(&index).first().copied();
                        let local = owner.and_then(|rank| distribution.to_local(rank, &index));
                        (owner, local)
                    }
                };
                let owner = owner.unwrap_or(0);
                let local = local.unwrap_or_default();
                let steps = local_steps[owner as usize].iter();
                owner * span
                    + local
                        .iter()
                        .zip(steps)
                        .map(|(at, step)| at * step)
                        .sum::<u64>()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use outcore_geometry::{Distribution, Order, Section};

    #[test]
    fn places_are_those_of_the_layout() {
        let shapes: [(&[u64], Option<&[u64]>); 3] = [
            (&[5, 7, 4], None),
            (&[5, 7, 4], Some(&[2, 3, 3])),
            (&[9], None),
        ];
        for (shape, tile) in shapes {
            let mut orders = vec![Order::Row, Order::Column];
            if shape.len() == 3 {
                orders.push(Order::from_slowest_first(&[1, 2, 0]));
            }
            for order in orders {
                let layout = Layout::new(shape, 8, &order, tile).unwrap();
                let (places, records) = Places::of_layout(&layout, shape.len()).unwrap();
                assert_eq!(records.components, 1);
                assert_eq!(places.extent() * 8, layout.byte_len());
                let whole = Section::whole(shape).unwrap();
                let mut index = vec![0; shape.len()];
                for number in 0..whole.count() {
                    let mut rest = number;
                    for axis in (0..shape.len()).rev() {
                        index[axis] = rest % shape[axis];
                        rest /= shape[axis];
                    }
                    assert_eq!(places.of(number) * 8, layout.offset(&index).unwrap());
                }
            }
        }
    }

    #[test]
    fn records_are_in_one_piece_or_in_planes() {
        let of = |order: Order, axes| {
            let layout = Layout::new(&[6, 5, 3], 8, &order, None).unwrap();
            Places::of_layout(&layout, axes)
        };
        assert_eq!(
            of(Order::Row, 2).unwrap().1,
            Records {
                components: 3,
                apart: false
            }
        );
        let (places, records) = of(Order::Column, 2).unwrap();
        assert!(records.apart && records.components == 3);
        assert_eq!(places.of(2 * 5 + 4), 4 * 6 + 2);
        assert!(of(Order::from_slowest_first(&[0, 2, 1]), 2).is_err());
        assert!(of(Order::Row, 4).is_err());
    }

    #[test]
    fn parts_of_ranks_follow_one_another() {
        let distribution = Distribution::parse("cyclic(2)", &[11], 3, None).unwrap();
        let (places, shift) = Places::of_parts(&distribution.into());
        assert_eq!(shift, 2);
        let all: Vec<u64> = (0..11).map(|number| places.of(number)).collect();
        assert_eq!(all, [0, 1, 4, 5, 8, 9, 2, 3, 6, 7, 10]);
    }
}
