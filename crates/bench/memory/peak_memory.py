"""Peak memory of every command that moves an array, on 4 GiB with --memory 256MiB.

    python3 peak_memory.py OUTCORE DIRECTORY [GIB] > peak-memory.csv

Makes the inputs in DIRECTORY, runs each command, samples RssAnon + RssShmem of the
process every 5 ms (pages of mapped files are the kernel's and not counted), and removes
what the command has made. The bar is the cap plus 32 MiB. Needs room for three arrays.
"""

import os
import shutil
import subprocess
import sys
import time

program, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
gib = float(sys.argv[3]) if len(sys.argv) > 3 else 4
CAP = 256
os.makedirs(directory, exist_ok=True)
os.chdir(directory)

rows = int(gib * (1 << 30) / 4 / 32768) // 64 * 64  # of 32768 f32
side = int((gib * (1 << 30) / 4) ** 0.5) // 64 * 64
memory = ["--memory", f"{CAP}MiB", "--ranks", "2"]


def sample(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


def run(arguments):
    start, peak = time.time(), 0
    process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    while process.poll() is None:
        peak = max(peak, sample(process.pid))
        time.sleep(0.005)
    if process.returncode not in (0,):
        sys.exit(f"{' '.join(arguments)}: {process.stderr.read().decode()}")
    return peak, time.time() - start


def remove(name):
    (shutil.rmtree if os.path.isdir(name) else os.remove)(name)


run(["create", "field.npy", "--shape", f"{rows}x32768", "--type", "f32", "--fill", "random"])
run(["create", "square.npy", "--shape", f"{side}x{side}", "--type", "f32", "--fill", "random"])
run(["create", "wanted.npy", "--shape", "1000000", "--type", "u64", "--fill", "index"])
chunks = ["--chunks", "512x512"]
commands = [
    ("info", ["info", "field.npy"], []),
    ("read", ["read", "field.npy", "::2, :", "-o", "out.npy", *memory], ["out.npy"]),
    ("write", ["write", "field.npy", ":, ::3", "--fill", "1.5", *memory], []),
    ("stats", ["stats", "field.npy", *memory], []),
    ("diff", ["diff", "field.npy", "field.npy", *memory], []),
    ("verify", ["verify", "field.npy", *memory], []),
    ("view", ["view", "field.npy", "-o", "out.png"], ["out.png"]),
    ("view --mean", ["view", "field.npy", "-o", "out.png", "--mean", "--memory", f"{CAP}MiB"], ["out.png"]),
    ("transpose", ["transpose", "field.npy", "out.npy", *memory], ["out.npy"]),
    ("relayout", ["relayout", "field.npy", "out.oc", "--layout", "tiled:256x256", *memory], ["out.oc"]),
    ("convert to zarr", ["convert", "field.npy", "out.zarr", *chunks, "--codec", "zstd:1", *memory], None),
    ("convert from zarr", ["convert", "out.zarr", "out.npy", *memory], ["out.npy", "out.zarr"]),
    ("convert to hdf5", ["convert", "field.npy", "out.h5", *chunks, "--codec", "deflate:1", *memory], ["out.h5"]),
    ("convert to netcdf", ["convert", "field.npy", "out.nc:v", *memory], ["out.nc"]),
    ("convert to parts", ["convert", "field.npy", "out.oc", "--parts", "4", *memory], ["out.oc"]),
    ("convert --checksums", ["convert", "field.npy", "out.oc", "--checksums", *memory], ["out.oc"]),
    ("median", ["median", "field.npy", "out.npy", "--window", "3x3", *memory], ["out.npy"]),
    ("laplace", ["laplace", "field.npy", "out.npy", "--sweeps", "4", *memory], ["out.npy"]),
    ("fft", ["fft", "field.npy", "out.oc", "--axes", "1", *memory], ["out.oc"]),
    ("adi", ["adi", "square.npy", "out.npy", "--steps", "1", "--ratio", "0.5", *memory], ["out.npy"]),
    ("gather", ["gather", "field.npy", "--indices", "wanted.npy", "-o", "values.npy", *memory], None),
    ("scatter", ["scatter", "field.npy", "--indices", "wanted.npy", "--values", "values.npy", *memory], ["values.npy"]),
]
print("command,array_gib,memory_mib,peak_mib,seconds,within")
for name, arguments, made in commands:
    peak, seconds = run(arguments)
    print(f"{name},{gib:g},{CAP},{peak:.1f},{seconds:.1f},{'yes' if peak <= CAP + 32 else 'NO'}", flush=True)
    for output in made or []:
        remove(output)
for name in ("field.npy", "square.npy", "wanted.npy"):
    remove(name)
