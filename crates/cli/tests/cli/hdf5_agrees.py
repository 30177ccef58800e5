"""HDF5 files that h5py writes, read by outcore, and the other way round.

hdf5_agrees.py OUTCORE: works in the current directory.
"""
import subprocess
import sys

import h5py
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
# Sections of plain data are written in place; filtered data are not.
outcore("write", "theirs.h5:/run/plain", "0, :", "--fill", "7")
assert "filters" in outcore("write", "theirs.h5:/run/packed", "0, :", "--fill", "7", fails=True)
with h5py.File("theirs.h5") as file:
    assert (file["run/plain"][0] == 7).all() and (file["run/plain"][1:] == data[1:]).all()
# From chunks of HDF5 to Zarr and back into a new file.
outcore("convert", "theirs.h5:/run/packed", "packed.zarr", "--codec", "zstd:3", "--ranks", "2")
outcore("convert", "packed.zarr", "ours.h5:/deep/data", "--layout", "row")
outcore("convert", "packed.zarr", "tiles.h5", "--layout", "tiled:8x8")
with h5py.File("ours.h5") as file:
    assert (file["deep/data"][:] == data).all()
with h5py.File("tiles.h5") as file:
    assert (file["data"][:] == data).all() and file["data"].chunks == (8, 8)
assert "exists" in outcore("create", "ours.h5:/other", "--shape", "3", "--type", "f32", fails=True)
assert "not replaced" in outcore("create", "theirs.h5:/other", "--shape", "3", "--type", "f32", "--force", fails=True)
print("HDF5 agrees")
