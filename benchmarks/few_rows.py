"""Few rows: the default and the posterior mean beside LassoCV, on simulated data of eight designs.

Error is the mean squared difference between predictions and noiseless responses on 1000 new rows. Every data set is
kept in benchmarks/results/few_rows.json as it is done, so that a run can be interrupted.

    python benchmarks/few_rows.py run                   # d = 200, 1440 data sets
    python benchmarks/few_rows.py run --features 1000 --repeats 1      # 216 of d = 1000
    python benchmarks/few_rows.py run --methods ours    # only what is ours again, beside the saved errors of LassoCV
    python benchmarks/few_rows.py report

The constants of the posterior were chosen on data sets with seeds 1000 and 1001; these have seeds from 2000 on.
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

from few_rows_designs import DESIGNS, cases, draw
from harness import machine
from thresher import SparseRegressor

RESULTS = Path(__file__).parent / "results" / "few_rows.json"
SEED = 2000
OURS = {
    "default": SparseRegressor,
    "posterior mean": lambda: SparseRegressor(estimate="posterior_mean"),
    "ebic": lambda: SparseRegressor(selection="ebic"),
}


def error(model, T, truth):
    return float(((model.predict(T) - truth) ** 2).mean())


def lasso(X, y, T, truth):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        model = LassoCV(cv=5).fit(X, y)
    return {"LassoCV": (error(model, T, truth), int(np.count_nonzero(model.coef_)))}


def ours(X, y, T, truth):
    """Errors and numbers of features, and what the posterior thinks its error is."""
    found = {}
    for name, new in OURS.items():
        model = new().fit(X, y)
        found[name] = error(model, T, truth), len(model.support_)
    return found | {"risk": (model.posterior().prediction_risk(model.summary_), 0)}


def run(arguments):
    store = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"runs": {}}
    store["machine"] = machine()
    chosen = cases(arguments.features, arguments.repeats, SEED)[:: arguments.every]
    functions = {"lasso": lasso, "ours": ours}
    start = time.perf_counter()
    for i, (design, n, n_active, snr, seed) in enumerate(chosen):
        key = f"{arguments.features}/{design}/{n}/{n_active}/{snr}/{seed}"
        done = store["runs"].get(key, {})
        if "lasso" not in arguments.methods and "LassoCV" not in done:
            continue
        for method in arguments.methods:
            if method == "ours" or "LassoCV" not in done:
                X, y, T, truth = draw(design, n, arguments.features, n_active, snr, seed)
                with threadpool_limits(1):
                    done |= functions[method](X, y, T, truth)
                store["runs"][key] = done
        if i % 5 == 4 or i == len(chosen) - 1:
            write(store)
            print(f"{i + 1} of {len(chosen)}, {time.perf_counter() - start:.0f} s", flush=True)


def write(store):
    """A line per data set, five digits."""
    lines = ",\n".join(
        f"  {json.dumps(key)}: {json.dumps({m: [float(f'{e:.5g}'), k] for m, (e, k) in run.items()})}"
        for key, run in store["runs"].items()
    )
    RESULTS.write_text(f'{{"machine": {json.dumps(store["machine"])},\n "runs": {{\n{lines}\n }}}}\n')


def geometric(values):
    return float(np.exp(np.mean(np.log(values))))


def report(arguments):
    runs = json.loads(RESULTS.read_text())["runs"]
    for d in (200, 1000):
        some = {tuple(key.split("/")[1:5]): [] for key in runs if key.startswith(f"{d}/")}
        for key, found in runs.items():
            if key.startswith(f"{d}/") and "default" in found and "LassoCV" in found:
                some[tuple(key.split("/")[1:5])].append(found)
        every = [found for several in some.values() for found in several]
        if not every:
            continue
        kept = np.mean([found["LassoCV"][1] for found in every])
        print(f"\nd = {d}, {len(every)} data sets; LassoCV keeps {kept:.1f} features\n")
        print("| | error / LassoCV's | worst cell of n, s*, SNR | features |\n|---|---|---|---|")
        for name in OURS:
            ratio = {c: [f[name][0] / f["LassoCV"][0] for f in found] for c, found in some.items()}
            cells = {}
            for (_, *cell), values in ratio.items():
                cells.setdefault(tuple(cell), []).extend(values)
            cells = {cell: geometric(values) for cell, values in cells.items() if values}
            worst = max(cells, key=cells.get)
            features = np.mean([found[name][1] for found in every])
            total = geometric([value for values in ratio.values() for value in values])
            print(f"| {name} | {total:.3f} | {cells[worst]:.2f} ({', '.join(worst)}) | {features:.1f} |")
        for design in DESIGNS:
            found = [f for (name, *_), several in some.items() if name == design for f in several]
            parts = [geometric([f[m][0] / f["LassoCV"][0] for f in found]) for m in OURS if found]
            print(f"{design:18} " + " ".join(f"{value:.2f}" for value in parts))
        share = geometric([found["risk"][0] / found["posterior mean"][0] for found in every])
        print(f"the risk that the posterior states, over its error: {share:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--features", type=int, choices=[200, 1000], default=200)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--every", type=int, default=1, help="run every so many of the data sets")
    parser.add_argument("--methods", nargs="+", choices=["lasso", "ours"], default=["lasso", "ours"])
    arguments = parser.parse_args()
    run(arguments) if arguments.what == "run" else report(arguments)


if __name__ == "__main__":
    main()
