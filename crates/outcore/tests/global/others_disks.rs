//! States on the disks of others: complete, or not there.

use outcore::{Disks, OthersDisks, State};

use crate::oracle::run;

#[test]
fn a_version_is_there_when_all_shares_are() {
    for (ranks, keepers) in [
        (2, vec![1]),
        (3, vec![2]),
        (5, vec![3, 4]),
        (16, vec![13, 14, 15]),
    ] {
        let directory = tempfile::tempdir().unwrap();
        let disks = directory.path().join("{rank}");
        let disks = Disks::pattern(disks.to_str().unwrap());
        let members: Vec<usize> = (0..ranks - keepers.len()).collect();
        let groups = (members.as_slice(), keepers.as_slice());
        run(ranks, |comm, calls| {
            let kept = OthersDisks::new(comm, calls, "run", groups, &disks)?;
            let (rank, is_member) = (comm.rank(), comm.rank() < members.len());
            let state = |version: u64| {
                let values: Vec<f64> = (0..3000).map(|at| (at + rank) as f64).collect();
                State::new().with("u", &values).with("version", &[version])
            };
            assert_eq!(kept.newest()?, None);
            comm.barrier()?;
            // 1. All but one save the first version: it is not there.
            if is_member && rank != 0 {
                assert!(kept.restore()?.is_none());
                kept.save(1, &state(1))?;
            }
            comm.barrier()?;
            assert!(kept.newest()?.is_none());
            comm.barrier()?;
            if rank == 0 {
                kept.save(1, &state(1))?;
                assert_eq!(kept.newest()?, Some(1));
            }
            comm.barrier()?;
            // 2. Of the second, one share is missing: the first is the newest.
            if is_member && rank == 0 && members.len() > 1 {
                kept.save(2, &state(2))?;
            }
            comm.barrier()?;
            if is_member && members.len() > 1 {
                let (version, found) = kept.restore()?.unwrap();
                assert_eq!((version, found.get::<u64>("version")?), (1, vec![1]));
                assert_eq!(found, state(1));
            }
            comm.barrier()?;
            if is_member && (rank != 0 || members.len() == 1) {
                kept.save(2, &state(2))?;
            }
            comm.barrier()?;
            assert_eq!(kept.newest()?, Some(2));
            let next = (rank + 1) % members.len();
            let of_next = kept.restore_of(2, next)?;
            assert_eq!(of_next.get::<f64>("u")?[0], next as f64);
            if !is_member {
                assert!(kept.save(3, &state(3)).is_err());
            }
            Ok(())
        });
        // 3. Another program finds them; shares that are older have gone where they could.
        run(ranks, |comm, calls| {
            let kept = OthersDisks::new(comm, calls, "run", groups, &disks)?;
            assert_eq!(kept.newest()?, Some(2));
            let strangers = (&members[..1], keepers.as_slice());
            let other = OthersDisks::new(comm, calls, "other", strangers, &disks)?;
            assert_eq!(other.newest()?, None);
            Ok(())
        });
        // 4. A damaged share is told, and so is one that is missing.
        let share = directory
            .path()
            .join(keepers[0].to_string())
            .join(format!("run-2-0of{}.state", members.len()));
        let mut bytes = std::fs::read(&share).unwrap();
        bytes[2000] ^= 1;
        std::fs::write(&share, &bytes).unwrap();
        run(ranks, |comm, calls| {
            let kept = OthersDisks::new(comm, calls, "run", groups, &disks)?;
            let error = kept.restore_of(2, 0).unwrap_err().to_string();
            assert!(error.contains("damaged"), "{error}");
            let error = kept.restore_of(9, 0).unwrap_err().to_string();
            assert!(error.contains("run-9-0of"), "{error}");
            assert!(kept.restore_of(2, ranks - 1).is_err());
            Ok(())
        });
    }
}

#[test]
fn wrong_groups_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    run(2, |comm, calls| {
        let disks = Disks::list([directory.path()]);
        for groups in [
            (&[0][..], &[][..]),
            (&[][..], &[1][..]),
            (&[0][..], &[2][..]),
        ] {
            assert!(OthersDisks::new(comm, calls, "x", groups, &disks).is_err());
        }
        assert!(OthersDisks::new(comm, calls, "a/b", (&[0], &[1]), &disks).is_err());
        assert!(OthersDisks::new(comm, calls, "x", (&[0], &[1]), &Disks::Memory).is_err());
        Ok(())
    });
}

