import copy
import pickle
from itertools import pairwise

import mpmath
import numpy as np
import pytest
import scipy.sparse
from hypothesis import given
from hypothesis import strategies as st

import thresher.summaries.gram as gram_module
from thresher import Gram


def rows(rng, n=700, d=9):
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(size=d)) + 5.0 * rng.standard_normal(d)
    return X, rng.standard_normal(n) + X[:, 0], rng.uniform(0, 3, n)


def assert_same_state(a, b):
    for mine, theirs in zip(a.arrays, b.arrays, strict=True):
        np.testing.assert_array_equal(mine, theirs)


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
    np.testing.assert_allclose(gram.sum_squares_y, w @ y**2, rtol=1e-12)
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
    assert single.arrays.scatter.nbytes * 2 == double.arrays.scatter.nbytes
    for name in ("mean_x", "mean_y", "weight", "sum_squares_y"):
        np.testing.assert_allclose(getattr(single, name), getattr(double, name), rtol=1e-14)
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
    with pytest.raises(ValueError, match="different widths: 3 and 4"):
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
    monkeypatch.setattr("thresher._memory.available_bytes", lambda: 6_000_000)
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
