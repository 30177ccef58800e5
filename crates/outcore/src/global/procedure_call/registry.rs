//! [`Registry`]: the procedures of one rank, in the order of all ranks.

use std::fmt;
use std::sync::{Arc, PoisonError, RwLock};

use super::request::{Request, Response};
use crate::error::Result;

/// What a procedure does.
pub(super) type Body = dyn Fn(&Request<'_>, &mut Response<'_>) -> Result<()> + Send + Sync;

/// The procedures of one rank.
#[derive(Default)]
pub(super) struct Registry(RwLock<Vec<(String, Arc<Body>)>>);

impl Registry {
    /// Adds a procedure under the next number, which is given back; `None` if
    /// there is one of that name.
    pub(super) fn add(&self, name: &str, body: Arc<Body>) -> Option<u32> {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        if all.iter().any(|(other, _)| other == name) {
            return None;
        }
        let number = u32::try_from(all.len()).ok()?;
        all.push((name.to_string(), body));
        Some(number)
    }

    /// Takes the last one away again.
    pub(super) fn remove_last(&self) {
        let mut all = self.0.write().unwrap_or_else(PoisonError::into_inner);
        all.pop();
    }

    /// Takes all away.
    pub(super) fn clear(&self) {
        let all = &mut *self.0.write().unwrap_or_else(PoisonError::into_inner);
        drop(std::mem::take(all));
    }

    pub(super) fn body(&self, number: u32) -> Option<Arc<Body>> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(number as usize).map(|(_, body)| body.clone())
    }

    pub(super) fn name(&self, number: u32) -> Option<String> {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        all.get(number as usize).map(|(name, _)| name.clone())
    }

    pub(super) fn contains(&self, number: u32) -> bool {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        (number as usize) < all.len()
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let all = self.0.read().unwrap_or_else(PoisonError::into_inner);
        f.debug_list()
            .entries(all.iter().map(|(name, _)| name))
            .finish()
    }
}
