"""Median filter, Jacobi sweeps, matrix products, Fourier transforms and transpositions in Python: NumPy, SciPy,
dask, dask-image and rechunker (which needs zarr below 3).

py_apps.py PEER INPUT EXTENT SCRATCH: INPUT is a file of EXTENT x EXTENT f32 values; for products a.oc/data.bin
of f64 values, with the right operand in b.oc/data.bin beside it; for transforms of c64 values. Reads commands from
standard input, one a line, and answers each with a line: 'prepare' removes the output, 'run' makes it,
'check' says ok or WRONG, 'forget' drops the input from the page cache. Two threads each; outputs are new files, not synced.
"""
import os
import shutil
import sys

import numpy as np

PEER, INPUT, N, SCRATCH = sys.argv[1], sys.argv[2], int(sys.argv[3]), sys.argv[4]
SWEEPS = 10
MEMORY = os.environ.get("PEER_MEMORY", "256MiB")
f4 = np.float32
number = np.float64 if "matmul" in PEER else np.complex64 if "fft" in PEER else f4
at = lambda name: os.path.join(SCRATCH, PEER + "-" + name)
source = np.memmap(INPUT, number, "r", shape=(N, N))


def jacobi(a, o):
    """The inside of o from its neighbours in a."""
    inside = o[1:-1, 1:-1]
    np.add(a[:-2, 1:-1], a[2:, 1:-1], out=inside)
    inside += a[1:-1, :-2]
    inside += a[1:-1, 2:]
    inside *= f4(0.25)


def as_zarr(chunk, source=source, name="in.zarr"):
    import dask.array as da
    import zarr
    z = zarr.create_array(at(name), shape=(N, N), chunks=(chunk, chunk), dtype=number, compressors=None)
    for row in range(0, N, chunk):
        z[row:row + chunk] = source[row:row + chunk]
    return da.from_zarr(at(name))


def right_operand():
    beside = os.path.dirname(os.path.dirname(INPUT))
    return np.memmap(os.path.join(beside, "b.oc", "data.bin"), number, "r", shape=(N, N))


def to_zarr(x):
    import dask.array as da
    import zarr
    chunks = tuple(c[0] for c in x.chunks)
    z = zarr.create_array(at("out.zarr"), shape=x.shape, chunks=chunks, dtype=x.dtype, compressors=None)
    da.store(x, z, lock=False)


def numpy_jacobi():
    a = np.array(source)
    o = a.copy()
    for _ in range(SWEEPS):
        jacobi(a, o)
        a, o = o, a
    a.tofile(at("out"))


def memmap_jacobi(rows=512):
    old = source
    for k in range(SWEEPS):
        name = at("out" if k % 2 else "other")
        new = np.memmap(name, f4, "w+" if k < 2 else "r+", shape=(N, N))
        new[0], new[-1] = old[0], old[-1]
        for r in range(1, N - 1, rows):
            e = min(N - 1, r + rows)
            x = old[r - 1:e + 1]
            o = np.empty((e - r + 2, N), f4)
            jacobi(x, o)
            o[1:-1, 0], o[1:-1, -1] = x[1:-1, 0], x[1:-1, -1]
            new[r:e] = o[1:-1]
        old = new


def dask_jacobi():
    import dask.array as da

    def step(b, block_info=None):
        o = b.copy()
        jacobi(b, o)
        (r0, r1), (c0, c1) = block_info[None]["array-location"]
        if r0 == 0: o[1] = b[1]
        if r1 == N: o[-2] = b[-2]
        if c0 == 0: o[:, 1] = b[:, 1]
        if c1 == N: o[:, -2] = b[:, -2]
        return o[1:-1, 1:-1]

    x = chunked
    for _ in range(SWEEPS):
        x = da.overlap.overlap(x, 1, "nearest").map_blocks(step, dtype=f4, chunks=chunked.chunks)
    to_zarr(x)


def scipy_median():
    import scipy.ndimage
    scipy.ndimage.median_filter(np.array(source), size=3, mode="nearest").tofile(at("out"))


def dask_median():
    import dask_image.ndfilters
    to_zarr(dask_image.ndfilters.median_filter(chunked, size=3, mode="nearest"))


def memmap_matmul(block=1024):
    b = right_operand()
    out = np.memmap(at("out"), number, "w+", shape=(N, N))
    for i in range(0, N, block):
        for j in range(0, N, block):
            out[i:i + block, j:j + block] = source[i:i + block] @ b[:, j:j + block]


def dask_matmul():
    to_zarr(chunked @ chunked_right)


