//! Elements of arrays in the memory of all ranks.

use outcore::{Combine, DistributedArray, Distribution, Error, Localized, Schedule};
use proptest::prelude::*;
use proptest::sample::select;

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn gathered_scattered_and_added_up(
        extent in 1..100u64,
        ranks in select(vec![1usize, 2, 3, 5, 16]),
        text in select(vec!["block", "cyclic", "cyclic(3)"]),
        wanted in prop::collection::vec(prop::collection::vec(any::<u64>(), 0..30), 16),
    ) {
        let distribution = Distribution::parse(text, &[extent], ranks as u64, None).unwrap();
        let wanted: Vec<Vec<u64>> = wanted[..ranks].iter()
            .map(|rank| rank.iter().map(|index| index % extent).collect())
            .collect();
        // The oracle.
        let mut scattered: Vec<i64> = (0..extent as i64).map(|index| 3 * index).collect();
        let mut added = scattered.clone();
        for (rank, indices) in wanted.iter().enumerate() {
            for (at, index) in indices.iter().enumerate() {
                let value = (100 * rank + at) as i64;
                scattered[*index as usize] = value;
                added[*index as usize] += value;
            }
        }
        outcore::run(ranks, |comm| {
            let own = &wanted[comm.rank()];
            let mut array = DistributedArray::<i64>::new(comm, distribution.clone())?;
            let fill = |array: &mut DistributedArray<i64>| array.fill_with(|index| 3 * index[0] as i64);
            fill(&mut array);
            let schedule = Schedule::of_parts(comm, array.distribution(), own)?;
            let mut values = vec![0; own.len()];
            schedule.gather(comm, &array, &mut values)?;
            assert!(own.iter().zip(&values).all(|(index, value)| *value == 3 * *index as i64));
            let new: Vec<i64> = (0..own.len()).map(|at| (100 * comm.rank() + at) as i64).collect();
            schedule.scatter(comm, &mut array, &new)?;
            if let Some(all) = array.gather(comm, 0)? {
                assert_eq!(all, scattered);
            }
            fill(&mut array);
            schedule.scatter_combined(comm, &mut array, &new, Combine::Add)?;
            if let Some(all) = array.gather(comm, 0)? {
                assert_eq!(all, added);
            }
            // The same by local numbers, with every element of others once.
            fill(&mut array);
            let local = Localized::new(comm, array.distribution(), own)?;
            let mut elsewhere: Vec<u64> = own.iter().copied()
                .filter(|index| array.owner(&[*index]) != Some(comm.rank()))
                .collect();
            elsewhere.sort_unstable();
            elsewhere.dedup();
            assert_eq!(local.others(), elsewhere.len());
            let values = local.gather(comm, &array)?;
            let mut sums = vec![0; values.len()];
            for ((number, index), value) in local.numbers().iter().zip(own).zip(&new) {
                assert_eq!(values[*number as usize], 3 * *index as i64);
                sums[*number as usize] += value;
            }
            local.scatter_combined(comm, &mut array, &sums, Combine::Add)?;
            if let Some(all) = array.gather(comm, 0)? {
                assert_eq!(all, added);
            }
            Ok::<(), Error>(())
        }).unwrap();
    }
}

#[test]
fn arrays_of_several_axes() {
    outcore::run(4, |comm| {
        let of = Distribution::parse("cyclic(2),block", &[7, 9], 4, Some(&[2, 2])).unwrap();
        let mut array = DistributedArray::<f32>::new(comm, of)?;
        array.fill_with(|index| (9 * index[0] + index[1]) as f32);
        let own: Vec<u64> = (0..63).rev().collect();
        let schedule = Schedule::of_parts(comm, array.distribution(), &own)?;
        let mut values = vec![0.0; 63];
        schedule.gather(comm, &array, &mut values)?;
        assert!(
            values
                .iter()
                .rev()
                .enumerate()
                .all(|(at, value)| *value == at as f32)
        );
        let other = Distribution::parse("block,block", &[7, 9], 4, Some(&[2, 2])).unwrap();
        let other = DistributedArray::<f32>::new(comm, other)?;
        let error = schedule.gather(comm, &other, &mut values).unwrap_err();
        assert!(
            error.to_string().contains("another distribution"),
            "{error}"
        );
        Ok::<(), Error>(())
    })
    .unwrap();
}
