//! [`Stage`]: everybody to everybody among the ranks of one node, without
//! messages.
//!
//! Each rank has room on a segment that all have mapped. There it lays, for
//! every rank, the length of what it has for that rank, and: the bytes
//! themselves if they are few; else where they are in its own memory, from
//! where the kernel copies them straight to their place in the receiver's
//! (`process_vm_readv`). Where the kernel does not allow that (it is a matter of
//! rights, and tried once), many bytes go through the segment piece by piece.
//! So few bytes cost one meeting of the group and two copies, many bytes two
//! meetings and one copy.
//!
//! # Why nobody reads what is being written
//!
//! The room of a rank has two halves. What is laid there for meeting `s` of the
//! hall stands in half `s mod 2`: the same rule, for the same reasons, as for
//! what is said in the hall (see `hall`). A rank whose memory others read leaves
//! only after a meeting to which all come when they have read. If the run fails
//! it may leave earlier; then the kernel copies what is there by now, or
//! nothing, and the reader is told of the failure.
//!
//! Every reader compares the length that its peer has laid down with the one it
//! expects, so that ranks that do not agree on lengths are all told.

use std::hash::{BuildHasher, RandomState};
use std::process;

use outcore_transport::{Error, Result};

use crate::group::Group;
use crate::hall::Hall;
use crate::kernel_copy::{self, copy_from};
use crate::segment::{Segment, Ticket};

/// The room of all ranks together, in both halves.
const ROOM: usize = 8 << 20;

/// The longest piece that is laid down where the kernel could copy it.
const FEW: usize = 32 << 10;

/// The longest piece that is laid down at once where it cannot.
const MANY: usize = 64 << 10;

const WORD: usize = size_of::<u64>();

/// A room begins with the length of the longest piece and the number of the
/// meeting; each piece with its own length.
const HEAD: usize = 2 * WORD;

/// Rooms begin with a cache line.
const LINE: usize = 128;

/// The stage of one group, as one rank sees it.
#[derive(Debug)]
pub(crate) struct Stage {
    segment: Segment,
    /// The room of one rank in one half.
    room: usize,
    /// The longest piece that is laid down at once.
    at_once: usize,
    /// The processes of all ranks, if the kernel copies between them.
    processes: Option<Vec<u32>>,
}

impl Stage {
    /// Collective: the stage of the group that meets in `hall`, if it can have
    /// one.
    pub(crate) fn build(group: &Group, hall: &Hall) -> Result<Option<Self>> {
        let size = group.members.len();
        // 1. Each tries to read a word of all others.
        let token = RandomState::new().hash_one(group.rank);
        let words = [u64::from(process::id()), (&raw const token) as u64, token];
        let mut told = vec![0; size * 3 * WORD];
        let own: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
        hall.all_gather(group, &own, &vec![3 * WORD; size], &mut told)?;
        let told: Vec<[u64; 3]> = told.chunks_exact(3 * WORD).map(three_words).collect();
        let wanted = kernel_copy::are_wanted();
        let reads = wanted
            && told.iter().all(|&[process, address, token]| {
                let mut found = [0; WORD];
                copy_from(process as u32, address, &mut found) && u64::from_ne_bytes(found) == token
            });
        let reads = all_are(group, hall, reads)?;
        let processes = reads.then(|| told.iter().map(|words| words[0] as u32).collect());
        // 2. The first rank makes the segment, the others open it.
        let longest = if reads { FEW } else { MANY };
        let room = HEAD + size * (WORD + longest);
        let room = room.min(ROOM / 2 / size) / LINE * LINE;
        if room < HEAD + size * 2 * WORD {
            return Ok(None);
        }
        let made = (group.rank == 0)
            .then(|| Segment::create(2 * size * room))
            .flatten();
        let ticket = Ticket::encode(made.as_ref().map(|&(_, _, ticket)| ticket));
        let mut tickets = vec![0; size * Ticket::BYTES];
        hall.all_gather(group, &ticket, &vec![Ticket::BYTES; size], &mut tickets)?;
        let segment = match &made {
            None => Ticket::decode(&tickets).and_then(Segment::open),
            Some(_) => None,
        };
        let able = segment.is_some() || made.is_some();
        let able = all_are(group, hall, able)?;
        let segment = segment.or(made.map(|(segment, ..)| segment));
        Ok(segment.filter(|_| able).map(|segment| Self {
            segment,
            room,
            at_once: ((room - HEAD) / size - WORD) / WORD * WORD,
            processes,
        }))
    }

