"""Many responses: what is read is reduced-rank regression of all rows so far, with a ridge while they are few."""

import copy
import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from thresher import CrossValidation, MultiResponse, ReducedRankRegressor, load
from thresher.solvers.reduced_rank import STRENGTHS, reduced_rank_path

P, Q = 12, 5


def rows_of(rng, n=700, p=P, q=Q, rank=2, far=0.0):
    """Correlated features in various units, around means that may be far away."""
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * np.eye(p, k=1))
    X = (X + far) * np.logspace(-3, 3, p)
    B = rng.standard_normal((p, rank)) @ rng.standard_normal((rank, q)) / np.logspace(-3, 3, p)[:, None]
    return X, X @ B + 2.0 + rng.standard_normal((n, q))


def about_means(X, Y, centred, weights=None):
    """Rows and responses less their means, times the roots of the weights; and the means."""
    w = np.ones(len(X)) if weights is None else weights
    means = [np.average(A, axis=0, weights=w) if centred else np.zeros(A.shape[1]) for A in (X, Y)]
    root = np.sqrt(w)[:, None]
    return root * (X - means[0]), root * (Y - means[1]), *means


def reduced_rank(X, Y, rank, centred, weights=None):
    """Izenman (1975), from the rows: coefficients (q, p) and intercepts."""
    Z, V, mean_x, mean_y = about_means(X, Y, centred, weights)
    scale = np.sqrt((Z**2).mean(axis=0))
    coef = np.linalg.lstsq(Z / scale, V, rcond=None)[0] / scale[:, None]
    directions = np.linalg.svd(Z @ coef)[2][:rank]
    coef = coef @ directions.T @ directions
    return coef.T, mean_y - mean_x @ coef


def ridge_by_definition(X, Y, rank, centred):
    """Reduced-rank ridge regression, its strengths by generalised cross-validation, from an SVD of the rows.

    The chosen strength, coefficients (q, p), the residual sum of squares and the trace of the hat matrix.
    """
    Z, V, *_ = about_means(X, Y, centred)
    scale = np.sqrt((Z**2).sum(axis=0))
    Z, (n, q) = Z / scale, V.shape
    left, values, right = np.linalg.svd(Z, full_matrices=False)
    left, values, right = (part[values > 1e-5 * values[0]] for part in (left.T, values, right))

    def ridge(k, W, n_kept):
        coef = right.T @ np.diag(values / (values**2 + k)) @ left @ V @ W @ W.T
        t = np.sum(values**2 / (values**2 + k))
        kept = min(n_kept, t)
        free = n * q - q * centred - kept * (t + q - kept)
        rss = ((V - Z @ coef) ** 2).sum()
        return rss / free**2 if free > 1e-9 else np.inf, k, coef, rss, t

    def best(W, n_kept):
        found = [ridge(k * values[0] ** 2, W, n_kept) for k in STRENGTHS]
        least = min(criterion for criterion, *_ in found)
        return next(fit for fit in found if fit[0] <= least * (1.0 + 1e-6))

    _, k, coef, *_ = best(np.eye(q), q)
    W = np.linalg.svd(np.vstack([Z @ coef, np.sqrt(k) * coef]))[2][:rank].T
    _, k, coef, rss, t = best(W, rank)
    return k, (coef / scale[:, None]).T, rss, t


def assert_exact(model, X, Y, n, rank, centred=True, weights=None):
    coef, intercept = reduced_rank(X[:n], Y[:n], rank, centred, None if weights is None else weights[:n])
    scale = np.sqrt((X[:n] ** 2).mean(axis=0))
    np.testing.assert_allclose(model.coef_ * scale, coef * scale, rtol=0, atol=1e-9 * np.abs(coef * scale).max())
    np.testing.assert_allclose(model.intercept_, intercept if centred else 0.0, rtol=0, atol=1e-8 * np.abs(Y).max())


