//! The description of version 2: `.zarray`.

use serde_json::{Map, Value, json};

use super::fill;
use super::metadata::{Encoding, Keys, Metadata, axis_names, extents, field, object_extents, text};
use crate::codec::{Blosc, BloscCompressor, BloscShuffle, Codec, Codecs};
use crate::element::{ByteOrder, ElementType};
use crate::format::npy::{numpy_code, parse_descr};
use crate::format::value::number;

/// The attribute in which others keep the names of axes.
const DIMENSIONS: &str = "_ARRAY_DIMENSIONS";

pub(super) fn read(
    document: &Value,
    mut attributes: Map<String, Value>,
) -> Result<Metadata, String> {
    match field(document, "zarr_format")?.as_u64() {
        Some(2) => {}
        _ => return Err("'zarr_format' is not 2".into()),
    }
    let shape = extents(document, "shape")?;
    let object = object_extents(document, "chunks", &shape)?;
    let descr = field(document, "dtype")?;
    let code = descr.as_str().ok_or_else(|| {
        format!("the dtype {descr} is a record; only plain numbers are supported")
    })?;
    let (element_type, byte_order) = parse_descr(code)?;
    let axes = 0..shape.len();
    let slowest_first: Vec<usize> = match text(document, "order")? {
        "C" => axes.collect(),
        "F" => axes.rev().collect(),
        other => return Err(format!("the order '{other}' is neither C nor F")),
    };
    let mut steps = Vec::new();
    let size = element_type.size() as usize;
    if let Some(filters) = document.get("filters").and_then(Value::as_array) {
        for filter in filters {
            steps.push(step(filter, size)?);
        }
    }
    match document.get("compressor") {
        None | Some(Value::Null) => {}
        Some(compressor) => steps.push(step(compressor, size)?),
    }
    let separator = match document.get("dimension_separator").and_then(Value::as_str) {
        None | Some(".") => '.',
        Some("/") => '/',
        Some(other) => return Err(format!("the separator '{other}' is neither '.' nor '/'")),
    };
    let fill_value = document.get("fill_value").cloned();
    let fill = fill::bytes(
        fill_value.as_ref().unwrap_or(&Value::Null),
        element_type,
        byte_order,
    )?;
    let axis_names = axis_names(attributes.get(DIMENSIONS), shape.len());
    let none_of_none = shape.is_empty() && attributes.get(DIMENSIONS) == Some(&json!([]));
    let as_xarray = axis_names.is_some() || none_of_none;
    if as_xarray {
        attributes.remove(DIMENSIONS);
    }
    let fill_value = fill_value.filter(|value| !value.is_null());
    // Arrays that do not name their axes as xarray does have zero whether it means something
    // or not.
    if fill_value.is_some() && (as_xarray || fill.iter().any(|byte| *byte != 0)) {
        let missing = number(element_type, byte_order, &fill);
        attributes.entry(fill::MISSING).or_insert(missing);
    }
    Ok(Metadata {
        shape,
        element_type,
        object,
        keys: Keys {
            prefix: false,
            separator,
        },
        encoding: Encoding {
            byte_order,
            slowest_first,
            codecs: Codecs::new(steps)?,
        },
        shard: None,
        fill,
        fill_value,
        axis_names,
        attributes,
    })
}

/// A filter or compressor of numcodecs.
pub(super) fn step(value: &Value, size: usize) -> Result<Codec, String> {
    let id = text(value, "id").map_err(|problem| format!("in {value}, {problem}"))?;
    let number = |name: &str, usual: i64| value.get(name).and_then(Value::as_i64).unwrap_or(usual);
    let level = |name: &str, usual| u8::try_from(number(name, usual).clamp(0, 9)).unwrap_or(9);
    Ok(match id {
        "zlib" => Codec::Deflate {
            level: level("level", 1),
        },
        "gzip" => Codec::Gzip {
            level: level("level", 1),
        },
        "zstd" => Codec::Zstd {
            level: number("level", 0).clamp(-100, 22) as i32,
            checksum: value.get("checksum").and_then(Value::as_bool) == Some(true),
        },
        "lz4" => Codec::Lz4,
        "shuffle" => Codec::Shuffle {
            width: usize::try_from(number("elementsize", 4))
                .unwrap_or(4)
                .clamp(1, 255),
        },
        "crc32c" => match value.get("location").and_then(Value::as_str) {
            None | Some("end") => Codec::Crc32c,
            Some(other) => {
                return Err(format!(
                    "a crc32c with the location '{other}' is not supported, only end"
                ));
            }
        },
        "fletcher32" => Codec::Fletcher32,
        "blosc" => {
            let name = value.get("cname").and_then(Value::as_str).unwrap_or("lz4");
            let mut all = BloscCompressor::ALL.into_iter();
            let compressor = all.find(|one| one.name() == name);
            Codec::Blosc(Blosc {
                compressor: compressor
                    .ok_or_else(|| format!("blosc with '{name}' is not supported"))?,
                level: level("clevel", 5),
                shuffle: match number("shuffle", 1) {
                    0 => BloscShuffle::None,
                    2 => BloscShuffle::Bit,
                    // Automatic: by bits where elements are bytes.
                    -1 if size == 1 => BloscShuffle::Bit,
                    _ => BloscShuffle::Byte,
                },
                type_size: size,
                block_size: usize::try_from(number("blocksize", 0)).unwrap_or(0),
            })
        }
        other => {
            return Err(format!(
                "the codec '{other}' is not supported; those that are: zlib, gzip, zstd, lz4, \
                 blosc, shuffle, crc32c, fletcher32"
            ));
        }
    })
}

