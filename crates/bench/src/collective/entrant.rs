//! [`Case`]: one pattern, moved by all who can.

use std::cell::{Cell, RefCell};
use std::fs::File;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::time::Duration;

use outcore::{
    Array, Comm, Direction, Error, Fill, Moved, Op, Pattern, Result, Section, Strategy, Tuning,
};

use super::peer::Library;
use super::{CollectiveOptions, Measured, Way};
use crate::contest::{Contestant, contest_within};
use crate::library::mpi_library;
use crate::line::Line;
use crate::simulated::direction_name;

/// Who has taken so long in all takes no more turns.
const PATIENCE: Duration = Duration::from_secs(2);

/// The bytes of a request of those who read the whole file.
const BLOCK: u64 = 256 << 10;

/// What all cases have in common.
pub(super) struct Ground<'a> {
    comm: &'a Comm,
    options: &'a CollectiveOptions,
    name: String,
    /// The data of the array, if they are one file.
    data: Option<PathBuf>,
    libraries: Vec<Library>,
    transport: String,
}

impl<'a> Ground<'a> {
    pub(super) fn new(
        comm: &'a Comm,
        options: &'a CollectiveOptions,
        made: String,
        libraries: Vec<Library>,
    ) -> Result<Self> {
        let name = options.array.clone().unwrap_or(made);
        let data = Path::new(&name).join("data.bin");
        let transport = match outcore::under_launcher() {
            false => "threads".into(),
            true => match std::env::var("OMPI_MCA_io") {
                Ok(io) => format!("{}+{io}", mpi_library()),
                Err(_) => mpi_library().into(),
            },
        };
        Ok(Self {
            comm,
            options,
            name,
            data: data.exists().then_some(data),
            libraries,
            transport,
        })
    }

    fn open(&self, strategy: Strategy) -> Result<Array> {
        let array = match self.options.direction {
            Direction::Read => Array::open(&self.name)?,
            Direction::Write => Array::open_writable(&self.name)?,
        };
        Ok(array.tuned(Tuning {
            strategy,
            ..Tuning::default()
        }))
    }

    /// Collective: drops everything from the page cache; nobody may have
    /// anything open.
    fn forget(&self) -> Result<()> {
        self.comm.barrier()?;
        let forgotten = match self.comm.rank() {
            0 => self.drop_pages(),
            _ => Ok(()),
        };
        Ok(self.comm.agree(forgotten)?)
    }

    fn drop_pages(&self) -> Result<()> {
        self.open(Strategy::Direct)?.store().forget()?;
        for ending in ["h5", "nc"] {
            let copy = Path::new(&self.name).join(format!("data.bin.{ending}"));
            if copy.exists() {
                outcore::storage::forget(&copy)?;
            }
        }
        Ok(())
    }
}

/// Moves the section of this rank into a buffer, or from there.
type Mover<'a> = Box<dyn FnMut(&mut [u8]) -> Result<Moved> + 'a>;

/// Reads the section of this rank into a buffer.
type Look<'a> = Box<dyn Fn(&mut [u8]) -> Result<()> + 'a>;

/// Somebody who can move the section of this rank.
struct Entrant<'a> {
    system: String,
    strategy: String,
    /// Collective: opens what is needed, off the clock.
    open: Box<dyn Fn() -> Result<Mover<'a>> + 'a>,
    /// Reads the section back, by other means than those on trial.
    look: Look<'a>,
    /// Whether it moves the section, and not only as many bytes.
    exact: bool,
}

/// One pattern.
pub(super) struct Case<'a> {
    ground: &'a Ground<'a>,
    name: String,
    section: Section,
    /// The values of this rank's section before anything was written.
    expected: Vec<u8>,
    /// The bytes of all ranks.
    useful: u64,
}

