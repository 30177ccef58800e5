//! An array in memory moves between distributions: in memory that ranks share,
//! in memory of their own, and in messages; by every method, there and back,
//! and from a file and to another.
//!
//! `OUTCORE_RANKS=4 cargo run --example redistribution`, or built with
//! `--features mpi`: `mpirun -n 4 redistribution`.

use outcore::{
    AlignedDistribution, Array, ArrayDescriptor, Arrival, Carrier, Comm, DistributedArray,
    Distribution, ElementType, Error, RedistributionMethod, RedistributionPlan, Section,
    TemplateAxis, Transfer,
};

const SHAPE: [u64; 2] = [60, 44];

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let ranks = comm.size() as u64;
        let of = |text: &str| -> AlignedDistribution {
            let distribution = Distribution::parse(text, &SHAPE, ranks, None);
            distribution.expect("a distribution of the shape").into()
        };
        let texts = [
            "block,*",
            "*,block",
            "cyclic(11),cyclic(3)",
            "cyclic,*",
            "*,*",
        ];
        for (from, to) in texts
            .iter()
            .flat_map(|from| texts.map(|to| (of(from), of(to))))
        {
            for method in RedistributionMethod::ALL {
                there_and_back(comm, &from, &to, method)?;
            }
        }
        fewer_ranks(comm)?;
        sections_and_templates(comm)?;
        through_files(comm, &of("cyclic(7),cyclic(2)"), &of("*,block"))?;
        if comm.rank() == 0 {
            println!(
                "{ranks} ranks moved arrays of 60x44 between {} distributions",
                texts.len()
            );
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}

fn value(index: &[u64]) -> f64 {
    (index[0] * 1000 + index[1]) as f64
}

fn check(array: &DistributedArray<f64>) {
    assert!(array.iter().all(|(index, found)| *found == value(&index)));
}

fn there_and_back(
    comm: &Comm,
    from: &AlignedDistribution,
    to: &AlignedDistribution,
    method: RedistributionMethod,
) -> Result<(), Error> {
    for (private, carrier, arrival) in [
        (false, Carrier::Auto, Arrival::Together),
        (true, Carrier::Auto, Arrival::Together),
        (true, Carrier::Messages, Arrival::Together),
        (true, Carrier::Messages, Arrival::AsTheyCome),
    ] {
        let make = |like: &AlignedDistribution| match private {
            true => DistributedArray::<f64>::private(comm, like.clone()),
            false => DistributedArray::<f64>::aligned(comm, like.clone()),
        };
        let (mut before, mut after) = (make(from)?, make(to)?);
        before.fill_with(value);
        let plan = RedistributionPlan::with_method(comm, from, to, method)?;
        let plan = plan.carrier(carrier).arrival(arrival);
        for _ in 0..2 {
            after.fill(-1.0);
            plan.move_array(comm, &before, &mut after)?;
            check(&after);
            before.fill(-1.0);
            plan.move_back(comm, &after, &mut before)?;
            check(&before);
        }
        // Two arrays at once, of other elements.
        let mut small = DistributedArray::<[u8; 3]>::aligned(comm, from.clone())?;
        small.fill_with(|index| [index[0] as u8, index[1] as u8, 9]);
        let mut moved = DistributedArray::<[u8; 3]>::private(comm, to.clone())?;
        after.fill(-1.0);
        plan.run(
            comm,
            &mut [
                Transfer::new(before.local(), after.local_mut()),
                Transfer::new(small.local(), moved.local_mut()),
            ],
        )?;
        check(&after);
        assert!(
            moved
                .iter()
                .all(|(at, found)| *found == [at[0] as u8, at[1] as u8, 9])
        );
    }
    Ok(())
}

/// From all ranks to all but one, as on a smaller machine, and gathered there.
fn fewer_ranks(comm: &Comm) -> Result<(), Error> {
    let (all, fewer) = (comm.size() as u64, (comm.size() as u64 - 1).max(1));
    let of = |text, ranks| Distribution::parse(text, &SHAPE, ranks, None).expect("it fits");
    let mut array = DistributedArray::<f64>::new(comm, of("cyclic(5),*", all))?;
    array.fill_with(value);
    let moved = array.redistribute(comm, &of("block,cyclic(3)", fewer).into())?;
    check(&moved);
    let gathered = moved.gather(comm, comm.size() - 1)?.unwrap_or_default();
    for (place, found) in gathered.iter().enumerate() {
        assert_eq!(*found, value(&[place as u64 / 44, place as u64 % 44]));
    }
    array.fill(0.0);
    array.scatter(comm, comm.size() - 1, &gathered)?;
    check(&array);
    Ok(())
}

/// `A(1:59:2, :) = B(0:30, :)`, and an array that follows its template.
fn sections_and_templates(comm: &Comm) -> Result<(), Error> {
    let ranks = comm.size() as u64;
    let of = |text, shape: &[u64]| Distribution::parse(text, shape, ranks, None).expect("it fits");
    let mut source = DistributedArray::<f64>::new(comm, of("block,*", &SHAPE))?;
    source.fill_with(value);
    let mut target = DistributedArray::<f64>::new(comm, of("*,cyclic(4)", &SHAPE))?;
    let part = |text| Section::parse(text, &SHAPE).expect("inside");
    target.assign(comm, &part("1:60:2, :"), (&source, &part("0:30, :")))?;
    for (index, found) in target.iter() {
        let expected = match index[0] % 2 {
            1 => value(&[index[0] / 2, index[1]]),
            _ => 0.0,
        };
        assert_eq!(*found, expected);
    }
    // Every third index of a template, on which another array may stand, too.
    let along = TemplateAxis::Aligned {
        axis: 0,
        stride: 3,
        offset: 1,
    };
    let aligned = AlignedDistribution::new(&SHAPE, of("cyclic(4)", &[200]), vec![along]);
    let mut aligned = DistributedArray::<f64>::aligned(comm, aligned.expect("it fits"))?;
    aligned.fill_with(value);
    check(&aligned.with_template(comm, &of("block", &[200]))?);
    Ok(())
}

/// A file is loaded, redistributed, and stored into another one.
fn through_files(
    comm: &Comm,
    from: &AlignedDistribution,
    to: &AlignedDistribution,
) -> Result<(), Error> {
    let path = std::env::temp_dir().join(format!("redistribution-{}", std::process::id()));
    let mut name = path.to_string_lossy().to_string();
    comm.broadcast_string(0, &mut name)?;
    let (one, other) = (format!("{name}-one.oc"), format!("{name}-other.oc"));
    let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::F64);
    let column = descriptor
        .clone()
        .layout("column".parse().expect("a layout"));
    let one_file = Array::create_all(comm, &one, &descriptor)?;
    let other_file = Array::create_all(comm, &other, &column)?;
    let mut array = DistributedArray::<f64>::aligned(comm, from.clone())?;
    array.fill_with(value);
    array.store(comm, &one_file)?;
    comm.barrier()?;
    array.fill(0.0);
    array.load(comm, &one_file)?;
    array.redistribute(comm, to)?.store(comm, &other_file)?;
    comm.barrier()?;
    let row = other_file.read::<f64>(&other_file.section("17, :")?)?;
    assert!(
        row.iter()
            .enumerate()
            .all(|(column, found)| *found == value(&[17, column as u64]))
    );
    comm.barrier()?;
    if comm.rank() == 0 {
        for name in [one, other] {
            std::fs::remove_dir_all(&name).expect("the array can be removed");
        }
    }
    Ok(())
}
