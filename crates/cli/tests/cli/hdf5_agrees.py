"""HDF5 files that h5py writes, read by outcore, and the other way round.

hdf5_agrees.py OUTCORE: works in the current directory.
"""
import json
import subprocess
import sys

import h5py
import netCDF4
import numpy as np

OUTCORE = sys.argv[1]


def outcore(*arguments, fails=False):
    done = subprocess.run([OUTCORE, *arguments], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, f"{arguments}: {done.stderr}"
    return done.stderr if fails else done.stdout


data = np.arange(60 * 40, dtype="f4").reshape(60, 40)
with h5py.File("theirs.h5", "w") as file:
    group = file.create_group("run")
    group.create_dataset("plain", data=data)
    group.create_dataset("packed", data=data, chunks=(16, 16), compression="gzip", shuffle=True, fletcher32=True)
    group.create_dataset("chunked", data=data, chunks=(7, 9))
    group["plain"].attrs["units"] = "K"
    file.create_dataset("text", data="a word")
for name in ("plain", "packed", "chunked"):
    outcore("read", f"theirs.h5:/run/{name}", "-o", "back.npy", "--force")
    assert (np.load("back.npy") == data).all(), name
    outcore("read", f"theirs.h5:/run/{name}", "3:50:7, ::5", "-o", "part.npy", "--force", "--ranks", "2")
    assert (np.load("part.npy") == data[3:50:7, ::5]).all(), name
assert '"units": "K"' in outcore("info", "theirs.h5:/run/plain", "--json")
listed = outcore("ls", "theirs.h5")
assert "packed" in listed and "60x40 f32" in listed, listed
assert "/run/packed" in outcore("info", "theirs.h5", fails=True)
# Sections are written in place; chunks with filters are rewritten, also by several ranks.
outcore("write", "theirs.h5:/run/plain", "0, :", "--fill", "7")
outcore("write", "theirs.h5:/run/packed", "p::N, 5:30", "--fill", "random", "--ranks", "3")
outcore("write", "theirs.h5:/run/packed", "::7, :", "--fill", "7")
with h5py.File("theirs.h5") as file:
    assert (file["run/plain"][0] == 7).all() and (file["run/plain"][1:] == data[1:]).all()
    packed = file["run/packed"][:]
    assert (packed[::7] == 7).all() and (packed[1:7, 30:] == data[1:7, 30:]).all()
    assert (packed[1:7, 5:30] != data[1:7, 5:30]).any()
data = packed
# From chunks of HDF5 to Zarr and back into a new file.
outcore("convert", "theirs.h5:/run/packed", "packed.zarr", "--codec", "zstd:3", "--ranks", "2")
outcore("convert", "packed.zarr", "ours.h5:/deep/data", "--layout", "row")
outcore("convert", "packed.zarr", "tiles.h5", "--layout", "tiled:8x8")
with h5py.File("ours.h5") as file:
    assert (file["deep/data"][:] == data).all()
with h5py.File("tiles.h5") as file:
    assert (file["data"][:] == data).all() and file["data"].chunks == (8, 8)
# New datasets with filters, made by one rank and by several.
for ranks in ("1", "3"):
    name = f"made{ranks}.h5:/deep/data"
    outcore("create", name, "--shape", "100x37", "--type", "f64", "--chunks", "16x10", "--codec",
            "deflate:4,shuffle,fletcher32", "--fill", "index", "--ranks", ranks, "--attribute", "units=K")
    with h5py.File(f"made{ranks}.h5") as file:
        made = file["deep/data"]
        assert (made[:] == np.arange(3700).reshape(100, 37)).all() and made.attrs["units"] == b"K"
        assert made.compression == "gzip" and made.compression_opts == 4 and made.shuffle and made.fletcher32
    outcore("convert", name, f"again{ranks}.h5", "--chunks", "7x37", "--codec", "deflate:1", "--ranks", ranks)
    with h5py.File(f"again{ranks}.h5") as file:
        assert (file["data"][:] == np.arange(3700).reshape(100, 37)).all() and file["data"].chunks == (7, 37)
        assert file["data"].attrs["units"] == b"K"
    subprocess.run(["h5dump", "-p", "-d", "/deep/data", f"made{ranks}.h5"], check=True, capture_output=True)
info = outcore("info", "made1.h5", "--json")
assert "shuffle,deflate:4,fletcher32" in info, info
outcore("create", "sparse.h5", "--shape", "1000x1000", "--type", "i16", "--codec", "deflate")
with h5py.File("sparse.h5") as file:
    assert (file["data"][:] == 0).all() and file["data"].id.get_storage_size() == 0
assert "lz4" in outcore("create", "no.h5", "--shape", "9", "--type", "f32", "--codec", "lz4", fails=True)
assert "--shard" in outcore("create", "no.h5", "--shape", "9", "--type", "f32", "--shard", "3", fails=True)
# Programs that write at the same time, each some rows of every chunk.
for round in range(3):
    writers = [subprocess.Popen([OUTCORE, "write", "made1.h5", f"{k}::3, :", "--fill", "random", "--seed", str(k + round)],
                                stdout=subprocess.DEVNULL) for k in range(3)]
    assert all(writer.wait() == 0 for writer in writers)
for k in range(3):
    outcore("create", f"alone{k}.h5", "--shape", "100x37", "--type", "f64", "--codec", "deflate:1")
    outcore("write", f"alone{k}.h5", f"{k}::3, :", "--fill", "random", "--seed", str(k + 2))
    with h5py.File("made1.h5") as file, h5py.File(f"alone{k}.h5") as alone:
        assert (file["deep/data"][k::3] == alone["data"][k::3]).all(), k
# A chunk that the library's tree has no entry for is not added.
with h5py.File("gaps.h5", "w") as file:
    gaps = file.create_dataset("data", (40, 40), "f4", chunks=(10, 10), compression="gzip")
    gaps[:10, :10] = 1
outcore("write", "gaps.h5", "0:5, 0:5", "--fill", "7")
assert "convert" in outcore("write", "gaps.h5", "20:30, :", "--fill", "7", fails=True)
outcore("convert", "gaps.h5", "whole.h5")
outcore("write", "whole.h5", "20:30, :", "--fill", "7")
with h5py.File("whole.h5") as file:
    assert file["data"][:].sum() == 100 + 6 * 25 + 7 * 400, file["data"][:].sum()
# Attributes and the names of axes go with the array.
with h5py.File("named.h5", "w") as file:
    named = file.create_dataset("t", data=data, chunks=(16, 16), compression="gzip", fillvalue=-1)
    named.dims[0].label, named.dims[1].label = "time", "place"
    named.attrs["scale"], named.attrs["list"] = 0.5, [1, 2, 3]
outcore("convert", "named.h5:/t", "named.zarr")
outcore("convert", "named.zarr", "back.h5:/t", "--codec", "shuffle,deflate:1")
with h5py.File("back.h5") as file:
    back = file["t"]
    assert (back[:] == data).all() and [d.label for d in back.dims] == ["time", "place"]
    assert back.attrs["scale"] == 0.5 and list(back.attrs["list"]) == [1, 2, 3] and back.fillvalue == -1
with netCDF4.Dataset("dims.nc", "w") as file:
    file.createDimension("lat", 60)
    file.createDimension("lon", 40)
    file.createVariable("lat", "f8", ("lat",))[:] = np.arange(60)
    file.createVariable("t", "f4", ("lat", "lon"), zlib=True)[:] = data
outcore("convert", "dims.nc:t", "dims.zarr")
assert json.load(open("dims.zarr/zarr.json"))["dimension_names"] == ["lat", "lon"]
with netCDF4.Dataset("back.h5") as file:
    assert (file["t"][:] == data).all()
assert "exists" in outcore("create", "ours.h5:/other", "--shape", "3", "--type", "f32", fails=True)
assert "does not replace" in outcore("create", "theirs.h5:/other", "--shape", "3", "--type", "f32", "--force", fails=True)
print("HDF5 agrees")
