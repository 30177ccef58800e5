"""Files that datasets are added to.

hdf5_add.py make: makes them, and keeps what they hold.
hdf5_add.py check [and-add]: all that they held is there as it was, and so are the datasets
that were added; with 'and-add', the library adds more to them.
"""
import glob
import json
import pickle
import subprocess
import sys

import h5py
import netCDF4
import numpy as np


def values(shape, seed):
    return (np.arange(int(np.prod(shape))) * 7 % 101 + seed).astype("f4").reshape(shape)


def snapshot(file):
    """What can be found in a file, in the order in which it is found."""
    found = {}

    def attributes(item):
        lists = ("DIMENSION_LIST", "REFERENCE_LIST")
        return [(name, np.asarray(value).tolist()) for name, value in item.attrs.items() if name not in lists]

    def visit(group, path):
        order = h5py.h5g.GroupID.get_create_plist(group.id).get_link_creation_order()
        found[path] = ("group", order, list(group), attributes(group), group.id.get_comment(b"."))
        for name in group:
            link = group.get(name, getlink=True)
            if isinstance(link, h5py.SoftLink):
                found[path + name] = ("soft", link.path)
            elif isinstance(link, h5py.ExternalLink):
                found[path + name] = ("external", link.filename, link.path)
            elif isinstance(group[name], h5py.Group):
                visit(group[name], path + name + "/")
            elif isinstance(group[name], h5py.Dataset):
                item = group[name]
                held = item[()]
                # A reference leads to an object, which may have several names.
                held = file[held][()] if isinstance(held, h5py.Reference) else held
                held = np.asarray(held).tolist()
                found[path + name] = ("dataset", held, attributes(item), item.id.get_create_plist().get_layout())
            else:
                found[path + name] = ("type", str(group[name].dtype))
        return found

    return visit(file["/"], "/")


def make():
    number = 0
    for libver in ["earliest", "latest", ("v108", "v108"), ("v110", "v110")]:
        for track in [False, True]:
            h5py.get_config().track_order = track
            block = [0, 512, 2048][number % 3]
            with h5py.File(f"theirs{number}.h5", "w", libver=libver, userblock_size=block) as file:
                for at in range(3):
                    file.attrs[f"z{9 - at}"] = [at, 2.5]
                file["zuletzt"] = values((5, 7), number)
                file.create_dataset("packed", data=values((40, 30), 1), chunks=(7, 8), compression="gzip")
                file["type"] = np.dtype("f8")
                file["soft"] = h5py.SoftLink("/g/inner")
                file["dangling"] = h5py.SoftLink("/nowhere")
                file["outside"] = h5py.ExternalLink("other.h5", "/x")
                group = file.create_group("g")
                group.attrs["titel"] = "Größe"
                group.attrs.create("own type", 3.5, dtype=file["type"])
                group.id.set_comment(b".", b"a comment")
                inner = group.create_group("inner")
                for at in range(20):
                    inner.attrs[f"a{(at * 7) % 20}"] = at
                inner["d"] = values((3,), 2)
                inner["hard"] = file["zuletzt"]
                file.create_group("empty")
                many = file.create_group("many")
                for at in range(30):
                    many[f"m{(at * 11) % 30}"] = at
                wide = file.create_group("wide/" + "x" * 300)
                wide["ä"] = 1
                refers = file.create_dataset("refers", (), h5py.ref_dtype)
                refers[()] = file["zuletzt"].ref
                if track:
                    plist = h5py.h5p.create(h5py.h5p.GROUP_CREATE)
                    plist.set_link_creation_order(h5py.h5p.CRT_ORDER_TRACKED)
                    h5py.h5g.create(file.id, b"tracked only", gcpl=plist)
                    file["tracked only/zz"], file["tracked only/aa"] = 1, 2
                else:
                    file.create_group("tracked only")
            number += 1
    h5py.get_config().track_order = False
    with netCDF4.Dataset("theirs.nc", "w") as file:
        file.createDimension("lat", 5)
        file.createDimension("time", None)
        file.createVariable("lat", "f8", ("lat",))[:] = np.arange(5)
        file.createVariable("t", "f4", ("time", "lat"), zlib=True)[:] = values((4, 5), 0)
        file.title = "a title"
        file.createGroup("g").createVariable("u", "i4", ("lat",))[:] = np.arange(5)
    for name in glob.glob("theirs*"):
        with h5py.File(name) as file:
            pickle.dump(snapshot(file), open(name + ".before", "wb"))
    # An older h5dump than the library does not read all that it makes.
    dumped = [name for name in glob.glob("theirs*.h5") + ["theirs.nc"] if dumps(name)]
    json.dump(dumped, open("dumped.json", "w"))
    refused()


def dumps(name):
    return subprocess.run(["h5dump", "-p", name], capture_output=True).returncode == 0


