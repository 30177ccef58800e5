//! Names of checkpoints and of the variables in them.
//!
//! They become names of directories, so they may not lead to another place:
//! neither when a program saves, nor when a manifest is read.

/// The longest name; with what is put around it, a file system takes it.
const LONGEST: usize = 180;

/// Fails with what is wrong with `name`, of a `kind` such as "checkpoint".
pub(super) fn check(kind: &str, name: &str) -> Result<(), String> {
    let problem = if name.is_empty() {
        "it is empty".into()
    } else if name.len() > LONGEST {
        format!("it is longer than {LONGEST} bytes")
    } else if name.starts_with('.') {
        "it begins with a dot, as what is hidden does".into()
    } else if name.contains(['/', '\\']) || name.chars().any(char::is_control) {
        "it holds a slash, a backslash or a control character".into()
    } else {
        return Ok(());
    };
    let shown: String = name.chars().take(60).collect();
    Err(format!(
        "{shown:?} cannot be the name of a {kind}: {problem}"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_lead_elsewhere_are_refused() {
        for name in ["u", "step-000012", "Temperatur (K)", "ü", "a..b"] {
            assert_eq!(check("checkpoint", name), Ok(()), "{name}");
        }
        let long = "x".repeat(181);
        for name in [
            "", ".", "..", "../u", "a/b", "a\\b", ".hidden", "a\0b", "a\nb", &long,
        ] {
            assert!(check("checkpoint", name).is_err(), "{name:?}");
        }
    }
}
