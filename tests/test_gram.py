import copy
import pickle
import subprocess
import sys
from dataclasses import fields
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import thresher.summaries.gram as gram_module
from thresher import Gram
from thresher.io.encoding import encode

BLOCK = 128  # rows that are folded at once, for few columns
# Empty, one row, part of a block, one row short of it, a block, one row more, several blocks and a part.
FILLS = [0, 1, 50, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK + 17]


def rows(rng, n=700, d=9):
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(size=d)) + 5.0 * rng.standard_normal(d)
    return X, rng.standard_normal(n) + X[:, 0], rng.uniform(0, 3, n)


def assert_same_state(a, b):
    """Equal to the bit, but for rows of the buffer that were folded and wait to be overwritten."""
    n = a.state.n_buffered
    for field in fields(a.state):
        mine, theirs = getattr(a.state, field.name), getattr(b.state, field.name)
        if field.name.startswith("buffer"):
            mine, theirs = mine[:n], theirs[:n]
        np.testing.assert_array_equal(mine, theirs, field.name)


def assert_close(found, expected, scale, tol=1e-12):
    """Equal to this share of the scales of rows and columns."""
    np.testing.assert_allclose(found / scale, expected / scale, rtol=0, atol=tol)


def moments_by_definition(X, y, w, centred):
    """Sum w x x', sum w x y and sum w y^2, about the means or about zero, in extended precision."""
    X, y, w = (np.asarray(part, np.longdouble) for part in (X, y, w))
    if centred and w.sum() > 0:
        X, y = X - w @ X / w.sum(), y - w @ y / w.sum()
    return (X.T * w @ X).astype(float), (X.T @ (w * y)).astype(float), float(w @ y**2)


@pytest.mark.parametrize("weighted", [False, True])
def test_moments_equal_their_definitions(rng, weighted):
    X, y, w = rows(rng)
    gram = Gram(9).absorb(X, y, w if weighted else None)
    w = w if weighted else np.ones(len(X))
    mean, mean_y = w @ X / w.sum(), w @ y / w.sum()
    assert gram.n_samples == 700
    np.testing.assert_allclose(gram.weight, w.sum(), rtol=1e-13)
    np.testing.assert_allclose(gram.mean_x, mean, rtol=1e-12)
    np.testing.assert_allclose(gram.mean_y, mean_y, rtol=1e-12)
    np.testing.assert_allclose(gram.second_moment(), (X.T * w) @ X, rtol=1e-11)
    np.testing.assert_allclose(gram.cross_moment(), X.T @ (w * y), rtol=1e-11)
    np.testing.assert_allclose(gram.sums().squares_y(centred=False), w @ y**2, rtol=1e-12)
    np.testing.assert_allclose(gram.sums().squares_y(centred=True), w @ (y - mean_y) ** 2, rtol=1e-12)
    C = X - mean
    atol = 1e-12 * np.abs((C.T * w) @ C).max()
    np.testing.assert_allclose(gram.comoment(), (C.T * w) @ C, rtol=1e-11, atol=atol)
    np.testing.assert_allclose(gram.cross_comoment(), C.T @ (w * (y - mean_y)), rtol=1e-10, atol=atol)
    np.testing.assert_allclose(gram.variance(), w @ C**2 / w.sum(), rtol=1e-12)
    np.testing.assert_allclose(gram.variance(centred=False), w @ X**2 / w.sum(), rtol=1e-12)


@pytest.mark.parametrize("centred", [True, False])
def test_normal_equations_are_a_block_of_the_moments(rng, centred):
    gram = Gram(9).absorb(*rows(rng, n=100))
    index = [7, 2, 4]
    matrix, vector = gram.normal_equations(index, centred)
    full = gram.comoment() if centred else gram.second_moment()
    cross = gram.cross_comoment() if centred else gram.cross_moment()
    np.testing.assert_allclose(matrix, full[np.ix_(index, index)], rtol=1e-12)
    np.testing.assert_allclose(vector, cross[index], rtol=1e-12)


