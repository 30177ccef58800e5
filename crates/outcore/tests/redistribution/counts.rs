//! What a plan sends, and how often it plans.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outcore::{
    Arrival, Carrier, Comm, DistributedArray, Distribution, Error, RedistributionMethod,
    RedistributionPlan,
};
use outcore_transport::{Exchange, Loan, Loans, NodeMemory, Result, Transport};

/// Counts what goes through another transport.
struct Counting {
    inner: Arc<dyn Transport>,
    /// Sends, receives, barriers, exchanges of something or nothing.
    messages: AtomicUsize,
    loans: AtomicUsize,
    sent_bytes: AtomicUsize,
}

impl Counting {
    fn around(comm: &Comm) -> Arc<Self> {
        Arc::new(Self {
            inner: comm.transport().clone(),
            messages: AtomicUsize::new(0),
            loans: AtomicUsize::new(0),
            sent_bytes: AtomicUsize::new(0),
        })
    }

    fn count(&self) -> [usize; 3] {
        [&self.messages, &self.loans, &self.sent_bytes]
            .map(|count| count.swap(0, Ordering::Relaxed))
    }

    fn message(&self, bytes: usize) {
        self.messages.fetch_add(1, Ordering::Relaxed);
        self.sent_bytes.fetch_add(bytes, Ordering::Relaxed);
    }
}

impl Transport for Counting {
    fn name(&self) -> String {
        self.inner.name()
    }
    fn rank(&self) -> usize {
        self.inner.rank()
    }
    fn size(&self) -> usize {
        self.inner.size()
    }
    fn send(&self, to: usize, tag: u16, data: &[u8]) -> Result<()> {
        self.message(data.len());
        self.inner.send(to, tag, data)
    }
    fn receive(&self, from: usize, tag: u16, into: &mut [u8]) -> Result<()> {
        self.inner.receive(from, tag, into)
    }
    fn exchange(&self, exchange: &mut Exchange<'_>) -> Result<()> {
        self.message(exchange.sends().iter().map(|(_, piece)| piece.len()).sum());
        self.inner.exchange(exchange)
    }
    fn barrier(&self) -> Result<()> {
        self.message(0);
        self.inner.barrier()
    }
    fn split(&self, colour: Option<u64>, key: i64) -> Result<Option<Arc<dyn Transport>>> {
        self.inner.split(colour, key)
    }
    fn shares_memory(&self) -> bool {
        self.inner.shares_memory()
    }
    fn lend(
        &self,
        own: &mut [Loan<'_>],
        from: &[usize],
        visit: &mut dyn FnMut(&Loans),
    ) -> Result<bool> {
        self.loans.fetch_add(1, Ordering::Relaxed);
        self.inner.lend(own, from, visit)
    }
    fn reaches(&self, bytes: &[u8]) -> bool {
        self.inner.reaches(bytes)
    }
    fn node_memory(&self, bytes: usize) -> Result<Option<NodeMemory>> {
        self.inner.node_memory(bytes)
    }
    fn fail(&self, cause: &str) {
        self.inner.fail(cause);
    }
}

#[test]
fn a_plan_is_made_once_and_without_messages() {
    const EXTENT: u64 = 1000;
    outcore::run(3, |comm| {
        let counting = Counting::around(comm);
        let comm = &Comm::new(counting.clone());
        let side = |text: &str| Distribution::parse(text, &[EXTENT], 3, None).unwrap();
        let mut before = DistributedArray::<u32>::new(comm, side("cyclic(5)"))?;
        let mut after = DistributedArray::<u32>::new(comm, side("cyclic(3)"))?;
        before.fill_with(|index| index[0] as u32);
        counting.count();
        // Through memory: nothing is said, and the data are lent once a move.
        let plan = RedistributionPlan::new(comm, before.distribution(), after.distribution())?;
        assert_eq!((plan.tables(), counting.count()), (0, [0, 0, 0]));
        for _ in 0..3 {
            plan.move_array(comm, &before, &mut after)?;
            plan.move_back(comm, &after, &mut before)?;
            assert_eq!((plan.tables(), counting.count()), (1, [0, 2, 0]));
        }
        // In messages: one exchange with what others own, and nothing else.
        let sent: u64 = plan
            .partners()
            .iter()
            .filter(|(to, _)| *to != comm.rank())
            .map(|it| it.1)
            .sum();
        let plan = plan.carrier(Carrier::Messages);
        for _ in 0..3 {
            plan.move_array(comm, &before, &mut after)?;
            assert_eq!(
                (plan.tables(), counting.count()),
                (2, [1, 0, 4 * sent as usize])
            );
            plan.move_back(comm, &after, &mut before)?;
            let [messages, loans, _] = counting.count();
            assert_eq!((plan.tables(), messages, loans), (2, 1, 0));
        }
        // One message in each round, if they are placed as they come.
        let plan = plan.arrival(Arrival::AsTheyCome);
        plan.move_array(comm, &before, &mut after)?;
        assert_eq!(counting.count(), [2, 0, 4 * sent as usize]);
        // Two steps lend twice.
        let method = RedistributionMethod::Lcm;
        let (from, to) = (before.distribution().clone(), after.distribution().clone());
        let plan = RedistributionPlan::with_method(comm, &from, &to, method)?;
        for _ in 0..3 {
            plan.move_array(comm, &before, &mut after)?;
            assert_eq!((plan.tables(), counting.count()), (2, [0, 2, 0]));
        }
        assert!(after.iter().all(|(index, value)| index[0] as u32 == *value));
        Ok::<(), Error>(())
    })
    .unwrap();
}
