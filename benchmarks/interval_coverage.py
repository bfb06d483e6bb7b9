"""How often 95 % intervals cover the true coefficients: those of the table, over the features that were kept.

d = 200 columns, ten active features with coefficients from a normal distribution, some of them too small to be found;
300 and 2000 rows that stream in; three kinds of noise of variance one. Beside the intervals of ``summary()`` stand
those of least squares on the true support, which nobody can have. Prints a table; --save keeps it in
benchmarks/results/interval_coverage.json. Ten minutes.

    python benchmarks/interval_coverage.py             # 300 runs for every cell
    python benchmarks/interval_coverage.py --runs 50
"""

import argparse
import json
from pathlib import Path

import numpy as np

from harness import machine
from thresher import SparseRegressor

D, ACTIVE, LEVEL = 200, 10, 0.95
SIGNAL = {300: 0.5, 2000: 0.2}
RESULTS = Path(__file__).parent / "results" / "interval_coverage.json"


def design(rng, n, rho):
    """Columns that correlate by rho^|i - j|."""
    X = rng.standard_normal((n, D))
    for j in range(1, D):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho * rho) * X[:, j]
    return X


def noise(rng, kind, X, truth):
    """Of variance one; "varying": with a variance that grows with the square of the most important feature."""
    if kind == "t3":
        return rng.standard_t(3, len(X)) / np.sqrt(3.0)
    e = rng.standard_normal(len(X))
    return e if kind == "normal" else e * np.sqrt((0.5 + X[:, np.argmax(np.abs(truth))] ** 2) / 1.5)


def one_run(seed, n, rho, kind):
    """Whether each interval of a kept feature covers, its width, and the widths of the oracle's."""
    rng = np.random.default_rng(seed)
    X, truth = design(rng, n, rho), np.zeros(D)
    active = rng.choice(D, ACTIVE, replace=False)
    truth[active] = SIGNAL[n] * rng.standard_normal(ACTIVE)
    y = X @ truth + noise(rng, kind, X, truth)
    model = SparseRegressor().partial_fit(X, y).finish()
    covered, widths = {}, {}
    for method in ("posterior", "debiased"):
        found = model.confidence_intervals(LEVEL, method)
        target = truth[found.features]
        covered[method] = (found.lower <= target) & (target <= found.upper)
        widths[method] = found.upper - found.lower
    Z = np.c_[np.ones(n), X[:, active]]
    inverse = np.linalg.inv(Z.T @ Z)
    residual = y - Z @ (inverse @ (Z.T @ y))
    widths["oracle"] = 2 * 1.96 * np.sqrt(residual @ residual / (n - ACTIVE - 1) * np.diagonal(inverse))[1:]
    return covered, widths


def cell(n, rho, kind, n_runs):
    runs = [one_run(seed, n, rho, kind) for seed in range(n_runs)]
    result = {"oracle width": float(np.median(np.concatenate([widths["oracle"] for _, widths in runs])))}
    for method in ("posterior", "debiased"):
        shares = np.array([covered[method].sum() for covered, _ in runs])
        counts = np.array([len(covered[method]) for covered, _ in runs])
        share = shares.sum() / counts.sum()
        # Intervals of one run share a noise level and a support, so runs are what is independent.
        error = np.sqrt(((shares - share * counts) ** 2).sum()) / counts.sum()
        width = float(np.median(np.concatenate([widths[method] for _, widths in runs])))
        result[method] = {"covered": float(share), "standard error": float(error), "width": width}
        result["intervals"] = int(counts.sum())
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=300)
    parser.add_argument("--save", action="store_true", help=f"keep the result in {RESULTS.name}")
    arguments = parser.parse_args()
    cells = []
    print(f"{arguments.runs} runs, d = {D}, {ACTIVE} active: kept features covered at {100 * LEVEL:g} %, median width")
    for n in SIGNAL:
        for rho in (0.0, 0.5):
            for kind in ("normal", "t3", "varying"):
                found = cell(n, rho, kind, arguments.runs)
                cells.append({"n": n, "correlation": rho, "noise": kind, **found})
                texts = (
                    f"{method} {100 * found[method]['covered']:.1f} % +- {100 * found[method]['standard error']:.1f}, "
                    f"width {found[method]['width']:.3f}"
                    for method in ("posterior", "debiased")
                )
                print(
                    f"n = {n:4}, rho = {rho}, {kind:7}: {'; '.join(texts)}; oracle {found['oracle width']:.3f}",
                    flush=True,
                )
    if arguments.save:
        saved = {"machine": machine(), "runs": arguments.runs, "d": D, "active": ACTIVE, "cells": cells}
        RESULTS.write_text(json.dumps(saved, indent=2) + "\n")


if __name__ == "__main__":
    main()
