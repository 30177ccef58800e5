//! What the paper claims of its contraction (`data/gpc.csv`), and what becomes of
//! each claim in the lines of a run here.
//!
//! Times are medians. The paper has a disk and a processor for every rank; here
//! ranks share what the machine has, which is told with the verdicts.

use super::stage::{CALLS, CONTRACT, FILES, REPLICAS, REPLICATE, REPLICATION, STRIPED};
use super::summary::{is, problem, speed_up};
use crate::line::Line;

const CSV: &str = include_str!("../../data/gpc.csv");

/// A claim of the paper.
struct Claim {
    item: String,
    value: String,
    text: String,
    section: String,
}

/// What becomes of one: whether it holds, if that can be said, and why.
struct Verdict(Option<bool>, String);

/// The claims, each with what holds here.
pub fn contract_claims(lines: &[Line]) -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let mut text = format!(
        "The paper's claims, and what holds here ({cores} cores and one disk for all ranks)\n"
    );
    for claim in claims() {
        let Verdict(holds, because) = Lines(lines).judge(&claim.item);
        let word = match holds {
            Some(true) => "holds",
            Some(false) => "does not hold",
            None => "not judged",
        };
        let value = match claim.value.is_empty() {
            true => String::new(),
            false => format!(" [{}]", claim.value),
        };
        text += &format!("\n{} ({}){value}\n", claim.item, claim.section);
        text += &format!("    paper: {}\n    here:  {word}: {because}\n", claim.text);
    }
    text
}

fn claims() -> Vec<Claim> {
    let rows = CSV.lines().skip(1).map(fields);
    let claims = rows.filter(|row| row.first().is_some_and(|category| category == "claim"));
    let claim = |row: Vec<String>| {
        let field = |at: usize| row.get(at).cloned().unwrap_or_default();
        Claim {
            item: field(1),
            value: format!("{} {}", field(4), field(5)).trim().into(),
            text: field(6),
            section: field(7),
        }
    };
    claims.map(claim).collect()
}

/// The fields of a row, some of which are in quotation marks.
fn fields(row: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut quoted = false;
    let mut characters = row.chars().peekable();
    while let Some(character) = characters.next() {
        match character {
            '"' if quoted && characters.peek() == Some(&'"') => {
                characters.next();
                fields
                    .last_mut()
                    .into_iter()
                    .for_each(|field| field.push('"'));
            }
            '"' => quoted = !quoted,
            ',' if !quoted => fields.push(String::new()),
            other => fields
                .last_mut()
                .into_iter()
                .for_each(|field| field.push(other)),
        }
    }
    fields
}

struct Lines<'a>(&'a [Line]);

