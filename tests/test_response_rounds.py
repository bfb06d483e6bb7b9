"""Many responses: after every row, reduced-rank regression of all rows so far."""

import copy
import pickle

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning

from thresher import MultiResponse, ReducedRankRegressor, load
from thresher.online.dense import DenseRounds
from thresher.online.responses import ResponseRounds
from thresher.online.samples import Rows
from thresher.sparsity.rank import Rank

P, Q = 12, 5
# The buffer is folded after every 128 rows, and least squares is exact from the first fold on that has 2 P rows.
FIRST = 128


def rows_of(rng, n=700, p=P, q=Q, rank=2, far=0.0):
    """Correlated features in various units, around means that may be far away."""
    X = rng.standard_normal((n, p)) @ (np.eye(p) + 0.5 * np.eye(p, k=1))
    X = (X + far) * np.logspace(-3, 3, p)
    B = rng.standard_normal((p, rank)) @ rng.standard_normal((rank, q)) / np.logspace(-3, 3, p)[:, None]
    return X, X @ B + 2.0 + rng.standard_normal((n, q))


def reduced_rank(X, Y, rank, centred, weights=None):
    """Izenman (1975), from the rows: coefficients (q, p) and intercepts."""
    w = np.ones(len(X)) if weights is None else weights
    mean_x = np.average(X, axis=0, weights=w) if centred else np.zeros(X.shape[1])
    mean_y = np.average(Y, axis=0, weights=w) if centred else np.zeros(Y.shape[1])
    root = np.sqrt(w)[:, None]
    Z, V = root * (X - mean_x), root * (Y - mean_y)
    scale = np.sqrt((Z**2).mean(axis=0))
    coef = np.linalg.lstsq(Z / scale, V, rcond=None)[0] / scale[:, None]
    directions = np.linalg.svd(Z @ coef)[2][:rank]
    coef = coef @ directions.T @ directions
    return coef.T, mean_y - mean_x @ coef


def assert_exact(model, X, Y, n, rank, centred=True, weights=None):
    coef, intercept = reduced_rank(X[:n], Y[:n], rank, centred, None if weights is None else weights[:n])
    scale = np.sqrt((X[:n] ** 2).mean(axis=0))
    np.testing.assert_allclose(model.coef_ * scale, coef * scale, rtol=0, atol=1e-9 * np.abs(coef * scale).max())
    np.testing.assert_allclose(model.intercept_, intercept if centred else 0.0, rtol=0, atol=1e-8 * np.abs(Y).max())


@pytest.mark.parametrize("rank", [1, 2, 4, Q])
@pytest.mark.parametrize(("centred", "far"), [(True, 0.0), (True, 30.0), (False, 0.0), (False, 3.0)])
def test_every_row_leaves_reduced_rank_regression_of_all_rows(rng, rank, centred, far):
    X, Y = rows_of(rng, 300, far=far)
    model = ReducedRankRegressor(rank, fit_intercept=centred)
    for n in range(1, len(X) + 1):
        model.partial_fit(X[n - 1 : n], Y[n - 1 : n])
        if n >= FIRST and n % 7 in (0, 2):
            assert_exact(model, X, Y, n, rank, centred)
    assert model.n_rounds_ == 300


@pytest.mark.parametrize("q", [1, 3, 20])
def test_more_responses_than_features_and_only_one(rng, q):
    X, Y = rows_of(rng, 400, p=6, q=q, rank=min(2, q))
    rank = min(2, q)
    model = ReducedRankRegressor(rank).partial_fit(X[:333], Y[:333])
    assert_exact(model, X, Y, 333, rank)


def test_weights_are_repeats_and_may_be_zero_or_large(rng):
    X, Y = rows_of(rng, 400)
    weights = rng.integers(0, 4, 400).astype(float)
    weights[200], weights[340] = 1e6, 0.0
    model = ReducedRankRegressor(2)
    for part in np.array_split(np.arange(400), 13):
        model.partial_fit(X[part], Y[part], weights[part])
    assert_exact(model, X, Y, 400, 2, weights=weights)


@pytest.mark.parametrize("parameters", [{}, {"rank": 2}, {"rank": 3, "round_size": 7, "n_warmup": 150}])
def test_any_cut_and_a_copy_give_the_same_bits(rng, parameters):
    X, Y = rows_of(rng)
    whole = ReducedRankRegressor(**parameters).partial_fit(X, Y)
    for size in (1, 50, 128, 333):
        model = ReducedRankRegressor(**parameters)
        for start in range(0, len(X), size):
            model.partial_fit(X[start : start + size], Y[start : start + size])
            if start < 400 <= start + size:
                model = pickle.loads(pickle.dumps(copy.deepcopy(model)))
        np.testing.assert_array_equal(model.coef_, whole.coef_)
        np.testing.assert_array_equal(model.intercept_, whole.intercept_)
        assert model.n_rounds_ == whole.n_rounds_


