//! A pointer to a store is a store: adapters, which own the store beneath
//! them, can so be put over shared (`Arc<dyn Store>`), boxed or borrowed ones.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use crate::error::Result;
use crate::mapping::Mapping;
use crate::range_lock::RangeLock;
use crate::store::{ReadRequest, Store, WriteRequest};

/// Passes every method on, the provided ones too, so that nothing a backend
/// does better is lost behind a pointer.
macro_rules! store_behind {
    ($pointer:ty) => {
        impl<S: Store + ?Sized> Store for $pointer {
            fn name(&self) -> String {
                (**self).name()
            }

            fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
                (**self).read_some_at(offset, buffer)
            }

            fn write_some_at(&self, offset: u64, data: &[u8]) -> io::Result<usize> {
                (**self).write_some_at(offset, data)
            }

            fn len(&self) -> Result<u64> {
                (**self).len()
            }

            fn is_empty(&self) -> Result<bool> {
                (**self).is_empty()
            }

            fn set_len(&self, len: u64) -> Result<()> {
                (**self).set_len(len)
            }

            fn sync(&self) -> Result<()> {
                (**self).sync()
            }

            fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
                (**self).read_at(offset, buffer)
            }

            fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
                (**self).write_at(offset, data)
            }

            fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
                (**self).read_batch(requests)
            }

            fn write_batch(&self, requests: &[WriteRequest<'_>]) -> Result<()> {
                (**self).write_batch(requests)
            }

            fn map(&self) -> Result<Option<Arc<Mapping>>> {
                (**self).map()
            }

            fn cached(&self, offset: u64, len: u64) -> Option<f64> {
                (**self).cached(offset, len)
            }

            fn forget(&self) -> Result<()> {
                (**self).forget()
            }

            fn fetch(&self, offset: u64, len: u64) {
                (**self).fetch(offset, len);
            }

            fn lock_shared(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
                (**self).lock_shared(offset, len)
            }

            fn lock(&self, offset: u64, len: u64) -> Result<Option<RangeLock<'_>>> {
                (**self).lock(offset, len)
            }

            fn background(&self) -> Option<Arc<dyn Store>> {
                (**self).background()
            }

            fn time(&self) -> Option<Duration> {
                (**self).time()
            }

            fn wait_until(&self, time: Duration) {
                (**self).wait_until(time)
            }
        }
    };
}

store_behind!(Arc<S>);
store_behind!(Box<S>);
store_behind!(&S);
