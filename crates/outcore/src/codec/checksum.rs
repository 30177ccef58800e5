//! Fletcher's checksum over 16-bit words, as HDF5 computes and stores it.

/// The sum of the words, of which each counts as often as it is summed; an odd byte
/// at the end is the upper half of a word.
pub(super) fn fletcher32(data: &[u8]) -> u32 {
    let (mut first, mut second) = (0u32, 0u32);
    let fold = |sum: u32| (sum & 0xffff) + (sum >> 16);
    let (words, odd) = data.as_chunks::<2>();
    // So many words cannot overflow 32 bits.
    for some in words.chunks(360) {
        for word in some {
            first += u32::from(u16::from_be_bytes(*word));
            second += first;
        }
        (first, second) = (fold(first), fold(second));
    }
    if let [byte] = odd {
        first += u32::from(*byte) << 8;
        second += first;
        (first, second) = (fold(first), fold(second));
    }
    fold(second) << 16 | fold(first)
}

/// Whether the four bytes behind the data are their sum. Some versions of HDF5
/// stored its halves with their bytes reversed, and are believed too.
pub(super) fn fits_fletcher32(data: &[u8], stored: [u8; 4]) -> bool {
    let sum = fletcher32(data).to_le_bytes();
    let reversed = [sum[1], sum[0], sum[3], sum[2]];
    stored == sum || stored == reversed
}
