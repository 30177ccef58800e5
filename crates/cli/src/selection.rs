//! The arguments ARRAY and SECTION.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, Comm, Error, Op, Pattern, Result, Section};

/// The number of an axis.
pub(crate) fn parse_axis(text: &str) -> Result<usize, String> {
    let axis = text.trim().parse();
    axis.map_err(|_| format!("'{text}' is no axis; axes are numbers from 0, as in 0,2"))
}

/// What pseudo-random numbers begin with.
pub(crate) fn parse_seed(text: &str) -> Result<u64, String> {
    let seed = text.parse();
    seed.map_err(|_| format!("'{text}' is no seed; seeds are whole numbers from 0"))
}

/// An array and a section of it.
#[derive(Args)]
pub(crate) struct Selection {
    /// The array
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    pub(crate) array: String,
    /// The section; all of the array if left out
    #[arg(
        default_value = "",
        hide_default_value = true,
        allow_hyphen_values = true
    )]
    pub(crate) section: Pattern,
}

impl Selection {
    /// Fails if `name`, the value of `option`, has a part for the rank though the section
    /// does not depend on it.
    pub(crate) fn check_name(&self, option: &str, name: &str) -> Result<(), String> {
        match name.contains("%r") && !self.section.depends_on_rank() {
            true => Err(format!(
                "{option} {name} has %r, which becomes the rank, but section '{}' is the same for \
                 all ranks; name one file, or put p into the section",
                self.section
            )),
            false => Ok(()),
        }
    }

    /// The section of `array` for rank `rank` of `ranks`.
    pub(crate) fn of(&self, array: &Array, rank: usize, ranks: usize) -> Result<Section> {
        let section = self
            .section
            .section(array.shape(), rank as u64, ranks as u64);
        section.map_err(|error| Error::Invalid(format!("{}: {error}", array.name())))
    }

    /// Collective: how many elements `section` has, and those of the other ranks if each has
    /// its own.
    pub(crate) fn elements(&self, comm: &Comm, section: &Section) -> Result<u64> {
        let own = section.count();
        match self.section.depends_on_rank() {
            true => Ok(comm.all_reduce(&[own], Op::Sum)?[0]),
            false => Ok(own),
        }
    }

    /// Collective: this rank's section of `array`. All ranks have one, or all
    /// return the same error.
    pub(crate) fn of_each(&self, comm: &Comm, array: &Array) -> Result<Section> {
        Ok(comm.agree(self.of(array, comm.rank(), comm.size()))?)
    }
}
