//! Classic NetCDF files: variables as arrays, in CDF-1, CDF-2 (64-bit offsets)
//! and CDF-5, without the NetCDF library.
//!
//! Only headers are read and made here; data move through stores like those of
//! every array, and are big-endian. A variable of fixed size stands in one
//! piece. Those along the unlimited dimension (record variables) alternate: a
//! record holds one slab of each, in order. So such a variable is equal pieces
//! at equal distances, which is the length of a record.
//!
//! Slabs are filled up to multiples of 4 bytes, unless there is only one record
//! variable: its slabs follow one another without a gap, and it is in one piece.

mod attribute;
mod header;
mod kind;
mod write;

use std::path::Path;
use std::sync::Arc;

use outcore_storage::{Access, EqualPieces, ScatteredStore, Store};
use serde_json::{Map, Value};

use crate::descriptor::ArrayDescriptor;
use crate::element::ByteOrder;
use crate::error::Result;
use crate::format::fields::{Parsed, Problem};
use crate::format::{COPY_ALL, Item, Location, Opened, choices, first_bytes, open_file};
use attribute::Room;
use header::{Header, Variable};
pub(crate) use write::create;

/// The variable of a new file if nobody names it.
pub(crate) const USUAL_VARIABLE: &str = "data";

/// Whether a file begins as those of classic NetCDF do.
pub(crate) fn is_file(path: &Path) -> Result<bool> {
    Ok(first_bytes(path)?.is_some_and(|start| header::is_magic(&start)))
}

/// Opens the variable `inner` of a file; without a name, the only one that is
/// not a coordinate variable.
pub(crate) fn open(path: &Path, inner: Option<&str>, access: Access) -> Result<Opened> {
    let name = match inner {
        Some(inner) => format!("{}:{inner}", path.display()),
        None => path.display().to_string(),
    };
    let opened = open_store(open_file(path, access)?, inner);
    opened.map_err(Problem::of(&name))?.check(&name, path)
}

/// As `open`, for a file that is any store.
fn open_store(store: Arc<dyn Store>, inner: Option<&str>) -> Parsed<Opened> {
    let file = File::read(store)?;
    let variable = match inner {
        Some(inner) => file.find(inner)?,
        None => file.only_variable()?,
    };
    let mut room = Room::new();
    let descriptor = file.descriptor(variable, &mut room);
    let (store, start) = file.data(variable, &descriptor)?;
    Ok(Opened {
        descriptor,
        store,
        start,
    })
}

/// Whether a file holds this variable and no other.
pub(crate) fn holds_only(path: &Path, inner: &str) -> bool {
    let read = || -> Option<bool> {
        let file = File::read(open_file(path, Access::ReadOnly).ok()?).ok()?;
        let [variable] = &file.header.variables[..] else {
            return Some(false);
        };
        Some(variable.name == plain(inner))
    };
    read().unwrap_or(false)
}

/// The file itself, with its global attributes, and its variables.
pub(crate) fn list(path: &Path) -> Result<Vec<Item>> {
    let file = File::read(open_file(path, Access::ReadOnly)?);
    let file = file.map_err(Problem::of(path.display()))?;
    let mut room = Room::new();
    let name = |inner: Option<&str>| {
        let inner = inner.map(str::to_owned);
        let path = path.into();
        Location::Netcdf { path, inner }.to_string()
    };
    let mut items = vec![Item {
        name: name(None),
        path: String::new(),
        array: None,
        problem: None,
        attributes: attribute::values(&file.header.attributes, None, &mut room),
    }];
    for variable in &file.header.variables {
        let descriptor = file.descriptor(variable, &mut room);
        let (array, problem) = match file.data(variable, &descriptor) {
            Ok(_) => (Some(descriptor), None),
            Err(problem) => (None, Some(Problem::of(&variable.name)(problem).to_string())),
        };
        let attributes = array.as_ref().map(|array| array.attributes.clone());
        items.push(Item {
            name: name(Some(&variable.name)),
            path: variable.name.clone(),
            attributes: attributes.unwrap_or_else(Map::<String, Value>::new),
            array,
            problem,
        });
    }
    Ok(items)
}

/// The name as the file has it, which has no groups.
fn plain(inner: &str) -> &str {
    inner.strip_prefix('/').unwrap_or(inner)
}

/// A file whose header is understood.
#[derive(Debug)]
struct File {
    store: Arc<dyn Store>,
    len: u64,
    header: Header,
    /// The dimension of the records.
    unlimited: Option<usize>,
    /// The bytes of a record.
    record: u64,
    records: u64,
}

impl File {
    fn read(store: Arc<dyn Store>) -> Parsed<Self> {
        let header = Header::read(&*store)?;
        let mut without_extent =
            (0..header.dimensions.len()).filter(|number| header.dimensions[*number].extent == 0);
        let unlimited = without_extent.next();
        if without_extent.next().is_some() {
            return Err("it has two unlimited dimensions; the file is damaged".into());
        }
        let mut file = Self {
            len: store.len()?,
            store,
            header,
            unlimited,
            record: 0,
            records: 0,
        };
        file.measure_records()?;
        Ok(file)
    }

    fn has_records(&self, variable: &Variable) -> bool {
        variable.dimensions.first().copied() == self.unlimited && self.unlimited.is_some()
    }

