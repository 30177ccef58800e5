"""Strided sections of a 4096x4096 f32 array from Python array stores, warm.

py_sections.py DIRECTORY REPEATS
  DIRECTORY holds sections.f32: element (i, j) at i + j*4096, which is its value
  modulo 2^24; column-major by meaning. numpy.memmap uses order='F'; the stores
  in C order hold the transposed array [j, i], so every store has i fastest and
  gets the section with its indices swapped. No compression.
  A store whose package is missing is left out.
Prints: store,case,bytes,best_s,median_s,ok|WRONG (bytes = useful bytes)
  Objects are opened once; each time is one section read into fresh memory. h5py
  keeps its default chunk cache, so sections inside few chunks are served from
  memory; tensorstore uses a chunk that is still alive again.
"""
import os, sys, time
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

N, C = 4096, 256
CASES = [("0:100 0:100", np.s_[0:100, 0:100]), ("::16 ::16", np.s_[::16, ::16]),
         ("500:2500:3 0:64:2", np.s_[500:2500:3, 0:64:2]), ("0:16 :", np.s_[0:16, :]),
         (": 0:16", np.s_[:, 0:16]), ("whole", np.s_[:, :])]


def swapped(section):
    return section[1], section[0]


def memmap(path, values):
    mapped = np.memmap(path("sections.f32"), np.float32, "r", shape=(N, N), order="F")
    return {"numpy.memmap": lambda s: np.array(mapped[s])}


def h5py(path, values):
    import h5py
    with h5py.File(path("sections.h5"), "w") as file:
        file.create_dataset("whole", data=values)
        file.create_dataset("chunks", data=values, chunks=(C, C))
    file = h5py.File(path("sections.h5"), "r")
    whole, chunks = file["whole"], file["chunks"]
    return {"h5py": lambda s: whole[swapped(s)].T, "h5py chunked": lambda s: chunks[swapped(s)].T}


def zarr(path, values):
    import zarr
    stores = {}
    for name, chunk in (("zarr", N), ("zarr chunked", C)):
        place = path(name.replace(" ", "-"))
        zarr.create_array(place, shape=values.shape, chunks=(chunk, chunk), dtype="f4",
                          compressors=None, zarr_format=3)[:] = values
        store = zarr.open_array(place, mode="r")
        stores[name] = lambda s, store=store: store[swapped(s)].T
    return stores


def tensorstore(path, values):
    import tensorstore
    stores = {}
    for name, made in (("tensorstore", "zarr"), ("tensorstore chunked", "zarr-chunked")):
        spec = {"driver": "zarr3", "kvstore": {"driver": "file", "path": path(made)}}
        store = tensorstore.open(spec).result()
        stores[name] = lambda s, store=store: store[swapped(s)].read().result().T
    return stores


def measure(name, get, repeats):
    index = np.arange(N)
    for case, section in CASES:
        rows, columns = index[section[0]], index[section[1]]
        wanted = ((rows[:, None] + columns[None, :] * N) & 0xffffff).astype(np.float32)
        get(section)
        times, rounds, limit = [], repeats, time.perf_counter() + 8
        while len(times) < rounds and (len(times) < 2 or time.perf_counter() < limit):
            start = time.perf_counter()
            found = get(section)
            times.append(time.perf_counter() - start)
            if len(times) == 1 and times[0] < 1e-3:
                rounds = 5 * repeats
        right = found.shape == wanted.shape and np.array_equal(np.asarray(found), wanted)
        times.sort()
        print(f"{name},{case},{wanted.nbytes},{times[0]:.9f},{times[len(times) // 2]:.9f},"
              f"{'ok' if right else 'WRONG'}", flush=True)


def main():
    directory, repeats = sys.argv[1], int(sys.argv[2])
    path = lambda name: os.path.join(directory, name)
    values = (np.arange(N * N, dtype=np.int64) & 0xffffff).astype(np.float32).reshape(N, N)
    for stores in (memmap, h5py, zarr, tensorstore):
        try:
            made = stores(path, values)
        except ImportError as error:
            print(f"left out: {error}", file=sys.stderr)
            continue
        for name, get in made.items():
            measure(name, get, repeats)


if __name__ == "__main__":
    main()
