//! Zarr arrays against an oracle in memory: sections of any kind, both versions,
//! orders, codecs, shards, ranks; and damaged files.

use std::path::Path;

use outcore::{Array, ArrayDescriptor, ByteOrder, ElementType, Error, Order, Section};
use proptest::prelude::*;

fn name(directory: &Path, text: &str) -> String {
    directory.join(text).to_str().unwrap().to_owned()
}

/// The numbers of a section's elements in row-major order of the array.
fn numbers(shape: &[u64], section: &Section) -> Vec<i32> {
    let mut all = vec![0u64];
    for (axis, extent) in section.axes().iter().zip(shape) {
        let indices: Vec<u64> = (0..axis.count()).map(|at| axis.index(at)).collect();
        all = all
            .iter()
            .flat_map(|before| indices.iter().map(move |at| before * extent + at))
            .collect();
    }
    all.into_iter().map(|number| number as i32).collect()
}

/// A dense buffer of `shape` from row-major order into the order of the array.
fn ordered(shape: &[u64], values: &[i32], column: bool) -> Vec<i32> {
    if !column || shape.len() < 2 {
        return values.to_vec();
    }
    let (rows, columns) = (shape[0] as usize, shape[1] as usize);
    (0..columns)
        .flat_map(|column| (0..rows).map(move |row| values[row * columns + column]))
        .collect()
}

#[derive(Debug, Clone)]
struct Case {
    shape: [u64; 2],
    chunk: [u64; 2],
    shards: Option<[u64; 2]>,
    version: u8,
    column: bool,
    big: bool,
    codecs: &'static str,
    parts: Vec<(u64, u64, u64)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let shape = [1u64..20, 1u64..20];
    let chunk = [1u64..8, 1u64..8];
    let codecs = prop::sample::select(vec![
        "none",
        "zstd:1",
        "gzip:1",
        "shuffle,deflate:1",
        "blosc:lz4:5:shuffle",
        "zstd:1,crc32c",
        "lz4",
    ]);
    let parts = prop::collection::vec((0u64..20, 0u64..20, 1u64..4), 2);
    (
        shape,
        chunk,
        prop::option::of([1u64..4, 1u64..4]),
        2u8..4,
        any::<bool>(),
        any::<bool>(),
        codecs,
        parts,
    )
        .prop_map(
            |(shape, chunk, shards, version, column, big, codecs, parts)| Case {
                shape,
                chunk,
                shards: shards.filter(|_| version == 3 && !column),
                version,
                column,
                big,
                codecs,
                parts,
            },
        )
}

impl Case {
    fn descriptor(&self) -> ArrayDescriptor {
        let layout = format!(
            "tiled:{}x{}{}",
            self.chunk[0],
            self.chunk[1],
            if self.column { ":column" } else { "" }
        );
        let mut descriptor = ArrayDescriptor::new(&self.shape, ElementType::I32)
            .layout(layout.parse().unwrap())
            .codecs(self.codecs.parse().unwrap());
        if self.big {
            descriptor.byte_order = ByteOrder::Big;
        }
        if let Some([a, b]) = self.shards {
            descriptor = descriptor.sharded(&[a * self.chunk[0], b * self.chunk[1]]);
        }
        descriptor
    }

