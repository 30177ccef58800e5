//! What MPI itself does in the place of an exchange, to measure against.

use std::ffi::{c_int, c_void};

use mpi::ffi;
use outcore_transport::{Error, Result};

use crate::library::check;
use crate::world::World;

/// Collective over all ranks, within a [`crate::run()`]: plain `MPI_Alltoallv`
/// of bytes that are packed already, in the order of the ranks.
///
/// A yardstick for benchmarks and nothing else: it waits inside MPI, so that
/// it hangs when another rank fails, and cannot move more than 2 GiB.
pub fn all_to_all_v_packed(
    send: &[u8],
    send_counts: &[usize],
    receive: &mut [u8],
    receive_counts: &[usize],
) -> Result<()> {
    let world = World::get()?;
    let (send_counts, send_places) = layout(world, send.len(), send_counts)?;
    let (receive_counts, receive_places) = layout(world, receive.len(), receive_counts)?;
    // SAFETY: counts and places have an element for each rank and lie within
    // the buffers; the call is over before the borrows are.
    let code = unsafe {
        ffi::MPI_Alltoallv(
            send.as_ptr().cast::<c_void>(),
            send_counts.as_ptr(),
            send_places.as_ptr(),
            ffi::RSMPI_UINT8_T,
            receive.as_mut_ptr().cast::<c_void>(),
            receive_counts.as_ptr(),
            receive_places.as_ptr(),
            ffi::RSMPI_UINT8_T,
            world.internal.raw(),
        )
    };
    check("MPI_Alltoallv", code)
}

/// Collective over all ranks, within a [`crate::run()`]: plain `MPI_Alltoall` of
/// equal parts, in the order of the ranks. A yardstick like
/// [`all_to_all_v_packed`].
pub fn all_to_all_equal(send: &[u8], receive: &mut [u8]) -> Result<()> {
    let world = World::get()?;
    let part = c_int::try_from(send.len() / world.size);
    let (Ok(part), true, true) = (
        part,
        send.len() == receive.len(),
        send.len().is_multiple_of(world.size),
    ) else {
        return Err(Error::Invalid(format!(
            "{} bytes to send and {} to receive are no equal parts for {} ranks",
            send.len(),
            receive.len(),
            world.size
        )));
    };
    // SAFETY: both buffers have a part for each rank; the call is over before
    // the borrows are.
    let code = unsafe {
        ffi::MPI_Alltoall(
            send.as_ptr().cast::<c_void>(),
            part,
            ffi::RSMPI_UINT8_T,
            receive.as_mut_ptr().cast::<c_void>(),
            part,
            ffi::RSMPI_UINT8_T,
            world.internal.raw(),
        )
    };
    check("MPI_Alltoall", code)
}

/// The counts as MPI wants them, and where the part of each rank begins.
fn layout(world: &World, len: usize, counts: &[usize]) -> Result<(Vec<c_int>, Vec<c_int>)> {
    let sum = counts.iter().try_fold(0usize, |sum, &n| sum.checked_add(n));
    if counts.len() != world.size || sum != Some(len) || c_int::try_from(len).is_err() {
        return Err(Error::Invalid(format!(
            "{} counts do not divide {len} bytes (fewer than 2^31) among {} ranks",
            counts.len(),
            world.size
        )));
    }
    let places = counts.iter().scan(0, |end, &count| {
        let place = *end;
        *end += count as c_int;
        Some(place)
    });
    let places = places.collect();
    Ok((counts.iter().map(|&count| count as c_int).collect(), places))
}
