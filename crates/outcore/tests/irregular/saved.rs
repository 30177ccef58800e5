//! Schedules that are saved, loaded, and damaged between.

use std::path::Path;

use outcore::{Array, ArrayDescriptor, ElementType, Error, Inspector, Schedule};

const ELEMENTS: u64 = 500;

fn array(comm: &outcore::Comm, directory: &Path) -> Result<Array, Error> {
    let name = directory.join("array.oc");
    let name = name.to_str().unwrap();
    match name.len() {
        _ if directory.join("array.oc").exists() => Ok(comm.agree(Array::open_writable(name))?),
        _ => Array::create_all(
            comm,
            name,
            &ArrayDescriptor::new(&[ELEMENTS], ElementType::U64),
        ),
    }
}

fn indices(rank: usize, runs: bool) -> Vec<u64> {
    let at = |number: u64| match runs {
        true => (number + 100 * rank as u64) % ELEMENTS,
        false => (number * number * 7 + rank as u64) % ELEMENTS,
    };
    (0..120).map(at).collect()
}

#[test]
fn a_schedule_comes_back() {
    for (runs, cyclic) in [(false, false), (true, false), (false, true)] {
        let directory = tempfile::tempdir().unwrap();
        let file = directory.path().join("pattern.schedule");
        outcore::run(3, |comm| {
            let array = Array::create_all(
                comm,
                directory.path().join("array.oc").to_str().unwrap(),
                &ArrayDescriptor::new(&[ELEMENTS], ElementType::U64),
            )?;
            let mut inspector = Inspector::default().window(16);
            if cyclic {
                inspector = inspector.cyclic();
            }
            let own = indices(comm.rank(), runs);
            let schedule = inspector.schedule(comm, &array, &own)?;
            assert_eq!(schedule.has_runs(), runs);
            schedule.save(comm, &file)?;
            schedule.write(comm, &array, &own)?;
            let loaded = Schedule::load(comm, &file, &array)?;
            assert_eq!(loaded.domain(), schedule.domain());
            let mut values = vec![0; own.len()];
            loaded.read(comm, &array, &mut values)?;
            assert_eq!(values, own);
            Ok::<(), Error>(())
        })
        .unwrap();
        // For as many ranks as have saved it.
        let told = outcore::run(2, |comm| {
            let array = array(comm, directory.path())?;
            let error = Schedule::load(comm, &file, &array).unwrap_err().to_string();
            Ok::<_, Error>(error)
        });
        assert!(
            told.unwrap()
                .iter()
                .all(|text| text.contains("is for 3 ranks, not for 2"))
        );
    }
}

#[test]
fn damage_is_found_wherever_it_is() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pattern.schedule");
    outcore::run(2, |comm| {
        let array = array(comm, directory.path())?;
        let own = indices(comm.rank(), false);
        Inspector::default()
            .window(16)
            .schedule(comm, &array, &own)?
            .save(comm, &file)
    })
    .unwrap();
    let good = std::fs::read(&file).unwrap();
    let fails = |bytes: &[u8]| {
        std::fs::write(&file, bytes).unwrap();
        outcore::run(2, |comm| {
            let array = array(comm, directory.path())?;
            assert!(Schedule::load(comm, &file, &array).is_err());
            Ok::<(), Error>(())
        })
        .unwrap();
    };
    for at in (0..good.len()).step_by(61) {
        let mut bad = good.clone();
        bad[at] ^= 0x41;
        fails(&bad);
    }
    for len in [0, 7, 56, 200, good.len() - 8] {
        fails(&good[..len]);
    }
    assert!(std::fs::remove_file(&file).is_ok());
}

#[test]
fn lists_that_lead_astray_are_refused() {
    // Lists with right checksums, whose entries lie outside of the values.
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("pattern.schedule");
    outcore::run(1, |comm| {
        let array = array(comm, directory.path())?;
        Schedule::new(comm, &array, &[3u64, 9])?.save(comm, &file)
    })
    .unwrap();
    let bytes = std::fs::read(&file).unwrap();
    let mut words: Vec<u64> = bytes
        .chunks_exact(8)
        .map(|word| u64::from_le_bytes(word.try_into().unwrap()))
        .collect();
    let table = 7 + 2;
    let (first, count) = (words[table] as usize, words[table + 1] as usize);
    // The places in the values: 0 and 1 become 0 and 1000.
    let at = first + count - 2;
    assert_eq!(words[at], 1 << 32);
    words[at] = 1000 << 32;
    let crc = |words: &[u64]| {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        u64::from(crc32c::crc32c(&bytes))
    };
    words[table + 5] = crc(&words[first..first + count]);
    words[first - 1] = crc(&words[..first - 1]);
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
    std::fs::write(&file, bytes).unwrap();
    outcore::run(1, |comm| {
        let array = array(comm, directory.path())?;
        let error = Schedule::load(comm, &file, &array).unwrap_err().to_string();
        assert!(error.contains("contradicts itself"), "{error}");
        Ok::<(), Error>(())
    })
    .unwrap();
}
