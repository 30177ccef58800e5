//! `outcore reproduce`: tables of the thesis and the papers beside their
//! simulation.

use crate::program::Place;

#[test]
fn tables_stand_beside_their_simulation() {
    let place = Place::new();
    let text = place.ok("reproduce --table T5.3 --csv");
    let row = "T5.3,(1:2048:2; 1:32:2),read req. direct,16384,16384.000000";
    assert!(text.contains(row), "{text}");
    let all = place.ok("reproduce");
    let tables = [
        "T5.2", "T5.3", "T5.4", "T5.5", "T5.6", "T1", "T2", "T3", "T4",
    ];
    for table in tables
        .into_iter()
        .chain(["T5", "T6", "T7", "T8", "T9", "T10"])
    {
        assert!(all.contains(&format!("{table}  ")), "{all}");
    }
    assert!(
        all.contains("paper       CONTRADICTED: at most 35.7%"),
        "{all}"
    );
    let end = "in 4 of 7 that direct wins;";
    assert!(all.contains(end), "{all}");
    let two_phase = place.ok("reproduce --table t1 --csv");
    assert!(two_phase.contains("T1,VI,static s,2.024,"), "{two_phase}");
    let message = place.fails(2, "reproduce --table T9.9");
    assert!(message.contains("T5.2, T5.3"), "{message}");
}
