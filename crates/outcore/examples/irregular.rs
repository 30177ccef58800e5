//! Elements at listed places: every rank holds some elements of a global array,
//! in an order of its own, and all write them to one file in global order. The
//! file is then read by indices that have nothing to do with those.
//!
//! Every way of moving elements gives the same file; an index outside of the
//! array on one rank is an error on all, and the file stays as it is.

use outcore::{
    Array, ArrayDescriptor, Carrier, Combine, Comm, DistributedArray, Distribution, ElementType,
    Error, Groups, Inspector, Irregular, Localized, MemoryBudget, Schedule, Variable,
};

const ELEMENTS: u64 = 20_000;

/// A permutation of the elements: both numbers have no common divisor.
fn shuffled(at: u64) -> u64 {
    at * 7_919 % ELEMENTS
}

fn main() -> Result<(), Error> {
    let ranks = outcore::default_ranks();
    outcore::run(ranks, |comm| {
        // The directory of rank 0 is the one that all use.
        let directory = format!("outcore-irregular-{}", std::process::id());
        let directory = std::env::temp_dir().join(directory);
        let mut directory = directory.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut directory)?;
        let directory = std::path::PathBuf::from(directory);
        if comm.rank() == 0 {
            std::fs::create_dir_all(&directory).expect("a directory can be made");
        }
        comm.barrier()?;
        let name = |what: &str| directory.join(what).to_str().expect("readable").to_string();
        let outcome = example(comm, &name);
        comm.barrier()?;
        if comm.rank() == 0 {
            std::fs::remove_dir_all(&directory).expect("it can be removed");
        }
        outcome
    })?;
    Ok(())
}

fn example(comm: &Comm, name: &dyn Fn(&str) -> String) -> Result<(), Error> {
    let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
    let temperature = ArrayDescriptor::new(&[ELEMENTS], ElementType::F64);
    let temperature = Array::create_all(comm, &name("temperature.oc"), &temperature)?;
    let velocity = ArrayDescriptor::new(&[ELEMENTS, 3], ElementType::F32);
    let velocity = Array::create_all(comm, &name("velocity.npy"), &velocity)?;

    // 1. Each rank has the elements that were dealt to it.
    let own: Vec<u64> = (rank..ELEMENTS)
        .step_by(ranks as usize)
        .map(shuffled)
        .collect();
    let value = |index: &u64, step: usize| *index as f64 + step as f64 / 4.0;
    let schedule = Schedule::new(comm, &temperature, &own)?;

    // 2. The schedule is carried out in every way, and for every time step.
    let budget = MemoryBudget::of(ranks << 20);
    let ways: [&dyn Fn(&Schedule) -> Irregular<'_>; 5] = [
        &|schedule| schedule.call(),
        &|schedule| schedule.call().carrier(Carrier::Messages),
        &|schedule| schedule.call().groups(Groups::Of(2)).windows(1),
        &|schedule| schedule.call().carrier(Carrier::Messages).message(1000),
        &|schedule| schedule.call().budget(&budget),
    ];
    let small = Inspector::default().window(256).cyclic();
    let small = small.schedule(comm, &temperature, &own)?;
    for (step, way) in ways.iter().enumerate() {
        for (number, schedule) in [&schedule, &small].into_iter().enumerate() {
            let step = 2 * step + number;
            let values: Vec<f64> = own.iter().map(|index| value(index, step)).collect();
            let speeds: Vec<f32> = own
                .iter()
                .flat_map(|index| [*index as f32, step as f32, -1.0])
                .collect();
            // Two arrays in one go; the second has records of three numbers.
            way(schedule).write_all(
                comm,
                &mut [
                    Variable::write(&temperature, &values),
                    Variable::write(&velocity, &speeds),
                ],
            )?;
            comm.barrier()?;
            let mut again = vec![0.0; own.len()];
            way(schedule).read(comm, &temperature, &mut again)?;
            assert_eq!(again, values);
            let all: Vec<f64> = temperature.read(&temperature.whole())?;
            assert!(
                (0..)
                    .zip(&all)
                    .all(|(index, found)| *found == value(&index, step))
            );
            let some: Vec<f32> = velocity.read(&velocity.section("77:80, :")?)?;
            assert_eq!(some[3..6], [78.0, step as f32, -1.0]);
            comm.barrier()?;
        }
    }

    // 3. Kept for the next run.
    schedule.save(comm, name("pattern.schedule"))?;
    let loaded = Schedule::load(comm, name("pattern.schedule"), &temperature)?;
    loaded.accumulate(comm, &temperature, &vec![1.0; own.len()], Combine::Add)?;
    comm.barrier()?;
    let last = 2 * ways.len() - 1;
    let wanted: Vec<u64> = vec![7, ELEMENTS - 1, 7, rank];
    let found: Vec<f64> = temperature.take(&wanted)?;
    assert!(
        wanted
            .iter()
            .zip(&found)
            .all(|(index, found)| *found == value(index, last) + 1.0)
    );

    // 4. The same for an array in the memory of all ranks.
    let distribution = Distribution::parse("cyclic(7)", &[ELEMENTS], ranks, None);
    let mut nodes = DistributedArray::<f64>::new(comm, distribution.expect("it fits"))?;
    nodes.load(comm, &temperature)?;
    let local = Localized::new(comm, nodes.distribution(), &own)?;
    let values = local.gather(comm, &nodes)?;
    for (number, index) in local.numbers().iter().zip(&own) {
        assert_eq!(values[*number as usize], value(index, last) + 1.0);
    }
    local.scatter_combined(comm, &mut nodes, &vec![1.0; values.len()], Combine::Max)?;

    // 5. An index that is not there, on the last rank: all are told, nothing moves.
    let mut wrong = own.clone();
    if rank + 1 == ranks {
        wrong.push(ELEMENTS);
    }
    let error = Schedule::new(comm, &temperature, &wrong).expect_err("an index is wrong");
    let expected = format!("asks for element {ELEMENTS}");
    assert!(error.to_string().contains(&expected), "{error}");
    let short = &vec![0.0; own.len() - usize::from(rank == 0)];
    let error = schedule
        .write(comm, &temperature, short)
        .expect_err("a value is missing");
    assert!(error.to_string().contains("rank 0"), "{error}");
    comm.barrier()?;
    assert_eq!(temperature.take::<f64>(&[0u64])?, [value(&0, last) + 1.0]);
    if rank == 0 {
        println!("{ELEMENTS} elements by {ranks} ranks, in every way: all in their places");
    }
    Ok(())
}
