//! [`Procedures`]: code that any rank runs on any other, at any time.
//!
//! A rank registers procedures together with all others, and calls one on any
//! rank, with a header and data of any size both ways, without the target's own
//! program taking part: each rank has a data server, a thread that sleeps until
//! it is called (Nieplocha et al., global procedure calls; the protocol is in
//! the README beside this file).
//!
//! The parts, from the bottom: `slot` and `arena` (what lies in shared memory),
//! `fault` and `flight` (one call), `lane` (calls to a rank of the same node), `post` (calls
//! by letter), `request` (what procedures see), `registry`, `inner` (what is
//! shared, and the waiting), `server`, `call`.

mod arena;
mod call;
mod cores;
mod fault;
mod flight;
mod inner;
mod lane;
mod post;
mod registry;
mod request;
mod server;
mod slot;

use std::fmt;
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use outcore_transport::{Comm, Error as TransportError, Op};

pub use call::{Answer, Call};
pub use fault::ProcedureFault;
pub use flight::Reply;
pub use request::{Request, Response};

use crate::error::{Error, Result};
use flight::Flight;
use inner::Inner;
use request::{Source, Target};

/// How a rank serves and calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServerOptions {
    /// Whether the server keeps a core busy instead of sleeping, and who waits
    /// for its answer does so for a while: answers come within a microsecond if
    /// there are cores to spare.
    pub spin: bool,
    /// How long a caller waits for an answer; `None`, the default, is for ever.
    pub patience: Option<Duration>,
}

/// A registered procedure: the same value on all ranks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Procedure {
    session: u64,
    number: u32,
}

/// The procedures of a group of ranks, as one rank sees them, and its data
/// server. Cloning gives another handle on the same.
///
/// A procedure runs on the server's thread, one after the other; a call to the
/// rank itself runs at once on the caller's. So it must not wait for a call: a
/// procedure that needs another rank starts one
/// ([`Request::procedures`], [`Procedures::start_call`]) and leaves the answer
/// to somebody else. It sees what was registered with it, and must not keep a
/// clone of these handles, which would keep the server alive.
///
/// The server ends when the last handle is dropped, or at [`Procedures::close`].
/// Calls to a rank whose server has ended give [`ProcedureFault::Finished`];
/// errors and panics of a procedure reach its caller alone.
///
/// ```
/// use outcore::{Error, Procedures};
///
/// outcore::run(3, |comm| {
///     let procedures = Procedures::start(comm)?;
///     // Each rank holds some numbers; anybody may ask for their sum.
///     let numbers = vec![comm.rank() as u64 + 1; 100];
///     let sum = procedures.register("sum", move |_, response| {
///         let sum: u64 = numbers.iter().sum();
///         response.header = sum.to_ne_bytes().to_vec();
///         Ok(())
///     })?;
///     let next = (comm.rank() + 1) % comm.size();
///     let reply = procedures.call(next, sum, &[], &[], &mut [])?;
///     assert_eq!(reply.header, (100 * (next as u64 + 1)).to_ne_bytes());
///     procedures.close()
/// })?;
/// # Ok::<(), Error>(())
/// ```
#[derive(Clone)]
pub struct Procedures {
    inner: Arc<Inner>,
    /// Ends the server with the last of them; `None` for procedures.
    server: Option<Arc<RunningServer>>,
}

impl Procedures {
    /// Collective: starts the data server of this rank.
    pub fn start(comm: &Comm) -> Result<Self> {
        Self::start_with(comm, ServerOptions::default())
    }

    /// Collective: starts the data server of this rank in a certain way, which
    /// may differ between ranks.
    pub fn start_with(comm: &Comm, options: ServerOptions) -> Result<Self> {
        let inner = Inner::new(comm, options)?;
        let serving = inner.clone();
        let thread = thread::Builder::new()
            .name(format!("server of rank {}", comm.rank()))
            .spawn(move || server::serve(serving))
            .map_err(|error| format!("there is no thread for a data server: {error}"));
        // Where all have none, nobody keeps a server.
        let thread = inner.comm.agree(thread).inspect_err(|_| inner.stop())?;
        let server = RunningServer {
            inner: inner.clone(),
            thread: Mutex::new(Some(thread)),
        };
        Ok(Self {
            inner,
            server: Some(Arc::new(server)),
        })
    }

