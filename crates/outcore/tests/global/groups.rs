//! All ranks must mean the same thing, and give procedures of the same group: else all
//! are told, and nothing is made.

use std::path::Path;

use outcore::{
    Balance, Comm, DiskOptions, DiskResident, Disks, Distribution, Error, GlobalArray, OthersDisks,
    Procedures, SharedFile, TaskPool,
};

use crate::oracle::run;

fn block(comm: &Comm) -> Distribution {
    Distribution::parse("block", &[12], comm.size() as u64, None).unwrap()
}

/// Everything that works with procedures, each with its error.
fn errors(comm: &Comm, calls: &Procedures, directory: &Path) -> Vec<Error> {
    let disks = Disks::pattern(directory.join("{rank}").to_str().unwrap());
    let options = DiskOptions::new(disks.clone());
    vec![
        GlobalArray::<u8>::new(comm, Some(calls), block(comm)).unwrap_err(),
        GlobalArray::<u8>::apart(comm, calls, block(comm)).unwrap_err(),
        TaskPool::new(comm, Some(calls), Balance::Counter).unwrap_err(),
        DiskResident::<u8>::create(comm, calls, "a", block(comm), &options).unwrap_err(),
        DiskResident::<u8>::open(comm, calls, "a", &options).unwrap_err(),
        SharedFile::create(comm, calls, "a", 100, &options).unwrap_err(),
        SharedFile::open(comm, calls, "a", &options).unwrap_err(),
        OthersDisks::new(comm, calls, "a", (&[0], &[0]), &disks).unwrap_err(),
    ]
}

fn is_empty(directory: &Path) -> bool {
    std::fs::read_dir(directory).unwrap().next().is_none()
}

#[test]
fn procedures_of_another_group_are_refused() {
    let directory = tempfile::tempdir().unwrap();
    run(4, |comm, calls| {
        let rank = comm.rank() as i64;
        let split = |colour, key| Ok::<_, Error>(comm.split(Some(colour), key)?.unwrap());
        // Half of the ranks, and all of them in another order.
        let half = split(u64::from(rank > 1), rank)?;
        let turned = split(0, -rank)?;
        // Ranks 0 and 3 have the same ranks in a group of their own as among the even and
        // the odd ones, whose procedures they give.
        let parity = split(rank as u64 % 2, rank)?;
        let of_parity = Procedures::start(&parity)?;
        let outer = split(u64::from(rank == 0 || rank == 3), rank)?;
        for group in [&half, &turned] {
            for error in errors(group, calls, directory.path()) {
                assert!(error.to_string().contains("of another group"), "{error}");
            }
        }
        if rank == 0 || rank == 3 {
            assert_eq!((outer.rank(), outer.size()), (parity.rank(), 2));
            for error in errors(&outer, &of_parity, directory.path()) {
                assert!(error.to_string().contains("of another group"), "{error}");
            }
        }
        // Some give procedures, others do not.
        let some = Some(calls).filter(|_| rank == 0);
        let error = GlobalArray::<u8>::new(comm, some, block(comm)).unwrap_err();
        assert!(error.to_string().contains("of another group"), "{error}");
        // Those of the group itself serve.
        let of_half = Procedures::start(&half)?;
        let array = GlobalArray::<u8>::apart(&half, &of_half, block(&half))?;
        array.put_one(&[half.rank() as u64 * 11], 7)?;
        array.sync(&half)?;
        assert_eq!((array.get_one(&[0])?, array.get_one(&[11])?), (7, 7));
        array.close(&half)?;
        of_half.close()?;
        of_parity.close()
    });
    assert!(is_empty(directory.path()));
}

#[test]
fn ranks_that_mean_different_things_are_told() {
    let directory = tempfile::tempdir().unwrap();
    run(3, |comm, calls| {
        let odd = comm.rank() == 1;
        let disks = Disks::pattern(directory.path().join("{rank}").to_str().unwrap());
        let options = DiskOptions::new(disks.clone());
        let other = match odd {
            true => options.clone().holders(&[2, 1, 0]),
            false => options.clone(),
        };
        let told = |outcome: Result<(), Error>| {
            let error = outcome.unwrap_err().to_string();
            assert!(error.starts_with("the ranks "), "{error}");
        };
        // 1. Disk-resident arrays: spread, block, holders, name.
        let create = |name: &str, text: &str, options: &DiskOptions| {
            let spread = Distribution::parse(text, &[12], 3, None).unwrap();
            DiskResident::<u8>::create(comm, calls, name, spread, options).map(drop)
        };
        told(create("a", if odd { "cyclic" } else { "block" }, &options));
        let block = if odd { 3 } else { 4 };
        told(create("a", "block", &options.clone().block(&[block])));
        told(create("a", "block", &other));
        told(create(if odd { "a" } else { "b" }, "block", &options));
        told(DiskResident::<u8>::open(comm, calls, "a", &other).map(drop));
        // 2. Shared files.
        let unit = if odd { 10 } else { 20 };
        told(SharedFile::create(comm, calls, "f", unit, &options).map(drop));
        told(SharedFile::create(comm, calls, "f", 10, &other).map(drop));
        told(SharedFile::open(comm, calls, "f", &other).map(drop));
        // 3. States on the disks of others.
        let keepers: &[usize] = if odd { &[2] } else { &[1, 2] };
        told(OthersDisks::new(comm, calls, "s", (&[0], keepers), &disks).map(drop));
        Ok(())
    });
    assert!(is_empty(directory.path()));
}
