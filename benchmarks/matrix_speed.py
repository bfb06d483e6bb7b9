"""How fast rounds of matrices are: against plain NumPy, and against one pass over the Gram in float32.

Everything is a ratio of medians over alternated repeats within one run, because machines are noisy and
differ. Prints a table and writes benchmarks/results/matrix_speed.json.

    python benchmarks/matrix_speed.py            # a few minutes
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from harness import cores, machine, run_python, seconds
from thresher import LowRankRegressor, MatrixCompleter, ReducedRankRegressor
from thresher.io.sources.synthetic import LowRankStream

SHAPE, RANK, K, ETA = (50, 50), 5, 5, 0.001
N_BEFORE, N_TIMED = 2600, 64


def plain_rounds(A, b, theta, X, y, n):
    """Algorithm 1 as one writes it first, for some more rows."""
    for x, v in zip(X, y, strict=True):
        n += 1
        A += np.outer(x, x)
        b += x * v
        for _ in range(K):
            z = theta - ETA * (A @ theta - b) / n
            u, s, vt = np.linalg.svd(z.reshape(SHAPE), full_matrices=False)
            theta = ((u[:, :RANK] * s[:RANK]) @ vt[:RANK]).reshape(-1)
    return theta, n


def sensing(threads, repeats):
    stream = LowRankStream(SHAPE, RANK, seed=0)
    model = LowRankRegressor(RANK, n_steps=K, step_size=ETA, n_warmup=100)
    certified = LowRankRegressor(RANK, n_steps=K, n_warmup=100)
    X, y = stream.draw(N_BEFORE)
    model.partial_fit(X, y)
    certified.partial_fit(X, y)
    A, b, theta, n = X.reshape(N_BEFORE, -1).T @ X.reshape(N_BEFORE, -1), None, model.coef_.reshape(-1), N_BEFORE
    b = X.reshape(N_BEFORE, -1).T @ y
    single, vector = A.astype(np.float32), theta.astype(np.float32)
    times = {"plain": [], "ours": [], "certified": [], "pass": []}
    with threadpool_limits(threads):
        for _ in range(repeats):
            X, y = stream.draw(N_TIMED)
            rows = X.reshape(N_TIMED, -1)
            start = time.perf_counter()
            theta, n = plain_rounds(A, b, theta, rows[:10], y[:10], n)
            times["plain"].append((time.perf_counter() - start) / 10)
            time.sleep(0.2)  # NumPy's own BLAS threads keep a core busy for a while after their last call
            times["ours"].append(seconds(lambda X=X, y=y: model.partial_fit(X, y)) / N_TIMED)
            times["certified"].append(seconds(lambda X=X, y=y: certified.partial_fit(X, y)) / N_TIMED)
            times["pass"].append(seconds(lambda: [single @ vector for _ in range(50)]) / 50)
    plain, ours, auto, one_pass = (float(np.median(times[name])) for name in times)
    label = f"{threads} thread{'s' * (threads > 1)}"
    return [
        {"what": f"plain NumPy over ours, {label}", "value": plain / ours, "unit": "times", "goal": ">= 10"},
        {"what": f"a step over one pass G32 @ v, {label}", "value": ours / K / one_pass, "unit": "", "goal": "<= 2"},
        {"what": f"a certified step over G32 @ v, {label}", "value": auto / K / one_pass, "unit": "", "goal": ""},
        {"what": f"a sample with K = 5 steps, {label}", "value": ours * 1e3, "unit": "ms", "goal": ""},
    ]


PEAK = """
import numpy as np
from scipy.linalg import blas
from thresher import LowRankRegressor
from thresher.io.sources.synthetic import LowRankStream

def high_water():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

small = LowRankStream((6, 6), 2, seed=0)
LowRankRegressor(2).partial_fit(*small.draw(300))
stream, model = LowRankStream(({d}, {d}), 5, seed=0), LowRankRegressor(5, n_warmup=3 * {d} ** 2 // 5)
X, y = stream.draw(64)
blas.dsyrk(1.0, np.tile(X.reshape(64, -1), (4, 1)).T)  # BLAS takes its own working memory once
with open("/proc/self/clear_refs", "w") as reset:
    reset.write("5")
before = high_water()
while not hasattr(model, "coef_") or model.n_samples_seen_ < 3 * {d} ** 2 // 5 + 20:
    model.partial_fit(X, y)
print((high_water() - before) / (8 * {d} ** 4))
"""


def others(repeats):
    rng = np.random.default_rng(0)
    p, q, n = 500, 20, 1500
    X = rng.standard_normal((n, p))
    Y = X[:, :4] @ rng.standard_normal((4, q)) + rng.standard_normal((n, q))
    many = ReducedRankRegressor(4).partial_fit(X, Y)
    with threadpool_limits(1):
        absorbing = np.median([seconds(lambda: many.partial_fit(X, Y)) / n for _ in range(repeats)])
        reading = np.median([seconds(lambda: many.partial_fit(X[:1], Y[:1]).coef_) for _ in range(repeats)])
    label = f"many responses, p = {p}, q = {q}, rank 4, 1 thread"
    rows = [
        {"what": f"{label}: a row", "value": absorbing * 1e3, "unit": "ms", "goal": ""},
        {"what": f"{label}: a read", "value": reading * 1e3, "unit": "ms", "goal": ""},
    ]
    MatrixCompleter(2, shape=(120, 120)).partial_fit(*rng.integers(0, 120, (2, 2000)), rng.standard_normal(2000))
    for d, r, total in ((500, 5, 50_000), (1000, 10, 1_000_000)):
        truth = rng.standard_normal((d, r)) @ rng.standard_normal((r, d))
        i, j = rng.integers(0, d, total), rng.integers(0, d, total)
        values = truth[i, j] + rng.standard_normal(total)
        model = MatrixCompleter(r, shape=(d, d))
        elapsed = seconds(lambda model=model, i=i, j=j, v=values: model.partial_fit(i, j, v))
        error = np.sqrt(np.mean((model.coef_ - truth) ** 2))
        rows.append({"what": f"completion, {d} x {d}, rank {r}: 100,000 entries", "unit": "s", "goal": ""})
        rows[-1]["value"] = elapsed / total * 1e5
        rows.append({"what": f"  its error after {total:,} over sqrt(r (2d - r) / n)", "unit": "", "goal": ""})
        rows[-1]["value"] = error / np.sqrt(r * (2 * d - r) / total)
    return rows


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, help="where to keep the result, such as results/matrix_speed.json")
    arguments = parser.parse_args()
    rows = []

    def report(*new):
        for row in new:
            rows.append(row | {"value": float(row["value"])})
            print(f"{row['what']:66} {row['value']:8.2f} {row['unit']:16} {row['goal']}", flush=True)

    print(f"{SHAPE[0]} x {SHAPE[1]}, rank {RANK}, K = {K}, after {N_BEFORE} samples")
    for threads in sorted({1, cores()}):
        report(*sensing(threads, 9))
    value = run_python(PEAK.format(d=SHAPE[0]))
    report({"what": "peak memory", "value": value, "unit": "x float64 Gram", "goal": "<= 1.6"})
    report(*others(5))
    if arguments.output is not None:
        result = {"machine": machine(), "rows": rows}
        arguments.output.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
