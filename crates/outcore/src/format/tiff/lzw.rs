//! LZW as TIFF has it: codes of 9 to 12 bits, the first bits first; 256 begins a
//! new table, 257 ends. Codes get longer one entry before they have to.
//!
//! An entry of the table is a stretch of what was decoded already: where the code
//! before it began, and one byte more than that had. So the table is two numbers
//! an entry, and entries are copied within the output.

const CLEAR: usize = 256;
const END: usize = 257;
const FIRST: usize = 258;
const MOST: usize = 4096;

/// Decodes into `out`, all of it; what follows is left.
pub(super) fn decode(stored: &[u8], out: &mut [u8]) -> Result<(), String> {
    if let [0, second, ..] = stored
        && second & 1 == 1
    {
        return Err("it is LZW of the first kind, last bits first, which is not supported".into());
    }
    let mut table = [(0usize, 0usize); MOST];
    let (mut next, mut width) = (FIRST, 9);
    // Where the code before was written, and its length; none after a new table.
    let mut before: Option<(usize, usize)> = None;
    let mut bits = Bits {
        stored,
        held: 0,
        count: 0,
    };
    let mut at = 0;
    while at < out.len() {
        let code = bits.take(width).ok_or_else(|| too_short(at, out.len()))?;
        match code {
            CLEAR => {
                (next, width, before) = (FIRST, 9, None);
                continue;
            }
            END => return Err(too_short(at, out.len())),
            _ => {}
        }
        // What the code stands for: a byte, or a stretch of the output. The newest
        // entry reaches one byte beyond it, which is its own first.
        if let Some((start, len)) = before
            && next < MOST
        {
            table[next] = (start, len + 1);
            next += 1;
        }
        let len = match code {
            byte if byte < CLEAR => {
                out[at] = byte as u8;
                1
            }
            entry if entry < next => {
                let (start, len) = table[entry];
                let len = len.min(out.len() - at);
                for step in 0..len {
                    out[at + step] = out[start + step];
                }
                len
            }
            _ => return Err("LZW cannot decode it; it is damaged".into()),
        };
        before = Some((at, len));
        at += len;
        // The entry that the next code makes counts already.
        width = match next + 1 {
            ..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        };
    }
    Ok(())
}

fn too_short(found: usize, expected: usize) -> String {
    format!("it decodes to {found} bytes instead of {expected}; it is damaged")
}

struct Bits<'a> {
    stored: &'a [u8],
    held: u32,
    count: u32,
}

impl Bits<'_> {
    fn take(&mut self, width: u32) -> Option<usize> {
        while self.count < width {
            let (byte, rest) = self.stored.split_first()?;
            self.held = self.held << 8 | u32::from(*byte);
            self.count += 8;
            self.stored = rest;
        }
        self.count -= width;
        Some((self.held >> self.count) as usize & ((1 << width) - 1))
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap;

    use proptest::prelude::*;

    use super::*;

    /// The length of codes once the entries before `next` are there.
    fn width_at(next: usize) -> u32 {
        match next {
            ..512 => 9,
            512..1024 => 10,
            1024..2048 => 11,
            _ => 12,
        }
    }

    /// As libtiff and the specification's own procedure encode.
    fn encode(data: &[u8]) -> Vec<u8> {
        let (mut bytes, mut held, mut count) = (Vec::new(), 0u32, 0);
        let mut put = |code: usize, width: u32| {
            held = held << width | code as u32;
            count += width;
            while count >= 8 {
                count -= 8;
                bytes.push((held >> count) as u8);
                held &= (1 << count) - 1;
            }
        };
        let mut table: HashMap<Vec<u8>, usize> = HashMap::new();
        let code_of = |table: &HashMap<Vec<u8>, usize>, text: &[u8]| match text {
            [byte] => usize::from(*byte),
            longer => table[longer],
        };
        let (mut next, mut width) = (FIRST, 9);
        put(CLEAR, width);
        let mut text: Vec<u8> = Vec::new();
        for byte in data {
            let mut longer = text.clone();
            longer.push(*byte);
            if longer.len() == 1 || table.contains_key(&longer) {
                text = longer;
                continue;
            }
            put(code_of(&table, &text), width);
            table.insert(longer, next);
            next += 1;
            width = width_at(next);
            if next == 4095 {
                put(CLEAR, width);
                table.clear();
                (next, width) = (FIRST, 9);
            }
            text = vec![*byte];
        }
        if !text.is_empty() {
            put(code_of(&table, &text), width);
            next += 1;
            width = width_at(next);
        }
        put(END, width);
        put(0, 7);
        bytes
    }

    #[test]
    fn the_example_of_the_specification() {
        // 7 7 7 8 8 7 7 6 6 becomes 256 7 258 8 8 258 6 6 257.
        let data = [7, 7, 7, 8, 8, 7, 7, 6, 6];
        let codes = [256u32, 7, 258, 8, 8, 258, 6, 6, 257];
        let mut stored = [0u8; 11];
        for (at, code) in codes.iter().enumerate() {
            for bit in 0..9 {
                let place = at * 9 + bit;
                stored[place / 8] |= ((code >> (8 - bit) & 1) as u8) << (7 - place % 8);
            }
        }
        let mut out = [0; 9];
        decode(&stored, &mut out).unwrap();
        assert_eq!(out, data);
    }

    #[test]
    fn the_first_kind_is_named() {
        let problem = decode(&[0, 1, 6, 12], &mut [0; 3]).unwrap_err();
        assert!(problem.contains("first kind"), "{problem}");
    }

    #[test]
    fn long_tables_are_filled_and_begun_anew() {
        let mut state = 1u64;
        let data: Vec<u8> = (0..200_000)
            .map(|at| {
                state = state.wrapping_mul(6364136223846793005).wrapping_add(1);
                (state >> 60) as u8 + (at / 50_000) as u8 * 16
            })
            .collect();
        let mut out = vec![0; data.len()];
        decode(&encode(&data), &mut out).unwrap();
        assert!(out == data);
    }

    proptest! {
        #[test]
        fn what_is_encoded_is_decoded(data in prop::collection::vec(0u8..4, 0..3000)) {
            let stored = encode(&data);
            let mut out = vec![9; data.len()];
            decode(&stored, &mut out).unwrap();
            prop_assert_eq!(&out, &data);
            let mut longer = vec![0; data.len() + 1];
            prop_assert!(decode(&stored, &mut longer).is_err());
        }

        #[test]
        fn any_bytes_are_decoded_or_refused(stored in prop::collection::vec(any::<u8>(), 0..400)) {
            let _ = decode(&stored, &mut vec![0; 2000]);
        }
    }
}
