//! What the papers say of tables 1 to 8, judged by the printed and by the
//! simulated numbers.
//!
//! "Better" is faster at all; "considerably better" is at least 1.15 times as
//! fast; "the same" is within 5%.

use outcore::{Direction, Result};

use super::access::{Access, square};
use super::delta::DELTA;
use super::printed::cases;
use super::report::{Claim, Side, Verdict, range};
use super::two_phase::{Method, Row};
use super::{Table, geometry};

const CONSIDERABLY: f64 = 1.15;

/// The claims of a table.
pub(super) fn of(table: Table, rows: &[Row]) -> Result<Vec<Claim>> {
    let rows = Rows(rows);
    let mut claims = match table {
        Table::T1 => common(&rows),
        Table::T2 => overlapping(&rows),
        Table::T3 => distinct_reads(&rows)?,
        Table::T4 => distinct_writes(&rows),
        Table::T5 => strided_reads(&rows),
        Table::T6 => strided_writes(&rows),
        Table::T7 => scalability(&rows)?,
        _ => large(&rows),
    };
    if !matches!(table, Table::T7 | Table::T8) {
        claims.push(Claim::judged(
            "two phases with dynamic partitioning never take longer than with static",
            |side| rows.compare(side, Method::Static, Method::Dynamic, 1.0),
        ));
    }
    claims.push(rows.messages());
    Ok(claims)
}

/// The rows of a table, and what can be said of some of them.
struct Rows<'a>(&'a [Row]);

impl Rows<'_> {
    /// The rows that begin with one of these, without those of the thesis.
    fn named(&self, names: &[&str]) -> Vec<&Row> {
        let is = |row: &&Row| {
            let name = row.case.row.split(' ').next().unwrap_or("");
            !row.case.thesis && names.contains(&name)
        };
        self.0.iter().filter(is).collect()
    }

    fn of_papers(&self) -> Vec<&Row> {
        self.0.iter().filter(|row| !row.case.thesis).collect()
    }

    /// Whether `slower` takes at least `times` as long as `faster` in all rows of
    /// the papers.
    fn compare(&self, side: Side, slower: Method, faster: Method, times: f64) -> Verdict {
        compare(&self.of_papers(), side, slower, faster, times)
    }

    /// The thesis' claim on messages, which it prints no number for.
    fn messages(&self) -> Claim {
        let shares: Vec<f64> = self.0.iter().map(|row| 100.0 * row.messages).collect();
        let (low, high) = range(&shares);
        Claim {
            text: "\"the time spent on communication [is] less than 5% of the total time\" (thesis)",
            paper: Verdict {
                holds: true,
                because: "said without numbers".into(),
            },
            simulation: Verdict {
                holds: high < 5.0,
                because: format!(
                    "{low:.1}% to {high:.1}%, below 5% in {} of {} rows",
                    shares.iter().filter(|share| **share < 5.0).count(),
                    shares.len()
                ),
            },
        }
    }
}

/// Whether one method takes at least `times` as long as another in some rows.
fn compare(rows: &[&Row], side: Side, slower: Method, faster: Method, times: f64) -> Verdict {
    let ratio = |row: &&Row| row.seconds(side, slower) / row.seconds(side, faster);
    let ratios: Vec<f64> = rows.iter().map(ratio).collect();
    let (low, high) = range(&ratios);
    let fails = rows.iter().filter(|row| ratio(row) < times);
    let fails: Vec<&str> = fails.map(|row| row.case.row.as_str()).collect();
    let mut because = taking(slower, faster, (low, high));
    if !fails.is_empty() {
        because += &format!(
            "; not in {} of {}: {}",
            fails.len(),
            rows.len(),
            fails.join(", ")
        );
    }
    Verdict {
        holds: fails.is_empty(),
        because,
    }
}

/// Whether two methods take the same time in some rows.
fn same(rows: &[&Row], side: Side, one: Method, other: Method) -> Verdict {
    let ratio = |row: &&Row| row.seconds(side, one) / row.seconds(side, other);
    let (low, high) = range(&rows.iter().map(ratio).collect::<Vec<_>>());
    Verdict {
        holds: low > 0.95 && high < 1.05,
        because: taking(one, other, (low, high)),
    }
}

/// How many times as long one method takes as another.
fn taking(one: Method, other: Method, (low, high): (f64, f64)) -> String {
    let times = match low == high {
        true => format!("{low:.2}"),
        false => format!("{low:.2} to {high:.2}"),
    };
    format!(
        "{} takes {times} times as long as {}",
        one.name(),
        other.name()
    )
}

