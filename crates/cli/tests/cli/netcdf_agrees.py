"""Classic NetCDF files of netCDF4 read and changed by outcore, and ours read there.

netcdf_agrees.py OUTCORE: works in the current directory.
"""
import json
import subprocess
import sys

import netCDF4
import numpy as np

OUTCORE = sys.argv[1]
FORMATS = {
    "NETCDF3_CLASSIC": ["i1", "i2", "i4", "f4", "f8", "S1"],
    "NETCDF3_64BIT_OFFSET": ["i1", "i2", "i4", "f4", "f8", "S1"],
    "NETCDF3_64BIT_DATA": ["i1", "i2", "i4", "f4", "f8", "S1", "u1", "u2", "u4", "i8", "u8"],
}


def outcore(*arguments, fails=False):
    done = subprocess.run([OUTCORE, *arguments], capture_output=True, text=True)
    assert (done.returncode != 0) == fails, f"{arguments}: {done.stderr}"
    return done.stderr if fails else done.stdout


def values(shape, kind):
    count = int(np.prod(shape))
    if kind == "S1":
        return (np.arange(count) % 90 + 33).astype("u1").view("S1").reshape(shape)
    return (np.arange(count) * 37 % 120).astype(kind).reshape(shape)


def make(file, form, variables, records):
    """A file with these variables (name: kind and fixed shape, with or without records)."""
    held = {}
    with netCDF4.Dataset(file, "w", format=form) as data:
        data.title = "a test"
        data.numbers = np.array([1, -2, 3], "i2")
        data.createDimension("time", None)
        for name, (kind, shape, grows) in variables.items():
            names = [f"n{extent}" for extent in shape]
            for axis, extent in zip(names, shape):
                if axis not in data.dimensions:
                    data.createDimension(axis, extent)
            variable = data.createVariable(name, kind, (["time"] if grows else []) + names)
            variable.set_auto_maskandscale(False)
            variable.units = "K"
            if kind != "S1":
                variable.setncattr("limits", np.array([0, 1], kind))
            whole = values(([records] if grows else []) + list(shape), kind)
            if whole.size:
                variable[...] = whole
            held[name] = whole
    return held


def same(file, held):
    with netCDF4.Dataset(file) as data:
        data.set_auto_maskandscale(False)
        for name, whole in held.items():
            found = np.asarray(data[name][...])
            assert found.dtype.newbyteorder("=") == whole.dtype, (name, found.dtype)
            assert found.tobytes() == whole.tobytes(), f"{file}:{name}"


def plain(whole):
    return whole.view("u1") if whole.dtype == "S1" else whole


def check(file, held):
    """Reads every variable, changes a section of each in place, and compares all again."""
    for name, whole in held.items():
        outcore("read", f"{file}:{name}", "-o", "back.npy", "--force")
        found = np.load("back.npy")
        assert found.shape == whole.shape and (found == plain(whole)).all(), f"{file}:{name}"
        if whole.ndim == 0 or whole.size == 0:
            continue
        last = ", :" * (whole.ndim - 1)
        outcore("read", f"{file}:{name}", f"1::2{last}", "-o", "part.npy", "--force", "--ranks", "2")
        assert (np.load("part.npy") == plain(whole)[1::2]).all(), f"{file}:{name}"
        outcore("write", f"{file}:{name}", f"1::2{last}", "--fill", "65")
        plain(whole)[1::2] = 65
        same(file, held)


for form, kinds in FORMATS.items():
    # All types, with records and without, of odd sizes.
    many = {}
    for kind in kinds:
        many[f"fixed_{kind}"] = (kind, (3, 5), False)
        many[f"grows_{kind}"] = (kind, (3,), True)
    many["scalar"] = ("f8", (), False)
    many["time"] = ("f8", (), True)
    held = make("many.nc", form, many, 5)
    check("many.nc", held)
    # One record variable alone, which has no padding.
    for kind, shape in [("i1", (3,)), ("i2", (3,)), ("S1", ()), ("f4", (2, 3))]:
        held = make("one.nc", form, {"only": (kind, shape, True), "other": ("i2", (3,), False)}, 4)
        check("one.nc", held)
    make("none.nc", form, {"only": ("i2", (3,), True)}, 0)
    assert "0x3" in outcore("info", "none.nc")
    told = json.loads(outcore("info", "many.nc:grows_i2", "--json"))
    assert told["format"] == "netcdf" and told["shape"] == [5, 3], told
    assert told["axis_names"] == ["time", "n3"], told
    assert told["attributes"] == {"units": "K", "limits": [0, 1]}, told
    listed = outcore("ls", "many.nc")
    assert 'title: "a test"' in listed and "grows_f8" in listed and "axes time n3" in listed, listed
    items = json.loads(outcore("ls", "many.nc", "--json"))
    assert items[0]["attributes"] == {"title": "a test", "numbers": [1, -2, 3]}, items[0]
    assert len(items) == 1 + len(many)
    assert "fixed_i1" in outcore("info", "many.nc", fails=True)

