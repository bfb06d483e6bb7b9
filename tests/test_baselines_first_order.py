"""Methods that look at one row at a time, against the problems their steps solve and against scikit-learn."""

import tracemalloc
import warnings

import numpy as np
import pytest
import scipy.sparse
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import SGDRegressor

from oracles import design
from thresher.baselines import AdaGradL1, DualAveraging, FTRLProximal, IncrementalProximal, StreamingSparseRegression


def problem(rng, n=150, d=12):
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(size=d) / 3.0)
    return X, X[:, 2] - 1.5 * X[:, 5] + 0.3 * rng.standard_normal(n)


def dual_averaging(W, g, t):
    """Gradient of the smooth part of what w_(t+1) minimises, as a function of w, and the weight of |w|_1."""
    return lambda w: g.mean(axis=0) + 8.0 / np.sqrt(t) * w, 0.1 + 8.0 * 0.02 / np.sqrt(t)


def adagrad_dual(W, g, t):
    h = 1e-3 + np.sqrt((g**2).sum(axis=0))
    return lambda w: 0.4 * g.sum(axis=0) + h * w, 0.4 * 0.05 * t


def adagrad_mirror(W, g, t):
    h = 1e-3 + np.sqrt((g**2).sum(axis=0))
    return lambda w: 0.4 * g[-1] + h * (w - W[-1]), 0.4 * 0.05


def proximal(W, g, t):
    return lambda w: g[-1] + (w - W[-1]) * t**0.7 / 0.05, 0.5


def ftrl(W, g, t):
    roots = np.sqrt(np.vstack([np.zeros(g.shape[1]), np.cumsum(g**2, axis=0)]))
    sigma = np.diff(roots, axis=0) / 0.3
    return lambda w: g.sum(axis=0) + (sigma * (w - W)).sum(axis=0) + (0.7 / 0.3 + 0.2) * w, 1.5


def ssr(W, g, t):
    return lambda w: 4.0 * w + 0.3 * (w - W).sum(axis=0) + g.sum(axis=0), 1.2 * np.sqrt(t + 1)


STEPS = [
    (DualAveraging(0.1, gamma=8.0, rho=0.02), dual_averaging),
    (AdaGradL1(0.05, step_size=0.4, delta=1e-3), adagrad_dual),
    (AdaGradL1(0.05, step_size=0.4, delta=1e-3, update="mirror"), adagrad_mirror),
    (IncrementalProximal(0.5, step_size=0.05, power=0.7), proximal),
    (FTRLProximal(1.5, 0.2, alpha=0.3, beta=0.7), ftrl),
    (StreamingSparseRegression(1.2, strong_convexity=0.3, ridge=4.0), ssr),
]


@pytest.mark.parametrize(("model", "objective"), STEPS)
def test_every_iterate_solves_the_problem_that_defines_it(rng, model, objective):
    X, y = problem(rng)
    W, g, zeros, others = [], [], 0, 0
    w = np.zeros(X.shape[1])
    for t in range(1, len(X) + 1):
        W.append(w)
        g.append((X[t - 1] @ w - y[t - 1]) * X[t - 1])
        w = model.partial_fit(X[t - 1 : t], y[t - 1 : t]).coef_
        gradient, weight = objective(np.array(W), np.array(g), t)
        slope = gradient(w)
        scale = np.abs(gradient(np.zeros_like(w))) + weight
        assert (np.abs(slope) <= weight + 1e-10 * scale)[w == 0.0].all()
        np.testing.assert_allclose((slope + weight * np.sign(w))[w != 0.0] / scale[w != 0.0], 0.0, atol=1e-10)
        zeros, others = zeros + np.sum(w == 0.0), others + np.sum(w != 0.0)
    assert min(zeros, others) > 50  # both cases were seen


def test_without_penalty_they_are_stochastic_gradient_descent(rng):
    X, y = problem(rng)
    plain = {"penalty": None, "fit_intercept": False, "shuffle": False, "eta0": 0.03}
    for power, schedule in (
        (0.4, {"learning_rate": "invscaling", "power_t": 0.4}),
        (0.0, {"learning_rate": "constant"}),
    ):
        model = IncrementalProximal(0.0, step_size=0.03, power=power)
        expected = SGDRegressor(**plain, **schedule).partial_fit(X, y).coef_
        np.testing.assert_allclose(model.partial_fit(X, y).coef_, expected, rtol=1e-9)


def test_means_of_iterates(rng):
    X, y = problem(rng)
    for model, weights in (
        (IncrementalProximal(0.08, step_size=0.05, average=True), np.ones(150)),
        (StreamingSparseRegression(1.2, ridge=4.0, average=True), np.arange(1.0, 151.0)),
    ):
        last = type(model)(**{**model.get_params(), "average": False})
        after = [last.partial_fit(X[i : i + 1], y[i : i + 1]).coef_ for i in range(150)]
        # Streaming sparse regression averages the estimates *for* each row, the other those after it.
        iterates = after if weights[1] == 1.0 else [np.zeros(12), *after[:-1]]
        np.testing.assert_allclose(
            model.partial_fit(X, y).coef_, np.average(iterates, axis=0, weights=weights), rtol=1e-9, atol=1e-12
        )


