"""How close streaming rounds come to the floor: folding the same rows into a Gram by BLAS-3.

Everything is a ratio of medians over alternated repeats within one run, because machines are noisy and
differ. Prints a table and writes benchmarks/results/sparse_rounds.json.

    python benchmarks/sparse_rounds.py            # all of it, several minutes
    python benchmarks/sparse_rounds.py --quick    # d = 500 and 1000, three repeats
"""

import argparse
import json
import statistics
import tempfile
from pathlib import Path

import numpy as np
from sklearn.linear_model import SGDRegressor
from threadpoolctl import threadpool_limits

from harness import cores, machine, run_python, seconds
from thresher import SparseRegressor
from thresher.speed import fold_with_dsyrk
from thresher.streams.synthetic import SparseLinearStream

N_WARMUP, N_ROWS = 100, 10_000
PAPER = {"sparsity": 50, "step_size": 0.001, "fit_intercept": False, "standardize": False}
SETTINGS = {
    "paper, K = 5": PAPER | {"n_steps": 5, "n_warmup": N_WARMUP},
    "paper, K = 20": PAPER | {"n_steps": 20, "n_warmup": N_WARMUP},
    "hard, s = 20": {"sparsity": 20, "rule": "hard", "n_warmup": N_WARMUP},
    "pursuit, s = 20": {"sparsity": 20, "n_warmup": N_WARMUP},
    "default": {},
    "default, prequential": {"selection": "prequential"},
}
GOALS = {
    "paper, K = 5": 1.5,
    "paper, K = 20": 2.0,
    "hard, s = 20": 2.0,
    "pursuit, s = 20": 2.0,
    "default": 3.0,
    "default, prequential": 3.0,
}


def plain_numpy(X, y, s, K, eta, t0):
    """Algorithm 1 as one writes it first."""
    d = X.shape[1]
    A, b, theta = np.zeros((d, d)), np.zeros(d), np.zeros(d)
    for i in range(len(X)):
        A += np.outer(X[i], X[i])
        b += X[i] * y[i]
        if i >= t0:
            for _ in range(K):
                z = theta - eta * (A @ theta - b) / (i + 1)
                theta = np.zeros(d)
                keep = np.argpartition(-np.abs(z), s)[:s]
                theta[keep] = z[keep]
    return theta


def alternate(calls, repeats):
    """Median seconds of each call, the calls taking turns."""
    times = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            times[name].append(seconds(call))
    return {name: statistics.median(values) for name, values in times.items()}


def ratios_to_dsyrk(d, names, threads, repeats):
    X, y = SparseLinearStream(d, 15, seed=0).draw(N_WARMUP + N_ROWS)
    calls = {"dsyrk": lambda: fold_with_dsyrk(X)}
    for name in names:
        parameters = SETTINGS[name]
        SparseRegressor(**parameters).partial_fit(X[:300], y[:300])
        calls[name] = lambda parameters=parameters: SparseRegressor(**parameters).partial_fit(X, y)
    with threadpool_limits(threads):
        times = alternate(calls, repeats)
    rows = []
    for name in names:
        rows.append(
            {
                "what": f"{name}, d = {d}, {threads} thread{'s' * (threads > 1)}",
                "value": times[name] / times["dsyrk"],
                "unit": "x dsyrk",
                "goal": f"<= {GOALS[name]}" if d == 1000 else "",
                "microseconds_per_row": times[name] / len(X) * 1e6,
            }
        )
    return rows


def certified_steps(d=1000):
    """The share of steps that the certificate kept within the working set."""
    X, y = SparseLinearStream(d, 15, seed=0).draw(N_WARMUP + N_ROWS)
    rows = []
    for name, parameters in SETTINGS.items():
        tallies = SparseRegressor(**parameters).partial_fit(X, y)._rounds.tallies
        share = 100.0 * tallies["certified"] / tallies["steps"]
        rows.append({"what": f"{name}, d = {d}: steps without a product of order d s", "value": share})
        rows[-1] |= {"unit": "%", "goal": ""}
    return rows


