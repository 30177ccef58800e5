//! [`Leg`]: what moves between one file of the source and one file of the target.
//!
//! An array in one file is one box. One whose ranks have one block each is a box
//! for each file, and a leg is what two boxes have in common: so every leg is
//! contiguous in both files, whatever the numbers of ranks. Where ranks have
//! several blocks (cyclic distributions), a leg is what one file has, and the other
//! side is the array as a whole.

use std::sync::OnceLock;

use outcore_geometry::Section;

use crate::array::Array;
use crate::error::{Error, Result};
use crate::format::{Location, native};
use crate::placement::LocalArray;
use crate::placement::parts::{Parts, fitting};

/// What moves between two files, in the numbering of the target's axes.
#[derive(Debug)]
pub(crate) struct Leg {
    pub(crate) source: End,
    pub(crate) target: End,
    pub(crate) shape: Vec<u64>,
    map: Map,
}

/// One end of a leg: an array, or the file of one rank of it.
#[derive(Debug, Clone)]
pub(crate) struct End {
    /// The array as a whole.
    whole: Array,
    /// The rank whose file it is.
    pub(crate) part: Option<usize>,
    /// In which order its axes are seen.
    axes: Option<Vec<usize>>,
    writable: bool,
    opened: OnceLock<Array>,
}

/// Where positions of the leg stand at its ends.
#[derive(Debug)]
enum Map {
    /// In these sections.
    Sections(Section, Section),
    /// They are local indices of a rank of the source, whose axes are seen in
    /// this order.
    FromPart(Parts, usize, Vec<usize>),
    /// They are local indices of a rank of the target.
    ToPart(Parts, usize),
}

impl End {
    fn new(whole: &Array, part: Option<usize>, axes: Option<&[usize]>, writable: bool) -> Self {
        Self {
            whole: whole.clone(),
            part,
            axes: axes.map(<[usize]>::to_vec),
            writable,
            opened: OnceLock::new(),
        }
    }

    /// The array or file; opened when it is first used, since not every rank may be
    /// able to reach every file.
    pub(crate) fn array(&self) -> Result<&Array> {
        if let Some(opened) = self.opened.get() {
            return Ok(opened);
        }
        let array = match (self.part, self.writable) {
            (None, _) => self.whole.clone(),
            (Some(part), false) => LocalArray::open_part(self.whole.name(), part)?
                .part()
                .clone(),
            (Some(part), true) => {
                let part = LocalArray::open_part_writable(self.whole.name(), part)?;
                part.part().clone()
            }
        };
        let array = match &self.axes {
            Some(axes) => array.permuted(axes)?,
            None => array,
        };
        Ok(self.opened.get_or_init(|| array))
    }
}

impl Leg {
    /// The legs from `source`, whose axis `axes[k]` is axis `k` of `target`, into
    /// `target`; the same on every rank.
    pub(crate) fn all(source: &Array, target: &Array, axes: &[usize]) -> Result<Vec<Self>> {
        let (from, to) = (Side::of(source)?, Side::of(target)?);
        if let (Some(from_boxes), Some(to_boxes)) = (from.boxes(), to.boxes()) {
            let mut legs = Vec::new();
            for (to_part, there, to_place) in &to_boxes {
                for (from_part, here, from_place) in &from_boxes {
                    let common = there
                        .intersect(&turned(here, axes))
                        .map_err(Error::geometry(target.name()))?;
                    if common.is_empty() && !(to_boxes.len() == 1 && from_boxes.len() == 1) {
                        continue;
                    }
                    let place = |global: &Section, local: &Section| {
                        let shifted = common.axes().iter().zip(global.axes()).zip(local.axes());
                        fitting(
                            shifted
                                .map(|((taken, global), local)| {
                                    let positions = taken.bounds().0 - global.bounds().0;
                                    local.slice(positions, positions + taken.count())
                                })
                                .collect(),
                        )
                    };
                    let from = place(&turned(here, axes), &turned(from_place, axes));
                    legs.push(Self {
                        source: End::new(source, *from_part, Some(axes), false),
                        target: End::new(target, *to_part, None, true),
                        shape: common.shape(),
                        map: Map::Sections(from, place(there, to_place)),
                    });
                }
            }
            return Ok(legs);
        }
        let dealt = |parts: &Parts, axes: Option<&[usize]>, writable| {
            let whole = if writable { target } else { source };
            let ranks = 0..parts.ranks();
            ranks
                .map(|rank| Self::dealt(End::new(whole, Some(rank), axes, writable), parts.clone()))
                .collect::<Vec<_>>()
        };
        Ok(match (&to.parts, &from.parts) {
            (Some(parts), _) => {
                let mut legs = dealt(parts, None, true);
                legs.iter_mut()
                    .for_each(|leg| leg.source = End::new(source, None, Some(axes), false));
                legs
            }
            (None, Some(parts)) => {
                let mut legs = dealt(parts, Some(axes), false);
                legs.iter_mut()
                    .for_each(|leg| leg.target = End::new(target, None, None, true));
                legs
            }
            (None, None) => Vec::new(),
        })
    }

