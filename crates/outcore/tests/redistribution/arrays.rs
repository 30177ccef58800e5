//! Distributed arrays: owners, gather, scatter, files.

use outcore::{Array, ArrayDescriptor, DistributedArray, Distribution, ElementType, Error};

const TEXTS: [&str; 7] = [
    "block,*",
    "*,block",
    "cyclic,cyclic",
    "cyclic(3),block",
    "*,cyclic(2)",
    "block(9),cyclic(4)",
    "*,*",
];

fn value(index: &[u64]) -> f32 {
    (index[0] * 100 + index[1]) as f32
}

#[test]
fn parts_gather_and_scatter() {
    for (ranks, text) in [1, 2, 3, 5, 16]
        .iter()
        .flat_map(|n| TEXTS.map(|text| (*n, text)))
    {
        let Ok(distribution) = Distribution::parse(text, &[13, 17], ranks as u64, None) else {
            continue;
        };
        outcore::run(ranks, |comm| {
            let mut array = DistributedArray::<f32>::new(comm, distribution.clone())?;
            array.fill_with(value);
            for root in [0, ranks - 1] {
                let all = array.gather(comm, root)?;
                assert_eq!(all.is_some(), comm.rank() == root);
                let all = all.unwrap_or_default();
                for (place, found) in all.iter().enumerate() {
                    assert_eq!(*found, value(&[place as u64 / 17, place as u64 % 17]));
                }
                let mut other = DistributedArray::<f32>::new(comm, distribution.clone())?;
                other.scatter(comm, root, &all)?;
                assert_eq!(other.local(), array.local());
            }
            // Exactly one rank owns each element, and has it.
            for index in (0..13).flat_map(|i| (0..17).map(move |j| [i, j])) {
                let own = array.owner(&index) == Some(comm.rank());
                assert_eq!(array.get(&index).copied(), own.then(|| value(&index)));
            }
            assert_eq!(array.owner(&[13, 0]), None);
            array.map(|value| -value);
            assert!(array.iter().all(|(index, found)| *found == -value(&index)));
            Ok::<(), Error>(())
        })
        .unwrap();
    }
}

#[test]
fn files_are_loaded_and_stored() {
    let directory = tempfile::tempdir().unwrap();
    for (ranks, layout) in [
        (1, "row"),
        (3, "column"),
        (4, "row"),
        (4, "tiled:4x5"),
        (5, "column"),
    ] {
        for (number, text) in TEXTS.iter().enumerate() {
            let Ok(distribution) = Distribution::parse(text, &[13, 17], ranks as u64, None) else {
                continue;
            };
            let name = directory
                .path()
                .join(format!("{ranks}-{}-{number}.oc", layout.replace(':', "")));
            let name = name.to_str().unwrap();
            outcore::run(ranks, |comm| {
                let descriptor = ArrayDescriptor::new(&[13, 17], ElementType::F32)
                    .layout(layout.parse().expect("a layout"));
                let file = Array::create_all(comm, name, &descriptor)?;
                let mut array = DistributedArray::<f32>::new(comm, distribution.clone())?;
                array.fill_with(value);
                array.store(comm, &file)?;
                comm.barrier()?;
                for index in (0..13).flat_map(|i| (0..17).map(move |j| [i, j])) {
                    let section = file.section(&format!("{}, {}", index[0], index[1]))?;
                    assert_eq!(file.read::<f32>(&section)?, [value(&index)], "{text}");
                }
                array.fill(0.0);
                array.load(comm, &file)?;
                assert!(
                    array.iter().all(|(index, found)| *found == value(&index)),
                    "{text}"
                );
                Ok::<(), Error>(())
            })
            .unwrap();
        }
    }
}

#[test]
fn arrays_without_axes_move() {
    outcore::run(3, |comm| {
        let place = Distribution::new(&[], &[], &[]).unwrap();
        let mut one = DistributedArray::<u16>::new(comm, place)?;
        one.fill(9);
        let moved = one.redistribute(comm, one.distribution())?;
        assert_eq!(
            moved.local(),
            if comm.rank() == 0 { &[9_u16][..] } else { &[] }
        );
        assert_eq!(one.gather(comm, 2)?, (comm.rank() == 2).then(|| vec![9]));
        Ok::<(), Error>(())
    })
    .unwrap();
}
