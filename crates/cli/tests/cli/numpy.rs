//! Beside NumPy itself: it reads our files, we read its files, and sections
//! written alike are the same.

use std::process::Command;

use crate::program::Place;

/// The interpreter is `OUTCORE_TEST_PYTHON`, or `python3`; it must have NumPy.
#[test]
fn numpy_agrees() {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let has_numpy = Command::new(&python).args(["-c", "import numpy"]).output();
    assert!(
        has_numpy.is_ok_and(|output| output.status.success()),
        "{python} has no NumPy; set OUTCORE_TEST_PYTHON to an interpreter that has it"
    );
    let place = Place::new();
    place.write("check.py", include_str!("numpy_agrees.py"));
    let mut command = Command::new(&python);
    command.args(["check.py", env!("CARGO_BIN_EXE_outcore")]);
    let output = place.prepare(command).output().expect("python starts");
    let printed = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{printed}{}",
        String::from_utf8_lossy(&output.stderr)
    );
    assert!(printed.ends_with("checked to the end\n"), "{printed}");
}
