//! Measuring a [`StorageProfile`], and keeping it for the next time.
//!
//! Reads and writes a scratch file of 64 MiB several times in the directory that is asked
//! about, and reads small pieces of it from the device. Profiles are kept in one file in the user's cache directory, by the
//! device number of the file system.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use outcore_storage::{Access, FileStore, ReadRequest, Store, WriteRequest};

use super::profile::{Cost, StorageProfile};
use crate::error::{Error, Result};
use crate::format::native::new_id;
use crate::interrupt;

const SIZE: u64 = 64 << 20;
const SMALL: usize = 64;
const PAGE: usize = 4096;
const BLOCK: usize = 1 << 20;
const BLOCKS: f64 = (SIZE / BLOCK as u64) as f64;
const STRETCH: usize = 16 << 20;

impl StorageProfile {
    /// What [`StorageProfile::measure`] moves, in bytes.
    pub const MEASURED: u64 = 11 * SIZE + 3 * STRETCH as u64;

    /// Measures the file system of `directory`; `progress` gets the bytes that were moved.
    pub fn measure(directory: &Path, progress: &dyn Fn(u64)) -> Result<Self> {
        let path = directory.join(format!(".{}-calibration", new_id()));
        let outcome = measure_file(&path, progress);
        let _ = std::fs::remove_file(&path);
        outcome
    }

    /// Keeps the profile for the file system of `directory`.
    pub fn keep(&self, directory: &Path) -> Result<PathBuf> {
        let mut all = read_kept(&cache_file(FILE).unwrap_or_default());
        all.insert(file_system(directory)?, *self);
        let text = serde_json::to_string_pretty(&all).expect("numbers can be written");
        let path = keep_text(FILE, &text)?;
        Ok(path)
    }

    /// The profile that was kept for the file system of `path`, if any.
    pub fn kept(path: &Path) -> Option<Self> {
        let all = read_kept(&cache_file(FILE)?);
        all.get(&file_system(path).ok()?).copied()
    }
}

const FILE: &str = "profiles.json";

/// Keeps a text in a file of the cache directory, which appears as a whole.
pub(crate) fn keep_text(file: &str, text: &str) -> Result<PathBuf> {
    let path = cache_file(file).ok_or_else(|| {
        Error::Invalid("there is no cache directory: neither XDG_CACHE_HOME nor HOME is set".into())
    })?;
    let parent = path.parent().unwrap_or(Path::new("."));
    let temporary = parent.join(format!(".{}-{file}", new_id()));
    std::fs::create_dir_all(parent)
        .and_then(|()| std::fs::write(&temporary, text))
        .and_then(|()| std::fs::rename(&temporary, &path))
        .map_err(|source| {
            let _ = std::fs::remove_file(&temporary);
            Error::file("write", &path, source)
        })?;
    Ok(path)
}

/// A file of the cache directory.
pub(crate) fn cache_file(file: &str) -> Option<PathBuf> {
    let cache = std::env::var_os("XDG_CACHE_HOME").filter(|path| !path.is_empty());
    let cache = cache.map(PathBuf::from).or_else(|| {
        let home = std::env::var_os("HOME").filter(|path| !path.is_empty())?;
        Some(Path::new(&home).join(".cache"))
    });
    Some(cache?.join("outcore").join(file))
}

/// What cannot be read is as good as not there: it is measured anew.
fn read_kept(path: &Path) -> BTreeMap<String, StorageProfile> {
    let text = std::fs::read(path).unwrap_or_default();
    serde_json::from_slice(&text).unwrap_or_default()
}

fn file_system(path: &Path) -> Result<String> {
    let metadata = std::fs::metadata(path).map_err(|source| Error::file("open", path, source))?;
    Ok(format!("device {:#x}", metadata.dev()))
}

