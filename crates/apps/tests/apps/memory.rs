//! Work within little memory, and within what an error names as enough.

use outcore::{Error, MemoryBudget};

/// Runs with the given memory or, if that is too little, with what the
/// error names as enough.
pub(crate) fn with_memory<R>(memory: u64, run: impl Fn(MemoryBudget) -> Result<R, Error>) -> R {
    match run(MemoryBudget::of(memory)) {
        Ok(result) => result,
        Err(error) => {
            let least = least_memory(&error.to_string());
            assert!(least > memory, "{error}");
            // The message rounds to three digits.
            assert!(run(MemoryBudget::of(least - least / 100 - 1)).is_err());
            run(MemoryBudget::of(least + least / 100)).unwrap()
        }
    }
}

/// The bytes that an error message names as enough.
pub(crate) fn least_memory(message: &str) -> u64 {
    let words: Vec<&str> = message.split_whitespace().collect();
    let at = words
        .iter()
        .position(|word| *word == "least")
        .unwrap_or_else(|| panic!("{message}"));
    let number: f64 = words[at + 1]
        .parse()
        .unwrap_or_else(|_| panic!("{message}"));
    let unit = match words[at + 2] {
        "B" | "bytes" | "byte" => 1.0,
        "KiB" => 1024.0,
        "MiB" => 1024.0 * 1024.0,
        other => panic!("{other} in {message}"),
    };
    (number * unit) as u64
}
