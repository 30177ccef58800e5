//! [`TwoPhase`]: who moves what for whom. A value, made without input or output.

use outcore_transport::Comm;

use super::domains::{DomainKind, Domains, Piece};
use super::request::Request;
use super::survey::Survey;
use crate::array::Array;
use crate::strategy::Direction;

/// The two-phase method for the requests of all ranks, as one rank sees it.
#[derive(Debug)]
pub(super) struct TwoPhase {
    domains: Domains,
    own: Request,
    /// The domains that hold bytes of the own request.
    touched: Vec<usize>,
    /// The requests that want bytes of the own domain, by rank.
    touching: Vec<(usize, Request)>,
    domain: Option<usize>,
    window: u64,
    rounds: u64,
    gap: u64,
}

impl TwoPhase {
    pub(super) fn new(
        comm: &Comm,
        array: &Array,
        direction: Direction,
        kind: DomainKind,
        survey: Survey,
    ) -> Self {
        let Survey { requests, window } = survey;
        let filled = requests
            .iter()
            .filter(|request| request.start < request.end);
        let start = filled.clone().map(|request| request.start).min();
        let end = filled.map(|request| request.end).max();
        let bounds = (start.unwrap_or(0), end.unwrap_or(0));
        let domains = Domains::new(kind, array.layout(), bounds, comm.size());
        let domain = domains.of_rank(comm.rank());
        let lengths = (0..domains.count()).map(|domain| domains.length(domain));
        let element = array.layout().element_size();
        let longest = lengths.max().unwrap_or(0).max(element);
        let window = (window.min(longest) / element * element).max(element);
        let own = requests[comm.rank()].clone();
        let touches = |request: &Request| domain.is_some_and(|own| domains.touches(own, request));
        let touching: Vec<(usize, Request)> = requests
            .into_iter()
            .enumerate()
            .filter(|(_, request)| touches(request))
            .collect();
        Self {
            touched: domains.touched(&own),
            gap: array.gap(bounds, direction),
            rounds: longest.div_ceil(window),
            domains,
            own,
            touching,
            domain,
            window,
        }
    }

    /// What this rank asks for.
    pub(super) fn own(&self) -> &Request {
        &self.own
    }

    /// Who wants bytes of the own domain, in the order of the ranks.
    pub(super) fn touching(&self) -> &[(usize, Request)] {
        &self.touching
    }

    /// How many rounds all ranks take part in.
    pub(super) fn rounds(&self) -> u64 {
        self.rounds
    }

    /// Gaps of so many bytes are moved along.
    pub(super) fn gap(&self) -> u64 {
        self.gap
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
