//! A small run of `outcore bench formats`.

use crate::program::Place;

#[test]
fn every_format_takes_part() {
    let place = Place::new();
    let csv = place.ok("bench formats --extent 64 --convert 64 --repeat 1 --csv");
    let lines: Vec<&str> = csv.lines().skip(1).collect();
    assert_eq!(lines.len(), 4 * 6 + 2, "{csv}");
    for line in &lines {
        assert!(
            line.starts_with("outcore,formats,") && line.ends_with(",ok"),
            "{line}"
        );
    }
    for part in ["zarr-zstd ", "hdf5 ", "hdf5-deflate 0:64:1 0:64:1"] {
        assert!(
            lines.iter().any(|line| line.contains(part)),
            "{part}: {csv}"
        );
    }
    let message = place.fails(
        1,
        "bench formats --extent 64 --convert 0 --peers --python nothing",
    );
    assert!(message.contains("nothing"), "{message}");
}