# -- the closed form -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("rank", [1, 2, 4, Q])
@pytest.mark.parametrize(("centred", "far"), [(True, 0.0), (True, 30.0), (False, 0.0), (False, 3.0)])
def test_what_is_read_is_reduced_rank_regression_of_all_rows(rng, rank, centred, far):
    X, Y = rows_of(rng, 300, far=far)
    model = ReducedRankRegressor(rank, fit_intercept=centred)
    for n in range(1, len(X) + 1):
        model.partial_fit(X[n - 1 : n], Y[n - 1 : n])
        if n >= 10 * P and n % 17 in (0, 2):
            assert_exact(model, X, Y, n, rank, centred)
    assert_exact(ReducedRankRegressor(rank, fit_intercept=centred).fit(X, Y), X, Y, 300, rank, centred)
    if rank == Q:
        Z = X / X.std(axis=0)  # scikit-learn drops features of small scale
        oracle = LinearRegression(fit_intercept=centred).fit(Z, Y).predict(Z)
        np.testing.assert_allclose(model.predict(X), oracle, rtol=0, atol=1e-8 * np.abs(Y).max())


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    n=st.integers(3, 70),
    p=st.integers(1, 12),
    q=st.integers(1, 8),
    rank=st.integers(1, 4),
    centred=st.booleans(),
    copies=st.booleans(),
)
def test_few_rows_get_the_ridge_of_generalised_cross_validation(seed, n, p, q, rank, centred, copies):
    rng = np.random.default_rng(seed)
    X, Y = rows_of(rng, n, p, q, min(2, p, q))
    if copies:  # a feature that has no direction of its own
        X = np.column_stack([X, -3.0 * X[:, 0]])
    path = reduced_rank_path(MultiResponse(X.shape[1], q).absorb(X, Y), centred, min(rank, q))
    rank = int(path.sizes[-1])
    if n >= 10 * len(path.eigenvalues):
        assert not path.strength.any()
        return
    k, coef, rss, t = ridge_by_definition(X, Y, rank, centred)
    np.testing.assert_allclose(path.strength[rank - 1], k, rtol=1e-6)
    scale = X.std(axis=0)
    np.testing.assert_allclose(path.coef(rank).T * scale, coef * scale, atol=1e-5 * np.abs(coef * scale).max())
    np.testing.assert_allclose(2.0 * n * q * path.loss[rank - 1], rss, rtol=1e-5, atol=1e-9 * (Y**2).sum())
    np.testing.assert_allclose(path.freedom[rank - 1], min(rank, t) * (t + q - min(rank, t)), rtol=1e-6)


def test_the_ridge_ends_at_ten_rows_for_each_feature_that_is_not_a_copy(rng):
    X, Y = rows_of(rng, 200)
    X = np.column_stack([X, X[:, :6] @ rng.standard_normal((6, 6))])
    model = ReducedRankRegressor(2).partial_fit(X[:119], Y[:119])
    exact, _ = reduced_rank(X[:119], Y[:119], 2, True)
    assert np.linalg.norm((model.coef_ - exact) * X.std(axis=0)) > 1e-4 * np.linalg.norm(exact * X.std(axis=0))
    assert_exact(model.partial_fit(X[119:120], Y[119:120]), X, Y, 120, 2)


@pytest.mark.parametrize("n", [40, 300])
def test_scales_and_means_of_the_features_change_nothing(rng, n):
    X, Y = rows_of(rng, n)
    scale, shift = 10.0 ** rng.integers(-6, 7, P), 100.0 * rng.standard_normal(P)
    plain, other = ReducedRankRegressor(2).fit(X, Y), ReducedRankRegressor(2).fit((X + shift) * scale, Y)
    np.testing.assert_allclose(other.predict((X + shift) * scale), plain.predict(X), rtol=1e-6)


@pytest.mark.parametrize("n", [60, 400])
def test_means_a_hundred_million_standard_deviations_away(rng, n):
    X, Y = rng.standard_normal((n, 6)), rng.standard_normal((n, 3))
    Y += X @ rng.standard_normal((6, 1)) @ rng.standard_normal((1, 3))
    away = X + 1e8  # the rounding of the rows themselves is 1e-8
    near, far = (ReducedRankRegressor(1).fit(Z, Y) for Z in (away - 1e8, away))
    np.testing.assert_allclose(far.coef_, near.coef_, atol=1e-7)
    np.testing.assert_allclose(far.predict(away), near.predict(away - 1e8), atol=1e-6)


