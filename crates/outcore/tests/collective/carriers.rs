//! How data come from rank to rank: through memory where ranks are threads, and
//! a rank that panics meanwhile takes nobody with it.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use outcore::storage::{CountedStore, MemoryStore, Store};
use outcore::{Array, ArrayDescriptor, Carrier, CollectiveWay, ElementType, Error};

const RANKS: usize = 5;

fn array(store: impl Store + 'static) -> Array {
    let descriptor = ArrayDescriptor::new(&[20, 30], ElementType::U8);
    Array::in_store("shared", &descriptor, Arc::new(store)).unwrap()
}

#[test]
fn threads_read_common_data_once_and_send_nothing() {
    for (carrier, sends) in [
        (Carrier::Auto, false),
        (Carrier::Memory, false),
        (Carrier::Messages, true),
    ] {
        let store = Arc::new(CountedStore::new(MemoryStore::from(vec![7; 600])));
        let array = array(store.clone());
        let moved = outcore::run(RANKS, |comm| {
            let mut found = vec![0; 600];
            let calls = array.collective().way(CollectiveWay::TwoPhase);
            let calls = calls.carrier(carrier);
            let moved = calls.read_bytes(comm, &array.whole(), &mut found)?;
            assert_eq!(found, [7; 600]);
            Ok::<_, Error>(moved)
        });
        let moved = moved.unwrap();
        assert_eq!(moved.iter().any(|moved| moved.exchanged > 0), sends);
        assert_eq!(moved.iter().map(|moved| moved.moved).sum::<u64>(), 600);
        assert_eq!(store.counts().bytes_read, 600);
    }
}

/// A store whose `left`th read from now panics.
#[derive(Debug)]
struct Panicking {
    memory: MemoryStore,
    left: AtomicUsize,
}

impl Store for Panicking {
    fn name(&self) -> String {
        self.memory.name()
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.fetch_sub(1, Ordering::Relaxed) == 1 {
            // Without the hook, which would print it.
            std::panic::resume_unwind(Box::new("a panic on purpose".to_string()));
        }
        self.memory.read_some_at(offset, buffer)
    }

    fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
        self.memory.write_some_at(offset, data)
    }

    fn len(&self) -> outcore::storage::Result<u64> {
        self.memory.len()
    }

    fn set_len(&self, len: u64) -> outcore::storage::Result<()> {
        self.memory.set_len(len)
    }

    fn sync(&self) -> outcore::storage::Result<()> {
        Ok(())
    }
}

#[test]
fn a_panic_in_the_middle_ends_the_call_of_all() {
    for carrier in [Carrier::Memory, Carrier::Messages] {
        for left in 1..20 {
            let array = array(Panicking {
                memory: MemoryStore::from(vec![7; 600]),
                left: AtomicUsize::new(left),
            });
            let outcome = outcore::run(RANKS, |comm| {
                let calls = array.collective().carrier(carrier).window(30);
                let mut found = vec![0; 600];
                calls.read_bytes(comm, &array.whole(), &mut found)
            });
            let text = outcome.expect_err("a rank has panicked").to_string();
            assert!(text.contains("a panic on purpose"), "{text}");
        }
    }
}
