//! [`Division`]: what ranks take at a time.
//!
//! *Tasks.* A group is some blocks of the result. Ranks that make different blocks
//! need the same blocks of the factors: each rank fetches nearly all of one factor.
//! A group that is large shares more, so the first groups are most of a rank's share
//! each, the others smaller and smaller, so that all ranks end about together.
//!
//! *Sums.* A group is some segments of the indices summed over, and adds its products
//! to all blocks of the result, of which every rank has its own sums; these are added
//! up at the end. Each block of the factors is then fetched by one rank, however many
//! there are. It pays where the result is small beside the factors: where
//! the whole of it fits into memory, and is moved at the end for less than the factors
//! would cost.

use std::ops::Range;

use super::contraction::Contraction;

/// So much of a rank's share of the work is its first group of tasks.
const FIRST: f64 = 0.85;

/// The groups of a contraction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Division {
    /// The tasks of each group.
    Tasks(Vec<Range<u64>>),
    /// The segments of the indices summed over, of each group.
    Sums(Vec<Vec<Vec<usize>>>),
}

impl Division {
    pub(super) fn is_by_sums(&self) -> bool {
        matches!(self, Self::Sums(_))
    }

    /// How many groups there are.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Tasks(groups) => groups.len(),
            Self::Sums(groups) => groups.len(),
        }
    }
}

impl Contraction {
    /// Whether ranks should divide the sums, if they have the memory.
    pub(super) fn sums_pay(&self, ranks: usize) -> bool {
        let largest = self.sums().first().map_or(0, |(_, work)| *work);
        let factor = self.left().len().min(self.right().len());
        // All ranks get and give about two results; they save a factor each.
        ranks > 1
            && largest <= self.multiplications() / ranks as u64
            && self.output().len() <= factor / 4
    }

    /// The most groups that there can be, however many ranks there are.
    pub fn groups(&self) -> u64 {
        self.tasks().max(self.sums().len() as u64)
    }

    /// The sums in groups for so many ranks: the largest first, each a small part of
    /// what is left.
    pub(super) fn by_sums(&self, ranks: usize) -> Division {
        let mut groups = Vec::new();
        let mut left = self.multiplications();
        let mut sums = self.sums().iter().peekable();
        while let Some((summed, work)) = sums.next() {
            let mut work = *work;
            let share = left / (8 * ranks as u64);
            let mut group = vec![summed.clone()];
            while let Some((summed, more)) = sums.next_if(|(_, more)| work + more <= share) {
                group.push(summed.clone());
                work += more;
            }
            groups.push(group);
            left -= work;
        }
        Division::Sums(groups)
    }

    /// The tasks in groups for so many ranks, of no more than `most` elements of the
    /// result each if they are of several tasks.
    pub(super) fn by_tasks(&self, ranks: usize, most: u64) -> Division {
        let mut groups = Vec::new();
        let (mut start, mut left) = (0, self.multiplications());
        while start < self.tasks() {
            let share = match (ranks, groups.len()) {
                (1, _) => left,
                (_, before) if before < ranks => {
                    (self.multiplications() as f64 * FIRST / ranks as f64) as u64
                }
                _ => left / (2 * ranks as u64),
            };
            let (mut end, mut work, mut elements) = (start, 0, 0);
            while let Some((segments, more)) = self.task_work(end) {
                let len = self.output().shape(segments).iter().product::<u64>();
                if end > start && (work + more / 2 > share || elements + len > most) {
                    break;
                }
                (end, work, elements) = (end + 1, work + more, elements + len);
            }
            groups.push(start..end);
            (start, left) = (end, left - work);
        }
        Division::Tasks(groups)
    }
}
