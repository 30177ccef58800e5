//! [`LocalFile`]: one rank's local array in a file on a simulated disk.

use std::sync::Arc;
use std::time::Duration;

use outcore::storage::{
    CountedStore, Counts, DeviceModel, MemoryStore, Queues, Store, ThrottledStore, Time,
};
use outcore::{Array, ArrayDescriptor, ElementType, Result};

/// A local array in column-major order, of single precision, on a disk of its
/// own.
pub(super) struct LocalFile {
    pub(super) array: Array,
    store: Arc<CountedStore<ThrottledStore<MemoryStore>>>,
}

impl LocalFile {
    /// A file of zeros at time 0.
    pub(super) fn new(rows: u64, columns: u64) -> Result<Self> {
        let model = DeviceModel {
            queues: Queues::Streams(1),
            ..DeviceModel::disk1995()
        };
        let memory = MemoryStore::from(vec![0; (rows * columns * 4) as usize]);
        let store = ThrottledStore::new(memory, model, Time::Virtual)?;
        let store = Arc::new(CountedStore::new(store));
        let shared: Arc<dyn Store> = store.clone();
        let layout = "column".parse().expect("a valid layout");
        let descriptor = ArrayDescriptor::new(&[rows, columns], ElementType::F32).layout(layout);
        Ok(Self {
            array: Array::in_store("the local file", &descriptor, shared)?,
            store,
        })
    }

    /// The rank's time.
    pub(super) fn seconds(&self) -> f64 {
        self.store.inner().elapsed().as_secs_f64()
    }

    /// Lets the rank compute.
    pub(super) fn compute(&self, seconds: f64) {
        self.store.inner().spend(Duration::from_secs_f64(seconds));
    }

    /// What was asked of the disk so far.
    pub(super) fn counts(&self) -> Counts {
        self.store.counts()
    }

    /// The shift of a column distribution (`PASSION_oc_shift`): the rank reads
    /// the outermost `width` of its `columns`, which stand behind `width` more
    /// for the neighbour's from column `first` on, and writes into these what
    /// the neighbours send; messages take no time.
    pub(super) fn shift(&self, first: u64, columns: u64, width: u64) -> Result<()> {
        let whole = self.array.whole();
        let part = |from: u64| whole.slice(1, first + from, first + from + width);
        let received = self.array.read::<f32>(&part(columns))?;
        let sent = self.array.read::<f32>(&part(width))?;
        self.array.write(&part(0), &received)?;
        self.array.write(&part(width + columns), &sent)
    }
}
