"""One small object of every kind that can be in a file, at more than one moment of its life."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import numpy as np
from sklearn.base import clone

from thresher import (
    Cardinality,
    ConstrainedRegressor,
    Entries,
    Gram,
    Groups,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    OnlineHardThresholding,
    Rank,
    ReducedRankRegressor,
    SparseRegressor,
    baselines,
)
from thresher.io.ingest import Ingest
from thresher.io.sources.batches import Batch, Place
from thresher.io.sources.columns import Columns
from thresher.selection.cross_validation import CrossValidation
from thresher.selection.ebic import Ebic
from thresher.selection.noise_edge import NoiseEdge
from thresher.sparsity.reciprocal import Reciprocal

D = 6


def rows(n: int, d: int = D, seed: int = 0) -> tuple[Any, Any]:
    """Rows of a sparse linear model."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 1.0
    return X, 2.0 * X[:, 1] - X[:, d - 1] + 0.3 * rng.standard_normal(n)


def matrices(n: int) -> tuple[Any, Any]:
    """Samples of a matrix of rank one, 2 x 3."""
    X, _ = rows(n)
    return X.reshape(n, 2, 3), X @ np.outer([1.0, -1.0], [1.0, 0.5, 2.0]).reshape(-1)


def responses(n: int) -> tuple[Any, Any]:
    """Rows with three responses."""
    X, y = rows(n)
    return X, np.column_stack([y, -y, X[:, 0]])


def entries(n: int) -> tuple[Any, Any, Any]:
    """Observed entries of a matrix of rank one, 4 x 5."""
    rng = np.random.default_rng(3)
    i, j = rng.integers(0, 4, n), rng.integers(0, 5, n)
    return i, j, (1.0 + i) * (j - 1.5)


def ids(n: int) -> tuple[Any, Any, Any]:
    """The same with names."""
    i, j, values = entries(n)
    return [f"r{k}" for k in i], [f"c{k}" for k in j], values


def summaries() -> Iterator[tuple[str, Any]]:
    """Summaries: empty, with rows in the buffer, and folded."""
    X, y = rows(300)
    weights = np.linspace(0.5, 2.0, 300)
    yield "Gram, empty", Gram(3)
    yield "Gram", Gram(D).absorb(X[:20], y[:20])
    yield "Gram, folded", Gram(D).absorb(X, y, weights)
    yield "Gram, float32", Gram(D, np.float32).absorb(X[:150], y[:150])
    yield "Gram, rows held", Gram(D, hold_rows=True).absorb(X[:70], y[:70])
    yield "Gram, grown", Gram(D).absorb(X[:140], y[:140]).grown(D + 1)
    yield "Gram, merged", Gram(D).absorb(X[:140], y[:140]).merge(Gram(D).absorb(X[140:], y[140:]))
    yield "Gram, half-life", Gram(D, half_life=50.0).absorb(X[:140], y[:140], weights[:140])
    yield "Gram, half-life in seconds", Gram(D, half_life=7.0).absorb(X[:40], y[:40], times=np.arange(40.0))
    yield "Gram, window", Gram(D, window=60).absorb(X[:140], y[:140])
    yield "Gram, window of time", Gram(D, window=30.0).absorb(X[:140], y[:140], times=np.arange(140.0) / 2.0)
    yield "Gram, exact window", Gram(D, window=90, exact_window=True).absorb(X[:140], y[:140], weights[:140])
    times = np.arange(200.0)
    yield "Gram, exact window of time", Gram(D, window=70.0, exact_window=True).absorb(X[:200], y[:200], times=times)
    yield "Gram, scaled", Gram(D).absorb(X[:40], y[:40]).scaled(0.5)
    yield "MultiResponse", MultiResponse(D, 3).absorb(*responses(200))
    yield "Entries", Entries((4, 5)).absorb(*entries(40))
    yield "Entries, scaled", Entries((4, 5)).absorb(*entries(40)).scaled(0.5)


