//! The accounts as text, as JSON and as a picture.

use std::ops::Range;

use outcore::{Array, Estimate, Result, Strategy, shape_text};
use serde_json::{Value, json};

use super::collective::Together;
use super::{Account, Explain};
use crate::bytes;
use crate::counted::counted;
use crate::picture::{Bar, Colour, Picture, Share, colours, time};
use crate::tuning::Op;

/// Bars of ranks in a picture.
const MOST_BARS: usize = 16;
/// The bars of strategies that were not chosen.
const OTHERS: Colour = Colour(0xb4, 0xbd, 0xc7);

impl Explain {
    /// What people read.
    pub(super) fn text(
        &self,
        array: &Array,
        accounts: &[Account],
        cached: Option<f64>,
    ) -> Result<String> {
        let mut text = format!(
            "array     {}\n{}\n",
            array_text(array),
            self.cached_text(cached)
        );
        let [account] = accounts else {
            text += &format!("section   {}\n", self.selection.section);
            text += &rank_table(accounts);
            return Ok(trimmed(&text) + &overlap(accounts)?);
        };
        if let Some(ranks) = self.ranks {
            text += &format!("rank      {} of {ranks}\n", account.rank);
        }
        text += &format!(
            "section   [{}], {} of {} elements\n{}\n",
            account.section,
            account.section.count(),
            array.whole().count(),
            account.plan
        );
        if !account.estimates.is_empty() {
            text += &self.strategy_table(account);
        }
        Ok(trimmed(&text) + &self.reason(account))
    }

    fn cached_text(&self, cached: Option<f64>) -> String {
        let share = cached.map_or("unknown".into(), |share| format!("{:.0}%", share * 100.0));
        if self.cold {
            format!("cached    {share} (stayed when the array was dropped from the page cache)")
        } else {
            format!("cached    {share}")
        }
    }

    /// Why the plan is as it is.
    pub(super) fn reason(&self, account: &Account) -> String {
        let chosen = account.plan.strategy();
        if account.useful == 0 {
            return "there is nothing to move\n".into();
        }
        if chosen == Strategy::Chunked {
            return self.chunked(account);
        }
        let [first, rest @ ..] = &account.estimates[..] else {
            return String::new();
        };
        if first.strategy != chosen {
            let sieves = first.strategy == Strategy::Sieving && first.has_gaps;
            if self.op == Op::Write && sieves && !self.tuning.is_forced() {
                return format!(
                    "{chosen} is chosen: sieving is expected to be faster, but writes back what \
                     is between the elements, and on this storage those who write there \
                     directly do not lock, so it must be asked for\n"
                );
            }
            return format!(
                "{chosen} was asked for; {} is expected to be fastest\n",
                first.strategy
            );
        }
        let faster = rest.first().map_or(String::new(), |second| {
            let times = second.seconds / first.seconds;
            format!(", {times:.1} times as fast as {}", second.strategy)
        });
        let bytes = bytes::show(first.bytes);
        let what = match first.strategy {
            Strategy::Mapped => format!("{bytes} copied through a mapping"),
            _ => format!("{} requests for {bytes}", first.requests),
        };
        format!("{chosen} is expected to be fastest: {what}{faster}\n")
    }

    /// Why chunks are decoded.
    fn chunked(&self, account: &Account) -> String {
        let requests = account.plan.requests();
        let chunks = counted(requests, "chunk");
        let are = if requests == 1 { "is" } else { "are" };
        let elements = counted(account.section.count(), "element");
        let (coded, moved) = match self.op {
            Op::Read => ("decoded", "read"),
            Op::Write => ("encoded", "written"),
        };
        let took = account.took.map_or(String::new(), |seconds| {
            format!("; {} measured", time(seconds))
        });
        format!(
            "chunked: {chunks} {are} {coded} whole for {elements}; chunks of this format can be {moved} \
             in no other way{took}\n"
        )
    }

