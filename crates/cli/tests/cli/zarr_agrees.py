"""Arrays that zarr-python writes, read by outcore, and the other way round.

zarr_agrees.py OUTCORE: works in the current directory.
"""
import subprocess
import sys

import numpy as np
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec, ShardingCodec, BytesCodec

OUTCORE = sys.argv[1]
TYPES = ["bool", "i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f2", "f4", "f8", "c8", "c16"]
NAMES = ["bool", "i8", "i16", "i32", "i64", "u8", "u16", "u32", "u64", "f16", "f32", "f64", "c64", "c128"]
CODECS = [None, ZstdCodec(level=1), GzipCodec(level=1), BloscCodec(cname="lz4", clevel=5, shuffle="shuffle"),
          BloscCodec(cname="zstd", clevel=3, shuffle="bitshuffle")]


def outcore(*arguments):
    done = subprocess.run([OUTCORE, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def values(kind, shape):
    numbers = np.arange(np.prod(shape, dtype=int)).reshape(shape)
    return (numbers % 2 == 0) if kind == "bool" else (numbers % 100).astype(kind)


def read_back(name, expected):
    outcore("read", name, "-o", "back.npy", "--force")
    back = np.load("back.npy")
    assert back.shape == expected.shape and back.dtype == expected.dtype, name
    assert back.tobytes(order="C") == expected.tobytes(order="C"), name


count = 0
# 1. Theirs: types, chunk shapes, codecs, versions, shards, orders.
for at, kind in enumerate(TYPES):
    data = values(kind, (7, 10))
    for version in (2, 3):
        codec = CODECS[at % len(CODECS)]
        extra = {}
        if version == 3:
            extra = {"compressors": codec}
        elif at % 3 == 0:
            extra = {"compressors": None, "order": "F"}
        array = zarr.create_array("theirs.zarr", shape=data.shape, chunks=(3, 4), dtype=data.dtype,
                                  zarr_format=version, overwrite=True, **extra)
        array[:] = data
        read_back("theirs.zarr", data)
        part = outcore("read", "theirs.zarr", "1:6:2, ::3", "-o", "part.npy", "--force", "--ranks", "2")
        assert (np.load("part.npy") == data[1:6:2, ::3]).all(), (kind, version, part)
        count += 1
data = values("f4", (8, 12))
sharded = zarr.create_array("shards.zarr", shape=data.shape, chunks=(2, 3), shards=(4, 6), dtype="f4",
                            compressors=ZstdCodec(level=1), fill_value=np.nan)
sharded[:4] = data[:4]
expected = np.full((8, 12), np.nan, "f4")
expected[:4] = data[:4]
read_back("shards.zarr", expected)

# 2. Ours: all types and codecs, both versions, byte orders, shards, groups, attributes.
for at, name in enumerate(NAMES):
    codec = ["none", "zstd:3", "gzip:2", "blosc:lz4:5:shuffle", "blosc:zstd:1:bitshuffle", "zstd:1,crc32c"][at % 6]
    for version in (2, 3):
        if version == 2 and "crc32c" in codec:
            continue
        target = ("zarr2:" if version == 2 else "") + f"ours{version}.zarr/group/{name}"
        outcore("create", target, "--shape", "7x10", "--type", name, "--chunks", "3x4", "--codec", codec, "--fill", "index",
                "--attribute", "units=K", "--byte-order", ["little", "big"][at % 2])
        found = zarr.open_array(f"ours{version}.zarr/group/{name}", mode="r")
        outcore("read", f"ours{version}.zarr/group/{name}", "-o", "same.npy", "--force")
        assert found.metadata.zarr_format == version and found.attrs["units"] == "K"
        assert (found[:] == np.load("same.npy")).all(), (name, version)
        if name not in ("bool", "f16"):
            assert (found[:].real == np.arange(70).reshape(7, 10)).all(), name
        count += 1
outcore("convert", "shards.zarr", "again.zarr", "--chunks", "4x4", "--shard", "8x8", "--codec", "zstd:1", "--ranks", "2")
assert np.array_equal(zarr.open_array("again.zarr", mode="r")[:], expected, equal_nan=True)
listed = outcore("ls", "ours3.zarr", "--json")
assert '"group/f64"' in listed, listed
print(f"{count} arrays agree")