/// Whether the thesis' numbers are those of the papers.
fn printed_twice(rows: &Rows) -> Claim {
    Claim::judged(
        "the thesis and the papers give the same times (as one expects)",
        |side| {
            let thesis = rows.0.iter().filter(|row| row.case.thesis);
            let differ = thesis.filter(|row| {
                let other = rows.named(&[row.case.row.split(' ').next().unwrap_or("")]);
                let seconds = |row: &Row| Method::ALL.map(|method| row.seconds(side, method));
                other.iter().any(|other| seconds(other) != seconds(row))
            });
            let differ: Vec<&str> = differ.map(|row| row.case.row.as_str()).collect();
            Verdict {
                holds: differ.is_empty(),
                because: match differ.is_empty() {
                    true => "all are the same".into(),
                    false => format!("they differ in {}", differ.join(", ")),
                },
            }
        },
    )
}

fn common(rows: &Rows) -> Vec<Claim> {
    let (direct, fixed, dynamic) = (Method::Direct, Method::Static, Method::Dynamic);
    vec![
        Claim::judged(
            "\"In all cases, the extended two-phase method performed considerably better than the direct \
             method\", static",
            |side| rows.compare(side, direct, fixed, CONSIDERABLY),
        ),
        Claim::judged("the same, dynamic", |side| {
            rows.compare(side, direct, dynamic, CONSIDERABLY)
        }),
        Claim::judged(
            "\"the extended two-phase method took much less time with dynamic partitioning\" (all but V)",
            |side| {
                let spread = rows.named(&["I", "II", "III", "IV", "VI"]);
                compare(&spread, side, fixed, dynamic, CONSIDERABLY)
            },
        ),
        Claim::judged(
            "V: file domains \"were identical, and so was the performance\", static and dynamic",
            |side| same(&rows.named(&["V"]), side, fixed, dynamic),
        ),
    ]
}

fn overlapping(rows: &Rows) -> Vec<Claim> {
    let (direct, fixed, dynamic) = (Method::Direct, Method::Static, Method::Dynamic);
    vec![
        Claim::judged(
            "\"The extended two-phase method with dynamic partitioning performed the best in all cases\"",
            |side| rows.compare(side, direct, dynamic, 1.0),
        ),
        Claim::judged(
            "IV, V, VI: \"the direct method performed better than [...] static partitioning\"",
            |side| compare(&rows.named(&["IV", "V", "VI"]), side, fixed, direct, 1.0),
        ),
        Claim::judged(
            "\"it took less time to read the sections in case I\" than in II, which overlap less",
            |side| {
                let time = |name| rows.named(&[name])[0].seconds(side, dynamic);
                Verdict {
                    holds: time("I") < time("II"),
                    because: format!("{:.2} s and {:.2} s", time("I"), time("II")),
                }
            },
        ),
    ]
}

fn distinct_reads(rows: &Rows) -> Result<Vec<Claim>> {
    let (direct, fixed, dynamic) = (Method::Direct, Method::Static, Method::Dynamic);
    let mut shared = Vec::new();
    for row in rows.of_papers() {
        let pairs = row.sections.windows(2);
        let both: Result<Vec<_>> = pairs
            .map(|pair| pair[0].intersect(&pair[1]).map_err(geometry))
            .collect();
        if both?.iter().any(|both| !both.is_empty()) {
            shared.push(row.case.row.as_str());
        }
    }
    let apart = |_| Verdict {
        holds: shared.is_empty(),
        because: format!(
            "neighbours have elements in common in {}",
            shared.join(" and ")
        ),
    };
    Ok(vec![
        Claim::judged("the sections are distinct (here and in table 4)", apart),
        Claim::judged(
            "I: \"identical to [...] the direct method, and they took the same time\", dynamic",
            |side| same(&rows.named(&["I"]), side, direct, dynamic),
        ),
        Claim::judged(
            "I: \"static partitioning took longer than the direct method\"",
            |side| compare(&rows.named(&["I"]), side, fixed, direct, 1.0),
        ),
        Claim::judged(
            "II to IV, interleaved: two phases \"performed considerably better\", dynamic",
            |side| {
                let rows = rows.named(&["II", "III", "IV"]);
                compare(&rows, side, direct, dynamic, CONSIDERABLY)
            },
        ),
        Claim::judged(
            "II: \"Static partitioning did not perform well\", slower than direct",
            |side| compare(&rows.named(&["II"]), side, fixed, direct, 1.0),
        ),
        Claim::judged(
            "V and VI: \"even for these cases, the extended two-phase method performed the best\", dynamic",
            |side| compare(&rows.named(&["V", "VI"]), side, direct, dynamic, 1.0),
        ),
        printed_twice(rows),
        Claim::judged(
            "I: \"performs only slightly better\" (thesis, whose numbers differ from the papers'), dynamic",
            |side| {
                let thesis: Vec<&Row> = rows.0.iter().filter(|row| row.case.thesis).collect();
                compare(&thesis, side, direct, dynamic, 1.0)
            },
        ),
    ])
}

