//! The collective part: what the ranks would do together.
//!
//! Threads plan the call as its ranks would, and tell what came out; nothing is
//! read or written.

use outcore::{
    Array, CollectiveEstimate, CollectiveWay, Comm, DomainAccount, Error, Result, Section,
};
use serde_json::{Value, json};

use super::Explain;
use crate::bytes;
use crate::tuning::Op;

/// More rows of a table than this are not printed.
const MOST_ROWS: usize = 64;

/// What the ranks would do together.
pub(crate) struct Together {
    /// The way that all of them take.
    pub(crate) way: CollectiveWay,
    /// What each way is expected to take, the fastest first.
    pub(crate) estimates: Vec<CollectiveEstimate>,
    /// What each rank would do in two phases; none have no part of the file.
    pub(crate) domains: Vec<DomainAccount>,
}

impl Explain {
    /// The collective part, if there are ranks and the array can be moved so.
    pub(super) fn together(&self, sections: &[(usize, Section)]) -> Result<Option<Together>> {
        if sections.len() < 2 || outcore::under_launcher() {
            return Ok(None);
        }
        let name = &self.selection.array;
        let opened = match self.op {
            Op::Read => Array::open(name),
            Op::Write => Array::open_writable(name),
        };
        let Ok(array) = opened else {
            return Ok(None);
        };
        let array = array.tuned(self.tuning.tuning());
        let direction = self.op.direction();
        let all = outcore::run(sections.len(), |comm: &Comm| {
            let section = &sections[comm.rank()].1;
            let chosen = self.tuning.collective(&array);
            let way = chosen.plan(comm, section, direction)?.way();
            let two_phase = self.tuning.collective(&array).way(CollectiveWay::TwoPhase);
            let domain = two_phase.plan(comm, section, direction)?.domain();
            let estimates = chosen.estimates(comm, section, direction)?;
            Ok::<_, Error>((way, estimates, domain.unwrap_or_default()))
        })?;
        let way = all.first().map_or(CollectiveWay::Auto, |all| all.0);
        let estimates = all.first().map_or_else(Vec::new, |all| all.1.clone());
        let domains = all.into_iter().map(|(_, _, domain)| domain).collect();
        Ok(Some(Together {
            way,
            estimates,
            domains,
        }))
    }
}

impl Together {
    /// From the first byte that a rank moves for others to the last.
    fn bounds(&self) -> Option<(u64, u64)> {
        let pieces = || self.domains.iter().flat_map(|domain| &domain.pieces);
        let start = pieces().map(|piece| piece.start).min()?;
        Some((start, pieces().map(|piece| piece.end).max()?))
    }

    /// What people read.
    pub(super) fn text(&self, array: &Array) -> String {
        let mut text = format!("\ntogether  {}\n", self.way);
        for (at, estimate) in self.estimates.iter().enumerate() {
            let head = if at == 0 { "expected" } else { "" };
            text += &format!(
                "{head:<9} {:<20} {:>12.3} ms\n",
                name(estimate),
                estimate.seconds * 1e3
            );
        }
        let Some((start, end)) = self.bounds() else {
            return text;
        };
        let len = array.layout().byte_len();
        text += &format!("domains   of bytes {start} to {end} of {len}, if in two phases\n\n");
        text += &format!(
            "{:>5}  {:<27} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>7}\n",
            "rank", "bytes", "in all", "asked by", "requests", "moved", "useful", "sent", "rounds"
        );
        for (rank, domain) in self.domains.iter().enumerate().take(MOST_ROWS) {
            let range = match &domain.pieces[..] {
                [] => "none".into(),
                [one] => format!("{}..{}", one.start, one.end),
                [first, ..] => format!("{}..{} and more", first.start, first.end),
            };
            text += &format!(
                "{rank:>5}  {range:<27} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10} {:>7}\n",
                bytes::show(domain.bytes),
                domain.ranks.len(),
                domain.requests,
                bytes::show(domain.moved),
                bytes::show(domain.useful),
                bytes::show(domain.exchanged),
                domain.rounds,
            );
        }
        if self.domains.len() > MOST_ROWS {
            text += &format!("and {} ranks more\n", self.domains.len() - MOST_ROWS);
        }
        let sum = |value: fn(&DomainAccount) -> u64| self.domains.iter().map(value).sum::<u64>();
        text + &format!(
            "{:>5}  {:<27} {:>10} {:>9} {:>9} {:>10} {:>10} {:>10}\n",
            "all",
            "",
            bytes::show(sum(|domain| domain.bytes)),
            "",
            sum(|domain| domain.requests),
            bytes::show(sum(|domain| domain.moved)),
            bytes::show(sum(|domain| domain.useful)),
            bytes::show(sum(|domain| domain.exchanged)),
        )
    }

    /// What programs read.
    pub(super) fn json(&self) -> Value {
        let domains = self.domains.iter().enumerate().map(|(rank, domain)| {
            let pieces = domain
                .pieces
                .iter()
                .map(|piece| json!([piece.start, piece.end]));
            json!({
                "rank": rank,
                "pieces": pieces.collect::<Vec<_>>(),
                "bytes": domain.bytes,
                "asked_by": domain.ranks,
                "requests": domain.requests,
                "moved_bytes": domain.moved,
                "useful_bytes": domain.useful,
                "exchanged_bytes": domain.exchanged,
                "rounds": domain.rounds,
            })
        });
        let estimates = self.estimates.iter().map(|estimate| {
            json!({
                "way": estimate.way.to_string(),
                "domains": estimate.domains.map(|kind| kind.to_string()),
                "predicted_s": estimate.seconds,
            })
        });
        json!({
            "way": self.way.to_string(),
            "estimates": estimates.collect::<Vec<_>>(),
            "bounds": self.bounds().map(|(start, end)| [start, end]),
            "domains": domains.collect::<Vec<_>>(),
        })
    }
}

/// What people call a way.
pub(super) fn name(estimate: &CollectiveEstimate) -> String {
    match estimate.domains {
        None => estimate.way.to_string(),
        Some(kind) => format!("{}/{kind}", estimate.way),
    }
}
