//! [`Independent`]: every rank moves its own section, with the strategies that
//! there are for one.

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
use crate::strategy::{Direction, Method, Strategy, Tuning};

/// What one rank moves for itself.
#[derive(Debug)]
pub(super) struct Independent {
    own: Request,
    /// What no higher rank writes, or all that is read: as sections, and between
    /// the file and the buffer of the whole request.
    parts: Vec<(Section, Runs)>,
    /// The array, tuned to the strategy.
    array: Array,
}

impl Independent {
    /// What this rank does, with a buffer of no more than any rank has; `None`,
    /// and so on all ranks, if what each must write is not few regular parts.
    pub(super) fn new(
        comm: &Comm,
        array: &Array,
        direction: Direction,
        strategy: Strategy,
        survey: &Survey,
    ) -> Result<Option<Self>> {
        let own = survey.own.clone();
        let parts = match direction {
            Direction::Read => vec![(own.section.clone(), own.runs.clone())],
            Direction::Write => {
                let Some(mut parts) = survey.requests.as_deref().and_then(all_won) else {
                    return Ok(None);
                };
                let parts = std::mem::take(&mut parts[comm.rank()]).into_iter();
                let parts = parts.map(|positions| {
                    let runs = array.layout().runs_at(&own.section, &positions);
                    Ok((own.section.select(&positions), runs?))
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
            buffer: tuning.buffer.min(survey.limit),
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
        self.array.tuning().buffer
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

    /// Calls `carry_out` with the plan of each part, made anew each time: it
    /// depends on what is in the page cache.
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
        for (section, runs) in &self.parts {
            let plan = self.array.plan_of(section, runs.clone(), direction);
            timed(store, &mut moved.io, || carry_out(&plan))?;
            let (requests, bytes) = match plan.method {
                Method::Direct => plan.runs.totals(),
                Method::Mapped(_) => (0, plan.useful_bytes()),
                Method::Sieving(_) => (plan.requests(), plan.moved_bytes()),
            };
            moved.requests += requests;
            moved.moved += bytes;
        }
        Ok(moved)
    }
}

/// What each rank writes that no higher one does, if it is few regular parts of
/// every rank's section.
fn all_won(requests: &[Request]) -> Option<Vec<Vec<Section>>> {
    (0..requests.len())
        .map(|rank| won(requests, rank))
        .collect()
}
