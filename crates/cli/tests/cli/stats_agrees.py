"""outcore stats and diff beside NumPy: OUTCORE is the program."""

import json
import subprocess
import sys

import numpy as np

outcore = sys.argv[1]
rng = np.random.default_rng(5)


def run(*args, status=0):
    done = subprocess.run([outcore, *args], capture_output=True, text=True)
    assert done.returncode == status, (args, done.returncode, done.stdout, done.stderr)
    return done.stdout


def close(found, expected, tolerance=1e-12):
    if isinstance(found, str):
        found = {"NaN": np.nan, "Infinity": np.inf, "-Infinity": -np.inf}.get(found) or int(found)
    if np.isnan(expected):
        assert np.isnan(found), (found, expected)
        return
    assert found == expected or abs(found - expected) <= tolerance * abs(expected), (found, expected)


def sample(kind, shape):
    if kind == "bool":
        return rng.random(shape) < 0.3
    dtype = np.dtype(kind)
    if dtype.kind in "iu":
        info = np.iinfo(dtype)
        return rng.integers(info.min, info.max, shape, dtype=dtype, endpoint=True)
    if dtype.kind == "c":
        return (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(dtype)
    values = (1000 + rng.normal(size=shape)).astype(dtype)
    values[rng.random(shape) < 0.05] = np.nan
    return values


def check(name, array, section, key):
    part = array[key]
    real = np.abs(part.astype("c16")) if part.dtype.kind == "c" else part
    rough = 1e-12 if part.dtype.kind == "c" else 0
    wide = real.astype(np.float64) if real.dtype.kind == "f" else real
    floats = wide.astype(np.float64)
    good = ~np.isnan(floats)
    for ranks in ("1", "3"):
        args = ["stats", name, section, "--json", "--ranks", ranks, "--memory", "1MiB"]
        found = json.loads(run(*args))
        assert found["count"] == good.sum() and found["nans"] == (~good).sum(), name
        numbers = wide[good]
        close(found["min"]["value"], numbers.min(), rough)
        close(found["max"]["value"], numbers.max(), rough)
        # An element of the array itself has the value.
        for extreme in ("min", "max"):
            at = array[tuple(found[extreme]["at"])]
            at = abs(at) if array.dtype.kind == "c" else at
            close(found[extreme]["value"], float(at) if array.dtype.kind in "fc" else int(at), 1e-6)
        exact = sum(int(x) for x in numbers.ravel()) if array.dtype.kind in "iub" else None
        if exact is not None:
            assert int(found["sum"]) == exact, (name, found["sum"], exact)
        else:
            close(found["sum"], floats[good].sum(), 1e-6 if array.dtype.kind == "c" else 1e-12)
        close(found["mean"], floats[good].mean(), 1e-6 if array.dtype.kind == "c" else 1e-12)
        close(found["deviation"], floats[good].std(), 1e-5 if array.dtype.kind == "c" else 1e-9)
    low, high = float(floats[good].min()), float(floats[good].max())
    counts, edges = np.histogram(floats[good], bins=13, range=(low, high))
    for more in ([], ["--range", f"{low!r},{high!r}"]):
        found = json.loads(run("stats", name, section, "--json", "--bins", "13", *more))
        assert found["passes"] == (1 if more else 2)
        # The modulus may be rounded otherwise.
        apart = np.abs(np.array(found["histogram"]["counts"]) - counts).sum()
        assert apart <= (4 if rough else 0), (name, more, apart)
        assert np.allclose(found["histogram"]["edges"], edges, rtol=1e-12)
    axes = (0,) if array.ndim == 1 else (0, array.ndim - 1)
    for axis in axes + ((tuple(range(array.ndim)),) if array.ndim > 1 else ()):
        text = ",".join(map(str, axis)) if isinstance(axis, tuple) else str(axis)
        for of, numpy in (("mean", np.nanmean), ("max", np.nanmax), ("deviation", np.nanstd)):
            args = ["--axis", text, "--of", of, "-o", "along.npy", "--force", "--ranks", "2"]
            run("stats", name, section, *args, "--memory", "512KiB")
            expected = numpy(floats, axis=axis)
            rough = 1e-5 if array.dtype.kind == "c" else 1e-9
            assert np.allclose(np.load("along.npy"), expected, rtol=rough, atol=0), (name, of, axis)


kinds = "bool i1 i2 i4 i8 u1 u2 u4 u8 f2 f4 f8 c8 c16".split()
for kind in kinds:
    array = sample(kind, (37, 41, 29))
    np.save("a.npy", array)
    check("a.npy", array, ":, :, :", np.s_[:, :, :])
    np.save("a.npy", np.asfortranarray(array))
    check("a.npy", array, "3:30:2, :, 1:", np.s_[3:30:2, :, 1:])
    run("convert", "a.npy", "a.zarr", "--layout", "row", "--chunks", "8x16x29", "--codec", "zstd:1")
    check("a.zarr", array, "5:, ::3, :", np.s_[5:, ::3, :])
    # The same in other layouts and formats, by whatever number of ranks.
    for ranks in ("1", "3"):
        found = json.loads(run("diff", "a.npy", "a.zarr", "--json", "--ranks", ranks))
        assert found["same"] and found["differing"] == 0 and found["elements"] == array.size
    changed = array.copy()
    changed[7, 8, 9] = not array[7, 8, 9] if kind == "bool" else 5
    if changed[7, 8, 9] != array[7, 8, 9]:
        np.save("b.npy", changed)
        found = json.loads(run("diff", "a.zarr", "b.npy", "--json", "--ranks", "2", status=1))
        assert found["differing"] == 1 and not found["same"]
        if not np.isnan(array[7, 8, 9]):
            assert found["largest_absolute"]["at_a"] == [7, 8, 9]
            assert found["largest_absolute"]["at_b"] == [7, 8, 9]
    run("diff", "a.npy", "b.npy", "--section", "8:, :, :")
    subprocess.run(["rm", "-r", "a.zarr"], check=True)

# Types in one another, as NumPy makes them where everything fits.
small = rng.integers(0, 2, (50, 31)).astype("u1")
for source in kinds:
    np.save("s.npy", small.astype(source))
    for target in kinds:
        name = {"bool": "bool"}.get(target, np.dtype(target).name)
        run("convert", "s.npy", "t.npy", "--type", name, "--force", "--verify", "--layout", "column")
        made = np.load("t.npy")
        assert made.dtype == np.dtype(target) and np.array_equal(made, small.astype(target))
values = rng.normal(size=(300, 301)) * 1e3
np.save("s.npy", values)
for target in ("i2", "i8", "f4", "f2", "c8"):
    run("convert", "s.npy", "t.npy", "--type", np.dtype(target).name, "--force", "--verify", "--ranks", "2")
    assert np.array_equal(np.load("t.npy"), values.astype(target)), target
run("convert", "s.npy", "t.npy", "--type", "u8", "--force", "--saturate", "--memory", "256KiB")
assert np.array_equal(np.load("t.npy"), np.clip(np.trunc(values), 0, 255).astype("u1"))
run("convert", "s.npy", "big.npy", "--type", "f32", "--byte-order", "big", "--layout", "column")
assert np.array_equal(np.load("big.npy"), values.astype("f4"))
print("checked to the end")
