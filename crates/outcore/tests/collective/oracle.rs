//! What collective calls must do, byte by byte: the file as a vector, in which
//! each element is looked up by its index.

use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;

use outcore::storage::{RangeLock, Result, Store, Striping};
use outcore::{
    Array, ArrayDescriptor, AxisSection, ByteOrder, Carrier, Collective, DomainKind, ElementType,
    Layout, MemoryBudget, Phases, Section,
};
use proptest::prelude::*;

/// An array, and what each rank asks for.
#[derive(Debug, Clone)]
pub(crate) struct Case {
    pub(crate) shape: Vec<u64>,
    pub(crate) layout: String,
    pub(crate) element_type: ElementType,
    pub(crate) byte_order: ByteOrder,
    pub(crate) sections: Vec<Section>,
    pub(crate) domains: DomainKind,
    pub(crate) phases: Phases,
    pub(crate) window: u64,
    pub(crate) carrier: Carrier,
    /// The memory of the process, if it is limited.
    pub(crate) memory: Option<u64>,
    pub(crate) guarded: bool,
}

impl Case {
    pub(crate) fn ranks(&self) -> usize {
        self.sections.len()
    }

    pub(crate) fn descriptor(&self) -> ArrayDescriptor {
        ArrayDescriptor::new(&self.shape, self.element_type)
            .layout(self.layout.parse().unwrap())
            .byte_order(self.byte_order)
    }

    /// What the file holds at first: a different byte everywhere.
    pub(crate) fn contents(&self) -> Vec<u8> {
        let len = self.descriptor().byte_len().unwrap();
        (0..len).map(|at| byte(at, 0)).collect()
    }

    /// The array in a store that says it is striped.
    pub(crate) fn array_in(&self, store: Arc<dyn Store>) -> Array {
        let store = Arc::new(Striped {
            inner: store,
            guarded: self.guarded,
        });
        Array::in_store("striped", &self.descriptor(), store).unwrap()
    }

    /// The calls of this case.
    pub(crate) fn calls<'a>(&self, array: &'a Array, budget: &MemoryBudget) -> Collective<'a> {
        let calls = array.collective().domains(self.domains).phases(self.phases);
        let calls = calls.carrier(self.carrier);
        match self.memory {
            Some(_) => calls.window(self.window).budget(budget),
            None => calls.window(self.window),
        }
    }

    /// What a rank writes, the `round`th time.
    pub(crate) fn data(&self, rank: usize, round: u64) -> Vec<u8> {
        let bytes = self.sections[rank].count() * self.element_type.size();
        let writer = 1 + rank as u64 + 100 * round;
        (0..bytes).map(|at| byte(at, writer)).collect()
    }

    /// What a rank must get from a file of such contents.
    pub(crate) fn expected(&self, file: &[u8], layout: &Layout, section: &Section) -> Vec<u8> {
        let size = layout.element_size() as usize;
        let mut buffer = Vec::new();
        for index in indices(layout, section) {
            let at = offset(layout, &index) as usize;
            buffer.extend(self.native(&file[at..at + size]));
        }
        buffer
    }

    /// Puts what a rank writes into the file.
    pub(crate) fn apply(&self, file: &mut [u8], layout: &Layout, section: &Section, data: &[u8]) {
        let size = layout.element_size() as usize;
        for (index, value) in indices(layout, section).zip(data.chunks(size)) {
            let at = offset(layout, &index) as usize;
            file[at..at + size].copy_from_slice(&self.native(value));
        }
    }

    /// An element with its numbers in this machine's byte order, or back.
    fn native(&self, element: &[u8]) -> Vec<u8> {
        let width = match self.element_type {
            ElementType::C64 => 4,
            ElementType::C128 => 8,
            other => other.size() as usize,
        };
        let mut element = element.to_vec();
        if self.byte_order != ByteOrder::NATIVE {
            element.chunks_mut(width).for_each(<[u8]>::reverse);
        }
        element
    }
}

/// A byte that depends on the place and on who wrote it.
pub(crate) fn byte(at: u64, writer: u64) -> u8 {
    let mixed = (at + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15) ^ writer.wrapping_mul(0xbf58_476d);
    (mixed.wrapping_mul(0x94d0_49bb_1331_11eb) >> 56) as u8
}

/// The indices of a section in the order of the buffer.
fn indices(layout: &Layout, section: &Section) -> impl Iterator<Item = Vec<u64>> {
    let (order, section) = (layout.slowest_first().to_vec(), section.clone());
    (0..section.count()).map(move |mut number| {
        let mut index = vec![0; order.len()];
        for axis in order.iter().rev() {
            let taken = &section.axes()[*axis];
            index[*axis] = taken.index(number % taken.count());
            number /= taken.count();
        }
        index
    })
}

/// Where an element stands in the file.
fn offset(layout: &Layout, index: &[u64]) -> u64 {
    let mut number = 0;
    let (mut inner, mut tile_elements) = (0, 1);
    for axis in layout.slowest_first() {
        let tile = layout.tile().map_or(1, |tile| tile[*axis]);
        number = number * layout.shape()[*axis].div_ceil(tile) + index[*axis] / tile;
        inner = inner * tile + index[*axis] % tile;
        tile_elements *= tile;
    }
    (number * tile_elements + inner) * layout.element_size()
}

