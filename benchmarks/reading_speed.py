"""How long ``thresher fit`` takes for a large file, beside merely reading the file with pyarrow, and its peak memory.

    python benchmarks/reading_speed.py                  # a quarter of an hour, 7 GB of temporary files
    python benchmarks/reading_speed.py --rows 20000     # a minute; nothing is saved

A tenth of the rows and all of them, with 200 columns, as Parquet and CSV. Every call is a process of its own, wall time
from start to end, repeats alternate. The command saves its model every 10,000 rows, as it does by default. Its start,
which is mostly the import of scikit-learn, is measured on a file of few rows, beside that import alone. A run on 10^6
rows writes benchmarks/results/reading_speed.json.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq

from harness import machine

D, FEW, MANY = 200, 1000, 1_000_000
IMPORTS = "import sklearn.linear_model, pyarrow.parquet"
READERS = {
    "read_table": "import pyarrow.parquet as pq; pq.read_table({path!r})",
    "iter_batches": "import pyarrow.parquet as pq\nfor _ in pq.ParquetFile({path!r}).iter_batches(): pass",
    "read_csv": "import pyarrow.csv as pc; pc.read_csv({path!r})",
    "open_csv": "import pyarrow.csv as pc\nfor _ in pc.open_csv({path!r}): pass",
}
FORMATS = {"parquet": ("read_table", "iter_batches"), "csv": ("read_csv", "open_csv")}


def write(directory, n_rows):
    rng, coef = np.random.default_rng(1), np.zeros(D)
    coef[:15] = 0.3
    names = [*(f"x{j}" for j in range(D)), "y"]
    schema = pa.schema([(name, pa.float64()) for name in names])
    paths = {name: directory / f"{n_rows}.{name}" for name in FORMATS}
    with pq.ParquetWriter(paths["parquet"], schema) as parquet, pa.csv.CSVWriter(paths["csv"], schema) as csv:
        for start in range(0, n_rows, 50_000):
            X = rng.standard_normal((min(50_000, n_rows - start), D))
            y = X @ coef + rng.standard_normal(len(X))
            table = pa.table([*(X[:, j].copy() for j in range(D)), y], schema)
            parquet.write_table(table)
            csv.write(table)
    return paths


def run(*command):
    """Wall seconds and peak megabytes of a process."""
    start = time.perf_counter()
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    assert status == 0, command
    return time.perf_counter() - start, usage.ru_maxrss / 1024


def fit(path, directory):
    model = directory / "m.thresher"
    options = ["--target", "y", "--model", model, "--overwrite", "--quiet"]
    return run(sys.executable, "-m", "thresher", "fit", path, *options)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--rows", type=int, default=MANY)
    options = parser.parse_args()
    result, tenth = {"machine": machine(), "columns": D}, options.rows // 10
    with tempfile.TemporaryDirectory() as temporary:
        directory = Path(temporary)
        few, some, many = (write(directory, n_rows) for n_rows in (FEW, tenth, options.rows))
        fit(few["csv"], directory)  # from now on, files of libraries are in memory
        for name, readers in FORMATS.items():
            calls = {"fit": lambda name=name: fit(many[name], directory)} | {
                reader: lambda reader=reader, name=name: run(
                    sys.executable, "-c", READERS[reader].format(path=str(many[name]))
                )
                for reader in readers
            }
            calls[f"fit, {FEW:,} rows"] = lambda name=name: fit(few[name], directory)
            calls[f"fit, {tenth:,} rows"] = lambda name=name: fit(some[name], directory)
            calls["imports alone"] = lambda: run(sys.executable, "-c", IMPORTS)
            found = {call: [] for call in calls}
            for _ in range(options.repeats):
                for call, make in calls.items():
                    found[call].append(make())
            medians = {
                call: {
                    "seconds": statistics.median(one[0] for one in runs),
                    "megabytes": statistics.median(one[1] for one in runs),
                    "all_seconds": [round(one[0], 2) for one in runs],
                }
                for call, runs in found.items()
            }
            result[name] = medians
            print(f"\n{name + f', {options.rows:,} rows of {D} columns':36}  seconds   peak MB")
            for call, one in medians.items():
                print(f"  {call:34} {one['seconds']:8.2f} {one['megabytes']:9.0f}")
            start = medians[f"fit, {FEW:,} rows"]["seconds"]
            for reader in readers:
                whole, floor = medians["fit"]["seconds"], medians[reader]["seconds"]
                print(f"  fit / {reader}: {whole / floor:.2f}; without its start {(whole - start) / floor:.2f}")
    if options.rows == MANY:
        output = Path(__file__).parent / "results" / "reading_speed.json"
        output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
