//! Programs written directly on MPI, from `peers/irregular`.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char, c_int, c_long, c_void};
use std::path::Path;
use std::rc::Rc;

use outcore::{Comm, Error, Result};

use super::ground::{Ground, Memory, Value};
use crate::contest::Contestant;
use crate::library::{Loaded, Source, build, mpi_library, shared};

const MPI: Source = Source {
    name: "mpi",
    text: include_str!("../../peers/irregular/mpi.c"),
    header: include_str!("../../peers/irregular/peer.h"),
    package: None,
    flags: &[],
};

/// The way whose plan is made anew as well.
const TWO_PHASE: &str = "twophase";

/// `struct irregular` of `peer.h`.
#[repr(C)]
struct Raw {
    file: *const c_char,
    elements: c_long,
    count: c_long,
    own: *const c_int,
}

type OpenCall = unsafe extern "C" fn(*const Raw, c_int) -> *mut c_void;
type MoveCall = unsafe extern "C" fn(*mut c_void, *mut f64, c_int) -> c_int;
type CloseCall = unsafe extern "C" fn(*mut c_void);

/// A way of a program that has been loaded.
#[derive(Clone)]
pub(super) struct Library {
    name: String,
    way: c_int,
    open: OpenCall,
    shift: MoveCall,
    close: CloseCall,
}

/// What a program has planned.
pub(super) struct Opened {
    library: Library,
    handle: *mut c_void,
    /// It looks at them as long as it lives.
    _own: Rc<[c_int]>,
}

impl Library {
    /// Collective: builds the program in `directory`, and loads it.
    pub(super) fn load_all(comm: &Comm, directory: &Path) -> Result<Vec<Self>> {
        let built = match comm.rank() {
            0 => build(directory, &MPI),
            _ => Ok(()),
        };
        comm.agree(built)?;
        Ok(comm.agree(Self::load(directory))?)
    }

    fn load(directory: &Path) -> Result<Vec<Self>> {
        let library = Loaded::new(shared(directory, &MPI))?;
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
                name: CStr::from_ptr(name(way)).to_string_lossy().into_owned(),
                way,
                open,
                shift,
                close,
            };
            Ok((0..ways()).map(way).collect())
        }
    }
}

impl Opened {
    /// Reads or writes this rank's elements.
    fn shift(&self, values: &mut [u8], op: &str) -> Result<()> {
        let writes = c_int::from(op == "write");
        // SAFETY: the handle is open, and there are as many values of 8 bytes,
        // aligned as such, as it was opened for.
        match unsafe { (self.library.shift)(self.handle, values.as_mut_ptr().cast(), writes) } {
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
        // SAFETY: the handle is open, and nobody uses it afterwards; all ranks
        // drop theirs in the same order.
        unsafe { (self.library.close)(self.handle) }
    }
}

impl<T: Value> Ground<'_, T> {
    /// Collective: what the programs plan before.
    pub(super) fn peers(&self, libraries: &[Library]) -> Result<Vec<Opened>> {
        libraries.iter().map(|library| self.open(library)).collect()
    }

    fn open(&self, library: &Library) -> Result<Opened> {
        let own: Rc<[c_int]> = self.own.iter().map(|index| *index as c_int).collect();
        self.open_with(library, &own)
    }

    fn open_with(&self, library: &Library, own: &Rc<[c_int]>) -> Result<Opened> {
        let file = CString::new(self.path.as_str());
        let file = file.map_err(|_| Error::Invalid("a zero in a file's name".into()))?;
        let raw = Raw {
            file: file.as_ptr(),
            elements: self.elements as c_long,
            count: own.len() as c_long,
            own: own.as_ptr(),
        };
        // SAFETY: pointers are valid for the call, the indices as long as the
        // handle is; all ranks make it.
        let handle = unsafe { (library.open)(&raw, library.way) };
        if handle.is_null() {
            let name = &library.name;
            return Err(Error::Invalid(format!("{name} cannot open {}", self.path)));
        }
        Ok(Opened {
            library: library.clone(),
            handle,
            _own: own.clone(),
        })
    }

    /// The contestants of `read`, `write` or `schedule`.
    pub(super) fn other_programs<'b>(
        &'b self,
        libraries: &'b [Library],
        opened: &'b [Opened],
        op: &'static str,
    ) -> Vec<Contestant<'b>> {
        let own: Rc<[c_int]> = self.own.iter().map(|index| *index as c_int).collect();
        let mut all = Vec::new();
        for (library, opened) in libraries.iter().zip(opened) {
            let anew = library.name == TWO_PHASE;
            if op == "schedule" {
                if library.name != "direct" {
                    let line = self.line(mpi_library(), op, &library.name);
                    let own = own.clone();
                    all.push(self.planning(line, move || self.open_with(library, &own)));
                }
                continue;
            }
            let line = self.line(mpi_library(), op, &format!("{} reused", library.name));
            all.push(self.contestant(line, Memory::Ordinary, move |values| {
                opened.shift(T::bytes_mut(values), op)
            }));
            if anew {
                let line = self.line(mpi_library(), op, &format!("{} anew", library.name));
                let (made, own) = (Rc::new(RefCell::new(None)), own.clone());
                let gone = made.clone();
                let mut anew = self.contestant(line, Memory::Ordinary, move |values| {
                    let opened = self.open_with(library, &own)?;
                    opened.shift(T::bytes_mut(values), op)?;
                    *made.borrow_mut() = Some(opened);
                    Ok(())
                });
                let mut check = anew.check;
                anew.check = Box::new(move || {
                    gone.borrow_mut().take();
                    check()
                });
                all.push(anew);
            }
        }
        all
    }
}
