//! [`Inbox`]: the messages sent to one rank and not yet received.
//!
//! Small messages are copied in. Of a large one only a pointer is posted; the
//! receiver takes it out and copies straight from the sender's memory, while
//! the sender waits for the [`Receipt`]. A sender that must give up withdraws
//! its message; if it is not there any more the receiver is copying, and the
//! receipt comes whatever else fails.

use std::collections::{HashMap, VecDeque};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::bell::Bell;
use super::lent::Lent;

/// Whether the receiver has copied a lent message.
pub(crate) type Receipt = Arc<AtomicBool>;

/// A message under way.
#[derive(Debug)]
pub(crate) enum Message {
    /// A copy of it.
    Copied(Box<[u8]>),
    /// The sender's memory, which the sender keeps until the receipt is set or
    /// the message withdrawn.
    Lent(Lent, Receipt),
}

impl Message {
    /// The message in the sender's memory, and the receipt to wait for.
    pub(crate) fn lend(data: &[u8]) -> (Self, Receipt) {
        let receipt = Receipt::default();
        (Self::Lent(Lent::new(data), receipt.clone()), receipt)
    }

    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Copied(bytes) => bytes.len(),
            Self::Lent(piece, _) => piece.len(),
        }
    }

    /// Copies the message into `into` if it is as long as that. In any case
    /// its sender is free to go afterwards; it has to be woken.
    pub(crate) fn deliver(self, into: &mut [u8]) {
        let fits = self.len() == into.len();
        match self {
            Self::Copied(bytes) if fits => into.copy_from_slice(&bytes),
            Self::Copied(_) => {}
            Self::Lent(piece, receipt) => {
                if fits {
                    // SAFETY: the sender waits for the receipt, because the
                    // message is out of its inbox and cannot be withdrawn.
                    into.copy_from_slice(unsafe { piece.bytes() });
                }
                receipt.store(true, Ordering::Release);
            }
        }
    }
}

/// The queues of one sender and one tag.
type Queues = HashMap<(usize, u16), VecDeque<Message>>;

/// The messages for one rank.
#[derive(Debug, Default)]
pub(crate) struct Inbox {
    queues: Mutex<Queues>,
    /// Rung when a message arrives here, or a receipt for one sent from here.
    pub(crate) bell: Bell,
}

impl Inbox {
    /// Puts a message in and wakes the receiver.
    pub(crate) fn post(&self, from: usize, tag: u16, message: Message) {
        self.lock()
            .entry((from, tag))
            .or_default()
            .push_back(message);
        self.bell.ring();
    }

    /// Takes the oldest message with `tag` from `from`.
    pub(crate) fn take(&self, from: usize, tag: u16) -> Option<Message> {
        self.lock().get_mut(&(from, tag))?.pop_front()
    }

    /// Takes back the message that waits for `receipt`; false if the receiver
    /// has taken it already.
    pub(crate) fn withdraw(&self, from: usize, tag: u16, receipt: &Receipt) -> bool {
        let mut queues = self.lock();
        let Some(queue) = queues.get_mut(&(from, tag)) else {
            return false;
        };
        let place = queue.iter().position(
            |message| matches!(message, Message::Lent(_, other) if Arc::ptr_eq(other, receipt)),
        );
        place.and_then(|place| queue.remove(place)).is_some()
    }

    fn lock(&self) -> MutexGuard<'_, Queues> {
        self.queues.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