@pytest.mark.parametrize("q", [1, 3, 20])
def test_more_responses_than_features_and_only_one(rng, q):
    X, Y = rows_of(rng, 400, p=6, q=q, rank=min(2, q))
    rank = min(2, q)
    model = ReducedRankRegressor(rank).partial_fit(X[:333], Y[:333])
    assert_exact(model, X, Y, 333, rank)
    u, s, vt = model.factors_
    np.testing.assert_allclose((u * s) @ vt, model.coef_.T, atol=1e-9 * np.abs(model.coef_).max())


@pytest.mark.parametrize("n", [50, 400])
def test_weights_are_repeats_and_may_be_zero_or_large(rng, n):
    X, Y = rows_of(rng, n)
    weights = rng.integers(0, 4, n).astype(float)
    model, repeated = ReducedRankRegressor(2), ReducedRankRegressor(2)
    for part in np.array_split(np.arange(n), 13):
        model.partial_fit(X[part], Y[part], weights[part])
        repeated.partial_fit(*(np.repeat(A[part], weights[part].astype(int), axis=0) for A in (X, Y)))
    np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-7)
    weights[:2] = 1e6, 0.0
    assert_exact(ReducedRankRegressor(2).fit(X, Y, weights), X, Y, n, 2, weights=weights)


def test_merged_summaries_give_what_one_pass_gives(rng):
    X, Y = rows_of(rng, 300)
    for n in (90, 300):
        parts = [MultiResponse(P, Q).absorb(X[a:b], Y[a:b]) for a, b in ((0, 40), (40, n))]
        merged = ReducedRankRegressor().fit_summary(parts[0].merge(parts[1]))
        np.testing.assert_allclose(merged.coef_, ReducedRankRegressor().fit(X[:n], Y[:n]).coef_, rtol=1e-7)
        left = parts[0].merge(parts[1]).subtract(parts[0])
        np.testing.assert_allclose(
            ReducedRankRegressor(2).fit_summary(left).coef_,
            ReducedRankRegressor(2).fit(X[40:n], Y[40:n]).coef_,
            rtol=1e-6,
        )


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9, 1e12])
def test_outliers_and_units_that_change_cost_no_digits(rng, size):
    X, Y = rows_of(rng, 220)
    X = X / X.std(axis=0)
    for outliers in ([150, 160, 199], slice(150, 220)):
        Z = X.copy()
        Z[outliers, 4] *= size
        model = ReducedRankRegressor(2).partial_fit(Z, Y)
        best = model.summary_.loss(reduced_rank(Z, Y, 2, True)[0].T, None)
        assert model.summary_.loss(model.coef_.T, None) <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("size", [1e-150, 1e-7, 1e5, 1e7])
def test_responses_of_very_different_sizes(rng, size):
    X, Y = rows_of(rng, 220)
    X = X / X.std(axis=0)
    Y[:, 0] *= size
    if size < 1e-100:
        Y[:, 1:] *= size
    expected = reduced_rank(X, Y, 2, True)[0]
    np.testing.assert_allclose(ReducedRankRegressor(2).fit(X, Y).coef_, expected, rtol=1e-6)


# -- reading and the stream --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "parameters", [{}, {"rank": 2}, {"rank": 3, "fit_intercept": False}, {"selection": CrossValidation(3)}]
)
def test_any_cut_a_copy_and_reading_give_the_same_bits(rng, parameters):
    X, Y = rows_of(rng)
    whole = ReducedRankRegressor(**parameters).fit(X, Y)
    for size in (1, 50, 128, 333):
        model = ReducedRankRegressor(**parameters)
        for start in range(0, len(X), size):
            model.partial_fit(X[start : start + size], Y[start : start + size])
            if start % 3 == 0 and size > 1:
                assert model.predict(X[:2]).shape == (2, Q)
            if start < 400 <= start + size:
                model = pickle.loads(pickle.dumps(copy.deepcopy(model)))
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(model.intercept_, whole.intercept_)
        assert model.rank_ == whole.rank_
        np.testing.assert_array_equal(model.finish().coef_, whole.coef_)


