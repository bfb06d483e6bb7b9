"""What a half-life and a window cost, beside a model whose rows all count equally.

Each model takes the same rows in calls of 100, one after the other, with one BLAS thread. Prints the process time of
each over that of the model without, medians of the repeats, and writes benchmarks/results/forgetting_cost.json.

    python benchmarks/forgetting_cost.py    # half a minute
"""

import json
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

RESULTS = Path(__file__).parent / "results" / "forgetting_cost.json"
REPEATS, CALL = 5, 100
MEMORIES = {
    "all rows": {},
    "half_life=1000": {"half_life": 1000},
    "half_life=100000": {"half_life": 100_000},
    "window=3000": {"window": 3000},
    "window=3000, exact_window=True": {"window": 3000, "exact_window": True},
}


def seconds(X, y, memory):
    """Process time of one stream."""
    model = SparseRegressor(selection="ebic", **memory)
    begin = time.process_time()
    for start in range(0, len(y), CALL):
        model.partial_fit(X[start : start + CALL], y[start : start + CALL])
    assert model.coef_.any()
    return time.process_time() - begin


def ratios(d, n):
    """Times of each model over those of the first."""
    X, y = SparseLinearStream(d, 10, seed=0).draw(n)
    for memory in MEMORIES.values():
        seconds(X[:1000], y[:1000], memory)
    times = np.array([[seconds(X, y, memory) for memory in MEMORIES.values()] for _ in range(REPEATS)])
    return dict(zip(MEMORIES, np.median(times / times[:, :1], axis=0).round(2).tolist(), strict=True))


def main():
    with threadpool_limits(1):
        found = {f"d = {d}, {n} rows": ratios(d, n) for d, n in ((200, 10_000), (1000, 6000))}
    print(json.dumps(found, indent=1))
    RESULTS.write_text(json.dumps({"machine": machine(), "ratios": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
