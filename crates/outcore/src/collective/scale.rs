//! Plans of very many ranks, one after the other in one thread: what a rank
//! does and holds must not grow with their number.

use std::alloc::{GlobalAlloc, Layout as Memory, System};
use std::cell::Cell;
use std::sync::Arc;
use std::time::{Duration, Instant};

use outcore_geometry::{AxisSection, Section};
use outcore_storage::MemoryStore;

use super::domains::Domains;
use super::kind::DomainKind;
use super::parties::Parties;
use super::request::Request;
use super::schedule::Schedule;
use super::survey::{join, joined};
use super::two_phase::{Phases, TwoPhase};
use super::weights::Weights;
use crate::strategy::Direction;
use crate::{Array, ArrayDescriptor, ElementType};

/// Counts the bytes that this thread holds.
struct Counted;

thread_local! {
    static HELD: Cell<isize> = const { Cell::new(0) };
}

// SAFETY: everything is passed on to the system's allocator.
unsafe impl GlobalAlloc for Counted {
    unsafe fn alloc(&self, memory: Memory) -> *mut u8 {
        HELD.with(|held| held.set(held.get() + memory.size() as isize));
        // SAFETY: the caller keeps the contract.
        unsafe { System.alloc(memory) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, memory: Memory) {
        HELD.with(|held| held.set(held.get() - memory.size() as isize));
        // SAFETY: the caller keeps the contract.
        unsafe { System.dealloc(pointer, memory) }
    }
}

#[global_allocator]
static COUNTED: Counted = Counted;

/// What the busiest rank of all does and holds.
#[derive(Debug, Default)]
struct Busiest {
    /// Domains that it asks, ranks that ask it, and the bytes it is told.
    touched: usize,
    touching: usize,
    told: usize,
    /// Requests to the store in all its windows, and the windows.
    stretches: usize,
    windows: u64,
    /// Bytes of its plan.
    held: isize,
    /// Of all ranks in the mean.
    time: Duration,
}

const COLUMNS: u64 = 4096;

/// Sixteen rows a rank and one of each neighbour; or blocks of columns, eight
/// ranks side by side.
fn section(rank: u64, ranks: u64, blocks: bool) -> Section {
    let rows = |first: u64, end: u64| AxisSection::span(first, end.min(16 * ranks));
    let axes = match blocks {
        false => vec![
            rows((16 * rank).saturating_sub(1), 16 * rank + 17),
            AxisSection::span(0, COLUMNS),
        ],
        true => vec![
            rows(rank / 8 * 128, rank / 8 * 128 + 128),
            AxisSection::span(rank % 8 * 512, rank % 8 * 512 + 512),
        ],
    };
    Section::new(axes).unwrap()
}

/// Plans a read of all ranks with windows of 64 KiB.
fn plan(ranks: u64, blocks: bool, kind: DomainKind) -> Busiest {
    let descriptor = ArrayDescriptor::new(&[16 * ranks, COLUMNS], ElementType::F32);
    let store = Arc::new(MemoryStore::new());
    let array = Array::in_store("simulated", &descriptor, store).unwrap();
    let layout = array.layout();
    let start = Instant::now();
    // 1. What all have in common.
    let request = |rank| Request::new(layout, &section(rank, ranks, blocks)).unwrap();
    let terms = |rank| joined(&Ok((request(rank), 1 << 30)), 7);
    let mut common = terms(0);
    (1..ranks).for_each(|rank| join(&mut common, &terms(rank)));
    let bounds = (common[4], common[5]);
    let domains = Domains::new(kind, &array, bounds, ranks as usize, || {
        Ok(Weights::new(bounds))
    });
    let domains = domains.unwrap();
    // 2. Everybody tells those whose domains it touches what it asks for.
    let mut told: Vec<Vec<(usize, Vec<u64>)>> = vec![Vec::new(); ranks as usize];
    for rank in 0..ranks {
        let own = request(rank);
        for domain in domains.touched(&own) {
            told[domains.rank(domain)].push((rank as usize, own.words()));
        }
    }
    // 3. Everybody plans, and goes through its windows.
    let mut busiest = Busiest::default();
    for (rank, told) in told.into_iter().enumerate() {
        let bytes: usize = told.iter().map(|(_, words)| 8 * words.len()).sum();
        busiest.told = busiest.told.max(bytes);
        busiest.touching = busiest.touching.max(told.len());
        let own = request(rank as u64);
        let held = HELD.with(Cell::get);
        let touched = domains.touched(&own);
        busiest.touched = busiest.touched.max(touched.len());
        let (domains, direction) = (domains.clone(), Direction::Read);
        let parties = Parties::among_many(layout, direction, &domains, &own, touched, told);
        let plan = TwoPhase::of(
            &array,
            direction,
            domains,
            (rank, own),
            parties.unwrap(),
            Phases::Separate,
            (bounds, (1 << 30, 64 << 10)),
        );
        let (mut schedule, mut stretches) = (Schedule::default(), 0);
        for window in 0..plan.rounds() {
            schedule.enter(&plan, window);
            let places = schedule.places.iter();
            stretches += places
                .map(|place| schedule.stretches(place).len())
                .sum::<usize>();
        }
        busiest.windows = busiest.windows.max(plan.rounds());
        busiest.stretches = busiest.stretches.max(stretches);
        // What it was told is no longer held.
        let held = HELD.with(Cell::get) - held + bytes as isize;
        busiest.held = busiest.held.max(held);
    }
    busiest.time = start.elapsed() / ranks as u32;
    busiest
}

#[test]
fn ten_thousand_ranks_cost_each_what_a_hundred_do() {
    for (blocks, kind) in [
        (false, DomainKind::Dynamic),
        (true, DomainKind::Dynamic),
        (false, DomainKind::Cyclic),
    ] {
        let few = plan(100, blocks, kind);
        for ranks in [1000, 10_000] {
            let many = plan(ranks, blocks, kind);
            println!("{kind}, {ranks} ranks: {many:?}");
            let said = format!("{few:?} {many:?}");
            assert!(many.touched <= few.touched + 1, "{said}");
            assert!(many.touching <= few.touching + 1, "{said}");
            assert!(many.told <= few.told + 256, "{said}");
            assert!(many.stretches <= few.stretches + 2, "{said}");
            assert!(many.windows <= few.windows + 1, "{said}");
            assert!(many.held <= few.held + 1024, "{said}");
            // With much to spare, since other tests run at the same time.
            let most = few.time * 5 + Duration::from_millis(1);
            assert!(many.time < most, "{said}");
        }
    }
}
