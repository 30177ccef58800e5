//! [`RedistributionPlan`]: moving arrays between distributions, in memory.
//!
//! After Thakur 1995, chapter 3. A plan is made from the two distributions
//! alone: no rank has to tell another anything, and no table has more entries
//! than the runs of one period (`outcore_geometry::Redistribution`). It is a
//! value: kept, printed, used for any number of arrays, of elements of any
//! size, several of them at once, and backwards (circular redistribution,
//! section 3.7, for which the thesis saves tables as well).
//!
//! How the data get from rank to rank is in `step`; the ways of the thesis to
//! split the work into several redistributions are the [`RedistributionMethod`]s.
//! All give the same result. `auto` takes one step, always: the tables of one
//! step cost microseconds here, which is what two steps were to save, and every
//! step moves all data.

mod loom;
mod nest;
mod packets;
mod step;

use std::fmt;
use std::str::FromStr;
use std::sync::{Mutex, PoisonError};

use bytemuck::Pod;
use outcore_geometry::{
    AlignedDistribution, ArraySide, AxisDistribution, DistributedAxis, Distribution,
    Redistribution, Section, shape_text,
};
use outcore_transport::{Comm, NodeMemory};

use crate::collective::Carrier;
use crate::distributed::DistributedArray;
use crate::error::{Error, Result};
use packets::Kept;
use step::Step;

/// So many arrays move in one call; more in several.
const BATCH: usize = 12;

fn wrong(problem: String) -> Error {
    Error::Invalid(problem)
}

/// In which steps an array gets from one distribution to another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum RedistributionMethod {
    /// What is expected to be fastest: one step.
    #[default]
    Auto,
    /// One step, from any block size to any other (section 3.5.3).
    General,
    /// By way of CYCLIC(gcd(x, y)) along every axis that is divided.
    Gcd,
    /// By way of CYCLIC(lcm(x, y)) along every axis that is divided.
    Lcm,
    /// All axes in one step (section 3.6); the same as [`Self::General`], since
    /// the exchange of several axes is the product of theirs.
    Direct,
    /// One axis after the other, where every grid in between has ranks enough;
    /// elsewhere in one step.
    ByAxis,
}

impl RedistributionMethod {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Auto,
        Self::General,
        Self::Gcd,
        Self::Lcm,
        Self::Direct,
        Self::ByAxis,
    ];

    /// The name in texts.
    pub fn name(self) -> &'static str {
        match self {
            Self::Auto => "auto",
            Self::General => "general",
            Self::Gcd => "gcd",
            Self::Lcm => "lcm",
            Self::Direct => "direct",
            Self::ByAxis => "by-axis",
        }
    }
}

impl fmt::Display for RedistributionMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for RedistributionMethod {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|method| method.name() == text);
        known.ok_or_else(|| {
            wrong(format!(
                "'{text}' is no way to redistribute: auto, general, gcd, lcm, direct and by-axis are"
            ))
        })
    }
}

/// When messages are placed that come from several ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Arrival {
    /// When all have come: the thesis' synchronous method.
    #[default]
    Together,
    /// Each when it has come: the asynchronous method.
    AsTheyCome,
}

/// An array before and after it moves: the parts of this rank as bytes.
#[derive(Debug)]
pub struct Transfer<'a> {
    source: &'a [u8],
    target: &'a mut [u8],
    /// The bytes of an element.
    size: usize,
}

impl<'a> Transfer<'a> {
    /// The part before and the part after of elements of `T`.
    pub fn new<T: Pod>(source: &'a [T], target: &'a mut [T]) -> Self {
        Self {
            source: bytemuck::cast_slice(source),
            target: bytemuck::cast_slice_mut(target),
            size: size_of::<T>(),
        }
    }

    /// Both parts as bytes.
    pub fn parts(&mut self) -> (&[u8], &mut [u8]) {
        (self.source, self.target)
    }
}

/// How arrays get from one distribution to another.
///
/// ```
/// use outcore::{Comm, DistributedArray, Distribution, RedistributionPlan};
/// outcore::run(4, |comm: &Comm| {
///     let distribution = |text| Distribution::parse(text, &[1000], 4, None).expect("it fits");
///     let mut rows = DistributedArray::<f64>::new(comm, distribution("cyclic(11)"))?;
///     let mut others = DistributedArray::<f64>::new(comm, distribution("cyclic(3)"))?;
///     rows.fill_with(|index| index[0] as f64);
///     let plan = RedistributionPlan::new(comm, rows.distribution(), others.distribution())?;
///     plan.move_array(comm, &rows, &mut others)?;
///     assert!(others.iter().all(|(index, value)| index[0] as f64 == *value));
///     // The same plan, backwards.
///     plan.move_back(comm, &others, &mut rows)?;
///     Ok::<(), outcore::Error>(())
/// })?;
/// # Ok::<(), outcore::Error>(())
/// ```
#[derive(Debug)]
pub struct RedistributionPlan {
    method: RedistributionMethod,
    carrier: Carrier,
    arrival: Arrival,
    steps: Vec<Step>,
    place: (usize, usize),
    /// Of each step, and between them.
    kept: Mutex<(Vec<Kept>, Stations)>,
}