    fn section(&self, array: &Array) -> Section {
        let axes = self
            .parts
            .iter()
            .zip(&self.shape)
            .map(|((from, to, step), extent)| {
                let (from, to) = (from.min(extent), to.min(extent));
                format!("{}:{}:{step}", from.min(to), to)
            });
        array.section(&axes.collect::<Vec<_>>().join(", ")).unwrap()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 120, ..ProptestConfig::default() })]

    #[test]
    fn sections_are_those_of_an_array_in_memory(case in cases()) {
        let directory = tempfile::tempdir().unwrap();
        let path = name(directory.path(), "a.zarr");
        let made = if case.version == 2 { format!("zarr2:{path}") } else { path.clone() };
        let array = Array::create(&made, &case.descriptor()).unwrap();
        // What nobody has written is zero.
        let zeros = array.read::<i32>(&array.whole()).unwrap();
        prop_assert!(zeros.iter().all(|value| *value == 0));
        // All of it, then a section anew.
        let whole = numbers(&case.shape, &array.whole());
        array.write(&array.whole(), &ordered(&case.shape, &whole, case.column)).unwrap();
        let section = case.section(&array);
        let values: Vec<i32> = numbers(&case.shape, &section).iter().map(|n| -n - 1).collect();
        array.write(&section, &ordered(&section.shape(), &values, case.column)).unwrap();
        array.sync().unwrap();
        let mut expected = whole;
        for (number, value) in numbers(&case.shape, &section).iter().zip(&values) {
            expected[*number as usize] = *value;
        }
        // Opened anew, whole and in part, alone and by the store of bytes.
        for strategy in ["auto", "sieving"] {
            let tuning = outcore::Tuning {
                strategy: strategy.parse().unwrap(),
                ..Default::default()
            };
            let array = Array::open(&path).unwrap().tuned(tuning);
            prop_assert_eq!(array.format(), "zarr");
            let found = array.read::<i32>(&array.whole()).unwrap();
            prop_assert_eq!(found, ordered(&case.shape, &expected, case.column));
            let section = case.section(&array);
            let wanted: Vec<i32> = numbers(&case.shape, &section)
                .iter()
                .map(|number| expected[*number as usize])
                .collect();
            // The second time from what is kept.
            for _ in 0..2 {
                let found = array.read::<i32>(&section).unwrap();
                prop_assert_eq!(found, ordered(&section.shape(), &wanted, case.column));
            }
        }
    }
}

