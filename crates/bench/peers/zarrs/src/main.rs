//! Sections of a Zarr array by the zarrs crate.
//!
//! zarrs ARRAY SECTION...: a section is `start:end:step` for each axis, joined by
//! commas. Says `ready`, then answers lines of the standard input: `time I` with the
//! best seconds of a few reads of section I, `check I` with `ok` if its values are the
//! numbers of its elements modulo 2^24.
//!
//! zarrs has no strides: what a section lies in is read, and its elements are taken.

use std::io::{BufRead, Write};
use std::sync::Arc;
use std::time::Instant;

use zarrs::array::{Array, ArraySubset};
use zarrs::filesystem::FilesystemStore;

type Failure = Box<dyn std::error::Error>;

#[derive(Clone, Copy)]
struct Axis {
    start: u64,
    end: u64,
    step: u64,
}

fn axis(text: &str) -> Result<Axis, Failure> {
    let numbers: Vec<u64> = text.split(':').map(str::parse).collect::<Result<_, _>>()?;
    match numbers[..] {
        [start, end, step] => Ok(Axis { start, end, step }),
        _ => Err("a section is start:end:step of each axis".into()),
    }
}

fn main() -> Result<(), Failure> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let (path, sections) = arguments.split_first().ok_or("which array?")?;
    let sections: Vec<Vec<Axis>> = sections
        .iter()
        .map(|section| section.split(',').map(axis).collect())
        .collect::<Result<_, _>>()?;
    let array = Array::open(Arc::new(FilesystemStore::new(path)?), "/")?;
    let extent = array.shape()[1];
    let read = |axes: &[Axis]| -> Result<Vec<f32>, Failure> {
        let ranges: Vec<_> = axes.iter().map(|axis| axis.start..axis.end).collect();
        let subset = ArraySubset::new_with_ranges(&ranges);
        let values: Vec<f32> = array.retrieve_array_subset(&subset)?;
        if axes.iter().all(|axis| axis.step == 1) {
            return Ok(values);
        }
        let width = (axes[1].end - axes[1].start) as usize;
        let rows = values.chunks_exact(width).step_by(axes[0].step as usize);
        let taken = rows.flat_map(|row| row.iter().step_by(axes[1].step as usize));
        Ok(taken.copied().collect())
    };
    let say = |text: String| -> std::io::Result<()> {
        let mut out = std::io::stdout().lock();
        writeln!(out, "{text}")?;
        out.flush()
    };
    say("ready".into())?;
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        let (command, number) = line.split_once(' ').ok_or("a command and a number")?;
        let axes = &sections[number.parse::<usize>()?];
        if command == "check" {
            let found = read(axes)?;
            let indices = |axis: Axis| (axis.start..axis.end).step_by(axis.step as usize);
            let expected = indices(axes[0])
                .flat_map(|row| indices(axes[1]).map(move |column| row * extent + column))
                .map(|number| (number & 0xff_ffff) as f32);
            let right = found.iter().copied().eq(expected);
            say(if right { "ok" } else { "WRONG" }.into())?;
            continue;
        }
        let (mut best, begin) = (f64::INFINITY, Instant::now());
        while best.is_infinite() || begin.elapsed().as_secs_f64() < 0.02 {
            let start = Instant::now();
            std::hint::black_box(read(axes)?);
            best = best.min(start.elapsed().as_secs_f64());
        }
        say(format!("{best:.9}"))?;
    }
    Ok(())
}
