//! [`Line`]: one contestant's result, and how results are printed.

/// One contestant's result.
#[derive(Debug, Clone)]
pub struct Line {
    /// Who: `outcore`, a limit such as `pread`, or another system.
    pub system: String,
    /// The bench it belongs to.
    pub bench: &'static str,
    /// What was done, in words without commas.
    pub case: String,
    /// `read`, `write`, `exchange`, ...
    pub op: &'static str,
    /// How: a strategy or a block size.
    pub strategy: String,
    /// What carried messages: `threads`, `openmpi`, `mpich`.
    pub transport: String,
    /// The number of ranks.
    pub ranks: usize,
    /// The bytes (or, for walks, runs) that were asked for.
    pub useful_bytes: u64,
    /// The best time of all repetitions.
    pub best_s: f64,
    /// The time in the middle.
    pub median_s: f64,
    /// Whether what came out was right.
    pub ok: bool,
}

impl Line {
    /// The line of a bench that prints `text` as comma-separated values.
    pub fn parse(bench: &'static str, text: &str) -> Option<Self> {
        let fields: Vec<&str> = text.split(',').collect();
        let [
            system,
            of,
            case,
            op,
            strategy,
            transport,
            ranks,
            useful,
            best,
            median,
            verdict,
        ] = fields[..]
        else {
            return None;
        };
        let known = [
            "read",
            "write",
            "get",
            "put",
            "accumulate",
            "read-increment",
        ];
        let op = known.into_iter().find(|known| *known == op)?;
        (of == bench).then_some(Self {
            system: system.into(),
            bench,
            case: case.into(),
            op,
            strategy: strategy.into(),
            transport: transport.into(),
            ranks: ranks.parse().ok()?,
            useful_bytes: useful.parse().ok()?,
            best_s: best.parse().ok()?,
            median_s: median.parse().ok()?,
            ok: verdict == "ok",
        })
    }
}

/// The lines as comma-separated values, with a header.
pub fn csv(lines: &[Line]) -> String {
    let header = "system,bench,case,op,strategy,transport,ranks,useful_bytes,best_s,median_s,ok\n";
    lines.iter().fold(header.to_string(), |text, line| {
        text + &format!(
            "{},{},{},{},{},{},{},{},{:.9},{:.9},{}\n",
            line.system,
            line.bench,
            line.case.replace(',', ";"),
            line.op,
            line.strategy,
            line.transport,
            line.ranks,
            line.useful_bytes,
            line.best_s,
            line.median_s,
            if line.ok { "ok" } else { "WRONG" },
        )
    })
}

/// The lines for people, each with its speed as a share of the best of the
/// other systems in the same case.
pub fn table(lines: &[Line]) -> String {
    let widest = |text: fn(&Line) -> &str, least: usize| {
        let lengths = lines.iter().map(|line| text(line).chars().count());
        lengths.fold(least, usize::max)
    };
    let (wide, how) = (
        widest(|line| &line.case, 26),
        widest(|line| &line.strategy, 12),
    );
    let carrier = widest(|line| &line.transport, 9);
    let mut text = format!(
        "{:<12} {:<wide$} {:<9} {:<how$} {:<carrier$} {:>5} {:>12} {:>12} {:>10} {:>8}\n",
        "system",
        "case",
        "op",
        "strategy",
        "transport",
        "ranks",
        "best s",
        "median s",
        "per s",
        "ratio"
    );
    for line in lines {
        let same = |other: &&Line| {
            other.case == line.case
                && other.op == line.op
                && other.ranks == line.ranks
                && other.system != line.system
        };
        let best = lines
            .iter()
            .filter(same)
            .map(|other| other.best_s)
            .reduce(f64::min);
        let ratio = best.map_or("".into(), |best| format!("{:.2}", best / line.best_s));
        text += &format!(
            "{:<12} {:<wide$} {:<9} {:<how$} {:<carrier$} {:>5} {:>12.6} {:>12.6} {:>10} {:>8}{}\n",
            line.system,
            line.case,
            line.op,
            line.strategy,
            line.transport,
            line.ranks,
            line.best_s,
            line.median_s,
            quantity(line.useful_bytes as f64 / line.best_s),
            ratio,
            if line.ok { "" } else { "  WRONG" }
        );
    }
    text
}

fn quantity(amount: f64) -> String {
    match amount {
        a if a >= 1e9 => format!("{:.2} G", a / 1e9),
        a if a >= 1e6 => format!("{:.2} M", a / 1e6),
        a => format!("{:.2} k", a / 1e3),
    }
}
