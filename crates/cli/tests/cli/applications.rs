//! `outcore median` and `outcore laplace` on every format and placement.

use crate::program::Place;

/// The f32 values of a .npy file in row-major order.
fn values(place: &Place, name: &str) -> Vec<f32> {
    let bytes = place.npy(name);
    let (numbers, rest) = bytes.as_chunks::<4>();
    assert!(rest.is_empty());
    numbers
        .iter()
        .map(|number| f32::from_ne_bytes(*number))
        .collect()
}

/// The middle of the sorted 3x3 windows, beyond the edges the nearest element.
fn medians(values: &[f32], rows: usize, columns: usize) -> Vec<f32> {
    let at = |i: isize, j: isize| {
        let (i, j) = (
            i.clamp(0, rows as isize - 1),
            j.clamp(0, columns as isize - 1),
        );
        values[i as usize * columns + j as usize]
    };
    let indices = (0..rows as isize).flat_map(|i| (0..columns as isize).map(move |j| (i, j)));
    let median = |(i, j): (isize, isize)| {
        let window = (-1..2).flat_map(|di| (-1..2).map(move |dj| (i + di, j + dj)));
        let mut window: Vec<f32> = window.map(|(i, j)| at(i, j)).collect();
        window.sort_by(f32::total_cmp);
        window[4]
    };
    indices.map(median).collect()
}

/// Sweeps with fixed edges.
fn swept(values: &[f32], rows: usize, columns: usize, sweeps: usize) -> Vec<f32> {
    let mut old = values.to_vec();
    for _ in 0..sweeps {
        let mut new = old.clone();
        for i in 1..rows - 1 {
            for j in 1..columns - 1 {
                let at = i * columns + j;
                let sum = ((old[at - columns] + old[at + columns]) + old[at - 1]) + old[at + 1];
                new[at] = sum * 0.25;
            }
        }
        old = new;
    }
    old
}

#[test]
fn every_format_and_layout_gives_the_same() {
    let place = Place::new();
    place.ok("create in.npy --shape 90x70 --type f32 --fill random");
    let original = values(&place, "in.npy");
    let (filtered, solved) = (medians(&original, 90, 70), swept(&original, 90, 70, 9));
    place.ok("convert in.npy row.oc");
    place.ok("convert in.npy column.oc --layout column");
    place.ok("convert in.npy tiled.oc --layout tiled:16x16");
    place.ok("convert in.npy big.npy --layout column");
    let raw = "raw:data.bin?shape=90x70&type=f32&byteorder=big";
    place.ok(&format!("convert in.npy {raw}"));
    for input in ["in.npy", "row.oc", "column.oc", "tiled.oc", "big.npy", raw] {
        for ranks in [1, 2, 3, 5, 16] {
            let options = format!("--ranks {ranks} --memory 64KiB --force");
            let told = place.ok(&format!("median {input} median.oc --window 3x3 {options}"));
            assert!(told.starts_with("median 3x3 of 90x70 f32; ") && told.contains("peak memory"));
            place.ok("convert median.oc median.npy --layout row --force");
            assert!(values(&place, "median.npy") == filtered, "{input} {ranks}");
            let options = format!("--ranks {ranks} --fuse 4 --memory 256KiB --force");
            let told = place.ok(&format!("laplace {input} laplace.npy --sweeps 9 {options}"));
            assert!(
                told.starts_with("9 sweeps of 90x70 f32 in 3 passes; last change "),
                "{told}"
            );
            place.ok("convert laplace.npy solved.npy --layout row --force");
            assert!(values(&place, "solved.npy") == solved, "{input} {ranks}");
        }
    }
    // Whatever was temporary is gone.
    assert!(
        place.names().iter().all(|name| !name.starts_with('.')),
        "{:?}",
        place.names()
    );
}

