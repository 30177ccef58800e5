//! Sixteen ranks at once: random gets, puts, accumulations and read-increments,
//! with every sum verified.

use outcore::{Distribution, Error, GlobalArray, Op, Section};

use crate::ground::{Random, Reach, places, with_procedures};

/// All ranks change the same matrix, counters and a board of notes, on which each
/// element is written by one rank. In the end each sum is what all have added.
fn stress(ranks: usize, operations: u64, reach: Reach) {
    const SHAPE: [u64; 2] = [60, 44];
    with_procedures(ranks, |comm, procedures| {
        let (me, size) = (comm.rank() as u64, comm.size() as u64);
        let parse = |text, shape: &[u64]| Distribution::parse(text, shape, size, None).unwrap();
        let new = |distribution| match reach {
            Reach::Near => GlobalArray::<i64>::new(comm, None, distribution),
            Reach::Apart => GlobalArray::<i64>::apart(comm, procedures, distribution),
        };
        let sums = new(parse("cyclic(7),block", &SHAPE))?;
        let counters = new(parse("cyclic", &[32]))?;
        let board = new(parse("block,cyclic(3)", &[64, size]))?;
        let mut added = vec![0i64; (SHAPE[0] * SHAPE[1]) as usize];
        let mut counted = vec![0i64; 32];
        let mut tickets: Vec<(u64, i64)> = Vec::new();
        let mut notes = vec![0i64; 64];
        let mut random = Random(7 * me + 1);
        for turn in 0..operations / size {
            match random.below(8) {
                0..3 => {
                    let section = random.section(&SHAPE);
                    let scale = 1 + random.below(3) as i64;
                    let values: Vec<i64> = (0..section.count())
                        .map(|_| random.below(100) as i64)
                        .collect();
                    sums.accumulate(&section, &values, scale)?;
                    for (at, value) in places(&section, &SHAPE).into_iter().zip(&values) {
                        added[at] += scale * value;
                    }
                }
                3 | 4 => {
                    let at = random.below(32);
                    let before = counters.read_increment(&[at], 1)?;
                    tickets.push((at, before));
                    counted[at as usize] += 1;
                }
                5 => {
                    // Nobody else writes this column.
                    let at = random.below(64);
                    notes[at as usize] = turn as i64;
                    board.put_one(&[at, me], turn as i64)?;
                }
                6 => {
                    let column = board.section(&format!(":, {me}"))?;
                    assert_eq!(board.read(&column)?, notes);
                }
                _ => {
                    let section = random.section(&SHAPE);
                    assert!(sums.read(&section)?.iter().all(|sum| *sum >= 0));
                }
            }
        }
        sums.sync(comm)?;
        assert_eq!(sums.read(&sums.whole())?, comm.all_reduce(&added, Op::Sum)?);
        assert_eq!(
            counters.read(&counters.whole())?,
            comm.all_reduce(&counted, Op::Sum)?
        );
        // No two ranks were given the same number.
        let mut all: Vec<u64> = tickets
            .iter()
            .map(|(at, number)| at << 32 | *number as u64)
            .collect();
        all = comm.all_gatherv(&all)?.concat();
        let count = all.len();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), count);
        let column = Section::parse(&format!(":, {me}"), board.shape());
        let column = column.map_err(|error| Error::Invalid(error.to_string()))?;
        assert_eq!(board.read(&column)?, notes);
        board.close(comm)
    });
}

#[test]
fn sixteen_ranks_and_a_hundred_thousand_operations() {
    stress(16, 100_000, Reach::Near);
}

#[test]
fn through_servers() {
    stress(5, 5_000, Reach::Apart);
}
