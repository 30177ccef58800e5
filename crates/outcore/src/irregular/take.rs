//! Single elements of one rank: [`Array::take`] and [`Array::put`].
//!
//! Elements that are in the page cache are copied out of a mapping, in the order
//! in which they are asked for, with those that come next asked for ahead. Others
//! are dealt out into windows, as in a schedule of one rank, and each window is
//! read or written once: whole, in stretches, or element by element, whichever
//! costs least.

use std::sync::Arc;

use outcore_storage::Mapping;

use super::combine::{self, Combine, Number};
use super::indices::Indices;
use super::lists::{Count, Lists};
use super::places::Places;
use super::window::{Backing, Deed, Filled, Part, Segment, WindowWork};
use super::windows::Windows;
use crate::array::Array;
use crate::element::Element;
use crate::error::{Error, Result};
use crate::fresh;
use crate::strategy::Direction;

/// So many elements are copied from a mapping between two looks at the length of
/// the file.
const LOOK: usize = 1 << 16;

/// So many elements ahead are asked for.
const AHEAD: usize = 40;

impl Array {
    /// Reads the elements with these numbers (the last axis fastest, whatever the
    /// layout), in any order and as often as they are given. What is not in the
    /// page cache takes 8 bytes of memory an index besides, and a buffer.
    ///
    /// ```
    /// use outcore::{Array, ArrayDescriptor, ElementType};
    /// # let directory = tempfile::tempdir()?;
    /// # let name = directory.path().join("table.oc");
    /// # let name = name.to_str().unwrap();
    /// let array = Array::create(name, &ArrayDescriptor::new(&[1000], ElementType::F32))?;
    /// array.put(&[7u64, 500, 7], &[1.0f32, 2.0, 3.0])?; // the last value for 7 stays
    /// assert_eq!(array.take::<f32>(&[500u64, 7, 8, 7])?, [2.0, 3.0, 0.0, 3.0]);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn take<'a, T: Element>(&self, indices: impl Into<Indices<'a>>) -> Result<Vec<T>> {
        let indices = indices.into();
        let too_many = || Error::Invalid("more indices than fit into memory".into());
        let count = usize::try_from(indices.count()?).map_err(|_| too_many())?;
        let mut values = fresh::with_room(count).ok_or_else(too_many)?;
        values.resize(count, T::zeroed());
        self.take_into(indices, &mut values)?;
        Ok(values)
    }

    /// The same, into values of exactly as many.
    pub fn take_into<'a, T: Element>(
        &self,
        indices: impl Into<Indices<'a>>,
        values: &mut [T],
    ) -> Result<()> {
        let indices = indices.into();
        self.check_access(T::TYPE, Direction::Read)?;
        let bytes = T::bytes_mut(values);
        let outcome = self.alone(&indices, (bytes.as_mut_ptr(), bytes.len()), Deed::Read);
        // Whatever came of it, they must be values.
        match T::accept(bytes) {
            true => outcome,
            false => Err(Error::format(
                self.name(),
                "it holds bytes other than 0 and 1, which are no bool",
            )),
        }
    }

    /// Writes the elements with these numbers; of several values for one element,
    /// the last.
    pub fn put<'a, T: Element>(&self, indices: impl Into<Indices<'a>>, values: &[T]) -> Result<()> {
        self.change(indices.into(), values, Deed::Store)
    }

    /// Combines the elements with these numbers with values, one after the other.
    pub fn put_combined<'a, T: Number>(
        &self,
        indices: impl Into<Indices<'a>>,
        values: &[T],
        combine: Combine,
    ) -> Result<()> {
        let deed = Deed::Combine(combine::of::<T>(combine)?);
        self.change(indices.into(), values, deed)
    }

    fn change<T: Element>(&self, indices: Indices<'_>, values: &[T], deed: Deed) -> Result<()> {
        self.check_access(T::TYPE, Direction::Write)?;
        let bytes: &[u8] = bytemuck::cast_slice(values);
        // Only read, as it is to be written to the file.
        self.alone(&indices, (bytes.as_ptr().cast_mut(), bytes.len()), deed)
    }

    /// Does `deed` between the elements and values, given by their first byte and
    /// their length, which are written only for a read.
    fn alone(
        &self,
        indices: &Indices<'_>,
        (start, len): (*mut u8, usize),
        deed: Deed,
    ) -> Result<()> {
        let (places, _) = Places::of_layout(self.layout(), self.shape().len())?;
        let size = self.layout().element_size() as usize;
        let count = indices.count()?;
        if count.checked_mul(size as u64) != Some(len as u64) {
            return Err(Error::format(
                self.name(),
                format!("{} values for {count} indices", len / size),
            ));
        }
        let mut part = Part {
            backing: Backing::File(Box::new(self.clone()), 0),
            size,
            stride: size,
            variable: 0,
            shift: 0,
            mapping: None,
        };
        part.map(deed, 0..places.extent())?;
        if let (Some(mapping), true) = (&part.mapping, count > 0) {
            let taking = Taking {
                array: self,
                mapping,
                places: &places,
                size,
            };
            return taking.all(indices, start);
        }
        let windows = Windows::new(places.extent(), size as u64, (1, count), None)?;
        let counted = Count::new(indices, &places, windows)?;
        let mut memory = vec![0u64; counted.bytes().div_ceil(8)];
        let memory = bytemuck::cast_slice_mut(&mut memory);
        counted.fill(indices, &places, windows, memory)?;
        let lists = Lists::new(memory, counted.entries(), counted.runs)?;
        let mut work = WindowWork::new(self.tuning().buffer());
        for window in 0..windows.count() as usize {
            let entries = counted.entry_starts();
            let entries = entries[window] as usize..entries[window + 1] as usize;
            if entries.is_empty() {
                continue;
            }
            let elements = &counted.element_starts;
            let segment = Segment {
                points: lists.to_values(entries),
                elements: elements[window + 1] - elements[window],
                values: &[start],
                packed: 0,
            };
            let window = windows.range(window as u64);
            // SAFETY: the lists were just made for these windows and so many
            // values, which are borrowed.
            unsafe { work.visit(&part, (&window, &Filled::default()), &[segment], deed)? };
        }
        Ok(())
    }
}