fn distinct_writes(rows: &Rows) -> Vec<Claim> {
    let (direct, fixed, dynamic) = (Method::Direct, Method::Static, Method::Dynamic);
    let before = |side| {
        let thesis = rows.0.iter().filter(|row| row.case.thesis);
        let slower = thesis.map(|row| {
            let name = row.case.row.split(' ').next().unwrap_or("");
            row.seconds(side, dynamic) / rows.named(&[name])[0].seconds(side, dynamic)
        });
        let (low, high) = range(&slower.collect::<Vec<_>>());
        Verdict {
            holds: low > 1.0,
            because: format!("the thesis' I, II, III take {low:.2} to {high:.2} times as long"),
        }
    };
    vec![
        Claim::judged(
            "I: the direct method and two phases \"took the same time\", dynamic",
            |side| same(&rows.named(&["I"]), side, direct, dynamic),
        ),
        Claim::judged("I: static partitioning \"took longer\"", |side| {
            compare(&rows.named(&["I"]), side, fixed, direct, 1.0)
        }),
        Claim::judged(
            "\"In the other cases [dynamic partitioning] performed considerably better than the direct method\"",
            |side| {
                let others = rows.named(&["II", "III", "IV", "V", "VI"]);
                compare(&others, side, direct, dynamic, CONSIDERABLY)
            },
        ),
        printed_twice(rows),
        Claim::judged(
            "writing takes longer with \"an extra read for each write\" where there are no holes (thesis)",
            before,
        ),
        Claim::judged(
            "I: \"the Direct Method performs better because it does not require the extra read\" (thesis)",
            |side| {
                let is = |row: &&Row| row.case.row == "I (thesis)";
                let thesis: Vec<&Row> = rows.0.iter().filter(is).collect();
                compare(&thesis, side, dynamic, direct, 1.0)
            },
        ),
    ]
}

fn strided_reads(rows: &Rows) -> Vec<Claim> {
    let (direct, fixed, dynamic) = (Method::Direct, Method::Static, Method::Dynamic);
    vec![
        Claim::judged(
            "\"In all cases, the extended two-phase method was more than 20 times faster\", dynamic",
            |side| rows.compare(side, direct, dynamic, 20.0),
        ),
        Claim::judged(
            "I: \"static and dynamic partitioning took the same time\"",
            |side| same(&rows.named(&["I"]), side, fixed, dynamic),
        ),
    ]
}

fn strided_writes(rows: &Rows) -> Vec<Claim> {
    vec![Claim::judged(
        "\"Even for writing sections, the extended two-phase method improved I/O performance considerably\"",
        |side| rows.compare(side, Method::Direct, Method::Dynamic, CONSIDERABLY),
    )]
}

/// The rows with some names, of one direction, on some numbers of processors.
fn on<'a>(
    rows: &Rows<'a>,
    names: &[&str],
    direction: Direction,
    processors: impl Fn(u64) -> bool,
) -> Vec<&'a Row> {
    let is = |row: &&'a Row| {
        let name = row.case.row.split(' ').next().unwrap_or("");
        names.contains(&name) && row.case.direction == direction && processors(row.case.processors)
    };
    rows.0.iter().filter(is).collect()
}

const EVERY: [&str; 8] = ["I", "II", "III", "IV", "V", "VI", "VII", "VIII"];

/// On 16 processors and more, two phases write faster.
fn many_write_faster(rows: &Rows) -> Claim {
    Claim::judged(
        "writing \"for large number of processors (>= 16) [...] performed better [...] in spite of the extra read\"",
        |side| {
            let many = on(rows, &EVERY, Direction::Write, |processors| {
                processors >= 16
            });
            compare(&many, side, Method::Direct, Method::Dynamic, 1.0)
        },
    )
}

/// How many times as long something takes on 128 processors as on 4.
fn growth(rows: &Rows, name: &str, side: Side, method: Method) -> f64 {
    let time = |processors| {
        let found = on(rows, &[name], Direction::Read, |count| count == processors);
        found[0].seconds(side, method)
    };
    time(128) / time(4)
}

