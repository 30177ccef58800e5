//! How many messages share the busiest link of a mesh, counted.

use crate::all_to_all::{AllToAll, Mesh, Step, steps};

/// For each step of an algorithm, the most messages that one link carries in
/// one direction when the ranks are the processors of `mesh`, row by row, and
/// messages go along the row first. Empty if the algorithm has no schedule for
/// so many ranks.
pub fn counted(algorithm: AllToAll, mesh: Mesh) -> Vec<usize> {
    let size = mesh.size();
    let all: Option<Vec<Vec<Step>>> = (0..size).map(|rank| steps(algorithm, rank, size)).collect();
    let all = all.unwrap_or_default();
    let count = all.first().map_or(0, Vec::len);
    let mut links = vec![[0; 4]; size];
    (0..count)
        .map(|at| {
            links.fill([0; 4]);
            for (from, steps) in all.iter().enumerate() {
                for parcel in &steps[at].sends {
                    walk(mesh, from, parcel.peer, &mut links);
                }
            }
            links.iter().flatten().copied().max().unwrap_or(0)
        })
        .collect()
}

/// Adds a message to the links on its way: of each processor those to the right,
/// to the left, down and up.
fn walk(mesh: Mesh, from: usize, to: usize, links: &mut [[usize; 4]]) {
    let columns = mesh.columns;
    let (mut row, mut column) = (from / columns, from % columns);
    let (last_row, last_column) = (to / columns, to % columns);
    while column != last_column {
        let right = column < last_column;
        links[row * columns + column][usize::from(!right)] += 1;
        column = if right { column + 1 } else { column - 1 };
    }
    while row != last_row {
        let down = row < last_row;
        links[row * columns + column][2 + usize::from(!down)] += 1;
        row = if down { row + 1 } else { row - 1 };
    }
}
