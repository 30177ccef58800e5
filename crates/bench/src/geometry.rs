//! How fast runs are walked, and what planning costs beside the accesses that
//! it plans.

use std::fs::File;
use std::hint::black_box;
use std::os::unix::fs::FileExt;

use outcore::{
    Array, ArrayDescriptor, Direction, ElementType, Layout, Order, Result, Section, Strategy,
    Tuning,
};

use crate::contest::{Contestant, contest};
use crate::files::plain;
use crate::io::{IoOptions, Scratch};
use crate::line::Line;

fn line(system: &str, case: &str, op: &'static str, useful: u64) -> Line {
    Line {
        system: system.into(),
        bench: "io",
        case: case.into(),
        op,
        strategy: "direct".into(),
        transport: "threads".into(),
        ranks: 1,
        useful_bytes: useful,
        best_s: 0.0,
        median_s: 0.0,
        ok: true,
    }
}

/// The runs of `[::2, ::2]` of a 32768x32768 array, their offsets summed up;
/// `useful_bytes` counts runs.
pub(crate) fn walk(repeats: usize) -> Result<Vec<Line>> {
    let geometry = |error: outcore::GeometryError| outcore::Error::Invalid(error.to_string());
    let layout = Layout::new(&[32768, 32768], 4, &Order::Row, None).map_err(geometry)?;
    let section = Section::parse("::2, ::2", layout.shape()).map_err(geometry)?;
    let runs = layout.runs(&section).map_err(geometry)?;
    let count = runs.totals().0;
    let rows = 16384u64;
    let expected = (0..rows).fold(0u64, |sum, row| {
        // Offsets of a row: 8 bytes apart from 2 * row * 32768 * 4 on.
        let start = 2 * row * 32768 * 4;
        sum.wrapping_add(rows * start + 8 * (rows * (rows - 1) / 2))
    });
    let walked = outcore::run(1, |comm| {
        let (sum, runs) = (std::cell::Cell::new(0u64), &runs);
        let sum = &sum;
        let walker = Contestant {
            line: line("outcore", "walk [::2 ::2] of 32768x32768", "walk", count),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                // Run by run, as a reader takes them: a fold would be turned into
                // a formula by the compiler.
                let mut total = 0u64;
                for run in black_box(runs.clone()) {
                    total = total.wrapping_add(run.file_offset);
                }
                sum.set(total);
                Ok(())
            }),
            check: Box::new(move || sum.get() == expected),
            batch: 1,
        };
        contest(comm, vec![walker], repeats)
    });
    Ok(walked?.swap_remove(0))
}

/// Planning a section of 65,536 runs, beside the 65,536 preads themselves.
pub(crate) fn plan(options: &IoOptions) -> Result<Vec<Line>> {
    let scratch = Scratch::new(&options.directory, "plan.oc");
    let name = scratch.name();
    let outcome = outcore::run(1, |comm| {
        let descriptor = ArrayDescriptor::new(&[4096, 4096], ElementType::F32);
        let array = Array::create_all(comm, &name, &descriptor)?;
        array.write(&array.whole(), &vec![1f32; 1 << 24])?;
        // 256 elements in each of 256 rows.
        let section = array.section("::16, ::16")?;
        let array = array.tuned(Tuning {
            strategy: Strategy::Direct,
            ..Tuning::default()
        });
        let file = File::open(format!("{name}/data.bin")).map_err(plain)?;
        let (array, section, file) = (&array, &section, &file);
        let useful = section.count() * 4;
        let case = "65536 runs";
        let planner = Contestant {
            line: line("outcore", case, "plan", useful),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                // A plan is lazy, so what it will cost to walk belongs to it.
                let plan = array.plan(black_box(section), Direction::Read)?;
                let mut total = 0u64;
                for (offset, _) in plan.accesses() {
                    total = total.wrapping_add(offset);
                }
                black_box(total);
                Ok(())
            }),
            check: Box::new(move || {
                array
                    .plan(section, Direction::Read)
                    .is_ok_and(|plan| plan.requests() == 65536)
            }),
            batch: 1,
        };
        let reader = Contestant {
            line: line("pread", case, "read", useful),
            prepare: Box::new(|| Ok(())),
            work: Box::new(move || {
                let mut element = [0; 4];
                for row in (0..4096u64).step_by(16) {
                    for column in (0..4096u64).step_by(16) {
                        file.read_exact_at(&mut element, (row * 4096 + column) * 4)
                            .map_err(plain)?;
                    }
                }
                Ok(())
            }),
            check: Box::new(|| true),
            batch: 1,
        };
        let mut values = vec![0f32; section.count() as usize];
        let values = std::cell::RefCell::new(&mut values);
        let values = &values;
        let whole = Contestant {
            line: line("outcore", case, "read", useful),
            prepare: Box::new(move || {
                values.borrow_mut().fill(0.0);
                Ok(())
            }),
            work: Box::new(move || array.read_into(section, &mut values.borrow_mut()[..])),
            check: Box::new(move || values.borrow().iter().all(|value| *value == 1.0)),
            batch: 1,
        };
        let lines = contest(comm, vec![planner, reader, whole], options.repeats)?;
        Ok::<_, outcore::Error>(lines)
    });
    Ok(outcome?.swap_remove(0))
}
