//! [`Collective`]: reads and writes in which all ranks of a group take part.

use std::hash::{DefaultHasher, Hash, Hasher};

use outcore_geometry::Section;
use outcore_transport::Comm;

use super::aggregate::Window;
use super::domains::DomainKind;
use super::messages;
use super::plan::TwoPhase;
use super::request::Request;
use super::survey::{Survey, survey};
use crate::array::Array;
use crate::element::{Element, ElementType, swap_bytes};
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// Reads and writes in which all ranks of a group take part, with choices; made
/// by [`Array::collective`].
#[derive(Debug, Clone)]
pub struct Collective<'a> {
    array: &'a Array,
    domains: DomainKind,
    window: Option<u64>,
}

impl Array {
    /// Collective: every rank reads its own section. What several ranks want is
    /// read once; all ranks succeed, or all return the same error.
    pub fn read_all<T: Element>(&self, comm: &Comm, section: &Section) -> Result<Vec<T>> {
        self.collective().read(comm, section)
    }

    /// Collective: the same, into a buffer of exactly the section's size.
    pub fn read_all_into<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        values: &mut [T],
    ) -> Result<()> {
        self.collective().read_into(comm, section, values)
    }

    /// Collective: every rank writes its own section. Where sections overlap,
    /// the values of the highest rank are written. All ranks succeed, or all
    /// return the same error; then elements of the sections may be old or new,
    /// and all others are as they were.
    pub fn write_all<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        values: &[T],
    ) -> Result<()> {
        self.collective().write(comm, section, values)
    }

    /// Collective reads and writes of this array, with choices. All ranks must
    /// make the same.
    pub fn collective(&self) -> Collective<'_> {
        Collective {
            array: self,
            domains: DomainKind::Auto,
            window: None,
        }
    }
}

impl Collective<'_> {
    /// With the file divided so among the ranks that read and write it.
    pub fn domains(mut self, kind: DomainKind) -> Self {
        self.domains = kind;
        self
    }

    /// With at most so many bytes of the file in a rank's memory at a time; as
    /// much as [`Tuning::buffer`](crate::Tuning) says if not given.
    pub fn window(mut self, bytes: u64) -> Self {
        self.window = Some(bytes);
        self
    }

    /// Collective: see [`Array::read_all`].
    pub fn read<T: Element>(&self, comm: &Comm, section: &Section) -> Result<Vec<T>> {
        let mut values = Vec::new();
        let room = self.request(section).and_then(|_| {
            let count = usize::try_from(section.count()).ok();
            let room = count.and_then(crate::fresh::with_room);
            values = room.ok_or_else(|| self.array.too_large(section))?;
            values.resize(section.count() as usize, T::zeroed());
            Ok(())
        });
        self.read_checked(comm, section, room, &mut values)?;
        Ok(values)
    }

    /// Collective: see [`Array::read_all_into`].
    pub fn read_into<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        values: &mut [T],
    ) -> Result<()> {
        self.read_checked(comm, section, Ok(()), values)
    }

    fn read_checked<T: Element>(
        &self,
        comm: &Comm,
        section: &Section,
        before: Result<()>,
        values: &mut [T],
    ) -> Result<()> {
        let bytes = T::bytes_mut(values);
        let before = before.and_then(|()| self.check(T::TYPE, Direction::Read));
        let accept = |bytes: &mut [u8]| self.array.check_values::<T>(section, bytes);
        let outcome = self.read_with(comm, section, before, bytes, accept);
        if outcome.is_err() {
            // Whatever came of it, the buffer must hold values.
            T::accept(T::bytes_mut(values));
        }
        outcome
    }

    /// Collective: see [`Array::write_all`].
    pub fn write<T: Element>(&self, comm: &Comm, section: &Section, values: &[T]) -> Result<()> {
        let before = self.check(T::TYPE, Direction::Write);
        self.write_with(comm, section, before, bytemuck::cast_slice(values))
    }

    /// Collective: reads sections as bytes, in this machine's byte order.
    pub fn read_bytes(&self, comm: &Comm, section: &Section, bytes: &mut [u8]) -> Result<()> {
        self.read_with(comm, section, Ok(()), bytes, |_| Ok(()))
    }

    /// Collective: writes sections from bytes in this machine's byte order.
    pub fn write_bytes(&self, comm: &Comm, section: &Section, bytes: &[u8]) -> Result<()> {
        let before = self.check(self.array.element_type(), Direction::Write);
        self.write_with(comm, section, before, bytes)
    }

    fn read_with(
        &self,
        comm: &Comm,
        section: &Section,
        before: Result<()>,
        bytes: &mut [u8],
        accept: impl FnOnce(&mut [u8]) -> Result<()>,
    ) -> Result<()> {
        let survey = self.survey(comm, section, Direction::Read, before, bytes.len())?;
        let plan = self.two_phase(comm, Direction::Read, survey);
        let mut window = Window::new(self.array.layout().element_size());
        let outcome = messages::read(&plan, self.array, &mut window, comm, bytes)?;
        let outcome = outcome.and_then(|()| {
            if let Some(width) = self.array.swap() {
                swap_bytes(bytes, width);
            }
            accept(bytes)
        });
        Ok(comm.agree(outcome)?)
    }

    fn write_with(
        &self,
        comm: &Comm,
        section: &Section,
        before: Result<()>,
        bytes: &[u8],
    ) -> Result<()> {
        let survey = self.survey(comm, section, Direction::Write, before, bytes.len())?;
        let plan = self.two_phase(comm, Direction::Write, survey);
        let mut window = Window::new(self.array.layout().element_size());
        let outcome = messages::write(&plan, self.array, &mut window, comm, bytes)?;
        Ok(comm.agree(outcome)?)
    }

    fn two_phase(&self, comm: &Comm, direction: Direction, survey: Survey) -> TwoPhase {
        TwoPhase::new(comm, self.array, direction, self.domains, survey)
    }

    fn survey(
        &self,
        comm: &Comm,
        section: &Section,
        direction: Direction,
        before: Result<()>,
        bytes: usize,
    ) -> Result<Survey> {
        let own = before.and_then(|()| {
            let request = self.request(section)?;
            self.array.check_length(section, bytes)?;
            let window = self.window.unwrap_or(self.array.tuning().buffer);
            Ok((request, window.min(isize::MAX as u64)))
        });
        survey(comm, self.array, self.fingerprint(direction), own)
    }

    fn check(&self, asked: ElementType, direction: Direction) -> Result<()> {
        self.array.check_access(asked, direction)
    }

    fn request(&self, section: &Section) -> Result<Request> {
        Request::new(self.array.layout(), section).map_err(Error::geometry(self.array.name()))
    }

    /// A number in which calls differ that cannot be parts of one.
    fn fingerprint(&self, direction: Direction) -> u64 {
        let mut hasher = DefaultHasher::new();
        let descriptor = self.array.descriptor();
        descriptor.shape.hash(&mut hasher);
        descriptor.element_type.hash(&mut hasher);
        descriptor.byte_order.hash(&mut hasher);
        descriptor.arrangement.to_string().hash(&mut hasher);
        self.array.data_offset().hash(&mut hasher);
        (direction, self.domains).hash(&mut hasher);
        hasher.finish()
    }
}