def test_loss_and_gradient_equal_those_of_the_rows(rng):
    X, y, w = rows(rng)
    gram, theta, b = Gram(9).absorb(X, y, w), rng.standard_normal(9), 0.7
    residual = X @ theta + b - y
    np.testing.assert_allclose(gram.loss(theta, b), w @ residual**2 / w.sum() / 2, rtol=1e-12)
    np.testing.assert_allclose(gram.gradient(theta, b), X.T @ (w * residual) / w.sum(), rtol=1e-11)
    np.testing.assert_allclose(gram.gradient(theta, None), gram.gradient(theta, gram.best_intercept(theta)), rtol=1e-9)
    np.testing.assert_allclose(gram.response_variance(centred=False), np.average(y**2, weights=w), rtol=1e-12)
    spread = np.average((y - np.average(y, weights=w)) ** 2, weights=w)
    np.testing.assert_allclose(gram.response_variance(), spread, rtol=1e-12)
    with pytest.raises(ValueError, match="The summary is empty"):
        Gram(2).response_variance()
    np.testing.assert_allclose(gram.loss(theta, None), gram.loss(theta, gram.best_intercept(theta)), rtol=1e-12)
    best = (w @ y - w @ X @ theta) / w.sum()
    np.testing.assert_allclose(gram.best_intercept(theta), best, rtol=1e-12)


@given(cuts=st.lists(st.integers(0, 700), max_size=12), weighted=st.booleans())
def test_state_does_not_depend_on_how_rows_are_cut(cuts, weighted):
    X, y, w = rows(np.random.default_rng(3))
    w = w if weighted else np.ones(len(X))
    whole, pieces = Gram(9).absorb(X, y, w), Gram(9)
    edges = [0, *sorted(cuts), 700]
    for a, b in pairwise(edges):
        if b > a:
            pieces.absorb(X[a:b], y[a:b], w[a:b])
    assert_same_state(whole, pieces)
    assert encode(pieces) == encode(whole)  # also as a file


@pytest.mark.parametrize("far", [0.0, 1e3])
def test_merge_equals_one_pass(rng, far):
    X, y, w = rows(rng)
    X[:150] += far
    both = Gram(9).absorb(X[:150], y[:150], w[:150]).merge(Gram(9).absorb(X[150:], y[150:], w[150:]))
    once = Gram(9).absorb(X, y, w)
    scale = np.sqrt(np.outer(*[once.weight * once.variance()] * 2))
    assert both.n_samples == once.n_samples
    np.testing.assert_allclose(both.comoment() / scale, once.comoment() / scale, rtol=0, atol=1e-12)
    np.testing.assert_allclose(both.cross_moment(), once.cross_moment(), rtol=1e-12)
    np.testing.assert_allclose(both.mean_x, once.mean_x, rtol=1e-12)


def test_subtract_undoes_merge_and_leaves_arguments_untouched(rng):
    X, y, w = rows(rng)
    a, b = Gram(9).absorb(X[:300], y[:300], w[:300]), Gram(9).absorb(X[300:], y[300:])
    before = copy.deepcopy(a), copy.deepcopy(b)
    back = a.merge(b).subtract(b)
    assert back.n_samples == 300
    np.testing.assert_allclose(back.weight, a.weight, rtol=1e-12)
    scale = np.sqrt(np.outer(*[a.weight * a.variance()] * 2))
    np.testing.assert_allclose(back.comoment() / scale, a.comoment() / scale, atol=1e-10)
    assert_same_state(a, before[0])
    assert_same_state(b, before[1])
    assert a.subtract(a).n_samples == 0
    assert a.subtract(a).weight == 0.0


def test_merge_with_an_empty_summary_changes_nothing(rng):
    X, y, w = rows(rng)
    a = Gram(9).absorb(X, y, w)
    for merged in (a.merge(Gram(9)), Gram(9).merge(a)):
        np.testing.assert_allclose(merged.comoment(), a.comoment(), rtol=1e-12)


