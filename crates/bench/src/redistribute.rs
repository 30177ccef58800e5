//! The bench `redistribute`: distributed arrays move between distributions, by
//! every method and carrier that outcore has, beside other systems and a copy
//! of as many bytes.
//!
//! Contestants whose name has no `kept` plan anew in every repetition; the
//! memory that plans keep for packets and stations is there before, as the
//! buffers and types of the others are.

mod peer;

use std::cell::RefCell;
use std::path::PathBuf;

use bytemuck::Pod;
use outcore::{
    AlignedDistribution, Arrival, Carrier, Comm, DistributedArray, Distribution, Error,
    RedistributionMethod, RedistributionPlan, Result, Transfer, shape_text,
};

use crate::contest::{Contestant, contest};
use crate::io::Scratch;
use crate::library::mpi_library;
use crate::line::Line;
use peer::Library;

/// One redistribution.
#[derive(Debug, Clone)]
pub struct RedistributeCase {
    /// The shape of the array.
    pub shape: Vec<u64>,
    /// Its distribution before, and the grid if one is asked for.
    pub from: (String, Option<Vec<u64>>),
    /// Its distribution after.
    pub to: (String, Option<Vec<u64>>),
}

impl RedistributeCase {
    /// The cases of the thesis' figures, of 2^24 elements each.
    pub fn all() -> Vec<Self> {
        let line = [1 << 24];
        let plane = [4096, 4096];
        let cases: [(&[u64], &str, &str); 6] = [
            (&line, "cyclic(11)", "cyclic(3)"),
            (&line, "cyclic(15)", "cyclic(10)"),
            (&line, "cyclic(4)", "cyclic(2)"),
            (&line, "block", "cyclic"),
            (&plane, "cyclic(11),cyclic(11)", "cyclic(3),cyclic(3)"),
            (&plane, "block,*", "*,block"),
        ];
        let case = |(shape, from, to): (&[u64], &str, &str)| Self {
            shape: shape.into(),
            from: (from.into(), None),
            to: (to.into(), None),
        };
        cases.map(case).into()
    }
}

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct RedistributeOptions {
    /// What moves.
    pub cases: Vec<RedistributeCase>,
    /// The bytes of an element: 1, 2, 4, 8 or 16.
    pub element: u64,
    /// The methods that take part besides `auto`.
    pub methods: Vec<RedistributionMethod>,
    /// How many ranks; under an MPI launcher that knows it.
    pub ranks: Option<usize>,
    /// Repetitions.
    pub repeats: usize,
    /// Whether other systems take part; they need MPI processes.
    pub peers: bool,
    /// Where their libraries are built for the time being.
    pub directory: PathBuf,
}

/// Runs the bench; under an MPI launcher, only rank 0 returns something.
pub fn redistribute(options: &RedistributeOptions) -> Result<Vec<Line>> {
    let ranks = options.ranks.unwrap_or(crate::collective::RANKS);
    let all = outcore::run(ranks, |comm: &Comm| {
        let lines = match options.element {
            1 => measure::<u8>(comm, options),
            2 => measure::<u16>(comm, options),
            4 => measure::<u32>(comm, options),
            8 => measure::<u64>(comm, options),
            _ => measure::<u128>(comm, options),
        }?;
        Ok::<_, Error>(if comm.rank() == 0 { lines } else { Vec::new() })
    })?;
    Ok(all.into_iter().next().unwrap_or_default())
}

