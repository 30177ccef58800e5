//! What all ranks of a group do together, built on [`Transport`] once for all
//! kinds of ranks.
//!
//! Where ranks can read one another's memory
//! ([`Transport::shares_memory`]) each step is one exchange. Elsewhere small
//! things travel along binomial trees (broadcast, gather, scatter,
//! join) or by
//! Bruck's doubling (all-gather), in as many rounds as the number of ranks has
//! binary digits; large or personalised things go straight to where they
//! belong, in one exchange.
//!
//! All ranks must make the same call with matching arguments. Equal lengths
//! are the caller's word, and a rank that breaks it gets or causes
//! [`Error::LengthMismatch`]; calls whose name ends in `v` tell one another
//! the lengths first. A rank whose own arguments are refused
//! ([`Error::Invalid`], [`Error::NoSuchRank`]) does not take part; the others
//! wait for it until it fails, calls again, or has finished.
//!
//! [`Transport`]: crate::Transport
//! [`Transport::shares_memory`]: crate::Transport::shares_memory

mod agree;
mod all_gather;
mod broadcast;
mod deliver;
mod gather;
mod join;
mod reduce;
mod scatter;

use crate::comm::{Comm, RESERVED_TAGS};
use crate::error::{Error, Result};

/// The tags of the collectives that send messages along trees.
mod tags {
    use super::RESERVED_TAGS;

    pub(super) const BROADCAST: u16 = RESERVED_TAGS;
    pub(super) const GATHER: u16 = RESERVED_TAGS + 1;
    pub(super) const SCATTER: u16 = RESERVED_TAGS + 2;
    pub(super) const JOIN: u16 = RESERVED_TAGS + 3;
}

impl Comm {
    /// Refuses a root that is not in the group.
    fn check_root(&self, root: usize) -> Result<()> {
        if root >= self.size() {
            return Err(Error::NoSuchRank {
                rank: root,
                size: self.size(),
            });
        }
        Ok(())
    }

    /// This rank's place in the binomial tree under `root`.
    fn tree(&self, root: usize) -> Tree {
        let (rank, size) = (self.rank(), self.size());
        Tree {
            place: (rank + size - root) % size,
            root,
            size,
        }
    }
}

/// One place in a binomial tree. Places are ranks counted from the root; place
/// `p` is above the places `p + 1 .. p + span`, where its span is the lowest
/// set bit of `p` (of the root: everything).
struct Tree {
    place: usize,
    root: usize,
    size: usize,
}

impl Tree {
    /// The rank at a place.
    fn rank(&self, place: usize) -> usize {
        (place + self.root) % self.size
    }

    /// The places under `place`, itself included: `place .. place + span`.
    fn span(&self, place: usize) -> usize {
        match place {
            0 => self.size,
            _ => (place & place.wrapping_neg()).min(self.size - place),
        }
    }

    /// The rank above this one.
    fn parent(&self) -> Option<usize> {
        let without_lowest_bit = self.place & self.place.wrapping_sub(1);
        (self.place != 0).then(|| self.rank(without_lowest_bit))
    }

    /// The places directly below this one, those with small spans first.
    fn children(&self) -> impl DoubleEndedIterator<Item = usize> + use<> {
        let (place, span) = (self.place, self.span(self.place));
        let bits = span.next_power_of_two().trailing_zeros();
        (0..bits).map(move |bit| place + (1 << bit))
    }
}

#[cfg(test)]
mod tests {
    use super::Tree;

    #[test]
    fn the_tree_reaches_everybody_once() {
        for size in 1..40 {
            for root in [0, size / 2, size - 1] {
                let at = |place| Tree { place, root, size };
                let mut reached = vec![0; size];
                for place in 0..size {
                    let tree = at(place);
                    assert_eq!(tree.parent().is_none(), place == 0);
                    let mut below = 1;
                    for child in tree.children() {
                        assert_eq!(at(child).parent(), Some(tree.rank(place)));
                        assert_eq!(child, place + below);
                        below += tree.span(child);
                        reached[child] += 1;
                    }
                    assert_eq!(below, tree.span(place));
                }
                assert_eq!(reached[0], 0);
                assert!(reached[1..].iter().all(|&times| times == 1));
            }
        }
    }
}
