"""AdaptiveDantzig against linear programs written down another way, from the rows themselves."""

from itertools import combinations, pairwise

import numpy as np
import pytest
from scipy.optimize import linprog
from sklearn.exceptions import ConvergenceWarning

from thresher.baselines import AdaptiveDantzig, adaptive_dantzig


@pytest.fixture
def rows(rng):
    X = rng.standard_normal((300, 15)) + 0.5 * rng.standard_normal((300, 1))
    return X, X[:, 3] - 2.0 * X[:, 7] + 0.5 * X[:, 9] + 0.5 * rng.standard_normal(300)


def level(t, d, k0, C, sigma, delta):
    return C * np.sqrt(d * np.log(t * d / delta) / (t * k0)) * (sigma + d / k0)


def selector(A, b, lam):
    """Min sum m with -m <= w <= m and |b - A w| <= lam, all as one-sided inequalities in (w, m)."""
    d = len(b)
    eye, none = np.eye(d), np.zeros((d, d))
    left = np.block([[eye, -eye], [-eye, -eye], [A, none], [-A, none]])
    right = np.concatenate([np.zeros(2 * d), b + lam, lam - b])
    result = linprog(np.repeat([0.0, 1.0], d), A_ub=left, b_ub=right, bounds=(None, None), method="highs-ipm")
    assert result.status == 0
    return result.x[:d]


def dual_bound(A, b, lam):
    """Max b'u - lam |u|_1 subject to |A u| <= 1: no feasible w has a smaller l1 norm."""
    d = len(b)
    both = np.hstack([A, -A])
    cost = np.concatenate([lam - b, lam + b])
    result = linprog(cost, A_ub=np.vstack([both, -both]), b_ub=np.ones(2 * d))
    assert result.status == 0
    u = result.x[:d] - result.x[d:]
    assert np.abs(A @ u).max() <= 1.0 + 1e-6
    return b @ u - lam * np.abs(u).sum()


@pytest.mark.parametrize("penalty", [0.02, 0.2, 0.6])
def test_with_all_features_it_is_the_dantzig_selector(rows, penalty):
    X, y = rows
    model = AdaptiveDantzig(15, penalty=penalty, noise=0.7, n_warmup=100, delta=0.1).fit(X, y)
    A, b = X[:256].T @ X[:256] / 256, X[:256].T @ y[:256] / 256
    lam = level(256, 15, 15, penalty, 0.7, 0.1)
    np.testing.assert_allclose(model.penalty_, lam, rtol=1e-12)
    # Feasible, and as short as weak duality allows.
    assert np.abs(b - A @ model.coef_).max() <= lam + 1e-6
    np.testing.assert_allclose(np.abs(model.coef_).sum(), dual_bound(A, b, lam), atol=1e-6)
    np.testing.assert_allclose(model.coef_, selector(A, b, lam), atol=1e-5)
    assert model.coef_.any()
    few = AdaptiveDantzig(2, penalty=penalty, noise=0.7, n_warmup=100, delta=0.1).fit(X, y)
    np.testing.assert_array_equal(few.support_, [3, 7])
    np.testing.assert_array_equal(few.coef_[[3, 7]], model.coef_[[3, 7]])


def test_with_some_features_it_solves_for_corrected_moments(rows):
    X, y = rows
    model = AdaptiveDantzig(15, n_observed=9, penalty=0.1, noise=0.5, n_warmup=100, random_state=5)
    seen, by_model = [], model._seen

    def recorded(block):
        seen.append(by_model(block))
        return seen[-1]

    model._seen = recorded
    model.fit(X, y)
    Z = np.vstack(seen)
    np.testing.assert_array_equal((Z != 0.0).sum(axis=1), 9)
    np.testing.assert_array_equal(Z, np.where(Z != 0.0, X, 0.0))
    A = Z[:256].T @ Z[:256] / 256
    A = np.where(np.eye(15) == 1.0, A / (9 / 15), A / (9 * 8 / (15 * 14)))
    b = Z[:256].T @ y[:256] / 256 / (9 / 15)
    lam = level(256, 15, 9, 0.1, 0.5, 0.05)
    assert np.abs(b - A @ model.coef_).max() <= lam + 1e-6
    np.testing.assert_allclose(np.abs(model.coef_).sum(), dual_bound(A, b, lam), atol=1e-6)
    np.testing.assert_allclose(model.coef_, selector(A, b, lam), atol=1e-5)


@pytest.mark.parametrize(("d", "k0"), [(5, 2), (6, 4), (4, 4), (2, 2)])
def test_moments_are_unbiased_over_all_subsets(rng, d, k0):
    X, y = rng.standard_normal((7, d)), rng.standard_normal(7)
    moments, cross = [], []
    for subset in combinations(range(d), k0):
        Z = np.zeros_like(X)
        Z[:, subset] = X[:, subset]
        A, b = adaptive_dantzig.unbiased(Z.T @ Z, Z.T @ y, k0)
        moments.append(A)
        cross.append(b)
    np.testing.assert_allclose(np.mean(moments, axis=0), X.T @ X, atol=1e-12)
    np.testing.assert_allclose(np.mean(cross, axis=0), X.T @ y, atol=1e-12)


def test_every_subset_is_equally_likely():
    model = AdaptiveDantzig(1, n_observed=3, random_state=1).fit(np.ones((1, 6)), [1.0])
    seen = model._seen(np.ones((20_000, 6)))
    _, counts = np.unique(seen, axis=0, return_counts=True)
    assert len(counts) == 20  # 6 choose 3
    assert np.abs(counts - 1000).max() < 5 * np.sqrt(1000 * 0.95)


