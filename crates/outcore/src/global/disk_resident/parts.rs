//! The files of parts: how they are made, found again and removed.
//!
//! Part 3 of the array `energy` is the native array `energy-3.oc` in the directory
//! of its holder: the local array of a distribution, or blocks of the user's choice
//! one after the other. Beside it, where it matters what was never written, is
//! `energy-3.written`.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use outcore_geometry::Arrangement;
use outcore_storage::{MemoryStore, Store};

use super::description::{ATTRIBUTE, Description};
use super::options::{DiskOptions, Unwritten};
use super::part::{Part, PartOptions};
use super::spread::Spread;
use super::written::Written;
use crate::array::Array;
use crate::descriptor::ArrayDescriptor;
use crate::draft::Draft;
use crate::element::ElementType;
use crate::error::{Error, Result};

/// The parts of an array that one rank is about to make.
pub(crate) struct Unmade {
    part: usize,
    directory: Option<PathBuf>,
    draft: Option<Draft>,
    descriptor: ArrayDescriptor,
}

/// Refuses names that lead elsewhere.
pub(crate) fn check_name(name: &str) -> Result<()> {
    let plain = Path::new(name).file_name().is_some_and(|file| file == name);
    match plain && !name.starts_with('.') {
        true => Ok(()),
        false => Err(Error::Invalid(format!(
            "'{name}' cannot be the name of a disk-resident array: its parts are named by it in \
             their directories"
        ))),
    }
}

fn part_name(directory: &Path, name: &str, part: usize) -> String {
    let file = directory.join(format!("{name}-{part}.oc"));
    file.to_string_lossy().to_string()
}

fn written_file(directory: &Path, name: &str, part: usize) -> PathBuf {
    directory.join(format!("{name}-{part}.written"))
}

/// Describes a part.
fn describe(
    spread: &Spread,
    part: usize,
    element: ElementType,
    block: Option<&[u64]>,
) -> Result<ArrayDescriptor> {
    let shapes = spread.pieces(part);
    let (shape, arrangement) = match spread {
        Spread::Distribution(_) => {
            let tile = block.map(<[u64]>::to_vec);
            let arrangement = Arrangement {
                tile,
                ..Arrangement::default()
            };
            (shapes.into_iter().next().unwrap_or_default(), arrangement)
        }
        Spread::Blocks(_) => {
            let count = shapes
                .iter()
                .map(|shape| shape.iter().product::<u64>())
                .sum();
            (vec![count], Arrangement::default())
        }
    };
    Ok(ArrayDescriptor::new(&shape, element).layout(arrangement))
}

impl Unmade {
    /// Begins a part; it gets its name by [`Unmade::make`].
    pub(crate) fn begin(
        (name, rank): (&str, usize),
        part: usize,
        (spread, description): (&Spread, &Description),
        options: &DiskOptions,
    ) -> Result<Self> {
        let element: ElementType = description.element_type.parse()?;
        let mut descriptor = describe(spread, part, element, options.block.as_deref())?;
        descriptor.check(name)?;
        let directory = options.disks.made(part, rank)?;
        descriptor = descriptor.attribute(ATTRIBUTE, description.attribute(part)?);
        let draft = match &directory {
            Some(directory) => {
                let name = part_name(directory, name, part);
                Some(Array::draft(&name, &descriptor, options.replace)?)
            }
            None => None,
        };
        Ok(Self {
            part,
            directory,
            draft,
            descriptor,
        })
    }

    /// Gives the part its name, and opens it.
    pub(crate) fn make(self, name: &str, spread: &Spread, options: &DiskOptions) -> Result<Made> {
        let (array, file) = match (self.draft, &self.directory) {
            (Some(draft), Some(directory)) => {
                let array = draft.commit()?;
                (array, Some(written_file(directory, name, self.part)))
            }
            _ => {
                let store = MemoryStore::new();
                store.set_len(self.descriptor.byte_len().map_err(Error::geometry(name))?)?;
                let name = format!("{name}-{}", self.part);
                (
                    Array::in_store(&name, &self.descriptor, Arc::new(store))?,
                    None,
                )
            }
        };
        let files = Files {
            array: self.directory.is_some().then(|| array.name().to_string()),
            written: file,
        };
        let shapes = spread.pieces(self.part);
        let array = adapted(array, self.part, options)?;
        let work = part_options(options, options.unwritten, options.block.clone());
        let marks = |cells| match (&files.written, options.unwritten) {
            (Some(path), Unwritten::Error) => {
                if options.replace {
                    let _ = std::fs::remove_file(path);
                }
                Written::create(path, cells)?;
                Written::open(path, cells).map(Some)
            }
            (None, Unwritten::Error) => Written::in_memory(cells).map(Some),
            _ => Ok(None),
        };
        let held = Part::new(array, &shapes, &work, marks)?;
        Ok(Made {
            part: self.part,
            held: Arc::new(held),
            files,
        })
    }
}