# A coordinate variable is not in the way.
with netCDF4.Dataset("grid.nc", "w", format="NETCDF3_CLASSIC") as data:
    data.createDimension("x", 3)
    data.createVariable("x", "f4", ("x",))[:] = [1, 2, 3]
    temperature = data.createVariable("temperature", "f4", ("x",), fill_value=-9)
    temperature[:] = [4, 5, 6]
    temperature.scale_factor = 0.5
assert outcore("read", "grid.nc") == outcore("read", "grid.nc:temperature")
# NetCDF-4 is HDF5, under the same names.
with netCDF4.Dataset("four.nc", "w") as data:
    data.createDimension("x", 3)
    data.createVariable("temperature", "f4", ("x",))[:] = [4, 5, 6]
assert outcore("read", "four.nc:temperature") == "4 5 6\n"

# Our files, of every type there is, in netCDF4.
for kind in ["i1", "i2", "i4", "f4", "f8", "u1", "u2", "u4", "i8", "u8"]:
    whole = values((7, 3, 5), kind)
    np.save("in.npy", whole)
    outcore("convert", "in.npy", "out.nc", "--force", "--ranks", "2")
    same("out.nc", {"data": whole})
    with netCDF4.Dataset("out.nc") as data:
        old = kind in ["i1", "i2", "i4", "f4", "f8"]
        assert data.data_model == ("NETCDF3_64BIT_OFFSET" if old else "NETCDF3_64BIT_DATA")
    outcore("convert", "out.nc", "again.npy", "--force")
    assert (np.load("again.npy") == whole).all()
np.save("in.npy", np.asfortranarray(values((4, 6), "f4")))
outcore("convert", "in.npy", "column.nc:t")
same("column.nc", {"t": values((4, 6), "f4")})
np.save("in.npy", np.ones((2, 2), "c8"))
assert "no type for c64" in outcore("convert", "in.npy", "bad.nc", fails=True)

# Attributes and names of axes go along; fill values keep the type of the variable.
outcore("convert", "grid.nc:temperature", "copy.nc:temperature")
with netCDF4.Dataset("copy.nc") as data:
    variable = data["temperature"]
    assert variable.dimensions == ("x",) and variable.scale_factor == 0.5
    assert variable.getncattr("_FillValue").dtype == "f4" and variable.getncattr("_FillValue") == -9
outcore("create", "new.nc:depth", "--shape", "3x4", "--type", "i16", "--fill", "index",
        "--attribute", "units=m", "--attribute", "levels=[1,2.5]", "--attribute", "words=[\"a\",\"b\"]")
with netCDF4.Dataset("new.nc") as data:
    assert (data["depth"][:] == np.arange(12).reshape(3, 4)).all()
    assert data["depth"].units == "m" and list(data["depth"].levels) == [1, 2.5]
    assert data["depth"].words == '["a","b"]'
assert "exists" in outcore("create", "new.nc:other", "--shape", "3", "--type", "f32", fails=True)
assert "does not replace" in outcore("create", "new.nc:other", "--shape", "3", "--type", "f32", "--force", fails=True)
outcore("create", "new.nc:depth", "--shape", "3", "--type", "f32", "--force")
outcore("read", "many.nc:grows_f4", "1:4, 2", "-o", "part.nc:part", "--ranks", "2")
with netCDF4.Dataset("many.nc") as data, netCDF4.Dataset("part.nc") as part:
    assert part["part"].dimensions == ("time",) and part["part"].units == "K"
    assert (part["part"][:] == data["grows_f4"][1:4, 2]).all()
# Records that netCDF4 adds to an array that began without any.
outcore("create", "grow.nc:v", "--shape", "0x3", "--type", "f32")
with netCDF4.Dataset("grow.nc", "a") as data:
    data["v"][0:2] = np.arange(6).reshape(2, 3)
assert outcore("read", "grow.nc") == "0 1 2\n3 4 5\n"
# More than 4 GiB, sparse.
outcore("create", "large.nc", "--shape", "1300x1024x1024", "--type", "f32")
outcore("write", "large.nc", "-1, -1, -2:", "--fill", "2.5")
with netCDF4.Dataset("large.nc") as data:
    assert data["data"].shape == (1300, 1024, 1024)
    assert list(data["data"][1299, 1023, 1021:]) == [0, 2.5, 2.5]
# Cut off in the data and in the header: a sentence.
whole = open("many.nc", "rb").read()
open("cut.nc", "wb").write(whole[:-9])
assert "truncated" in outcore("read", "cut.nc:time", fails=True) + outcore("ls", "cut.nc")
open("cut.nc", "wb").write(whole[:99])
assert "ends too early" in outcore("ls", "cut.nc", fails=True)
print("NetCDF agrees")
