//! Starts `mpi-conformance` under the launcher of the MPI library it was
//! built for, in all its modes. The variable `MPIRUN` names another launcher.

use std::io::Read;
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use outcore_transport_mpi::library_version;

/// A run that takes longer hangs.
const LIMIT: Duration = Duration::from_secs(120);

/// One job at a time: each has more ranks than there may be cores.
static TURN: Mutex<()> = Mutex::new(());

/// The exit code and the output of `mpi-conformance` on `ranks` ranks.
fn launch(ranks: usize, arguments: &[&str]) -> (i32, String) {
    let _turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
    let mut child = launchers()
        .iter()
        .find_map(|launcher| {
            Command::new(launcher)
                .args(["-n", &ranks.to_string()])
                .arg(env!("CARGO_BIN_EXE_mpi-conformance"))
                .args(arguments)
                .env("OMPI_ALLOW_RUN_AS_ROOT", "1")
                .env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1")
                .env("OMPI_MCA_rmaps_base_oversubscribe", "1")
                .env("OMPI_MCA_mpi_yield_when_idle", "1")
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped())
                .spawn()
                .ok()
        })
        .expect("no launcher: set MPIRUN");
    let mut stdout = child.stdout.take().expect("piped");
    let mut stderr = child.stderr.take().expect("piped");
    let reader = thread::spawn(move || {
        let mut text = String::new();
        let _ = stdout.read_to_string(&mut text);
        text
    });
    let other = thread::spawn(move || {
        let mut text = String::new();
        let _ = stderr.read_to_string(&mut text);
        text
    });
    let start = Instant::now();
    let code = loop {
        if let Some(status) = child.try_wait().expect("a child of ours") {
            break status.code().unwrap_or(-1);
        }
        if start.elapsed() > LIMIT {
            let _ = child.kill();
            panic!("{ranks} ranks with {arguments:?} hang");
        }
        thread::sleep(Duration::from_millis(10));
    };
    let mut output = reader.join().expect("no panic");
    output += &other.join().expect("no panic");
    (code, output)
}

/// The launchers to try, best first.
fn launchers() -> Vec<String> {
    if let Ok(launcher) = std::env::var("MPIRUN") {
        return vec![launcher];
    }
    let version = library_version();
    let own = if version.starts_with("Open MPI") {
        "mpirun.openmpi"
    } else {
        "mpirun.mpich"
    };
    vec![own.into(), "mpirun".into()]
}

fn passes(ranks: usize, arguments: &[&str]) -> String {
    let (code, output) = launch(ranks, arguments);
    assert_eq!(code, 0, "{ranks} ranks with {arguments:?}:\n{output}");
    output
}

#[test]
fn conforms() {
    for ranks in [1, 2, 3, 5] {
        assert!(passes(ranks, &[]).contains(&format!("{ranks} ranks")));
    }
}

#[test]
fn conforms_without_shared_memory() {
    passes(3, &["--apart"]);
}

#[test]
fn long_messages_are_cut() {
    for bytes in ["500", "65536"] {
        passes(3, &["--parts", bytes]);
    }
}

#[test]
fn everybody_hears_of_a_failure() {
    for (ranks, failing) in [(1, "0"), (2, "0"), (3, "1"), (5, "4")] {
        passes(ranks, &["--fail", failing]);
        passes(ranks, &["--fail-large", failing]);
        passes(ranks, &["--fail-loan", failing]);
        passes(ranks, &["--fail-notice", failing]);
        passes(ranks, &["--end", failing]);
    }
}

#[test]
fn a_rank_that_has_ended_is_not_waited_for() {
    passes(3, &["--early", "1"]);
}

#[test]
fn different_lengths_are_noticed() {
    passes(3, &["--mismatch"]);
    passes(3, &["--mismatch-exchange"]);
}

#[test]
fn a_run_can_follow_one_that_failed() {
    passes(3, &["--again"]);
}

#[test]
fn a_process_may_end_while_others_begin_a_run() {
    passes(3, &["--leave", "1"]);
}

#[test]
fn a_panic_ends_the_job() {
    let (code, output) = launch(3, &["--panic", "1"]);
    assert_ne!(code, 0);
    assert!(output.contains("rank 1 panicked"), "{output}");
    assert!(output.contains("a panic on purpose"), "{output}");
}

#[test]
fn an_exit_ends_the_job() {
    assert_ne!(launch(3, &["--exit", "1"]).0, 0);
}

#[test]
fn an_error_becomes_the_exit_code() {
    assert_ne!(launch(3, &["--error", "1"]).0, 0);
}
