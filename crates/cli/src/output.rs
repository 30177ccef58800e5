//! The names of outputs: which format they say, and whether they are free.

use std::path::Path;

use outcore::{ArrayDescriptor, Comm, Error, Result, distinct, format_of_new, shape_text};

/// Whether this is a variable of a classic NetCDF file, which holds row order.
pub(crate) fn is_netcdf(name: &str) -> bool {
    format_of_new(name) == Some("netcdf")
}

/// Whether this is a file of NetCDF-4.
pub(crate) fn is_netcdf4(name: &str) -> bool {
    name.ends_with(".nc4")
}

/// Whether this is an array in outcore's own format.
pub(crate) fn is_native(name: &str) -> bool {
    format_of_new(name) == Some("native")
}

/// Whether this is text.
pub(crate) fn is_text(name: &str) -> bool {
    name == "-" || name.ends_with(".txt") || name.ends_with(".csv")
}

/// Whether the name says a format; anything else is plain bytes.
pub(crate) fn has_format(name: &str) -> bool {
    let endings = [".tif", ".tiff"];
    name.starts_with("raw:")
        || endings.iter().any(|ending| name.ends_with(ending))
        || format_of_new(name).is_some()
}

/// The name of an array to make: one that says no format becomes that of a plain file.
pub(crate) fn array_name(descriptor: &ArrayDescriptor, output: &str) -> String {
    if has_format(output) {
        return output.into();
    }
    format!(
        "raw:{output}?shape={}&type={}&layout={}&byteorder={}",
        shape_text(&descriptor.shape),
        descriptor.element_type,
        descriptor.arrangement,
        descriptor.byte_order
    )
}

/// Fails if this is text, where only arrays are written.
pub(crate) fn check_array(output: &str) -> Result<(), String> {
    match is_text(output) {
        true => Err(format!(
            "'{output}' would be text, but this command writes arrays; name a file ending in .npy, \
             .oc, .zarr, .h5 or .nc"
        )),
        false => Ok(()),
    }
}

/// Collective: fails if `output` would take the place of one of the arrays it is made of.
pub(crate) fn check_distinct(comm: &Comm, inputs: &[&str], output: &str) -> Result<()> {
    let mut inputs = inputs.iter();
    let checked = match comm.rank() {
        0 => inputs.try_for_each(|input| distinct(input, output)),
        _ => Ok(()),
    };
    Ok(comm.agree(checked)?)
}

/// Fails if a file of this name cannot be written: it exists and is not to be
/// replaced, or there is no directory for it. Asked before the work begins.
pub(crate) fn check_free(name: &str, force: bool) -> Result<()> {
    let path = Path::new(name);
    if name.contains("://") {
        return Err(Error::Invalid(format!(
            "{name} is an address, where only arrays are made; name a local file"
        )));
    }
    Err(Error::Invalid(match (path.metadata(), path.parent()) {
        (Ok(there), _) if there.is_dir() => format!("{name} is a directory; name a file"),
        (Ok(there), _) if there.is_file() && !force => {
            format!("{name} exists already; --force replaces it")
        }
        (Err(_), _) if path.is_symlink() && !force => {
            format!("{name} is a link that leads nowhere; --force replaces it")
        }
        (Err(_), Some(folder)) if !folder.as_os_str().is_empty() && !folder.is_dir() => format!(
            "cannot write {name}: there is no directory {}; make it first",
            folder.display()
        ),
        // A pipe, for example, is written itself.
        _ => return Ok(()),
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endings_say_formats() {
        for name in [
            "a.npy",
            "a.oc",
            "a.oc/",
            "a.zarr",
            "a.zarr/t",
            "zarr2:a",
            "a.h5",
            "a.h5:/t",
            "a.hdf5:t",
            "a.nc",
            "a.nc:t",
            "a.tif",
            "raw:a?shape=4&type=u8",
        ] {
            assert!(has_format(name) && !is_text(name), "{name}");
        }
        for name in ["a.bin", "a.txt", "a.npy.bin", "a", "a.nch", ".zarr"] {
            assert!(!has_format(name), "{name}");
        }
    }
}
