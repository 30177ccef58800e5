//! A save that fails does so on all ranks, and leaves what was there.

use std::process::Command;

use outcore::{
    Array, Comm, DistributedArray, Distribution, ElementType, Error, Result, Savable, Section,
    Snapshot,
};

use crate::child;
use crate::place::{Place, State};

/// A variable that fails on one rank after it has written something.
struct Failing(usize);

impl Savable for Failing {
    fn shape(&self) -> Vec<u64> {
        vec![1000]
    }

    fn element_type(&self) -> ElementType {
        ElementType::U8
    }

    fn write(&self, comm: &Comm, array: &Array) -> Result<()> {
        array.write(&array.section("0:500")?, &[7u8; 500])?;
        match comm.rank() == self.0 {
            true => Err(Error::Invalid("the disk is on fire".into())),
            false => Ok(()),
        }
    }
}

/// A variable whose elements are of a type that the ranks' calls are not.
struct Mistyped;

impl Savable for Mistyped {
    fn shape(&self) -> Vec<u64> {
        vec![10]
    }

    fn element_type(&self) -> ElementType {
        ElementType::F32
    }

    fn write(&self, comm: &Comm, array: &Array) -> Result<()> {
        let all = Section::whole(&[10]).expect("a section");
        array.write_all(comm, &all, &[0.0f64; 10])
    }
}

fn still_at_1(place: &Place) {
    assert_eq!(place.names(), ["step-1"]);
    place.on(2, |comm, series| {
        let latest = series.latest(comm).unwrap().unwrap();
        assert_eq!(State::load(comm, &latest).unwrap().step, 1);
    });
}

#[test]
fn a_variable_that_cannot_be_written() {
    let place = Place::new();
    place.save([1]);
    let text = place.error(|comm, series| {
        let state = State::of(comm, 2)?;
        let failing = Failing(1);
        series.save(comm, "step-2", &state.snapshot().with("failing", &failing))
    });
    assert_eq!(text, "rank 1: the disk is on fire");
    still_at_1(&place);
    let text = place.error(|comm, series| {
        series.save(comm, "step-1", &Snapshot::new().with("mistyped", &Mistyped))
    });
    assert!(text.contains("holds f32 elements, not f64"), "{text}");
    still_at_1(&place);
    place.save([2]);
    assert_eq!(place.names(), ["step-1", "step-2"]);
}

#[test]
fn ranks_that_do_not_save_the_same() {
    let place = Place::new();
    place.save([1]);
    let text = place.error(|comm, series| {
        let ranks = comm.size() as u64;
        let distribution = Distribution::parse("block", &[30], ranks, None).expect("it fits");
        let array = DistributedArray::<f32>::new(comm, distribution)?;
        let name = if comm.rank() == 2 { "v" } else { "u" };
        series.save(comm, "step-2", &Snapshot::new().with(name, &array))
    });
    assert!(
        text.contains("rank 0 saves 'step-2' with u (30 f32), rank 2 saves 'step-2' with v"),
        "{text}"
    );
    let text = place.error(|comm, series| {
        let name = format!("step-{}", comm.rank());
        series.save(comm, &name, &Snapshot::new())
    });
    assert!(
        text.contains("rank 0 saves 'step-0' with no variables"),
        "{text}"
    );
    let text = place.error(|comm, series| {
        let (one, two) = (Failing(9), Failing(9));
        series.save(
            comm,
            "step-2",
            &Snapshot::new().with("x", &one).with("x", &two),
        )
    });
    assert!(text.contains("two arrays of the name 'x'"), "{text}");
    still_at_1(&place);
}

/// A process whose files may not grow beyond 1 MiB, as on a full disk.
#[test]
fn files_that_may_not_grow() {
    let place = Place::new();
    place.save([1]);
    let script = "trap '' XFSZ; ulimit -f 1024; exec \"$0\" \"$@\"";
    let mut shell = Command::new("bash");
    shell.args(["-c", script]).arg(child::program());
    child::arguments(&mut shell, &place.series(), 3, child::Task::Once);
    let output = shell.output().expect("bash");
    let said = String::from_utf8_lossy(&output.stdout);
    assert_eq!(said.matches("File too large").count(), 3, "{said}");
    still_at_1(&place);
}

/// A disk of 4 MiB, where there is room for one state and not for two. Needs the
/// right to mount; without it this says so and checks nothing.
#[test]
fn a_full_disk() {
    let place = Place::new();
    std::fs::create_dir(place.path("series")).unwrap();
    let mounted = Command::new("mount")
        .args(["-t", "tmpfs", "-o", "size=3m", "outcore-test"])
        .arg(place.series())
        .output();
    if !mounted.is_ok_and(|output| output.status.success()) {
        println!("NOT CHECKED: nobody but root can mount a small disk");
        return;
    }
    struct Mounted(String);
    impl Drop for Mounted {
        fn drop(&mut self) {
            let _ = Command::new("umount").arg(&self.0).status();
        }
    }
    let _mounted = Mounted(place.series());
    place.save([1]);
    let text = place.error(|comm, series| {
        let state = State::of(comm, 2)?;
        series.save(comm, "step-2", &state.snapshot())
    });
    assert!(text.contains("No space left on device"), "{text}");
    still_at_1(&place);
}
