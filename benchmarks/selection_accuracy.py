"""How good the default is: SparseRegressor() row by row, beside what one would use with all rows at hand.

Squared error |theta - theta*|^2 after 1000, 3000 and 10,000 rows, on the designs of the paper and harder ones. Every
(design, seed) is kept in benchmarks/results/selection_accuracy.json as it is done, so that a run can be interrupted.

    python benchmarks/selection_accuracy.py run               # hours; --seeds, --designs and --methods make it shorter
    python benchmarks/selection_accuracy.py report            # the tables of docs/choosing.md

abess (pip install abess) is used if it is there.
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import numpy as np
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LassoCV
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import SparseRegressor
from thresher.streams.synthetic import SparseLinearStream

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
GRID = (1, 2, 3, 4, 5, 6, 8, 10, 12, 13, 14, 15, 16, 18, 20, 25, 30, 40, 50, 60)
PAPER = {"step_size": 0.001, "n_steps": 5, "n_warmup": 100, "fit_intercept": False, "standardize": False}
OURS = {
    "auto": {},
    "auto, hard": {"rule": "hard"},
    "auto, reciprocal": {"rule": "reciprocal"},
    "auto, n_steps auto": {"rule": "hard", "n_steps": "auto"},
    "folds": {"selection": "folds"},
    "prequential": {"selection": "prequential"},
    **{f"s = {s}": {"sparsity": s} for s in GRID},
    "hard, s = 15": {"sparsity": 15, "rule": "hard"},
    "reciprocal, s = 15": {"sparsity": 15, "rule": "reciprocal"},
}
STREAMED = OURS | {f"OHT {s}": PAPER | {"sparsity": s} for s in (20, 30, 50)}
BATCH = ("oracle", "LassoCV", "abess", "abess, gic")


def squared_error(coef, truth):
    return float(((coef - truth) ** 2).sum())


def stream(parameters, X, y, truth):
    """Errors at the three times, number of features, and how many of them are false."""
    model, start, result = SparseRegressor(**parameters), 0, []
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


def table(runs, design, methods):
    """Mean over seeds: methods by times."""
    cells = [runs[key] for key in runs if key.split("/")[0] == design]
    return {m: np.mean([[row[0] for row in cell[m]] for cell in cells], axis=0) for m in methods if m in cells[0]}


def print_table(means, rows, names, i):
    print("| design | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for row in rows:
        print(f"| {row} | " + " | ".join(f"{means[row][name][i]:.4f}" for name in names) + " |")
    print("| mean | " + " | ".join(f"{np.mean([means[row][name][i] for row in rows]):.4f}" for name in names) + " |\n")


def report(arguments):
    runs = json.loads(arguments.output.read_text())["runs"]
    means = {}
    for design in DESIGNS:
        means[design] = table(runs, design, [*STREAMED, *BATCH])
        fixed = np.array([means[design][f"s = {s}"] for s in GRID])
        means[design]["hindsight"] = fixed.min(axis=0) if design != "null" else np.zeros(len(TIMES))
    for i, n in enumerate(TIMES):
        print(f"After {n:,} rows:\n")
        others = [name for name in STREAMED if name.startswith("OHT")]
        print_table(means, DESIGNS, ["auto", "hindsight", *others, *BATCH[1:], "oracle"], i)
        ratio = np.mean([means[d]["auto"][i] / means[d]["hindsight"][i] for d in DESIGNS if d != "null"])
        print(f"The default over hindsight, mean of the ratios: {ratio:.2f}.\n")
    print("Other ways to choose and other rules, after 1000, 3000 and 10,000 rows:\n")
    names = [name for name in OURS if "s = " not in name] + ["s = 15", "hard, s = 15", "reciprocal, s = 15"]
    print("| design | " + " | ".join(names) + " |\n|" + "---|" * (len(names) + 1))
    for design in DESIGNS:
        cells = [" ".join(f"{value:.4f}" for value in means[design][name]) for name in names]
        print(f"| {design} | " + " | ".join(cells) + " |")
    false = [[row[2] for row in runs[key]["auto"]] for key in runs if key.startswith("null/")]
    shares = ", ".join(f"{share:.1f}" for share in np.mean(false, axis=0))
    print(f"\nFalse features in the null model, mean over seeds: {shares}.")


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
