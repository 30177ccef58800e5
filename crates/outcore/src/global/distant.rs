//! Parts of ranks on other nodes: requests to the data server of the owner.
//!
//! A request has a header of 64-bit words in this machine's byte order: what is
//! to be done, a value (the scale of an accumulation, the increment, the value
//! that is expected), another one (the value that takes its place), and the
//! places, either an index or a section: for each axis a first word that says
//! [`RANGE`], followed by lower bound, upper bound and stride, or how many indices
//! are listed after it. Elements travel packed: what the owner has of the section,
//! dense, the last axis fastest. Both sides cut the section by the same
//! arithmetic, so nothing else is said.
//!
//! The owner does what is asked with the same loops and the same locks as the
//! ranks of its own node.

use std::sync::Weak;
use std::sync::atomic::{AtomicU64, Ordering};

use outcore_geometry::{AxisSection, Section};
use outcore_transport::Comm;

use super::arithmetic::Arithmetic;
use super::global_array::Inner;
use super::nest::Nest;
use super::part::Part;
use super::places::{Share, dense, each_nest};
use super::procedure_call::{Procedure, Procedures, Request, Response};
use super::stretch::{Stretch, packed};
use crate::element::{Element, ElementType};
use crate::error::{Error, Result};

/// The first word of an axis that is a progression.
const RANGE: u64 = u64::MAX;

/// What can be asked of an owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Task {
    Get,
    Put,
    Accumulate,
    Increment,
    CompareAndSwap,
}

impl Task {
    const ALL: [Self; 5] = [
        Self::Get,
        Self::Put,
        Self::Accumulate,
        Self::Increment,
        Self::CompareAndSwap,
    ];
}

/// How this rank asks owners that it does not reach.
#[derive(Debug, Clone)]
pub(super) struct Distant {
    procedures: Procedures,
    procedure: Procedure,
}

impl Distant {
    /// Collective: gets ready to be asked, and to ask.
    pub(super) fn new<T: Element>(
        comm: &Comm,
        procedures: &Procedures,
        array: Weak<Inner<T>>,
    ) -> Result<Self> {
        let serve = move |request: &Request<'_>, response: &mut Response<'_>| {
            let gone = || Error::Invalid("this rank has dropped the global array".into());
            serve(&*array.upgrade().ok_or_else(gone)?, request, response)
        };
        // Ranks that are threads share the numbers, so one of them draws.
        static DRAWN: AtomicU64 = AtomicU64::new(0);
        let mut number = [DRAWN.fetch_add(1, Ordering::Relaxed)];
        comm.broadcast(0, &mut number)?;
        let name = format!("global array {} of {}", number[0], T::TYPE);
        Ok(Self {
            procedures: procedures.clone(),
            procedure: procedures.register(&name, serve)?,
        })
    }

    /// Asks `rank` about one element; returns what it was.
    pub(super) fn update<T: Element>(
        &self,
        rank: usize,
        index: &[u64],
        (task, value, other): (Task, T, T),
    ) -> Result<T> {
        let mut header = begin(task, value, other);
        header.extend(index);
        let mut before = [T::zeroed()];
        let response = T::bytes_mut(&mut before);
        let header = bytemuck::cast_slice(&header);
        self.procedures
            .call(rank, self.procedure, header, &[], response)?;
        T::accept(response);
        Ok(before[0])
    }

    /// Brings what `share` has of `section` into `buffer`, which is as large as
    /// the section.
    ///
    /// # Safety
    ///
    /// The buffer is aligned, nobody else's, and has the shape of the section.
    pub(super) unsafe fn get<T: Element>(
        &self,
        section: &Section,
        share: &Share,
        buffer: *mut T,
    ) -> Result<()> {
        let travelling = Travelling::new(section, share);
        let header = encode(begin(Task::Get, T::zeroed(), T::zeroed()), section);
        let header = bytemuck::cast_slice(&header);
        if travelling.is_in_place {
            // SAFETY: passed on to the caller; all elements of the section travel.
            let values = unsafe { std::slice::from_raw_parts_mut(buffer, travelling.count) };
            let response = T::bytes_mut(values);
            self.procedures
                .call(share.rank, self.procedure, header, &[], response)?;
            T::accept(response);
            return Ok(());
        }
        let mut values = vec![T::zeroed(); travelling.count];
        let response = T::bytes_mut(&mut values);
        self.procedures
            .call(share.rank, self.procedure, header, &[], response)?;
        T::accept(response);
        let values = Part::plain(values.as_mut_ptr());
        // SAFETY: passed on to the caller; as many travel as there are places.
        travelling.each(|nest| unsafe {
            values.read(nest, buffer);
            Ok(())
        })
    }

