"""NumPy beside outcore: started by numpy.rs with the program's path."""

import subprocess
import sys

import numpy as np
from numpy.lib import format as npy

TYPES = {
    "bool": "?", "i8": "i1", "i16": "i2", "i32": "i4", "i64": "i8", "u8": "u1", "u16": "u2",
    "u32": "u4", "u64": "u8", "f16": "f2", "f32": "f4", "f64": "f8", "c64": "c8", "c128": "c16",
}
SHAPE = (5, 6, 4)


def outcore(*args):
    run = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"outcore {args} ended with {run.returncode}: {run.stderr}")
    return run.stdout


def same(found, expected, what):
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    assert found.dtype == expected.dtype.newbyteorder("="), (what, found.dtype)
    assert np.array_equal(found, expected), what


def index(name):
    numbers = np.arange(np.prod(SHAPE)).reshape(SHAPE)
    return numbers % 2 == 1 if name == "bool" else numbers.astype(TYPES[name])


# NumPy reads what outcore makes, of every type, in both orders, both ways round.
for name in TYPES:
    for layout in ["row", "column"]:
        for byte_order, sign in [("little", "<"), ("big", ">")]:
            outcore("create", "ours.npy", "--shape", "5x6x4", "--type", name, "--layout", layout,
                    "--byte-order", byte_order, "--fill", "index", "--force")
            loaded = np.load("ours.npy")
            assert loaded.dtype == np.dtype(TYPES[name]).newbyteorder(sign), (name, loaded.dtype)
            assert loaded.flags.f_contiguous == (layout == "column"), (name, layout)
            assert np.array_equal(loaded, index(name)), (name, layout, byte_order)

# outcore reads what NumPy makes: also with the headers of versions 2 and 3.
for name, code in TYPES.items():
    for sign, order, version in [("<", "C", (1, 0)), (">", "F", (1, 0)), ("<", "F", (2, 0)),
                                 (">", "C", (2, 0)), ("<", "C", (3, 0)), (">", "F", (3, 0))]:
        array = np.array(index(name), dtype=np.dtype(code).newbyteorder(sign), order=order)
        if name.startswith("c"):
            array -= 2.5j * array
        with open("theirs.npy", "wb") as file:
            npy.write_array(file, array, version=version)
        what = (name, sign, order, version)
        outcore("read", "theirs.npy", "-o", "copy.npy", "--ranks", "3", "--force")
        same(np.load("copy.npy"), array, what)
        assert np.load("copy.npy").flags.f_contiguous == (order == "F"), what
        outcore("create", "a.oc", "--shape", "5x6x4", "--type", name, "--layout", "tiled:2x4x3",
                "--force")
        outcore("write", "a.oc", "--from", "theirs.npy", "--ranks", "2")
        outcore("read", "a.oc", "-o", "copy.npy", "--force")
        same(np.load("copy.npy"), array, what)

# Shapes at the edge.
for array in [np.float32(3), np.zeros((0, 3)), np.zeros((2, 0, 3), order="F"),
              np.ones((1, 1, 1, 1), dtype="i2"), np.arange(7, dtype="u8"), np.ones((1,) * 20)]:
    np.save("theirs.npy", array)
    outcore("read", "theirs.npy", "-o", "copy.npy", "--force")
    same(np.load("copy.npy"), np.asarray(array), array)

# The same section text means the same elements, and drops the same axes.
array = index("i32")
np.save("rows.npy", array)
np.save("columns.npy", np.asfortranarray(array))
for layout in ["axes:1,2,0", "tiled:2x4x3", "tiled:3x2x2:column"]:
    outcore("create", f"{layout}.oc", "--shape", "5x6x4", "--type", "i32", "--layout", layout)
    outcore("write", f"{layout}.oc", "--from", "rows.npy", "--ranks", "3")
for section in [":", "2", "-1", "1:4", "-3:-1", "::2, 1::3, -1", "..., 2", "1, ..., ::3", "0, 0, 0",
                "4:2", "3:3, 1", ":, [0, 2, 5]", "[1, 3], 1:3, 2:", "5:, :, 3", "2:3, 2:3, 2:3"]:
    expected = eval(f"array[{section}]")
    for name in ["rows.npy", "columns.npy", "axes:1,2,0.oc", "tiled:2x4x3.oc",
                 "tiled:3x2x2:column.oc"]:
        outcore("read", name, section, "-o", "part.npy", "--ranks", "2", "--force")
        same(np.load("part.npy"), np.asarray(expected), (name, section))
        printed = np.array(outcore("read", name, section).split(), dtype="i4")
        same(printed, np.asarray(expected).ravel(), (name, section))
        # Writing the same section leaves the rest alone, in both programs.
        outcore("create", "w.oc", "--shape", "5x6x4", "--type", "i32", "--force")
        outcore("write", "w.oc", section, "--from", "part.npy", "--ranks", "2")
        outcore("read", "w.oc", "-o", "w.npy", "--force")
        changed = np.zeros_like(array)
        exec(f"changed[{section}] = expected")
        same(np.load("w.npy"), changed, (name, section))

# Text that NumPy can load.
outcore("read", "rows.npy", "3", "-o", "rows.csv")
assert np.array_equal(np.loadtxt("rows.csv", delimiter=","), array[3])
outcore("read", "columns.npy", ":, 1, :", "-o", "columns.txt")
assert np.array_equal(np.loadtxt("columns.txt"), array[:, 1, :])

# Plain bytes.
outcore("read", "columns.npy", "::2", "-o", "plain.bin")
plain = np.fromfile("plain.bin", dtype="i4").reshape((3, 6, 4), order="F")
same(plain, array[::2], "plain bytes")

# What NumPy can hold and outcore cannot is refused.
for other in [np.array(["a"]), np.zeros(2, dtype=[("a", "f4")]), np.zeros(2, dtype="M8[s]"),
              np.zeros(2, dtype="S5"), np.array([{}], dtype=object)]:
    np.save("other.npy", other, allow_pickle=True)
    run = subprocess.run([sys.argv[1], "info", "other.npy"], capture_output=True, text=True)
    assert run.returncode == 1 and run.stderr.startswith("outcore: other.npy: it"), run.stderr

print("checked to the end")
