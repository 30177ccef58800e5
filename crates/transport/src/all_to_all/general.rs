//! The general algorithm, GEN (Thakur 1995, section 4.3.4): in step `i`, from 1
//! on, rank `r` sends to `r + i` and receives from `r - i`, modulo the number of
//! ranks, which may be any: always one step fewer than ranks.

use super::schedule::Step;

pub(super) fn steps(rank: usize, size: usize) -> Vec<Step> {
    (1..size)
        .map(|step| Step::direct(rank, (rank + step) % size, (rank + size - step) % size))
        .collect()
}
