//! Any binary file as an array, described in the text that names it:
//! `raw:data.bin?shape=4096x4096&type=f32&layout=column&offset=0&byteorder=big`.
//!
//! `shape` and `type` are needed; the others default to `layout=row`,
//! `offset=0` and `byteorder=little`.

use std::fmt;
use std::path::PathBuf;

use outcore_geometry::{parse_shape, shape_text};
use outcore_storage::{Access, without_secrets};

use crate::descriptor::ArrayDescriptor;
use crate::element::ByteOrder;
use crate::error::{Error, Result};
use crate::format::{Opened, open_file, place};

/// A binary file and what it holds.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct RawFile {
    pub(crate) path: PathBuf,
    pub(crate) descriptor: ArrayDescriptor,
    pub(crate) offset: u64,
}

impl RawFile {
    /// Reads the description after `raw:`. The path ends at the last `?`.
    pub(crate) fn parse(text: &str) -> Result<Self> {
        // What follows an address may be what lets one in.
        let far = place::is_address(text.as_ref());
        let array = match far {
            true => format!("raw:{}", without_secrets(text)),
            false => format!("raw:{text}"),
        };
        let wrong = |problem: String| {
            Error::format(
                &array,
                format!(
                    "{problem}; write e.g. 'raw:data.bin?shape=4096x4096&type=f32&layout=column'"
                ),
            )
        };
        let (path, settings) = text
            .rsplit_once('?')
            .ok_or_else(|| wrong("shape and type are missing".into()))?;
        if path.is_empty() {
            return Err(wrong("the file name is missing".into()));
        }
        let (mut shape, mut element_type, mut offset) = (None, None, 0);
        let mut byte_order = ByteOrder::Little;
        let mut arrangement = None;
        for setting in settings.split('&').filter(|setting| !setting.is_empty()) {
            let (key, value) = setting.split_once('=').ok_or_else(|| {
                wrong(match far {
                    true => "a setting has no '='".into(),
                    false => format!("'{setting}' has no '='"),
                })
            })?;
            match key {
                "shape" => shape = Some(parse_shape(value).map_err(|e| wrong(e.to_string()))?),
                "type" => {
                    element_type = Some(value.parse().map_err(|e: Error| wrong(e.to_string()))?)
                }
                "layout" => {
                    let parsed = value.parse();
                    arrangement =
                        Some(parsed.map_err(|e: outcore_geometry::Error| wrong(e.to_string()))?);
                }
                "offset" => {
                    offset = value.parse().map_err(|_| {
                        wrong(format!("offset '{value}' is not a whole number of bytes"))
                    })?;
                }
                "byteorder" => {
                    byte_order = value.parse().map_err(|e: Error| wrong(e.to_string()))?
                }
                _ => {
                    return Err(wrong(format!(
                        "'{key}' is unknown (known are shape, type, layout, offset, byteorder)"
                    )));
                }
            }
        }
        let shape = shape.ok_or_else(|| wrong("shape is missing".into()))?;
        let element_type = element_type.ok_or_else(|| wrong("type is missing".into()))?;
        let descriptor = ArrayDescriptor::new(&shape, element_type)
            .layout(arrangement.unwrap_or_default())
            .byte_order(byte_order);
        descriptor.check(&array)?;
        Ok(Self {
            path: place::path(path)?,
            descriptor,
            offset,
        })
    }

    pub(crate) fn open(&self, access: Access) -> Result<Opened> {
        let opened = Opened {
            descriptor: self.descriptor.clone(),
            store: open_file(&self.path, access)?,
            start: self.offset,
        };
        opened.check(&self.to_string(), &self.path)
    }
}

impl fmt::Display for RawFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let descriptor = &self.descriptor;
        write!(
            f,
            "raw:{}?shape={}&type={}&layout={}&offset={}&byteorder={}",
            self.path.display(),
            shape_text(&descriptor.shape),
            descriptor.element_type,
            descriptor.arrangement,
            self.offset,
            descriptor.byte_order
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptions_round_trip() {
        let text = "a?b.bin?shape=4x5&type=c64&layout=tiled:2x2:column&offset=17&byteorder=big";
        let raw = RawFile::parse(text).unwrap();
        assert_eq!(raw.path, PathBuf::from("a?b.bin"));
        assert_eq!(raw.to_string(), format!("raw:{text}"));
    }

    #[test]
    fn mistakes_are_named() {
        for (text, part) in [
            ("data.bin", "shape and type are missing"),
            ("?shape=4&type=f32", "file name"),
            ("d?shape=4", "type is missing"),
            ("d?type=f32", "shape is missing"),
            ("d?shape=4&type=f33", "f33"),
            ("d?shape=-4&type=f32", "'-4'"),
            ("d?shape=4&type=f32&offset=-1", "'-1'"),
            ("d?shape=4&type=f32&ofset=1", "ofset"),
            ("d?shape=4&type=f32&layout=diagonal", "diagonal"),
            ("d?shape=4&type=f32&byteorder=middle", "middle"),
            ("d?shape=4294967296x4294967296&type=f32", "63 bits"),
        ] {
            let message = RawFile::parse(text).unwrap_err().to_string();
            assert!(message.contains(part), "{text} -> {message}");
        }
        for text in [
            "https://h/x?sig=swordfish&shape=4&type=f32",
            "https://me:swordfish@h/x?shape=4",
            "s3://b/x?swordfish",
            "s3://b/x?sig=swordfish?shape=4&type=f32",
        ] {
            let message = RawFile::parse(text).unwrap_err().to_string();
            assert!(!message.contains("swordfish"), "{text} -> {message}");
        }
    }
}
