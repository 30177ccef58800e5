//! [`Holder`]: the parts that one rank holds, as the procedure that serves others
//! sees them, and the thread that follows hints.

use std::collections::HashMap;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::sync::{Arc, OnceLock, Weak};

use super::part::Part;
use super::request::{Action, Asked};
use crate::error::{Error, Result};

/// Hints that wait to be followed; more are forgotten.
const HINTS: usize = 256;

/// The parts of one rank.
#[derive(Debug)]
pub(crate) struct Holder {
    parts: HashMap<usize, Arc<Part>>,
    hints: OnceLock<SyncSender<Asked>>,
}

impl Holder {
    pub(crate) fn new(parts: HashMap<usize, Arc<Part>>) -> Arc<Self> {
        Arc::new(Self {
            parts,
            hints: OnceLock::new(),
        })
    }

    pub(crate) fn part(&self, part: usize) -> Option<&Arc<Part>> {
        self.parts.get(&part)
    }

    pub(crate) fn parts(&self) -> impl Iterator<Item = (usize, &Arc<Part>)> {
        self.parts.iter().map(|(part, held)| (*part, held))
    }

    /// Does what a request asks for.
    pub(crate) fn serve(
        self: &Arc<Self>,
        asked: Asked,
        data: &[u8],
        room: &mut [u8],
    ) -> Result<()> {
        let Some(part) = self.part(asked.part) else {
            return Err(Error::Invalid(format!(
                "part {} of a disk-resident array is not held here",
                asked.part
            )));
        };
        if asked.action == Action::Prefetch && part.has_cache() {
            // Whether a hint is followed makes no difference but in time.
            let _ = self.hints().try_send(asked);
            return Ok(());
        }
        part.serve(&asked, data, room)
    }

    fn hints(self: &Arc<Self>) -> &SyncSender<Asked> {
        self.hints.get_or_init(|| {
            let (sender, receiver) = sync_channel(HINTS);
            let holder = Arc::downgrade(self);
            std::thread::spawn(move || follow(&receiver, &holder));
            sender
        })
    }

    /// No request is served from now on, and what is only in caches is written.
    pub(crate) fn close(&self) -> Result<()> {
        self.parts.values().try_for_each(|part| part.close())
    }
}

/// Follows hints until the holder is gone.
fn follow(hints: &Receiver<Asked>, holder: &Weak<Holder>) {
    while let Ok(asked) = hints.recv() {
        let part = holder
            .upgrade()
            .and_then(|holder| holder.part(asked.part).cloned());
        let Some(part) = part else {
            return;
        };
        // A failure comes up again when the elements are asked for.
        let _ = part.serve(&asked, &[], &mut []);
    }
}
