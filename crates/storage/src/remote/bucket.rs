//! [`Bucket`]: the objects under an address.

use std::ops::Range;
use std::sync::Arc;

use super::ABREAST;
use super::client::{Client, Found, PIECE};
use super::object::RemoteObject;
use crate::address::Address;
use crate::error::{Error, Result};
use crate::objects::{Entry, Objects, Version, check_folder, check_key};
use crate::store::{ReadRequest, Store};

/// Gaps up to this many bytes cost less than another request.
const GAP: usize = 512 << 10;

/// The objects under an address: those of a bucket, or of a folder in it.
///
/// ```no_run
/// use outcore_storage::{Address, Bucket, Objects};
///
/// let bucket = Bucket::at(&Address::parse("s3://bucket/climate.zarr")?)?;
/// for entry in bucket.list("")? {
///     println!("{}", entry.name);
/// }
/// # Ok::<(), outcore_storage::Error>(())
/// ```
#[derive(Debug, Clone)]
pub struct Bucket {
    client: Arc<Client>,
    address: Address,
}

impl Bucket {
    /// The objects under `address`. Nothing is asked for yet. The first use of a
    /// bucket in a process takes credentials and endpoint from the environment.
    pub fn at(address: &Address) -> Result<Self> {
        let client = Client::of(address)
            .map_err(|source| Error::object("open", address.to_string(), source))?;
        Ok(Self {
            client,
            address: address.clone(),
        })
    }

    /// Makes the object at the address itself of all bytes of `file`, in several
    /// parts if it is long. The object is there, or replaced, when all of them
    /// are.
    pub fn upload(&self, file: &dyn Store) -> Result<()> {
        let failed = |source| Error::object("write", self.address.to_string(), source);
        self.writable("write", self.address.key())?;
        self.client.upload(self.address.key(), file).map_err(failed)
    }

    /// Whether there is an object at the address itself.
    pub fn is_object(&self) -> Result<bool> {
        if self.address.key().is_empty() {
            return Ok(false);
        }
        let head = self.client.head(self.address.key());
        let head = head.map_err(self.failed("find", self.address.key()))?;
        Ok(head.is_some())
    }

    /// The object at the address itself as a store for reading.
    pub fn object(&self) -> Result<RemoteObject> {
        let key = self.address.key();
        RemoteObject::find(&self.client, key)?.ok_or_else(|| {
            let gone = std::io::ErrorKind::NotFound;
            self.failed("open", key)(std::io::Error::new(gone, "it is not there (404)"))
        })
    }

    /// The key in the bucket.
    fn place(&self, key: &str) -> Result<String> {
        check_key(&self.name(), key)?;
        Ok(self.inside(key))
    }

    fn folder(&self, folder: &str) -> Result<String> {
        check_folder(&self.name(), folder)?;
        Ok(self.inside(folder))
    }

    fn inside(&self, key: &str) -> String {
        match (self.address.key(), key) {
            ("", key) => key.into(),
            (folder, "") => folder.into(),
            (folder, key) => format!("{folder}/{key}"),
        }
    }

    fn failed(&self, action: &'static str, key: &str) -> impl FnOnce(std::io::Error) -> Error {
        let object = format!("{}/{key}", self.client.name());
        move |source| Error::object(action, object.trim_end_matches('/'), source)
    }

    /// Fails where nothing can be written.
    fn writable(&self, action: &'static str, key: &str) -> Result<()> {
        if !self.client.scheme().is_web() {
            return Ok(());
        }
        let source = std::io::Error::new(
            std::io::ErrorKind::Unsupported,
            "web servers are only read; write to s3://, gs://, az:// or a file",
        );
        Err(self.failed(action, key)(source))
    }

