//! Which checkpoints there are: numbers, what is kept, what is left over.

use std::fs;

use outcore::{Checkpoints, Snapshot};

use crate::place::{Place, State};

#[test]
fn the_last_ones_are_kept() {
    let place = Place::new();
    place.on(3, |comm, series| {
        let series = series.clone().keep(3);
        for step in 1..=7 {
            let state = State::of(comm, step).unwrap();
            let saved = series
                .save(comm, &format!("step-{step}"), &state.snapshot())
                .unwrap();
            assert_eq!(saved.sequence, step);
            if comm.rank() == 0 && step > 3 {
                assert_eq!(saved.removed, [format!("step-{}", step - 3)]);
            }
        }
    });
    assert_eq!(place.names(), ["step-5", "step-6", "step-7"]);
    // Nobody has said what to keep: everything.
    place.save([8, 9]);
    assert_eq!(place.names().len(), 5);
    let series = Checkpoints::existing(&place.series()).unwrap();
    assert_eq!(
        series.prune(1).unwrap(),
        ["step-5", "step-6", "step-7", "step-8"]
    );
    assert_eq!(place.names(), ["step-9"]);
    // The one that was just saved is kept in any case.
    place.on(1, |comm, series| {
        let state = State::of(comm, 10).unwrap();
        series
            .clone()
            .keep(0)
            .save(comm, "last", &state.snapshot())
            .unwrap();
    });
    assert_eq!(place.names(), ["last"]);
}

#[test]
fn order_is_that_of_saving_not_of_names() {
    let place = Place::new();
    place.on(2, |comm, series| {
        for (step, name) in [(1, "zebra"), (2, "ape"), (3, "monkey")] {
            let state = State::of(comm, step).unwrap();
            series.save(comm, name, &state.snapshot()).unwrap();
        }
        let latest = series.latest(comm).unwrap().unwrap();
        assert_eq!((latest.name(), latest.sequence()), ("monkey", 3));
    });
    let series = Checkpoints::existing(&place.series()).unwrap();
    let names: Vec<String> = series
        .list()
        .unwrap()
        .into_iter()
        .map(|entry| entry.name)
        .collect();
    assert_eq!(names, ["zebra", "ape", "monkey"]);
}

#[test]
fn a_name_that_is_used_again_is_the_newest() {
    let place = Place::new();
    place.save([1, 2, 3]);
    place.on(3, |comm, series| {
        let state = State::of(comm, 40).unwrap();
        series.save(comm, "step-2", &state.snapshot()).unwrap();
        let latest = series.latest(comm).unwrap().unwrap();
        assert_eq!((latest.name(), latest.sequence()), ("step-2", 4));
        assert_eq!(State::load(comm, &latest).unwrap().step, 40);
    });
    assert_eq!(place.names(), ["step-1", "step-2", "step-3"]);
}

#[test]
fn what_is_left_over_is_ignored_and_removed() {
    let place = Place::new();
    place.save([1]);
    let left = ".new-0123456789abcdef0123456789abcdef-step-2";
    let old = ".old-0123456789abcdef0123456789abcdef-step-0";
    for name in [left, old] {
        fs::create_dir(place.path("series").join(name)).unwrap();
        let from = place.path("series/step-1/manifest.json");
        fs::copy(from, place.path("series").join(name).join("manifest.json")).unwrap();
    }
    // Neither these nor anything else that is there is a checkpoint.
    fs::create_dir(place.path("series/.new-notes")).unwrap();
    fs::create_dir(place.path("series/figures")).unwrap();
    fs::write(place.path("series/readme"), "x").unwrap();
    let series = Checkpoints::existing(&place.series()).unwrap();
    assert_eq!(series.list().unwrap().len(), 1);
    assert_eq!(series.leftovers().unwrap().len(), 2);
    place.on(2, |comm, series| {
        let latest = series.latest(comm).unwrap().unwrap();
        assert_eq!(State::load(comm, &latest).unwrap().step, 1);
    });
    place.save([2]);
    assert_eq!(
        place.names(),
        [".new-notes", "figures", "readme", "step-1", "step-2"]
    );
}

#[test]
fn two_series_in_one_directory_take_turns() {
    let place = Place::new();
    std::thread::scope(|scope| {
        for writer in 0..3 {
            let place = &place;
            scope.spawn(move || {
                place.on(2, |comm, series| {
                    for step in 0..4 {
                        let state = State::of(comm, step).unwrap();
                        let name = format!("{writer}-{step}");
                        series.save(comm, &name, &state.snapshot()).unwrap();
                    }
                });
            });
        }
    });
    let series = Checkpoints::existing(&place.series()).unwrap();
    let entries = series.list().unwrap();
    let numbers: Vec<u64> = entries
        .iter()
        .map(|entry| entry.state.as_ref().unwrap().sequence())
        .collect();
    assert_eq!(numbers, (1..=12).collect::<Vec<u64>>());
    assert!(series.leftovers().unwrap().is_empty());
}

#[test]
fn names_that_lead_elsewhere_are_refused() {
    let place = Place::new();
    for name in ["../up", "", ".hidden", "a/b"] {
        let text = place.error(|comm, series| {
            let state = State::of(comm, 1)?;
            series.save(comm, name, &state.snapshot())
        });
        assert!(
            text.contains("cannot be the name of a checkpoint"),
            "{text}"
        );
    }
    let text = place.error(|comm, series| {
        let state = State::of(comm, 1)?;
        let snapshot = state.snapshot().note("residual", f64::NAN);
        series.save(comm, "nan", &snapshot)
    });
    assert!(text.contains("'residual' is null"), "{text}");
    std::fs::write(place.path("series/taken"), "x").unwrap();
    let text = place.error(|comm, series| series.save(comm, "taken", &Snapshot::new()));
    assert!(
        text.contains("what has this name is no checkpoint"),
        "{text}"
    );
    assert_eq!(place.names(), ["taken"]);
}
