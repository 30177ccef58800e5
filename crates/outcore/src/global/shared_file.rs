//! [`SharedFile`]: a file of bytes that is striped over the disks of many ranks, and
//! that any rank reads and writes anywhere at any time.
//!
//! The bytes are cut into stripes of equal length, dealt to the parts in turn
//! ([`StripedStore`]). A part is a file in a directory of the rank that holds it;
//! others reach it by procedure calls, as a [`Store`] ([`stripe::Stripe`]). So a shared
//! file is a store, too: an [`Array`](crate::Array) can lie in it. Nothing is
//! installed, and no file system is shared.
//!
//! The length is that of the part that reaches farthest: a write beyond the end makes
//! the file longer, and what was skipped reads as zeros.

mod stripe;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_storage::{Access, FileStore, MemoryStore, Store, StripedStore};
use outcore_transport::Comm;
use serde::{Deserialize, Serialize};

use crate::draft::{parent, sync_directory};
use crate::error::{Error, Result};
use crate::format::native::new_id;
use crate::global::agreement::same_on_all;
use crate::global::disk_resident::{DiskOptions, check_name, once};
use crate::global::procedure_call::Procedures;
use stripe::{Stripe, Stripes};

/// A file of bytes on the disks of many ranks.
///
/// ```
/// use outcore::{DiskOptions, Disks, Procedures, SharedFile};
/// # let directory = tempfile::tempdir()?;
/// # let disks = directory.path().join("{rank}");
/// # let disks = disks.to_str().unwrap();
/// outcore::run(3, |comm| {
///     let calls = Procedures::start(comm)?;
///     let options = DiskOptions::new(Disks::pattern(disks));
///     let file = SharedFile::create(comm, &calls, "log", 4096, &options)?;
///     let line = [b'0' + comm.rank() as u8; 10_000];
///     file.write_at(10_000 * comm.rank() as u64, &line)?;
///     comm.barrier()?;
///     let mut across = [0; 2];
///     file.read_at(9_999, &mut across)?;
///     assert_eq!((&across, file.len()?), (b"01", 30_000));
///     file.close(comm)?;
///     calls.close()
/// })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct SharedFile {
    name: String,
    striped: Arc<StripedStore>,
    own: Arc<Stripes>,
    files: Vec<PathBuf>,
}

/// The parts that a rank holds, with their numbers.
type PartStores = Vec<(usize, Arc<dyn Store>)>;

/// What stands beside each part.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Description {
    format: String,
    version: u64,
    id: String,
    unit: u64,
    parts: usize,
}

const FORMAT: &str = "outcore-shared-file";

/// Descriptions longer than this are not believed.
const LONGEST: u64 = 4096;

impl SharedFile {
    /// Collective: makes an empty file in stripes of `unit` bytes, with a part on
    /// each rank or on those that `options` names as holders. Of `options`, what is
    /// about blocks and caches does not matter.
    pub fn create(
        comm: &Comm,
        calls: &Procedures,
        name: &str,
        unit: u64,
        options: &DiskOptions,
    ) -> Result<Self> {
        // 1. All agree on what is made.
        Procedures::check_group(Some(calls), comm)?;
        let parts = options.holders.as_ref().map_or(comm.size(), Vec::len);
        let checked = check_name(name).and_then(|()| {
            check_stripes(unit, parts)?;
            options.holders_of(parts, comm.size())
        });
        let holders = comm.agree(checked)?;
        let differ = "the ranks do not mean the same shared file: its name, stripes or holders \
                      differ";
        same_on_all(comm, (name, unit, &holders), differ)?;
        let mut id = new_id();
        comm.broadcast_string(0, &mut id)?;
        let description = Description {
            format: FORMAT.into(),
            version: 1,
            id,
            unit,
            parts,
        };
        // 2. Holders make their parts.
        let mut files = Vec::new();
        let mut stores = Vec::new();
        let made: Result<()> = own_parts(&holders, comm.rank()).try_for_each(|part| {
            let directory = options.disks.made(part, comm.rank())?;
            let store: Arc<dyn Store> = match directory {
                None => Arc::new(MemoryStore::new()),
                Some(directory) => {
                    let (data, said) = part_files(&directory, name, part);
                    if options.replace {
                        remove(&said)?;
                        remove(&data)?;
                    }
                    let store = FileStore::create(&data)?;
                    files.push(data);
                    store.sync()?;
                    describe(&said, &description)?;
                    files.push(said);
                    Arc::new(store)
                }
            };
            stores.push((part, adapted(store, part, options)));
            Ok(())
        });
        // 3. From now on they can be reached.
        let reached = match comm.agree(made) {
            Ok(()) => {
                let own = (stores, files.clone());
                Self::reached((comm, calls), (name, unit), holders, own)
            }
            Err(error) => Err(error.into()),
        };
        if reached.is_err() {
            // What cannot be removed is in nobody's way; the error says why it is there.
            files.iter().for_each(|file| drop(remove(file)));
        }
        reached
    }

