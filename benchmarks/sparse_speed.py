"""How close a stream is to the floor: folding the same rows into a Gram by BLAS-3.

Everything is a ratio of medians over alternated repeats within one run, because machines are noisy and
differ. Prints a table and writes benchmarks/results/sparse_speed.json.

    python benchmarks/sparse_speed.py            # all of it, several minutes
    python benchmarks/sparse_speed.py --quick    # d = 200 and 1000, three repeats
"""

import argparse
import json
import statistics
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.linear_model import SGDRegressor
from threadpoolctl import threadpool_limits

from harness import cores, fold_with_dsyrk, machine, run_python, seconds
from thresher import OnlineHardThresholding, SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

N_WARMUP, N_ROWS, CALL = 100, 10_000, 100
PAPER = partial(OnlineHardThresholding, 50, step_size=0.001, n_warmup=N_WARMUP)
SCALED = {"fit_intercept": True, "standardize": True, "n_warmup": N_WARMUP}
ONLINE = {
    "paper, K = 5": partial(PAPER, n_steps=5),
    "paper, K = 20": partial(PAPER, n_steps=20),
    "certified steps, s = 20": partial(OnlineHardThresholding, 20, **SCALED),
    "pursuit, s = 20": partial(OnlineHardThresholding, 20, rule="pursuit", **SCALED),
}
# Of the default, by columns and threads.
GOALS = {(200, 1): "<= 3", (1000, 1): "<= 1.6", (1000, 2): "<= 1.8", (4000, 1): "<= 1.15"}


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


def in_calls(X, y):
    """The default, in calls of a hundred rows."""
    model = SparseRegressor()
    for start in range(0, len(y), CALL):
        model.partial_fit(X[start : start + CALL], y[start : start + CALL])
    return model.coef_


def row(what, value, unit, goal="", **more):
    return {"what": what, "value": value, "unit": unit, "goal": goal, **more}


def default_over_dsyrk(d, threads, repeats):
    X, y = SparseLinearStream(d, 15, seed=0).draw(2 * N_ROWS if d < 1000 else N_ROWS)
    with threadpool_limits(threads):
        times = alternate({"dsyrk": lambda: fold_with_dsyrk(X), "ours": lambda: in_calls(X, y)}, repeats)
    what = f"default, calls of {CALL}, d = {d}, {threads} thread{'s' * (threads > 1)}"
    ratio, per_row = times["ours"] / times["dsyrk"], times["ours"] / len(X) * 1e6
    return row(what, ratio, "x dsyrk", GOALS.get((d, threads), ""), microseconds_per_row=per_row)


def online_over_dsyrk(d, threads, repeats):
    X, y = SparseLinearStream(d, 15, seed=0).draw(N_WARMUP + N_ROWS)
    calls = {"dsyrk": lambda: fold_with_dsyrk(X)}
    for name, new in ONLINE.items():
        new().partial_fit(X[:300], y[:300])
        calls[name] = lambda new=new: new().partial_fit(X, y)
    with threadpool_limits(threads):
        times = alternate(calls, repeats)
    return [
        row(
            f"{name}, d = {d}, {threads} thread{'s' * (threads > 1)}",
            times[name] / times["dsyrk"],
            "x dsyrk",
            microseconds_per_row=times[name] / len(X) * 1e6,
        )
        for name in ONLINE
    ]


def certified_steps(d=1000):
    """The share of steps that the certificate kept within the working set."""
    X, y = SparseLinearStream(d, 15, seed=0).draw(N_WARMUP + N_ROWS)
    rows = []
    for name, new in ONLINE.items():
        tallies = new().partial_fit(X, y)._rounds.inner.tallies
        share = 100.0 * tallies["certified"] / tallies["steps"]
        rows.append(row(f"{name}, d = {d}: steps without a product of order d s", share, "%"))
    return rows


