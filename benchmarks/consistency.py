"""Whether the error keeps falling as rows come in: small and decaying coefficients, beside least squares by an oracle.

The oracle knows which coefficients are not zero (all of them, if they decay); its estimate is least squares on these.
Printed are ratios of mean squared errors.

    python benchmarks/consistency.py            # about twenty minutes; saves benchmarks/results/consistency.json
"""

import argparse
import json
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import Gram, SparseRegressor
from thresher.solvers.least_squares import least_squares

D = 200
TIMES = (10_000, 30_000, 100_000, 300_000, 1_000_000)
COEFFICIENTS = {
    "8 of 1, 30 of 0.05": (lambda j: np.where(j < 8, 1.0, np.where(j < 38, 0.05, 0.0)), 1.0),
    "0.8^j, noise 0.1": (lambda j: 0.8**j, 0.1),
    "0.8^j, noise 1": (lambda j: 0.8**j, 1.0),
    "1/j": (lambda j: 1.0 / (j + 1.0), 1.0),
}
DESIGNS = {"identity": 0.0, "Toeplitz 0.5": 0.5}


def rows(rng, n, rho, coef, noise):
    """Gaussian rows with correlations rho^|i - j|, by an autoregression over the columns."""
    X = rng.standard_normal((n, len(coef)))
    if rho:
        for j in range(1, len(coef)):
            X[:, j] = rho * X[:, j - 1] + np.sqrt(1.0 - rho**2) * X[:, j]
    return X, X @ coef + noise * rng.standard_normal(n)


def run(name, rho, seed):
    """(error, oracle's error, features) at each time."""
    function, noise = COEFFICIENTS[name]
    rng = np.random.default_rng(seed)
    coef = np.zeros(D)
    coef[rng.permutation(D)] = function(np.arange(D))
    model, result = SparseRegressor(), []
    for n in TIMES:
        while getattr(model, "n_samples_seen_", 0) < n:
            model.partial_fit(*rows(rng, 10_000, rho, coef, noise))
        summary: Gram = model.summary_
        oracle = least_squares(summary, np.flatnonzero(coef), True).coef(D)
        result.append(
            (float(((model.coef_ - coef) ** 2).sum()), float(((oracle - coef) ** 2).sum()), len(model.support_))
        )
    return result


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--output", type=Path, help="where to keep the result, such as results/consistency.json")
    arguments = parser.parse_args()
    table = {}
    with threadpool_limits(1):
        for name in COEFFICIENTS:
            for design, rho in DESIGNS.items():
                runs = np.array([run(name, rho, seed) for seed in range(arguments.seeds)])
                error, oracle, kept = runs.mean(axis=0).T
                table[f"{name}, {design}"] = {
                    str(n): {"error": e, "oracle": o, "ratio": e / o, "features": k}
                    for n, e, o, k in zip(TIMES, error, oracle, kept, strict=True)
                }
                ratios = " ".join(f"{e / o:5.2f}" for e, o in zip(error, oracle, strict=True))
                print(f"{name:22} {design:13} {ratios}   features {kept[-1]:.0f}", flush=True)
    if arguments.output is not None:
        result = {"machine": machine(), "times": TIMES, "table": table}
        arguments.output.write_text(json.dumps(result, indent=1) + "\n")


if __name__ == "__main__":
    main()
