"""Streams that change, drawn: `SparseRegressor` beside gradient methods that people use for them, tuned.

    .venv-peers/bin/python benchmarks/drift_peers.py            # about fifteen minutes; prints the table and keeps it

The streams are those of `drift.py`: 200 features, 20,000 rows, calls of 50 rows. For each kind of change, a method has
the setting with the least excess error on the stream of seed 100; others judge it. `SparseRegressor` is not tuned.
"""

import itertools
import json
import sys
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

sys.path.insert(0, str(Path(__file__).parent / "peers"))

from methods.river_linear import maker as river
from methods.sgd import Sgd
from methods.vowpal import maker as vowpal

from drift_streams import D, changing, excess
from thresher import SparseRegressor

RESULTS = Path(__file__).parent / "results" / "drift_peers.json"
KINDS, TUNING, SEEDS, CALL = "abcdefghi", 100, range(5), 50
RATES = (0.0005, 0.001, 0.002, 0.004, 0.008)
# A method, the settings it is tuned over, and how one is made. Constant steps follow changes, others for what stays.
METHODS = {
    "scikit-learn SGD": (
        {"alpha": (1e-4, 1e-2), "eta0": RATES, "power_t": (0.0, 0.25)},
        lambda **setting: Sgd(CALL, "l1", **setting),
    ),
    "river": (
        {"rate": tuple(D * rate for rate in RATES), "l1": (1e-4, 1e-2)},
        lambda **setting: river(1)(D, **setting),
    ),
    "Vowpal Wabbit": (
        {"l1": (1e-7, 1e-5), "learning_rate": (0.5, 2.0, 8.0, 32.0, 128.0, 512.0, 2048.0, 8192.0)},
        lambda **setting: vowpal("")(D, **setting),
    ),
    "Vowpal Wabbit, constant step": (
        {"l1": (1e-7, 1e-5), "learning_rate": RATES},
        lambda **setting: vowpal("--sgd --power_t 0")(D, **setting),
    ),
}


class Ours:
    """`SparseRegressor`, called as the others are."""

    def __init__(self, drift):
        self.model = SparseRegressor(drift=drift)

    def learn(self, X, y):
        self.model.partial_fit(X, y)

    def predict(self, X):
        return self.model.predict(X)


def error(learner, stream):
    predicted, level, n = np.zeros(len(stream.y)), 0.0, 0.0
    for start in range(0, len(stream.y), CALL):
        rows = slice(start, start + CALL)
        if start:
            predicted[rows] = learner.predict(stream.X[rows]) + level
        # Gradient methods get responses without their level, a mean with the half-life of 250 rows.
        if not isinstance(learner, Ours):
            decay = 2.0 ** (-CALL / 250.0)
            level, n = (decay * n * level + stream.y[rows].sum()) / (decay * n + CALL), decay * n + CALL
        learner.learn(stream.X[rows], stream.y[rows] - level)
    found = excess(stream, predicted)
    return found if np.isfinite(found) else np.inf


def tuned(grid, make, kind):
    stream = changing(kind, TUNING)
    settings = [dict(zip(grid, values, strict=True)) for values in itertools.product(*grid.values())]
    return min(settings, key=lambda setting: error(make(**setting), stream))


def main():
    result = json.loads(RESULTS.read_text()) if RESULTS.exists() else {}
    with threadpool_limits(1), np.errstate(all="ignore"):
        for kind in KINDS:
            streams = [changing(kind, seed) for seed in SEEDS]
            row = {}
            for drift in ("auto", "full"):
                row[f'drift="{drift}"'] = float(np.mean([error(Ours(drift), stream) for stream in streams]))
            for name, (grid, make) in METHODS.items():
                setting = tuned(grid, make, kind)
                row[name] = float(np.mean([error(make(**setting), stream) for stream in streams]))
                row[f"{name}, setting"] = setting
            result[kind] = row
            RESULTS.write_text(json.dumps(result, indent=1) + "\n")
            print(
                kind, {name: round(1000 * value, 1) for name, value in row.items() if "setting" not in name}, flush=True
            )


if __name__ == "__main__":
    main()