def against_plain_numpy(repeats, d=1000, n=400):
    X, y = SparseLinearStream(d, 15, seed=0).draw(N_WARMUP + N_ROWS)
    new = ONLINE["paper, K = 5"]
    times = alternate(
        {
            "plain": lambda: plain_numpy(X[:n], y[:n], 50, 5, 0.001, N_WARMUP),
            "ours": lambda: new().partial_fit(X, y),
        },
        repeats,
    )
    per_row = times["plain"] / n, times["ours"] / len(X)
    what = f"plain NumPy Algorithm 1 over ours, K = 5, d = {d}"
    return row(what, per_row[0] / per_row[1], "times", ">= 50", microseconds_per_row=per_row[0] * 1e6)


def row_by_row(repeats, d=1000, n=2000):
    X, y = SparseLinearStream(d, 15, seed=0).draw(n)

    def one_by_one(model):
        for i in range(n):
            model.partial_fit(X[i : i + 1], y[i : i + 1]).coef_  # noqa: B018

    times = alternate(
        {"sgd": lambda: one_by_one(SGDRegressor(penalty="l1")), "ours": lambda: one_by_one(SparseRegressor())},
        repeats,
    )
    what = f"SGDRegressor.partial_fit over ours, one row per call, coef_ read, d = {d}"
    return row(what, times["sgd"] / times["ours"], "times", ">= 1", microseconds_per_row=times["ours"] / n * 1e6)


IMPORTS = {
    "import thresher": "import thresher",
    "import SparseRegressor": "import thresher.estimators.sparse_regressor",
    "import sklearn.linear_model": "import sklearn.linear_model",
}
IMPORT = "import time; t = time.perf_counter(); {}; print(time.perf_counter() - t)"
FIRST_CALL = """
import time
import numpy as np
from thresher import SparseRegressor
X = np.random.default_rng(0).standard_normal((500, 30))
t = time.perf_counter()
SparseRegressor().fit(X, X[:, 0])
print(time.perf_counter() - t)
"""
PEAK = """
import numpy as np
from scipy.linalg import blas
from thresher import OnlineHardThresholding, SparseRegressor

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

d = {d}
X = np.random.default_rng(0).standard_normal((600, d))
{model}.partial_fit(X[:300, :50], X[:300, 0])
blas.dsyrk(1.0, X[:256].T)  # BLAS takes its own working memory once
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = high_water()
model = {model}
for _ in range(3):
    model.partial_fit(X, X[:, 0])
print((high_water() - before) / (8 * d * d))
"""


def start_up(repeats):
    rows = []
    for what, code in IMPORTS.items():
        rows.append(row(what, statistics.median(run_python(IMPORT.format(code)) for _ in range(repeats)), "s"))
    first = statistics.median(run_python(FIRST_CALL) for _ in range(repeats))
    rows.append(row("first fit in a new process, 500 x 30, after import", first, "s", "< 0.5"))
    for d in (1000, 4000):
        for what, model in (("default", "SparseRegressor()"), ("s = 20, online", "OnlineHardThresholding(20)")):
            value = run_python(PEAK.format(d=d, model=model))
            rows.append(row(f"peak memory, {what}, d = {d}", value, "x 8 d^2 bytes", "<= 1.25"))
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, help="where to keep the result, such as results/sparse_speed.json")
    arguments = parser.parse_args()
    repeats = 3 if arguments.quick else 5
    rows = []

    def report(*new):
        for one in new:
            rows.append(one)
            extra = f"{one['microseconds_per_row']:10.1f} us/row" if "microseconds_per_row" in one else ""
            print(f"{one['what']:66} {one['value']:8.2f} {one['unit']:14} {one['goal']:8} {extra}", flush=True)

    for threads in sorted({1, cores()}):
        for d in (200, 1000) if arguments.quick else (200, 1000, 4000):
            report(default_over_dsyrk(d, threads, repeats))
        report(*online_over_dsyrk(1000, threads, repeats))
    report(*certified_steps())
    report(against_plain_numpy(repeats), row_by_row(repeats), *start_up(repeats))
    if arguments.output is not None:
        arguments.output.write_text(
            json.dumps({"machine": machine(), "repeats": repeats, "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
