//! [`Stage`]: the tensors of one case on the disks of the ranks, and the
//! contestants who contract them.

use std::cell::{Cell, RefCell};
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Instant;

use outcore::{Comm, Error, MemoryBudget, Op, Result};
use outcore_apps::Resources;
use outcore_apps::contract::{
    Blocks, Contracted, Contraction, Placing, TaskCounter, Tensors, Way, contract,
};

use super::made_up::{MadeUp, Memory};
use super::{Case, ContractOptions};
use crate::contest::{Contestant, contest};
use crate::line::Line;

/// The seeds of the factors.
const LEFT: MadeUp = MadeUp { seed: 1 };
const RIGHT: MadeUp = MadeUp { seed: 2 };

/// The system of procedure calls; the others are what it is compared with.
pub(super) const OUTCORE: &str = "outcore";

/// The strategies of the lines.
pub(super) const CALLS: &str = "procedure calls";
pub(super) const REPLICATION: &str = "replication and contraction";
pub(super) const UNSYNCED: &str = "replication into memory and contraction";
pub(super) const REPLICAS: &str = "replicas made before";
pub(super) const FILES: &str = "a file a rank";
pub(super) const STRIPED: &str = "a file a rank striped";

/// What the lines are of.
pub(super) const CONTRACT: &str = "contract";
pub(super) const GEMM: &str = "gemm";
pub(super) const REPLICATE: &str = "replicate";

type Block = Box<dyn Blocks<f64>>;

/// One rank's view of a case.
pub(super) struct Stage<'a> {
    comm: &'a Comm,
    case: &'a Case,
    contraction: &'a Contraction,
    directory: &'a Path,
    resources: Resources<'static>,
    /// The result that all should come to.
    expected: Vec<f64>,
}

impl<'a> Stage<'a> {
    /// Collective: what should come out.
    pub(super) fn new(
        comm: &'a Comm,
        case: &'a Case,
        contraction: &'a Contraction,
        directory: &'a Path,
    ) -> Result<Self> {
        let memory = case.memory(contraction) * comm.size() as u64;
        let mut stage = Self {
            comm,
            case,
            contraction,
            directory,
            resources: Resources::of(MemoryBudget::of(memory)),
            expected: Vec::new(),
        };
        let output = Memory::of(contraction.output().len());
        stage.contract(&output, &LEFT, &RIGHT)?;
        stage.expected = comm.all_reduce(&output.into_values(), Op::Sum)?;
        Ok(stage)
    }

    /// Collective: the work of all contestants.
    fn contract(
        &self,
        output: &dyn Blocks<f64>,
        left: &dyn Blocks<f64>,
        right: &dyn Blocks<f64>,
    ) -> Result<Contracted> {
        let tensors = Tensors {
            output,
            left,
            right,
        };
        let tasks = TaskCounter::new(self.comm, None, self.contraction.groups())?;
        let done = contract(
            self.comm,
            self.contraction,
            &tensors,
            &tasks,
            &self.resources,
        )?;
        Ok(done)
    }

    /// Collective: lets the contestants take turns.
    pub(super) fn contest(&self, options: &ContractOptions) -> Result<Vec<Line>> {
        // Replicas are made of what procedure calls reach.
        let original = Rc::new(Player::new(self, Way::Calls)?);
        original.place(&LEFT, &RIGHT)?;
        original.lend(|left, right| left.sync().and_then(|()| right.sync()))?;
        let mut players = Vec::new();
        for way in &options.ways {
            match way {
                Way::Calls => players.push((CALLS, Rc::clone(&original))),
                Way::Replicas => {
                    let player = Rc::new(Player::new(self, *way)?);
                    players.push((REPLICATION, Rc::clone(&player)));
                    players.push((UNSYNCED, Rc::clone(&player)));
                    players.push((REPLICAS, player));
                }
                Way::Files | Way::Striped => {
                    let strategy = if *way == Way::Files { FILES } else { STRIPED };
                    let player = Rc::new(Player::new(self, *way)?);
                    player.place(&LEFT, &RIGHT)?;
                    player.lend(|left, right| left.sync().and_then(|()| right.sync()))?;
                    players.push((strategy, player));
                }
                Way::Shared => {
                    return Err(Error::Invalid(
                        "the paper has no array that all ranks reach; choose other ways".into(),
                    ));
                }
            }
        }
        let contestants = players.iter().map(|(strategy, player)| match *strategy {
            REPLICATION | UNSYNCED => self.replicating(strategy, player, &original),
            strategy => self.contracting(strategy, player, &original),
        });
        let mut lines = contest(self.comm, contestants.collect(), options.repeats)?;
        let mut others = Vec::new();
        for (line, (strategy, player)) in lines.iter_mut().zip(&players) {
            let (op, seconds) = match *strategy {
                REPLICATION | UNSYNCED => {
                    let turns = &player.turns.borrow()[usize::from(*strategy == UNSYNCED)];
                    // What is off the clock between the two is in the contest's times.
                    let total = Summary::of(turns.iter().map(|(placing, rest)| placing + rest));
                    (line.best_s, line.median_s) = (total.best, total.median);
                    let placing = Summary::of(turns.iter().map(|(placing, _)| *placing));
                    (REPLICATE, placing)
                }
                _ => {
                    let mean = player.done.get().multiplying / self.comm.size() as f64;
                    (GEMM, Summary::of([0.0, mean]))
                }
            };
            others.push(Line {
                op,
                best_s: seconds.best,
                median_s: seconds.median,
                ..line.clone()
            });
        }
        lines.extend(others);
        self.comm.barrier()?;
        drop(players);
        if let Ok(player) = Rc::try_unwrap(original) {
            player.end()?;
        }
        Ok(lines)
    }