@pytest.mark.parametrize("start", ["typical", "outlier"])
def test_comoments_far_from_zero_against_high_precision(rng, start):
    n, d = 600, 4
    X = 1e8 + rng.standard_normal((n, d)) @ (np.eye(d) + 0.3)
    y = -1e8 + X[:, 0] - 1e8 + rng.standard_normal(n)
    if start == "outlier":
        X[0] = 0.0
    with mpmath.workdps(60):
        exact = [[mpmath.mpf(float(v)) for v in row] for row in X]
        means = [mpmath.fsum(row[j] for row in exact) / n for j in range(d)]

        def comoment(i, j):
            return mpmath.fsum((row[i] - means[i]) * (row[j] - means[j]) for row in exact)

        C = [[comoment(i, j) for j in range(d)] for i in range(d)]
        expected = np.array([[float(C[i][j] / mpmath.sqrt(C[i][i] * C[j][j])) for j in range(d)] for i in range(d)])
        variance = np.array([float(C[j][j] / n) for j in range(d)])
    gram = Gram(d).absorb(X, y)
    actual = gram.comoment()
    actual /= np.sqrt(np.outer(np.diag(actual), np.diag(actual)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=1e-10)
    np.testing.assert_allclose(gram.variance(), variance, rtol=1e-10)
    pieces = Gram(d).absorb(X[:90], y[:90]).merge(Gram(d).absorb(X[90:], y[90:])).comoment()
    pieces /= np.sqrt(np.outer(np.diag(pieces), np.diag(pieces)))
    np.testing.assert_allclose(pieces, expected, rtol=0, atol=1e-10)


def test_extreme_column_scales_neither_overflow_nor_vanish(rng):
    X = rng.standard_normal((500, 6)) + 1.0
    y = X[:, 0] + rng.standard_normal(500)
    powers = np.array([-150, -80, 0, 0, 80, 150])
    plain, scaled = Gram(6).absorb(X, y), Gram(6).absorb(X * 10.0**powers, y)
    with np.errstate(over="raise", invalid="raise", divide="raise"):
        C = scaled.comoment()
        size = np.sqrt(np.diag(C))
        standardised = C / size[:, None] / size
    expected = plain.comoment()
    expected /= np.sqrt(np.outer(np.diag(expected), np.diag(expected)))
    np.testing.assert_allclose(standardised, expected, rtol=1e-11)


def test_float32_storage_halves_memory_and_keeps_float64_means(rng):
    X, y, w = rows(rng, n=3000)
    double, single = Gram(9).absorb(X, y, w), Gram(9, np.float32).absorb(X, y, w)
    assert single.state.scatter.nbytes * 2 == double.state.scatter.nbytes
    for name in ("mean_x", "mean_y", "weight"):
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), rtol=1e-14)
    np.testing.assert_allclose(single.response_variance(False), double.response_variance(False), rtol=1e-14)
    np.testing.assert_allclose(single.variance(), double.variance(), rtol=1e-13)
    np.testing.assert_allclose(single.cross_comoment(), double.cross_comoment(), rtol=1e-9)
    scale = np.sqrt(np.outer(*[double.weight * double.variance()] * 2))
    difference = np.abs(single.comoment() - double.comoment()) / scale
    assert 0.0 < difference.max() < 1e-6


def test_sparse_integer_and_fortran_rows_equal_dense(rng):
    X = (rng.uniform(size=(400, 30)) < 0.1) * rng.integers(1, 5, (400, 30))
    y = rng.standard_normal(400)
    dense = Gram(30).absorb(X.astype(float), y)
    for other in (scipy.sparse.csr_matrix(X), scipy.sparse.coo_array(X), X, np.asfortranarray(X.astype(np.float32))):
        assert_same_state(dense, Gram(30).absorb(other, y))


def test_constant_and_duplicated_columns(rng):
    X = np.column_stack([np.full(300, 0.1), rng.standard_normal(300)])
    X = np.column_stack([X, X[:, 1]])
    gram = Gram(3).absorb(X, X[:, 1])
    assert gram.variance()[0] == 0.0
    assert not gram.comoment()[0].any()
    np.testing.assert_allclose(gram.comoment()[1], gram.comoment()[2], rtol=1e-14)


def test_zero_weights_count_as_rows_only(rng):
    X, y, w = rows(rng, n=50)
    kept = np.arange(50) >= 10
    gram = Gram(9).absorb(X, y, w * kept)
    np.testing.assert_allclose(gram.comoment(), Gram(9).absorb(X[kept], y[kept], w[kept]).comoment(), rtol=1e-12)
    assert gram.n_samples == 50


def test_weights_equal_repeated_rows(rng):
    X, y, _ = rows(rng, n=120)
    times = rng.integers(1, 4, 120)
    once = Gram(9).absorb(X, y, times)
    repeated = Gram(9).absorb(np.repeat(X, times, axis=0), np.repeat(y, times))
    np.testing.assert_allclose(once.comoment(), repeated.comoment(), rtol=1e-10)
    assert once.weight == repeated.weight == times.sum()


def test_copies_are_independent(rng):
    X, y, w = rows(rng)
    gram = Gram(9).absorb(X, y, w)
    for twin in (gram.copy(), copy.deepcopy(gram), pickle.loads(pickle.dumps(gram))):
        assert_same_state(gram, twin)
        twin.absorb(X, y)
        assert twin.n_samples == gram.n_samples + 700


