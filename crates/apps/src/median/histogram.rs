//! Medians of large windows of 8-bit values by counts that move along.
//!
//! A window one column further loses one column and gains another, so the
//! counts of its 256 possible values are kept, and beside them how many values
//! lie below the present median, which then moves by a few steps (Huang 1979).

/// Writes the medians of the windows of `width` columns of all `rows`, whose
/// values sort as unsigned once the bits `sign` are reversed.
pub(super) fn medians(rows: &[&[u8]], width: usize, result: &mut [u8], sign: u8) {
    let half = (rows.len() * width / 2) as u64;
    let mut counts = [0u64; 256];
    let (mut median, mut below) = (0usize, 0u64);
    for row in rows {
        for value in &row[..width] {
            counts[usize::from(value ^ sign)] += 1;
        }
    }
    for column in 0..result.len() {
        if column > 0 {
            for row in rows {
                let gone = usize::from(row[column - 1] ^ sign);
                let come = usize::from(row[column + width - 1] ^ sign);
                counts[gone] -= 1;
                counts[come] += 1;
                below = below + u64::from(come < median) - u64::from(gone < median);
            }
        }
        while below > half {
            median -= 1;
            below -= counts[median];
        }
        while below + counts[median] <= half {
            below += counts[median];
            median += 1;
        }
        result[column] = median as u8 ^ sign;
    }
}