    /// What stands beside the strategy of the plan.
    pub(super) fn mark(&self) -> &'static str {
        match self.tuning.is_forced() {
            true => "asked for",
            false => "chosen",
        }
    }

    /// What programs read.
    pub(super) fn json(&self, array: &Array, accounts: &[Account], cached: Option<f64>) -> Value {
        let head = json!({
            "array": array.name(),
            "op": if self.op == Op::Read { "read" } else { "write" },
            "cached": cached,
        });
        let Value::Object(mut answer) = head else {
            return head;
        };
        let mut ranks: Vec<Value> = accounts.iter().map(account_json).collect();
        if let (None, Some(Value::Object(only))) = (self.ranks, ranks.first_mut()) {
            answer.append(only);
            answer.remove("rank");
            return Value::Object(answer);
        }
        answer.insert("ranks".into(), ranks.into());
        Value::Object(answer)
    }

    /// The domains that are drawn, in the colours of their ranks.
    pub(super) fn domains(&self, together: &Option<Together>) -> Vec<(Range<u64>, Colour)> {
        let domains = together.iter().flat_map(|together| &together.domains);
        let ranks = self.ranks.unwrap_or(1) as usize;
        let pieces = domains.enumerate().flat_map(|(rank, domain)| {
            let colour = colours(rank, ranks).0;
            domain
                .pieces
                .iter()
                .map(move |piece| (piece.clone(), colour))
        });
        pieces.collect()
    }

    /// What is drawn.
    pub(super) fn picture<'a>(
        &self,
        array: &'a Array,
        accounts: &'a [Account],
        cached: Option<f64>,
    ) -> Picture<'a> {
        let share = |account: &'a Account| {
            let (colour, gap) = colours(account.rank, self.ranks.unwrap_or(1) as usize);
            let (colour, gap) = if accounts.len() == 1 {
                colours(0, 1)
            } else {
                (colour, gap)
            };
            Share {
                name: format!("rank {}", account.rank),
                section: &account.section,
                plan: &account.plan,
                moved: account.moved,
                colour,
                gap,
            }
        };
        let sum = |value: fn(&Account) -> u64| accounts.iter().map(value).sum::<u64>();
        let op = if self.op == Op::Read { "read" } else { "write" };
        let section = match accounts {
            [account] => format!("[{}]", account.section),
            _ => format!("'{}'", self.selection.section),
        };
        let by = match (self.ranks, self.rank) {
            (Some(ranks), Some(rank)) => format!(" by rank {rank} of {ranks}"),
            (Some(ranks), None) => format!(" by {ranks} ranks"),
            (None, _) => String::new(),
        };
        let cached = cached.map_or(String::new(), |share| {
            format!(", {:.0}% in the page cache", share * 100.0)
        });
        Picture {
            domains: Vec::new(),
            array,
            title: format!("{op} {section} of {}{by}", short_name(array.name())),
            facts: vec![
                format!("{}{cached}", array_text(array)),
                format!(
                    "{} runs, {} requests; {} wanted, {} moved",
                    sum(|account| account.runs),
                    sum(|account| account.requests),
                    bytes::show(sum(|account| account.useful)),
                    bytes::show(sum(|account| account.moved)),
                ),
            ],
            shares: accounts.iter().map(share).collect(),
            bars: match accounts {
                [account] => self.strategy_bars(account),
                _ => accounts
                    .iter()
                    .filter(|account| account.has_time())
                    .take(MOST_BARS)
                    .map(|a| rank_bar(a, self.ranks.unwrap_or(1) as usize))
                    .collect(),
            },
        }
    }

    fn strategy_table(&self, account: &Account) -> String {
        let mut text = format!(
            "{:<10} {:>12} {:>12} {:>14} {:>14}\n",
            "strategy",
            "requests",
            "bytes",
            "predicted ms",
            measured_heading(std::slice::from_ref(account))
        );
        for (estimate, measured) in account.estimates.iter().zip(&account.measured) {
            let mark = match estimate.strategy == account.plan.strategy() {
                true => format!("  <- {}", self.mark()),
                false => String::new(),
            };
            text += &format!(
                "{:<10} {:>12} {:>12} {:>14.3} {:>14}{mark}\n",
                estimate.strategy,
                estimate.requests,
                bytes::show(estimate.bytes),
                estimate.seconds * 1e3,
                milliseconds(*measured),
            );
        }
        text
    }

    fn strategy_bars(&self, account: &Account) -> Vec<Bar> {
        let bar = |(estimate, measured): (&Estimate, &Option<f64>)| {
            let chosen = estimate.strategy == account.plan.strategy();
            Bar {
                label: estimate.strategy.name().into(),
                note: if chosen {
                    self.mark().into()
                } else {
                    String::new()
                },
                predicted: estimate.seconds,
                measured: *measured,
                colour: if chosen { colours(0, 1).0 } else { OTHERS },
                chosen,
            }
        };
        let estimates = account.estimates.iter();
        estimates.zip(&account.measured).map(bar).collect()
    }
}

pub(super) fn array_text(array: &Array) -> String {
    format!(
        "{}: {} {}, {} layout, {}",
        array.name(),
        shape_text(array.shape()),
        array.element_type(),
        array.descriptor().arrangement,
        bytes::show(array.layout().byte_len())
    )
}

/// The last part of a path.
fn short_name(name: &str) -> &str {
    let path = name.split('?').next().unwrap_or(name);
    path.trim_end_matches('/')
        .rsplit('/')
        .next()
        .unwrap_or(name)
}