    /// Collective: opens a file again. There must be a rank for each part, which
    /// finds it in its directory.
    pub fn open(
        comm: &Comm,
        calls: &Procedures,
        name: &str,
        options: &DiskOptions,
    ) -> Result<Self> {
        Procedures::check_group(Some(calls), comm)?;
        let differ = "the ranks open shared files of different names or holders";
        same_on_all(comm, (name, &options.holders), differ)?;
        let first = options.holders.as_ref().and_then(|holders| holders.first());
        let first = comm.agree(match first.copied().unwrap_or(0) {
            first if first < comm.size() => check_name(name).map(|()| first),
            first => Err(Error::Invalid(format!("there is no rank {first}"))),
        })?;
        let find = |part| {
            let directory = options.disks.directory(part, comm.rank())?;
            let directory = directory.ok_or_else(|| {
                Error::Invalid("parts in memory cannot be opened again: there is no disk".into())
            })?;
            Ok(part_files(&directory, name, part))
        };
        let said = match comm.rank() == first {
            true => find(0).and_then(|(_, said)| read_text(&said)),
            false => Ok(String::new()),
        };
        let mut text = comm.agree(said)?;
        comm.broadcast_string(first, &mut text)?;
        let described = parse(name, &text).and_then(|description| {
            check_stripes(description.unit, description.parts)?;
            let holders = options.holders_of(description.parts, comm.size())?;
            Ok((description, holders))
        });
        let (description, holders) = comm.agree(described)?;
        let mut files = Vec::new();
        let mut stores: PartStores = Vec::new();
        let opened: Result<()> = own_parts(&holders, comm.rank()).try_for_each(|part| {
            let (data, said) = find(part)?;
            if parse(name, &read_text(&said)?)? != description {
                return Err(Error::format(
                    said.display(),
                    "this part belongs to another shared file",
                ));
            }
            let store = Arc::new(FileStore::open(&data, Access::ReadWrite)?);
            stores.push((part, adapted(store, part, options)));
            files.extend([data, said]);
            Ok(())
        });
        comm.agree(opened)?;
        Self::reached(
            (comm, calls),
            (name, description.unit),
            holders,
            (stores, files),
        )
    }

    fn reached(
        (comm, calls): (&Comm, &Procedures),
        (name, unit): (&str, u64),
        holders: Vec<usize>,
        (stores, files): (PartStores, Vec<PathBuf>),
    ) -> Result<Self> {
        let own = Arc::new(Stripes::new(stores));
        let procedure =
            Stripes::register(&own, calls, &once(comm, &format!("shared file {name}"))?)?;
        let disks = holders.iter().enumerate().map(|(part, rank)| {
            let way = (calls.clone(), procedure, *rank);
            let here = (*rank == comm.rank()).then(|| Arc::clone(&own));
            Arc::new(Stripe::new(name, part, way, here)) as Arc<dyn Store>
        });
        let striped = StripedStore::new(disks.collect(), unit)?;
        Ok(Self {
            name: name.into(),
            striped: Arc::new(striped),
            own,
            files,
        })
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The file as a store, for an array that lies in it, for instance.
    pub fn as_store(&self) -> Arc<dyn Store> {
        self.striped.clone()
    }

    /// Fills `buffer` from `offset` on; fails beyond the end.
    pub fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        Ok(self.striped.read_at(offset, buffer)?)
    }

