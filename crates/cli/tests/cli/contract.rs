//! `outcore contract` from every place where blocks may be, checked by itself
//! against the plain loop.

use crate::program::Place;

const PAPER: &str = "i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p2]";

/// The arguments of a contraction in the paper's spaces.
fn arguments<'a>(expression: &'a str, more: &'a str) -> Vec<&'a str> {
    let spaces = "--segments O=5,3,2 --segments V=6,4 --index p=O --index h=V";
    let mut all = vec!["contract", expression];
    all.extend(spaces.split(' ').chain(more.split_whitespace()));
    all
}

#[test]
fn every_way_predicate_and_type() {
    let place = Place::new();
    let ways = ["shared", "calls", "replicas", "files", "striped"];
    for (at, way) in ways.iter().enumerate() {
        for (predicate, number) in [("all", "f64"), ("parity", "f32"), ("band:1", "c128")] {
            let ranks = [1, 2, 3, 5, 2][at];
            let _ = std::fs::remove_dir_all(place.path("i0.oc"));
            let more = format!(
                "--from {way} --predicate {predicate} --make --type {number} --check --force \
                 --ranks {ranks} --memory 64MiB"
            );
            let told = place.ok_args(&arguments(PAPER, &more));
            assert!(
                told.starts_with(&format!("{PAPER} in {number}: ")),
                "{told}"
            );
            assert!(
                told.contains("; checked; ") && told.contains("GFLOP/s"),
                "{told}"
            );
            // Once more, added to what is there.
            let more = format!("--from {way} --predicate {predicate} --check --ranks {ranks}");
            place.ok_args(&arguments(PAPER, &more));
        }
    }
    // Whatever was temporary is gone.
    assert!(place.names().iter().all(|name| !name.starts_with('.')));
}

#[test]
fn results_are_ordinary_arrays() {
    let place = Place::new();
    place.ok("create a.npy --shape 6 --type f64 --fill 2");
    place.ok("create b.oc --shape 9 --type f64 --fill 3");
    let line = "contract c[i,j]=a[i,k]*b[k,j] --segments i=2 --segments j=2,1 --segments k=3 \
                --array a=a.npy --array c=c.npy";
    place.ok(line);
    assert_eq!(place.npy("c.npy").len(), 6 * 8);
    assert_eq!(place.ok("read c.npy 5").trim(), "18");
    let message = place.fails(1, line);
    assert!(message.contains("--force"), "{message}");
    place.ok(&format!("{line} --force"));
    // With +=, what is there is added to.
    place.ok(&line.replace("]=a", "]+=a"));
    assert_eq!(place.ok("read c.npy 0").trim(), "36");
}

/// Whatever a name looks like, the old result is found if it is there.
#[test]
fn results_in_files_with_others_are_added_to() {
    let place = Place::new();
    place.ok("create all.h5:/a --shape 6 --type f64 --fill 2");
    place.ok("create all.h5:/b --shape 9 --type f64 --fill 3");
    place.ok("create a.npy --shape 6 --type f64 --fill 2");
    place.ok("create b.npy --shape 9 --type f64 --fill 3");
    let raw = "raw:c.bin?shape=6&type=f64";
    for (a, b, c) in [
        ("all.h5:/a", "all.h5:/b", "all.h5:/c"),
        ("a.npy", "b.npy", "c.h5:/c"),
        ("a.npy", "b.npy", "usual.h5"),
        ("a.npy", "b.npy", "c.nc:c"),
        ("a.npy", "b.npy", "c.zarr/c"),
        ("a.npy", "b.npy", raw),
    ] {
        let line = format!(
            "contract c[i,j]+=a[i,k]*b[k,j] --segments i=2 --segments j=2,1 --segments k=3 \
             --array a={a} --array b={b} --array c={c} --from files --force"
        );
        let names = place.names();
        place.ok(&line);
        assert_eq!(place.ok(&format!("read {c} 0")).trim(), "18", "{c}");
        place.ok(&format!("{line} --ranks 2"));
        assert_eq!(place.ok(&format!("read {c} 0")).trim(), "36", "{c}");
        assert!(
            place.names().len() <= names.len() + 1,
            "{:?}",
            place.names()
        );
    }
    // What is there, but is no array, is not overwritten.
    place.write("d.h5", "no array");
    let line = "contract d[i]+=a[i,k]*b[k] --segments i=2 --segments k=3 --array a=a.npy --array \
                b=b.npy --array d=d.h5:/d --force";
    place.ok("create b.npy --shape 3 --type f64 --force");
    assert!(place.fails(1, line).contains("d.h5"));
    assert_eq!(place.bytes("d.h5"), b"no array");
}

#[test]
fn bad_requests_are_refused() {
    let place = Place::new();
    let fails = |status, expression: &str, more: &str, words: &str| {
        let message = place.fails_args(status, &arguments(expression, more));
        assert!(message.contains(words), "{message}");
    };
    let misprint = "i0[p1,p2] += t[p1,p3,p4,h1] * i1[p3,p4,h1,p3]";
    fails(2, misprint, "", "has the index p3 twice");
    fails(2, "c[p1] += a[p1", "", "is not a contraction");
    fails(2, "c[q1] += a[q1,p1] * b[p1]", "", "the index q1 runs");
    fails(2, PAPER, "--index q=Q", "of which no segments are given");
    fails(2, PAPER, "--segments X=1,0", "is no length");
    fails(2, PAPER, "--segments X", "NAME=VALUE");
    fails(2, PAPER, "--predicate odd", "all, parity and band:N");
    fails(2, PAPER, "--from afar", "is none of");
    fails(2, PAPER, "--array x=x.oc", "has no such tensor");
    fails(1, PAPER, "", "t.oc");
    place.ok("create t.oc --shape 7 --type f64");
    place.ok("create i1.oc --shape 10000 --type f64");
    fails(1, PAPER, "", "should have one axis of 10000 elements");
    place.ok("create t.oc --shape 10000 --type i32 --force");
    place.ok("create i1.oc --shape 10000 --type i32 --force");
    fails(1, PAPER, "", "holds i32 elements");
    place.ok("create t.oc --shape 10000 --type f64 --force");
    fails(1, PAPER, "", "holds f64 elements, but i1.oc holds i32");
    fails(1, PAPER, "--make --force --memory 1KiB", "needs at least");
    place.ok("create i0.oc --shape 3 --type f64");
    fails(1, PAPER, "", "is not the tensor that would be added to");
}

#[test]
fn the_bench_is_right_in_every_way() {
    let place = Place::new();
    let line = "bench contract --scale 0.04 --k 1,2 --weak 1 --ranks 1,3 --repeat 1 --directory . \
                --csv";
    let output = place
        .command(line.split_whitespace())
        .output()
        .expect("it starts");
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    // A header; two numbers of ranks, three problems, two states, six ways in two lines each.
    assert_eq!(text.lines().count(), 1 + 2 * 3 * 2 * 6 * 2, "{text}");
    assert!(
        text.lines().skip(1).all(|line| line.ends_with(",ok")),
        "{text}"
    );
    assert!(
        text.contains("strong scale 0.04 k 2 ranks 3 cold"),
        "{text}"
    );
    assert!(place.names().is_empty());
}
