//! Tables 9 and 10 of the papers: the input and output of an application, all
//! of it directly and all of it in two phases with dynamic domains, for three
//! sizes and five numbers of processors (Thakur and Choudhary 1996, section 5.2).

use std::ops::Range;

use outcore::{Array, AxisSection, Direction, DomainKind, Result, Section};

use super::access::{Access, ReadBefore, square};
use super::agreement::Agreement;
use super::delta::DELTA;
use super::report::{Claim, DIRECT, DYNAMIC, GAIN, Report, Value};
use super::{Table, geometry, printed};

const EXTENTS: [u64; 3] = [1024, 2048, 4096];
const PROCESSORS: [u64; 5] = [8, 16, 32, 64, 128];

/// A part of an application: sections of all ranks that are read or written at
/// the same time, so many times.
#[derive(Debug, Clone)]
pub(super) struct Step {
    pub(super) sections: Vec<Section>,
    pub(super) direction: Direction,
    pub(super) times: u64,
}

/// A block of rows and columns.
pub(super) fn block(rows: Range<u64>, columns: Range<u64>) -> Result<Section> {
    let axes = [rows, columns].map(|range| AxisSection::span(range.start, range.end));
    Section::new(axes.to_vec()).map_err(geometry)
}

/// The seconds of all steps: direct, dynamic. Every step finds the caches empty.
pub(super) fn seconds(array: &Array, steps: &[Step]) -> Result<[f64; 2]> {
    let mut sums = [0.0; 2];
    for step in steps {
        let access = Access {
            array,
            sections: &step.sections,
            direction: step.direction,
        };
        let dynamic = access.two_phase(&DELTA, DomainKind::Dynamic, ReadBefore::IfHoles)?;
        sums[0] += step.times as f64 * access.direct(&DELTA)?;
        sums[1] += step.times as f64 * dynamic.seconds;
    }
    Ok(sums)
}

/// An application: the steps of arrays of an extent on some processors.
pub(super) type Steps = fn(u64, u64) -> Result<Vec<Step>>;

/// The numbers of a table.
pub(super) fn values(table: Table, steps: Steps) -> Result<Vec<Value>> {
    let mut values = Vec::new();
    for extent in EXTENTS {
        let array = square(extent)?;
        for processors in PROCESSORS {
            let wanted = [("rows", extent), ("procs", processors)];
            let print =
                |method| printed::seconds(table.name(), method, &wanted).unwrap_or(f64::NAN);
            let printed = [print("direct"), print("etp_dynamic")];
            let simulated = seconds(&array, &steps(extent, processors)?)?;
            let gain = |times: [f64; 2]| 100.0 * (times[0] - times[1]) / times[0];
            let case = format!("{extent}x{extent} {processors} processors");
            for (quantity, paper, simulated) in [
                (DIRECT, printed[0], simulated[0]),
                (DYNAMIC, printed[1], simulated[1]),
                (GAIN, gain(printed), gain(simulated)),
            ] {
                values.push(Value {
                    case: case.clone(),
                    quantity,
                    paper,
                    simulated,
                });
            }
        }
    }
    Ok(values)
}

/// The report of a table.
pub(super) fn report(
    table: Table,
    title: &str,
    assumed: &[&str],
    values: Vec<Value>,
    claims: Vec<Claim>,
) -> Report {
    let mut report = Report {
        table: table.name(),
        title: title.into(),
        notes: assumed.iter().map(|note| note.to_string()).collect(),
        values,
        claims,
    };
    report.notes.extend(DELTA.text());
    let agreement = Agreement::of([&report]).text();
    report.notes.extend(agreement);
    report
}
