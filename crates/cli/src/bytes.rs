//! Amounts of bytes as people write them: `512MiB`, `2GB`, `4096`.

pub(crate) use outcore::bytes_text as show;

/// Reads an amount of bytes.
pub(crate) fn parse(text: &str) -> Result<u64, String> {
    let digits = text
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .trim_end();
    let unit = &text[text
        .trim_end_matches(|c: char| c.is_ascii_alphabetic())
        .len()..];
    let factor: u64 = match unit.to_ascii_lowercase().as_str() {
        "" | "b" => 1,
        "k" | "kb" => 1_000,
        "m" | "mb" => 1_000_000,
        "g" | "gb" => 1_000_000_000,
        "t" | "tb" => 1_000_000_000_000,
        "ki" | "kib" => 1 << 10,
        "mi" | "mib" => 1 << 20,
        "gi" | "gib" => 1 << 30,
        "ti" | "tib" => 1 << 40,
        _ => {
            return Err(format!(
                "'{unit}' is no unit of bytes; write e.g. 512MiB or 2GB"
            ));
        }
    };
    let amount: f64 = digits
        .parse()
        .ok()
        .filter(|amount: &f64| amount.is_finite() && *amount >= 0.0)
        .ok_or_else(|| format!("'{digits}' is no amount; write e.g. 512MiB or 2GB"))?;
    let bytes = amount * factor as f64;
    if bytes > i64::MAX as f64 {
        return Err(format!("{text} is more than 2^63 bytes"));
    }
    Ok(bytes as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn amounts() {
        for (text, bytes) in [
            ("4096", 4096),
            ("512MiB", 512 << 20),
            ("2GB", 2_000_000_000),
            ("1.5 KiB", 1536),
            ("64m", 64_000_000),
            ("0", 0),
        ] {
            assert_eq!(parse(text), Ok(bytes), "{text}");
        }
        for text in ["", "MiB", "-1", "12 parsecs", "99999999999TB", "1e400"] {
            assert!(parse(text).is_err(), "{text}");
        }
    }
}