impl<'a> Case<'a> {
    /// Collective: the case of `pattern`.
    pub(super) fn new(ground: &'a Ground<'a>, name: &str, pattern: &Pattern) -> Result<Self> {
        let comm = ground.comm;
        let prepare = || {
            let array = ground.open(Strategy::Direct)?;
            let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
            let section = pattern.section(array.shape(), rank, ranks);
            let section = section.map_err(|error| Error::Invalid(format!("{name}: {error}")))?;
            let bytes = section.count() * array.layout().element_size();
            let mut expected = vec![0; bytes as usize];
            match ground.options.array {
                None => Fill::Index.generate(&array, &section, &mut expected)?,
                Some(_) => array.read_bytes(&section, &mut expected)?,
            }
            Ok::<_, Error>((section, expected))
        };
        let (section, expected) = comm.agree(prepare())?;
        let useful = comm.all_reduce(&[expected.len() as u64], Op::Sum)?[0];
        Ok(Self {
            ground,
            name: format!("{name} {pattern}"),
            section,
            expected,
            useful,
        })
    }

    /// Collective: lets all who can move the sections take turns.
    pub(super) fn measure(&self) -> Result<Measured> {
        let (comm, options) = (self.ground.comm, self.ground.options);
        let mut measured = Measured::default();
        let mut entrants = Vec::new();
        for entrant in self.entrants() {
            match (entrant.open)() {
                Ok(_) => entrants.push(entrant),
                Err(error) if options.ways.len() > 1 || entrant.system != "outcore" => {
                    let who = format!("{} {}", entrant.system, entrant.strategy);
                    let why = format!("{}: {who} takes no part: {error}", self.name);
                    measured.notes.push(why);
                }
                Err(error) => return Err(error),
            }
        }
        // Where outcore's ranks reach it, too; the same buffer for all.
        let mut own = Vec::new();
        let mut node = comm.node_memory(self.expected.len())?;
        let buffer: &mut [u8] = match &mut node {
            Some(memory) => memory,
            None => {
                own.resize(self.expected.len(), 0);
                &mut own
            }
        };
        buffer.copy_from_slice(&self.expected);
        let buffer = RefCell::new(buffer);
        let turn = Cell::new(0u8);
        let sums: Vec<Cell<Moved>> = entrants.iter().map(|_| Cell::default()).collect();
        let contestants = entrants.iter().zip(&sums);
        let contestants =
            contestants.map(|(entrant, sum)| self.contestant(entrant, (&buffer, &turn), sum));
        let contestants = contestants.collect();
        measured.lines = contest_within(comm, contestants, options.repeats, Some(PATIENCE))?;
        for (entrant, sum) in entrants.iter().zip(sums) {
            measured
                .notes
                .extend(self.exchange_note(entrant, sum.get())?);
        }
        Ok(measured)
    }

