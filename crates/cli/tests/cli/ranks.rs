//! However many ranks share the work, the bytes are the same.

use crate::program::Place;

const RANKS: [u32; 5] = [1, 2, 3, 5, 16];

#[test]
fn any_number_of_ranks_gives_the_same_bytes() {
    let place = Place::new();
    let values = (0..70u8).flat_map(|i| f32::from(i).to_le_bytes());
    place.write("v.bin", values.collect::<Vec<u8>>());
    for layout in ["row", "column", "axes:1,0,2", "tiled:4x3x2"] {
        let mut first: Option<Vec<Vec<u8>>> = None;
        for ranks in RANKS {
            place.ok(&format!(
                "create a.oc --shape 13x7x4 --type f32 --layout {layout} --fill random --seed 3 \
                 --ranks {ranks} --force"
            ));
            let mut files = vec![place.bytes("a.oc/data.bin")];
            for output in ["s.npy", "s.bin", "s.txt"] {
                place.ok(&format!(
                    "read a.oc 1::3,:,[0,3] -o {output} --ranks {ranks} --force"
                ));
                files.push(place.bytes(output));
            }
            place.ok(&format!("read a.oc -o s.oc --ranks {ranks} --force"));
            files.push(place.bytes("s.oc/data.bin"));
            place.ok(&format!("write a.oc 2:5,1 --fill index --ranks {ranks}"));
            place.ok(&format!(
                "write a.oc ::3,:,[1,2] --from raw:v.bin?shape=5x7x2&type=f32&layout=column \
                 --ranks {ranks}"
            ));
            files.push(place.bytes("a.oc/data.bin"));
            match &first {
                None => first = Some(files),
                Some(first) => assert_eq!(first, &files, "{layout}, {ranks} ranks"),
            }
        }
        let files = first.expect("the runs");
        assert_ne!(files[0], files[5], "writing changes something");
        assert!(files[0].iter().any(|byte| *byte != 0));
    }
}

#[test]
fn more_than_fits_into_one_piece() {
    // Ranks work in pieces of some MiB: the array is larger than one.
    let place = Place::new();
    place.ok("create a.oc --shape 3000x1000 --type f64 --layout column --fill index --ranks 16");
    place.ok("read a.oc -o b.oc --ranks 16");
    let mut expected = Vec::with_capacity(24_000_000);
    for column in 0..1000u32 {
        for row in 0..3000u32 {
            expected.extend(f64::from(row * 1000 + column).to_ne_bytes());
        }
    }
    assert!(place.bytes("a.oc/data.bin") == expected);
    assert!(place.bytes("b.oc/data.bin") == expected);
    // Into the other order.
    place.ok("create c.npy --shape 3000x1000 --type f64");
    place.ok("write c.npy --from a.oc --ranks 3");
    let expected: Vec<u8> = (0..3_000_000u32)
        .flat_map(|i| f64::from(i).to_ne_bytes())
        .collect();
    assert!(place.npy("c.npy") == expected);
}

