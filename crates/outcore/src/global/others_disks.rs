//! [`OthersDisks`]: the state of a group of ranks on the disks of another group.
//!
//! Each rank of the group saves its own share of the state when it is ready, without
//! waiting for anybody: it sends the share to a rank of the other group, its keeper,
//! whose data server writes it while both compute. A share appears under its name when
//! it is complete, its checksum has been compared with what was read back, and it is on
//! stable storage. A version of the state is there when the shares of all ranks are;
//! until then the version before is the newest, and its shares are kept. So whenever
//! ranks or programs die, the newest version is complete (checkpoints on others' disks:
//! those of a rank that dies with its machine are elsewhere).

mod keeper;
mod state;

use std::sync::Arc;

use outcore_transport::Comm;

use crate::error::{Error, Result};
use crate::global::agreement::same_on_all;
use crate::global::disk_resident::{Disks, check_name, once};
use crate::global::procedure_call::{Procedure, Procedures};
use keeper::{Action, Asked, Keeper};

pub use state::State;

/// The bytes that travel at a time.
const PIECE: usize = 4 << 20;

/// The state of a group of ranks on the disks of another group.
///
/// ```
/// use outcore::{Disks, OthersDisks, Procedures, State};
/// # let directory = tempfile::tempdir()?;
/// # let disks = directory.path().join("{rank}");
/// # let disks = disks.to_str().unwrap();
/// outcore::run(3, |comm| {
///     let calls = Procedures::start(comm)?;
///     // Ranks 0 and 1 compute; rank 2 keeps what they save.
///     let kept = OthersDisks::new(comm, &calls, "run", (&[0, 1], &[2]), &Disks::pattern(disks))?;
///     if comm.rank() < 2 {
///         let state = State::new().with("u", &[comm.rank() as f64; 100]).with("step", &[7u64]);
///         kept.save(1, &state)?;
///     }
///     comm.barrier()?;
///     assert_eq!(kept.newest()?, Some(1));
///     let of_rank_1 = kept.restore_of(1, 1)?;
///     assert_eq!(of_rank_1.get::<f64>("u")?, [1.0; 100]);
///     comm.barrier()?;
///     calls.close()
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct OthersDisks {
    name: String,
    calls: Procedures,
    procedure: Procedure,
    /// The ranks whose states are kept.
    members: Vec<usize>,
    keepers: Vec<usize>,
    rank: usize,
    keeper: Arc<Keeper>,
}

impl OthersDisks {
    /// Collective over all ranks: `members` save states under `name`, and `keepers`
    /// keep them in their directories of `disks`, where states of earlier programs are
    /// found again. Share `k` is kept by keeper `k` modulo their number. Shares of
    /// versions that were never complete are removed: the program goes on from the
    /// newest that is, and its own shares must not be mixed with those.
    pub fn new(
        comm: &Comm,
        calls: &Procedures,
        name: &str,
        (members, keepers): (&[usize], &[usize]),
        disks: &Disks,
    ) -> Result<Self> {
        let rank = comm.rank();
        Procedures::check_group(Some(calls), comm)?;
        let differ = "the ranks do not mean the same states: their name, members or keepers differ";
        same_on_all(comm, (name, members, keepers), differ)?;
        let made = check_name(name).and_then(|()| {
            let missing = members
                .iter()
                .chain(keepers)
                .find(|rank| **rank >= comm.size());
            if let Some(rank) = missing {
                return Err(Error::Invalid(format!("there is no rank {rank}")));
            }
            if members.is_empty() || keepers.is_empty() {
                return Err(Error::Invalid(
                    "both groups, who saves and who keeps, need at least one rank".into(),
                ));
            }
            let own = keepers.iter().position(|keeper| *keeper == rank);
            let directory = own.map(|own| disks.made(own, rank)).transpose()?.flatten();
            match (own, &directory) {
                (Some(_), None) => Err(Error::Invalid("keepers need a disk".into())),
                _ => Keeper::new((name, members.len()), directory),
            }
        });
        let keeper = Arc::new(comm.agree(made)?);
        let served = Arc::clone(&keeper);
        let procedure = calls.register(
            &once(comm, &format!("others' disks {name}"))?,
            move |request, response| {
                let asked = Asked::decode(request.header())?;
                let room: &mut [u8] = match asked.action {
                    Action::Read => response.data()?,
                    _ => &mut [],
                };
                let data = match asked.action {
                    Action::Append => request.data()?,
                    _ => &[],
                };
                response.header = served.serve(&asked, data, room)?;
                Ok(())
            },
        )?;
        let kept = Self {
            name: name.into(),
            calls: calls.clone(),
            procedure,
            members: members.to_vec(),
            keepers: keepers.to_vec(),
            rank,
            keeper,
        };
        // Nobody saves before this is done.
        comm.agree(kept.forget_incomplete())?;
        Ok(kept)
    }

