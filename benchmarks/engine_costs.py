"""What a summary over a cluster costs, fitted to measurements on one core, and carried to 10^10 rows.

    python benchmarks/engine_costs.py         # two minutes; writes benchmarks/results/engine_costs.json

Three costs are measured: rows of an Arrow table that become part of a Gram, at several numbers of columns; the bytes of
a summary, written and read again; the merge of two summaries. The time of the rows is fitted by

    rows (a d^2 + b d)

with a for the products and b for reading and checking, and the rest by bytes per second. The model is then checked
against the measured time at a number of columns that was not fitted, and applied to a cluster.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
import pyarrow as pa

from harness import machine
from thresher import Gram
from thresher._utils.threads import one_blas_thread
from thresher.integrations._partials import Plan, merged
from thresher.io.encoding import decode, encode

FITTED, HELD_OUT = (100, 200, 400, 1000, 2000), 600
RESULTS = Path(__file__).parent / "results" / "engine_costs.json"
# The cluster: workers of so many cores, each reads and sends so many bytes per second.
WORKERS, CORES, DISK, NETWORK = 100, 16, 1e9, 1.25e9
FAN_IN = 32


def best(call, repeats=3):
    spent = []
    for _ in range(repeats):
        start = time.perf_counter()
        call()
        spent.append(time.perf_counter() - start)
    return min(spent)


def seconds_per_row(d):
    n = max(2000, min(40_000, 8_000_000 // d))
    rng = np.random.default_rng(0)
    batch = pa.record_batch({f"x{j}": rng.standard_normal(n) for j in range(d + 1)})
    plan = Plan(tuple(batch.schema.names[:d]), (batch.schema.names[d],))
    return best(lambda: plan.summary(batch.slice(start, 1000) for start in range(0, n, 1000))) / n


def seconds_per_byte(d=2000):
    gram = Gram(d).absorb(np.random.default_rng(0).standard_normal((500, d)), np.zeros(500))
    content = encode(gram)
    with one_blas_thread():
        writing, reading = best(lambda: encode(gram)), best(lambda: decode(content))
        merging = best(lambda: merged(decode(content)[0], decode(content)[0])) - 2 * reading
    return {name: spent / len(content) for name, spent in (("write", writing), ("read", reading), ("merge", merging))}


def carried(rows, d, partitions, levels, rates, per_row, precision=8):
    """Seconds and bytes of each stage on the cluster."""
    size = precision * d * d + 8 * 256 * d
    tasks = WORKERS * CORES
    stages = {
        "read the rows": {"bytes": 8.0 * rows * d, "seconds": 8.0 * rows * d / (WORKERS * DISK)},
        "summarise": {"bytes": 0.0, "seconds": rows * per_row / min(tasks, partitions)},
    }
    left = partitions
    for level in range(1, levels + 1):
        group = left if level == levels else min(FAN_IN, left)
        merging = min(left // group or 1, tasks)
        compute = left / merging * size * (rates["read"] + rates["merge"]) + size * rates["write"]
        moving = left * size / (min(merging, WORKERS) * NETWORK)
        stages[f"merge, level {level}"] = {"bytes": float(left * size), "seconds": compute + moving}
        left = -(-left // group)
    stages["to the driver"] = {"bytes": float(size), "seconds": size / NETWORK + size * rates["read"]}
    return {name: {key: float(f"{value:.3g}") for key, value in stage.items()} for name, stage in stages.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.parse_args()
    measured = {d: seconds_per_row(d) for d in (*FITTED, HELD_OUT)}
    d = np.array(FITTED, float)
    times = np.array([measured[k] for k in FITTED])
    design = np.column_stack([d * d, d]) / times[:, None]  # relative errors count
    (a, b), *_ = np.linalg.lstsq(design, np.ones(len(d)), rcond=None)
    rates = seconds_per_byte()
    predicted = a * HELD_OUT**2 + b * HELD_OUT
    rows, columns = 10**10, 5000
    per_row = a * columns**2 + b * columns
    results = {
        "machine": machine(),
        "seconds_per_row": {str(k): v for k, v in measured.items()},
        "a": a,
        "b": b,
        "seconds_per_byte": rates,
        "held_out": {"columns": HELD_OUT, "measured": measured[HELD_OUT], "predicted": predicted},
        "cluster": {"workers": WORKERS, "cores": CORES, "disk": DISK, "network": NETWORK},
        "rows": rows,
        "columns": columns,
        "seconds_per_row_there": per_row,
        "plans": {
            "6,400 partitions, 2 levels": carried(rows, columns, 6400, 2, rates, per_row),
            "6,400 partitions, 3 levels": carried(rows, columns, 6400, 3, rates, per_row),
            "400,000 partitions of 1 GB, 3 levels": carried(rows, columns, 400_000, 3, rates, per_row),
        },
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