GOOD = np.ones((4, 3)), np.ones(4), None


def bad(X=GOOD[0], y=GOOD[1], w=None):
    return X, y, w


def with_value(shape, value):
    array = np.ones(shape)
    array.flat[1] = value
    return array


BAD_ROWS = [
    (bad(X=with_value((4, 3), np.nan)), "X contains NaN"),
    (bad(X=with_value((4, 3), np.inf)), "X contains infinity"),
    (bad(X=scipy.sparse.csr_array(with_value((4, 3), np.nan))), "X contains NaN"),
    (bad(y=with_value(4, np.nan)), "y contains NaN"),
    (bad(w=with_value(4, np.nan)), "sample_weight contains NaN"),
    (bad(w=with_value(4, -1.0)), "sample_weight is negative"),
    (bad(w=np.ones(3)), "sample_weight has shape"),
    (bad(X=np.ones((4, 2))), "2 columns"),
    (bad(X=np.ones(3)), "1 dimension"),
    (bad(X=np.ones((4, 3), complex)), "X is complex"),
    (bad(X=np.full((4, 3), "a")), "dtype"),
    (bad(X=np.full((4, 3), 1.0, object)), "dtype object"),
    (bad(y=np.ones(4, complex)), "y is complex"),
    (bad(y=np.ones((4, 2))), "one response"),
    (bad(y=np.ones(5)), "4 rows and y has 5"),
    (bad(X=np.ones((0, 3)), y=np.ones(0)), "no rows"),
]


@pytest.mark.parametrize(("arguments", "message"), BAD_ROWS)
def test_bad_rows_are_named_and_change_nothing(arguments, message):
    gram = Gram(3).absorb(*GOOD)
    before = gram.copy()
    with pytest.raises(ValueError, match=message):
        gram.absorb(*arguments)
    assert_same_state(gram, before)


def test_bad_construction_and_partners():
    for d in (0, -1, 2.5, True, "a", None, np.nan):
        with pytest.raises(ValueError, match="n_features"):
            Gram(d)
    with pytest.raises(ValueError, match="float64 or float32"):
        Gram(3, np.int64)
    with pytest.raises(ValueError, match="different n_features: 3 and 4"):
        Gram(3).merge(Gram(4))
    with pytest.raises(TypeError, match="ndarray"):
        Gram(3).merge(np.eye(3))
    small, large = Gram(3).absorb(*GOOD), Gram(3).absorb(*GOOD).absorb(*GOOD)
    with pytest.raises(ValueError, match="more than was absorbed"):
        small.subtract(large)
    with pytest.raises(ValueError, match="empty"):
        Gram(3).loss(np.zeros(3))
    with pytest.raises(ValueError, match="coef has shape"):
        small.loss(np.zeros(2))


def test_subtracting_what_was_never_absorbed_is_noticed(rng):
    a = Gram(3).absorb(rng.standard_normal((50, 3)), np.zeros(50))
    b = Gram(3).absorb(100.0 * rng.standard_normal((20, 3)), np.zeros(20))
    with pytest.raises(ValueError, match="not part of this one"):
        a.subtract(b)
    same_size = Gram(3).absorb(rng.standard_normal((50, 3)) + 100.0, np.zeros(50))
    with pytest.raises(ValueError, match="not part of this one"):
        a.subtract(same_size)


def test_subtracting_all_but_weightless_rows_leaves_nothing(rng):
    X, y, w = rows(rng, n=300)
    whole = Gram(9).absorb(X, y, w).absorb(X[:5], y[:5], np.zeros(5))
    left = whole.subtract(Gram(9).absorb(X, y, w))
    assert (left.n_samples, left.weight) == (5, 0.0)
    assert not left.comoment().any()


def test_gram_that_does_not_fit_says_so(monkeypatch):
    with pytest.raises(MemoryError, match=r"needs .* bytes .* free.*float32") as error:
        Gram(10_000_000)
    needed = int(str(error.value).split("needs ")[1].split(" bytes")[0].replace(",", ""))
    assert 8 * 10**14 <= needed <= 8.01 * 10**14
    monkeypatch.setattr("thresher._utils.memory.available_bytes", lambda: 6_000_000)
    Gram(1000, np.float32)
    with pytest.raises(MemoryError):
        Gram(1000)


def test_values_too_large_for_float32_are_refused():
    gram = Gram(2, np.float32)
    with pytest.raises(ValueError, match="overflow float32"):
        gram.absorb(np.full((3, 2), 1e20), np.ones(3))
    assert gram.n_samples == 0


