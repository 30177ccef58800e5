//! `outcore bench redistribute`.

use crate::program::Place;

#[test]
fn every_method_takes_part_in_the_bench() {
    let place = Place::new();
    let small = "bench redistribute --shape 60x44 --type f32 --ranks 4 --repeat 1 --csv \
                 --from cyclic(5),* --to cyclic(3),cyclic(2) --to-grid 2x2";
    // auto, auto kept, two arrivals of messages, there and back, plan, memcpy;
    for (method, more) in [("", 0), ("--method lcm", 1), ("--method all", 5)] {
        let csv = place.ok(&format!("{small} {method}"));
        assert_eq!(csv.lines().count(), 1 + 7 + more, "{csv}");
        let mut lines = csv.lines().skip(1);
        let case = ",redistribute,60x44 cyclic(5);*->cyclic(3);cyclic(2),move,";
        assert!(
            lines.all(|line| line.contains(case) && line.ends_with(",ok")),
            "{csv}"
        );
    }
    assert!(place.ok(&small.replace(" --csv", "")).contains("memcpy"));
}

#[test]
fn what_cannot_be_redistributed_is_refused() {
    let place = Place::new();
    for (wrong, problem) in [
        ("--from cyclic(0) --to block", "blocks of size 0"),
        ("--from block,* --to block", "axes"),
        ("--from block --grid 3 --to block", "a grid of 3"),
        ("--from block --to cyclic --method fast", "by-axis"),
        ("--from block --to cyclic --peers", "mpirun"),
    ] {
        let line = format!("bench redistribute --shape 100 --ranks 4 --repeat 1 {wrong}");
        let message = place.fails(1, &line);
        assert!(message.contains(problem), "{wrong}: {message}");
    }
    place.fails(2, "bench redistribute --from block");
    place.fails(2, "bench redistribute --repeat 0");
}