    /// Brings what `share` has of `section` from `buffer` to its owner, to stand
    /// there or to be added.
    ///
    /// # Safety
    ///
    /// The buffer is aligned and has the shape of the section.
    pub(super) unsafe fn put<T: Element>(
        &self,
        section: &Section,
        share: &Share,
        (task, scale, buffer): (Task, T, *const T),
    ) -> Result<()> {
        let travelling = Travelling::new(section, share);
        let header = encode(begin(task, scale, T::zeroed()), section);
        let header = bytemuck::cast_slice(&header);
        let mut copies = Vec::new();
        let values = match travelling.is_in_place {
            // SAFETY: passed on to the caller; all elements of the section travel.
            true => unsafe { std::slice::from_raw_parts(buffer, travelling.count) },
            false => {
                copies.resize(travelling.count, T::zeroed());
                let part = Part::plain(copies.as_mut_ptr());
                // SAFETY: passed on to the caller; as many travel as there are places.
                travelling.each(|nest| unsafe {
                    part.write(nest, buffer);
                    Ok(())
                })?;
                &copies
            }
        };
        let data = bytemuck::cast_slice(values);
        self.procedures
            .call(share.rank, self.procedure, header, data, &mut [])?;
        Ok(())
    }
}

/// The elements of one owner's share, packed, and their places in a buffer.
struct Travelling {
    axes: Vec<Vec<Stretch>>,
    steps: Vec<usize>,
    buffer_steps: Vec<usize>,
    count: usize,
    /// Whether they are the whole buffer in its order.
    is_in_place: bool,
}

impl Travelling {
    fn new(section: &Section, share: &Share) -> Self {
        let (axes, counts): (Vec<_>, Vec<_>) = share.axes.iter().map(|list| packed(list)).unzip();
        let shape: Vec<u64> = counts.iter().map(|count| *count as u64).collect();
        let in_place = |list: &Vec<Stretch>| {
            let mut places = list.iter();
            places.all(|stretch| stretch.at == stretch.local && stretch.at_step == 1)
        };
        let count = counts.iter().product();
        Self {
            is_in_place: count as u64 == section.count() && axes.iter().all(in_place),
            axes,
            steps: dense(&shape),
            buffer_steps: dense(&section.shape()),
            count,
        }
    }

    fn each(&self, visit: impl FnMut(&Nest) -> Result<()>) -> Result<()> {
        each_nest(&self.axes, (&self.steps, &self.buffer_steps), visit)
    }
}

/// The words of the header up to the places.
const FIXED: usize = 5;

fn begin<T: Element>(task: Task, value: T, other: T) -> Vec<u64> {
    let mut words = vec![task as u64];
    words.extend(words_of(value));
    words.extend(words_of(other));
    words
}

fn words_of<T: Element>(value: T) -> [u64; 2] {
    let mut words = [0; 2];
    let bytes: &mut [u8] = bytemuck::cast_slice_mut(&mut words);
    bytes[..size_of::<T>()].copy_from_slice(bytemuck::bytes_of(&value));
    words
}

fn value_of<T: Element>(words: &[u64]) -> T {
    let mut value = [T::zeroed()];
    let bytes = T::bytes_mut(&mut value);
    bytes.copy_from_slice(&bytemuck::cast_slice(words)[..size_of::<T>()]);
    T::accept(bytes);
    value[0]
}