    fn line(&self, strategy: &str) -> Line {
        let system = match strategy {
            CALLS => OUTCORE,
            REPLICATION | UNSYNCED | REPLICAS => "replication",
            _ => "file system",
        };
        let tensors = [self.contraction.left(), self.contraction.right()];
        Line {
            system: system.into(),
            bench: "contract",
            case: self.case.name(),
            op: CONTRACT,
            strategy: strategy.into(),
            transport: "threads".into(),
            ranks: self.comm.size(),
            useful_bytes: tensors.iter().map(|tensor| 8 * tensor.len()).sum(),
            best_s: 0.0,
            median_s: 0.0,
            ok: true,
        }
    }

    /// A contraction of blocks that are where they should be.
    fn contracting<'b>(
        &'b self,
        strategy: &str,
        player: &Rc<Player<'b>>,
        original: &Rc<Player<'b>>,
    ) -> Contestant<'b> {
        let [prepared, player, checked] = [(); 3].map(|()| Rc::clone(player));
        let original = Rc::clone(original);
        Contestant {
            line: self.line(strategy),
            prepare: Box::new(move || {
                if !prepared.is_placed() {
                    original.lend(|left, right| prepared.place(left, right))?;
                }
                prepared.clear()?;
                prepared.lend(|left, right| self.chill(left, right))
            }),
            work: Box::new(move || {
                player.lend(|left, right| {
                    let done = self.contract(&*player.output, left, right)?;
                    player.done.set(done);
                    Ok(())
                })
            }),
            check: Box::new(move || checked.is_right()),
            batch: 1,
        }
    }

    /// The same after a copy was made for every rank. If it is synced, and should be
    /// cold, it is dropped from the page cache then, off the clock: the nodes of the
    /// paper have no memory for it.
    fn replicating<'b>(
        &'b self,
        strategy: &'static str,
        player: &Rc<Player<'b>>,
        original: &Rc<Player<'b>>,
    ) -> Contestant<'b> {
        let [prepared, player, checked] = [(); 3].map(|()| Rc::clone(player));
        let [before, original] = [(); 2].map(|()| Rc::clone(original));
        let unsynced = strategy == UNSYNCED;
        Contestant {
            line: self.line(strategy),
            prepare: Box::new(move || {
                prepared.remove()?;
                prepared.clear()?;
                before.lend(|left, right| self.chill(left, right))
            }),
            work: Box::new(move || {
                let start = Instant::now();
                original.lend(|left, right| player.place(left, right))?;
                if !unsynced {
                    player.lend(|left, right| left.sync().and_then(|()| right.sync()))?;
                }
                self.comm.barrier()?;
                let placing = start.elapsed().as_secs_f64();
                if !unsynced {
                    player.lend(|left, right| self.chill(left, right))?;
                    self.comm.barrier()?;
                }
                let start = Instant::now();
                player.lend(|left, right| self.contract(&*player.output, left, right).map(drop))?;
                let rest = start.elapsed().as_secs_f64();
                player.turns.borrow_mut()[usize::from(unsynced)].push((placing, rest));
                Ok(())
            }),
            check: Box::new(move || {
                // Nobody else should wait while its pages are written.
                let quiet = checked.lend(|left, right| left.sync().and_then(|()| right.sync()));
                quiet.is_ok() & checked.is_right()
            }),
            batch: 1,
        }
    }

    /// Drops the factors from the page cache, if they should be cold.
    fn chill(&self, left: &dyn Blocks<f64>, right: &dyn Blocks<f64>) -> Result<()> {
        if self.case.cold {
            left.forget()?;
            right.forget()?;
        }
        Ok(())
    }
}

/// The least and the middle of some times; the first is of a turn that warms up.
struct Summary {
    best: f64,
    median: f64,
}

