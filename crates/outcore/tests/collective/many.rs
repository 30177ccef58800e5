//! More ranks than can all know of each other, and sections that follow from
//! the rank.

use std::sync::Arc;

use outcore::storage::MemoryStore;
use outcore::{
    Array, ArrayDescriptor, Direction, DomainKind, ElementType, Error, Pattern, Section,
};

/// More than the number up to which everybody knows everything.
const MANY: usize = 300;

const SHAPE: [u64; 2] = [601, 11];

fn array(layout: &str) -> (Arc<MemoryStore>, Array) {
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::I32).layout(layout.parse().unwrap());
    let memory = Arc::new(MemoryStore::from(vec![
        0;
        descriptor.byte_len().unwrap()
            as usize
    ]));
    let array = Array::in_store("memory", &descriptor, memory.clone()).unwrap();
    (memory, array)
}

/// Overlapping rows, every other column; some ranks want nothing, some a list.
fn section(rank: usize) -> Section {
    let text = match rank % 10 {
        7 => format!("{rank}:{rank}, :"),
        8 => format!("[{rank},{},600], [0,3,4,9]", rank + 2),
        _ => format!("{}:{}, {}::2", 2 * rank, 2 * rank + 5, rank % 2),
    };
    Section::parse(&text, &[606, 11])
        .unwrap()
        .clip(&SHAPE)
        .unwrap()
}

fn value(rank: usize, index: &[u64]) -> i32 {
    (rank as u64 * 10_000 + index[0] * SHAPE[1] + index[1]) as i32
}

/// The indices of a section in the order of rows.
fn indices(section: &Section) -> Vec<[u64; 2]> {
    let [rows, columns] = section.axes() else {
        panic!("two axes");
    };
    let row = |at| (0..columns.count()).map(move |k| [rows.index(at), columns.index(k)]);
    (0..rows.count()).flat_map(row).collect()
}

#[test]
fn more_ranks_than_know_each_other() {
    for (layout, kind) in [
        ("row", DomainKind::Dynamic),
        ("row", DomainKind::Cyclic),
        ("row", DomainKind::Weighted),
        ("tiled:7x4", DomainKind::Static),
        ("row", DomainKind::Few(3)),
    ] {
        let (_, array) = array(layout);
        let mut expected = vec![0; (SHAPE[0] * SHAPE[1]) as usize];
        let at = |index: &[u64; 2]| (index[0] * SHAPE[1] + index[1]) as usize;
        for rank in 0..MANY {
            for index in indices(&section(rank)) {
                expected[at(&index)] = value(rank, &index);
            }
        }
        let outcomes = outcore::run(MANY, |comm| {
            let rank = comm.rank();
            let calls = array.collective().domains(kind).window(256);
            let mine = section(rank);
            let values: Vec<i32> = indices(&mine).iter().map(|at| value(rank, at)).collect();
            calls.write(comm, &mine, &values)?;
            let next = section((rank + 1) % MANY);
            let found: Vec<i32> = calls.read(comm, &next)?;
            let wanted = indices(&next);
            assert!(wanted.iter().map(|index| expected[at(index)]).eq(found));
            Ok::<(), Error>(())
        });
        outcomes.unwrap();
        let all: Vec<i32> = array.read(&array.whole()).unwrap();
        assert_eq!(all, expected, "{layout} {kind}");
    }
}

#[test]
fn one_of_many_that_fails_is_named() {
    let (memory, array) = array("row");
    let (_, other) = self::array("column");
    let tell = |wrong: &(dyn Fn(usize) -> bool + Sync), expected: &str| {
        let told = outcore::run(MANY, |comm| {
            let rank = comm.rank();
            let rows = if wrong(rank) { 700 } else { 2 };
            let section = Section::parse(&format!("{rows}, :"), &[701, 11]).unwrap();
            let error = array.write_all(comm, &section, &[1i32; 11]).unwrap_err();
            comm.barrier()?;
            Ok::<_, Error>(error.to_string())
        });
        for text in told.unwrap() {
            assert!(text.starts_with(expected), "{text}");
        }
    };
    tell(&|rank| rank == 299, "rank 299: ");
    tell(&|rank| rank % 100 == 70, "rank 70: ");
    let told = outcore::run(MANY, |comm| {
        let array = if comm.rank() == 271 { &other } else { &array };
        let section = Section::parse("5, :", &SHAPE).unwrap();
        let error = array.write_all(comm, &section, &[1i32; 11]).unwrap_err();
        Ok::<_, Error>(error.to_string())
    });
    for text in told.unwrap() {
        assert!(text.starts_with("rank 271: not the same"), "{text}");
    }
    assert!(memory.to_vec().iter().all(|byte| *byte == 0));
}

#[test]
fn sections_that_follow_from_the_rank_are_not_told() {
    for ranks in [1, 5, MANY] {
        let (_, array) = array("row");
        let rows: Pattern = "p:601:N, :".parse().unwrap();
        outcore::run(ranks, |comm| {
            let section = rows.section(array.shape(), comm.rank() as u64, ranks as u64);
            let section = section.unwrap();
            let calls = array.collective();
            let plan = calls.plan_pattern(comm, &rows, Direction::Write)?;
            let values: Vec<i32> = indices(&section).iter().map(|at| value(7, at)).collect();
            plan.write(comm, &values)?;
            // A pattern that fails on some ranks fails on all, and all are told.
            let beyond: Pattern = "p+600, :".parse().unwrap();
            let outcome = calls.plan_pattern(comm, &beyond, Direction::Read);
            match (outcome, ranks) {
                (Ok(_), 1) => {}
                (Err(error), 2..) => assert!(error.to_string().starts_with("rank 1: "), "{error}"),
                (outcome, _) => panic!("{outcome:?}"),
            }
            Ok::<(), Error>(())
        })
        .unwrap();
        let all: Vec<i32> = array.read(&array.whole()).unwrap();
        let expected = indices(&array.whole());
        assert!(expected.iter().map(|at| value(7, at)).eq(all));
    }
}
