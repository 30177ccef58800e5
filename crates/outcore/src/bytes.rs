//! Amounts of bytes as people read them: `1.5 GiB`.

/// Writes an amount of bytes: `1.5 GiB`.
pub fn bytes_text(bytes: u64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    if bytes < 1024 {
        return format!("{bytes} bytes");
    }
    let power = (bytes.ilog2() / 10) as usize;
    let amount = bytes as f64 / (1u64 << (10 * power)) as f64;
    let digits = if amount < 10.0 && amount.fract() != 0.0 {
        2
    } else {
        usize::from(amount.fract() != 0.0)
    };
    format!("{amount:.digits$} {}", UNITS[power - 1])
}

#[cfg(test)]
mod tests {
    use super::bytes_text;

    #[test]
    fn amounts() {
        assert_eq!(bytes_text(1 << 30), "1 GiB");
        assert_eq!(bytes_text(1_500_000), "1.43 MiB");
        assert_eq!(bytes_text(7), "7 bytes");
        assert_eq!(bytes_text(u64::MAX), "16 EiB");
    }
}
