//! Procedure calls of one rank to another: what an empty one takes beside a
//! futex ping-pong, what one takes that moves bytes beside one-sided MPI and
//! `memcpy`, and what servers cost that wait.
//!
//! Rank 0 calls rank 1, which bears a load meanwhile. Contestants take turns.

mod load;
mod peer;
mod turns;

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use outcore::{Comm, Error, Procedure, Procedures, Result, ServerOptions};

use crate::line::Line;
use load::{Load, Table, processor_time};
use peer::Window;
use turns::{Player, Times, take_turns};

/// What is measured.
#[derive(Debug, Clone)]
pub struct GpcOptions {
    /// The bytes that calls move.
    pub bytes: Vec<usize>,
    /// Where one-sided MPI is built, if it takes part.
    pub peers: Option<PathBuf>,
    /// Turns of each contestant.
    pub repeats: usize,
}

/// How long the caller computes between calls that do not follow at once, so
/// that the server is asleep again.
const PAUSE: Duration = Duration::from_micros(100);

/// How long servers are watched while they wait.
const WATCHED: Duration = Duration::from_millis(1500);

/// Collective, of two ranks at least: all cases; rank 0 gets the lines.
pub fn gpc(comm: &Comm, options: &GpcOptions) -> Result<Vec<Line>> {
    if comm.size() < 2 {
        return Err(Error::Invalid("a rank calls another: two at least".into()));
    }
    let most = options.bytes.iter().copied().max().unwrap_or(0).max(8);
    let content: Vec<u8> = (0..most).map(|at| (at * 7 + at / 300) as u8).collect();
    let table = Table::new(comm)?;
    if !comm
        .all_gather(&[u8::from(table.is_reached())])?
        .iter()
        .all(|&here| here != 0)
    {
        return Err(Error::Invalid("the ranks must be on one node".into()));
    }
    let window = match &options.peers {
        Some(directory) => Some(Window::open(comm, directory, &content)?),
        None => None,
    };
    let over = AtomicBool::new(false);
    let mut bench = Bench {
        comm,
        repeats: options.repeats,
        table: &table,
        window: window.as_ref(),
        content: &content,
        lines: Vec::new(),
        turn: 0,
    };
    thread::scope(|scope| {
        if comm.rank() == 1 {
            scope.spawn(|| table.pong(&over));
        }
        let outcome = bench.run(options);
        over.store(true, Ordering::Relaxed);
        outcome
    })?;
    Ok(bench.lines)
}

/// What all cases share.
struct Bench<'a> {
    comm: &'a Comm,
    repeats: usize,
    table: &'a Table,
    window: Option<&'a Window>,
    content: &'a [u8],
    lines: Vec<Line>,
    turn: u32,
}

/// The procedures that are called.
struct Targets {
    procedures: Procedures,
    empty: Procedure,
    get: Procedure,
    put: Procedure,
}

impl Targets {
    /// Collective: `memory` is what each rank registers with them.
    fn new(comm: &Comm, memory: &[u8], options: ServerOptions) -> Result<Self> {
        let procedures = Procedures::start_with(comm, options)?;
        let empty = procedures.register("empty", |_, _| Ok(()))?;
        let memory = Arc::new(Mutex::new(memory.to_vec()));
        let source = memory.clone();
        let get = procedures.register("get", move |_, response| {
            let memory = source.lock().unwrap_or_else(PoisonError::into_inner);
            response.write(0, &memory[..response.room()])
        })?;
        let put = procedures.register("put", move |request, _| {
            let mut memory = memory.lock().unwrap_or_else(PoisonError::into_inner);
            request.read(0, &mut memory[..request.data_len()])
        })?;
        Ok(Self {
            procedures,
            empty,
            get,
            put,
        })
    }
}

impl<'a> Bench<'a> {
    /// Collective.
    fn run(&mut self, options: &GpcOptions) -> Result<()> {
        let targets = Targets::new(self.comm, self.content, ServerOptions::default())?;
        for load in [Load::Idle, Load::Busy, Load::AllBusy] {
            for pause in [Duration::ZERO, PAUSE] {
                self.empty(&targets, load, pause)?;
            }
        }
        for &bytes in &options.bytes {
            self.moves(&targets, bytes)?;
        }
        targets.procedures.close()?;
        self.spinning()?;
        self.waiting("shared memory")?;
        self.waiting_for_letters()
    }

    /// Collective: rank 1 bears `load` while rank 0's players take turns.
    fn under(&mut self, load: Load, mut players: Vec<Player<'_>>) -> Result<Vec<(Who, Times)>> {
        self.turn += 1;
        self.comm.barrier()?;
        let mut measured = Vec::new();
        match self.comm.rank() {
            0 => {
                let times = take_turns(&mut players, self.repeats);
                self.table.lift(self.turn);
                let names = players
                    .iter()
                    .map(|player| (player.system, player.strategy));
                measured = names.zip(times?).collect();
            }
            1 => self.table.bear(load, self.turn),
            _ => {}
        }
        self.comm.barrier()?;
        Ok(measured)
    }

