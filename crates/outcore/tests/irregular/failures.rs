//! What must fail, on every rank alike, and leave the file as it is.

use outcore::{Array, ArrayDescriptor, ElementType, Error, Schedule};

/// Runs `fails` on three ranks, which all must be told the same.
fn all_are_told(text: &str, fails: impl Fn(&outcore::Comm, &Array) -> Result<(), Error> + Sync) {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("array.oc");
    let name = name.to_str().unwrap();
    outcore::run(3, |comm| {
        let descriptor = ArrayDescriptor::new(&[10], ElementType::F64);
        let array = Array::create_all(comm, name, &descriptor)?;
        array.write_all(comm, &array.whole(), &[7.0; 10])?;
        let error = fails(comm, &array).unwrap_err().to_string();
        assert!(error.contains(text), "{error}");
        // Nobody is left behind, and nothing was written.
        comm.barrier()?;
        assert_eq!(array.read::<f64>(&array.whole())?, [7.0; 10]);
        Ok::<(), Error>(())
    })
    .unwrap();
}

#[test]
fn an_index_outside_of_the_array() {
    all_are_told(
        "rank 1: index number 2 asks for element 10 of an array whose last is 9",
        |comm, array| {
            let own: &[u64] = [&[0, 1, 2][..], &[3, 4, 10], &[]][comm.rank()];
            Schedule::new(comm, array, own).map(drop)
        },
    );
    all_are_told(
        "run number 1 asks for 3 elements from 8 on",
        |comm, array| {
            let own = [(0, 2), (8, 2 + comm.rank() as u64 / 2)];
            Schedule::new(comm, array, &own).map(drop)
        },
    );
}

#[test]
fn values_and_indices_of_different_length() {
    all_are_told("rank 2: ", |comm, array| {
        let schedule = Schedule::new(comm, array, &[comm.rank() as u32])?;
        let values = vec![1.0; 1 + comm.rank() / 2];
        schedule.write(comm, array, &values).map(drop)
    });
}

#[test]
fn values_of_another_type() {
    all_are_told("holds f64 elements, not i32", |comm, array| {
        let schedule = Schedule::new(comm, array, &[comm.rank() as u32])?;
        schedule.write(comm, array, &[1i32]).map(drop)
    });
}

#[test]
fn an_array_of_another_shape() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("other.oc");
    let other = Array::create(
        name.to_str().unwrap(),
        &ArrayDescriptor::new(&[11], ElementType::F64),
    )
    .unwrap();
    all_are_told("another shape or layout", |comm, array| {
        let schedule = Schedule::new(comm, array, &[comm.rank() as u32])?;
        let target = if comm.rank() == 1 { &other } else { array };
        schedule.write(comm, target, &[1.0]).map(drop)
    });
}

#[test]
fn ranks_that_mean_different_arrays() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("other.oc");
    let other = Array::create(
        name.to_str().unwrap(),
        &ArrayDescriptor::new(&[5, 2], ElementType::F64),
    )
    .unwrap();
    all_are_told("makes a schedule of another array", |comm, array| {
        let array = if comm.rank() == 1 { &other } else { array };
        Schedule::new(comm, array, &[comm.rank() as u32]).map(drop)
    });
}

#[test]
fn ranks_with_nothing() {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("array.oc");
    let name = name.to_str().unwrap();
    outcore::run(5, |comm| {
        let descriptor = ArrayDescriptor::new(&[10], ElementType::F64);
        let array = Array::create_all(comm, name, &descriptor)?;
        let nothing: &[u64] = &[];
        let schedule = Schedule::new(comm, &array, nothing)?;
        schedule.write(comm, &array, &[0.0f64; 0])?;
        let own: &[u64] = if comm.rank() == 3 { &[9, 0] } else { &[] };
        let schedule = Schedule::new(comm, &array, own)?;
        schedule.write(comm, &array, &vec![2.0; own.len()])?;
        let mut values = vec![0.0; own.len()];
        schedule.read(comm, &array, &mut values)?;
        assert_eq!(values, vec![2.0; own.len()]);
        Ok::<(), Error>(())
    })
    .unwrap();
}
