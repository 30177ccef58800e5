//! How often the store is asked, and for how much.

use std::sync::Arc;
use std::time::Duration;

use outcore::storage::{CountedStore, Counts, DeviceModel, MemoryStore, ThrottledStore, Time};
use outcore::{
    Array, ArrayDescriptor, Carrier, Direction, DomainKind, ElementType, Error, Pattern, Phases,
};

const SHAPE: [u64; 2] = [64, 48];
const BYTES: u64 = 64 * 48 * 4;

/// What the store sees of a collective call of the sections of a pattern.
fn counts(
    ranks: usize,
    pattern: &str,
    direction: Direction,
    (domains, phases, window): (DomainKind, Phases, u64),
) -> Counts {
    let store = Arc::new(CountedStore::new(MemoryStore::from(vec![
        1;
        BYTES as usize
    ])));
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::I32);
    let array = Array::in_store("counted", &descriptor, store.clone()).unwrap();
    let pattern: Pattern = pattern.parse().unwrap();
    let moved = outcore::run(ranks, |comm| {
        let mine = pattern.section(&SHAPE, comm.rank() as u64, ranks as u64);
        let mine = mine.map_err(|error| Error::Invalid(error.to_string()))?;
        let calls = array.collective().domains(domains).phases(phases);
        let calls = calls.window(window).carrier(Carrier::Messages);
        let mut values = vec![2i32; mine.count() as usize];
        match direction {
            Direction::Read => calls.read_into(comm, &mine, &mut values),
            Direction::Write => calls.write(comm, &mine, &values),
        }
    })
    .unwrap();
    // The ranks count what the store counts.
    let counts = store.counts();
    let requests: u64 = moved.iter().map(|moved| moved.requests).sum();
    let bytes: u64 = moved.iter().map(|moved| moved.moved).sum();
    assert_eq!(requests, counts.reads + counts.writes);
    assert_eq!(bytes, counts.bytes_read + counts.bytes_written);
    counts
}

const PLAIN: (DomainKind, Phases, u64) = (DomainKind::Dynamic, Phases::Separate, 1 << 20);

#[test]
fn common_data_are_read_once_and_written_by_one() {
    for ranks in [1, 4, 7] {
        let read = counts(ranks, ":, :", Direction::Read, PLAIN);
        assert_eq!((read.reads, read.bytes_read), (ranks as u64, BYTES));
        let written = counts(ranks, ":, :", Direction::Write, PLAIN);
        assert_eq!((written.reads, written.bytes_written), (0, BYTES));
    }
}

#[test]
fn what_the_ranks_cover_together_is_not_read_before_it_is_written() {
    for pattern in ["p::N, :", ":, p::N", "p:64, :"] {
        let written = counts(4, pattern, Direction::Write, PLAIN);
        assert_eq!(
            (written.reads, written.bytes_written),
            (0, BYTES),
            "{pattern}"
        );
        assert_eq!(written.writes, 4);
    }
    // Every second column is missing.
    let written = counts(4, ":, 2*p::2*N", Direction::Write, PLAIN);
    assert_eq!(written.reads, written.writes);
    assert_eq!(written.bytes_read, written.bytes_written);
}

#[test]
fn dynamic_domains_read_nothing_outside_of_the_sections_bounds() {
    let read = counts(4, "20+p:24+p, 5:9", Direction::Read, PLAIN);
    let last = (26 * 48 + 9 - (20 * 48 + 5)) * 4;
    assert!(read.bytes_read <= last, "{read:?}");
    assert!(read.bytes_read >= 7 * 4 * 4);
}

#[test]
fn phases_make_the_same_requests() {
    for direction in [Direction::Read, Direction::Write] {
        for pattern in ["p::N, :", ":, p:40:3", "p:p+20, 3:"] {
            let kinds = DomainKind::ALL.into_iter();
            for domains in kinds.filter(|kind| *kind != DomainKind::Disks) {
                let with = |phases| counts(5, pattern, direction, (domains, phases, 256));
                let (separate, pipelined) = (with(Phases::Separate), with(Phases::Pipelined));
                assert_eq!(separate, pipelined, "{pattern}");
            }
        }
    }
}

/// How long each rank has taken on a device of its own time.
fn took(ranks: usize, phases: Phases, direction: Direction) -> Vec<Duration> {
    let memory = MemoryStore::from(vec![1; BYTES as usize]);
    let store = ThrottledStore::new(memory, DeviceModel::pfs(), Time::Virtual).unwrap();
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::I32);
    outcore::run(ranks, |comm| {
        let own = Arc::new(store.for_caller());
        let array = Array::in_store("device", &descriptor, own.clone())?;
        let mine = array.section(&format!(":, {}::{ranks}", comm.rank()))?;
        let calls = array.collective().phases(phases).window(512);
        let calls = calls.carrier(Carrier::Messages);
        let mut values = vec![2i32; mine.count() as usize];
        match direction {
            Direction::Read => calls.read_into(comm, &mine, &mut values)?,
            Direction::Write => calls.write(comm, &mine, &values)?,
        };
        Ok::<_, Error>(own.elapsed())
    })
    .unwrap()
}

#[test]
fn ranks_of_a_simulated_device_leave_a_read_at_the_same_time() {
    for phases in [Phases::Separate, Phases::Pipelined] {
        let times = took(4, phases, Direction::Read);
        assert!(times.iter().all(|time| *time == times[0]), "{times:?}");
        assert!(times[0] > Duration::ZERO);
    }
}

#[test]
fn what_goes_on_beside_takes_no_longer() {
    for direction in [Direction::Read, Direction::Write] {
        let separate = took(1, Phases::Separate, direction);
        let pipelined = took(1, Phases::Pipelined, direction);
        assert!(pipelined <= separate, "{pipelined:?} {separate:?}");
    }
}
