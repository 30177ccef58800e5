//! B-trees of version 1: of the names of a group, and of chunks.

use std::collections::HashSet;

use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// What a tree holds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Kind {
    /// Symbol table nodes.
    Names,
    /// Chunks of so many axes, that of the bytes of an element included.
    Chunks(usize),
}

/// An entry of the lowest nodes of a tree.
#[derive(Debug)]
pub(crate) struct Leaf<'a> {
    /// The address of the entry.
    pub(crate) address: u64,
    pub(crate) key: &'a [u8],
    /// The address that it leads to.
    pub(crate) child: u64,
}

/// Calls `found` with each leaf of the tree.
pub(crate) fn walk(
    source: &Source,
    root: u64,
    kind: Kind,
    found: &mut dyn FnMut(Leaf<'_>) -> Parsed<()>,
) -> Parsed<()> {
    let (number, key_len) = match kind {
        Kind::Names => (0, source.length_size),
        Kind::Chunks(axes) => (1, 8 + 8 * axes),
    };
    let mut seen = HashSet::new();
    // Nodes that wait, with the level that they must have.
    let mut waiting = vec![(root, None)];
    while let Some((address, level)) = waiting.pop() {
        if !seen.insert(address) {
            return Err("a B-tree leads back to itself; the file is damaged".into());
        }
        let prefix = 8 + 2 * source.offset_size as u64;
        let head = source.read(address, prefix)?;
        let mut fields = Fields::little("a B-tree node", &head);
        fields.signature(b"TREE")?;
        let (found_kind, found_level, used) = (fields.u8()?, fields.u8()?, fields.u16()?);
        if found_kind != number || level.is_some_and(|level| level != found_level) {
            return Err("a B-tree node is not where it belongs; the file is damaged".into());
        }
        let entry = key_len + source.offset_size;
        let body = source.read(address + prefix, u64::from(used) * entry as u64)?;
        let mut children = Vec::new();
        for (bytes, at) in body.chunks_exact(entry).zip(0u64..) {
            let (key, child) = bytes.split_at(key_len);
            let child = source.defined(&mut Fields::little("a B-tree node", child))?;
            match found_level {
                0 => found(Leaf {
                    address: address + prefix + at * entry as u64,
                    key,
                    child,
                })?,
                _ => children.push((child, Some(found_level - 1))),
            }
        }
        // The last one waits on top, so leaves come in order.
        waiting.extend(children.into_iter().rev());
    }
    Ok(())
}
