//! Panics that concern one call and not the rank.
//!
//! A panic fails the rank, and with it the program; under MPI it ends the job
//! at once. What runs on behalf of another rank must not do that: its panic is
//! the other's error.

use std::any::Any;
use std::cell::Cell;
use std::panic::{self, AssertUnwindSafe};

thread_local! {
    static CONTAINED: Cell<u32> = const { Cell::new(0) };
}

/// Runs `f` on this thread; a panic comes back as its message and fails nobody.
///
/// What `f` has been changing when it panicked stays as it is then.
pub fn contain<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    CONTAINED.set(CONTAINED.get() + 1);
    let outcome = panic::catch_unwind(AssertUnwindSafe(f));
    CONTAINED.set(CONTAINED.get() - 1);
    outcome.map_err(|payload| panic_message(payload.as_ref()))
}

/// Whether a panic of this thread would be contained.
pub fn are_contained() -> bool {
    CONTAINED.get() > 0
}

/// What a panic said.
pub(crate) fn panic_message(payload: &(dyn Any + Send)) -> String {
    if let Some(message) = payload.downcast_ref::<&str>() {
        (*message).into()
    } else if let Some(message) = payload.downcast_ref::<String>() {
        message.clone()
    } else {
        "no message".into()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_panic_comes_back_as_text() {
        assert!(!are_contained());
        assert_eq!(contain(are_contained), Ok(true));
        let outcome = contain(|| contain(|| panic!("number {}", 7)));
        assert_eq!(outcome, Ok(Err::<(), _>("number 7".into())));
        assert!(!are_contained());
    }
}
