"""What a summary over a cluster costs, fitted to measurements on one core, and carried to 10^10 rows.

    python benchmarks/engine_costs.py         # half a minute; writes benchmarks/results/engine_costs.json

Measured are the summaries of Arrow tables of several widths and lengths, bytes of a summary that are written and read
again, and the merge of two summaries: processor time, the least of several rounds in turns, because other programs can
only add to it. The time of n rows of d columns in one partition is fitted by

    n (a d^2 + b d + c) + e d^2

with a for the products, b for reading and checking a number, c for a row and e for making an empty summary; the rest by
bytes per second. Every second width is left out of the fit, among them 5,000, and tells how far off the model is. Then
it is applied to a cluster.
"""

import argparse
import json
import os
import time
from functools import partial
from pathlib import Path

import numpy as np
import pyarrow as pa
from scipy.optimize import nnls

from harness import machine
from thresher import Gram
from thresher._utils.threads import one_blas_thread
from thresher.integrations._partials import Plan, merged
from thresher.io.encoding import decode, encode

FITTED, HELD_OUT = (50, 200, 600, 1500, 3500), (100, 400, 1000, 2500, 5000)
ROUNDS = 5
RESULTS = Path(__file__).parent / "results" / "engine_costs.json"
# The cluster: workers of so many cores, each reads and sends so many bytes per second.
WORKERS, CORES, DISK, NETWORK = 100, 16, 1e9, 1.25e9
FAN_IN = 32


def best(call, repeats=ROUNDS):
    spent = []
    for _ in range(repeats):
        start = time.process_time()
        call()
        spent.append(time.process_time() - start)
    return min(spent)


def lengths(d):
    """Rows of a short and of a long table: some folds of the buffer, and a few tenths of a second."""
    n = max(768, min(16384, 4_000_000 // d // 256 * 256))
    return n, 3 * n


def summaries(rounds=ROUNDS):
    """Seconds for tables of (width, length), each the least of some rounds."""
    found = {}
    for number in range(rounds):
        for d in sorted((*FITTED, *HELD_OUT)):
            rng = np.random.default_rng(number)
            short, long = lengths(d)
            batch = pa.record_batch({f"x{j}": rng.standard_normal(long) for j in range(d + 1)})
            plan = Plan(tuple(batch.schema.names[:d]), (batch.schema.names[d],))
            for n in (short, long):
                pieces = [batch.slice(start, min(1000, n - start)) for start in range(0, n, 1000)]
                spent = best(partial(plan.summary, pieces), 1)
                found[d, n] = min(found.get((d, n), np.inf), spent)
    return found


def terms(d, n):
    return np.array([n * d * d, n * d, n, d * d], float)


def fit(measured):
    """Costs a, b, c and e, none negative; relative errors count."""
    chosen = [(d, n) for d, n in measured if d in FITTED]
    design = np.array([terms(d, n) / measured[d, n] for d, n in chosen])
    return nnls(design, np.ones(len(chosen)))[0]


def seconds_per_byte(d=2000):
    gram = Gram(d).absorb(np.random.default_rng(0).standard_normal((500, d)), np.zeros(500))
    content = encode(gram)
    with one_blas_thread():
        writing, reading = best(lambda: encode(gram)), best(lambda: decode(content))
        merging = best(lambda: merged(decode(content)[0], decode(content)[0])) - 2 * reading
    return {name: spent / len(content) for name, spent in (("write", writing), ("read", reading), ("merge", merging))}


def carried(rows, d, partitions, levels, rates, cost, precision=8):
    """Seconds and bytes of each stage on the cluster."""
    size = precision * d * d + 8 * 256 * d
    tasks = WORKERS * CORES
    work = rows * (cost[:3] @ terms(d, 1)[:3]) + partitions * (cost[3] * d * d + size * rates["write"])
    stages = {
        "read the rows": {"bytes": 8.0 * rows * d, "seconds": 8.0 * rows * d / (WORKERS * DISK)},
        "summarise": {"bytes": 0.0, "seconds": work / min(tasks, partitions)},
    }
    left = partitions
    for level in range(1, levels + 1):
        group = left if level == levels else min(FAN_IN, left)
        merging = min(-(-left // group), tasks)
        compute = left / merging * size * (rates["read"] + rates["merge"]) + size * rates["write"]
        moving = left * size / (min(merging, WORKERS) * NETWORK)
        stages[f"merge, level {level}"] = {"bytes": float(left * size), "seconds": compute + moving}
        left = -(-left // group)
    stages["to the driver"] = {"bytes": float(size), "seconds": size / NETWORK + size * rates["read"]}
    return {name: {key: float(f"{value:.3g}") for key, value in stage.items()} for name, stage in stages.items()}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    options = parser.parse_args()
    measured = summaries(options.rounds)
    cost, rates = fit(measured), seconds_per_byte()
    off = {
        f"{d} columns, {n} rows": {
            "measured": measured[d, n],
            "model": float(cost @ terms(d, n)),
            "ratio": round(float(cost @ terms(d, n)) / measured[d, n], 3),
            "fitted": d in FITTED,
        }
        for d, n in sorted(measured)
    }
    rows, columns = 10**10, 5000
    results = {
        "machine": machine(),
        "load": os.getloadavg()[0],
        "seconds": dict(zip("abce", map(float, cost), strict=True)),
        "seconds_per_byte": rates,
        "summaries": off,
        "worst_held_out": max(abs(one["ratio"] - 1.0) for one in off.values() if not one["fitted"]),
        "cluster": {"workers": WORKERS, "cores": CORES, "disk": DISK, "network": NETWORK},
        "rows": rows,
        "columns": columns,
        "plans": {
            "6,400 partitions, 2 levels": carried(rows, columns, 6400, 2, rates, cost),
            "6,400 partitions, 3 levels": carried(rows, columns, 6400, 3, rates, cost),
            "400,000 partitions of 1 GB, 3 levels": carried(rows, columns, 400_000, 3, rates, cost),
        },
    }
    RESULTS.write_text(json.dumps(results, indent=2) + "\n")
    print(json.dumps(results, indent=2))


if __name__ == "__main__":
    main()