fn measure_file(path: &Path, progress: &dyn Fn(u64)) -> Result<StorageProfile> {
    let store = FileStore::create(path)?;
    let data = vec![7u8; BLOCK];
    for offset in (0..SIZE).step_by(BLOCK) {
        interrupt::check()?;
        store.write_at(offset, &data)?;
        progress(BLOCK as u64);
    }
    store.sync()?;
    let mut profile = StorageProfile::assumed(path);
    // Small requests tell what one costs, large ones what a byte costs. The
    // latter go all over the file: in one place they would stay in the
    // processor's cache.
    let mut block = vec![0u8; BLOCK];
    let blocks = || (0..SIZE).step_by(BLOCK);
    let mut all = f64::INFINITY;
    for _ in 0..3 {
        let seconds = fastest(1, || {
            blocks().try_for_each(|offset| Ok(store.read_at(offset, &mut block)?))
        })?;
        all = all.min(seconds);
        progress(SIZE);
    }
    profile.cached_read = cost(batches(&store, SMALL, 8)?, (all / BLOCKS, BLOCK));
    let few: Vec<WriteRequest<'_>> = places(256)
        .map(|offset| WriteRequest {
            offset,
            data: &data[..SMALL],
        })
        .collect();
    let small = fastest(5, || Ok(store.write_batch(&few)?))?;
    // What is written over has often just been read.
    let mut all = f64::INFINITY;
    for _ in 0..3 {
        store.forget()?;
        for offset in blocks() {
            interrupt::check()?;
            store.read_at(offset, &mut block)?;
            progress(BLOCK as u64);
        }
        let seconds = fastest(1, || {
            blocks().try_for_each(|offset| Ok(store.write_at(offset, &data)?))
        })?;
        all = all.min(seconds);
        progress(SIZE);
    }
    profile.write = cost((small / 256.0, SMALL), (all / BLOCKS, BLOCK));
    store.sync()?;
    // Cold reads, where the system lets go of what it has.
    if forget(path) {
        let alone = cold(path, || {
            places(64).try_for_each(|offset| Ok(store.read_at(offset, &mut block[..PAGE])?))
        })? / 64.0;
        let together = cold(path, || batches(&store, PAGE, 1).map(drop))? / 256.0;
        // A long stretch as it is fetched ahead, and then read.
        let long = cold(path, || {
            for offset in (0..STRETCH as u64).step_by(2 * BLOCK) {
                store.fetch(offset, 2 * BLOCK as u64);
            }
            let mut blocks = (0..STRETCH as u64).step_by(BLOCK);
            blocks.try_for_each(|at| Ok(store.read_at(at, &mut block)?))
        })?;
        progress(3 * STRETCH as u64);
        let copied = profile.cached_read.of(16, STRETCH as u64);
        let byte = (long - alone - copied).max(1e-6) / STRETCH as f64;
        let each = (alone - PAGE as f64 * byte).max(profile.cached_read.each);
        profile.cold_read = Cost { each, byte };
        profile.parallel = (alone / together).clamp(1.0, 256.0);
        profile.ahead = read_on(path)?.unwrap_or(profile.ahead);
        progress(SIZE);
        profile.first_write = first_write(path)?.unwrap_or(profile.first_write);
    }
    measure_copies(&store, &mut profile)?;
    Ok(profile)
}

/// Places all over the file.
fn places(count: u64) -> impl Iterator<Item = u64> {
    (0..count).map(move |at| (at * 0x9e37_79b9 % (SIZE / PAGE as u64 - 1)) * PAGE as u64)
}

/// The seconds and the length of one read in a batch of 256.
fn batches(store: &FileStore, len: usize, repeats: usize) -> Result<(f64, usize)> {
    let mut memory = vec![0u8; 256 * len];
    let seconds = fastest(repeats, || {
        let pieces = memory.chunks_mut(len).zip(places(256));
        let mut requests: Vec<ReadRequest<'_>> = pieces
            .map(|(buffer, offset)| ReadRequest { offset, buffer })
            .collect();
        Ok(store.read_batch(&mut requests)?)
    })?;
    Ok((seconds / 256.0, len))
}

/// The line through two measurements of (seconds, bytes).
fn cost((small, few): (f64, usize), (large, many): (f64, usize)) -> Cost {
    let byte = ((large - small) / (many - few) as f64).max(1e-12);
    Cost {
        each: (small - byte * few as f64).max(1e-9),
        byte,
    }
}

