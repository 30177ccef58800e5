//! [`Row`]: a line of a bench, from this run or from a file.

use outcore_bench::Line;

/// What a line says.
#[derive(Debug, Clone, PartialEq)]
pub(in super::super) struct Row {
    pub(super) system: String,
    pub(super) bench: String,
    pub(super) case: String,
    pub(super) op: String,
    pub(super) strategy: String,
    pub(super) transport: String,
    pub(super) ranks: u64,
    pub(super) useful_bytes: u64,
    pub(super) best_s: f64,
    pub(super) median_s: f64,
    pub(super) ok: bool,
}

/// Who a system is.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Role {
    Us,
    Limit,
    Peer,
}

/// Contestants that do nothing but the least that the machine must do.
const LIMITS: [&str; 9] = [
    "pread",
    "pwrite",
    "memcpy",
    "memory",
    "memory+file",
    "loop",
    "futex",
    "cp",
    "limit",
];

impl Row {
    pub(super) fn role(&self) -> Role {
        match self.system.split('/').next() {
            Some("outcore") => Role::Us,
            _ if self.strategy == "limit" || LIMITS.contains(&self.system.as_str()) => Role::Limit,
            _ => Role::Peer,
        }
    }

    /// The rows of a file of comma-separated values with a header.
    pub(super) fn of_csv(text: &str) -> Result<Vec<Self>, String> {
        const HEADER: &str =
            "system,bench,case,op,strategy,transport,ranks,useful_bytes,best_s,median_s,ok";
        let mut lines = text.lines();
        let header = lines.next().unwrap_or_default();
        if header.trim_end() != HEADER {
            return Err("the first line does not name the columns of a bench".into());
        }
        let lines = lines
            .enumerate()
            .filter(|(_, line)| !line.trim().is_empty());
        let rows = lines.map(|(at, line)| {
            Self::of_line(line).ok_or_else(|| format!("line {} is no result", at + 2))
        });
        let rows: Vec<Self> = rows.collect::<Result<_, _>>()?;
        match rows.is_empty() {
            true => Err("there are no results".into()),
            false => Ok(rows),
        }
    }

    fn of_line(line: &str) -> Option<Self> {
        let fields: Vec<&str> = line.trim_end().split(',').collect();
        let [system, bench, case, op, strategy, transport, numbers @ ..] = &fields[..] else {
            return None;
        };
        let [ranks, useful_bytes, best, median, verdict] = numbers else {
            return None;
        };
        let seconds = |text: &str| {
            let seconds = text.parse::<f64>().ok();
            seconds.filter(|seconds| seconds.is_finite() && *seconds >= 0.0)
        };
        Some(Self {
            system: (*system).into(),
            bench: (*bench).into(),
            case: (*case).into(),
            op: (*op).into(),
            strategy: (*strategy).into(),
            transport: (*transport).into(),
            ranks: ranks.parse().ok()?,
            useful_bytes: useful_bytes.parse().ok()?,
            best_s: seconds(best)?,
            median_s: seconds(median)?,
            ok: *verdict == "ok",
        })
    }
}

impl From<&Line> for Row {
    /// With times in whole nanoseconds, as `--csv` prints them.
    fn from(line: &Line) -> Self {
        let nanoseconds = |seconds: f64| (seconds * 1e9).round() / 1e9;
        Self {
            system: line.system.clone(),
            bench: line.bench.into(),
            case: line.case.clone(),
            op: line.op.into(),
            strategy: line.strategy.clone(),
            transport: line.transport.clone(),
            ranks: line.ranks as u64,
            useful_bytes: line.useful_bytes,
            best_s: nanoseconds(line.best_s),
            median_s: nanoseconds(line.median_s),
            ok: line.ok,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_csv_prints_is_read_again() {
        let line = Line {
            system: "outcore/pfs".into(),
            bench: "io",
            case: "a case".into(),
            op: "read",
            strategy: "auto".into(),
            transport: "threads".into(),
            ranks: 2,
            useful_bytes: 100,
            best_s: 0.25,
            median_s: 0.5,
            ok: true,
        };
        let text = outcore_bench::csv(std::slice::from_ref(&line));
        let rows = Row::of_csv(&text);
        assert_eq!(rows, Ok(vec![Row::from(&line)]));
        assert_eq!(Row::from(&line).role(), Role::Us);
        for broken in [
            "",
            "a,b\n",
            text.lines().next().unwrap_or_default(),
            &text.replace("0.25", "fast"),
            &text.replace("0.25", "-1"),
            &text.replace("0.25", "inf"),
            &text.replace("a case", "a, case"),
        ] {
            assert!(Row::of_csv(broken).is_err(), "{broken}");
        }
    }
}
