//! [`forward!`]: methods of [`Store`] that do what the same method of another
//! store does; and pointers, which are stores so: adapters, which own the store
//! beneath them, can be put over shared (`Arc<dyn Store>`), boxed or borrowed
//! ones.

use std::sync::Arc;

use crate::store::Store;

/// Methods of a store that are passed on: `forward!(inner: len sync)` to the
/// store in the field `inner`, `forward!(*: len sync)` to what `self` points to.
macro_rules! forward {
    ($to:tt: $($method:ident)*) => {
        $(forward!(@one $to $method);)*
    };
    (@one $to:tt name) => {
        fn name(&self) -> String {
            forward!(@to self $to).name()
        }
    };
    (@one $to:tt read_some_at) => {
        fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> std::io::Result<usize> {
            forward!(@to self $to).read_some_at(offset, buffer)
        }
    };
    (@one $to:tt write_some_at) => {
        fn write_some_at(&self, offset: u64, data: &[u8]) -> std::io::Result<usize> {
            forward!(@to self $to).write_some_at(offset, data)
        }
    };
    (@one $to:tt len) => {
        fn len(&self) -> $crate::Result<u64> {
            forward!(@to self $to).len()
        }
    };
    (@one $to:tt is_empty) => {
        fn is_empty(&self) -> $crate::Result<bool> {
            forward!(@to self $to).is_empty()
        }
    };
    (@one $to:tt set_len) => {
        fn set_len(&self, len: u64) -> $crate::Result<()> {
            forward!(@to self $to).set_len(len)
        }
    };
    (@one $to:tt sync) => {
        fn sync(&self) -> $crate::Result<()> {
            forward!(@to self $to).sync()
        }
    };
    (@one $to:tt read_at) => {
        fn read_at(&self, offset: u64, buffer: &mut [u8]) -> $crate::Result<()> {
            forward!(@to self $to).read_at(offset, buffer)
        }
    };
    (@one $to:tt write_at) => {
        fn write_at(&self, offset: u64, data: &[u8]) -> $crate::Result<()> {
            forward!(@to self $to).write_at(offset, data)
        }
    };
    (@one $to:tt read_batch) => {
        fn read_batch(&self, requests: &mut [$crate::ReadRequest<'_>]) -> $crate::Result<()> {
            forward!(@to self $to).read_batch(requests)
        }
    };
    (@one $to:tt write_batch) => {
        fn write_batch(&self, requests: &[$crate::WriteRequest<'_>]) -> $crate::Result<()> {
            forward!(@to self $to).write_batch(requests)
        }
    };
    (@one $to:tt map) => {
        fn map(&self) -> $crate::Result<Option<std::sync::Arc<$crate::Mapping>>> {
            forward!(@to self $to).map()
        }
    };
    (@one $to:tt cached) => {
        fn cached(&self, offset: u64, len: u64) -> Option<f64> {
            forward!(@to self $to).cached(offset, len)
        }
    };
    (@one $to:tt forget) => {
        fn forget(&self) -> $crate::Result<()> {
            forward!(@to self $to).forget()
        }
    };
    (@one $to:tt fetch) => {
        fn fetch(&self, offset: u64, len: u64) {
            forward!(@to self $to).fetch(offset, len)
        }
    };
    (@one $to:tt striping) => {
        fn striping(&self) -> Option<$crate::Striping> {
            forward!(@to self $to).striping()
        }
    };
    (@one $to:tt lock) => {
        fn lock(&self, offset: u64, len: u64) -> $crate::Result<Option<$crate::RangeLock<'_>>> {
            forward!(@to self $to).lock(offset, len)
        }
    };
    (@one $to:tt lock_shared) => {
        fn lock_shared(&self, offset: u64, len: u64) -> $crate::Result<Option<$crate::RangeLock<'_>>> {
            forward!(@to self $to).lock_shared(offset, len)
        }
    };
    (@one $to:tt announce_writing) => {
        fn announce_writing(&self) -> $crate::Result<()> {
            forward!(@to self $to).announce_writing()
        }
    };
    (@one $to:tt as_chunks) => {
        fn as_chunks(&self) -> Option<&$crate::ChunkStore> {
            forward!(@to self $to).as_chunks()
        }
    };
    (@one $to:tt as_checked) => {
        fn as_checked(&self) -> Option<&$crate::CheckedStore> {
            forward!(@to self $to).as_checked()
        }
    };
    (@one $to:tt parallel) => {
        fn parallel(&self) -> usize {
            forward!(@to self $to).parallel()
        }
    };
    (@one $to:tt background) => {
        fn background(&self) -> Option<std::sync::Arc<dyn $crate::Store>> {
            forward!(@to self $to).background()
        }
    };
    (@one $to:tt time) => {
        fn time(&self) -> Option<std::time::Duration> {
            forward!(@to self $to).time()
        }
    };
    (@one $to:tt wait_until) => {
        fn wait_until(&self, time: std::time::Duration) {
            forward!(@to self $to).wait_until(time)
        }
    };
    (@to $this:ident *) => {
        (**$this)
    };
    (@to $this:ident $field:ident) => {
        $this.$field
    };
}
pub(crate) use forward;

/// Passes every method on, the provided ones too, so that nothing a backend
/// does better is lost behind a pointer.
macro_rules! store_behind {
    ($pointer:ty) => {
        impl<S: Store + ?Sized> Store for $pointer {
            forward!(*: name read_some_at write_some_at len is_empty set_len sync);
            forward!(*: read_at write_at read_batch write_batch);
            forward!(*: map cached forget fetch striping lock lock_shared);
            forward!(*: announce_writing as_chunks as_checked parallel background time wait_until);
        }
    };
}

store_behind!(Arc<S>);
store_behind!(Box<S>);
store_behind!(&S);
