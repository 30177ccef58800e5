//! Contractions of block-sparse tensors by any number of ranks, from wherever
//! their blocks are, against the plain loop over dense tensors.

use std::sync::atomic::{AtomicU64, Ordering};

use outcore::{Array, Comm, Complex, Error, MemoryBudget, Result};
use outcore_apps::Resources;
use outcore_apps::contract::{
    BlockTensor, Blocks, Contracted, Contraction, Expression, Fetch, FileBlocks, Place, Placing,
    Predicate, Segments, Spaces, Spread, TaskCounter, Tensors, Way, contract, einsum, least_memory,
    open_replica, replicate,
};
use outcore_apps::matmul::Number;
use proptest::prelude::*;
use proptest::strategy::Strategy as Values;

use crate::arrays::{array, contents, fill, random};
use crate::memory::with_memory;

/// Where the blocks are.
#[derive(Debug, Clone, Copy)]
enum Kept {
    InOneArray,
    Replicated,
    InParts(Spread),
    OnDisksOfRanks,
}

#[derive(Debug, Clone)]
struct Case {
    text: String,
    spaces: Spaces,
    /// Of the result and the factors.
    predicates: [Option<Predicate>; 3],
    ranks: usize,
    memory: u64,
    seed: u64,
}

/// Indices in an order that a number chooses.
fn shuffled(mut indices: Vec<String>, seed: u64) -> String {
    for (last, number) in (1..indices.len()).rev().zip(random(9, seed)) {
        indices.swap(last, number as usize % (last + 1));
    }
    indices.join(",")
}

fn case() -> impl Values<Value = Case> {
    let counts = (0..2usize, 0..3usize, 0..3usize, 0..3usize);
    let segments = || proptest::collection::vec(1u64..5, 1..4);
    let predicate = || {
        proptest::sample::select(vec![
            Some(Predicate::All),
            Some(Predicate::Parity),
            Some(Predicate::Band(1)),
            // Any other rule.
            None,
        ])
    };
    let spaces = (segments(), segments(), segments(), segments());
    let predicates = (predicate(), predicate(), predicate());
    let ranks = proptest::sample::select(vec![1usize, 2, 3, 5]);
    let memory = prop_oneof![Just(16u64 << 20), 80_000_000u64..90_000_000];
    (
        counts,
        spaces,
        predicates,
        ranks,
        memory,
        any::<u64>(),
        any::<bool>(),
    )
        .prop_map(|(counts, spaces, predicates, ranks, memory, seed, adds)| {
            let (batch, left, right, summed) = counts;
            let named = |letter: &str, count: usize| -> Vec<String> {
                (0..count).map(|at| format!("{letter}{at}")).collect()
            };
            let [b, l, r, s] = [("b", batch), ("l", left), ("r", right), ("s", summed)]
                .map(|(letter, count)| named(letter, count));
            let text = format!(
                "c[{}] {} x[{}] * y[{}]",
                shuffled([&b[..], &l, &r].concat(), seed),
                if adds { "+=" } else { "=" },
                shuffled([&b[..], &l, &s].concat(), seed ^ 77),
                shuffled([&b[..], &r, &s].concat(), seed ^ 999),
            );
            let letters = ["b", "l", "r", "s"];
            let lengths = [spaces.0, spaces.1, spaces.2, spaces.3];
            let spaces = letters
                .iter()
                .zip(lengths)
                .fold(Spaces::default(), |spaces, (name, lengths)| {
                    spaces.with_space(name, Segments::new(&lengths).unwrap())
                });
            Case {
                text,
                spaces,
                predicates: [predicates.0, predicates.1, predicates.2],
                ranks,
                memory,
                seed,
            }
        })
}

impl Case {
    fn contraction(&self) -> Contraction {
        let expression: Expression = self.text.parse().unwrap();
        let is_there = |name: &str, segments: &[usize]| {
            let which = ["c", "x", "y"].iter().position(|one| *one == name).unwrap();
            let rule = |segments: &[usize]| {
                let number = segments
                    .iter()
                    .fold(self.seed % 97, |n, s| n * 5 + *s as u64 + 1);
                !random(1, number).next().unwrap().is_multiple_of(3)
            };
            self.predicates[which].map_or_else(|| rule(segments), |known| known.holds(segments))
        };
        Contraction::new(expression, &self.spaces, is_there).unwrap()
    }