impl Lines<'_> {
    fn judge(&self, item: &str) -> Verdict {
        match item {
            "gpcio_best" => self.best(),
            "gpcio_superlinear_speedup" => self.speed_ups(&[CALLS], |up, ranks| up > ranks as f64),
            "replication_no_cost_degradation" => self.slower(REPLICAS, 5.0),
            "replication_with_cost_degradation" => self.slower(REPLICATION, 10.0),
            "lustre_speedup" => self.speed_ups(&[FILES, STRIPED], |up, _| up > 7.9),
            "replication_not_scalable" => self.replication_grows(),
            "buffer_cache_gpcio" => self.cold_ratio_grows(),
            "gpcio_weak_scaling" => self.weak(&[CALLS], |growth| growth <= 1.05),
            "lustre_weak_scaling" => self.weak(&[FILES, STRIPED], |growth| growth > 1.5),
            "replication_disk_limit" => self.space(),
            "replication_overlap_gain" => Verdict(
                None,
                "blocks are always fetched while others are written; the paper's optimal cost"
                    .into(),
            ),
            "lustre_causes" => Verdict(
                None,
                "one page cache serves all ranks here, so there is no redundant I/O to see".into(),
            ),
            "improvements" => Verdict(
                None,
                "both are done here: blocks are fetched ahead, and kept while memory lasts".into(),
            ),
            _ => Verdict(None, "nothing is measured for it".into()),
        }
    }

    fn of(&self, strategy: &str, op: &str) -> Vec<&Line> {
        self.0
            .iter()
            .filter(|line| is(line, strategy, op))
            .collect()
    }

    /// Of all cases: how many times as long another way takes as procedure calls.
    fn ratios(&self, strategy: &str) -> Vec<(f64, &Line)> {
        let others = self.of(strategy, CONTRACT).into_iter();
        let ratio = |other: &&Line| {
            let calls = self.of(CALLS, CONTRACT);
            let calls = calls.into_iter().find(|line| line.case == other.case)?;
            Some(other.median_s / calls.median_s)
        };
        others
            .filter_map(|other| Some((ratio(&other)?, other)))
            .collect()
    }

    fn best(&self) -> Verdict {
        let others = [REPLICATION, REPLICAS, FILES, STRIPED];
        let all: Vec<(f64, &Line)> = others.iter().flat_map(|way| self.ratios(way)).collect();
        let strong = |line: &Line| line.case.starts_with("strong") && line.ranks > 1;
        let all: Vec<&(f64, &Line)> = all.iter().filter(|(_, line)| strong(line)).collect();
        let Some(worst) = all.iter().min_by(|a, b| a.0.total_cmp(&b.0)) else {
            return nothing();
        };
        let better = all.iter().filter(|(ratio, _)| *ratio > 1.0).count();
        let because = format!(
            "in {better} of {} comparisons on 2 ranks and more; at worst {} takes {:.2} times as \
             long ({})",
            all.len(),
            worst.1.strategy,
            worst.0,
            worst.1.case
        );
        Verdict(Some(better == all.len()), because)
    }

    fn slower(&self, strategy: &str, factor: f64) -> Verdict {
        let ratios = self.ratios(strategy);
        let (least, most) = (extreme(&ratios, false), extreme(&ratios, true));
        let Some((least, most)) = least.zip(most) else {
            return nothing();
        };
        let because = format!(
            "{:.2} times ({}) to {:.2} times ({})",
            least.0, least.1.case, most.0, most.1.case
        );
        Verdict(Some(most.0 > factor), because)
    }

    fn speed_ups(&self, ways: &[&str], enough: impl Fn(f64, usize) -> bool) -> Verdict {
        let lines = ways.iter().flat_map(|way| self.of(way, CONTRACT));
        let ups = lines.filter_map(|line| Some((speed_up(self.0, line)?, line)));
        let ups: Vec<(f64, &Line)> = ups.collect();
        let told: Vec<String> = ups
            .iter()
            .map(|(up, line)| format!("{up:.2} ({} of {})", line.strategy, line.case))
            .collect();
        match ups.is_empty() {
            true => nothing(),
            false => Verdict(
                Some(ups.iter().any(|(up, line)| enough(*up, line.ranks))),
                told.join(", "),
            ),
        }
    }

    fn replication_grows(&self) -> Verdict {
        let lines = self.of(REPLICATION, REPLICATE);
        let strong: Vec<&&Line> = lines
            .iter()
            .filter(|line| line.case.starts_with("strong"))
            .collect();
        let mut growths = Vec::new();
        for line in &strong {
            let same = |other: &&&&Line| problem(other) == problem(line);
            let alike = strong.iter().filter(same);
            let first = alike.min_by_key(|other| other.ranks);
            if let Some(first) = first.filter(|first| first.ranks < line.ranks) {
                growths.push((line.median_s / first.median_s, line, first.ranks));
            }
        }
        let told = growths.iter().map(|(growth, line, ranks)| {
            format!("{growth:.2} times that of {ranks} ranks ({})", line.case)
        });
        match growths.is_empty() {
            true => nothing(),
            false => Verdict(
                Some(growths.iter().all(|(growth, ..)| *growth > 1.0)),
                told.collect::<Vec<_>>().join(", "),
            ),
        }
    }

    fn cold_ratio_grows(&self) -> Verdict {
        let ratios = self.ratios(REPLICAS);
        let cold = |line: &Line| line.case.starts_with("strong") && line.case.ends_with("cold");
        let ratios: Vec<(f64, &Line)> = ratios.into_iter().filter(|(_, line)| cold(line)).collect();
        let first = ratios.iter().min_by_key(|(_, line)| line.ranks);
        let last = ratios.iter().max_by_key(|(_, line)| line.ranks);
        match first.zip(last) {
            Some((first, last)) if first.1.ranks < last.1.ranks => Verdict(
                Some(last.0 > first.0),
                format!(
                    "replicas that are cold take {:.2} times as long on {} ranks and {:.2} times on {}: \
                     every rank reads its own copy from the disk",
                    first.0, first.1.ranks, last.0, last.1.ranks
                ),
            ),
            _ => nothing(),
        }
    }

    fn weak(&self, ways: &[&str], enough: impl Fn(f64) -> bool) -> Verdict {
        let mut growths = Vec::new();
        for way in ways {
            let lines = self.of(way, CONTRACT);
            let lines = lines.into_iter();
            let weak: Vec<&Line> = lines.filter(|line| line.case.starts_with("weak")).collect();
            for line in &weak {
                let class = |line: &Line| {
                    let words: Vec<&str> = line.case.split(' ').collect();
                    (
                        words.get(2).map(|l| l.to_string()),
                        line.case.ends_with("cold"),
                    )
                };
                let alike = weak.iter().filter(|other| class(other) == class(line));
                let first = alike.min_by_key(|other| other.ranks);
                if let Some(first) = first.filter(|first| first.ranks < line.ranks) {
                    growths.push((line.median_s / first.median_s, *line, first.ranks));
                }
            }
        }
        let told = growths.iter().map(|(growth, line, ranks)| {
            let way = &line.strategy;
            format!(
                "{growth:.2} times that of {ranks} ranks ({way} of {})",
                line.case
            )
        });
        match growths.is_empty() {
            true => Verdict(None, "no weak scaling was measured".into()),
            false => Verdict(
                Some(growths.iter().any(|(growth, ..)| enough(*growth))),
                told.collect::<Vec<_>>().join(", "),
            ),
        }
    }

    fn space(&self) -> Verdict {
        let lines = self.of(REPLICATION, CONTRACT);
        let most = lines
            .iter()
            .max_by_key(|line| line.useful_bytes * line.ranks as u64);
        most.map_or_else(nothing, |line| {
            let inputs = line.useful_bytes as f64 / 1e9;
            let copies = inputs * line.ranks as f64;
            let because = format!(
                "{} ranks have {copies:.1} GB of copies of {inputs:.1} GB on their disks",
                line.ranks
            );
            Verdict(Some(line.ranks > 1), because)
        })
    }
}

/// The least or the largest ratio.
fn extreme<'a, 'b>(ratios: &'a [(f64, &'b Line)], most: bool) -> Option<&'a (f64, &'b Line)> {
    let order = |a: &&(f64, &Line), b: &&(f64, &Line)| a.0.total_cmp(&b.0);
    match most {
        true => ratios.iter().max_by(order),
        false => ratios.iter().min_by(order),
    }
}

fn nothing() -> Verdict {
    Verdict(None, "no lines of this run tell".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_claim_of_the_paper_is_listed() {
        let claims = claims();
        assert_eq!(claims.len(), 13);
        let text = contract_claims(&[]);
        for claim in &claims {
            assert!(text.contains(&claim.item) && text.contains(&claim.text));
        }
        assert!(text.contains("[7.9 x]") && text.contains("k=1,2,4"));
    }
}
