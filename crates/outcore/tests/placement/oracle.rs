//! What the local array of a rank must hold, element by element.

use std::sync::Arc;

use outcore::storage::{MemoryStore, Store};
use outcore::{
    Array, ArrayDescriptor, AxisDistribution, Boundary, ByteOrder, Distribution, ElementType, Fill,
    LocalPlacement, Section,
};
use proptest::prelude::*;

/// An array, a distribution of it, and overlap areas.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) shape: Vec<u64>,
    pub(crate) distribution: String,
    pub(crate) ranks: usize,
    pub(crate) overlap: Vec<(u64, u64)>,
    pub(crate) layout: String,
    pub(crate) element_type: ElementType,
    pub(crate) boundary: Boundary,
    pub(crate) byte_order: ByteOrder,
}

pub(crate) fn cases() -> impl Strategy<Value = Case> {
    let axis = (
        0u64..13,
        prop_oneof![
            Just("block".to_string()),
            Just("cyclic".to_string()),
            (1u64..4).prop_map(|m| format!("cyclic({m})")),
            Just("*".to_string()),
        ],
        (0u64..4, 0u64..4),
    );
    (
        proptest::collection::vec(axis, 1..4),
        proptest::sample::select(vec![1usize, 2, 3, 5, 16]),
        any::<bool>(),
        any::<prop::sample::Index>(),
        proptest::sample::select(ElementType::ALL.to_vec()),
        prop_oneof![
            Just(Boundary::Circular),
            Just(Boundary::Nearest),
            Just(Boundary::Keep),
            Just(Boundary::Value(1.0)),
        ],
        proptest::sample::select(vec![ByteOrder::Little, ByteOrder::Big]),
    )
        .prop_map(
            |(axes, ranks, column, order, element_type, boundary, byte_order)| {
                let layout = match (axes.len(), column) {
                    (3, true) => {
                        let orders = [
                            "axes:0,2,1",
                            "axes:1,0,2",
                            "axes:1,2,0",
                            "column",
                            "axes:2,0,1",
                        ];
                        orders[order.index(orders.len())]
                    }
                    (_, true) => "column",
                    (_, false) => "row",
                };
                let kinds: Vec<&str> = axes.iter().map(|(_, kind, _)| kind.as_str()).collect();
                Case {
                    shape: axes.iter().map(|(extent, ..)| *extent).collect(),
                    distribution: kinds.join(","),
                    ranks,
                    overlap: axes.iter().map(|(.., overlap)| *overlap).collect(),
                    layout: layout.into(),
                    element_type,
                    boundary,
                    byte_order,
                }
            },
        )
}

impl Case {
    pub(crate) fn descriptor(&self) -> ArrayDescriptor {
        ArrayDescriptor::new(&self.shape, self.element_type)
            .layout(self.layout.parse().unwrap())
            .byte_order(self.byte_order)
    }

    pub(crate) fn placement(&self) -> LocalPlacement {
        let ranks = self.ranks as u64;
        let distribution = Distribution::parse(&self.distribution, &self.shape, ranks, None);
        LocalPlacement::new(distribution.unwrap()).overlap(&self.overlap)
    }

    /// Whether some overlap area is deeper than a block that must fill it.
    pub(crate) fn too_deep(&self) -> bool {
        let placement = self.placement();
        let axes = placement.distribution.axes().iter().zip(&self.overlap);
        axes.into_iter().any(|(axis, (below, above))| {
            let blocks: Vec<u64> = (0..axis.extent())
                .step_by(axis.block() as usize)
                .map(|start| axis.block().min(axis.extent() - start))
                .collect();
            let circular = self.boundary == Boundary::Circular;
            (0..blocks.len()).any(|block| {
                let next = (block + 1 < blocks.len()).then_some(block + 1);
                let next = next.or(circular.then_some(0));
                let previous = block
                    .checked_sub(1)
                    .or(circular.then_some(blocks.len() - 1));
                next.is_some_and(|next| blocks[next] < *above)
                    || previous.is_some_and(|previous| blocks[previous] < *below)
            })
        })
    }

