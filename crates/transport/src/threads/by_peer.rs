//! [`ByPeer`]: a list of pieces put in the order of their peers, those of one
//! peer staying in the order in which they were added (a counting sort).

/// What is kept for the next call; a longer list gives its memory back.
const KEPT: usize = 4096;

/// Indices into a list, grouped by peer. Kept between calls for its memory.
#[derive(Debug, Default)]
pub(crate) struct ByPeer {
    /// `starts[p]..starts[p + 1]` is the part of `order` that is peer `p`'s.
    starts: Vec<usize>,
    order: Vec<usize>,
}

impl ByPeer {
    /// Groups the indices `0, 1, ...` of `peers`, all of them below `size`.
    pub(crate) fn sort(
        &mut self,
        size: usize,
        peers: impl ExactSizeIterator<Item = usize> + Clone,
    ) {
        self.starts.clear();
        self.starts.resize(size + 2, 0);
        self.order.clear();
        self.order.resize(peers.len(), 0);
        self.order.shrink_to(KEPT);
        // 1. Count those of peer p at p + 2; summed up, that leaves at p + 1
        //    the place of the first of peer p.
        for peer in peers.clone() {
            self.starts[peer + 2] += 1;
        }
        let mut sum = 0;
        for start in &mut self.starts {
            sum += *start;
            *start = sum;
        }
        // 2. Place them; what stands at p + 1 moves on to the end of peer p,
        //    which is the start of peer p + 1.
        for (index, peer) in peers.enumerate() {
            let place = &mut self.starts[peer + 1];
            self.order[*place] = index;
            *place += 1;
        }
    }

    /// The indices that belong to `peer`.
    pub(crate) fn of(&self, peer: usize) -> &[usize] {
        &self.order[self.starts[peer]..self.starts[peer + 1]]
    }
}

#[cfg(test)]
mod tests {
    use super::ByPeer;

    #[test]
    fn groups_and_keeps_the_order() {
        let mut by_peer = ByPeer::default();
        by_peer.sort(4, [2, 0, 2, 3, 0, 2].into_iter());
        assert_eq!(by_peer.of(0), [1, 4]);
        assert_eq!(by_peer.of(1), [0; 0]);
        assert_eq!(by_peer.of(2), [0, 2, 5]);
        assert_eq!(by_peer.of(3), [3]);
        by_peer.sort(1, [0, 0].into_iter());
        assert_eq!(by_peer.of(0), [0, 1]);
        by_peer.sort(2, [].into_iter());
        assert_eq!(by_peer.of(1), [0; 0]);
    }
}