@pytest.mark.parametrize("selection", ["noise_edge", "cv"])
def test_a_file_goes_on_with_the_same_bits_whether_or_not_it_was_read(rng, tmp_path, selection):
    X, Y = rows_of(rng)
    whole = ReducedRankRegressor(selection=selection).partial_fit(X, Y)
    model = ReducedRankRegressor(selection=selection).partial_fit(X[:333], Y[:333])
    model.save(tmp_path / "unread.thresher")
    assert model.rank_ == 2
    model.save(tmp_path / "read.thresher")
    assert (tmp_path / "read.thresher").read_bytes() == (tmp_path / "unread.thresher").read_bytes()
    model = load(tmp_path / "read.thresher").partial_fit(X[333:], Y[333:])
    np.testing.assert_array_equal(model.coef_, whole.coef_)


def test_parameters_take_effect_with_the_next_call(rng):
    X, Y = rows_of(rng, rank=3)
    model = ReducedRankRegressor(1).partial_fit(X[:300], Y[:300])
    model.set_params(rank=3)
    assert_exact(model, X, Y, 300, 1)
    assert_exact(model.finish(), X, Y, 300, 3)
    model.set_params(fit_intercept=False).partial_fit(X[300:520], Y[300:520])
    assert_exact(model, X, Y, 520, 3, centred=False)
    model.set_params(rank="auto").partial_fit(X[520:], Y[520:])
    assert_exact(model, X, Y, 700, 3, centred=False)
    assert model.selection_.n_samples == 700
    model.set_params(selection="cv")
    with pytest.raises(ValueError, match="Cross-validation needs the rows"):
        model.partial_fit(X, Y)
    assert model.n_samples_seen_ == 700


def test_rows_absorbed_by_the_summary_are_noticed_and_arrays_cannot_be_written(rng):
    X, Y = rows_of(rng, 600)
    model = ReducedRankRegressor(2).partial_fit(X[:200], Y[:200])
    before = model.coef_
    assert model.coef_ is not None
    assert np.shares_memory(model.coef_, before)  # computed once
    with pytest.raises(ValueError, match="read-only"):
        model.coef_[0, 0] = 1.0
    model.summary_.absorb(X[200:], Y[200:])
    assert_exact(model, X, Y, 600, 2)


def test_constant_features_get_no_coefficients_and_may_begin_to_vary(rng):
    X, Y = rows_of(rng)
    X = X / X.std(axis=0)
    X[:400, 3] = 1e8
    model = ReducedRankRegressor(2).partial_fit(X[:1], Y[:1])
    assert not model.coef_.any()
    np.testing.assert_allclose(model.intercept_, Y[0])
    model.partial_fit(X[1:400], Y[1:400])
    assert not model.coef_[:, 3].any()
    assert model.score(X[:400], Y[:400]) > 0.5
    X[400:, 3] = 1e8 + rng.standard_normal(300)
    model.partial_fit(X[400:], Y[400:])
    assert model.coef_[:, 3].all()


def test_without_noise_few_rows_are_enough(rng):
    X = rng.standard_normal((40, 20))
    Y = X @ rng.standard_normal((20, 2)) @ rng.standard_normal((2, 6)) + 1.0
    model = ReducedRankRegressor().fit(X, Y)
    assert model.rank_ == 2
    np.testing.assert_allclose(model.predict(X), Y, atol=1e-9)


def test_the_ridge_is_better_than_least_squares_while_rows_are_few():
    """Excess error on new rows, over eight draws; the error of zero coefficients is one."""
    errors = {n: [] for n in (50, 100, 250)}
    for seed in range(8):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((250, 50))
        B = rng.standard_normal((50, 2)) @ rng.standard_normal((2, 20)) / np.sqrt(100)
        Y = X @ B + rng.standard_normal((250, 20))
        for n, found in errors.items():
            exact, _ = reduced_rank(X[:n], Y[:n], 2, True)
            ours = ReducedRankRegressor(2).fit(X[:n], Y[:n]).coef_
            found.append([((coef.T - B) ** 2).sum() / (B**2).sum() for coef in (ours, exact)])
    ours, exact = np.mean([errors[n] for n in errors], axis=1).T
    assert np.all(ours < [0.1 * exact[0], 0.9 * exact[1], exact[2]])
    assert np.all(np.diff(ours) < 0.0)
    assert ours[0] < 1.0
