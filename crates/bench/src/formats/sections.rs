//! Sections of a square f32 array in Zarr and HDF5 files: those of `py_sections.py`.

use std::path::Path;
use std::time::Instant;

use outcore::{Arrangement, Array, ArrayDescriptor, ElementType, Order, Result, Section};

use super::peer::{Peer, Peers};
use super::{FormatsOptions, line, timed, value};
use crate::line::Line;

/// The extent of a chunk where the array has 4096.
const CHUNK: u64 = 256;

/// A section is read for so long in a turn.
const TURN: f64 = 0.02;

/// A format, the array's name in it, how it is made, and who else reads it.
struct Format {
    name: &'static str,
    array: String,
    chunked: bool,
    codec: &'static str,
    peers: &'static [&'static str],
}

fn formats(directory: &Path) -> [Format; 4] {
    let zarr: &[&str] = &["zarr", "dask-zarr", "tensorstore", "zarrs"];
    let hdf5: &[&str] = &["h5py", "dask-h5py"];
    let place = |name: &str| directory.join(name).to_string_lossy().to_string();
    let format = |name, array: &str, chunked, codec, peers| Format {
        name,
        array: place(array),
        chunked,
        codec,
        peers,
    };
    [
        format("zarr", "plain.zarr", true, "none", zarr),
        format("zarr-zstd", "zstd.zarr", true, "zstd:3", zarr),
        format("hdf5", "plain.h5:/data", false, "none", hdf5),
        format("hdf5-deflate", "deflate.h5:/data", true, "deflate:4", hdf5),
    ]
}

/// One axis of a section: start, end, step.
type Axis = (u64, u64, u64);

/// The sections of an array of this extent, as those of 4096 are.
fn cases(extent: u64) -> Vec<[Axis; 2]> {
    let at = |place: u64| (place * extent / 4096).max(1);
    let all = (0, extent, 1);
    vec![
        [(0, at(100), 1), (0, at(100), 1)],
        [(0, extent, 16), (0, extent, 16)],
        [(0, at(64), 2), (at(500), at(2500), 3)],
        [all, (0, at(16), 1)],
        [(0, at(16), 1), all],
        [all, all],
    ]
}

fn text(axes: &[Axis; 2]) -> String {
    let axis = |(start, end, step): Axis| format!("{start}:{end}:{step}");
    format!("{},{}", axis(axes[0]), axis(axes[1]))
}

/// Runs every format and case.
pub(super) fn run(options: &FormatsOptions, directory: &Path, peers: &Peers) -> Result<Vec<Line>> {
    let cases = cases(options.extent);
    let texts: Vec<String> = cases.iter().map(text).collect();
    let mut lines = Vec::new();
    for format in formats(directory) {
        make(&format, options.extent)?;
        let arguments = [vec![format.array.clone()], texts.clone()].concat();
        let mut others = Vec::new();
        for name in format.peers {
            others.extend(peers.start(name, &arguments)?);
        }
        let array = Array::open(&format.array)?;
        for (number, text) in texts.iter().enumerate() {
            let case = format!("{} {}", format.name, text.replace(',', " "));
            let case = (case.as_str(), number);
            lines.extend(contest(
                &array,
                &array.section(text)?,
                case,
                &mut others,
                options,
            )?);
        }
    }
    Ok(lines)
}

/// Makes the array of a format.
fn make(format: &Format, extent: u64) -> Result<()> {
    let mut descriptor = ArrayDescriptor::new(&[extent, extent], ElementType::F32);
    if format.chunked {
        let chunk = (CHUNK * extent / 4096).max(1);
        descriptor.arrangement = Arrangement {
            order: Order::Row,
            tile: Some(vec![chunk, chunk]),
        };
        descriptor = descriptor.codecs(format.codec.parse()?);
    }
    let array = Array::create(&format.array, &descriptor)?;
    let values: Vec<f32> = (0..extent * extent).map(value).collect();
    array.write(&array.whole(), &values)
}

/// One case: outcore and the others take turns.
fn contest(
    array: &Array,
    section: &Section,
    (case, number): (&str, usize),
    others: &mut [Peer],
    options: &FormatsOptions,
) -> Result<Vec<Line>> {
    let (rows, columns) = (&section.axes()[0], &section.axes()[1]);
    let expected = (0..rows.count())
        .flat_map(|row| (0..columns.count()).map(move |column| (row, column)))
        .map(|(row, column)| value(rows.index(row) * options.extent + columns.index(column)));
    let right = array.read::<f32>(section)?.into_iter().eq(expected);
    let mut times = vec![Vec::new(); 1 + others.len()];
    for _ in 0..options.repeats {
        times[0].push(turn(array, section)?);
        for (peer, times) in others.iter_mut().zip(&mut times[1..]) {
            times.push(peer.time(number)?);
        }
    }
    let useful_bytes = section.count() * 4;
    let mut lines = Vec::new();
    let own = Line {
        useful_bytes,
        ok: right,
        ..line("outcore", case, "read")
    };
    let mut times = times.into_iter();
    lines.push(timed(own, times.next().unwrap_or_default()));
    for (peer, times) in others.iter_mut().zip(times) {
        let theirs = Line {
            useful_bytes,
            ok: peer.check(number)?,
            strategy: "own".into(),
            ..line(peer.name, case, "read")
        };
        lines.push(timed(theirs, times));
    }
    Ok(lines)
}

/// The best of the reads of one turn.
fn turn(array: &Array, section: &Section) -> Result<f64> {
    let (mut best, begin) = (f64::INFINITY, Instant::now());
    while best.is_infinite() || begin.elapsed().as_secs_f64() < TURN {
        let start = Instant::now();
        std::hint::black_box(array.read::<f32>(section)?);
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}
