//! The bench on simulated devices.
//!
//! Every way is carried out once by ranks that are threads, each with a handle
//! of its own to the device. Free threads reach a device in the order of their
//! scheduling; so what each rank asked for is logged, batch by batch, and issued
//! again to the model: whose clock is earliest comes first. So the times are
//! those of what was really asked for, and the same in every run. Copies and
//! messages take no time.

use std::sync::Arc;

use outcore::storage::{CountedStore, DeviceModel, MemoryStore, Store, ThrottledStore, Time};
use outcore::{
    Array, CollectiveEstimate, Comm, Direction, DomainKind, Error, Fill, Pattern, Result,
    StorageProfile,
};

use super::{CollectiveOptions, Measured, RANKS, Way};
use crate::line::Line;
use crate::simulated::direction_name;

/// One way makes more requests than this in no time worth waiting for.
const MOST_REQUESTS: u64 = 1 << 20;

/// Requests, each an offset and a length, that were issued together.
type Batch = Vec<(u64, usize)>;

/// What a rank asked for, whether its data were right, and what was expected of
/// each way.
type Outcome = (Vec<Batch>, bool, Vec<CollectiveEstimate>);

/// The lines of all cases and ways on a device.
pub(super) fn on_device(
    (name, model): (&str, DeviceModel),
    options: &CollectiveOptions,
) -> Result<Measured> {
    let descriptor = &options.descriptor;
    let bytes = descriptor.element_count().unwrap_or(0) * descriptor.element_type.size();
    let values = Arc::new(MemoryStore::from(vec![0; bytes as usize]));
    let array = Array::in_store("values", descriptor, values.clone() as Arc<dyn Store>)?;
    crate::sections::fill(&array)?;
    let mut ways = options.ways.clone();
    ways.retain(|way| *way != Way::Independent(outcore::Strategy::Mapped));
    let striped = ThrottledStore::new(values.clone(), model, Time::Virtual)?;
    if striped.striping().is_some() && ways.len() > 1 {
        ways.push(Way::TwoPhase(DomainKind::Disks));
    }
    let mut measured = Measured::default();
    for (case, pattern) in &options.cases {
        for way in &ways {
            let trial = Trial {
                model,
                array: &array,
                values: &values,
                pattern,
                way: *way,
                options,
            };
            let Some(taken) = trial.run()? else {
                measured.notes.push(format!(
                    "{case} {pattern}: {way} takes no part: too many requests"
                ));
                continue;
            };
            for estimate in taken.expected {
                let domains = estimate.domains.map(|kind| format!("/{kind}"));
                measured.notes.push(format!(
                    "{case} {pattern}: expected of {}{}: {:.3} ms",
                    estimate.way,
                    domains.unwrap_or_default(),
                    estimate.seconds * 1e3
                ));
            }
            measured.lines.push(Line {
                system: "outcore".into(),
                bench: "collective",
                case: format!("{case} {pattern}"),
                op: direction_name(options.direction),
                strategy: way.to_string(),
                transport: format!("threads/{name}"),
                ranks: options.ranks.unwrap_or(RANKS),
                useful_bytes: taken.useful,
                best_s: taken.seconds,
                median_s: taken.seconds,
                ok: taken.ok,
            });
        }
    }
    Ok(measured)
}

/// What came of a trial.
struct Taken {
    seconds: f64,
    ok: bool,
    /// The bytes of all ranks.
    useful: u64,
    /// What `auto` expected of each way.
    expected: Vec<CollectiveEstimate>,
}

/// One way to move the sections of a pattern.
struct Trial<'a> {
    model: DeviceModel,
    array: &'a Array,
    values: &'a Arc<MemoryStore>,
    pattern: &'a Pattern,
    way: Way,
    options: &'a CollectiveOptions,
}

impl Trial<'_> {
    /// `None` if it would take too many requests.
    fn run(&self) -> Result<Option<Taken>> {
        let ranks = self.options.ranks.unwrap_or(RANKS);
        let shape = self.array.shape();
        let wrong = |error: outcore::GeometryError| Error::Invalid(error.to_string());
        let (mut useful, mut runs) = (0, 0);
        for rank in 0..ranks as u64 {
            let section = self.pattern.section(shape, rank, ranks as u64);
            let of_rank = self.array.layout().runs(&section.map_err(wrong)?);
            let (count, bytes) = of_rank.map_err(wrong)?.totals();
            runs += count;
            useful += bytes;
        }
        if self.way == Way::Independent(outcore::Strategy::Direct) && runs > MOST_REQUESTS {
            return Ok(None);
        }
        let device = ThrottledStore::new(self.values.clone(), self.model, Time::Virtual)?;
        let mut outcomes = outcore::run(ranks, |comm: &Comm| self.rank(comm, &device))?;
        let expected = std::mem::take(&mut outcomes[0].2);
        let ok = outcomes.iter().all(|outcome| outcome.1);
        let times = self
            .model
            .time_of_callers(outcomes.into_iter().map(|it| it.0))?;
        let last = times.into_iter().max().unwrap_or_default();
        Ok(Some(Taken {
            seconds: last.as_secs_f64(),
            ok,
            useful,
            expected,
        }))
    }

    /// What one rank does.
    fn rank(&self, comm: &Comm, device: &ThrottledStore<Arc<MemoryStore>>) -> Result<Outcome> {
        let store = Arc::new(CountedStore::with_log(device.for_caller()));
        let shared: Arc<dyn Store> = store.clone();
        let array = Array::in_store("device", self.array.descriptor(), shared)?
            .with_profile(StorageProfile::of(&self.model));
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let section = self.pattern.section(array.shape(), rank, ranks);
        let section = section.map_err(|error| Error::Invalid(error.to_string()))?;
        let bytes = section.count() * array.layout().element_size();
        let mut expected = vec![0; bytes as usize];
        Fill::Index.generate(&array, &section, &mut expected)?;
        let calls = self.way.calls(&array);
        let expected_of = match self.way {
            Way::Auto => calls.estimates(comm, &section, self.options.direction)?,
            _ => Vec::new(),
        };
        let ok = match self.options.direction {
            Direction::Read => {
                let mut found = vec![0; expected.len()];
                calls.read_bytes(comm, &section, &mut found)?;
                found == expected
            }
            Direction::Write => {
                // Other values, looked at, and the old ones again.
                let other: Vec<u8> = expected.iter().map(|byte| byte ^ 0x55).collect();
                let mut found = vec![0; expected.len()];
                calls.write_bytes(comm, &section, &other)?;
                self.array.read_bytes(&section, &mut found)?;
                comm.barrier()?;
                self.array.write_bytes(&section, &expected)?;
                // The values of an element are the same on all ranks.
                found == other
            }
        };
        let batches = store.calls().into_iter().map(|call| {
            let requests = call.into_iter();
            requests
                .map(|request| (request.offset, request.len as usize))
                .collect()
        });
        Ok((batches.collect(), ok, expected_of))
    }
}