    fn check<T>(&self, make: impl Fn(u64) -> T, kept: Kept)
    where
        T: Number + PartialEq,
    {
        let contraction = self.contraction();
        let tensors = [
            contraction.output(),
            contraction.left(),
            contraction.right(),
        ];
        let values = [1, 2, 3].map(|at| {
            let count = tensors[at as usize - 1].len();
            random(count, self.seed ^ at).map(&make).collect::<Vec<T>>()
        });
        // What should come out.
        let expression = contraction.expression();
        let [output, left, right] = [0, 1, 2].map(|at| tensors[at].unpack(&values[at]));
        let mut dense = match expression.adds {
            true => output,
            false => vec![T::zeroed(); output.len()],
        };
        let extent = |index: &str| Ok(self.spaces.of(index)?.extent());
        einsum(expression, extent, (&left, &right), &mut dense).unwrap();
        let expected = contraction.output().pack(&dense);
        // What does.
        let sources = [0, 1, 2].map(|at| {
            let source = array::<T>(tensors[at].name(), &[tensors[at].len()], "row");
            fill(&source, &values[at]);
            source
        });
        with_memory(self.memory, |budget| {
            fill(&sources[0], &values[0]);
            let directory = tempfile::tempdir().unwrap();
            outcore::run(self.ranks, |comm| {
                let resources = Resources::of(budget.clone());
                let run = Run {
                    comm,
                    contraction: &contraction,
                    resources: &resources,
                    directory: directory.path(),
                };
                run.run::<T>(&sources, kept)
            })
        });
        assert!(contents::<T>(&sources[0]) == expected, "{}", self.text);
    }
}

/// One rank.
struct Run<'a> {
    comm: &'a Comm,
    contraction: &'a Contraction,
    resources: &'a Resources<'a>,
    directory: &'a std::path::Path,
}

impl Run<'_> {
    fn run<T: Number>(&self, sources: &[Array; 3], kept: Kept) -> Result<Contracted> {
        let (comm, contraction) = (self.comm, self.contraction);
        let tensors = [
            contraction.output(),
            contraction.left(),
            contraction.right(),
        ];
        let whole = |at: usize| FileBlocks::whole(tensors[at], sources[at].clone());
        let [output, left, right] = match kept {
            Kept::OnDisksOfRanks => {
                return self.run_on_disks::<T>(&[whole(0)?, whole(1)?, whole(2)?]);
            }
            Kept::InOneArray => [whole(0)?, whole(1)?, whole(2)?],
            Kept::Replicated => {
                let own = self.directory.join(format!("disk{}", comm.rank()));
                let copy = |at: usize| {
                    drop(replicate::<T>(
                        comm,
                        tensors[at],
                        &whole(at)?,
                        &own,
                        self.resources,
                    )?);
                    open_replica(comm, tensors[at], &own)
                };
                [whole(0)?, copy(1)?, copy(2)?]
            }
            Kept::InParts(spread) => {
                let parts = |at: usize| self.parts::<T>(tensors[at], &whole(at)?, spread);
                [parts(0)?, parts(1)?, parts(2)?]
            }
        };
        let tasks = TaskCounter::new(comm, None, contraction.groups())?;
        let blocks = Tensors::<T> {
            output: &output,
            left: &left,
            right: &right,
        };
        let done = contract(comm, contraction, &blocks, &tasks, self.resources)?;
        assert_eq!(done.tasks, contraction.tasks());
        if matches!(kept, Kept::InParts(_)) && comm.rank() == 0 {
            copy_blocks::<T>(tensors[0], &output, &whole(0)?)?;
        }
        Ok(done)
    }

    /// All three tensors are served by procedure calls.
    fn run_on_disks<T: Number>(&self, sources: &[FileBlocks; 3]) -> Result<Contracted> {
        let (comm, contraction) = (self.comm, self.contraction);
        let placing = Placing::start(comm, Way::Calls, self.directory)?;
        let place = |tensor, at: usize| placing.place::<T>(tensor, &sources[at], self.resources);
        let output = place(contraction.output(), 0)?.expect("it is placed");
        let left = place(contraction.left(), 1)?.expect("it is placed");
        let right = place(contraction.right(), 2)?.expect("it is placed");
        let blocks = Tensors::<T> {
            output: &*output,
            left: &*left,
            right: &*right,
        };
        let tasks = TaskCounter::new(comm, placing.procedures(), contraction.groups())?;
        let done = contract(comm, contraction, &blocks, &tasks, self.resources)?;
        if comm.rank() == 0 {
            copy_blocks::<T>(contraction.output(), &*output, &sources[0])?;
        }
        comm.barrier()?;
        drop((output, left, right));
        placing.close()?;
        Ok(done)
    }

    fn parts<T: Number>(
        &self,
        tensor: &BlockTensor,
        from: &FileBlocks,
        spread: Spread,
    ) -> Result<FileBlocks> {
        let parts = FileBlocks::create_parts::<T>(self.comm, self.directory, tensor, spread)?;
        if self.comm.rank() == 0 {
            copy_blocks::<T>(tensor, from, &parts)?;
        }
        self.comm.barrier()?;
        Ok(parts)
    }
}