/// A program that numbers its versions from the beginning again, though its disks hold
/// newer ones, is told; what is there stays.
#[test]
fn a_version_that_is_not_newer_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let disks = Disks::list([directory.path()]);
    let groups = (&[0, 1][..], &[2][..]);
    run(3, |comm, calls| {
        let kept = OthersDisks::new(comm, calls, "run", groups, &disks)?;
        let state = |version: u64| State::new().with("version", &[version]);
        if comm.rank() < 2 {
            kept.save(10, &state(10))?;
        }
        comm.barrier()?;
        if comm.rank() == 0 {
            for version in [1, 10] {
                let error = kept.save(version, &state(0)).unwrap_err().to_string();
                assert!(error.contains("version 10 is complete"), "{error}");
            }
            // One that is not complete may be saved again, by who has failed before.
            kept.save(12, &state(0))?;
            kept.save(11, &state(11))?;
        } else if comm.rank() == 1 {
            kept.save(11, &state(11))?;
        }
        comm.barrier()?;
        assert_eq!(kept.newest()?, Some(11));
        let version = kept.restore_of(11, 0)?.get::<u64>("version")?;
        assert_eq!(version, [11]);
        Ok(())
    });
}

/// A program that goes on after a failure does not complete versions with shares of
/// the one before.
#[test]
fn what_was_never_complete_is_forgotten() {
    let directory = tempfile::tempdir().unwrap();
    let disks = Disks::list([directory.path()]);
    let groups = (&[0, 1][..], &[2, 3][..]);
    let state = |value: u64| State::new().with("value", &[value]);
    run(4, |comm, calls| {
        let kept = OthersDisks::new(comm, calls, "run", groups, &disks)?;
        if comm.rank() < 2 {
            kept.save(10, &state(1))?;
        }
        comm.barrier()?;
        // Rank 1 dies before it saves this one.
        if comm.rank() == 0 {
            kept.save(12, &state(1))?;
        }
        Ok(())
    });
    run(4, |comm, calls| {
        let kept = OthersDisks::new(comm, calls, "run", groups, &disks)?;
        // Now rank 1 is ahead.
        if comm.rank() == 1 {
            kept.save(11, &state(2))?;
            kept.save(12, &state(2))?;
        }
        comm.barrier()?;
        assert_eq!(kept.newest()?, Some(10));
        comm.barrier()?;
        if comm.rank() == 0 {
            kept.save(11, &state(2))?;
            assert_eq!(kept.newest()?, Some(11));
            kept.save(12, &state(2))?;
        }
        comm.barrier()?;
        assert_eq!(kept.newest()?, Some(12));
        assert_eq!(kept.restore_of(12, 0)?.get::<u64>("value")?, [2]);
        Ok(())
    });
}

/// Shares of a larger group are not taken for those of a smaller one.
#[test]
fn groups_of_different_sizes_have_versions_of_their_own() {
    let directory = tempfile::tempdir().unwrap();
    let disks = Disks::list([directory.path()]);
    run(5, |comm, calls| {
        let state = State::new().with("rank", &[comm.rank() as u64]);
        let four = (&[0, 1, 2, 3][..], &[4][..]);
        let kept = OthersDisks::new(comm, calls, "run", four, &disks)?;
        if comm.rank() < 4 {
            kept.save(5, &state)?;
        }
        comm.barrier()?;
        let two = OthersDisks::new(comm, calls, "run", (&[0, 1], &[4]), &disks)?;
        assert_eq!(two.newest()?, None);
        if comm.rank() < 2 {
            assert!(two.restore()?.is_none());
        }
        comm.barrier()?;
        if comm.rank() < 2 {
            two.save(1, &state)?;
            two.save(2, &state)?;
        }
        comm.barrier()?;
        assert_eq!((two.newest()?, kept.newest()?), (Some(2), Some(5)));
        assert_eq!(kept.restore_of(5, 3)?.get::<u64>("rank")?, [3]);
        Ok(())
    });
}
