//! A read fails on the last rank only. Every rank gets that rank's error, by
//! name; nobody hangs, and all go on together.

use std::sync::Arc;

use outcore::storage::{Fault, FaultyStore, MemoryStore, Operation, Store};
use outcore::{Array, ArrayDescriptor, ElementType, Error, Strategy, Tuning};

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let last = comm.size() - 1;
        let store = Arc::new(FaultyStore::new(MemoryStore::new()));
        store.set_len(40_000)?;
        let descriptor = ArrayDescriptor::new(&[100, 100], ElementType::F32);
        let array = Array::in_store("memory", &descriptor, store.clone())?;
        let array = array.tuned(Tuning {
            strategy: Strategy::Direct,
            ..Tuning::default()
        });

        // The disk of the last rank fails at its tenth request.
        if comm.rank() == last {
            store.fail_once(Operation::Read, 9, Fault::Device);
        }
        let section = array.section("::2, ::3")?;
        let outcome = comm.agree(array.read::<f32>(&section));
        let message = outcome
            .expect_err("one rank has failed, so all have")
            .to_string();
        assert!(message.starts_with(&format!("rank {last}: ")), "{message}");
        assert!(message.contains("os error 5"), "{message}");

        // The disk has recovered, and so has the group.
        let values = comm.agree(array.read::<f32>(&section))?;
        assert_eq!(values.len(), 50 * 34);
        println!("rank {} was told: {message}", comm.rank());
        Ok::<(), Error>(())
    })?;
    Ok(())
}