fn copy_blocks<T: Number>(
    tensor: &BlockTensor,
    from: &dyn Blocks<T>,
    to: &dyn Blocks<T>,
) -> Result<()> {
    for (_, place) in tensor.blocks() {
        let buffer = vec![T::zeroed(); place.len as usize];
        to.store(place, &from.fetch(place, buffer)?.wait()?)?;
    }
    Ok(())
}

fn small(number: u64) -> f64 {
    (number % 15) as f64 - 7.0
}

proptest! {
    #[test]
    fn any_contraction_is_the_plain_loop(case in case()) {
        case.check::<f64>(small, Kept::InOneArray);
        case.check::<f32>(|n| small(n) as f32, Kept::InOneArray);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn from_files_of_every_kind(case in case()) {
        case.check::<f64>(small, Kept::OnDisksOfRanks);
        case.check::<f64>(small, Kept::Replicated);
        case.check::<f32>(|n| small(n) as f32, Kept::InParts(Spread::Whole));
        case.check::<Complex<f64>>(
            |n| Complex::new(small(n), small(n >> 8)),
            Kept::InParts(Spread::Striped(64)),
        );
    }
}

/// The paper's expression, a tenth of its size.
fn papers_case() -> Case {
    let occupied: Segments = "10,6,4,3".parse().unwrap();
    Case {
        text: "i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]"
            .replace("i0", "c")
            .replace("t[", "x[")
            .replace("i1", "y"),
        spaces: Spaces::default()
            .with_space("V", occupied.scaled(2.0).unwrap())
            .with_space("O", occupied)
            .with_index("p", "O")
            .and_then(|spaces| spaces.with_index("h", "V"))
            .unwrap(),
        predicates: [
            Some(Predicate::All),
            Some(Predicate::Parity),
            Some(Predicate::Band(2)),
        ],
        ranks: 3,
        memory: 64 << 20,
        seed: 5,
    }
}

#[test]
fn the_papers_expression() {
    papers_case().check::<f64>(small, Kept::InOneArray);
}

/// Tasks that share blocks are done together.
#[test]
fn blocks_in_memory_are_not_fetched_again() {
    let case = Case {
        predicates: [Some(Predicate::All); 3],
        ..papers_case()
    };
    let contraction = case.contraction();
    let fetched = |ranks: usize, memory: u64| {
        let tensors = [
            contraction.output(),
            contraction.left(),
            contraction.right(),
        ];
        let sources = tensors.map(|tensor| array::<f64>(tensor.name(), &[tensor.len()], "row"));
        let done = outcore::run(ranks, |comm| {
            let resources = Resources::of(MemoryBudget::of(memory));
            let run = Run {
                comm,
                contraction: &contraction,
                resources: &resources,
                directory: "".as_ref(),
            };
            run.run::<f64>(&sources, Kept::InOneArray)
        });
        done.unwrap()[0].fetched
    };
    let factors = 8 * (contraction.left().len() + contraction.right().len());
    let asked = 8 * contraction.elements_asked();
    // A rank alone fetches each block once, in little memory, too.
    assert_eq!(fetched(1, 2 * factors + (16 << 20)), factors);
    assert_eq!(fetched(1, factors / 8 + (9 << 20)), factors);
    // Ranks that divide the sums fetch each block once together.
    assert_eq!(fetched(3, 3 * (factors / 8 + (9 << 20))), factors);
    // Without memory for all sums they divide the tasks, and share within these.
    let some = fetched(3, 3 * least_memory::<f64>(&contraction));
    assert!(factors < some && some <= asked, "{factors} {some} {asked}");
}

/// Blocks that cannot be read.
struct Broken;

impl Blocks<f64> for Broken {
    fn fetch(&self, place: Place, buffer: Vec<f64>) -> Result<Fetch<'_, f64>> {
        match place.start {
            0 => Ok(Fetch::new(|| Ok(buffer))),
            _ => Err(Error::Invalid("the disk is broken".into())),
        }
    }

    fn store(&self, _: Place, _: &[f64]) -> Result<()> {
        Ok(())
    }
}

