//! B-trees of version 2: of names, attributes and chunks of newer files.

use std::collections::HashSet;

use super::datatype::width_of;
use super::object_header::check_block;
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// Signature, version, kind, checksum of a node.
const NODE_OVERHEAD: u64 = 10;

/// Deeper trees are not believed.
const DEEPEST: u16 = 32;

/// A record of a tree.
#[derive(Debug)]
pub(crate) struct Record<'a> {
    /// The kind of the tree.
    pub(crate) kind: u8,
    pub(crate) bytes: &'a [u8],
    /// Its address.
    pub(crate) address: u64,
    /// The address of its node, and how many bytes of that a checksum covers.
    pub(crate) node: (u64, u64),
}

/// How nodes of one level point to those below.
struct Level {
    /// Bytes of the number of records of a child.
    count_width: usize,
    /// Bytes of the number of records below a child; 0 above leaves.
    total_width: usize,
}

/// Calls `found` with each record of the tree whose header is at `address`;
/// the kind must be one of `kinds`.
pub(crate) fn walk(
    source: &Source,
    address: u64,
    kinds: &[u8],
    found: &mut dyn FnMut(Record<'_>) -> Parsed<()>,
) -> Parsed<()> {
    let len = 22 + source.offset_size as u64 + source.length_size as u64;
    let head = source.read(address, len)?;
    check_block(&head, "a B-tree header")?;
    let mut fields = Fields::little("a B-tree header", &head);
    fields.signature(b"BTHD")?;
    fields.version(0)?;
    let kind = fields.u8()?;
    if !kinds.contains(&kind) {
        return Err(format!("a B-tree of kind {kind} is not where it belongs").into());
    }
    let node_size = u64::from(fields.u32()?);
    let record = fields.u16()?;
    let depth = fields.u16()?;
    fields.skip(2)?;
    let root = source.address(&mut fields)?;
    let count = fields.u16()?;
    let Some(root) = root.filter(|_| count > 0) else {
        return Ok(());
    };
    if record == 0 || depth > DEEPEST || node_size < NODE_OVERHEAD + u64::from(record) {
        return Err("a B-tree header is damaged".into());
    }
    let levels = levels(source, node_size, record.into(), depth);
    let mut seen = HashSet::new();
    let mut waiting = vec![(root, u64::from(count), depth)];
    while let Some((address, count, depth)) = waiting.pop() {
        if !seen.insert(address) {
            return Err("a B-tree leads back to itself; the file is damaged".into());
        }
        let records = count * u64::from(record);
        let pointers = match depth {
            0 => 0,
            depth => {
                let level = &levels[usize::from(depth)];
                (count + 1) * (source.offset_size + level.count_width + level.total_width) as u64
            }
        };
        let node = source.read(address, NODE_OVERHEAD + records + pointers)?;
        check_block(&node, "a B-tree node")?;
        let mut fields = Fields::little("a B-tree node", &node);
        fields.signature(if depth == 0 { b"BTLF" } else { b"BTIN" })?;
        fields.version(0)?;
        if fields.u8()? != kind {
            return Err("a B-tree node is not where it belongs; the file is damaged".into());
        }
        let first = address + (node.len() - fields.rest().len()) as u64;
        for (bytes, at) in fields
            .stated(records)?
            .chunks_exact(record.into())
            .zip(0u64..)
        {
            found(Record {
                kind,
                bytes,
                address: first + at * u64::from(record),
                node: (address, node.len() as u64 - 4),
            })?;
        }
        if depth > 0 {
            let level = &levels[usize::from(depth)];
            for _ in 0..count + 1 {
                let child = source.defined(&mut fields)?;
                let count = fields.uint(level.count_width)?;
                fields.skip(level.total_width)?;
                waiting.push((child, count, depth - 1));
            }
        }
    }
    Ok(())
}

/// The widths of pointers at each depth; those of depth 0 are not used.
fn levels(source: &Source, node_size: u64, record: u64, depth: u16) -> Vec<Level> {
    let most_in_leaf = (node_size - NODE_OVERHEAD) / record;
    let count_width = width_of(most_in_leaf);
    let mut levels = vec![Level {
        count_width,
        total_width: 0,
    }];
    let (mut below, mut total_width) = (most_in_leaf, 0);
    for _ in 0..depth {
        levels.push(Level {
            count_width,
            total_width,
        });
        let pointer = (source.offset_size + count_width + total_width) as u64;
        let most = node_size.saturating_sub(NODE_OVERHEAD + pointer) / (record + pointer);
        below = below
            .saturating_mul(most.saturating_add(1))
            .saturating_add(most);
        total_width = width_of(below);
    }
    levels
}