/// What a plan of several steps keeps for the arrays in between: memory for
/// elements of one size.
#[derive(Debug, Default)]
struct Stations {
    size: usize,
    memory: Vec<Between>,
}

/// Memory for an array between two steps.
#[derive(Debug)]
enum Between {
    Node(NodeMemory),
    Own(Vec<u8>),
}

impl Between {
    /// Collective: memory of so many bytes, that others reach if possible.
    fn new(comm: &Comm, bytes: usize) -> Result<Self> {
        Ok(match comm.node_memory(bytes)? {
            Some(memory) => Self::Node(memory),
            None => Self::Own(vec![0; bytes]),
        })
    }

    fn bytes(&mut self) -> &mut [u8] {
        match self {
            Self::Node(memory) => memory,
            Self::Own(memory) => memory,
        }
    }
}

impl RedistributionPlan {
    /// From one distribution of an array to another.
    pub fn new(comm: &Comm, from: &AlignedDistribution, to: &AlignedDistribution) -> Result<Self> {
        Self::with_method(comm, from, to, RedistributionMethod::Auto)
    }

    /// The same in the steps of `method`.
    pub fn with_method(
        comm: &Comm,
        from: &AlignedDistribution,
        to: &AlignedDistribution,
        method: RedistributionMethod,
    ) -> Result<Self> {
        if from.shape() != to.shape() {
            return Err(wrong(format!(
                "an array of shape {} cannot be redistributed to one of shape {}",
                shape_text(from.shape()),
                shape_text(to.shape())
            )));
        }
        let stations = match method {
            RedistributionMethod::Gcd => through(from, to, gcd),
            RedistributionMethod::Lcm => {
                through(from, to, |x, y| (x / gcd(x, y)).saturating_mul(y))
            }
            RedistributionMethod::ByAxis => by_axis(from, to, comm.size() as u64),
            _ => Vec::new(),
        };
        let all: Vec<&AlignedDistribution> = std::iter::once(from)
            .chain(&stations)
            .chain(std::iter::once(to))
            .collect();
        let steps: Result<Vec<_>> = all
            .windows(2)
            .map(|pair| Redistribution::between(pair[0], pair[1]).map_err(invalid))
            .collect();
        Self::of(comm, steps?, method)
    }

    /// From a section of an array to a section of another one.
    pub fn of_sections(
        comm: &Comm,
        from: (&AlignedDistribution, &Section),
        to: (&AlignedDistribution, &Section),
    ) -> Result<Self> {
        let side = |(array, section): (&AlignedDistribution, &Section)| {
            ArraySide::section(array, section).map_err(invalid)
        };
        let what = Redistribution::new(side(from)?, side(to)?).map_err(invalid)?;
        Self::of(comm, vec![what], RedistributionMethod::Auto)
    }

    /// From an array to one rank, which gets all of it.
    pub(crate) fn to_rank(comm: &Comm, from: &AlignedDistribution, root: usize) -> Result<Self> {
        let whole = ArraySide::on_rank(from.shape(), root as u64).map_err(invalid)?;
        let what = Redistribution::new(ArraySide::whole(from), whole).map_err(invalid)?;
        Self::of(comm, vec![what], RedistributionMethod::Auto)
    }

    fn of(comm: &Comm, steps: Vec<Redistribution>, method: RedistributionMethod) -> Result<Self> {
        for side in steps.iter().flat_map(|step| [step.source(), step.target()]) {
            check_ranks(comm, side.ranks())?;
        }
        Ok(Self {
            method,
            carrier: Carrier::Auto,
            arrival: Arrival::default(),
            steps: steps.into_iter().map(Step::new).collect(),
            place: (comm.rank(), comm.size()),
            kept: Mutex::default(),
        })
    }

    /// With the data carried so between the ranks. With [`Carrier::Auto`], parts
    /// out of the reach of others go through memory of the node, if there is
    /// some, and in messages otherwise.
    pub fn carrier(mut self, carrier: Carrier) -> Self {
        self.carrier = carrier;
        self
    }

    /// With messages placed then.
    pub fn arrival(mut self, arrival: Arrival) -> Self {
        self.arrival = arrival;
        self
    }

    /// How many redistributions it takes.
    pub fn steps(&self) -> usize {
        self.steps.len()
    }

    /// How many tables of copies have been computed so far: at most two for each
    /// step, one for memory and one for messages, when they are first needed.
    pub fn tables(&self) -> usize {
        self.steps.iter().map(Step::tables).sum()
    }

