//! Sections and elements of global arrays, against a dense array.

use outcore::{Comm, Complex, Distribution, Error, GlobalArray, Procedures, Section};
use proptest::prelude::*;

use crate::ground::{RANKS, REACHES, Random, Reach, on, places, with_procedures};

fn new<T: outcore::Element>(
    comm: &Comm,
    (procedures, reach): (&Procedures, Reach),
    distribution: &Distribution,
) -> Result<GlobalArray<T>, Error> {
    match reach {
        Reach::Near => GlobalArray::new(comm, Some(procedures), distribution.clone()),
        Reach::Apart => GlobalArray::apart(comm, procedures, distribution.clone()),
    }
}

/// Ranks take turns at operations that all of them know; after each, some other
/// rank looks.
fn turns(seed: u64, ranks: usize, reach: Reach) {
    let mut random = Random(seed);
    let shape = random.shape();
    let distribution = random.distribution(&shape, ranks as u64);
    with_procedures(ranks, |comm, procedures| {
        let array: GlobalArray<i64> = new(comm, (procedures, reach), &distribution)?;
        let mut random = random.clone();
        let mut dense = vec![0i64; shape.iter().product::<u64>() as usize];
        for turn in 0..12 {
            let actor = random.below(ranks as u64) as usize == comm.rank();
            let reader = random.below(ranks as u64) as usize == comm.rank();
            let section = random.section(&shape);
            let at = places(&section, &shape);
            let values: Vec<i64> = at.iter().map(|_| random.below(1000) as i64).collect();
            let index: Vec<u64> = shape.iter().map(|extent| random.below(*extent)).collect();
            let place = index
                .iter()
                .zip(&shape)
                .fold(0, |place, (i, n)| place * n + i) as usize;
            match random.below(5) {
                0 | 1 => {
                    at.iter()
                        .zip(&values)
                        .for_each(|(at, value)| dense[*at] = *value);
                    if actor {
                        array.put(&section, &values)?;
                    }
                }
                2 => {
                    at.iter()
                        .zip(&values)
                        .for_each(|(at, value)| dense[*at] += 3 * value);
                    if actor {
                        array.accumulate(&section, &values, 3)?;
                    }
                }
                3 => {
                    if actor {
                        assert_eq!(array.read_increment(&index, 7)?, dense[place]);
                    }
                    dense[place] += 7;
                }
                _ => {
                    let expected = dense[place] + turn % 2;
                    if actor {
                        assert_eq!(array.compare_and_swap(&index, expected, -1)?, dense[place]);
                    }
                    if expected == dense[place] {
                        dense[place] = -1;
                    }
                }
            }
            array.sync(comm)?;
            let section = random.section(&shape);
            if reader {
                let wanted: Vec<i64> = places(&section, &shape)
                    .iter()
                    .map(|at| dense[*at])
                    .collect();
                assert_eq!(array.read(&section)?, wanted, "{distribution} [{section}]");
                assert_eq!(array.get_one(&index)?, dense[place]);
                assert_eq!(
                    array.owner(&index),
                    distribution.owner(&index).map(|rank| rank as usize)
                );
            }
            array.sync(comm)?;
        }
        Ok(())
    });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn like_a_dense_array(seed in any::<u64>(), at in 0..RANKS.len()) {
        turns(seed, RANKS[at], Reach::Near);
    }

    #[test]
    fn like_a_dense_array_through_servers(seed in any::<u64>(), at in 0..RANKS.len()) {
        turns(seed, RANKS[at], Reach::Apart);
    }

    #[test]
    fn locate_names_each_element_once(seed in any::<u64>(), ranks in 1u64..8) {
        let mut random = Random(seed);
        let shape = random.shape();
        let distribution = random.distribution(&shape, ranks);
        let section = random.section(&shape);
        on(ranks as usize, |comm| {
            let array = GlobalArray::<u8>::new(comm, None, distribution.clone())?;
            let mut seen = vec![false; shape.iter().product::<u64>() as usize];
            let mut last = 0;
            for located in array.locate(&section)? {
                assert!(located.in_reach && located.rank >= last);
                last = located.rank;
                assert_eq!(located.part.global.shape(), located.part.local.shape());
                for place in places(&located.part.global, &shape) {
                    assert!(!std::mem::replace(&mut seen[place], true));
                }
            }
            assert_eq!(seen.iter().filter(|seen| **seen).count() as u64, section.count());
            Ok(())
        });
    }
}

#[test]
fn every_element_type() {
    fn try_type<T: outcore::Arithmetic + std::fmt::Debug>(three: T) {
        for reach in REACHES {
            with_procedures(3, |comm, procedures| {
                let distribution = Distribution::parse("cyclic(2)", &[11], 3, None).unwrap();
                let array: GlobalArray<T> = new(comm, (procedures, reach), &distribution)?;
                array.accumulate(&array.whole(), &[T::ONE; 11], three)?;
                array.sync(comm)?;
                // Three times three.
                let nine = three.times(three);
                assert!(
                    array
                        .read(&array.whole())?
                        .iter()
                        .all(|value| *value == nine)
                );
                array.sync(comm)?;
                if comm.rank() == 1 {
                    assert_eq!(array.read_increment(&[4], three)?, nine);
                    assert_eq!(
                        array.compare_and_swap(&[4], nine.plus(three), three)?,
                        nine.plus(three)
                    );
                    assert_eq!(array.get_one(&[4])?, three);
                    array.put_one(&[4], nine)?;
                }
                array.sync(comm)?;
                assert_eq!(array.get_one(&[4])?, nine);
                array.close(comm)
            });
        }
    }
    try_type(3i8);
    try_type(3u16);
    try_type(3i32);
    try_type(3u64);
    try_type(outcore::f16::from_f32(3.0));
    try_type(3.0f32);
    try_type(3.0f64);
    try_type(Complex::new(3.0f32, 0.0));
    try_type(Complex::new(3.0f64, 0.0));
}

