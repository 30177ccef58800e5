//! Messages that nobody has announced, on a communicator of their own.
//!
//! A letter takes the tag of its receiver's group with nothing added. It begins
//! with its length and a number. What does not fit into one message of MPI
//! follows in parts, whose tag has that number added, and which arrive in order.

use std::ffi::c_int;
use std::sync::atomic::{AtomicU16, Ordering};
use std::sync::{Mutex, PoisonError};

use outcore_transport::Result;

use crate::group::{Group, Member};
use crate::operations::largest_message;

/// The length, then the number.
const HEAD: usize = 16;

/// Letters that have begun to arrive at one rank of a group.
#[derive(Debug, Default)]
pub(crate) struct Letterbox(Mutex<Vec<Begun>>);

#[derive(Debug)]
struct Begun {
    /// Its sender in the group and in the world.
    from: usize,
    world_rank: usize,
    number: u16,
    bytes: Vec<u8>,
    whole: usize,
}

fn tag(receiver: Member, number: u16) -> c_int {
    (receiver.context << u16::BITS | u32::from(number)) as c_int
}

/// Sends a letter to rank `to` of `group` and does not wait for it to arrive.
pub(crate) fn send(group: &Group, to: usize, letter: &[u8]) -> Result<()> {
    static NUMBERS: AtomicU16 = AtomicU16::new(1);
    let (member, world) = (group.member(to)?, group.world);
    // Odd, so never 0, which is the tag of beginnings.
    let number = NUMBERS.fetch_add(2, Ordering::Relaxed);
    let (front, rest) = letter.split_at(letter.len().min(largest_message()));
    let mut first = Vec::with_capacity(HEAD + front.len());
    first.extend_from_slice(&(letter.len() as u64).to_le_bytes());
    first.extend_from_slice(&u64::from(number).to_le_bytes());
    first.extend_from_slice(front);
    let parts = rest.chunks(largest_message());
    let messages = [(first, 0)].into_iter();
    let messages = messages.chain(parts.map(|part| (part.to_vec(), number)));
    for (bytes, number) in messages {
        let posted = world.outbox.post(bytes.into_boxed_slice(), |bytes| {
            // SAFETY: the outbox keeps the bytes until the request is complete.
            unsafe {
                let tag = tag(member, number);
                world.letters.start_send(bytes, member.world_rank, tag)
            }
        });
        posted.map_err(|error| group.mistake(error))?;
        world.count_sent(member.world_rank);
    }
    Ok(())
}

/// The next letter for this rank of `group`, if one has arrived.
pub(crate) fn next(group: &Group) -> Result<Option<(usize, Vec<u8>)>> {
    let (own, world) = (group.members[group.rank], group.world);
    let letterbox = &group.letterbox.0;
    let mut begun = letterbox.lock().unwrap_or_else(PoisonError::into_inner);
    // 1. Go on with those that have begun.
    for place in 0..begun.len() {
        let letter = &mut begun[place];
        let tag = tag(own, letter.number);
        while letter.bytes.len() < letter.whole {
            let part = world.letters.take(Some(letter.world_rank), Some(tag))?;
            let Some((_, part)) = part else { break };
            world.count_received(letter.world_rank);
            letter.bytes.extend_from_slice(&part);
        }
        if letter.bytes.len() >= letter.whole {
            let letter = begun.swap_remove(place);
            return Ok(Some((letter.from, letter.bytes)));
        }
    }
    // 2. Look for others.
    while let Some((world_rank, mut bytes)) = world.letters.take(None, Some(tag(own, 0)))? {
        world.count_received(world_rank);
        let mut members = group.members.iter();
        let from = members.position(|member| member.world_rank == world_rank);
        let word = |at: usize| bytes.get(at..).and_then(<[u8]>::first_chunk).copied();
        let (Some(from), Some(whole), Some(number)) = (from, word(0), word(8)) else {
            // From a group of old that had the same number.
            continue;
        };
        let whole = u64::from_le_bytes(whole) as usize;
        let number = u64::from_le_bytes(number) as u16;
        bytes.drain(..HEAD);
        if bytes.len() >= whole {
            return Ok(Some((from, bytes)));
        }
        bytes.reserve_exact(whole - bytes.len());
        begun.push(Begun {
            from,
            world_rank,
            number,
            bytes,
            whole,
        });
    }
    Ok(None)
}
