//! [`Client`]: requests to one bucket or host, as calls that block.
//!
//! This is the only asynchronous file. All clients share one small runtime, whose
//! threads move bytes between sockets and those who wait; a thread that calls
//! runs its own request. A client is made once for a bucket, with the
//! environment of that moment, and kept, since its connections are worth keeping.

use std::collections::HashMap;
use std::fmt;
use std::io;
use std::pin::Pin;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use futures_util::stream::{self, FuturesUnordered};
use futures_util::{StreamExt, TryStreamExt};
use object_store::client::{HttpError, HttpErrorKind};
use object_store::path::Path;
use object_store::{
    Error, GetOptions, GetRange, ObjectStore, ObjectStoreExt, PutMode, PutPayload, UpdateVersion,
};
use tokio::runtime::{Builder, Handle, Runtime};

use super::ABREAST;
use super::connect::{Purpose, attempts, connect};
use super::explain::{explain, is_missing_bucket};
use crate::address::{Address, Scheme};
use crate::chunked::cores;
use crate::objects::{Entry, Version, too_long};
use crate::store::{ReadRequest, Store};

/// The longest range that one request asks for; longer ones are several.
pub(super) const PIECE: usize = 4 << 20;

/// Objects are reserved memory for up to this length before their bytes come.
const BELIEVED: u64 = 64 << 20;

/// Uploads are in parts of at least this length, and of at most so many parts.
const PART: u64 = 5 << 20;
const MOST_PARTS: u64 = 10_000;

/// The parts of an upload that are under way together, in bytes.
const UPLOADING: u64 = 4 * PART;

/// How often bytes are asked for at most whose coming was cut off, and how long it is
/// waited before the second time; then twice as long each time.
const TRIALS: usize = 4;
const PAUSE: Duration = Duration::from_millis(100);

/// Requests to one bucket or host.
pub(super) struct Client {
    address: Address,
    store: Arc<dyn ObjectStore>,
    /// The same for sending bytes, when that is first done.
    sending: OnceLock<Arc<dyn ObjectStore>>,
}

/// What became of reading a range.
pub(super) enum Found {
    /// All of its bytes.
    Whole,
    /// Fewer: the object has so many.
    Short(u64),
    /// There is no such object.
    Nothing,
}

/// Why bytes have not come to their end which the server had begun to send.
struct Cut(Error);

/// An object as it is now.
pub(super) struct Head {
    pub(super) length: u64,
    /// What changes when the object does, if the server says so.
    pub(super) version: Option<String>,
}

/// Some bytes of one object, wherever they go.
type Filling<'a> = Pin<Box<dyn Future<Output = Result<Found, Error>> + Send + 'a>>;

/// Shows where, and nothing of how one gets in.
impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Client({})", self.name())
    }
}

/// The runtime of all clients.
fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        // Fails if the program has chosen another one, which will do as well.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let mut builder = Builder::new_multi_thread();
        let builder = builder.worker_threads(cores().min(4)).enable_all();
        builder.thread_name("outcore-remote").build()
    });
    made.as_ref()
        .map_err(|error| io::Error::new(error.kind(), error.to_string()))
}

