"""Streams that change: the default beside all rows counted equally, and beside an earlier filter of this package.

    python benchmarks/drift.py changing             # nine kinds of change, ten seeds: about ten minutes
    python benchmarks/drift.py stationary           # streams that do not change, calls of 1, 20 and 50 rows
    python benchmarks/drift.py flip                 # one coefficient changes its sign
    python benchmarks/drift.py cost                 # processor time beside drift=None

The earlier filter is that of commit e248a35, without parsimony. Its errors are in results/drift_filter.json; they were
saved by `python benchmarks/drift.py filter`, run in an environment with that commit. Streams are in drift_streams.py.
Constants were chosen with seeds 100 to 105.
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from drift_streams import STATIONARY, T, changing, excess, predictions, sign_flip, squared_error, stationary
from thresher import SparseRegressor

RESULTS = Path(__file__).parent / "results"
FILTER = RESULTS / "drift_filter.json"
KINDS = "abcdefghi"
AFTER = slice(T // 2, T // 2 + 2000)


def errors(stream, predicted):
    """From row 500 on, in the 2000 rows after half time, and in the last fifth."""
    return {
        "excess": excess(stream, predicted),
        "after": excess(stream, predicted, AFTER.start, AFTER.stop),
        "late": excess(stream, predicted, T - T // 5),
    }


def run_filter(seeds):
    """The earlier filter; for commit e248a35."""
    from thresher.selection.ebic import Ebic

    found = json.loads(FILTER.read_text()) if FILTER.exists() else {}
    for seed in seeds:
        for kind in KINDS:
            if f"{kind},{seed}" not in found:
                stream = changing(kind, seed)
                model = SparseRegressor(selection=Ebic(parsimony=0.0))
                found[f"{kind},{seed}"] = errors(stream, predictions(model, stream))
                FILTER.write_text(json.dumps(found, indent=0) + "\n")


def run_changing(seeds, kinds=KINDS):
    """Excess errors, and their ratios to those of the filter."""
    before, result = json.loads(FILTER.read_text()), {}
    for kind in kinds:
        runs = []
        for seed in seeds:
            stream = changing(kind, seed)
            ours = [
                errors(stream, predictions(SparseRegressor(drift=drift), stream)) for drift in ("auto", "full", None)
            ]
            runs.append((*ours, before[f"{kind},{seed}"]))
        mean = {
            name: {part: float(np.mean([run[i][part] for run in runs])) for part in ("excess", "after", "late")}
            for i, name in enumerate(("auto", "full", "none", "filter"))
        }
        for name in ("auto", "full"):
            mean[f"{name} over filter"] = {part: mean[name][part] / mean["filter"][part] for part in mean[name]}
        result[kind] = mean
        print(
            f"{kind}  drift=None {1000 * mean['none']['excess']:7.1f}  filter {1000 * mean['filter']['excess']:7.1f}  "
            + "  ".join(
                f"{name} {1000 * mean[name]['excess']:7.1f}, ratio {mean[name + ' over filter']['excess']:.2f}, "
                f"after the change {mean[name + ' over filter']['after']:.2f}, late {mean[name]['late'] * 1000:.1f}"
                for name in ("auto", "full")
            ),
            flush=True,
        )
    return result


def run_stationary(seeds, calls):
    """By how much the error is larger than with drift=None, in percent."""
    result = {}
    for kind in (*STATIONARY, "AR errors and features"):
        for call in calls:
            more = {"auto": [], "full": []}
            for seed in seeds:
                stream = stationary(kind, seed)
                plain = squared_error(stream, predictions(SparseRegressor(drift=None), stream, call))
                for drift, some in more.items():
                    error = squared_error(stream, predictions(SparseRegressor(drift=drift), stream, call))
                    some.append(100.0 * (error / plain - 1.0))
            for drift, some in more.items():
                found = {"mean": float(np.mean(some)), "most": float(np.max(some)), "seeds": len(some)}
                result[f"{kind}, calls of {call}, {drift}"] = found
                print(f"{kind:24} calls of {call:2}, {drift}: {found['mean']:+.3f} %, at most {found['most']:+.3f} %")
    return result


def run_flip(seeds):
    """Mean absolute error over the floor, by 500 rows."""
    result = {}
    for drift in ("auto", "full"):
        table = []
        for seed in seeds:
            stream = sign_flip(seed)
            error = np.abs(predictions(SparseRegressor(drift=drift), stream) - stream.y)
            table.append(error.reshape(-1, 500).mean(axis=1))
        floor = 0.3 * np.sqrt(2.0 / np.pi)
        result[drift] = (np.mean(table, axis=0) / floor).tolist()
        ratios = " ".join(f"{one:.2f}" for one in result[drift])
        print(f"sign flip at row 3000, {drift}, error over the floor by 500 rows: {ratios}")
    return result


def run_cost(repeats=7):
    """Processor time of a stream in calls of 50 rows, over that with drift=None; medians, alternated."""
    result = {}
    for d, n in ((200, 20_000), (1000, 12_000)):
        for changes in (False, True):
            rng = np.random.default_rng(0)
            X = rng.standard_normal((n, d))
            y = X[:, :10].sum(axis=1) + rng.standard_normal(n)
            if changes:
                y[n // 4 :] -= 2.0 * X[n // 4 :, :10].sum(axis=1)
            ratios = []
            for _ in range(repeats):
                taken = []
                for drift in ("auto", "full", None):
                    model, start = SparseRegressor(drift=drift), time.process_time()
                    for i in range(0, n, 50):
                        model.partial_fit(X[i : i + 50], y[i : i + 50])
                    taken.append(time.process_time() - start)
                ratios.append((taken[0] / taken[2], taken[1] / taken[2]))
            auto, full = np.median(ratios, axis=0).tolist()
            name = f"d = {d}, " + ("changes at a quarter" if changes else "stationary")
            result[name] = {"auto": auto, "full": full}
            print(f"{name}: auto {auto:.2f}, full {full:.2f} of drift=None", flush=True)
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=["filter", "changing", "stationary", "flip", "cost"])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--first", type=int, default=0, help="the first seed")
    parser.add_argument("--kinds", default=KINDS)
    parser.add_argument("--calls", type=int, nargs="+", default=[50, 20, 1])
    parser.add_argument("--save", action="store_true", help="keep the result in results/")
    arguments = parser.parse_args()
    seeds = range(arguments.first, arguments.first + arguments.seeds)
    with threadpool_limits(1):
        match arguments.what:
            case "filter":
                run_filter(seeds)
                return
            case "changing":
                result = run_changing(seeds, arguments.kinds)
            case "stationary":
                result = run_stationary(seeds, arguments.calls)
            case "flip":
                result = run_flip(seeds)
            case _:
                result = run_cost()
    if arguments.save:
        path = RESULTS / f"drift_{arguments.what}.json"
        path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