/// A part that is there.
pub(crate) struct Made {
    pub(crate) part: usize,
    pub(crate) held: Arc<Part>,
    pub(crate) files: Files,
}

/// What a part has on its disk.
#[derive(Debug, Clone, Default)]
pub(crate) struct Files {
    array: Option<String>,
    written: Option<PathBuf>,
}

impl Files {
    /// Removes them; what is not there is not missed.
    pub(crate) fn remove(&self) -> Result<()> {
        for path in [self.array.as_ref().map(PathBuf::from), self.written.clone()]
            .into_iter()
            .flatten()
        {
            let removed = match path.is_dir() {
                true => std::fs::remove_dir_all(&path),
                false => std::fs::remove_file(&path),
            };
            match removed {
                Err(error) if error.kind() != std::io::ErrorKind::NotFound => {
                    return Err(Error::file("remove", &path, error));
                }
                _ => {}
            }
        }
        Ok(())
    }
}

/// A part that was found on its disk, before all ranks have agreed on the whole.
pub(crate) struct Found {
    pub(crate) part: usize,
    directory: PathBuf,
    array: Array,
    pub(crate) description: Description,
}

impl Found {
    pub(crate) fn find(
        (name, rank): (&str, usize),
        part: usize,
        options: &DiskOptions,
    ) -> Result<Self> {
        let directory = options.disks.directory(part, rank)?.ok_or_else(|| {
            Error::Invalid("parts in memory cannot be opened again: there is no disk".into())
        })?;
        let file = part_name(&directory, name, part);
        let array = Array::open_writable(&file)?;
        let attribute = array.descriptor().attributes.get(ATTRIBUTE);
        let (said, description) = Description::read(&file, attribute)?;
        if said != part {
            return Err(Error::format(
                &file,
                format!("it is part {said} of an array, not part {part}"),
            ));
        }
        Ok(Self {
            part,
            directory,
            array,
            description,
        })
    }

    pub(crate) fn open(self, name: &str, spread: &Spread, options: &DiskOptions) -> Result<Made> {
        let Self {
            part,
            directory,
            array,
            description,
        } = self;
        let element: ElementType = description.element_type.parse()?;
        let expected = describe(spread, part, element, description.block.as_deref())?;
        let found = array.descriptor();
        if (&found.shape, found.element_type) != (&expected.shape, expected.element_type) {
            return Err(Error::format(
                array.name(),
                "its shape is not that of such a part of the array",
            ));
        }
        let files = Files {
            array: Some(array.name().to_string()),
            written: Some(written_file(&directory, name, part)),
        };
        let unwritten = description.unwritten();
        let work = part_options(options, unwritten, description.block.clone());
        let array = adapted(array, part, options)?;
        let marks = |cells| match (&files.written, unwritten) {
            (Some(path), Unwritten::Error) => Written::open(path, cells).map(Some),
            _ => Ok(None),
        };
        let held = Part::new(array, &spread.pieces(part), &work, marks)?;
        Ok(Made {
            part,
            held: Arc::new(held),
            files,
        })
    }
}

fn part_options(
    options: &DiskOptions,
    unwritten: Unwritten,
    cell: Option<Vec<u64>>,
) -> PartOptions {
    PartOptions {
        cell,
        cache: options.cache.clone(),
        write_back: options.write_back,
        unwritten,
    }
}

/// The array through the adapter that was asked for.
fn adapted(array: Array, part: usize, options: &DiskOptions) -> Result<Array> {
    match &options.adapter {
        None => Ok(array),
        Some(adapter) => {
            let store = adapter(part, Arc::clone(array.store()));
            let descriptor = array.descriptor();
            Array::in_store(array.name(), descriptor, store)
        }
    }
}
