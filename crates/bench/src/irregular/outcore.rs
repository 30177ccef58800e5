//! outcore's own contestants: schedules that are kept and schedules that are made
//! anew, with values in either kind of memory, and in messages.

use std::cell::RefCell;

use outcore::{Carrier, Result, Schedule};

use super::ground::{Ground, Memory, Value};
use crate::contest::Contestant;

/// A way to carry a schedule out.
#[derive(Clone, Copy)]
struct Way {
    name: &'static str,
    memory: Memory,
    carrier: Carrier,
}

/// The schedules that contestants keep; each its own, as what a schedule keeps
/// differs with the carrier.
pub(super) struct Schedules {
    kept: Vec<(Way, Schedule)>,
}

impl<T: Value> Ground<'_, T> {
    fn ways(&self) -> Vec<Way> {
        let way = |name, memory, carrier| Way {
            name,
            memory,
            carrier,
        };
        let mut ways = vec![way("", Memory::Ordinary, Carrier::Auto)];
        if self.has_node_memory() {
            ways.push(way(" node memory", Memory::Node, Carrier::Auto));
        }
        ways.push(way(" messages", Memory::Ordinary, Carrier::Messages));
        ways
    }

    /// Collective: makes the schedules that are kept.
    pub(super) fn schedules(&self) -> Result<Schedules> {
        let ways = self.ways().into_iter();
        let kept = ways.map(|way| Ok((way, self.schedule()?)));
        Ok(Schedules {
            kept: kept.collect::<Result<_>>()?,
        })
    }

    fn schedule(&self) -> Result<Schedule> {
        Schedule::new(self.comm, &self.array, &self.own)
    }

    fn carry_out(
        &self,
        schedule: &Schedule,
        (way, op): (Way, &str),
        values: &mut [T],
    ) -> Result<()> {
        let call = schedule.call().carrier(way.carrier);
        match op {
            "write" => call.write(self.comm, &self.array, values),
            _ => call.read(self.comm, &self.array, values),
        }
        .map(drop)
    }

    /// The contestants of `read`, `write` or `schedule`.
    pub(super) fn outcore<'b>(
        &'b self,
        schedules: &'b Schedules,
        op: &'static str,
    ) -> Vec<Contestant<'b>> {
        if op == "schedule" {
            let line = self.line("outcore", op, "schedule");
            return vec![self.planning(line, || self.schedule())];
        }
        let mut all = Vec::new();
        for (way, schedule) in &schedules.kept {
            let line = self.line("outcore", op, &format!("reused{}", way.name));
            all.push(self.contestant(line, way.memory, move |values| {
                self.carry_out(schedule, (*way, op), values)
            }));
            let line = self.line("outcore", op, &format!("anew{}", way.name));
            // It goes when the clock has stopped.
            let made = std::rc::Rc::new(RefCell::new(None));
            let gone = made.clone();
            let mut anew = self.contestant(line, way.memory, move |values| {
                let schedule = self.schedule()?;
                self.carry_out(&schedule, (*way, op), values)?;
                *made.borrow_mut() = Some(schedule);
                Ok(())
            });
            let mut check = anew.check;
            anew.check = Box::new(move || {
                gone.borrow_mut().take();
                check()
            });
            all.push(anew);
        }
        all
    }

    /// A contestant that makes something, which goes when the clock has stopped.
    pub(super) fn planning<'b, P: 'b>(
        &'b self,
        line: crate::line::Line,
        make: impl Fn() -> Result<P> + 'b,
    ) -> Contestant<'b> {
        let made = std::rc::Rc::new(RefCell::new(None));
        let gone = made.clone();
        Contestant {
            line,
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                *made.borrow_mut() = Some(make()?);
                Ok(())
            }),
            check: Box::new(move || gone.borrow_mut().take().is_some()),
            batch: 1,
        }
    }
}
