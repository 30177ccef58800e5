//! Checkpoints of distributed data: saved, restored on other ranks, damaged,
//! and killed in the middle.

mod child;
mod damage;
mod failures;
mod killed;
mod place;
mod restore;
mod scattered;
mod series;
