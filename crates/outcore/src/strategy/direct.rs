//! The direct method: one access for each run (Thakur 1995, section 5.5.1).
//! The best there is when runs are long, and when the storage answers small
//! requests as fast as large ones.

use outcore_geometry::Runs;

use crate::plan::Plan;

/// Plans one access for each run.
pub(crate) fn plan(runs: Runs, start: u64, swap: Option<usize>) -> Plan {
    Plan {
        runs,
        start,
        swap,
        strategy: "direct",
    }
}
