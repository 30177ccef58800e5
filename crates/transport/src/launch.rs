//! Whether this process was started by a launcher of parallel programs.
//!
//! Read from the environment alone: needs no MPI and initialises none.

use std::env;

/// A launcher of parallel programs that started this process.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Launcher {
    /// Whose launcher it is, such as `Open MPI`.
    pub name: String,
    /// How many processes it started, if it says so.
    pub size: Option<usize>,
}

/// What each launcher puts into the environment of its processes: a name, a
/// variable that is always there, and the one with the number of processes.
/// The more special ones come first: Open MPI also sets PMIx variables, and
/// several launchers set those of PMI.
const MARKS: [(&str, &str, Option<&str>); 5] = [
    (
        "Open MPI",
        "OMPI_COMM_WORLD_RANK",
        Some("OMPI_COMM_WORLD_SIZE"),
    ),
    (
        "MVAPICH",
        "MV2_COMM_WORLD_RANK",
        Some("MV2_COMM_WORLD_SIZE"),
    ),
    ("MPICH (PMI)", "PMI_RANK", Some("PMI_SIZE")),
    (
        "Slurm",
        "SLURM_STEP_NUM_TASKS",
        Some("SLURM_STEP_NUM_TASKS"),
    ),
    ("PMIx", "PMIX_RANK", None),
];

/// The launcher that started this process, or `None` if it was started by
/// itself.
pub fn launcher() -> Option<Launcher> {
    launcher_in(|name| env::var(name).ok())
}

/// [`launcher`] in the environment that `variable` looks up.
fn launcher_in(variable: impl Fn(&str) -> Option<String>) -> Option<Launcher> {
    MARKS.iter().find_map(|(name, mark, size)| {
        variable(mark)?;
        let size = size.and_then(&variable).and_then(|text| text.parse().ok());
        if *name == "Slurm" && size == Some(1) {
            // An interactive shell of Slurm is a step of one task, too.
            return None;
        }
        Some(Launcher {
            name: (*name).to_string(),
            size,
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(set: &[(&str, &str)]) -> Option<Launcher> {
        launcher_in(|name| {
            set.iter()
                .find(|(key, _)| *key == name)
                .map(|(_, value)| (*value).to_string())
        })
    }

    #[test]
    fn nothing_in_a_plain_environment() {
        assert_eq!(found(&[("PATH", "/bin")]), None);
    }

    #[test]
    fn open_mpi_before_the_pmix_it_uses() {
        let launcher = found(&[
            ("PMIX_RANK", "0"),
            ("OMPI_COMM_WORLD_RANK", "0"),
            ("OMPI_COMM_WORLD_SIZE", "4"),
        ])
        .expect("a launcher");
        assert_eq!(launcher.name, "Open MPI");
        assert_eq!(launcher.size, Some(4));
    }

    #[test]
    fn hydra() {
        let launcher = found(&[("PMI_RANK", "1"), ("PMI_SIZE", "3")]).expect("a launcher");
        assert_eq!(launcher.size, Some(3));
    }

    #[test]
    fn an_interactive_slurm_shell_is_no_launcher() {
        assert_eq!(found(&[("SLURM_STEP_NUM_TASKS", "1")]), None);
        assert!(found(&[("SLURM_STEP_NUM_TASKS", "2")]).is_some());
    }

    #[test]
    fn a_launcher_that_does_not_tell_its_size() {
        let launcher = found(&[("PMIX_RANK", "1")]).expect("a launcher");
        assert_eq!(launcher.size, None);
    }
}
