//! A plain binary file, as a Fortran program leaves it, opened in place: a
//! header of 100 bytes, then a column-major array of big-endian numbers.

use outcore::{Array, Error, Pattern};

fn main() -> Result<(), Error> {
    outcore::run(outcore::default_ranks(), |comm| {
        let (rank, ranks) = (comm.rank() as u64, comm.size() as u64);
        let path = std::env::temp_dir().join(format!("raw-file-{}.bin", std::process::id()));
        let mut path = path.to_string_lossy().to_string();
        comm.broadcast_string(0, &mut path)?;

        // The other program: A(i, j) = i + 1000 j, counted from 1.
        if comm.rank() == 0 {
            let mut bytes = vec![0xff; 100];
            for j in 1..=40 {
                for i in 1..=64 {
                    bytes.extend_from_slice(&((i + 1000 * j) as f32).to_be_bytes());
                }
            }
            std::fs::write(&path, bytes).expect("the file can be written");
        }
        comm.barrier()?;

        let name =
            format!("raw:{path}?shape=64x40&type=f32&layout=column&offset=100&byteorder=big");
        let array = Array::open_all(comm, &name)?;

        // Each rank reads every Nth column from its own on, in Fortran's
        // notation; the buffer is column-major like the file.
        let pattern: Pattern = "(1:64:3, p+1:40:N)".parse().expect("a valid pattern");
        let section = pattern
            .section(array.shape(), rank, ranks)
            .expect("inside the array");
        let found: Vec<f32> = array.read(&section)?;
        let height = section.shape()[0];
        for (at, value) in found.iter().enumerate() {
            let (i, j) = (
                1 + at as u64 % height * 3,
                rank + 1 + at as u64 / height * ranks,
            );
            assert_eq!(*value, (i + 1000 * j) as f32);
        }

        comm.barrier()?;
        if comm.rank() == 0 {
            println!("{ranks} ranks read a Fortran program's file");
            std::fs::remove_file(&path).expect("the file can be removed");
        }
        Ok::<(), Error>(())
    })?;
    Ok(())
}
