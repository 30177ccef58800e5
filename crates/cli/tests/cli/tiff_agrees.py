"""TIFF files of tifffile read by outcore.

tiff_agrees.py OUTCORE: works in the current directory.
"""
import json
import subprocess
import sys

import numpy as np
import tifffile

OUTCORE = sys.argv[1]


def outcore(*arguments, fails=False):
    done = subprocess.run([OUTCORE, *arguments], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, f"{arguments}: {done.stderr}"
    return done.stderr if fails else done.stdout


def values(shape, kind):
    return (np.arange(np.prod(shape)) * 7 % 251).astype(kind).reshape(shape)


def same(file, whole):
    outcore("convert", file, "back.npy", "--force")
    found = np.load("back.npy")
    assert found.shape == whole.shape, (file, found.shape, whole.shape)
    assert (found == whole).all(), file
    at = tuple(slice(1, None, 2) for _ in whole.shape)
    outcore("read", file, ", ".join(["1::2"] * whole.ndim), "-o", "part.npy", "--force")
    assert (np.load("part.npy") == whole[at]).all(), file


FORMS = [
    {},
    {"rowsperstrip": 3},
    {"tile": (16, 16)},
    {"compression": "zlib"},
    {"compression": "zlib", "rowsperstrip": 5},
    {"compression": "zlib", "tile": (16, 32), "predictor": True},
]
number = 0
for kind in ["u1", "i1", "u2", "i2", "u4", "i4", "f2", "f4", "f8", "u8", "c8"]:
    for form in FORMS:
        number += 1
        if "predictor" in form and (kind[0] in "fc" or kind == "u8"):
            continue
        whole = values((3, 20, 33), kind)
        tifffile.imwrite("a.tif", whole, photometric="minisblack", bigtiff=number % 2 == 0,
                         byteorder="<>"[number % 3 == 0], **form)
        same("a.tif", whole)
    same("a.tif", whole)
# One page, colours together and apart, and pages that are written one by one.
whole = values((20, 33), "u2")
tifffile.imwrite("a.tif", whole, description="a page")
same("a.tif", whole)
told = json.loads(outcore("info", "a.tif", "--json"))
assert told["format"] == "tiff" and told["axis_names"] == ["y", "x"], told
assert told["attributes"]["ImageDescription"] == "a page", told
assert "20x33 u16" in outcore("ls", "a.tif")
colours = values((20, 33, 3), "u1")
for form in FORMS:
    tifffile.imwrite("a.tif", colours, photometric="rgb", **form)
    same("a.tif", colours)
    tifffile.imwrite("a.tif", np.moveaxis(colours, 2, 0).copy(), photometric="rgb",
                     planarconfig="separate", **form)
    same("a.tif", np.moveaxis(colours, 2, 0))
with tifffile.TiffWriter("a.tif") as file:
    for page in range(50):
        file.write(values((9, 7), "u2") + page, contiguous=page % 3 > 0, compression=None)
same("a.tif", np.stack([values((9, 7), "u2") + page for page in range(50)]))
tifffile.imwrite("a.ome.tif", values((4, 9, 7), "u2"), metadata={"axes": "ZYX"})
same("a.ome.tif", values((4, 9, 7), "u2"))
# What does not work says so.
with tifffile.TiffWriter("a.tif") as file:
    file.write(values((9, 7), "u2"))
    file.write(values((9, 8), "u2"))
assert "only equal pages" in outcore("info", "a.tif", fails=True)
tifffile.imwrite("a.tif", values((9, 7), "u2"))
assert "only read" in outcore("write", "a.tif", "0, 0", "--fill", "1", fails=True)
assert "only read" in outcore("create", "b.tif", "--shape", "3", "--type", "u8", fails=True)
whole = open("a.tif", "rb").read()
open("cut.tif", "wb").write(whole[: len(whole) - 20])
assert "truncated" in outcore("info", "cut.tif", fails=True)
print("TIFF agrees")
