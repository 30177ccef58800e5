//! [`StorageProfile`]: what a storage costs. The cost model needs nothing else.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use outcore_storage::DeviceModel;
use serde::{Deserialize, Serialize};

use crate::format::place::is_address;

/// What an operation costs: so much each time, and so much a byte.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct Cost {
    /// Seconds each time.
    pub each: f64,
    /// Seconds a byte.
    pub byte: f64,
}

impl Cost {
    /// The seconds of so many operations on so many bytes.
    pub fn of(self, times: u64, bytes: u64) -> f64 {
        self.each * times as f64 + self.byte * bytes as f64
    }
}

/// What a storage costs, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
pub struct StorageProfile {
    /// A read of data that are in the page cache.
    pub cached_read: Cost,
    /// A read of data that are not, alone.
    pub cold_read: Cost,
    /// How many cold reads proceed at the same time.
    pub parallel: f64,
    /// A write.
    pub write: Cost,
    /// Copying one run between buffers.
    pub copy: Cost,
    /// Copying one run out of a mapping of cached data.
    pub mapped: Cost,
    /// The first write to a mapped page since it was last written back.
    pub first_write: f64,
    /// The first read of mapped pages that have just come from the device.
    pub fault: f64,
    /// How many bytes the system reads by itself where a mapping is touched
    /// that is not in the page cache.
    pub read_ahead: u64,
    /// Seconds a byte of reading so from one end of a long stretch to the other.
    pub ahead: f64,
    /// The device, if its model is known: then requests are rehearsed on it, and
    /// only memory costs what is said here.
    #[serde(skip)]
    pub device: Option<DeviceModel>,
}

impl Default for StorageProfile {
    /// A local file on a solid-state disk.
    fn default() -> Self {
        Self {
            cached_read: Cost {
                each: 0.7e-6,
                byte: 0.11e-9,
            },
            cold_read: Cost {
                each: 50e-6,
                byte: 0.65e-9,
            },
            parallel: 10.0,
            write: Cost {
                each: 4e-6,
                byte: 0.25e-9,
            },
            copy: Cost {
                each: 1.5e-9,
                byte: 0.08e-9,
            },
            mapped: Cost {
                each: 2.5e-9,
                byte: 0.09e-9,
            },
            first_write: 5e-6,
            fault: 2.5e-6,
            read_ahead: 128 << 10,
            ahead: 0.27e-9,
            device: None,
        }
    }
}

impl StorageProfile {
    /// The costs of a storage that is a simulated device, such as that of a
    /// [`ThrottledStore`](outcore_storage::ThrottledStore).
    pub fn of(device: &DeviceModel) -> Self {
        Self {
            device: Some(*device),
            ..Self::default()
        }
    }

    /// What is assumed of an object store: answers take long to come, but many
    /// come at the same time.
    pub fn far_away() -> Self {
        Self {
            cold_read: Cost {
                each: 30e-3,
                byte: 1e-9,
            },
            parallel: 64.0,
            ..Self::default()
        }
    }

    /// What is assumed of the storage that holds `path` before it was measured:
    /// a local solid-state disk, read ahead as the system says; or an object
    /// store, if it is an address.
    pub fn assumed(path: &Path) -> Self {
        if is_address(path) {
            return Self::far_away();
        }
        let profile = Self::default();
        Self {
            read_ahead: read_ahead(path).unwrap_or(profile.read_ahead),
            ..profile
        }
    }
}

/// How much the system reads ahead on the device that holds `path`.
pub(super) fn read_ahead(path: &Path) -> Option<u64> {
    let device = std::fs::metadata(path).ok()?.dev();
    let (major, minor) = (libc::major(device), libc::minor(device));
    let device = format!("{major}:{minor}");
    // A partition is read ahead as its disk is.
    let text = [
        format!("/sys/class/bdi/{device}/read_ahead_kb"),
        format!("/sys/dev/block/{device}/../queue/read_ahead_kb"),
    ]
    .into_iter()
    .find_map(|path| std::fs::read_to_string(path).ok())?;
    text.trim().parse::<u64>().ok()?.checked_mul(1024)
}
