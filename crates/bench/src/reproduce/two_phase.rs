//! Tables 1 to 8 of the papers on the extended two-phase method (Thakur and
//! Choudhary 1996; Thakur 1995, chapter 6): sections of all processors, moved
//! directly, and in two phases with static and with dynamic file domains, on the
//! simulated [`Delta`].
//!
//! Rows that the thesis prints with other numbers than the papers stand beside
//! them; of these the writes always read before.

use outcore::{DomainKind, Result, Section};

use super::Table;
use super::access::{Access, ReadBefore, square};
use super::agreement::Agreement;
use super::claims;
use super::delta::{DELTA, Delta};
use super::printed::{Case, cases};
use super::report::{DIRECT, DYNAMIC, RATIO, Report, STATIC, Side, Value};

/// A way to move sections.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Method {
    Direct,
    Static,
    Dynamic,
}

impl Method {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Direct => "direct",
            Self::Static => "static",
            Self::Dynamic => "dynamic",
        }
    }

    pub(super) const ALL: [Self; 3] = [Self::Direct, Self::Static, Self::Dynamic];

    fn quantity(self) -> &'static str {
        match self {
            Self::Direct => DIRECT,
            Self::Static => STATIC,
            Self::Dynamic => DYNAMIC,
        }
    }
}

/// A row of a table, printed and simulated.
#[derive(Debug, Clone)]
pub(super) struct Row {
    pub(super) case: Case,
    pub(super) sections: Vec<Section>,
    /// Seconds: direct, static, dynamic, where they are printed.
    pub(super) simulated: [Option<f64>; 3],
    /// Which share of the time of two phases (dynamic) the messages take.
    pub(super) messages: f64,
}

impl Row {
    /// The seconds of a method, NaN where they are not printed.
    pub(super) fn seconds(&self, side: Side, method: Method) -> f64 {
        let seconds = match side {
            Side::Paper => self.case.seconds,
            Side::Simulated => self.simulated,
        };
        seconds[method as usize].unwrap_or(f64::NAN)
    }

    /// How many times as long the direct method takes as two phases with dynamic
    /// domains.
    pub(super) fn ratio(&self, side: Side) -> f64 {
        self.seconds(side, Method::Direct) / self.seconds(side, Method::Dynamic)
    }
}

/// The rows of a table, simulated on a machine.
pub(super) fn rows(delta: &Delta, table: &str) -> Result<Vec<Row>> {
    let cases = cases(table)?;
    let Some(extent) = cases.first().map(|case| case.extent) else {
        return Ok(Vec::new());
    };
    let array = square(extent)?;
    let row = |case: Case| {
        let sections = case.sections()?;
        let access = Access {
            array: &array,
            sections: &sections,
            direction: case.direction,
        };
        let before = match case.thesis {
            true => ReadBefore::Always,
            false => ReadBefore::IfHoles,
        };
        let dynamic = access.two_phase(delta, DomainKind::Dynamic, before)?;
        let fixed = match case.seconds[1] {
            Some(_) => Some(access.two_phase(delta, DomainKind::Static, before)?),
            None => None,
        };
        Ok(Row {
            simulated: [
                Some(access.direct(delta)?),
                fixed.map(|took| took.seconds),
                Some(dynamic.seconds),
            ],
            messages: dynamic.messages / dynamic.seconds,
            sections,
            case,
        })
    };
    cases.into_iter().map(row).collect()
}

/// The table.
pub(super) fn report(table: Table) -> Result<Report> {
    let rows = rows(&DELTA, table.name())?;
    let mut values = Vec::new();
    for row in &rows {
        let mut value = |quantity, paper: f64, simulated| {
            values.push(Value {
                case: row.case.row.clone(),
                quantity,
                paper,
                simulated,
            });
        };
        for method in Method::ALL {
            if let (Some(paper), Some(simulated)) = (
                row.case.seconds[method as usize],
                row.simulated[method as usize],
            ) {
                value(method.quantity(), paper, simulated);
            }
        }
        let ratio = |side| (row.ratio(side) * 1e4).round() / 1e4;
        value(RATIO, ratio(Side::Paper), ratio(Side::Simulated));
    }
    let mut report = Report {
        table: table.name(),
        title: title(table).into(),
        notes: DELTA.text(),
        values,
        claims: claims::of(table, &rows)?,
    };
    let agreement = Agreement::of([&report]).text();
    report.notes.extend(agreement);
    Ok(report)
}

fn title(table: Table) -> &'static str {
    match table {
        Table::T1 => "Reading common sections of 4096x4096, 16 processors",
        Table::T2 => "Reading overlapping sections of 4096x4096, 16 processors",
        Table::T3 => "Reading distinct sections of 4096x4096, 16 processors",
        Table::T4 => "Writing distinct sections of 4096x4096, 16 processors",
        Table::T5 => "Reading sections with strides of 4096x4096, 16 processors",
        Table::T6 => "Writing sections with strides of 4096x4096, 16 processors",
        Table::T7 => "Sections of 4096x4096 on 4 to 128 processors",
        _ => "Large sections of 16384x16384 on 4 to 128 processors",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the fit of the machine makes small: squares of logarithms, of
    /// simulated over printed seconds and ratios, in tables 1 to 6.
    fn misfit(delta: &Delta) -> f64 {
        let mut sum = 0.0;
        for table in ["T1", "T2", "T3", "T4", "T5", "T6"] {
            for row in rows(delta, table).unwrap() {
                let mut add = |simulated: f64, printed: f64| {
                    sum += (simulated / printed).ln().abs().min(1.5).powi(2);
                };
                for method in Method::ALL {
                    let seconds = |side| row.seconds(side, method);
                    add(seconds(Side::Simulated), seconds(Side::Paper));
                }
                add(row.ratio(Side::Simulated), row.ratio(Side::Paper));
            }
        }
        sum
    }

    /// Multiplies a constant.
    type Change = fn(&mut Delta, f64);

    #[test]
    fn changing_a_constant_of_the_machine_by_a_quarter_does_not_pay() {
        let constants: [(&str, Change); 10] = [
            ("read_call", |delta, by| scale(&mut delta.read_call, by)),
            ("write_call", |delta, by| scale(&mut delta.write_call, by)),
            ("same_block", |delta, by| scale(&mut delta.same_block, by)),
            ("read_block", |delta, by| scale(&mut delta.read_block, by)),
            ("write_block", |delta, by| scale(&mut delta.write_block, by)),
            ("fetch", |delta, by| scale(&mut delta.fetch, by)),
            ("flush", |delta, by| scale(&mut delta.flush, by)),
            ("begin", |delta, by| scale(&mut delta.begin, by)),
            ("byte", |delta, by| delta.byte *= by),
            ("message_byte", |delta, by| delta.message_byte *= by),
        ];
        let best = misfit(&DELTA);
        let mut better = Vec::new();
        for (name, change) in constants {
            for by in [0.8, 1.25] {
                let mut delta = DELTA;
                change(&mut delta, by);
                let misfit = misfit(&delta);
                // A change in the order of ranks alone makes up to 1%.
                if misfit < 0.98 * best {
                    better.push(format!("{name} * {by}: {misfit:.4}"));
                }
            }
        }
        assert!(better.is_empty(), "{best:.4}, but {better:?}");
    }

    fn scale(time: &mut u64, by: f64) {
        *time = (*time as f64 * by) as u64;
    }
}
