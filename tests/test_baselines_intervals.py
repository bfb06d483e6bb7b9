"""Baselines with confidence intervals, against plain loops written from their definitions."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import Lasso

from thresher.baselines import DebiasedSGD, OnlineDebiasedLasso


def toeplitz_rows(rng, n, d, rho):
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def problem(rng, n=260, d=15):
    """Correlated columns of different scales."""
    X = toeplitz_rows(rng, n, d, 0.6) * np.linspace(0.5, 3.0, d)
    return X, X[:, 2] - 0.4 * X[:, 7] + 0.5 * rng.standard_normal(n)


# -- the online debiased lasso ---------------------------------------------------------------------------


def lasso(X, y, weights):
    """The lasso with a penalty for each coefficient, by scikit-learn, from rows."""
    model = Lasso(alpha=1.0, fit_intercept=False, tol=1e-14, max_iter=100_000)
    return model.fit(X / weights, y).coef_ / weights


def penalty_weights(X, spread, c, decay):
    n, d = X.shape
    return c * spread * np.sqrt(np.mean(X**2, axis=0) * np.log(d) / n) if decay else np.full(d, c)


def slow_online_debiased_lasso(X, y, grid, features, batch_size, decay):
    """All rows are kept, and every sum is taken over again from what each batch was judged by."""
    d, noise, rows_left, betas, parts = X.shape[1], None, [], None, []
    for start in range(0, len(y) - batch_size + 1, batch_size):
        N = start + batch_size
        X_m, y_m = X[start:N], y[start:N]
        if betas is None:
            noise, settled = np.mean(y_m**2), False
            while not settled:
                errors = np.zeros(len(grid))
                for fold in range(5):
                    test = np.arange(batch_size) % 5 == fold
                    for k, c in enumerate(grid):
                        weights = penalty_weights(X_m[~test], np.sqrt(noise), c, decay)
                        errors[k] += np.sum((y_m - X_m @ lasso(X_m[~test], y_m[~test], weights))[test] ** 2)
                errors /= batch_size
                settled = not decay or errors.min() >= 0.99**2 * noise
                if not settled:
                    noise = errors.min()
        else:
            errors = [np.sum((y_m - X_m @ beta) ** 2) for beta in betas]
        chosen = int(np.argmin(errors))
        betas = [lasso(X[:N], y[:N], penalty_weights(X[:N], np.sqrt(noise), c, decay)) for c in grid]
        beta = betas[chosen]
        rows_left.append(y_m - X_m @ beta)
        noise = np.mean(np.concatenate(rows_left) ** 2)
        for r in features:
            others = np.delete(np.arange(d), r)
            column = X[:N, r]
            spread = np.sqrt(np.mean(column**2))
            weights = penalty_weights(X[:N], spread, grid[chosen], decay)[others]
            parts.append((r, X_m[:, r] - X_m[:, others] @ lasso(X[:N, others], column, weights), X_m, y_m))
    estimate, error = [], []
    for r in features:
        z = np.concatenate([z for column, z, _, _ in parts if column == r])
        X_used, y_used = X[: len(z)], y[: len(z)]
        estimate.append(beta[r] + z @ (y_used - X_used @ beta) / (z @ X_used[:, r]))
        error.append(np.sqrt(noise) * np.linalg.norm(z) / abs(z @ X_used[:, r]))
    return beta, grid[chosen], noise, np.array(estimate), np.array(error)


@pytest.mark.parametrize(("grid", "decay"), [((0.3, 0.8, 1.7), True), ((0.02, 0.3), False)])
def test_online_debiased_lasso_is_its_definition(rng, grid, decay):
    X, y = problem(rng)
    features = [9, 2, 0]
    for n in (60, 130, 260):
        beta, chosen, noise, estimate, error = slow_online_debiased_lasso(X[:n], y[:n], grid, features, 50, decay)
        model = OnlineDebiasedLasso(grid, features=features, batch_size=50, decay=decay).partial_fit(X[:n], y[:n])
        np.testing.assert_allclose(model.coef_, beta, atol=1e-6)
        np.testing.assert_array_equal(model.support_, np.flatnonzero(beta))
        assert model.penalty_ == chosen
        assert model.n_batches_ == n // 50
        assert model.noise_variance_ == pytest.approx(noise, rel=1e-6)
        np.testing.assert_allclose(model.debiased_, estimate, atol=1e-6)
        intervals = model.confidence_intervals(0.9)
        np.testing.assert_array_equal(intervals.features, features)
        np.testing.assert_allclose(intervals.standard_error, error, rtol=1e-6)
        np.testing.assert_allclose(intervals.upper, estimate + stats.norm.ppf(0.95) * error, atol=1e-6)
        np.testing.assert_allclose(intervals.lower, estimate - stats.norm.ppf(0.95) * error, atol=1e-6)


def test_units_do_not_matter_where_penalties_decay(rng):
    X, y = problem(rng)
    units = 10.0 ** rng.uniform(-40, 40, 15)
    plain = OnlineDebiasedLasso(features=[2, 3], batch_size=40).fit(X, y)
    other = OnlineDebiasedLasso(features=[2, 3], batch_size=40).fit(X * units, 1e30 * y)
    np.testing.assert_allclose(other.coef_ * units / 1e30, plain.coef_, atol=1e-7)
    np.testing.assert_allclose(other.debiased_ * units[[2, 3]] / 1e30, plain.debiased_, rtol=1e-6)
    error, as_before = other.confidence_intervals().standard_error, plain.confidence_intervals().standard_error
    np.testing.assert_allclose(error * units[[2, 3]] / 1e30, as_before, rtol=1e-6)


def coverage(model, n_rows, d, rho, repetitions):
    """Shares of active and of other coefficients within their intervals; some of the others are their neighbours."""
    hits = []
    for seed in range(repetitions):
        rng = np.random.default_rng([20260815, seed])
        X, beta = toeplitz_rows(rng, n_rows, d, rho), np.zeros(d)
        beta[[5, 15, 25, 35]] = [1.0, -0.5, 0.25, -0.1]
        model.fit(X, X @ beta + rng.standard_normal(n_rows))
        intervals, truth = model.confidence_intervals(), beta[model.features]
        hits.append((intervals.lower <= truth) & (truth <= intervals.upper))
    hits = np.array(hits)
    active = np.array([5, 15, 25, 35])
    is_active = np.isin(model.features, active)
    return hits[:, is_active].mean(), hits[:, ~is_active].mean()


@pytest.mark.parametrize("rho", [0.0, 0.5])
def test_online_debiased_lasso_covers(rho):
    model = OnlineDebiasedLasso(features=[5, 15, 25, 35, 6, 14, 16, 24, *range(40, 60, 2)], batch_size=100)
    active, others = coverage(model, n_rows=1000, d=60, rho=rho, repetitions=60)
    # Of 240 and 840 intervals at 95 %, three standard errors are 0.042 and 0.023.
    assert 0.90 <= active <= 0.99
    assert 0.92 <= others <= 0.975


# -- debiased stochastic gradients -----------------------------------------------------------------------


def soft(values, threshold):
    return np.sign(values) * np.maximum(np.abs(values) - threshold, 0.0)


def debiased(X, y, coef, left, noise, features):
    """Estimates and standard errors; left[i, k] is what is left of column features[k] in row i."""
    own = np.einsum("ik,ik->k", left, X[:, features])
    estimate = coef[features] + left.T @ (y - X @ coef) / own
    return coef, noise, estimate, np.sqrt(noise * (left**2).sum(axis=0)) / np.abs(own)


def slow_debiased_sgd(X, y, grid, features, n, step_size, power):
    d = X.shape[1]
    betas, gammas = [np.zeros(d) for _ in grid], [np.zeros(d) for _ in features]
    beta_sum, gamma_sums = np.zeros(d), [np.zeros(d) for _ in features]
    left, squares, chosen = [], [], 0
    n_batches = len(y) // n
    for t in range(1, n_batches + 1):
        X_t, y_t = X[(t - 1) * n : t * n], y[(t - 1) * n : t * n]
        if step_size == "auto":
            eta = 1.0 / (np.max(np.sum(X[: t * n] ** 2, axis=1)) * (1.0 + t / d) ** power)
        else:
            eta = step_size * t**-power
        chosen = int(np.argmin([np.sum((y_t - X_t @ beta) ** 2) for beta in betas]))
        betas = [
            soft(b - eta * X_t.T @ (X_t @ b - y_t) / n, eta * penalty) for b, penalty in zip(betas, grid, strict=True)
        ]
        beta_sum += betas[chosen]
        batch_left = []
        for k, r in enumerate(features):
            others = np.delete(X_t, r, axis=1)
            gamma = np.delete(gammas[k], r)
            gamma = soft(gamma - eta * others.T @ (others @ gamma - X_t[:, r]) / n, eta * grid[chosen])
            gammas[k] = np.insert(gamma, r, 0.0)
            gamma_sums[k] += gammas[k]
            batch_left.append(X_t[:, r] - X_t @ gamma_sums[k] / t)
        left.append(np.transpose(batch_left))
        squares.append((y_t - X_t @ beta_sum / t) ** 2)
    used = n_batches * n
    result = debiased(X[:used], y[:used], beta_sum / n_batches, np.concatenate(left), np.mean(squares), features)
    return grid[chosen], *result


@pytest.mark.parametrize("n", [1, 7])
@pytest.mark.parametrize("step_size", ["auto", 0.03])
def test_debiased_sgd_is_its_definition(rng, n, step_size):
    X, y = problem(rng)
    X /= np.linspace(0.5, 3.0, 15)
    grid, features = [0.3, 0.05, 0.1], [9, 2]
    penalty, coef, noise, estimate, error = slow_debiased_sgd(X, y, grid, features, n, step_size, 0.7)
    model = DebiasedSGD(grid, features=features, batch_size=n, step_size=step_size, power=0.7).fit(X, y)
    assert model.penalty_ == penalty
    assert model.n_batches_ == 260 // n
    np.testing.assert_allclose(model.coef_, coef, atol=1e-10)
    assert model.noise_variance_ == pytest.approx(noise, rel=1e-10)
    np.testing.assert_allclose(model.debiased_, estimate, atol=1e-10)
    intervals = model.confidence_intervals(0.8)
    np.testing.assert_allclose(intervals.standard_error, error, rtol=1e-10)
    np.testing.assert_allclose(intervals.upper - intervals.lower, 2 * stats.norm.ppf(0.9) * error, rtol=1e-10)


def test_debiased_sgd_covers_where_columns_are_uncorrelated():
    model = DebiasedSGD(features=[5, 15, 25, 35, 6, 14, 16, 24, *range(40, 60, 2)])
    active, others = coverage(model, n_rows=1000, d=60, rho=0.0, repetitions=60)
    # What it has not learned yet counts as noise, so coverage is a little above 95 %.
    assert 0.92 <= active < 1.0
    assert 0.94 <= others < 0.995


def test_automatic_steps_do_not_diverge_in_many_dimensions(rng):
    X = rng.standard_normal((600, 1000)) * rng.choice([0.1, 3.0], 600)[:, None]  # short rows and long ones
    beta = np.zeros(1000)
    beta[:3] = [2.0, -1.0, 1.0]
    y = X @ beta + 0.1 * rng.standard_normal(600)
    model = DebiasedSGD().fit(X, y)
    assert model.diverged_at_ is None
    assert np.mean((beta - model.coef_) ** 2) < 0.9 * np.mean(beta**2)
    np.testing.assert_array_equal(np.sign(model.coef_[:3]), [1, -1, 1])


def test_divergence_is_reported_and_intervals_refuse(rng):
    X, y = problem(rng)
    with pytest.warns(ConvergenceWarning, match="smaller step_size"):
        model = DebiasedSGD(features=[1], step_size=10.0).fit(X, y)
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.debiased_).all()
    with pytest.raises(ValueError, match=f"diverged at row {model.diverged_at_}"):
        model.confidence_intervals()


# -- what both share -------------------------------------------------------------------------------------

both = pytest.mark.parametrize("kind", [DebiasedSGD, OnlineDebiasedLasso])


@both
def test_errors_name_the_remedy_and_change_nothing(rng, kind):
    X, y = problem(rng)
    with pytest.raises(NotFittedError):
        kind(features=[0]).confidence_intervals()
    with pytest.raises(ValueError, match="name the columns"):
        kind().fit(X, y).confidence_intervals()
    with pytest.raises(ValueError, match="need 100 rows, and there are 60: pass more rows"):
        kind(features=[0], batch_size=100).fit(X[:60], y[:60]).confidence_intervals()
    model = kind(features=[0]).fit(X, y)
    with pytest.raises(ValueError, match="between 0 and 1"):
        model.confidence_intervals(95)
    before = model.coef_.copy(), model.debiased_.copy(), model.n_samples_seen_
    for name, value, message in (
        ("features", [15], "Feature 15 does not exist"),
        ("features", [-1], "Feature -1 does not exist"),
        ("features", [0.5], "features must be column numbers"),
        ("penalties", [], "penalties must be one or more positive"),
        ("penalties", [[0.1]], "penalties must be one or more positive"),
        ("penalties", [0.1, 0.0], "penalties must be one or more positive"),
        ("penalties", [np.nan], "penalties must be one or more positive"),
        ("penalties", ["a"], "penalties"),
        ("batch_size", 0, "batch_size"),
    ):
        given = getattr(model, name)
        setattr(model, name, value)
        for learn in (model.fit, model.partial_fit):
            with pytest.raises(ValueError, match=message):
                learn(X, y)
        setattr(model, name, given)
    np.testing.assert_array_equal(model.coef_, before[0])
    np.testing.assert_array_equal(model.debiased_, before[1])
    assert model.n_samples_seen_ == before[2]


@both
def test_names_and_columns_that_are_zero(rng, kind):
    X, y = problem(rng)
    X[:, 4] = 0.0
    names = [f"x{j}" for j in range(15)]
    model = kind(features=[4, 2], batch_size=20).fit(pd.DataFrame(X, columns=names), y)
    intervals = model.confidence_intervals()
    assert intervals.names == ("x4", "x2")
    assert intervals.estimate[0] == 0.0
    assert np.isinf(intervals.standard_error[0])
    assert np.isfinite(intervals.standard_error[1])


@both
def test_parameters_hold_until_the_next_fit(rng, kind):
    X, y = problem(rng)
    model = kind([0.1, 0.5], features=[2], batch_size=20).fit(X[:130], y[:130])
    model.set_params(penalties=[9.0], features=[3, 4], batch_size=7)
    model.partial_fit(X[130:], y[130:])
    whole = kind([0.1, 0.5], features=[2], batch_size=20).fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    np.testing.assert_array_equal(model.debiased_, whole.debiased_)
    assert model.fit(X, y).penalty_ == 9.0
    np.testing.assert_array_equal(model.confidence_intervals().features, [3, 4])


def test_extreme_units_end(rng):
    X = rng.standard_normal((60, 5))
    model = OnlineDebiasedLasso(batch_size=20).partial_fit(1e-150 * X, 1e150 * X[:, 0])
    assert np.isfinite(model.coef_).all()
