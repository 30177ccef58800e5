//! An HDF5 dataset in chunks with deflate into a new Zarr array with zstd: outcore on
//! one core and on two ranks, beside a script on h5py and zarr-python.

use std::path::Path;
use std::time::Instant;

use outcore::{
    Arrangement, Array, ArrayDescriptor, ElementType, Error, MemoryBudget, Order, Relayout, Result,
};

use super::peer::Peers;
use super::{FormatsOptions, line, timed, value};
use crate::line::Line;

/// The most that is held in memory.
const MEMORY: u64 = 256 << 20;

/// The extent of a chunk; 1 MiB.
const CHUNK: u64 = 512;

/// Runs the conversion.
pub(super) fn run(options: &FormatsOptions, directory: &Path, peers: &Peers) -> Result<Vec<Line>> {
    let place = |name: &str| directory.join(name).to_string_lossy().to_string();
    let (input, output, theirs) = (place("in.h5:/data"), place("out.zarr"), place("their.zarr"));
    let extent = options.convert;
    let chunk = CHUNK.min(extent);
    let descriptor =
        ArrayDescriptor::new(&[extent, extent], ElementType::F32).layout(Arrangement {
            order: Order::Row,
            tile: Some(vec![chunk, chunk]),
        });
    make(&input, &descriptor.clone().codecs("deflate:4".parse()?))?;
    let descriptor = descriptor.codecs("zstd:3".parse()?);
    let mut peer = peers.start("convert", &[input.clone(), theirs.clone()])?;
    let (mut times, mut right) = (vec![Vec::new(); 3], true);
    for _ in 0..options.repeats {
        for ranks in [1, 2] {
            times[ranks - 1].push(turn(ranks, &input, &output, &descriptor)?);
            right &= is_right(&output, extent)?;
            remove(&output)?;
        }
        if let Some(peer) = &mut peer {
            times[2].push(peer.time(0)?);
            remove(&theirs)?;
        }
    }
    let case = format!("hdf5-deflate to zarr-zstd {extent}x{extent} f32");
    let named = |system: &str, ranks: usize| Line {
        useful_bytes: extent * extent * 4,
        ranks,
        ok: right,
        ..line(system, &case, "convert")
    };
    let theirs = std::mem::take(&mut times[2]);
    let mut lines = vec![
        timed(named("outcore", 1), std::mem::take(&mut times[0])),
        timed(named("outcore", 2), std::mem::take(&mut times[1])),
    ];
    if peer.is_some() {
        lines.push(timed(named("h5py and zarr", 1), theirs));
    }
    Ok(lines)
}

fn remove(output: &str) -> Result<()> {
    std::fs::remove_dir_all(output).map_err(|source| Error::File {
        action: "remove",
        path: output.into(),
        source,
    })
}

/// Makes the input.
fn make(name: &str, descriptor: &ArrayDescriptor) -> Result<()> {
    let array = Array::create(name, descriptor)?;
    let extent = descriptor.shape[0];
    for first in (0..extent).step_by(CHUNK as usize) {
        let end = (first + CHUNK).min(extent);
        let values: Vec<f32> = (first * extent..end * extent).map(value).collect();
        array.write(&array.section(&format!("{first}:{end}, :"))?, &values)?;
    }
    Ok(())
}

/// The seconds of one conversion; a lone rank has one core.
fn turn(ranks: usize, input: &str, output: &str, descriptor: &ArrayDescriptor) -> Result<f64> {
    let _one_core = (ranks == 1).then(OneCore::new);
    let budget = MemoryBudget::of(MEMORY);
    let seconds = outcore::run(ranks, |comm| {
        let target = Array::create_all(comm, output, descriptor)?;
        comm.barrier()?;
        let start = Instant::now();
        let source = Array::open_all(comm, input)?;
        let plan = Relayout::plan(comm, &source, &target, &[0, 1], &budget)?;
        plan.run(comm, &|_| ())?;
        comm.barrier()?;
        Ok::<_, Error>(start.elapsed().as_secs_f64())
    })?;
    Ok(seconds.into_iter().fold(0.0, f64::max))
}

/// Whether some elements of each part are right.
fn is_right(output: &str, extent: u64) -> Result<bool> {
    let array = Array::open(output)?;
    let step = (extent / 61).max(1);
    let found: Vec<f32> = array.read(&array.section(&format!("::{step}, ::{step}"))?)?;
    let places = || (0..extent).step_by(step as usize);
    let expected =
        places().flat_map(|row| places().map(move |column| value(row * extent + column)));
    Ok(found.into_iter().eq(expected))
}

/// As long as it lives, this thread and those that it starts have one core.
struct OneCore {
    #[cfg(target_os = "linux")]
    before: libc::cpu_set_t,
}

#[cfg(target_os = "linux")]
impl OneCore {
    fn new() -> Self {
        let size = std::mem::size_of::<libc::cpu_set_t>();
        // SAFETY: a set of zeros is valid and empty.
        let (mut before, mut one): (libc::cpu_set_t, libc::cpu_set_t) =
            unsafe { (std::mem::zeroed(), std::mem::zeroed()) };
        // SAFETY: both sets live during the calls and have the size that is given; the
        // first core that is allowed is inside of them.
        unsafe {
            libc::sched_getaffinity(0, size, &mut before);
            let first = (0..8 * size).find(|core| libc::CPU_ISSET(*core, &before));
            libc::CPU_SET(first.unwrap_or(0), &mut one);
            libc::sched_setaffinity(0, size, &one);
        }
        Self { before }
    }
}

#[cfg(target_os = "linux")]
impl Drop for OneCore {
    fn drop(&mut self) {
        let size = std::mem::size_of::<libc::cpu_set_t>();
        // SAFETY: the set lives during the call and has the size that is given.
        unsafe { libc::sched_setaffinity(0, size, &self.before) };
    }
}

#[cfg(not(target_os = "linux"))]
impl OneCore {
    fn new() -> Self {
        Self {}
    }
}
