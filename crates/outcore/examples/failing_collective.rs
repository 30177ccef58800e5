//! Each rank in turn does something wrong in a collective call, or its disk
//! fails: all ranks get the same error, which names the rank, nothing outside
//! of the sections has changed, and the next call succeeds. At last a rank
//! gives up, and all others are told.
//!
//! `OUTCORE_RANKS=4 cargo run --example failing_collective`, or built with
//! `--features mpi`: `mpirun -n 4 failing_collective`.

use std::sync::Arc;

use outcore::storage::{Access, Fault, FaultyStore, FileStore, Operation, Store};
use outcore::{
    Array, ArrayDescriptor, Carrier, Comm, DomainKind, ElementType, Error, Section, Tuning,
};

const SHAPE: [u64; 2] = [48, 320];
const BEFORE: u8 = 7;

/// What goes wrong on one rank.
#[derive(Debug, Clone, Copy)]
enum Wrong {
    Axes,
    OutOfRange,
    BufferSize,
    ElementType,
    Disk(Operation),
}

impl Wrong {
    const ALL: [Self; 6] = [
        Self::Axes,
        Self::OutOfRange,
        Self::BufferSize,
        Self::ElementType,
        Self::Disk(Operation::Read),
        Self::Disk(Operation::Write),
    ];

    /// What all are told.
    fn told(self) -> &'static str {
        match self {
            Self::Axes => "axes",
            Self::OutOfRange => "axis 1",
            Self::BufferSize => "buffer holds 7",
            Self::ElementType => "not f32",
            Self::Disk(_) => "os error 5",
        }
    }
}

/// One rank's handle on the file: its own disk, so to speak.
struct Disk {
    faults: Arc<FaultyStore<FileStore>>,
    array: Array,
}

impl Disk {
    fn new(path: &str) -> Result<Self, Error> {
        let file = FileStore::open(path, Access::ReadWrite)?;
        let faults = Arc::new(FaultyStore::new(file));
        let descriptor = ArrayDescriptor::new(&SHAPE, ElementType::I32);
        let array = Array::in_store("shared", &descriptor, faults.clone())?;
        // Gaps are moved along, so that writes have holes and read before.
        let array = array.tuned(Tuning {
            gap: Some(64),
            ..Tuning::default()
        });
        Ok(Self { faults, array })
    }

    /// The ranks write the even rows: one column each of every `N + 1`.
    fn write(
        &self,
        comm: &Comm,
        how: (DomainKind, Carrier),
        wrong: Option<Wrong>,
    ) -> Result<(), Error> {
        let own = format!("::2, {}::{}", comm.rank(), comm.size() + 1);
        let own = self.array.section(&own)?;
        let values = vec![comm.rank() as i32; own.count() as usize];
        let calls = self
            .array
            .collective()
            .domains(how.0)
            .carrier(how.1)
            .window(64);
        match wrong {
            None => calls.write(comm, &own, &values),
            Some(Wrong::Axes) => calls.write(
                comm,
                &Section::parse(":, 3, 1", &[12, 10, 9]).expect("a section"),
                &[1i32; 12],
            ),
            Some(Wrong::OutOfRange) => calls.write(
                comm,
                &Section::parse(":, 320", &[48, 400]).expect("a section"),
                &[1i32; 48],
            ),
            Some(Wrong::BufferSize) => calls.write(comm, &own, &[1i32; 7]),
            Some(Wrong::ElementType) => calls.write(comm, &own, &vec![1f32; values.len()]),
            Some(Wrong::Disk(operation)) => {
                self.faults.fail_once(operation, 0, Fault::Device);
                calls.write(comm, &own, &values)
            }
        }
        .map(drop)
    }

    /// The odd rows belong to nobody, and in the others one column of `N + 1`.
    fn others_are_untouched(&self, ranks: usize) -> Result<bool, Error> {
        let file = FileStore::open(self.faults.inner().path(), Access::ReadOnly)?;
        let mut bytes = vec![0; (SHAPE[0] * SHAPE[1] * 4) as usize];
        file.read_at(0, &mut bytes)?;
        let elements = bytes.chunks(4).enumerate();
        let mut others = elements.filter(|(at, _)| {
            let (row, column) = (at / SHAPE[1] as usize, at % SHAPE[1] as usize);
            row % 2 == 1 || column % (ranks + 1) == ranks
        });
        Ok(others.all(|(_, element)| *element == [BEFORE; 4]))
    }
}

fn main() -> Result<(), Error> {
    let ended = outcore::run(outcore::default_ranks(), |comm| {
        // Rank 0's name is the one that all use.
        let path = std::env::temp_dir().join(format!("failing-{}.bin", std::process::id()));
        let mut path = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut path)?;
        if comm.rank() == 0 {
            let file = FileStore::create(&path)?;
            file.write_at(0, &[BEFORE; (SHAPE[0] * SHAPE[1] * 4) as usize])?;
        }
        comm.barrier()?;
        let disk = Disk::new(&path)?;

        for kind in [DomainKind::Static, DomainKind::Cyclic] {
            for carrier in [Carrier::Auto, Carrier::Messages] {
                for (failing, wrong) in
                    (0..comm.size()).flat_map(|rank| Wrong::ALL.map(|wrong| (rank, wrong)))
                {
                    let mine = (comm.rank() == failing).then_some(wrong);
                    let told = disk.write(comm, (kind, carrier), mine);
                    let told = told
                        .expect_err("one rank has failed, so all have")
                        .to_string();
                    assert!(
                        told.starts_with(&format!("rank {failing}: ")),
                        "{wrong:?}: {told}"
                    );
                    assert!(told.contains(wrong.told()), "{wrong:?}: {told}");
                    assert!(disk.others_are_untouched(comm.size())?, "{wrong:?}");
                    disk.write(comm, (kind, carrier), None)?;
                    assert!(disk.others_are_untouched(comm.size())?, "{wrong:?}");
                }
            }
        }

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{} ranks were told every error of every rank", comm.size());
            std::fs::remove_file(&path).expect("the file can be removed");
        }
        comm.barrier()?;
        // The last rank gives up while the others go on.
        if comm.rank() + 1 == comm.size() {
            return Err(Error::Invalid("this rank gives up".into()));
        }
        let told = disk.write(comm, (DomainKind::Static, Carrier::Auto), None);
        let told = told.expect_err("the last rank is not there").to_string();
        assert!(told.contains("this rank gives up"), "{told}");
        Err(Error::Invalid(told))
    });
    let told: Result<Vec<()>, Error> = ended;
    let told = told.expect_err("one rank has given up").to_string();
    assert!(told.contains("this rank gives up"), "{told}");
    Ok(())
}
