//! Damage is found and named on every rank, and what is older is still good.

use std::fs;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::time::{Duration, SystemTime};

use outcore::{Checkpoint, Checkpoints};

use crate::place::{Place, State};

/// Changes one byte of a file.
fn flip(path: &Path, at: u64) {
    let file = fs::File::options()
        .read(true)
        .write(true)
        .open(path)
        .unwrap();
    let mut byte = [0];
    file.read_exact_at(&mut byte, at).unwrap();
    file.write_all_at(&[byte[0] ^ 0x10], at).unwrap();
}

/// What loading the newest says on every rank.
fn refused(place: &Place) -> String {
    place.error(|comm, series| {
        let latest = series.latest(comm)?.expect("there is one");
        State::load(comm, &latest).map(drop)
    })
}

#[test]
fn a_block() {
    let place = Place::new();
    place.save([1, 2, 3]);
    flip(&place.data("step-3", "field"), (1 << 20) + 5);
    flip(&place.data("step-2", "counts"), 7);
    let text = refused(&place);
    assert!(
        text.contains("array 'field' is damaged in block 1: bytes 1048576 to 1323999"),
        "{text}"
    );
    assert!(text.contains("intact is 'step-1'"), "{text}");
    // Who does not want to know is not told.
    place.on(2, |comm, series| {
        let latest = series.latest(comm).unwrap().unwrap();
        let damage = latest.damage(comm, &|_| ()).unwrap();
        assert_eq!((damage.len(), damage[0].blocks.clone()), (1, 1..2));
        let array = latest.unverified().array(comm, "field").unwrap();
        assert_eq!(array.shape(), [331, 500]);
        let intact = series.newest_intact(comm, &|_| ()).unwrap().unwrap();
        assert_eq!(State::load(comm, &intact).unwrap().step, 1);
    });
    // It goes on from there.
    place.save([4]);
    place.on(3, |comm, series| {
        let latest = series.latest(comm).unwrap().unwrap();
        assert_eq!(State::load(comm, &latest).unwrap().step, 4);
    });
}

#[test]
fn all_blocks_are_one_stretch() {
    let place = Place::new();
    place.save([1]);
    let path = place.data("step-1", "field");
    let len = fs::metadata(&path).unwrap().len();
    fs::write(&path, vec![0xff; len as usize]).unwrap();
    let text = refused(&place);
    assert!(
        text.contains("damaged in blocks 0 to 1: bytes 0 to 1323999"),
        "{text}"
    );
    assert!(
        text.contains("no older checkpoint beside it is intact"),
        "{text}"
    );
}

#[test]
fn files_that_are_cut_longer_or_missing() {
    let place = Place::new();
    place.save([1, 2]);
    let path = place.data("step-2", "field");
    let file = fs::File::options().write(true).open(&path).unwrap();
    let len = file.metadata().unwrap().len();
    file.set_len(len - 1).unwrap();
    let text = refused(&place);
    assert!(
        text.contains("the file is truncated") && text.contains("intact is 'step-1'"),
        "{text}"
    );
    file.set_len(len + 1).unwrap();
    let text = refused(&place);
    assert!(
        text.contains("its data are 1324001 bytes, but 1324000 were saved"),
        "{text}"
    );
    fs::remove_file(&path).unwrap();
    let text = refused(&place);
    assert!(
        text.contains("data.bin") && text.contains("No such file"),
        "{text}"
    );
    fs::remove_dir_all(path.parent().unwrap()).unwrap();
    let text = refused(&place);
    assert!(
        text.contains("field.oc") && text.contains("No such file"),
        "{text}"
    );
}

#[test]
fn a_descriptor_that_says_something_else() {
    let place = Place::new();
    place.save([1]);
    let path = place.path("series/step-1/field.oc/array.json");
    let text = fs::read_to_string(&path).unwrap();
    for (from, to) in [
        ("\"row\"", "\"column\""),
        ("331", "500"),
        ("\"little\"", "\"big\""),
    ] {
        fs::write(&path, text.replace(from, to)).unwrap();
        let problem = refused(&place);
        let expected = ["its descriptor is not that", "truncated"];
        assert!(
            expected.iter().any(|text| problem.contains(text)),
            "{to}: {problem}"
        );
    }
}

#[test]
fn a_manifest() {
    let place = Place::new();
    place.save([1, 2, 3]);
    let path = place.path("series/step-3/manifest.json");
    let good = fs::read(&path).unwrap();
    for at in [0, 20, 100, good.len() as u64 - 3] {
        fs::write(&path, &good).unwrap();
        flip(&path, at);
        let text = refused(&place);
        assert!(text.contains("'step-3', cannot be used"), "{text}");
        assert!(text.contains("manifest.json is damaged"), "{text}");
        assert!(
            text.contains("the newest with a good manifest is 'step-2'"),
            "{text}"
        );
    }
    fs::write(&path, &good[..good.len() / 2]).unwrap();
    assert!(refused(&place).contains("manifest.json is damaged"));
    fs::write(&path, b"\xff\xfe").unwrap();
    assert!(refused(&place).contains("it is not text"));
    let series = Checkpoints::existing(&place.series()).unwrap();
    assert_eq!(
        series
            .list()
            .unwrap()
            .iter()
            .filter(|entry| entry.state.is_err())
            .count(),
        1
    );
    place.on(2, |comm, series| {
        let intact = series.newest_intact(comm, &|_| ()).unwrap().unwrap();
        assert_eq!(intact.name(), "step-2");
    });
    // An old one that is damaged is in nobody's way, and not removed.
    let old = SystemTime::now() - Duration::from_secs(3600);
    fs::File::options()
        .write(true)
        .open(&path)
        .unwrap()
        .set_modified(old)
        .unwrap();
    place.on(2, |comm, series| {
        assert_eq!(series.latest(comm).unwrap().unwrap().name(), "step-2");
    });
    assert_eq!(series.prune(1).unwrap(), ["step-1"]);
    assert_eq!(place.names(), ["step-2", "step-3"]);
}

#[test]
fn no_checkpoint_at_all() {
    let place = Place::new();
    place.save([1]);
    let text = place.error(|comm, series| Checkpoint::open(comm, series.directory()));
    assert!(
        text.contains("this is no checkpoint: there is no manifest.json"),
        "{text}"
    );
    let text = place
        .error(|comm, series| Checkpoint::open(comm, &format!("{}/missing", series.directory())));
    assert!(text.contains("missing: this is no checkpoint"), "{text}");
    fs::remove_file(place.path("series/step-1/manifest.json")).unwrap();
    place.on(2, |comm, series| {
        assert!(series.latest(comm).unwrap().is_none())
    });
}