def estimators() -> Iterator[tuple[str, Any]]:
    """Estimators: not fitted, in the first block, and later; with every kind of selection."""
    X, y = rows(170)
    yield "SparseRegressor, not fitted", SparseRegressor(3, groups=[0, 0, 1, 1, 2, 2])
    yield "SparseRegressor", SparseRegressor().partial_fit(X, y)
    yield "SparseRegressor, finished", SparseRegressor(random_state=7).partial_fit(*rows(400)).finish()
    yield "SparseRegressor, posterior mean", SparseRegressor(estimate="posterior_mean").fit(*rows(40))
    changed, response = rows(900)
    response[400:] -= 3.0 * changed[400:, 1]
    yield "SparseRegressor, drift", SparseRegressor(horizon=70).partial_fit(changed, response)
    yield "SparseRegressor, drift with rows", SparseRegressor(drift="full").partial_fit(changed, response)
    yield "SparseRegressor, fit", SparseRegressor(2, dtype="float32").fit(X, y)
    yield "SparseRegressor, groups", SparseRegressor(groups=["a", "b"] * 3).partial_fit(X[:50], y[:50])
    yield "SparseRegressor, cv", SparseRegressor(selection=CrossValidation(n_folds=2)).partial_fit(X[:60], y[:60])
    yield "SparseRegressor, ebic", SparseRegressor(selection=Ebic(0.5)).partial_fit(X[:60], y[:60])
    yield "SparseRegressor, half-life", SparseRegressor(half_life=40.0).partial_fit(*rows(300))
    timed = SparseRegressor(half_life=timedelta(seconds=9), selection="ebic")
    yield "SparseRegressor, half-life in seconds", timed.partial_fit(X[:60], y[:60], times=np.arange(60.0))
    yield "SparseRegressor, window", SparseRegressor(window=90).partial_fit(X, y)
    yield "SparseRegressor, exact window", SparseRegressor(window=90, exact_window=True).partial_fit(X, y)
    yield "OnlineHardThresholding", OnlineHardThresholding(2).partial_fit(X, y)
    yield (
        "OnlineHardThresholding, auto",
        OnlineHardThresholding(step_size=0.01, n_warmup=40).partial_fit(X[:60], y[:60]),
    )
    algorithm = OnlineHardThresholding(selection="algorithm", n_steps=2)
    yield "OnlineHardThresholding, algorithm", algorithm.partial_fit(X[:60], y[:60])
    pursuit = OnlineHardThresholding(2, rule="pursuit", fit_intercept=True, standardize=True, round_size=3)
    yield "OnlineHardThresholding, pursuit", pursuit.partial_fit(X[:50], y[:50])
    reciprocal = OnlineHardThresholding(2, rule="reciprocal", dtype="float32")
    yield "OnlineHardThresholding, reciprocal", reciprocal.partial_fit(X[:50], y[:50])
    grouped = OnlineHardThresholding(1, groups=[0, 0, 1, 1, 2, 2], n_warmup=5)
    yield "OnlineHardThresholding, groups", grouped.partial_fit(X[:50], y[:50])
    yield from constrained()
    yield "LowRankRegressor", LowRankRegressor(1).partial_fit(*matrices(90))
    yield "LowRankRegressor, auto", LowRankRegressor(fit_intercept=True).fit(*matrices(40))
    yield "LowRankRegressor, cv", LowRankRegressor(selection="cv", n_warmup=30).partial_fit(*matrices(40))
    yield "ReducedRankRegressor", ReducedRankRegressor().partial_fit(*responses(60))
    yield "ReducedRankRegressor, half-life", ReducedRankRegressor(half_life=20.0).partial_fit(*responses(60))
    yield "ReducedRankRegressor, window", ReducedRankRegressor(1, window=20).partial_fit(*responses(60))
    yield "ReducedRankRegressor, cv", ReducedRankRegressor(selection="cv").partial_fit(*responses(60))
    yield "ReducedRankRegressor, one response", ReducedRankRegressor(1).partial_fit(X[:60], y[:60])
    yield "MatrixCompleter", MatrixCompleter(1, shape=(4, 5)).partial_fit(*entries(40))
    yield "MatrixCompleter, auto", MatrixCompleter(selection=NoiseEdge(3.0), offsets=True).partial_fit(*ids(60))


def constrained() -> Iterator[tuple[str, Any]]:
    """Sets with compiled rounds, and those that are projected onto in NumPy."""
    X, y = rows(60)
    matrix_groups = Groups(["a", "b"], 1)
    yield "ConstrainedRegressor", ConstrainedRegressor(fit_intercept=True).partial_fit(X, y)
    yield "ConstrainedRegressor, fit", ConstrainedRegressor(max_iter=20).fit(X, y)
    yield "ConstrainedRegressor, cardinality", ConstrainedRegressor(Cardinality(2), round_size=7).partial_fit(X, y)
    yield "ConstrainedRegressor, groups", ConstrainedRegressor(Groups([0, 0, 1, 1, 2, 2], 2)).partial_fit(X, y)
    yield "ConstrainedRegressor, rank", ConstrainedRegressor(Rank(1), n_warmup=9).partial_fit(*matrices(60))
    yield "ConstrainedRegressor, reciprocal", ConstrainedRegressor(Reciprocal(2)).partial_fit(X, y)
    yield "ConstrainedRegressor, groups of rows", ConstrainedRegressor(matrix_groups).partial_fit(*matrices(60))


def baseline_kinds() -> list[Any]:
    """Baselines for rows of numbers."""
    return [
        baselines.AdaGradL1(),
        baselines.AdaptiveDantzig(2, random_state=3, n_warmup=20),
        baselines.DebiasedSGD(features=[1, 3], batch_size=25),
        baselines.DualAveraging(),
        baselines.FTRLProximal(),
        baselines.IHT(2),
        baselines.IncrementalProximal(),
        baselines.NIHT(2),
        baselines.OnlineDebiasedLasso(features=[1], batch_size=25),
        baselines.OnlineLasso(),
        baselines.OnlineLinearizedLasso(n_warmup=30),
        baselines.OSLasso(n_warmup=40, update="samples"),
        baselines.OSLasso(n_warmup=40, update="rounds"),
        baselines.StreamingSparseRegression(),
    ]


def baseline_estimators() -> Iterator[tuple[str, Any]]:
    """Baselines, before and after their first batch."""
    X, y = rows(120)
    for kind in baseline_kinds():
        for n in (20, 120):
            yield f"{type(kind).__name__}, {n} rows", clone(kind).fit(X[:n], y[:n])
    yield "NuclearProximal", baselines.NuclearProximal().fit(*matrices(60))


def ingests() -> Iterator[tuple[str, Any]]:
    """What the command keeps: a learner, and a note of how far its source was read."""
    X, y = rows(130)
    names = [f"x{k}" for k in range(D - 2)]
    columns = Columns("y", None, (*names, "colour"), {"colour": ("blue", "red")}, (), (1.0,) * D)
    ingest = Ingest(SparseRegressor(), columns, {"missing": "error", "plot": None})
    ingest.absorb(Batch(columns.names, X, y, None, Place(130, "ab" * 32), 0, 0, 0, None))
    yield "Ingest", (ingest.learner, {k: v for k, v in vars(ingest).items() if k not in ("learner", "_names")})


def saved_objects() -> Iterator[tuple[str, Any, Any]]:
    """Name, object and note."""
    for make in (summaries, estimators, baseline_estimators):
        for name, value in make():
            yield name, value, None
    for name, (value, note) in ingests():
        yield name, value, note
