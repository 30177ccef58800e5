"""Peak memory of every command that moves an array, on 4 GiB with --memory 256MiB.

    python3 peak_memory.py OUTCORE DIRECTORY [GIB] > peak-memory.csv

Makes the inputs in DIRECTORY, runs each command, samples RssAnon + RssShmem of the
process every 5 ms (pages of mapped files are the kernel's and not counted), and removes
what the command has made. The bar is the cap plus 32 MiB. Needs room for four arrays.
Exits with 1 if a command fails or exceeds the bar.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import time

program, directory = os.path.abspath(sys.argv[1]), sys.argv[2]
gib = float(sys.argv[3]) if len(sys.argv) > 3 else 4
CAP = 256
os.makedirs(directory, exist_ok=True)
os.chdir(directory)

rows = int(gib * (1 << 30) / 4 / 32768) // 64 * 64  # of 32768 f32
memory = ["--memory", f"{CAP}MiB", "--ranks", "2"]


def sample(pid):
    try:
        with open(f"/proc/{pid}/status") as status:
            fields = dict(line.split(":", 1) for line in status)
    except (FileNotFoundError, ProcessLookupError):
        return 0
    return sum(int(fields.get(name, "0 kB").split()[0]) for name in ("RssAnon", "RssShmem")) / 1024


def run(arguments):
    """Peak in MiB, seconds, and what the program said if it failed."""
    start, peak = time.time(), 0
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen([program, *arguments], stdout=subprocess.DEVNULL, stderr=said)
        while process.poll() is None:
            peak = max(peak, sample(process.pid))
            time.sleep(0.005)
        said.seek(0)
        problem = said.read().decode() if process.returncode else ""
    return peak, time.time() - start, problem


def remove(name):
    if os.path.isdir(name):
        shutil.rmtree(name)
    elif os.path.exists(name):
        os.remove(name)


def create(name, shape, kind="f32", fill="random"):
    return ["create", name, "--shape", shape, "--type", kind, "--fill", fill, *memory]


tall = int(gib * (1 << 30) / 4 / 1024)  # rows of 1024 f32
# Elements of a tensor of f64 whose three first indices have 64 each.
deep = int(gib * (1 << 30) / 8 / 64**3)
nodes = int(gib * (1 << 30) / 24)  # three edges of two u32 each
chunks = ["--chunks", "512x512"]
indices = ["--indices", "wanted.npy"]
# Name, arguments, what is removed afterwards.
commands = [
    ("create", create("field.npy", f"{rows}x32768"), []),
    ("create indices", create("wanted.npy", "1000000", "u64", "index"), []),
    ("info", ["info", "field.npy"], []),
    ("read", ["read", "field.npy", "::2, :", "-o", "out.npy", *memory], ["out.npy"]),
    ("read as text", ["read", "field.npy", "::64, ::1024", *memory], []),
    ("write --fill", ["write", "field.npy", ":, ::3", "--fill", "1.5", *memory], []),
    ("stats", ["stats", "field.npy", *memory], []),
    ("stats --bins", ["stats", "field.npy", "--bins", "100", *memory], []),
    ("stats --axis", ["stats", "field.npy", "--axis", "0", "-o", "out.npy", *memory], ["out.npy"]),
    ("diff", ["diff", "field.npy", "field.npy", *memory], []),
    ("view", ["view", "field.npy", "-o", "out.png"], ["out.png"]),
    ("view --mean", ["view", "field.npy", "-o", "out.png", "--mean", "--memory", f"{CAP}MiB"], ["out.png"]),
    ("explain --analyze", ["explain", "field.npy", "::16, ::16", "--analyze"], []),
    ("transpose", ["transpose", "field.npy", "out.npy", *memory], []),
    ("write --from", ["write", "field.npy", "--from", "turned.npy", *memory], []),
    ("relayout", ["relayout", "field.npy", "out.oc", "--layout", "tiled:256x256", *memory], ["out.oc"]),
    ("convert to zarr", ["convert", "field.npy", "out.zarr", *chunks, "--codec", "zstd:1", *memory], []),
    ("convert from zarr", ["convert", "out.zarr", "out.npy", *memory], ["out.npy"]),
    ("ls", ["ls", "out.zarr"], []),
    ("stats of zarr", ["stats", "out.zarr", *memory], []),
    ("read from zarr", ["read", "out.zarr", "::3, ::7", "-o", "out.npy", *memory], ["out.npy"]),
    ("write to zarr", ["write", "out.zarr", "::300, :", "--fill", "2", *memory], ["out.zarr"]),
    ("convert to shards", ["convert", "field.npy", "out.zarr", *chunks, "--shard", "2048x2048", "--codec", "zstd:1", *memory], ["out.zarr"]),
    ("convert to hdf5", ["convert", "field.npy", "out.h5", *chunks, "--codec", "shuffle,deflate:1", *memory], []),
    ("transpose from hdf5", ["transpose", "out.h5", "out.npy", *memory], ["out.npy", "out.h5"]),
    ("convert to netcdf", ["convert", "field.npy", "out.nc:v", *memory], ["out.nc"]),
    ("convert to parts", ["convert", "field.npy", "out.oc", "--distribution", "block,block", "--parts", "4", "--overlap", "1,1", *memory], []),
    ("median of parts", ["median", "out.oc", "out2.oc", "--window", "3x3", "--memory", f"{CAP}MiB"], ["out.oc", "out2.oc"]),
    ("convert --type", ["convert", "field.npy", "out.npy", "--type", "f16", "--saturate", *memory], ["out.npy"]),
    ("convert --checksums", ["convert", "field.npy", "out.oc", "--checksums", *memory], []),
    ("verify", ["verify", "out.oc", *memory], []),
    ("repair-report", ["repair-report", "out.oc"], []),
    ("read with checksums", ["read", "out.oc", "::2, ::2", "-o", "out.npy", *memory], ["out.npy"]),
    ("write with checksums", ["write", "out.oc", "::64, ::2", "--fill", "2", *memory], ["out.oc"]),
    ("median", ["median", "field.npy", "out.npy", "--window", "3x3", *memory], ["out.npy"]),
    ("laplace", ["laplace", "field.npy", "out.npy", "--sweeps", "4", *memory], ["out.npy"]),
    ("laplace --io collective", ["laplace", "field.npy", "out.npy", "--sweeps", "1", "--io", "collective", *memory], ["out.npy"]),
    ("fft", ["fft", "field.npy", "out.oc", *memory], ["out.oc"]),
    ("adi", ["adi", "field.npy", "out.npy", "--steps", "1", "--ratio", "0.5", *memory], ["out.npy"]),
    ("gather", ["gather", "field.npy", *indices, "-o", "values.npy", *memory], []),
    ("scatter", ["scatter", "field.npy", *indices, "--values", "values.npy", *memory], ["values.npy"]),
    ("create for matmul", create("tall.oc", f"{tall}x1024"), ["field.npy", "wanted.npy"]),
    ("create for matmul", create("small.oc", "1024x128"), []),
    ("matmul", ["matmul", "tall.oc", "small.oc", "out.oc", *memory], ["tall.oc", "small.oc", "out.oc"]),
    ("mesh", ["mesh", "edges.oc", "nodes.oc", "--nodes", f"{nodes}", *memory], []),
    ("edge-sweep", ["edge-sweep", "edges.oc", "nodes.oc", "out.oc", "--steps", "1", *memory], ["edges.oc", "nodes.oc", "out.oc"]),
    (
        "contract",
        ["contract", "c[a,b,h] = t[a,b,c,d] * s[c,d,h]", "--make", *memory]
        + [word for index in "abc" for word in ("--segments", f"{index}=16,16,16,16")]
        + ["--segments", "d=" + ",".join(["64"] * (deep // 64)), "--segments", "h=8"],
        ["c.oc", "t.oc", "s.oc"],
    ),
]
failed = False
print("command,array_gib,memory_mib,peak_mib,seconds,within")
for name, arguments, made in commands:
    peak, seconds, problem = run(arguments)
    if name == "transpose":
        # The same shape again, for what is written from a file.
        run(["transpose", "out.npy", "turned.npy", *memory])
        remove("out.npy")
    within = "no" if problem or peak > CAP + 32 else "yes"
    failed |= within == "no"
    print(f"{name},{gib:g},{CAP},{peak:.1f},{seconds:.1f},{within}", flush=True)
    if problem:
        print(f"{' '.join(arguments)}: {problem}", file=sys.stderr, flush=True)
    if name == "write --from":
        remove("turned.npy")
    for output in made:
        remove(output)
sys.exit(failed)
