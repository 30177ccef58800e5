//! [`TwoPhase`]: who moves what for whom. A value, made without input or output.
//!
//! Ranks that ask for the same section are one group. A read packs the bytes of
//! a group once and sends them to all its ranks; of a write only the highest
//! rank's data count, and the others send nothing.

use std::collections::HashMap;

use outcore_geometry::Section;
use outcore_transport::Comm;

use super::domains::{Domains, Piece};
use super::kind::DomainKind;
use super::memory::Need;
use super::moved::Moved;
use super::request::Request;
use super::weights::Weights;
use crate::array::Array;
use crate::error::Result;
use crate::strategy::Direction;

/// Among more groups than this it is not looked for two that overlap.
const COMPARED: usize = 64;

/// Whether input and output go on beside the exchange.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Phases {
    /// If there is more than one round.
    #[default]
    Auto,
    /// No: in every round first the one and then the other.
    Separate,
    /// Yes: those of one window with the exchange of another one.
    Pipelined,
}

/// The ranks that ask for one section.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) ranks: Vec<usize>,
    pub(super) request: Request,
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

impl TwoPhase {
    /// The plan of `requests`, one of each rank, with windows of at most `most`
    /// bytes in a memory of `limit`.
    pub(super) fn new(
        comm: &Comm,
        array: &Array,
        direction: Direction,
        kind: DomainKind,
        phases: Phases,
        requests: Vec<Request>,
        (limit, most): (u64, u64),
    ) -> Result<Self> {
        let filled = || {
            requests
                .iter()
                .filter(|request| request.start < request.end)
        };
        let bounds = (
            filled().map(|request| request.start).min().unwrap_or(0),
            filled().map(|request| request.end).max().unwrap_or(0),
        );
        let domains = Domains::new(kind, array, bounds, comm.size(), || {
            let mut weights = Weights::new(bounds);
            requests.iter().for_each(|request| weights.add(request));
            weights
        })?;
        let own = requests[comm.rank()].clone();
        let groups = groups(requests, direction);
        let disjoint = are_disjoint(&groups);
        let element = array.layout().element_size();
        let bytes = |request: &Request| request.section.count() * element;
        // Several pieces of a message are brought together on the way.
        let unpacked = match array.layout().tile() {
            None if !domains.are_scattered() => 0,
            _ => groups
                .iter()
                .map(|group| bytes(&group.request))
                .max()
                .unwrap_or(0),
        };
        let mut need = Need {
            images: if phases == Phases::Pipelined { 2 } else { 1 },
            depth: if disjoint { 1 } else { groups.len() as u64 },
            bytes: groups
                .iter()
                .map(|group| bytes(&group.request))
                .fold(0, u64::saturating_add),
            unpacked,
            requests: comm.size() as u64,
            domains: domains.count() as u64,
            element,
        };
        let longest = domains.longest();
        let most = most.min(longest);
        if phases == Phases::Auto && need.window(limit, most) < longest {
            need.images = 2;
        }
        let window = need.window(limit, most);
        let domain = domains.of_rank(comm.rank());
        // Its data count, if nobody above writes the same section.
        let heard = |group: &Group| group.ranks.contains(&comm.rank());
        let touched = match groups.iter().any(heard) {
            true => domains.touched(&own),
            false => Vec::new(),
        };
        let mut touching = groups;
        touching.retain(|group| domain.is_some_and(|own| domains.touches(own, &group.request)));
        Ok(Self {
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
        })
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

/// The requests that ask for anything, each section once, in the order of the
/// highest rank that asks for it. For a write that rank is the only one.
fn groups(requests: Vec<Request>, direction: Direction) -> Vec<Group> {
    let mut known: HashMap<Section, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (rank, request) in requests.into_iter().enumerate() {
        if request.start == request.end {
            continue;
        }
        let group = *known.entry(request.section.clone()).or_insert(groups.len());
        match groups.get_mut(group) {
            None => groups.push(Group {
                ranks: vec![rank],
                request,
            }),
            Some(group) if direction == Direction::Write => group.ranks = vec![rank],
            Some(group) => group.ranks.push(rank),
        }
    }
    groups.sort_by_key(|group| group.ranks.last().copied());
    groups
}

/// Whether no two groups have an element in common, as far as it is looked.
fn are_disjoint(groups: &[Group]) -> bool {
    let meet = |a: &Request, b: &Request| {
        a.start < b.end
            && b.start < a.end
            && a.section
                .intersect(&b.section)
                .is_ok_and(|both| !both.is_empty())
    };
    groups.len() <= COMPARED
        && groups.iter().enumerate().all(|(at, one)| {
            let others = groups[at + 1..].iter();
            !others
                .into_iter()
                .any(|other| meet(&one.request, &other.request))
        })
}
