//! `outcore reproduce`: the thesis' tables beside their simulation.

use crate::program::Place;

#[test]
fn tables_stand_beside_their_simulation() {
    let place = Place::new();
    let text = place.ok("reproduce --table T5.3 --csv");
    let row = "T5.3,(1:2048:2; 1:32:2),read req. direct,16384,16384.000000";
    assert!(text.contains(row), "{text}");
    let all = place.ok("reproduce");
    for table in ["T5.2", "T5.3", "T5.4", "T5.5", "T5.6"] {
        assert!(all.contains(&format!("{table}  ")), "{all}");
    }
    assert!(
        all.contains("paper       CONTRADICTED: at most 35.7%"),
        "{all}"
    );
    let message = place.fails(2, "reproduce --table T9.9");
    assert!(message.contains("T5.2, T5.3"), "{message}");
}
