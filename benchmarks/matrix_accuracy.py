"""How well matrices and groups are recovered, beside other methods.

Prints tables and writes benchmarks/results/matrix_accuracy.json. Less than 20 minutes on two cores.

    python benchmarks/matrix_accuracy.py                 # all of it
    python benchmarks/matrix_accuracy.py completion      # one part
"""

import argparse
import json
import time
from pathlib import Path

import numpy as np
from sklearn.linear_model import LinearRegression

from thresher import LowRankRegressor, MatrixCompleter, ReducedRankRegressor, SparseRegressor
from thresher.io.sources.synthetic import LowRankStream

SEEDS = (0, 1, 2)


def errors(times, seed, **parameters):
    """|coef - truth|^2 after the warm-up and so many rounds, on the paper's stream."""
    stream, n_warmup = LowRankStream(seed=seed), parameters.get("n_warmup", 0)
    model, seen, result = LowRankRegressor(**parameters), 0, []
    for t in times:
        model.partial_fit(*stream.draw(n_warmup + t - seen))
        seen = n_warmup + t
        result.append(float(((model.coef_ - stream.coef) ** 2).sum()))
    return result


def averaged(times, **parameters):
    return np.mean([errors(times, seed, **parameters) for seed in SEEDS], axis=0)


def curves():
    """MSE along the stream for K = 5, t0 = 100: eta = 0.001 beside certified steps, and the slopes of log MSE in log t.

    Below them the expectation for least squares given the tangent space, r (d1 + d2 - r) / (n - r (d1 + d2 - r)).
    """
    times, result = [1000, 1500, 2000, 2500, 3000, 4000, 5000, 6000, 7000, 8000, 9000, 10_000], {}
    print(f"{'t':22}" + "".join(f"{t:9d}" for t in times) + "   slope from 2000, 3000, 5000")

    def report(name, mse):
        steep = [float(np.polyfit(np.log(times[k:]), np.log(mse[k:]), 1)[0]) for k in (2, 4, 6)]
        result[name] = {"times": times, "mse": list(mse), "slope from 2000, 3000, 5000": steep}
        line = "".join(f"{m:9.4f}" for m in mse)
        print(f"{name:22}" + line + "   " + ", ".join(f"{slope:.2f}" for slope in steep), flush=True)

    for s in (5, 15):
        for step_size in (0.001, "auto"):
            report(f"s = {s}, eta = {step_size}", averaged(times, rank=s, n_steps=5, step_size=step_size, n_warmup=100))
    free = 5 * (50 + 50 - 5)
    report("expected for s = 5", [free / (t + 100 - free) for t in times])
    return result


def reduced_rank(p=500, q=20, r=4, n=3000):
    """Squared error of the coefficients over its expectation at the oracle rate r (p + q - r) / n; 3 seeds."""
    found = {"reduced rank": [], "least squares": []}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        B = rng.standard_normal((p, r)) @ rng.standard_normal((r, q)) / np.sqrt(p)
        X = rng.standard_normal((n, p))
        Y = X @ B + rng.standard_normal((n, q))
        models = {
            "reduced rank": ReducedRankRegressor(r).fit(X, Y),
            "least squares": LinearRegression().fit(X, Y),
        }
        for name, model in models.items():
            found[name].append(((model.coef_.T - B) ** 2).sum() / (r * (p + q - r) / n))
    result = {name: float(np.mean(values)) for name, values in found.items()}
    print("\n".join(f"{name:15} {value:8.3f} x the oracle rate" for name, value in result.items()), flush=True)
    return result


def impute(rows, cols, values, shape, rank, n_iterations, tol=1e-5):
    """SVD imputation: fill with column means, decompose, fill with the approximation, and so on."""
    observed, filled = np.zeros(shape, bool), np.zeros(shape)
    observed[rows, cols], filled[rows, cols] = True, values
    data = filled.copy()
    filled[~observed] = np.broadcast_to(data.sum(axis=0) / observed.sum(axis=0), shape)[~observed]
    for _ in range(n_iterations):
        u, s, vt = np.linalg.svd(filled, full_matrices=False)
        low_rank = (u[:, :rank] * s[:rank]) @ vt[:rank]
        before, filled = filled, np.where(observed, data, low_rank)
        if np.linalg.norm(filled - before) <= tol * np.linalg.norm(before):
            break
    return low_rank