    /// What the part of `rank` must hold after its overlap areas were zero and
    /// have been exchanged: dense, in the order of its axes.
    pub(crate) fn part(&self, rank: usize) -> Vec<u8> {
        let placement = self.placement();
        let distribution = &placement.distribution;
        let values = row_major(&self.shape, self.element_type);
        let size = self.element_type.size() as usize;
        let Some(at) = distribution.coordinates(rank as u64) else {
            return Vec::new();
        };
        // The global index of each position of each axis, if it were unbounded.
        let positions: Vec<Vec<i64>> = (0..self.shape.len())
            .map(|axis| {
                let (below, above) = self.overlap[axis];
                let spread = &distribution.axes()[axis];
                let starts = (0..spread.extent()).step_by(spread.block() as usize);
                let own = starts.filter(|start| spread.owner(*start) == at[axis]);
                own.flat_map(|start| {
                    let end = (start + spread.block()).min(spread.extent());
                    start as i64 - below as i64..(end + above) as i64
                })
                .collect()
            })
            .collect();
        let extents: Vec<u64> = positions.iter().map(|list| list.len() as u64).collect();
        let mut part = Vec::new();
        let descriptor = self.descriptor();
        let order = descriptor.arrangement.order.slowest_first(self.shape.len());
        for index in indices(&extents, &order.unwrap()) {
            let global = index
                .iter()
                .zip(&positions)
                .map(|(at, list)| list[*at as usize]);
            match self.resolve(global) {
                Ok(index) => {
                    let number = index
                        .iter()
                        .zip(&self.shape)
                        .fold(0, |number, (at, extent)| number * extent + at);
                    part.extend_from_slice(&values[number as usize * size..][..size]);
                }
                Err(value) => part.extend(constant(self.element_type, value)),
            }
        }
        part
    }

    /// Which element stands at a global index that may lie outside; or which
    /// number.
    fn resolve(&self, global: impl Iterator<Item = i64>) -> Result<Vec<u64>, &'static str> {
        let axes = global.zip(&self.shape);
        axes.map(|(at, extent)| {
            let extent = *extent as i64;
            if (0..extent).contains(&at) {
                return Ok(at as u64);
            }
            match self.boundary {
                Boundary::Circular => Ok(at.rem_euclid(extent) as u64),
                Boundary::Nearest => Ok(at.clamp(0, extent - 1) as u64),
                Boundary::Keep => Err("0"),
                Boundary::Value(_) => Err("1"),
            }
        })
        .collect()
    }
}

/// The numbers of the elements, as bytes in row-major order.
pub(crate) fn row_major(shape: &[u64], element_type: ElementType) -> Vec<u8> {
    let array = in_memory(&ArrayDescriptor::new(shape, element_type));
    let mut bytes = vec![0; (array.whole().count() * element_type.size()) as usize];
    Fill::Index
        .generate(&array, &array.whole(), &mut bytes)
        .unwrap();
    bytes
}

/// An array of zeros in memory.
pub(crate) fn in_memory(descriptor: &ArrayDescriptor) -> Array {
    let store = Arc::new(MemoryStore::new());
    store.set_len(descriptor.byte_len().unwrap()).unwrap();
    Array::in_store("memory", descriptor, store).unwrap()
}

/// An array of the elements' numbers in memory.
pub(crate) fn numbered(descriptor: &ArrayDescriptor) -> Array {
    let array = in_memory(descriptor);
    let whole = array.whole();
    let mut bytes = vec![0; (whole.count() * array.layout().element_size()) as usize];
    Fill::Index.generate(&array, &whole, &mut bytes).unwrap();
    array.write_bytes(&whole, &bytes).unwrap();
    array
}

/// Everything an array holds.
pub(crate) fn contents(array: &Array, section: &Section) -> Vec<u8> {
    let mut bytes = vec![0; (section.count() * array.layout().element_size()) as usize];
    array.read_bytes(section, &mut bytes).unwrap();
    bytes
}

fn constant(element_type: ElementType, value: &str) -> Vec<u8> {
    let array = in_memory(&ArrayDescriptor::new(&[1], element_type));
    let mut bytes = vec![0; element_type.size() as usize];
    let fill = Fill::Value(value.into());
    fill.generate(&array, &array.whole(), &mut bytes).unwrap();
    bytes
}

/// All indices of a box, the last axis of `order` varying fastest.
fn indices(extents: &[u64], order: &[usize]) -> Vec<Vec<u64>> {
    let mut all = vec![vec![0; extents.len()]];
    for axis in order {
        let each = |index: &Vec<u64>| {
            let index = index.clone();
            (0..extents[*axis]).map(move |at| {
                let mut index = index.clone();
                index[*axis] = at;
                index
            })
        };
        all = all.iter().flat_map(each).collect();
    }
    all
}

/// A kind that cannot be given for some number of ranks is no case.
pub(crate) fn is_possible(case: &Case) -> bool {
    let collapsed = case
        .distribution
        .split(',')
        .all(|kind| kind.parse::<AxisDistribution>().unwrap() == AxisDistribution::Collapsed);
    let ranks = case.ranks as u64;
    collapsed || Distribution::parse(&case.distribution, &case.shape, ranks, None).is_ok()
}