    /// Computes the tables of its carrier now, not when they are first needed,
    /// and returns how many strips they have.
    pub fn prepare(&self, comm: &Comm) -> usize {
        let messages = self.carrier == Carrier::Messages;
        let steps = self.steps.iter();
        steps.map(|step| step.prepare(comm, messages)).sum()
    }

    /// To whom this rank sends how many elements in the first step.
    pub fn partners(&self) -> Vec<(usize, u64)> {
        let sent = self.steps[0].what.sent(self.place.0 as u64).into_iter();
        sent.map(|(rank, count)| (rank as usize, count)).collect()
    }

    /// Collective: moves `from` to `to`.
    pub fn move_array<T: Pod>(
        &self,
        comm: &Comm,
        from: &DistributedArray<T>,
        to: &mut DistributedArray<T>,
    ) -> Result<()> {
        let mut transfers = [Transfer::new(from.local(), to.local_mut())];
        self.run(comm, &mut transfers)
    }

    /// Collective: moves `from`, which is distributed as `to` was before, back.
    pub fn move_back<T: Pod>(
        &self,
        comm: &Comm,
        from: &DistributedArray<T>,
        to: &mut DistributedArray<T>,
    ) -> Result<()> {
        let mut transfers = [Transfer::new(from.local(), to.local_mut())];
        self.run_back(comm, &mut transfers)
    }

