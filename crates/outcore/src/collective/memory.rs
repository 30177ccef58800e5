//! [`Need`]: how much memory a collective call takes, and how large its windows
//! can be.
//!
//! The mathematics. With windows of `w` bytes a rank has so many images of `w`,
//! the messages of a window (at most `w` for every request that can meet others
//! in one byte, and never more than everybody asks for), with tiled layouts
//! what it gets from, or gives to, all domains in a round, a bit for each
//! element of a window, and lists. All ranks compute with the same numbers, so
//! they come to the same window.

use super::coverage::MOST;
use crate::array::Array;

/// What the memory of a call depends on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Need {
    /// Windows in memory at a time.
    pub(super) images: u64,
    /// How many requests can have one byte in common.
    pub(super) depth: u64,
    /// The bytes of all requests.
    pub(super) bytes: u64,
    /// The bytes of the largest request, if messages are unpacked; else 0.
    pub(super) unpacked: u64,
    /// The number of requests, and of domains.
    pub(super) requests: u64,
    pub(super) domains: u64,
    /// The bytes of an element.
    pub(super) element: u64,
    /// The bytes of the smallest window that makes sense.
    pub(super) smallest: u64,
}

/// What a request takes besides its bytes: lists of rounds and messages.
const EACH: u64 = 512;

/// A chunk that can be had only whole is decoded for every window of it: at most so
/// often.
const TIMES: u64 = 32;

/// The bytes of the smallest window of `array` that makes sense.
pub(super) fn smallest_window(array: &Array) -> u64 {
    let element = array.layout().element_size().max(1);
    let part = array.whole_chunk() / TIMES;
    (part / element).max(1) * element
}

/// What any collective call of so many ranks can do with, for `array`, without what
/// its chunks take.
pub(crate) fn least_memory(ranks: u64, array: &Array) -> u64 {
    let need = Need {
        images: 2,
        depth: ranks,
        bytes: u64::MAX,
        unpacked: u64::MAX,
        requests: ranks,
        domains: ranks,
        element: array.layout().element_size(),
        smallest: smallest_window(array),
    };
    need.least()
}

impl Need {
    /// What differs from rank to rank, if they do not know of all others.
    pub(super) fn numbers(&self) -> [u64; 5] {
        [
            self.depth,
            self.bytes,
            self.unpacked,
            self.requests,
            self.domains,
        ]
    }

    /// Takes the numbers that all ranks have come to.
    pub(super) fn set_numbers(&mut self, numbers: &[u64]) {
        if let [depth, bytes, unpacked, requests, domains, ..] = *numbers {
            *self = Self {
                depth,
                bytes,
                unpacked,
                requests,
                domains,
                ..*self
            };
        }
    }

    /// The bytes that a rank takes with windows of `w` bytes.
    pub(super) fn of(&self, w: u64) -> u64 {
        let messages = w.saturating_mul(self.depth).min(self.bytes);
        let one = w
            .saturating_add(messages)
            .saturating_add(w / self.element / 8)
            .saturating_add((w / self.element + 1).min(2 * MOST as u64) * 16);
        one.saturating_mul(self.images)
            .saturating_add(self.unpacked.min(w.saturating_mul(self.domains)))
            .saturating_add(self.requests.saturating_mul(EACH))
    }

    /// The least with which it works.
    pub(super) fn least(&self) -> u64 {
        self.of(self.smallest)
    }

    /// The largest window of at most `most` bytes that fits in `limit`: whole
    /// elements, and at least one.
    pub(super) fn window(&self, limit: u64, most: u64) -> u64 {
        let (mut fits, mut beyond) = (1, (most / self.element).max(1).saturating_add(1));
        while beyond - fits > 1 {
            let middle = fits + (beyond - fits) / 2;
            match self.of(middle * self.element) <= limit {
                true => fits = middle,
                false => beyond = middle,
            }
        }
        fits * self.element
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_largest_window_that_fits_is_taken() {
        let need = Need {
            images: 2,
            depth: 3,
            bytes: 100_000,
            unpacked: 5000,
            requests: 7,
            domains: 4,
            element: 8,
            smallest: 8,
        };
        assert_eq!(need.window(need.least(), 1 << 20), 8);
        assert_eq!(need.window(0, 1 << 20), 8);
        assert_eq!(need.window(u64::MAX, 1003), 1000);
        for limit in (need.least()..400_000).step_by(997) {
            let window = need.window(limit, 1 << 30);
            assert!(need.of(window) <= limit && need.of(window + 8) > limit);
        }
        let huge = Need {
            depth: u64::MAX,
            bytes: u64::MAX,
            ..need
        };
        assert_eq!(huge.window(1 << 40, u64::MAX), 8);
    }
}