fn measure<T: Pod>(comm: &Comm, options: &RedistributeOptions) -> Result<Vec<Line>> {
    let checked = match (options.peers, outcore::under_launcher(), options.ranks) {
        (true, false, _) => Err(Error::Invalid(
            "other systems take turns with MPI processes, not with threads: start the bench with \
             mpirun"
                .into(),
        )),
        (true, ..) if size_of::<T>() != 8 => Err(Error::Invalid(
            "the other systems move elements of 8 bytes, such as f64".into(),
        )),
        (_, _, Some(ranks)) if ranks != comm.size() => Err(Error::Invalid(format!(
            "the launcher started {} ranks; leave --ranks out",
            comm.size()
        ))),
        _ => Ok(()),
    };
    comm.agree(checked)?;
    // What rank 0 makes, it removes.
    let scratch = (comm.rank() == 0).then(|| Scratch::new(&options.directory, "redistribute"));
    let mut directory = scratch.as_ref().map(Scratch::name).unwrap_or_default();
    comm.broadcast_string(0, &mut directory)?;
    let made = match comm.rank() {
        0 if options.peers => std::fs::create_dir_all(&directory),
        _ => Ok(()),
    };
    comm.agree(made)?;
    let libraries = match options.peers {
        true => Library::load_all(comm, directory.as_ref())?,
        false => Vec::new(),
    };
    let mut lines = Vec::new();
    for case in &options.cases {
        lines.extend(Case::<T>::new(comm, case, options)?.measure(&libraries)?);
    }
    comm.barrier()?;
    drop(scratch);
    Ok(lines)
}

/// One case on one rank.
struct Case<'a, T> {
    comm: &'a Comm,
    options: &'a RedistributeOptions,
    name: String,
    from: AlignedDistribution,
    to: AlignedDistribution,
    /// Where ranks of one node reach it, and where they do not.
    source: DistributedArray<T>,
    private_source: DistributedArray<T>,
    target: RefCell<DistributedArray<T>>,
    private_target: RefCell<DistributedArray<T>>,
    expected: DistributedArray<T>,
}

impl<'a, T: Pod> Case<'a, T> {
    fn new(
        comm: &'a Comm,
        case: &RedistributeCase,
        options: &'a RedistributeOptions,
    ) -> Result<Self> {
        let side = |(text, grid): &(String, Option<Vec<u64>>)| {
            Distribution::parse(text, &case.shape, comm.size() as u64, grid.as_deref())
                .map(AlignedDistribution::from)
                .map_err(|error| Error::Invalid(error.to_string()))
        };
        let (from, to) =
            comm.agree(side(&case.from).and_then(|from| Ok((from, side(&case.to)?))))?;
        let filled = |mut array: DistributedArray<T>| {
            let shape = case.shape.clone();
            array.fill_with(|index| {
                let places = index.iter().zip(&shape);
                let number = places.fold(0, |number, (at, extent)| number * extent + at);
                // Never 0, which the targets hold before.
                let bytes =
                    (u128::from(number) % 251 + 1 + u128::from(number / 251 * 256)).to_ne_bytes();
                bytemuck::pod_read_unaligned(&bytes[..size_of::<T>()])
            });
            array
        };
        Ok(Self {
            name: format!(
                "{} {}->{}",
                shape_text(&case.shape),
                from.template(),
                to.template()
            ),
            source: filled(DistributedArray::aligned(comm, from.clone())?),
            private_source: filled(DistributedArray::private(comm, from.clone())?),
            expected: filled(DistributedArray::private(comm, to.clone())?),
            target: RefCell::new(DistributedArray::aligned(comm, to.clone())?),
            private_target: RefCell::new(DistributedArray::private(comm, to.clone())?),
            comm,
            options,
            from,
            to,
        })
    }

    fn line(&self, system: &str, strategy: &str) -> Line {
        Line {
            system: system.into(),
            bench: "redistribute",
            case: self.name.clone(),
            op: "move",
            strategy: strategy.into(),
            transport: match outcore::under_launcher() {
                true => mpi_library().into(),
                false => "threads".into(),
            },
            ranks: self.comm.size(),
            useful_bytes: self.from.shape().iter().product::<u64>() * size_of::<T>() as u64,
            best_s: 0.0,
            median_s: 0.0,
            ok: false,
        }
    }