/// Copies from the mapping of an array.
struct Taking<'a> {
    array: &'a Array,
    mapping: &'a Arc<Mapping>,
    places: &'a Places,
    size: usize,
}

impl Taking<'_> {
    fn all(&self, indices: &Indices<'_>, values: *mut u8) -> Result<()> {
        match *indices {
            Indices::U32(indices) if self.places.in_order() => self.numbers(indices, values),
            Indices::U64(indices) if self.places.in_order() => self.numbers(indices, values),
            _ => {
                let image = self.image()?;
                // The first pass only looks whether all are there.
                indices.each(self.places.shape(), |_, _, _| {})?;
                indices.each(self.places.shape(), |at, number, len| {
                    for step in 0..len {
                        let from = self.places.of(number + step) as usize * self.size;
                        let to = (at + step) as usize * self.size;
                        // SAFETY: the element is in the array, which is mapped,
                        // and the values have as many as the indices.
                        unsafe {
                            let from = image.wrapping_add(from);
                            std::ptr::copy_nonoverlapping(from, values.wrapping_add(to), self.size);
                        }
                    }
                })
            }
        }
    }

    /// Where the array is mapped, if the file still has all of it.
    fn image(&self) -> Result<*const u8> {
        let len = self.places.extent() as usize * self.size;
        Ok(self.mapping.readable(self.array.data_offset(), len)?)
    }

    fn numbers<I: Copy + Into<u64>>(&self, indices: &[I], values: *mut u8) -> Result<()>
    where
        for<'i> Indices<'i>: From<&'i [I]>,
    {
        let elements = self.places.extent();
        if !indices.iter().all(|index| (*index).into() < elements) {
            Indices::from(indices).each(self.places.shape(), |_, _, _| {})?;
        }
        for (piece, indices) in indices.chunks(LOOK).enumerate() {
            let image = self.image()?;
            let values = values.wrapping_add(piece * LOOK * self.size);
            // SAFETY: all elements are in the array, which is mapped, and the
            // values have as many as the indices.
            unsafe {
                match self.size {
                    1 => copy::<1, I>(image, indices, values),
                    2 => copy::<2, I>(image, indices, values),
                    4 => copy::<4, I>(image, indices, values),
                    8 => copy::<8, I>(image, indices, values),
                    _ => copy::<16, I>(image, indices, values),
                }
            }
        }
        Ok(())
    }
}

/// Copies the elements of `SIZE` bytes with these numbers.
///
/// # Safety
///
/// The image has all of them, and the values have room for them.
unsafe fn copy<const SIZE: usize, I: Copy + Into<u64>>(
    image: *const u8,
    indices: &[I],
    values: *mut u8,
) {
    let from = |index: I| image.wrapping_add(index.into() as usize * SIZE);
    for (at, index) in indices.iter().enumerate() {
        if let Some(later) = indices.get(at + AHEAD) {
            prefetch(from(*later));
        }
        // SAFETY: passed on to the caller.
        unsafe {
            let value = from(*index).cast::<[u8; SIZE]>().read_unaligned();
            values
                .cast::<[u8; SIZE]>()
                .wrapping_add(at)
                .write_unaligned(value);
        }
    }
}

/// Asks the processor for the memory at an address.
#[inline(always)]
fn prefetch(address: *const u8) {
    #[cfg(target_arch = "x86_64")]
    {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        // SAFETY: a hint, which never faults.
        unsafe { _mm_prefetch::<_MM_HINT_T0>(address.cast()) };
    }
    #[cfg(not(target_arch = "x86_64"))]
    let _ = address;
}
