"""Whole containers: files of netCDF4 and h5py become Zarr and HDF5 containers with all arrays,
groups, attributes and names of axes, and groups of zarr-python become HDF5 files.

containers_agree.py OUTCORE: works in the current directory.
"""
import base64
import json
import os
import struct
import subprocess
import sys

import h5py
import netCDF4
import numpy as np
import zarr

OUTCORE = sys.argv[1]


def outcore(*arguments):
    done = subprocess.run([OUTCORE, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, f"{arguments}: {done.stderr}"
    return done.stdout


def values(shape, kind):
    return (np.arange(int(np.prod(shape))) * 37 % 101).astype(kind).reshape(shape)


def make_netcdf(path, form):
    """Coordinates, a dimension without any, records, a scalar; arrays by their paths."""
    arrays = {}
    with netCDF4.Dataset(path, "w", format=form) as data:
        data.set_auto_maskandscale(False)
        data.title, data.numbers = "a run", np.array([1, 2, 3], "i4")
        for name, extent in [("time", None), ("lat", 18), ("lon", 36), ("level", 5)]:
            data.createDimension(name, extent)

        def add(group, name, kind, axes, shape):
            variable = group.createVariable(name, kind, axes)
            variable.units = f"unit of {name}"
            variable[...] = whole = values(shape, kind)
            arrays[f"{group.path}/{name}".strip("/")] = (whole, axes)

        add(data, "lat", "f4", ("lat",), (18,))
        add(data, "lon", "f4", ("lon",), (36,))
        add(data, "time", "f8", ("time",), (3,))
        add(data, "t", "f4", ("time", "lat", "lon"), (3, 18, 36))
        add(data, "depth", "i2", ("lat", "lon"), (18, 36))
        add(data, "column", "f8", ("level", "lat"), (5, 18))
        add(data, "one", "i4", (), ())
        if form == "NETCDF4":
            group = data.createGroup("ocean").createGroup("deep")
            group.source = "a buoy"
            add(group, "salt", "f8", ("lat", "lon"), (18, 36))
    return arrays


def same(found, whole, name):
    found = np.asarray(found)
    assert found.shape == whole.shape and found.dtype.kind == whole.dtype.kind, name
    assert (found == whole).all(), name


def text(value):
    return value.decode() if isinstance(value, bytes) else value


for form in ["NETCDF3_64BIT_OFFSET", "NETCDF4"]:
    nc = f"{form}.nc"
    arrays = make_netcdf(nc, form)
    nested = form == "NETCDF4"
    for ranks in ["1", "3"]:
        # To Zarr ...
        out = f"{form}-{ranks}.zarr"
        told = json.loads(outcore("convert", nc, out, "--all", "--codec", "zstd:1", "--chunks", "2x9x9",
                                  "--ranks", ranks, "--verify", "--json"))
        assert {made["output"][len(out) + 1:] for made in told["arrays"]} == set(arrays), told
        assert told["left_out"] == [] and told["verified"], told
        group = zarr.open_group(out, mode="r")
        assert group.attrs["title"] == "a run" and list(group.attrs["numbers"]) == [1, 2, 3]
        if nested:
            assert group["ocean/deep"].attrs["source"] == "a buoy"
        for name, (whole, axes) in arrays.items():
            same(group[name][...], whole, name)
            assert group[name].attrs["units"] == f"unit of {name.split('/')[-1]}", name
            if axes:
                assert group[name].metadata.dimension_names == axes, name
        assert group["t"].chunks == (2, 9, 9)
        # ... and from there to HDF5.
        h5 = f"{form}-{ranks}.h5"
        outcore("convert", out, h5, "--all", "--codec", "shuffle,deflate:1", "--ranks", ranks, "--verify")
        with h5py.File(h5) as file:
            assert text(file.attrs["title"]) == "a run" and list(file.attrs["numbers"]) == [1, 2, 3]
            if nested:
                assert text(file["ocean/deep"].attrs["source"]) == "a buoy"
            for name, (whole, axes) in arrays.items():
                same(file[name][...], whole, name)
                assert text(file[name].attrs["units"]) == f"unit of {name.split('/')[-1]}", name
                assert [dim.label for dim in file[name].dims] == list(axes), name
        # NetCDF-4, with dimensions; the library goes on with it.
        nc4 = f"{form}-{ranks}.nc4"
        outcore("convert", out, nc4, "--all", "--codec", "shuffle,deflate:1", "--ranks", ranks, "--verify")
        with netCDF4.Dataset(nc4, "a") as data:
            data.set_auto_maskandscale(False)
            assert data.title == "a run"
            for name, (whole, axes) in arrays.items():
                same(data[name][...], whole, name)
                assert data[name].dimensions == axes, (name, data[name].dimensions)
                assert data[name].units == f"unit of {name.split('/')[-1]}", name
                assert not whole.shape or data[name].filters()["shuffle"], name
            assert len(data.dimensions["level"]) == 5 and "level" not in data.variables
            data.createVariable("later", "f4", ("lat", "level"))[...] = 1
        outcore("create", f"{nc4}:extra", "--shape", "4", "--type", "f64", "--fill", "index")
        outcore("convert", f"{nc4}:t", f"{nc4}:again")
        with netCDF4.Dataset(nc4) as data:
            assert data["again"].dimensions == ("time", "lat", "lon") and data["later"].shape == (18, 5)
            same(data["again"][...], arrays["t"][0], "again")
            assert list(data["extra"][...]) == [0, 1, 2, 3]
        # A file that the library goes on with.
        with h5py.File(h5, "a") as file:
            file["later/more"] = np.arange(4)
            assert file["t"].shape == (3, 18, 36)
        # Version 2, and a group alone.
        outcore("convert", h5, f"zarr2:{form}-{ranks}-2.zarr", "--all", "--codec", "none", "--ranks", ranks)
        second = zarr.open_group(f"{form}-{ranks}-2.zarr", mode="r", zarr_format=2)
        assert second.attrs["title"] == "a run"
        for name, (whole, _) in arrays.items():
            same(second[name][...], whole, name)
        if nested:
            outcore("convert", f"{h5}:/ocean", f"ocean-{ranks}.zarr", "--all")
            ocean = zarr.open_group(f"ocean-{ranks}.zarr", mode="r")
            same(ocean["deep/salt"][...], arrays["ocean/deep/salt"][0], "salt")

# A variable alone needs no name where the others are its coordinates.
with netCDF4.Dataset("one.nc", "w") as data:
    for name, extent in [("y", 4), ("x", 6), ("nothing", 3)]:
        data.createDimension(name, extent)
    for name in "yx":
        data.createVariable(name, "f4", (name,))[...] = np.arange(len(data.dimensions[name]))
    data.createVariable("field", "f8", ("y", "x"))[...] = values((4, 6), "f8")
outcore("read", "one.nc", "-o", "field.npy")
same(np.load("field.npy"), values((4, 6), "f8"), "field")
assert "nothing" not in outcore("ls", "one.nc")

# One variable alone, in both kinds of NetCDF files, by way of outcore's own format.
for name, form in [("alone.nc", "NETCDF3_64BIT_OFFSET"), ("alone.nc4", "NETCDF4")]:
    outcore("convert", "one.nc:field", "field.oc", "--force")
    outcore("convert", "field.oc", f"{name}:field")
    outcore("convert", "one.nc:field", f"{name}:field", "--force", "--verify")
    with netCDF4.Dataset(name) as data:
        assert data.data_model == form and data["field"].dimensions == ("y", "x"), name
        same(data["field"][...], values((4, 6), "f8"), "field")
with netCDF4.Dataset("filled.nc", "w", format="NETCDF3_CLASSIC") as data:
    data.createDimension("x", 6)
    variable = data.createVariable("v", "i2", ("x",), fill_value=-999)
    variable[:3] = [1, 2, 3]
outcore("convert", "filled.nc:v", "filled.nc4:v")
with netCDF4.Dataset("filled.nc4") as data:
    assert data["v"]._FillValue == -999 and data["v"]._FillValue.dtype == "i2"
    assert data["v"][...].tolist() == [1, 2, 3, None, None, None]

# Missing values as xarray has them: floats in base64, and in version 2 the fill value.
with netCDF4.Dataset("missing.nc", "w", format="NETCDF3_CLASSIC") as data:
    data.createDimension("x", 2)
    data.createVariable("f", "f4", ("x",), fill_value=np.float32(0.1))[:] = [1, 2]
    data.createVariable("i", "i4", ("x",), fill_value=-7)[:] = [3, 4]
outcore("convert", "missing.nc", "missing.zarr", "--all")
outcore("convert", "missing.zarr", "missing.nc4", "--all")
outcore("convert", "missing.nc", "zarr2:missing2.zarr", "--all")
group = zarr.open_group("missing.zarr", mode="r")
assert struct.unpack("<d", base64.b64decode(group["f"].attrs["_FillValue"])) == (float(np.float32(0.1)),)
assert group["i"].attrs["_FillValue"] == -7
with netCDF4.Dataset("missing.nc4") as data:
    assert data["f"]._FillValue == np.float32(0.1) and data["i"]._FillValue == -7
group = zarr.open_group("missing2.zarr", mode="r")
assert group["f"].fill_value == np.float32(0.1) and group["i"].fill_value == -7

# Nothing at all in an array, in files that the libraries open; no names of no axes; checksums
# where Zarr reads them; a text as netCDF4 writes it.
with netCDF4.Dataset("odd.nc", "w") as data:
    data.createDimension("none", 0)
    data.createDimension("x", 50)
    data.createVariable("nothing", "f4", ("none", "x"))
    data.createVariable("scalar", "f8", ())[...] = 2.5
    checked = data.createVariable("checked", "i4", ("x",), zlib=True, fletcher32=True)
    checked[:] = values((50,), "i4")
    checked.setncattr_string("note", "a text")
outcore("convert", "odd.nc", "odd2.nc4", "--all", "--codec", "none")
outcore("convert", "odd.nc", "zarr2:odd.zarr", "--all")
outcore("convert", "odd.nc", "odd.h5", "--all")
for shape, chunks in [("0", "4"), ("3x0", "2x2")]:
    outcore("create", f"odd.h5:plain{shape}", "--shape", shape, "--type", "f32")
    outcore("create", f"odd.h5:chunked{shape}", "--shape", shape, "--type", "f32", "--chunks", chunks)
with netCDF4.Dataset("odd2.nc4", "a") as data:
    assert data["nothing"].shape == (0, 50) and data["scalar"][...] == 2.5
    assert data["checked"].note == "a text"
    same(data["checked"][...], values((50,), "i4"), "checked")
with h5py.File("odd.h5", "a") as file:
    assert file["nothing"].shape == (0, 50) and file["scalar"][()] == 2.5
    assert file["plain3x0"].shape == file["chunked3x0"].shape == (3, 0)
    assert file["plain0"].shape == file["chunked0"].shape == (0,)
    assert text(file["checked"].attrs["note"]) == "a text"
group = zarr.open_group("odd.zarr", mode="r", zarr_format=2)
same(group["checked"][...], values((50,), "i4"), "checked")
assert group["scalar"].attrs["_ARRAY_DIMENSIONS"] == [] and group["scalar"][()] == 2.5
assert "_ARRAY_DIMENSIONS" not in outcore("info", "odd.zarr/scalar")

# What arrays take where they are stored.
with h5py.File("sizes.h5", "w") as file:
    file.create_dataset("packed", data=values((300, 70), "f4"), chunks=(50, 50), shuffle=True, compression="gzip")
    file.create_dataset("tree", data=values((300, 70), "i2"), chunks=(50, 50), maxshape=(None, None), compression="lzf")
    file["plain"] = values((300, 70), "f8")
    file.flush()
    sizes = {name: file[name].id.get_storage_size() for name in file}
outcore("convert", "sizes.h5:packed", "sizes.zarr", "--codec", "zstd:3")
for name in os.listdir("sizes.zarr/c"):
    sizes.setdefault("zarr", os.path.getsize("sizes.zarr/zarr.json"))
    sizes["zarr"] += sum(os.path.getsize(f"sizes.zarr/c/{name}/{other}") for other in os.listdir(f"sizes.zarr/c/{name}"))
for name, size in sizes.items():
    array = "sizes.zarr" if name == "zarr" else f"sizes.h5:{name}"
    assert json.loads(outcore("info", array, "--json"))["stored_bytes"] == size, (name, size)

# What others refer to by its address is not replaced.
with netCDF4.Dataset("scales.nc4", "w") as data:
    for name, extent in [("x", 4), ("bare", 3)]:
        data.createDimension(name, extent)
    data.createVariable("x", "f8", ("x",))[:] = np.arange(4)
    data.createVariable("field", "f8", ("bare", "x"))[...] = values((3, 4), "f8")
np.save("new.npy", np.arange(4.0) * 2)
for name, told in [("x", "outcore write"), ("bare", "make coordinates before")]:
    refused = subprocess.run([OUTCORE, "convert", "new.npy", f"scales.nc4:{name}", "--force"],
                             capture_output=True, text=True)
    assert refused.returncode != 0 and told in refused.stderr, refused
outcore("write", "scales.nc4:x", ":", "--from", "new.npy")
with netCDF4.Dataset("scales.nc4") as data:
    assert data["field"].dimensions == ("bare", "x") and list(data["x"][:]) == [0, 2, 4, 6]
    same(data["field"][...], values((3, 4), "f8"), "field")

# What is no array of numbers is left out, and said.
with h5py.File("mixed.h5", "w") as file:
    file.attrs["kind"] = "mixed"
    file["g/words"] = np.array([b"one", b"two"], dtype=h5py.string_dtype())
    file["g/numbers"] = values((5, 7), "i4")
    file["g/again"] = file["g/numbers"]
    file.create_group("empty").attrs["note"] = "nothing here"
    file["g/.hidden"] = values((3,), "i4")
    file["soft"] = h5py.SoftLink("/g/numbers")
said = outcore("convert", "mixed.h5", "mixed.zarr", "--all")
assert "left out: mixed.h5:/g/words" in said and "left out: mixed.h5:/g/.hidden" in said, said
group = zarr.open_group("mixed.zarr", mode="r")
assert group.attrs["kind"] == "mixed" and group["empty"].attrs["note"] == "nothing here"
names = [name for name, _ in group["g"].arrays()]
assert len(names) == 1 and names[0] in ("numbers", "again"), names
same(group[f"g/{names[0]}"][...], values((5, 7), "i4"), "numbers")

# What has a name in a group is in the group, whatever other names it has.
with h5py.File("nexus.h5", "w") as file:
    file["entry/instrument/detector/data"] = values((4, 5), "i4")
    file["entry/data/data"] = file["entry/instrument/detector/data"]
    file["entry/data"].attrs["signal"] = "data"
for group, path in [("data", "data"), ("instrument", "detector/data"), ("instrument/detector", "data")]:
    outcore("convert", f"nexus.h5:/entry/{group}", "part.h5", "--all")
    with h5py.File("part.h5", "a") as file:
        same(file[path][...], values((4, 5), "i4"), group)
        assert group != "data" or text(file.attrs["signal"]) == "data"
    os.remove("part.h5")
    assert path.split("/")[0] in outcore("ls", f"nexus.h5:/entry/{group}"), group

# Missing values come back from version 2: the fill value, but not the zero that every array of
# zarr-python has.
outcore("convert", "missing2.zarr", "missing2.nc4", "--all")
outcore("convert", "missing2.zarr", "missing3.zarr", "--all")
outcore("convert", "missing2.zarr", "zarr2:again2.zarr", "--all")
outcore("convert", "missing2.zarr/i", "missing2.nc:i")
with netCDF4.Dataset("missing2.nc4") as data:
    assert data["f"]._FillValue == np.float32(0.1) and data["i"]._FillValue == -7
with netCDF4.Dataset("missing2.nc") as data:
    assert data["i"]._FillValue == -7
group = zarr.open_group("missing3.zarr", mode="r")
assert struct.unpack("<d", base64.b64decode(group["f"].attrs["_FillValue"])) == (float(np.float32(0.1)),)
assert group["i"].attrs["_FillValue"] == -7
group = zarr.open_group("again2.zarr", mode="r")
assert group["f"].fill_value == np.float32(0.1) and group["i"].fill_value == -7
group = zarr.open_group("zeros2.zarr", mode="w", zarr_format=2)
for name, attributes in [("xarray", {"_ARRAY_DIMENSIONS": ["x"]}), ("plain", {})]:
    made = group.create_array(name, shape=(3,), dtype="i4", fill_value=0, attributes=attributes)
    made[:] = [1, 2, 3]
outcore("convert", "zeros2.zarr", "zeros3.zarr", "--all")
outcore("convert", "zeros2.zarr", "zarr2:zeros2again.zarr", "--all")
group = zarr.open_group("zeros3.zarr", mode="r")
assert group["xarray"].attrs["_FillValue"] == 0 and "_FillValue" not in group["plain"].attrs
assert json.load(open("zeros2again.zarr/xarray/.zarray"))["fill_value"] == 0
assert json.load(open("zeros2again.zarr/plain/.zarray"))["fill_value"] is None

# What stands for missing bytes of a text is a number, as these are.
with netCDF4.Dataset("chars.nc", "w", format="NETCDF3_CLASSIC") as data:
    data.createDimension("n", 2)
    data.createDimension("length", 3)
    variable = data.createVariable("words", "S1", ("n", "length"), fill_value=b" ")
    variable[:] = np.array([list("abc"), list("d  ")], "S1")
outcore("convert", "chars.nc", "chars.zarr", "--all")
outcore("convert", "chars.zarr/words", "chars2.nc:words")
array = zarr.open_array("chars.zarr/words", mode="r")
assert array.attrs["_FillValue"] == 32 and bytes(array[0]) == b"abc", dict(array.attrs)
with netCDF4.Dataset("chars2.nc") as data:
    assert data["words"]._FillValue == 32

# An array of zeros is one, whatever stands for missing values.
outcore("create", "zarr2:filled.zarr", "--shape", "4", "--type", "f32", "--attribute", "_FillValue=-999")
array = zarr.open_array("filled.zarr", mode="r")
assert list(array[:]) == [0, 0, 0, 0] and array.fill_value == -999

# Arrays that have the name of an axis without being its coordinates.
with netCDF4.Dataset("named.nc", "w", format="NETCDF3_CLASSIC") as data:
    for name, extent in [("station", 3), ("length", 4), ("lat", 5), ("lon", 6)]:
        data.createDimension(name, extent)
    for name, kind, axes, shape in [
        ("alt", "f4", ("station",), (3,)),
        ("station", "i2", ("station", "length"), (3, 4)),
        ("lat", "f8", ("lat", "lon"), (5, 6)),
        ("lon", "f8", ("lat", "lon"), (5, 6)),
        ("length", "i4", ("length",), (4,)),
    ]:
        data.createVariable(name, kind, axes)[...] = values(shape, kind)
outcore("convert", "named.nc", "named.nc4", "--all", "--verify")
with netCDF4.Dataset("named.nc4") as data:
    assert data["alt"].dimensions == ("station_3",)
    assert data["station"].dimensions == ("station_3", "length") and data["length"].dimensions == ("length",)
    assert data["lat"].dimensions == data["lon"].dimensions == ("lat_5", "lon_6")
    same(data["lon"][...], values((5, 6), "f8"), "lon")
outcore("convert", "named.nc", "named.zarr", "--all")
assert zarr.open_array("named.zarr/alt", mode="r").metadata.dimension_names == ("station",)

# A scale whose maker has given it no name has that under which it is found.
with h5py.File("unnamed.h5", "w") as file:
    file["field"], file["x"] = values((3, 4), "f4"), np.arange(4.0)
    file["y"] = np.arange(3.0)
    for axis, name in enumerate("yx"):
        file[name].make_scale()
        file["field"].dims[axis].attach_scale(file[name])
outcore("convert", "unnamed.h5", "unnamed.nc4", "--all")
outcore("convert", "unnamed.h5", "unnamed.zarr", "--all")
with netCDF4.Dataset("unnamed.nc4") as data:
    assert data["field"].dimensions == ("y", "x") and data["x"].dimensions == ("x",)
    assert set(data.dimensions) == {"x", "y"}
assert zarr.open_array("unnamed.zarr/x", mode="r").metadata.dimension_names == ("x",)
