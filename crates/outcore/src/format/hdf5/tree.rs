//! The tree of groups and datasets of a file.

use std::collections::{HashMap, HashSet};

use super::Dataset;
use super::attribute;
use super::dimensions;
use super::group::{is_group, links};
use super::link::Target;
use super::object_header::{ObjectHeader, kind};
use super::superblock::File;
use crate::format::{self, COPY_ALL, fields::Parsed};

/// Longer chains of symbolic links lead nowhere.
const MOST_STEPS: usize = 16;

/// Files with more objects are not listed.
const MOST_OBJECTS: usize = 1 << 20;

/// Files with more datasets are not asked which of them are scales.
const MOST_ASKED: usize = 1 << 10;

/// Nor are files with longer paths together; groups in groups make them long.
const MOST_PATHS: usize = 64 << 20;

/// A dataset or group of a file.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Node {
    /// From the root on: `/group/data`.
    pub(crate) path: String,
    /// The shape and type of a dataset in words; `None` for a group.
    pub(crate) dataset: Option<(Vec<u64>, String)>,
    address: u64,
}

impl Node {
    /// The address of its object header.
    pub(crate) fn address(&self) -> u64 {
        self.address
    }
}

/// By what a dataset is found that no link leads to.
pub(super) fn unlinked(address: u64) -> String {
    format!("@{address}")
}

/// Whether this is what `unlinked` says.
pub(crate) fn is_unlinked(path: &str) -> bool {
    address_of(path).is_some()
}

fn address_of(path: &str) -> Option<u64> {
    path.strip_prefix('@')?.parse().ok()
}

/// The address of the dataset at a path from the root; `@ADDRESS`, where no link has
/// that name, is the one there.
pub(crate) fn find(file: &File, path: &str) -> Parsed<u64> {
    let mut wanted: Vec<String> = names(path);
    let mut steps = 0;
    'again: loop {
        let mut address = file.root;
        for at in 0..wanted.len() {
            let header = ObjectHeader::read(&file.source, address)?;
            let all = links(&file.source, &header)?;
            let Some(link) = all.iter().find(|link| link.name == wanted[at]) else {
                let Some(unlinked) = address_of(path) else {
                    return Err(missing(file, path));
                };
                address = unlinked;
                break;
            };
            match &link.target {
                Target::Object(next) => address = *next,
                Target::Path(target) => {
                    steps += 1;
                    if steps > MOST_STEPS {
                        return Err(format!("{path} is a link that leads nowhere").into());
                    }
                    let mut new = match target.starts_with('/') {
                        true => Vec::new(),
                        false => wanted[..at].to_vec(),
                    };
                    new.extend(names(target));
                    new.extend_from_slice(&wanted[at + 1..]);
                    wanted = new;
                    continue 'again;
                }
                Target::Elsewhere => {
                    return Err(format!("{path} is in another file, which is not followed").into());
                }
            }
        }
        let header = ObjectHeader::read(&file.source, address)?;
        if !header.has(kind::LAYOUT) {
            return Err(match is_group(&header) {
                true => format!("{path} is a group; {}", choices(&list(file)?)).into(),
                false => format!("{path} is no dataset").into(),
            });
        }
        return Ok(address);
    }
}

/// The address of the group at a path from the root; `None`: no group is there, or it is
/// reached by symbolic links only.
pub(super) fn group_at(file: &File, path: &str) -> Parsed<Option<u64>> {
    let mut address = file.root;
    for name in names(path) {
        let header = ObjectHeader::read(&file.source, address)?;
        let all = links(&file.source, &header)?;
        match all.iter().find(|link| link.name == name) {
            Some(link) => match link.target {
                Target::Object(next) => address = next,
                _ => return Ok(None),
            },
            None => return Ok(None),
        }
    }
    let header = ObjectHeader::read(&file.source, address)?;
    Ok((!header.has(kind::LAYOUT) && is_group(&header)).then_some(address))
}

/// The names of a path, one after another.
pub(super) fn names(path: &str) -> Vec<String> {
    let names = path
        .split('/')
        .filter(|name| !name.is_empty() && *name != ".");
    names.map(str::to_string).collect()
}

fn missing(file: &File, path: &str) -> crate::format::fields::Problem {
    match list(file) {
        Ok(nodes) => format!("there is no {path} in it; {}", choices(&nodes)).into(),
        Err(problem) => problem,
    }
}

