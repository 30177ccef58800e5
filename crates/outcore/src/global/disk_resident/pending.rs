//! [`PendingGet`] and [`PendingPut`]: sections on their way.

use std::marker::PhantomData;
use std::sync::Arc;

use outcore_geometry::Section;

use super::moving::{Groups, Moving, Underway, refuse};
use super::request::Action;
use super::spread::Item;
use super::{Inner, accept};
use crate::element::Element;
use crate::error::{Error, Result};

/// A section that is being read. Dropped, the answer is not wanted.
#[derive(Debug)]
pub struct PendingGet<T> {
    inner: Arc<Inner>,
    section: Section,
    /// What this rank holds itself is read when it is waited for.
    own: Vec<Vec<Item>>,
    nobody: Vec<Item>,
    underway: Vec<Underway>,
    element: PhantomData<T>,
}

/// A section that is being written.
#[derive(Debug)]
pub struct PendingPut {
    inner: Arc<Inner>,
    section: Section,
    underway: Vec<Underway>,
}

impl<T: Element> PendingGet<T> {
    pub(super) fn start(inner: &Arc<Inner>, section: &Section, groups: Groups) -> Result<Self> {
        let moving = Moving::new(&inner.link, section, inner.size);
        let others = groups.others.into_iter();
        let underway: Result<Vec<Underway>> = others.map(|items| moving.begin_get(items)).collect();
        Ok(Self {
            inner: Arc::clone(inner),
            section: section.clone(),
            own: groups.own,
            nobody: groups.nobody,
            underway: underway?,
            element: PhantomData,
        })
    }

    /// The section.
    pub fn section(&self) -> &Section {
        &self.section
    }

    /// Whether waiting would return at once, but for what this rank holds itself.
    pub fn test(&mut self) -> Result<bool> {
        test(&mut self.underway)
    }

    /// Waits for the values.
    pub fn wait(self) -> Result<Vec<T>> {
        let mut values = vec![T::zeroed(); self.section.count() as usize];
        self.wait_into(&mut values)?;
        Ok(values)
    }

    /// Waits for the values, and leaves them in `values`.
    pub fn wait_into(self, values: &mut [T]) -> Result<()> {
        if values.len() as u64 != self.section.count() {
            return Err(Error::BufferLength {
                array: self.inner.name.clone(),
                section: self.section.to_string(),
                expected: self.section.count(),
                found: values.len() as u64,
            });
        }
        let moving = Moving::new(&self.inner.link, &self.section, self.inner.size);
        let bytes = T::bytes_mut(values);
        moving.clear(&self.nobody, bytes);
        let mut outcome = Ok(());
        for items in &self.own {
            outcome = outcome.and_then(|()| moving.get_now(items, bytes));
        }
        for call in self.underway {
            let finished = moving.finish_get(call, bytes);
            outcome = outcome.and(finished);
        }
        // Whatever came of it, the buffer must hold values.
        accept::<T>(&self.inner.name, &self.section, bytes)?;
        outcome
    }
}

impl PendingPut {
    /// What this rank holds itself is written at once.
    pub(super) fn start(
        inner: &Arc<Inner>,
        (action, section): ((Action, &[u8]), &Section),
        groups: Groups,
        data: &[u8],
    ) -> Result<Self> {
        refuse(&groups.nobody)?;
        let moving = Moving::new(&inner.link, section, inner.size);
        let mut underway = Vec::with_capacity(groups.others.len());
        for items in groups.others {
            underway.push(moving.begin_put(action, items, data)?);
        }
        for items in &groups.own {
            moving.put_now(action, items, data)?;
        }
        Ok(Self {
            inner: Arc::clone(inner),
            section: section.clone(),
            underway,
        })
    }

    /// The section.
    pub fn section(&self) -> &Section {
        &self.section
    }

    /// Whether waiting would return at once.
    pub fn test(&mut self) -> Result<bool> {
        test(&mut self.underway)
    }

    /// Waits until the values have reached those who hold them.
    pub fn wait(self) -> Result<()> {
        let moving = Moving::new(&self.inner.link, &self.section, self.inner.size);
        let mut outcome = Ok(());
        for call in self.underway {
            let finished = moving.finish_put(call);
            outcome = outcome.and(finished);
        }
        outcome
    }
}

fn test(underway: &mut [Underway]) -> Result<bool> {
    for underway in underway {
        if !underway.call.test()? {
            return Ok(false);
        }
    }
    Ok(true)
}