    fn contestant<'b>(
        &'b self,
        entrant: &'b Entrant<'a>,
        (buffer, turn): (&'b RefCell<&'b mut [u8]>, &'b Cell<u8>),
        sum: &'b Cell<Moved>,
    ) -> Contestant<'b> {
        let options = self.ground.options;
        let writing = options.direction == Direction::Write;
        // Cold, things are open only in their own turn: what a mapping has
        // touched stays in the cache.
        let mover: Rc<RefCell<Option<Mover<'a>>>> = Rc::default();
        let (prepared, checked) = (mover.clone(), mover.clone());
        Contestant {
            line: Line {
                system: entrant.system.clone(),
                bench: "collective",
                case: self.name.clone(),
                op: direction_name(options.direction),
                strategy: entrant.strategy.clone(),
                transport: self.ground.transport.clone(),
                ranks: self.ground.comm.size(),
                useful_bytes: self.useful,
                best_s: 0.0,
                median_s: 0.0,
                ok: true,
            },
            prepare: Box::new(move || {
                let mut buffer = buffer.borrow_mut();
                if writing {
                    // Different from what the one before has written.
                    turn.set(turn.get().wrapping_add(1));
                    let mask = if options.array.is_none() {
                        turn.get()
                    } else {
                        0
                    };
                    let values = buffer.iter_mut().zip(&self.expected);
                    values.for_each(|(byte, expected)| *byte = expected ^ mask);
                } else {
                    buffer.iter_mut().for_each(|byte| *byte = !*byte);
                }
                if options.cold {
                    self.ground.forget()?;
                }
                let mut mover = prepared.borrow_mut();
                if mover.is_none() {
                    *mover = Some((entrant.open)()?);
                    // Some read the beginning of the file when they open it.
                    if options.cold {
                        self.ground.forget()?;
                    }
                }
                Ok(())
            }),
            work: Box::new(move || {
                let mut mover = mover.borrow_mut();
                let moved = mover.as_mut().expect("prepared")(&mut buffer.borrow_mut())?;
                sum.set(added(sum.get(), moved));
                Ok(())
            }),
            check: Box::new(move || {
                if options.cold {
                    *checked.borrow_mut() = None;
                }
                if !entrant.exact {
                    return true;
                }
                if !writing {
                    return **buffer.borrow() == *self.expected;
                }
                let mut found = vec![0; self.expected.len()];
                (entrant.look)(&mut found).is_ok() && *found == **buffer.borrow()
            }),
            batch: 1,
        }
    }

    fn entrants(&self) -> Vec<Entrant<'_>> {
        let ground = self.ground;
        let ways = ground.options.ways.iter();
        let mut entrants: Vec<Entrant<'_>> = ways.map(|way| self.own(*way)).collect();
        entrants.extend(ground.data.as_ref().map(|data| self.plain(data)));
        entrants.extend(ground.data.as_ref().and_then(|data| self.sequential(data)));
        if let Some(data) = &ground.data {
            for library in &ground.libraries {
                for collective in [false, true] {
                    entrants.push(self.peer(library, data, collective));
                }
            }
        }
        entrants
    }

    fn look(&self, bytes: &mut [u8]) -> Result<()> {
        self.ground
            .open(Strategy::Direct)?
            .read_bytes(&self.section, bytes)
    }

    /// outcore.
    fn own(&self, way: Way) -> Entrant<'_> {
        let (comm, direction) = (self.ground.comm, self.ground.options.direction);
        let open = move || -> Result<Mover<'_>> {
            let array = comm.agree(self.ground.open(Strategy::Auto))?;
            if self.ground.options.once {
                return Ok(Box::new(move |bytes| {
                    let collective = way.calls(&array);
                    match direction {
                        Direction::Read => collective.read_bytes(comm, &self.section, bytes),
                        Direction::Write => collective.write_bytes(comm, &self.section, bytes),
                    }
                }));
            }
            let plan = way.calls(&array).plan(comm, &self.section, direction)?;
            Ok(Box::new(move |bytes| match direction {
                Direction::Read => plan.read_bytes(comm, bytes),
                Direction::Write => plan.write_bytes(comm, bytes),
            }))
        };
        Entrant {
            system: "outcore".into(),
            strategy: way.to_string(),
            open: Box::new(open),
            look: Box::new(|bytes| self.look(bytes)),
            exact: true,
        }
    }

    /// One request for each run of the section.
    fn plain(&self, data: &'a Path) -> Entrant<'_> {
        let writing = self.ground.options.direction == Direction::Write;
        let comm = self.ground.comm;
        let open = move || -> Result<Mover<'_>> {
            let opened = || {
                let array = self.ground.open(Strategy::Direct)?;
                let file = File::options().read(true).write(writing).open(data);
                let file = file.map_err(|source| Error::File {
                    action: "open",
                    path: data.into(),
                    source,
                })?;
                Ok::<_, Error>((array, file))
            };
            let (array, file) = comm.agree(opened())?;
            Ok(Box::new(move |bytes| {
                let wrong = |error: outcore::GeometryError| Error::Invalid(error.to_string());
                let start = array.data_offset();
                for run in array.layout().runs(&self.section).map_err(wrong)? {
                    let at = run.buffer_offset as usize;
                    let part = &mut bytes[at..at + run.len as usize];
                    let moved = match writing {
                        false => file.read_exact_at(part, start + run.file_offset),
                        true => file.write_all_at(part, start + run.file_offset),
                    };
                    moved.map_err(crate::files::plain)?;
                }
                Ok(Moved::default())
            }))
        };
        Entrant {
            system: if writing { "pwrite" } else { "pread" }.into(),
            strategy: "direct".into(),
            open: Box::new(open),
            look: Box::new(|bytes| self.look(bytes)),
            exact: true,
        }
    }

    /// The limit where everything is read: the file from one end to the other,
    /// in equal parts by all ranks, into a small buffer.
    fn sequential(&self, data: &'a Path) -> Option<Entrant<'_>> {
        let (comm, options) = (self.ground.comm, self.ground.options);
        let bytes = std::fs::metadata(data).ok()?.len();
        if options.direction == Direction::Write || self.useful != bytes {
            return None;
        }
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let part = bytes / ranks * rank..(bytes / ranks * (rank + 1)).min(bytes);
        let open = move || -> Result<Mover<'_>> {
            let file = File::open(data).map_err(crate::files::plain);
            let file = comm.agree(file)?;
            let (part, mut block) = (part.clone(), vec![0; BLOCK as usize]);
            Ok(Box::new(move |_| {
                for at in part.clone().step_by(BLOCK as usize) {
                    let len = BLOCK.min(part.end - at) as usize;
                    let read = file.read_exact_at(&mut block[..len], at);
                    read.map_err(crate::files::plain)?;
                }
                Ok(Moved::default())
            }))
        };
        Some(Entrant {
            system: "pread".into(),
            strategy: "sequential".into(),
            open: Box::new(open),
            look: Box::new(|_| Ok(())),
            exact: false,
        })
    }

    /// Another system.
    fn peer(&self, library: &'a Library, data: &'a Path, collective: bool) -> Entrant<'_> {
        let (ground, comm) = (self.ground, self.ground.comm);
        let writing = ground.options.direction == Direction::Write;
        let open = move || {
            let array = comm.agree(ground.open(Strategy::Direct))?;
            Ok::<_, Error>(comm.agree(library.open(data, &array, &self.section, collective))?)
        };
        Entrant {
            system: library.name.clone(),
            strategy: if collective {
                "collective"
            } else {
                "independent"
            }
            .into(),
            open: Box::new(move || {
                let opened = open()?;
                Ok(Box::new(move |bytes: &mut [u8]| {
                    opened.shift(bytes, writing)?;
                    Ok(Moved::default())
                }))
            }),
            look: Box::new(move |bytes| open()?.shift(bytes, false)),
            exact: true,
        }
    }

    /// Collective: how much of an entrant's time was exchange.
    fn exchange_note(&self, entrant: &Entrant<'_>, sum: Moved) -> Result<Option<String>> {
        let times = [sum.io, sum.exchange, sum.copy].map(|time| time.as_nanos() as u64);
        let all = self.ground.comm.all_reduce(&times, Op::Sum)?;
        let total: u64 = all.iter().sum();
        Ok((total > 0).then(|| {
            format!(
                "{} {} {}: {:.0}% of the time is exchange, {:.0}% input or output, {:.0}% copies",
                self.name,
                direction_name(self.ground.options.direction),
                entrant.strategy,
                all[1] as f64 * 100.0 / total as f64,
                all[0] as f64 * 100.0 / total as f64,
                all[2] as f64 * 100.0 / total as f64,
            )
        }))
    }
}

fn added(sum: Moved, moved: Moved) -> Moved {
    Moved {
        io: sum.io + moved.io,
        exchange: sum.exchange + moved.exchange,
        copy: sum.copy + moved.copy,
        ..sum
    }
}
