//! [`DomainAccount`]: what a rank does for all in two phases, known before
//! anything moves.

use std::ops::Range;

use super::body::Body;
use super::coverage::wanted;
use super::plan::CollectivePlan;
use super::two_phase::TwoPhase;

/// Of domains with more windows only so many are looked at.
const MOST_WINDOWS: u64 = 256;

/// Pieces that are listed one by one.
const MOST_PIECES: usize = 64;

/// What a rank does for all with its part of the file.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DomainAccount {
    /// Its bytes, counted from the beginning of the data: the first stretches
    /// of those that are not side by side.
    pub pieces: Vec<Range<u64>>,
    /// How many bytes it has.
    pub bytes: u64,
    /// The ranks that get or give some of them.
    pub ranks: Vec<usize>,
    /// Accesses to the store. Of large domains, estimated.
    pub requests: u64,
    /// Bytes that these move, gaps included.
    pub moved: u64,
    /// Bytes that ranks ask for, those that several want as often.
    pub useful: u64,
    /// Those of them that other ranks ask for.
    pub exchanged: u64,
    /// Rounds of input or output and exchange.
    pub rounds: u64,
}

impl CollectivePlan {
    /// What this rank does for all; nothing if every rank moves its own section.
    pub fn domain(&self) -> Option<DomainAccount> {
        match &self.body {
            Body::Independent(_) => None,
            Body::TwoPhase(plan) => Some(account(plan, self.place.0)),
        }
    }
}

fn account(plan: &TwoPhase, rank: usize) -> DomainAccount {
    let groups = plan.touching();
    let mut account = DomainAccount {
        rounds: plan.rounds(),
        ..DomainAccount::default()
    };
    for group in groups {
        account.ranks.extend(&group.ranks);
    }
    account.ranks.sort_unstable();
    let step = plan.rounds().div_ceil(MOST_WINDOWS).max(1);
    let mut stretches = Vec::new();
    for k in 0..plan.rounds() {
        for piece in plan.own_pieces(k) {
            account.bytes += piece.end - piece.start;
            let listed = account.pieces.len();
            match account.pieces.last_mut() {
                Some(last) if last.end == piece.start => last.end = piece.end,
                _ if listed < MOST_PIECES => {
                    account.pieces.push(piece.start..piece.end);
                }
                _ => {}
            }
            for group in groups {
                let share = group.request.share(piece.start, piece.end);
                let bytes = share.end - share.start;
                account.useful += bytes * group.ranks.len() as u64;
                let others = group.ranks.iter().filter(|other| **other != rank).count();
                account.exchanged += bytes * others as u64;
            }
            if k % step != 0 {
                continue;
            }
            stretches.clear();
            match plan.is_whole() {
                true => stretches.push(piece.start..piece.end),
                false => {
                    let requests = groups.iter().map(|group| &group.request);
                    wanted(piece, requests, plan.gap(), &mut stretches);
                }
            }
            account.requests += stretches.len() as u64 * step;
            let moved = stretches.iter().map(|stretch| stretch.end - stretch.start);
            account.moved += moved.sum::<u64>() * step;
        }
    }
    account
}
