//! Decisions with made-up facts.

use std::sync::Arc;

use outcore_geometry::Pattern;
use outcore_storage::MemoryStore;
use outcore_transport::threads;

use super::*;
use crate::strategy::profile::StorageProfile;
use crate::{ArrayDescriptor, ElementType};

const RANKS: u64 = 16;

fn array() -> Array {
    let descriptor = ArrayDescriptor::new(&[4096, 4096], ElementType::F32);
    let descriptor = descriptor.layout("column".parse().unwrap());
    Array::in_store("columns", &descriptor, Arc::new(MemoryStore::new())).unwrap()
}

fn requests(array: &Array, pattern: &str) -> Vec<Request> {
    let pattern: Pattern = pattern.parse().unwrap();
    let sections = (0..RANKS).map(|rank| pattern.section(array.shape(), rank, RANKS));
    let requests = sections.map(|section| Request::new(array.layout(), &section.unwrap()).unwrap());
    requests.collect()
}

fn facts(cached: f64, mappable: bool, (warm, cold): (f64, f64)) -> Facts {
    let profile = StorageProfile::default();
    Facts {
        cached,
        mappable: f64::from(u8::from(mappable)),
        cores: 2.0,
        gap: 6000.0,
        alone: [Alone { warm, cold }; 3],
        cached_read: profile.cached_read,
        cold_read: profile.cold_read,
        write: profile.write,
        copy: profile.copy,
        ahead: profile.ahead,
        read_ahead: profile.read_ahead as f64,
        exchange: ExchangeCost::default(),
    }
}

fn bounds(requests: &[Request]) -> (u64, u64) {
    let start = requests.iter().map(|request| request.start).min();
    let end = requests.iter().map(|request| request.end).max();
    (start.unwrap(), end.unwrap())
}

/// What is decided, by ranks that all know the same.
fn chosen(
    array: &Array,
    direction: Direction,
    facts: Facts,
    requests: &[Request],
) -> CollectiveEstimate {
    let situation = Situation {
        array,
        direction,
        requests,
        bounds: bounds(requests),
        limit: 4 << 20,
        facts: vec![facts; requests.len()],
        shared: true,
    };
    threads::run(1, |comm| situation.choose(comm))
        .swap_remove(0)
        .unwrap()
}

#[test]
fn facts_are_told_as_they_are() {
    let mut facts = facts(0.5, true, (1.0, 2.0));
    facts.alone[1].warm = f64::INFINITY;
    facts.exchange.message.byte = 7.0;
    assert_eq!(Facts::of_told(facts.told()), facts);
}

#[test]
fn the_expected_winners() {
    use Direction::{Read, Write};
    let array = array();
    let alone = CollectiveWay::Independent(Strategy::Auto);
    let way = |pattern: &str, direction, facts| {
        chosen(&array, direction, facts, &requests(&array, pattern)).way
    };
    let held = facts(1.0, true, (3e-3, 0.0));
    for pattern in ["p::16, :", ":, :", "256*p:256*p+256, ::3"] {
        assert_eq!(way(pattern, Read, held), alone);
        assert_eq!(way(pattern, Write, held), alone);
    }
    // Single elements all over a file that cannot be mapped: everybody would
    // read and write all of it.
    let whole = facts(0.0, false, (20e-3, 25e-3));
    for direction in [Read, Write] {
        assert_eq!(way("p::16, :", direction, whole), CollectiveWay::TwoPhase);
    }
    // Blocks of whole columns: an exchange gains nothing.
    let block = facts(0.0, false, (0.5e-3, 1e-3));
    assert_eq!(way(":, 256*p:256*p+256", Read, block), alone);
    // Columns dealt out in turn have no page in common, though all reach from
    // one end of the file to the other.
    let turns = facts(0.0, true, (5e-3, 10e-3));
    assert_eq!(way(":, p::16", Read, turns), CollectiveWay::TwoPhase);
    // Parts that are not regular cannot be told apart.
    let lists = facts(0.0, false, (1e-9, 1e-9));
    assert_eq!(way("[1,5,6,9], :", Write, lists), alone);
    let mut other = requests(&array, "[1,5,6,9], :");
    other[15] = requests(&array, "[1,6,9], :").swap_remove(15);
    let way = chosen(&array, Write, lists, &other).way;
    assert_eq!(way, CollectiveWay::TwoPhase);
}

#[test]
fn domains_follow_what_is_asked_for() {
    let array = array();
    let whole = facts(0.0, false, (20e-3, 25e-3));
    // Nearly everything is asked of the first columns.
    let mut uneven = requests(&array, "p::16, 0:256");
    uneven[15] = requests(&array, "15::16, :").swap_remove(15);
    let weighted = chosen(&array, Direction::Read, whole, &uneven);
    assert_eq!(weighted.way, CollectiveWay::TwoPhase);
    assert_eq!(weighted.domains, Some(DomainKind::Weighted));
    // More ranks than cores: as many read as can at a time.
    let even = chosen(
        &array,
        Direction::Read,
        whole,
        &requests(&array, "p::16, :"),
    );
    assert_eq!(even.domains, Some(DomainKind::Few(2)));
}

#[test]
fn what_all_want_together_is_counted_once() {
    let array = array();
    let ask = |pattern: &str, direction| {
        let requests = requests(&array, pattern);
        let situation = Situation {
            array: &array,
            direction,
            requests: &requests,
            bounds: bounds(&requests),
            limit: 4 << 20,
            facts: vec![facts(0.0, false, (1.0, 1.0)); 16],
            shared: true,
        };
        (
            situation.accesses(0),
            situation.accesses(6000),
            situation.common(),
        )
    };
    let pattern = "p::16, 0:1024";
    let Accesses { moved, whole, .. } = ask(pattern, Direction::Read).0;
    assert_eq!((moved.count, moved.bytes), (16.0, (16 << 20) as f64));
    assert_eq!(whole, moved.bytes);
    let Accesses {
        moved, read_before, ..
    } = ask(pattern, Direction::Write).0;
    assert_eq!((moved.count, read_before.count), (16.0, 0.0));
    let Accesses {
        moved, read_before, ..
    } = ask("2*p::32, 0:1024", Direction::Write).1;
    assert!(
        moved.count > 0.0 && read_before == moved,
        "{moved:?} {read_before:?}"
    );
    assert_eq!(ask(":, :", Direction::Read).2, 1.0 / 16.0);
    assert_eq!(ask(":, 256*p:256*p+256", Direction::Read).2, 1.0);
    assert_eq!(ask(":, p::16", Direction::Read).2, 1.0);
}
