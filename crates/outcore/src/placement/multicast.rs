//! [`LocalArray::multicast`]: a section of one rank's file into the files of
//! several ranks (Thakur 1995, table 5.1: `PASSION_oc_multicast`).
//!
//! The path of the data: the root reads its section piece by piece, each piece
//! is broadcast in the group of those concerned, and each receiver writes it
//! into its own file. All parts have one storage order, so a piece is the same
//! bytes everywhere. The others only learn whether it succeeded. A rank takes
//! at most 2 MiB of memory for it ([`PIECE`]).

use outcore_geometry::{Pieces, Section, shape_text};
use outcore_transport::Comm;

use crate::error::{Error, Result};
use crate::placement::local::LocalArray;
use crate::placement::staging::PIECE;

impl LocalArray {
    /// Collective: copies `from`, a section of the part of rank `root`, to
    /// `into`, a section of the same shape of the part of each of the ranks
    /// `to`. Overlap areas may be part of either. Only the root looks at its
    /// `from`, and only receivers look at their `into`, which may differ from
    /// rank to rank; if the root is a receiver, too, the two must not overlap.
    /// A rank takes at most 2 MiB of memory besides.
    pub fn multicast(
        &self,
        comm: &Comm,
        root: usize,
        from: &Section,
        to: &[usize],
        into: &Section,
    ) -> Result<()> {
        // 1. Mistakes: of all ranks, then of single ones.
        self.check_group(comm)?;
        if let Some(nobody) = [root].iter().chain(to).find(|rank| **rank >= comm.size()) {
            return Err(Error::format(
                self.name(),
                format!(
                    "a multicast from or to rank {nobody} is impossible: there are {} ranks",
                    comm.size()
                ),
            ));
        }
        let (sends, receives) = (comm.rank() == root, to.contains(&comm.rank()));
        let mut shape = if sends { from.shape() } else { Vec::new() };
        comm.broadcast_vec(root, &mut shape)?;
        comm.agree(self.check_multicast(sends.then_some(from), receives.then_some(into), &shape))?;
        // 2. Piece by piece, among those concerned; the root comes first.
        let concerned = (sends || receives).then_some(0);
        let group = comm.split(concerned, if sends { -1 } else { 0 })?;
        let mut outcome = Ok(());
        if let Some(group) = group {
            let part = self.staged_part();
            let size = part.layout().element_size();
            let order = part.layout().slowest_first();
            let positions = Section::whole(&shape).map_err(Error::geometry(self.name()))?;
            let mut bytes = Vec::new();
            for piece in Pieces::new(&positions, order, PIECE / size) {
                bytes.resize((piece.count() * size) as usize, 0);
                if sends && outcome.is_ok() {
                    outcome = part.read_bytes(&from.select(&piece), &mut bytes);
                }
                group.broadcast(0, &mut bytes)?;
                if receives && outcome.is_ok() {
                    outcome = part.write_bytes(&into.select(&piece), &bytes);
                }
            }
        }
        // 3. Everybody learns of everybody's failure.
        Ok(comm.agree(outcome)?)
    }

    fn check_multicast(
        &self,
        from: Option<&Section>,
        into: Option<&Section>,
        shape: &[u64],
    ) -> Result<()> {
        for section in from.into_iter().chain(into) {
            section
                .check_within(self.part().shape())
                .map_err(Error::geometry(self.part().name()))?;
        }
        match into {
            Some(into) if into.shape() != shape => Err(Error::format(
                self.name(),
                format!(
                    "a multicast of shape {} does not fit section [{into}] of shape {}",
                    shape_text(shape),
                    shape_text(&into.shape())
                ),
            )),
            _ => Ok(()),
        }
    }
}