    /// A handle that does not keep the server.
    fn of(inner: &Arc<Inner>) -> Self {
        Self {
            inner: inner.clone(),
            server: None,
        }
    }

    /// Whether a rank is this one, or shares memory with it.
    pub(crate) fn shares_node(&self, rank: usize) -> bool {
        self.inner.is_near(rank)
    }

    /// How long a caller waits for an answer; `None` is for ever.
    pub(crate) fn patience(&self) -> Option<Duration> {
        self.inner.options.patience
    }

    /// Collective: fails on all ranks of `comm` unless they give the procedures of that
    /// very group, or all give none.
    pub(crate) fn check_group(procedures: Option<&Self>, comm: &Comm) -> Result<()> {
        let (session, same) = procedures.map_or((0, true), |procedures| {
            let own = &procedures.inner.comm;
            let same = (own.rank(), own.size()) == (comm.rank(), comm.size());
            (procedures.inner.session, same)
        });
        // The least of all, the complement of the greatest, and whether all are.
        let found = comm.all_reduce(&[session, !session, u64::from(same)], Op::Min)?;
        match found[0] == !found[1] && found[2] == 1 {
            true => Ok(()),
            false => Err(Error::Invalid(
                "the procedures are of another group of ranks: start some with the ranks that \
                 share the array or file"
                    .into(),
            )),
        }
    }

    /// Collective: registers a procedure under a name, which must be new and
    /// the same on all ranks; else all ranks get the same error.
    pub fn register<F>(&self, name: &str, procedure: F) -> Result<Procedure>
    where
        F: Fn(&Request<'_>, &mut Response<'_>) -> Result<()> + Send + Sync + 'static,
    {
        let inner = &self.inner;
        // 1. Known here before anybody can call it.
        let number = inner.registry.add(name, Arc::new(procedure));
        // 2. The same on all ranks.
        let mut expected = name.to_string();
        let told = inner.comm.broadcast_string(0, &mut expected);
        let agreed = told.and_then(|()| {
            inner.comm.agree(match number {
                Some(number) if expected == name => Ok(number),
                Some(_) => Err(format!(
                    "procedure {name:?} is registered where rank 0 registers {expected:?}"
                )),
                None => Err(format!("there is a procedure {name:?} already")),
            })
        });
        if agreed.is_err() && number.is_some() {
            inner.registry.remove_last();
        }
        Ok(Procedure {
            session: inner.session,
            number: agreed?,
        })
    }

    /// Calls a procedure on `rank` and waits for it: it gets `header` and
    /// `data`, and what it gives stands in `response` and in the reply. On
    /// threads it uses this memory in place.
    pub fn call(
        &self,
        rank: usize,
        procedure: Procedure,
        header: &[u8],
        data: &[u8],
        response: &mut [u8],
    ) -> Result<Reply> {
        let (inner, number) = (&self.inner, self.check(rank, procedure)?);
        if inner.options.patience.is_some() && rank != inner.comm.rank() {
            return self.call_impatiently(rank, procedure, header, data, response);
        }
        // SAFETY: this call returns when the flight is over, or when nobody
        // uses the memory any more.
        let flight = unsafe { Flight::borrowing(rank, number, header, data, response) };
        let flight = Arc::new(flight);
        self.submit(&flight)?;
        if !flight.is_over()
            && let Err(failure) = inner.await_any(&[&flight])
        {
            inner.abandon(&flight);
            return Err(failure);
        }
        let outcome = flight.take_outcome();
        outcome.map_err(|fault| inner.error(rank, number, fault))
    }

