//! The bytes of elements, sorted by their place in the element: what makes numbers
//! compress well. Bytes behind the last whole element stay as they are.

/// Puts the bytes of `data` into `out` in shuffled order.
pub(super) fn shuffle(data: &[u8], width: usize, out: &mut [u8]) {
    each_width(width, data, out, true);
}

/// The other way round.
pub(super) fn unshuffle(data: &[u8], width: usize, out: &mut [u8]) {
    each_width(width, data, out, false);
}

fn each_width(width: usize, data: &[u8], out: &mut [u8], forward: bool) {
    match width {
        0 | 1 => out.copy_from_slice(data),
        2 => known::<2>(data, out, forward),
        4 => known::<4>(data, out, forward),
        8 => known::<8>(data, out, forward),
        16 => known::<16>(data, out, forward),
        width => any(width, data, out, forward),
    }
}

/// Elements at a time: all their bytes stay in the nearest cache.
const BLOCK: usize = 256;

fn known<const W: usize>(data: &[u8], out: &mut [u8], forward: bool) {
    let count = data.len() / W;
    for start in (0..count).step_by(BLOCK) {
        let end = (start + BLOCK).min(count);
        for byte in 0..W {
            let plane = byte * count + start..byte * count + end;
            if forward {
                let elements = data[start * W..end * W].as_chunks::<W>().0;
                for (to, element) in out[plane].iter_mut().zip(elements) {
                    *to = element[byte];
                }
            } else {
                let elements = out[start * W..end * W].as_chunks_mut::<W>().0;
                for (element, from) in elements.iter_mut().zip(&data[plane]) {
                    element[byte] = *from;
                }
            }
        }
    }
    out[count * W..].copy_from_slice(&data[count * W..]);
}

fn any(width: usize, data: &[u8], out: &mut [u8], forward: bool) {
    let count = data.len() / width;
    for element in 0..count {
        for byte in 0..width {
            let (plain, shuffled) = (element * width + byte, byte * count + element);
            match forward {
                true => out[shuffled] = data[plain],
                false => out[plain] = data[shuffled],
            }
        }
    }
    out[count * width..].copy_from_slice(&data[count * width..]);
}
