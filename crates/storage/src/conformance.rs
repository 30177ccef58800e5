//! What every [`Store`] and every [`Objects`] must do, as suites that backends
//! and adapters run in their tests.
//!
//! Each check makes fresh, empty stores and panics with a message at the first
//! violation of the contract stated in the documentation of the trait.

mod batches;
mod capabilities;
mod expect;
mod objects;
mod sequences;
mod single;

use crate::objects::Objects;
use crate::store::Store;

/// Makes a fresh, empty store.
pub type Make<'a> = &'a dyn Fn() -> Box<dyn Store>;

/// Runs the whole suite on stores made by `make`, which are fresh and empty.
/// Some of them become sparse and longer than 4 GiB.
pub fn check(make: Make<'_>) {
    check_in_memory(make);
    sequences::large_offsets(&*make());
}

/// Runs all of the suite but its offsets beyond 2 GiB, for stores that hold
/// every byte in memory.
pub fn check_in_memory(make: Make<'_>) {
    single::empty_store(&*make());
    single::sizes_and_offsets(make);
    single::overlapping_writes(&*make());
    single::extension_with_gap(make);
    single::reads_past_the_end(&*make());
    single::lengths(&*make());
    single::impossible_offsets(&*make());
    batches::batches_in_any_order(&*make());
    batches::big_batches(&*make());
    batches::batches_past_the_end(&*make());
    capabilities::mappings(&*make());
    capabilities::residency(&*make());
    capabilities::locks(&*make());
    capabilities::shared_locks(&*make());
    sequences::many_threads(&*make());
    sequences::extension_by_many_threads(&*make());
    for seed in 1..=3 {
        sequences::random_operations(&*make(), seed);
    }
}

/// Runs the suite of named objects in a place that is fresh and empty.
pub fn check_objects(place: &dyn Objects) {
    objects::nothing(place);
    objects::contents_and_parts(place);
    objects::replacement_and_removal(place);
    objects::folders(place);
    objects::impossible_keys(place);
    objects::many_threads(place);
}