impl Summary {
    fn of(times: impl IntoIterator<Item = f64>) -> Self {
        let mut times: Vec<f64> = times.into_iter().skip(1).collect();
        times.sort_by(f64::total_cmp);
        Self {
            best: times.first().copied().unwrap_or(0.0),
            median: times.get(times.len() / 2).copied().unwrap_or(0.0),
        }
    }
}

/// The tensors as one contestant has them.
struct Player<'a> {
    stage: &'a Stage<'a>,
    placing_way: Placing,
    directory: PathBuf,
    factors: RefCell<Option<(Block, Block)>>,
    output: Block,
    /// What the last contraction did.
    done: Cell<Contracted>,
    /// The seconds of each replication, synced or not, and of the contraction after it.
    turns: RefCell<[Vec<(f64, f64)>; 2]>,
}

impl<'a> Player<'a> {
    /// Collective: a contestant without factors.
    fn new(stage: &'a Stage<'a>, way: Way) -> Result<Self> {
        let directory = stage.directory.join(way.name());
        let placing_way = Placing::start(stage.comm, way, &directory)?;
        let tensor = stage.contraction.output();
        let zeros = Memory::of(tensor.len());
        let output = match way {
            // Each rank writes its blocks into files of its own, too.
            Way::Replicas => {
                let results = stage.directory.join("results");
                let files = Placing::start(stage.comm, Way::Files, &results)?;
                files.place(tensor, &zeros, &stage.resources)?
            }
            _ => placing_way.place(tensor, &zeros, &stage.resources)?,
        };
        let output = output.ok_or_else(|| Error::Invalid("the result has no place".into()))?;
        Ok(Self {
            stage,
            placing_way,
            directory,
            factors: RefCell::new(None),
            output,
            done: Cell::default(),
            turns: RefCell::default(),
        })
    }

    /// Collective: brings the factors to where they should be.
    fn place(&self, left: &dyn Blocks<f64>, right: &dyn Blocks<f64>) -> Result<()> {
        let (stage, resources) = (self.stage, &self.stage.resources);
        let place = |tensor, blocks| {
            let placed = self.placing_way.place::<f64>(tensor, blocks, resources)?;
            placed.ok_or_else(|| Error::Invalid("a factor has no place".into()))
        };
        let left = place(stage.contraction.left(), left)?;
        let right = place(stage.contraction.right(), right)?;
        *self.factors.borrow_mut() = Some((left, right));
        Ok(())
    }

    fn is_placed(&self) -> bool {
        self.factors.borrow().is_some()
    }

    /// Does something with the factors.
    fn lend<R>(
        &self,
        work: impl FnOnce(&dyn Blocks<f64>, &dyn Blocks<f64>) -> Result<R>,
    ) -> Result<R> {
        let factors = self.factors.borrow();
        let Some((left, right)) = &*factors else {
            return Err(Error::Invalid("there are no factors yet".into()));
        };
        work(&**left, &**right)
    }

    /// Removes this rank's copies.
    fn remove(&self) -> Result<()> {
        *self.factors.borrow_mut() = None;
        let own = self
            .directory
            .join(format!("disk{}", self.stage.comm.rank()));
        match std::fs::remove_dir_all(&own) {
            Err(source) if source.kind() != std::io::ErrorKind::NotFound => Err(Error::File {
                action: "remove",
                path: own,
                source,
            }),
            _ => Ok(()),
        }
    }

    /// Sets the result to zeros: this rank every so many blocks.
    fn clear(&self) -> Result<()> {
        let comm = self.stage.comm;
        let blocks = self.stage.contraction.output().blocks();
        for (_, place) in blocks.skip(comm.rank()).step_by(comm.size()) {
            self.output.store(place, &vec![0.0; place.len as usize])?;
        }
        Ok(())
    }

    /// Collective: whether the result is right, as far as the order of sums lets it
    /// be; rank 0 looks.
    fn is_right(&self) -> bool {
        // Nobody clears it for the next turn before.
        self.found_right() & self.stage.comm.barrier().is_ok()
    }

    fn found_right(&self) -> bool {
        if self.stage.comm.rank() > 0 {
            return true;
        }
        let expected = &self.stage.expected;
        let largest = expected
            .iter()
            .fold(1.0, |most: f64, value| most.max(value.abs()));
        self.stage.contraction.output().blocks().all(|(_, place)| {
            let buffer = vec![f64::NAN; place.len as usize];
            let found = self
                .output
                .fetch(place, buffer)
                .and_then(|fetch| fetch.wait());
            let expected = &expected[place.start as usize..];
            found.is_ok_and(|found| {
                let mut pairs = found.iter().zip(expected);
                pairs.all(|(found, expected)| (found - expected).abs() <= 1e-11 * largest)
            })
        })
    }

    /// Collective: ends what serves the blocks.
    fn end(self) -> Result<()> {
        drop((self.factors, self.output));
        self.placing_way.close()
    }
}
