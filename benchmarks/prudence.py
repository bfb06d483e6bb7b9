"""What prudence does to the squared error: the default over least squares on the same support, seven designs.

    python benchmarks/prudence.py

For 200 and 1000 columns: mean squared error of `coef_` over that of `overall_coef_`, after a fit to the same rows.
Writes results/prudence.json.
"""

import json
from pathlib import Path

import numpy as np

from price_of_a_feature import DESIGNS, ROWS
from thresher import Gram, SparseRegressor
from thresher.streams.synthetic import SparseLinearStream

SEEDS = {200: range(3000, 3012), 1000: range(3000, 3006)}


def main():
    results = {}
    for d, seeds in SEEDS.items():
        ratios = {}
        for name, design in DESIGNS.items():
            errors = np.zeros((len(ROWS), 2))
            for seed in seeds:
                stream = SparseLinearStream(n_features=d, seed=seed, **{**design, **all_active(design, d)})
                X, y = stream.draw(ROWS[-1])
                summary, start = Gram(d), 0
                for k, stop in enumerate(ROWS):
                    summary.absorb(X[start:stop], y[start:stop])
                    model = SparseRegressor(fit_intercept=False).fit_summary(summary)
                    errors[k] += [((coef - stream.coef) ** 2).sum() for coef in (model.coef_, model.overall_coef_)]
                    start = stop
            ratios[name] = (errors[:, 0] / errors[:, 1]).tolist()
            print(f"{d:5} columns, {name:24}", " ".join(f"{ratio:.3f}" for ratio in ratios[name]), flush=True)
        mean = float(np.exp(np.mean(np.log(list(ratios.values())))))
        print(f"{d:5} columns: {mean:.3f} of the error of least squares")
        results[d] = {"seeds": len(seeds), "mean_ratio": mean, "ratios": ratios}
    path = Path(__file__).parent / "results" / "prudence.json"
    path.write_text(json.dumps({"rows": ROWS, "columns": results}, indent=1) + "\n")


def all_active(design, d):
    """Strong signals are the large ones among as many as there are columns."""
    return {"n_active": d} if "threshold" in design else {}


if __name__ == "__main__":
    main()