fn fastest(repeats: usize, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..repeats {
        interrupt::check()?;
        let start = Instant::now();
        work()?;
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

/// The seconds of `work` on a file that is not in the page cache.
fn cold(path: &Path, mut work: impl FnMut() -> Result<()>) -> Result<f64> {
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        forget(path);
        best = best.min(fastest(1, &mut work)?);
    }
    Ok(best)
}

/// Drops the file from the page cache; whether the system did.
fn forget(path: &Path) -> bool {
    outcore_storage::forget(path).is_ok_and(|left| left < 0.1)
}

/// The seconds a byte of touching a cold mapping from one end to the other;
/// `None` where there are no mappings.
fn read_on(path: &Path) -> Result<Option<f64>> {
    // Opened for this alone: what a mapping has touched stays in the cache.
    let store = FileStore::open(path, Access::ReadOnly)?;
    let Some(mapping) = store.map()? else {
        return Ok(None);
    };
    forget(path);
    let len = SIZE as usize;
    let start = mapping.readable(0, len)?;
    let seconds = fastest(1, || {
        for page in (0..len).step_by(PAGE) {
            // SAFETY: the mapping is held and has `len` bytes.
            black_box(unsafe { start.add(page).read_volatile() });
        }
        Ok(())
    })?;
    Ok(Some(seconds / len as f64))
}

/// Strided copies of 4-byte elements out of a buffer and out of a mapping.
fn measure_copies(store: &FileStore, profile: &mut StorageProfile) -> Result<()> {
    use crate::execute::copy::{gather, gather_from};
    use outcore_geometry::{Pass, Run};
    let elements = SIZE / 64;
    let first = |len| Run {
        file_offset: 0,
        buffer_offset: 0,
        len,
    };
    let sparse = Pass {
        first: first(4),
        count: elements,
        file_step: 64,
        buffer_step: 4,
    };
    let dense = Pass {
        first: first(BLOCK as u64),
        count: 16,
        file_step: 4 << 20,
        buffer_step: BLOCK as u64,
    };
    let mut out = vec![0u8; 16 * BLOCK];
    let image = vec![1u8; 4 << 20];
    let near = Pass {
        count: image.len() as u64 / 64,
        ..sparse
    };
    let far = Pass {
        count: 4,
        file_step: BLOCK as u64,
        ..dense
    };
    let mut timed = |work: &mut dyn FnMut(&mut [u8])| -> Result<f64> {
        fastest(5, || {
            work(black_box(&mut out));
            Ok(())
        })
    };
    let each = timed(&mut |out| gather(&near, &image, 0, out))? / near.count as f64;
    let bulk = timed(&mut |out| gather(&far, &image, 0, out))?;
    profile.copy = cost((each, 4), (bulk / 4.0, BLOCK));
    if let Some(mapping) = store.map()? {
        let len = SIZE as usize;
        let start = mapping.readable(0, len)?;
        // SAFETY: the mapping is held and has `len` bytes.
        let each = timed(&mut |out| unsafe { gather_from(&sparse, (start, len), 0, out) })?;
        // SAFETY: as above.
        let bulk = timed(&mut |out| unsafe { gather_from(&dense, (start, len), 0, out) })?;
        profile.mapped = cost((each / elements as f64, 4), (bulk / 16.0, BLOCK));
    }
    Ok(())
}

/// The seconds of the first write to a page that has just been read; `None`
/// where a mapping must not be written.
fn first_write(path: &Path) -> Result<Option<f64>> {
    const PAGES: usize = 2048;
    // Opened for this alone, as in `read_on`.
    let store = FileStore::open(path, Access::ReadWrite)?;
    store.forget()?;
    store.read_at(0, &mut vec![0; PAGES * PAGE])?;
    let Some(mapping) = store.map()? else {
        return Ok(None);
    };
    let Some(start) = mapping.writable(0, PAGES * PAGE)? else {
        return Ok(None);
    };
    let seconds = fastest(1, || {
        for page in 0..PAGES {
            // SAFETY: the mapping is held, may be written, and has that many pages.
            unsafe { start.add(page * PAGE).write_volatile(7) };
        }
        Ok(())
    })?;
    Ok(Some(seconds / PAGES as f64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_measured_profile_is_plausible() {
        let directory = tempfile::tempdir().unwrap();
        let profile = StorageProfile::measure(directory.path(), &|_| ()).unwrap();
        for cost in [
            profile.cached_read,
            profile.cold_read,
            profile.write,
            profile.copy,
            profile.mapped,
        ] {
            assert!(
                cost.each > 0.0 && cost.byte > 0.0 && cost.each < 1.0,
                "{profile:?}"
            );
        }
        assert!(profile.parallel >= 1.0);
        assert!(profile.copy.each < profile.cached_read.each, "{profile:?}");
        assert_eq!(std::fs::read_dir(directory.path()).unwrap().count(), 0);
    }
}
