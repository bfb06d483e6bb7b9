"""Streams that change: what the pieces compute, beside direct sums and slow loops, and what the estimator does."""

import pickle
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.linear_model import LinearRegression

from thresher import Gram, SparseRegressor
from thresher.drift import _refit, _score, reference
from thresher.drift.breaks import evidence, rows_since_break
from thresher.drift.levels import moved, start
from thresher.drift.mixing import Mixing
from thresher.drift.recent import Recent
from thresher.drift.settings import (
    BREAK_EVIDENCE,
    CAP,
    ENTER,
    ERROR_HALF_LIFE,
    FAR,
    FEWEST_CARRIERS,
    HALF_LIVES,
    LAST_ROWS,
    MORE_ROWS,
    N_LEVELS,
    PRIOR,
    RATE,
    SHARE,
    VARIANCES,
)
from thresher.io.checkpoint import from_bytes
from thresher.io.encoding import encode

D = 12


def flipping(seed, n=5000, at=2000, d=D, noise=0.3):
    """Three features; the coefficient of the first changes its sign."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) + 0.5
    beta = np.tile([1.0, -0.7, 0.5], (n, 1))
    beta[at:, 0] = -1.0
    return X, (X[:, :3] * beta).sum(axis=1) + noise * rng.standard_normal(n)


def stationary(seed, n=3000, d=D):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X[:, 0] - X[:, 3] + rng.standard_normal(n)


def random_moments(rng, s, n_rows=60):
    """Levels of random rows with random weights, the mean of each feature not at zero."""
    moments, squares = np.empty((N_LEVELS, s + 2, s + 2)), np.empty(N_LEVELS)
    for k in range(N_LEVELS):
        rows = np.column_stack([np.ones(n_rows), rng.standard_normal((n_rows, s)) + 0.3, np.zeros(n_rows)])
        rows[:, -1] = rows[:, :-1] @ rng.standard_normal(s + 1) * (rng.random() < 0.7) + rng.standard_normal(n_rows)
        w = rng.random(n_rows)
        moments[k], squares[k] = (w[:, None] * rows).T @ rows, (w**2).sum()
    return moments, squares


# -- levels ------------------------------------------------------------------------------------------------


def test_moments_of_levels_are_direct_weighted_sums():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((128 + 96, 7)) + 3.0, rng.standard_normal(128 + 96)
    weights = rng.integers(0, 3, 128 + 96).astype(float)
    gram = Gram(7).absorb(X[:128], y[:128], weights[:128])
    features = np.array([1, 4, 5])
    levels = start(gram, features, centred=True)
    gram.absorb(X[128:], y[128:], weights[128:])
    for block in range(3):
        levels.add(levels.rows(gram, 32 * block, 32 * block + 32))
    n = weights[:128].sum()
    units = np.average(X[:128, features], axis=0, weights=weights[:128])
    deviations = np.sqrt(np.average((X[:128, features] - units) ** 2, axis=0, weights=weights[:128]))
    mean_y = np.average(y[:128], weights=weights[:128])
    sd_y = np.sqrt(np.average((y[:128] - mean_y) ** 2, weights=weights[:128]))
    U = np.column_stack([np.ones(224), (X[:, features] - units) / deviations, (y - mean_y) / sd_y])
    for k, half_life in enumerate(HALF_LIVES):
        # The first rows count equally, with the total weight that n rows of this half-life have.
        ages = np.arange(n)
        first = (2.0 ** (-ages / half_life)).sum() * 2.0 ** (-96 / half_life) / n
        factors = np.concatenate([np.full(128, first), *(np.full(32, 2.0 ** (-a / half_life)) for a in (64, 32, 0))])
        expected = ((weights * factors)[:, None] * U).T @ U
        np.testing.assert_allclose(levels.moments[k], expected, rtol=1e-10, atol=1e-10)
        squares = (4.0 ** (-ages / half_life)).sum() * 4.0 ** (-96 / half_life)
        squares += (weights[128:] * factors[128:] ** 2).sum()
        np.testing.assert_allclose(levels.squares[k], squares, rtol=1e-10)
    counted = U[128:][weights[128:] > 0.0, :-1]
    np.testing.assert_allclose(levels.largest, np.abs(counted).max(axis=0), rtol=1e-12)


def likely_changes(Z, left):
    """Changes that explain residuals: minus twice the log likelihood, the change, and what kind it is.

    Over a grid of variances, with the n x n covariance of the residuals written out.
    """
    n, p = Z.shape
    result = [(n * np.log(left @ left), np.zeros(p), "none")]
    for name, used in (("level", [0]), ("all", list(range(p)))):
        for variance in VARIANCES:
            covariance = np.eye(n) + variance * Z[:, used] @ Z[:, used].T
            solved = np.linalg.solve(covariance, left)
            delta = np.zeros(p)
            delta[used] = variance * Z[:, used].T @ solved
            result.append((n * np.log(left @ solved) + np.linalg.slogdet(covariance)[1], delta, name))
    return result


def likely_single_changes(Z, left, largest):
    """The same for changes of single coefficients, and for changes of all besides."""
    n, p = Z.shape
    delta, rss, penalty = np.zeros(p), left @ left, 0.0
    carried = (Z**2).sum(axis=0) >= FEWEST_CARRIERS * largest**2
    while (carried & (delta == 0.0)).any():
        residuals, tried = left - Z @ delta, []
        for j in np.flatnonzero(carried & (delta == 0.0)):
            # The prior of a change is that of an estimate from one row: of one like these, or one of variance one.
            z = Z[:, j]
            variance = 1.0 / max(z @ z / n, 1.0)
            solved = np.linalg.solve(np.eye(n) + variance * np.outer(z, z), residuals)
            tried.append((rss - residuals @ (residuals - solved), j, variance * z @ solved))
        after, j, change = min(tried)
        price = np.log(1.0 + n) + 2.0 * np.log(p)
        if n * np.log(after) + price >= n * np.log(rss):
            break
        rss, penalty, delta[j] = after, penalty + price, change
    if not penalty:
        return []
    residuals = left - Z @ delta
    result = [(n * np.log(rss) + penalty, delta, "single")]
    for variance in VARIANCES:
        covariance = np.eye(n) + variance * Z @ Z.T
        solved = np.linalg.solve(covariance, residuals)
        value = n * np.log(rss - residuals @ (residuals - solved)) + np.linalg.slogdet(covariance)[1]
        result.append((value + penalty, delta + variance * Z.T @ solved, "single and all"))
    return result


def test_each_level_changes_as_the_marginal_likelihood_of_its_rows_says():
    chosen = set()
    for seed in range(24):
        rng = np.random.default_rng(seed)
        s, n = 6, 60
        Z = [np.column_stack([np.ones(n), rng.standard_normal((n, s))]) for _ in range(N_LEVELS)]
        beta = rng.standard_normal(s + 1)
        responses = []
        for k in range(N_LEVELS):
            one, few = np.eye(s + 1)[3], 0.1 * rng.standard_normal(s + 1)
            other = 2.0 * np.eye(s + 1)[5]
            change = (0.0, np.eye(s + 1)[0], rng.standard_normal(s + 1), one, 3.0 * one + few, other)[rng.integers(6)]
            responses.append(Z[k] @ (beta + change) + 0.5 * rng.standard_normal(n))
        rows = [np.column_stack([z, y]) for z, y in zip(Z, responses, strict=True)]
        moments = np.array([r.T @ r for r in rows])
        # The largest values are those of these rows, but for one feature, which no level lets change alone.
        largest = np.abs(Z).max(axis=(0, 1))
        largest[5] = 10.0
        coef, n_rows = np.zeros((N_LEVELS, s + 1)), np.zeros(N_LEVELS)
        _refit.refit(
            moments, np.full(N_LEVELS, float(n)), largest, np.zeros(s), np.ones(s, np.uint8), True, coef, n_rows, 0
        )
        parent = np.linalg.lstsq(Z[-1], responses[-1], rcond=None)[0]
        np.testing.assert_allclose(coef[-1], parent, rtol=1e-7, atol=1e-9)
        known = float(n)
        for k in range(N_LEVELS - 2, -1, -1):
            left = responses[k] - Z[k] @ parent
            candidates = likely_changes(Z[k], left)
            if k > 0:
                candidates += likely_single_changes(Z[k], left, largest)
            else:  # the shortest one has another level of y, and the coefficients of the next
                candidates = [one for one in candidates if one[2] != "all"]
            best = min(candidates, key=lambda one: one[0])
            parent = parent + best[1]
            chosen.add(best[2] if k > 0 else f"shortest, {best[2]}")
            np.testing.assert_allclose(coef[k], parent, rtol=1e-7, atol=1e-9)
            assert n_rows[k] == known
    kinds = {"none", "level", "all", "single", "single and all"}
    assert chosen == kinds | {"shortest, none", "shortest, level"}  # all cases occurred


@pytest.mark.parametrize("module", [_refit, reference])
def test_matrices_that_rounding_made_indefinite_do_no_harm(module):
    # As float32 co-moments of collinear features are.
    rng = np.random.default_rng(0)
    for _ in range(20):
        Z = rng.standard_normal((60, 3)) @ rng.standard_normal((3, 8))
        rows = np.column_stack([np.ones(60), Z, Z[:, 0] + rng.standard_normal(60)])
        noise = 1e-5 * rng.standard_normal((N_LEVELS, 10, 10))
        moments = rows.T @ rows + noise + noise.swapaxes(1, 2)
        moments[:, -1, 1:-1] = moments[:, 1:-1, -1] = (rows.T @ rows)[-1, 1:-1] + rng.standard_normal((N_LEVELS, 8))
        coef, n_rows, few = np.zeros((N_LEVELS, 9)), np.zeros(N_LEVELS), np.full(N_LEVELS, 1e9)
        none = np.zeros(8, np.uint8)
        module.refit(moments, moments[:, 0, 0] ** 2 / few, np.ones(9), np.zeros(8), none, True, coef, n_rows, 0)
        predicted = rows[:, :-1] @ coef.T
        assert np.abs(predicted).max() < 100.0 * np.abs(rows[:, -1]).max()


@pytest.mark.parametrize("which", range(4))
@pytest.mark.parametrize("value", [np.inf, np.nan])
def test_any_number_that_is_none_is_noticed(which, value):
    arrays = [np.ones((N_LEVELS, 4, 4)), np.ones((N_LEVELS, 3)), np.ones(N_LEVELS), np.ones(N_LEVELS + 1)]
    assert _score.is_finite(*arrays)
    arrays[which].flat[-1] = value
    assert not _score.is_finite(*arrays)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("s", [0, 1, 5, 40])
@pytest.mark.parametrize("time", [0, 3, 4])
def test_compiled_levels_equal_the_reference(s, centred, time):
    rng = np.random.default_rng(s)
    moments, squares = random_moments(rng, s)
    ridge, overall = rng.random(s), (rng.random(s) < 0.7).astype(np.uint8)
    largest = np.append(1.0, rng.uniform(1.0, 4.0, s))
    results = []
    for module in (_refit, reference):
        coef, n_rows = np.ones((N_LEVELS, s + 1)), np.ones(N_LEVELS)
        module.refit(moments, squares, largest, ridge, overall, centred, coef, n_rows, time)
        results.append((coef, n_rows))
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-12)


def test_compiled_sums_and_scores_equal_the_reference():
    rng = np.random.default_rng(3)
    ours, theirs = (
        (PRIOR.copy(), np.full(N_LEVELS + 1, -1.0), np.zeros((N_LEVELS, 6, 6)), np.zeros(N_LEVELS), np.ones(5))
        for _ in range(2)
    )
    for n in (32, 16, 1, 32):
        rows = rng.standard_normal((n, 6)) * 2.0
        rows[:, 0] = np.sqrt(rng.integers(0, 3, n))
        earlier, errors, found = rng.standard_normal((N_LEVELS, 5)), np.zeros((2, n)), []
        for module, state, one in zip((_score, reference), (ours, theirs), errors, strict=True):
            weights, losses, moments, squares, largest = state
            found.append(module.score(rows, earlier, weights, losses, one))
            module.count(rows, moments, squares, np.array(HALF_LIVES), largest)
        np.testing.assert_allclose(found[0], found[1], rtol=1e-9)
        np.testing.assert_allclose(errors[0], errors[1], rtol=1e-9)
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=1e-9, atol=1e-12)
        for _, losses, *_ in (ours, theirs):
            losses *= 1e-3 ** (n == 1)  # the last rows are far off


@pytest.mark.parametrize(("before", "after"), [([0, 2, 5], [1, 2, 5, 6]), ([3], [0, 1]), ([1, 2], []), ([], [4])])
def test_features_that_come_are_known_from_all_rows(before, after):
    # Levels that count all rows equally know as much of any features.
    rng = np.random.default_rng(1)
    X = rng.standard_normal((300, 8)) @ rng.standard_normal((8, 8)) + 2.0
    gram = Gram(8).absorb(X, X[:, 2] + rng.standard_normal(300))
    nothing = Recent.new(gram, True, LAST_ROWS)
    levels = moved(start(gram, np.array(before, np.intp), True), gram, np.array(after, np.intp), nothing)
    expected = start(gram, np.array(after, np.intp), True)
    np.testing.assert_allclose(levels.moments, expected.moments, rtol=1e-8, atol=1e-8 * expected.moments.max())
    np.testing.assert_allclose(levels.squares, expected.squares)


def test_features_that_stay_keep_what_levels_know():
    X, y = flipping(0)
    gram = Gram(D).absorb(X[:1920], y[:1920])
    levels = start(gram, np.array([0, 1, 2]), True)
    gram.absorb(X[1920:2000], y[1920:2000])
    levels.add(levels.rows(gram, 0, 32))
    recent = Recent.new(gram, True, LAST_ROWS)
    recent.add(gram, 0, 32)
    others = moved(levels, gram, np.array([0, 2, 7]), recent)
    back = moved(others, gram, np.array([0, 2]), recent)
    # The same rows, whatever the units: weighted means and covariances of x0, x2 and y.
    for one, places in ((levels, [1, 3]), (others, [1, 2]), (back, [1, 2])):
        units = np.concatenate([one.scale[np.array(places) - 1], [one.scale_y]])
        mean = one.moments[:, 0, [*places, -1]] / one.moments[:, :1, 0]
        second = one.moments[:, np.array([*places, -1])[:, None], [*places, -1]] / one.moments[:, :1, :1]
        covariance = (second - mean[:, :, None] * mean[:, None]) * np.outer(units, units)
        # The largest distance from the origin is known up to the distance between the origins.
        largest = one.largest[places] * one.scale[np.array(places) - 1]
        seen = np.abs(X[1920:1952, [0, 2]] - one.origin[np.array(places) - 1]).max(axis=0)
        moved_by = np.abs(one.origin[np.array(places) - 1] - levels.origin[[0, 2]])
        assert (largest >= seen * (1.0 - 1e-9)).all()
        assert (largest <= seen + 2.0 * moved_by + 1e-9).all()
        mean = mean * units + np.concatenate([one.origin[np.array(places) - 1], [one.origin_y]])
        if one is levels:
            expected = mean, covariance
        # Rows of the buffer are counted already in the sums of all rows of the others, the last level.
        np.testing.assert_allclose(mean[:-1], expected[0][:-1], rtol=1e-10)
        np.testing.assert_allclose(covariance[:-1], expected[1][:-1], rtol=1e-9)


@pytest.mark.parametrize("centred", [True, False])
def test_significance_is_that_of_squared_t_statistics(centred):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((512, 5)) @ rng.standard_normal((5, 5)) + 2.0
    y = X[:, 1] + 0.1 * X[:, 2] + rng.standard_normal(512)
    gram, features = Gram(5).absorb(X, y), np.arange(5)
    levels = start(gram, features, centred)
    levels.follow(features, None)
    levels.refit()
    A = np.column_stack([np.ones(512), X])[:, 0 if centred else 1 :]
    coef, rest = np.linalg.lstsq(A, y, rcond=None)[:2]
    t = (coef**2 / (rest / 512 * np.diagonal(np.linalg.inv(A.T @ A))))[-5:]
    for threshold in np.concatenate([0.999 * t, 1.001 * t]):
        np.testing.assert_array_equal(levels.is_significant(np.eye(N_LEVELS)[-1], threshold), t > threshold)


def test_rows_that_fill_no_block_count_when_coefficients_are_read():
    X, y = flipping(0, n=2600, at=2000)
    model = SparseRegressor().partial_fit(X[:2560], y[:2560])
    assert model.drift_detected_
    for n in (2561, 2570, 2591):
        model = SparseRegressor().partial_fit(X[:n], y[:n])
        follower = model._follower
        assert follower.n_done == 0  # the first block of a new buffer has just begun
        # Rows count as if a block ended here: levels with a period of one block are solved for.
        after = start(model.summary_, follower.levels.features, True)
        for name in (
            "origin",
            "scale",
            "origin_y",
            "scale_y",
            "ridge",
            "overall",
            "moments",
            "squares",
            "largest",
            "coef",
            "n_rows",
        ):
            setattr(after, name, np.copy(getattr(follower.levels, name)))
        rows = np.column_stack([np.ones(n - 2560), (X[2560:n, after.features] - after.origin) / after.scale])
        rows = np.column_stack([rows, (y[2560:n] - after.origin_y) / after.scale_y])
        reference.count(rows, after.moments, after.squares, np.array(HALF_LIVES), after.largest)
        sums = after.moments, after.squares, after.largest
        reference.refit(*sums, after.ridge, after.overall, True, after.coef, after.n_rows, 1)
        mixed = follower.mixing.weights @ after.coef
        expected = mixed[1:] * after.scale_y / after.scale
        np.testing.assert_allclose(model.coef_[after.features], expected, rtol=1e-6, atol=1e-9)


# -- the mixture -------------------------------------------------------------------------------------------


def test_weights_are_those_of_a_fixed_share_loop():
    rng = np.random.default_rng(5)
    mixing = Mixing.new(rng.standard_normal((N_LEVELS, 3)), horizon=1)
    expected, averages = list(PRIOR), None
    for _ in range(6):
        rows = np.column_stack([np.ones(10), rng.standard_normal((10, 3))])
        coef = mixing.past[mixing.at].copy()
        losses = []
        for k in range(N_LEVELS):
            losses.append([(row[-1] - sum(c * x for c, x in zip(coef[k], row[:-1], strict=True))) ** 2 for row in rows])
        mixed = sum(w * c for w, c in zip(expected, coef, strict=True))
        losses.append([(row[-1] - float(mixed @ row[:-1])) ** 2 for row in rows])
        averages = averages or [float(np.mean(one)) for one in losses]
        noise = min(averages)
        capped = [[min(one, CAP * noise) for one in some] for some in losses]
        decay = 2.0 ** (-10 / ERROR_HALF_LIFE)
        averages = [decay * a + (1 - decay) * np.mean(c) for a, c in zip(averages, capped, strict=True)]
        mixing.score(rows, np.zeros(10))
        raw = [w * np.exp(-RATE * sum(some) / noise) for w, some in zip(expected, capped[:-1], strict=True)]
        kept = (1 - SHARE) ** 10
        expected = [kept * r / sum(raw) + (1 - kept) * p for r, p in zip(raw, PRIOR, strict=True)]
        np.testing.assert_allclose(mixing.weights, expected, rtol=1e-9)
        mixing.remember(rng.standard_normal((N_LEVELS, 3)))


@pytest.mark.parametrize("far", [15, 17])
def test_levels_are_compared_in_units_of_rows_that_are_far_off_at_all_of_them(far):
    # Of 32 rows, so many are: more than half, or not.
    rng = np.random.default_rng(6)
    rows = np.column_stack([np.ones(32), rng.standard_normal(32), np.zeros(32)])
    earlier = rng.uniform(0.5, 2.0, (N_LEVELS, 2)) * [0.0, 1.0]
    rows[:far, 1] += 100.0
    rows[far:, 1] = 0.01
    weights, losses = PRIOR.copy(), np.full(N_LEVELS + 1, 1.0)
    predicted = rows[:, :-1] @ earlier.T
    assert ((predicted**2).min(axis=1) > FAR).sum() == far
    mixed = predicted @ weights
    noise = (predicted**2).mean(axis=0).min() if far > 16 else 1.0
    advantage, squares = _score.score(rows, earlier, weights, losses, np.zeros(32))
    loss = np.minimum(predicted**2, CAP * noise).sum(axis=0)
    expected = PRIOR * np.exp(-RATE * (loss - loss.min()) / noise)
    kept = (1 - SHARE) ** 32
    np.testing.assert_allclose(weights, kept * expected / expected.sum() + (1 - kept) * PRIOR, rtol=1e-9)
    gain = (np.minimum(predicted[:, -1] ** 2, CAP * noise) - np.minimum(mixed**2, CAP * noise)) / noise
    np.testing.assert_allclose([advantage, squares], [gain.sum(), gain @ gain], rtol=1e-9)
    # The noise grows no faster than rows without this would let it.
    capped = np.minimum(np.column_stack([predicted, mixed]) ** 2, CAP).mean(axis=0)
    decay = 2.0 ** (-32 / ERROR_HALF_LIFE)
    np.testing.assert_allclose(losses, decay + (1 - decay) * capped, rtol=1e-9)


def test_the_gate_opens_at_two_standard_errors():
    # Advantages of one in each row, beside a history of squares: a row more, and there are two standard errors.
    coef = np.zeros((N_LEVELS, 2))
    coef[-1, 1] = 1.0
    for squares, is_open in ((153.0, True), (157.0, False)):
        mixing = Mixing.new(coef, horizon=1)
        mixing.weights[:], mixing.losses[:] = np.eye(N_LEVELS)[0], 1.0
        mixing.advantage, mixing.squares = 31.0, squares * 2.0 ** (2.0 / 5000.0)
        mixing.score(np.array([[1.0, 1.0, 0.0]]), np.zeros(1))
        np.testing.assert_allclose(mixing.squares, squares + 1.0)
        assert mixing.is_open == is_open
        assert (mixing.advantage > 2.0 * np.sqrt(mixing.squares + 100.0)) == is_open


def test_settings_are_those_of_the_page():
    from inspect import signature

    from thresher.integrations.river import SparseRegressor as Adapter

    assert (15.0, 60.0, 250.0, 1000.0, 4000.0, np.inf) == HALF_LIVES
    assert (LAST_ROWS, MORE_ROWS) == (128, 1024)
    for model in (SparseRegressor, Adapter):
        assert signature(model).parameters["horizon"].default == 32


@pytest.mark.parametrize("drift", ["auto", "full"])
def test_rows_without_weight_do_not_hide_a_change(drift):
    X, y = flipping(0, noise=0.0)
    model = SparseRegressor(drift=drift).partial_fit(X, y, (np.arange(5000) % 3 == 0).astype(float))
    assert model.drift_detected_
    np.testing.assert_allclose(model.coef_[:3], [-1.0, -0.7, 0.5], atol=0.05)


def test_without_noise_and_change_nothing_is_detected():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((4000, 20))
        for drift in ("auto", "full"):
            model = SparseRegressor(drift=drift).partial_fit(X, X[:, :5] @ rng.uniform(0.5, 1.0, 5))
            assert model.drift_history_.changes == []


@pytest.mark.parametrize("drift", ["auto", "full"])
@pytest.mark.parametrize("noise", [0.0, 1e-3])
def test_a_change_where_there_is_hardly_any_noise_is_followed(drift, noise):
    X, y = flipping(0, noise=noise)
    model = SparseRegressor(drift=drift).partial_fit(X, y)
    assert model.drift_detected_
    np.testing.assert_allclose(model.coef_[:3], [-1.0, -0.7, 0.5], atol=0.02)


def test_predictions_are_made_as_early_as_the_horizon_says():
    coefs = [np.full((N_LEVELS, 2), float(k)) for k in range(5)]
    for horizon, lag in ((1, 1), (32, 1), (33, 2), (50, 2), (100, 4)):
        mixing = Mixing.new(coefs[0], horizon)
        seen = []
        for k in range(1, 5):
            seen.append(mixing.past[mixing.at, 0, 0])
            mixing.remember(coefs[k])
        assert seen == [max(k - lag, 0.0) for k in range(1, 5)]


def test_the_gate_closes_when_the_mixture_is_worse_for_a_while():
    rng = np.random.default_rng(0)
    coef = np.zeros((N_LEVELS, 2))
    coef[:-1, 1] = 1.0  # all rows say zero, recent rows said one
    mixing = Mixing.new(coef, horizon=1)
    mixing.reopen()
    assert mixing.is_open
    for _ in range(20):
        rows = np.column_stack([np.ones(32), rng.standard_normal(32), 0.1 * rng.standard_normal(32)])
        mixing.score(rows, np.zeros(32))
        mixing.remember(coef)
    assert not mixing.is_open
    assert mixing.weights[-1] > 0.9


# -- recent rows -------------------------------------------------------------------------------------------


def kept_rows(X, y, weights=None, cuts=(), centred=True, size=MORE_ROWS):
    """Rows kept in blocks of 32 and shorter ones, and the count at the end of the block of each row."""
    gram, recent, ends = Gram(X.shape[1]), None, np.empty(len(y), np.int64)
    for first in range(0, len(y), 128):
        n = min(128, len(y) - first)
        gram.put(X[first : first + n], y[first : first + n], None if weights is None else weights[first : first + n])
        recent = recent or Recent.new(gram, centred, size)
        edges = sorted({0, n, *range(0, n, 32), *(c for c in cuts if c < n)})
        for begin, stop in pairwise(edges):
            recent.add(gram, begin, stop)
            ends[first + begin : first + stop] = first + stop
        gram.fold_if_full()
    return gram, recent, ends


@pytest.mark.parametrize("size", [LAST_ROWS, MORE_ROWS])
def test_moments_of_recent_rows_are_direct_sums(size):
    rng = np.random.default_rng(0)
    n = size + 300
    X, y, weights = rng.standard_normal((n, 6)) + 50.0, rng.standard_normal(n), rng.integers(0, 3, n).astype(float)
    _, recent, ends = kept_rows(X, y, weights, cuts=(7, 90), size=size)
    features, origin, scale = np.array([0, 3, 5]), np.array([1.0, 2.0, 49.0]), np.array([0.5, 2.0, 1.0])
    found = recent.moments(features, origin, scale, 0.3, 1.7)
    last = slice(n - size, n)
    U = np.column_stack([np.ones(n), (X[:, features] - origin) / scale, (y - 0.3) / 1.7])[last]
    for k, half_life in enumerate(HALF_LIVES):
        factors = weights[last] * 2.0 ** (-(n - ends[last]) / half_life)
        np.testing.assert_allclose(found[k], (factors[:, None] * U).T @ U, rtol=1e-9)


def test_rows_that_are_left_out_make_the_kept_ones_older():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((384, 3)), rng.standard_normal(384)
    gram, recent = Gram(3), None
    for first in range(0, 384, 128):
        gram.put(X[first : first + 128], y[first : first + 128], None)
        recent = recent or Recent.new(gram, False, LAST_ROWS)
        if first == 128:
            recent.skip(128)
        else:
            recent.add(gram, 0, 128 if first == 0 else 32)
        gram.fold_if_full()
    # The last 32 rows, and of the first block those whose places were not needed.
    kept = np.concatenate([np.arange(256, 288), np.arange(32, 128)])
    ends = np.concatenate([np.full(32, 288), np.repeat([64, 96, 128], 32)])
    U = np.column_stack([np.ones(128), X[kept], y[kept]])
    found = recent.moments(np.arange(3), np.zeros(3), np.ones(3), 0.0, 1.0)
    for k, half_life in enumerate(HALF_LIVES):
        factors = 2.0 ** ((ends - 288) / half_life)
        np.testing.assert_allclose(found[k], (factors[:, None] * U).T @ U, rtol=1e-9, atol=1e-9)


def test_rows_are_kept_once_drift_was_detected():
    X, y = flipping(6, n=3000, at=2000)
    model = SparseRegressor().partial_fit(X[:1920], y[:1920])
    recent = model._follower.recent
    assert not recent.rows.any()
    assert recent.n_rows == 1920 - 256
    model.partial_fit(X[1920:], y[1920:])
    assert model.drift_detected_
    assert (model._follower.recent.rows[:, 0] == 1.0).all()


@pytest.mark.parametrize("centred", [True, False])
def test_features_are_chosen_from_recent_rows_by_forward_selection(centred):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((1500, 30)) * np.linspace(0.1, 5.0, 30) + centred * 3.0
    y = X[:, 2] + rng.standard_normal(1500)
    y[1200:] += (X[1200:, [11, 20, 25]] / np.linspace(0.1, 5.0, 30)[[11, 20, 25]]) @ [1.0, -0.8, 0.6]
    gram, recent, ends = kept_rows(X, y, centred=centred)
    w = 2.0 ** (-(1500 - ends) / 100.0) * (np.arange(1500) >= 1500 - MORE_ROWS)
    n, features, expected = w.sum() ** 2 / (w**2).sum(), [2], []
    while True:
        errors = y - LinearRegression(fit_intercept=centred).fit(X[:, features], y, w).predict(X[:, features])
        t = [0.0 if j in features else (w * errors) @ (X[:, j] / X[:, j].std()) for j in range(30)]
        noise = (w @ errors**2) / w.sum() * n / (n - len(features) - 1)
        j = int(np.argmax(np.abs(t)))
        if t[j] ** 2 <= ENTER * np.log(30) * noise * (w**2).sum():
            break
        features.append(j)
        expected.append(j)
    assert sorted(expected) == [11, 20, 25]
    assert recent.candidates(gram, np.array([2]), centred) == expected
    assert recent.candidates(gram, np.array([2, 11, 20, 25]), centred) == []


def test_no_features_are_chosen_from_no_rows():
    gram = Gram(4).absorb(np.ones((3, 4)), np.ones(3))
    assert Recent.new(gram, True, MORE_ROWS).candidates(gram, np.array([], np.intp), True) == []


def test_levels_know_recent_rows_of_features_that_come():
    # As if these features had been followed before.
    rng = np.random.default_rng(2)
    X = rng.standard_normal((400, 7)) @ rng.standard_normal((7, 7)) + 1.0
    y = X[:, 1] - X[:, 4] + rng.standard_normal(400)
    before, gram = Gram(7).absorb(X[:256], y[:256]), Gram(7).absorb(X[:256], y[:256])
    few, many = np.array([1, 3]), np.array([0, 1, 4])
    levels, expected, recent = start(before, few, True), start(before, many, True), Recent.new(gram, True, MORE_ROWS)
    for first in (256, 384):
        rows = slice(first, min(first + 128, 400))
        gram.put(X[rows], y[rows], None)
        for i in range(0, rows.stop - first, 32):
            stop = min(i + 32, rows.stop - first)
            levels.add(levels.rows(gram, i, stop))
            expected.add(expected.rows(gram, i, stop))
            recent.add(gram, i, stop)
        gram.fold_if_full()
    found = moved(levels, before, many, recent)
    scale = np.abs(expected.moments[:-1]).max()
    # Older rows of feature 0 and 4 are known given feature 1 and y alone, and these are rows that count equally.
    np.testing.assert_allclose(found.moments[:-1], expected.moments[:-1], atol=1e-9 * scale)


@pytest.mark.parametrize("centred", [True, False])
def test_the_evidence_of_a_break_is_a_ratio_of_marginal_likelihoods(centred):
    # With the n x n covariance of the errors written out. Errors alternate in sign, so products are not autocorrelated.
    rng = np.random.default_rng(0)
    for n in (20, 64):
        Z, coef = rng.standard_normal((n, 3)), rng.standard_normal(4)
        y = np.column_stack([np.ones(n), Z]) @ coef + Z @ [2.0, 0.0, -1.0] + rng.standard_normal(n) + 5.0 * centred
        rows = np.column_stack([np.ones(n), Z, y])
        errors = y - rows[:, :-1] @ coef
        if centred:
            Z, errors = Z - Z.mean(axis=0), errors - errors.mean()
        products = Z * errors[:, None] - (Z * errors[:, None]).mean(axis=0)
        r = max(sum(p[1:] @ p[:-1] for p in products.T) / sum(p @ p for p in products.T), 0.0)
        counted = n * (1 - r) / (1 + r)
        best = np.inf
        for variance in VARIANCES * counted / n:
            covariance = np.eye(n) + variance * Z @ Z.T
            quadratic = errors @ np.linalg.solve(covariance, errors)
            best = min(best, counted * np.log(quadratic / n) + np.linalg.slogdet(covariance)[1])
        expected = counted * np.log(errors @ errors / n) - best
        assert expected > 10.0
        np.testing.assert_allclose(evidence(rows, coef, centred, 0.0), expected, rtol=1e-8)
        assert evidence(rows, coef, centred, 1.01 * errors @ errors / n) == 0.0
    assert evidence(np.zeros((16, 5)), np.zeros(4), centred, 0.0) == 0.0


def test_autocorrelated_errors_and_features_are_no_break():
    for seed in range(5):
        rng = np.random.default_rng(seed)
        noise = rng.standard_normal((1000, 7)) * np.sqrt(1 - 0.81)
        for t in range(1, 1000):
            noise[t] += 0.9 * noise[t - 1]
        rows = np.column_stack([np.ones(1000), noise])
        found = [evidence(rows[i : i + 64], np.zeros(7), True, 0.0) for i in range(0, 900, 16)]
        assert max(found) < BREAK_EVIDENCE


def test_a_break_is_dated_and_older_rows_are_forgotten():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((128 * 9 + 64, 6)) + 1.0
    y = X[:, 0] + X[:, 2] + 0.5 * rng.standard_normal(len(X))
    y[-64:] -= 3.0 * X[-64:, 2]
    gram, recent, ends = kept_rows(X, y)
    levels = start(gram, np.array([0, 2, 4]), True)
    coef = np.linalg.lstsq(
        np.column_stack([np.ones(1152), (X[:1152, [0, 2, 4]] - levels.origin) / levels.scale]),
        (y[:1152] - levels.origin_y) / levels.scale_y,
        rcond=None,
    )[0]
    noise = 0.25 / levels.scale_y**2
    assert rows_since_break(recent, levels, coef, noise) == 64
    assert rows_since_break(recent, levels, coef, 100.0 * noise) == 0  # errors have not grown
    # Two rows for each coefficient: a break 64 rows ago is seen with 31 features, and not yet with 32.
    rng = np.random.default_rng(4)
    wide = np.hstack([X, rng.standard_normal((len(X), 28))])
    many, last, _ = kept_rows(wide, y)
    for n_features, found in ((31, 64), (32, 0)):
        followed = start(many, np.arange(n_features), True)
        followed.follow(np.arange(n_features), None)
        before = np.linalg.lstsq(
            np.column_stack([np.ones(1152), (wide[:1152, :n_features] - followed.origin) / followed.scale]),
            (y[:1152] - followed.origin_y) / followed.scale_y,
            rcond=None,
        )[0]
        assert rows_since_break(last, followed, before, 0.25 / followed.scale_y**2) == found
    recent.since = recent.n_rows - 64
    levels.follow(np.array([0, 2, 4]), None)
    overall = levels.moments[-1].copy()
    levels.restart(recent)
    U = np.column_stack([np.ones(64), (X[-64:, [0, 2, 4]] - levels.origin) / levels.scale])
    U = np.column_stack([U, (y[-64:] - levels.origin_y) / levels.scale_y])
    for k, half_life in enumerate(HALF_LIVES[:-1]):
        w = 2.0 ** ((ends[-64:] - len(X)) / half_life)
        np.testing.assert_allclose(levels.moments[k], (w[:, None] * U).T @ U, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(levels.squares[k], (w**2).sum())
    np.testing.assert_array_equal(levels.moments[-1], overall)


def test_rows_that_are_kept_find_a_new_support_sooner():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((6000, 60))
    y = np.where(np.arange(6000) < 3000, X[:, :5].sum(axis=1), X[:, 30:35].sum(axis=1)) + rng.standard_normal(6000)
    errors = {}
    for drift in ("auto", "full"):
        model, predicted = SparseRegressor(drift=drift), np.zeros(6000)
        for i in range(0, 6000, 50):
            predicted[i : i + 50] = model.predict(X[i : i + 50]) if i else 0.0
            model.partial_fit(X[i : i + 50], y[i : i + 50])
        errors[drift] = ((predicted - y)[3000:] ** 2).mean()
    assert errors["full"] < errors["auto"]


def test_rows_may_be_kept_from_some_row_on():
    X, y = flipping(3)
    y[2000:] += X[2000:, 7]
    model = SparseRegressor().partial_fit(X[:1500], y[:1500])
    model.set_params(drift="full").partial_fit(X[1500:3500], y[1500:3500])
    assert 1900 < model._follower.recent.n_rows <= 2032  # and some that no block had
    assert len(model._follower.recent.rows) == MORE_ROWS
    np.testing.assert_allclose(model.coef_[[0, 7]], [-1.0, 1.0], atol=0.1)
    model.set_params(drift="auto").partial_fit(X[3500:], y[3500:])
    assert len(model._follower.recent.rows) == LAST_ROWS
    nothing_to_choose = SparseRegressor(3, drift="full").partial_fit(X, y)
    assert len(nothing_to_choose._follower.recent.rows) == LAST_ROWS


@pytest.mark.parametrize("memory", [{"half_life": 200.0}, {"window": 500}, {"window": 500, "exact_window": True}])
def test_rows_are_not_kept_where_they_are_forgotten(memory):
    X, y = flipping(0, n=300)
    with pytest.raises(ValueError, match="drift='full' finds by itself"):
        SparseRegressor(drift="full", **memory).partial_fit(X, y)
    model = SparseRegressor(**memory).partial_fit(X, y)
    with pytest.raises(ValueError, match="drift='full' finds by itself"):
        model.set_params(drift="full").partial_fit(X, y)
    assert model.n_samples_seen_ == 300


# -- the estimator -----------------------------------------------------------------------------------------


def test_without_a_change_the_estimate_is_that_of_all_rows_to_the_bit():
    for seed in range(5):
        X, y = stationary(seed)
        ours = SparseRegressor().partial_fit(X, y)
        plain = SparseRegressor(drift=None).partial_fit(X, y)
        assert not ours.drift_detected_
        np.testing.assert_array_equal(ours.coef_, plain.coef_)
        assert ours.intercept_ == plain.intercept_
        assert ours.effective_rows_ == 3000.0


def test_autocorrelated_errors_and_heavy_tails_are_no_drift():
    rng = np.random.default_rng(11)
    X = rng.standard_normal((6000, D))
    autocorrelated = np.zeros(6000)
    for t in range(1, 6000):
        autocorrelated[t] = 0.9 * autocorrelated[t - 1] + np.sqrt(1 - 0.81) * rng.standard_normal()
    for noise in (autocorrelated, rng.standard_t(3, 6000), np.exp(X[:, 0]) * rng.standard_normal(6000)):
        assert not SparseRegressor().partial_fit(X, X[:, 0] - X[:, 3] + noise).drift_detected_


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_the_error_returns_to_the_floor_after_a_sign_flip(seed):
    X, y = flipping(seed, n=9000, at=3000)
    models = {drift: SparseRegressor(drift=drift) for drift in ("auto", None)}
    errors = {drift: [] for drift in models}
    for i in range(0, 9000, 50):
        for drift, model in models.items():
            if i:
                errors[drift].append(np.abs(model.predict(X[i : i + 50]) - y[i : i + 50]).mean())
            model.partial_fit(X[i : i + 50], y[i : i + 50])
    floor = 0.3 * np.sqrt(2.0 / np.pi)
    # From 1500 rows after the change on, also where the coefficient of all rows passes zero. The standard error of the
    # mean of 4500 absolute errors is 1.1 % of the floor.
    assert np.mean(errors["auto"][90:]) < 1.05 * floor
    assert np.mean(errors[None][90:]) > 2.0 * floor
    assert models["auto"].drift_detected_
    assert not models[None].drift_detected_
    assert models["auto"].effective_rows_ < 6500


@pytest.mark.parametrize("drift", ["auto", "full"])
def test_a_change_of_the_support_is_followed(drift):
    rng = np.random.default_rng(4)
    X = rng.standard_normal((8000, 40))
    y = np.where(np.arange(8000) < 4000, X[:, :4].sum(axis=1), X[:, 20:24].sum(axis=1)) + rng.standard_normal(8000)
    model = SparseRegressor(drift=drift).partial_fit(X, y)
    assert model.drift_detected_
    assert set(range(20, 24)) <= set(model.support_)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.coef_))
    np.testing.assert_allclose(model.coef_[20:24], 1.0, atol=0.15)
    np.testing.assert_allclose(model.coef_[:4], 0.0, atol=0.15)


def test_a_feature_that_mattered_for_a_while_is_not_followed_any_more():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((9000, 30))
    now = np.arange(9000)
    y = np.where(now < 1000, 2.0, -1.0) * X[:, 0] + rng.standard_normal(9000)
    y += np.where((now >= 3000) & (now < 3250), 1.2, 0.0) * X[:, 7]
    model = SparseRegressor()
    followed, chosen = [], []
    for i in range(0, 9000, 100):
        model.partial_fit(X[i : i + 100], y[i : i + 100])
        chosen.append(7 in model._support)
        followed.append(model._follower is not None and 7 in model._follower.levels.features)
    assert model.drift_detected_
    assert any(followed[31:40])
    assert not any(followed[:30])
    assert followed[50:] == chosen[50:]  # all rows may still say that it matters a little
    assert not all(chosen[50:])


def test_a_given_size_is_kept_to():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((5000, 20))
    y = np.where(np.arange(5000) < 2500, X[:, :3].sum(axis=1), X[:, 10:13].sum(axis=1)) + rng.standard_normal(5000)
    for model in (SparseRegressor(3), SparseRegressor(groups=np.arange(20) // 2)):
        sizes = []
        for i in range(0, 5000, 100):
            model.partial_fit(X[i : i + 100], y[i : i + 100])
            sizes.append(len(model.support_))
            if model.groups is not None:
                assert set(np.diff(model.support_)[::2]) <= {1}  # pairs
        assert model.drift_detected_
        assert model.groups is not None or max(sizes) <= 3


@pytest.mark.parametrize(
    "parameters",
    [
        {},
        {"horizon": 200},
        {"fit_intercept": False, "dtype": "float32"},
        {"sparsity": 2, "selection": "ebic"},
        {"drift": "full"},
        {"drift": "full", "fit_intercept": False, "horizon": 100},
    ],
)
def test_cutting_changes_no_bit(parameters):
    X, y = flipping(7, n=1500, at=500)
    y[500:] += X[500:, 8]
    weights = np.random.default_rng(0).integers(0, 3, 1500).astype(float)
    whole = SparseRegressor(**parameters).partial_fit(X, y, weights)
    assert whole.drift_detected_
    for cuts in (range(1, 1500), [1, 2, 31, 200, 777], np.random.default_rng(1).integers(1, 1500, 40)):
        model = SparseRegressor(**parameters)
        for part in np.split(np.arange(1500), sorted({int(cut) for cut in cuts})):
            model.partial_fit(X[part], y[part], weights[part])
            if len(part) > 1:
                model.coef_, model.support_, model.drift_detected_, model.effective_rows_  # noqa: B018, reading
        assert encode(model) == encode(whole)


@pytest.mark.parametrize("drift", ["auto", "full"])
def test_saving_and_resuming_changes_no_bit(drift):
    X, y = flipping(8, n=2000, at=700)
    y[700:] += X[700:, 5]
    whole = SparseRegressor(drift=drift).partial_fit(X, y)
    for at in (64, 129, 256, 257, 700, 900, 1333):
        model = SparseRegressor(drift=drift).partial_fit(X[:at], y[:at])
        for again in (from_bytes(encode(model)), pickle.loads(pickle.dumps(model))):
            np.testing.assert_array_equal(again.coef_, model.coef_)
            again.partial_fit(X[at:], y[at:])
            assert encode(again) == encode(whole)
            np.testing.assert_array_equal(again.coef_, whole.coef_)


def test_fit_counts_all_rows_alike_and_later_rows_are_followed():
    X, y = flipping(9, n=4000, at=2000)
    for fitted in (SparseRegressor().fit(X, y), SparseRegressor().fit_summary(Gram(D).absorb(X, y))):
        assert not fitted.drift_detected_
        np.testing.assert_array_equal(fitted.coef_, SparseRegressor(drift=None).fit(X, y).coef_)
    first = SparseRegressor().fit(X[:2000], y[:2000])
    first.partial_fit(X[2000:], y[2000:])
    assert first.drift_detected_
    np.testing.assert_allclose(first.coef_[:3], [-1.0, -0.7, 0.5], atol=0.05)


def test_finishing_a_stream_changes_nothing_that_comes_later():
    X, y = flipping(10, n=3000, at=1000)
    whole, paused = SparseRegressor(), SparseRegressor()
    for i in range(0, 3000, 100):
        whole.partial_fit(X[i : i + 100], y[i : i + 100])
        paused.partial_fit(X[i : i + 100], y[i : i + 100]).finish()
    paused.partial_fit(X[:1000], y[:1000])  # beyond the next choice
    whole.partial_fit(X[:1000], y[:1000])
    np.testing.assert_array_equal(paused.coef_, whole.coef_)
    assert paused.effective_rows_ == whole.effective_rows_


def test_parameters_can_be_changed_while_rows_come_in():
    X, y = flipping(3)
    model = SparseRegressor(drift=None).partial_fit(X[:1000], y[:1000])
    model.set_params(drift="auto").partial_fit(X[1000:3000], y[1000:3000])
    assert model.drift_detected_
    model.set_params(horizon=300).partial_fit(X[3000:], y[3000:])
    assert model.drift_detected_
    model.set_params(drift=None).partial_fit(X[:1], y[:1])
    assert not model.drift_detected_
    plain = SparseRegressor(drift=None).partial_fit(X, y).partial_fit(X[:1], y[:1])
    np.testing.assert_array_equal(model.coef_, plain.coef_)


@pytest.mark.parametrize("parameters", [{"drift": "some"}, {"drift": True}, {"horizon": 0}, {"horizon": 2.5}])
def test_wrong_parameters_are_named(parameters):
    X, y = stationary(0, n=20)
    with pytest.raises(ValueError, match=f"'{next(iter(parameters))}' parameter of SparseRegressor must be"):
        SparseRegressor(**parameters).partial_fit(X, y)


def test_what_is_said_after_a_change():
    X, y = flipping(2)
    model = SparseRegressor().partial_fit(X, y)
    finding = model.diagnose()["drift"]
    assert finding.severity == "warning"
    assert "all rows, counted equally" in finding.sentence
    assert finding.numbers == {"effective_rows": round(model.effective_rows_)}
    assert "drift: The stream has changed" in str(model.summary())
    # The table shows the coefficients in use, without what belongs to those of all rows.
    table = model.summary()
    features = [term for term in table.terms if term.standardized is not None]
    assert sorted(term.coef for term in features) == sorted(model.coef_[model.coef_ != 0.0])
    expected = np.abs(model.coef_ * X.std(axis=0) / y.std())
    np.testing.assert_allclose([abs(term.standardized) for term in features], -np.sort(-expected)[: table.n_kept])
    assert table.terms[0].coef == model.intercept_
    assert all(term.lower is None and term.inclusion is None for term in table.terms)
    assert (table.r2, table.noise, table.selection, table.follows_recent) == (None, None, None, True)
    assert f"of which {model.effective_rows_:,.0f} count" in str(table)
    assert "No intervals: the coefficients follow recent rows." in str(table)
    assert "std. error" not in str(table)
    assert "std. error" in str(SparseRegressor(drift=None).partial_fit(X, y).summary())
    # Intervals are about all rows, which a warning says.
    plain = SparseRegressor(drift=None).partial_fit(X, y)
    for how in ({}, {"method": "posterior"}):
        with pytest.warns(
            UserWarning, match="about all rows, counted equally.*coef_ follows.*half_life or window"
        ) as seen:
            found = model.confidence_intervals(features=[0, 1], **how)
        assert [warning.filename for warning in seen] == [__file__]
        np.testing.assert_array_equal(found.lower, plain.confidence_intervals(features=[0, 1], **how).lower)
    with pytest.raises(KeyError):
        plain.diagnose()["drift"]
    assert model.prequential_r2_ > plain.prequential_r2_ + 0.1


def test_no_intervals_are_computed_for_a_table_without_them():
    model = SparseRegressor(selection="ebic").partial_fit(*flipping(2))
    assert model.summary().follows_recent
    assert model._sampled is None
    with pytest.raises(ValueError, match="level is 95"):
        model.summary(95)


def test_the_history_tells_when():
    X, y = flipping(6, n=6000, at=3000)
    model = SparseRegressor().partial_fit(X, y)
    history = model.drift_history_
    found = next(record.n_samples for record in history if record.detected)
    assert 3000 < found < 3500
    assert not any(record.detected for record in history if record.n_samples <= 3000)
    assert history.changes == [found]
    # All rows count until then.
    assert all(record.effective_rows == record.n_samples for record in history if not record.detected)
    assert all(record.effective_rows < 3000 for record in history if record.detected)
    last = history[-1]
    np.testing.assert_allclose(last.values[list(last.support).index(0)], -1.0, atol=0.1)
    assert SparseRegressor(drift=None).partial_fit(X, y).drift_history_ == []


@pytest.mark.parametrize("at", [1500, 6000])  # a change, and none
def test_records_have_the_effective_rows_of_their_time(at):
    X, y = flipping(6, n=3000, at=at)
    model, seen = SparseRegressor(), []
    for i in range(0, 3000, 64):
        model.partial_fit(X[i : i + 64], y[i : i + 64])
        if model.n_samples_seen_ % 128 == 0 and model.drift_history_:
            assert model.drift_history_[-1].n_samples == model.n_samples_seen_
            assert model.drift_history_[-1].effective_rows == model.effective_rows_
            seen.append(model.drift_detected_)
    assert len(seen) > 3
    assert any(seen) == (at < 3000)


def test_the_history_of_drift_is_a_table():
    X, y = flipping(6, n=3000, at=1500)
    frame = pd.DataFrame(X, columns=[f"c{j}" for j in range(X.shape[1])])
    history = SparseRegressor().partial_fit(frame, y).drift_history_
    table = history.to_frame()
    assert table.index.tolist() == [record.n_samples for record in history]
    assert table["detected"].tolist() == [record.detected for record in history]
    assert table["effective_rows"].tolist() == [record.effective_rows for record in history]
    used = sorted({int(j) for record in history for j in record.support})
    assert table.columns.tolist() == ["detected", "effective_rows", *(f"c{j}" for j in used)]
    last = history[-1]
    assert table.iloc[-1][[f"c{j}" for j in last.support]].tolist() == last.values.tolist()
    heads, first, *_, end = repr(history).splitlines()
    assert heads.split() == ["rows", "detected", "effective", "rows", "came", "left"]
    assert first.split()[:4] == [str(history[0].n_samples), "False", f"{history[0].effective_rows:.0f}", "c0"]
    assert end.split()[:3] == [str(last.n_samples), "True", f"{last.effective_rows:.0f}"]


def test_the_history_does_not_grow_without_end():
    X, y = stationary(0, n=128 * 300, d=4)
    history = SparseRegressor().partial_fit(X, y).drift_history_
    assert 128 <= len(history) <= 256
    assert history[-1].n_samples >= 128 * 298


@pytest.mark.parametrize("drift", ["auto", "full"])
def test_columns_may_appear_in_a_stream_that_changes(drift):
    X, y = flipping(5)
    wide = SparseRegressor(drift=drift).partial_fit(X, y)
    from thresher.online.samples import Rows

    grown = SparseRegressor(drift=drift)
    grown._learn(Rows(X[:2500, :8].copy(), y[:2500]))
    grown._learn(Rows(X[2500:], y[2500:]))
    assert grown.drift_detected_
    np.testing.assert_allclose(grown.coef_[:3], wide.coef_[:3], atol=0.05)


@pytest.mark.parametrize("scale", [1e-140, 1e140])
def test_extreme_values_are_followed_or_left_to_all_rows(scale):
    X, y = flipping(1, n=1500, at=600)
    model = SparseRegressor().partial_fit(X * scale, y)
    assert np.isfinite(model.coef_).all()
    np.testing.assert_allclose(model.coef_[:3] * scale, SparseRegressor().partial_fit(X, y).coef_[:3], rtol=1e-4)


@pytest.mark.parametrize("memory", [{"half_life": 200.0}, {"window": 500}, {"window": 500, "exact_window": True}])
def test_drift_stands_aside_where_rows_are_forgotten_anyway(memory):
    X, y = flipping(0, n=3000, at=1000)
    model = SparseRegressor(**memory).partial_fit(X, y)
    assert not model.drift_detected_
    assert model.drift_history_ == []
    np.testing.assert_array_equal(model.coef_, SparseRegressor(drift=None, **memory).partial_fit(X, y).coef_)


def test_forged_followers_are_refused():
    X, y = flipping(0, n=1000, at=400)
    model = SparseRegressor(drift="full").partial_fit(X, y)
    for change in (
        lambda f: setattr(f.recent, "rows", f.recent.rows[:-1].copy()),
        lambda f: setattr(f.recent, "rows", f.recent.rows[:, :-1].copy()),
        lambda f: setattr(f.recent, "ends", f.recent.ends + 1),
        lambda f: setattr(f.recent, "origin", np.zeros(3)),
        lambda f: setattr(f.recent, "since", f.recent.n_rows + 1),
        lambda f: setattr(f, "n_done", 129),
        lambda f: setattr(f.levels, "moments", f.levels.moments[:, :-1, :-1].copy()),
        lambda f: setattr(f.levels, "features", np.array([0, 1, 40])),
        lambda f: setattr(f.mixing, "past", f.mixing.past[:, :, :-1].copy()),
        lambda f: setattr(f.mixing, "weights", np.full(N_LEVELS, 0.5)),
        lambda f: setattr(f.mixing, "at", 7),
    ):
        forged = clone(model)
        forged.__dict__.update(from_bytes(encode(model)).__dict__)
        change(forged._follower)
        with pytest.raises(ValueError, match="cannot be saved as it is"):
            encode(forged)


def test_mixtures_survive_rows_with_large_weights():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((3000, 5))
    y = np.where(np.arange(3000) < 1500, X[:, 0], -2.0 * X[:, 1]) + 0.3 * rng.standard_normal(3000)
    model = SparseRegressor(drift="full").partial_fit(X, y, np.full(3000, 1000.0))
    assert model.drift_detected_
    np.testing.assert_allclose(model._follower.mixing.weights.sum(), 1.0)
    np.testing.assert_allclose(model.coef_, [0.0, -2.0, 0.0, 0.0, 0.0], atol=0.1)
    assert encode(from_bytes(encode(model))) == encode(model)


def test_the_best_level_may_have_no_weight():
    # After a break, all rows count for nothing, and may still predict best.
    rng = np.random.default_rng(0)
    for module in (_score, reference):
        weights = np.append(np.full(N_LEVELS - 1, 1.0 / (N_LEVELS - 1)), 0.0)
        earlier = np.full((N_LEVELS, 2), 1e3)
        earlier[-1] = 0.0
        rows = np.column_stack([np.full(32, 100.0), rng.standard_normal((32, 2))])
        module.score(rows, earlier, weights, np.ones(N_LEVELS + 1), np.zeros(32))
        np.testing.assert_allclose(weights.sum(), 1.0)


@pytest.mark.parametrize("drift", [None, "auto", "full"])
def test_finishing_at_every_call_changes_nothing_that_comes_later(drift):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((3000, 30))
    before, after = (rng.standard_normal(30) * (rng.random(30) < 0.2) for _ in range(2))
    y = np.where(np.arange(3000) < 1000, X @ before, X @ after) + rng.standard_normal(3000)
    whole, paused = SparseRegressor(drift=drift), SparseRegressor(drift=drift)
    for k in range(0, 3000, 60):
        whole.partial_fit(X[k : k + 60], y[k : k + 60])
        paused.partial_fit(X[k : k + 60], y[k : k + 60]).finish()
    assert whole.finish().drift_detected_ == (drift is not None)
    np.testing.assert_array_equal(whole.coef_, paused.coef_)


def test_models_can_be_read_while_drift_is_switched_off():
    import sys
    from threading import Event, Thread

    X, y = flipping(4, n=1500, at=600)
    model, faults, done = SparseRegressor().partial_fit(X, y), [], Event()

    def read():
        while not done.is_set():
            try:
                model.coef_, model.intercept_, model.support_  # noqa: B018
            except Exception as fault:
                faults.append(fault)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    threads = [Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for _ in range(15):
        model.set_params(drift=None).partial_fit(X[:5], y[:5])
        model.set_params(drift="auto").partial_fit(X[:800], y[:800])
    done.set()
    for thread in threads:
        thread.join()
    sys.setswitchinterval(interval)
    assert faults == []