    /// Writes `data` at `offset`; the file becomes longer if need be.
    pub fn write_at(&self, offset: u64, data: &[u8]) -> Result<()> {
        Ok(self.striped.write_at(offset, data)?)
    }

    /// The number of bytes.
    pub fn len(&self) -> Result<u64> {
        Ok(self.striped.len()?)
    }

    /// Whether there is no byte.
    pub fn is_empty(&self) -> Result<bool> {
        Ok(self.len()? == 0)
    }

    /// Cuts the file or extends it with zeros, while nobody writes.
    pub fn set_len(&self, len: u64) -> Result<()> {
        Ok(self.striped.set_len(len)?)
    }

    /// Not collective: returns when everything written before, by any rank, is on
    /// stable storage.
    pub fn sync(&self) -> Result<()> {
        Ok(self.striped.sync()?)
    }

    /// Collective: ends all access.
    pub fn close(self, comm: &Comm) -> Result<()> {
        comm.barrier()?;
        self.own.close();
        Ok(comm.barrier()?)
    }

    /// Collective: ends all access, and removes the parts from their disks.
    pub fn remove(self, comm: &Comm) -> Result<()> {
        comm.barrier()?;
        self.own.close();
        Ok(comm.agree(self.files.iter().try_for_each(|file| remove(file)))?)
    }
}

/// Refuses what cannot be striped.
fn check_stripes(unit: u64, parts: usize) -> Result<()> {
    match unit > 0 && parts > 0 {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "a shared file cannot be in stripes of {unit} bytes on {parts} parts: both must be at \
             least 1"
        ))),
    }
}

/// The data and the description of a part.
fn part_files(directory: &Path, name: &str, part: usize) -> (PathBuf, PathBuf) {
    let file = |ending: &str| directory.join(format!("{name}-{part}.{ending}"));
    (file("stripes"), file("stripes.json"))
}

fn own_parts(holders: &[usize], rank: usize) -> impl Iterator<Item = usize> {
    let own = move |part: &usize| holders[*part] == rank;
    (0..holders.len()).filter(own)
}

fn adapted(store: Arc<dyn Store>, part: usize, options: &DiskOptions) -> Arc<dyn Store> {
    match &options.adapter {
        None => store,
        Some(adapter) => adapter(part, store),
    }
}

/// Writes a description; it appears under its name when it is complete.
fn describe(path: &Path, description: &Description) -> Result<()> {
    let failed = |source| Error::file("write", path, source);
    let text = serde_json::to_string_pretty(description).map_err(|error| failed(error.into()))?;
    let hidden = path.with_extension("unfinished");
    std::fs::write(&hidden, text)
        .and_then(|()| std::fs::File::open(&hidden)?.sync_all())
        .and_then(|()| std::fs::rename(&hidden, path))
        .inspect_err(|_| drop(std::fs::remove_file(&hidden)))
        .map_err(failed)?;
    sync_directory(parent(path))
}

fn read_text(path: &Path) -> Result<String> {
    use std::io::Read;
    let mut text = String::new();
    let read =
        std::fs::File::open(path).and_then(|file| file.take(LONGEST).read_to_string(&mut text));
    read.map_err(|source| Error::file("read", path, source))?;
    Ok(text)
}

fn parse(name: &str, text: &str) -> Result<Description> {
    let wrong = |problem: String| Error::format(name, format!("its description {problem}"));
    let description: Description =
        serde_json::from_str(text).map_err(|error| wrong(format!("is wrong: {error}")))?;
    match (description.format == FORMAT, description.version) {
        (true, 1) => Ok(description),
        (true, version) => Err(wrong(format!("has version {version}, which is not known"))),
        _ => Err(wrong("is not that of a shared file".into())),
    }
}

fn remove(path: &Path) -> Result<()> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
            Err(Error::file("remove", path, error))
        }
        _ => Ok(()),
    }
}
