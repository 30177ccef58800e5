//! `outcore ls`: what a container holds.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Item, Result, list, shape_text};
use serde_json::{Value, json};

use crate::bytes;
use crate::ranks::{once, print};

/// List the groups and arrays of a container
///
/// A Zarr directory and an HDF5 (or NetCDF-4) file hold groups of arrays; each array is
/// shown with its shape, type, chunks, codecs and size. Name one as 'dir.zarr/path' or
/// 'file.h5:/path'. Anything else is one array.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore ls climate.zarr
  outcore ls climate.zarr/surface --json
  outcore ls results.h5
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

impl Ls {
    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let items = list(&self.container)?;
            if self.json {
                let items: Vec<Value> = items.iter().map(facts).collect();
                return print(&format!("{:#}\n", Value::Array(items)));
            }
            let name = self.container.trim_end_matches('/');
            let lines = items.iter().map(|item| line(name, item));
            print(&lines.collect::<String>())
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
        "attributes": item.attributes,
    })
}

/// One item, as deep in as its path is long.
fn line(container: &str, item: &Item) -> String {
    let depth = match item.path.as_str() {
        "" => 0,
        path => path.split('/').count(),
    };
    let name = match item.path.rsplit('/').next() {
        Some("") | None => container,
        Some(name) => name,
    };
    let name = format!("{}{name}", "  ".repeat(depth));
    match &item.array {
        None if item.problem.is_some() => {
            format!("{name:<32} {}\n", item.problem.as_deref().unwrap_or(""))
        }
        None => format!("{name}/\n"),
        Some(array) => {
            let size = array.element_count().unwrap_or(0) * array.element_type.size();
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
            told.push('\n');
            told
        }
    }
}
