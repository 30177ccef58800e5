//! Groups: the names in them and what these lead to.

use super::first_tree;
use super::fractal_heap::FractalHeap;
use super::link::{Link, Target};
use super::object_header::{Message, ObjectHeader, kind};
use super::second_tree;
use super::source::Source;
use crate::format::fields::{Fields, Parsed};

/// Groups with more names, or more bytes of them, are not believed.
const MOST_LINKS: usize = 1 << 20;
const MOST_BYTES: usize = 64 << 20;

/// Records of names in a B-tree: by name, by creation.
const NAME_RECORDS: &[u8] = &[5];

/// What a group of the newer kind says of its names.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LinkInfo {
    /// Whether names are numbered as they were made, and found by these numbers.
    pub(crate) flags: u8,
    /// The number of the next one.
    pub(crate) next: u64,
    /// The heap that they are in, and the tree of them, if they are many.
    many: Option<(u64, u64)>,
}

impl LinkInfo {
    /// The bit of `flags` that says that names are numbered.
    pub(crate) const NUMBERED: u8 = 1;
    /// The bit that says that they are found by their numbers.
    pub(crate) const BY_NUMBER: u8 = 2;

    pub(crate) fn of(source: &Source, header: &ObjectHeader) -> Parsed<Option<Self>> {
        let Some(data) = header.find(source, kind::LINK_INFO)? else {
            return Ok(None);
        };
        let mut fields = Fields::little("a link info message", &data);
        fields.version(0)?;
        let flags = fields.u8()?;
        let next = match flags & Self::NUMBERED {
            0 => 0,
            _ => fields.u64()?,
        };
        let (heap, tree) = (source.address(&mut fields)?, source.address(&mut fields)?);
        let many = heap.zip(tree);
        Ok(Some(Self { flags, next, many }))
    }
}

/// Whether the object is a group.
pub(crate) fn is_group(header: &ObjectHeader) -> bool {
    header.has(kind::SYMBOL_TABLE) || header.has(kind::LINK_INFO) || header.has(kind::LINK)
}

/// All names of a group.
pub(crate) fn links(source: &Source, header: &ObjectHeader) -> Parsed<Vec<Link>> {
    let mut names = Names::default();
    for Message { data, .. } in header.all(kind::LINK) {
        names.keep(Link::parse(source, data)?)?;
    }
    if let Some(info) = LinkInfo::of(source, header)?
        && let Some((heap, tree)) = info.many
    {
        let heap = FractalHeap::read(source, heap)?;
        second_tree::walk(source, tree, NAME_RECORDS, &mut |found| {
            let record = found.bytes;
            let mut fields = Fields::little("a record of a name", record);
            fields.skip(4)?;
            let data = heap.object(fields.bytes(heap.id_len())?)?;
            names.keep(Link::parse(source, &data)?)
        })?;
    }
    if let Some(data) = header.find(source, kind::SYMBOL_TABLE)? {
        symbol_table(source, &data, &mut names)?;
    }
    let mut links = names.links;
    links.sort_by(|a, b| a.name.cmp(&b.name));
    Ok(links)
}

/// The names of a group as they are found.
#[derive(Default)]
struct Names {
    links: Vec<Link>,
    /// Those of the names and of what symbolic links lead to.
    bytes: usize,
}

impl Names {
    fn keep(&mut self, link: Link) -> Parsed<()> {
        self.bytes += link.name.len();
        if let Target::Path(path) = &link.target {
            self.bytes += path.len();
        }
        if self.links.len() == MOST_LINKS || self.bytes > MOST_BYTES {
            return Err(format!(
                "a group of more than {MOST_LINKS} names, or of {MOST_BYTES} bytes of them, is \
                 not believed"
            )
            .into());
        }
        self.links.push(link);
        Ok(())
    }
}

/// The names of a group of the older kind: symbol table nodes in a B-tree,
/// their texts in a local heap.
fn symbol_table(source: &Source, data: &[u8], names: &mut Names) -> Parsed<()> {
    let mut fields = Fields::little("a symbol table message", data);
    let (tree, heap) = (source.defined(&mut fields)?, source.defined(&mut fields)?);
    let head = source.read(
        heap,
        8 + 2 * source.length_size as u64 + source.offset_size as u64,
    )?;
    let mut fields = Fields::little("a local heap", &head);
    fields.signature(b"HEAP")?;
    fields.version(0)?;
    fields.skip(3)?;
    let len = source.length(&mut fields)?;
    source.length(&mut fields)?;
    let texts = source.read(source.defined(&mut fields)?, len)?;
    let text = |offset: u64| -> Parsed<&[u8]> {
        let start = usize::try_from(offset).ok();
        let text = start.and_then(|start| texts.get(start..));
        let text = text.ok_or("a name is beyond its heap; the file is damaged")?;
        let end = text.iter().position(|byte| *byte == 0);
        Ok(&text[..end.ok_or("a local heap has a text without an end")?])
    };
    first_tree::walk(source, tree, first_tree::Kind::Names, &mut |leaf| {
        let node = leaf.child;
        let head = source.read(node, 8)?;
        let mut fields = Fields::little("a symbol table node", &head);
        fields.signature(b"SNOD")?;
        fields.version(1)?;
        fields.skip(1)?;
        let count = u64::from(fields.u16()?);
        let entries = source.read(node + 8, count * (24 + 2 * source.offset_size as u64))?;
        let mut fields = Fields::little("a symbol table node", &entries);
        for _ in 0..count {
            let name = text(fields.uint(source.offset_size)?)?;
            let object = source.address(&mut fields)?;
            let cached = fields.u32()?;
            fields.skip(4)?;
            let scratch = fields.bytes(16)?;
            let link = match (cached, object) {
                (2, _) => {
                    let place = Fields::little("a symbolic link", scratch).u32()?;
                    Link::to_path(name, text(place.into())?)?
                }
                (_, Some(object)) => Link::to_object(name, object, None),
                _ => return Err("a name leads nowhere; the file is damaged".into()),
            };
            names.keep(link)?;
        }
        Ok(())
    })
}
