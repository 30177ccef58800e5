//! Blocks without a disk: [`MadeUp`] values, and a result in [`Memory`].

use std::sync::{Mutex, PoisonError};

use outcore::{Error, Result};
use outcore_apps::contract::{Blocks, Fetch, Place};

/// Elements that follow from their place and a seed.
pub(super) struct MadeUp {
    pub(super) seed: u64,
}

impl Blocks<f64> for MadeUp {
    fn fetch(&self, place: Place, mut buffer: Vec<f64>) -> Result<Fetch<'_, f64>> {
        for (value, at) in buffer.iter_mut().zip(place.start..) {
            // The finalizer of splitmix64.
            let mut bits = (at ^ self.seed.rotate_left(40)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
            bits = (bits ^ (bits >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            *value = (bits >> 11) as f64 / (1u64 << 53) as f64 - 0.5;
        }
        Ok(Fetch::new(move || Ok(buffer)))
    }

    fn store(&self, _: Place, _: &[f64]) -> Result<()> {
        Err(Error::Invalid("made-up values cannot be written".into()))
    }
}

/// Elements in memory.
pub(super) struct Memory {
    values: Mutex<Vec<f64>>,
}

impl Memory {
    pub(super) fn of(len: u64) -> Self {
        Self {
            values: Mutex::new(vec![0.0; len as usize]),
        }
    }

    pub(super) fn into_values(self) -> Vec<f64> {
        self.values
            .into_inner()
            .unwrap_or_else(PoisonError::into_inner)
    }
}

impl Blocks<f64> for Memory {
    fn fetch(&self, place: Place, mut buffer: Vec<f64>) -> Result<Fetch<'_, f64>> {
        let values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        buffer.copy_from_slice(&values[place.start as usize..][..place.len as usize]);
        Ok(Fetch::new(move || Ok(buffer)))
    }

    fn store(&self, place: Place, block: &[f64]) -> Result<()> {
        let mut values = self.values.lock().unwrap_or_else(PoisonError::into_inner);
        values[place.start as usize..][..place.len as usize].copy_from_slice(block);
        Ok(())
    }
}
