"""How good the default is: SparseRegressor() in one pass, beside batch methods that have all rows in memory.

Squared error |theta - theta*|^2 after 1000, 3000 and 10,000 rows, on the designs of the paper and harder ones. Every
(design, seed) is kept in benchmarks/results/selection_accuracy.json as it is done, so that a run can be interrupted.

    python benchmarks/selection_accuracy.py run               # hours; --seeds, --designs and --methods make it shorter
    python benchmarks/selection_accuracy.py report            # the tables of docs/choosing.md

Saved runs are kept; --again replaces those of the methods that are named. abess needs `pip install abess`.
"""

import argparse
import json
import time
import warnings
from functools import partial
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import OnlineHardThresholding, SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

TIMES = (1000, 3000, 10_000)
SPECTRUM = (500.0, 100.0, *range(10, 0, -1))
DESIGNS = {
    "identity": {},
    "Toeplitz 0.5": {"correlation": 0.5},
    "Toeplitz 0.9": {"correlation": 0.9},
    "kappa 500": {"spectrum": SPECTRUM},
    "strong": {"n_active": 1000, "signal": 0.4, "threshold": 1.0},
    "s* = 5": {"n_active": 5},
    "s* = 60": {"n_active": 60},
    "null": {"n_active": 0},
    "heavy tails": {"tail": 3.0},
}
PAPER = {"step_size": 0.001, "n_steps": 5, "n_warmup": 100}
STREAMED = {
    "auto": SparseRegressor,
    "cv": partial(SparseRegressor, selection="cv"),
    **{f"OHT {s}": partial(OnlineHardThresholding, s, **PAPER) for s in (20, 30, 50)},
}
BATCH = ("oracle", "LassoCV", "abess", "abess, gic")


def squared_error(coef, truth):
    return float(((coef - truth) ** 2).sum())


def stream(new, X, y, truth):
    """Errors at the three times, number of features, and how many of them are false."""
    model, start, result = new(), 0, []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for n in TIMES:
            model.partial_fit(X[start:n], y[start:n])
            start = n
            false = int(np.count_nonzero(truth[model.support_] == 0.0))
            result.append((squared_error(model.coef_, truth), len(model.support_), false))
    return result


def oracle(X, y, truth):
    coef = np.zeros_like(truth)
    support = np.flatnonzero(truth)
    if len(support):
        design = np.column_stack([np.ones(len(X)), X[:, support]])
        coef[support] = np.linalg.lstsq(design, y, rcond=None)[0][1:]
    return coef


def lasso(X, y, truth):
    # The best penalty lies between 0.05 and 0.5 of the largest; a range of 0.02 makes the grid finer there, and faster.
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return LassoCV(eps=0.02, cv=5, precompute=True).fit(X, y).coef_


def splicing(criterion):
    def fit(X, y, truth):
        from abess import LinearRegression

        # Sizes up to 100 hold all of ours; abess's own limit of 652 would take it minutes.
        return LinearRegression(support_size=range(101), ic_type=criterion).fit(X, y).coef_

    return fit


FITTED = {"oracle": oracle, "LassoCV": lasso, "abess": splicing("ebic"), "abess, gic": splicing("gic")}


def run_one(method, X, y, truth):
    if method in STREAMED:
        return stream(STREAMED[method], X, y, truth)
    result = []
    for n in TIMES:
        coef = FITTED[method](X[:n], y[:n], truth)
        result.append(
            (squared_error(coef, truth), int(np.count_nonzero(coef)), int(np.count_nonzero(coef[truth == 0.0])))
        )
    return result


def run(arguments):
    store = json.loads(arguments.output.read_text()) if arguments.output.exists() else {"runs": {}}
    store["machine"] = machine()
    for seed in range(arguments.first_seed, arguments.seeds):
        for design in arguments.designs:
            X = y = None
            done = store["runs"].setdefault(f"{design}/{seed}", {})
            for method in arguments.methods:
                if method in done and not arguments.again:
                    continue
                if X is None:
                    source = SparseLinearStream(seed=100 + seed, **DESIGNS[design])
                    X, y = source.draw(TIMES[-1])
                start = time.perf_counter()
                with threadpool_limits(1):
                    done[method] = run_one(method, X, y, source.coef)
                errors = " ".join(f"{row[0]:.5f}" for row in done[method])
                print(f"{design:14} {seed:3} {method:20} {errors}  {time.perf_counter() - start:6.1f} s", flush=True)
            write(store, arguments.output)


def write(store, path):
    """A line per stream, six digits."""
    runs = {
        stream: {method: [[float(f"{error:.6g}"), *sizes] for error, *sizes in rows] for method, rows in done.items()}
        for stream, done in store["runs"].items()
    }
    lines = ",\n".join(f"  {json.dumps(stream)}: {json.dumps(done)}" for stream, done in runs.items())
    path.write_text(f'{{"machine": {json.dumps(store["machine"])},\n "runs": {{\n{lines}\n }}}}\n')


def mean_errors(runs, design):
    """Mean over seeds: methods by times."""
    cells = [run for key, run in runs.items() if key.split("/")[0] == design]
    return {m: np.mean([[row[0] for row in cell[m]] for cell in cells], axis=0) for m in [*STREAMED, *BATCH]}


def print_table(head, lines):
    print("| " + " | ".join(head) + " |\n|" + "---|" * len(head))
    for name, values in lines:
        print(f"| {name} | " + " | ".join(f"{value:.4f}" for value in values) + " |")
    print()


def report(arguments):
    runs = json.loads(arguments.output.read_text())["runs"]
    means = {design: mean_errors(runs, design) for design in DESIGNS}
    print("Mean over designs:\n")
    overall = [(m, np.mean([means[design][m] for design in DESIGNS], axis=0)) for m in [*STREAMED, *BATCH]]
    print_table(["method", *(f"{n:,} rows" for n in TIMES)], overall)
    parts = {"ours": ("auto", "cv", "OHT 30", "OHT 50", "oracle"), "others": ("auto", "LassoCV", "abess", "abess, gic")}
    for i, n in enumerate(TIMES):
        for part, names in parts.items():
            print(f"After {n:,} rows, {part}:\n")
            print_table(["design", *names], [(d, [means[d][name][i] for name in names]) for d in DESIGNS])
    for name in ("auto", "cv"):
        false = np.mean([[row[2] for row in run[name]] for key, run in runs.items() if key.startswith("null/")], axis=0)
        print(f"{name}, false features without signal: " + ", ".join(f"{value:.1f}" for value in false))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--designs", nargs="+", choices=list(DESIGNS), default=list(DESIGNS))
    parser.add_argument("--methods", nargs="+", default=[*STREAMED, *BATCH])
    parser.add_argument("--again", action="store_true", help="replace what is there")
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "selection_accuracy.json")
    arguments = parser.parse_args()
    run(arguments) if arguments.what == "run" else report(arguments)


if __name__ == "__main__":
    main()
