//! What all-to-all costs on the networks of Thakur 1995, chapter 4: the fat tree
//! of the CM-5 ([`fat_tree`]) and the mesh of the Touchstone Delta ([`mesh`]).
//!
//! A step in which `L` bytes go each way takes `alpha + L * max(beta, f *
//! beta_sat)` (section 4.1.3): a start, and each byte either as fast as two
//! processors exchange it or, if `f` messages share a link, as fast as the link
//! carries `f` of them. An algorithm takes the sum over its steps. Several
//! printed formulas are corrected; where, it says beside each.

pub mod contention;
pub mod fat_tree;
pub mod mesh;

/// What messages cost between two processors of a machine, in seconds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Machine {
    /// To begin a step (alpha).
    pub start: f64,
    /// A byte when two exchange with one another (beta_ex).
    pub exchange: f64,
    /// A byte when one sends to another than it receives from (beta_sr).
    pub send_receive: f64,
    /// A byte when one only sends or only receives (beta_s).
    pub single: f64,
    /// A byte on a link that is the bottleneck (beta_sat).
    pub link: f64,
}

impl Machine {
    /// The Touchstone Delta, for messages of so many bytes: from 1.5 KB on they
    /// were *forced* types, with a longer start and faster bytes (section 4.3.7;
    /// its remark that a saturated link carries two exchanges as fast as two
    /// processors make one, and that sending to another than one receives from
    /// costs the same, gives the rest).
    pub fn delta(bytes: f64) -> Self {
        let (start, exchange) = match bytes < 1536.0 {
            true => (75e-6, 0.35e-6),
            false => (150e-6, 0.2e-6),
        };
        Self {
            start,
            exchange,
            send_receive: exchange,
            single: exchange,
            link: exchange / 2.0,
        }
    }

    /// A step in which `bytes` go, at `rate` a byte, and `sharing` messages share
    /// a link.
    fn step(&self, bytes: f64, rate: f64, sharing: f64) -> f64 {
        self.start + bytes * rate.max(sharing * self.link)
    }
}

/// The largest power of two that is not larger than `step`, from 1 on.
fn power_below(step: usize) -> usize {
    1 << step.ilog2()
}
