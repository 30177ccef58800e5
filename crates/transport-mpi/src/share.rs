//! Memory that the ranks of a node reach for as long as they like.
//!
//! Each rank makes a segment and maps those of the others. The file of a
//! segment is closed when all have mapped it, and the memory goes with the last
//! mapping: so nobody takes it away from who still holds it.

use std::hash::{BuildHasher, RandomState};
use std::process;
use std::sync::Arc;

use outcore_transport::{Error, Result, Shared};

use crate::all_gather::all_gather;
use crate::group::{Group, Lane};
use crate::kernel_copy;
use crate::segment::{Segment, Ticket};

/// What a rank says before the others look for its memory: where it is, if it
/// has any for others; whether it has none at all; and its process, an address
/// there and the number that stands at it.
const SAID: usize = Ticket::BYTES + 1 + 3 * 8;

/// Keeps what a rank has mapped.
struct Keeper {
    _segments: Vec<Option<Segment>>,
    /// If its own is no segment.
    _own: Option<Shared>,
}

/// Collective: `bytes` of this rank, and those of the others that it reaches.
pub(crate) fn share(group: &Group, lanes: [Lane; 2], bytes: usize) -> Result<Shared> {
    let (rank, size) = (group.rank, group.members.len());
    // 1. Make it, and tell the others where it is. Where nothing can be shared,
    //    a rank has memory for itself.
    let made = Segment::create(bytes.max(1));
    let own = match &made {
        Some(_) => None,
        None => Some(Shared::alone(rank, size, bytes)),
    };
    let mut said = Ticket::encode(made.as_ref().map(|&(_, _, ticket)| ticket)).to_vec();
    said.push(u8::from(matches!(own, Some(Err(_)))));
    let token = RandomState::new().hash_one(rank);
    for word in [u64::from(process::id()), (&raw const token) as u64, token] {
        said.extend_from_slice(&word.to_ne_bytes());
    }
    let told = all_gather(group, lanes[0], &said)?;
    let told: Vec<&[u8]> = told.chunks(SAID).collect();
    if let Some(rank) = told.iter().position(|said| said[Ticket::BYTES] != 0) {
        let cause = "there is no memory to share".into();
        return Err(Error::Agreed { rank, cause });
    }
    // 2. Map that of the others, and try whether the kernel copies from there;
    //    all keep their files until all have.
    let mut segments: Vec<Option<Segment>> = (told.iter().enumerate())
        .map(|(peer, said)| (peer != rank).then(|| Ticket::decode(said))?)
        .map(|ticket| ticket.and_then(Segment::open))
        .collect();
    let processes = segments.iter().zip(&told).map(|(segment, said)| {
        let word = |at: usize| said.get(Ticket::BYTES + 1 + 8 * at..)?.first_chunk();
        let word = |at: usize| word(at).map(|&word| u64::from_ne_bytes(word));
        let (process, address, token) = (word(0)? as u32, word(1)?, word(2)?);
        let mut found = [0; 8];
        let copies = segment.is_some()
            && kernel_copy::are_wanted()
            && kernel_copy::copy_from(process, address, &mut found);
        (copies && u64::from_ne_bytes(found) == token).then_some(process)
    });
    let mut processes: Vec<_> = processes.collect();
    processes[rank] = kernel_copy::are_wanted().then(process::id);
    // The first time tells; later ones would say the same.
    let _ = group.processes.set(processes);
    let lens: Vec<u8> = all_gather(group, lanes[1], &(bytes as u64).to_le_bytes())?;
    let file = made.map(|(segment, file, _)| {
        segments[rank] = Some(segment);
        file
    });
    drop(file);
    // 3. Where everything is.
    let own = own.transpose()?;
    let mut parts: Vec<Option<(*mut u8, usize)>> = (segments.iter())
        .zip(lens.chunks_exact(8))
        .map(|(segment, len)| {
            let len = len.first_chunk().map_or(0, |&len| u64::from_le_bytes(len));
            let segment = segment.as_ref()?;
            Some((segment.start(), segment.len().min(len as usize)))
        })
        .collect();
    if let Some(own) = &own {
        parts[rank] = Some(own.own());
    }
    let keeper = Arc::new(Keeper {
        _segments: segments,
        _own: own,
    });
    // SAFETY: segments begin as zeros, at pages, and all are mapped until the
    // keeper goes.
    Ok(unsafe { Shared::new(rank, &parts, keeper) })
}
