//! [`Progress`]: how far a long operation is, with rate and time left.

use std::fmt::Write;
use std::sync::OnceLock;
use std::time::Duration;

use indicatif::{
    BinaryBytes, HumanDuration, ProgressBar, ProgressDrawTarget, ProgressState, ProgressStyle,
};
use outcore::{Comm, Op, Result};

/// Shorter work says nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar on standard error, if that is a terminal and the work takes longer
/// than a second.
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    /// Collective: one bar for all ranks of this process, of which each works
    /// on `own_bytes`. `cell` is what they share. Under MPI the process of rank
    /// 0 shows its own part.
    pub(crate) fn shared<'a>(
        cell: &'a OnceLock<Self>,
        label: &'static str,
        comm: &Comm,
        own_bytes: u64,
    ) -> Result<&'a Self> {
        let all = comm.all_reduce(&[own_bytes], Op::Sum)?[0];
        let together = comm.transport().shares_memory();
        let (bytes, shown) = if together {
            (all, true)
        } else {
            (own_bytes, comm.rank() == 0)
        };
        Ok(cell.get_or_init(|| Self::new(label, bytes, shown)))
    }

    /// A bar for work on `bytes` that one rank does for all.
    pub(crate) fn alone(label: &'static str, bytes: u64) -> Self {
        Self::new(label, bytes, true)
    }

    /// One that never appears, for what prints lines itself meanwhile.
    pub(crate) fn silent(cell: &OnceLock<Self>) -> &Self {
        cell.get_or_init(|| Self::new("", 0, false))
    }

    fn new(label: &'static str, bytes: u64, shown: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let style =
            ProgressStyle::with_template("{prefix} [{bar:30}] {bytes} of {total_bytes}, {pace}");
        let style = style.expect("the template is valid");
        bar.set_style(style.progress_chars("=> ").with_key("pace", pace));
        bar.set_prefix(label);
        if shown {
            Self::show_later(bar.clone());
        }
        Self { bar }
    }

    /// Lets the bar appear when the work turns out to be long.
    fn show_later(bar: ProgressBar) {
        std::thread::spawn(move || {
            std::thread::sleep(PATIENCE);
            if !bar.is_finished() {
                bar.set_draw_target(ProgressDrawTarget::stderr());
                bar.enable_steady_tick(Duration::from_millis(200));
            }
        });
    }

    /// Removes the bar.
    pub(crate) fn finish(&self) {
        self.bar.finish_and_clear();
    }

    /// So many bytes are done.
    pub(crate) fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }
}

/// Rate and time left, which nobody knows before something is done.
fn pace(state: &ProgressState, to: &mut dyn Write) {
    // Writing to the bar does not fail.
    let _ = match state.pos() {
        0 => write!(to, "time left unknown"),
        _ => write!(
            to,
            "{}/s, {:#} left",
            BinaryBytes(state.per_sec() as u64),
            HumanDuration(state.eta())
        ),
    };
}

impl Drop for Progress {
    fn drop(&mut self) {
        self.finish();
    }
}
