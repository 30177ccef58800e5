//! The exchange of access information: who asks for what. Nothing is read or
//! written before all ranks know that every rank's arguments are right.

use outcore_transport::{Comm, Error as TransportError};

use super::request::Request;
use crate::array::Array;
use crate::error::Result;

/// What all ranks know after it.
#[derive(Debug)]
pub(super) struct Survey {
    /// What each rank asks for.
    pub(super) requests: Vec<Request>,
    /// The least memory that a rank has.
    pub(super) limit: u64,
}

/// Collective: tells all ranks what this one asks for and how much memory it
/// has, or why it cannot take part. Ranks that differ in `fingerprint`
/// have not made the same call.
pub(super) fn survey(
    comm: &Comm,
    array: &Array,
    fingerprint: u64,
    own: Result<(Request, u64)>,
) -> Result<Survey> {
    let (own, limit) = comm.agree(own)?;
    let mut words = vec![fingerprint, limit];
    words.extend(own.words());
    // From here on all ranks look at the same words, and come to the same end.
    let all = comm.all_gatherv(&words)?;
    if let Some(rank) = all.iter().position(|words| words[0] != all[0][0]) {
        let cause =
            "not the same collective call as that of rank 0: another array, direction or way";
        let cause = cause.into();
        return Err(TransportError::Agreed { rank, cause }.into());
    }
    let requests = all
        .iter()
        .map(|words| Request::of_words(array.layout(), &words[2..]));
    Ok(Survey {
        requests: requests.collect::<Result<_>>()?,
        limit: all.iter().map(|words| words[1]).fold(limit, u64::min),
    })
}