#[test]
fn local_files_stay_local() {
    let place = Place::new();
    place.ok("create in.npy --shape 60x64 --type f32 --fill random");
    let original = values(&place, "in.npy");
    for (distribution, grid) in [
        ("block,block", "2x2"),
        ("block,*", "3x1"),
        ("cyclic(5),*", "2x1"),
    ] {
        place.ok(&format!(
            "convert in.npy parts.oc --distribution {distribution} --grid {grid} --overlap 2,2 --force"
        ));
        place.ok("median parts.oc median.oc --window 3x3 --force");
        assert!(place.ok("info median.oc").contains("local"));
        place.ok("convert median.oc median.npy --force");
        assert!(
            values(&place, "median.npy") == medians(&original, 60, 64),
            "{distribution}"
        );
        let told = place.ok("laplace parts.oc laplace.oc --sweeps 5 --force");
        assert!(
            told.starts_with("5 sweeps of 60x64 f32 in 3 passes"),
            "{told}"
        );
        place.ok("convert laplace.oc laplace.npy --force");
        assert!(
            values(&place, "laplace.npy") == swept(&original, 60, 64, 5),
            "{distribution}"
        );
    }
    let message = place.fails(1, "median parts.oc other.oc --window 3x3 --ranks 5");
    assert!(message.contains("outcore convert"), "{message}");
    let message = place.fails(1, "median parts.oc other.oc --window 7x3");
    assert!(
        message.contains("2 deep") && message.contains("outcore convert"),
        "{message}"
    );
}

#[test]
fn blocks_read_and_written_together_give_the_same() {
    let place = Place::new();
    place.ok("create in.oc --shape 90x70 --type f32 --fill random --layout column");
    place.ok("laplace in.oc own.npy --sweeps 9 --fuse 2");
    for ranks in [1, 2, 4, 5] {
        for memory in ["256KiB", "4MiB"] {
            let options = format!("--fuse 2 --io collective --ranks {ranks} --memory {memory}");
            let told = place.ok(&format!(
                "laplace in.oc together.npy --sweeps 9 --force {options}"
            ));
            assert!(
                told.starts_with("9 sweeps of 90x70 f32 in 5 passes; "),
                "{told}"
            );
            assert!(
                place.npy("together.npy") == place.npy("own.npy"),
                "{options}"
            );
        }
    }
    let message = place.fails(
        1,
        "laplace in.oc x.oc --sweeps 3 --io collective --boundary periodic",
    );
    assert!(message.contains("fixed edges"), "{message}");
    place.ok("convert in.oc parts.oc --distribution block,block --parts 4 --overlap 1,1");
    let message = place.fails(1, "laplace parts.oc x.oc --sweeps 3 --io collective");
    assert!(message.contains("one file a rank"), "{message}");
    assert_eq!(
        place.names(),
        ["in.oc", "own.npy", "parts.oc", "together.npy"]
    );
}

#[test]
fn sweeps_end_at_the_tolerance() {
    let place = Place::new();
    place.ok("create plate.oc --shape 20x20 --type f64");
    place.ok_args(&["write", "plate.oc", "0, :", "--fill", "1"]);
    let told = place.ok("laplace plate.oc hot.oc --sweeps 1000000 --tolerance 1e-6 --ranks 2");
    let sweeps: u64 = told.split_whitespace().next().unwrap().parse().unwrap();
    assert!((100..10_000).contains(&sweeps), "{told}");
    let message = place.fails(1, "laplace plate.oc x.oc --sweeps 3 --tolerance -1");
    assert!(message.contains("not -1"), "{message}");
}

