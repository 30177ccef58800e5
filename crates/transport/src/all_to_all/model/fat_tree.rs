//! The CM-5: a fat tree of fours (Thakur 1995, sections 4.1.1 and 4.2).
//!
//! Sixteen processors form a cluster with 32 links at the bottom, 16 above them
//! and 8 leaving it. Within a cluster pairs do not get into each other's way; of
//! the 16 that leave it, two share a link. The formulas are for 16 processors
//! and more; with fewer all is within a cluster.

use super::{Machine, power_below};

/// The processors among which there is no contention.
const CLUSTER: usize = 16;

/// LEX: all others' messages come to one processor over its two links. The
/// thesis speaks of `P` steps and sums `P - 1`, as here: in a step nobody sends
/// to itself.
pub fn lex(machine: &Machine, processors: usize, bytes: f64) -> f64 {
    let others = (processors - 1) as f64;
    let sharing = (processors - 1).div_ceil(2) as f64;
    others * machine.step(bytes, machine.single, sharing)
}

/// PEX: steps from 16 on leave the clusters.
pub fn pex(machine: &Machine, processors: usize, bytes: f64) -> f64 {
    let sharing = |step| if step < CLUSTER { 1.0 } else { 2.0 };
    let steps = (1..processors).map(|step| machine.step(bytes, machine.exchange, sharing(step)));
    steps.sum()
}

/// REX: of its steps the last four are within the clusters; each moves half of
/// all blocks.
pub fn rex(machine: &Machine, processors: usize, bytes: f64) -> f64 {
    let message = bytes * processors as f64 / 2.0;
    let steps = (0..processors.ilog2()).map(|bit| {
        let sharing = if 1 << bit < CLUSTER { 1.0 } else { 2.0 };
        machine.step(message, machine.exchange, sharing)
    });
    steps.sum()
}

/// BEX: on average, of the processors that PEX lets leave in a step two stay.
/// The thesis prints the power of two above the step and, in its short form,
/// a step for all; its text fits the power of two below, and a sum.
pub fn bex(machine: &Machine, processors: usize, bytes: f64) -> f64 {
    let sharing = |step: usize| match step < CLUSTER {
        true => 1.0,
        false => {
            let span = power_below(step) as f64;
            (span - 2.0) / (span / 2.0)
        }
    };
    let steps = (1..processors).map(|step| machine.step(bytes, machine.exchange, sharing(step)));
    steps.sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    const MACHINE: Machine = Machine {
        start: 1.0,
        exchange: 1.0,
        send_receive: 1.0,
        single: 1.0,
        link: 0.9,
    };

    /// The closed forms of the thesis, where they are right.
    #[test]
    fn closed_forms() {
        let near = |a: f64, b: f64| assert!((a - b).abs() < 1e-9 * b, "{a} {b}");
        for processors in [16usize, 32, 64, 256] {
            let (p, bytes) = (processors as f64, 100.0);
            let lg = p.log2();
            let contended = f64::max(1.0, 1.8);
            near(
                pex(&MACHINE, processors, bytes),
                (p - 1.0) + bytes * (15.0 + (p - 16.0) * contended),
            );
            near(
                rex(&MACHINE, processors, bytes),
                lg + bytes * p / 2.0 * (4.0 + (lg - 4.0) * contended),
            );
            near(
                lex(&MACHINE, processors, bytes),
                (p - 1.0) + bytes * (p - 1.0) * ((p - 1.0) / 2.0).ceil() * 0.9,
            );
        }
    }

    /// 16 processors on 8 links in steps 16 to 31, less the two that stay; so
    /// BEX is never worse than PEX, and better beyond a cluster.
    #[test]
    fn balanced_is_better_than_pairwise() {
        let step = |machine: &Machine| bex(machine, 17, 1.0) - bex(machine, 16, 1.0);
        assert!((step(&MACHINE) - (1.0 + 14.0 / 8.0 * 0.9)).abs() < 1e-12);
        for processors in [8, 16, 32, 64, 512] {
            let (balanced, pairwise) = (
                bex(&MACHINE, processors, 64.0),
                pex(&MACHINE, processors, 64.0),
            );
            assert_eq!(balanced < pairwise, processors > 16);
            assert!(balanced <= pairwise);
        }
    }
}
