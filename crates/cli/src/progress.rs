//! [`Progress`]: how far a long operation is, with rate and time left.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Shorter work says nothing.
const PATIENCE: Duration = Duration::from_secs(1);

/// A bar on standard error, if that is a terminal and the work takes longer
/// than a second. Shared by the ranks of one process.
pub(crate) struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    /// For work on `bytes` bytes; only the one that is `shown` draws.
    pub(crate) fn new(label: &'static str, bytes: u64, shown: bool) -> Self {
        let bar = ProgressBar::with_draw_target(Some(bytes), ProgressDrawTarget::hidden());
        let style = ProgressStyle::with_template(
            "{prefix} [{bar:30}] {bytes} of {total_bytes}, {binary_bytes_per_sec}, {eta} left",
        );
        bar.set_style(style.expect("the template is valid").progress_chars("=> "));
        bar.set_prefix(label);
        if shown {
            Self::show_later(bar.clone());
        }
        Self {
            bar,
            start: Instant::now(),
        }
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

    /// So many bytes are done.
    pub(crate) fn add(&self, bytes: u64) {
        self.bar.inc(bytes);
    }

    /// Removes the bar; how long the work took.
    pub(crate) fn finish(&self) -> Duration {
        self.bar.finish_and_clear();
        self.start.elapsed()
    }
}
