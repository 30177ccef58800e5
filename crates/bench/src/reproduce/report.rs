//! [`Report`]: a table of the thesis or the papers beside its simulation, and what becomes
//! of the claims.

/// So many quantities stand side by side.
const WIDEST: usize = 4;

/// The direct method,
pub(super) const DIRECT: &str = "direct s";
/// two phases with static file domains,
pub(super) const STATIC: &str = "static s";
/// and with dynamic ones.
pub(super) const DYNAMIC: &str = "dynamic s";
/// The time of the first over that of the last.
pub(super) const RATIO: &str = "direct/dynamic";
/// By how much something is faster than without.
pub(super) const GAIN: &str = "gain %";

/// One number of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Value {
    /// The row, in words without commas.
    pub case: String,
    /// What is counted or measured, with its unit.
    pub quantity: &'static str,
    /// What the thesis prints (or its formulas give).
    pub paper: f64,
    /// What the simulation gives.
    pub simulated: f64,
}

/// Whether a claim is borne out, and by what.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Whether it is.
    pub holds: bool,
    /// The numbers that say so.
    pub because: String,
}

/// Something that the thesis says of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct Claim {
    /// What it says; in quotation marks where these are its words.
    pub text: &'static str,
    /// Whether its own numbers bear it out.
    pub paper: Verdict,
    /// Whether the simulation does.
    pub simulation: Verdict,
}

/// A table of the thesis beside its simulation.
#[derive(Debug, Clone)]
pub struct Report {
    /// The table's name.
    pub table: &'static str,
    /// What it shows.
    pub title: String,
    /// What the simulation assumes beyond the disk.
    pub notes: Vec<String>,
    /// The numbers, row by row.
    pub values: Vec<Value>,
    /// The claims.
    pub claims: Vec<Claim>,
}

impl Claim {
    /// A claim, judged alike by the printed and by the simulated numbers.
    pub(super) fn judged(text: &'static str, judge: impl Fn(Side) -> Verdict) -> Self {
        Self {
            text,
            paper: judge(Side::Paper),
            simulation: judge(Side::Simulated),
        }
    }
}

/// Which of the two numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Side {
    Paper,
    Simulated,
}

impl Value {
    pub(super) fn on(&self, side: Side) -> f64 {
        match side {
            Side::Paper => self.paper,
            Side::Simulated => self.simulated,
        }
    }
}

/// The numbers of one quantity, in the order of the rows.
pub(super) fn column(values: &[Value], quantity: &str, side: Side) -> Vec<f64> {
    let of = values.iter().filter(|value| value.quantity == quantity);
    of.map(|value| value.on(side)).collect()
}

/// The smallest and the largest.
pub(super) fn range(numbers: &[f64]) -> (f64, f64) {
    let (low, high) = (f64::INFINITY, f64::NEG_INFINITY);
    numbers
        .iter()
        .fold((low, high), |(low, high), x| (low.min(*x), high.max(*x)))
}

impl Report {
    /// The report for people.
    pub fn text(&self) -> String {
        let mut text = format!("{}  {}\n", self.table, self.title);
        for note in &self.notes {
            text += &format!("      {note}\n");
        }
        let mut cases: Vec<&str> = Vec::new();
        let mut quantities: Vec<&str> = Vec::new();
        for value in &self.values {
            if !cases.contains(&value.case.as_str()) {
                cases.push(&value.case);
            }
            if !quantities.contains(&value.quantity) {
                quantities.push(value.quantity);
            }
        }
        for some in quantities.chunks(WIDEST) {
            text += &self.block(&cases, some);
        }
        text.push('\n');
        for claim in &self.claims {
            text += &format!("{}\n", claim.text);
            let (paper, simulation) = (&claim.paper, &claim.simulation);
            let sides = [
                ("paper", paper, "CONTRADICTED"),
                ("simulation", simulation, "does not hold"),
            ];
            for (who, verdict, otherwise) in sides {
                let word = if verdict.holds { "holds" } else { otherwise };
                text += &format!("    {who:<11} {word}: {}\n", verdict.because);
            }
        }
        text
    }

    /// The numbers of some quantities, paper and simulation side by side.
    fn block(&self, cases: &[&str], quantities: &[&str]) -> String {
        let width = cases.iter().map(|case| case.len()).max().unwrap_or(0);
        let mut text = format!("\n{:width$}", "");
        for quantity in quantities {
            text += &format!(" |{quantity:^21}");
        }
        text += &format!("\n{:width$}", "");
        for _ in quantities {
            text += &format!(" |{:>10} {:>10}", "paper", "simulated");
        }
        text.push('\n');
        for case in cases {
            text += &format!("{case:width$}");
            for quantity in quantities {
                let is = |value: &&Value| value.case == *case && value.quantity == *quantity;
                let shown = self.values.iter().find(is).map(|value| {
                    let (paper, simulated) = (number(value.paper), number(value.simulated));
                    format!(" |{paper:>10} {simulated:>10}")
                });
                text += &shown.unwrap_or_else(|| format!(" |{:21}", ""));
            }
            text.push('\n');
        }
        text
    }

    /// The numbers and the verdicts as comma-separated values.
    pub fn csv(&self) -> String {
        let mut text = "table,case,quantity,paper,simulated\n".to_string();
        for value in &self.values {
            let Value {
                case,
                quantity,
                paper,
                simulated,
            } = value;
            text += &format!("{},{case},{quantity},{paper},{simulated:.6}\n", self.table);
        }
        let word = |verdict: &Verdict| {
            if verdict.holds {
                "holds"
            } else {
                "contradicted"
            }
        };
        for claim in &self.claims {
            let said = claim.text.replace(',', ";");
            let (paper, simulated) = (word(&claim.paper), word(&claim.simulation));
            text += &format!("{},{said},claim,{paper},{simulated}\n", self.table);
        }
        text
    }
}

/// Four digits that matter, or a whole number.
fn number(value: f64) -> String {
    if value.fract() == 0.0 {
        return format!("{value}");
    }
    let whole = value.abs().max(1.0).log10() as usize + 1;
    format!("{value:.*}", 4usize.saturating_sub(whole))
}
