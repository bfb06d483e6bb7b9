"""Which rank rank="auto" chooses, and what that costs beside knowing the rank.

Prints a table and writes benchmarks/results/rank_choice.json. A few minutes.

    python benchmarks/rank_choice.py
"""

import argparse
import json
from collections import Counter
from pathlib import Path

import numpy as np
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import LowRankRegressor, MatrixCompleter, ReducedRankRegressor
from thresher.io.sources.synthetic import LowRankStream


def low_rank(rng, d1, d2, rank, size=1.0):
    return size * rng.standard_normal((d1, rank)) @ rng.standard_normal((rank, d2)) / np.sqrt(rank)


def sensing(d1, d2, rank, n):
    def run(seed, **how):
        stream = LowRankStream((d1, d2), rank, seed=seed)
        X, y = stream.draw(n)
        model = LowRankRegressor(**how).fit(X, y)
        return model.rank_, np.linalg.norm(model.coef_ - stream.coef)

    return run, rank


def responses(p, q, rank, n, size):
    def run(seed, **how):
        rng = np.random.default_rng(seed)
        truth, X = low_rank(rng, p, q, rank, size), rng.standard_normal((n, p))
        model = ReducedRankRegressor(**how).fit(X, X @ truth + rng.standard_normal((n, q)))
        return model.rank_, np.linalg.norm(model.coef_.T - truth)

    return run, rank


def completion(d1, d2, rank, share, noise):
    def run(seed, **how):
        rng = np.random.default_rng(seed)
        truth = low_rank(rng, d1, d2, rank, np.sqrt(rank))
        rows, cols = np.nonzero(rng.random((d1, d2)) < share)
        order = rng.permutation(len(rows))
        rows, cols = rows[order], cols[order]
        values = truth[rows, cols] + noise * rng.standard_normal(len(rows))
        model = MatrixCompleter(shape=(d1, d2), **how).fit(rows, cols, values)
        grid = np.indices((d1, d2)).reshape(2, -1)
        return model.rank_, np.linalg.norm(model.predict(*grid).reshape(d1, d2) - truth)

    return run, rank


CASES = {
    "sensing 12 x 10, rank 2, n = 200": sensing(12, 10, 2, 200),
    "sensing 12 x 10, rank 2, n = 500": sensing(12, 10, 2, 500),
    "sensing 30 x 30, rank 3, n = 1000": sensing(30, 30, 3, 1000),
    "20 responses of rank 4 on 500 features, n = 3000": responses(500, 20, 4, 3000, 1.0),
    "the same, weak": responses(500, 20, 4, 3000, 0.05),
    "completion 100 x 80, rank 3, 20 %, noise 1": completion(100, 80, 3, 0.2, 1.0),
    "completion 100 x 80, rank 3, 40 %, noise 2": completion(100, 80, 3, 0.4, 2.0),
    "completion 500 x 500, rank 5, 5 %, noise 1": completion(500, 500, 5, 0.05, 1.0),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "rank_choice.json")
    arguments = parser.parse_args()
    saved = {"machine": machine(), "seeds": arguments.seeds, "cases": {}}
    print("| setting | edge: ranks chosen | error over known rank | BIC: ranks chosen | error over known rank |")
    print("|---|---|---|---|---|")
    for name, (run, rank) in CASES.items():
        row = {}
        with threadpool_limits(1):
            known = [run(seed, rank=rank)[1] for seed in range(arguments.seeds)]
            for method in ("noise_edge", "ebic"):
                found = [run(seed, selection=method) for seed in range(arguments.seeds)]
                ratio = float(np.median([error / base for (_, error), base in zip(found, known, strict=True)]))
                row[method] = {"ranks": [int(r) for r, _ in found], "error": ratio}
        saved["cases"][name] = row
        cells = []
        for method in ("noise_edge", "ebic"):
            counts = Counter(row[method]["ranks"])
            cells += [", ".join(f"{r} ({n}x)" for r, n in sorted(counts.items())), f"{row[method]['error']:.2f}"]
        print(f"| {name} | " + " | ".join(cells) + " |", flush=True)
        arguments.output.write_text(json.dumps(saved, indent=1) + "\n")


if __name__ == "__main__":
    main()
