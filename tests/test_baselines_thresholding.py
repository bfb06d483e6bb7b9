"""IHT and NIHT against a few lines of NumPy on the rows themselves."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from thresher import Gram
from thresher.baselines import IHT, NIHT
from thresher.baselines._on_summary import Quadratic

THRESHOLDING = [IHT(4), NIHT(4)]
each = pytest.mark.parametrize("model", THRESHOLDING, ids=lambda model: type(model).__name__)


@pytest.fixture
def rows(rng):
    """Correlated columns of different scales, away from zero."""
    n, d = 150, 30
    X = rng.standard_normal((n, d)) + 0.7 * rng.standard_normal((n, 1)) + rng.uniform(-1.0, 1.0, d)
    X *= rng.uniform(0.5, 1.5, d)
    return X, 1.5 * X[:, 2] - X[:, 11] + 0.8 * X[:, 20] + 0.3 * rng.standard_normal(n) + 2.0


def prepared(X, y, centred, standardized):
    """The rows as the method sees them, and the units of their columns."""
    if centred:
        X, y = X - X.mean(axis=0), y - y.mean()
    unit = np.sqrt(np.mean(X**2, axis=0)) if standardized else np.ones(X.shape[1])
    return X / unit, y, unit


def top(z, s):
    kept = np.zeros_like(z)
    index = np.argsort(-np.abs(z), kind="stable")[:s]
    kept[index] = z[index]
    return kept


def iht(X, y, s, eta, n_steps):
    theta = np.zeros(X.shape[1])
    for _ in range(n_steps):
        theta = top(theta + eta * X.T @ (y - X @ theta) / len(y), s)
    return theta


def niht(X, y, s, c, kappa, n_steps):
    """As published, for the matrix X and the response y; also how often a step was shortened."""
    theta, support, n_shortened = np.zeros(X.shape[1]), np.flatnonzero(top(X.T @ y, s)), 0
    for _ in range(n_steps):
        g = X.T @ (y - X @ theta)
        mu = g[support] @ g[support] / np.sum((X[:, support] @ g[support]) ** 2)
        new = top(theta + mu * g, s)
        if not np.array_equal(np.flatnonzero(new), support):
            while mu * np.sum((X @ (new - theta)) ** 2) > (1 - c) * np.sum((new - theta) ** 2):
                mu /= kappa * (1 - c)
                new = top(theta + mu * g, s)
                n_shortened += 1
        theta, support = new, np.flatnonzero(new)
    return theta, n_shortened


def check(model, X, y, expected, unit, atol):
    np.testing.assert_allclose(model.coef_ * unit, expected, atol=atol)
    if model.fit_intercept:
        np.testing.assert_allclose(model.intercept_, np.mean(y - X @ model.coef_), atol=1e-10)
    else:
        assert model.intercept_ == 0.0


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("standardized", [False, True])
def test_limits_are_those_of_the_plain_iterations(rows, centred, standardized):
    X, y = rows
    Z, z, unit = prepared(X, y, centred, standardized)
    largest = np.linalg.eigvalsh(Z.T @ Z / len(z))[-1]
    options = {"fit_intercept": centred, "standardize": standardized, "tol": 1e-13}
    for model, expected in (
        (IHT(5, **options), iht(Z, z, 5, 1 / largest, 5_000)),
        (IHT(4, step_size=1.5 / largest, **options), iht(Z, z, 4, 1.5 / largest, 5_000)),
    ):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            check(model.fit(X, y), X, y, expected, unit, atol=1e-8)
    model = NIHT(5, c=0.1, shrink=1.5, **options).fit(X, y)
    # Where it rests its steps are quotients of rounding errors, so its twin must stop there, too.
    check(model, X, y, niht(Z, z, 5, 0.1, 1.5, model.n_iter_)[0], unit, atol=1e-8)


@pytest.mark.parametrize("standardized", [False, True])
def test_every_step_is_the_published_one(rows, standardized):
    X, y = rows
    Z, z, unit = prepared(X, y, True, standardized)
    n_shortened = 0
    for n_steps in (1, 2, 3, 5, 8, 13):
        options = {"fit_intercept": True, "standardize": standardized, "tol": 0.0, "max_iter": n_steps}
        by_niht, n = niht(Z, z, 4, 0.4, 1.8, n_steps)
        n_shortened += n
        for model, expected in (
            (IHT(4, step_size=0.1, **options), iht(Z, z, 4, 0.1, n_steps)),
            (NIHT(4, c=0.4, shrink=1.8, **options), by_niht),
        ):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                check(model.fit(X, y), X, y, expected, unit, atol=1e-10)
    assert n_shortened > 0


@each
def test_the_end_is_a_fixed_point(rows, model):
    X, y = rows
    model = type(model)(**{**model.get_params(), "tol": 1e-12}).fit(X, y)
    gradient = X.T @ (X @ model.coef_ - y) / len(y)
    kept = np.isin(np.arange(30), model.support_)
    np.testing.assert_allclose(gradient[kept], 0.0, atol=1e-9)
    largest = np.linalg.norm(X.T @ X / len(y), 2)
    eta = 1 / largest  # what NIHT takes is longer, if anything
    assert np.all(eta * np.abs(gradient[~kept]) <= np.min(np.abs(model.coef_[kept])) + 1e-9)


@each
def test_noiseless_coefficients_are_recovered_exactly(rng, model):
    X = rng.standard_normal((120, 60)) * 1e3 + 5e3
    theta = np.zeros(60)
    theta[[3, 20, 41, 59]] = [2.0, -1.0, 1.5, 1.0]
    options = {"fit_intercept": True, "standardize": True, "tol": 1e-10}
    model = type(model)(**{**model.get_params(), **options}).fit(X, X @ theta + 7.0)
    np.testing.assert_allclose(model.coef_, theta, atol=1e-7)
    np.testing.assert_allclose(model.intercept_, 7.0, atol=1e-3)
    np.testing.assert_array_equal(np.flatnonzero(np.abs(model.coef_) > 1e-6), [3, 20, 41, 59])


@each
def test_the_result_is_a_function_of_the_summary(rows, model):
    X, y = rows
    summary = Gram(30).absorb(X[:100], y[:100])
    whole = type(model)(**model.get_params()).fit(X, y)
    streamed = type(model)(**model.get_params()).fit_summary(summary)
    assert streamed.n_samples_seen_ == 100
    streamed.partial_fit(X[100:], y[100:])
    np.testing.assert_array_equal(streamed.coef_, whole.coef_)
    assert (streamed.n_samples_seen_, summary.n_samples) == (150, 100)
    assert streamed.n_iter_ == whole.n_iter_ > 0
    # Parameters that are set later hold from the next call on.
    streamed.set_params(fit_intercept=True).partial_fit(X[:1], y[:1])
    twice = type(model)(**{**model.get_params(), "fit_intercept": True})
    twice.fit(np.vstack([X, X[:1]]), np.append(y, y[0]))
    np.testing.assert_array_equal(streamed.coef_, twice.coef_)
    before = streamed.coef_.copy()
    with pytest.raises(ValueError, match="empty"):
        streamed.fit_summary(Gram(30))
    with pytest.raises(TypeError, match=r"thresher\.Gram"):
        streamed.fit_summary(X)
    np.testing.assert_array_equal(streamed.coef_, before)
    assert streamed.n_samples_seen_ == 151


@each
@pytest.mark.parametrize("unit_x", [1e-6, 1.0, 1e6])
@pytest.mark.parametrize("unit_y", [1e-6, 1.0, 1e6])
def test_overall_units_do_not_matter(rows, model, unit_x, unit_y):
    X, y = rows
    expected = type(model)(**model.get_params()).fit(X, y).coef_
    scaled = type(model)(**model.get_params()).fit(unit_x * X, unit_y * y).coef_
    np.testing.assert_allclose(scaled * unit_x / unit_y, expected, rtol=1e-7)
    # Each column with its own.
    units, options = np.geomspace(1e-6, 1e6, 30), {**model.get_params(), "standardize": True, "fit_intercept": True}
    expected = type(model)(**options).fit(X, y).coef_
    scaled = type(model)(**options).fit(units * unit_x * X, unit_y * y).coef_
    np.testing.assert_allclose(scaled * units * unit_x / unit_y, expected, rtol=1e-7)


def test_columns_whose_squares_vanish_count_as_constant(rows):
    X, y = rows
    X = np.column_stack([X[:, :5], 1e-161 * X[:, 2]])
    for unit in (1.0, 1e50):
        np.testing.assert_array_equal(IHT(6, standardize=True).fit(X, unit * y).support_, np.arange(5))


@each
def test_nothing_to_explain_and_nothing_that_explains(model):
    X = np.array([[1.0, 2.0, 0.0], [1.0, 2.0, 0.0]])
    for rows, response in ((X, [0.0, 0.0]), (X, [1.0, -1.0]), (0.0 * X, [1.0, 2.0])):
        model = type(model)(**model.get_params()).fit(rows, response)
        np.testing.assert_array_equal(model.coef_, 0.0)
    with pytest.raises(ValueError, match="squares of that vanish; rescale"):
        model.fit(1e-170 * X, [1.0, 2.0])
    model = type(model)(**{**model.get_params(), "fit_intercept": True}).fit(X, [1.0, 2.0])
    np.testing.assert_array_equal(model.coef_, 0.0)
    assert model.intercept_ == 1.5


@each
def test_more_features_than_columns_and_columns_that_determine_each_other(rng, model):
    X = rng.standard_normal((40, 3))
    y = X @ [1.0, -2.0, 0.5] + 0.1 * rng.standard_normal(40)
    ols = np.linalg.lstsq(X, y, rcond=None)[0]
    np.testing.assert_allclose(type(model)(**model.get_params()).fit(X, y).coef_, ols, atol=1e-6)
    twins = type(model)(**model.get_params()).fit(np.hstack([X, X, X]), y)
    assert np.isfinite(twins.coef_).all()
    assert np.sum((y - np.hstack([X, X, X]) @ twins.coef_) ** 2) < np.sum(y**2) / 2


def test_steps_that_are_too_long_are_told(rows):
    X, y = rows
    for max_iter in (40, 1000):
        with pytest.warns(ConvergenceWarning, match="IHT diverged, so coef_ is zero. Use a smaller step_size"):
            model = IHT(4, step_size=10.0, max_iter=max_iter).fit(X, y)
        np.testing.assert_array_equal(model.coef_, 0.0)
        assert model.diverged_
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        cut = IHT(4, step_size=10.0).partial_fit(X[:50], y[:50]).partial_fit(X[50:], y[50:])
    np.testing.assert_array_equal(cut.coef_, 0.0)
    model.set_params(step_size="auto").partial_fit(X, y)  # nothing was lost
    np.testing.assert_allclose(model.coef_, IHT(4).fit(X, y).coef_, atol=1e-7)
    assert not model.diverged_
    for unit_x, unit_y in ((1e100, 1.0), (1e100, 1e120), (1e-100, 1e140), (1e60, 1e60)):
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            huge = IHT(4, step_size=10.0 * unit_x**-2).fit(unit_x * X, unit_y * y)
        assert [warning.category for warning in told] == [ConvergenceWarning]
        np.testing.assert_array_equal(huge.coef_, 0.0)
    for unit in (1.0, 1e60, 1e-60):
        with pytest.warns(ConvergenceWarning, match="IHT diverged"):
            IHT(4, step_size=1e308).fit(unit * X, unit * y)
    with pytest.warns(ConvergenceWarning, match="NIHT did not converge within max_iter=2"):
        NIHT(4, max_iter=2).fit(X, y)


def test_an_estimate_that_is_worse_than_none_is_dropped_and_one_that_is_better_is_kept():
    ones = np.ones((50, 1))
    with pytest.warns(ConvergenceWarning, match="IHT diverged"):
        model = IHT(1, step_size=2.5, max_iter=1).fit(ones, 3.0 * ones[:, 0])  # at 7.5: 2.25 times the loss of zero
    assert (model.coef_, model.diverged_) == (0.0, True)
    # One column has a curvature of 1 and the other of 0.1: the error of the first is multiplied by -1.05 in each step
    # and that of the second by 0.795. After 100 steps the loss is rising, but far below that of zero.
    X, y = np.sqrt(2.0) * np.diag([1.0, np.sqrt(0.1)]), np.sqrt(2.0) * np.array([1e-3, np.sqrt(10.0)])
    with pytest.warns(ConvergenceWarning, match="IHT did not converge within max_iter=100"):
        model = IHT(2, step_size=2.05, max_iter=100).fit(X, y)
    np.testing.assert_allclose(model.coef_, [1e-3 * (1.0 - 1.05**100), 10.0], rtol=1e-8)
    assert not model.diverged_
    # A step that raises the loss on the way to a fixed point is nobody's business.
    rng = np.random.default_rng(124)
    X = rng.standard_normal((20, 4))
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(20)
    losses = [np.sum((y - X @ iht(X, y, 1, 1.5, n)) ** 2) for n in range(60)]
    assert np.diff(losses).max() > 0.01
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = IHT(1, step_size=1.5).fit(X, y)
    np.testing.assert_allclose(model.coef_, iht(X, y, 1, 1.5, 1000), atol=1e-7)


def test_cycles_end_at_max_iter_with_a_warning():
    with pytest.warns(ConvergenceWarning, match="IHT did not converge within max_iter=101 .* smaller step_size"):
        model = IHT(1, step_size=2.0, max_iter=101).fit(np.ones((50, 1)), 3.0 * np.ones(50))  # 0, 6, 0, 6, ...
    assert model.coef_ == pytest.approx(6.0)


def test_whatever_is_not_told_of_has_come_to_rest():
    rng = np.random.default_rng(0)
    n_told = 0
    for _ in range(30):
        X, noise = rng.standard_normal((20, 3)), rng.standard_normal(20)
        y = X[:, 0] + X[:, 1] + 0.3 * noise
        eta = rng.uniform(0.5, 2.5) / np.linalg.norm(X.T @ X / 20, 2)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            model = IHT(1, step_size=eta, max_iter=300).fit(X, y)
        last = [iht(X, y, 1, eta, n) for n in (300, 301)]
        if not told:
            np.testing.assert_allclose(model.coef_, last[0], atol=1e-6)
            np.testing.assert_allclose(model.coef_, last[1], atol=1e-6)
        elif not model.diverged_:
            n_told += 1
            assert np.abs(last[0] - last[1]).max() > 0.01
            np.testing.assert_allclose(model.coef_, last[0], atol=1e-6)
    assert 5 < n_told < 25


def test_slow_oscillations_come_to_rest():
    for factor in (0.9, 0.99, 0.999):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model = IHT(1, step_size=1.0 + factor, max_iter=10**6).fit(np.ones((50, 1)), 3.0 * np.ones(50))
        np.testing.assert_allclose(model.coef_, 3.0, rtol=1e-5)


def test_rest_is_judged_in_the_units_in_which_steps_are_made(rng):
    """A column of scale 1e-6 has a coefficient of 1e6, beside which the others would not seem to move."""
    Q = 10.0 * np.linalg.qr(rng.standard_normal((100, 3)))[0]
    X = np.column_stack([1e-6 * Q[:, 0], Q[:, 1] + 3.0 * Q[:, 2], -Q[:, 1] + 3.0 * Q[:, 2]])
    coef = IHT(3, standardize=True).fit(X, X @ [1e6, 1.0, -1.0]).coef_
    np.testing.assert_allclose(coef, [1e6, 1.0, -1.0], rtol=1e-6)


@each
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_coefficients_that_overflow_are_told_of(rng, model):
    """Columns of 1e-154 that nearly agree, and their difference in a response of 1e151."""
    x, e = rng.choice([-1.0, 1.0], (2, 64))
    X, y = 2e-154 * np.column_stack([x, x + 1e-5 * e]), 9e150 * e
    for options in ({}, {"fit_intercept": True}, {"standardize": True}):
        overflowing = type(model)(**{**model.get_params(), **options, "max_iter": 100})
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for i in range(64):  # single rows may be so small
                overflowing.partial_fit(X[i : i + 1], y[i : i + 1])
            overflowing.coef_  # noqa: B018 - computed when it is read
        assert {warning.category for warning in told} <= {ConvergenceWarning}
        assert np.isfinite(overflowing.coef_).all()
        assert np.isfinite(overflowing.intercept_)
        if isinstance(model, NIHT):  # IHT is slow to come so far, or leaves out one of the columns
            assert overflowing.diverged_
            assert "Rescale" in str(told[0].message)
            np.testing.assert_array_equal(overflowing.coef_, 0.0)
        assert not overflowing.fit(1e150 * X, y).diverged_


@each
def test_a_solution_that_is_interrupted_changes_no_estimate(rows, model, monkeypatch):
    X, y = rows
    model = type(model)(**model.get_params()).fit(X[:100], y[:100])
    before = dict(vars(model))

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(Quadratic, "gradient", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.set_params(fit_intercept=True).partial_fit(X[100:], y[100:])
    assert model.n_samples_seen_ == model.summary_.n_samples == 150
    for name, value in before.items():
        if name not in ("n_samples_seen_", "fit_intercept", "_checked_parameters"):
            assert getattr(model, name) is value, name
    monkeypatch.undo()
    model.partial_fit(X[:1], y[:1])
    whole = type(model)(**model.get_params()).fit(np.vstack([X, X[:1]]), np.append(y, y[0]))
    np.testing.assert_array_equal(model.coef_, whole.coef_)


@each
def test_summaries_in_single_precision_are_rejected(rows, model):
    X, y = rows
    single = Gram(30, np.float32).absorb(X, y)
    with pytest.raises(ValueError, match=r"must be in float64; Gram\(n_features\)\.merge"):
        type(model)(**model.get_params()).fit_summary(single)
    assert type(model)(**model.get_params()).fit_summary(Gram(30).merge(single)).coef_.any()


def test_a_shrink_that_does_not_shorten_is_rejected(rows):
    X, y = rows
    with pytest.raises(ValueError, match=r"shrink=1.2 must be larger than 1 / \(1 - c\) = 1\.25"):
        NIHT(3, c=0.2, shrink=1.2).fit(X, y)


def test_a_shrink_that_leaves_nothing_of_a_step(rows):
    X, y = rows
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = NIHT(4, c=0.4, shrink=1e308).fit(X, y)
    assert np.sum((y - X @ model.coef_) ** 2) < np.sum(y**2)
