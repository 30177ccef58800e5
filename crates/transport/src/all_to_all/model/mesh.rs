//! The Touchstone Delta: a mesh of rows and columns, numbered row by row; a
//! message goes along its row first, then along the column (Thakur 1995, section
//! 4.3).
//!
//! `machine` gives what messages of so many bytes cost, as that may depend on
//! their length ([`Machine::delta`]).

use super::contention::counted;
use super::{Machine, power_below};
use crate::all_to_all::{AllToAll, Mesh};

/// PEX on powers of two (section 4.3.1): the messages on the busiest link are
/// the largest power of two in the larger of the two distances.
pub fn pex(machine: impl Fn(f64) -> Machine, mesh: Mesh, bytes: f64) -> f64 {
    let machine = machine(bytes);
    let sharing = |step| pex_contention(mesh, step) as f64;
    let steps = (1..mesh.size()).map(|step| machine.step(bytes, machine.exchange, sharing(step)));
    steps.sum()
}

/// The messages on the busiest link in a step of PEX.
pub fn pex_contention(mesh: Mesh, step: usize) -> usize {
    power_below((step % mesh.columns).max(step / mesh.columns))
}

/// GEN (section 4.3.4), with the messages on the busiest link by
/// [`gen_contention`] or [`gen_contention_printed`].
pub fn general(
    machine: impl Fn(f64) -> Machine,
    mesh: Mesh,
    bytes: f64,
    contention: fn(Mesh, usize) -> usize,
) -> f64 {
    let machine = machine(bytes);
    let sharing = |step| contention(mesh, step) as f64;
    let steps =
        (1..mesh.size()).map(|step| machine.step(bytes, machine.send_receive, sharing(step)));
    steps.sum()
}

/// The messages on the busiest link in a step of GEN: along rows, along columns
/// by those that stay in theirs, and by those that come from another.
pub fn gen_contention(mesh: Mesh, step: usize) -> usize {
    let Mesh { rows, columns } = mesh;
    let (across, down) = (step % columns, step / columns);
    let turned = match across {
        0 => 0,
        _ => (down + 1).min(rows - down - 1),
    };
    let straight = across.min(columns - across).max(down.min(rows - down));
    straight.max(turned)
}

/// The same as printed ("empirically"), which is an upper bound only.
pub fn gen_contention_printed(mesh: Mesh, step: usize) -> usize {
    let columns = mesh.columns;
    let across = step % columns;
    across.min(columns - across) + (step / columns).min((mesh.size() - step) / columns)
}

/// IPEX on powers of two (section 4.3.5). The thesis prints the power of two
/// above the step, and the inner sum outside of the outer one.
pub fn ipex(machine: impl Fn(f64) -> Machine, mesh: Mesh, bytes: f64) -> f64 {
    let bundle = bytes * mesh.rows as f64;
    let step = |bytes: f64, step: usize| {
        let machine = machine(bytes);
        machine.step(bytes, machine.exchange, power_below(step) as f64)
    };
    let along_column: f64 = (1..mesh.rows).map(|row| step(bytes, row)).sum();
    let rounds = (1..mesh.columns).map(|round| step(bundle, round) + along_column);
    rounds.sum::<f64>() + along_column
}

/// REX on powers of two (section 4.3.6): halves along the rows, then along the
/// columns; all that crosses the cut of a row or column shares its link.
pub fn rex(machine: impl Fn(f64) -> Machine, mesh: Mesh, bytes: f64) -> f64 {
    let message = bytes * mesh.size() as f64 / 2.0;
    let machine = machine(message);
    let halves = |extent: usize| (0..extent.ilog2()).map(|bit| 1 << bit);
    let cuts = halves(mesh.columns).chain(halves(mesh.rows));
    cuts.map(|sharing: usize| machine.step(message, machine.exchange, sharing as f64))
        .sum()
}

/// PEX-GEN or PEX-GEN-SHIFT on any mesh (sections 4.3.2 and 4.3.3), for which
/// the thesis has no formula but a bound by PEX (which fails where the columns
/// are no power of two): with the messages on the busiest link of each step
/// counted.
pub fn pairwise_any(
    machine: impl Fn(f64) -> Machine,
    algorithm: AllToAll,
    mesh: Mesh,
    bytes: f64,
) -> f64 {
    let machine = machine(bytes);
    let sharing = counted(algorithm, mesh).into_iter();
    sharing
        .map(|sharing| machine.step(bytes, machine.exchange, sharing as f64))
        .sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The formulas against messages counted on the links.
    #[test]
    fn contention_as_counted() {
        for (rows, columns) in [(1, 8), (2, 4), (4, 4), (4, 8), (8, 4), (8, 16), (16, 8)] {
            let mesh = Mesh { rows, columns };
            let formula = (1..mesh.size()).map(|step| pex_contention(mesh, step));
            assert!(
                counted(AllToAll::Pex, mesh).into_iter().eq(formula),
                "{mesh:?}"
            );
        }
        let mut looser = 0;
        for rows in 1..10 {
            for columns in 1..12 {
                let mesh = Mesh { rows, columns };
                let counted = counted(AllToAll::Gen, mesh);
                for (step, counted) in (1..).zip(counted) {
                    assert_eq!(gen_contention(mesh, step), counted, "{mesh:?} {step}");
                    let printed = gen_contention_printed(mesh, step);
                    assert!(printed >= counted, "{mesh:?} {step}");
                    looser += usize::from(printed > counted);
                }
            }
        }
        assert!(looser > 0);
    }

    /// "Contention bounded by PEX" fails where the columns are no power of two.
    #[test]
    fn pairwise_on_sixteen_by_thirty() {
        let most = |algorithm, columns| {
            let mesh = Mesh { rows: 16, columns };
            counted(algorithm, mesh).into_iter().max()
        };
        assert_eq!(most(AllToAll::PexGen, 30), Some(18));
        assert_eq!(most(AllToAll::Pex, 32), Some(16));
    }
}