def scipy_fft():
    import scipy.fft
    scipy.fft.fft2(np.array(source), workers=2).tofile(at("out"))


def dask_fft():
    import scipy.fft
    along = lambda axis: lambda block: scipy.fft.fft(block, axis=axis)
    rows = chunked.rechunk((512, N)).map_blocks(along(1), dtype=number)
    to_zarr(rows.rechunk((N, 512)).map_blocks(along(0), dtype=number))


def memmap_transpose(block=1024):
    out = np.memmap(at("out"), number, "w+", shape=(N, N))
    for i in range(0, N, block):
        for j in range(0, N, block):
            out[j:j + block, i:i + block] = source[i:i + block, j:j + block].T


def panel_transpose(width=2048):
    """Panels of full height, of an eighth of the columns."""
    with open(at("out"), "wb") as out:
        for j in range(0, N, width):
            np.ascontiguousarray(source[:, j:j + width].T).tofile(out)


def dask_transpose():
    to_zarr(chunked.T)


def rechunker_input():
    import zarr
    z = zarr.open(at("in.zarr"), mode="w", shape=(N, N), chunks=(N, 64), dtype=number, compressor=None)
    for column in range(0, N, 1024):
        z[:, column:column + 1024] = source[:, column:column + 1024]


def rechunker_transpose():
    """From columns to rows: the same array in chunks of the other order."""
    import zarr
    from rechunker import rechunk
    plain = {"compressor": None}
    rechunk(zarr.open(at("in.zarr"), mode="r"), (64, N), MEMORY, at("out.zarr"), temp_store=at("between.zarr"),
            target_options=plain, temp_options=plain).execute()


def forget():
    """Drops the input of this peer from the page cache."""
    os.sync()
    files = [INPUT] + [os.path.join(d, f) for d, _, names in os.walk(at("in.zarr")) for f in names]
    for name in files:
        with open(name, "rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


RUNS = {"scipy-fft": scipy_fft, "dask-fft": dask_fft,
        "memmap-transpose": memmap_transpose, "panel-transpose": panel_transpose, "dask-transpose": dask_transpose,
        "rechunker-transpose": rechunker_transpose, "memmap-matmul": memmap_matmul, "dask-matmul": dask_matmul,
        "numpy-jacobi": numpy_jacobi, "memmap-jacobi": memmap_jacobi, "dask-jacobi": dask_jacobi,
        "scipy-median": scipy_median, "dask-image-median": dask_median}


def expected():
    if "jacobi" in PEER:
        a = np.array(source)
        o = a.copy()
        for _ in range(SWEEPS):
            jacobi(a, o)
            a, o = o, a
        return a
    if "matmul" in PEER:
        return source[:64] @ right_operand()
    if "fft" in PEER:
        import scipy.fft
        return scipy.fft.fft2(np.array(source), workers=2)[:64]
    if PEER == "rechunker-transpose":
        return np.array(source[:64])
    if "transpose" in PEER:
        return np.array(source[:, :64].T)
    import scipy.ndimage
    return scipy.ndimage.median_filter(np.array(source[:514]), size=3, mode="nearest")[:512]


def found():
    if PEER.startswith(("dask", "rechunker")):
        import zarr
        return zarr.open_array(at("out.zarr"), mode="r")[:len(right)]
    return np.memmap(at("out"), number, "r", shape=(N, N))


if PEER.startswith("dask"):
    import dask
    dask.config.set(scheduler="threads", num_workers=2)
    chunked = as_zarr(1024 if "matmul" in PEER or "median" in PEER else 2048)
    if "matmul" in PEER:
        chunked_right = as_zarr(1024, right_operand(), "right.zarr")
if PEER == "rechunker-transpose":
    rechunker_input()
right = expected()
print("ready", flush=True)
for line in sys.stdin:
    if line.strip() == "prepare":
        for name in ("out", "other"):
            if os.path.exists(at(name)): os.unlink(at(name))
        shutil.rmtree(at("out.zarr"), ignore_errors=True)
        shutil.rmtree(at("between.zarr"), ignore_errors=True)
        answer = "ok"
    elif line.strip() == "forget":
        forget()
        answer = "ok"
    elif line.strip() == "run":
        RUNS[PEER]()
        answer = "ok"
    else:
        loose = lambda a, b: np.allclose(a, b, atol=1e-4 * np.abs(b).max())
        same = np.allclose if "matmul" in PEER else loose if "fft" in PEER else np.array_equal
        answer = "ok" if same(found()[:len(right)], right) else "WRONG"
    print(answer, flush=True)