    /// Collective: brings `sends[p]` to rank `p`, and fills `receives[p]` from
    /// there.
    pub(crate) fn all_to_all(
        &self,
        group: &Group,
        hall: &Hall,
        sends: &[&[u8]],
        receives: &mut [&mut [u8]],
    ) -> Result<()> {
        let (rank, size) = (group.rank, group.members.len());
        self.check_own(group, sends, receives)?;
        // 1. Lay down lengths, and bytes or where they are.
        let longest = sends.iter().map(|piece| piece.len()).max().unwrap_or(0);
        let mut sequence = hall.next();
        let room = self.room(rank, sequence);
        room.put(0, longest as u64);
        room.put(WORD, u64::from(sequence));
        for (to, piece) in sends.iter().enumerate().filter(|(to, _)| *to != rank) {
            let place = self.place(longest, to);
            room.put(place, piece.len() as u64);
            match self.processes.is_some() && !self.is_laid_down(longest) {
                true => room.put(place + WORD, piece.as_ptr() as u64),
                false => room.write(place + WORD, self.first(piece)),
            }
        }
        receives[rank].copy_from_slice(sends[rank]);
        hall.meet(group)?;
        // 2. Fetch what the others have laid down for this rank. Each rank
        //    begins with another one.
        let mut far = 0;
        for from in (rank + 1..size).chain(0..rank) {
            let theirs = self.room(from, sequence);
            if theirs.get(WORD) != u64::from(sequence) {
                return Err(group.mistake(elsewhere(from)));
            }
            let longest = theirs.get(0) as usize;
            far = far.max(longest);
            let place = self.place(longest, rank);
            let (sent, expected) = (theirs.get(place), receives[from].len() as u64);
            if sent != expected {
                return Err(group.mistake(mismatch(from, rank, sent, expected)));
            }
            match (&self.processes, self.is_laid_down(longest)) {
                (Some(processes), false) => {
                    let address = theirs.get(place + WORD);
                    if !copy_from(processes[from], address, receives[from]) {
                        group.world.check()?;
                        return Err(group.mistake(no_copy(from)));
                    }
                }
                _ => theirs.read(place + WORD, self.first_mut(receives[from])),
            }
        }
        far = far.max(longest);
        if self.is_laid_down(far) {
            return Ok(());
        }
        if self.processes.is_some() {
            // 3. Stay until all have read from this rank's memory.
            return hall.meet(group);
        }
        // 4. Without the kernel's help: the rest, piece by piece.
        let mut done = self.at_once;
        while done < far {
            sequence = hall.next();
            let room = self.room(rank, sequence);
            for (to, piece) in sends.iter().enumerate().filter(|(to, _)| *to != rank) {
                room.write(self.place(self.at_once, to), self.part(piece, done));
            }
            hall.meet(group)?;
            for from in (rank + 1..size).chain(0..rank) {
                let end = receives[from].len().min(done + self.at_once);
                let part = &mut receives[from][done.min(end)..end];
                let theirs = self.room(from, sequence);
                theirs.read(self.place(self.at_once, rank), part);
            }
            done += self.at_once;
        }
        Ok(())
    }

    /// Refuses lists that are not for this group, and a piece to itself that a
    /// rank does not expect.
    fn check_own(&self, group: &Group, sends: &[&[u8]], receives: &[&mut [u8]]) -> Result<()> {
        let (rank, size) = (group.rank, group.members.len());
        if sends.len() != size || receives.len() != size {
            let text = format!(
                "{} and {} pieces for {size} ranks",
                sends.len(),
                receives.len()
            );
            return Err(group.mistake(Error::Invalid(text)));
        }
        let (sent, expected) = (sends[rank].len() as u64, receives[rank].len() as u64);
        match sent == expected {
            true => Ok(()),
            false => Err(group.mistake(mismatch(rank, rank, sent, expected))),
        }
    }