    /// A call that may be given up while the target still uses its memory.
    fn call_impatiently(
        &self,
        rank: usize,
        procedure: Procedure,
        header: &[u8],
        data: &[u8],
        response: &mut [u8],
    ) -> Result<Reply> {
        let room = vec![0; response.len()];
        let call = self.start_call(rank, procedure, header, data.to_vec(), room)?;
        let answer = call.wait()?;
        let len = answer.data.len();
        response[..len].copy_from_slice(&answer.data);
        Ok(Reply {
            header: answer.header,
            len,
        })
    }

    /// Starts a call of a procedure on `rank` and does not wait: `data` and the
    /// room for response data come back with the answer.
    pub fn start_call(
        &self,
        rank: usize,
        procedure: Procedure,
        header: &[u8],
        data: Vec<u8>,
        response: Vec<u8>,
    ) -> Result<Call> {
        let number = self.check(rank, procedure)?;
        let flight = Arc::new(Flight::owning(rank, number, header, data, response));
        self.submit(&flight)?;
        Ok(Call {
            inner: self.inner.clone(),
            flight,
        })
    }

    /// Refuses ranks and procedures that are not.
    fn check(&self, rank: usize, procedure: Procedure) -> Result<u32> {
        let (inner, size) = (&self.inner, self.inner.comm.size());
        if rank >= size {
            return Err(TransportError::NoSuchRank { rank, size }.into());
        }
        if procedure.session != inner.session || !inner.registry.contains(procedure.number) {
            let text =
                "this is no procedure of these: it was registered elsewhere, or they are closed";
            return Err(Error::Invalid(text.into()));
        }
        Ok(procedure.number)
    }

    /// Begins a call; one to the rank itself runs now.
    fn submit(&self, flight: &Arc<Flight>) -> Result<()> {
        if flight.target != self.inner.comm.rank() {
            return self.inner.submit(flight);
        }
        let (start, room) = flight.response();
        // SAFETY: the room is the flight's, which nobody else uses.
        let target = unsafe { slice::from_raw_parts_mut(start, room) };
        let mut response = Response {
            header: Vec::new(),
            room,
            len: 0,
            target: Target::Here(target),
        };
        let data = flight.data();
        let handle = Self::of(&self.inner);
        let request = Request {
            caller: flight.target,
            procedures: &handle,
            header: flight.header(),
            data_len: data.len(),
            source: Source::Here(data),
        };
        let (status, header) = server::run(&self.inner, flight.procedure, &request, &mut response);
        flight.answer(status, header, response.len);
        Ok(())
    }

    /// Collective: waits until all calls of all ranks are over, those that procedures
    /// have started as well, then ends the server. Other handles on it are of no use any
    /// more.
    pub fn close(self) -> Result<()> {
        let met = self.await_silence();
        if let Some(server) = &self.server {
            server.stop();
        }
        met
    }

    /// Collective: returns when all calls are over and no procedure runs that could start
    /// another: when nobody has started any since everybody's were over.
    fn await_silence(&self) -> Result<()> {
        let (inner, mut before) = (&self.inner, None);
        loop {
            inner.await_all()?;
            let begun = inner.comm.all_reduce_one(inner.begun(), Op::Sum)?;
            if before.replace(begun) == Some(begun) {
                return Ok(());
            }
        }
    }
}

impl fmt::Debug for Procedures {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (comm, registry) = (&self.inner.comm, &self.inner.registry);
        write!(f, "Procedures({registry:?} of {comm:?})")
    }
}

/// The server of a rank, which ends with this.
struct RunningServer {
    inner: Arc<Inner>,
    thread: Mutex<Option<JoinHandle<()>>>,
}

impl RunningServer {
    fn thread(&self) -> std::sync::MutexGuard<'_, Option<JoinHandle<()>>> {
        self.thread.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns when the server has ended; what procedures have captured is
    /// dropped then.
    fn stop(&self) {
        let thread = self.thread().take();
        if let Some(thread) = thread {
            self.inner.stop();
            // Panics of procedures are caught; others have been reported.
            let _ = thread.join();
            self.inner.registry.clear();
        }
    }
}

impl Drop for RunningServer {
    fn drop(&mut self) {
        self.stop();
    }
}
