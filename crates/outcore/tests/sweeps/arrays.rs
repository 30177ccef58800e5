//! Arrays in memory whose requests are counted, and can fail.

use std::sync::Arc;

use outcore::storage::{CountedStore, FaultyStore, MemoryStore, Store};
use outcore::{Array, ArrayDescriptor, ElementType, Layout};

pub(crate) type Counted = CountedStore<FaultyStore<MemoryStore>>;

/// An array of made-up bytes in memory, and the store that counts its requests.
pub(crate) fn array(descriptor: &ArrayDescriptor) -> (Array, Arc<Counted>) {
    let order = &descriptor.arrangement;
    let size = descriptor.element_type.size();
    let layout = Layout::arranged(&descriptor.shape, size, order).unwrap();
    let modulus = if descriptor.element_type == ElementType::Bool {
        2
    } else {
        251
    };
    let bytes: Vec<u8> = (0..layout.byte_len())
        .map(|at| (at % modulus) as u8)
        .collect();
    let store = Arc::new(CountedStore::new(FaultyStore::new(MemoryStore::from(
        bytes,
    ))));
    let shared: Arc<dyn Store> = store.clone();
    (Array::in_store("test", descriptor, shared).unwrap(), store)
}

pub(crate) fn rows(rows: u64, columns: u64) -> (Array, Arc<Counted>) {
    array(&ArrayDescriptor::new(&[rows, columns], ElementType::U32))
}
