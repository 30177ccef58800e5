//! [`Independent`]: every rank moves its own section, with the strategies that
//! there are for one.

use std::borrow::Cow;
use std::sync::OnceLock;

use outcore_geometry::{Runs, Section};
use outcore_transport::Comm;

use super::moved::{Moved, timed};
use super::request::Request;
use super::survey::Survey;
use super::winners::won;
use crate::array::Array;
use crate::error::{Error, Result};
use crate::execute::{Transfer, execute};
use crate::plan::Plan;
use crate::strategy::choose::ALL_CACHED;
use crate::strategy::{Direction, Method, Strategy, Tuning};

/// What one rank moves for itself.
#[derive(Debug)]
pub(super) struct Independent {
    own: Request,
    /// What no higher rank writes, or all that is read.
    parts: Vec<Part>,
    /// The array, tuned to the strategy.
    array: Array,
}

impl Independent {
    /// What this rank does, with a buffer of no more than any rank has; `None`,
    /// and so on all ranks, if what each must write is not few regular parts.
    pub(super) fn new(
        comm: &Comm,
        array: Array,
        direction: Direction,
        strategy: Strategy,
        survey: &Survey,
    ) -> Result<Option<Self>> {
        let own = survey.own.clone();
        let parts = match direction {
            Direction::Read => vec![Part::new(own.section.clone(), own.runs.clone())],
            Direction::Write => {
                let Some(mut parts) = survey.requests.as_deref().and_then(all_won) else {
                    return Ok(None);
                };
                let parts = std::mem::take(&mut parts[comm.rank()]).into_iter();
                let parts = parts.map(|positions| {
                    let runs = array.layout().runs_at(&own.section, &positions);
                    Ok(Part::new(own.section.select(&positions), runs?))
                });
                let parts: outcore_geometry::Result<_> = parts.collect();
                parts.map_err(Error::geometry(array.name()))?
            }
        };
        let tuning = array.tuning();
        // Without locks, bytes that are read and written back may be another
        // rank's.
        let strategy = match strategy {
            Strategy::Sieving if direction == Direction::Write && !array.is_guarded() => {
                Strategy::Direct
            }
            strategy => strategy,
        };
        let array = array.tuned(Tuning {
            strategy,
            buffer: tuning.buffer.map(|buffer| buffer.min(survey.limit)),
            ..tuning
        });
        Ok(Some(Self { own, parts, array }))
    }

    /// What this rank asks for.
    pub(super) fn own(&self) -> &Request {
        &self.own
    }

    /// The strategy of every rank.
    pub(super) fn strategy(&self) -> Strategy {
        self.array.tuning().strategy
    }

    /// The memory that it takes.
    pub(super) fn need(&self) -> u64 {
        self.array.tuning().buffer()
    }

    /// Reads into `buffer`.
    pub(super) fn read(&self, buffer: &mut [u8]) -> Result<Moved> {
        self.each(Direction::Read, |plan| {
            execute(plan, &**self.array.store(), Transfer::Read(buffer))
        })
    }

    /// Writes `data`, as far as no higher rank does.
    pub(super) fn write(&self, data: &[u8]) -> Result<Moved> {
        self.each(Direction::Write, |plan| {
            execute(plan, &**self.array.store(), Transfer::Write(data))
        })
    }

    /// Calls `carry_out` with the plan of each part.
    fn each(
        &self,
        direction: Direction,
        mut carry_out: impl FnMut(&Plan) -> Result<()>,
    ) -> Result<Moved> {
        let useful = self.own.section.count() * self.array.layout().element_size();
        let mut moved = Moved {
            useful,
            ..Moved::default()
        };
        let store = &**self.array.store();
        for part in &self.parts {
            let course = part.course(&self.array, direction);
            timed(store, &mut moved.io, || carry_out(&course.plan))?;
            let (requests, bytes) = course.counts();
            moved.requests += requests;
            moved.moved += bytes;
        }
        Ok(moved)
    }
}

/// A regular part of what a rank moves. What depends on the page cache is
/// planned for both its states, so that an execution only has to look there.
#[derive(Debug)]
struct Part {
    section: Section,
    /// Between the file and the buffer of the whole request.
    runs: Runs,
    warm: OnceLock<Course>,
    cold: OnceLock<Course>,
}

impl Part {
    fn new(section: Section, runs: Runs) -> Self {
        Self {
            section,
            runs,
            warm: OnceLock::new(),
            cold: OnceLock::new(),
        }
    }

    /// How it moves now.
    fn course(&self, array: &Array, direction: Direction) -> Cow<'_, Course> {
        // A simulated device has no cache; whole slices depend on the section.
        if array.profile().device.is_some() || array.tuning().whole_slices {
            let plan = || Course::new(array.plan_of(&self.section, self.runs.clone(), direction));
            return Cow::Borrowed(self.cold.get_or_init(plan));
        }
        let planned = |cached| Course::new(array.plan_cached(&self.runs, direction, cached));
        let warm = self.warm.get_or_init(|| planned(1.0));
        let cold = self.cold.get_or_init(|| planned(0.0));
        if warm.plan.way() == cold.plan.way() {
            return Cow::Borrowed(warm);
        }
        match array.share_cached(&self.runs) {
            Some(cached) if cached >= ALL_CACHED => Cow::Borrowed(warm),
            Some(cached) if cached > 0.0 => Cow::Owned(planned(cached)),
            _ => Cow::Borrowed(cold),
        }
    }
}

/// A plan, and what it asks of the store.
#[derive(Debug, Clone)]
struct Course {
    plan: Plan,
    counts: OnceLock<(u64, u64)>,
}

impl Course {
    fn new(plan: Plan) -> Self {
        Self {
            plan,
            counts: OnceLock::new(),
        }
    }

    /// Requests and bytes.
    fn counts(&self) -> (u64, u64) {
        *self.counts.get_or_init(|| match self.plan.method {
            Method::Direct => self.plan.runs.totals(),
            Method::Mapped(_) => (0, self.plan.useful_bytes()),
            Method::Sieving(_) | Method::Chunked(_) => {
                (self.plan.requests(), self.plan.moved_bytes())
            }
        })
    }
}

/// What each rank writes that no higher one does, if it is few regular parts of
/// every rank's section.
fn all_won(requests: &[Request]) -> Option<Vec<Vec<Section>>> {
    (0..requests.len())
        .map(|rank| won(requests, rank))
        .collect()
}
