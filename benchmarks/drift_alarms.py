"""How often a stream that does not change is taken for one that does.

    python benchmarks/drift_alarms.py

Rows and errors are drawn independently, and the filter of `SparseRegressor` sees them one by one: in one long stream,
and in many short ones, since evidence is weakest at the start. Counted is how often it climbs from nothing to 1, 2,
... standard errors; following begins at five. Writes results/drift_alarms.json.
"""

import json
from pathlib import Path

import numba
import numpy as np

from thresher.kernels.drift import DOUBT, ENOUGH, GAIN, SQUARES, follow_residual, no_drift

# (streams, rows of each)
LONG, SHORT = (1, 10_000_000), (20_000, 400)
LEVELS = np.arange(1.0, ENOUGH + 1.0)


@numba.njit
def error_of(kind, rng):
    """An error with the mean zero."""
    if kind == 1:  # Student's t with three degrees of freedom
        return rng.standard_normal() / np.sqrt(rng.chisquare(3.0) / 3.0)
    if kind == 2:
        return rng.exponential() - 1.0
    if kind == 3:
        return np.exp(rng.standard_normal()) - np.exp(0.5)
    if kind == 4:  # one in twenty
        return (1.0 if rng.random() < 0.05 else 0.0) - 0.05
    return rng.standard_normal()


KINDS = ("normal", "Student's t, 3", "exponential", "lognormal", "Bernoulli 0.05")


@numba.njit
def climbs(drift, moments, totals, coef, kept, n_rows, kind, rng):
    """How often the evidence rises from nothing to each of the levels."""
    k = len(kept)
    X, y, w = np.empty((1, k)), np.empty(1), np.empty(0)
    counts, above = np.zeros(len(LEVELS), np.int64), np.zeros(len(LEVELS), np.bool_)
    for _ in range(n_rows):
        for j in range(k):
            X[0, j] = rng.standard_normal()
        y[0] = error_of(kind, rng)
        follow_residual(drift, moments, totals, 1, coef, 0.0, kept, k, X, y, w, 0, True)
        gain, root = drift.numbers[GAIN], np.sqrt(DOUBT + drift.numbers[SQUARES])
        if gain <= 0.0:
            above[:] = False
        for i in range(len(LEVELS)):
            if not above[i] and gain >= LEVELS[i] * root:
                counts[i] += 1
                above[i] = True
    return counts


def counted(k, kind, n_streams, n_rows):
    """Climbs in all streams."""
    # The sums of rows with mean zero and variance one, and of such responses.
    moments, totals = np.zeros((4, k)), np.array([1.0, 0.0, 0.0, 1.0])
    moments[2] = 1.0
    rng = np.random.default_rng(k)
    streams = (
        climbs(no_drift(k), moments, totals, np.zeros(k), np.arange(k), n_rows, kind, rng) for _ in range(n_streams)
    )
    return sum(streams).tolist()


def main():
    results = []
    for k in (1, 15, 50):
        for kind, errors in enumerate(KINDS):
            found = {"features": k, "errors": errors}
            for n_streams, n_rows in (LONG, SHORT):
                found[f"{n_streams} x {n_rows} rows"] = counted(k, kind, n_streams, n_rows)
            results.append(found)
            print(", ".join(f"{name}: {value}" for name, value in found.items()), flush=True)
    path = Path(__file__).parent / "results" / "drift_alarms.json"
    path.write_text(json.dumps({"standard_errors": LEVELS.tolist(), "results": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
