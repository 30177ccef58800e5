"""Elements at random places of a file of f64 from Python, warm: started by the bench, waits for its turns.

py_take.py SYSTEM FILE ELEMENTS INDICES SCRATCH
  FILE holds ELEMENTS f64, each its own number; INDICES holds i64. SYSTEM is numpy.memmap (fancy
  indexing of a mapping) or h5py (point selection: coordinates ascend and are there once, so they are
  sorted before and the values are put back into order after). For h5py the file is copied to SCRATCH.
Commands: take, put (each value is its index again), check. Answers ok or WRONG.
"""
import os, sys
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
import numpy as np

SYSTEM, FILE, ELEMENTS, INDICES, SCRATCH = sys.argv[1:6]
indices = np.fromfile(INDICES, dtype=np.int64)
values = indices.astype(np.float64)
found = None

if SYSTEM == "numpy.memmap":
    mapped = np.memmap(FILE, np.float64, "r+", shape=(int(ELEMENTS),))

    def take():
        return mapped[indices]

    def put():
        mapped[indices] = values
else:
    import h5py
    file = h5py.File(os.path.join(SCRATCH, "take.h5"), "w")
    data = file.create_dataset("data", shape=(int(ELEMENTS),), dtype="f8")
    source = np.memmap(FILE, np.float64, "r", shape=(int(ELEMENTS),))
    for start in range(0, int(ELEMENTS), 1 << 20):
        data[start:start + (1 << 20)] = source[start:start + (1 << 20)]

    def take():
        once, back = np.unique(indices, return_inverse=True)
        return data[once][back]

    def put():
        once = np.unique(indices)
        data[once] = once.astype(np.float64)

print("ready", flush=True)
for line in sys.stdin:
    answer = "ok"
    command = line.strip()
    if command == "take":
        found = take()
    elif command == "put":
        put()
    elif command == "check":
        answer = "ok" if np.array_equal(found, values) else "WRONG"
    print(answer, flush=True)
