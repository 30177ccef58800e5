//! The description of version 3: `zarr.json`.

use outcore_geometry::shape_text;
use serde_json::{Map, Value, json};

use super::metadata::{
    Encoding, Keys, Metadata, Shard, axis_names, check_chunk, extents, field, object_extents, text,
};
use super::{Node, fill, v2};
use crate::codec::{Blosc, BloscCompressor, BloscShuffle, Codec, Codecs};
use crate::descriptor::check_permutation;
use crate::element::{ByteOrder, ElementType};

/// More chunks in a shard are not believed: their index alone would be 1 GiB.
const MOST_IN_SHARD: u64 = 1 << 26;

pub(super) fn read(document: &Value) -> Result<Node, String> {
    match field(document, "zarr_format")?.as_u64() {
        Some(3) => {}
        _ => return Err("'zarr_format' is not 3".into()),
    }
    check_understood(document)?;
    let mut attributes = match document.get("attributes") {
        Some(Value::Object(attributes)) => attributes.clone(),
        _ => Map::new(),
    };
    match text(document, "node_type")? {
        "group" => return Ok(Node::Group(attributes)),
        "array" => {}
        other => {
            return Err(format!(
                "the node type '{other}' is neither array nor group"
            ));
        }
    }
    let shape = extents(document, "shape")?;
    let element_type = element_of(field(document, "data_type")?)?;
    fill::read_attributes(&mut attributes, element_type);
    let grid = field(document, "chunk_grid")?;
    if name_of(grid) != Some("regular") {
        return Err(format!("the chunk grid {grid} is not regular"));
    }
    let object = object_extents(configuration(grid), "chunk_shape", &shape)?;
    if let Some(transformers) = document
        .get("storage_transformers")
        .and_then(Value::as_array)
        && !transformers.is_empty()
    {
        return Err("storage transformers are not supported".into());
    }
    let (encoding, shard) = codecs(field(document, "codecs")?, &object, element_type)?;
    let fill_value = document.get("fill_value").cloned();
    let fill = fill::bytes(
        fill_value.as_ref().unwrap_or(&Value::Null),
        element_type,
        encoding.byte_order,
    )?;
    let axis_names = axis_names(document.get("dimension_names"), shape.len());
    Ok(Node::Array(Box::new(Metadata {
        shape,
        element_type,
        object,
        keys: keys(field(document, "chunk_key_encoding")?)?,
        encoding,
        shard,
        fill,
        fill_value,
        axis_names,
        attributes,
    })))
}

/// Fails if there is a field of an extension that must be understood, as all must that do
/// not say otherwise.
fn check_understood(document: &Value) -> Result<(), String> {
    const KNOWN: [&str; 11] = [
        "zarr_format",
        "node_type",
        "shape",
        "data_type",
        "chunk_grid",
        "chunk_key_encoding",
        "fill_value",
        "codecs",
        "attributes",
        "dimension_names",
        "storage_transformers",
    ];
    let mut fields = document.as_object().into_iter().flatten();
    let unknown = fields.find(|(name, value)| {
        let needless = value.is_null() || value["must_understand"] == false;
        !KNOWN.contains(&name.as_str()) && !needless
    });
    match unknown {
        Some((name, _)) => Err(format!(
            "'{name}' is not supported, and it does not say that it need not be understood"
        )),
        None => Ok(()),
    }
}

/// The name of a codec, grid or encoding.
fn name_of(value: &Value) -> Option<&str> {
    value
        .as_str()
        .or_else(|| value.get("name").and_then(Value::as_str))
}

fn configuration(value: &Value) -> &Value {
    value.get("configuration").unwrap_or(&Value::Null)
}

const TYPES: [(&str, ElementType); 14] = [
    ("bool", ElementType::Bool),
    ("int8", ElementType::I8),
    ("int16", ElementType::I16),
    ("int32", ElementType::I32),
    ("int64", ElementType::I64),
    ("uint8", ElementType::U8),
    ("uint16", ElementType::U16),
    ("uint32", ElementType::U32),
    ("uint64", ElementType::U64),
    ("float16", ElementType::F16),
    ("float32", ElementType::F32),
    ("float64", ElementType::F64),
    ("complex64", ElementType::C64),
    ("complex128", ElementType::C128),
];

fn element_of(value: &Value) -> Result<ElementType, String> {
    let name = name_of(value).unwrap_or_default();
    let found = TYPES.iter().find(|(known, _)| *known == name);
    found.map(|(_, element)| *element).ok_or_else(|| {
        format!("the data type {value} is not supported; only booleans, integers, floats and complex are")
    })
}

fn keys(value: &Value) -> Result<Keys, String> {
    let (prefix, usual) = match name_of(value) {
        Some("default") => (true, "/"),
        Some("v2") => (false, "."),
        _ => return Err(format!("the chunk key encoding {value} is not supported")),
    };
    let separator = configuration(value).get("separator");
    match separator.and_then(Value::as_str).unwrap_or(usual) {
        "/" => Ok(Keys {
            prefix,
            separator: '/',
        }),
        "." => Ok(Keys {
            prefix,
            separator: '.',
        }),
        other => Err(format!("the separator '{other}' is neither '.' nor '/'")),
    }
}

