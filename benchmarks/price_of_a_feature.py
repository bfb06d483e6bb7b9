"""What a feature should cost: the default criterion beside other prices, for 200 columns and seven designs.

    python benchmarks/price_of_a_feature.py

A candidate of k features costs k a log n + 2 b log C(d, k). The default has a = 1 and b falling with n; see
docs/choosing.md. For each price: squared error of the candidate chosen on the path, over that of the default, geometric
mean over designs and row counts, and false features per model. Writes results/price_of_a_feature.json.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from thresher import Ebic, Gram
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.selection.criteria import misfit
from thresher.selection.subset_family import SubsetFamily

D, SEEDS, ROWS = 200, range(3000, 3024), (300, 1000, 3000, 10_000)
DESIGNS = {
    "independent": {},
    "Toeplitz 0.5": {"correlation": 0.5},
    "condition 500": {"spectrum": (500.0, 100.0, *range(10, 0, -1))},
    "5 active": {"n_active": 5},
    "40 active": {"n_active": 40},
    "40 active, Toeplitz 0.5": {"n_active": 40, "correlation": 0.5},
    "strong": {"n_active": D, "signal": 0.4, "threshold": 1.0},
}
PRICES = [(1.0, 0.0), (1.0, 0.15), (1.0, 0.25), (1.0, 0.33), (1.0, 0.5), (1.0, 1.0)]
PRICES += [(0.8, 0.4), (0.7, 0.5), (0.6, 0.6), (0.5, 0.8), (0.5, 1.0)]


def chosen(path, price):
    """The size with the least criterion; None is the default."""
    if price is None:
        return Ebic().select(path, 0).chosen
    a, b = price
    return int(np.argmin(misfit(path) + a * np.log(path.weight) * path.sizes + 2.0 * b * path.log_models))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--save", action="store_true", help="keep the result in benchmarks/results")
    save = parser.parse_args().save
    found = {}
    for name, design in DESIGNS.items():
        for seed in SEEDS:
            stream = SparseLinearStream(n_features=D, seed=seed, **design)
            X, y = stream.draw(ROWS[-1])
            summary, start = Gram(D), 0
            for stop in ROWS:
                path = SubsetFamily(centred=False).path(summary.absorb(X[start:stop], y[start:stop]))
                for price in (None, *PRICES):
                    coef = path.coef(chosen(path, price))
                    false = np.count_nonzero(coef[stream.coef == 0.0])
                    found.setdefault((price, name, stop), []).append((((coef - stream.coef) ** 2).sum(), false))
                start = stop
    results = []
    for price in (None, *PRICES):
        ratios = {
            name: [
                float(np.mean(found[price, name, n], axis=0)[0] / np.mean(found[None, name, n], axis=0)[0])
                for n in ROWS
            ]
            for name in DESIGNS
        }
        false = float(np.mean([np.mean(found[price, name, n], axis=0)[1] for name in DESIGNS for n in ROWS]))
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        results.append({"price": price or "default", "mean_ratio": mean, "false_features": false, "ratios": ratios})
        print(f"{price or 'default'!s:12} {mean:.3f} of the default's error, {false:.2f} false features")
    path = Path(__file__).parent / "results" / "price_of_a_feature.json"
    if save:
        path.write_text(json.dumps({"rows": ROWS, "seeds": len(SEEDS), "prices": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
