//! [`replicate`]: a copy of all blocks of a tensor for every rank.
//!
//! Every rank then reads its own copy, without the others (Krishnamoorthy et al.
//! 2006, section IV.A). What that costs grows with the number of ranks. A block is
//! fetched while the one before is written, which the paper calls the optimal cost.

use std::path::Path;

use outcore::{Array, ArrayDescriptor, Comm, Error, Result};

use super::blocks::Blocks;
use super::copy::{copy_blocks, copy_memory};
use super::file_blocks::{FileBlocks, make_directory};
use super::tensor::BlockTensor;
use crate::matmul::Number;
use crate::resources::Resources;

/// Collective: copies all blocks from `source` into an array of this rank's own
/// in `directory`, which should be on a disk of its own.
pub fn replicate<T: Number>(
    comm: &Comm,
    tensor: &BlockTensor,
    source: &dyn Blocks<T>,
    directory: &Path,
    resources: &Resources<'_>,
) -> Result<FileBlocks> {
    let need = copy_memory::<T>(tensor).saturating_add(source.decoded_bytes());
    let budget = resources.enough(comm, "replication", |_| need)?;
    let _memory = comm.agree(budget.reserve(need, "replication"))?;
    let copied = || {
        make_directory(directory)?;
        let descriptor = ArrayDescriptor::new(&[tensor.len()], T::TYPE);
        let replica = Array::create(&copy_name(comm, tensor, directory), &descriptor)?;
        let target = FileBlocks::whole(tensor, replica)?;
        let all = (0, tensor.len());
        copy_blocks::<T>(tensor, all, source, &target, resources)?;
        Ok::<_, Error>(target)
    };
    Ok(comm.agree(copied())?)
}

/// The copy that this rank has in `directory`.
pub fn open_replica(comm: &Comm, tensor: &BlockTensor, directory: &Path) -> Result<FileBlocks> {
    FileBlocks::whole(tensor, Array::open(&copy_name(comm, tensor, directory))?)
}

fn copy_name(comm: &Comm, tensor: &BlockTensor, directory: &Path) -> String {
    let name = format!("{}-copy{}.oc", tensor.name(), comm.rank());
    directory.join(name).to_string_lossy().into()
}
