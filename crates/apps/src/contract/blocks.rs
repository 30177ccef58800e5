//! [`Blocks`]: where the blocks of a tensor come from and go to.

use outcore::Result;

use super::tensor::Place;

/// The packed elements of a tensor, wherever they are kept. Any rank reads and
/// writes any block at any time, without the others.
pub trait Blocks<T>: Sync {
    /// Begins to read a block into `buffer`, which has its length, and goes on
    /// while that lasts if it can.
    fn fetch(&self, place: Place, buffer: Vec<T>) -> Result<Fetch<'_, T>>;

    /// Writes a block.
    fn store(&self, place: Place, values: &[T]) -> Result<()>;

    /// What reading or writing a block takes besides its buffer: a chunk as it is
    /// stored, and decoded, where chunks can be had only whole.
    fn decoded_bytes(&self) -> u64 {
        0
    }

    /// Returns when what this rank's files hold is on their disk.
    fn sync(&self) -> Result<()> {
        Ok(())
    }

    /// Asks the system to drop from memory what it has of this rank's files, for
    /// measuring what cold reads cost.
    fn forget(&self) -> Result<()> {
        Ok(())
    }
}

/// A block that is being read.
pub struct Fetch<'a, T>(Box<dyn FnOnce() -> Result<Vec<T>> + 'a>);

impl<'a, T> Fetch<'a, T> {
    /// A block that `wait` waits for (or reads).
    pub fn new(wait: impl FnOnce() -> Result<Vec<T>> + 'a) -> Self {
        Self(Box::new(wait))
    }

    /// The block, in the buffer that was given for it.
    pub fn wait(self) -> Result<Vec<T>> {
        (self.0)()
    }
}

impl<T> std::fmt::Debug for Fetch<'_, T> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Fetch")
    }
}
