//! [`Nest`]: the loops over the elements of a section that one rank has, between
//! its part and a buffer.
//!
//! Along each axis there is a count, and a step in elements on either side. Axes
//! that follow one another without a gap on both sides are one; so a contiguous
//! piece is one loop with steps of 1, and is copied as it is.

/// The most axes of a global array.
pub(super) const MOST_AXES: usize = 12;

/// One loop: how many, and how far apart on either side, in elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loop {
    pub(super) count: usize,
    pub(super) part: usize,
    pub(super) buffer: usize,
}

const ONCE: Loop = Loop {
    count: 1,
    part: 1,
    buffer: 1,
};

/// So many loops need no memory from elsewhere.
const FEW: usize = 4;

/// Loops, the innermost first, and where they begin on either side.
#[derive(Debug, Clone)]
pub(super) struct Nest {
    few: [Loop; FEW],
    depth: usize,
    /// All loops, if there are more than a few.
    many: Vec<Loop>,
    pub(super) part: usize,
    pub(super) buffer: usize,
}

impl Nest {
    /// One element.
    #[inline(always)]
    pub(super) fn at(part: usize, buffer: usize) -> Self {
        Self {
            few: [ONCE; FEW],
            depth: 0,
            many: Vec::new(),
            part,
            buffer,
        }
    }

    /// Puts a loop around those there are, into which it is folded if it goes on
    /// where they end.
    #[inline(always)]
    pub(super) fn around(&mut self, outer: Loop) {
        if outer.count == 1 {
            return;
        }
        let inner = match self.many.is_empty() {
            true => self.few[..self.depth].last_mut(),
            false => self.many.last_mut(),
        };
        if let Some(inner) = inner
            && outer.part == inner.part * inner.count
            && outer.buffer == inner.buffer * inner.count
        {
            inner.count *= outer.count;
            return;
        }
        if self.depth < FEW {
            self.few[self.depth] = outer;
        } else {
            self.put_around_many(outer);
        }
        self.depth += 1;
    }

    #[cold]
    fn put_around_many(&mut self, outer: Loop) {
        if self.many.is_empty() {
            self.many.extend(self.few);
        }
        self.many.push(outer);
    }

    /// Calls `visit` with the places and the innermost loop, for each turn of the
    /// others.
    #[inline(always)]
    pub(super) fn each<E>(
        &self,
        mut visit: impl FnMut(usize, usize, &Loop) -> Result<(), E>,
    ) -> Result<(), E> {
        if !self.many.is_empty() {
            return turns(&self.many, (self.part, self.buffer), &mut visit);
        }
        match &self.few[..self.depth] {
            [] => visit(self.part, self.buffer, &ONCE),
            [inner] => visit(self.part, self.buffer, inner),
            [inner, outer] => {
                let (mut part, mut buffer) = (self.part, self.buffer);
                for _ in 0..outer.count {
                    visit(part, buffer, inner)?;
                    part += outer.part;
                    buffer += outer.buffer;
                }
                Ok(())
            }
            loops => turns(loops, (self.part, self.buffer), &mut visit),
        }
    }
}

/// The same for any depth; the last is the outermost.
fn turns<E>(
    loops: &[Loop],
    (mut part, mut buffer): (usize, usize),
    visit: &mut impl FnMut(usize, usize, &Loop) -> Result<(), E>,
) -> Result<(), E> {
    match loops {
        [] => Ok(()),
        [inner] => visit(part, buffer, inner),
        [rest @ .., outer] => {
            for _ in 0..outer.count {
                turns(rest, (part, buffer), visit)?;
                part += outer.part;
                buffer += outer.buffer;
            }
            Ok(())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn visited(nest: &Nest) -> Vec<(usize, usize, usize)> {
        let mut all = Vec::new();
        let done: Result<(), ()> = nest.each(|part, buffer, inner| {
            all.push((part, buffer, inner.count));
            Ok(())
        });
        done.unwrap();
        all
    }

    #[test]
    fn loops_that_go_on_are_one() {
        let mut nest = Nest::at(5, 0);
        for (count, step) in [(4, 1), (3, 4), (2, 12)] {
            nest.around(Loop {
                count,
                part: step,
                buffer: step,
            });
        }
        assert_eq!(visited(&nest), [(5, 0, 24)]);
    }

    #[test]
    fn rows_of_a_patch() {
        let mut nest = Nest::at(7, 1);
        let line = |count, part, buffer| Loop {
            count,
            part,
            buffer,
        };
        nest.around(line(2, 1, 1));
        nest.around(line(3, 10, 2));
        nest.around(line(1, 99, 99));
        assert_eq!(visited(&nest), [(7, 1, 2), (17, 3, 2), (27, 5, 2)]);
        nest.around(line(2, 100, 6));
        assert_eq!(visited(&nest).len(), 6);
        assert_eq!(visited(&nest)[4], (117, 9, 2));
        assert_eq!(visited(&Nest::at(3, 4)), [(3, 4, 1)]);
        for further in 2..8 {
            nest.around(line(2, 1000 * further, 12));
        }
        assert_eq!(visited(&nest).len(), 6 << 6);
        assert_eq!(
            visited(&nest).last(),
            Some(&(127 + 1000 * 27, 11 + 6 * 12, 2))
        );
    }
}
