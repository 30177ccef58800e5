//! LZF, which h5py has as a filter of its own.
//!
//! A byte below 32 is followed by one more literal byte than it says. Any other
//! has in its upper three bits how many bytes less two are repeated, and if all
//! three are set the next byte adds to that; its lower five bits and one more byte
//! say how far back less one they stand.

use super::wrong_length;

/// Literal bytes behind one control byte.
const MOST_LITERALS: usize = 32;

/// How far back a repetition may begin, and how long it may be.
const FARTHEST: usize = 1 << 13;
const LONGEST: usize = 2 + 7 + 255;

/// Repetitions of fewer bytes are not worth it.
const SHORTEST: usize = 3;

/// Bits of the hash of three bytes.
const HASH_BITS: u32 = 14;

pub(super) fn compress(data: &[u8], out: &mut Vec<u8>) -> Result<(), String> {
    u32::try_from(data.len()).map_err(|_| "LZF takes chunks below 4 GiB")?;
    // Where three bytes of each hash were seen last, plus one.
    let mut seen = vec![0u32; 1 << HASH_BITS];
    let (mut at, mut literals) = (0, 0);
    while at + SHORTEST <= data.len() {
        let three = &data[at..at + SHORTEST];
        let word = u32::from_le_bytes([three[0], three[1], three[2], 0]);
        let hash = word.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS);
        let before = std::mem::replace(&mut seen[hash as usize], at as u32 + 1);
        let before = (before as usize)
            .checked_sub(1)
            .filter(|before| at - before <= FARTHEST && data[*before..before + SHORTEST] == *three);
        let Some(before) = before else {
            at += 1;
            continue;
        };
        let most = LONGEST.min(data.len() - at);
        let differs = (SHORTEST..most).find(|len| data[before + len] != data[at + len]);
        let len = differs.unwrap_or(most);
        put_literals(&data[literals..at], out);
        let (back, more) = (at - before - 1, len - 2);
        let far = (back >> 8) as u8;
        match more {
            ..7 => out.push((more as u8) << 5 | far),
            _ => out.extend([7 << 5 | far, (more - 7) as u8]),
        }
        out.push(back as u8);
        at += len;
        literals = at;
    }
    put_literals(&data[literals..], out);
    Ok(())
}

fn put_literals(data: &[u8], out: &mut Vec<u8>) {
    for part in data.chunks(MOST_LITERALS) {
        out.push(part.len() as u8 - 1);
        out.extend_from_slice(part);
    }
}

/// The next byte of `rest`.
fn take(rest: &mut &[u8]) -> Result<usize, String> {
    let (byte, after) = rest.split_first().ok_or_else(too_short)?;
    *rest = after;
    Ok(usize::from(*byte))
}

fn too_short() -> String {
    "its LZF data end too early; it is damaged".into()
}

pub(super) fn decompress(data: &[u8], out: &mut [u8]) -> Result<(), String> {
    let len = out.len();
    let too_long = || format!("it decodes to more than {len} bytes; it is damaged");
    let (mut rest, mut made) = (data, 0);
    while !rest.is_empty() {
        let control = take(&mut rest)?;
        if control < MOST_LITERALS {
            let (literals, after) = rest.split_at_checked(control + 1).ok_or_else(too_short)?;
            let room = out.get_mut(made..made + literals.len());
            room.ok_or_else(too_long)?.copy_from_slice(literals);
            rest = after;
            made += literals.len();
            continue;
        }
        let mut count = control >> 5;
        if count == 7 {
            count += take(&mut rest)?;
        }
        count += 2;
        let back = (control % 32) << 8 | take(&mut rest)?;
        let from = made
            .checked_sub(back + 1)
            .ok_or("its LZF data repeat what is not there; it is damaged")?;
        if count > len - made {
            return Err(too_long());
        }
        if from + count <= made {
            out.copy_within(from..from + count, made);
        } else {
            // It repeats bytes that it makes itself.
            (0..count).for_each(|at| out[made + at] = out[from + at]);
        }
        made += count;
    }
    match made == len {
        true => Ok(()),
        false => Err(wrong_length(made, len)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn encoded(data: &[u8]) -> Vec<u8> {
        let mut out = Vec::new();
        compress(data, &mut out).unwrap();
        out
    }

    #[test]
    fn repetitions_are_found_up_to_the_limits() {
        for distance in [1, 2, FARTHEST - 1, FARTHEST, FARTHEST + 1] {
            for count in [2, 3, 8, 9, LONGEST - 1, LONGEST, LONGEST + 1, 5000] {
                // Noise, of which a part comes again.
                let mut data: Vec<u8> = (0..distance as u64)
                    .map(|at| (at.wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 51) as u8)
                    .collect();
                (0..count).for_each(|at| data.push(data[at]));
                let stored = encoded(&data);
                let mut back = vec![0; data.len()];
                decompress(&stored, &mut back).unwrap();
                assert!(back == data, "{distance} {count}");
            }
        }
        assert!(encoded(&[7; 10_000]).len() < 200);
    }

    #[test]
    fn what_is_not_lzf_is_refused() {
        for (stored, words) in [
            (&[3, 1, 2, 3][..], "too early"),
            (&[0x20], "too early"),
            (&[0xe0, 1], "too early"),
            (&[0, 9, 0x20, 1], "not there"),
            (&[0, 9, 0xe0, 255, 0], "more than 4"),
            (&[4, 1, 2, 3, 4, 5], "more than 4"),
            (&[0, 9], "1 bytes instead of 4"),
        ] {
            let problem = decompress(stored, &mut [0; 4]).unwrap_err();
            assert!(problem.contains(words), "{stored:?} -> {problem}");
        }
        let mut out = [0; 4];
        decompress(&[0, 9, 0x20, 0], &mut out).unwrap();
        assert_eq!(out, [9; 4]);
    }
}
