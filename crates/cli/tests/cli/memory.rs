//! `--memory` caps what the program takes, whatever the array.

use crate::program::Place;

const MIB: u64 = 1 << 20;

#[test]
fn too_little_memory_is_refused_with_the_least_that_works() {
    let place = Place::new();
    place.ok("create a.oc --shape 300x500 --type f64 --fill index");
    for (line, least) in [
        ("read a.oc -o b.npy --memory 1000", "64 KiB"),
        ("read a.oc 0 --memory 0", "64 KiB"),
        ("read a.oc -o b.npy --ranks 3 --memory 128KiB", "192 KiB"),
        ("write a.oc --fill 1 --ranks 2 --memory 100kB", "128 KiB"),
        (
            "create c.oc --shape 4 --type u8 --fill 1 --memory 1",
            "64 KiB",
        ),
    ] {
        let message = place.fails(1, line);
        let part = format!("needs at least {least} of memory, but the budget is");
        assert!(message.contains(&part), "{line}: {message}");
    }
    assert_eq!(place.names(), ["a.oc"]);
    place.fails(2, "read a.oc --memory lots");
}

#[test]
fn the_least_memory_is_enough_for_right_values() {
    let place = Place::new();
    place.ok("create a.oc --shape 300x500 --type f64 --layout column --fill index");
    place.ok("create row.oc --shape 300x500 --type f64 --fill index --memory 64KiB");
    for strategy in ["auto", "direct", "sieving", "mapped"] {
        let capped = format!("--strategy {strategy} --memory 192KiB --ranks 3 --force");
        place.ok(&format!("read a.oc ::2,1::3 -o capped.oc {capped}"));
        place.ok("read a.oc ::2,1::3 -o plain.oc --force");
        let plain = place.bytes("plain.oc/data.bin");
        assert_eq!(place.bytes("capped.oc/data.bin"), plain, "{strategy}");
        place.ok("create b.oc --shape 300x500 --type f64 --force");
        let capped = format!("--strategy {strategy} --memory 192KiB --ranks 3");
        place.ok(&format!("write b.oc --from a.oc {capped}"));
        let written = place.bytes("b.oc/data.bin");
        assert!(written == place.bytes("row.oc/data.bin"), "{strategy}");
    }
    let text = place.ok("read a.oc 7 --memory 64KiB");
    assert_eq!(text, place.ok("read a.oc 7"));
}

/// The most memory that the program takes for a command line, in bytes: its
/// own and shared pages, without those of mapped files.
#[cfg(target_os = "linux")]
fn peak(place: &Place, line: &str) -> u64 {
    let mut child = place.command(line.split(' ')).spawn().expect("it starts");
    let status = format!("/proc/{}/status", child.id());
    let mut most = 0;
    loop {
        let text = std::fs::read_to_string(&status).unwrap_or_default();
        let bytes = |name: &str| -> Option<u64> {
            let line = text.lines().find(|line| line.starts_with(name))?;
            let kibibytes: u64 = line.split_whitespace().nth(1)?.parse().ok()?;
            Some(kibibytes << 10)
        };
        let now = bytes("RssAnon:").zip(bytes("RssShmem:"));
        most = most.max(now.map_or(0, |(own, shared)| own + shared));
        if let Some(status) = child.try_wait().expect("it ends") {
            assert!(status.success(), "outcore {line}");
            return most;
        }
        std::thread::sleep(std::time::Duration::from_millis(1));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn peak_memory_stays_within_the_cap() {
    let place = Place::new();
    place.ok("create big.oc --shape 8192x8192 --type f32 --layout column");
    place.ok("create half.npy --shape 4096x4096 --type f32");
    for line in [
        "read big.oc -o copy.npy --force --memory 8MiB",
        "read big.oc ::2 -o copy.npy --force --memory 8MiB --ranks 4 --strategy sieving",
        "read big.oc ::2,::2 -o raw:copy.bin?shape=4096x4096&type=f32&byteorder=big --force --memory 8MiB",
        "write big.oc ::2,::2 --from half.npy --memory 8MiB --strategy sieving",
        "write big.oc --fill index --memory 8MiB --ranks 3",
    ] {
        let most = peak(&place, line);
        assert!(most > 0, "outcore {line}: nothing was seen");
        assert!(most <= (8 + 32) * MIB, "outcore {line}: {} MiB", most / MIB);
    }
}