#[test]
fn truth_values_are_got_and_put() {
    with_procedures(2, |comm, procedures| {
        for reach in REACHES {
            let distribution = Distribution::parse("block", &[9], 2, None).unwrap();
            let array: GlobalArray<bool> = new(comm, (procedures, reach), &distribution)?;
            if comm.rank() == 0 {
                array.put(&array.section("1::2")?, &[true; 4])?;
            }
            array.sync(comm)?;
            let values = array.read(&array.whole())?;
            assert!(
                values
                    .iter()
                    .enumerate()
                    .all(|(at, value)| *value == (at % 2 == 1))
            );
            array.close(comm)?;
        }
        Ok(())
    });
}

#[test]
fn scalars_empty_arrays_and_ranks_without_a_part() {
    on(5, |comm| {
        let scalar = Distribution::parse("", &[], 5, None).unwrap();
        let array = GlobalArray::<u64>::new(comm, None, scalar)?;
        array.read_increment(&[], 2)?;
        array.accumulate(&array.whole(), &[1], 1)?;
        array.sync(comm)?;
        assert_eq!(array.get_one(&[])?, 15);
        let none = Distribution::parse("block,*", &[0, 3], 5, None).unwrap();
        let array = GlobalArray::<u64>::new(comm, None, none)?;
        array.put(&array.whole(), &[])?;
        assert!(array.get_one(&[0, 0]).is_err());
        let few = Distribution::parse("block", &[2], 3, None).unwrap();
        let array = GlobalArray::<u64>::new(comm, None, few)?;
        array.fill(comm, 4)?;
        assert_eq!(array.read(&array.whole())?, [4, 4]);
        Ok(())
    });
}

#[test]
fn bad_requests_are_told_to_who_makes_them() {
    for reach in REACHES {
        with_procedures(3, |comm, procedures| {
            let distribution = Distribution::parse("block,*", &[9, 4], 3, None).unwrap();
            let array: GlobalArray<f32> = new(comm, (procedures, reach), &distribution)?;
            if comm.rank() == 1 {
                let outside = Section::parse("0:10, 0:4", &[10, 4]).unwrap();
                let error = array.read(&outside).unwrap_err().to_string();
                assert!(error.contains("axis 0"), "{error}");
                let error = array
                    .put(&array.whole(), &[0.0; 35])
                    .unwrap_err()
                    .to_string();
                assert!(error.contains("36 elements"), "{error}");
                let line = Section::parse("0:3", &[9]).unwrap();
                assert!(array.accumulate(&line, &[1.0; 3], 1.0).is_err());
                for index in [&[9, 0][..], &[0, 4], &[1]] {
                    assert!(array.read_increment(index, 1.0).is_err());
                    assert!(array.put_one(index, 1.0).is_err());
                }
            }
            array.sync(comm)?;
            assert!(
                array
                    .read(&array.whole())?
                    .iter()
                    .all(|value| *value == 0.0)
            );
            array.close(comm)
        });
    }
}

#[test]
fn ranks_that_mean_different_arrays_are_told() {
    on(3, |comm| {
        let text = if comm.rank() == 2 { "cyclic" } else { "block" };
        let distribution = Distribution::parse(text, &[9], 3, None).unwrap();
        let error = GlobalArray::<f32>::new(comm, None, distribution).unwrap_err();
        assert!(error.to_string().contains("different distributions"));
        let too_many = Distribution::parse("block", &[9], 4, None).unwrap();
        assert!(GlobalArray::<f32>::new(comm, None, too_many).is_err());
        Ok(())
    });
}

#[test]
fn groups_have_arrays_of_their_own() {
    on(5, |comm| {
        let group = comm.split(Some(comm.rank() as u64 % 2), 0)?.unwrap();
        let ranks = group.size() as u64;
        let distribution = Distribution::parse("cyclic", &[20], ranks, None).unwrap();
        let array = GlobalArray::<u64>::new(&group, None, distribution)?;
        array.accumulate(&array.whole(), &[1; 20], 1)?;
        array.sync(&group)?;
        assert_eq!(array.read(&array.whole())?, [ranks; 20]);
        Ok(())
    });
}

#[test]
fn a_failure_reaches_those_who_add_and_sync() {
    // Rank 0 fails; the others go on adding until they are told.
    let outcome = outcore::run(3, |comm| {
        let distribution = Distribution::parse("block", &[30], 3, None).unwrap();
        let array = GlobalArray::<u64>::new(comm, None, distribution)?;
        if comm.rank() == 0 {
            return Err(Error::Invalid("deliberate".into()));
        }
        loop {
            array.accumulate(&array.whole(), &[1; 30], 1)?;
            array.sync(comm)?;
        }
        #[expect(unreachable_code, reason = "says the type")]
        Ok::<(), Error>(())
    });
    assert!(outcome.unwrap_err().to_string().contains("deliberate"));
}

#[test]
fn an_array_that_its_owner_has_dropped() {
    with_procedures(2, |comm, procedures| {
        let distribution = Distribution::parse("block", &[4], 2, None).unwrap();
        let array: GlobalArray<u64> = new(comm, (procedures, Reach::Apart), &distribution)?;
        let mut array = Some(array);
        if comm.rank() == 1 {
            array = None;
        }
        comm.barrier()?;
        if let Some(array) = array {
            let error = array.get_one(&[3]).unwrap_err().to_string();
            assert!(error.contains("dropped"), "{error}");
        }
        comm.barrier()?;
        Ok(())
    });
}
