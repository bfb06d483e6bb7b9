"""How often a stream that does not change is taken for one that does.

    python benchmarks/drift_alarms.py

Rows and errors are drawn independently, and the filter of `SparseRegressor` sees them one by one. Counted is how often
the odds for it climb from even to 10, 100, ... to one. Following begins at a million to one, which is too rare to be
counted, so that rate is extrapolated from the last two decades with twenty cases. Writes results/drift_alarms.json.
"""

import json
from pathlib import Path

import numba
import numpy as np

from thresher.kernels.drift import EVIDENCE, follow_residual, no_drift

ROWS = 20_000_000
DECADES = np.arange(1, 6)
ENOUGH = 20  # cases from which a rate is believed


@numba.njit
def climbs(drift, moments, totals, coef, kept, n_rows, heavy, rng):
    """How often the odds rise from even to each of the decades."""
    k = len(kept)
    X, y, w = np.empty((1, k)), np.empty(1), np.empty(0)
    counts, above = np.zeros(len(DECADES), np.int64), np.zeros(len(DECADES), np.bool_)
    for _ in range(n_rows):
        for j in range(k):
            X[0, j] = rng.standard_normal()
        y[0] = rng.standard_normal()
        if heavy:  # Student's t with three degrees of freedom
            y[0] /= np.sqrt(rng.chisquare(3.0) / 3.0)
        follow_residual(drift, moments, totals, coef, 0.0, kept, k, X, y, w, 0, True)
        evidence = drift.numbers[EVIDENCE]
        if evidence == 0.0:
            above[:] = False
        for i in range(len(DECADES)):
            if not above[i] and evidence >= DECADES[i] * np.log(10.0):
                counts[i] += 1
                above[i] = True
    return counts


def main():
    results = []
    for k in (1, 5, 15, 50):
        for heavy in (False, True):
            # The sums of rows with mean zero and variance one, and of such responses.
            moments, totals = np.zeros((4, k)), np.array([1.0, 0.0, 0.0, 1.0])
            moments[2] = 1.0
            counts = climbs(
                no_drift(k), moments, totals, np.zeros(k), np.arange(k), ROWS, heavy, np.random.default_rng(k)
            )
            known = int((counts >= ENOUGH).sum())
            fall = counts[known - 1] / counts[known - 2]
            rate = counts[known - 1] / ROWS * fall ** (6 - DECADES[known - 1])
            results.append(
                {
                    "features": k,
                    "errors": "Student's t, 3" if heavy else "normal",
                    "rows": ROWS,
                    "odds": [10 ** int(i) for i in DECADES],
                    "climbs": counts.tolist(),
                    "rows_per_alarm": float(f"{1.0 / rate:.2g}"),
                }
            )
            print(f"{k:3} features, {results[-1]['errors']:14}  climbs {counts}  an alarm in {1.0 / rate:.1e} rows")
    path = Path(__file__).parent / "results" / "drift_alarms.json"
    path.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
