//! [`Pass`]: runs of equal length at equal distances.

use crate::run::Run;

/// Runs of equal length at equal distances.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Pass {
    /// The first of them.
    pub first: Run,
    /// How many there are.
    pub count: u64,
    /// From the beginning of one to that of the next, in the file.
    pub file_step: u64,
    /// From the beginning of one to that of the next, in the buffer.
    pub buffer_step: u64,
}

impl Pass {
    /// From the first byte of the first run to the last byte of the last, in
    /// the file.
    pub fn file_extent(&self) -> u64 {
        (self.count - 1) * self.file_step + self.first.len
    }

    /// The run at `position`.
    pub fn run(&self, position: u64) -> Run {
        Run {
            file_offset: self.first.file_offset + position * self.file_step,
            buffer_offset: self.first.buffer_offset + position * self.buffer_step,
            len: self.first.len,
        }
    }

    /// The first `count` runs, and the others if there are any.
    pub fn split(self, count: u64) -> (Self, Option<Self>) {
        let rest = (count < self.count).then(|| Self {
            first: self.run(count),
            count: self.count - count,
            ..self
        });
        let count = count.min(self.count);
        (Self { count, ..self }, rest)
    }
    /// What lies before the offset `at` of the file, and what lies behind it;
    /// a run that reaches over it is cut in two.
    pub fn cut(self, at: u64) -> (Parts, Parts) {
        let Some(room) = at.checked_sub(self.first.file_offset) else {
            return ([None; 2], [Some(self), None]);
        };
        let whole = match room.checked_sub(self.first.len) {
            None => 0,
            Some(beyond) if self.count > 1 => self.count.min(1 + beyond / self.file_step),
            Some(_) => 1,
        };
        let (taken, left) = match whole {
            0 => (None, Some(self)),
            whole => {
                let (taken, left) = self.split(whole);
                (Some(taken), left)
            }
        };
        let Some(left) = left.filter(|left| left.first.file_offset < at) else {
            return ([taken, None], [left, None]);
        };
        let (mut head, others) = left.split(1);
        let mut tail = head;
        head.first.len = at - head.first.file_offset;
        tail.first.file_offset += head.first.len;
        tail.first.buffer_offset += head.first.len;
        tail.first.len -= head.first.len;
        ([taken, Some(head)], [Some(tail), others])
    }
}

/// Up to two passes that follow one another in the file.
pub type Parts = [Option<Pass>; 2];