def longest(X):
    """The largest squared length of a row so far."""
    return np.maximum.accumulate((X**2).sum(axis=1))


def test_steps_by_default(rng):
    X, y = problem(rng)
    t, L = np.arange(1, 151), longest(X)
    schedule = 1.0 / (L * (1.0 + t / 12) ** 0.6)
    w = np.zeros(12)
    for i in range(150):
        z = w - schedule[i] * (X[i] @ w - y[i]) * X[i]
        w = np.sign(z) * np.maximum(np.abs(z) - schedule[i] * 0.3, 0.0)
    np.testing.assert_allclose(IncrementalProximal(0.3, power=0.6).partial_fit(X, y).coef_, w, rtol=1e-9, atol=1e-13)

    w, total = np.zeros(12), np.zeros(12)
    for i in range(150):
        total += (X[i] @ w - y[i]) * X[i]
        beta = L[i] * np.sqrt(1.0 + t[i] / 12)  # in the place of gamma sqrt(t)
        mean = total / t[i]
        w = -(t[i] / beta) * np.sign(mean) * np.maximum(np.abs(mean) - 0.2 - 0.01 * beta / t[i], 0.0)
    np.testing.assert_allclose(DualAveraging(0.2, rho=0.01).partial_fit(X, y).coef_, w, rtol=1e-9, atol=1e-13)

    w, q = np.zeros(12), np.zeros(12)
    for i in range(150):
        q += 0.4 * w - (X[i] @ w - y[i]) * X[i]
        w = np.sign(q) * np.maximum(np.abs(q) - 1.5 * np.sqrt(t[i] + 1), 0.0) / (L[i] + 0.4 * t[i])
    model = StreamingSparseRegression(1.5, strong_convexity=0.4).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, w, rtol=1e-9, atol=1e-13)
    assert w.any()


@pytest.mark.parametrize("kind", ["correlated", "uncentred"])
@pytest.mark.parametrize(
    "method",
    [DualAveraging, IncrementalProximal, StreamingSparseRegression, AdaGradL1, FTRLProximal],
)
def test_defaults_are_better_than_nothing_on_rows_that_are_not_kind(rng, method, kind):
    X = design(rng, kind, 3000, 100) + (1.0 if kind == "uncentred" else 0.0)
    y = X[:, :5].sum(axis=1) + rng.standard_normal(3000)
    model = method().partial_fit(X, y)
    assert model.diverged_at_ is None
    fresh = design(rng, kind, 1000, 100) + (1.0 if kind == "uncentred" else 0.0)
    assert ((fresh @ (model.coef_ - np.repeat([1.0, 0.0], [5, 95]))) ** 2).mean() < 0.5 * (y**2).mean()


def row_by_row(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for i in range(len(y)):
            model.partial_fit(X[i : i + 1], y[i : i + 1])
    return model


@pytest.mark.parametrize(
    ("model", "remedy"),
    [
        (IncrementalProximal(0.0, step_size=1.0, power=0.0), "smaller step_size"),
        (DualAveraging(0.1, gamma=1e-3), "larger gamma"),
        (StreamingSparseRegression(0.0, ridge=1e-3, strong_convexity=1e-3), "larger penalty or ridge"),
    ],
)
def test_divergence_is_reported_once_and_leaves_the_estimate_before_it(rng, model, remedy):
    X, y = problem(rng, n=1000)
    with pytest.warns(ConvergenceWarning, match=remedy) as caught:
        model.partial_fit(X, y)
    assert len(caught) == 1
    row = model.diverged_at_
    assert 0 < row < 1000
    assert np.isfinite(model.coef_).all()
    assert ((X[:row] @ model.coef_ - y[:row]) ** 2).mean() > 100 * (y[:row] ** 2).mean()
    before = model.coef_.copy()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, before)
    pieces = row_by_row(type(model)(**model.get_params()), X[: row + 3], y[: row + 3])
    np.testing.assert_array_equal(pieces.coef_, before)
    assert pieces.diverged_at_ == row
    well = type(model)(**model.get_params()).partial_fit(X[:row], y[:row])
    np.testing.assert_array_equal(well.coef_, before)
    assert well.diverged_at_ is None


@pytest.mark.parametrize("method", [DualAveraging, AdaGradL1, FTRLProximal, StreamingSparseRegression])
def test_what_overflows_is_reported_however_rows_are_cut(rng, method):
    X, y = problem(rng, n=60)
    with pytest.warns(ConvergenceWarning, match="diverged"):
        whole = method().partial_fit(1e100 * X, 1e100 * y)
    pieces = row_by_row(method(), 1e100 * X, 1e100 * y)
    assert np.isfinite(whole.coef_).all()
    np.testing.assert_array_equal(pieces.coef_, whole.coef_)
    assert pieces.diverged_at_ == whole.diverged_at_


def test_sparse_rows_of_many_columns_are_not_made_dense_at_once(rng):
    X = scipy.sparse.random_array((64, 200_000), density=1e-5, rng=rng, format="csr")
    tracemalloc.start()
    IncrementalProximal().partial_fit(X, np.ones(64))
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 80e6  # all rows would be 102 MB
