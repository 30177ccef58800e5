"""Makes HDF5 and NetCDF-4 files with h5py and netCDF4 in the current folder,
the elements of each dataset as plain bytes, and a list of all that."""

import json

import h5py
import netCDF4
import numcodecs
import numpy as np

# netCDF4 brings filters for its own library, which fail in that of h5py.
while h5py.h5pl.size():
    h5py.h5pl.remove(0)

TYPES = "? i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
NAMES = "bool i8 i16 i32 i64 u8 u16 u32 u64 f16 f32 f64 c64 c128".split()
listed = []


def values(shape, dtype):
    count = int(np.prod(shape))
    return (np.arange(count) * 37 % 101).astype(dtype).reshape(shape)


def remember(file, name, dataset, elements=None):
    if elements is None:
        elements = np.asarray(dataset[()])
    dtype = elements.dtype.newbyteorder("<")
    data = f"{len(listed)}.bin"
    elements.astype(dtype).tofile(data)
    kind = NAMES[TYPES.index(dtype.str[1:] if dtype.kind != "b" else "?")]
    listed.append([file, name, list(elements.shape), kind, data])


bounds = ["earliest", "latest", ("v108", "v108"), ("v110", "v110"), ("v114", "v114")]
for number, libver in enumerate(bounds):
    file = f"h{number}.h5"
    with h5py.File(file, "w", libver=libver, userblock_size=512 if number == 3 else 0) as f:
        for code in TYPES:
            f[f"types/plain_{code.strip('?')}"] = values((5, 7), code)
            f[f"types/big_{code.strip('?')}"] = values((5, 7), code if code == "?" else ">" + code)
            f.create_dataset(
                f"types/packed_{code.strip('?')}",
                data=values((5, 7), code),
                chunks=(2, 3),
                compression="gzip",
                shuffle=True,
            )
        x = values((40, 33), "f4")
        for name, more in {
            "tree": {},
            "filtered": {"compression": 4, "shuffle": True, "fletcher32": True},
            "summed": {"fletcher32": True},
            "grows": {"maxshape": (None, 33)},
            "grows_packed": {"maxshape": (40, None), "compression": 1},
            "grows_twice": {"maxshape": (None, None)},
            "grows_twice_packed": {"maxshape": (None, None), "compression": 1},
            "lzf": {"compression": "lzf"},
            "lzf_filtered": {"compression": "lzf", "shuffle": True, "fletcher32": True},
            "limited": {"maxshape": (90, 71)},
            "limited_packed": {"maxshape": (90, 71), "compression": 1},
        }.items():
            f.create_dataset("chunks/" + name, data=x, chunks=(3, 2), **more)
            f.create_dataset("single/" + name, data=x, chunks=(40, 33), **more)
        long = values((9000,), "i4")
        f.create_dataset("long/grows", data=long, chunks=(2,), maxshape=(None,))
        f.create_dataset("long/fixed", data=long, chunks=(2,))
        f.create_dataset("long/packed", data=long, chunks=(2,), compression=1)
        f["scalar"] = 3.5
        f["empty"] = np.zeros((0, 4), "i2")
        holes = f.create_dataset("holes", (100, 100), "i4", chunks=(10, 10), fillvalue=-7)
        holes[25:35, 25:35] = 1
        packed = f.create_dataset(
            "packed_holes", (100, 100), ">i4", chunks=(10, 10), fillvalue=-7, compression=1
        )
        packed[25:35, 25:35] = 1
        f.create_dataset("never_written", (10, 10), "i4", fillvalue=-7)
        early = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        early.set_chunk((3, 2))
        early.set_alloc_time(h5py.h5d.ALLOC_TIME_EARLY)
        made = h5py.h5d.create(
            f.id, b"early", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((40, 33)), early
        )
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, x)
        compact = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
        compact.set_layout(h5py.h5d.COMPACT)
        made = h5py.h5d.create(
            f.id, b"compact", h5py.h5t.NATIVE_FLOAT, h5py.h5s.create_simple((40, 33)), compact
        )
        made.write(h5py.h5s.ALL, h5py.h5s.ALL, x)
        noise = (np.arange(9000, dtype="u4") * 2654435761 >> 7).astype("u4")
        f.create_dataset("noise", data=noise, chunks=(1000,), compression="lzf")
        for number_of, compressor in enumerate(["blosclz", "lz4", "lz4hc", None, "zlib", "zstd"]):
            if compressor is None:
                continue
            for shuffle in range(3):
                # h5py has no such filter: chunks are stored as they would come from it.
                blosc = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
                blosc.set_chunk((20, 33))
                settings = (2, 2, 4, 20 * 33 * 4, 5, shuffle, number_of)
                blosc.set_filter(32001, h5py.h5z.FLAG_OPTIONAL, settings)
                name = f"blosc_{compressor}_{shuffle}"
                space = h5py.h5s.create_simple((40, 33))
                made = h5py.h5d.create(
                    f.id, name.encode(), h5py.h5t.NATIVE_FLOAT, space, blosc
                )
                encode = numcodecs.Blosc(compressor, 5, shuffle).encode
                for row in (0, 20):
                    part = np.ascontiguousarray(x[row : row + 20])
                    made.write_direct_chunk((row, 0), encode(part))
                remember(file, "/" + name, None, x)
        for many in range(300):
            f[f"many/of/them/m{many}"] = np.int32(many)
        f["soft"] = h5py.SoftLink("/chunks/tree")
        f["many/loop"] = f["/"]
        told = f["scalar"].attrs
        told["units"] = "kelvin"
        told["fixed"] = np.bytes_("abc")
        told["list"] = np.arange(3)
        told["half"] = np.float32(0.1)
        told["texts"] = ["one", "two"]
        told["yes"] = True
        for many in range(30):
            f["empty"].attrs[f"a{many}"] = many

        def visit(name, item):
            small = not name.startswith("many") or name.endswith("m7")
            if isinstance(item, h5py.Dataset) and small and not name.startswith("blosc"):
                remember(file, "/" + name, item)

        f.visititems(visit)
        remember(file, "/soft", f["soft"])

with netCDF4.Dataset("n.nc4", "w") as n:
    n.createDimension("t", None)
    n.createDimension("y", 5)
    v = n.createVariable("temperature", "f4", ("t", "y"), zlib=True, fill_value=-1)
    v[:] = np.arange(15).reshape(3, 5)
    v.units = "K"
    n.createDimension("row", 40)
    n.createDimension("column", 33)
    dimensions = ("row", "column")
    v = n.createVariable("blosc", "f4", dimensions, compression="blosc_zstd", chunksizes=(20, 33))
    v[:] = x
    remember("n.nc4", "/blosc", None, x)
with h5py.File("n.nc4") as f:
    remember("n.nc4", "/temperature", f["temperature"])

with open("list.json", "w") as out:
    json.dump(listed, out)
print("made to the end")
