//! What ranks tell one another on the control communicator.

use std::ffi::c_int;

/// The tag of all notices.
pub(crate) const NOTICE_TAG: c_int = 0;

/// The most bytes of a cause that are sent; longer ones are cut.
const MOST_CAUSE: usize = 2048;

/// A short message about the state of a rank. Between two ranks notices
/// arrive in the order in which they were sent, because they share one
/// communicator and one tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Notice {
    /// `rank` has failed: no call may succeed any more in this run.
    Failed {
        /// The rank (of the world) that failed.
        rank: usize,
        /// Why.
        cause: String,
    },
    /// The sender has ended its part of the run, and has sent `messages` data
    /// messages to the receiver of this notice since the program began.
    Ended {
        /// Data messages sent so far.
        messages: u64,
    },
    /// The sender's process is about to end: it takes part in no run any more.
    Left {
        /// Data messages sent so far.
        messages: u64,
    },
}

impl Notice {
    /// One byte for the kind, eight for the number, then the cause.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let (kind, number, text) = match self {
            Self::Failed { rank, cause } => (b'F', *rank as u64, shortened(cause)),
            Self::Ended { messages } => (b'E', *messages, ""),
            Self::Left { messages } => (b'L', *messages, ""),
        };
        let mut bytes = vec![kind];
        bytes.extend_from_slice(&number.to_le_bytes());
        bytes.extend_from_slice(text.as_bytes());
        bytes
    }

    /// The reverse of [`Notice::encode`].
    pub(crate) fn decode(bytes: &[u8]) -> Option<Self> {
        let (kind, rest) = bytes.split_first()?;
        let (number, text) = rest.split_first_chunk::<8>()?;
        let number = u64::from_le_bytes(*number);
        match kind {
            b'F' => Some(Self::Failed {
                rank: usize::try_from(number).ok()?,
                cause: String::from_utf8_lossy(text).into_owned(),
            }),
            b'E' => Some(Self::Ended { messages: number }),
            b'L' => Some(Self::Left { messages: number }),
            _ => None,
        }
    }
}

/// The beginning of `cause`, cut between two characters.
fn shortened(cause: &str) -> &str {
    let mut end = cause.len().min(MOST_CAUSE);
    while !cause.is_char_boundary(end) {
        end -= 1;
    }
    &cause[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notices_survive_the_journey() {
        for notice in [
            Notice::Failed {
                rank: 3,
                cause: "disk full: 12 µs".to_string(),
            },
            Notice::Ended { messages: 7 },
            Notice::Left { messages: u64::MAX },
        ] {
            assert_eq!(Notice::decode(&notice.encode()), Some(notice));
        }
    }

    #[test]
    fn long_causes_are_cut_between_characters() {
        let notice = Notice::Failed {
            rank: 0,
            cause: "é".repeat(MOST_CAUSE),
        };
        let Some(Notice::Failed { cause, .. }) = Notice::decode(&notice.encode()) else {
            panic!("not a failure");
        };
        assert_eq!(cause, "é".repeat(MOST_CAUSE / 2));
    }

    #[test]
    fn rubbish_is_no_notice() {
        assert_eq!(Notice::decode(b""), None);
        assert_eq!(Notice::decode(b"F123"), None);
        assert_eq!(Notice::decode(b"X12345678"), None);
    }
}
