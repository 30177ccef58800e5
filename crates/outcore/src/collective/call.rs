//! [`Collective`]: reads and writes in which all ranks of a group take part.

use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::Mutex;

use outcore_geometry::{Pattern, Section};
use outcore_transport::Comm;

use super::body::Body;
use super::choose::{CollectiveEstimate, Situation};
use super::domains::Domains;
use super::independent::Independent;
use super::kind::DomainKind;
use super::lent::Shadow;
use super::memory::least_memory;
use super::moved::Moved;
use super::plan::CollectivePlan;
use super::request::Request;
use super::survey::{Survey, survey};
use super::two_phase::{Phases, Settings, TwoPhase};
use super::way::CollectiveWay;
use crate::array::Array;
use crate::budget::MemoryBudget;
use crate::element::{Element, ElementType};
use crate::error::{Error, Result};
use crate::strategy::{Direction, Strategy};

/// Reads and writes in which all ranks of a group take part, with choices; made
/// by [`Array::collective`].
#[derive(Debug, Clone)]
pub struct Collective<'a> {
    array: &'a Array,
    way: CollectiveWay,
    domains: DomainKind,
    phases: Phases,
    window: Option<u64>,
    carrier: Carrier,
    budget: Option<MemoryBudget>,
}

/// How data come from the ranks that read a part of the file to those who want
/// it, and back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Carrier {
    /// Through memory where that can be, else in messages.
    #[default]
    Auto,
    /// Straight into and out of the buffers of the ranks, which must be within
    /// one another's reach: any buffer of threads, node memory of processes.
    Memory,
    /// In messages.
    Messages,
}

impl Array {
    /// Collective: every rank reads its own section, in the way that is expected
    /// to be fastest for all. All ranks succeed, or all return the same error.
    pub fn read_all<T: Element>(&self, comm: &Comm, section: &Section) -> Result<Vec<T>> {
        self.collective().read(comm, section)
    }

    /// Collective: the same, into a buffer of exactly the section's size.
    pub fn read_all_into<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        values: &mut [T],
    ) -> Result<()> {
        self.collective().read_into(comm, section, values).map(drop)
    }

    /// Collective: every rank writes its own section. Where sections overlap,
    /// the values of the highest rank are written. All ranks succeed, or all
    /// return the same error; then elements of the sections may be old or new,
    /// and all others are as they were.
    pub fn write_all<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        values: &[T],
    ) -> Result<()> {
        self.collective().write(comm, section, values).map(drop)
    }

    /// Collective reads and writes of this array, with choices. All ranks must
    /// make the same.
    pub fn collective(&self) -> Collective<'_> {
        Collective {
            array: self,
            way: CollectiveWay::Auto,
            domains: DomainKind::Auto,
            phases: Phases::Auto,
            window: None,
            carrier: Carrier::Auto,
            budget: None,
        }
    }
}

