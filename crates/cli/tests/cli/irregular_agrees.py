"""NumPy's fancy indexing beside gather and scatter: started by irregular.rs with the program's path."""

import subprocess
import sys

import numpy as np

random = np.random.default_rng(5)


def outcore(*args):
    run = subprocess.run([sys.argv[1], *args], capture_output=True, text=True)
    if run.returncode != 0:
        sys.exit(f"outcore {args} ended with {run.returncode}: {run.stderr}")


def same(found, expected, what):
    assert found.shape == expected.shape, (what, found.shape, expected.shape)
    assert found.dtype.newbyteorder("=") == expected.dtype.newbyteorder("="), (what, found.dtype)
    assert np.array_equal(found, expected), what


shape = (9, 5, 4)
for kind in ["?", "i1", "<u2", ">i4", "u8", "f2", "<f4", ">f8", "c8", "c16"]:
    for order in "CF":
        array = np.asarray(random.integers(0, 100, shape), dtype=kind, order=order)
        np.save("a.npy", array)
        for integer in ["u1", "<i2", ">u4", "<i8", "u8"]:
            what = (kind, order, integer)
            # Numbers, and tuples in either order.
            numbers = random.integers(0, array.size, 300).astype(integer)
            np.save("i.npy", numbers)
            outcore("gather", "a.npy", "--indices", "i.npy", "-o", "v.npy", "--force", "--ranks", "2")
            same(np.load("v.npy"), array.flat[numbers.astype("i8")], what)
            tuples = np.stack([random.integers(0, extent, 300) for extent in shape], axis=1)
            tuples = np.asarray(tuples, dtype=integer, order=order)
            np.save("i.npy", tuples)
            outcore("gather", "a.npy", "--indices", "i.npy", "-o", "v.npy", "--force", "--ranks", "3")
            expected = array[tuple(tuples.astype("i8").T)]
            same(np.load("v.npy"), expected, what)
        # What is put is there; of several, the last.
        values = random.integers(0, 100, 300).astype(kind)
        np.save("w.npy", values)
        np.save("b.npy", array)
        outcore("scatter", "b.npy", "--indices", "i.npy", "--values", "w.npy", "--ranks", "2")
        changed = array.copy(order="K")
        for place, value in zip(tuples.astype("i8"), values):
            changed[tuple(place)] = value
        same(np.load("b.npy"), changed, (kind, order))
        # Records: the first axis, or the first two, are indexed.
        for axes in [1, 2]:
            if order == "F" and axes == 1:
                continue  # the components of a record are not in order
            extent = int(np.prod(shape[:axes]))
            numbers = random.integers(0, extent, 50)
            np.save("i.npy", numbers)
            records = array.reshape((extent, *shape[axes:]))
            outcore("gather", "a.npy", "--axes", str(axes), "--indices", "i.npy", "-o", "v.npy",
                    "--force", "--ranks", "2")
            same(np.load("v.npy"), records[numbers], (kind, order, axes))
            values = np.asarray(random.integers(0, 100, (50, *shape[axes:])), dtype=kind, order=order)
            np.save("w.npy", values)
            np.save("b.npy", array)
            outcore("scatter", "b.npy", "--axes", str(axes), "--indices", "i.npy", "--values", "w.npy",
                    "--ranks", "2")
            changed = records.copy()
            for number, value in zip(numbers, values):
                changed[number] = value
            same(np.load("b.npy"), changed.reshape(shape), (kind, order, axes))

# Combined, as by NumPy's own functions.
for how, combine in [("add", np.add), ("min", np.minimum), ("max", np.maximum)]:
    for kind in ["i2", "u8", "f4", "f8"]:
        array = random.integers(0, 100, 200).astype(kind)
        numbers = random.integers(0, 200, 1000)
        values = random.integers(0, 100, 1000).astype(kind)
        np.save("a.npy", array)
        np.save("i.npy", numbers)
        np.save("v.npy", values)
        outcore("scatter", "a.npy", "--indices", "i.npy", "--values", "v.npy", "--combine", how,
                "--ranks", "3")
        combine.at(array, numbers, values)
        same(np.load("a.npy"), array, (how, kind))

print("checked to the end")