    /// What the file at `end` has; the other end is still to be said.
    fn dealt(end: End, parts: Parts) -> Self {
        let rank = end.part.unwrap_or(0);
        let local = parts.distribution().local_shape(rank as u64);
        let (shape, map) = match &end.axes {
            Some(axes) => (
                axes.iter().map(|axis| local[*axis]).collect(),
                Map::FromPart(parts, rank, axes.clone()),
            ),
            None => (local, Map::ToPart(parts, rank)),
        };
        Self {
            source: end.clone(),
            target: end,
            shape,
            map,
        }
    }

    /// The leg between the file of one rank and an array of one file: into the
    /// file if `into`, or else out of it.
    pub(crate) fn of_part(part: (&Array, &Parts, usize), whole: &Array, into: bool) -> Self {
        let (file, parts, rank) = part;
        let shape = parts.distribution().local_shape(rank as u64);
        let axes: Vec<usize> = (0..shape.len()).collect();
        let (file, whole) = (
            End::new(file, None, None, into),
            End::new(whole, None, None, !into),
        );
        let parts = parts.clone();
        match into {
            true => Self {
                source: whole,
                target: file,
                shape,
                map: Map::ToPart(parts, rank),
            },
            false => Self {
                source: file,
                target: whole,
                shape,
                map: Map::FromPart(parts, rank, axes),
            },
        }
    }

    /// The file that decides which rank takes the leg, if it is one of several.
    pub(crate) fn part(&self) -> Option<usize> {
        self.target.part.or(self.source.part)
    }

    /// Whether sections may be lists, which take memory.
    pub(crate) fn lists(&self) -> bool {
        let listing = |parts: &Parts| {
            let mut axes = parts.axes().iter();
            axes.any(|axis| axis.all_blocks() > axis.ranks() && axis.block() > 1)
        };
        match &self.map {
            Map::Sections(..) => false,
            Map::FromPart(parts, ..) | Map::ToPart(parts, _) => listing(parts),
        }
    }

    /// Where the positions `piece`, a box, stand in the source and in the target.
    pub(crate) fn sections(&self, piece: &Section) -> (Section, Section) {
        match &self.map {
            Map::Sections(from, to) => (from.select(piece), to.select(piece)),
            Map::ToPart(parts, rank) => parts.sections(*rank, piece),
            Map::FromPart(parts, rank, axes) => {
                let mut local = piece.axes().to_vec();
                for (axis, taken) in axes.iter().zip(piece.axes()) {
                    local[*axis] = taken.clone();
                }
                let (global, part) = parts.sections(*rank, &fitting(local));
                (turned(&part, axes), turned(&global, axes))
            }
        }
    }
}

/// The section with its axes seen in this order.
fn turned(section: &Section, axes: &[usize]) -> Section {
    fitting(
        axes.iter()
            .map(|axis| section.axes()[*axis].clone())
            .collect(),
    )
}

/// How an array is placed.
struct Side<'a> {
    array: &'a Array,
    parts: Option<Parts>,
}

/// A file: its rank, what it has of the array, and where in the file.
type Boxed = (Option<usize>, Section, Section);

impl<'a> Side<'a> {
    fn of(array: &'a Array) -> Result<Self> {
        let parts = match (
            &array.descriptor().local,
            Location::of_existing(array.name()),
        ) {
            (Some(_), Ok(Location::Native(path))) => native::describe(&path)?.parts(),
            _ => None,
        };
        Ok(Self {
            array,
            parts: parts.map(|(parts, _)| parts),
        })
    }

    /// The files as boxes; `None` if some have several.
    fn boxes(&self) -> Option<Vec<Boxed>> {
        let Some(parts) = &self.parts else {
            return Some(vec![(None, self.array.whole(), self.array.whole())]);
        };
        if parts
            .axes()
            .iter()
            .any(|axis| axis.all_blocks() > axis.ranks())
        {
            return None;
        }
        let of_rank = |rank: usize| {
            let local = parts.distribution().local_shape(rank as u64);
            let (global, part) = parts.sections(rank, &Section::whole(&local).ok()?);
            Some((Some(rank), global, part))
        };
        (0..parts.ranks()).map(of_rank).collect()
    }
}