def test_rows_wait_for_the_end_of_their_round(rng):
    X, Y = rows_of(rng)
    model = ReducedRankRegressor(2, round_size=10, n_warmup=5)
    for start in range(0, 700, 100):
        model.partial_fit(X[start : start + 100], Y[start : start + 100])
        if start:
            assert_exact(model, X, Y, start + 95, 2)
    assert_exact(model.finish(), X, Y, 700, 2)
    model.set_params(round_size=3).partial_fit(X[:1], Y[:1])
    assert model.n_rounds_ == 70  # 69 rounds of ten rows and one of five; the row waits
    model.set_params(round_size=1).partial_fit(X[1:2], Y[1:2])
    assert_exact(model, np.vstack([X, X[:2]]), np.vstack([Y, Y[:2]]), 702, 2)


def test_a_rank_that_changes_and_parameters_that_are_set_on_the_way(rng):
    X, Y = rows_of(rng, rank=3)
    model = ReducedRankRegressor(1).partial_fit(X[:300], Y[:300])
    model.set_params(rank=3).partial_fit(X[300:301], Y[300:301])
    assert_exact(model, X, Y, 301, 3)
    model.set_params(fit_intercept=False).partial_fit(X[301:520], Y[301:520])
    assert_exact(model, X, Y, 520, 3, centred=False)
    model.set_params(rank="auto").partial_fit(X[520:], Y[520:])
    assert_exact(model, X, Y, 700, model.rank_, centred=False)


def test_steps_of_a_given_size_are_those_of_dense_rounds(rng):
    X, Y = rows_of(rng, 300)
    X = X / X.std(axis=0)
    summaries = MultiResponse(P, Q), MultiResponse(P, Q)
    plain = DenseRounds(summaries[0], Rank(2), True, False)
    other = ResponseRounds(summaries[1], Rank(2), True, False)
    for rounds in (plain, other):
        rounds.absorb(Rows(X, Y), np.full((1, 3), 0.05))
    np.testing.assert_array_equal(other.coef, plain.coef)
    coef, _ = reduced_rank(X, Y, 2, True)
    assert np.abs(plain.coef.T - coef).max() > 1e-6
    other.run_round("auto", 3)  # not exact before the next fold
    for rows in np.array_split(np.arange(300), 3):
        other.absorb(Rows(X[rows], Y[rows]), np.zeros((1, 3)))
    np.testing.assert_allclose(
        other.coef.T, reduced_rank(np.tile(X, (2, 1)), np.tile(Y, (2, 1)), 2, True)[0], atol=1e-9
    )


@pytest.mark.parametrize("harm", ["copy", "constant"])
def test_collinear_and_constant_features_are_left_to_gradient_steps(rng, harm):
    X, Y = rows_of(rng)
    X = X / X.std(axis=0)
    X[:400, 3] = X[:400, 4] if harm == "copy" else 1.0
    model = ReducedRankRegressor(2).partial_fit(X[:400], Y[:400])
    summary = model.summary_
    best = ReducedRankRegressor(2).fit(X[:400], Y[:400])
    assert summary.loss(model.coef_.T, None) <= 1.01 * summary.loss(best.coef_.T, None)
    model.partial_fit(X[400:], Y[400:])  # now they are neither, from the fold at 512 on
    assert_exact(model, X, Y, 700, 2)


def test_few_rows_are_not_fitted_exactly(rng):
    X, Y = rows_of(rng, 256, p=100)
    model = ReducedRankRegressor(2).partial_fit(X[:150], Y[:150])
    coef, _ = reduced_rank(X[:150], Y[:150], 2, True)
    away = np.linalg.norm((model.coef_ - coef) * X.std(axis=0)) / np.linalg.norm(coef * X.std(axis=0))
    assert away > 0.01
    assert_exact(model.partial_fit(X[150:], Y[150:]), X, Y, 256, 2)


def in_cuts(X, Y, sizes, **parameters):
    """Models of the same rows, in calls of these sizes."""
    models = []
    for size in sizes:
        model = ReducedRankRegressor(2, **parameters)
        for start in range(0, len(X), size):
            model.partial_fit(X[start : start + size], Y[start : start + size])
        models.append(model)
    return models


def test_rows_that_overflow_leave_the_estimate_finite_for_any_cut(rng):
    X, Y = rows_of(rng, 300)
    X *= 1e-130
    X[200] = 1e130  # its square is 1e520 of theirs
    with pytest.warns(ConvergenceWarning, match="overflow"):
        models = in_cuts(X[:255], Y[:255], (1, 50, 300))
    assert np.isfinite(models[0].coef_).all()
    for model in models[1:]:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)


def test_a_fold_that_finds_features_collinear_does_not_depend_on_the_cut(rng):
    n = 1536
    X = rng.standard_normal((n, 6))
    Y = X @ rng.standard_normal((6, 2)) @ rng.standard_normal((2, 4)) + 2.0 + rng.standard_normal((n, 4))
    factor = 1e6 * rng.standard_normal(128)
    X[1408:, :2] += factor[:, None]
    Y[1408:] += factor[:, None]
    models = in_cuts(X, Y, (1, 64, n))
    for model in models:
        np.testing.assert_array_equal(model.coef_, models[0].coef_)
        best = model.summary_.loss(reduced_rank(X, Y, 2, True)[0].T, None)
        assert model.summary_.loss(model.coef_.T, None) <= 1.01 * best


