//! [`Snapshot`]: the state of a program that is to be saved.

use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};

use outcore_geometry::shape_text;
use outcore_transport::Comm;
use serde_json::{Map, Value};

use super::manifest::check_different;
use super::name;
use super::savable::Savable;
use crate::descriptor::ArrayDescriptor;
use crate::error::{Error, Result};

/// The state of a program that is to be saved: variables and notes, by name.
///
/// Every rank makes the same one, of its parts of the same variables; of notes
/// those of rank 0 are kept.
#[derive(Default)]
pub struct Snapshot<'a> {
    pub(super) variables: Vec<(String, &'a dyn Savable)>,
    pub(super) notes: Map<String, Value>,
}

impl<'a> Snapshot<'a> {
    /// Nothing yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// With a variable; its name becomes that of an array, `NAME.oc`.
    pub fn with(mut self, name: &str, variable: &'a dyn Savable) -> Self {
        self.variables.push((name.into(), variable));
        self
    }

    /// With a small value: a number of a step, a time, a text, or any JSON.
    /// Finite numbers come back bit by bit; JSON has no others.
    pub fn note(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.notes.insert(name.into(), value.into());
        self
    }

    /// What is made for each variable.
    pub(super) fn descriptors(&self) -> impl Iterator<Item = (&str, ArrayDescriptor)> {
        self.variables.iter().map(|(name, variable)| {
            let descriptor = ArrayDescriptor::new(&variable.shape(), variable.element_type());
            (name.as_str(), descriptor)
        })
    }

    /// Collective: fails unless it can be saved as `name`, and all ranks save
    /// the same.
    pub(super) fn check(&self, comm: &Comm, name: &str) -> Result<()> {
        comm.agree(self.problem(name).map_err(Error::Invalid))?;
        let mut hasher = DefaultHasher::new();
        (name, self.to_string()).hash(&mut hasher);
        let all = comm.all_gather(&[hasher.finish()])?;
        let other = all.iter().position(|hash| *hash != all[0]);
        let Some(other) = other else {
            return Ok(());
        };
        // Everybody must hear the two of them.
        let mut texts = [format!("'{name}' with {self}"), String::new()];
        texts[1] = texts[0].clone();
        comm.broadcast_string(0, &mut texts[0])?;
        comm.broadcast_string(other, &mut texts[1])?;
        Err(Error::Invalid(format!(
            "the ranks do not save the same checkpoint: rank 0 saves {}, rank {other} saves {}",
            texts[0], texts[1]
        )))
    }

    fn problem(&self, name: &str) -> Result<(), String> {
        name::check("checkpoint", name)?;
        for (name, descriptor) in self.descriptors() {
            name::check("variable", name)?;
            let fits = descriptor.byte_len().map_err(|e| e.to_string());
            fits.map_err(|problem| format!("variable '{name}' cannot be saved: {problem}"))?;
        }
        check_different(self.variables.iter().map(|(name, _)| name.as_str()))?;
        match self.notes.iter().find(|(_, value)| value.is_null()) {
            Some((name, _)) => Err(format!(
                "note '{name}' is null, as numbers that are not finite become; write it as text"
            )),
            None => Ok(()),
        }
    }
}

/// `u (100x200 f64), v (7 i32)`.
impl fmt::Display for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let of = |(name, array): (&str, ArrayDescriptor)| {
            format!(
                "{name} ({} {})",
                shape_text(&array.shape),
                array.element_type
            )
        };
        let texts: Vec<String> = self.descriptors().map(of).collect();
        match texts.is_empty() {
            true => f.write_str("no variables"),
            false => f.write_str(&texts.join(", ")),
        }
    }
}

impl fmt::Debug for Snapshot<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Snapshot({self}; {:?})", self.notes)
    }
}