    /// Whether a rank whose longest piece is so long lays its bytes down, rather
    /// than where they are; all of them, if it is not more than fits at once.
    fn is_laid_down(&self, longest: usize) -> bool {
        match self.processes {
            Some(_) => longest <= self.at_once.min(FEW),
            None => longest <= self.at_once,
        }
    }

    /// Where the piece for rank `to` begins in the room of a rank whose longest
    /// is so long.
    fn place(&self, longest: usize, to: usize) -> usize {
        let bytes = match (&self.processes, self.is_laid_down(longest)) {
            (Some(_), false) => WORD,
            _ => longest.min(self.at_once).next_multiple_of(WORD),
        };
        HEAD + to * (WORD + bytes)
    }

    fn first<'p>(&self, piece: &'p [u8]) -> &'p [u8] {
        &piece[..piece.len().min(self.at_once)]
    }

    fn first_mut<'p>(&self, piece: &'p mut [u8]) -> &'p mut [u8] {
        let end = piece.len().min(self.at_once);
        &mut piece[..end]
    }

    fn part<'p>(&self, piece: &'p [u8], done: usize) -> &'p [u8] {
        let end = piece.len().min(done + self.at_once);
        &piece[done.min(end)..end]
    }

    /// The room of `rank` for meeting `sequence`.
    fn room(&self, rank: usize, sequence: u32) -> Room {
        let index = 2 * rank + (sequence & 1) as usize;
        debug_assert!((index + 1) * self.room <= self.segment.len());
        Room {
            start: self.segment.start().wrapping_add(index * self.room),
            len: self.room,
        }
    }
}

/// The room of a rank in one half. Its owner writes it before it comes to the
/// meeting, and others read it between that meeting and the next they come to.
struct Room {
    start: *mut u8,
    len: usize,
}

impl Room {
    fn write(&self, at: usize, bytes: &[u8]) {
        assert!(at + bytes.len() <= self.len, "the room is too small");
        // SAFETY: inside the room, which is the caller's to write before it
        // comes to the meeting.
        unsafe {
            let place = self.start.add(at);
            place.copy_from_nonoverlapping(bytes.as_ptr(), bytes.len());
        }
    }

    fn read(&self, at: usize, into: &mut [u8]) {
        assert!(at + into.len() <= self.len, "the room is too small");
        // SAFETY: inside the room, which nobody writes while the caller may
        // read it.
        unsafe {
            let place = self.start.add(at);
            place.copy_to_nonoverlapping(into.as_mut_ptr(), into.len());
        }
    }

    fn put(&self, at: usize, word: u64) {
        self.write(at, &word.to_ne_bytes());
    }

    fn get(&self, at: usize) -> u64 {
        let mut word = [0; WORD];
        self.read(at, &mut word);
        u64::from_ne_bytes(word)
    }
}

fn mismatch(from: usize, to: usize, sent: u64, expected: u64) -> Error {
    Error::LengthMismatch {
        from,
        to,
        sent,
        expected,
    }
}

fn elsewhere(rank: usize) -> Error {
    Error::Invalid(format!("rank {rank} made another call than all_to_all"))
}

fn no_copy(from: usize) -> Error {
    Error::Library {
        call: "process_vm_readv",
        message: format!(
            "the memory of rank {from}: {}",
            std::io::Error::last_os_error()
        ),
    }
}

/// Collective: whether it is so on all ranks.
fn all_are(group: &Group, hall: &Hall, so: bool) -> Result<bool> {
    let size = group.members.len();
    let mut all = vec![0; size];
    hall.all_gather(group, &[u8::from(so)], &vec![1; size], &mut all)?;
    Ok(all.iter().all(|&so| so != 0))
}

fn three_words(bytes: &[u8]) -> [u64; 3] {
    let word = |at: usize| {
        let word = bytes.get(at * WORD..).and_then(<[u8]>::first_chunk);
        word.map_or(0, |&word| u64::from_ne_bytes(word))
    };
    [word(0), word(1), word(2)]
}