@pytest.mark.parametrize("size", [1e3, 1e6, 1e9, 1e12])
def test_outliers_and_units_that_change_cost_no_digits(rng, size):
    X, Y = rows_of(rng, 220)
    X = X / X.std(axis=0)
    for outliers in ([150, 160, 199], slice(150, 220)):
        Z = X.copy()
        Z[outliers, 4] *= size
        models = in_cuts(Z, Y, (1, 40, 220))
        for model in models:
            np.testing.assert_array_equal(model.coef_, models[0].coef_)
        best = model.summary_.loss(reduced_rank(Z, Y, 2, True)[0].T, None)
        assert model.summary_.loss(model.coef_.T, None) <= best * (1.0 + 1e-9)


@pytest.mark.parametrize("size", [1e-160, 1e-7, 1e5, 1e7])
def test_responses_of_very_different_sizes(rng, size):
    X, Y = rows_of(rng, 220)
    X = X / X.std(axis=0)
    Y[:, 0] *= size
    if size < 1e-100:
        Y[:, 1:] *= size
    model = ReducedRankRegressor(2).partial_fit(X, Y)
    coef = ReducedRankRegressor(2).fit(X, Y).coef_
    assert np.abs(model.coef_ / coef - 1.0).max() < 1e-6


def test_exact_after_fit_and_after_what_changes_the_problem(rng):
    X, Y = rows_of(rng)
    model = ReducedRankRegressor(2).fit(X[:500], Y[:500]).partial_fit(X[500:501], Y[500:501])
    assert_exact(model, X, Y, 501, 2)
    model.set_params(fit_intercept=False).partial_fit(X[501:502], Y[501:502])
    assert_exact(model, X, Y, 502, 2, centred=False)
    model.set_params(row_sparsity=4).partial_fit(X[502:503], Y[502:503])
    model.set_params(row_sparsity=None).partial_fit(X[503:504], Y[503:504])
    assert_exact(model, X, Y, 504, 2, centred=False)
    settled = ReducedRankRegressor(2, fit_intercept=False).fit_summary(model.summary_)
    assert_exact(settled, X, Y, 504, 2, centred=False)
    chosen = ReducedRankRegressor(n_warmup=300)
    for n in range(1, 302):
        chosen.partial_fit(X[n - 1 : n], Y[n - 1 : n])
    assert_exact(chosen, X, Y, 301, chosen.rank_)


def test_a_given_step_size_is_taken_by_finish_too(rng):
    X, Y = rows_of(rng, 300)
    model = ReducedRankRegressor(2, round_size=300).partial_fit(X[:299], Y[:299])
    model.set_params(round_size=1).partial_fit(X[299:], Y[299:]).set_params(round_size=7).partial_fit(X[:3], Y[:3])
    before = model.coef_.copy()
    model.set_params(step_size=1e-12).finish()
    np.testing.assert_allclose(model.coef_, before, rtol=1e-6)


def test_features_that_are_nearly_collinear_are_left_to_gradient_steps(rng):
    X, Y = rows_of(rng, 300)
    X = X / X.std(axis=0)
    X[:, 3] = X[:, 4] + 3e-5 * X[:, 3]
    model = ReducedRankRegressor(2).partial_fit(X, Y)
    assert model._rounds.inner._fit is None
    X[:, 3] += 3e-3 * rng.standard_normal(300)
    model = ReducedRankRegressor(2).partial_fit(X, Y)
    assert_exact(model, X, Y, 300, 2)


def test_rows_absorbed_behind_the_back_are_noticed(rng):
    X, Y = rows_of(rng, 600)
    summary = MultiResponse(P, Q)
    rounds = ResponseRounds(summary, Rank(2), True, True).absorb(Rows(X[:200], Y[:200]), np.zeros((1, 5)))
    summary.absorb(X[200:210], Y[200:210])
    before = summary.loss(rounds.coef, None)
    rounds.run_round("auto", 5)
    assert summary.loss(rounds.coef, None) < before
    rounds.absorb(Rows(X[210:], Y[210:]), np.zeros((1, 5)))
    np.testing.assert_allclose(
        summary.loss(rounds.coef, None), summary.loss(reduced_rank(X, Y, 2, True)[0].T, None), rtol=1e-12
    )


def test_a_file_goes_on_with_the_same_bits(rng, tmp_path):
    X, Y = rows_of(rng)
    whole = ReducedRankRegressor().partial_fit(X, Y)
    ReducedRankRegressor().partial_fit(X[:333], Y[:333]).save(tmp_path / "model.thresher")
    model = load(tmp_path / "model.thresher").partial_fit(X[333:], Y[333:])
    np.testing.assert_array_equal(model.coef_, whole.coef_)