#[test]
fn ranks_write_parts_of_the_same_chunks() {
    let directory = tempfile::tempdir().unwrap();
    let path = name(directory.path(), "rows.zarr");
    for ranks in [1, 2, 3, 5] {
        outcore::run(ranks, |comm| {
            let descriptor = ArrayDescriptor::new(&[30, 17], ElementType::I32)
                .layout("tiled:8x8".parse().unwrap())
                .codecs("zstd:1".parse()?);
            let draft = Array::draft_all(comm, &path, &descriptor, true)?;
            let pattern: outcore::Pattern = "p::N, :".parse().unwrap();
            let (rank, size) = (comm.rank() as u64, comm.size() as u64);
            let mine = pattern.section(draft.shape(), rank, size).unwrap();
            draft.write(&mine, &numbers(draft.shape(), &mine))?;
            comm.barrier()?;
            let array = draft.commit(comm)?;
            let found = array.read::<i32>(&array.whole())?;
            assert_eq!(found, numbers(array.shape(), &array.whole()));
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn a_relayout_goes_through_chunks_and_back() {
    let directory = tempfile::tempdir().unwrap();
    let (first, second) = (
        name(directory.path(), "in.oc"),
        name(directory.path(), "group.zarr/deep/out"),
    );
    let descriptor = ArrayDescriptor::new(&[70, 50], ElementType::I32);
    let array = Array::create(&first, &descriptor).unwrap();
    let all = numbers(array.shape(), &array.whole());
    array.write(&array.whole(), &all).unwrap();
    let chunked = ArrayDescriptor::new(&[50, 70], ElementType::I32)
        .layout("tiled:16x16".parse().unwrap())
        .codecs("shuffle,zstd:1".parse().unwrap())
        .attribute("units", "K");
    outcore::run(2, |comm| {
        let output = outcore::RelayoutOutput {
            name: &second,
            descriptor: &chunked,
            replace: false,
            resume: false,
        };
        let budget = outcore::MemoryBudget::of(64 << 20);
        let job = outcore::RelayoutJob::begin(comm, &array, &[1, 0], &output, &budget)?;
        job.run(comm, &|_| ())
    })
    .unwrap();
    let turned = Array::open(&second).unwrap();
    assert_eq!(turned.descriptor().attributes["units"], "K");
    assert_eq!(turned.descriptor().codecs.to_string(), "shuffle,zstd:1");
    let found = turned.read::<i32>(&turned.whole()).unwrap();
    let expected: Vec<i32> = (0..50)
        .flat_map(|column| (0..70).map(move |row| row * 50 + column))
        .collect();
    assert_eq!(found, expected);
    // The groups above can be listed, and are no arrays.
    let items = outcore::list(&name(directory.path(), "group.zarr")).unwrap();
    let paths: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
    assert_eq!(paths, ["", "deep", "deep/out"]);
    let problem = Array::open(&name(directory.path(), "group.zarr")).unwrap_err();
    assert!(problem.to_string().contains("deep/out"), "{problem}");
}

#[test]
fn damage_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = name(directory.path(), "a.zarr");
    let descriptor = ArrayDescriptor::new(&[16, 16], ElementType::I32)
        .layout("tiled:8x8".parse().unwrap())
        .codecs("zstd:1,crc32c".parse().unwrap());
    let array = Array::create(&path, &descriptor).unwrap();
    let all = numbers(array.shape(), &array.whole());
    array.write(&array.whole(), &all).unwrap();
    let chunk = directory.path().join("a.zarr/c/1/0");
    let bytes = std::fs::read(&chunk).unwrap();
    let mut changed = bytes.clone();
    changed[9] ^= 4;
    for (bytes, part) in [
        (changed.as_slice(), "CRC32C"),
        (&bytes[..7], "CRC32C"),
        (&[], "too short"),
    ] {
        std::fs::write(&chunk, bytes).unwrap();
        let array = Array::open(&path).unwrap();
        let problem = array.read::<i32>(&array.whole()).unwrap_err().to_string();
        assert!(
            problem.contains("c/1/0") && problem.contains(part),
            "{problem}"
        );
        // Other chunks can be read.
        array.read::<i32>(&array.section(":8, :").unwrap()).unwrap();
    }
    // One that is far too long is not brought into memory.
    let length = 3u64 << 30;
    let file = std::fs::File::create(&chunk).unwrap();
    file.set_len(length).unwrap();
    let array = Array::open(&path).unwrap();
    let problem = array.read::<i32>(&array.whole()).unwrap_err().to_string();
    let (found, most) = (format!("{length} bytes"), format!("{}", 2 * 256 + 65536));
    assert!(
        problem.contains("c/1/0") && problem.contains(&found) && problem.contains(&most),
        "{problem}"
    );
    // A chunk that is not there holds what nobody has written.
    std::fs::remove_file(&chunk).unwrap();
    let array = Array::open(&path).unwrap();
    assert_eq!(
        array.read::<i32>(&array.section("8, 0").unwrap()).unwrap(),
        [0]
    );
    for (document, part) in [
        ("{", "not JSON"),
        ("{}", "'zarr_format' is missing"),
        (r#"{"zarr_format": 4}"#, "is not 3"),
        (
            r#"{"zarr_format": 3, "node_type": "array", "shape": [-1]}"#,
            "-1",
        ),
        (
            r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "string"}"#,
            "string",
        ),
    ] {
        std::fs::write(directory.path().join("a.zarr/zarr.json"), document).unwrap();
        let problem = Array::open(&path).unwrap_err().to_string();
        assert!(problem.contains(part), "{document} -> {problem}");
    }
    let unknown = r#"{"zarr_format": 3, "node_type": "array", "shape": [4], "data_type": "int8",
        "chunk_grid": {"name": "regular", "configuration": {"chunk_shape": [2]}},
        "chunk_key_encoding": {"name": "default"}, "fill_value": 0,
        "codecs": [{"name": "bytes"}, {"name": "numcodecs.pcodec"}]}"#;
    std::fs::write(directory.path().join("a.zarr/zarr.json"), unknown).unwrap();
    let problem = Array::open(&path).unwrap_err().to_string();
    assert!(problem.contains("'pcodec' is not supported"), "{problem}");
}

/// Who has a shard open reads that one, not parts of another.
#[test]
fn a_shard_is_replaced_while_it_is_open() {
    for codecs in ["none", "zstd:1"] {
        let directory = tempfile::tempdir().unwrap();
        let path = name(directory.path(), "a.zarr");
        let mut descriptor = ArrayDescriptor::new(&[8, 8], ElementType::I32)
            .layout("tiled:4x4".parse().unwrap())
            .codecs(codecs.parse().unwrap());
        descriptor.shard = Some(vec![8, 8]);
        let writer = Array::create(&path, &descriptor).unwrap();
        writer.write(&writer.whole(), &[1i32; 64]).unwrap();
        let reader = Array::open(&path).unwrap();
        let part = |array: &Array, text: &str| -> Vec<i32> {
            array.read(&array.section(text).unwrap()).unwrap()
        };
        assert_eq!(part(&reader, "0, 0"), [1]);
        // Its chunks have other lengths now.
        let new: Vec<i32> = (0..64i32)
            .map(|at| at.wrapping_mul(-1_640_531_527))
            .collect();
        writer.write(&writer.whole(), &new).unwrap();
        assert_eq!(part(&reader, "4:, 4:"), [1; 16], "{codecs}");
        assert_eq!(part(&writer, ":, :"), new, "{codecs}");
        assert_eq!(part(&Array::open(&path).unwrap(), ":, :"), new, "{codecs}");
    }
}

#[test]
fn scalars_and_empty_arrays() {
    let directory = tempfile::tempdir().unwrap();
    for (text, shape) in [
        ("s.zarr", vec![]),
        ("zarr2:t.zarr", vec![]),
        ("e.zarr", vec![0, 3]),
    ] {
        let (prefix, file) = text.split_once(':').unwrap_or(("", text));
        let path = name(directory.path(), file);
        let made = if prefix.is_empty() {
            path.clone()
        } else {
            format!("{prefix}:{path}")
        };
        let array = Array::create(&made, &ArrayDescriptor::new(&shape, ElementType::F64)).unwrap();
        let count = array.whole().count() as usize;
        array.write(&array.whole(), &vec![1.5; count]).unwrap();
        let array = Array::open(&path).unwrap();
        assert_eq!(array.read::<f64>(&array.whole()).unwrap(), vec![1.5; count]);
        assert_eq!(array.descriptor().arrangement.order, Order::Row);
    }
}

/// The description of an array of version 3 with 16 bytes, in which `change` is made.
fn description(change: impl Fn(&mut serde_json::Value)) -> String {
    let mut document = serde_json::json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": [16],
        "data_type": "int8",
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": [8] } },
        "chunk_key_encoding": { "name": "default" },
        "fill_value": 0,
        "codecs": [{ "name": "bytes" }],
        "attributes": {},
    });
    change(&mut document);
    document.to_string()
}