def against_plain_numpy(repeats, d=1000, n=400):
    X, y = SparseLinearStream(d, 15, seed=0).draw(N_WARMUP + N_ROWS)
    model = SETTINGS["paper, K = 5"]
    times = alternate(
        {
            "plain": lambda: plain_numpy(X[:n], y[:n], 50, 5, 0.001, N_WARMUP),
            "ours": lambda: SparseRegressor(**model).partial_fit(X, y),
        },
        repeats,
    )
    per_row = times["plain"] / n, times["ours"] / len(X)
    return {
        "what": f"plain NumPy Algorithm 1 over ours, K = 5, d = {d}",
        "value": per_row[0] / per_row[1],
        "unit": "times",
        "goal": ">= 50",
        "microseconds_per_row": per_row[0] * 1e6,
    }


def row_by_row(repeats, d=1000, n=1000):
    X, y = SparseLinearStream(d, 15, seed=0).draw(n)

    def one_by_one(model):
        for i in range(n):
            model.partial_fit(X[i : i + 1], y[i : i + 1])

    times = alternate(
        {"sgd": lambda: one_by_one(SGDRegressor(penalty="l1")), "ours": lambda: one_by_one(SparseRegressor(20))},
        repeats,
    )
    return {
        "what": f"SGDRegressor.partial_fit over ours, one row per call, d = {d}",
        "value": times["sgd"] / times["ours"],
        "unit": "times",
        "goal": "> 1",
        "microseconds_per_row": times["ours"] / n * 1e6,
    }


IMPORTS = {
    "import thresher": "import thresher",
    "import SparseRegressor": "import thresher.estimators.sparse_regressor",
}
IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
FIRST_CALL = """
import time
import numpy as np
from thresher import SparseRegressor
from thresher.speed import fold_with_dsyrk
X = np.random.default_rng(0).standard_normal((300, 20))
t = time.perf_counter()
SparseRegressor(2).partial_fit(X, X[:, 0])
print(time.perf_counter() - t)
"""
PEAK = """
import numpy as np
from scipy.linalg import blas
from thresher import SparseRegressor
from thresher.speed import fold_with_dsyrk

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

d = {d}
X = np.random.default_rng(0).standard_normal((600, d))
SparseRegressor({model}).partial_fit(X[:300, :50], X[:300, 0])
blas.dsyrk(1.0, X[:256].T)  # BLAS takes its own working memory once
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = high_water()
model = SparseRegressor({model})
for _ in range(3):
    model.partial_fit(X, X[:, 0])
print((high_water() - before) / (8 * d * d))
"""


def start_up(repeats):
    rows = []
    for what, code in IMPORTS.items():
        values = [run_python(IMPORT.format(code)) for _ in range(repeats)]
        rows.append({"what": what, "value": statistics.median(values), "unit": "s", "goal": ""})
    with tempfile.TemporaryDirectory() as cache:
        for what in ("first call, cold cache", "first call, warm cache"):
            rows.append({"what": what, "value": run_python(FIRST_CALL, NUMBA_CACHE_DIR=cache), "unit": "s", "goal": ""})
    for d in (1000, 4000):
        for what, model in (("s = 20", "20"), ("default", ""), ("prequential", "selection='prequential'")):
            value = run_python(PEAK.format(d=d, model=model))
            rows.append({"what": f"peak memory, {what}, d = {d}", "value": value, "unit": "x 8 d^2 bytes"})
            rows[-1] |= {"goal": "<= 1.25"}
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "sparse_rounds.json")
    arguments = parser.parse_args()
    repeats = 3 if arguments.quick else 5
    rows = []

    def report(*new):
        for row in new:
            rows.append(row)
            extra = f"{row['microseconds_per_row']:10.1f} us/row" if "microseconds_per_row" in row else ""
            print(f"{row['what']:62} {row['value']:8.2f} {row['unit']:14} {row['goal']:8} {extra}", flush=True)

    for threads in sorted({1, cores()}):
        report(*ratios_to_dsyrk(1000, list(SETTINGS), threads, repeats))
    for d in (500,) if arguments.quick else (500, 2000, 4000):
        report(*ratios_to_dsyrk(d, ["paper, K = 5", "pursuit, s = 20", "default"], cores(), repeats))
    report(*certified_steps())
    report(against_plain_numpy(repeats), row_by_row(repeats), *start_up(repeats))
    arguments.output.parent.mkdir(exist_ok=True)
    arguments.output.write_text(json.dumps({"machine": machine(), "repeats": repeats, "rows": rows}, indent=2) + "\n")


if __name__ == "__main__":
    main()