/// Waits for the outcome of `request`.
fn wait<T: Send>(request: impl Future<Output = io::Result<T>> + Send) -> io::Result<T> {
    let runtime = runtime()?;
    if Handle::try_current().is_err() {
        return runtime.block_on(request);
    }
    // Threads of a runtime, the caller's own perhaps, must not wait.
    std::thread::scope(|scope| {
        let other =
            std::thread::Builder::new().spawn_scoped(scope, || runtime.block_on(request))?;
        let done = other.join();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

impl Client {
    /// The client of the bucket or host of `address`.
    pub(super) fn of(address: &Address) -> io::Result<Arc<Self>> {
        static CLIENTS: Mutex<Option<HashMap<String, Arc<Client>>>> = Mutex::new(None);
        let mut clients = CLIENTS.lock().unwrap_or_else(PoisonError::into_inner);
        let clients = clients.get_or_insert_default();
        let name = address.root();
        if let Some(client) = clients.get(&name) {
            return Ok(Arc::clone(client));
        }
        let _inside = runtime()?.enter();
        let client = Arc::new(Self {
            address: address.clone(),
            store: connect(address, Purpose::Reading)?,
            sending: OnceLock::new(),
        });
        clients.insert(name, Arc::clone(&client));
        Ok(client)
    }

    /// The store that bytes are sent with.
    fn sending(&self) -> io::Result<&dyn ObjectStore> {
        if let Some(known) = self.sending.get() {
            return Ok(&**known);
        }
        let _inside = runtime()?.enter();
        let made = connect(&self.address, Purpose::Writing)?;
        // Another thread may have made one meanwhile, which is as good.
        Ok(&**self.sending.get_or_init(|| made))
    }

    /// The protocol and the bucket or host.
    pub(super) fn name(&self) -> String {
        self.address.root()
    }

    pub(super) fn scheme(&self) -> Scheme {
        self.address.scheme()
    }

    fn failed(&self, error: &Error) -> io::Error {
        explain(self.scheme(), error)
    }

    /// Where an object is, with its names as they are.
    fn path(&self, key: &str) -> io::Result<Path> {
        let path = match self.scheme().is_web() {
            // What is written there is encoded already.
            true => Path::from_url_path(key),
            false => Path::parse(key),
        };
        path.map_err(|_| io::Error::new(io::ErrorKind::InvalidInput, "it has no valid name"))
    }

    /// What is known of an object; `None`: it is not there.
    pub(super) fn head(&self, key: &str) -> io::Result<Option<Head>> {
        let path = self.path(key)?;
        wait(async {
            match self.store.head(&path).await {
                Ok(found) => Ok(Some(Head {
                    length: found.size,
                    version: strong(found.e_tag),
                })),
                Err(error) => self.or_missing(error, None),
            }
        })
    }

    /// The answer `missing` if an object is not there, and else an error.
    fn or_missing<T>(&self, error: Error, missing: T) -> io::Result<T> {
        match error {
            // A bucket that is not there holds no objects, but is not meant.
            Error::NotFound { ref source, .. } if !is_missing_bucket(&source.to_string()) => {
                Ok(missing)
            }
            error => Err(self.failed(&error)),
        }
    }

    /// Makes `buffer` all of an object of at most so many bytes. `None`: it is not
    /// there.
    pub(super) fn read(
        &self,
        key: &str,
        most: u64,
        buffer: &mut Vec<u8>,
    ) -> io::Result<Option<Version>> {
        let path = self.path(key)?;
        wait(async {
            let mut trial = 1;
            loop {
                buffer.clear();
                let found = match self.store.get(&path).await {
                    Ok(found) => found,
                    Err(error) => return self.or_missing(error, None),
                };
                let version = Version {
                    tag: strong(found.meta.e_tag.clone()),
                    number: found.meta.version.clone(),
                };
                let length = found.meta.size;
                if length > most {
                    return Err(too_long(length, most));
                }
                let full = |_| io::Error::from(io::ErrorKind::OutOfMemory);
                let believed = length.min(BELIEVED) as usize;
                buffer.try_reserve_exact(believed).map_err(full)?;
                let mut pieces = found.into_stream();
                let cut = loop {
                    match pieces.next().await {
                        Some(Ok(piece)) if buffer.len() as u64 + piece.len() as u64 <= length => {
                            buffer.try_reserve(piece.len()).map_err(full)?;
                            buffer.extend_from_slice(&piece);
                        }
                        Some(Err(error)) => break error,
                        None if buffer.len() as u64 == length => return Ok(Some(version)),
                        Some(Ok(_)) | None => break generic(cut_off()),
                    }
                };
                if !again(&mut trial).await {
                    return Err(self.failed(&cut));
                }
            }
        })
    }

    /// Performs all reads, many at a time, of the object in its `version`, if
    /// that is given.
    pub(super) fn read_ranges(
        &self,
        key: &str,
        version: Option<&str>,
        requests: &mut [ReadRequest<'_>],
    ) -> io::Result<Found> {
        let path = self.path(key)?;
        let mut pieces: Vec<Filling<'_>> = Vec::new();
        for request in requests {
            let mut at = request.offset;
            if request.buffer.is_empty() {
                pieces.push(Box::pin(self.fill(&path, version, at, &mut [])));
            }
            for piece in request.buffer.chunks_mut(PIECE) {
                let len = piece.len() as u64;
                pieces.push(Box::pin(self.fill(&path, version, at, piece)));
                at += len;
            }
        }
        wait(async {
            let mut all = stream::iter(pieces).buffer_unordered(ABREAST);
            while let Some(found) = all.next().await {
                match found {
                    Ok(Found::Whole) => {}
                    Ok(other) => return Ok(other),
                    Err(error) => return self.or_missing(error, Found::Nothing),
                }
            }
            Ok(Found::Whole)
        })
    }

    /// Fills `buffer` from `offset` of an object, from the beginning again if its bytes
    /// are cut off.
    async fn fill(
        &self,
        path: &Path,
        version: Option<&str>,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Found, Error> {
        let mut trial = 1;
        loop {
            match self.fill_once(path, version, offset, buffer).await? {
                Ok(found) => return Ok(found),
                Err(_) if again(&mut trial).await => {}
                Err(Cut(error)) => return Err(error),
            }
        }
    }

    async fn fill_once(
        &self,
        path: &Path,
        version: Option<&str>,
        offset: u64,
        buffer: &mut [u8],
    ) -> Result<Result<Found, Cut>, Error> {
        let end = offset.saturating_add(buffer.len() as u64);
        if buffer.is_empty() {
            let length = self.store.head(path).await?.size;
            return Ok(Ok(match length < offset {
                true => Found::Short(length),
                false => Found::Whole,
            }));
        }
        let options = GetOptions {
            range: Some(GetRange::Bounded(offset..end)),
            if_match: version.map(String::from),
            ..GetOptions::default()
        };
        let found = match self.store.get_opts(path, options).await {
            Ok(found) => found,
            // A range behind the end is refused.
            Err(error @ Error::Generic { .. }) => {
                let length = match error.to_string().contains("416") {
                    true => self.store.head(path).await?.size,
                    false => return Err(error),
                };
                return match length < end {
                    true => Ok(Ok(Found::Short(length))),
                    false => Err(error),
                };
            }
            Err(error) => return Err(error),
        };
        // Caches answer with what they have, whatever version was asked for.
        if let (Some(wanted), Some(came)) = (version, &found.meta.e_tag)
            && wanted != came
        {
            return Err(Error::Precondition {
                path: path.to_string(),
                source: "another version came than was asked for".into(),
            });
        }
        if found.range != (offset..end) {
            return Ok(Ok(Found::Short(found.meta.size)));
        }
        let (mut rest, mut pieces) = (buffer, found.into_stream());
        loop {
            match pieces.next().await {
                Some(Ok(piece)) => match rest.split_at_mut_checked(piece.len()) {
                    Some((place, after)) => {
                        place.copy_from_slice(&piece);
                        rest = after;
                    }
                    None => return Ok(Err(Cut(generic(cut_off())))),
                },
                Some(Err(error)) => return Ok(Err(Cut(error))),
                None if rest.is_empty() => return Ok(Ok(Found::Whole)),
                None => return Ok(Err(Cut(generic(cut_off())))),
            }
        }
    }

    /// Makes an object of `data`, or replaces it.
    pub(super) fn write(&self, key: &str, data: &[u8]) -> io::Result<()> {
        let path = self.path(key)?;
        let store = self.sending()?;
        wait(async {
            let done = store.put(&path, PutPayload::from(data.to_vec())).await;
            done.map(drop).map_err(|error| self.failed(&error))
        })
    }

    /// Makes an object of `data`, or replaces it, if it is still the one that was read.
    /// `false`: it is another one now.
    pub(super) fn write_over(
        &self,
        key: &str,
        data: &[u8],
        old: Option<&Version>,
    ) -> io::Result<bool> {
        let path = self.path(key)?;
        let store = self.sending()?;
        let comparable = |old: &Version| match self.scheme() {
            Scheme::Gs => old.number.is_some(),
            _ => old.tag.is_some(),
        };
        let mode = match old {
            None => PutMode::Create,
            Some(old) if comparable(old) => PutMode::Update(UpdateVersion {
                e_tag: old.tag.clone(),
                version: old.number.clone(),
            }),
            Some(_) => return self.write(key, data).map(|()| true),
        };
        let payload = PutPayload::from(data.to_vec());
        wait(async {
            let mut trial = 1;
            loop {
                let done = store.put_opts(&path, payload.clone(), mode.clone().into());
                match done.await {
                    Ok(_) => return Ok(true),
                    Err(Error::Precondition { .. } | Error::AlreadyExists { .. }) => {
                        return Ok(false);
                    }
                    // Whoever asks does not want comparisons.
                    Err(Error::NotImplemented { .. }) => {
                        let done = store.put(&path, payload).await;
                        return done.map(|_| true).map_err(|error| self.failed(&error));
                    }
                    // If it was written and only the answer is lost, it is another one.
                    Err(error) if is_cut(&error) && again(&mut trial).await => {}
                    Err(error) => return Err(self.failed(&error)),
                }
            }
        })
    }

    /// Makes an object of all bytes of `file`, part by part. It is there when all
    /// of them are.
    pub(super) fn upload(&self, key: &str, file: &dyn Store) -> io::Result<()> {
        let length = file.len().map_err(io::Error::other)?;
        let read = |offset: u64, len: u64| -> io::Result<Vec<u8>> {
            let mut bytes = vec![0; len as usize];
            file.read_at(offset, &mut bytes).map_err(io::Error::other)?;
            Ok(bytes)
        };
        if length <= PART {
            return self.write(key, &read(0, length)?);
        }
        let path = self.path(key)?;
        let part = length.div_ceil(MOST_PARTS).max(PART);
        let abreast = (UPLOADING / part).max(1) as usize;
        let store = self.sending()?;
        wait(async {
            let begun = store.put_multipart(&path).await;
            let mut upload = begun.map_err(|error| self.failed(&error))?;
            let mut under_way = FuturesUnordered::new();
            let sent: io::Result<()> = async {
                for offset in (0..length).step_by(part as usize) {
                    if under_way.len() >= abreast
                        && let Some(done) = under_way.next().await
                    {
                        let done: Result<(), Error> = done;
                        done.map_err(|error| self.failed(&error))?;
                    }
                    let bytes = read(offset, part.min(length - offset))?;
                    under_way.push(upload.put_part(PutPayload::from(bytes)));
                }
                while let Some(done) = under_way.next().await {
                    done.map_err(|error| self.failed(&error))?;
                }
                Ok(())
            }
            .await;
            drop(under_way);
            let sent = match sent {
                Ok(()) => upload.complete().await.map_err(|error| self.failed(&error)),
                Err(error) => Err(error),
            };
            if sent.is_err() {
                // What cannot be removed now, the server's own rules remove.
                let _ = upload.abort().await;
            }
            sent.map(drop)
        })
    }

    /// Removes an object, if it is there.
    pub(super) fn remove(&self, key: &str) -> io::Result<()> {
        let path = self.path(key)?;
        wait(async {
            match self.store.delete(&path).await {
                Ok(()) => Ok(()),
                Err(error) => self.or_missing(error, ()),
            }
        })
    }

    /// Removes all objects whose keys begin with the names of `folder`.
    pub(super) fn remove_all(&self, folder: &str) -> io::Result<()> {
        let path = self.path(folder)?;
        wait(async {
            let found = self.store.list(Some(&path));
            let keys = found.map_ok(|object| object.location).boxed();
            let mut removed = self.store.delete_stream(keys);
            while let Some(done) = removed.next().await {
                if let Err(error) = done {
                    self.or_missing(error, ())?;
                }
            }
            Ok(())
        })
    }

    /// The objects and folders of a folder, by name.
    pub(super) fn list(&self, folder: &str) -> io::Result<Vec<Entry>> {
        let path = self.path(folder)?;
        let listed = wait(async {
            let listed = self.store.list_with_delimiter(Some(&path)).await;
            listed.map_err(|error| self.failed(&error))
        })?;
        let entry = |path: &Path, length| {
            let name = path.filename()?.to_owned();
            Some(Entry { name, length })
        };
        let folders = listed.common_prefixes.iter();
        let objects = listed.objects.iter();
        let mut entries: Vec<Entry> = folders
            .filter_map(|path| entry(path, None))
            .chain(objects.filter_map(|found| entry(&found.location, Some(found.size))))
            .collect();
        entries.sort_unstable();
        // An object and a folder may have the same name.
        entries.dedup_by(|a, b| a.name == b.name);
        Ok(entries)
    }
}

/// A tag that says whether the bytes are the same.
fn strong(tag: Option<String>) -> Option<String> {
    tag.filter(|tag| !tag.starts_with("W/"))
}

/// Whether nobody knows what has become of a request.
fn is_cut(error: &Error) -> bool {
    let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
    while let Some(error) = cause {
        if let Some(error) = error.downcast_ref::<HttpError>() {
            let kind = error.kind();
            return matches!(kind, HttpErrorKind::Timeout | HttpErrorKind::Interrupted);
        }
        cause = error.source();
    }
    false
}

/// Waits, and says whether it is to be tried again after so many trials.
async fn again(trial: &mut usize) -> bool {
    if *trial >= TRIALS.min(attempts()) {
        return false;
    }
    tokio::time::sleep(PAUSE * (1 << (*trial - 1))).await;
    *trial += 1;
    true
}

fn cut_off() -> io::Error {
    io::Error::new(
        io::ErrorKind::UnexpectedEof,
        "the server has sent fewer bytes than it promised",
    )
}

fn generic(error: io::Error) -> Error {
    Error::Generic {
        store: "object",
        source: Box::new(error),
    }
}