/// The codecs of objects, or of the chunks in shards.
fn codecs(
    value: &Value,
    object: &[u64],
    element: ElementType,
) -> Result<(Encoding, Option<Shard>), String> {
    let list = value.as_array().ok_or("'codecs' is not a list")?;
    let axes = object.len();
    let mut slowest_first: Vec<usize> = (0..axes).collect();
    let mut list = list.iter();
    let mut shown = list.next();
    // 1. The order of the axes.
    while let Some(codec) = shown.filter(|codec| name_of(codec) == Some("transpose")) {
        let order = configuration(codec).get("order");
        let order: Vec<usize> = match order.and_then(Value::as_array) {
            Some(order) => order
                .iter()
                .map(|axis| axis.as_u64().unwrap_or(u64::MAX) as usize)
                .collect(),
            None => match order.and_then(Value::as_str) {
                Some("C") => (0..axes).collect(),
                Some("F") => (0..axes).rev().collect(),
                _ => return Err(format!("the order of {codec} is not a list")),
            },
        };
        check_permutation(&order, axes)
            .map_err(|_| format!("{codec} does not name each axis once"))?;
        slowest_first = order.iter().map(|axis| slowest_first[*axis]).collect();
        shown = list.next();
    }
    // 2. From elements to bytes.
    let codec = shown.ok_or("'codecs' lists none that makes bytes")?;
    match name_of(codec) {
        Some("bytes") => {
            let endian = configuration(codec).get("endian").and_then(Value::as_str);
            let byte_order = match endian {
                Some("big") => ByteOrder::Big,
                Some("little") | None => ByteOrder::Little,
                Some(other) => {
                    return Err(format!("the endian '{other}' is neither little nor big"));
                }
            };
            let size = element.size() as usize;
            let steps: Result<Vec<Codec>, String> = list.map(|codec| step(codec, size)).collect();
            let encoding = Encoding {
                byte_order,
                slowest_first,
                codecs: Codecs::new(steps?)?,
            };
            Ok((encoding, None))
        }
        Some("sharding_indexed") => {
            if list.next().is_some() {
                return Err("codecs around shards are not supported".into());
            }
            if !slowest_first.iter().copied().eq(0..axes) {
                return Err("shards in another order of axes are not supported".into());
            }
            sharding(configuration(codec), object, element)
        }
        name => Err(format!(
            "the codec '{}' is not supported where elements become bytes",
            name.unwrap_or("?")
        )),
    }
}

fn sharding(
    settings: &Value,
    object: &[u64],
    element: ElementType,
) -> Result<(Encoding, Option<Shard>), String> {
    let chunk = extents(settings, "chunk_shape")?;
    check_chunk(&chunk, object, "chunk of a shard")?;
    if object
        .iter()
        .zip(&chunk)
        .any(|(whole, part)| whole % part != 0)
    {
        return Err("the chunks of a shard do not fill it".into());
    }
    let mut along = object.iter().zip(&chunk).map(|(whole, part)| whole / part);
    let count = along.try_fold(1u64, |all, count| all.checked_mul(count));
    if count.is_none_or(|count| count > MOST_IN_SHARD) {
        return Err(format!(
            "a shard of {} has more than {MOST_IN_SHARD} chunks of {}",
            shape_text(object),
            shape_text(&chunk)
        ));
    }
    let (encoding, inner) = codecs(field(settings, "codecs")?, &chunk, element)?;
    if inner.is_some() {
        return Err("shards inside of shards are not supported".into());
    }
    let names: Vec<&str> = match settings.get("index_codecs").and_then(Value::as_array) {
        Some(list) => list.iter().map(index_codec).collect::<Result<_, _>>()?,
        None => vec!["bytes", "crc32c"],
    };
    let index_checked = match names.as_slice() {
        ["bytes"] => false,
        ["bytes", "crc32c"] => true,
        other => {
            return Err(format!(
                "an index encoded by {} is not supported",
                other.join(", ")
            ));
        }
    };
    let index_at_end = match settings.get("index_location").and_then(Value::as_str) {
        None | Some("end") => true,
        Some("start") => false,
        Some(other) => {
            return Err(format!(
                "the index location '{other}' is neither start nor end"
            ));
        }
    };
    let shard = Shard {
        chunk,
        index_at_end,
        index_checked,
    };
    Ok((encoding, Some(shard)))
}

/// The name of a codec of the index, whose numbers begin with the least byte.
fn index_codec(codec: &Value) -> Result<&str, String> {
    let endian = configuration(codec).get("endian").and_then(Value::as_str);
    match endian {
        None | Some("little") => Ok(name_of(codec).unwrap_or("?")),
        Some(other) => Err(format!(
            "an index of shards with the endian '{other}' is not supported, only little"
        )),
    }
}

