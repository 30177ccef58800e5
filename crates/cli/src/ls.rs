//! `outcore ls`: what a container holds.

use std::path::Path;

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Error, Item, Result, list, shape_text};
use serde_json::{Map, Value, json};

use crate::bytes;
use crate::ranks::{once, print, shown};

/// List the groups and arrays of a container
///
/// A Zarr directory and an HDF5 (or NetCDF-4) file hold groups of arrays, a NetCDF file holds
/// variables; each array is shown with its shape, type, chunks, codecs, size and the names of its
/// axes, a group with its attributes. Name an array as 'dir.zarr/path', 'file.h5:/path' or
/// 'file.nc:variable'. Of any other directory the arrays and containers
/// in it are listed. Anything else is one array.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore ls climate.zarr
  outcore ls climate.zarr/surface --json
  outcore ls results.h5
  outcore ls ocean.nc
  outcore ls s3://bucket/climate.zarr
  outcore info climate.zarr/surface/temperature")]
pub(crate) struct Ls {
    /// The container, or a part of it
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    container: String,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

/// How names of arrays and containers end.
const ENDINGS: [&str; 9] = [
    "oc", "npy", "zarr", "h5", "hdf5", "nc", "nc4", "tif", "tiff",
];

impl Ls {
    /// What the container holds; of a plain directory, the arrays and containers in it.
    fn items(&self) -> Result<Vec<Item>> {
        let listed = list(&self.container);
        let directory = Path::new(&self.container);
        if listed.is_ok() || !directory.is_dir() || directory.join("array.json").exists() {
            return listed;
        }
        let mut items = vec![Item {
            name: self.container.clone(),
            path: String::new(),
            array: None,
            problem: None,
            attributes: Map::new(),
        }];
        let failed = |source| Error::File {
            action: "list",
            path: directory.into(),
            source,
        };
        let mut names = Vec::new();
        for entry in std::fs::read_dir(directory).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            let ending = path.extension().and_then(|ending| ending.to_str());
            let name = path.file_name().and_then(|name| name.to_str());
            let name = name.filter(|name| !name.starts_with('.'));
            names.extend(
                name.filter(|_| ending.is_some_and(|it| ENDINGS.contains(&it)))
                    .map(str::to_owned),
            );
        }
        if names.is_empty() {
            // What was expected here tells more.
            return listed;
        }
        names.sort();
        for path in names {
            let name = directory.join(&path).to_string_lossy().into_owned();
            let found = list(&name);
            let first = found.map(|items| items.into_iter().next());
            items.push(match first {
                Ok(Some(item)) => Item { path, ..item },
                Ok(None) => continue,
                Err(error) => Item {
                    name,
                    path,
                    array: None,
                    problem: Some(error.to_string()),
                    attributes: Map::new(),
                },
            });
        }
        Ok(items)
    }

    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let items = self.items()?;
            if self.json {
                let items: Vec<Value> = items.iter().map(facts).collect();
                return print(&format!("{:#}\n", Value::Array(items)));
            }
            let name = self.container.trim_end_matches('/');
            let lines = items.iter().flat_map(|item| lines(name, item));
            print(&lines.map(|line| shown(&line) + "\n").collect::<String>())
        })
    }
}

fn facts(item: &Item) -> Value {
    if let Some(problem) = &item.problem {
        return json!({ "path": item.path, "kind": "array", "problem": problem });
    }
    let Some(array) = &item.array else {
        return json!({ "path": item.path, "kind": "group", "attributes": item.attributes });
    };
    json!({
        "path": item.path,
        "kind": "array",
        "shape": array.shape,
        "type": array.element_type.name(),
        "layout": array.arrangement.to_string(),
        "codecs": array.codecs.to_string(),
        "axis_names": array.axis_names,
        "attributes": item.attributes,
    })
}

/// One item, as deep in as its path is long.
fn lines(container: &str, item: &Item) -> Vec<String> {
    let depth = match item.path.as_str() {
        "" => 0,
        path => path.split('/').count(),
    };
    let name = match item.path.rsplit('/').next() {
        Some("") | None => container,
        Some(name) => name,
    };
    let indent = "  ".repeat(depth);
    let name = format!("{indent}{name}");
    match (&item.array, &item.problem) {
        (None, Some(problem)) => vec![format!("{name:<32} {problem}")],
        (None, None) => {
            let kept = item.attributes.iter();
            let kept = kept.map(|(key, value)| format!("{indent}  {key}: {value}"));
            [format!("{name}/")].into_iter().chain(kept).collect()
        }
        (Some(array), _) => {
            let size = array.element_count().unwrap_or(0);
            let size = size.saturating_mul(array.element_type.size());
            let mut told = format!(
                "{name:<32} {} {}, {}, {}",
                shape_text(&array.shape),
                array.element_type,
                array.arrangement,
                bytes::show(size)
            );
            if !array.codecs.is_empty() {
                told.push_str(&format!(", {}", array.codecs));
            }
            if let Some(names) = &array.axis_names {
                told.push_str(&format!(", axes {}", names.join(" ")));
            }
            vec![told]
        }
    }
}