def completion(d=500, r=5, share=0.2, noise=0.5):
    """RMSE on held-out entries (noise-free), 500 x 500 of rank 5 from 20 % of the entries; 3 seeds, all methods."""
    found = {}
    for seed in SEEDS:
        rng = np.random.default_rng(seed)
        truth = rng.standard_normal((d, r)) @ rng.standard_normal((r, d))
        order = rng.permutation(d * d)
        seen, held = order[: int(share * d * d)], order[int(share * d * d) :]
        rows, cols = np.divmod(seen, d)
        values = truth[rows, cols] + noise * rng.standard_normal(len(seen))
        means = np.bincount(cols, values, d) / np.bincount(cols, minlength=d)
        start = time.perf_counter()
        ours = MatrixCompleter(r, shape=(d, d)).partial_fit(rows, cols, values).finish()
        seconds = time.perf_counter() - start
        guesses = {
            "thresher, one pass": ours.coef_,
            "thresher, one pass, shrink=False": ours.set_params(shrink=False).coef_,
            "thresher, fit": MatrixCompleter(r, shape=(d, d)).fit(rows, cols, values).coef_,
            "column means": np.broadcast_to(means, (d, d)),
            "SVD of the matrix filled with column means": impute(rows, cols, values, (d, d), r, 1),
            "SVD imputation, 20 iterations": impute(rows, cols, values, (d, d), r, 20),
            "SVD imputation, stopped at a change of 1e-4": impute(rows, cols, values, (d, d), r, 500, 1e-4),
            "SVD imputation, stopped at a change of 1e-5": impute(rows, cols, values, (d, d), r, 500),
            "SVD imputation, to the end": impute(rows, cols, values, (d, d), r, 1000, 1e-9),
        }
        for name, guess in guesses.items():
            rmse = np.sqrt(np.mean((guess - truth).reshape(-1)[held] ** 2))
            found.setdefault(name, []).append(float(rmse))
    result = dict(found, seconds=seconds)
    print("\n".join(f"{name:45}" + "".join(f"{v:9.5f}" for v in values) for name, values in found.items()), flush=True)
    return result


def groups():
    """How often exactly the 6 active of 100 one-hot groups with 5 levels each are found, in one pass; 10 seeds."""
    return {f"effects of standard deviation {signal}": found_groups(signal) for signal in (0.3, 0.5)}


def found_groups(signal, n_groups=100, n_levels=5, active=6, n=2000):
    found = {"groups": [], "fit": [], "two more": [], "cardinality": []}
    for seed in range(10):
        rng = np.random.default_rng(seed)
        levels = rng.integers(0, n_levels, (n, n_groups))
        X = (levels[:, :, None] == np.arange(n_levels)).reshape(n, -1).astype(float)
        labels = np.repeat(np.arange(n_groups), n_levels)
        truth = np.sort(rng.choice(n_groups, active, replace=False))
        effects = np.zeros((n_groups, n_levels))
        effects[truth] = signal * rng.standard_normal((active, n_levels))
        y = X @ effects.reshape(-1) + rng.standard_normal(n)
        chosen = {
            "groups": SparseRegressor(active, groups=labels).partial_fit(X, y).selected_groups_,
            "fit": SparseRegressor(active, groups=labels).fit(X, y).selected_groups_,
            "two more": SparseRegressor(active + 2, groups=labels).partial_fit(X, y).selected_groups_,
            "cardinality": np.unique(labels[SparseRegressor(active * n_levels).partial_fit(X, y).support_]),
        }
        for name, kept in chosen.items():
            found[name].append([len(np.intersect1d(kept, truth)), len(kept)])
    exact = {name: sum(hit == total == active for hit, total in rows) for name, rows in found.items()}
    print(
        f"signal {signal}: by groups {exact['groups']} of 10 (fit: {exact['fit']}), by cardinality "
        f"{exact['cardinality']}, which touches {[total for _, total in found['cardinality']]} groups; "
        f"with two groups more, all six are among them in {sum(hit == active for hit, _ in found['two more'])} of 10",
        flush=True,
    )
    return found


PARTS = [curves, reduced_rank, completion, groups]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("parts", nargs="*", metavar="part", help=", ".join(part.__name__ for part in PARTS))
    parser.add_argument("--output", type=Path, default=Path(__file__).parent / "results" / "matrix_accuracy.json")
    arguments = parser.parse_args()
    wanted = arguments.parts or [part.__name__ for part in PARTS]
    saved = json.loads(arguments.output.read_text()) if arguments.output.exists() else {}
    for part in PARTS:
        if part.__name__ in wanted:
            print(f"\n{part.__name__}: {part.__doc__}")
            saved[part.__name__] = part()
            arguments.output.write_text(json.dumps(saved, indent=2) + "\n")


if __name__ == "__main__":
    main()
