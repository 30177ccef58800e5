//! [`Inner`]: what the handles on the procedures of a rank, its calls and its
//! server share; and how a caller waits.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use outcore_transport::doorbell::sleep_on;
use outcore_transport::{Comm, Error as TransportError, Shared};

use super::ServerOptions;
use super::arena::Arena;
use super::cores::Cores;
use super::fault::ProcedureFault;
use super::flight::Flight;
use super::lane::Lane;
use super::post::{Found, Post};
use super::registry::Registry;
use super::slot::{Inbox, Measures};
use crate::error::{Error, Result};

/// How often a waiting caller looks before it sleeps: usually, for some 15
/// microseconds, and where the target spins.
const LOOKS: [u32; 2] = [20, 20_000];

/// How long it sleeps before it asks whether the run has failed: at first, and
/// at most.
const NAPS: [Duration; 2] = [Duration::from_millis(1), Duration::from_millis(16)];

/// The same where it has to look for letters.
const SHORT_NAPS: [Duration; 2] = [Duration::from_micros(20), Duration::from_micros(500)];

/// For so long a caller who finds a server gone waits for word why.
const GRACE: Duration = Duration::from_millis(50);

/// How a rank reaches another.
#[derive(Debug)]
pub(super) enum Route {
    /// It is the rank itself.
    Own,
    /// Through shared memory.
    Lane(Lane),
    /// By letters.
    Letters,
}

/// What all handles of a rank share.
#[derive(Debug)]
pub(super) struct Inner {
    /// A group of its own.
    pub(super) comm: Comm,
    pub(super) session: u64,
    pub(super) options: ServerOptions,
    pub(super) registry: Registry,
    /// Whether servers use the memory of callers in place.
    pub(super) in_place: bool,
    inboxes: Vec<Option<Inbox>>,
    routes: Vec<Route>,
    /// If there are ranks that this one shares no memory with.
    pub(super) post: Option<Post>,
    /// Where the server may run besides the cores of its rank.
    pub(super) cores: Option<Cores>,
    stopping: AtomicBool,
    /// The calls to other ranks that were begun here so far.
    begun: AtomicU64,
    /// Ranks that are known to have finished.
    finished: Vec<AtomicBool>,
    /// Keeps the inboxes.
    _shared: Shared,
}

/// What a wait has come to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Waited {
    Over,
    /// Longer than the options allow.
    TooLong,
}

impl Inner {
    /// Collective.
    pub(super) fn new(comm: &Comm, options: ServerOptions) -> Result<Arc<Self>> {
        // 1. A group of its own, so that letters do not mix with others'.
        let none = || TransportError::Invalid("no group, though a colour was given".into());
        let comm = comm.split(Some(0), comm.rank() as i64)?.ok_or_else(none)?;
        let (rank, size) = (comm.rank(), comm.size());
        let mut session = [u64::from(std::process::id()) ^ random()];
        comm.broadcast(0, &mut session)?;
        // 2. Inboxes, and who reaches whom in both directions.
        let in_place = comm.transport().shares_memory();
        let measures = Measures::new(size, in_place);
        let shared = comm.share(measures.bytes())?;
        let reaches = |peer: usize| -> Result<bool> {
            // SAFETY: nothing is copied.
            let copies = unsafe { comm.transport().copy_from(peer, 0, &mut []) }?;
            Ok(shared.of(peer).is_some() && copies)
        };
        let reached = (0..size).map(reaches).collect::<Result<Vec<bool>>>()?;
        let reached: Vec<u8> = reached.into_iter().map(u8::from).collect();
        let all = comm.all_gather(&reached)?;
        let inboxes: Vec<Option<Inbox>> = (0..size)
            .map(|peer| {
                let mutual = reached[peer] != 0 && all[peer * size + rank] != 0;
                let (start, _) = shared.of(peer).filter(|_| mutual || peer == rank)?;
                // SAFETY: so many bytes were shared, as inboxes only, and they
                // are kept for as long as this.
                Some(unsafe { Inbox::new(start, measures) })
            })
            .collect();
        let own = inboxes[rank].expect("a rank reaches its own memory");
        // SAFETY: the arena is there for as long as the inbox, for this rank's
        // calls only.
        let arena = Arc::new(unsafe { Arena::new(own.arena(), measures.arena) });
        let arena = (!in_place).then_some(arena);
        let routes = inboxes.iter().enumerate().map(|(peer, inbox)| match inbox {
            _ if peer == rank => Route::Own,
            Some(inbox) => Route::Lane(Lane::new(
                (rank, own),
                *inbox,
                measures.slots,
                arena.clone(),
            )),
            None => Route::Letters,
        });
        let routes: Vec<Route> = routes.collect();
        let letters = routes.iter().any(|route| matches!(route, Route::Letters));
        let [session] = session;
        let post = letters.then(|| Post::new(&comm, session));
        let cores = Cores::of_node(&comm, |peer| inboxes[peer].is_some())?;
        Ok(Arc::new(Self {
            session,
            options,
            registry: Registry::default(),
            in_place,
            inboxes,
            routes,
            post,
            cores,
            stopping: AtomicBool::new(false),
            begun: AtomicU64::new(0),
            finished: (0..size).map(|_| AtomicBool::new(false)).collect(),
            comm,
            _shared: shared,
        }))
    }

