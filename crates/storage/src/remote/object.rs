//! [`RemoteObject`]: the bytes of one object as a store, for reading.
//!
//! The requests of a batch are under way together, long ones in several pieces,
//! and each goes straight into the caller's buffer as it comes. If the object is
//! replaced meanwhile, reads fail; they never mix two versions.

use std::io;
use std::sync::Arc;

use super::ABREAST;
use super::client::{Client, Found};
use crate::error::{Error, Result};
use crate::store::{ReadRequest, Store, check_range};

/// An object that is not on this machine.
#[derive(Debug)]
pub struct RemoteObject {
    client: Arc<Client>,
    key: String,
    length: u64,
    version: Option<String>,
}

impl RemoteObject {
    /// Finds the object; `None`: it is not there.
    pub(super) fn find(client: &Arc<Client>, key: &str) -> Result<Option<Self>> {
        let failed = |source| Error::object("open", format!("{}/{key}", client.name()), source);
        let head = client.head(key).map_err(failed)?;
        Ok(head.map(|head| Self {
            client: Arc::clone(client),
            key: key.into(),
            length: head.length,
            version: head.version,
        }))
    }

    fn check(&self, offset: u64, len: usize) -> Result<()> {
        check_range(self, offset, len)?;
        match offset + len as u64 <= self.length {
            true => Ok(()),
            false => Err(self.ended(offset, len, self.length)),
        }
    }

    fn ended(&self, offset: u64, wanted: usize, end: u64) -> Error {
        Error::UnexpectedEnd {
            store: self.name(),
            offset,
            wanted: wanted as u64,
            end,
        }
    }
}

fn whole_only() -> io::Error {
    io::Error::new(
        io::ErrorKind::Unsupported,
        "an object is only replaced as a whole; a Zarr array, whose chunks are objects, can be \
         changed in parts",
    )
}

impl Store for RemoteObject {
    fn name(&self) -> String {
        format!("{}/{}", self.client.name(), self.key)
    }

    fn read_some_at(&self, offset: u64, buffer: &mut [u8]) -> io::Result<usize> {
        let left = self.length.saturating_sub(offset);
        let count = buffer
            .len()
            .min(usize::try_from(left).unwrap_or(usize::MAX));
        if count > 0 {
            let read = self.read_at(offset, &mut buffer[..count]);
            read.map_err(io::Error::other)?;
        }
        Ok(count)
    }

    fn write_some_at(&self, _: u64, _: &[u8]) -> io::Result<usize> {
        Err(whole_only())
    }

    fn len(&self) -> Result<u64> {
        Ok(self.length)
    }

    fn set_len(&self, len: u64) -> Result<()> {
        match len == self.length {
            true => Ok(()),
            false => Err(Error::set_length(self.name(), len, whole_only())),
        }
    }

    fn sync(&self) -> Result<()> {
        Ok(())
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.read_batch(&mut [ReadRequest { offset, buffer }])
    }

    fn read_batch(&self, requests: &mut [ReadRequest<'_>]) -> Result<()> {
        for request in &*requests {
            self.check(request.offset, request.buffer.len())?;
        }
        let first = requests.iter().min_by_key(|request| request.offset);
        let (first, wanted) = first.map_or((0, 0), |first| (first.offset, first.buffer.len()));
        // Nothing needs to be asked for no bytes.
        let mut asked: Vec<ReadRequest<'_>> = requests
            .iter_mut()
            .filter(|request| !request.buffer.is_empty())
            .map(|request| ReadRequest {
                offset: request.offset,
                buffer: &mut *request.buffer,
            })
            .collect();
        let version = self.version.as_deref();
        let found = self.client.read_ranges(&self.key, version, &mut asked);
        match found.map_err(|source| Error::object("read", self.name(), source))? {
            Found::Whole => Ok(()),
            Found::Short(end) => Err(self.ended(first, wanted, end)),
            Found::Nothing => {
                let gone =
                    io::Error::new(io::ErrorKind::NotFound, "it is not there any more (404)");
                Err(Error::object("read", self.name(), gone))
            }
        }
    }

    fn parallel(&self) -> usize {
        ABREAST
    }
}
