//! HDF5 datasets with filters against an oracle in memory: sections that several ranks
//! write at once into the same chunks, and what is refused.

use std::path::Path;

use outcore::{Array, ArrayDescriptor, ElementType, Error, Section};
use proptest::prelude::*;

fn name(directory: &Path, text: &str) -> String {
    directory.join(text).to_str().unwrap().to_owned()
}

/// The row-major numbers of a section's elements.
fn numbers(columns: u64, section: &Section) -> Vec<usize> {
    let [rows, along] = section.axes() else {
        panic!("two axes");
    };
    let places = (0..rows.count()).flat_map(|row| (0..along.count()).map(move |at| (row, at)));
    places
        .map(|(row, at)| (rows.index(row) * columns + along.index(at)) as usize)
        .collect()
}

/// A value: noise that does not compress, or few different ones.
fn value(round: usize, number: usize, noisy: bool) -> i32 {
    match noisy {
        true => (number as i32 + 7 * round as i32 + 1).wrapping_mul(0x9e37_79b1_u32 as i32),
        false => round as i32,
    }
}

#[derive(Debug, Clone)]
struct Case {
    shape: [u64; 2],
    chunk: [u64; 2],
    codecs: &'static str,
    ranks: u64,
    /// Where the columns of a write begin, their step, and whether it is noise.
    writes: Vec<(u64, u64, bool)>,
}

fn cases() -> impl Strategy<Value = Case> {
    let codecs = prop::sample::select(vec![
        "deflate:4",
        "deflate:1,shuffle,fletcher32",
        "fletcher32",
        "zstd:1",
    ]);
    let writes = prop::collection::vec((0u64..20, 1u64..4, any::<bool>()), 1..5);
    (
        [1u64..24, 1u64..24],
        [1u64..9, 1u64..9],
        codecs,
        1u64..4,
        writes,
    )
        .prop_map(|(shape, chunk, codecs, ranks, writes)| Case {
            shape,
            chunk,
            codecs,
            ranks,
            writes,
        })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, ..ProptestConfig::default() })]

    /// Ranks that share nothing but the file write rows in turn, so all of them change
    /// every chunk.
    #[test]
    fn ranks_write_into_the_same_chunks(case in cases()) {
        let place = tempfile::tempdir().unwrap();
        let name = name(place.path(), "shared.h5:/group/data");
        let [rows, columns] = case.shape;
        let layout = format!("tiled:{}x{}", case.chunk[0], case.chunk[1]);
        let descriptor = ArrayDescriptor::new(&case.shape, ElementType::I32)
            .layout(layout.parse().unwrap())
            .codecs(case.codecs.parse().unwrap());
        Array::create(&name, &descriptor).unwrap();
        let mut oracle = vec![0; (rows * columns) as usize];
        for (round, (first, step, noisy)) in case.writes.iter().copied().enumerate() {
            let first = first.min(columns - 1);
            let written = outcore::run(case.ranks as usize, |comm| {
                let array = Array::open_writable(&name)?;
                let rank = comm.rank() as u64;
                if rank >= rows {
                    return Ok::<_, Error>(Vec::new());
                }
                let text = format!("{rank}:{rows}:{}, {first}:{columns}:{step}", case.ranks);
                let section = array.section(&text)?;
                let numbers = numbers(columns, &section);
                let values: Vec<i32> =
                    numbers.iter().map(|number| value(round, *number, noisy)).collect();
                array.write(&section, &values)?;
                Ok(numbers)
            });
            for number in written.unwrap().into_iter().flatten() {
                oracle[number] = value(round, number, noisy);
            }
            let array = Array::open(&name).unwrap();
            prop_assert_eq!(array.read::<i32>(&array.whole()).unwrap(), oracle.clone());
            let writable = Array::open_writable(&name).unwrap();
            prop_assert_eq!(writable.read::<i32>(&array.whole()).unwrap(), oracle.clone());
        }
    }
}

/// Readers see every chunk before or after a change of it, never in between.
#[test]
fn readers_and_writers_share_chunks() {
    let place = tempfile::tempdir().unwrap();
    let name = name(place.path(), "shared.h5");
    let descriptor = ArrayDescriptor::new(&[64, 64], ElementType::I32)
        .layout("tiled:32x32".parse().unwrap())
        .codecs("shuffle,deflate:1,fletcher32".parse().unwrap());
    Array::create(&name, &descriptor).unwrap();
    outcore::run(3, |comm| {
        let array = Array::open_writable(&name)?;
        let rows = array.section(&format!("{}::3, :", comm.rank()))?;
        for round in 0..40 {
            if comm.rank() == 2 {
                let found: Vec<i32> = array.read(&array.whole())?;
                assert!(found.iter().all(|value| (0..40).contains(&(value & 0xff))));
                continue;
            }
            let noise = (0..rows.count()).map(|at| (at as i32 * 77 * round) << 8 | round);
            array.write(&rows, &noise.collect::<Vec<i32>>())?;
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn what_a_file_cannot_hold_is_refused() {
    let place = tempfile::tempdir().unwrap();
    let new = |codecs: &str, shape: &[u64], layout: &str| {
        let descriptor = ArrayDescriptor::new(shape, ElementType::F32)
            .layout(layout.parse().unwrap())
            .codecs(codecs.parse().unwrap());
        let name = name(place.path(), "new.h5");
        Array::create(&name, &descriptor).unwrap_err().to_string()
    };
    let problem = new("blosc:lz4:5:shuffle", &[8, 8], "tiled:4x4");
    assert!(problem.contains("no filter 'blosc"), "{problem}");
    let problem = new("deflate:4", &[1 << 20, 1 << 20], "tiled:16x16");
    assert!(problem.contains("larger ones"), "{problem}");
    let problem = new("deflate:4", &[1 << 20, 1 << 20], "tiled:65536x65536");
    assert!(problem.contains("4 GiB"), "{problem}");
    let problem = new("deflate:4", &[8, 8], "tiled:4x4:column");
    assert!(problem.contains("row order"), "{problem}");
    let empty = place.path().read_dir().unwrap().next().is_none();
    assert!(empty, "nothing is left behind");
}

/// Without a shape of chunks there is a usual one; arrays without elements have none.
#[test]
fn chunks_need_not_be_named() {
    let place = tempfile::tempdir().unwrap();
    let name = name(place.path(), "new.h5:/deep/down/data");
    let descriptor = ArrayDescriptor::new(&[1000, 1000], ElementType::F64)
        .codecs("shuffle,deflate:1".parse().unwrap());
    let array = Array::create(&name, &descriptor).unwrap();
    let tile = array.descriptor().arrangement.tile.clone().unwrap();
    assert!(tile.iter().product::<u64>() * 8 <= 1 << 20, "{tile:?}");
    let section = array.section("::7, 3:900:11").unwrap();
    let values: Vec<f64> = (0..section.count()).map(|at| at as f64).collect();
    array.write(&section, &values).unwrap();
    assert_eq!(array.read::<f64>(&section).unwrap(), values);
    drop(array);
    let name = self::name(place.path(), "empty.h5");
    let descriptor = ArrayDescriptor::new(&[0, 5], ElementType::F64)
        .layout("tiled:4x4".parse().unwrap())
        .codecs("deflate:1".parse().unwrap());
    let array = Array::create(&name, &descriptor).unwrap();
    assert!(array.read::<f64>(&array.whole()).unwrap().is_empty());
}
