//! What is saved by some ranks is restored by others.

use bytemuck::Pod;
use outcore::{
    Array, Checkpoints, Comm, Complex, DistributedArray, Distribution, Element, ElementType,
    Result, Snapshot, f16,
};
use serde_json::json;

use crate::place::{Place, State};

/// Distributions of a 23x17x3 array.
const DISTRIBUTIONS: [&str; 5] = [
    "block,*,*",
    "*,cyclic(2),*",
    "cyclic(3),block,*",
    "*,*,cyclic",
    "cyclic,cyclic,*",
];

fn made<T: Pod>(
    comm: &Comm,
    text: &str,
    mut value: impl FnMut(u64) -> T,
) -> Result<DistributedArray<T>> {
    let ranks = comm.size() as u64;
    let distribution = Distribution::parse(text, &[23, 17, 3], ranks, None).expect("it fits");
    let mut array = DistributedArray::new(comm, distribution)?;
    array.fill_with(|index| value((index[0] * 17 + index[1]) * 3 + index[2]));
    Ok(array)
}

/// Saves an array of one type on 5 ranks, and restores it on 3 and on 8.
fn moves<T: Pod + Element + PartialEq>(value: impl Fn(u64) -> T + Sync) {
    let place = Place::new();
    place.on(5, |comm, series| {
        let arrays: Result<Vec<_>> = DISTRIBUTIONS
            .iter()
            .map(|text| made(comm, text, &value))
            .collect();
        let arrays = arrays.unwrap();
        let mut state = Snapshot::new();
        for (array, name) in arrays.iter().zip(["a", "b", "c", "d", "e"]) {
            state = state.with(name, array);
        }
        series.save(comm, "only", &state).unwrap();
    });
    for ranks in [3, 8] {
        place.on(ranks, |comm, series| {
            let saved = series.latest(comm).unwrap().expect("one was saved");
            assert_eq!(
                (saved.name(), saved.ranks(), saved.arrays().len()),
                ("only", 5, 5)
            );
            for (at, name) in ["a", "b", "c", "d", "e"].into_iter().enumerate() {
                let text = DISTRIBUTIONS[(at + 2) % 5];
                let mut array = made(comm, text, |_| T::zeroed()).unwrap();
                saved.load(comm, name, &mut array).unwrap();
                let expected = made(comm, text, &value).unwrap();
                assert!(array.local() == expected.local(), "{name} {text}");
            }
        });
    }
}

#[test]
fn on_any_ranks_in_any_distribution_of_many_types() {
    moves(|at| at as u8);
    moves(|at| at as i16 - 500);
    moves(|at| at * 0x0123_4567_89ab);
    moves(|at| f16::from_f64(at as f64 / 4.0));
    moves(|at| at as f32 / 3.0);
    moves(|at| Complex::new(at as f64, -1.0 / (at + 1) as f64));
}

#[test]
fn on_more_ranks_than_there_are_rows() {
    let place = Place::new();
    place.save([1]);
    for ranks in [1, 16] {
        place.on(ranks, |comm, series| {
            let saved = series.latest(comm).unwrap().expect("one was saved");
            State::load(comm, &saved).unwrap();
        });
    }
}

#[test]
fn arrays_are_ordinary_ones_in_global_order() {
    let place = Place::new();
    place.on(3, |comm, series| {
        let array = made(comm, "cyclic(2),*,cyclic", |at| at as u32).unwrap();
        let saved = series
            .save(comm, "step 1", &Snapshot::new().with("u", &array))
            .unwrap();
        assert_eq!((saved.sequence, saved.bytes), (1, 23 * 17 * 3 * 4));
        let array = series
            .latest(comm)
            .unwrap()
            .unwrap()
            .array(comm, "u")
            .unwrap();
        assert_eq!(
            array
                .read::<u32>(&array.section("22, 16, :").unwrap())
                .unwrap(),
            [1170, 1171, 1172]
        );
    });
    let array = Array::open(place.path("series/step 1/u.oc").to_str().unwrap()).unwrap();
    assert_eq!(array.element_type(), ElementType::U32);
    let values: Vec<u32> = array.read(&array.whole()).unwrap();
    assert!(values.iter().zip(0..).all(|(value, at)| *value == at));
}

#[test]
fn notes_come_back_bit_by_bit() {
    let place = Place::new();
    let times = [
        0.1 + 0.2,
        1e-300,
        123_456_789.123_456_79,
        f64::MIN_POSITIVE / 3.0,
    ];
    place.on(2, |comm, series| {
        let state = Snapshot::new()
            .note("times", times.to_vec())
            .note("text", "line\n\"quoted\" ü")
            .note("nested", json!({"a": [1, {"b": false}]}));
        series.save(comm, "notes", &state).unwrap();
        let saved = series.latest(comm).unwrap().unwrap();
        let read = saved.note("times").unwrap().as_array().unwrap();
        assert!(
            read.iter()
                .zip(times)
                .all(|(read, time)| read.as_f64() == Some(time))
        );
        assert_eq!(saved.note("text").unwrap(), "line\n\"quoted\" ü");
        assert_eq!(saved.note("nested").unwrap()["a"][1]["b"], false);
        assert!(saved.arrays().is_empty() && saved.note("step").is_none());
        saved.verify(comm, &|_| ()).unwrap();
    });
}

#[test]
fn a_series_that_is_empty_has_no_latest() {
    let place = Place::new();
    place.on(3, |comm, series| {
        assert!(series.latest(comm).unwrap().is_none());
        assert!(series.newest_intact(comm, &|_| ()).unwrap().is_none());
    });
    assert!(Checkpoints::existing(&place.path("nothing").to_string_lossy()).is_err());
}

#[test]
fn what_does_not_fit_is_refused_on_all_ranks() {
    let place = Place::new();
    place.on(3, |comm, series| {
        let array = made(comm, "block,*,*", |at| at as f32).unwrap();
        series
            .save(comm, "one", &Snapshot::new().with("u", &array))
            .unwrap();
    });
    let text = place.error(|comm, series| {
        let mut array = made(comm, "block,*,*", |_| 0.0f32)?;
        series.latest(comm)?.unwrap().load(comm, "w", &mut array)
    });
    assert!(
        text.contains("there is no array 'w'") && text.contains("it holds u"),
        "{text}"
    );
    let text = place.error(|comm, series| {
        let mut array = made(comm, "block,*,*", |_| 0.0f64)?;
        series.latest(comm)?.unwrap().load(comm, "u", &mut array)
    });
    assert!(
        text.contains("was saved as 23x17x3 f32") && text.contains("23x17x3 f64"),
        "{text}"
    );
    let text = place.error(|comm, series| {
        let distribution = Distribution::parse("block,*", &[23, 51], 3, None).expect("it fits");
        let mut array = DistributedArray::<f32>::new(comm, distribution)?;
        series.latest(comm)?.unwrap().load(comm, "u", &mut array)
    });
    assert!(text.contains("23x51 f32"), "{text}");
}
