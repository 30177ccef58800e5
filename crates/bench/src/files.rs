//! Whole contiguous arrays into and from a buffer that the caller gives,
//! beside a plain loop of `pread` or `pwrite` with several block sizes.

use std::fs::File;
use std::os::unix::fs::FileExt;

use outcore::{Array, ArrayDescriptor, Comm, ElementType, Error, Fill, Result, divide};

use crate::contest::{Contestant, contest};
use crate::io::{IoOptions, Scratch};
use crate::line::Line;

const BLOCKS: [usize; 4] = [256 << 10, 1 << 20, 4 << 20, 16 << 20];

/// One element is looked at in so many.
const SAMPLE: usize = 1024;

/// Reads and writes by `ranks` ranks, each of which has its share of rows.
pub(crate) fn contiguous(options: &IoOptions, ranks: usize) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "contiguous.oc");
    let lines = outcore::run(ranks, |comm| measure(comm, options, &scratch.name()));
    Ok(lines?.swap_remove(0))
}

fn measure(comm: &Comm, options: &IoOptions, name: &str) -> Result<Vec<Line>> {
    let columns = 4096;
    let rows = (options.size / 4 / columns).max(comm.size() as u64);
    let descriptor = ArrayDescriptor::new(&[rows, columns], ElementType::F32);
    let array = Array::create_all(comm, name, &descriptor)?;
    let share = divide(&array.whole(), &[0, 1], comm.size() as u64).swap_remove(comm.rank());
    let mut values = vec![0f32; share.count() as usize];
    Fill::Index.generate(&array, &share, bytes_of(&mut values))?;
    array.write(&share, &values)?;
    comm.barrier()?;
    let expected = values.clone();
    let start = share.axes()[0].bounds().0 * columns * 4;
    let line = |system: &str, op, strategy: String| Line {
        system: system.into(),
        bench: "io",
        case: format!("contiguous {} MiB", options.size >> 20),
        op,
        strategy,
        transport: "threads".into(),
        ranks: comm.size(),
        useful_bytes: rows * columns * 4,
        best_s: 0.0,
        median_s: 0.0,
        ok: true,
    };
    let data = format!("{name}/data.bin");
    let open = || {
        let opened = File::options().read(true).write(true).open(&data);
        opened.map_err(|source| Error::File {
            action: "open",
            path: data.clone().into(),
            source,
        })
    };
    let file = open()?;
    let values = std::cell::RefCell::new(values);
    let spoil = || {
        values
            .borrow_mut()
            .iter_mut()
            .step_by(SAMPLE)
            .for_each(|value| *value = -1.0)
    };
    let same = || {
        let found = values.borrow();
        found
            .iter()
            .zip(&expected)
            .step_by(SAMPLE)
            .all(|(found, expected)| found == expected)
    };
    let (array, share, spoil, same) = (&array, &share, &spoil, &same);
    let (file, values) = (&file, &values);

    // Reading.
    let mut readers = vec![Contestant {
        line: line("outcore", "read", "direct".into()),
        prepare: Box::new(move || {
            spoil();
            Ok(())
        }),
        work: Box::new(move || array.read_into(share, &mut values.borrow_mut()[..])),
        check: Box::new(same),
        batch: 1,
    }];
    for block in BLOCKS {
        readers.push(Contestant {
            line: line("pread", "read", format!("block {} KiB", block >> 10)),
            prepare: Box::new(move || {
                spoil();
                Ok(())
            }),
            work: Box::new(move || {
                let mut at = start;
                for piece in bytes_of(&mut values.borrow_mut()).chunks_mut(block) {
                    file.read_exact_at(piece, at).map_err(plain)?;
                    at += piece.len() as u64;
                }
                Ok(())
            }),
            check: Box::new(same),
            batch: 1,
        });
    }
    let mut lines = contest(comm, readers, options.repeats)?;

    // Writing: what was written is read back, sampled, after each turn.
    values.borrow_mut().copy_from_slice(&expected);
    let read_back = move || {
        let mut element = [0; 4];
        (0..share.count() as usize).step_by(SAMPLE).all(|at| {
            file.read_exact_at(&mut element, start + at as u64 * 4)
                .is_ok()
                && f32::from_ne_bytes(element) == values.borrow()[at]
        })
    };
    let change = move || {
        values
            .borrow_mut()
            .iter_mut()
            .step_by(SAMPLE)
            .for_each(|value| *value += 1.0);
        Ok(())
    };
    let mut writers = vec![Contestant {
        line: line("outcore", "write", "direct".into()),
        prepare: Box::new(change),
        work: Box::new(move || array.write(share, &values.borrow()[..])),
        check: Box::new(read_back),
        batch: 1,
    }];
    for block in BLOCKS {
        writers.push(Contestant {
            line: line("pwrite", "write", format!("block {} KiB", block >> 10)),
            prepare: Box::new(change),
            work: Box::new(move || {
                let mut at = start;
                for piece in bytes_of(&mut values.borrow_mut()).chunks(block) {
                    file.write_all_at(piece, at).map_err(plain)?;
                    at += piece.len() as u64;
                }
                Ok(())
            }),
            check: Box::new(read_back),
            batch: 1,
        });
    }
    lines.extend(contest(comm, writers, options.repeats)?);
    Ok(lines)
}

fn bytes_of(values: &mut [f32]) -> &mut [u8] {
    bytemuck::cast_slice_mut(values)
}

pub(crate) fn plain(error: std::io::Error) -> Error {
    Error::Invalid(error.to_string())
}
