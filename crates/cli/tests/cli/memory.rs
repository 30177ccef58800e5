//! `--memory` caps what the program takes, whatever the array.

#[cfg(target_os = "linux")]
use std::process::Stdio;

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
    let mut command = place.command(line.split(' '));
    let mut child = command.stdout(Stdio::null()).spawn().expect("it starts");
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

/// Asserts that no command takes more than `cap` and what a program takes anyway.
#[cfg(target_os = "linux")]
fn stays_below(place: &Place, cap: u64, lines: &[&str]) {
    for line in lines {
        let most = peak(place, &format!("{line} --memory {cap}"));
        assert!(most > 0, "outcore {line}: nothing was seen");
        assert!(most <= cap + 32 * MIB, "outcore {line}: {} MiB", most / MIB);
    }
}

#[cfg(target_os = "linux")]
#[test]
fn peak_memory_stays_within_the_cap() {
    let place = Place::new();
    place.ok("create big.oc --shape 8192x8192 --type f32 --layout column");
    place.ok("create half.npy --shape 4096x4096 --type f32");
    let lines = [
        "read big.oc -o copy.npy --force",
        "read big.oc ::2 -o copy.npy --force --ranks 4 --strategy sieving",
        "read big.oc ::2,::2 -o raw:copy.bin?shape=4096x4096&type=f32&byteorder=big --force",
        "write big.oc ::2,::2 --from half.npy --strategy sieving",
        "write big.oc --fill index --ranks 3",
    ];
    stays_below(&place, 8 * MIB, &lines);
}

#[cfg(target_os = "linux")]
#[test]
fn conversions_and_applications_stay_within_the_cap() {
    let place = Place::new();
    place.ok("create big.oc --shape 8192x4096 --type f32");
    place.ok("create square.oc --shape 2048x2048 --type f64");
    for ranks in ["--ranks 1", "--ranks 4"] {
        let lines = [
            "convert big.oc column.npy --layout column --force",
            "convert big.oc tiled.oc --layout tiled:100x300 --force",
            "median big.oc result.oc --window 3x3 --force",
            "laplace big.oc result.oc --sweeps 4 --force",
            "matmul square.oc square.oc result.oc --force",
            "matmul square.oc square.oc result.oc --form gaxpy --force",
        ]
        .map(|line| format!("{line} {ranks}"));
        stays_below(&place, 16 * MIB, &lines.each_ref().map(String::as_str));
    }
    // Ranks with a file each.
    let spread = "--distribution block,block --grid 2x2 --overlap 4,4 --ranks 4";
    let lines = [
        &format!("convert big.oc parts.oc {spread} --force"),
        "median parts.oc result.oc --window 3x3 --force",
        "laplace parts.oc result.oc --sweeps 4 --force",
        "convert parts.oc back.npy --ranks 4 --force",
    ];
    stays_below(&place, 16 * MIB, &lines);
}

#[cfg(target_os = "linux")]
#[test]
fn listed_places_stay_within_the_cap() {
    let place = Place::new();
    place.ok("create big.oc --shape 8388608 --type f64 --fill index");
    // Any numbers below the length will do, in an order that is not theirs.
    place.ok("create i.oc --shape 1024x2048 --type u32 --fill index");
    place.ok("transpose i.oc turned.oc");
    place.ok("read raw:turned.oc/data.bin?shape=2097152&type=u32 -o i.npy");
    place.ok("gather big.oc --indices i.npy -o v.npy");
    for ranks in ["--ranks 1", "--ranks 4"] {
        let lines = [
            "gather big.oc --indices i.npy -o w.npy --force",
            "scatter big.oc --indices i.npy --values v.npy",
            "scatter big.oc --indices i.npy --values v.npy --combine max",
        ]
        .map(|line| format!("{line} {ranks}"));
        stays_below(&place, 8 * MIB, &lines.each_ref().map(String::as_str));
        assert!(place.npy("w.npy") == place.npy("v.npy"));
    }
}

