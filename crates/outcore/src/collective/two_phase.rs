//! [`TwoPhase`]: who moves what for whom. A value, made without input or output.

use outcore_transport::Comm;

use super::domains::{Domains, Piece};
use super::kind::DomainKind;
use super::memory::{Need, smallest_window};
use super::moved::Moved;
use super::parties::{Group, Parties};
use super::request::Request;
use super::survey::Survey;
use crate::array::Array;
use crate::error::Result;
use crate::strategy::Direction;

/// Whether input and output go on beside the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phases {
    /// If messages are asked for and there is more than one round.
    #[default]
    Auto,
    /// No: in every round first the one and then the other.
    Separate,
    /// Yes: those of one window with the exchange of another one.
    Pipelined,
}

/// What is chosen about the two-phase method.
#[derive(Debug, Clone, Copy)]
pub(super) struct Settings {
    pub(super) kind: DomainKind,
    pub(super) phases: Phases,
    /// The most bytes of a window.
    pub(super) window: u64,
    /// The gaps that are moved along, if not what is usual.
    pub(super) gap: Option<u64>,
}

/// The two-phase method for the requests of all ranks, as one rank sees it.
#[derive(Debug)]
pub(super) struct TwoPhase {
    domains: Domains,
    own: Request,
    /// The domains that hold bytes which the own request gets or gives.
    touched: Vec<usize>,
    /// The groups that want bytes of the own domain, by their highest rank.
    touching: Vec<Group>,
    domain: Option<usize>,
    /// Whether no two groups have an element in common.
    disjoint: bool,
    need: Need,
    window: u64,
    rounds: u64,
    gap: u64,
    /// Whether windows are read in full.
    whole: bool,
}

/// The bytes of the windows of a plan of few ranks with so much memory, with
/// separate phases.
pub(super) fn planned_window(
    array: &Array,
    direction: Direction,
    domains: &Domains,
    requests: &[Request],
    limit: u64,
) -> u64 {
    let all = requests.iter().cloned().enumerate().collect();
    let parties = Parties::among_few(array.layout(), direction, domains, (0, &requests[0]), all);
    let mut need = parties.need;
    need.images = 1;
    need.window(limit, domains.longest())
}

impl TwoPhase {
    /// The plan for what a survey found. Collective if there are many ranks.
    pub(super) fn new(
        comm: &Comm,
        array: &Array,
        direction: Direction,
        settings: Settings,
        survey: Survey,
    ) -> Result<Self> {
        let (bounds, limit) = (survey.bounds, survey.limit);
        let weights = || survey.weights(comm);
        let domains = Domains::new(settings.kind, array, bounds, comm.size(), weights)?;
        let own = survey.own.clone();
        let parties = Parties::new(comm, array, direction, &domains, survey)?;
        let plan = Self::of(
            array,
            direction,
            domains,
            (comm.rank(), own),
            parties,
            settings.phases,
            (bounds, (limit, settings.window)),
        );
        Ok(Self {
            gap: settings.gap.unwrap_or(plan.gap),
            ..plan
        })
    }

    /// The plan of one rank, whose parties are known.
    pub(super) fn of(
        array: &Array,
        direction: Direction,
        domains: Domains,
        (rank, own): (usize, Request),
        parties: Parties,
        phases: Phases,
        (bounds, (limit, most)): ((u64, u64), (u64, u64)),
    ) -> Self {
        let Parties {
            touched,
            touching,
            disjoint,
            mut need,
        } = parties;
        let longest = domains.longest();
        let most = most.min(longest);
        need.images = if phases == Phases::Pipelined { 2 } else { 1 };
        need.smallest = smallest_window(array).min(longest).max(need.element);
        if phases == Phases::Auto && need.window(limit, most) < longest {
            need.images = 2;
        }
        let window = need.window(limit, most);
        let domain = domains.of_rank(rank);
        Self {
            whole: domains.are_read_whole() && direction == Direction::Read,
            gap: array.gap(bounds, direction),
            rounds: longest.div_ceil(window),
            touched,
            domains,
            own,
            touching,
            domain,
            disjoint,
            need,
            window,
        }
    }

    /// What this rank asks for.
    pub(super) fn own(&self) -> &Request {
        &self.own
    }

    /// Who wants bytes of the own domain, in the order of the highest ranks.
    pub(super) fn touching(&self) -> &[Group] {
        &self.touching
    }

    /// Whether no two of them have an element in common.
    pub(super) fn is_disjoint(&self) -> bool {
        self.disjoint
    }

    /// The bytes of the longest domain.
    pub(super) fn longest(&self) -> u64 {
        self.domains.longest()
    }

    /// The bytes of a window.
    pub(super) fn window(&self) -> u64 {
        self.window
    }

    /// How many rounds all ranks take part in.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// How many windows are in memory at a time.
    pub(super) fn windows(&self) -> usize {
        self.need.images as usize
    }

    /// Whether input and output go on beside the exchange.
    pub(super) fn is_pipelined(&self) -> bool {
        self.need.images > 1
    }

    /// Gaps of so many bytes are moved along.
    pub(super) fn gap(&self) -> u64 {
        self.gap
    }

    /// What is known of an execution before it begins.
    pub(super) fn begun(&self) -> Moved {
        Moved {
            rounds: self.rounds,
            useful: self.bytes(&self.own),
            ..Moved::default()
        }
    }

    /// The bytes of a request.
    pub(super) fn bytes(&self, request: &Request) -> u64 {
        request.section.count() * self.need.element
    }

    /// The memory that it takes, and the least with which it could do.
    pub(super) fn need(&self) -> (u64, u64) {
        (self.need.of(self.window), self.need.least())
    }

    /// Whether windows are read in full, whatever is wanted of them.
    pub(super) fn is_whole(&self) -> bool {
        self.whole
    }

    /// Whether wanted bytes have the same order in file and buffer.
    pub(super) fn is_ordered(&self) -> bool {
        self.own.runs.is_ordered()
    }

    /// The pieces of window `k` of the own domain.
    pub(super) fn own_pieces(&self, k: u64) -> impl Iterator<Item = Piece> {
        let domain = self.domain.into_iter();
        domain.flat_map(move |domain| self.domains.pieces(domain, k, self.window))
    }

    /// The pieces of window `k` of all domains that hold bytes of the own
    /// request, each with the rank that has it.
    pub(super) fn wanted_pieces(&self, k: u64) -> impl Iterator<Item = (usize, Piece)> {
        self.touched.iter().flat_map(move |domain| {
            let pieces = self.domains.pieces(*domain, k, self.window);
            pieces.map(|piece| (self.domains.rank(*domain), piece))
        })
    }
}
