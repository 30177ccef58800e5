//! Writers of neighbouring elements of one file at the same time: sieving
//! rewrites what lies between its elements, and must not lose what others
//! write there, be they processes, ranks or threads, and sieve or not.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use outcore::{
    Array, ArrayDescriptor, CollectiveWay, Direction, DomainKind, ElementType, Error, Strategy,
    Tuning,
};

const ELEMENTS: u64 = 6000;
const ROUNDS: i32 = 1000;
/// What nobody writes keeps this value.
const UNTOUCHED: i32 = -1;
/// By this variable a test knows that it is to be a writer.
const WRITER: &str = "OUTCORE_TEST_WRITER";

/// Moves small pieces, each with everything between its elements.
fn tuned(array: &Array, strategy: Strategy) -> Array {
    array.tuned(Tuning {
        strategy,
        buffer: Some(1000),
        gap: Some(1 << 20),
        ..Tuning::default()
    })
}

fn create(name: &str) -> Array {
    let array = Array::create(name, &ArrayDescriptor::new(&[ELEMENTS], ElementType::I32)).unwrap();
    let values = vec![UNTOUCHED; ELEMENTS as usize];
    array.write(&array.whole(), &values).unwrap();
    array
}

/// Writer `rank` writes every third element, from its own number on.
fn write_round(array: &Array, rank: usize, round: i32) -> Result<(), Error> {
    let section = array.section(&format!("{rank}::3"))?;
    array.write(&section, &vec![round; section.count() as usize])
}

/// After each round, the elements of `writers` writers hold the round and the
/// others what they held before.
fn check(array: &Array, writers: usize, round: i32) {
    let values: Vec<i32> = array.read(&array.whole()).unwrap();
    for (at, value) in values.into_iter().enumerate() {
        let expected = if at % 3 < writers { round } else { UNTOUCHED };
        assert_eq!(value, expected, "element {at} in round {round}");
    }
}

/// Whether writers that do not sieve lock as well, as on local files.
fn is_guarded(array: &Array) -> bool {
    let guarded = array.store().lock_shared(0, 1).unwrap().is_some();
    if !guarded {
        eprintln!("skipped: this file system has no shared locks");
    }
    guarded
}

/// The writer that the other tests start as a process of its own: it writes a
/// round for each line that it is given, and answers when that is done.
#[test]
fn writer() {
    let Ok(task) = std::env::var(WRITER) else {
        return;
    };
    let mut parts = task.split(' ');
    let (rank, strategy) = (parts.next().unwrap(), parts.next().unwrap());
    let name = parts.next().unwrap();
    let array = Array::open_writable(name).unwrap();
    let array = tuned(&array, strategy.parse().unwrap());
    for line in std::io::stdin().lines() {
        let round = line.unwrap().parse().unwrap();
        write_round(&array, rank.parse().unwrap(), round).unwrap();
        // Its own line, whatever the test harness prints.
        println!("\ndone {round}");
    }
}

/// A process that writes.
struct Writer {
    child: Child,
    orders: Option<ChildStdin>,
    answers: BufReader<ChildStdout>,
}

impl Writer {
    fn start(rank: usize, strategy: Strategy, name: &str) -> Self {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "writer", "--nocapture", "--quiet"])
            .env(WRITER, format!("{rank} {strategy} {name}"))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let orders = child.stdin.take();
        let answers = BufReader::new(child.stdout.take().unwrap());
        Self {
            child,
            orders,
            answers,
        }
    }

    fn order(&mut self, round: i32) {
        writeln!(self.orders.as_mut().unwrap(), "{round}").unwrap();
    }

    fn wait(&mut self, round: i32) {
        let expected = format!("done {round}");
        let answer = self.answers.by_ref().lines().find(|line| {
            let line = line.as_ref().unwrap();
            line.starts_with("done")
        });
        assert_eq!(answer.expect("the writer lives").unwrap(), expected);
    }

    fn finish(mut self) {
        drop(self.orders.take());
        assert!(self.child.wait().unwrap().success());
    }
}

