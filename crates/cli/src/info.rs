//! `outcore info`: what an array is.

use clap::Args;
use clap::builder::NonEmptyStringValueParser;
use outcore::{Array, Result, shape_text};
use serde_json::{Value, json};

use crate::bytes;
use crate::ranks::{once, print};

/// Say what an array is: shape, type, layout, size, attributes
#[derive(Args)]
#[command(after_help = "\
Examples:
  outcore info field.oc
  outcore info data.npy --json
  outcore info 'raw:data.bin?shape=4096x4096&type=f32&layout=column'")]
pub(crate) struct Info {
    /// The array
    #[arg(value_parser = NonEmptyStringValueParser::new())]
    array: String,
    /// Print JSON, for programs
    #[arg(long)]
    json: bool,
}

impl Info {
    pub(crate) fn run(&self) -> Result<()> {
        once(|| {
            let array = Array::open(&self.array)?;
            let facts = facts(&array);
            if self.json {
                let facts = facts.into_iter().map(|(name, value)| (name.into(), value));
                return print(&format!("{:#}\n", Value::Object(facts.collect())));
            }
            let mut lines = String::new();
            for (name, value) in &facts {
                let value = match (*name, value) {
                    ("shape", _) => shape_text(array.shape()),
                    ("bytes", Value::Number(n)) => match n.as_u64() {
                        Some(amount) if amount >= 1024 => format!("{n} ({})", bytes::show(amount)),
                        _ => n.to_string(),
                    },
                    (_, Value::String(text)) => text.clone(),
                    (_, Value::Object(map)) if map.is_empty() => continue,
                    (_, other) => other.to_string(),
                };
                lines.push_str(&format!("{name:<12} {value}\n"));
            }
            print(&lines)
        })
    }
}

/// The facts in the order in which they are shown.
fn facts(array: &Array) -> Vec<(&'static str, Value)> {
    let descriptor = array.descriptor();
    vec![
        ("name", json!(array.name())),
        ("format", json!(array.format())),
        ("shape", json!(descriptor.shape)),
        ("type", json!(descriptor.element_type.name())),
        ("byte_order", json!(descriptor.byte_order.name())),
        ("layout", json!(descriptor.arrangement.to_string())),
        ("elements", json!(array.whole().count())),
        ("bytes", json!(array.layout().byte_len())),
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
        ("attributes", Value::Object(descriptor.attributes.clone())),
    ]
}
