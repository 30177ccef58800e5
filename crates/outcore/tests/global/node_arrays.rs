//! Node arrays: every block is fetched once on each node, and all ranks read it.

use std::sync::atomic::{AtomicUsize, Ordering};

use outcore::{Error, GlobalArray, NodeArray, Section};
use proptest::prelude::*;

use crate::ground::{RANKS, Random, on, places};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(40))]

    #[test]
    fn like_the_array_that_is_copied(seed in any::<u64>(), at in 0..RANKS.len(), nodes in 1u64..4) {
        let ranks = RANKS[at];
        let mut random = Random(seed);
        let shape = random.shape();
        let block: Vec<u64> = shape.iter().map(|extent| 1 + random.below(*extent)).collect();
        let distribution = random.distribution(&shape, ranks as u64);
        on(ranks, |comm| {
            let array = GlobalArray::<u64>::new(comm, None, distribution.clone())?;
            let place = |index: &[u64]| index.iter().zip(&shape).fold(0, |place, (i, n)| place * n + i);
            array.fill_with(comm, |index| place(index))?;
            // Ranks of one process, as if they were on several nodes.
            let node = comm.split(Some(comm.rank() as u64 % nodes), 0)?.unwrap();
            let mut copy = NodeArray::of_node(&node, &shape, &block)?;
            let mut random = Random(seed + comm.rank() as u64);
            for _ in 0..6 {
                let section = random.section(&shape);
                let mut values = vec![0; section.count() as usize];
                copy.get(&array, &section, &mut values)?;
                assert!(places(&section, &shape).iter().map(|at| *at as u64).eq(values));
            }
            assert!(copy.fill(&array)?.iter().copied().eq(0..shape.iter().product()));
            assert_eq!(copy.full_blocks(), copy.blocks());
            // The array changes, and the copies after it.
            array.sync(comm)?;
            array.accumulate(&array.whole(), &vec![1; copy.view().unwrap().len()], 1)?;
            array.sync(comm)?;
            copy.renew()?;
            let more = ranks as u64;
            assert!(copy.fill(&array)?.iter().copied().eq((0..shape.iter().product()).map(|at: u64| at + more)));
            Ok(())
        });
    }
}

#[test]
fn each_block_is_fetched_once() {
    let fetched = AtomicUsize::new(0);
    on(16, |comm| {
        let copy = NodeArray::<f32>::new(comm, &[100, 8], &[7, 3])?;
        assert_eq!((copy.node().size(), copy.blocks()), (16, 15 * 3));
        let source = |section: &Section, values: &mut [f32]| {
            fetched.fetch_add(1, Ordering::Relaxed);
            values.fill(section.axes()[0].bounds().0 as f32);
            Ok(())
        };
        let mut row = [0.0; 8];
        copy.get(
            &source,
            &Section::parse("50, :", &[100, 8]).unwrap(),
            &mut row,
        )?;
        assert_eq!(row, [49.0; 8]);
        let all = copy.fill(&source)?;
        assert_eq!((all.len(), all[799]), (800, 98.0));
        comm.barrier()?;
        Ok(())
    });
    assert_eq!(fetched.into_inner(), 45);
}

#[test]
fn who_fails_to_fetch_is_told_and_others_try_again() {
    on(3, |comm| {
        let copy = NodeArray::<u8>::new(comm, &[10], &[10])?;
        let me = comm.rank();
        let source = |_: &Section, values: &mut [u8]| match me {
            1 => Err(Error::Invalid("deliberate".into())),
            _ => {
                values.fill(7);
                Ok(())
            }
        };
        let mut values = [0; 10];
        let whole = Section::whole(&[10]).unwrap();
        if me == 1 {
            let error = copy.get(&source, &whole, &mut values).unwrap_err();
            assert!(error.to_string().contains("deliberate"));
        }
        comm.barrier()?;
        if me != 1 {
            copy.get(&source, &whole, &mut values)?;
            assert_eq!(values, [7; 10]);
        }
        comm.barrier()?;
        assert_eq!(copy.view(), Some(&[7; 10][..]));
        let outside = Section::parse("0:11", &[11]).unwrap();
        assert!(copy.get(&source, &outside, &mut [0; 11]).is_err());
        assert!(NodeArray::<u8>::new(comm, &[10], &[0]).is_err());
        Ok(())
    });
}
