//! PackBits: a byte says how many bytes follow as they are (0 to 127: one more
//! than that), or how often the next one is repeated (129 to 255: 257 less that).

/// Decodes into `out`, all of it; what follows is left.
pub(super) fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    let (mut rest, mut at) = (stored, 0);
    while at < out.len() {
        let short = || {
            format!(
                "it decodes to {at} bytes instead of {}; it is damaged",
                out.len()
            )
        };
        let (head, after) = rest.split_first().ok_or_else(short)?;
        let room = out.len() - at;
        match head {
            0..=127 => {
                let (bytes, after) = after
                    .split_at_checked(usize::from(*head) + 1)
                    .ok_or_else(short)?;
                let len = bytes.len().min(room);
                out[at..at + len].copy_from_slice(&bytes[..len]);
                (rest, at) = (after, at + len);
            }
            128 => rest = after,
            129..=255 => {
                let (byte, after) = after.split_first().ok_or_else(short)?;
                let len = (257 - usize::from(*head)).min(room);
                out[at..at + len].fill(*byte);
                (rest, at) = (after, at + len);
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_of_the_specification() {
        let stored = [
            0xfe, 0xaa, 0x02, 0x80, 0x00, 0x2a, 0xfd, 0xaa, 0x03, 0x80, 0x00, 0x2a, 0x22, 0xf7,
            0xaa,
        ];
        let expected = [
            0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0xaa, 0xaa, 0xaa, 0xaa, 0x80, 0x00, 0x2a, 0x22,
            0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa, 0xaa,
        ];
        let mut out = [0; 24];
        decode(&stored, &mut out).unwrap();
        assert_eq!(out, expected);
        assert!(decode(&stored, &mut [0; 25]).is_err());
        assert!(decode(&stored[..14], &mut out).is_err());
        assert!(decode(&[], &mut []).is_ok());
    }
}
