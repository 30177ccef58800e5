//! Ranks as threads that share no memory, as if each had a node of its own.

use std::sync::Arc;

use outcore::Comm;
use outcore_transport::{Exchange, Result, Transport};

/// A group whose ranks have nothing but messages and letters.
pub(crate) struct Apart(Arc<dyn Transport>);

impl Apart {
    /// The ranks of `comm`, apart.
    pub(crate) fn comm(comm: &Comm) -> Comm {
        Comm::new(Arc::new(Self(comm.transport().clone())))
    }
}

impl Transport for Apart {
    fn name(&self) -> String {
        self.0.name()
    }

    fn rank(&self) -> usize {
        self.0.rank()
    }

    fn size(&self) -> usize {
        self.0.size()
    }

    fn send(&self, to: usize, tag: u16, data: &[u8]) -> Result<()> {
        self.0.send(to, tag, data)
    }

    fn receive(&self, from: usize, tag: u16, into: &mut [u8]) -> Result<()> {
        self.0.receive(from, tag, into)
    }

    fn exchange(&self, exchange: &mut Exchange<'_>) -> Result<()> {
        self.0.exchange(exchange)
    }

    fn barrier(&self) -> Result<()> {
        self.0.barrier()
    }

    fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Arc<dyn Transport>>> {
        let part = self.0.split(colour, key)?;
        Ok(part.map(|part| Arc::new(Self(part)) as Arc<dyn Transport>))
    }

    fn shares_memory(&self) -> bool {
        false
    }

    fn letter(&self, to: usize, letter: Vec<u8>) -> Result<()> {
        self.0.letter(to, letter)
    }

    fn next_letter(&self) -> Result<Option<(usize, Vec<u8>)>> {
        self.0.next_letter()
    }

    fn check(&self) -> Result<()> {
        self.0.check()
    }

    fn ended(&self, rank: usize) -> bool {
        self.0.ended(rank)
    }

    fn fail(&self, cause: &str) {
        self.0.fail(cause);
    }
}
