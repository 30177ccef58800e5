//! [`Account`]: what is known about the access of one rank.

use outcore::{Array, Direction, Error, Estimate, Plan, Result, Section, Strategy};

/// More requests than this are not counted one by one.
const MOST_COUNTED: u64 = 1 << 20;

/// What is known about the access of one rank.
pub(crate) struct Account {
    pub(crate) rank: usize,
    pub(crate) section: Section,
    /// Runs of the section in the file.
    pub(crate) runs: u64,
    /// Bytes of the section.
    pub(crate) useful: u64,
    /// Requests of the plan.
    pub(crate) requests: u64,
    /// Bytes that the plan moves.
    pub(crate) moved: u64,
    pub(crate) plan: Plan,
    /// What each strategy would take, the fastest first; none of chunks that are decoded,
    /// for which there is no other way.
    pub(crate) estimates: Vec<Estimate>,
    /// The seconds that they took, as far as they were measured.
    pub(crate) measured: Vec<Option<f64>>,
    /// The seconds of a plan without an estimate, if they were measured.
    pub(crate) took: Option<f64>,
}

impl Account {
    pub(crate) fn of(
        array: &Array,
        rank: usize,
        section: Section,
        direction: Direction,
    ) -> Result<Self> {
        let wrong = |error: outcore::GeometryError| Error::Invalid(error.to_string());
        let (runs, useful) = array.layout().runs(&section).map_err(wrong)?.totals();
        let plan = array.plan(&section, direction)?;
        let estimates = match plan.strategy() {
            Strategy::Chunked => Vec::new(),
            _ => array.estimates(&section, direction)?,
        };
        let mut account = Self {
            rank,
            section,
            runs,
            useful,
            requests: 0,
            moved: useful,
            measured: vec![None; estimates.len()],
            plan,
            estimates,
            took: None,
        };
        let expected = account
            .chosen()
            .map(|chosen| (chosen.requests, chosen.bytes));
        (account.requests, account.moved) = match expected {
            // A write's requests include reads, which the plan does not count.
            Some(known) if direction == Direction::Write || known.0 > MOST_COUNTED => known,
            Some((0, bytes)) => (0, bytes),
            _ => (account.plan.requests(), account.plan.moved_bytes()),
        };
        Ok(account)
    }

    /// The estimate of the strategy of the plan; none if that was forced where
    /// nobody would choose it.
    pub(crate) fn chosen(&self) -> Option<&Estimate> {
        self.position().map(|at| &self.estimates[at])
    }

    /// The measured seconds of the strategy of the plan.
    pub(crate) fn chosen_measured(&self) -> Option<f64> {
        let known = self.position().and_then(|at| self.measured[at]);
        known.or(self.took)
    }

    /// Whether anything is known about its time.
    pub(crate) fn has_time(&self) -> bool {
        self.chosen().is_some() || self.took.is_some()
    }

    fn position(&self) -> Option<usize> {
        let strategy = self.plan.strategy();
        let mut estimates = self.estimates.iter();
        estimates.position(|estimate| estimate.strategy == strategy)
    }
}