/// The description of an array to be made, and its attributes.
pub(super) fn write(metadata: &Metadata) -> Result<(Value, Map<String, Value>), String> {
    let axes = metadata.shape.len();
    let order = match &metadata.encoding.slowest_first {
        order if order.iter().copied().eq(0..axes) => "C",
        order if order.iter().copied().eq((0..axes).rev()) => "F",
        _ => return Err("Zarr 2 holds row or column order, no other".into()),
    };
    if metadata.shard.is_some() {
        return Err("Zarr 2 has no shards".into());
    }
    let mut steps: Vec<Value> = Vec::new();
    for step in metadata.encoding.codecs.steps() {
        steps.push(of_step(step));
    }
    // What compresses is the compressor if it comes last.
    let compressor = match steps.last() {
        Some(_) => steps.pop().unwrap_or(Value::Null),
        None => Value::Null,
    };
    let mut attributes = metadata.attributes.clone();
    let (element, byte_order) = (metadata.element_type, metadata.encoding.byte_order);
    // Readers take it for the missing value of NetCDF, so nothing is said that nobody wants.
    let missing = fill::missing(&attributes, element, byte_order);
    let fill_value = match (&missing, &metadata.fill_value) {
        (Some(bytes), _) => number(element, byte_order, bytes),
        // As a number: version 3 can write its bytes instead, which version 2 does not know.
        (None, Some(_)) => number(element, byte_order, &metadata.fill),
        (None, None) => Value::Null,
    };
    if missing.is_some() {
        attributes.remove(fill::MISSING);
    }
    // Those who read names want to be told that there are none, too.
    let names = metadata.axis_names.clone();
    if let Some(names) = names.or_else(|| metadata.shape.is_empty().then(Vec::new)) {
        attributes.insert(DIMENSIONS.into(), json!(names));
    }
    let document = json!({
        "zarr_format": 2,
        "shape": metadata.shape,
        "chunks": metadata.object,
        "dtype": descr(metadata.element_type, metadata.encoding.byte_order),
        "compressor": compressor,
        "fill_value": fill_value,
        "order": order,
        "filters": match steps.is_empty() {
            true => Value::Null,
            false => Value::Array(steps),
        },
        "dimension_separator": metadata.keys.separator.to_string(),
    });
    Ok((document, attributes))
}

/// Zero of such elements in JSON.
pub(super) fn zero(element: ElementType) -> Value {
    match element {
        ElementType::Bool => json!(false),
        ElementType::F16 | ElementType::F32 | ElementType::F64 => json!(0.0),
        ElementType::C64 | ElementType::C128 => json!([0.0, 0.0]),
        _ => json!(0),
    }
}

fn descr(element: ElementType, byte_order: ByteOrder) -> String {
    let prefix = match (element.size(), byte_order) {
        (1, _) => '|',
        (_, ByteOrder::Little) => '<',
        (_, ByteOrder::Big) => '>',
    };
    format!("{prefix}{}", numpy_code(element))
}

/// A step in the words of numcodecs.
pub(super) fn of_step(step: &Codec) -> Value {
    match step {
        Codec::Shuffle { width } => json!({ "id": "shuffle", "elementsize": width }),
        Codec::Deflate { level } => json!({ "id": "zlib", "level": level }),
        Codec::Gzip { level } => json!({ "id": "gzip", "level": level }),
        Codec::Zstd { level, checksum } => {
            json!({ "id": "zstd", "level": level, "checksum": checksum })
        }
        Codec::Blosc(blosc) => json!({
            "id": "blosc",
            "cname": blosc.compressor.name(),
            "clevel": blosc.level,
            "shuffle": blosc.shuffle as u8,
            "blocksize": blosc.block_size,
        }),
        Codec::Lz4 => json!({ "id": "lz4", "acceleration": 1 }),
        // Refused before.
        Codec::Lzf => json!({ "id": "lzf" }),
        Codec::Crc32c => json!({ "id": "crc32c" }),
        Codec::Fletcher32 => json!({ "id": "fletcher32" }),
    }
}