    fn line(&self, who: Who, case: &str, op: &'static str, bytes: usize) -> Line {
        Line {
            system: who.0.into(),
            bench: "gpc",
            case: case.into(),
            op,
            strategy: who.1.into(),
            transport: carrier(self.comm).into(),
            ranks: self.comm.size(),
            useful_bytes: bytes as u64,
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    fn ping_pong(&self, pause: Duration) -> Player<'a> {
        let (table, ball) = (self.table, Cell::new(0));
        Player {
            system: "futex",
            strategy: "ping-pong",
            pause,
            call: Box::new(move || {
                let mut next = ball.get();
                table.ping(&mut next);
                ball.set(next);
                Ok(())
            }),
            check: Box::new(|| Ok(true)),
        }
    }

    /// An empty call beside a ping-pong; the distribution of both.
    fn empty(&mut self, targets: &Targets, load: Load, pause: Duration) -> Result<()> {
        let players = vec![
            Player {
                system: "outcore",
                strategy: "call",
                pause,
                call: Box::new(|| {
                    let procedures = &targets.procedures;
                    procedures.call(1, targets.empty, &[], &[], &mut [])?;
                    Ok(())
                }),
                check: Box::new(|| Ok(true)),
            },
            self.ping_pong(pause),
        ];
        let how = match pause.is_zero() {
            true => "one after the other",
            false => "after 100 us of work",
        };
        let case = format!("empty call; {}; {how}", load.name());
        for (who, times) in self.under(load, players)? {
            let line = self.line(who, &case, "call", 0);
            self.lines.extend(distribution(line, &times));
        }
        Ok(())
    }

    /// Calls that read and write the target's memory, while it computes.
    fn moves(&mut self, targets: &Targets, bytes: usize) -> Result<()> {
        for write in [false, true] {
            let buffer = RefCell::new(vec![0; bytes]);
            let other = RefCell::new(vec![1_u8; bytes]);
            let (content, procedures) = (&self.content[..bytes], &targets.procedures);
            // What was written is read again.
            let sound = || {
                let mut found = buffer.borrow_mut();
                if write {
                    procedures.call(1, targets.get, &[], &[], &mut found)?;
                }
                let right = *found == content;
                found.fill(0);
                if write {
                    found.copy_from_slice(content);
                }
                Ok(right)
            };
            if write {
                buffer.borrow_mut().copy_from_slice(content);
            }
            let mut players = vec![
                Player {
                    system: "outcore",
                    strategy: "call",
                    pause: Duration::ZERO,
                    call: Box::new(|| {
                        let mut buffer = buffer.borrow_mut();
                        match write {
                            true => procedures.call(1, targets.put, &[], &buffer, &mut [])?,
                            false => procedures.call(1, targets.get, &[], &[], &mut buffer)?,
                        };
                        Ok(())
                    }),
                    check: Box::new(sound),
                },
                Player {
                    system: "limit",
                    strategy: "memcpy",
                    pause: Duration::ZERO,
                    call: Box::new(|| {
                        other.borrow_mut().copy_from_slice(content);
                        std::hint::black_box(&other);
                        Ok(())
                    }),
                    check: Box::new(|| Ok(true)),
                },
            ];
            if let Some(window) = self.window {
                players.push(Player {
                    system: carrier(self.comm),
                    strategy: if write { "MPI_Put" } else { "MPI_Get" },
                    pause: Duration::ZERO,
                    call: Box::new(|| window.shift(&mut buffer.borrow_mut(), write)),
                    check: Box::new(|| {
                        let mut found = buffer.borrow_mut();
                        if write {
                            window.shift(&mut found, false)?;
                        }
                        Ok(*found == content)
                    }),
                });
            }
            let op = if write { "write" } else { "read" };
            let measured = self.under(Load::Busy, players)?;
            for (who, times) in measured {
                let case = format!("{bytes} B; {}", Load::Busy.name());
                let mut line = self.line(who, &case, op, bytes);
                (line.best_s, line.median_s) = (times.best(), times.quantile(0.5));
                line.ok = times.ok;
                self.lines.push(line);
            }
        }
        Ok(())
    }

    /// Collective: servers that spin, on an idle target, beside 8 bytes of
    /// one-sided MPI.
    fn spinning(&mut self) -> Result<()> {
        // On two cores: the server of the target on one, the caller on another.
        let options = ServerOptions {
            spin: self.comm.rank() == 1,
            ..Default::default()
        };
        let targets = Targets::new(self.comm, &self.content[..8], options)?;
        let buffer = RefCell::new(vec![0; 8]);
        let content = &self.content[..8];
        let mut players = vec![Player {
            system: "outcore",
            strategy: "spinning call",
            pause: Duration::ZERO,
            call: Box::new(|| {
                let (procedures, mut buffer) = (&targets.procedures, buffer.borrow_mut());
                procedures.call(1, targets.get, &[], &[], &mut buffer)?;
                Ok(())
            }),
            check: Box::new(|| Ok(*buffer.borrow() == content)),
        }];
        if let Some(window) = self.window {
            players.push(Player {
                system: carrier(self.comm),
                strategy: "MPI_Get",
                pause: Duration::ZERO,
                call: Box::new(|| window.shift(&mut buffer.borrow_mut(), false)),
                check: Box::new(|| Ok(*buffer.borrow() == content)),
            });
        }
        let case = format!("8 B; spinning; {}", Load::Idle.name());
        for (who, times) in self.under(Load::Idle, players)? {
            let mut line = self.line(who, &case, "read", 8);
            (line.best_s, line.median_s) = (times.best(), times.quantile(0.5));
            line.ok = times.ok;
            self.lines.push(line);
        }
        targets.procedures.close()
    }

    /// Collective: the processor time of a server that waits, in seconds a
    /// second.
    fn waiting(&mut self, by: &str) -> Result<()> {
        let targets = Targets::new(self.comm, &[], ServerOptions::default())?;
        self.comm.barrier()?;
        let (began, before) = (Instant::now(), processor_time());
        thread::sleep(WATCHED);
        let used = (processor_time() - before).as_secs_f64();
        let mut share = used / began.elapsed().as_secs_f64();
        if self.comm.transport().shares_memory() {
            // The servers of all ranks.
            share /= self.comm.size() as f64;
        }
        let share = self.comm.all_reduce_one(share, outcore::Op::Max)?;
        if self.comm.rank() == 0 {
            let case = format!("a server that waits; {by}; seconds a second");
            let mut line = self.line(("outcore", "server"), &case, "wait", 0);
            (line.best_s, line.median_s) = (share, share);
            self.lines.push(line);
        }
        targets.procedures.close()
    }

    /// Collective: the same where servers look for letters, as if each rank had
    /// a node of its own.
    #[cfg(feature = "mpi")]
    fn waiting_for_letters(&mut self) -> Result<()> {
        if !outcore::under_launcher() {
            return Ok(());
        }
        outcore_transport_mpi::set_node_memory(false);
        let outcome = self.waiting("letters");
        outcore_transport_mpi::set_node_memory(true);
        outcome
    }

    /// Threads have no letters to look for.
    #[cfg(not(feature = "mpi"))]
    fn waiting_for_letters(&mut self) -> Result<()> {
        Ok(())
    }
}

/// System and strategy.
type Who = (&'static str, &'static str);

/// A line for each of some quantiles, and one as usual.
fn distribution(line: Line, times: &Times) -> Vec<Line> {
    let mut lines = vec![Line {
        best_s: times.best(),
        median_s: times.quantile(0.5),
        ..line.clone()
    }];
    for (name, part) in [("p90", 0.9), ("p99", 0.99), ("max", 1.0)] {
        lines.push(Line {
            strategy: format!("{} {name}", line.strategy),
            best_s: times.quantile(part),
            median_s: times.quantile(part),
            ..line.clone()
        });
    }
    lines
}

/// What carries messages between the ranks.
fn carrier(comm: &Comm) -> &'static str {
    match comm.transport().name() {
        name if name == "threads" => "threads",
        name if name.starts_with("Open MPI") => "openmpi",
        _ => "mpich",
    }
}

/// For each case: how outcore does beside the others.
pub fn gpc_summary(lines: &[Line]) -> String {
    let mut text = String::new();
    for line in lines.iter().filter(|line| line.system == "outcore") {
        let same = |other: &&Line| {
            let kind = |line: &Line| line.strategy.split_whitespace().last().map(str::to_string);
            let tails = ["p90", "p99", "max"];
            let tail = |line: &Line| kind(line).filter(|kind| tails.contains(&kind.as_str()));
            let fits = other.case == line.case && other.op == line.op;
            fits && other.system != "outcore" && tail(other) == tail(line)
        };
        let name = format!("{} {} {}", line.case, line.op, line.strategy);
        text += &format!("{name}: {:.2} us", line.median_s * 1e6);
        for other in lines.iter().filter(same) {
            let ratio = line.median_s / other.median_s;
            text += &format!(", {ratio:.2} of {} {}", other.system, other.strategy);
        }
        text += "\n";
    }
    text
}
