//! [`Way`]: where the blocks of the factors are while a contraction runs, which is
//! what the paper compares.

use std::fmt;
use std::path::{Path, PathBuf};
use std::str::FromStr;

use outcore::{Comm, Error, Procedures, Result};

use super::blocks::Blocks;
use super::call_blocks::CallBlocks;
use super::copy::{copy_blocks, copy_memory};
use super::file_blocks::{FileBlocks, STRIPE, Spread};
use super::replicate::replicate;
use super::tensor::BlockTensor;
use crate::matmul::Number;
use crate::resources::Resources;

/// Where the blocks of a factor are while a contraction runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Way {
    /// In one array that all ranks reach; nothing is copied.
    Shared,
    /// On the disks of the ranks, who serve one another by procedure calls.
    Calls,
    /// A copy of all blocks for every rank.
    Replicas,
    /// One file a rank on storage that all ranks share.
    Files,
    /// The same, each file in stripes of [`STRIPE`] bytes over all ranks' directories.
    Striped,
}

impl Way {
    /// All of them.
    pub const ALL: [Self; 5] = [
        Self::Shared,
        Self::Calls,
        Self::Replicas,
        Self::Files,
        Self::Striped,
    ];

    /// The word for it.
    pub fn name(self) -> &'static str {
        match self {
            Self::Shared => "shared",
            Self::Calls => "calls",
            Self::Replicas => "replicas",
            Self::Files => "files",
            Self::Striped => "striped",
        }
    }
}

/// Factors on their way to where they should be; kept while the contraction runs.
#[derive(Debug)]
pub struct Placing {
    comm: Comm,
    way: Way,
    directory: PathBuf,
    /// What serves others, if somebody asks them.
    procedures: Option<Procedures>,
}

impl Placing {
    /// Collective: prepares to bring factors to where `way` says, in subdirectories
    /// of `directory` for the ranks.
    pub fn start(comm: &Comm, way: Way, directory: &Path) -> Result<Self> {
        let nodes_apart = !comm.transport().shares_memory();
        let procedures = match way == Way::Calls || nodes_apart {
            true => Some(Procedures::start(comm)?),
            false => None,
        };
        Ok(Self {
            comm: comm.clone(),
            way,
            directory: directory.into(),
            procedures,
        })
    }

    /// What serves others, if there is something.
    pub fn procedures(&self) -> Option<&Procedures> {
        self.procedures.as_ref()
    }

    /// Collective: brings the blocks of a tensor from `source` to where they should
    /// be; `None` if they stay where they are.
    pub fn place<T: Number>(
        &self,
        tensor: &BlockTensor,
        source: &dyn Blocks<T>,
        resources: &Resources<'_>,
    ) -> Result<Option<Box<dyn Blocks<T>>>> {
        let (comm, directory) = (&self.comm, &self.directory);
        let parts = |spread| FileBlocks::create_parts::<T>(comm, directory, tensor, spread);
        let target: Box<dyn Blocks<T>> = match (self.way, &self.procedures) {
            (Way::Calls, Some(procedures)) => {
                Box::new(CallBlocks::create(comm, procedures, directory, tensor)?)
            }
            (Way::Shared | Way::Calls, _) => return Ok(None),
            (Way::Replicas, _) => {
                let own = directory.join(format!("disk{}", comm.rank()));
                let replica = replicate::<T>(comm, tensor, source, &own, resources)?;
                return Ok(Some(Box::new(replica)));
            }
            (Way::Files, _) => Box::new(parts(Spread::Whole)?),
            (Way::Striped, _) => Box::new(parts(Spread::Striped(STRIPE))?),
        };
        copy_own::<T>(comm, tensor, source, &*target, resources)?;
        Ok(Some(target))
    }

    /// Collective: ends what serves the blocks.
    pub fn close(self) -> Result<()> {
        match self.procedures {
            Some(procedures) => procedures.close(),
            None => Ok(self.comm.barrier()?),
        }
    }
}

/// Collective: each rank copies the blocks that are allotted to it.
fn copy_own<T: Number>(
    comm: &Comm,
    tensor: &BlockTensor,
    source: &dyn Blocks<T>,
    target: &dyn Blocks<T>,
    resources: &Resources<'_>,
) -> Result<()> {
    let chunks = source
        .decoded_bytes()
        .saturating_add(target.decoded_bytes());
    let need = copy_memory::<T>(tensor).saturating_add(chunks);
    let budget = resources.enough(comm, "copying blocks", |_| need)?;
    let _memory = comm.agree(budget.reserve(need, "copying blocks"))?;
    let cuts = tensor.cuts(comm.size());
    let own = (cuts[comm.rank()], cuts[comm.rank() + 1]);
    let copied = copy_blocks(tensor, own, source, target, resources);
    comm.agree(copied)?;
    Ok(comm.barrier()?)
}

impl fmt::Display for Way {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Way {
    type Err = Error;

    fn from_str(text: &str) -> Result<Self> {
        let known = Self::ALL.into_iter().find(|way| way.name() == text);
        known.ok_or_else(|| {
            let names = Self::ALL.map(Self::name).join(", ");
            Error::Invalid(format!("'{text}' is none of {names}"))
        })
    }
}
