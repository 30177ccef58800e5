"""tensorstore as a contestant of the bench `remote`: the same section of the same Zarr array from
the same server. Arguments: the address (s3://bucket/path), the section's strides and offsets."""
import os
import sys

import numpy as np
import tensorstore as ts

address, row, column, step = sys.argv[1], *map(int, sys.argv[2:5])
bucket, path = address.removeprefix("s3://").split("/", 1)
store = {"driver": "s3", "bucket": bucket, "path": path + "/", "aws_region": "us-east-1",
         "aws_credentials": {"type": "environment"}}
if "AWS_ENDPOINT_URL" in os.environ:
    store["endpoint"] = os.environ["AWS_ENDPOINT_URL"]
array = ts.open({"driver": "zarr3", "kvstore": store}, open=True, read=True).result()
rows, columns = array.shape
right = (np.arange(rows)[row::step, None] * columns + np.arange(columns)[None, column::step])
right = right.astype(np.float32)
found = None
print("ready", flush=True)
for line in sys.stdin:
    answer = "ok"
    if line.strip() == "prepare":
        found = None
    elif line.strip() == "run":
        found = array[row::step, column::step].read().result()
    elif not np.array_equal(found, right):
        answer = "WRONG"
    print(answer, flush=True)
