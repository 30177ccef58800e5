//! [`Agreement`]: in how many rows of some tables the simulation says of the
//! direct and of the two-phase method what the papers say.

use super::report::{DIRECT, DYNAMIC, Report, STATIC, Side, column};

/// How far simulated rows agree with printed ones.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Agreement {
    /// All rows.
    pub rows: usize,
    /// Those where a method that is fastest in print is fastest in simulation.
    pub fastest: usize,
    /// Those where the direct method is on the same side of the two-phase method
    /// with dynamic domains; or where both take the same time in print.
    pub winner: usize,
    /// Those where the direct method wins in print,
    pub direct_wins: usize,
    /// and of them those where it does in simulation.
    pub direct_wins_too: usize,
    /// Those where the time of the direct method over that of the other is
    /// within a factor 2 of the printed one.
    pub ratio: usize,
}

impl Agreement {
    /// Of all rows of some reports.
    pub fn of<'a>(reports: impl IntoIterator<Item = &'a Report>) -> Self {
        let mut all = Self::default();
        for report in reports {
            let times = |side| {
                [DIRECT, STATIC, DYNAMIC].map(|quantity| column(&report.values, quantity, side))
            };
            let (printed, simulated) = (times(Side::Paper), times(Side::Simulated));
            for row in 0..printed[0].len() {
                let of = |times: &[Vec<f64>; 3]| {
                    [0, 1, 2].map(|method| times[method].get(row).copied().unwrap_or(f64::INFINITY))
                };
                all.add(of(&printed), of(&simulated));
            }
        }
        all
    }

    /// Adds a row: seconds of direct, static, dynamic.
    fn add(&mut self, printed: [f64; 3], simulated: [f64; 3]) {
        let is_least =
            |times: &[f64; 3], method: usize| times.iter().all(|time| times[method] <= *time);
        let both = |method: &usize| is_least(&printed, *method) && is_least(&simulated, *method);
        self.rows += 1;
        self.fastest += usize::from((0..3).any(|method| both(&method)));
        let direct = |times: [f64; 3]| times[0] < times[2];
        let tie = printed[0] == printed[2];
        self.winner += usize::from(tie || direct(printed) == direct(simulated));
        self.direct_wins += usize::from(direct(printed));
        self.direct_wins_too += usize::from(direct(printed) && direct(simulated));
        let off = (simulated[0] / simulated[2]) / (printed[0] / printed[2]);
        self.ratio += usize::from((0.5..=2.0).contains(&off));
    }

    /// The same in words.
    pub fn text(&self) -> Vec<String> {
        let of = |count: usize| {
            let share = 100.0 * count as f64 / self.rows.max(1) as f64;
            format!("{count} of {} rows ({share:.0}%)", self.rows)
        };
        vec![
            format!(
                "the method that wins in print wins in simulation in {};",
                of(self.fastest)
            ),
            format!(
                "direct against dynamic: the same winner in {}, in {} of {} that direct wins;",
                of(self.winner),
                self.direct_wins_too,
                self.direct_wins
            ),
            format!(
                "their ratio within a factor 2 of the printed one in {}",
                of(self.ratio)
            ),
        ]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_agree_by_winner_and_by_ratio() {
        let mut agreement = Agreement::default();
        // Dynamic wins in both, the ratio is 2.5 times as large.
        agreement.add([2.0, 3.0, 1.0], [5.0, 0.5, 1.0]);
        // Direct wins in print only.
        agreement.add([1.0, f64::INFINITY, 1.5], [1.0, f64::INFINITY, 0.9]);
        // Nobody wins in print.
        agreement.add([1.0, 2.0, 1.0], [1.0, 2.0, 1.1]);
        let expected = Agreement {
            rows: 3,
            fastest: 1,
            winner: 2,
            direct_wins: 1,
            direct_wins_too: 0,
            ratio: 2,
        };
        assert_eq!(agreement, expected);
    }
}