/// The lines without spaces at their ends.
pub(super) fn trimmed(text: &str) -> String {
    let lines = text.lines().map(|line| line.trim_end().to_string() + "\n");
    lines.collect()
}

/// The heading of the column of measured times, if there are any.
fn measured_heading(accounts: &[Account]) -> &'static str {
    let measured = accounts.iter().flat_map(|account| &account.measured);
    if measured.flatten().next().is_some() {
        "measured ms"
    } else {
        ""
    }
}

fn milliseconds(seconds: Option<f64>) -> String {
    seconds.map_or(String::new(), |seconds| format!("{:.3}", seconds * 1e3))
}

fn rank_table(accounts: &[Account]) -> String {
    let sections: Vec<String> = accounts
        .iter()
        .map(|a| format!("[{}]", a.section))
        .collect();
    let wide = sections.iter().map(String::len).max().unwrap_or(0).max(7);
    let mut text = format!(
        "\n{:>5}  {:<wide$} {:>10} {:>10} {:>10} {:>10} {:<8} {:>12} {:>12}\n",
        "rank",
        "section",
        "runs",
        "requests",
        "useful",
        "moved",
        "strategy",
        "predicted ms",
        measured_heading(accounts)
    );
    for (account, section) in accounts.iter().zip(sections) {
        text += &format!(
            "{:>5}  {section:<wide$} {:>10} {:>10} {:>10} {:>10} {:<8} {:>12} {:>12}\n",
            account.rank,
            account.runs,
            account.requests,
            bytes::show(account.useful),
            bytes::show(account.moved),
            account.plan.strategy(),
            milliseconds(account.chosen().map(|chosen| chosen.seconds)),
            milliseconds(account.chosen_measured()),
        );
    }
    let sum = |value: fn(&Account) -> u64| accounts.iter().map(value).sum::<u64>();
    let slowest =
        |times: Vec<Option<f64>>| milliseconds(times.into_iter().flatten().reduce(f64::max));
    let predicted = accounts
        .iter()
        .map(|a| a.chosen().map(|chosen| chosen.seconds));
    text + &format!(
        "{:>5}  {:<wide$} {:>10} {:>10} {:>10} {:>10} {:<8} {:>12} {:>12}\n",
        "all",
        "",
        sum(|account| account.runs),
        sum(|account| account.requests),
        bytes::show(sum(|account| account.useful)),
        bytes::show(sum(|account| account.moved)),
        "slowest:",
        slowest(predicted.collect()),
        slowest(accounts.iter().map(Account::chosen_measured).collect()),
    )
}

/// Whether ranks take the same elements.
pub(super) fn overlap(accounts: &[Account]) -> Result<String> {
    let mut pairs = 0u64;
    let mut first = None;
    for (at, one) in accounts.iter().enumerate() {
        for other in &accounts[at + 1..] {
            let common = one.section.intersect(&other.section);
            let common = common.map_err(|error| outcore::Error::Invalid(error.to_string()))?;
            if !common.is_empty() {
                pairs += 1;
                first = first.or(Some((one.rank, other.rank, common.count())));
            }
        }
    }
    Ok(match first {
        None => "no element belongs to two ranks\n".into(),
        Some((one, other, count)) => format!(
            "sections overlap: ranks {one} and {other} have {count} elements in common{}\n",
            match pairs {
                1 => String::new(),
                _ => format!(", and {} more pairs of ranks have some", pairs - 1),
            }
        ),
    })
}

fn rank_bar(account: &Account, ranks: usize) -> Bar {
    Bar {
        label: format!("rank {}", account.rank),
        note: format!(
            "{}, requests: {}",
            account.plan.strategy(),
            account.requests
        ),
        predicted: account.chosen().map_or(0.0, |chosen| chosen.seconds),
        measured: account.chosen_measured(),
        colour: colours(account.rank, ranks).0,
        chosen: false,
    }
}

fn account_json(account: &Account) -> Value {
    let strategies = account.estimates.iter().zip(&account.measured);
    let strategies = strategies.map(|(estimate, measured)| {
        json!({
            "strategy": estimate.strategy.name(),
            "predicted_s": estimate.seconds,
            "measured_s": measured,
            "requests": estimate.requests,
            "bytes": estimate.bytes,
        })
    });
    json!({
        "rank": account.rank,
        "section": account.section.to_string(),
        "runs": account.runs,
        "requests": account.requests,
        "useful_bytes": account.useful,
        "moved_bytes": account.moved,
        "chosen": account.plan.strategy().name(),
        "strategies": strategies.collect::<Vec<_>>(),
    })
}
