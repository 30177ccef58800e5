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
use crate::format::native::new_id;
use crate::hidden_name::hidden_name;

/// The parts of an array that one rank is about to make.
pub(crate) struct Unmade {
    part: usize,
    directory: Option<PathBuf>,
    draft: Option<Draft>,
    /// Says what was written, if that matters.
    marks: Option<Hidden>,
    descriptor: ArrayDescriptor,
}

/// A file under a name that means nothing; removed when dropped, unless it has got its
/// own by then.
struct Hidden(PathBuf);

impl Drop for Hidden {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
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
    /// Begins a part; it gets its name by [`Unmade::make`]. Whatever can fail does so
    /// here, while an array that is replaced is still there.
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
        let (mut draft, mut marks) = (None, None);
        if let Some(directory) = &directory {
            let begun = Array::draft(
                &part_name(directory, name, part),
                &descriptor,
                options.replace,
            )?;
            // A part that nobody uses tells whether one can be.
            let work = part_options(options, options.unwritten, options.block.clone());
            Part::new(begun.clone(), &spread.pieces(part), &work, |cells| {
                if options.unwritten == Unwritten::Error {
                    let file =
                        written_file(directory, &hidden_name(&(new_id() + "-"), name, ""), part);
                    let hidden = Hidden(file);
                    Written::create(&hidden.0, cells)?;
                    marks = Some(hidden);
                }
                Ok(None)
            })?;
            draft = Some(begun);
        }
        Ok(Self {
            part,
            directory,
            draft,
            marks,
            descriptor,
        })
    }

    /// Gives the part its name, and opens it; if that fails, there is no part.
    pub(crate) fn make(self, name: &str, spread: &Spread, options: &DiskOptions) -> Result<Made> {
        let Self {
            part,
            directory,
            draft,
            marks,
            descriptor,
        } = self;
        let mut files = Files::default();
        let array = match (draft, &directory) {
            (Some(draft), Some(directory)) => {
                let array = draft.commit()?;
                files = Files {
                    array: Some(array.name().to_string()),
                    written: Some(written_file(directory, name, part)),
                };
                array
            }
            _ => {
                let store = MemoryStore::new();
                store.set_len(descriptor.byte_len().map_err(Error::geometry(name))?)?;
                Array::in_store(&format!("{name}-{part}"), &descriptor, Arc::new(store))?
            }
        };
        let work = part_options(options, options.unwritten, options.block.clone());
        let marks = |cells| match (&files.written, marks, options.unwritten) {
            (Some(path), Some(hidden), Unwritten::Error) => {
                let named = std::fs::rename(&hidden.0, path);
                named.map_err(|source| Error::file("create", path, source))?;
                Written::open(path, cells).map(Some)
            }
            (None, _, Unwritten::Error) => Written::in_memory(cells).map(Some),
            _ => Ok(None),
        };
        let held = adapted(array, part, options)
            .and_then(|array| Part::new(array, &spread.pieces(part), &work, marks));
        match held {
            Ok(held) => Ok(Made {
                part,
                held: Arc::new(held),
                files,
            }),
            Err(error) => {
                // The error says why there is something if it cannot be removed.
                let _ = files.remove();
                Err(error)
            }
        }
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
