//! The exchange of access information: who asks for what. Nothing is read or
//! written before all ranks know that every rank's arguments are right.
//!
//! Up to [`FEW`] ranks tell each other everything in one step; only sections
//! with lists or many axes take a second one. More ranks join what they have
//! in common along a tree, and later tell their sections to those who need
//! them, so no rank has to do with all others.

use outcore_geometry::Pattern;
use outcore_transport::{Comm, Error as TransportError};

use super::request::{Request, bounds_of};
use super::weights::Weights;
use crate::array::Array;
use crate::error::{Error, Result};

/// Up to so many ranks everybody knows what everybody asks for.
pub(super) const FEW: usize = 256;

/// The words of a section of three axes without a list.
const INLINE: usize = 13;

/// What all ranks know after it.
#[derive(Debug)]
pub(super) struct Survey {
    /// What this rank asks for.
    pub(super) own: Request,
    /// The least memory that a rank has.
    pub(super) limit: u64,
    /// From the first to the last byte that anybody asks for.
    pub(super) bounds: (u64, u64),
    /// What each rank asks for, if there are few.
    pub(super) requests: Option<Vec<Request>>,
}

/// Collective: tells all ranks what this one asks for and how much memory it
/// has, or why it cannot take part. Ranks that differ in `fingerprint`
/// have not made the same call. What a `pattern` says of each rank need not be
/// told.
pub(super) fn survey(
    comm: &Comm,
    array: &Array,
    fingerprint: u64,
    own: Result<(Request, u64)>,
    pattern: Option<&Pattern>,
) -> Result<Survey> {
    match comm.size() <= FEW {
        true => among_few(comm, array, fingerprint, own, pattern),
        false => among_many(comm, fingerprint, own),
    }
}

const OTHER: &str =
    "not the same collective call as that of rank 0: another array, direction or way";

fn among_few(
    comm: &Comm,
    array: &Array,
    fingerprint: u64,
    own: Result<(Request, u64)>,
    pattern: Option<&Pattern>,
) -> Result<Survey> {
    let layout = array.layout();
    // Failed or not, fingerprint, limit, and the words of a section if they are
    // few, after their number.
    let mut terms = [0; 4 + INLINE];
    let words = match &own {
        Ok((request, _)) => request.words(),
        Err(_) => Vec::new(),
    };
    let limit = own.as_ref().map_or(0, |own| own.1);
    let failed = u64::from(own.is_err());
    terms[..4].copy_from_slice(&[failed, fingerprint, limit, words.len() as u64]);
    if let Some(inline) = terms[4..].get_mut(..words.len()) {
        inline.copy_from_slice(&words);
    }
    // From here on all ranks look at the same numbers, and come to the same end.
    let all = comm.all_gather(&[terms])?;
    let own = match all.iter().any(|terms| terms[0] != 0) {
        true => comm.agree(own)?.0,
        false => own?.0,
    };
    if let Some(rank) = all.iter().position(|terms| terms[1] != all[0][1]) {
        let cause = OTHER.into();
        return Err(TransportError::Agreed { rank, cause }.into());
    }
    let requests: Result<Vec<Request>> = if let Some(pattern) = pattern {
        let ranks = 0..comm.size() as u64;
        let of_rank = |rank| {
            let section = pattern.section(layout.shape(), rank, comm.size() as u64)?;
            Request::new(layout, &section)
        };
        ranks
            .map(|rank| of_rank(rank).map_err(Error::geometry(array.name())))
            .collect()
    } else if all.iter().all(|terms| terms[3] <= INLINE as u64) {
        let inline = all.iter().map(|terms| &terms[4..][..terms[3] as usize]);
        inline
            .map(|words| Request::of_words(layout, words))
            .collect()
    } else {
        let all = comm.all_gatherv(&words)?;
        let requests = all.iter().map(|words| Request::of_words(layout, words));
        requests.collect()
    };
    let requests = requests?;
    Ok(Survey {
        own,
        limit: all.iter().map(|terms| terms[2]).min().unwrap_or(limit),
        bounds: bounds_of(&requests),
        requests: Some(requests),
    })
}

/// What many ranks have in common: some failed or not, the fingerprint of the
/// first and whether others differ, the least limit, and the bounds.
pub(super) type Joined = [u64; 6];

pub(super) fn joined(own: &Result<(Request, u64)>, fingerprint: u64) -> Joined {
    match own {
        Ok((request, limit)) if request.start < request.end => {
            [0, fingerprint, 0, *limit, request.start, request.end]
        }
        Ok((_, limit)) => [0, fingerprint, 0, *limit, u64::MAX, 0],
        Err(_) => [1, fingerprint, 0, 0, u64::MAX, 0],
    }
}

pub(super) fn join(first: &mut Joined, then: &Joined) {
    first[0] |= then[0];
    first[2] |= then[2] | u64::from(then[1] != first[1]);
    first[3] = first[3].min(then[3]);
    first[4] = first[4].min(then[4]);
    first[5] = first[5].max(then[5]);
}

fn among_many(comm: &Comm, fingerprint: u64, own: Result<(Request, u64)>) -> Result<Survey> {
    let all = comm.all_join(&[joined(&own, fingerprint)], |first, then| {
        join(&mut first[0], &then[0]);
    })?;
    let [failed, first, differ, limit, start, end] = all[0];
    let own = match failed != 0 {
        true => comm.agree(own)?.0,
        false => own?.0,
    };
    if differ != 0 {
        comm.agree(match fingerprint == first {
            true => Ok(()),
            false => Err(OTHER),
        })?;
    }
    Ok(Survey {
        own,
        limit,
        bounds: (start.min(end), end),
        requests: None,
    })
}

impl Survey {
    /// Collective if there are many ranks: how many bytes are asked for where.
    pub(super) fn weights(&self, comm: &Comm) -> Result<Weights> {
        if let Some(requests) = &self.requests {
            return Ok(Weights::of(self.bounds, requests));
        }
        let mut weights = Weights::of(self.bounds, std::slice::from_ref(&self.own));
        weights.join(comm)?;
        Ok(weights)
    }
}