#[test]
fn bad_requests_are_refused() {
    let place = Place::new();
    place.ok("create real.oc --shape 100x100 --type f32");
    place.ok("create whole.oc --shape 100x100 --type i32");
    place.ok("create complex.oc --shape 100x100 --type c64");
    let fails = |status, line: &str, words: &str| {
        let message = place.fails(status, line);
        assert!(message.contains(words), "{line}: {message}");
    };
    fails(2, "median real.oc x.oc --window 3x4", "even extent, 4");
    fails(2, "median real.oc x.oc --window three", "whole number");
    fails(1, "median real.oc x.oc --window 3", "has 1 axes");
    fails(
        1,
        "median real.oc x.oc --window 3x101",
        "larger than the array, 100x100",
    );
    fails(1, "median complex.oc x.oc --window 3x3", "no order");
    fails(1, "median real.oc real.oc --window 3x3", "take the place");
    fails(1, "median missing.oc x.oc --window 3x3", "missing.oc");
    fails(
        1,
        "median real.oc x.oc --window 3x3 --memory 100",
        "at least",
    );
    fails(1, "laplace whole.oc x.oc --sweeps 3", "f32 and f64");
    fails(
        1,
        "laplace real.oc x.oc --sweeps 3 --memory 1KiB",
        "at least",
    );
    fails(2, "laplace real.oc x.oc --sweeps 0", "--sweeps");
    fails(2, "laplace real.oc x.oc", "--sweeps");
    assert_eq!(place.names(), ["complex.oc", "real.oc", "whole.oc"]);
}

#[test]
fn more_files_than_threads_are_refused() {
    let place = Place::new();
    place.ok("create in.oc --shape 1025 --type f32");
    place.ok("convert in.oc parts.oc --distribution block --parts 1025");
    for command in [
        "median parts.oc x.oc --window 1",
        "laplace parts.oc x.oc --sweeps 1",
    ] {
        let message = place.fails(1, command);
        assert!(
            message.contains("parts.oc has local files for 1025 ranks, but at most 1024"),
            "{message}"
        );
    }
}

#[test]
fn any_number_of_sweeps_is_refused_or_done() {
    let place = Place::new();
    place.ok("create in.oc --shape 9x9 --type f32");
    let most = u64::MAX;
    let message = place.fails(
        1,
        &format!("laplace in.oc x.oc --sweeps {most} --fuse {most}"),
    );
    assert!(message.contains("not possible"), "{message}");
    let told = place.ok(&format!("laplace in.oc x.oc --sweeps 5 --fuse {most}"));
    assert!(told.starts_with("5 sweeps of 9x9 f32 in 1 pass;"), "{told}");
    let told = place.ok(&format!("laplace in.oc y.oc --sweeps {most} --tolerance 0"));
    assert!(told.starts_with("2 sweeps of 9x9 f32 in 1 pass;"), "{told}");
}

/// What passes go to and fro between stays out of a file of others.
#[test]
fn a_result_takes_no_more_of_a_file_than_it_has() {
    let place = Place::new();
    place.ok("create in.npy --shape 200x300 --type f64 --fill random");
    place.ok("mesh edges.npy nodes.npy --nodes 60000");
    place.ok("create all.h5:/first --shape 10 --type f64 --fill 1");
    let len = || place.bytes("all.h5").len();
    for (number, line) in [
        "laplace in.npy % --sweeps 5 --fuse 1",
        "laplace in.npy % --sweeps 6 --fuse 1 --ranks 2",
        "laplace in.npy % --sweeps 90 --fuse 1 --tolerance 0.1",
        "fft in.npy % --real --memory 256KiB",
        "edge-sweep edges.npy nodes.npy % --steps 2",
        "edge-sweep edges.npy nodes.npy % --steps 3 --ranks 2",
    ]
    .into_iter()
    .enumerate()
    {
        let before = len();
        let name = format!("all.h5:/g/r{number}");
        place.ok(&line.replace('%', &name));
        let grown = len() - before;
        assert!(grown < 480_000 + (64 << 10), "{line}: {grown} bytes");
        place.ok(&line.replace('%', "here.npy --force"));
        place.ok(&format!("convert {name} back.npy --force"));
        assert!(place.npy("back.npy") == place.npy("here.npy"), "{line}");
    }
    let names = [
        "all.h5",
        "back.npy",
        "edges.npy",
        "here.npy",
        "in.npy",
        "nodes.npy",
    ];
    assert_eq!(place.names(), names);
}
