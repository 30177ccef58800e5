//! [`Samples`]: the values that a picture shows.
//!
//! Each rank goes through its share of the section in pieces that fit the
//! memory, and adds what it reads to the sums of the samples; those of all ranks
//! are added up in the end. Without means each sample is the sum of one element.

use outcore::{Array, Comm, ElementType, Op, Result, Section, f16};
use outcore_apps::Part;

use super::grid::Grid;
use super::plane::Plane;
use crate::progress::Progress;

/// What is read, and how.
pub(super) struct Reading<'a> {
    pub(super) array: &'a Array,
    pub(super) plane: &'a Plane,
    /// The section of the plane that is read.
    pub(super) source: &'a Section,
    /// How many of its rows and columns make one sample.
    pub(super) step: (u64, u64),
    /// The bytes that are read at a time.
    pub(super) piece: u64,
    pub(super) progress: &'a Progress,
}

/// Values in rows and columns; NaN where there is none.
pub(super) struct Samples {
    columns: usize,
    values: Vec<f64>,
}

impl Samples {
    /// Collective: reads the samples of `grid`.
    pub(super) fn read(comm: &Comm, reading: &Reading<'_>, grid: &Grid) -> Result<Self> {
        let columns = grid.columns.count as usize;
        let len = grid.rows.count as usize * columns;
        let mut sums = vec![0.0; len];
        let mut counts = vec![0.0; len];
        comm.agree(reading.add(comm, (&mut sums, &mut counts), columns))?;
        if comm.size() > 1 {
            sums = comm.all_reduce(&sums, Op::Sum)?;
            counts = comm.all_reduce(&counts, Op::Sum)?;
        }
        for (sum, count) in sums.iter_mut().zip(&counts) {
            // Nothing but NaN: 0 by 0.
            *sum /= count;
        }
        Ok(Self {
            columns,
            values: sums,
        })
    }

    /// All values, row by row.
    pub(super) fn values(&self) -> &[f64] {
        &self.values
    }

    pub(super) fn at(&self, row: usize, column: usize) -> f64 {
        self.values[row * self.columns + column]
    }
}

impl Reading<'_> {
    /// Adds what this rank reads to sums, and how many there were to counts.
    fn add(
        &self,
        comm: &Comm,
        (sums, counts): (&mut [f64], &mut [f64]),
        columns: usize,
    ) -> Result<()> {
        let size = self.array.layout().element_size();
        let kind = self.array.element_type();
        let part = Part {
            array: self.array,
            section: self.source,
        };
        let own = part.share(&part.positions()?, comm.rank(), comm.size());
        let mut bytes = Vec::new();
        for piece in part.pieces(&own, self.piece / size) {
            bytes.resize((piece.count() * size) as usize, 0);
            self.array
                .read_bytes(&self.source.select(&piece), &mut bytes)?;
            let part = self.plane.part(&piece);
            for row in 0..part.extents.0 {
                let line = ((part.first.0 + row) / self.step.0) as usize * columns;
                for column in 0..part.extents.1 {
                    let at = row * part.strides.0 + column * part.strides.1;
                    let from = (at * size) as usize;
                    let value = number(kind, &bytes[from..from + size as usize]);
                    if !value.is_nan() {
                        let sample = line + ((part.first.1 + column) / self.step.1) as usize;
                        sums[sample] += value;
                        counts[sample] += 1.0;
                    }
                }
            }
            self.progress.add(bytes.len() as u64);
        }
        Ok(())
    }
}

/// An element, given by its bytes in this machine's order, as a number: the
/// modulus of a complex one, 0 or 1 for a truth value.
fn number(kind: ElementType, bytes: &[u8]) -> f64 {
    /// The first `N` bytes; an element of the type that is asked for has them.
    fn first<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.first_chunk().copied().unwrap_or([0; N])
    }
    match kind {
        ElementType::Bool => f64::from(u8::from(first::<1>(bytes)[0] != 0)),
        ElementType::I8 => f64::from(i8::from_ne_bytes(first(bytes))),
        ElementType::I16 => f64::from(i16::from_ne_bytes(first(bytes))),
        ElementType::I32 => f64::from(i32::from_ne_bytes(first(bytes))),
        ElementType::I64 => i64::from_ne_bytes(first(bytes)) as f64,
        ElementType::U8 => f64::from(u8::from_ne_bytes(first(bytes))),
        ElementType::U16 => f64::from(u16::from_ne_bytes(first(bytes))),
        ElementType::U32 => f64::from(u32::from_ne_bytes(first(bytes))),
        ElementType::U64 => u64::from_ne_bytes(first(bytes)) as f64,
        ElementType::F16 => f16::from_ne_bytes(first(bytes)).to_f64(),
        ElementType::F32 => f64::from(f32::from_ne_bytes(first(bytes))),
        ElementType::F64 => f64::from_ne_bytes(first(bytes)),
        ElementType::C64 => {
            let part = |bytes: &[u8]| f64::from(f32::from_ne_bytes(first(bytes)));
            part(bytes).hypot(part(&bytes[4..]))
        }
        ElementType::C128 => {
            let part = |bytes: &[u8]| f64::from_ne_bytes(first(bytes));
            part(bytes).hypot(part(&bytes[8..]))
        }
    }
}
