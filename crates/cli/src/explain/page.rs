//! `--html`: the report, the picture and the time line as one page.

use outcore::{Array, Result};

use super::collective::{Together, name};
use super::report::{array_text, overlap};
use super::{Account, Explain};
use crate::bytes;
use crate::page::Page;
use crate::picture::timeline::{self, Lane};
use crate::picture::{Picture, colours, time};

impl Explain {
    /// The whole page.
    pub(super) fn page(
        &self,
        array: &Array,
        accounts: &[Account],
        picture: &Picture<'_>,
        together: &Option<Together>,
    ) -> Result<String> {
        let mut page = Page::new(&picture.title);
        let sum = |value: fn(&Account) -> u64| accounts.iter().map(value).sum::<u64>();
        page.facts(&[
            ("array", array_text(array)),
            ("runs", sum(|account| account.runs).to_string()),
            ("requests", sum(|account| account.requests).to_string()),
            ("wanted", bytes::show(sum(|account| account.useful))),
            ("moved", bytes::show(sum(|account| account.moved))),
        ]);
        page.element("h2", "Picture");
        page.drawing("paper", &picture.draw()?);
        if accounts.iter().any(Account::has_time) {
            page.element("h2", "Time line");
            page.drawing("paper", &self.timeline(array, accounts)?);
            page.note(
                "How long a single request takes is not known: the time of a rank is shared out \
                 among its requests by their bytes. What is too short to be seen is drawn together.",
            );
        }
        match accounts {
            [account] => {
                page.element("h2", "Strategies");
                if !account.estimates.is_empty() {
                    self.strategies(&mut page, account);
                }
                page.element("p", self.reason(account).trim_end());
            }
            _ => {
                page.element("h2", "Ranks");
                ranks(&mut page, accounts);
                page.element("p", overlap(accounts)?.trim_end());
            }
        }
        if let Some(together) = together {
            page.element("h2", "All ranks together");
            domains(&mut page, together);
        }
        Ok(page.finish())
    }

    fn timeline(&self, array: &Array, accounts: &[Account]) -> Result<String> {
        let measured = accounts
            .iter()
            .all(|account| account.chosen_measured().is_some());
        let lane = |account| self.lane(account, measured, accounts.len());
        let lanes: Vec<Lane<'_>> = accounts.iter().map(lane).collect();
        let times = if measured { "measured" } else { "predicted" };
        timeline::draw(array, &lanes, times)
    }

    fn lane<'a>(&self, account: &'a Account, measured: bool, accounts: usize) -> Lane<'a> {
        let predicted = account.chosen().map_or(0.0, |chosen| chosen.seconds);
        let ranks = self.ranks.unwrap_or(1) as usize;
        Lane {
            section: &account.section,
            plan: &account.plan,
            moved: account.moved,
            seconds: match account.chosen_measured() {
                Some(seconds) if measured => seconds,
                _ => predicted,
            },
            colour: match accounts {
                1 => colours(0, 1).0,
                _ => colours(account.rank, ranks).0,
            },
        }
    }

    fn strategies(&self, page: &mut Page, account: &Account) {
        let estimates = account.estimates.iter().zip(&account.measured);
        let rows = estimates.map(|(estimate, measured)| {
            let chosen = estimate.strategy == account.plan.strategy();
            vec![
                estimate.strategy.to_string(),
                estimate.requests.to_string(),
                bytes::show(estimate.bytes),
                time(estimate.seconds),
                measured.map_or(String::new(), time),
                if chosen { self.mark() } else { "" }.into(),
            ]
        });
        let heads = ["strategy", "requests", "bytes", "predicted", "measured", ""];
        page.table(&heads, &rows.collect::<Vec<_>>());
    }
}

fn ranks(page: &mut Page, accounts: &[Account]) {
    let rows = accounts.iter().map(|account| {
        vec![
            account.rank.to_string(),
            format!("[{}]", account.section),
            account.runs.to_string(),
            account.requests.to_string(),
            bytes::show(account.useful),
            bytes::show(account.moved),
            account.plan.strategy().to_string(),
            account
                .chosen()
                .map_or(String::new(), |chosen| time(chosen.seconds)),
            account.chosen_measured().map_or(String::new(), time),
        ]
    });
    let heads = [
        "rank",
        "section",
        "runs",
        "requests",
        "wanted",
        "moved",
        "strategy",
        "predicted",
        "measured",
    ];
    page.table(&heads, &rows.collect::<Vec<_>>());
}

/// Which way the ranks take together, and who moves what in two phases.
fn domains(page: &mut Page, together: &Together) {
    page.element("p", &format!("chosen: {}", together.way));
    let estimates = together.estimates.iter();
    let rows = estimates.map(|estimate| vec![name(estimate), time(estimate.seconds)]);
    page.table(&["way", "predicted"], &rows.collect::<Vec<_>>());
    page.element("h3", "Domains of the file, if in two phases");
    let rows = together.domains.iter().enumerate().map(|(rank, domain)| {
        let range = match &domain.pieces[..] {
            [] => "none".into(),
            [one] => format!("{}..{}", one.start, one.end),
            [first, rest @ ..] => format!("{}..{} and {} more", first.start, first.end, rest.len()),
        };
        vec![
            rank.to_string(),
            range,
            bytes::show(domain.bytes),
            domain.ranks.len().to_string(),
            domain.requests.to_string(),
            bytes::show(domain.moved),
            bytes::show(domain.useful),
            bytes::show(domain.exchanged),
            domain.rounds.to_string(),
        ]
    });
    let heads = [
        "rank", "bytes", "in all", "asked by", "requests", "moved", "wanted", "sent", "rounds",
    ];
    page.table(&heads, &rows.collect::<Vec<_>>());
}
