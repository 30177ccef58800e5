//! The model of all-to-all beside what Thakur 1995 measured on the Touchstone
//! Delta: tables 4.4 to 4.10 (`data/alltoall.csv`).

use outcore::all_to_all::Mesh;
use outcore::all_to_all::model::Machine;
use outcore::all_to_all::model::mesh::{
    gen_contention, gen_contention_printed, general, ipex, pairwise_any, pex, rex,
};
use outcore::{AllToAll, Error, Result};

const TABLES: &str = include_str!("../data/alltoall.csv");

/// One entry of the tables, and what the model says.
#[derive(Debug, Clone)]
pub struct AllToAllEntry {
    /// Such as `T4.4`.
    pub table: String,
    /// How.
    pub algorithm: AllToAll,
    /// On which mesh.
    pub mesh: Mesh,
    /// The bytes from each processor to each.
    pub bytes: usize,
    /// The seconds that the thesis prints as measured.
    pub measured: f64,
    /// The model's seconds.
    pub modelled: Modelled,
    /// What is to be said of the entry.
    pub note: String,
}

/// The seconds of the model.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Modelled {
    /// With the contention of GEN as printed; of the others as corrected.
    pub printed: f64,
    /// With all corrections.
    pub corrected: f64,
}

/// The model of an algorithm on a mesh of the Delta; `None` for algorithms that
/// the thesis does not have there, or that need powers of two.
pub fn all_to_all_model(algorithm: AllToAll, mesh: Mesh, bytes: usize) -> Option<Modelled> {
    let bytes = bytes as f64;
    let both = |seconds: f64| Modelled {
        printed: seconds,
        corrected: seconds,
    };
    let binary = mesh.rows.is_power_of_two() && mesh.columns.is_power_of_two();
    Some(match algorithm {
        AllToAll::Pex if binary => both(pex(Machine::delta, mesh, bytes)),
        AllToAll::Rex if binary => both(rex(Machine::delta, mesh, bytes)),
        AllToAll::Ipex if binary => both(ipex(Machine::delta, mesh, bytes)),
        AllToAll::PexGen | AllToAll::PexGenShift => {
            both(pairwise_any(Machine::delta, algorithm, mesh, bytes))
        }
        AllToAll::Gen => Modelled {
            printed: general(Machine::delta, mesh, bytes, gen_contention_printed),
            corrected: general(Machine::delta, mesh, bytes, gen_contention),
        },
        _ => return None,
    })
}

/// All entries of the tables.
pub fn all_to_all_tables() -> Result<Vec<AllToAllEntry>> {
    TABLES.lines().skip(1).map(entry).collect()
}

fn entry(row: &str) -> Result<AllToAllEntry> {
    let wrong = || Error::Invalid(format!("wrong entry: {row}"));
    let fields: Vec<&str> = row.splitn(8, ',').collect();
    let [table, name, rows, columns, _, bytes, seconds, note] = fields[..] else {
        return Err(wrong());
    };
    let number = |text: &str| text.parse::<usize>().map_err(|_| wrong());
    let algorithm = name.to_lowercase().parse()?;
    let mesh = Mesh {
        rows: number(rows)?,
        columns: number(columns)?,
    };
    let bytes = number(bytes)?;
    Ok(AllToAllEntry {
        table: table.into(),
        algorithm,
        mesh,
        bytes,
        measured: seconds.parse().map_err(|_| wrong())?,
        modelled: all_to_all_model(algorithm, mesh, bytes).ok_or_else(wrong)?,
        note: note.into(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The model as others have computed it, rounded to 0.1 ms.
    const COMPUTED: &str = include_str!("../data/alltoall_model.csv");

    #[test]
    fn as_computed_elsewhere() {
        let entries = all_to_all_tables().unwrap();
        assert_eq!(entries.len(), 210);
        let mut compared = 0;
        for row in COMPUTED.lines().skip(1) {
            let fields: Vec<&str> = row.split(',').collect();
            let number = |at: usize| fields[at].parse::<f64>().unwrap();
            let entry = entries
                .iter()
                .find(|entry| {
                    entry.algorithm.name() == fields[0].to_lowercase()
                        && entry.mesh.rows as f64 == number(1)
                        && entry.mesh.columns as f64 == number(2)
                        && entry.bytes as f64 == number(3)
                })
                .unwrap();
            let (ours, theirs) = (entry.modelled.printed, number(5));
            let rounding = 0.5e-4;
            assert!(
                (ours - theirs).abs() <= (0.01 * theirs).max(rounding),
                "{row}: {ours}"
            );
            assert_eq!(entry.measured, number(4), "{row}");
            compared += 1;
        }
        assert_eq!(compared, 150);
    }

    /// The corrected contention of GEN is never larger, and often smaller.
    #[test]
    fn corrections_lower_the_model_of_gen() {
        let entries = all_to_all_tables().unwrap();
        let general = || {
            let entries = entries.iter();
            entries.filter(|entry| entry.algorithm == AllToAll::Gen)
        };
        assert!(general().all(|entry| entry.modelled.corrected <= entry.modelled.printed));
        assert!(general().any(|entry| entry.modelled.corrected < 0.9 * entry.modelled.printed));
    }

    /// On the largest mesh with the longest messages REX is the worst by the model
    /// as by measurement. That IPEX is the best there is measured only: by the
    /// model its bundles, sent twice, outweigh the contention that it avoids.
    #[test]
    fn claims() {
        let mesh = Mesh {
            rows: 16,
            columns: 32,
        };
        let entries = all_to_all_tables().unwrap();
        let of = |algorithm| {
            let mut entries = entries.iter();
            let found = entries.find(|entry| {
                entry.algorithm == algorithm && entry.mesh == mesh && entry.bytes == 16384
            });
            let entry = found.unwrap();
            (entry.measured, entry.modelled.corrected)
        };
        let [pex, rex, ipex] = [AllToAll::Pex, AllToAll::Rex, AllToAll::Ipex].map(of);
        assert!(ipex.0 < pex.0 && pex.0 < rex.0, "{ipex:?} {pex:?} {rex:?}");
        assert!(pex.1 < ipex.1 && ipex.1 < rex.1, "{ipex:?} {pex:?} {rex:?}");
        assert_eq!(all_to_all_model(AllToAll::Bex, mesh, 8), None);
    }
}