def refused():
    with h5py.File("hardlinked.h5", "w") as file:
        file.create_group("a/b")
        file["other"] = file["a/b"]
    with h5py.File("root_linked.h5", "w") as file:
        file["a/root"] = file["/"]
    with h5py.File("space.h5", "w", fs_strategy="page", fs_persist=True) as file:
        file["x"] = 1
    create = h5py.h5p.create(h5py.h5p.FILE_CREATE)
    create.set_sizes(4, 4)
    h5py.h5f.create(b"narrow.h5", fcpl=create).close()
    with h5py.File("open.h5", "w", libver="latest") as file:
        file["x"] = 1
        file.flush()
        open("copy", "wb").write(open("open.h5", "rb").read())
    open("open.h5", "wb").write(open("copy", "rb").read())


def check(and_add):
    """added.json: file to lists of name, shape, chunks, seed, dimensions, in the order of their
    making. Dimensions that the file did not have are made before the dataset, beside it."""
    added, dumped = json.load(open("added.json")), json.load(open("dumped.json"))
    assert dumped
    for name, news in added.items():
        before = pickle.load(open(name + ".before", "rb"))
        with h5py.File(name) as file:
            after = snapshot(file)
        expected_names = {path: list(one[2]) for path, one in before.items() if one[0] == "group"}
        for new, shape, chunks, seed, dimensions in news:
            group = new[: new.rindex("/") + 1]
            for dimension, extent in zip(dimensions, shape):
                if group + dimension not in before and group + dimension in after:
                    kind, held, attributes, _ = after.pop(group + dimension)
                    bare = f"This is a netCDF dimension but not a netCDF variable.{extent:10}"
                    assert kind == "dataset" and held == [0] * extent, (name, dimension)
                    assert attributes == [("CLASS", b"DIMENSION_SCALE"), ("NAME", bare.encode())], attributes
                    expected_names[group].append(dimension)
            kind, held, attributes, layout = after.pop(new)
            assert kind == "dataset" and np.array_equal(held, values(shape, seed)), (name, new)
            assert ("units", "K") in attributes or ("units", b"K") in attributes, (name, new, attributes)
            assert (layout == h5py.h5d.CHUNKED) == (chunks is not None), (name, new)
            parts = new.strip("/").split("/")
            for at, part in enumerate(parts):
                names = expected_names.setdefault("/" + "".join(one + "/" for one in parts[:at]), [])
                if part not in names:
                    names.append(part)
        for path, names in expected_names.items():
            one = after.pop(path)
            old = before.get(path)
            assert one[0] == "group", (name, path)
            counted = one[1] & h5py.h5p.CRT_ORDER_TRACKED
            assert one[2] == (names if counted else sorted(names, key=str.encode)), (name, path, one[2], names)
            if old is not None:
                assert (one[1], one[3], one[4]) == (old[1], old[3], old[4]), (name, path, one, old)
        left = {path: one for path, one in before.items() if one[0] != "group"}
        assert after == left, (name, set(after) ^ set(left))
        if name in dumped:
            assert dumps(name), name
            subprocess.run(["h5stat", name], check=True, capture_output=True)
        if and_add:
            add(name, news)
    check_netcdf(added)


def add(name, news):
    """The library changes all groups that were copied, in place."""
    netcdf = name.endswith(".nc")
    with h5py.File(name, "a") as file:
        groups = {"/"} | {new[: new.rindex("/") + 1] for new, *_ in news}
        for path in sorted(groups):
            group = file[path]
            group.attrs["later"] = "by the library"
            group["by the library"] = values((4, 4), 9)
            group.create_group("for a while")["x"] = 1
            del group["for a while"]
        if not netcdf:
            file["many"]["even more"] = values((3,), 3)
        new, shape, chunks, seed, _ = news[0]
        file[new][...] = values(shape, seed)
    with h5py.File(name) as file:
        pickle.dump(snapshot(file), open(name + ".before", "wb"))
    if name in json.load(open("dumped.json")):
        subprocess.run(["h5repack", name, "packed.h5"], check=True, capture_output=True)


def check_netcdf(added):
    if "theirs.nc" not in added:
        return
    with netCDF4.Dataset("theirs.nc") as file:
        assert (file["t"][:] == values((4, 5), 0)).all() and file["t"].dimensions == ("time", "lat")
        assert file.title == "a title" and (file["g/u"][:] == np.arange(5)).all()
        for new, shape, _, seed, dimensions in added["theirs.nc"]:
            assert (file[new][:] == values(shape, seed)).all(), new
            assert not dimensions or file[new].dimensions == tuple(dimensions), new


if sys.argv[1] == "make":
    make()
else:
    check("and-add" in sys.argv)
print("done to the end")