    /// Finds how long a record is, and how many there are.
    fn measure_records(&mut self) -> Parsed<()> {
        let variables = self.header.variables.iter();
        let with_records: Vec<&Variable> = variables
            .filter(|variable| self.has_records(variable))
            .collect();
        let mut record = 0u64;
        for variable in &with_records {
            let slab = self.slab(variable)?;
            let padded = match with_records.len() {
                1 => Some(slab),
                _ => slab.checked_next_multiple_of(4),
            };
            record = padded
                .and_then(|padded| record.checked_add(padded))
                .ok_or("a record has more than 2^64 bytes; the file is damaged")?;
        }
        let begin = with_records.iter().map(|variable| variable.begin).min();
        let records = match (self.header.records, begin) {
            (Some(records), _) => records,
            // Whoever wrote it did not come back to say how many.
            (None, Some(begin)) => self
                .len
                .saturating_sub(begin)
                .checked_div(record)
                .unwrap_or(0),
            (None, None) => 0,
        };
        (self.record, self.records) = (record, records);
        Ok(())
    }

    /// The bytes of one record of a variable, or of all of it if it has none.
    fn slab(&self, variable: &Variable) -> Parsed<u64> {
        let fixed = &variable.dimensions[usize::from(self.has_records(variable))..];
        let mut bytes = variable.kind.element().size();
        for number in fixed {
            if Some(*number) == self.unlimited {
                return Err(format!(
                    "the unlimited dimension of {} is not its first; the file is damaged",
                    variable.name
                )
                .into());
            }
            bytes = bytes
                .checked_mul(self.header.dimensions[*number].extent)
                .ok_or_else(|| {
                    format!(
                        "{} has more than 2^64 bytes; the file is damaged",
                        variable.name
                    )
                })?;
        }
        Ok(bytes)
    }

    fn descriptor(&self, variable: &Variable, room: &mut Room) -> ArrayDescriptor {
        let extent = |number: &usize| match Some(*number) == self.unlimited {
            true => self.records,
            false => self.header.dimensions[*number].extent,
        };
        let shape: Vec<u64> = variable.dimensions.iter().map(extent).collect();
        let mut descriptor =
            ArrayDescriptor::new(&shape, variable.kind.element()).byte_order(ByteOrder::Big);
        if !shape.is_empty() {
            let numbers = variable.dimensions.iter();
            let names = numbers.map(|number| &self.header.dimensions[*number].name);
            descriptor.axis_names = room.names(names);
        }
        descriptor.attributes = attribute::values(&variable.attributes, Some(variable.kind), room);
        descriptor
    }

    /// The store with the data, and where they begin in it.
    fn data(
        &self,
        variable: &Variable,
        descriptor: &ArrayDescriptor,
    ) -> Parsed<(Arc<dyn Store>, u64)> {
        let store = || Arc::clone(&self.store);
        let slab = self.slab(variable)?;
        let has_records = self.has_records(variable);
        let count = match has_records {
            true => self.records,
            false => 1,
        };
        let pieces = EqualPieces {
            first: variable.begin,
            len: slab,
            step: self.record.max(slab),
            count,
        };
        let none = descriptor.shape.contains(&0);
        let needed = match (none, count.checked_sub(1)) {
            (true, _) | (_, None) => Some(0),
            (false, Some(before)) => before
                .checked_mul(pieces.step)
                .and_then(|last| last.checked_add(slab)?.checked_add(variable.begin)),
        };
        if needed.is_none_or(|needed| needed > self.len) {
            return Err(format!(
                "the file has {} bytes, but {} ends at {}; the file is truncated or damaged",
                self.len,
                variable.name,
                needed.map_or("more than 2^64".into(), |end| end.to_string()),
            )
            .into());
        }
        if none {
            let nothing = EqualPieces {
                first: 0,
                len: 0,
                step: 0,
                count: 0,
            };
            return Ok((Arc::new(ScatteredStore::equal(store(), nothing)?), 0));
        }
        if !has_records || self.record == slab {
            return Ok((store(), variable.begin));
        }
        Ok((Arc::new(ScatteredStore::equal(store(), pieces)?), 0))
    }

    fn find(&self, inner: &str) -> Parsed<&Variable> {
        let mut all = self.header.variables.iter();
        let found = all.find(|variable| variable.name == plain(inner));
        found.ok_or_else(|| format!("there is no {inner} in it; {}", self.choices()).into())
    }

    /// The only variable that is not a coordinate variable, which is one that has
    /// the name of its only dimension; or the only one at all.
    fn only_variable(&self) -> Parsed<&Variable> {
        let is_coordinate = |variable: &&Variable| match variable.dimensions[..] {
            [number] => self.header.dimensions[number].name == variable.name,
            _ => false,
        };
        let all = &self.header.variables;
        let mut others = all.iter().filter(|variable| !is_coordinate(variable));
        match (others.next(), others.next(), &all[..]) {
            (Some(one), None, _) | (None, None, [one]) => Ok(one),
            _ => Err(format!(
                "name one of its variables, as in file.nc:temperature; {}; {COPY_ALL}",
                self.choices()
            )
            .into()),
        }
    }

    /// The variables as a part of a sentence.
    fn choices(&self) -> String {
        let all = self.header.variables.iter();
        let names: Vec<&str> = all.map(|variable| variable.name.as_str()).collect();
        choices("variable", &names)
    }
}
