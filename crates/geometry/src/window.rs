//! [`Window`]: what a section takes between two offsets of a file.

use crate::pass::Pass;
use crate::run::{Passes, Runs};

/// The passes of a section between two offsets of the file, in ascending order;
/// see [`Runs::window`].
#[derive(Debug, Clone)]
pub struct Window {
    passes: Passes,
    end: u64,
    /// What is left of the pass that the window begins in.
    begun: [Option<Pass>; 2],
    /// The part of a run that the window ends in.
    last: Option<Pass>,
}

impl Runs {
    /// The passes between the offsets `start` and `end` of the file, clipped
    /// there; offsets in the buffer stay those of the section. Found without
    /// walking what lies before.
    pub fn window(&self, start: u64, end: u64) -> Window {
        let mut passes = self.passes_from(start);
        let begun = match passes.next() {
            Some(pass) => pass.cut(start).1,
            None => [None; 2],
        };
        Window {
            passes,
            end,
            begun,
            last: None,
        }
    }
}

impl Iterator for Window {
    type Item = Pass;

    fn next(&mut self) -> Option<Pass> {
        if let Some(last) = self.last.take() {
            return Some(last);
        }
        let [tail, others] = &mut self.begun;
        let pass = tail
            .take()
            .or_else(|| others.take())
            .or_else(|| self.passes.next())?;
        if pass.first.file_offset + pass.file_extent() <= self.end {
            return Some(pass);
        }
        let ([whole, part], _) = pass.cut(self.end);
        self.begun = [None; 2];
        self.passes.finish();
        self.last = part.filter(|_| whole.is_some());
        whole.or(part)
    }
}

impl std::iter::FusedIterator for Window {}