impl Collective<'_> {
    /// In this way. With [`CollectiveWay::Auto`] an array that is tuned to a
    /// strategy is moved by every rank for itself, and whoever chooses domains,
    /// phases, a window or a carrier gets two phases. So do more ranks than can tell
    /// each other everything.
    pub fn way(mut self, way: CollectiveWay) -> Self {
        self.way = way;
        self
    }

    /// With the file divided so among the ranks that read and write it.
    pub fn domains(mut self, kind: DomainKind) -> Self {
        self.domains = kind;
        self
    }

    /// With input and output before or after the exchange of each round, or
    /// beside that of another one.
    pub fn phases(mut self, phases: Phases) -> Self {
        self.phases = phases;
        self
    }

    /// With at most so many bytes of the file in a rank's memory at a time.
    pub fn window(mut self, bytes: u64) -> Self {
        self.window = Some(bytes);
        self
    }

    /// With the data carried so between the ranks.
    pub fn carrier(mut self, carrier: Carrier) -> Self {
        self.carrier = carrier;
        self
    }

    /// With the memory of a budget, which is that of the process: ranks that
    /// are threads divide it. Without one a rank takes what
    /// [`Tuning::buffer`](crate::Tuning) says, or a little more if that is less
    /// than the least that works.
    pub fn budget(mut self, budget: &MemoryBudget) -> Self {
        self.budget = Some(budget.clone());
        self
    }

    /// The bytes of memory that any call of so many ranks can do with on each.
    pub fn least_memory(&self, ranks: usize) -> u64 {
        least_memory(ranks as u64, self.array).saturating_add(self.array.decoded_bytes())
    }

    /// Collective: plans to move the section of each rank. The plan can be
    /// executed any number of times, and nobody has to tell then what it wants.
    pub fn plan(
        &self,
        comm: &Comm,
        section: &Section,
        direction: Direction,
    ) -> Result<CollectivePlan> {
        let before = self.check(self.array.element_type(), direction);
        self.prepare(comm, (section, None), direction, before)
    }

    /// Collective: the same for sections that are an expression of the rank, so
    /// that nobody has to tell them (unless there are very many ranks).
    pub fn plan_pattern(
        &self,
        comm: &Comm,
        pattern: &Pattern,
        direction: Direction,
    ) -> Result<CollectivePlan> {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let section = pattern.section(self.array.shape(), rank, ranks);
        let (section, before) = match section {
            Ok(section) => (section, self.check(self.array.element_type(), direction)),
            Err(error) => (
                Section::empty(self.array.shape().len()),
                Err(Error::geometry(self.array.name())(error)),
            ),
        };
        self.prepare(comm, (&section, Some(pattern)), direction, before)
    }

    /// Collective: see [`Array::read_all`].
    pub fn read<T: Element>(&self, comm: &Comm, section: &Section) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let before = self.check(T::TYPE, Direction::Read).and_then(|()| {
            self.request(section)?;
            let count = usize::try_from(section.count()).ok();
            let room = count.and_then(crate::fresh::with_room);
            values = room.ok_or_else(|| self.array.too_large(section))?;
            values.resize(section.count() as usize, T::zeroed());
            Ok(())
        });
        let plan = self.prepare(comm, (section, None), Direction::Read, before)?;
        plan.read_values(comm, &mut values, Ok(()))?;
        Ok(values)
    }

    /// Collective: see [`Array::read_all_into`].
    pub fn read_into<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        values: &mut [T],
    ) -> Result<Moved> {
        let before = self.check(T::TYPE, Direction::Read);
        let before = before.and_then(|()| self.check_length(section, size_of_val(values)));
        let plan = self.prepare(comm, (section, None), Direction::Read, before)?;
        plan.read_values(comm, values, Ok(()))
    }

    /// Collective: see [`Array::write_all`].
    pub fn write<T: Element>(&self, comm: &Comm, section: &Section, values: &[T]) -> Result<Moved> {
        let before = self.check(T::TYPE, Direction::Write);
        let before = before.and_then(|()| self.check_length(section, size_of_val(values)));
        let plan = self.prepare(comm, (section, None), Direction::Write, before)?;
        plan.write_with(comm, bytemuck::cast_slice(values), Ok(()))
    }

    /// Collective: reads sections as bytes, in this machine's byte order.
    pub fn read_bytes(&self, comm: &Comm, section: &Section, bytes: &mut [u8]) -> Result<Moved> {
        let before = self.check_length(section, bytes.len());
        let plan = self.prepare(comm, (section, None), Direction::Read, before)?;
        plan.read_with(comm, bytes, Ok(()), |_| Ok(()))
    }

    /// Collective: writes sections from bytes in this machine's byte order.
    pub fn write_bytes(&self, comm: &Comm, section: &Section, bytes: &[u8]) -> Result<Moved> {
        let before = self.check(self.array.element_type(), Direction::Write);
        let before = before.and_then(|()| self.check_length(section, bytes.len()));
        let plan = self.prepare(comm, (section, None), Direction::Write, before)?;
        plan.write_with(comm, bytes, Ok(()))
    }

    fn check_length(&self, section: &Section, bytes: usize) -> Result<()> {
        self.request(section)?;
        self.array.check_length(section, bytes)
    }

    /// Plans, unless this rank or another one has found something wrong before.
    fn prepare(
        &self,
        comm: &Comm,
        (section, pattern): (&Section, Option<&Pattern>),
        direction: Direction,
        before: Result<()>,
    ) -> Result<CollectivePlan> {
        let budget = self.budget.as_ref().map(|budget| budget.for_rank(comm));
        // A plan that is kept holds no chunks: they come and go with each execution.
        let decoded = self.array.decoded_bytes();
        let free = |budget: &MemoryBudget| budget.free().saturating_sub(decoded);
        let limit = budget.as_ref().map(free);
        let limit = limit.unwrap_or(self.array.tuning().buffer());
        let own = before.and_then(|()| {
            Domains::check(self.domains, self.array)?;
            Ok((self.request(section)?, limit))
        });
        let fingerprint = self.fingerprint(direction, pattern);
        let survey = survey(comm, self.array, fingerprint, own, pattern)?;
        let body = self.body(comm, direction, survey)?;
        let memory = match budget {
            None => None,
            Some(budget) => {
                let (need, least) = body.need();
                let purpose = "a collective call";
                let enough = budget.require(least.saturating_add(decoded), purpose);
                Some(comm.agree(enough.and_then(|()| budget.reserve(need, purpose)))?)
            }
        };
        let shadow = match memory {
            None => Shadow::default(),
            Some(_) => Shadow::none(),
        };
        Ok(CollectivePlan {
            array: self.array.clone(),
            direction,
            body,
            place: (comm.rank(), comm.size()),
            kept: Mutex::new((Vec::new(), shadow)),
            carrier: self.carrier,
            _memory: memory,
        })
    }

    /// What this rank does, in the way that is asked for or that all choose.
    fn body(&self, comm: &Comm, direction: Direction, survey: Survey) -> Result<Body> {
        let asked = self.asked_way();
        let domains = self.domains == DomainKind::Auto;
        // What is left open is chosen by all alike.
        let chosen = match (&survey.requests, asked) {
            (Some(requests), CollectiveWay::Auto) => {
                let situation = Situation::new(comm, self.array, direction, (requests, &survey))?;
                Some(situation.choose(comm)?)
            }
            (Some(requests), CollectiveWay::TwoPhase) if domains && comm.size() > 1 => {
                let situation = Situation::new(comm, self.array, direction, (requests, &survey))?;
                let all = situation.estimates(comm)?;
                all.into_iter().find(|estimate| estimate.domains.is_some())
            }
            _ => None,
        };
        let way = match (asked, chosen) {
            (CollectiveWay::Auto, chosen) => chosen.map_or(CollectiveWay::TwoPhase, |it| it.way),
            (way, _) => way,
        };
        if let CollectiveWay::Independent(strategy) = way {
            let array = match &self.budget {
                Some(budget) => self.array.staged(survey.limit, budget),
                None => self.array.clone(),
            };
            if let Some(alone) = Independent::new(comm, array, direction, strategy, &survey)? {
                return Ok(Body::Independent(Box::new(alone)));
            }
        }
        // Without messages there is nothing that input and output could overlap.
        let phases = match (self.phases, self.carrier) {
            (Phases::Auto, Carrier::Auto | Carrier::Memory) => Phases::Separate,
            (phases, _) => phases,
        };
        let settings = Settings {
            kind: match domains {
                true => chosen.and_then(|it| it.domains).unwrap_or(self.domains),
                false => self.domains,
            },
            phases,
            window: self.window.unwrap_or(u64::MAX),
            gap: chosen.and_then(|it| it.gap),
        };
        let plan = TwoPhase::new(comm, self.array, direction, settings, survey)?;
        Ok(Body::TwoPhase(Box::new(plan)))
    }

    /// Collective: what each way is expected to take for these sections, the
    /// fastest first; nothing for more ranks than can tell each other everything.
    pub fn estimates(
        &self,
        comm: &Comm,
        section: &Section,
        direction: Direction,
    ) -> Result<Vec<CollectiveEstimate>> {
        let limit = self.array.tuning().buffer();
        let own = self.request(section).map(|request| (request, limit));
        let survey = survey(
            comm,
            self.array,
            self.fingerprint(direction, None),
            own,
            None,
        )?;
        match &survey.requests {
            None => Ok(Vec::new()),
            Some(requests) => {
                Situation::new(comm, self.array, direction, (requests, &survey))?.estimates(comm)
            }
        }
    }

    fn asked_way(&self) -> CollectiveWay {
        let two_phase = self.domains != DomainKind::Auto
            || self.carrier != Carrier::Auto
            || self.phases != Phases::Auto
            || self.window.is_some();
        match (self.way, self.array.tuning().strategy) {
            (CollectiveWay::Auto, _) if two_phase => CollectiveWay::TwoPhase,
            (CollectiveWay::Auto, Strategy::Auto) => CollectiveWay::Auto,
            (CollectiveWay::Auto, strategy) => CollectiveWay::Independent(strategy),
            (way, _) => way,
        }
    }

    fn check(&self, asked: ElementType, direction: Direction) -> Result<()> {
        self.array.check_access(asked, direction)
    }

    fn request(&self, section: &Section) -> Result<Request> {
        Request::new(self.array.layout(), section).map_err(Error::geometry(self.array.name()))
    }

    /// A number in which calls differ that cannot be parts of one.
    fn fingerprint(&self, direction: Direction, pattern: Option<&Pattern>) -> u64 {
        let mut hasher = DefaultHasher::new();
        let descriptor = self.array.descriptor();
        descriptor.shape.hash(&mut hasher);
        descriptor.element_type.hash(&mut hasher);
        descriptor.byte_order.hash(&mut hasher);
        descriptor.arrangement.to_string().hash(&mut hasher);
        self.array.data_offset().hash(&mut hasher);
        (
            direction,
            self.domains,
            self.phases,
            self.window,
            self.carrier,
        )
            .hash(&mut hasher);
        self.array.store().time().is_some().hash(&mut hasher);
        (self.budget.is_some(), self.asked_way()).hash(&mut hasher);
        pattern.map(Pattern::to_string).hash(&mut hasher);
        if self.domains == DomainKind::Disks {
            let striping = self.array.store().striping();
            striping.map(|s| (s.disks(), s.unit())).hash(&mut hasher);
        }
        hasher.finish()
    }
}
