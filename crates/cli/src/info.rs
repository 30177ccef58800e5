//! `outcore info`: what an array is.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{
    Array, Error, InCore, LocalArray, LocalDescriptor, MemoryBudget, Result, shape_text,
    stored_bytes,
};
use serde_json::{Value, json};

use crate::bytes;
use crate::ranks::{once, print, shown};

/// Say what an array is: shape, type, layout, size, also as it is stored, placement, attributes
///
/// Of an array in local placement it also shows the descriptor of one rank: all
/// that a program on that rank must know of it.
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore info field.oc
  outcore info data.npy --json
  outcore info parts.oc --rank 3 --memory 64MiB                 (local placement)
  outcore info 'raw:data.bin?shape=4096x4096&type=f32&layout=column'")]
pub(crate) struct Info {
    /// The array
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    array: String,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
    /// Of local placement: the rank whose descriptor to show [default: 0]
    #[arg(long)]
    rank: Option<usize>,
    /// Of local placement: show the bounds of the first slab that fits this memory
    #[arg(long, value_name = "BYTES", value_parser = bytes::parse)]
    memory: Option<u64>,
}

impl Info {
    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let array = Array::open(&self.array)?;
            let mut facts = facts(&array, stored_bytes(&array)?);
            let local = match array.descriptor().local {
                Some(_) => Some(LocalArray::open_part(&self.array, self.rank.unwrap_or(0))?),
                None if self.rank.is_some() || self.memory.is_some() => {
                    return Err(Error::Invalid(format!(
                        "{} is one array for all ranks; --rank and --memory are for local \
                         placement, one file a rank",
                        array.name()
                    )));
                }
                None => None,
            };
            let slab = match (&local, self.memory) {
                (Some(local), Some(memory)) => local.slabs(1, &MemoryBudget::of(memory))?.next(),
                _ => None,
            };
            let local = local.map(|local| local.descriptor());
            if self.json {
                facts.push(("array", json!(array.name())));
                facts.extend(local.iter().map(|local| ("descriptor", rows(local))));
                facts.extend(slab.iter().map(|slab| ("in_core", bounds(slab))));
                let facts = facts.into_iter().map(|(name, value)| (name.into(), value));
                return print(&format!("{:#}\n", Value::Object(facts.collect())));
            }
            let mut lines = String::new();
            for (name, value) in &facts {
                let value = match (*name, value) {
                    ("shape", _) => shape_text(array.shape()),
                    ("placement", _) => placement_text(&array),
                    ("bytes" | "stored_bytes", Value::Number(n)) => match n.as_u64() {
                        Some(amount) if amount >= 1024 => format!("{n} ({})", bytes::show(amount)),
                        _ => n.to_string(),
                    },
                    (_, Value::String(text)) => text.clone(),
                    (_, Value::Object(map)) if map.is_empty() => continue,
                    (_, Value::Null) => continue,
                    (_, other) => other.to_string(),
                };
                lines.push_str(&format!("{name:<12} {}\n", shown(&value)));
            }
            if let Some(local) = local {
                lines.push_str(&format!("\n{local}\n"));
            }
            if let Some(slab) = slab {
                for (name, row) in [
                    ("in-core lower", &slab.lower),
                    ("in-core upper", &slab.upper),
                    ("lower+overlap", &slab.lower_with_overlap),
                    ("upper+overlap", &slab.upper_with_overlap),
                ] {
                    let row: String = row.iter().map(|at| format!("{at:>12}")).collect();
                    lines.push_str(&format!("{name:<16}{row}\n"));
                }
            }
            print(&lines)
        })
    }
}

/// The facts in the order in which they are shown.
fn facts(array: &Array, stored: Option<u64>) -> Vec<(&'static str, Value)> {
    let descriptor = array.descriptor();
    let mut facts = vec![
        ("name", json!(array.name())),
        ("format", json!(array.format())),
        ("shape", json!(descriptor.shape)),
        ("type", json!(descriptor.element_type.name())),
        ("byte_order", json!(descriptor.byte_order.name())),
        ("layout", json!(descriptor.arrangement.to_string())),
        ("elements", json!(array.whole().count())),
        ("bytes", json!(array.layout().byte_len())),
        ("stored_bytes", json!(stored)),
        ("data_offset", json!(array.data_offset())),
        (
            "stripes",
            match &descriptor.stripes {
                Some(stripes) => {
                    json!({ "unit": stripes.unit, "directories": stripes.directories })
                }
                None => json!({}),
            },
        ),
        (
            "placement",
            match &descriptor.local {
                Some(placement) => json!({
                    "kind": "local",
                    "distribution": placement.distribution.to_string(),
                    "grid": placement.distribution.grid(),
                    "ranks": placement.distribution.ranks(),
                    "overlap": placement.overlap,
                    "directories": placement.directories,
                }),
                None => {
                    json!({ "kind": if descriptor.stripes.is_some() { "striped" } else { "global" } })
                }
            },
        ),
    ];
    if let Some(tile) = descriptor
        .arrangement
        .tile
        .as_ref()
        .filter(|_| format_has_chunks(array))
    {
        facts.push(("chunks", json!(tile)));
        // What encodes the pieces of a TIFF file is none of our codecs, but an attribute.
        if array.format() != "tiff" {
            facts.push(("codecs", json!(descriptor.codecs.to_string())));
        }
        facts.extend(descriptor.shard.iter().map(|shard| ("shard", json!(shard))));
    }
    if let Some(block) = descriptor.checksums {
        facts.push(("checksums", json!(format!("crc32c of {block} bytes each"))));
    }
    let fill = descriptor.fill_value.iter();
    facts.extend(fill.map(|value| ("fill_value", value.clone())));
    let names = descriptor.axis_names.iter();
    facts.extend(names.map(|names| ("axis_names", json!(names))));
    facts.push(("attributes", Value::Object(descriptor.attributes.clone())));
    facts
}

fn format_has_chunks(array: &Array) -> bool {
    array.store().as_chunks().is_some()
}

fn placement_text(array: &Array) -> String {
    match (&array.descriptor().local, &array.descriptor().stripes) {
        (Some(placement), _) => format!(
            "local, {} on {} ({} ranks)",
            placement.distribution,
            shape_text(placement.distribution.grid()),
            placement.distribution.ranks()
        ),
        (None, Some(_)) => "striped".into(),
        (None, None) => "global".into(),
    }
}

/// The rows of a rank's descriptor.
fn rows(local: &LocalDescriptor) -> Value {
    let kinds = local.distribution.iter().map(|kind| kind.to_string());
    json!({
        "rank": local.rank,
        "global": local.global,
        "local": local.local,
        "stored": local.stored,
        "processors": local.processors,
        "storage": local.storage,
        "distribution": kinds.collect::<Vec<_>>(),
        "block": local.block,
        "overlap": local.overlap,
    })
}

/// The bounds of a slab, upper ones excluded.
fn bounds(slab: &InCore) -> Value {
    json!({
        "lower": slab.lower,
        "upper": slab.upper,
        "lower_with_overlap": slab.lower_with_overlap,
        "upper_with_overlap": slab.upper_with_overlap,
    })
}
