//! `outcore explain`: what moving a section would do, and why.

use std::time::Instant;

use clap::Args;
use outcore::{Array, Estimate, Pieces, Result, Section, Strategy, Tuning};
use serde_json::json;

use crate::bytes;
use crate::ranks::{once, print};
use crate::selection::Selection;
use crate::tuning::{Op, TuningOptions};

/// The most that --analyze holds in memory.
const PIECE: u64 = 64 << 20;

/// Say how a section would be moved, what each strategy would cost, and why
///
/// The costs are those of the storage (see `outcore calibrate`) and of the
/// present state of the page cache. With --analyze the section is really read,
/// by every strategy in turn, and the measured times stand beside the
/// predicted ones.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore explain field.oc '::16, ::16'
  outcore explain field.oc '(1:100:1, 1:4096:1)' --op write
  outcore explain field.oc '::16, ::16' --analyze")]
pub(crate) struct Explain {
    #[command(flatten)]
    selection: Selection,
    /// What is to be done
    #[arg(long, value_enum, default_value = "read")]
    op: Op,
    /// Read the section by every strategy, and say how long each took
    #[arg(long)]
    analyze: bool,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tuning: TuningOptions,
}

impl Explain {
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.selection.section.depends_on_rank() {
            return Err(format!(
                "section '{}' differs from rank to rank, but one rank's access is explained",
                self.selection.section
            ));
        }
        if self.analyze && self.op == Op::Write {
            return Err("--analyze reads; it cannot be used with --op write".into());
        }
        Ok(())
    }

    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let array = Array::open(&self.selection.array)?.tuned(self.tuning.tuning());
            let section = self.selection.of(&array, 0, 1)?;
            let direction = self.op.direction();
            let cached = array.cached(&section)?;
            let estimates = array.estimates(&section, direction)?;
            let plan = array.plan(&section, direction)?;
            let mut measured = Vec::new();
            if self.analyze {
                for estimate in &estimates {
                    let tuning = self.tuning.tuning();
                    let strategy = estimate.strategy;
                    measured.push(measure(&array, &section, Tuning { strategy, ..tuning })?);
                }
            }
            if self.json {
                let rows = estimates.iter().enumerate().map(|(at, estimate)| {
                    json!({
                        "strategy": estimate.strategy.name(),
                        "predicted_s": estimate.seconds,
                        "measured_s": measured.get(at),
                        "requests": estimate.requests,
                        "bytes": estimate.bytes,
                    })
                });
                let answer = json!({
                    "array": array.name(),
                    "section": section.to_string(),
                    "useful_bytes": plan.useful_bytes(),
                    "cached": cached,
                    "chosen": plan.strategy().name(),
                    "strategies": rows.collect::<Vec<_>>(),
                });
                return print(&format!("{answer:#}\n"));
            }
            let mut text = format!(
                "array     {}\nsection   [{section}] of {}\ncached    {}\n{plan}\n",
                array.name(),
                outcore::shape_text(array.shape()),
                cached.map_or("unknown".into(), |share| format!("{:.0}%", share * 100.0)),
            );
            text += &table(&estimates, &measured);
            text += &self.reason(&estimates, plan.strategy());
            print(&text)
        })
    }

    fn reason(&self, estimates: &[Estimate], chosen: Strategy) -> String {
        let (first, second) = (&estimates[0], &estimates[1]);
        if first.bytes == 0 {
            return "there is nothing to move\n".into();
        }
        let sieves = first.strategy == Strategy::Sieving && first.has_gaps;
        if self.op == Op::Write && sieves && chosen != Strategy::Sieving {
            return format!(
                "{chosen} is chosen: sieving is expected to be faster, but writes back what is \
                 between the elements, so it must be asked for\n"
            );
        }
        if first.strategy != chosen {
            return format!(
                "{chosen} was asked for; {} is expected to be fastest\n",
                first.strategy
            );
        }
        format!(
            "{chosen} is expected to be fastest: {} requests for {}, {:.1} times as fast as {}\n",
            first.requests,
            bytes::show(first.bytes),
            second.seconds / first.seconds,
            second.strategy
        )
    }
}

/// The best of three reads by one strategy, in pieces that fit into memory.
fn measure(array: &Array, section: &Section, tuning: Tuning) -> Result<f64> {
    let array = array.tuned(tuning);
    let size = array.layout().element_size();
    let mut values = Vec::new();
    let mut best = f64::INFINITY;
    for _ in 0..3 {
        let start = Instant::now();
        for piece in Pieces::new(section, array.layout().slowest_first(), PIECE / size) {
            values.resize((piece.count() * size) as usize, 0);
            array.read_bytes(&piece, &mut values)?;
        }
        best = best.min(start.elapsed().as_secs_f64());
    }
    Ok(best)
}

fn table(estimates: &[Estimate], measured: &[f64]) -> String {
    let mut text = format!(
        "{:<10} {:>12} {:>12} {:>14} {:>14}\n",
        "strategy", "requests", "bytes", "predicted ms", "measured ms"
    );
    for (at, estimate) in estimates.iter().enumerate() {
        let took = measured
            .get(at)
            .map_or(String::new(), |s| format!("{:.3}", s * 1e3));
        text += &format!(
            "{:<10} {:>12} {:>12} {:>14.3} {took:>14}\n",
            estimate.strategy,
            estimate.requests,
            bytes::show(estimate.bytes),
            estimate.seconds * 1e3,
        );
    }
    text
}
