//! The tables of the thesis on simulated storage: exact counts, the orders
//! that must come out, and the verdicts on its claims.

use outcore_bench::{Report, Table, reproduce};

fn run(table: Table) -> Report {
    reproduce(table).unwrap()
}

fn column(report: &Report, quantity: &str) -> Vec<f64> {
    let of = report
        .values
        .iter()
        .filter(|value| value.quantity == quantity);
    of.map(|value| value.simulated).collect()
}

/// What becomes of each claim: by the paper's numbers, by the simulation's.
fn verdicts(report: &Report) -> Vec<(bool, bool)> {
    let claims = report.claims.iter();
    claims
        .map(|claim| (claim.paper.holds, claim.simulation.holds))
        .collect()
}

#[test]
fn requests_and_elements_are_exactly_those_of_the_thesis() {
    let report = run(Table::T5_3);
    assert_eq!(report.values.len(), 40);
    for value in &report.values {
        assert_eq!(
            value.paper, value.simulated,
            "{} {}",
            value.case, value.quantity
        );
    }
    assert_eq!(
        column(&report, "read req. direct"),
        [16384.0, 4096.0, 2373.0, 2275.0, 5643.0]
    );
    assert_eq!(column(&report, "write req. sieving"), [4.0; 5]);
    assert_eq!(verdicts(&report), [(true, true); 3]);
}

#[test]
fn sieving_beats_direct_on_all_five_sections() {
    let report = run(Table::T5_2);
    let of = |quantity| column(&report, quantity);
    for (direct, sieving) in [
        ("read direct s", "read sieving s"),
        ("write direct s", "write sieving s"),
    ] {
        let pairs = of(direct).into_iter().zip(of(sieving));
        assert!(
            pairs
                .take(5)
                .all(|(direct, sieving)| direct > 100.0 * sieving)
        );
    }
    // Two requests of 16 columns: 2 * 20 ms, and 256 KiB at 2 MB/s.
    assert!((of("read sieving s")[0] - (0.04 + 262_144.0 / 2e6)).abs() < 1e-9);
    // Its own table contradicts the thesis: writing takes 2.6 times and more.
    assert_eq!(
        verdicts(&report),
        [(true, true), (false, true), (true, true), (true, true)]
    );
}

#[test]
fn prefetching_gains_in_every_case() {
    for (table, in_most) in [(Table::T5_4, true), (Table::T5_5, true)] {
        let report = run(table);
        let (without, with) = (
            column(&report, "no prefetch s"),
            column(&report, "prefetch s"),
        );
        assert_eq!(without.len(), 15);
        assert!(
            without
                .iter()
                .zip(&with)
                .all(|(without, with)| with < without)
        );
        for slabs in without.chunks_exact(3) {
            assert!(slabs.is_sorted(), "more slabs take longer without prefetch");
        }
        // On 64 processors the slabs are too small for more of them.
        assert!(with[12] < with[13] && with[13] < with[14]);
        // On 4 they are not.
        assert!(with[1] < with[0]);
        let degrades_elsewhere = table == Table::T5_4;
        let expected = [
            (true, true),
            (false, false),
            (true, true),
            (in_most, false),
            (true, true),
            (degrades_elsewhere, false),
        ];
        assert_eq!(verdicts(&report), expected, "{}", report.text());
    }
}

#[test]
fn reuse_gains_on_both_sizes() {
    let report = run(Table::T5_6);
    let (without, with) = (column(&report, "no reuse s"), column(&report, "reuse s"));
    assert!(
        without
            .iter()
            .zip(&with)
            .all(|(without, with)| with < without)
    );
    // Six columns fewer to read in each of ten iterations, at 2 MB/s.
    assert!((without[0] - with[0] - 60.0 * 8192.0 / 2e6).abs() < 1e-6);
    assert!((without[1] - with[1] - 60.0 * 16384.0 / 2e6).abs() < 1e-6);
    assert!(
        report.notes.iter().any(|note| note.contains("34 with it")),
        "each column once"
    );
    assert_eq!(verdicts(&report), [(true, true); 2]);
}

#[test]
fn every_run_gives_the_same() {
    for table in Table::ALL {
        assert_eq!(run(table).csv(), run(table).csv(), "{}", table.name());
    }
}
