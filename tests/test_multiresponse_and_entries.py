import copy
import pickle
from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

from thresher import Entries, Gram, MultiResponse


def rows(rng, n=400, p=7, q=3):
    X = rng.standard_normal((n, p)) * np.exp(rng.normal(size=p)) + 5.0 * rng.standard_normal(p)
    return X, X[:, :q] + rng.standard_normal((n, q)) - 2.0, rng.uniform(0, 3, n)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_equal_their_definitions(rng, weighted):
    X, Y, w = rows(rng)
    summary = MultiResponse(7, 3).absorb(X, Y, w if weighted else None)
    w = w if weighted else np.ones(len(X))
    C, D = X - w @ X / w.sum(), Y - w @ Y / w.sum()
    assert (summary.n_samples, summary.n_features, summary.n_responses) == (400, 7, 3)
    np.testing.assert_allclose(summary.mean_x, w @ X / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(summary.mean_y, w @ Y / w.sum(), rtol=1e-12)
    tolerance = {"rtol": 1e-10, "atol": 1e-9}
    np.testing.assert_allclose(summary.comoment(), (C.T * w) @ C, **tolerance)
    np.testing.assert_allclose(summary.cross_comoment(), (C.T * w) @ D, **tolerance)
    np.testing.assert_allclose(summary.joint_moments()[7:, 7:], (D.T * w) @ D, **tolerance)
    np.testing.assert_allclose(summary.second_moment(), (X.T * w) @ X, **tolerance)
    np.testing.assert_allclose(summary.cross_moment(), (X.T * w) @ Y, **tolerance)
    np.testing.assert_allclose(summary.variance(), w @ C**2 / w.sum(), rtol=1e-12)


def test_loss_and_gradient_equal_those_of_the_rows(rng):
    X, Y, w = rows(rng)
    summary, B, b = MultiResponse(7, 3).absorb(X, Y, w), rng.standard_normal((7, 3)), rng.standard_normal(3)
    R = X @ B + b - Y
    np.testing.assert_allclose(summary.loss(B, b), (w @ (R**2).sum(axis=1)) / w.sum() / 2, rtol=1e-10)
    np.testing.assert_allclose(summary.gradient(B, b), X.T @ (w[:, None] * R) / w.sum(), rtol=1e-9, atol=1e-9)
    best = w @ (Y - X @ B) / w.sum()
    np.testing.assert_allclose(summary.best_intercept(B), best, rtol=1e-10)
    np.testing.assert_allclose(summary.loss(B, None), summary.loss(B, best), rtol=1e-10)
    np.testing.assert_allclose(summary.gradient(B, None), summary.gradient(B, best), rtol=1e-8, atol=1e-9)


def test_one_response_is_a_gram(rng):
    X, Y, w = rows(rng)
    many, one = MultiResponse(7, 1).absorb(X, Y[:, 0], w), Gram(7).absorb(X, Y[:, 0], w)
    theta = rng.standard_normal(7)
    np.testing.assert_allclose(many.loss(theta[:, None], 0.3), one.loss(theta, 0.3), rtol=1e-12)
    np.testing.assert_allclose(many.gradient(theta[:, None], 0.3)[:, 0], one.gradient(theta, 0.3), rtol=1e-10)


def test_far_from_zero_nothing_cancels(rng):
    X, Y = rng.standard_normal((500, 4)) + 1e8, rng.standard_normal((500, 2)) - 1e8
    summary = MultiResponse(4, 2).absorb(X, Y)
    np.testing.assert_allclose(
        summary.cross_comoment(), (X - X.mean(axis=0)).T @ (Y - Y.mean(axis=0)), rtol=1e-6, atol=1e-5
    )


@pytest.mark.parametrize("sizes", [[1] * 400, [399, 1], [63, 65, 200, 72]])
def test_any_cut_and_csr_give_the_same_bits(rng, sizes):
    X, Y, w = rows(rng)
    whole = MultiResponse(7, 3).absorb(X, Y, w)
    pieces = MultiResponse(7, 3)
    for a, b in pairwise(np.cumsum([0, *sizes])):
        pieces.absorb(scipy.sparse.csr_matrix(X[a:b]), Y[a:b], w[a:b])
    for mine, theirs in zip(vars(pieces._joint.state).values(), vars(whole._joint.state).values(), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_merge_is_concatenation_and_subtract_undoes_it(rng):
    X, Y, w = rows(rng)
    a, b = MultiResponse(7, 3).absorb(X[:150], Y[:150], w[:150]), MultiResponse(7, 3).absorb(X[150:], Y[150:], w[150:])
    whole = MultiResponse(7, 3).absorb(X, Y, w)
    B = rng.standard_normal((7, 3))
    merged = a.merge(b)
    np.testing.assert_allclose(merged.gradient(B, None), whole.gradient(B, None), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(whole.subtract(b).gradient(B), a.gradient(B), rtol=1e-7, atol=1e-8)
    assert (merged.n_samples, a.n_samples) == (400, 150)
    twin = copy.deepcopy(whole)
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(whole)).gradient(B), twin.gradient(B))
    assert "n_responses=3" in repr(whole.copy())
    with pytest.raises(ValueError, match="different n_"):
        a.merge(MultiResponse(7, 2))
    with pytest.raises(TypeError, match="Gram"):
        a.merge(Gram(7))


BAD_ROWS = {
    "no features": (np.ones((3, 6)), np.ones((3, 3)), None, "6 columns"),
    "responses": (np.ones((3, 7)), np.ones((3, 2)), None, "expected 3 response"),
    "lengths": (np.ones((3, 7)), np.ones((4, 3)), None, "3 rows and y has 4"),
    "NaN": (np.ones((3, 7)), np.full((3, 3), np.nan), None, "y contains NaN"),
    "weights": (np.ones((3, 7)), np.ones((3, 3)), [1, -1, 1], "negative"),
}


@pytest.mark.parametrize(("X", "Y", "w", "message"), BAD_ROWS.values(), ids=BAD_ROWS)
def test_bad_rows_leave_the_summary_alone(X, Y, w, message, rng):
    summary = MultiResponse(7, 3).absorb(*rows(rng, n=20))
    before = pickle.dumps(summary)
    with pytest.raises(ValueError, match=message):
        summary.absorb(X, Y, w)
    assert pickle.dumps(summary) == before
    with pytest.raises(ValueError, match="empty"):
        MultiResponse(7, 3).loss(np.zeros((7, 3)))
    with pytest.raises(ValueError, match="coef has shape"):
        summary.loss(np.zeros((3, 7)))


# -- entries -------------------------------------------------------------------------------------------------


def observed(rng, n=300, shape=(6, 5)):
    return rng.integers(0, shape[0], n), rng.integers(0, shape[1], n), rng.standard_normal(n), rng.uniform(0, 2, n)


@pytest.mark.parametrize("intercept", [0.0, 0.7, None])
def test_entries_loss_and_gradient_equal_those_of_the_observations(rng, intercept):
    i, j, v, w = observed(rng)
    summary, theta = Entries((6, 5)).absorb(i, j, v, w), rng.standard_normal((6, 5))
    b = w @ (v - theta[i, j]) / w.sum() if intercept is None else intercept
    residual = theta[i, j] + b - v
    np.testing.assert_allclose(summary.loss(theta, intercept), w @ residual**2 / w.sum() / 2, rtol=1e-12)
    expected = np.zeros((6, 5))
    np.add.at(expected, (i, j), w * residual / w.sum())
    np.testing.assert_allclose(summary.gradient(theta, intercept), expected, rtol=1e-10, atol=1e-14)


@given(st.integers(0, 2**32 - 1), st.lists(st.integers(0, 300), max_size=5))
def test_entries_do_not_depend_on_the_cut(seed, cuts):
    rng = np.random.default_rng(seed)
    i, j, v, w = observed(rng)
    whole, pieces = Entries((6, 5)).absorb(i, j, v, w), Entries((6, 5))
    for a, b in pairwise(sorted({0, 300, *cuts})):
        pieces.absorb(i[a:b], j[a:b], v[a:b], w[a:b])
    assert pickle.dumps(pieces) == pickle.dumps(whole)


def test_weights_count_repeats_and_values_merge(rng):
    i, j, v, _ = observed(rng)
    k = rng.integers(0, 4, 300)
    weighted = Entries((6, 5)).absorb(i, j, v, k.astype(float))
    repeated = Entries((6, 5)).absorb(np.repeat(i, k), np.repeat(j, k), np.repeat(v, k))
    np.testing.assert_allclose(weighted.sums, repeated.sums, atol=1e-12)
    np.testing.assert_array_equal(weighted.counts, repeated.counts)
    a, b = Entries((6, 5)).absorb(i[:99], j[:99], v[:99]), Entries((6, 5)).absorb(i[99:], j[99:], v[99:])
    whole, theta = Entries((6, 5)).absorb(i, j, v), rng.standard_normal((6, 5))
    np.testing.assert_allclose(a.merge(b).gradient(theta), whole.gradient(theta), rtol=1e-12, atol=1e-15)
    left = whole.subtract(b)
    np.testing.assert_allclose(left.loss(theta), a.loss(theta), rtol=1e-12)
    assert (left.n_samples, left.weight) == (99, 99.0)
    assert whole.resized((8, 9)).shape == (8, 9)
    with pytest.raises(ValueError, match="Cannot subtract"):
        a.subtract(b)
    with pytest.raises(ValueError, match="different shape"):
        a.merge(Entries((5, 6)))
    with pytest.raises(TypeError, match="Gram"):
        a.merge(Gram(3))


BAD_ENTRIES = {
    "outside": ([6], [0], [1.0], None, "rows holds the index 6"),
    "negative": ([0], [-1], [1.0], None, "cols holds the index -1"),
    "floats": ([0.5], [0], [1.0], None, "vector of integers"),
    "NaN": ([0], [0], [np.nan], None, "values contains NaN"),
    "lengths": ([0, 1], [0], [1.0], None, "rows has 2"),
    "none": ([], [], [], None, "no entries"),
    "weights": ([0], [0], [1.0], [-1.0], "negative"),
    "overflow": ([0], [0], [1e200], None, "overflow"),
}


@pytest.mark.parametrize(("i", "j", "v", "w", "message"), BAD_ENTRIES.values(), ids=BAD_ENTRIES)
def test_bad_entries_leave_the_summary_alone(i, j, v, w, message, rng):
    summary = Entries((6, 5)).absorb(*observed(rng))
    before = pickle.dumps(summary)
    with pytest.raises(ValueError, match=message):
        summary.absorb(i, j, v, w)
    assert pickle.dumps(summary) == before


def test_empty_entries_have_no_loss():
    with pytest.raises(ValueError, match="empty"):
        Entries((2, 2)).loss(np.zeros((2, 2)))


# -- a Gram that holds rows ----------------------------------------------------------------------------------


@pytest.mark.parametrize("n", [1, 63, 64, 65, 149, 150, 151, 400])
def test_held_rows_and_moments_are_the_same_summary(rng, n):
    X = rng.standard_normal((n, 300)) + 3.0
    y, theta = X[:, 0] + rng.standard_normal(n), rng.standard_normal(300)
    held, plain = Gram(300, hold_rows=True).absorb(X, y), Gram(300).absorb(X, y)
    assert held.n_folded == (0 if n < 150 else 150 + (n - 150) // 64 * 64)
    for intercept in (0.0, None):
        np.testing.assert_allclose(
            held.gradient(theta, intercept), plain.gradient(theta, intercept), rtol=1e-9, atol=1e-9
        )
        np.testing.assert_allclose(held.loss(theta, intercept), plain.loss(theta, intercept), rtol=1e-10)
    np.testing.assert_allclose(held.comoment(), plain.comoment(), rtol=1e-9, atol=1e-9)
    pieces = Gram(300, hold_rows=True)
    for a in range(0, n, 37):
        pieces.absorb(X[a : a + 37], y[a : a + 37])
    np.testing.assert_array_equal(pieces.gradient(theta), held.gradient(theta))
    merged = held.merge(held.copy())
    np.testing.assert_allclose(merged.gradient(theta), held.gradient(theta), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(merged.subtract(held).gradient(theta), held.gradient(theta), rtol=1e-7, atol=1e-7)
    np.testing.assert_array_equal(held.copy().absorb(X, y).gradient(theta), held.absorb(X, y).gradient(theta))
