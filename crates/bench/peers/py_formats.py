"""Sections of arrays, and a conversion, by Python's array libraries.

py_formats.py PEER ARRAY SECTION...  PEER is h5py, dask-h5py, zarr, dask-zarr or tensorstore;
                                     a section is start:end:step of each axis, joined by commas
py_formats.py convert IN OUT         an HDF5 dataset to a new Zarr array, by h5py and zarr
Datasets of HDF5 files are named FILE:/NAME. Says 'ready', then answers lines of the standard
input: 'time I' with the best seconds of a few reads of section I (or of the conversion), 'check I'
with 'ok' if its values are the numbers of its elements modulo 2^24.
  Objects are opened once; each time is one section read into fresh memory. h5py keeps its usual
  cache of chunks; dask's time includes making and running its graph, on as many threads as cores.
"""
import os
import shutil
import sys
import time

import numpy as np


def dataset(name):
    import h5py
    path, inner = name.rsplit(":", 1)
    return h5py.File(path, "r")[inner]


def opened(peer, name):
    if peer == "h5py":
        data = dataset(name)
        return lambda section: data[section], data.shape
    if peer == "dask-h5py":
        import dask
        import dask.array
        dask.config.set(scheduler="threads", num_workers=os.cpu_count())
        data = dataset(name)
        array = dask.array.from_array(data, chunks=data.chunks or "auto")
        return lambda section: array[section].compute(), data.shape
    if peer == "zarr":
        import zarr
        data = zarr.open_array(name, mode="r")
        return lambda section: data[section], data.shape
    if peer == "dask-zarr":
        import dask
        import dask.array
        dask.config.set(scheduler="threads", num_workers=os.cpu_count())
        data = dask.array.from_zarr(name)
        return lambda section: data[section].compute(), data.shape
    if peer == "tensorstore":
        import tensorstore
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": name}}
        data = tensorstore.open(spec).result()
        return lambda section: data[section].read().result(), data.shape
    raise SystemExit(f"no peer {peer}")


def sections(peer, name, texts):
    read, shape = opened(peer, name)
    parts = [tuple(slice(*map(int, axis.split(":"))) for axis in text.split(",")) for text in texts]

    def clock(number):
        best, begin = float("inf"), time.perf_counter()
        while best == float("inf") or time.perf_counter() - begin < 0.02:
            start = time.perf_counter()
            read(parts[number])
            best = min(best, time.perf_counter() - start)
        return best

    def right(number):
        rows, columns = (np.arange(shape[axis])[parts[number][axis]] for axis in (0, 1))
        wanted = ((rows[:, None] * shape[1] + columns[None, :]) & 0xffffff).astype(np.float32)
        return np.array_equal(np.asarray(read(parts[number])), wanted)

    return clock, right


def conversion(name, out):
    import zarr

    def clock(_):
        shutil.rmtree(out, ignore_errors=True)
        start = time.perf_counter()
        data = dataset(name)
        made = zarr.create_array(out, shape=data.shape, chunks=data.chunks, dtype=data.dtype,
                                 compressors=zarr.codecs.ZstdCodec(level=3), zarr_format=3)
        step = data.chunks[0]
        for row in range(0, data.shape[0], step):
            made[row:row + step] = data[row:row + step]
        return time.perf_counter() - start

    return clock, lambda _: True


def main():
    if sys.argv[1] == "convert":
        clock, right = conversion(*sys.argv[2:4])
    else:
        clock, right = sections(sys.argv[1], sys.argv[2], sys.argv[3:])
    print("ready", flush=True)
    for line in sys.stdin:
        command, number = line.split()
        if command == "time":
            print(f"{clock(int(number)):.9f}", flush=True)
        else:
            print("ok" if right(int(number)) else "WRONG", flush=True)


if __name__ == "__main__":
    main()