def test_block_is_at_most_an_eighth_of_a_large_gram():
    for d in (1000, 2000, 4000, 20_000):
        assert gram_module.block_rows(d) <= d / 8 + 16
    assert gram_module.block_rows(3) == 128


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_selected_columns_are_the_summary_of_those_columns(dtype):
    rng = np.random.default_rng(3)
    X, y, w = 5.0 + rng.standard_normal((700, 9)), rng.standard_normal(700), rng.uniform(0.5, 2.0, 700)
    columns = [7, 0, 4]
    part = Gram(9, dtype).absorb(X, y, w).select(columns)
    whole = Gram(3).absorb(X[:, columns], y, w)
    assert (part.n_samples, part.n_features, part.dtype) == (700, 3, dtype)
    tolerance = {"float64": 1e-12, "float32": 1e-5}[dtype]
    np.testing.assert_allclose(part.comoment(), whole.comoment(), rtol=tolerance, atol=tolerance * 700)
    np.testing.assert_allclose(part.cross_comoment(), whole.cross_comoment(), rtol=1e-9, atol=1e-9)
    earlier = Gram(9, dtype).absorb(X[:300], y[:300], w[:300]).select(columns)
    later = Gram(3).absorb(X[300:, columns], y[300:], w[300:])
    for wrong, why in (([-1, 0], "does not exist"), ([9], "does not exist"), ([True, False], "column numbers")):
        with pytest.raises(ValueError, match=why):
            part.select(wrong)
    left = part.subtract(earlier)
    np.testing.assert_allclose(left.comoment(), later.comoment(), rtol=tolerance, atol=tolerance * 700)


# -- every sum at any fill of the buffer -----------------------------------------------------------------------------


@pytest.mark.parametrize("n", FILLS)
@pytest.mark.parametrize("weighting", ["none", "positive", "zeros first"])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_moments_are_those_of_all_rows_at_any_fill_of_the_buffer(rng, n, weighting, dtype):
    X, y, w = rows(rng, n=n)
    w = np.ones(n) if weighting == "none" else w * (np.arange(n) >= 20) if weighting == "zeros first" else w
    gram = Gram(9, dtype)
    if n:
        gram.absorb(X, y, None if weighting == "none" else w)
    assert gram.state.n_buffered == n % BLOCK
    assert (gram.n_samples, gram.n_folded) == (n, n - n % BLOCK)
    np.testing.assert_allclose(gram.weight, w.sum(), rtol=1e-13)
    # Rounding is a share of the sums that are kept, which are about a row of the stream.
    about = X - X[np.argmax(w > 0)] if n else X
    scale = np.sqrt(w @ about**2 + w @ X**2 + 1e-300)
    scale_y = np.sqrt(w @ (y - y[np.argmax(w > 0)]) ** 2 + w @ y**2 + 1e-300) if n else 1.0
    tol = 1e-13 if dtype == "float64" else 1e-6
    for centred in (True, False):
        matrix, vector, total = moments_by_definition(X, y, w, centred)
        full = gram.comoment() if centred else gram.second_moment()
        cross = gram.cross_comoment() if centred else gram.cross_moment()
        assert_close(full, matrix, np.outer(scale, scale), tol)
        assert_close(np.diag(full), np.diag(matrix), scale**2, 1e-13)  # float64 whatever the storage
        assert_close(cross, vector, scale * scale_y, 1e-13)
        sums, moments = gram.sums(), gram.moments(centred)
        assert_close(sums.squares(centred), np.diag(matrix), scale**2, 1e-13)
        assert_close(sums.products_y(centred), vector, scale * scale_y, 1e-13)
        assert_close(sums.squares_y(centred), total, scale_y**2, 1e-13)
        np.testing.assert_array_equal(full, full.T)
        # What solvers read is the same, whichever way they read it.
        assert (moments.n_features, moments.weight, moments.dtype) == (9, gram.weight, np.dtype(dtype))
        np.testing.assert_array_equal(moments.squares, sums.squares(centred))
        np.testing.assert_array_equal(moments.products, sums.products_y(centred))
        assert moments.total == sums.squares_y(centred)
        for j in range(9):
            assert_close(moments.column(j), full[j], scale[j] * scale)
        for index in ([], [3], [7, 2, 4], list(range(9))):
            block, part = gram.normal_equations(index, centred)
            assert_close(block, full[np.ix_(index, index)], np.outer(scale[index], scale[index]))
            assert_close(part, cross[index], scale[index] * scale_y)
    if w.sum():
        np.testing.assert_allclose(gram.mean_x, w @ X / w.sum(), rtol=1e-12, atol=1e-13 * scale.max())
        np.testing.assert_allclose(gram.mean_y, w @ y / w.sum(), rtol=1e-12, atol=1e-13 * scale_y)
        theta = rng.standard_normal(9)
        gradient = X.T @ (w * (X @ theta + 0.4 - y)) / w.sum()
        np.testing.assert_allclose(gram.gradient(theta, 0.4), gradient, rtol=0, atol=10 * tol * np.abs(gradient).max())
    else:
        assert not gram.mean_x.any()
        assert gram.mean_y == 0.0