    pub(super) fn inbox(&self, rank: usize) -> Option<Inbox> {
        self.inboxes[rank]
    }

    /// Whether a rank is this one, or shares memory with it.
    pub(super) fn is_near(&self, rank: usize) -> bool {
        self.inboxes[rank].is_some()
    }

    pub(super) fn own_inbox(&self) -> Inbox {
        self.inboxes[self.comm.rank()].expect("a rank reaches its own memory")
    }

    /// The ranks that are reached by letters.
    pub(super) fn by_letter(&self) -> impl Iterator<Item = usize> {
        let routes = self.routes.iter().enumerate();
        routes.filter_map(|(rank, route)| matches!(route, Route::Letters).then_some(rank))
    }

    pub(super) fn is_stopping(&self) -> bool {
        self.stopping.load(Ordering::SeqCst)
    }

    /// Tells the server to end.
    pub(super) fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.own_inbox().head().ring();
    }

    /// How many calls to other ranks were begun here so far.
    pub(super) fn begun(&self) -> u64 {
        self.begun.load(Ordering::SeqCst)
    }

    /// Begins a call to another rank.
    pub(super) fn submit(&self, flight: &Arc<Flight>) -> Result<()> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        match (&self.routes[flight.target], &self.post) {
            (Route::Lane(lane), _) => lane.submit(flight),
            (Route::Letters, Some(post)) => post.submit(flight)?,
            // A rank does not send to itself, and letters have their post.
            _ => flight.end(Err(ProcedureFault::Finished)),
        }
        Ok(())
    }

    /// Posts queued calls of this rank for which slots have become free.
    pub(super) fn post_queued(&self) {
        if self.own_inbox().head().has_queues() {
            for route in &self.routes {
                if let Route::Lane(lane) = route {
                    lane.progress();
                }
            }
        }
    }

    /// Deals with the letters that have come.
    pub(super) fn look_for_letters(&self) -> Result<Found> {
        let Some(post) = &self.post else {
            return Ok(Found::default());
        };
        let found = post.look()?;
        let own = self.own_inbox();
        if found.answers {
            own.head().announce_answer();
        }
        if found.requests {
            own.head().ring();
        }
        Ok(found)
    }

    /// Whether a call is over, after taking the answers that have come.
    pub(super) fn is_over(&self, flight: &Flight) -> bool {
        if let (false, Route::Lane(lane)) = (flight.is_over(), &self.routes[flight.target]) {
            lane.progress();
        }
        flight.is_over()
    }

    /// Waits until one of the calls is over, the run has failed, or patience has
    /// an end.
    pub(super) fn await_any(&self, flights: &[&Arc<Flight>]) -> Result<Waited> {
        let any = || flights.iter().any(|flight| self.is_over(flight));
        let spins = |flight: &&Arc<Flight>| {
            let inbox = self.inboxes[flight.target].as_ref();
            inbox.is_some_and(|inbox| inbox.head().spins.load(Ordering::Relaxed) != 0)
        };
        let looks = LOOKS[usize::from(flights.iter().any(spins))];
        self.await_that(looks, any, || {
            for flight in flights {
                self.look_after(flight.target);
            }
        })
    }

    /// Waits until no call of this rank is under way.
    pub(super) fn await_all(&self) -> Result<Waited> {
        let idle = |route: &Route| match route {
            Route::Lane(lane) => {
                lane.progress();
                lane.is_idle()
            }
            Route::Own | Route::Letters => true,
        };
        let all = || {
            let posted = self.post.as_ref().is_none_or(Post::is_idle);
            posted && self.routes.iter().all(idle)
        };
        self.await_that(LOOKS[0], all, || {
            (0..self.routes.len()).for_each(|rank| self.look_after(rank));
        })
    }

    /// Waits until it `is_so`; after some `looks` it sleeps, and now and then
    /// takes a look `around`.
    fn await_that(
        &self,
        mut looks: u32,
        is_so: impl Fn() -> bool,
        around: impl Fn(),
    ) -> Result<Waited> {
        let began = self.options.patience.map(|_| Instant::now());
        let head = self.own_inbox();
        let head = head.head();
        let [mut nap, longest] = match self.post {
            Some(_) => SHORT_NAPS,
            None => NAPS,
        };
        loop {
            self.look_for_letters()?;
            if is_so() {
                return Ok(Waited::Over);
            }
            if looks > 0 {
                looks -= 1;
                continue;
            }
            if head.await_answer(&is_so, |word, seen| sleep_on(word, seen, nap)) || is_so() {
                return Ok(Waited::Over);
            }
            self.comm.check()?;
            around();
            nap = longest.min(nap * 2);
            let elapsed = began.map(|began| began.elapsed());
            if elapsed.is_some() && elapsed >= self.options.patience {
                return Ok(Waited::TooLong);
            }
        }
    }

    /// Ends the calls to `rank` that it will not answer, as it has ended.
    fn look_after(&self, rank: usize) {
        if !self.comm.ended(rank) {
            return;
        }
        match (&self.routes[rank], &self.post) {
            (Route::Lane(lane), _) => lane.give_up(),
            (Route::Letters, Some(post)) => post.give_up(rank),
            _ => {}
        }
    }

    /// Takes a call back if its procedure has not begun; false if its memory is
    /// still used.
    pub(super) fn withdraw(&self, flight: &Arc<Flight>) -> bool {
        match (&self.routes[flight.target], &self.post) {
            (Route::Lane(lane), _) => lane.withdraw(flight),
            (Route::Letters, Some(post)) => {
                post.withdraw(flight);
                true
            }
            _ => true,
        }
    }

    /// Returns when nobody uses the memory of a call any more that is given up.
    pub(super) fn abandon(&self, flight: &Arc<Flight>) {
        while !self.withdraw(flight) {
            thread::sleep(NAPS[0]);
        }
    }

    /// The error of a call that ended with `fault`.
    pub(super) fn error(&self, rank: usize, procedure: u32, fault: ProcedureFault) -> Error {
        let name = self.registry.name(procedure).unwrap_or_default();
        if fault == ProcedureFault::Finished
            && let Err(failure) = self.why_finished(rank)
        {
            return failure;
        }
        Error::Procedure {
            rank,
            procedure: name,
            fault,
        }
    }

    /// A server is gone before its rank says that it has ended, or failed: an
    /// error if the run has failed.
    fn why_finished(&self, rank: usize) -> Result<()> {
        let began = Instant::now();
        while !self.finished[rank].load(Ordering::Relaxed) {
            self.comm.check()?;
            if self.comm.ended(rank) || began.elapsed() > GRACE {
                self.finished[rank].store(true, Ordering::Relaxed);
            }
            thread::sleep(Duration::from_micros(200));
        }
        Ok(self.comm.check()?)
    }
}

/// A number that nobody else has.
fn random() -> u64 {
    use std::hash::{BuildHasher, RandomState};
    RandomState::new().hash_one(Instant::now())
}
