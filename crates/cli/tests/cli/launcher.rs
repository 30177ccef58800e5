//! Started by an MPI launcher without being able to be one of its ranks.

#[cfg(not(feature = "mpi"))]
#[test]
fn a_build_without_mpi_refuses_to_be_many_copies() {
    use crate::program::{Place, complaint};
    let place = Place::new();
    place.ok("create a.oc --shape 4 --type u8 --fill index");
    for line in [
        "info a.oc",
        "read a.oc",
        "read a.oc -o b.npy",
        "write a.oc --fill 9",
        "create c.oc --shape 4 --type u8",
        "demo",
        "bench io",
    ] {
        for variables in [
            &[("OMPI_COMM_WORLD_RANK", "0"), ("OMPI_COMM_WORLD_SIZE", "4")][..],
            &[("PMI_RANK", "3"), ("PMI_SIZE", "4")],
            &[("SLURM_STEP_NUM_TASKS", "2")],
        ] {
            let output = place
                .command(line.split(' '))
                .envs(variables.iter().copied())
                .output()
                .unwrap();
            let message = complaint(&output, 1, line);
            for part in ["built without MPI", "--features mpi", "--ranks"] {
                assert!(message.contains(part), "outcore {line}: {message}");
            }
            assert!(output.stdout.is_empty(), "outcore {line}");
        }
    }
    assert_eq!(place.names(), ["a.oc"]);
    assert_eq!(place.ok("read a.oc"), "0 1 2 3\n");
    // One task alone is an interactive shell; wrong usage and help need no ranks.
    for (line, status) in [("read a.oc", 0), ("--help", 0), ("read", 2)] {
        let variable = if line == "read a.oc" {
            ("SLURM_STEP_NUM_TASKS", "1")
        } else {
            ("OMPI_COMM_WORLD_RANK", "0")
        };
        let output = place
            .command(line.split(' '))
            .envs([variable])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(status), "outcore {line}");
    }
}
