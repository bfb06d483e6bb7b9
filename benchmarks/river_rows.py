"""What a dictionary row costs, beside river's own linear regression without a scaler.

Each model takes blocks of 128 rows in turn, in one process with one BLAS thread, and each dictionary is made right
before the call, as in a stream. Rows are the 10,000th and later ones; folds of the buffer and choices of the support
that fall among them count. Ratios below one are in favour of thresher. Prints a table and writes
benchmarks/results/river_rows.json.

    python benchmarks/river_rows.py            # a minute or two
    python benchmarks/river_rows.py --quick    # d = 1000 only, fewer blocks
"""

import argparse
import json
import statistics
import time
from pathlib import Path

import pandas as pd
from river import linear_model
from threadpoolctl import threadpool_limits

from harness import machine
from thresher.integrations.river import OnlineHardThresholding, SparseRegressor
from thresher.io.sources.synthetic import SparseLinearStream

N_BEFORE, BLOCK = 10_000, 128
OURS = {
    "SparseRegressor()": SparseRegressor(),
    "SparseRegressor(20)": SparseRegressor(20),
    "OnlineHardThresholding(20)": OnlineHardThresholding(20, fit_intercept=True, standardize=True),
}


def learned(X, y, names):
    """Models that have seen the first rows: ours all of them; river's cost does not depend on how many."""
    models = {"river": linear_model.LinearRegression()}
    for x, target in zip(X[:BLOCK].tolist(), y[:BLOCK].tolist(), strict=True):
        models["river"].learn_one(dict(zip(names, x, strict=True)), target)
    for name, model in OURS.items():
        models[name] = model.clone()
        models[name].learn_many(pd.DataFrame(X[:N_BEFORE], columns=names), y[:N_BEFORE])
    return models


def row_times(d, n_blocks):
    """Seconds of each call, by model: predicting, learning."""
    X, y = SparseLinearStream(d, min(15, d // 2), seed=0).draw(N_BEFORE + n_blocks * BLOCK)
    names = [f"x{j}" for j in range(d)]
    models = learned(X, y, names)
    times = {name: ([], []) for name in models}
    for start in range(N_BEFORE, len(X), BLOCK):
        for name, model in models.items():
            predicting, learning = times[name]
            for values, target in zip(
                X[start : start + BLOCK].tolist(), y[start : start + BLOCK].tolist(), strict=True
            ):
                row = dict(zip(names, values, strict=True))
                begin = time.perf_counter()
                model.predict_one(row)
                between = time.perf_counter()
                model.learn_one(row, target)
                learning.append(time.perf_counter() - between)
                predicting.append(between - begin)
    return times


def block_median(values):
    """Seconds per row: the median of the means of blocks, each of which has its fold in it."""
    return statistics.median(statistics.fmean(values[i : i + BLOCK]) for i in range(0, len(values), BLOCK))


def ratios(d, n_blocks):
    times = row_times(d, n_blocks)
    rows = []
    for name in OURS:
        (predict, learn), (river_predict, river_learn) = times[name], times["river"]
        both = [a + b for a, b in zip(predict, learn, strict=True)]
        river_both = [a + b for a, b in zip(river_predict, river_learn, strict=True)]
        for what, ours, theirs, middle in (
            ("learn_one, mean over a block", learn, river_learn, block_median),
            ("learn_one, median row", learn, river_learn, statistics.median),
            ("predict_one, median row", predict, river_predict, statistics.median),
            ("predict_one and learn_one, mean over a block", both, river_both, block_median),
        ):
            rows.append(
                {
                    "what": f"{what}, {name}, d = {d}",
                    "value": middle(ours) / middle(theirs),
                    "unit": "x river",
                    "goal": "< 1" if d == 1000 else "",
                    "microseconds": middle(ours) * 1e6,
                    "microseconds_river": middle(theirs) * 1e6,
                }
            )
    return rows


def growth(d):
    """Features that come one at a time, one with each row: seconds beside those of as many rows that bring none."""
    model, names = SparseRegressor(20), [f"x{j}" for j in range(d)]
    values = [1.0 + j % 7 for j in range(d)]
    begin = time.perf_counter()
    for j in range(d):
        model.learn_one(dict(zip(names[: j + 1], values, strict=False)), float(j % 5))
    growing = time.perf_counter() - begin
    begin = time.perf_counter()
    for j in range(d):
        model.learn_one(dict(zip(names, values, strict=True)), float(j % 5))
    return {
        "what": f"{d} features one at a time, over as many rows with all {d}",
        "value": growing / (time.perf_counter() - begin),
        "unit": "times",
        "goal": "",
        "microseconds": growing / d * 1e6,
    }


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--output", type=Path, help="where to keep the result, such as results/river_rows.json")
    arguments = parser.parse_args()
    rows = []

    def report(*new):
        for row in new:
            rows.append(row)
            micros = f"{row['microseconds']:9.1f} us"
            if "microseconds_river" in row:
                micros += f", river {row['microseconds_river']:.1f}"
            print(f"{row['what']:86} {row['value']:6.2f} {row['unit']:8} {row['goal']:4} {micros}", flush=True)

    n_blocks = 9 if arguments.quick else 25
    with threadpool_limits(1):
        for d in (1000,) if arguments.quick else (1000, 100, 10):
            report(*ratios(d, n_blocks))
        for d in (1000,) if arguments.quick else (1000, 4000):
            report(growth(d))
    if arguments.output is not None:
        arguments.output.write_text(
            json.dumps({"machine": machine(), "blocks": n_blocks, "rows": rows}, indent=2) + "\n"
        )


if __name__ == "__main__":
    main()
