//! What cannot be: the same clear error on every rank.

use outcore::{
    AlignedDistribution, Array, ArrayDescriptor, DistributedArray, Distribution, ElementType,
    Error, RedistributionMethod, RedistributionPlan, Section, Transfer,
};

fn side(text: &str, shape: &[u64], ranks: u64) -> AlignedDistribution {
    Distribution::parse(text, shape, ranks, None)
        .unwrap()
        .into()
}

/// What each rank of three is told.
fn told<T>(program: impl Fn(&outcore::Comm) -> Result<T, Error> + Sync) -> Vec<String> {
    outcore::run(3, |comm| {
        let outcome = program(comm).map(drop);
        let told = outcome.err().map(|error| error.to_string());
        comm.barrier()?;
        Ok::<_, Error>(told.unwrap_or_default())
    })
    .unwrap()
}

#[test]
fn distributions_that_make_no_sense() {
    for (text, grid, problem) in [
        ("cyclic(0)", None, "blocks of size 0"),
        ("block(2)", None, "blocks of 4 at least"),
        (
            "block",
            Some(vec![2]),
            "a grid of 2 has 2 ranks, but there are 3",
        ),
    ] {
        let error = Distribution::parse(text, &[10], 3, grid.as_deref()).unwrap_err();
        assert!(error.to_string().contains(problem), "{error}");
    }
}

#[test]
fn shapes_and_ranks_that_do_not_match() {
    let shapes = told(|comm| {
        RedistributionPlan::new(comm, &side("block", &[10], 3), &side("block", &[11], 3))
    });
    assert_eq!(
        shapes,
        ["an array of shape 10 cannot be redistributed to one of shape 11"; 3]
    );
    let ranks = told(|comm| DistributedArray::<u8>::aligned(comm, side("block", &[10], 4)));
    assert_eq!(
        ranks,
        ["the distribution is for 4 ranks, but there are 3"; 3]
    );
    let ranks = told(|comm| {
        RedistributionPlan::new(comm, &side("block", &[10], 3), &side("cyclic", &[10], 4))
    });
    assert_eq!(
        ranks,
        ["the distribution is for 4 ranks, but there are 3"; 3]
    );
    let sections = told(|comm| {
        let whole = side("block", &[10], 3);
        let of = |text| Section::parse(text, &[10]).unwrap();
        RedistributionPlan::of_sections(comm, (&whole, &of("0:4")), (&whole, &of("0:5")))
    });
    assert_eq!(
        sections,
        ["what moves has shape 4, but where it goes has shape 5"; 3]
    );
    let outside = told(|comm| {
        let (whole, part) = (
            side("block", &[10], 3),
            Section::parse("5:12", &[12]).unwrap(),
        );
        RedistributionPlan::of_sections(comm, (&whole, &part), (&whole, &part))
    });
    assert!(
        outside.iter().all(|told| told.contains("reaches index 11")),
        "{outside:?}"
    );
    let lists = told(|comm| {
        let (whole, list) = (
            side("block", &[10], 3),
            Section::parse("[1, 5, 6]", &[10]).unwrap(),
        );
        RedistributionPlan::of_sections(comm, (&whole, &list), (&whole, &list))
    });
    assert!(
        lists.iter().all(|told| told.contains("has an index list")),
        "{lists:?}"
    );
}

#[test]
fn parts_that_do_not_fit() {
    let sizes = told(|comm| {
        let whole = side("block", &[9], 3);
        let plan = RedistributionPlan::new(comm, &whole, &side("cyclic", &[9], 3))?;
        plan.run(comm, &mut [Transfer::new(&[1_u8; 2], &mut [0; 3])])
    });
    assert!(
        sizes
            .iter()
            .all(|told| told.contains("has 3 elements of the array, but the part has 2"))
    );
    let scattered = told(|comm| {
        let mut array = DistributedArray::<u8>::aligned(comm, side("block", &[9], 3))?;
        let all = vec![0; if comm.rank() == 1 { 8 } else { 0 }];
        array.scatter(comm, 1, &all)
    });
    assert!(
        scattered
            .iter()
            .all(|told| told.contains("rank 1: rank 1 brings 8 elements")),
        "{scattered:?}"
    );
    let roots = told(|comm| {
        let array = DistributedArray::<u8>::aligned(comm, side("block", &[9], 3))?;
        array.gather(comm, 3)
    });
    assert_eq!(roots, ["there is no rank 3 among 3"; 3]);
}

#[test]
fn files_that_are_other_arrays() {
    let directory = tempfile::tempdir().unwrap();
    let name = |file: &str| directory.path().join(file).to_str().unwrap().to_string();
    Array::create(
        &name("short.oc"),
        &ArrayDescriptor::new(&[8], ElementType::U8),
    )
    .unwrap();
    Array::create(
        &name("wide.oc"),
        &ArrayDescriptor::new(&[9], ElementType::F32),
    )
    .unwrap();
    for (file, problem) in [
        ("short.oc", "its shape is 8"),
        ("wide.oc", "holds f32 elements, not u8"),
    ] {
        let told = told(|comm| {
            let mut array = DistributedArray::<u8>::aligned(comm, side("cyclic(2)", &[9], 3))?;
            array.load(comm, &Array::open(&name(file))?)
        });
        assert!(told.iter().all(|told| told.contains(problem)), "{told:?}");
    }
    let missing = RedistributionMethod::ALL.map(|method| method.to_string().parse());
    assert!(
        missing
            .into_iter()
            .all(|method: Result<RedistributionMethod, _>| method.is_ok())
    );
    assert!("bruck".parse::<RedistributionMethod>().is_err());
}