/// Chunks that can be had only whole are in the memory.
#[cfg(target_os = "linux")]
#[test]
fn decoded_chunks_stay_within_the_cap() {
    let place = Place::new();
    place.ok("create big.zarr --shape 4096x4096 --type f32 --fill index --codec zstd:1 --chunks 2048x4096");
    for line in [
        "convert big.zarr copy.npy --memory 32MiB",
        "read big.zarr -o copy.npy --memory 32MiB",
        "write big.zarr 0,0 --fill 1 --memory 32MiB",
    ] {
        let message = place.fails(1, line);
        assert!(message.contains("needs at least 64."), "{line}: {message}");
    }
    let lines = [
        "convert big.zarr copy.npy --force",
        "read big.zarr -o copy.npy --force",
        "write big.zarr 0,0 --fill 1",
    ];
    stays_below(&place, 80 * MIB, &lines);
}

/// Of a chunk that is stored as it is, memory is taken for what is wanted.
#[cfg(target_os = "linux")]
#[test]
fn an_element_takes_no_whole_chunk() {
    let place = Place::new();
    place.ok("create big.zarr --shape 67108864 --type f32 --chunks 67108864 --fill 1");
    stays_below(&place, MIB, &["read big.zarr 1234567"]);
}

/// The least that a refusal names, as an option wants it; the message rounds it.
#[cfg(target_os = "linux")]
fn named(message: &str) -> u64 {
    let least = message.split_once("at least ").map(|(_, rest)| rest);
    let mut words = least.unwrap_or_else(|| panic!("{message}")).split(' ');
    let number: f64 = words
        .next()
        .and_then(|word| word.parse().ok())
        .expect(message);
    let unit = match words.next() {
        Some("KiB") => 1024.0,
        Some("MiB") => MIB as f64,
        Some("GiB") => 1024.0 * MIB as f64,
        _ => 1.0,
    };
    (number * 1.01 * unit) as u64
}

/// What commands say they need at least is enough, and what they take.
#[cfg(target_os = "linux")]
#[test]
fn large_chunks_are_in_the_least_memory_of_every_command() {
    let place = Place::new();
    place.ok("create big.zarr --shape 2048x4096 --type f32 --fill index --codec zstd:1 --chunks 1024x4096");
    place.ok("create wide.zarr --shape 4x1048576 --type f32 --fill index --codec zstd:1 --chunks 4x1048576");
    place.ok("create tall.zarr --shape 1048576x4 --type f32 --fill index --codec zstd:1 --chunks 1048576x4");
    place.ok(
        "create line.zarr --shape 8388608 --type f64 --fill index --codec zstd:1 --chunks 4194304",
    );
    place.ok("create i.npy --shape 262144 --type u32 --fill index");
    place.ok("gather line.zarr --indices i.npy -o v.npy");
    for ranks in [1, 3] {
        for line in [
            "median big.zarr out.oc --window 3x3 --force",
            "laplace big.zarr out.oc --sweeps 2 --force",
            "laplace big.zarr out.oc --sweeps 2 --io collective --force",
            "fft big.zarr out.oc --force",
            "adi big.zarr out.oc --steps 1 --force",
            "matmul wide.zarr tall.zarr out.oc --force",
            "matmul wide.zarr tall.zarr out.oc --form gaxpy --force",
            "gather line.zarr --indices i.npy -o w.npy --force",
            "scatter line.zarr --indices i.npy --values v.npy",
            "view big.zarr -o out.png --size 64 --force",
            "view big.zarr -o out.png --size 64 --mean --force",
        ] {
            let line = format!("{line} --ranks {ranks}");
            let least = named(&place.fails(1, &format!("{line} --memory 4MiB")));
            assert!(least >= 32 * MIB, "{line}: {} MiB", least / MIB);
            stays_below(&place, least, &[&line]);
        }
    }
    assert!(place.npy("w.npy") == place.npy("v.npy"));
}

/// What is there between two steps of decoding a chunk counts, too.
#[cfg(target_os = "linux")]
#[test]
fn steps_of_codecs_are_in_the_least_memory() {
    let place = Place::new();
    place.ok("create steps.h5 --shape 8192x4096 --type f32 --fill index --codec shuffle,deflate:1 --chunks 4096x4096");
    for line in [
        "read steps.h5 ::2,::64 -o out.npy --force",
        "write steps.h5 ::2,5 --fill 2",
        "stats steps.h5",
    ] {
        let least = named(&place.fails(1, &format!("{line} --memory 4MiB")));
        assert!(least >= 192 * MIB, "{line}: {} MiB", least / MIB);
        stays_below(&place, least, &[line]);
    }
}