/// A codec from bytes to bytes.
fn step(value: &Value, size: usize) -> Result<Codec, String> {
    let name = name_of(value).ok_or_else(|| format!("the codec {value} has no name"))?;
    let settings = configuration(value);
    let with_id = |id: &str| {
        let mut settings = match settings {
            Value::Object(settings) => settings.clone(),
            _ => Map::new(),
        };
        settings.insert("id".into(), id.into());
        Value::Object(settings)
    };
    if name == "blosc" {
        // The words differ from those of version 2.
        let word = |name: &str| settings.get(name).and_then(Value::as_str);
        let number = |name: &str| settings.get(name).and_then(Value::as_u64);
        let compressor = word("cname").unwrap_or("lz4");
        let mut all = BloscCompressor::ALL.into_iter();
        return Ok(Codec::Blosc(Blosc {
            compressor: all
                .find(|one| one.name() == compressor)
                .ok_or_else(|| format!("blosc with '{compressor}' is not supported"))?,
            level: number("clevel").unwrap_or(5).min(9) as u8,
            shuffle: match word("shuffle") {
                Some("shuffle") => BloscShuffle::Byte,
                Some("bitshuffle") => BloscShuffle::Bit,
                _ => BloscShuffle::None,
            },
            type_size: number("typesize").unwrap_or(size as u64).min(255) as usize,
            block_size: number("blocksize").unwrap_or(0) as usize,
        }));
    }
    let id = name.strip_prefix("numcodecs.").unwrap_or(name);
    v2::step(&with_id(id), size)
}

/// The description of an array to be made.
pub(super) fn write(metadata: &Metadata) -> Value {
    let encoding = &metadata.encoding;
    let mut codecs = Vec::new();
    if !encoding
        .slowest_first
        .iter()
        .copied()
        .eq(0..metadata.shape.len())
    {
        codecs.push(json!({
            "name": "transpose",
            "configuration": { "order": encoding.slowest_first },
        }));
    }
    codecs.push(match metadata.element_type.size() {
        1 => json!({ "name": "bytes" }),
        _ => json!({ "name": "bytes", "configuration": { "endian": encoding.byte_order.name() } }),
    });
    codecs.extend(encoding.codecs.steps().iter().map(of_step));
    if let Some(shard) = &metadata.shard {
        let mut index = vec![json!({ "name": "bytes", "configuration": { "endian": "little" } })];
        if shard.index_checked {
            index.push(json!({ "name": "crc32c" }));
        }
        codecs = vec![json!({
            "name": "sharding_indexed",
            "configuration": {
                "chunk_shape": shard.chunk,
                "codecs": codecs,
                "index_codecs": index,
                "index_location": if shard.index_at_end { "end" } else { "start" },
            },
        })];
    }
    let name = TYPES
        .iter()
        .find(|(_, element)| *element == metadata.element_type);
    let mut document = json!({
        "zarr_format": 3,
        "node_type": "array",
        "shape": metadata.shape,
        "data_type": name.map_or("", |(name, _)| name),
        "chunk_grid": { "name": "regular", "configuration": { "chunk_shape": metadata.object } },
        "chunk_key_encoding": {
            "name": if metadata.keys.prefix { "default" } else { "v2" },
            "configuration": { "separator": metadata.keys.separator.to_string() },
        },
        "fill_value": metadata.fill_value.clone().unwrap_or_else(|| v2::zero(metadata.element_type)),
        "codecs": codecs,
        "attributes": fill::stored_attributes(&metadata.attributes, metadata.element_type),
    });
    if let Some(names) = &metadata.axis_names {
        let names = names.iter().map(|name| match name.as_str() {
            "" => Value::Null,
            name => name.into(),
        });
        document["dimension_names"] = names.collect();
    }
    document
}

fn of_step(step: &Codec) -> Value {
    let named = |name: &str, settings: Value| json!({ "name": name, "configuration": settings });
    match step {
        Codec::Gzip { level } => named("gzip", json!({ "level": level })),
        Codec::Zstd { level, checksum } => {
            named("zstd", json!({ "level": level, "checksum": checksum }))
        }
        Codec::Crc32c => json!({ "name": "crc32c" }),
        Codec::Blosc(blosc) => named(
            "blosc",
            json!({
                "cname": blosc.compressor.name(),
                "clevel": blosc.level,
                "shuffle": match blosc.shuffle {
                    BloscShuffle::None => "noshuffle",
                    BloscShuffle::Byte => "shuffle",
                    BloscShuffle::Bit => "bitshuffle",
                },
                "typesize": blosc.type_size,
                "blocksize": blosc.block_size,
            }),
        ),
        other => {
            let mut settings = v2::of_step(other);
            let id = settings["id"].as_str().unwrap_or_default().to_owned();
            if let Value::Object(settings) = &mut settings {
                settings.remove("id");
            }
            named(&format!("numcodecs.{id}"), settings)
        }
    }
}