/// A store that says it is striped, with or without locks.
#[derive(Debug)]
struct Striped {
    inner: Arc<dyn Store>,
    guarded: bool,
}

impl Store for Striped {
    fn striping(&self) -> Option<Striping> {
        Some(Striping::new(3, 48).unwrap())
    }

    fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        match self.guarded {
            true => self.inner.lock(offset, len),
            false => Ok(None),
        }
    }

    fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
        match self.guarded {
            true => self.inner.lock_shared(offset, len),
            false => Ok(None),
        }
    }

    fn name(&self) -> String {
        self.inner.name()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        self.inner.read_some_at(offset, buffer)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.inner.write_some_at(offset, data)
    }

    fn len(&self) -> Result<u64> {
        self.inner.len()
    }

    fn set_len(&self, len: u64) -> Result<()> {
        self.inner.set_len(len)
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }
}

/// An axis: its extent, its tile, and the numbers of which sections are made.
type Axis = (u64, u64);

fn axis_section() -> impl Strategy<Value = (u64, u64, u64, Option<Vec<u64>>)> {
    (
        0u64..14,
        0u64..14,
        1u64..6,
        proptest::option::weighted(0.2, proptest::collection::btree_set(0u64..12, 0..6)),
    )
        .prop_map(|(lower, upper, stride, list)| {
            (
                lower,
                upper,
                stride,
                list.map(|list| list.into_iter().collect()),
            )
        })
}

/// What a rank asks for, whatever the shape.
fn rough_section() -> impl Strategy<Value = Vec<(u64, u64, u64, Option<Vec<u64>>)>> {
    proptest::collection::vec(axis_section(), 4)
}

fn fitted(axes: &[Axis], rough: &[(u64, u64, u64, Option<Vec<u64>>)]) -> Section {
    let axes = axes.iter().zip(rough);
    let axes = axes.map(|((extent, _), (lower, upper, stride, list))| match list {
        Some(list) => {
            let list: Vec<u64> = list.iter().copied().filter(|at| at < extent).collect();
            AxisSection::list(list).unwrap()
        }
        // Most bounds lie outside of small axes: whole axes are frequent.
        None => {
            let lower = if lower >= extent { 0 } else { *lower };
            let upper = if *upper <= lower {
                *extent
            } else {
                *upper.min(extent)
            };
            AxisSection::range(lower, upper, *stride).unwrap()
        }
    });
    Section::new(axes.collect()).unwrap()
}

/// How the sections of the ranks are related.
#[derive(Debug, Clone, Copy)]
enum Relation {
    Any,
    Common,
    Interleaved,
}

/// Random calls by so many ranks.
pub(crate) fn cases_of(ranks: RangeInclusive<usize>) -> impl Strategy<Value = Case> {
    let array = (
        proptest::collection::vec((0u64..12, 1u64..5), 1..5),
        proptest::sample::select(vec!["row", "column", "axes", "tiled"]),
        proptest::sample::select(ElementType::ALL.to_vec()),
        any::<bool>(),
    );
    let relation = prop_oneof![
        3 => Just(Relation::Any),
        1 => Just(Relation::Common),
        2 => Just(Relation::Interleaved)
    ];
    let how = (
        proptest::sample::select(DomainKind::ALL.to_vec()),
        proptest::sample::select(vec![Phases::Auto, Phases::Separate, Phases::Pipelined]),
        prop_oneof![1u64..300, Just(1 << 20)],
        proptest::option::of(1000u64..100_000),
        any::<bool>(),
        proptest::sample::select(vec![Carrier::Auto, Carrier::Memory, Carrier::Messages]),
    );
    let requests = proptest::collection::vec(rough_section(), ranks);
    (array, requests, relation, how).prop_map(
        |(
            (axes, kind, element_type, little),
            rough,
            relation,
            (domains, phases, window, memory, guarded, carrier),
        )| {
            let shape: Vec<u64> = axes.iter().map(|(extent, _)| *extent).collect();
            let layout = match kind {
                "axes" => {
                    let turned = (0..axes.len()).map(|at| ((at + 1) % axes.len()).to_string());
                    format!("axes:{}", turned.collect::<Vec<_>>().join(","))
                }
                "tiled" => {
                    let tile = axes.iter().map(|(_, tile)| tile.to_string());
                    format!("tiled:{}", tile.collect::<Vec<_>>().join("x"))
                }
                kind => kind.into(),
            };
            let ranks = rough.len() as u64;
            let sections = (0..ranks).map(|rank| match relation {
                Relation::Any => fitted(&axes, &rough[rank as usize]),
                Relation::Common => fitted(&axes, &rough[0]),
                Relation::Interleaved => {
                    let mut taken = fitted(&axes, &rough[0]).axes().to_vec();
                    taken[0] = AxisSection::range(rank.min(axes[0].0), axes[0].0, ranks).unwrap();
                    Section::new(taken).unwrap()
                }
            });
            Case {
                sections: sections.collect(),
                shape,
                layout,
                element_type,
                byte_order: if little {
                    ByteOrder::Little
                } else {
                    ByteOrder::Big
                },
                domains,
                phases,
                window,
                carrier,
                memory,
                guarded,
            }
        },
    )
}
