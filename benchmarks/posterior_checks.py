"""Whether inclusion probabilities mean what they say, and what the default costs with many rows.

    python benchmarks/posterior_checks.py       # some minutes; saves benchmarks/results/posterior_checks.json

Calibration: 500 data sets drawn from sparse models, features sorted by their probability, and the share of each class
that is in the model. Many rows: n = 50 d and 200 d; prediction error of the default over that of least squares on the
support that the extended BIC chooses.
"""

import json
from itertools import pairwise
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

import thresher
from few_rows_designs import draw, toeplitz
from harness import machine
from thresher import Gram, SparseRegressor

CLASSES = (0.0, 0.1, 0.2, 0.4, 0.6, 0.9, 1.0)
N_DATA_SETS = 500
SEED = 3000


def sparse_model(i):
    """Features, rows, active features, correlation and size of the effects vary from one data set to the next."""
    rng = np.random.default_rng((SEED, i))
    d, n = (100, 200)[i % 2], (100, 200, 400, 1000)[i // 2 % 4]
    n_active, rho, size = (3, 8, 20)[i // 8 % 3], (0.0, 0.5)[i // 24 % 2], (0.2, 0.5)[i // 48 % 2]
    X, coef = toeplitz(rng, n, d, rho), np.zeros(d)
    coef[rng.choice(d, n_active, replace=False)] = size * rng.standard_normal(n_active)
    return X, X @ coef + rng.standard_normal(n), coef


def calibration():
    probability, active = [], []
    for i in range(N_DATA_SETS):
        X, y, coef = sparse_model(i)
        probability.append(thresher.posterior(Gram(X.shape[1]).absorb(X, y)).inclusion_probabilities)
        active.append(coef != 0.0)
    probability, active = np.concatenate(probability), np.concatenate(active)
    rows = []
    for low, high in pairwise(CLASSES):
        mine = (probability >= low) & ((probability < high) | (high == 1.0))
        share = float(active[mine].mean())
        rows.append({"from": low, "to": high, "features": int(mine.sum()), "active": share})
        print(f"probability {low:.1f} to {high:.1f}: {mine.sum():6} features, {100 * share:5.1f} % active")
    return rows


def many_rows(d=100):
    rows = []
    for n in (50 * d, 200 * d):
        for n_active in (5, 20, 60):
            for snr in (0.1, 1.0, 10.0):
                for design in ("independent", "Toeplitz 0.5", "Toeplitz 0.9", "blocks", "dense plus sparse"):
                    for seed in (SEED, SEED + 1):
                        X, y, T, truth = draw(design, n, d, n_active, snr, seed)
                        summary = Gram(d).absorb(X, y)
                        models = [SparseRegressor(selection=s).fit_summary(summary) for s in ("posterior", "ebic")]
                        ours, plain = (float(((m.predict(T) - truth) ** 2).mean()) for m in models)
                        kept = [len(m.support_) for m in models]
                        rows.append({"n": n, "active": n_active, "snr": snr, "design": design, "ratio": ours / plain})
                        rows[-1]["features"] = kept
    ratios = np.array([row["ratio"] for row in rows])
    for name in sorted({row["design"] for row in rows}):
        mine = np.array([row["ratio"] for row in rows if row["design"] == name])
        print(f"{name:18} geometric mean {np.exp(np.log(mine).mean()):.3f}, 90 % {np.quantile(mine, 0.9):.2f}")
    total = float(np.exp(np.log(ratios).mean()))
    within = float((ratios <= 1.05).mean())
    print(f"all: geometric mean {total:.3f}, within 1.05 in {100 * within:.0f} %, most {ratios.max():.2f}")
    return {"geometric_mean": total, "within_1.05": within, "data_sets": rows}


def main():
    with threadpool_limits(1):
        result = {"machine": machine(), "calibration": calibration(), "many_rows": many_rows()}
    path = Path(__file__).parent / "results" / "posterior_checks.json"
    path.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