fn encode(mut words: Vec<u64>, section: &Section) -> Vec<u64> {
    for axis in section.axes() {
        match axis.stride() {
            Some(stride) => {
                let (lower, upper) = axis.bounds();
                words.extend([RANGE, lower, upper, stride]);
            }
            None => {
                words.push(axis.count());
                words.extend((0..axis.count()).map(|at| axis.index(at)));
            }
        }
    }
    words
}

fn decode(mut words: &[u64]) -> Option<Section> {
    let mut axes = Vec::new();
    while let Some((first, rest)) = words.split_first() {
        let len = match *first {
            RANGE => 3,
            len => usize::try_from(len).ok()?,
        };
        let (axis, later) = rest.split_at_checked(len)?;
        axes.push(match *first {
            RANGE => AxisSection::range(axis[0], axis[1], axis[2]).ok()?,
            _ => AxisSection::list(axis.to_vec()).ok()?,
        });
        words = later;
    }
    Section::new(axes).ok()
}

/// What the owner does, on the thread of its data server.
fn serve<T: Element>(
    array: &Inner<T>,
    request: &Request<'_>,
    response: &mut Response<'_>,
) -> Result<()> {
    let unknown = || Error::Invalid("a request that no global array makes".into());
    let words: Vec<u64> = bytemuck::pod_collect_to_vec(request.header());
    let (fixed, places) = words.split_at_checked(FIXED).ok_or_else(unknown)?;
    let task = Task::ALL.into_iter().find(|task| *task as u64 == fixed[0]);
    let task = task.ok_or_else(unknown)?;
    let part = array.own_part();
    if matches!(task, Task::Increment | Task::CompareAndSwap) {
        let (rank, place) = array.places().element(places).ok_or_else(unknown)?;
        if rank != array.rank() {
            return Err(unknown());
        }
        let before = match task {
            Task::Increment => {
                // SAFETY: the element is one of the own part.
                unsafe { increment(part, place, value_of(&fixed[1..]), array)? }
            }
            _ => {
                let (expected, new) = (value_of(&fixed[1..]), value_of(&fixed[3..]));
                // SAFETY: the element is one of the own part.
                unsafe { part.update(place, array.limits(), swap(expected, new))? }
            }
        };
        return response.write(0, bytemuck::bytes_of(&before));
    }
    let section = decode(places).ok_or_else(unknown)?;
    array.check_within(&section)?;
    let Some(share) = array.places().share(array.rank(), &section) else {
        return Err(unknown());
    };
    let (axes, counts): (Vec<_>, Vec<_>) = share
        .axes
        .iter()
        .map(|list| {
            let (places, count) = packed(list);
            let stretch = |(stretch, place): (&Stretch, &Stretch)| Stretch {
                at: place.local,
                at_step: 1,
                ..*stretch
            };
            (
                list.iter().zip(&places).map(stretch).collect::<Vec<_>>(),
                count as u64,
            )
        })
        .unzip();
    let steps = (array.places().steps(array.rank()), &*dense(&counts));
    let bytes = counts.iter().product::<u64>() as usize * size_of::<T>();
    if task == Task::Get {
        if response.room() != bytes {
            return Err(unknown());
        }
        return with_aligned_mut(response.data()?, |buffer| {
            // SAFETY: the buffer has as many elements as the share, whose places
            // lie in the own part.
            each_nest(&axes, steps, |nest| unsafe {
                part.read(nest, buffer);
                Ok(())
            })
        });
    }
    let data = request.data()?;
    if data.len() != bytes {
        return Err(unknown());
    }
    with_aligned(data, |buffer: *const T| {
        // SAFETY: as above.
        each_nest(&axes, steps, |nest| unsafe {
            match task {
                Task::Accumulate => accumulate(part, nest, (buffer, value_of(&fixed[1..])), array),
                _ => {
                    part.write(nest, buffer);
                    Ok(())
                }
            }
        })
    })
}

/// What puts `new` where `expected` stands.
pub(super) fn swap<T: Element>(expected: T, new: T) -> impl FnOnce(T) -> Option<T> {
    move |before| {
        let same = bytemuck::bytes_of(&before) == bytemuck::bytes_of(&expected);
        same.then_some(new)
    }
}