fn put(directory: &Path, file: &str, text: &str) -> String {
    let path = directory.join(file);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    path.parent().unwrap().to_str().unwrap().to_owned()
}

fn sharded(chunk: &[u64], settings: serde_json::Value) -> serde_json::Value {
    let mut shard = serde_json::json!({ "chunk_shape": chunk, "codecs": [{ "name": "bytes" }] });
    for (name, value) in settings.as_object().unwrap() {
        shard[name] = value.clone();
    }
    serde_json::json!([{ "name": "sharding_indexed", "configuration": shard }])
}

#[test]
fn what_others_could_not_read_is_refused() {
    use serde_json::json;
    let directory = tempfile::tempdir().unwrap();
    let big = json!({ "name": "bytes", "configuration": { "endian": "big" } });
    let grid =
        |extents: &[u64]| json!({ "name": "regular", "configuration": { "chunk_shape": extents } });
    for (text, part) in [
        (
            description(|it| it["codecs"] = sharded(&[4], json!({ "index_codecs": [big] }))),
            "endian 'big'",
        ),
        (
            description(|it| it["codecs"] = sharded(&[4], json!({ "index_codecs": [{}] }))),
            "an index encoded by ?",
        ),
        (
            description(|it| {
                it["shape"] = json!([4, 4]);
                it["chunk_grid"] = grid(&[1 << 32, 1 << 32]);
                it["codecs"] = sharded(&[1, 1], json!({}));
            }),
            "more than 67108864 chunks",
        ),
        (
            description(|it| {
                it["chunk_grid"] = grid(&[1 << 40]);
                it["codecs"] = sharded(&[1], json!({}));
            }),
            "more than 67108864 chunks",
        ),
        (
            description(|it| it["extension"] = json!({ "must_understand": true })),
            "'extension' is not supported",
        ),
    ] {
        let path = put(directory.path(), "a.zarr/zarr.json", &text);
        let problem = Array::open(&path).unwrap_err().to_string();
        assert!(problem.contains(part), "{text} -> {problem}");
    }
    let text = description(|it| it["extension"] = json!({ "must_understand": false }));
    Array::open(&put(directory.path(), "a.zarr/zarr.json", &text)).unwrap();
    let path = put(
        directory.path(),
        "b.zarr/.zarray",
        r#"{"zarr_format": 2, "shape": [4], "chunks": [4], "dtype": "|i1", "order": "C",
            "compressor": null, "fill_value": 0,
            "filters": [{"id": "crc32c", "location": "start"}]}"#,
    );
    let problem = Array::open(&path).unwrap_err().to_string();
    assert!(problem.contains("location 'start'"), "{problem}");
}

