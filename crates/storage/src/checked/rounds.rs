//! [`Rounds`]: the requests of a batch in the order of their offsets, a bounded
//! number of blocks at a time.
//!
//! A request that is longer than a round is cut between two blocks, so no block
//! is cut by the end of a round, except where requests overlap.

/// The bytes of a request.
pub(super) trait Cut: Sized {
    /// How many they are.
    fn count(&self) -> usize;
    /// The first `at` bytes, and the others.
    fn cut(self, at: usize) -> (Self, Self);
}

impl Cut for &[u8] {
    fn count(&self) -> usize {
        self.len()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at(at)
    }
}

impl Cut for &mut [u8] {
    fn count(&self) -> usize {
        self.len()
    }

    fn cut(self, at: usize) -> (Self, Self) {
        self.split_at_mut(at)
    }
}

/// What is left of a batch.
pub(super) struct Rounds<B> {
    /// Offsets and bytes; the last is next. None is empty.
    rest: Vec<(u64, B)>,
    block: u64,
    /// The most blocks of a round.
    most: u64,
    /// Whether the blocks of a round follow one another.
    dense: bool,
}

impl<B: Cut> Rounds<B> {
    pub(super) fn of(
        requests: impl Iterator<Item = (u64, B)>,
        block: u64,
        most: u64,
        dense: bool,
    ) -> Self {
        let mut rest: Vec<_> = requests.filter(|(_, bytes)| bytes.count() > 0).collect();
        rest.sort_by_key(|(offset, _)| std::cmp::Reverse(*offset));
        Self {
            rest,
            block,
            most,
            dense,
        }
    }
}

impl<B: Cut> Iterator for Rounds<B> {
    type Item = Vec<(u64, B)>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut round = Vec::new();
        // How many blocks the round has, and the last of them.
        let mut blocks = 0;
        let mut reached: Option<u64> = None;
        while let Some((offset, bytes)) = self.rest.pop() {
            let first = offset / self.block;
            let new = u64::from(reached.is_none_or(|reached| first > reached));
            let apart = reached.is_some_and(|reached| first > reached + 1);
            if blocks + new > self.most || (apart && self.dense) {
                self.rest.push((offset, bytes));
                break;
            }
            let end = (first + 1 + self.most - blocks - new).saturating_mul(self.block);
            let (taken, later) = match usize::try_from(end - offset) {
                Ok(fitting) if fitting < bytes.count() => {
                    let (taken, later) = bytes.cut(fitting);
                    (taken, Some(later))
                }
                _ => (bytes, None),
            };
            let last = (offset + taken.count() as u64 - 1) / self.block;
            blocks += new + (last - first);
            reached = reached.max(Some(last));
            round.push((offset, taken));
            if let Some(later) = later {
                self.rest.push((end, later));
                // A request that begins before `end` may come next.
                self.rest
                    .sort_by_key(|(offset, _)| std::cmp::Reverse(*offset));
            }
        }
        (!round.is_empty()).then_some(round)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rounds(requests: &[(u64, usize)], most: u64, dense: bool) -> Vec<Vec<(u64, usize)>> {
        let bytes = vec![0; 1000];
        let requests = requests
            .iter()
            .map(|(offset, len)| (*offset, &bytes[..*len]));
        let told = |round: Vec<(u64, &[u8])>| {
            let told = round
                .into_iter()
                .map(|(offset, bytes)| (offset, bytes.len()));
            told.collect()
        };
        Rounds::of(requests, 10, most, dense).map(told).collect()
    }

    #[test]
    fn long_requests_are_cut_between_blocks() {
        assert_eq!(
            rounds(&[(5, 40)], 2, true),
            [[(5, 15)], [(20, 20)], [(40, 5)]]
        );
        assert_eq!(rounds(&[(7, 0), (30, 10)], 2, true), [[(30, 10)]]);
        assert_eq!(rounds(&[], 2, true), Vec::<Vec<_>>::new());
    }

    #[test]
    fn requests_of_one_block_stay_together() {
        let requests = [(12, 2), (3, 2), (16, 2), (9, 2), (40, 1), (23, 1)];
        assert_eq!(
            rounds(&requests, 3, true),
            [
                vec![(3, 2), (9, 2), (12, 2), (16, 2), (23, 1)],
                vec![(40, 1)]
            ]
        );
        assert_eq!(
            rounds(&requests, 2, false),
            [
                vec![(3, 2), (9, 2), (12, 2), (16, 2)],
                vec![(23, 1), (40, 1)]
            ]
        );
    }

    #[test]
    fn overlapping_requests_lose_nothing() {
        let requests = [(0, 100), (5, 3), (5, 50), (95, 20)];
        for most in 1..12 {
            let all = rounds(&requests, most, false).concat();
            let count: usize = all.iter().map(|(_, len)| len).sum();
            assert_eq!(count, 173, "{most}");
        }
    }
}
