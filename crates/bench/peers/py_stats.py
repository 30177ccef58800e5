"""Statistics of a raw file of f32 by other systems: PEER FILE COUNT.

Prints 'ready', then does what each line says: 'prepare', 'run', 'check'; answers 'ok' or 'wrong'.
All compute least, largest, sum, mean and deviation of all elements.
"""

import sys

import numpy as np

peer, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
found = None


def memmap_blocks(block=1 << 20):
    """Blocks of 4 MiB of numpy.memmap, joined by Chan's formula."""
    data = np.memmap(path, dtype=np.float32, mode="r", shape=(count,))
    n, mean, squares, total = 0, 0.0, 0.0, 0.0
    least, most = np.inf, -np.inf
    for at in range(0, count, block):
        part = data[at : at + block]
        least, most = min(least, part.min()), max(most, part.max())
        own = part.sum(dtype=np.float64)
        own_mean = own / part.size
        own_squares = part.var(dtype=np.float64) * part.size
        apart, all_n = own_mean - mean, n + part.size
        squares += own_squares + apart * apart * n * part.size / all_n
        mean += apart * part.size / all_n
        n, total = all_n, total + own
    return least, most, total, mean, np.sqrt(squares / n)


def dask_all():
    import dask
    import dask.array as da

    data = np.memmap(path, dtype=np.float32, mode="r", shape=(count,))
    array = da.from_array(data, chunks=1 << 22)
    wanted = (
        array.min(),
        array.max(),
        array.sum(dtype=np.float64),
        array.mean(dtype=np.float64),
        array.std(dtype=np.float64),
    )
    return dask.compute(*wanted, scheduler="threads", num_workers=2)


def right():
    data = np.memmap(path, dtype=np.float32, mode="r", shape=(count,))
    mean = data.mean(dtype=np.float64)
    return found is not None and found[0] == data.min() and abs(found[3] - mean) < 1e-9


work = {"numpy.memmap": memmap_blocks, "dask": dask_all}[peer]
if peer == "dask":
    import dask.array  # noqa: F401
print("ready", flush=True)
for line in sys.stdin:
    command, good = line.strip(), True
    if command == "run":
        found = work()
    elif command == "check":
        good = right()
    print("ok" if good else "wrong", flush=True)