#[test]
fn a_failure_reaches_all_ranks() {
    let case = papers_case();
    let contraction = case.contraction();
    let messages = outcore::run(5, |comm| {
        let tensors = Tensors {
            output: &Broken,
            left: &Broken,
            right: &Broken,
        };
        let tasks = TaskCounter::new(comm, None, contraction.groups())?;
        let resources = Resources::of(MemoryBudget::of(1 << 30));
        let outcome = contract::<f64>(comm, &contraction, &tensors, &tasks, &resources);
        Ok::<_, Error>(outcome.unwrap_err().to_string())
    });
    for message in messages.unwrap() {
        assert!(message.contains("the disk is broken"), "{message}");
    }
}

/// Blocks of zeros, and how many of them were stored.
#[derive(Default)]
struct Zeros(AtomicU64);

impl Blocks<f64> for Zeros {
    fn fetch(&self, _: Place, buffer: Vec<f64>) -> Result<Fetch<'_, f64>> {
        Ok(Fetch::new(|| Ok(buffer)))
    }

    fn store(&self, _: Place, _: &[f64]) -> Result<()> {
        self.0.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }
}

/// Groups that nobody is given are not done: that is an error, not a result, whether
/// ranks divide the tasks (in little memory) or the sums.
#[test]
fn a_counter_serves_for_one_contraction() {
    let case = Case {
        predicates: [Some(Predicate::All); 3],
        ..papers_case()
    };
    let contraction = case.contraction();
    for memory in [3 * least_memory::<f64>(&contraction), 1 << 30] {
        let zeros = Zeros::default();
        let messages = outcore::run(3, |comm| {
            let tensors = Tensors {
                output: &zeros,
                left: &zeros,
                right: &zeros,
            };
            let tasks = TaskCounter::new(comm, None, contraction.groups())?;
            let resources = Resources::of(MemoryBudget::of(memory));
            let done = contract::<f64>(comm, &contraction, &tensors, &tasks, &resources)?;
            assert_eq!(done.tasks, contraction.tasks());
            let again = contract::<f64>(comm, &contraction, &tensors, &tasks, &resources);
            Ok::<_, Error>(again.unwrap_err().to_string())
        });
        for message in messages.unwrap() {
            assert!(message.contains("a counter serves for one"), "{message}");
        }
        assert_eq!(zeros.0.into_inner(), contraction.tasks());
    }
}

#[test]
fn what_does_not_fit_is_refused() {
    let spaces = Spaces::default().with_space("i", Segments::new(&[2]).unwrap());
    let contraction = |text: &str| {
        let expression = text.parse().unwrap();
        Contraction::new(expression, &spaces, |_, _| true).map_err(|error| error.to_string())
    };
    let message = contraction("c[i,j] = a[i,k] * b[k,j]").unwrap_err();
    assert!(message.contains("the index j runs"), "{message}");
    let known = contraction("c[i1,i2] = a[i1,i3] * a[i2,i3]").unwrap();
    let wrong = array::<f64>("wrong", &[5], "row");
    let message = FileBlocks::whole(known.left(), wrong)
        .unwrap_err()
        .to_string();
    assert!(
        message.contains("should have one axis of 4 elements"),
        "{message}"
    );
}
