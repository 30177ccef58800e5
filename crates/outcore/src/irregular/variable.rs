//! [`Variable`]: an array on disk, and the values of its elements on this rank.

use outcore_transport::Loan;

use crate::array::Array;
use crate::element::{Element, ElementType};
use crate::error::{Error, Result};
use crate::strategy::Direction;

/// An array, and this rank's values of its elements, in the order of the rank's
/// indices.
#[derive(Debug)]
pub struct Variable<'a> {
    array: &'a Array,
    values: Values<'a>,
    element: ElementType,
    /// Makes bytes from a file fit to be seen as values.
    accept: fn(&mut [u8]) -> bool,
}

#[derive(Debug)]
enum Values<'a> {
    Read(&'a mut [u8]),
    Write(&'a [u8]),
}

impl<'a> Variable<'a> {
    /// Values that are to be read.
    pub fn read<T: Element>(array: &'a Array, values: &'a mut [T]) -> Self {
        Self {
            array,
            values: Values::Read(T::bytes_mut(values)),
            element: T::TYPE,
            accept: T::accept,
        }
    }

    /// Values that are to be written.
    pub fn write<T: Element>(array: &'a Array, values: &'a [T]) -> Self {
        Self {
            array,
            values: Values::Write(bytemuck::cast_slice(values)),
            element: T::TYPE,
            accept: |_| true,
        }
    }

    /// Values that are to be read, as the bytes of this machine's numbers.
    pub fn read_bytes(array: &'a Array, values: &'a mut [u8]) -> Self {
        Self {
            array,
            values: Values::Read(values),
            element: array.element_type(),
            accept: |_| true,
        }
    }

    /// Values that are to be written, as the bytes of this machine's numbers.
    pub fn write_bytes(array: &'a Array, values: &'a [u8]) -> Self {
        Self {
            array,
            values: Values::Write(values),
            element: array.element_type(),
            accept: |_| true,
        }
    }

    pub(super) fn array(&self) -> &'a Array {
        self.array
    }

    pub(super) fn check_direction(&self, direction: Direction) -> Result<()> {
        let own = match self.values {
            Values::Read(_) => Direction::Read,
            Values::Write(_) => Direction::Write,
        };
        if own != direction {
            let problem = "values to be written were given to be read, or the other way round";
            return Err(Error::format(self.array.name(), problem));
        }
        self.array.check_access(self.element, direction)
    }

    /// Fails unless there are so many records of so many bytes.
    pub(super) fn check_length(&self, count: u64, record: u64) -> Result<()> {
        let bytes = match &self.values {
            Values::Read(values) => values.len(),
            Values::Write(values) => values.len(),
        } as u64;
        if count.checked_mul(record) == Some(bytes) {
            return Ok(());
        }
        let element = self.array.layout().element_size();
        Err(Error::format(
            self.array.name(),
            format!(
                "{} values for {count} indices of {} each",
                bytes / element,
                record / element
            ),
        ))
    }

    /// The memory of the values, which are records of an array with `axes` axes.
    pub(super) fn buffer(&mut self, axes: usize) -> Buffer<'_> {
        let components: u64 = self.array.shape()[axes..].iter().product();
        let record = components * self.array.layout().element_size();
        let bytes = match &mut self.values {
            Values::Read(values) => Bytes::Write(values),
            Values::Write(values) => Bytes::Read(values),
        };
        Buffer {
            bytes,
            record: record as usize,
        }
    }

    /// Whatever was read, the values must be values.
    pub(super) fn accept(&mut self) -> Result<()> {
        let good = match &mut self.values {
            Values::Read(values) => (self.accept)(values),
            Values::Write(_) => true,
        };
        match good {
            true => Ok(()),
            false => Err(Error::format(
                self.array.name(),
                "it holds bytes other than 0 and 1, which are no bool",
            )),
        }
    }
}

/// Values of this rank, as bytes.
#[derive(Debug)]
pub(super) struct Buffer<'a> {
    pub(super) bytes: Bytes<'a>,
    /// The bytes of a record.
    pub(super) record: usize,
}

#[derive(Debug)]
pub(super) enum Bytes<'a> {
    /// They are read by the call.
    Read(&'a [u8]),
    /// They are written by the call.
    Write(&'a mut [u8]),
}

impl Buffer<'_> {
    pub(super) fn loan(&mut self) -> Loan<'_> {
        match &mut self.bytes {
            Bytes::Read(bytes) => Loan::Read(bytes),
            Bytes::Write(bytes) => Loan::Write(bytes),
        }
    }

    /// The first byte; to be written only if the call writes the values.
    pub(super) fn start(&mut self) -> *mut u8 {
        match &mut self.bytes {
            Bytes::Read(bytes) => bytes.as_ptr().cast_mut(),
            Bytes::Write(bytes) => bytes.as_mut_ptr(),
        }
    }
}
