//! Task pools: every task once, results in order, failures with their task.

use std::sync::atomic::{AtomicU64, Ordering};

use outcore::{Balance, Error, TaskPool};

use crate::ground::{RANKS, Random, on, with_procedures};

const BALANCES: [Balance; 2] = [Balance::Counter, Balance::Stealing];

#[test]
fn every_task_once_and_in_order() {
    for (balance, ranks) in BALANCES
        .into_iter()
        .flat_map(|b| RANKS.map(|ranks| (b, ranks)))
    {
        for tasks in [0, 1, 2, 17, 1000] {
            let done: Vec<AtomicU64> = (0..tasks).map(|_| AtomicU64::new(0)).collect();
            on(ranks, |comm| {
                let pool = TaskPool::new(comm, None, balance)?;
                for round in 1..3 {
                    let results = pool.run(comm, tasks, |task| {
                        done[task as usize].fetch_add(1, Ordering::Relaxed);
                        Ok(task * round)
                    })?;
                    assert!(results.into_iter().eq((0..tasks).map(|task| task * round)));
                }
                let at_last = comm.size() - 1;
                let results = pool.run_for(comm, at_last, tasks, |task| Ok([task as f32; 3]))?;
                assert_eq!(results.is_some(), comm.rank() == at_last);
                let right = |(task, found): (usize, &[f32; 3])| *found == [task as f32; 3];
                assert!(results.iter().flatten().enumerate().all(right));
                assert_eq!(pool.run(comm, tasks, |_| Ok(()))?.len() as u64, tasks);
                Ok(())
            });
            assert!(done.iter().all(|done| done.load(Ordering::Relaxed) == 2));
        }
    }
}

#[test]
fn through_servers() {
    for balance in BALANCES {
        with_procedures(5, |comm, procedures| {
            let pool = TaskPool::apart(comm, procedures, balance)?;
            let results = pool.run(comm, 200, |task| Ok(task * task))?;
            assert!(results.into_iter().eq((0..200).map(|task| task * task)));
            let error = pool.each(comm, 50, |task| match task {
                40 => Err(Error::Invalid("deliberate".into())),
                _ => Ok(()),
            });
            assert!(matches!(error, Err(Error::Task { index: 40, .. })));
            Ok(())
        });
    }
}

#[test]
fn a_failed_task_is_reported_everywhere_and_the_pool_goes_on() {
    for (balance, ranks) in BALANCES
        .into_iter()
        .flat_map(|b| RANKS.map(|ranks| (b, ranks)))
    {
        on(ranks, |comm| {
            let pool = TaskPool::new(comm, None, balance)?;
            let outcome = pool.run(comm, 100, |task| match task {
                63 => Err(Error::Invalid("deliberate".into())),
                _ => Ok(task),
            });
            match outcome {
                Err(Error::Task {
                    index: 63,
                    rank,
                    cause,
                }) => {
                    assert!(rank < comm.size());
                    assert_eq!(cause, "deliberate");
                }
                other => panic!("{other:?}"),
            }
            let outcome = pool.each(comm, 10, |task| match task {
                4 => panic!("deliberate panic of task {task}"),
                _ => Ok(()),
            });
            let error = outcome.unwrap_err().to_string();
            assert!(
                error.contains("task 4") && error.contains("deliberate panic"),
                "{error}"
            );
            assert_eq!(pool.run(comm, 3, Ok)?, [0, 1, 2]);
            Ok(())
        });
    }
}

#[test]
fn a_rank_that_fails_outside_of_tasks_releases_all() {
    let outcome = outcore::run(3, |comm| {
        let pool = TaskPool::new(comm, None, Balance::Stealing)?;
        if comm.rank() == 1 {
            return Err(Error::Invalid("deliberate".into()));
        }
        pool.each(comm, 100, |_| Ok(()))
    });
    assert!(outcome.unwrap_err().to_string().contains("deliberate"));
}

#[test]
fn who_is_slow_does_less() {
    for balance in BALANCES {
        let counts = on(3, |comm| {
            let pool = TaskPool::new(comm, None, balance)?;
            let mut own = 0u64;
            let slow = comm.rank() == 0;
            pool.each(comm, 60, |_| {
                own += 1;
                let pause = if slow { 20 } else { 1 };
                std::thread::sleep(std::time::Duration::from_millis(pause));
                Ok(())
            })?;
            Ok(own)
        });
        assert_eq!(counts.iter().sum::<u64>(), 60);
        assert!(counts[0] < 20, "{balance:?}: {counts:?}");
    }
}

#[test]
fn random_tasks_of_many_lengths() {
    on(16, |comm| {
        let pool = TaskPool::new(comm, None, Balance::Stealing)?;
        let mut random = Random(comm.rank() as u64);
        for tasks in [5000, 3, 777] {
            let results = pool.run(comm, tasks, |task| {
                (0..random.below(200)).for_each(|_| std::hint::spin_loop());
                Ok(task)
            })?;
            assert!(results.into_iter().eq(0..tasks));
        }
        assert!(pool.each(comm, u64::MAX, |_| Ok(())).is_err());
        Ok(())
    });
}

#[test]
fn ranks_that_mean_different_tasks_are_told() {
    on(3, |comm| {
        let pool = TaskPool::new(comm, None, Balance::Stealing)?;
        // More than can be stolen, on one rank only.
        let last = comm.rank() == 2;
        let tasks = if last { u64::MAX } else { 5 };
        let error = pool.each(comm, tasks, |_| Ok(())).unwrap_err();
        assert!(error.to_string().contains("different numbers"), "{error}");
        let root = if last { 7 } else { 0 };
        let error = pool.run_for(comm, root, 5, Ok).unwrap_err();
        assert!(error.to_string().contains("different ranks"), "{error}");
        assert_eq!(pool.run(comm, 3, Ok)?, [0, 1, 2]);
        Ok(())
    });
}

#[test]
fn a_panic_of_a_task_is_contained() {
    on(2, |comm| {
        let pool = TaskPool::new(comm, None, Balance::Counter)?;
        let contained = pool.run(comm, 4, |_| {
            Ok(u8::from(outcore_transport::panics::are_contained()))
        })?;
        assert_eq!(contained, [1; 4]);
        Ok(())
    });
}