    /// Removes what this rank keeps of versions newer than the newest complete one.
    fn forget_incomplete(&self) -> Result<()> {
        if !self.keepers.contains(&self.rank) {
            return Ok(());
        }
        let asked = Asked {
            action: Action::RemoveFrom,
            version: 0,
            member: 0,
            number: match self.newest()? {
                // There is no newer one.
                Some(u64::MAX) => return Ok(()),
                Some(newest) => newest + 1,
                None => 0,
            },
        };
        self.keeper.serve(&asked, &[], &mut []).map(drop)
    }

    fn member(&self) -> Result<usize> {
        let member = self.members.iter().position(|rank| *rank == self.rank);
        member.ok_or_else(|| {
            Error::Invalid(format!(
                "rank {} is none of those whose state '{}' is kept",
                self.rank, self.name
            ))
        })
    }

    fn ask(&self, keeper: usize, asked: &Asked, data: &[u8], room: &mut [u8]) -> Result<Vec<u8>> {
        let rank = self.keepers[keeper % self.keepers.len()];
        if rank == self.rank {
            return self.keeper.serve(asked, data, room);
        }
        let header = asked.encode();
        let reply = self.calls.call(rank, self.procedure, &header, data, room)?;
        Ok(reply.header)
    }

    /// Not collective: saves this rank's share of a version, which must be newer than
    /// the newest complete one, also of earlier programs. When it returns the share is on
    /// stable storage; the version is there when all have saved theirs. Shares of this rank
    /// that are older than the newest complete version are removed.
    pub fn save(&self, version: u64, state: &State) -> Result<()> {
        let member = self.member()?;
        if let Some(newest) = self.newest()?.filter(|newest| version <= *newest) {
            return Err(Error::Invalid(format!(
                "version {version} of '{}' cannot be saved: version {newest} is complete \
                 already, so number on from there",
                self.name
            )));
        }
        let asked = |action, offset| Asked {
            action,
            version,
            member: member as u64,
            number: offset,
        };
        // 1. Under a hidden name.
        let bytes = state.to_bytes(version, member, self.members.len())?;
        self.ask(
            member,
            &asked(Action::Begin, bytes.len() as u64),
            &[],
            &mut [],
        )?;
        for (at, piece) in bytes.chunks(PIECE).enumerate() {
            let offset = (at * PIECE) as u64;
            self.ask(member, &asked(Action::Append, offset), piece, &mut [])?;
        }
        // 2. Its name, if what was read back is what was sent.
        let sum = u64::from(crc32c::crc32c(&bytes));
        self.ask(member, &asked(Action::Commit, sum), &[], &mut [])?;
        // 3. What is older than a complete version is not needed.
        if let Some(newest) = self.newest()? {
            let needed = newest.min(version);
            self.ask(member, &asked(Action::RemoveBefore, needed), &[], &mut [])?;
        }
        Ok(())
    }

    /// Not collective: the newest version of which all shares are there.
    pub fn newest(&self) -> Result<Option<u64>> {
        let mut shares = std::collections::BTreeMap::<u64, usize>::new();
        for keeper in 0..self.keepers.len() {
            let asked = Asked {
                action: Action::List,
                version: 0,
                member: 0,
                number: 0,
            };
            let listed = self.ask(keeper, &asked, &[], &mut [])?;
            let (numbers, _) = listed.as_chunks::<16>();
            for entry in numbers {
                let (version, member) = entry.split_at(8);
                let member = bytemuck::pod_read_unaligned::<u64>(member) as usize;
                // A share that another keeper should have is of another arrangement.
                if member % self.keepers.len() == keeper {
                    *shares
                        .entry(bytemuck::pod_read_unaligned(version))
                        .or_default() += 1;
                }
            }
        }
        let complete = shares.into_iter().rev();
        let complete = complete
            .into_iter()
            .find(|(_, count)| *count == self.members.len());
        Ok(complete.map(|(version, _)| version))
    }

    /// Not collective: this rank's share of the newest version, with its number;
    /// `None` if no version is complete.
    pub fn restore(&self) -> Result<Option<(u64, State)>> {
        let member = self.member()?;
        let Some(version) = self.newest()? else {
            return Ok(None);
        };
        Ok(Some((version, self.share(version, member)?)))
    }

    /// Not collective: the share that rank `rank` has saved of a version.
    pub fn restore_of(&self, version: u64, rank: usize) -> Result<State> {
        let member = self.members.iter().position(|member| *member == rank);
        let member = member.ok_or_else(|| {
            Error::Invalid(format!(
                "no state of rank {rank} is kept under '{}'",
                self.name
            ))
        })?;
        self.share(version, member)
    }

    fn share(&self, version: u64, member: usize) -> Result<State> {
        let asked = |action, number| Asked {
            action,
            version,
            member: member as u64,
            number,
        };
        let length = self.ask(member, &asked(Action::Length, 0), &[], &mut [])?;
        let length = bytemuck::pod_read_unaligned::<u64>(length.get(..8).unwrap_or(&[0; 8]));
        let mut bytes = vec![0; length as usize];
        for (at, piece) in bytes.chunks_mut(PIECE).enumerate() {
            let offset = (at * PIECE) as u64;
            self.ask(member, &asked(Action::Read, offset), &[], piece)?;
        }
        State::from_bytes(&self.name, &bytes, (version, member, self.members.len()))
    }
}
