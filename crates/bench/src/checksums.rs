//! The bench `checksums`: sections of an array whose blocks have checksums,
//! beside the same sections of one that has none.

use std::cell::RefCell;
use std::path::PathBuf;

use outcore::{Array, ArrayDescriptor, Comm, ElementType, Fill, Result};

use crate::contest::{Contestant, contest};
use crate::io::{Scratch, prime_memory};
use crate::line::Line;

/// What to measure, and how often.
#[derive(Debug, Clone)]
pub struct ChecksumsOptions {
    /// Where the arrays are made for the time being.
    pub directory: PathBuf,
    /// The bytes of each array.
    pub size: u64,
    /// The bytes of a block; `None`: the usual.
    pub block: Option<u64>,
    /// Repetitions.
    pub repeats: usize,
}

/// All of an array, every second row, every second element, a column.
const SECTIONS: [&str; 4] = [":, :", "::2, :", "::2, ::2", ":, 5"];

/// Elements in a row: 16 KiB.
const COLUMNS: u64 = 4096;

/// Runs the bench, by one rank.
pub fn checksums(options: &ChecksumsOptions) -> Result<Vec<Line>> {
    prime_memory(options.size)?;
    let scratch = ["plain.oc", "checked.oc"].map(|name| Scratch::new(&options.directory, name));
    let [plain, checked] = scratch.each_ref().map(Scratch::name);
    let lines = outcore::run(1, |comm| {
        let shape = [(options.size / 4 / COLUMNS).max(1), COLUMNS];
        let descriptor = ArrayDescriptor::new(&shape, ElementType::F32);
        let plain = Array::create(&plain, &descriptor)?;
        let checked = Array::create(&checked, &descriptor.checksummed(options.block))?;
        let mut lines = Vec::new();
        for section in SECTIONS {
            lines.extend(measure(comm, options, section, [&plain, &checked])?);
        }
        Ok::<_, outcore::Error>(lines)
    });
    Ok(lines?.swap_remove(0))
}

fn measure(
    comm: &Comm,
    options: &ChecksumsOptions,
    text: &str,
    arrays: [&Array; 2],
) -> Result<Vec<Line>> {
    let section = &arrays[0].section(text)?;
    let mut values = vec![0f32; section.count() as usize];
    Fill::Index.generate(arrays[0], section, bytemuck::cast_slice_mut(&mut values))?;
    let expected = values.clone();
    let (values, expected) = (&RefCell::new(values), &expected);
    let line = |system: &str, op| Line {
        system: system.into(),
        bench: "checksums",
        case: format!("[{text}] of {} MiB", options.size >> 20),
        op,
        strategy: "auto".into(),
        transport: "threads".into(),
        ranks: 1,
        useful_bytes: section.count() * 4,
        best_s: 0.0,
        median_s: 0.0,
        ok: true,
    };
    let named = || [("plain", arrays[0]), ("checked", arrays[1])];
    let writers = named().map(|(system, array)| Contestant {
        line: line(system, "write"),
        prepare: Box::new(|| Ok(())),
        work: Box::new(move || array.write(section, expected)),
        check: Box::new(|| true),
        batch: 1,
    });
    let mut lines = contest(comm, writers.into(), options.repeats)?;
    let readers = named().map(|(system, array)| Contestant {
        line: line(system, "read"),
        prepare: Box::new(move || {
            values
                .borrow_mut()
                .iter_mut()
                .step_by(512)
                .for_each(|value| *value = -1.0);
            Ok(())
        }),
        work: Box::new(move || array.read_into(section, &mut values.borrow_mut()[..])),
        check: Box::new(move || *values.borrow() == *expected),
        batch: 1,
    });
    lines.extend(contest(comm, readers.into(), options.repeats)?);
    Ok(lines)
}