    /// Reads ranges of one object, all of the same version of it.
    fn ranges(&self, key: &str, requests: &mut [ReadRequest<'_>]) -> Result<bool> {
        let single = matches!(&*requests, [one] if one.buffer.len() <= PIECE);
        let head = match single || requests.is_empty() {
            true => None,
            false => match self.client.head(key).map_err(self.failed("read", key))? {
                Some(head) => Some(head),
                None => return Ok(false),
            },
        };
        let version = head.as_ref().and_then(|head| head.version.as_deref());
        let asked = requests
            .first()
            .map(|first| (first.offset, first.buffer.len()));
        let found = self.client.read_ranges(key, version, requests);
        match found.map_err(self.failed("read", key))? {
            Found::Whole => Ok(true),
            Found::Nothing => Ok(false),
            Found::Short(end) => {
                let (offset, wanted) = asked.unwrap_or((0, 0));
                Err(Error::UnexpectedEnd {
                    store: format!("{}/{key}", self.client.name()),
                    offset,
                    wanted: wanted as u64,
                    end,
                })
            }
        }
    }
}

impl Objects for Bucket {
    fn name(&self) -> String {
        self.address.to_string()
    }

    fn parallel(&self) -> usize {
        ABREAST
    }

    fn length(&self, key: &str) -> Result<Option<u64>> {
        let key = self.place(key)?;
        let head = self.client.head(&key);
        let head = head.map_err(self.failed("find", &key))?;
        Ok(head.map(|head| head.length))
    }

    fn read(&self, key: &str, most: u64, buffer: &mut Vec<u8>) -> Result<Option<Version>> {
        let key = self.place(key)?;
        let found = self.client.read(&key, most, buffer);
        if !matches!(found, Ok(Some(_))) {
            buffer.clear();
        }
        found.map_err(self.failed("read", &key))
    }

    /// Reads what is between parts that are close to one another as well.
    fn read_parts(&self, key: &str, parts: &[Range<usize>], buffer: &mut [u8]) -> Result<bool> {
        let key = self.place(key)?;
        let mut sorted: Vec<Range<usize>> = parts.to_vec();
        sorted.sort_unstable_by_key(|part| part.start);
        let mut requests: Vec<ReadRequest<'_>> = Vec::new();
        let (mut rest, mut at) = (buffer, 0);
        for near in sorted.chunk_by(|a, b| b.start <= a.end.saturating_add(GAP)) {
            let start = near.first().map_or(at, |part| part.start).max(at);
            let end = near
                .iter()
                .map(|part| part.end)
                .max()
                .unwrap_or(at)
                .max(start);
            let (_, after) = rest.split_at_mut(start - at);
            let (piece, after) = after.split_at_mut(end - start);
            (rest, at) = (after, end);
            requests.push(ReadRequest {
                offset: start as u64,
                buffer: piece,
            });
        }
        self.ranges(&key, &mut requests)
    }

    fn write(&self, key: &str, data: &[u8]) -> Result<()> {
        let key = self.place(key)?;
        self.writable("write", &key)?;
        self.client
            .write(&key, data)
            .map_err(self.failed("write", &key))
    }

    fn write_over(&self, key: &str, data: &[u8], old: Option<&Version>) -> Result<bool> {
        let key = self.place(key)?;
        self.writable("write", &key)?;
        let written = self.client.write_over(&key, data, old);
        written.map_err(self.failed("write", &key))
    }

    fn remove(&self, key: &str) -> Result<()> {
        let key = self.place(key)?;
        self.writable("remove", &key)?;
        self.client
            .remove(&key)
            .map_err(self.failed("remove", &key))
    }

    fn remove_all(&self, folder: &str) -> Result<()> {
        let key = self.folder(folder)?;
        self.writable("remove", &key)?;
        self.client
            .remove_all(&key)
            .map_err(self.failed("remove", &key))
    }

    fn list(&self, folder: &str) -> Result<Vec<Entry>> {
        let key = self.folder(folder)?;
        if self.client.scheme().is_web() {
            let source = std::io::Error::new(
                std::io::ErrorKind::Unsupported,
                "web servers do not say what they hold; name the array itself",
            );
            return Err(self.failed("list", &key)(source));
        }
        self.client.list(&key).map_err(self.failed("list", &key))
    }

    fn open(&self, key: &str) -> Result<Option<Arc<dyn Store>>> {
        let key = self.place(key)?;
        let found = RemoteObject::find(&self.client, &key)?;
        Ok(found.map(|object| Arc::new(object) as _))
    }

    /// What was written is stored when the call that wrote it returns.
    fn sync(&self) -> Result<()> {
        Ok(())
    }
}
