//! [`PeakMemory`]: how much memory the process really used.
//!
//! Counted is what belongs to the process alone and what it shares with other
//! ranks (`RssAnon + RssShmem`); pages of mapped files are the kernel's.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

/// Between two looks; a peak shorter than this can be missed.
const PERIOD: Duration = Duration::from_millis(2);

/// Watches the memory of this process until asked for the peak.
#[derive(Debug)]
pub struct PeakMemory {
    peak: Arc<AtomicU64>,
    stop: Arc<AtomicBool>,
    watcher: Option<JoinHandle<()>>,
}

impl PeakMemory {
    /// Starts watching.
    pub fn watch() -> Self {
        let (peak, stop) = (
            Arc::new(AtomicU64::new(0)),
            Arc::new(AtomicBool::new(false)),
        );
        let (seen, ended) = (peak.clone(), stop.clone());
        let watcher = std::thread::spawn(move || {
            while !ended.load(Ordering::Relaxed) {
                seen.fetch_max(resident_bytes().unwrap_or(0), Ordering::Relaxed);
                std::thread::sleep(PERIOD);
            }
        });
        Self {
            peak,
            stop,
            watcher: Some(watcher),
        }
    }

    /// The most bytes seen so far; `None` where the system does not tell.
    pub fn bytes(&self) -> Option<u64> {
        let now = resident_bytes()?;
        Some(self.peak.fetch_max(now, Ordering::Relaxed).max(now))
    }
}

impl Drop for PeakMemory {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Relaxed);
        if let Some(watcher) = self.watcher.take() {
            let _ = watcher.join();
        }
    }
}

/// What the process holds now.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = |name: &str| -> Option<u64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        line.split_whitespace().nth(1)?.parse().ok()
    };
    Some((kibibytes("RssAnon:")? + kibibytes("RssShmem:")?) * 1024)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn a_large_allocation_is_seen() {
        let peak = PeakMemory::watch();
        let before = peak.bytes().unwrap();
        let block = vec![1u8; 64 << 20];
        assert!(peak.bytes().unwrap() >= before + (60 << 20));
        drop(block);
        assert!(peak.bytes().unwrap() >= before + (60 << 20));
    }
}