fn processes(strategies: &[Strategy], rounds: i32) {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("shared.oc");
    let name = name.to_str().unwrap();
    let array = create(name);
    if strategies.iter().any(|one| *one != Strategy::Sieving) && !is_guarded(&array) {
        return;
    }
    let mut writers: Vec<Writer> = strategies
        .iter()
        .enumerate()
        .map(|(rank, strategy)| Writer::start(rank, *strategy, name))
        .collect();
    for round in 0..rounds {
        for writer in &mut writers {
            writer.order(round);
        }
        for writer in &mut writers {
            writer.wait(round);
        }
        check(&array, strategies.len(), round);
    }
    writers.into_iter().for_each(Writer::finish);
}

#[test]
fn two_sieving_processes() {
    processes(&[Strategy::Sieving; 2], ROUNDS);
}

#[test]
fn sieving_processes_beside_others() {
    let others = [Strategy::Direct, Strategy::Mapped, Strategy::Auto];
    for other in others {
        processes(&[Strategy::Sieving, other], ROUNDS / 5);
    }
    processes(
        &[Strategy::Sieving, Strategy::Direct, Strategy::Mapped],
        ROUNDS / 5,
    );
}

/// Ranks of one process, with one array for all or each with its own.
fn ranks(strategies: &[Strategy], shared: bool, rounds: i32) {
    let directory = tempfile::tempdir().unwrap();
    let name = directory.path().join("shared.oc");
    let name = name.to_str().unwrap();
    let all = create(name);
    if strategies.iter().any(|one| *one != Strategy::Sieving) && !is_guarded(&all) {
        return;
    }
    outcore::run(strategies.len(), |comm| {
        let array = if shared {
            all.clone()
        } else {
            comm.agree(Array::open_writable(name))?
        };
        let array = tuned(&array, strategies[comm.rank()]);
        for round in 0..rounds {
            comm.barrier()?;
            comm.agree(write_round(&array, comm.rank(), round))?;
            if comm.rank() == 0 {
                check(&all, comm.size(), round);
            }
        }
        Ok::<_, Error>(())
    })
    .unwrap();
}

#[test]
fn sieving_ranks() {
    ranks(&[Strategy::Sieving; 2], true, ROUNDS);
    ranks(&[Strategy::Sieving; 2], false, ROUNDS);
    ranks(&[Strategy::Sieving; 3], true, ROUNDS / 5);
}

#[test]
fn sieving_ranks_beside_others() {
    for shared in [true, false] {
        ranks(
            &[Strategy::Sieving, Strategy::Direct, Strategy::Mapped],
            shared,
            ROUNDS / 2,
        );
    }
}

/// Ranks write every third element together in two phases, with everything
/// between read and written back, while another process writes there.
#[test]
fn collective_writes_beside_a_process() {
    for strategy in [Strategy::Direct, Strategy::Sieving, Strategy::Mapped] {
        let directory = tempfile::tempdir().unwrap();
        let name = directory.path().join("shared.oc");
        let name = name.to_str().unwrap();
        let all = create(name);
        if !is_guarded(&all) {
            return;
        }
        let other = std::sync::Mutex::new(Writer::start(1, strategy, name));
        outcore::run(2, |comm| {
            let array = all.tuned(Tuning {
                buffer: Some(16 << 10),
                gap: Some(1 << 20),
                ..Tuning::default()
            });
            let calls = array
                .collective()
                .way(CollectiveWay::TwoPhase)
                .domains(DomainKind::Dynamic);
            let mine = array.section(&format!("{}::6", 3 * comm.rank()))?;
            let plan = calls.plan(comm, &mine, Direction::Write)?;
            for round in 0..ROUNDS / 5 {
                if comm.rank() == 0 {
                    other.lock().unwrap().order(round);
                }
                let moved = plan.write(comm, &vec![round; mine.count() as usize])?;
                assert!(moved.moved > moved.useful, "it moves what lies between");
                if comm.rank() == 0 {
                    other.lock().unwrap().wait(round);
                    check(&all, 2, round);
                }
                comm.barrier()?;
            }
            Ok::<_, Error>(())
        })
        .unwrap();
        other.into_inner().unwrap().finish();
    }
}
