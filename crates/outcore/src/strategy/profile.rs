//! [`StorageProfile`]: what a storage costs. The cost model needs nothing else.

use serde::{Deserialize, Serialize};

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
                each: 70e-6,
                byte: 0.8e-9,
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
                byte: 0.12e-9,
            },
            first_write: 10e-6,
        }
    }
}

impl StorageProfile {
    /// A read when the share `cached` of the data is in the page cache and
    /// many reads are issued at once.
    pub fn read(&self, cached: f64) -> Cost {
        let cold = 1.0 - cached;
        Cost {
            each: cached * self.cached_read.each + cold * self.cold_read.each / self.parallel,
            byte: cached * self.cached_read.byte + cold * self.cold_read.byte,
        }
    }
}
