//! Other systems that redistribute, from `peers/redistribute`.

use std::ffi::{CStr, c_char, c_int, c_long, c_void};
use std::path::Path;

use outcore::{Comm, Distribution, Error, Result};

use crate::library::{Loaded, Source, build, mpi_library, shared};

const HEADER: &str = include_str!("../../peers/redistribute/peer.h");

const SOURCES: [Source; 2] = [
    Source {
        name: "mpi",
        text: include_str!("../../peers/redistribute/mpi.c"),
        header: HEADER,
        package: None,
        flags: &[],
    },
    Source {
        name: "scalapack",
        text: include_str!("../../peers/redistribute/scalapack.c"),
        header: HEADER,
        package: None,
        flags: &["-lscalapack-{mpi}"],
    },
];

/// `struct side` of `peer.h`.
#[repr(C)]
struct RawSide {
    block: [c_long; 2],
    grid: [c_int; 2],
}

/// `struct redistribution` of `peer.h`.
#[repr(C)]
struct Raw {
    extent: [c_long; 2],
    before: RawSide,
    after: RawSide,
}

type OpenCall = unsafe extern "C" fn(*const Raw, c_int) -> *mut c_void;
type MoveCall = unsafe extern "C" fn(*mut c_void, *const f64, *mut f64) -> c_int;
type CloseCall = unsafe extern "C" fn(*mut c_void);

/// A way of a system that has been loaded.
#[derive(Clone)]
pub(super) struct Library {
    pub(super) system: String,
    pub(super) name: String,
    way: c_int,
    open: OpenCall,
    shift: MoveCall,
    close: CloseCall,
}

/// What a library has made to redistribute.
pub(super) struct Opened {
    library: Library,
    handle: *mut c_void,
}

impl Library {
    /// Collective: builds what can be built here, in `directory`, and loads it.
    pub(super) fn load_all(comm: &Comm, directory: &Path) -> Result<Vec<Self>> {
        let mut all = Vec::new();
        for source in &SOURCES {
            let built = match comm.rank() {
                0 => build(directory, source),
                _ => Ok(()),
            };
            match comm.agree(built) {
                Ok(()) => all.extend(comm.agree(Self::load(directory, source))?),
                Err(error) if source.name == "mpi" => return Err(error.into()),
                Err(_) if comm.rank() == 0 => eprintln!("{} is not installed here", source.name),
                Err(_) => {}
            }
        }
        Ok(all)
    }

    fn load(directory: &Path, source: &Source) -> Result<Vec<Self>> {
        let library = Loaded::new(shared(directory, source))?;
        let system = match source.name {
            "mpi" => mpi_library(),
            other => other,
        };
        // SAFETY: these are the functions of peer.h, with their types.
        unsafe {
            let ways: unsafe extern "C" fn() -> c_int =
                std::mem::transmute(library.find(c"peer_ways")?);
            let name: unsafe extern "C" fn(c_int) -> *const c_char =
                std::mem::transmute(library.find(c"peer_name")?);
            let open = std::mem::transmute::<*mut c_void, OpenCall>(library.find(c"peer_open")?);
            let shift = std::mem::transmute::<*mut c_void, MoveCall>(library.find(c"peer_move")?);
            let close = std::mem::transmute::<*mut c_void, CloseCall>(library.find(c"peer_close")?);
            let way = |way| Self {
                system: system.into(),
                name: CStr::from_ptr(name(way)).to_string_lossy().into_owned(),
                way,
                open,
                shift,
                close,
            };
            Ok((0..ways()).map(way).collect())
        }
    }

    /// Collective: prepares to move an array of one or two axes; `None` for
    /// others, and for grids that do not have all ranks.
    pub(super) fn open(&self, from: &Distribution, to: &Distribution) -> Option<Opened> {
        let raw = Raw {
            extent: two(from.shape().iter().map(|extent| *extent as c_long))?,
            before: side(from)?,
            after: side(to)?,
        };
        // SAFETY: the pointer is valid for the call; all ranks make it.
        let handle = unsafe { (self.open)(&raw, self.way) };
        (!handle.is_null()).then(|| Opened {
            library: self.clone(),
            handle,
        })
    }
}

/// The first is the fastest, so the last axis; 1 for the other axis of a line.
fn two<T: From<u8>>(axes: impl DoubleEndedIterator<Item = T>) -> Option<[T; 2]> {
    let mut axes = axes.rev();
    let both = [axes.next()?, axes.next().unwrap_or(T::from(1))];
    axes.next().is_none().then_some(both)
}

fn side(distribution: &Distribution) -> Option<RawSide> {
    let blocks = distribution
        .axes()
        .iter()
        .map(|axis| axis.block() as c_long);
    let grid = distribution.grid().iter().map(|ranks| *ranks as c_int);
    Some(RawSide {
        block: two(blocks)?,
        grid: two(grid)?,
    })
}

impl Opened {
    /// Moves this rank's part.
    pub(super) fn shift(&self, source: &[u8], target: &mut [u8]) -> Result<()> {
        let pointers = (source.as_ptr().cast(), target.as_mut_ptr().cast());
        // SAFETY: the handle is open, and the parts have the sizes of the
        // distributions for which it was opened, of elements of 8 bytes.
        match unsafe { (self.library.shift)(self.handle, pointers.0, pointers.1) } {
            0 => Ok(()),
            code => {
                let name = &self.library.name;
                Err(Error::Invalid(format!("{name} failed with code {code}")))
            }
        }
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: the handle is open, and nobody uses it afterwards.
        unsafe { (self.library.close)(self.handle) }
    }
}
