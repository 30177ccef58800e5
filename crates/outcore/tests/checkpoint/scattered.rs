//! Values at listed places: saved in global order, restored at other places.

use outcore::{Comm, DistributedArray, Distribution, Result, Scattered, Schedule, Snapshot};

use crate::place::Place;

const POINTS: u64 = 5003;

/// The points of a rank: each point of the mesh belongs to one, in no order, and
/// each rank has copies of some others' besides.
fn points(comm: &Comm, factor: u64) -> Vec<u64> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let all = (0..POINTS).map(|at| at * factor % POINTS);
    // Some ranks have more than others.
    let mut own: Vec<u64> = all
        .zip(0..)
        .filter(|(_, at): &(u64, u64)| at * at % ranks == rank)
        .map(|(point, _)| point)
        .collect();
    let copies: Vec<u64> = own
        .iter()
        .take(20)
        .map(|point| (point + 1) % POINTS)
        .collect();
    own.extend(copies);
    own
}

fn pressure(point: u64) -> f64 {
    point as f64 / 3.0
}

fn velocity(point: u64) -> [f32; 6] {
    std::array::from_fn(|at| (point * 6 + at as u64) as f32)
}

/// Saves two variables by their points, on 5 ranks.
fn save(place: &Place) {
    place.on(5, |comm, series| {
        let points = points(comm, 1709);
        let schedule = Schedule::of_shape(comm, &[POINTS], &points).unwrap();
        let p: Vec<f64> = points.iter().map(|point| pressure(*point)).collect();
        let v: Vec<f32> = points.iter().flat_map(|point| velocity(*point)).collect();
        let inside: Vec<bool> = points.iter().map(|point| point % 3 == 0).collect();
        let (p, inside) = (
            Scattered::new(&schedule, &p),
            Scattered::new(&schedule, &inside),
        );
        let v = Scattered::new(&schedule, &v).records(&[2, 3]);
        let state = Snapshot::new()
            .with("p", &p)
            .with("v", &v)
            .with("inside", &inside);
        series.save(comm, "mesh", &state).unwrap();
    });
}

#[test]
fn on_other_ranks_in_another_order() {
    let place = Place::new();
    save(&place);
    for ranks in [1, 3, 8] {
        place.on(ranks, |comm, series| {
            let points = points(comm, 37);
            let schedule = Schedule::of_shape(comm, &[POINTS], &points).unwrap();
            let saved = series.latest(comm).unwrap().expect("one was saved");
            assert_eq!(saved.arrays()[1].shape(), [POINTS, 2, 3]);
            let mut p = vec![0.0; points.len()];
            saved.load_scattered(comm, "p", &schedule, &mut p).unwrap();
            assert!(
                points
                    .iter()
                    .zip(&p)
                    .all(|(point, p)| *p == pressure(*point))
            );
            let mut v = vec![0.0; 6 * points.len()];
            saved.load_scattered(comm, "v", &schedule, &mut v).unwrap();
            let records = points.iter().zip(v.chunks(6));
            assert!(records.into_iter().all(|(point, v)| v == velocity(*point)));
            let mut inside = vec![false; points.len()];
            saved
                .load_scattered(comm, "inside", &schedule, &mut inside)
                .unwrap();
            assert!(
                points
                    .iter()
                    .zip(&inside)
                    .all(|(point, inside)| *inside == (point % 3 == 0))
            );
        });
    }
}

#[test]
fn as_an_array_that_is_divided_regularly_and_back() {
    let place = Place::new();
    save(&place);
    place.on(3, |comm, series| {
        let of = |text, shape: &[u64]| Distribution::parse(text, shape, 3, None).expect("it fits");
        let saved = series.latest(comm).unwrap().expect("one was saved");
        let mut v =
            DistributedArray::<f32>::new(comm, of("cyclic(5),*,*", &[POINTS, 2, 3])).unwrap();
        saved.load(comm, "v", &mut v).unwrap();
        assert!(
            v.iter()
                .all(|(at, v)| *v == velocity(at[0])[(at[1] * 3 + at[2]) as usize])
        );
        series
            .save(comm, "regular", &Snapshot::new().with("v", &v))
            .unwrap();
        let points = points(comm, 99);
        let schedule = Schedule::of_shape(comm, &[POINTS], &points).unwrap();
        let mut v = vec![0.0; 6 * points.len()];
        let saved = series.latest(comm).unwrap().expect("one was saved");
        saved.load_scattered(comm, "v", &schedule, &mut v).unwrap();
        assert!(
            points
                .iter()
                .zip(v.chunks(6))
                .all(|(point, v)| v == velocity(*point))
        );
    });
}

#[test]
fn what_no_rank_has_is_zero() {
    let place = Place::new();
    place.on(2, |comm, series| {
        let points: &[u64] = if comm.rank() == 0 { &[7, 2] } else { &[] };
        let schedule = Schedule::of_shape(comm, &[10], points).unwrap();
        let values = vec![5u16; points.len()];
        let values = Scattered::new(&schedule, &values);
        series
            .save(comm, "few", &Snapshot::new().with("x", &values))
            .unwrap();
        let array = series
            .latest(comm)
            .unwrap()
            .unwrap()
            .array(comm, "x")
            .unwrap();
        let all: Vec<u16> = array.read(&array.whole()).unwrap();
        assert_eq!(all, [0, 0, 5, 0, 0, 0, 0, 5, 0, 0]);
    });
}

#[test]
fn what_does_not_fit_is_refused_on_all_ranks() {
    let place = Place::new();
    save(&place);
    let load = |shape: &'static [u64], name: &'static str, values: usize| {
        place.error(move |comm, series| -> Result<()> {
            let schedule = Schedule::of_shape(comm, shape, &[1u64, 2])?;
            let mut values = vec![0.0f32; values + comm.rank() / 2];
            let saved = series.latest(comm)?.expect("one was saved");
            saved.load_scattered(comm, name, &schedule, &mut values)
        })
    };
    let text = load(&[5004], "v", 12);
    assert!(
        text.contains("'v' was saved as 5003x2x3 f32, and does not fit 5004x2x3 f32"),
        "{text}"
    );
    let text = load(&[5003], "p", 2);
    assert!(
        text.contains("saved as 5003 f64, and does not fit 5003 f32"),
        "{text}"
    );
    let text = load(&[5003, 2, 3, 1], "v", 2);
    assert!(text.contains("does not fit 5003x2x3x1 f32"), "{text}");
    let text = load(&[5003], "nothing", 2);
    assert!(text.contains("there is no array 'nothing'"), "{text}");
    let text = load(&[5003], "v", 12);
    assert!(
        text.contains("rank 2") && text.contains("13 values for 2 indices of 6 each"),
        "{text}"
    );
    let text = place.error(|comm, series| {
        let schedule = Schedule::of_shape(comm, &[10], &[comm.rank() as u64])?;
        let values = vec![1u8; 1 + comm.rank()];
        series.save(
            comm,
            "bad",
            &Snapshot::new().with("x", &Scattered::new(&schedule, &values)),
        )
    });
    assert!(
        text.contains("rank 1") && text.contains("2 values for 1 indices"),
        "{text}"
    );
    assert_eq!(place.names(), ["mesh"]);
}
