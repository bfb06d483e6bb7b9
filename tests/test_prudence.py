"""Coefficients that are trusted only as far as there are rows to carry them."""

import numpy as np
import pytest

from thresher import Gram, SparseRegressor
from thresher.kernels.gram import HIGH


def prudent(X, y, support, centred, weights=None):
    """From the rows: least squares on the support, and with four rows against each feature."""
    w = np.ones(len(y)) if weights is None else weights
    mean_x = np.average(X[:, support], axis=0, weights=w) if centred else 0.0
    mean_y = np.average(y, weights=w) if centred else 0.0
    Z, v = X[:, support] - mean_x, y - mean_y
    G, h = (w[:, None] * Z).T @ Z, (w[:, None] * Z).T @ v
    coef = np.linalg.solve(G, h)
    own = 1.0 / np.diag(np.linalg.inv(G))
    noise = (w * (v - Z @ coef) ** 2).sum() / w.sum()
    m = np.diag(G) / (Z[w > 0.0] ** 2).max(axis=0)
    t2 = coef**2 * own / noise
    against = own * 4.0 / (np.maximum(m, np.minimum(t2, m**2)) + t2 / 100.0)
    return coef, np.linalg.solve(G + np.diag(against), h)


def rows(rng, n=400, d=30, rare=5, noise=1.0):
    """Correlated features far from zero in various units, rare levels among them, of which one matters."""
    X = rng.standard_normal((n, d)) @ (np.eye(d) + 0.5 * np.eye(d, k=1))
    X[:, :rare] = rng.random((n, rare)) < 3.0 / n
    X[n // 2, 0] = X[n // 3, 0] = 1.0
    X = (X + 3.0) * np.logspace(-2, 2, d)
    slopes = np.zeros(d)
    slopes[[0, 10, 20, 21]] = np.array([8.0, 1.0, -0.5, 0.3]) / np.logspace(-2, 2, d)[[0, 10, 20, 21]]
    return X, X @ slopes + 5.0 + noise * rng.standard_normal(n)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("weighted", [False, True])
def test_equals_the_formula(rng, centred, dtype, weighted):
    X, y = rows(rng)
    if not centred:
        X, y = X - X.mean(axis=0), y - y.mean()
    weights = rng.integers(0, 4, len(y)).astype(float) if weighted else None
    for parameters in ({}, {"sparsity": 5, "prudent": True}):
        model = SparseRegressor(**parameters, fit_intercept=centred, dtype=dtype)
        for part in np.array_split(np.arange(len(y)), 7):
            model.partial_fit(X[part], y[part], None if weights is None else weights[part])
        support = model.support_
        assert len(support) >= 3
        plain, shrunk = prudent(X, y, support, centred, weights)
        close = {"rtol": 1e-9 if dtype == "float64" else 2e-4, "atol": 0}
        np.testing.assert_allclose(model.overall_coef_[support], plain, **close)
        np.testing.assert_allclose(model.coef_[support], shrunk, **close)
        if centred:
            w = np.ones(len(y)) if weights is None else weights
            expected = np.average(y, weights=w) - np.average(X, axis=0, weights=w) @ model.coef_
            np.testing.assert_allclose(model.intercept_, expected, rtol=1e-7)
        else:
            assert model.intercept_ == 0.0


def test_a_level_of_one_row_is_not_believed_and_one_of_many_is(rng):
    n = 2000
    X = rng.standard_normal((n, 20))
    X[:, 0] = 0.0
    X[100, 0] = 1.0
    y = X[:, 1] + rng.standard_normal(n)
    y[100] += 12.0
    model = SparseRegressor().fit(X, y)
    assert {0, 1} <= set(model.support_)
    plain = model.overall_coef_
    assert 0.2 < model.coef_[0] / plain[0] < 0.5
    assert 0.95 < model.coef_[1] / plain[1] < 1.05
    X[100:300, 0] = 1.0
    y[101:300] += 12.0
    model = SparseRegressor().fit(X, y)
    assert 0.999 < model.coef_[0] / model.overall_coef_[0] < 1.0


@pytest.mark.parametrize("noise", [1e-1, 1e-3, 1e-6, 0.0])
def test_what_is_beyond_doubt_is_left_alone(rng, noise):
    X = rng.standard_normal((500, 20))
    slopes = np.zeros(20)
    slopes[[2, 5]] = 1.0, -2.0
    model = SparseRegressor().partial_fit(X, X @ slopes + noise * rng.standard_normal(500))
    away = np.abs(model.coef_ - model.overall_coef_).max()
    assert away <= noise / np.sqrt(500) + 1e-14  # less than a standard error, and nothing without noise


def test_units_origins_and_cuts_do_not_matter(rng):
    X, y = rows(rng, 700)
    model = SparseRegressor().partial_fit(X, y)
    for size in (1, 64, 333):
        other = SparseRegressor()
        for start in range(0, len(y), size):
            other.partial_fit(X[start : start + size], y[start : start + size])
        np.testing.assert_array_equal(other.coef_, model.coef_)
        assert other.intercept_ == model.intercept_
    units = np.logspace(3, -3, X.shape[1])
    other = SparseRegressor().partial_fit(X * units + 100.0 * units, 7.0 * y - 3.0)
    np.testing.assert_allclose(other.predict(X * units + 100.0 * units), 7.0 * model.predict(X) - 3.0, rtol=1e-7)


def test_summaries_know_the_reach_of_columns(rng):
    X, y = rows(rng, 900)
    whole = SparseRegressor().fit(X, y)
    parts = [Gram(X.shape[1]).absorb(X[part], y[part]) for part in (slice(0, 300), slice(300, 310), slice(310, 900))]
    merged = parts[0].merge(parts[1]).merge(parts[2])
    for summary in (merged, Gram(X.shape[1]).merge(merged), Gram(X.shape[1]).absorb(X[::-1], y[::-1])):
        moments = summary.arrays.moments
        np.testing.assert_allclose(moments[0] + moments[HIGH], X.max(axis=0), rtol=1e-12)
        np.testing.assert_allclose(moments[0] + moments[HIGH + 1], X.min(axis=0), rtol=1e-12)
        np.testing.assert_allclose(SparseRegressor().fit_summary(summary).coef_, whole.coef_, rtol=1e-7)


def test_what_is_subtracted_has_no_say(rng):
    X = rng.standard_normal((300, 10))
    y = X[:, 1] + rng.standard_normal(300)
    kept, gone = Gram(10).absorb(X, y), Gram(10).absorb(X[:1] * 1e6, y[:1])
    left = SparseRegressor().fit_summary(kept.merge(gone).subtract(gone))
    np.testing.assert_allclose(left.coef_, left.overall_coef_, rtol=0, atol=0)  # the reach is not known any more
    inner = Gram(10).absorb(0.1 * X[:1], y[:1])
    left = SparseRegressor().fit_summary(kept.merge(inner).subtract(inner))
    np.testing.assert_allclose(left.coef_, SparseRegressor().fit_summary(kept).coef_, rtol=1e-9)


def test_rows_that_wait_for_the_next_round_change_no_sign():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 6))
    X[:, 0] = 0.0
    X[[10, 50, 90, 395, 396, 397], 0] = 1.0
    y = X[:, 1] + 0.3 * rng.standard_normal(400)
    y[[10, 50, 90]] += 1.0
    y[395:398] += 40.0
    model = SparseRegressor(round_size=390).partial_fit(X, y)
    plain = model.overall_coef_
    assert 0 in model.support_
    assert 0.0 < model.coef_[0] / plain[0] < 1.0
    model.finish()
    _, expected = prudent(X, y, model.support_, True)
    np.testing.assert_allclose(model.coef_[model.support_], expected, rtol=1e-9)


