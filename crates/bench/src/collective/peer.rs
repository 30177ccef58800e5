//! Other systems as libraries, from `peers/collective`.

use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::path::Path;

use outcore::{Array, Comm, Error, Result, Section};

use crate::library::{Loaded, Source, build, shared};

const HEADER: &str = include_str!("../../peers/collective/peer.h");
const MOST_AXES: usize = 8;

const SOURCES: [Source; 3] = [
    Source {
        name: "mpiio",
        text: include_str!("../../peers/collective/mpiio.c"),
        header: HEADER,
        package: None,
        flags: &[],
    },
    Source {
        name: "hdf5",
        text: include_str!("../../peers/collective/hdf5.c"),
        header: HEADER,
        package: Some("hdf5"),
        flags: &[],
    },
    Source {
        name: "pnetcdf",
        text: include_str!("../../peers/collective/pnetcdf.c"),
        header: HEADER,
        package: None,
        flags: &["-lpnetcdf"],
    },
];

/// `struct section` of `peer.h`.
#[repr(C)]
struct RawSection {
    axes: c_int,
    size: c_int,
    shape: [c_long; MOST_AXES],
    start: [c_long; MOST_AXES],
    stride: [c_long; MOST_AXES],
    count: [c_long; MOST_AXES],
}

type OpenCall = unsafe extern "C" fn(*const c_char, *const RawSection, c_int) -> *mut c_void;
type MoveCall = unsafe extern "C" fn(*mut c_void, *mut c_void, c_int) -> c_int;
type CloseCall = unsafe extern "C" fn(*mut c_void);

/// A system that has been loaded.
#[derive(Clone)]
pub(super) struct Library {
    pub(super) name: String,
    open: OpenCall,
    shift: MoveCall,
    close: CloseCall,
}

/// What a library has opened to move the section of this rank.
pub(super) struct Opened {
    library: Library,
    handle: *mut c_void,
}

impl Library {
    /// Collective: builds what can be built here, in the directory of the
    /// array `name`, and loads it.
    pub(super) fn load_all(comm: &Comm, name: &str) -> Result<Vec<Self>> {
        if !outcore::under_launcher() {
            return Err(Error::Invalid(
                "other systems take turns with MPI processes, not with threads".into(),
            ));
        }
        let directory = Path::new(name);
        let mut libraries = Vec::new();
        for source in &SOURCES {
            let built = match comm.rank() {
                0 => build(directory, source),
                _ => Ok(()),
            };
            match comm.agree(built) {
                Ok(()) => libraries.push(comm.agree(Self::load(&shared(directory, source)))?),
                Err(error) if source.name == "mpiio" => return Err(error.into()),
                Err(_) if comm.rank() == 0 => eprintln!("{} is not installed here", source.name),
                Err(_) => {}
            }
        }
        Ok(libraries)
    }

    fn load(path: &Path) -> Result<Self> {
        let library = Loaded::new(path.into())?;
        let find = |symbol: &CStr| library.find(symbol);
        // SAFETY: these are the functions of peer.h, with their types.
        unsafe {
            let name: unsafe extern "C" fn() -> *const c_char =
                std::mem::transmute(find(c"peer_name")?);
            Ok(Self {
                name: CStr::from_ptr(name()).to_string_lossy().into_owned(),
                open: std::mem::transmute::<*mut c_void, OpenCall>(find(c"peer_open")?),
                shift: std::mem::transmute::<*mut c_void, MoveCall>(find(c"peer_move")?),
                close: std::mem::transmute::<*mut c_void, CloseCall>(find(c"peer_close")?),
            })
        }
    }

    /// Collective: opens `file`, the data of `array`, for this rank's section.
    pub(super) fn open(
        &self,
        file: &Path,
        array: &Array,
        section: &Section,
        collective: bool,
    ) -> Result<Opened> {
        let failed = || Error::Invalid(format!("{} cannot open the section", self.name));
        let raw = raw_section(array, section).ok_or_else(failed)?;
        let text = CString::new(file.to_string_lossy().as_bytes()).map_err(|_| failed())?;
        // SAFETY: both pointers are valid for the call; all ranks make it.
        let handle = unsafe { (self.open)(text.as_ptr(), &raw, c_int::from(collective)) };
        match handle.is_null() {
            true => Err(failed()),
            false => Ok(Opened {
                library: self.clone(),
                handle,
            }),
        }
    }
}

impl Opened {
    /// Moves the section into the buffer, which has its size, or from there.
    pub(super) fn shift(&self, buffer: &mut [u8], write: bool) -> Result<()> {
        let pointer = buffer.as_mut_ptr().cast();
        // SAFETY: the handle is open, and the buffer has the section's size.
        match unsafe { (self.library.shift)(self.handle, pointer, c_int::from(write)) } {
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

fn raw_section(array: &Array, section: &Section) -> Option<RawSection> {
    let layout = array.layout();
    let order = layout.slowest_first();
    if order.len() > MOST_AXES || layout.tile().is_some() || array.data_offset() != 0 {
        return None;
    }
    let mut raw = RawSection {
        axes: order.len() as c_int,
        size: layout.element_size() as c_int,
        shape: [0; MOST_AXES],
        start: [0; MOST_AXES],
        stride: [1; MOST_AXES],
        count: [0; MOST_AXES],
    };
    for (at, axis) in order.iter().rev().enumerate() {
        let taken = &section.axes()[*axis];
        raw.shape[at] = layout.shape()[*axis] as c_long;
        raw.start[at] = taken.first().unwrap_or(0) as c_long;
        raw.stride[at] = taken.stride()? as c_long;
        raw.count[at] = taken.count() as c_long;
    }
    Some(raw)
}
