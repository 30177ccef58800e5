//! Amounts of bytes as people read them: `1.5 GiB`.

const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];

/// Writes an amount of bytes: `1.5 GiB`.
pub fn bytes_text(bytes: u64) -> String {
    text(bytes, f64::round)
}

/// As [`bytes_text`], but rounded up: for amounts that must be enough.
pub(crate) fn least_text(bytes: u64) -> String {
    text(bytes, f64::ceil)
}

fn text(bytes: u64, rounded: fn(f64) -> f64) -> String {
    if bytes == 1 {
        return "1 byte".into();
    }
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let mut power = (bytes.ilog2() / 10) as usize;
    let mut amount = bytes as f64 / (1u64 << (10 * power)) as f64;
    if rounded(amount * 10.0) >= 10240.0 && power < UNITS.len() {
        (power, amount) = (power + 1, 1.0);
    }
    let digits = if amount < 10.0 && amount.fract() != 0.0 {
        2
    } else {
        usize::from(amount.fract() != 0.0)
    };
    let steps = [1.0, 10.0, 100.0][digits];
    let amount = rounded(amount * steps) / steps;
    format!("{amount:.digits$} {}", UNITS[power - 1])
}

#[cfg(test)]
mod tests {
    use super::{bytes_text, least_text};

    #[test]
    fn amounts() {
        assert_eq!(bytes_text(1 << 30), "1 GiB");
        assert_eq!(bytes_text(1_500_000), "1.43 MiB");
        assert_eq!(bytes_text(1), "1 byte");
        assert_eq!(bytes_text(7), "7 bytes");
        assert_eq!(bytes_text(u64::MAX), "16 EiB");
        assert_eq!(bytes_text((1 << 20) + 1), "1.00 MiB");
        assert_eq!(bytes_text((1 << 30) - 1), "1 GiB");
        assert_eq!(least_text((1 << 30) - 1), "1 GiB");
        assert_eq!(bytes_text(1023 << 20), "1023 MiB");
        assert_eq!(least_text((1 << 20) + 1), "1.01 MiB");
        assert_eq!(least_text(20 << 20), "20 MiB");
        assert_eq!(least_text(7), "7 bytes");
    }
}