def test_the_estimate_changes_at_powers_of_two_only(rows):
    X, y = rows
    model, estimates = AdaptiveDantzig(15, penalty=0.05, n_warmup=20), [np.zeros(15)]
    for i in range(300):
        estimates.append(model.partial_fit(X[i : i + 1], y[i : i + 1]).coef_)
    changes = [t for t, (a, b) in enumerate(pairwise(estimates), start=1) if not np.array_equal(a, b)]
    assert changes == [32, 64, 128, 256]
    assert model.n_solved_ == 4
    assert np.isnan(AdaptiveDantzig(3).fit(X[:63], y[:63]).penalty_)
    exactly = AdaptiveDantzig(3, n_warmup=64).fit(X[:64], y[:64])
    assert exactly.n_solved_ == 1
    assert AdaptiveDantzig(3, n_warmup=1).fit(X, y).n_solved_ == 9


def test_random_states(rows):
    X, y = rows

    def coef(random_state):
        return AdaptiveDantzig(5, n_observed=6, penalty=0.1, random_state=random_state).fit(X, y).coef_

    np.testing.assert_array_equal(coef(3), coef(3))
    np.testing.assert_array_equal(coef(3), coef(np.random.RandomState(3)))
    assert np.any(coef(3) != coef(4))
    assert np.any(coef(None) != coef(None))
    again = AdaptiveDantzig(5, n_observed=6, penalty=0.1, random_state=3).fit(X, y)
    np.testing.assert_array_equal(again.fit(X, y).coef_, coef(3))  # fit starts over


def test_units(rows):
    X, y = rows
    expected = AdaptiveDantzig(4, n_observed=10, penalty=0.1, random_state=0).fit(X, y).coef_
    for unit_x, unit_y in ((2.0**300, 2.0**-310), (2.0**-200, 2.0**190)):
        model = AdaptiveDantzig(4, n_observed=10, penalty=0.1 * unit_x * unit_y, random_state=0)
        np.testing.assert_allclose(model.fit(unit_x * X, unit_y * y).coef_ * unit_x / unit_y, expected, rtol=1e-9)


def test_a_program_that_fails_leaves_the_estimate_and_is_told_once(rows, monkeypatch):
    X, y = rows
    model = AdaptiveDantzig(4).fit(X[:100], y[:100])
    before = model.coef_.copy()
    assert before.any()
    monkeypatch.setattr(adaptive_dantzig, "dantzig", lambda moments, *_: (np.zeros(len(moments)), "infeasible"))
    with pytest.warns(ConvergenceWarning, match="linear program at 128 rows is infeasible"):
        model.partial_fit(X[100:200], y[100:200])
    np.testing.assert_array_equal(model.coef_, before)
    model.partial_fit(X[200:], y[200:])
    np.testing.assert_array_equal(model.coef_, before)
    assert model.n_samples_seen_ == 300
    monkeypatch.undo()
    assert np.any(model.fit(X, y).coef_ != before)


def test_coefficients_that_overflow_are_noted_at_once(rng):
    """However rows are cut: at 64 rows two columns of 1e-154 nearly agree; at 128 rows they are ordinary ones."""
    x, e = rng.choice([-1.0, 1.0], (2, 64))
    X = np.vstack([2e-154 * np.column_stack([x, x + 1e-4 * e]), rng.standard_normal((64, 2))])
    y = np.append(9e150 * e, X[64:, 0])
    for start, stop in ((0, 128), (63, 64), (63, 128)):
        model = AdaptiveDantzig(2, penalty=0.0)
        for i in range(start):  # single rows may be so small
            model.partial_fit(X[i : i + 1], y[i : i + 1])
        with pytest.warns(ConvergenceWarning, match="diverged at row 63 .* Rescale"):
            model.partial_fit(X[start:stop], y[start:stop])
        assert model.diverged_at_ == 63
        np.testing.assert_array_equal(model.coef_, 0.0)


def test_a_probability_next_to_zero(rows):
    X, y = rows
    for delta in (5e-324, 1e-300):
        nothing = AdaptiveDantzig(15, penalty=0.0, delta=delta).fit(X, y)
        assert nothing.penalty_ == 0.0
        np.testing.assert_allclose(nothing.coef_, np.linalg.lstsq(X[:256], y[:256], rcond=None)[0], atol=1e-6)
        assert AdaptiveDantzig(15, delta=delta).fit(X, y).penalty_ == pytest.approx(
            level(256, 15, 15, 0.5, 1.0, 1.0) * np.sqrt((np.log(256 * 15) - np.log(delta)) / np.log(256 * 15))
        )


def test_what_highs_says_of_impossible_programs():
    w, fault = adaptive_dantzig.dantzig(np.zeros((2, 2)), np.ones(2), 0.5)
    assert fault == "infeasible"
    w, fault = adaptive_dantzig.dantzig(np.zeros((2, 2)), np.ones(2), 1.0)
    np.testing.assert_array_equal(w, 0.0)
    assert not fault


def test_one_column_and_more_to_see_than_there_is(rng):
    x = rng.standard_normal((64, 1))
    y = 3.0 * x[:, 0]
    model = AdaptiveDantzig(2, n_observed=5, penalty=0.1).fit(x, y)
    lam = level(64, 1, 1, 0.1, 1.0, 0.05)
    np.testing.assert_allclose(model.coef_, 3.0 - lam / np.mean(x**2), atol=1e-6)
    with pytest.raises(ValueError, match="n_observed"):
        AdaptiveDantzig(2, n_observed=1).fit(x, y)
