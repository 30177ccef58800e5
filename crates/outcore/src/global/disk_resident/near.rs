//! [`Near`]: parts of other ranks whose files this rank reads itself.
//!
//! Ranks of one node see one another's disks, and one page cache: what a holder has
//! written is what everybody there reads. So a get of a part of a neighbour needs no
//! thread of the neighbour, which would first have to be woken. Whatever changes elements
//! goes to the holder, as before.
//!
//! That is right only if the file says all: the holder has no cache of its own, no
//! adapter stands before the file, and what was never written is zero. Each rank tells all
//! others whether its parts are such. A file is opened when it is first needed; if it
//! cannot be, or is of another array, the holder is asked.

use std::sync::{Arc, OnceLock};

use outcore_transport::Comm;

use super::description::Description;
use super::options::{DiskOptions, Disks, Unwritten};
use super::part::Part;
use super::parts::Found;
use super::spread::Spread;
use crate::error::Result;
use crate::global::procedure_call::Procedures;

/// The parts of one array that this rank reads itself, though others hold them.
#[derive(Debug)]
pub(crate) struct Near {
    name: String,
    description: Description,
    spread: Arc<Spread>,
    options: DiskOptions,
    parts: Vec<Reached>,
}

/// One part.
#[derive(Debug)]
enum Reached {
    /// It is the holder who reads it.
    ByHolder,
    /// This rank reads the files of its neighbour.
    Here {
        holder: usize,
        part: OnceLock<Option<Arc<Part>>>,
    },
}

impl Near {
    /// Collective: tells all ranks whether the parts of this one are read by its
    /// neighbours.
    pub(crate) fn new(
        comm: &Comm,
        calls: &Procedures,
        (name, description, spread): (&str, &Description, &Arc<Spread>),
        (options, holders): (&DiskOptions, &[usize]),
    ) -> Result<Self> {
        let plain = options.cache.is_none()
            && options.adapter.is_none()
            && options.disks != Disks::Memory
            && description.unwritten() == Unwritten::Zeros;
        let plain = comm.all_gather(&[u8::from(plain)])?;
        let here = |holder: usize| {
            let other = holder != comm.rank();
            other && plain[holder] != 0 && calls.shares_node(holder)
        };
        let parts = holders.iter().map(|&holder| match here(holder) {
            true => Reached::Here {
                holder,
                part: OnceLock::new(),
            },
            false => Reached::ByHolder,
        });
        let mut options = options.clone();
        (options.cache, options.adapter) = (None, None);
        Ok(Self {
            name: name.into(),
            description: description.clone(),
            spread: Arc::clone(spread),
            options,
            parts: parts.collect(),
        })
    }

    /// A part that another rank holds, to be read; `None` if the holder must be asked.
    pub(crate) fn part(&self, number: usize) -> Option<&Part> {
        match &self.parts[number] {
            Reached::ByHolder => None,
            Reached::Here { holder, part } => {
                let part = part.get_or_init(|| self.open(*holder, number));
                part.as_deref()
            }
        }
    }

    fn open(&self, holder: usize, part: usize) -> Option<Arc<Part>> {
        let found = Found::find((&self.name, holder), part, &self.options).ok()?;
        if found.description != self.description {
            return None;
        }
        let made = found.open(&self.name, &self.spread, &self.options).ok()?;
        Some(made.held)
    }
}