def test_a_row_of_next_to_no_weight_does_not_count(rng):
    X = rng.standard_normal((300, 10))
    y = X[:, 1] + rng.standard_normal(300)
    X[7] *= 1e4
    weights = np.ones(300)
    coefs = []
    for weights[7] in (0.0, 1e-12):
        coefs.append(SparseRegressor().fit(X, y, weights).coef_)
    np.testing.assert_allclose(coefs[1], coefs[0], rtol=1e-3)


def test_small_effects_without_noise_are_exact(rng):
    X = rng.standard_normal((400, 10))
    model = SparseRegressor().partial_fit(X, X[:, 1] + 1e-4 * X[:, 2])
    np.testing.assert_allclose(model.coef_[[1, 2]], [1.0, 1e-4], rtol=1e-9)


def test_a_stream_that_changes_is_followed_from_prudent_coefficients(rng):
    n = 6000
    X = rng.standard_normal((n, 8))
    y = X[:, 1] * np.linspace(-3.0, 3.0, n) + X[:, 2] + 0.3 * rng.standard_normal(n)
    models = [SparseRegressor(prudent=prudently).partial_fit(X, y) for prudently in (True, False)]
    assert all(model.drifts_ for model in models)
    support = models[1].support_
    plain, shrunk = prudent(X, y, support, True)
    moved = (models[0].coef_ - models[1].coef_)[support]
    np.testing.assert_allclose(moved, shrunk - plain, rtol=0, atol=1e-9)