#[test]
fn each_rank_has_its_own_section_and_file() {
    let place = Place::new();
    place.ok("create a.oc --shape 10x4 --type u8 --fill index");
    for (section, ranks) in [
        ("2*p:2*p+2, :", 5),
        ("(1+2*p:2+2*p:1, 1:4:1)", 5),
        ("p::N, :", 3),
        ("(p+1:10:nprocs, :)", 3),
        ("p, ::2", 2),
        ("N-1-p, :", 3),
        ("p*p:(p+1)*(p+1), 0", 1),
    ] {
        let count = ranks.to_string();
        for kind in ["npy", "bin", "oc", "txt", "csv"] {
            let output = format!("part-%r-of-%r.{kind}");
            place.ok_args(&["read", "a.oc", section, "-o", &output, "--ranks", &count]);
        }
        let number = |expression: &str, rank: usize| -> String {
            // The same section, spelt out for one rank.
            let mut text = String::new();
            for character in expression.replace("nprocs", "N").chars() {
                match character {
                    'p' => text += &rank.to_string(),
                    'N' => text += &count,
                    other => text.push(other),
                }
            }
            text
        };
        for rank in 0..ranks {
            let spelt = number(section, rank);
            place.ok_args(&["read", "a.oc", &spelt, "-o", "one.npy", "--force"]);
            place.ok_args(&["read", "a.oc", &spelt, "-o", "one.csv", "--force"]);
            let part = |kind: &str| place.bytes(&format!("part-{rank}-of-{rank}.{kind}"));
            assert_eq!(
                part("npy"),
                place.bytes("one.npy"),
                "{section} on rank {rank}"
            );
            assert_eq!(
                part("bin"),
                place.npy("one.npy"),
                "{section} on rank {rank}"
            );
            assert_eq!(
                part("oc/data.bin"),
                place.npy("one.npy"),
                "{section} on rank {rank}"
            );
            assert_eq!(
                part("csv"),
                place.bytes("one.csv"),
                "{section} on rank {rank}"
            );
            let spaced = String::from_utf8(part("csv")).unwrap().replace(',', " ");
            assert_eq!(part("txt"), spaced.into_bytes(), "{section} on rank {rank}");
        }
        let made = place
            .names()
            .iter()
            .filter(|name| name.starts_with("part"))
            .count();
        assert_eq!(made, 5 * ranks, "{section}");
        // Back into another array, each rank from its own file.
        place.ok("create b.oc --shape 10x4 --type u8 --layout tiled:3x3 --force");
        place.ok_args(&[
            "write",
            "b.oc",
            section,
            "--from",
            "part-%r-of-%r.npy",
            "--ranks",
            &count,
        ]);
        place.ok("create c.oc --shape 10x4 --type u8 --force");
        for rank in 0..ranks {
            let file = format!("part-{rank}-of-{rank}.bin");
            place.ok_args(&["write", "c.oc", &number(section, rank), "--from", &file]);
        }
        assert_eq!(place.ok("read b.oc"), place.ok("read c.oc"), "{section}");
        for name in place.names() {
            if name.starts_with("part") && name.ends_with(".oc") {
                std::fs::remove_dir_all(place.path(&name)).unwrap();
            } else if name.starts_with("part") {
                std::fs::remove_file(place.path(&name)).unwrap();
            }
        }
    }
}

#[test]
fn a_fill_may_depend_on_the_rank_too() {
    let place = Place::new();
    place.ok("create a.oc --shape 6x3 --type u8");
    place.ok_args(&[
        "write", "a.oc", "p::N, p", "--fill", "index", "--ranks", "3",
    ]);
    assert_eq!(
        place.ok("read a.oc"),
        "0 0 0\n0 4 0\n0 0 8\n9 0 0\n0 13 0\n0 0 17\n"
    );
}

#[test]
fn one_file_may_serve_every_rank() {
    let place = Place::new();
    place.ok("create a.oc --shape 6 --type u8");
    place.write("pair.bin", [8, 9]);
    place.ok("write a.oc 2*p:2*p+2 --from pair.bin --ranks 3");
    assert_eq!(place.ok("read a.oc"), "8 9 8 9 8 9\n");
}

#[test]
fn the_rank_that_failed_is_named() {
    let place = Place::new();
    place.ok("create a.oc --shape 4 --type u8 --fill index");
    let message = place.fails(1, "read a.oc 2*p -o s%r.npy --ranks 3");
    assert!(
        message.starts_with("outcore: rank 2: a.oc: axis 0"),
        "{message}"
    );
    assert_eq!(place.names(), ["a.oc"]);
    place.write("s1.npy", "mine");
    let message = place.fails(1, "read a.oc p -o s%r.npy --ranks 3");
    assert_eq!(
        message,
        "outcore: rank 1: s1.npy exists already; --force replaces it\n"
    );
    assert_eq!(place.bytes("s1.npy"), b"mine");
    let message = place.fails(1, "write a.oc p --from nothing%r.bin --ranks 3");
    assert!(
        message.contains("rank 0: cannot open nothing0.bin"),
        "{message}"
    );
    // Nobody else is there to be named.
    let message = place.fails(1, "read b.oc");
    assert!(
        message.starts_with("outcore: cannot open b.oc: "),
        "{message}"
    );
}
