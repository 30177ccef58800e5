//! How a command becomes the work of ranks, on threads and under MPI alike.

use std::io::{ErrorKind, Write};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use clap::{Arg, Args};
use outcore::{Comm, Error, Result, TransportError};

/// How many ranks somebody asks for.
pub(crate) fn parse_ranks(text: &str) -> Result<u32, String> {
    let ranks = text.parse().ok();
    let ranks = ranks.filter(|ranks: &u32| (1..=MOST_THREADS).contains(&i64::from(*ranks)));
    ranks.ok_or_else(|| format!("the number of ranks is from 1 to {MOST_THREADS}"))
}

/// More threads than this take gigabytes to tell one another about.
const MOST_THREADS: i64 = 1024;

/// The option `--ranks`.
#[derive(Args, Clone, Copy, Default)]
pub(crate) struct Ranks {
    /// How many ranks share the work (threads; under mpirun its -n counts) [default: 1]
    #[arg(long, value_name = "N", value_parser = parse_ranks, allow_hyphen_values = true)]
    pub(crate) ranks: Option<u32>,
    /// How many there are if nobody asks, instead of one.
    #[arg(skip)]
    usual: Option<u32>,
}

/// How many there are where [`outcore::default_ranks`] says it.
pub(crate) const ONE_A_CORE: &str = "one a core, or as many as OUTCORE_RANKS says";

/// The help of `--ranks` where another number is usual.
pub(crate) fn usual(number: &'static str) -> impl FnOnce(Arg) -> Arg {
    move |arg| {
        arg.help(format!(
            "How many ranks share the work (threads; under mpirun its -n counts) [default: {number}]"
        ))
    }
}

/// Whether somebody asked for ranks, or a launcher started them.
static ASKED: AtomicBool = AtomicBool::new(false);

/// The rank of this process under MPI; 0 otherwise.
static RANK: AtomicUsize = AtomicUsize::new(0);

impl Ranks {
    /// As if so many had been asked for, if any.
    pub(crate) fn of(ranks: Option<u32>) -> Self {
        Self { ranks, usual: None }
    }

    /// With so many if nobody asks.
    pub(crate) fn usually(self, ranks: usize) -> Self {
        let usual = u32::try_from(ranks).ok();
        Self { usual, ..self }
    }

    /// Runs `program` on the ranks asked for; one if nobody asked.
    pub(crate) fn run(&self, program: impl Fn(&Comm) -> Result<()> + Sync) -> Result<()> {
        let threads = self.ranks.or(self.usual).unwrap_or(1) as usize;
        ASKED.store(self.ranks.is_some_and(|ranks| ranks > 1), Ordering::Relaxed);
        outcore::run(threads, |comm| {
            if outcore::under_launcher() {
                ASKED.store(comm.size() > 1, Ordering::Relaxed);
                RANK.store(comm.rank(), Ordering::Relaxed);
                comm.agree(self.check_launched(comm))?;
            }
            program(comm)
        })?;
        Ok(())
    }

    /// Under mpirun, `--ranks` may only repeat what its -n says.
    fn check_launched(&self, comm: &Comm) -> Result<()> {
        match self.ranks {
            Some(asked) if asked as usize != comm.size() => Err(Error::Invalid(format!(
                "--ranks {asked} was asked for, but the launcher started {} ranks; leave it out",
                comm.size()
            ))),
            _ => Ok(()),
        }
    }
}

/// As many threads as the array `name` has parts, if there can be so many.
pub(crate) fn threads_for(name: &str, parts: u64) -> Result<u32> {
    let threads = u32::try_from(parts).ok();
    let possible = threads.filter(|threads| i64::from(*threads) <= MOST_THREADS);
    possible.ok_or_else(|| {
        Error::Invalid(format!(
            "{name} has local files for {parts} ranks, but at most {MOST_THREADS} run as threads; \
             start {parts} with mpirun, or make fewer files with 'outcore convert {name} NEW.oc \
             --placement local --parts N'"
        ))
    })
}

/// Runs something that only one rank must do: rank 0 under mpirun.
pub(crate) fn once(work: impl Fn() -> Result<()> + Sync) -> Result<()> {
    Ranks::default().run(|comm| {
        let outcome = if comm.rank() == 0 { work() } else { Ok(()) };
        Ok(comm.agree(outcome)?)
    })
}

/// Whether this process should print `error`: one that all ranks share is
/// printed once.
pub(crate) fn speaks_for(error: &Error) -> bool {
    let shared = matches!(
        error,
        Error::Transport(TransportError::Agreed { .. } | TransportError::PeerFailed { .. })
    );
    !shared || RANK.load(Ordering::Relaxed) == 0
}

/// What to tell the user: which rank failed matters only to who asked for several.
pub(crate) fn message(error: &Error) -> String {
    match ASKED.load(Ordering::Relaxed) {
        true => error.to_string(),
        false => cause(error),
    }
}

/// The error without the rank on which it happened.
pub(crate) fn cause(error: &Error) -> String {
    match error {
        Error::Transport(TransportError::Agreed { cause, .. }) => cause.clone(),
        other => other.to_string(),
    }
}

/// Whether ranks stopped because of a signal; all of them find the same.
pub(crate) fn is_interruption(error: &Error) -> bool {
    cause(error) == Error::Interrupted.to_string()
}

/// Prints to standard output.
pub(crate) fn print(text: &str) -> Result<()> {
    printed(std::io::stdout().write_all(text.as_bytes()))
}

/// What came of printing to standard output, once all of it is out.
pub(crate) fn printed(outcome: std::io::Result<()>) -> Result<()> {
    let outcome = outcome.and_then(|()| std::io::stdout().flush());
    until_closed(outcome.map_err(|source| Error::File {
        action: "write to",
        path: PathBuf::from("standard output"),
        source,
    }))
}

/// A line as it is shown: names and texts in files may hold what a terminal would obey, or
/// what turns the direction of letters.
pub(crate) fn shown(line: &str) -> String {
    let turns = |letter| matches!(letter, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}');
    let letter = |letter: char| match letter.is_control() || turns(letter) {
        true => letter.escape_debug().to_string(),
        false => letter.to_string(),
    };
    line.chars().map(letter).collect()
}

/// Whoever closes the pipe that we print into has seen enough.
pub(crate) fn until_closed(printed: Result<()>) -> Result<()> {
    match printed {
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