    /// Collective: moves several arrays at once, the same on all ranks.
    pub fn run(&self, comm: &Comm, transfers: &mut [Transfer<'_>]) -> Result<()> {
        self.go(comm, transfers, false)
    }

    /// Collective: moves several arrays backwards at once.
    pub fn run_back(&self, comm: &Comm, transfers: &mut [Transfer<'_>]) -> Result<()> {
        self.go(comm, transfers, true)
    }

    fn go(&self, comm: &Comm, transfers: &mut [Transfer<'_>], backwards: bool) -> Result<()> {
        self.check(comm, transfers, backwards)?;
        let mut kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        let (kept, between) = &mut *kept;
        kept.resize_with(self.steps.len(), Kept::default);
        for batch in transfers.chunks_mut(BATCH) {
            if let ([step], [kept]) = (&self.steps[..], &mut kept[..]) {
                self.carry(comm, step, batch, kept, backwards)?;
            } else {
                for transfer in batch {
                    self.in_steps(comm, transfer, (kept, between), backwards)?;
                }
            }
        }
        Ok(())
    }

    /// One array, from station to station.
    fn in_steps(
        &self,
        comm: &Comm,
        transfer: &mut Transfer<'_>,
        (kept, between): (&mut [Kept], &mut Stations),
        backwards: bool,
    ) -> Result<()> {
        let (size, rank) = (transfer.size, comm.rank() as u64);
        // Elements have the same size on all ranks, so they decide alike.
        if between.memory.is_empty() || between.size != size {
            between.memory.clear();
            between.size = size;
            for station in &self.steps[..self.steps.len() - 1] {
                let count = station.what.target().local_count(rank) as usize;
                between.memory.push(Between::new(comm, count * size)?);
            }
        }
        let mut steps: Vec<(&Step, &mut Kept)> = self.steps.iter().zip(kept).collect();
        let memories = between.memory.iter_mut().map(Between::bytes);
        let mut memories: Vec<&mut [u8]> = memories.collect();
        if backwards {
            steps.reverse();
            memories.reverse();
        }
        memories.push(transfer.target);
        let mut source: &[u8] = transfer.source;
        for ((step, kept), target) in steps.into_iter().zip(memories) {
            let mut hop = [Transfer {
                source,
                target,
                size,
            }];
            self.carry(comm, step, &mut hop, kept, backwards)?;
            let [Transfer { target, .. }] = hop;
            source = target;
        }
        Ok(())
    }

    fn carry(
        &self,
        comm: &Comm,
        step: &Step,
        batch: &mut [Transfer<'_>],
        kept: &mut Kept,
        backwards: bool,
    ) -> Result<()> {
        if self.carrier != Carrier::Messages && step.straight(comm, batch, backwards)? {
            return Ok(());
        }
        match self.carrier {
            Carrier::Auto if step.staged(comm, batch, kept, backwards)? => Ok(()),
            Carrier::Memory => Err(wrong(
                "the ranks do not reach one another's parts of the array".into(),
            )),
            _ => step.messages(comm, batch, (kept, self.arrival), backwards),
        }
    }

    /// The parts have the sizes of the plan.
    fn check(&self, comm: &Comm, transfers: &[Transfer<'_>], backwards: bool) -> Result<()> {
        if self.place != (comm.rank(), comm.size()) {
            return Err(wrong(format!(
                "the plan is for rank {} of {}, not for rank {} of {}",
                self.place.0,
                self.place.1,
                comm.rank(),
                comm.size()
            )));
        }
        let (first, last) = (&self.steps[0].what, &self.steps[self.steps.len() - 1].what);
        let sides = match backwards {
            true => [last.target(), first.source()],
            false => [first.source(), last.target()],
        };
        let rank = comm.rank() as u64;
        for transfer in transfers {
            for (side, part) in sides.iter().zip([transfer.source, &*transfer.target]) {
                let elements = side.local_count(rank);
                if elements * transfer.size as u64 != part.len() as u64 {
                    return Err(wrong(format!(
                        "rank {rank} has {elements} elements of the array, but the part has {}",
                        part.len() / transfer.size.max(1)
                    )));
                }
            }
        }
        Ok(())
    }
}

/// Which steps there are, and with whom this rank exchanges what.
impl fmt::Display for RedistributionPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{}: {}",
            self.method,
            count_text(self.steps.len(), "step")
        )?;
        let rank = self.place.0 as u64;
        for step in &self.steps {
            writeln!(f, "  {}", step.what)?;
            for (number, axis) in step
                .what
                .sends(rank, u64::MAX)
                .into_iter()
                .flatten()
                .enumerate()
            {
                writeln!(
                    f,
                    "    axis {number}: {} rounds of {}, and {}",
                    axis.rounds(),
                    count_text(axis.strips().len(), "strip"),
                    count_text(axis.rest().len(), "strip"),
                )?;
            }
            for (to, count) in step.what.sent(rank) {
                writeln!(
                    f,
                    "    to rank {to}: {}",
                    count_text(count as usize, "element")
                )?;
            }
        }
        Ok(())
    }
}

fn count_text(count: usize, what: &str) -> String {
    format!("{count} {what}{}", if count == 1 { "" } else { "s" })
}

fn invalid(error: outcore_geometry::Error) -> Error {
    wrong(error.to_string())
}

/// Refuses a distribution that has more ranks than there are.
pub(crate) fn check_ranks(comm: &Comm, ranks: u64) -> Result<()> {
    match ranks <= comm.size() as u64 {
        true => Ok(()),
        false => Err(wrong(format!(
            "the distribution is for {ranks} ranks, but there are {}",
            comm.size()
        ))),
    }
}

fn gcd(x: u64, y: u64) -> u64 {
    if y == 0 { x } else { gcd(y, x % y) }
}

/// An array that is its own template.
fn plain(aligned: &AlignedDistribution) -> Option<&Distribution> {
    let own = AlignedDistribution::from(aligned.template().clone());
    (own == *aligned).then(|| aligned.template())
}

/// The grid of the source with blocks of `size(x, y)` along every axis that is
/// divided before and after; nothing for arrays that are aligned with others.
fn through(
    from: &AlignedDistribution,
    to: &AlignedDistribution,
    size: impl Fn(u64, u64) -> u64,
) -> Vec<AlignedDistribution> {
    let (Some(from), Some(to)) = (plain(from), plain(to)) else {
        return Vec::new();
    };
    let kind = |(x, y): (&DistributedAxis, &DistributedAxis)| match (x.ranks(), y.ranks()) {
        (1, _) => AxisDistribution::Collapsed,
        (_, 1) => x.kind(),
        _ => AxisDistribution::CyclicSize(size(x.block(), y.block())),
    };
    let kinds: Vec<_> = from.axes().iter().zip(to.axes()).map(kind).collect();
    let middle = Distribution::new(from.shape(), &kinds, from.grid());
    middle.into_iter().map(AlignedDistribution::from).collect()
}

/// One axis after the other: the first ones as they will be, the others as they
/// were; nothing if some grid in between has more than `ranks` ranks.
fn by_axis(
    from: &AlignedDistribution,
    to: &AlignedDistribution,
    ranks: u64,
) -> Vec<AlignedDistribution> {
    let (Some(from), Some(to)) = (plain(from), plain(to)) else {
        return Vec::new();
    };
    let station = |done: usize| {
        let axes = to.axes()[..done].iter().chain(&from.axes()[done..]);
        let kinds: Vec<_> = axes.map(DistributedAxis::kind).collect();
        let grid = [&to.grid()[..done], &from.grid()[done..]].concat();
        let station = Distribution::new(from.shape(), &kinds, &grid).ok();
        station.filter(|station| station.ranks() <= ranks)
    };
    let changed = |done: &usize| from.axes()[*done - 1] != to.axes()[*done - 1];
    let last = (1..=from.axes().len()).rev().find(changed).unwrap_or(0);
    let stations: Option<Vec<_>> = (1..last).filter(changed).map(station).collect();
    let stations = stations.unwrap_or_default().into_iter();
    stations.map(AlignedDistribution::from).collect()
}
