//! [`stages`]: in how many passes over the data an array moves, and through
//! which layouts between. Arithmetic only.
//!
//! A pass reads and writes every byte once. One pass is enough if a block has
//! pieces of a page ([`PAGE`]) on both sides, since files are read and written in
//! pages at least. With less memory, a pass that keeps pages whole on the side of
//! the source gathers only as many lines of the target as fit, `m / b` of them for
//! a memory of `m` elements and pages of `b`; written as one tile, in the order
//! of the target, they are a source whose pages hold `m / b` times as much of a line
//! as before. So `p` passes are enough if `(m / b)^p >= b`: the least number for
//! a transposition (Aggarwal and Vitter 1988, section 4), found here by taking
//! such passes until one is the last.

use outcore_geometry::{Arrangement, Layout, Order};
use serde::{Deserialize, Serialize};

use super::blocks::{Choice, Levels, Reads, Units, choose};

/// The least that a piece should be.
pub(crate) const PAGE: u64 = 4096;

/// More passes than this would not come closer.
pub(crate) const MOST: usize = 8;

/// One pass over the data.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Stage {
    /// The layout that it makes, as text, with the axes of the target; that of the
    /// target itself if `None`.
    pub(crate) between: Option<String>,
    /// The blocks that it takes.
    pub(crate) choice: Choice,
}

/// The passes from one layout into another with blocks of at most `room` bytes.
/// If `alone`, there is one whatever the pieces are. The first pass and the last one
/// mind the units of the source and of the target.
pub(crate) fn stages(
    source: &Layout,
    target: &Layout,
    room: u64,
    (reads, alone): (Reads, bool),
    units: &Units<'_>,
) -> Vec<Stage> {
    let only = |reads| Stage {
        between: None,
        choice: choose(source, target, room, reads, units),
    };
    let wanted = PAGE.min(target.byte_len());
    let enough = |stage: &Stage| stage.choice.read >= wanted && stage.choice.write >= wanted;
    let balanced = only(Reads::Requests);
    if alone || enough(&balanced) {
        return vec![only(reads)];
    }
    let (mut stages, mut from) = (Vec::new(), source.clone());
    while stages.len() < MOST {
        let Some((stage, between)) = through(&from, target, room) else {
            break;
        };
        stages.push(stage);
        from = between;
        let of_target = Units {
            source: None,
            ..*units
        };
        let end = Stage {
            between: None,
            choice: choose(&from, target, room, Reads::Requests, &of_target),
        };
        if enough(&end) {
            stages.push(end);
            return stages;
        }
    }
    // More passes would not make the pieces longer.
    vec![only(reads)]
}

/// A pass that reads whole pages and writes tiles in the order of the target, and
/// the layout of these; `None` if the tiles would not come closer to it.
fn through(source: &Layout, target: &Layout, room: u64) -> Option<(Stage, Layout)> {
    let size = target.element_size();
    let to = Levels::of(target);
    let tall = Levels::of(source).pages_by_lines(&to, PAGE / size, room / size)?;
    let arrangement = Arrangement {
        order: Order::from_slowest_first(target.slowest_first()),
        tile: Some(tall.clone()),
    };
    let between = Layout::arranged(target.shape(), size, &arrangement).ok()?;
    let bytes = tall.iter().product::<u64>() * size;
    let stage = Stage {
        between: Some(arrangement.to_string()),
        choice: Choice {
            read: Levels::of(source).piece(&tall) * size,
            write: bytes,
            block: tall,
        },
    };
    Some((stage, between))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn passes(extent: u64, room: u64) -> Vec<Stage> {
        let layout =
            |text: &str| Layout::arranged(&[extent, extent], 4, &text.parse().unwrap()).unwrap();
        stages(
            &layout("row"),
            &layout("column"),
            room,
            (Reads::Requests, false),
            &Units::default(),
        )
    }

    #[test]
    fn the_least_number_of_passes() {
        // Pages of 2^10 elements: one pass from 2^20 elements on, two from 2^15.
        for (room, expected) in [(4 << 20, 1), (2 << 20, 2), (128 << 10, 2), (64 << 10, 3)] {
            let found = passes(1 << 14, room);
            assert_eq!(found.len(), expected, "{room}: {found:?}");
            for stage in &found {
                let elements: u64 = stage.choice.block.iter().product();
                assert!(elements * 4 <= room, "{stage:?}");
                assert!(
                    stage.choice.read >= PAGE && stage.choice.write >= PAGE,
                    "{stage:?}"
                );
            }
            assert!(found.last().unwrap().between.is_none());
        }
    }

    #[test]
    fn small_arrays_and_like_orders_take_one() {
        assert_eq!(passes(30, 64 << 10).len(), 1);
        let row = Layout::arranged(&[1 << 12, 1 << 12], 4, &"row".parse().unwrap()).unwrap();
        let one = (Reads::Requests, false);
        let same = stages(&row, &row, 64 << 10, one, &Units::default());
        assert_eq!(same.len(), 1);
        // So little that no page fits: one pass, element by element.
        assert_eq!(passes(1 << 12, 1024).len(), 1);
    }
}
