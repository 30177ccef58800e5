//! Indirect pairwise exchange, IPEX (Thakur 1995, section 4.3.5), on a mesh of
//! `r` rows and `c` columns: a rank talks only to ranks of its row and of its
//! column.
//!
//! In round `i` it exchanges with the rank in column `x xor i` of its row all
//! that is for that column, `r` blocks, and what came is passed on along its own
//! column, pairwise: in step `j` with row `y xor j`. In the end it exchanges its
//! own blocks along its column. The thesis prints `y xor i` in both loops along
//! the column, which leaves blocks undelivered; `j` is meant.
//!
//! Thakur's meshes have powers of two of both. Here they may have any extent:
//! as in PEX-GEN, partners that do not exist are left out. One row makes it
//! PEX-GEN. It takes `P - 1` steps for powers of two and holds `r` blocks of
//! others.

use super::schedule::{Block, Mesh, Parcel, Step};

pub(super) fn steps(rank: usize, mesh: Mesh) -> Vec<Step> {
    let Mesh { rows, columns } = mesh;
    let (row, column) = (rank / columns, rank % columns);
    let at = |row: usize, column: usize| row * columns + column;
    // Along the column: what the ranks of column `of` had for it.
    let pass_on = |of: Option<usize>| {
        (1..rows.next_power_of_two()).map(move |step| {
            let other = Some(row ^ step).filter(|other| *other < rows);
            let (Some(of), Some(other)) = (of, other) else {
                return Step::default();
            };
            let parcel = |source, target| Parcel {
                peer: at(other, column),
                blocks: vec![Block { source, target }],
            };
            Step {
                sends: vec![parcel(at(row, of), at(other, column))],
                receives: vec![parcel(at(other, of), rank)],
            }
        })
    };
    let mut steps = Vec::new();
    for round in 1..columns.next_power_of_two() {
        // 1. Along the row: bundles for whole columns.
        let other = Some(column ^ round).filter(|other| *other < columns);
        steps.push(other.map_or_else(Step::default, |other| {
            let partner = at(row, other);
            let bundle = |source: usize, column: usize| Parcel {
                peer: partner,
                blocks: (0..rows)
                    .map(|row| Block {
                        source,
                        target: at(row, column),
                    })
                    .collect(),
            };
            Step {
                sends: vec![bundle(rank, other)],
                receives: vec![bundle(partner, column)],
            }
        }));
        // 2. Along the column: each block of the bundle to its target.
        steps.extend(pass_on(other));
    }
    // 3. What the column has for itself.
    steps.extend(pass_on(Some(column)));
    steps
}
