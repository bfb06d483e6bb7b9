"""What parsimony gives up: the default size beside that of the criterion alone, on exactly linear models.

    python benchmarks/parsimony.py

200 columns, up to 100,000 rows. Coefficients are alike (normal, as in the paper) or fall off, so that no number of them
is the right one. For each: in how many of the streams the list is shortened, to how many features on average, and the
mean squared error over that of the criterion alone. Writes results/parsimony.json.
"""

import json
from pathlib import Path

import numpy as np

from price_of_a_feature import DESIGNS
from thresher import Ebic, Gram
from thresher.selection.features import Features
from thresher.streams.synthetic import SparseLinearStream

D, SEEDS, ROWS = 200, range(4000, 4020), (1000, 10_000, 100_000)
BLOCK = 10_000
FALLING = {
    "0.8 to the power of j": lambda j: 0.8**j,
    "1 / j": lambda j: 1.0 / (1.0 + j),
    "1 / j, with a tenth of the noise": lambda j: 10.0 / (1.0 + j),
}


def streams():
    """(name, stream) of every design and seed."""
    for name, design in DESIGNS.items():
        for seed in SEEDS:
            yield name, SparseLinearStream(n_features=D, seed=seed, **design)
    for name, falls in FALLING.items():
        for seed in SEEDS:
            stream = SparseLinearStream(n_features=D, seed=seed)
            stream.coef[:] = np.where(np.arange(D) < 40, falls(np.arange(D)), 0.0)
            yield name, stream


def compare(stream):
    """Size and squared error, by the criterion alone and by default, after each number of rows."""
    summary, found = Gram(D), []
    for stop in ROWS:
        while summary.n_samples < stop:
            summary.absorb(*stream.draw(min(BLOCK, stop - summary.n_samples)))
        path = Features(centred=False).path(summary)
        sizes = [criterion.select(path, stop).chosen for criterion in (Ebic(parsimony=0.0), Ebic())]
        found.append([(size, ((path.coef(size) - stream.coef) ** 2).sum()) for size in sizes])
    return found


def main():
    found = {}
    for name, stream in streams():
        found.setdefault(name, []).append(compare(stream))
    results = {}
    for name, runs in found.items():
        sizes, errors = np.moveaxis(np.array(runs), 3, 0)  # streams x rows x (alone, default)
        results[name] = {
            "shortened": np.count_nonzero(sizes[..., 1] < sizes[..., 0], axis=0).tolist(),
            "features": sizes.mean(axis=0).tolist(),
            "squared_error": errors.mean(axis=0).tolist(),
        }
        for n, k, size, error in zip(ROWS, *results[name].values(), strict=True):
            print(
                f"{name:34} {n:7,} rows: shortened in {k:2} of {len(runs)}, {size[0]:5.1f} -> {size[1]:5.1f} features, "
                f"{error[1] / error[0]:.2f} of the error ({error[0]:.2g})"
            )
    path = Path(__file__).parent / "results" / "parsimony.json"
    path.write_text(json.dumps({"rows": ROWS, "seeds": len(SEEDS), "designs": results}, indent=1) + "\n")


if __name__ == "__main__":
    main()
