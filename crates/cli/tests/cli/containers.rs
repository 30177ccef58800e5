//! Files of other libraries read here, and ours read there.

use std::process::Command;

#[test]
fn zarr_python_agrees() {
    agrees(include_str!("zarr_agrees.py"), "NumPy and zarr 3");
}

#[test]
fn h5py_agrees() {
    agrees(include_str!("hdf5_agrees.py"), "NumPy and h5py");
}

#[test]
fn whole_containers_agree() {
    agrees(
        include_str!("containers_agree.py"),
        "NumPy, netCDF4, h5py and zarr 3",
    );
}

#[test]
fn netcdf4_agrees() {
    agrees(include_str!("netcdf_agrees.py"), "NumPy and netCDF4");
}

#[test]
fn tifffile_agrees() {
    agrees(include_str!("tiff_agrees.py"), "NumPy and tifffile");
}

/// Runs a script that compares; the interpreter must have these packages.
fn agrees(script: &str, needed: &str) {
    let python = std::env::var("OUTCORE_TEST_PYTHON").unwrap_or_else(|_| "python3".into());
    let place = tempfile::tempdir().unwrap();
    let path = place.path().join("check.py");
    std::fs::write(&path, script).unwrap();
    let output = Command::new(&python)
        .arg(&path)
        .arg(env!("CARGO_BIN_EXE_outcore"))
        .current_dir(place.path())
        .output()
        .unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(
        output.status.success(),
        "{python} must have {needed}:\n{}{}",
        text(&output.stdout),
        text(&output.stderr)
    );
}