@pytest.mark.parametrize("n", FILLS[2:])
@pytest.mark.parametrize("weighted", [False, True])
def test_covariances_at_any_fill_are_those_of_numpy(rng, n, weighted):
    X, y, w = rows(rng, n=n)
    w = w if weighted else None
    expected = np.cov(X, y, rowvar=False, aweights=w, ddof=0)
    gram = Gram(9).absorb(X, y, w)
    scale = np.sqrt(np.outer(*[np.diag(expected)] * 2))
    assert_close(gram.comoment() / gram.weight, expected[:9, :9], scale[:9, :9])
    assert_close(gram.cross_comoment() / gram.weight, expected[:9, 9], scale[:9, 9])
    np.testing.assert_allclose(gram.response_variance(), expected[9, 9], rtol=1e-12)


@pytest.mark.parametrize("n", FILLS[2:])
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_nothing_cancels_a_hundred_million_deviations_from_zero(rng, n, dtype):
    """Subtracting 1e8 from numbers near it is exact, so the truth is computed about zero."""
    X = 1e8 + np.round(rng.standard_normal((n, 4)) @ (np.eye(4) + 0.3), 4)
    y = np.round(rng.standard_normal(n), 4) - 1e8
    w = rng.uniform(0.0, 3.0, n)
    expected = np.cov(X - 1e8, y + 1e8, rowvar=False, aweights=w, ddof=0)
    scale = np.sqrt(np.outer(*[np.diag(expected)] * 2))
    gram, tol = Gram(4, dtype).absorb(X, y, w), 1e-12 if dtype == "float64" else 1e-5
    found = gram.comoment() / gram.weight
    assert_close(found, expected[:4, :4], scale[:4, :4], tol)
    np.testing.assert_allclose(gram.variance(), np.diag(expected)[:4], rtol=1e-12)
    assert_close(gram.cross_comoment() / gram.weight, expected[:4, 4], scale[:4, 4])
    np.testing.assert_allclose(gram.response_variance(), expected[4, 4], rtol=1e-12)
    for j in range(4):
        assert_close(gram.moments().column(j) / gram.weight, expected[j, :4], scale[j, :4], tol)
    half = Gram(4, dtype).absorb(X[: n // 2], y[: n // 2], w[: n // 2])
    rest = Gram(4, dtype).absorb(X[n // 2 :], y[n // 2 :], w[n // 2 :])
    merged = half.merge(rest)
    assert_close(merged.comoment() / gram.weight, expected[:4, :4], scale[:4, :4], tol)
    assert_close(merged.subtract(rest).comoment(), half.comoment(), scale[:4, :4] * gram.weight, tol)


def test_a_mean_that_wanders_far_is_followed(rng):
    """The shift moves when a buffer is folded, and every sum with it; constant columns stay exactly constant."""
    n = 6 * BLOCK + 31
    drift = np.repeat(10.0 ** np.arange(1, 8), BLOCK)[:n]
    X = np.column_stack([rng.standard_normal(n) + drift, np.full(n, 0.1), rng.standard_normal(n)])
    y, w = X[:, 0] + X[:, 2], rng.uniform(0.5, 2.0, n)
    gram = Gram(3).absorb(X, y, w)
    first = gram.state.shift_x[0] - X[0, 0]
    assert abs(first) > 1.0  # it moved
    assert gram.state.shift_x[1] == 0.1
    for centred in (True, False):
        matrix, vector, total = moments_by_definition(X, y, w, centred)
        full, cross = (
            (gram.comoment(), gram.cross_comoment()) if centred else (gram.second_moment(), gram.cross_moment())
        )
        scale = np.sqrt(w @ X**2)
        assert_close(full, matrix, np.outer(scale, scale))
        assert_close(cross, vector, scale * np.sqrt(w @ y**2))
        np.testing.assert_allclose(gram.sums().squares_y(centred), total, rtol=1e-12)
    assert gram.variance()[1] == gram.sums().squares(centred=True)[1] == 0.0
    assert not gram.comoment()[1].any()
    assert not gram.moments().column(1).any()
    assert not gram.normal_equations([1, 2])[0][0].any()


@pytest.mark.parametrize("n", FILLS[1:])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_constant_column_has_no_variance_at_any_fill(rng, n, weighted):
    X, y, w = rows(rng, n=n)
    X[:, 4] = -1e7 / 3.0
    gram = Gram(9).absorb(X, y, w if weighted else None)
    pieces = Gram(9).absorb(X[: n // 3 + 1], y[: n // 3 + 1]).merge(Gram(9).absorb(X, y, w))
    for one in (gram, gram.copy(), gram.select(range(9)), gram.copy().grown(11), pieces, pieces.subtract(gram)):
        if one.weight == 0.0:
            continue
        assert one.variance()[4] == 0.0
        assert not one.comoment()[4].any()
        assert one.cross_comoment()[4] == 0.0
        assert not one.moments().column(4).any()


@given(
    n=st.sampled_from([60, 400]),
    cuts=st.lists(st.integers(0, 60), max_size=8),
    zeros=st.integers(0, 50),
    dtype=st.sampled_from(["float64", "float32"]),
    hold_rows=st.booleans(),
)
def test_zero_weights_first_and_storage_do_not_depend_on_the_cut(n, cuts, zeros, dtype, hold_rows):
    """Rows that do not count may be far away: the first that counts sets the shift."""
    X, y, w = rows(np.random.default_rng(4), n=n, d=5)
    cuts, zeros = [cut * n // 60 for cut in cuts], zeros * n // 60
    X[:zeros:2] += 1e12
    w[:zeros] = 0.0
    whole, pieces = (Gram(5, dtype, hold_rows) for _ in range(2))
    whole.absorb(X, y, w)
    for a, b in pairwise([0, *sorted(cuts), n]):
        if b > a:
            pieces.absorb(X[a:b], y[a:b], w[a:b])
    assert encode(pieces) == encode(whole)
    matrix, _, _ = moments_by_definition(X[zeros:], y[zeros:], w[zeros:], True)
    scale = np.sqrt(np.diag(matrix))
    assert_close(whole.comoment(), matrix, np.outer(scale, scale), 1e-11 if dtype == "float64" else 1e-4)


def test_a_column_that_becomes_constant_by_subtraction_is_exactly_constant(rng):
    X, y, w = rows(rng, n=400)
    X[150:, 4] = 0.1
    left = Gram(9).absorb(X, y, w).subtract(Gram(9).absorb(X[:150], y[:150], w[:150]))
    for one in (left, left.copy(), left.select(range(9))):
        assert one.variance()[4] == one.cross_comoment()[4] == 0.0
        assert not one.comoment()[4].any()
        assert not one.comoment()[:, 4].any()
        assert not one.moments().column(4).any()
    np.testing.assert_allclose(left.mean_x[4], 0.1, rtol=1e-12)


def test_reading_changes_nothing(rng):
    X, y, w = rows(rng, n=200)
    gram, untouched = Gram(9).absorb(X, y, w), Gram(9).absorb(X, y, w)
    before = encode(gram)
    gram.sums(), gram.moments().column(3), gram.comoment(), gram.second_moment(), gram.normal_equations([1, 2])
    (
        gram.loss(np.ones(9), None),
        gram.gradient(np.ones(9)),
        gram.select([1]),
        gram.copy().grown(12),
        gram.copy(),
        repr(gram),
    )
    gram.merge(gram), gram.subtract(gram)
    assert encode(gram) == before
    # What was read stays what it was when the stream goes on.
    read, matrix = gram.sums(), gram.comoment()
    kept = [np.copy(part) for part in read]
    gram.absorb(X, y, w)
    for now, then in zip(read, kept, strict=True):
        np.testing.assert_array_equal(now, then)
    np.testing.assert_array_equal(matrix, untouched.comoment())


@pytest.mark.parametrize("split", [1, BLOCK - 1, BLOCK, 300])
def test_merging_and_subtracting_at_any_fill(rng, split):
    X, y, w = rows(rng, n=500)
    a, b = Gram(9).absorb(X[:split], y[:split], w[:split]), Gram(9).absorb(X[split:], y[split:], w[split:])
    matrix, vector, total = moments_by_definition(X, y, w, True)
    scale, scale_y = np.sqrt(np.diag(matrix)), np.sqrt(total)
    for merged in (a.merge(b), b.merge(a)):
        assert merged.n_samples == 500
        np.testing.assert_allclose(merged.weight, w.sum(), rtol=1e-13)
        assert_close(merged.comoment(), matrix, np.outer(scale, scale))
        assert_close(merged.cross_comoment(), vector, scale * scale_y)
        np.testing.assert_allclose(merged.response_variance(), total / w.sum(), rtol=1e-12)
    for left, part in ((a.merge(b).subtract(a), slice(split, None)), (a.merge(b).subtract(b), slice(split))):
        matrix, vector, _ = moments_by_definition(X[part], y[part], w[part], True)
        assert left.n_samples == len(X[part])
        assert_close(left.comoment(), matrix, np.outer(scale, scale), 1e-11)
        assert_close(left.cross_comoment(), vector, scale * scale_y, 1e-11)
    # A merged summary goes on like any other.
    more = a.merge(b).absorb(X, y, w)
    matrix, _, _ = moments_by_definition(np.vstack([X, X]), np.tile(y, 2), np.tile(w, 2), True)
    assert_close(more.comoment(), matrix, 2.0 * np.outer(scale, scale))


def test_rows_far_away_that_hardly_count_do_no_harm_when_merged(rng):
    """Sums are taken about the shift of the summary that weighs more, whichever comes first."""
    heavy, light = 1e8 + np.round(rng.standard_normal((500, 3)), 4), np.round(rng.standard_normal((100, 3)), 4)
    w = np.r_[np.ones(500), np.full(100, 1e-20)]
    a, b = Gram(3).absorb(heavy, heavy[:, 0]), Gram(3).absorb(light, light[:, 0], w[500:])
    expected = np.cov(np.vstack([heavy - 1e8, light - 1e8]), rowvar=False, aweights=w, ddof=0)
    for merged in (a.merge(b), b.merge(a)):
        np.testing.assert_allclose(merged.comoment() / merged.weight, expected, rtol=0, atol=1e-11)


@pytest.mark.parametrize("far", [0.0, 30.0])
def test_the_shift_follows_the_mean_when_summaries_are_combined(rng, far):
    """Or sums of rows to come would be taken about a place far from them."""
    X, y, w = rows(rng, n=600, d=4)
    X[300:] += far
    a, b = Gram(4).absorb(X[:310], y[:310], w[:310]), Gram(4).absorb(X[310:], y[310:], w[310:])
    for one in (a.merge(b), b.merge(a), a.merge(b).subtract(a), a.merge(b).subtract(b)):
        about, state = one.mean_x - one.state.shift_x, one.state
        assert (state.weight * about**2 <= 0.1 * state.sum_xx).all()


def test_many_columns_go_by_stripes(rng):
    """Matrices are rewritten some rows at a time; 300 columns are two stripes and a part."""
    X, y, w = rows(rng, n=500, d=300)
    X[100:] += 1e4  # so that the shift moves
    gram = Gram(300).absorb(X, y, w)
    matrix, _, _ = moments_by_definition(X, y, w, True)
    scale = np.sqrt(np.diag(matrix))
    assert_close(gram.comoment(), matrix, np.outer(scale, scale))
    assert_close(gram.moments().column(217), matrix[217], scale[217] * scale)
    second, _, _ = moments_by_definition(X, y, w, False)
    size = np.sqrt(np.diag(second))
    assert_close(gram.second_moment(), second, np.outer(size, size))
    for theta in (np.where(np.arange(300) < 5, 1.0, 0.0), np.ones(300)):
        expected = X.T @ (w * (X @ theta - y)) / w.sum()
        np.testing.assert_allclose(gram.gradient(theta), expected, rtol=0, atol=1e-12 * np.abs(expected).max())


def test_it_does_not_import_scikit_learn():
    code = """if True:
        import sys
        import numpy as np
        from thresher import Gram
        X = np.random.default_rng(0).standard_normal((300, 4))
        gram = Gram(4).absorb(X, X[:, 0])
        gram.merge(gram).subtract(gram).select([1, 2]).grown(5).loss(np.ones(5), None)
        gram.comoment(), gram.moments().column(1), gram.normal_equations([0, 1]), gram.gradient(np.ones(4))
        print("sklearn" in sys.modules)
    """
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "False"