fn scalability(all: &Rows) -> Result<Vec<Claim>> {
    let (direct, dynamic) = (Method::Direct, Method::Dynamic);
    let grows = |side, name, method, most: f64| {
        let growth = growth(all, name, side, method);
        Verdict {
            holds: growth <= most,
            because: format!("{growth:.2} times as long on 128 processors as on 4"),
        }
    };
    let poorly = |side| {
        let growths: Vec<f64> = ["II", "IV", "VIII"]
            .iter()
            .map(|name| growth(all, name, side, direct))
            .collect();
        let (low, high) = range(&growths);
        Verdict {
            holds: low >= 2.0,
            because: format!("{low:.2} to {high:.2} times as long on 128 processors as on 4"),
        }
    };
    Ok(vec![
        Claim::judged(
            "I: \"the time taken increased from 1.282 sec. to only 2.130 sec.\" on 32 times the processors",
            |side| grows(side, "I", dynamic, 2.0),
        ),
        Claim::judged(
            "\"In some cases, such as case II, the time taken even decreased\"",
            |side| grows(side, "II", dynamic, 1.0),
        ),
        Claim::judged(
            "\"The direct method performed quite poorly [...] especially for cases II, IV, and VIII\": twice the time",
            poorly,
        ),
        Claim::judged(
            "V, VI on 4 processors: two phases \"took longer for writing, because of the extra read\"",
            |side| {
                let few = on(all, &["V", "VI"], Direction::Write, |processors| {
                    processors == 4
                });
                compare(&few, side, dynamic, direct, 1.0)
            },
        ),
        many_write_faster(all),
        Claim::judged(
            "VII, VIII: \"for sections with non-unit strides [...] considerably better than the direct method\"",
            |side| {
                let strided = all.named(&["VII", "VIII"]);
                compare(&strided, side, direct, dynamic, CONSIDERABLY)
            },
        ),
        repeated(all)?,
    ])
}

/// Rows of tables 1, 2 and 6 that table 7 has again, of the direct method.
fn repeated(all: &Rows) -> Result<Claim> {
    let pairs = [
        ("T1", "III", "I", Direction::Read),
        ("T1", "V", "II", Direction::Read),
        ("T2", "VII", "IV", Direction::Read),
        ("T6", "I", "VII", Direction::Write),
    ];
    let mut ratios = [Vec::new(), Vec::new()];
    for (table, name, again, direction) in pairs {
        let again = on(all, &[again], direction, |processors| processors == 16);
        for case in cases(table)?.iter().filter(|case| case.row == name) {
            let access = Access {
                array: &square(case.extent)?,
                sections: &case.sections()?,
                direction,
            };
            let before = [case.seconds[0].unwrap_or(f64::NAN), access.direct(&DELTA)?];
            for side in [Side::Paper, Side::Simulated] {
                let ratio = before[side as usize] / again[0].seconds(side, Method::Direct);
                ratios[side as usize].push(ratio.max(1.0 / ratio));
            }
        }
    }
    Ok(Claim::judged(
        "the same sections take the direct method as long as in tables 1, 2 and 6 (as one expects)",
        |side| {
            let (low, high) = range(&ratios[side as usize]);
            Verdict {
                holds: high < 1.05,
                because: format!("they differ by a factor of {low:.2} to {high:.2}"),
            }
        },
    ))
}

fn large(all: &Rows) -> Vec<Claim> {
    let (direct, dynamic) = (Method::Direct, Method::Dynamic);
    vec![
        Claim::judged(
            "reading, two phases are better, but for IV on 4 and 8 processors (as the table shows)",
            |side| {
                let others = ["I", "II", "III", "V", "VI"];
                let mut rows = on(all, &others, Direction::Read, |_| true);
                rows.extend(on(all, &["IV"], Direction::Read, |processors| {
                    processors >= 16
                }));
                compare(&rows, side, direct, dynamic, 1.0)
            },
        ),
        Claim::judged(
            "IV on 4 and 8 processors: the direct method reads faster (as the table shows)",
            |side| {
                let few = on(all, &["IV"], Direction::Read, |processors| processors <= 8);
                compare(&few, side, dynamic, direct, 1.0)
            },
        ),
        Claim::judged(
            "V on 4 and 8 processors: the direct method writes faster (as the table shows)",
            |side| {
                let few = on(all, &["V"], Direction::Write, |processors| processors <= 8);
                compare(&few, side, dynamic, direct, 1.0)
            },
        ),
        many_write_faster(all),
        Claim::judged(
            "VI, figures 10 and 11: the gain grows with the processors, from 4 to 128",
            |side| {
                let gain = |direction, count| {
                    on(all, &["VI"], direction, |processors| processors == count)[0].ratio(side)
                };
                let both =
                    [Direction::Read, Direction::Write].map(|way| (gain(way, 4), gain(way, 128)));
                Verdict {
                    holds: both.iter().all(|(few, many)| few < many),
                    because: format!(
                        "reading {:.1} to {:.1}, writing {:.1} to {:.1} times as fast",
                        both[0].0, both[0].1, both[1].0, both[1].1
                    ),
                }
            },
        ),
    ]
}
