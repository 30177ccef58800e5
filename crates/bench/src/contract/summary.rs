//! What the lines of the bench `contract` say in sentences: ratios of the ways, and
//! speed-ups.

use super::stage::{CALLS, CONTRACT, GEMM};
use crate::line::Line;

/// For each case: how many times as long the other ways take as procedure calls,
/// the speed-up over one rank, and the part of the time in multiplications.
pub fn contract_summary(lines: &[Line]) -> String {
    let mut text = String::new();
    for calls in lines.iter().filter(|line| is(line, CALLS, CONTRACT)) {
        let same = |line: &&Line| line.case == calls.case && line.op == CONTRACT;
        let others = lines
            .iter()
            .filter(same)
            .filter(|line| line.strategy != CALLS);
        let mut facts: Vec<String> = others
            .map(|other| format!("{} {:.2}x", other.strategy, other.median_s / calls.median_s))
            .collect();
        if let Some(speed_up) = speed_up(lines, calls) {
            facts.push(format!("speed-up over 1 rank {speed_up:.2}"));
        }
        let gemm = lines
            .iter()
            .find(|line| line.case == calls.case && is(line, CALLS, GEMM));
        if let Some(gemm) = gemm {
            // Both are of the last turn or close to it.
            let share = 100.0 * gemm.best_s / calls.median_s;
            facts.push(format!("gemm {share:.0}% of the time"));
        }
        text += &format!(
            "{}: {:.3} s; {}\n",
            calls.case,
            calls.median_s,
            facts.join(", ")
        );
    }
    let wrong = lines.iter().filter(|line| !line.ok).count();
    if wrong > 0 {
        text += &format!("{wrong} lines are WRONG\n");
    }
    text
}

pub(super) fn is(line: &Line, strategy: &str, op: &str) -> bool {
    line.strategy == strategy && line.op == op
}

/// The case of a strong-scaling line with the ranks left out.
pub(super) fn problem(line: &Line) -> String {
    line.case.replace(&format!(" ranks {} ", line.ranks), " ")
}

/// The time of one rank for the same problem over that of the line.
pub(super) fn speed_up(lines: &[Line], line: &Line) -> Option<f64> {
    let alone = lines.iter().find(|other| {
        other.ranks == 1 && is(other, &line.strategy, line.op) && problem(other) == problem(line)
    })?;
    (line.ranks > 1 && line.case.starts_with("strong")).then_some(alone.median_s / line.median_s)
}
