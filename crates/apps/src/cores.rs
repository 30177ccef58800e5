//! How many threads a rank may compute with: its share of the processors.
//!
//! Ranks of one process divide its processors. Ranks that are processes divide
//! them with those of the same machine that may run on the same ones; so
//! processes that a launcher has bound to processors of their own have all of
//! these.

use std::hash::{DefaultHasher, Hash, Hasher};

use outcore::{Comm, Result};

/// Collective: the threads of this rank.
pub(crate) fn threads_of_rank(comm: &Comm) -> Result<usize> {
    let cores = outcore::storage::cores();
    let mine = where_it_runs();
    let alike = match comm.transport().shares_memory() {
        true => comm.size(),
        false => {
            let all = comm.all_gather(&[mine])?;
            all.iter().filter(|other| **other == mine).count()
        }
    };
    Ok((cores / alike.max(1)).max(1))
}

/// A number in which processes differ that do not share processors.
fn where_it_runs() -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let allowed = status
        .lines()
        .find(|line| line.starts_with("Cpus_allowed_list:"));
    let mut hasher = DefaultHasher::new();
    (read("/proc/sys/kernel/random/boot_id"), allowed).hash(&mut hasher);
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranks_divide_the_processors() {
        let alone = outcore::run(1, threads_of_rank).unwrap()[0];
        let many = outcore::run(2 * alone, threads_of_rank).unwrap();
        assert!(many.iter().all(|threads| *threads == 1));
    }
}