/// Values of `bytes` at an address that is aligned for them, copied there if
/// theirs is not.
fn with_aligned<T: Element, R>(bytes: &[u8], visit: impl FnOnce(*const T) -> R) -> R {
    if bytes.as_ptr().cast::<T>().is_aligned() {
        return visit(bytes.as_ptr().cast());
    }
    let mut copies = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    T::bytes_mut(&mut copies).copy_from_slice(bytes);
    visit(copies.as_ptr())
}

/// The same for values that are to be filled in.
fn with_aligned_mut<T: Element, R>(bytes: &mut [u8], visit: impl FnOnce(*mut T) -> R) -> R {
    if bytes.as_ptr().cast::<T>().is_aligned() {
        return visit(bytes.as_mut_ptr().cast());
    }
    let mut copies = vec![T::zeroed(); bytes.len() / size_of::<T>()];
    let result = visit(copies.as_mut_ptr());
    bytes.copy_from_slice(bytemuck::cast_slice(&copies));
    result
}

/// Runs an expression for numbers of the type that `$type` is; fails for others.
macro_rules! of_numbers {
    ($type:ty, $number:ident => $body:expr) => {
        match <$type as Element>::TYPE {
            ElementType::Bool => Err(Error::Invalid("bool values cannot be added".into())),
            ElementType::I8 => {
                type $number = i8;
                $body
            }
            ElementType::I16 => {
                type $number = i16;
                $body
            }
            ElementType::I32 => {
                type $number = i32;
                $body
            }
            ElementType::I64 => {
                type $number = i64;
                $body
            }
            ElementType::U8 => {
                type $number = u8;
                $body
            }
            ElementType::U16 => {
                type $number = u16;
                $body
            }
            ElementType::U32 => {
                type $number = u32;
                $body
            }
            ElementType::U64 => {
                type $number = u64;
                $body
            }
            ElementType::F16 => {
                type $number = half::f16;
                $body
            }
            ElementType::F32 => {
                type $number = f32;
                $body
            }
            ElementType::F64 => {
                type $number = f64;
                $body
            }
            ElementType::C64 => {
                type $number = num_complex::Complex<f32>;
                $body
            }
            ElementType::C128 => {
                type $number = num_complex::Complex<f64>;
                $body
            }
        }
    };
}

/// # Safety
///
/// As for [`Part::accumulate`].
unsafe fn accumulate<T: Element>(
    part: &Part<T>,
    nest: &Nest,
    (buffer, scale): (*const T, T),
    array: &Inner<T>,
) -> Result<()> {
    // SAFETY: passed on to the caller; the number is `T` under another name.
    of_numbers!(T, Number => unsafe {
        let scale: Number = value_of(&words_of(scale));
        part.cast::<Number>().accumulate(nest, (buffer.cast(), scale), array.limits())
    })
}

/// # Safety
///
/// As for [`Part::update`].
unsafe fn increment<T: Element>(
    part: &Part<T>,
    place: usize,
    by: T,
    array: &Inner<T>,
) -> Result<T> {
    // SAFETY: passed on to the caller; the number is `T` under another name.
    of_numbers!(T, Number => unsafe {
        let by: Number = value_of(&words_of(by));
        let before = part.cast::<Number>().update(place, array.limits(), |value| Some(value.plus(by)))?;
        Ok(value_of(&words_of(before)))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_and_values_travel_as_words() {
        let section = Section::new(vec![
            AxisSection::range(3, 20, 4).unwrap(),
            AxisSection::list(vec![1, 5, 6]).unwrap(),
            AxisSection::span(7, 8),
        ])
        .unwrap();
        let words = encode(begin(Task::Put, -2.5f64, 0.0), &section);
        assert_eq!(decode(&words[FIXED..]), Some(section));
        assert_eq!(value_of::<f64>(&words[1..]), -2.5);
        assert_eq!(decode(&[2, 1]), None);
        assert_eq!(decode(&[RANGE, 1, 2, 0]), None);
        assert!(value_of::<bool>(&words_of(true)));
    }
}