    /// A contestant that moves from one array to another.
    fn contestant<'b>(
        &'b self,
        line: Line,
        private: bool,
        mut work: impl FnMut(&DistributedArray<T>, &mut DistributedArray<T>) -> Result<()> + 'b,
    ) -> Contestant<'b> {
        let (source, target) = match private {
            true => (&self.private_source, &self.private_target),
            false => (&self.source, &self.target),
        };
        Contestant {
            line,
            prepare: Box::new(move || {
                target.borrow_mut().fill(T::zeroed());
                Ok(())
            }),
            work: Box::new(move || work(source, &mut target.borrow_mut())),
            check: Box::new(move || {
                let found = target.borrow();
                let bytes = |values| bytemuck::cast_slice::<T, u8>(values);
                bytes(found.local()) == bytes(self.expected.local())
            }),
            batch: 1,
        }
    }

    fn plan(&self, method: RedistributionMethod) -> Result<RedistributionPlan> {
        RedistributionPlan::with_method(self.comm, &self.from, &self.to, method)
    }

    /// Plans, or plans anew, and moves.
    fn outcore<'b>(
        &'b self,
        name: &str,
        (plan, private, anew): (RedistributionPlan, bool, bool),
    ) -> Contestant<'b> {
        let line = self.line("outcore", name);
        let messages = private || name.starts_with("messages");
        self.contestant(line, private, move |source, target| {
            if anew {
                let fresh = self.plan(RedistributionMethod::Auto)?;
                let carrier = if messages {
                    Carrier::Messages
                } else {
                    Carrier::Auto
                };
                std::hint::black_box(fresh.carrier(carrier).prepare(self.comm));
            }
            plan.move_array(self.comm, source, target)
        })
    }

    fn contestants(&self) -> Result<Vec<Contestant<'_>>> {
        let auto = || self.plan(RedistributionMethod::Auto);
        let mut all = vec![
            self.outcore("auto", (auto()?, false, true)),
            self.outcore("auto kept", (auto()?, false, false)),
        ];
        if outcore::under_launcher() {
            all.push(self.outcore("auto on private memory", (auto()?, true, true)));
        }
        for (name, arrival) in [
            ("messages", Arrival::Together),
            ("messages as they come", Arrival::AsTheyCome),
        ] {
            let plan = auto()?.carrier(Carrier::Messages).arrival(arrival);
            all.push(self.outcore(name, (plan, true, true)));
        }
        for method in &self.options.methods {
            let name = format!("{method} kept");
            all.push(self.outcore(&name, (self.plan(*method)?, false, false)));
        }
        let back = auto()?;
        let there = auto()?;
        all.push(
            self.contestant(self.line("outcore", "there and back kept"), false, {
                let again = RefCell::new(DistributedArray::<T>::aligned(
                    self.comm,
                    self.from.clone(),
                )?);
                move |source, target| {
                    there.move_array(self.comm, source, target)?;
                    let mut again = again.borrow_mut();
                    back.move_back(self.comm, target, &mut again)
                }
            }),
        );
        let mut planning = self.contestant(self.line("outcore", "plan"), false, |_, _| {
            std::hint::black_box(self.plan(RedistributionMethod::Auto)?.prepare(self.comm));
            Ok(())
        });
        planning.check = Box::new(|| true);
        all.push(planning);
        let mut copy = self.contestant(self.line("memcpy", "copy"), true, |source, target| {
            let (source, target) = (source.local(), target.local_mut());
            let len = source.len().min(target.len());
            target[..len].copy_from_slice(&source[..len]);
            Ok(())
        });
        copy.check = Box::new(|| true);
        all.push(copy);
        Ok(all)
    }

    fn measure(&self, libraries: &[Library]) -> Result<Vec<Line>> {
        let mut all = self.contestants()?;
        for library in libraries {
            let Some(opened) = library.open(self.from.template(), self.to.template()) else {
                continue;
            };
            let line = self.line(&library.system, &library.name);
            all.push(self.contestant(line, true, move |source, target| {
                let mut parts = Transfer::new(source.local(), target.local_mut());
                let (source, target) = parts.parts();
                opened.shift(source, target)
            }));
        }
        contest(self.comm, all, self.options.repeats)
    }
}
