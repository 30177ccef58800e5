//! [`Cores`]: where the data server of a rank may run.
//!
//! Launchers of MPI bind the ranks of a node to cores of their own, and a thread inherits
//! that. A server that is bound to the core of its rank has to be woken there, across
//! cores, while the caller's core, whose thread has gone to sleep for the answer, has
//! nothing to do; to wake a core takes four times as long as to change threads on one.
//! So a server that sleeps may run wherever a rank of its node may.

use outcore_transport::Comm;

use crate::error::Result;

/// Some cores of this node.
#[derive(Debug, Clone, Copy)]
pub(super) struct Cores {
    #[cfg(target_os = "linux")]
    set: libc::cpu_set_t,
}

/// The words of a set of cores.
#[cfg(target_os = "linux")]
const WORDS: usize = size_of::<libc::cpu_set_t>() / 8;

#[cfg(target_os = "linux")]
impl Cores {
    /// Collective: the cores of this rank and of those that share its node; `None` if
    /// they cannot be told, or are those of this rank alone.
    pub(super) fn of_node(comm: &Comm, near: impl Fn(usize) -> bool) -> Result<Option<Self>> {
        let own = words_of_this_thread();
        let all = comm.all_gather(&own)?;
        let mut union = own;
        for (rank, words) in all.chunks_exact(WORDS).enumerate() {
            if near(rank) {
                let pairs = union.iter_mut().zip(words);
                pairs.for_each(|(word, more)| *word |= more);
            }
        }
        let more = union != own && own != [0; WORDS];
        // SAFETY: a set of cores is bits, whatever they are, and as long as the words.
        let set = unsafe { std::mem::transmute::<[u64; WORDS], libc::cpu_set_t>(union) };
        Ok(more.then_some(Self { set }))
    }

    /// Lets this thread run on all of them. If the system forbids it, it stays where it
    /// is, which costs nothing but time.
    pub(super) fn use_all(&self) {
        // SAFETY: the kernel only reads the set.
        unsafe { libc::sched_setaffinity(0, size_of::<libc::cpu_set_t>(), &raw const self.set) };
    }
}

/// The cores that this thread may run on; none if they cannot be told.
#[cfg(target_os = "linux")]
fn words_of_this_thread() -> [u64; WORDS] {
    let mut words = [0_u64; WORDS];
    // SAFETY: the kernel writes no more than the words hold.
    let told =
        unsafe { libc::sched_getaffinity(0, size_of_val(&words), words.as_mut_ptr().cast()) };
    if told == 0 { words } else { [0; WORDS] }
}

#[cfg(not(target_os = "linux"))]
impl Cores {
    /// They cannot be told.
    pub(super) fn of_node(_: &Comm, _: impl Fn(usize) -> bool) -> Result<Option<Self>> {
        Ok(None)
    }

    /// There are none.
    pub(super) fn use_all(&self) {}
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn threads_of_one_process_have_the_cores_that_they_have() {
        let found = crate::run(2, |comm| {
            let cores = Cores::of_node(comm, |_| true)?;
            Ok::<_, crate::error::Error>(cores.is_some())
        });
        assert_eq!(found.unwrap(), [false, false]);
        assert_ne!(words_of_this_thread(), [0; WORDS]);
    }
}
