//! Names of hidden files that stand beside what they are for, which they name:
//! `.1f2e-field.npy`, `.field.npy.journal`.
//!
//! File systems take names of 255 bytes. Where the whole name has no room, its
//! end stays, which says the format, and a checksum stands for the rest.

/// The longest name of a file, in bytes.
const LONGEST: usize = 255;

/// Left for what is put behind such a name, as in `.1f2e-field.npy.pass12`.
const ROOM: usize = 15;

/// A dot, `before`, `name` or what there is room for, `after`.
pub fn hidden_name(before: &str, name: &str, after: &str) -> String {
    let room = LONGEST.saturating_sub(1 + before.len() + after.len() + ROOM);
    if name.len() <= room {
        return format!(".{before}{name}{after}");
    }
    let sum = format!("{:08x}-", crc32c::crc32c(name.as_bytes()));
    let mut from = name.len() - room.saturating_sub(sum.len());
    while !name.is_char_boundary(from) {
        from += 1;
    }
    format!(".{before}{sum}{}{after}", &name[from..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_keep_their_end_and_stay_apart() {
        assert_eq!(hidden_name("1-", "a.npy", ""), ".1-a.npy");
        for letter in ["n", "ö", "😀"] {
            for len in 1..=255 / letter.len() {
                let name = letter.repeat(len) + ".npy";
                let hidden = hidden_name("0123456789abcdef0123456789abcdef-", &name, ".journal");
                assert!(hidden.len() + ROOM <= LONGEST, "{hidden}");
                assert!(hidden.ends_with(".npy.journal"), "{hidden}");
                let other = hidden_name("", &format!("x{name}"), "");
                assert_ne!(hidden_name("", &name, ""), other);
            }
        }
    }
}
