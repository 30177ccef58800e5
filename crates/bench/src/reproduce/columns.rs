//! [`Columns`]: the requests for a section as PASSION makes them, column by
//! column: one for each run of a column, even where columns touch (Thakur 1995,
//! sections 5.5.1 and 6.2).

use outcore::{Direction, Layout, Result, Section};

use super::geometry;

/// One request of one rank.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Request {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) direction: Direction,
}

/// The requests of one rank, in the order in which it makes them.
#[derive(Debug, Clone)]
pub(super) struct Columns {
    /// Where the first run of the next column begins,
    column: u64,
    /// how far the column after that is,
    step: u64,
    /// and how many are left.
    left: u64,
    /// The runs of a column: how many, how far from one another, how long.
    runs: (u64, u64, u64),
    /// How many of them were asked for.
    done: u64,
    /// What is asked of each run: to read, to write, or first the one and then
    /// the other.
    asks: &'static [Direction],
    asked: usize,
}

/// To read.
pub(super) const READ: &[Direction] = &[Direction::Read];
/// To write.
pub(super) const WRITE: &[Direction] = &[Direction::Write];
/// To write with what stands there in the gaps.
pub(super) const REWRITE: &[Direction] = &[Direction::Read, Direction::Write];

impl Columns {
    /// Of a section of an array of two axes in column-major order.
    pub(super) fn of(
        layout: &Layout,
        section: &Section,
        asks: &'static [Direction],
    ) -> Result<Self> {
        let first = layout.runs(&section.slice(1, 0, 1)).map_err(geometry)?;
        let mut columns = Self {
            column: 0,
            step: 0,
            left: 0,
            runs: (0, 0, 0),
            done: 0,
            asks,
            asked: 0,
        };
        let Some(pass) = first.passes().next() else {
            return Ok(columns);
        };
        columns.column = pass.first.file_offset;
        columns.runs = (pass.count, pass.file_step, pass.first.len);
        columns.left = section.axes()[1].count();
        if columns.left > 1 {
            let second = layout.runs(&section.slice(1, 1, 2)).map_err(geometry)?;
            columns.step = second.footprint(0).start - columns.column;
        }
        Ok(columns)
    }
}

impl Iterator for Columns {
    type Item = Request;

    fn next(&mut self) -> Option<Request> {
        if self.left == 0 {
            return None;
        }
        let (count, step, len) = self.runs;
        let request = Request {
            offset: self.column + self.done * step,
            len,
            direction: self.asks[self.asked],
        };
        self.asked += 1;
        if self.asked == self.asks.len() {
            (self.asked, self.done) = (0, self.done + 1);
        }
        if self.done == count {
            (self.done, self.left) = (0, self.left - 1);
            self.column += self.step;
        }
        Some(request)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn requests(section: &str, asks: &'static [Direction]) -> Vec<(u64, u64, Direction)> {
        let layout = Layout::arranged(&[8, 6], 4, &"column".parse().unwrap()).unwrap();
        let section = Section::parse(section, &[8, 6]).unwrap();
        let columns = Columns::of(&layout, &section, asks).unwrap();
        columns
            .map(|ask| (ask.offset, ask.len, ask.direction))
            .collect()
    }

    #[test]
    fn columns_are_asked_for_one_by_one() {
        let (read, write) = (Direction::Read, Direction::Write);
        assert_eq!(requests("0:8, 1:3", READ), [(32, 32, read), (64, 32, read)]);
        assert_eq!(
            requests("2:4, 0:6:3", REWRITE),
            [(8, 8, read), (8, 8, write), (104, 8, read), (104, 8, write)]
        );
        assert_eq!(
            requests("1:8:3, 5", WRITE),
            [(164, 4, write), (176, 4, write), (188, 4, write)]
        );
        assert_eq!(requests("3:3, 1:2", READ), []);
        assert_eq!(requests("3:4, 2:2", READ), []);
    }
}