#[test]
fn descriptions_as_others_write_them() {
    use serde_json::json;
    let directory = tempfile::tempdir().unwrap();
    // Words that JSON does not have.
    let text = description(|it| it["attributes"] = json!({ "missing": "word", "units": "NaN" }));
    let text = text.replace("\"word\"", "NaN");
    let array = Array::open(&put(directory.path(), "a.zarr/zarr.json", &text)).unwrap();
    assert_eq!(array.descriptor().attributes["missing"], "NaN");
    assert_eq!(array.descriptor().attributes["units"], "NaN");
    // An axis without elements, whose chunks have none either.
    let text = description(|it| {
        it["shape"] = json!([0, 5]);
        it["chunk_grid"]["configuration"]["chunk_shape"] = json!([0, 5]);
    });
    let array = Array::open(&put(directory.path(), "b.zarr/zarr.json", &text)).unwrap();
    assert!(array.read::<i8>(&array.whole()).unwrap().is_empty());
    // An axis without a name, which has none in a copy either; a fill value as its bytes.
    let text = description(|it| {
        it["shape"] = json!([2, 3]);
        it["data_type"] = json!("float32");
        it["chunk_grid"]["configuration"]["chunk_shape"] = json!([2, 3]);
        it["codecs"] = json!([{ "name": "bytes", "configuration": { "endian": "little" } }]);
        it["dimension_names"] = json!(["x", null]);
        it["fill_value"] = json!("0x7fc00001");
    });
    let array = Array::open(&put(directory.path(), "c.zarr/zarr.json", &text)).unwrap();
    let names = array.descriptor().axis_names.clone().unwrap();
    assert_eq!(names, ["x", ""]);
    let read = |file: &str| -> serde_json::Value {
        serde_json::from_slice(&std::fs::read(directory.path().join(file)).unwrap()).unwrap()
    };
    let (two, three) = (
        name(directory.path(), "two.zarr"),
        name(directory.path(), "three.zarr"),
    );
    Array::create(&three, array.descriptor()).unwrap();
    assert_eq!(
        read("three.zarr/zarr.json")["dimension_names"],
        json!(["x", null])
    );
    Array::create(&format!("zarr2:{two}"), array.descriptor()).unwrap();
    assert_eq!(read("two.zarr/.zarray")["fill_value"], "NaN");
}

#[test]
fn a_whole_chunk_waits_for_who_changes_a_part() {
    use outcore::storage::{Access, FileStore, Store};
    let directory = tempfile::tempdir().unwrap();
    let path = name(directory.path(), "a.zarr");
    let descriptor =
        ArrayDescriptor::new(&[8], ElementType::I32).layout("tiled:8".parse().unwrap());
    let array = Array::create(&path, &descriptor).unwrap();
    let file = directory.path().join("a.zarr/zarr.json");
    let description = FileStore::open(&file, Access::ReadWrite).unwrap();
    let chunk = directory.path().join("a.zarr/c/0");
    std::thread::scope(|scope| {
        let held = description.lock(0, 1).unwrap();
        let writer = scope.spawn(|| array.write(&array.whole(), &[7; 8]));
        std::thread::sleep(std::time::Duration::from_millis(300));
        let written = chunk.exists();
        drop(held);
        writer.join().unwrap().unwrap();
        assert!(!written, "the chunk was replaced while its lock was held");
    });
    assert!(chunk.exists());
}

#[test]
fn one_member_of_a_group_hides_no_other() {
    let directory = tempfile::tempdir().unwrap();
    let group = name(directory.path(), "g.zarr");
    let descriptor = ArrayDescriptor::new(&[4], ElementType::I32);
    for member in ["a", "z/deep"] {
        Array::create(&format!("{group}/{member}"), &descriptor).unwrap();
    }
    let text = description(|it| it["data_type"] = "string".into());
    put(directory.path(), "g.zarr/names/zarr.json", &text);
    put(
        directory.path(),
        "g.zarr/.left/zarr.json",
        &description(|_| ()),
    );
    let items = outcore::list(&group).unwrap();
    let paths: Vec<&str> = items.iter().map(|item| item.path.as_str()).collect();
    assert_eq!(paths, ["", "a", "names", "z", "z/deep"]);
    for item in &items {
        let problem = item.problem.as_deref().unwrap_or_default();
        assert_eq!(item.path == "names", problem.contains("string"), "{item:?}");
    }
    // By itself it fails.
    outcore::list(&format!("{group}/names")).unwrap_err();
    let problem = Array::open(&group).unwrap_err().to_string();
    assert!(
        problem.contains("g.zarr/a, ") && problem.contains("z/deep"),
        "{problem}"
    );
}

