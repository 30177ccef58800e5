//! A program that is stopped and goes on from its last checkpoint: on another
//! number of ranks, with its arrays divided otherwise.
//!
//! Without arguments it does all of that itself. `checkpoint_restart DIR STEPS`
//! goes on from the newest checkpoint in DIR until so many steps are done, and
//! saves after each; with 0 steps it only restores, and says which step it found.
//! It can be killed at any moment.

use outcore::{
    Checkpoints, Comm, DistributedArray, Distribution, Error, Scattered, Schedule, Snapshot,
    default_ranks,
};

const FIELD: [u64; 2] = [300, 400];
const POINTS: u64 = 20_000;

/// What the program computes with, after a number of steps.
struct Program {
    step: u64,
    /// A grid, divided regularly.
    field: DistributedArray<f64>,
    /// Points of a mesh, which the ranks have in no order, and a vector in each.
    points: Vec<u64>,
    schedule: Schedule,
    velocity: Vec<f32>,
}

impl Program {
    fn new(comm: &Comm, distribution: &str, factor: u64) -> Result<Self, Error> {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let field = Distribution::parse(distribution, &FIELD, ranks, None).expect("it fits");
        let own = (0..POINTS).filter(|at| at % ranks == rank);
        let points: Vec<u64> = own.map(|at| at * factor % POINTS).collect();
        let mut program = Self {
            step: 0,
            field: DistributedArray::new(comm, field)?,
            schedule: Schedule::of_shape(comm, &[POINTS], &points)?,
            velocity: vec![0.0; 3 * points.len()],
            points,
        };
        program.field.fill_with(grid_value);
        let points = program.points.iter();
        program.velocity = points.flat_map(|point| point_value(*point)).collect();
        Ok(program)
    }

    /// One step of the computation.
    fn advance(&mut self) {
        self.field.map(|value| value + 1.0);
        self.velocity.iter_mut().for_each(|value| *value += 1.0);
        self.step += 1;
    }

    fn save(&self, comm: &Comm, series: &Checkpoints) -> Result<(), Error> {
        let velocity = Scattered::new(&self.schedule, &self.velocity).records(&[3]);
        let state = Snapshot::new()
            .with("field", &self.field)
            .with("velocity", &velocity)
            .note("step", self.step);
        series.save(comm, &format!("step-{:06}", self.step), &state)?;
        Ok(())
    }

    /// Takes over the newest checkpoint, if there is one.
    fn restore(&mut self, comm: &Comm, series: &Checkpoints) -> Result<(), Error> {
        let Some(last) = series.latest(comm)? else {
            return Ok(());
        };
        last.load(comm, "field", &mut self.field)?;
        last.load_scattered(comm, "velocity", &self.schedule, &mut self.velocity)?;
        let step = last.note("step").and_then(|step| step.as_u64());
        self.step = step.expect("every checkpoint has its step");
        Ok(())
    }

    /// Looks at every value.
    fn check(&self) {
        let step = self.step;
        let mut field = self.field.iter();
        assert!(field.all(|(index, value)| *value == grid_value(&index) + step as f64));
        let mut velocity = self.points.iter().zip(self.velocity.chunks(3));
        assert!(velocity.all(|(point, v)| v == point_value(*point).map(|v| v + step as f32)));
    }
}

fn grid_value(index: &[u64]) -> f64 {
    (index[0] * FIELD[1] + index[1]) as f64
}

fn point_value(point: u64) -> [f32; 3] {
    [point as f32, 0.5, -1.0]
}

/// Goes on from the newest checkpoint in `directory` until `steps` are done.
fn go_on(
    comm: &Comm,
    directory: &str,
    steps: u64,
    (grid, factor): (&str, u64),
) -> Result<u64, Error> {
    let series = Checkpoints::open(comm, directory)?.keep(2);
    let mut program = Program::new(comm, grid, factor)?;
    program.restore(comm, &series)?;
    program.check();
    if comm.rank() == 0 {
        println!("found step {}", program.step);
    }
    while program.step < steps {
        program.advance();
        program.save(comm, &series)?;
        if comm.rank() == 0 {
            println!("saved step {}", program.step);
        }
    }
    program.check();
    Ok(program.step)
}

fn main() -> Result<(), Error> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if let [directory, steps] = &arguments[..] {
        let steps = steps.parse().expect("a number of steps");
        outcore::run(default_ranks(), |comm| {
            println!("process {}", std::process::id());
            go_on(comm, directory, steps, ("block,*", 7))
        })?;
        return Ok(());
    }
    outcore::run(default_ranks(), |comm| {
        let path = std::env::temp_dir().join(format!("checkpoints-{}", std::process::id()));
        let mut directory = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut directory)?;

        assert_eq!(go_on(comm, &directory, 3, ("block,*", 7))?, 3);
        // Half of the ranks go on, with everything in other places.
        let half = comm.size().div_ceil(2);
        let colour = (comm.rank() < half).then_some(0);
        if let Some(few) = comm.split(colour, 0)? {
            assert_eq!(go_on(&few, &directory, 5, ("cyclic(7),cyclic", 3333))?, 5);
        }
        comm.barrier()?;
        // And all again.
        assert_eq!(go_on(comm, &directory, 0, ("*,block", 1))?, 5);

        comm.barrier()?;
        if comm.rank() == 0 {
            std::fs::remove_dir_all(&directory).expect("the series can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
