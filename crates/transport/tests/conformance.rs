//! Ranks as threads pass the conformance suite, in small and large numbers,
//! both as they are and as if they could not read one another's memory.

use std::sync::Arc;

use outcore_transport::{Comm, Error, Exchange, Result, Transport, conformance, threads};

/// A transport that does not tell that its ranks share memory, which makes the
/// collectives use trees and doubling.
struct Apart(Arc<dyn Transport>);

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
        Ok(part.map(|part| Arc::new(Apart(part)) as Arc<dyn Transport>))
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

    fn fail(&self, cause: &str) {
        self.0.fail(cause);
    }
}

fn assert_passed(outcomes: Vec<Result<(), Error>>) {
    for outcome in outcomes {
        outcome.unwrap();
    }
}

fn check(ranks: usize) {
    assert_passed(threads::run(ranks, conformance::check));
}

fn check_apart(ranks: usize) {
    assert_passed(threads::run(ranks, |comm| {
        conformance::check(&Comm::new(Arc::new(Apart(comm.transport().clone()))))
    }));
}

#[test]
fn alone() {
    conformance::check(&threads::solo()).unwrap();
}

#[test]
fn few_ranks() {
    for ranks in [1, 2, 3, 5] {
        check(ranks);
    }
}

#[test]
fn few_ranks_apart() {
    for ranks in [1, 2, 3, 5, 8] {
        check_apart(ranks);
    }
}

#[test]
fn sixteen_ranks() {
    check(16);
}

#[test]
fn sixteen_ranks_apart() {
    check_apart(16);
}

#[test]
fn a_hundred_and_twenty_eight_ranks() {
    check(128);
}