#[test]
fn groups_hold_arrays_of_their_version() {
    let directory = tempfile::tempdir().unwrap();
    let at = |text: &str| name(directory.path(), text);
    let descriptor = ArrayDescriptor::new(&[4], ElementType::I32);
    Array::create(&format!("zarr2:{}", at("two.zarr/a")), &descriptor).unwrap();
    Array::create(&at("three.zarr/a"), &descriptor).unwrap();
    for (new, part) in [
        (
            at("two.zarr/b"),
            "begin the name of the new array with 'zarr2:'",
        ),
        (
            format!("zarr2:{}", at("three.zarr/deep/b")),
            "leave out 'zarr2:'",
        ),
        (at("three.zarr/a/deep/b"), "is an array"),
        (format!("zarr2:{}", at("two.zarr/a/b")), "is an array"),
    ] {
        let problem = Array::create(&new, &descriptor).unwrap_err().to_string();
        assert!(problem.contains(part), "{new} -> {problem}");
    }
    // Nothing was made on the way.
    for text in ["three.zarr/deep", "three.zarr/a/deep", "two.zarr/b"] {
        assert!(!directory.path().join(text).exists(), "{text}");
    }
}

#[test]
fn a_chunk_that_is_too_long_is_damaged() {
    let directory = tempfile::tempdir().unwrap();
    let text = description(|_| ());
    let path = put(directory.path(), "a.zarr/zarr.json", &text);
    put(directory.path(), "a.zarr/c/0", "12345678");
    put(directory.path(), "a.zarr/c/1", "123456789");
    let array = Array::open(&path).unwrap();
    array.read::<i8>(&array.section(":8").unwrap()).unwrap();
    let problem = array.read::<i8>(&array.whole()).unwrap_err().to_string();
    assert!(
        problem.contains("c/1") && problem.contains("9 bytes instead of 8"),
        "{problem}"
    );
    let found = outcore::run(1, |comm| {
        let budget = outcore::MemoryBudget::machine();
        outcore::verify(comm, &array, &budget, &|_| ())
    });
    assert_eq!(found.unwrap()[0].faults[0].pieces, 1..2);
}

#[test]
fn decoded_chunks_are_in_the_budget() {
    let directory = tempfile::tempdir().unwrap();
    let descriptor = ArrayDescriptor::new(&[600, 512], ElementType::F32)
        .layout("tiled:512x512".parse().unwrap())
        .codecs("zstd:1".parse().unwrap());
    let source = Array::create(&name(directory.path(), "a.zarr"), &descriptor).unwrap();
    let values: Vec<f32> = (0..600 * 512).map(|number| number as f32).collect();
    source.write(&source.whole(), &values).unwrap();
    let target = ArrayDescriptor::new(&[512, 600], ElementType::F32);
    let target = Array::create(&name(directory.path(), "b.oc"), &target).unwrap();
    let turn = |bytes: u64| {
        outcore::run(1, |comm| {
            let budget = outcore::MemoryBudget::of(bytes);
            outcore::Relayout::plan(comm, &source, &target, &[1, 0], &budget)?.run(comm, &|_| ())
        })
    };
    // A chunk has 1 MiB; it is there as it is stored, and decoded.
    let least = (2 << 20) + (64 << 10);
    let problem = turn(1 << 20).unwrap_err().to_string();
    assert!(problem.contains("needs at least 2.07 MiB"), "{problem}");
    let expected: Vec<f32> = (0..512 * 600)
        .map(|at| (at % 600 * 512 + at / 600) as f32)
        .collect();
    for bytes in [least, 4 << 20, 8 << 20, 64 << 20] {
        turn(bytes).unwrap();
        assert!(
            target.read::<f32>(&target.whole()).unwrap() == expected,
            "{bytes}"
        );
        target
            .write(&target.whole(), &vec![0f32; 512 * 600])
            .unwrap();
    }
}
