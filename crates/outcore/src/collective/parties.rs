//! [`Parties`]: whose bytes lie in which domains.
//!
//! Ranks that ask for the same section are one group. A read packs the bytes of
//! a group once and sends them to all its ranks; of a write only the highest
//! rank's data count, and the others send nothing. Among many ranks nobody
//! knows all sections: each is told to the ranks whose domains it touches, and
//! writers do not know of others with the same section.

use std::collections::HashMap;

use outcore_geometry::{Layout, Section};
use outcore_transport::Comm;

use super::domains::Domains;
use super::memory::Need;
use super::request::Request;
use super::survey::Survey;
use crate::array::Array;
use crate::error::Result;
use crate::strategy::Direction;

/// Among more groups than this it is not looked for two that overlap.
const COMPARED: usize = 64;

/// The ranks that ask for one section.
#[derive(Debug, Clone)]
pub(super) struct Group {
    pub(super) ranks: Vec<usize>,
    pub(super) request: Request,
}

/// Whom one rank has to do with.
#[derive(Debug)]
pub(super) struct Parties {
    /// The domains that hold bytes which the own request gets or gives.
    pub(super) touched: Vec<usize>,
    /// The groups that want bytes of the own domain, by their highest rank.
    pub(super) touching: Vec<Group>,
    /// Whether no two groups have an element in common.
    pub(super) disjoint: bool,
    /// The memory that all this takes, the same on all ranks.
    pub(super) need: Need,
}

impl Parties {
    /// Collective if there are many ranks.
    pub(super) fn new(
        comm: &Comm,
        array: &Array,
        direction: Direction,
        domains: &Domains,
        survey: Survey,
    ) -> Result<Self> {
        let layout = array.layout();
        if let Some(requests) = survey.requests {
            let requests = requests.into_iter().enumerate().collect();
            return Ok(Self::among_few(
                layout,
                direction,
                domains,
                (comm.rank(), &survey.own),
                requests,
            ));
        }
        let touched = domains.touched(&survey.own);
        let words = survey.own.words();
        let messages = touched.iter().map(|at| (domains.rank(*at), words.clone()));
        let told = comm.deliver(messages.collect())?;
        let parties = Self::among_many(layout, direction, domains, &survey.own, touched, told);
        let (failed, need) = match &parties {
            Ok(parties) => (0, parties.need.numbers()),
            Err(_) => (1, [0; 5]),
        };
        let joined = comm.all_join(&[(&need[..]), &[failed]].concat(), |first, then| {
            let pairs = first.iter_mut().zip(then);
            pairs.for_each(|(first, then)| *first = (*first).max(*then));
        })?;
        let mut parties = match joined[need.len()] != 0 {
            true => comm.agree(parties)?,
            false => parties?,
        };
        parties.need.set_numbers(&joined);
        Ok(parties)
    }

    /// Of one rank among few, which know each other's requests.
    pub(super) fn among_few(
        layout: &Layout,
        direction: Direction,
        domains: &Domains,
        (rank, own): (usize, &Request),
        requests: Vec<(usize, Request)>,
    ) -> Self {
        let ranks = requests.len();
        let groups = groups(requests, direction == Direction::Write);
        let disjoint = are_disjoint(&groups);
        let need = need(
            layout,
            domains,
            &groups,
            disjoint,
            (ranks, domains.count()),
            groups.iter().map(|group| &group.request),
        );
        // Its data count, if nobody above writes the same section.
        let heard = |group: &Group| group.ranks.contains(&rank);
        let touched = match groups.iter().any(heard) {
            true => domains.touched(own),
            false => Vec::new(),
        };
        let domain = domains.of_rank(rank);
        let mut touching = groups;
        touching.retain(|group| domain.is_some_and(|own| domains.touches(own, &group.request)));
        Self {
            touched,
            touching,
            disjoint,
            need,
        }
    }

    /// What a rank makes of the sections that touch its domain.
    pub(super) fn among_many(
        layout: &Layout,
        direction: Direction,
        domains: &Domains,
        own: &Request,
        touched: Vec<usize>,
        told: Vec<(usize, Vec<u64>)>,
    ) -> Result<Self> {
        let ranks = told.len();
        let request = |(rank, words): (usize, Vec<u64>)| {
            let request = Request::of_words(layout, &words)?;
            Ok((rank, request))
        };
        let requests: Result<Vec<_>> = told.into_iter().map(request).collect();
        let touching = match direction {
            Direction::Read => groups(requests?, false),
            Direction::Write => requests?.into_iter().map(Group::of_one).collect(),
        };
        let disjoint = are_disjoint(&touching);
        let need = need(
            layout,
            domains,
            &touching,
            disjoint,
            (ranks, touched.len()),
            std::iter::once(own),
        );
        Ok(Self {
            touched,
            touching,
            disjoint,
            need,
        })
    }
}

impl Group {
    fn of_one((rank, request): (usize, Request)) -> Self {
        Self {
            ranks: vec![rank],
            request,
        }
    }
}

/// The memory for messages to and from groups; with so many requests and
/// domains, and the largest of some requests in pieces.
fn need<'a>(
    layout: &Layout,
    domains: &Domains,
    groups: &[Group],
    disjoint: bool,
    (requests, touched): (usize, usize),
    receivers: impl Iterator<Item = &'a Request>,
) -> Need {
    let element = layout.element_size();
    let bytes = |request: &Request| request.section.count() * element;
    // Several pieces of a message are brought together on the way.
    let in_pieces = layout.tile().is_some() || domains.are_scattered();
    Need {
        images: 1,
        depth: if disjoint { 1 } else { groups.len() as u64 },
        bytes: groups
            .iter()
            .map(|group| bytes(&group.request))
            .fold(0, u64::saturating_add),
        unpacked: match in_pieces {
            true => receivers.map(bytes).max().unwrap_or(0),
            false => 0,
        },
        requests: requests as u64,
        domains: touched as u64,
        element,
        smallest: element,
    }
}

/// The requests that ask for anything, each section once, in the order of the
/// highest rank that asks for it. If only the highest counts, it is the only
/// one.
fn groups(requests: Vec<(usize, Request)>, highest_only: bool) -> Vec<Group> {
    let mut known: HashMap<Section, usize> = HashMap::new();
    let mut groups: Vec<Group> = Vec::new();
    for (rank, request) in requests {
        if request.start == request.end {
            continue;
        }
        let group = *known.entry(request.section.clone()).or_insert(groups.len());
        match groups.get_mut(group) {
            None => groups.push(Group::of_one((rank, request))),
            Some(group) if highest_only => group.ranks = vec![rank],
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