def test_a_summary_that_does_not_know_leaves_least_squares(rng):
    """As those from files of a version before there was prudence."""
    X, y = rows(rng, 900)
    old = Gram(X.shape[1]).absorb(X[:450], y[:450])
    old._arrays = old._arrays._replace(moments=old._arrays.moments[:HIGH].copy())
    new = Gram(X.shape[1]).absorb(X[450:], y[450:])
    for summary in (old, old.copy(), old.merge(new), new.merge(old), old.merge(old)):
        model = SparseRegressor().fit_summary(summary)
        np.testing.assert_array_equal(model.coef_, model.overall_coef_)
    for model in (SparseRegressor().fit_summary(old), SparseRegressor().fit_summary(new.merge(old))):
        model.partial_fit(X, y)
        np.testing.assert_array_equal(model.coef_, model.overall_coef_)
    assert len(old.select([3, 1]).merge(new.select([3, 1])).arrays.moments) == HIGH + 2


def test_when_it_applies(rng):
    X, y = rows(rng)
    for parameters in (
        {"prudent": False},
        {"sparsity": 4},
        {"sparsity": 4, "rule": "hard", "prudent": True},
        {"groups": np.arange(30) // 3, "prudent": True},
    ):
        model = SparseRegressor(**parameters).fit(X, y)
        np.testing.assert_array_equal(model.coef_, model.overall_coef_)
    model = SparseRegressor().partial_fit(X[:300], y[:300])
    before = model.overall_coef_
    model.set_params(prudent=False).partial_fit(X[300:301], y[300:301])
    np.testing.assert_array_equal(model.coef_, model.overall_coef_)
    assert not np.array_equal(model.coef_, before)
    with pytest.raises(ValueError, match="prudent"):
        SparseRegressor(prudent="yes").fit(X, y)


def test_rare_levels_are_predicted_better(rng):
    """Many rare levels without effect, and noise with heavy tails, which makes some of them look as if they had one."""
    errors = {True: 0.0, False: 0.0}
    for _ in range(5):
        n, d = 1500, 120
        X = np.zeros((n, d))
        X[np.arange(n), rng.integers(0, 12, n)] = 1.0
        rare = rng.random(n) < 0.2
        X[rare, rng.integers(12, d, rare.sum())] = 1.0
        truth = np.r_[np.linspace(-2.0, 2.0, 12), np.zeros(d - 12)]
        y = X @ truth + rng.standard_t(3, n)
        for prudently in errors:
            model = SparseRegressor(prudent=prudently).partial_fit(X[:500], y[:500])
            errors[prudently] += ((model.predict(X[500:]) - X[500:] @ truth) ** 2).mean()
    assert errors[True] < 0.95 * errors[False]