/// The datasets as a part of a sentence.
fn choices(nodes: &[Node]) -> String {
    let paths: Vec<&str> = datasets(nodes).map(|node| node.path.as_str()).collect();
    format::choices("dataset", &paths)
}

fn datasets(nodes: &[Node]) -> impl Iterator<Item = &Node> {
    nodes.iter().filter(|node| node.dataset.is_some())
}

/// The only dataset of a file, or the only one that is no dimension scale.
pub(crate) fn only_dataset(file: &File) -> Parsed<u64> {
    let nodes = list(file)?;
    let all: Vec<&Node> = datasets(&nodes).collect();
    if let [one] = all[..] {
        return Ok(one.address);
    }
    let mut others = Vec::new();
    for node in all.iter().take(MOST_ASKED) {
        if !dimensions::is_scale(file, node.address)? {
            others.push(node);
        }
    }
    match others[..] {
        [one] if all.len() <= MOST_ASKED => Ok(one.address),
        _ => Err(format!(
            "name one of its datasets, as in file.h5:/group/data; {}; {COPY_ALL}",
            choices(&nodes)
        )
        .into()),
    }
}

/// Whether the file has the dataset at a path, the groups on the way to it, and nothing
/// else: no other names, and no attributes of these groups.
pub(crate) fn is_all(file: &File, path: &str) -> Parsed<bool> {
    let mut address = file.root;
    for name in names(path) {
        let header = ObjectHeader::read(&file.source, address)?;
        let mut all = links(&file.source, &header)?;
        // What is only a dimension belongs to the dataset.
        all.retain(|link| match link.target {
            Target::Object(target) => !dimensions::is_only_dimension(file, target).unwrap_or(false),
            _ => true,
        });
        match &all[..] {
            [link] if link.name == name && !attribute::is_any(&file.source, &header)? => {
                match link.target {
                    Target::Object(next) => address = next,
                    _ => return Ok(false),
                }
            }
            _ => return Ok(false),
        }
    }
    Ok(ObjectHeader::read(&file.source, address)?.has(kind::LAYOUT))
}

/// The paths of all groups and datasets but the root by their addresses, which are looked
/// for once.
pub(super) fn paths(file: &File) -> Parsed<&HashMap<u64, String>> {
    if let Some(paths) = file.paths.get() {
        return Ok(paths);
    }
    let nodes = list(file)?.into_iter();
    let paths = nodes.map(|node| (node.address, node.path)).collect();
    Ok(file.paths.get_or_init(|| paths))
}

/// All groups and datasets but the root; an object of several names once.
pub(crate) fn list(file: &File) -> Parsed<Vec<Node>> {
    list_below(file, String::new(), file.root)
}

/// All groups and datasets in the group of this path and address; an object of several
/// names in there once.
pub(super) fn list_below(file: &File, path: String, group: u64) -> Parsed<Vec<Node>> {
    let mut nodes = Vec::new();
    let mut seen = HashSet::from([group]);
    let mut waiting = vec![(path, group)];
    let mut bytes = 0;
    while let Some((path, address)) = waiting.pop() {
        let header = ObjectHeader::read(&file.source, address)?;
        if header.has(kind::LAYOUT) {
            let dataset = Dataset::read(file, &header)
                .map(|dataset| (dataset.space.shape.clone(), dataset.datatype.words()));
            let dataset = dataset.unwrap_or_else(|_| (Vec::new(), "not understood".into()));
            nodes.push(Node {
                path,
                dataset: Some(dataset),
                address,
            });
            continue;
        }
        if !is_group(&header) {
            continue;
        }
        if address != group {
            nodes.push(Node {
                path: path.clone(),
                dataset: None,
                address,
            });
        }
        for link in links(&file.source, &header)? {
            if let Target::Object(target) = link.target
                && seen.insert(target)
            {
                if seen.len() > MOST_OBJECTS {
                    return Err(format!("more than {MOST_OBJECTS} objects are not listed").into());
                }
                bytes += path.len() + 1 + link.name.len();
                if bytes > MOST_PATHS {
                    return Err(format!(
                        "objects whose paths have more than {MOST_PATHS} bytes together are not \
                         listed; name one of its datasets, as in file.h5:/group/data"
                    )
                    .into());
                }
                waiting.push((format!("{path}/{}", link.name), target));
            }
        }
    }
    nodes.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(nodes)
}
