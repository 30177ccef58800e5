//! A directory with a series, and states that are known from their step.

use std::path::PathBuf;

use outcore::{Checkpoint, Checkpoints, Comm, DistributedArray, Distribution, Result, Snapshot};
use tempfile::TempDir;

/// The shapes of the two variables of a state.
const FIELD: [u64; 2] = [331, 500];
const COUNTS: [u64; 1] = [70_001];

/// A directory that goes away with the value.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().expect("a temporary directory"))
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    /// The directory of the series.
    pub(crate) fn series(&self) -> String {
        self.path("series").to_str().expect("text").into()
    }

    /// The file of an array in the series.
    pub(crate) fn data(&self, checkpoint: &str, array: &str) -> PathBuf {
        let file = format!("series/{checkpoint}/{array}.oc/data.bin");
        self.path(&file)
    }

    /// All names in the directory of the series, hidden ones, too, but for the
    /// lock.
    pub(crate) fn names(&self) -> Vec<String> {
        let entries = std::fs::read_dir(self.series()).expect("the series exists");
        let names = entries.map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut names: Vec<String> = names.filter(|name| name != ".lock").collect();
        names.sort();
        names
    }

    /// Saves the states of some steps as `step-N`, on two ranks.
    pub(crate) fn save(&self, steps: impl IntoIterator<Item = u64>) {
        let steps: Vec<u64> = steps.into_iter().collect();
        outcore::run(2, |comm| {
            let series = Checkpoints::open(comm, &self.series())?;
            for step in &steps {
                let state = State::of(comm, *step)?;
                series.save(comm, &format!("step-{step}"), &state.snapshot())?;
            }
            Ok::<(), outcore::Error>(())
        })
        .expect("it can be saved");
    }

    /// What every one of `ranks` ranks says to `work`.
    pub(crate) fn on<T: Send>(
        &self,
        ranks: usize,
        work: impl Fn(&Comm, &Checkpoints) -> T + Sync,
    ) -> Vec<T> {
        outcore::run(ranks, |comm| {
            let series = Checkpoints::open(comm, &self.series())?;
            Ok::<T, outcore::Error>(work(comm, &series))
        })
        .expect("the series can be opened")
    }

    /// The one error that every one of three ranks gets from `work`.
    pub(crate) fn error<T: Send>(
        &self,
        work: impl Fn(&Comm, &Checkpoints) -> Result<T> + Sync,
    ) -> String {
        let outcomes = self.on(3, |comm, series| work(comm, series).err());
        let texts: Vec<String> = outcomes
            .into_iter()
            .map(|error| error.expect("it should fail").to_string())
            .collect();
        assert!(texts.iter().all(|text| *text == texts[0]), "{texts:?}");
        texts[0].clone()
    }
}

/// The state of a program after a step, distributed as the number of ranks and
/// the step will have it.
pub(crate) struct State {
    pub(crate) step: u64,
    field: DistributedArray<f64>,
    counts: DistributedArray<i32>,
}

impl State {
    fn empty(comm: &Comm, step: u64) -> Result<Self> {
        let ranks = comm.size() as u64;
        let kinds = [
            ("block,*", "cyclic"),
            ("cyclic(7),block", "block"),
            ("*,cyclic", "cyclic(100)"),
        ];
        let (field, counts) = kinds[(step % 3) as usize];
        let of =
            |text, shape: &[u64]| Distribution::parse(text, shape, ranks, None).expect("it fits");
        Ok(Self {
            step,
            field: DistributedArray::new(comm, of(field, &FIELD))?,
            counts: DistributedArray::new(comm, of(counts, &COUNTS))?,
        })
    }

    pub(crate) fn of(comm: &Comm, step: u64) -> Result<Self> {
        let mut state = Self::empty(comm, step)?;
        state.field.fill_with(|index| field(step, index));
        state.counts.fill_with(|index| counts(step, index));
        Ok(state)
    }

    pub(crate) fn snapshot(&self) -> Snapshot<'_> {
        Snapshot::new()
            .with("field", &self.field)
            .with("counts", &self.counts)
            .note("step", self.step)
    }

    /// Loads a state, and looks at every value of it.
    pub(crate) fn load(comm: &Comm, checkpoint: &Checkpoint) -> Result<Self> {
        let step = checkpoint.note("step").and_then(|step| step.as_u64());
        let step = step.expect("the step was saved");
        let mut state = Self::empty(comm, step + 1)?;
        checkpoint.load(comm, "field", &mut state.field)?;
        checkpoint.load(comm, "counts", &mut state.counts)?;
        assert!(
            state
                .field
                .iter()
                .all(|(index, value)| *value == field(step, &index))
        );
        assert!(
            state
                .counts
                .iter()
                .all(|(index, value)| *value == counts(step, &index))
        );
        state.step = step;
        Ok(state)
    }
}

fn field(step: u64, index: &[u64]) -> f64 {
    (step * 1_000_003 + index[0] * 500 + index[1]) as f64 / 7.0
}

fn counts(step: u64, index: &[u64]) -> i32 {
    (step * 31 + index[0] * index[0]) as i32
}
