"""Best subsets against brute force, bases against lstsq on the rows, least squares against scikit-learn."""

from itertools import combinations, permutations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import LinearRegression

from oracles import design
from thresher import Ebic, Gram, SparseRegressor
from thresher.selection.subset_family import SubsetFamily
from thresher.solvers.feature_basis import FeatureBasis
from thresher.solvers.forward_backward import Penalty
from thresher.solvers.group_basis import GroupBasis
from thresher.solvers.least_squares import least_squares
from thresher.solvers.subsets import Subsets
from thresher.sparsity.groups import Groups

KINDS = ["independent", "correlated", "duplicated", "scaled", "constant"]


def rows(seed, kind, n, d, active=4):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, d) + rng.standard_normal(d)
    return X, X[:, :active] @ rng.standard_normal(min(active, d)) + rng.standard_normal(n)


def residual(X, y, columns, centred=True):
    """The residual sum of squares of least squares on some columns."""
    A = np.column_stack([np.ones(len(X))] * centred + [X[:, list(columns)]])
    return float(((y - A @ np.linalg.lstsq(A, y, rcond=None)[0]) ** 2).sum())


def random_problem(seed, rho):
    """Up to ten columns, equally or serially correlated, any number of them active, with little or much noise."""
    rng = np.random.default_rng([seed, int(10 * rho)])
    d, n = int(rng.integers(2, 11)), int(rng.integers(15, 80))
    X = rng.standard_normal((n, d))
    if seed % 2:
        X = np.sqrt(1.0 - rho) * X + np.sqrt(rho) * rng.standard_normal((n, 1))
    else:
        X = X @ np.linalg.cholesky(rho ** np.abs(np.subtract.outer(np.arange(d), np.arange(d)))).T
    coef = np.zeros(d)
    active = int(rng.integers(1, d + 1))
    coef[rng.choice(d, active, replace=False)] = rng.standard_normal(active)
    return X, X @ coef + rng.choice([0.1, 1.0, 3.0]) * rng.standard_normal(n), int(rng.integers(1, d + 1))


@pytest.mark.parametrize(("rho", "allowed"), [(0.0, 0.005), (0.5, 0.01), (0.9, 0.02)])
def test_best_subsets_are_nearly_always_found(rho, allowed):
    """700 problems for each correlation. The stream, finished, must find what fit finds."""
    missed = 0
    for seed in range(700):
        X, y, size = random_problem(seed, rho)
        best = min(residual(X, y, columns) for columns in combinations(range(X.shape[1]), size))
        model = SparseRegressor(size).fit(X, y)
        missed += residual(X, y, model.support_) > best * (1.0 + 1e-8)
        if seed < 100:
            streamed = SparseRegressor(size).partial_fit(X[:7], y[:7]).partial_fit(X[7:], y[7:]).finish()
            np.testing.assert_array_equal(streamed.support_, model.support_)
    assert missed <= 700 * allowed


def test_swaps_leave_a_decoy():
    """One column close to the sum of the two that matter: forward selection starts with it."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((3000, 30))
    X[:, 2] = (X[:, 0] + X[:, 1]) / 2**0.5 * 0.95 + (1 - 0.95**2) ** 0.5 * X[:, 2]
    y = X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(3000)
    np.testing.assert_array_equal(SparseRegressor(2).fit(X, y).support_, [0, 1])
    np.testing.assert_array_equal(SparseRegressor().fit(X, y).support_, [0, 1])
    np.testing.assert_array_equal(SparseRegressor().partial_fit(X, y).support_, [0, 1])


@settings(max_examples=60)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(KINDS),
    size=st.integers(1, 5),
    centred=st.booleans(),
    grouped=st.booleans(),
)
def test_a_basis_knows_what_every_change_would_do(seed, kind, size, centred, grouped):
    """Additions, removals and swaps, each against a fit from the rows; with groups of one to three columns."""
    rng = np.random.default_rng(seed)
    X, y = rows(seed, kind, 60, 9)
    labels = rng.permutation([0, 0, 1, 1, 1, 2, 3, 4, 5]) if grouped else np.arange(9)
    groups = Groups(labels, 1)
    names = list(groups.names)

    def rss(units):
        return residual(X, y, [j for j in range(9) if names.index(labels[j]) in units], centred)

    total = rss([])
    moments = Gram(9).absorb(X[:30], y[:30]).absorb(X[30:], y[30:]).moments(centred)
    basis = GroupBasis(moments, groups) if grouped else FeatureBasis(moments)
    for _ in range(size):
        before = rss(basis.order)
        falls = [before - rss([*basis.order, g]) for g in range(groups.n_groups)]
        if not basis.add_best() or max(falls) < 1e-6 * total:
            assert max(falls) < 1e-6 * total
            return
        assert falls[basis.order[-1]] >= max(falls) - 1e-7 * total
    members = list(basis.order)
    assert basis.residual == pytest.approx(rss(members), abs=1e-7 * total)
    assert basis.truncated(1).residual == pytest.approx(rss(members[:1]), abs=1e-7 * total)
    assert basis.restarted(tuple(members[::-1])).residual == pytest.approx(basis.residual, abs=1e-7 * total)
    left = members
    for units, value in basis.eliminated():
        assert len(units) == len(left) - 1
        assert set(units) < set(left)
        assert value == pytest.approx(rss(units), abs=1e-7 * total)
        assert value <= min(rss([m for m in left if m != out]) for out in left) + 1e-7 * total
        left = list(units)
    outside = [g for g in range(groups.n_groups) if g not in members]
    swap = basis.best_swap()
    if swap is None:
        assert not outside
        return
    swapped = [swap.unit if place == swap.place else member for place, member in enumerate(members)]
    assert basis.residual - swap.gain == pytest.approx(rss(swapped), abs=1e-7 * total)
    best = min(rss([g if m == out else m for m in members]) for out in members for g in outside)
    if best < basis.residual - 1e-6 * total:  # exchanges that do not lower the loss do not matter
        assert rss(swapped) <= best + 1e-7 * total


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("n", [100, 128, 300])
def test_least_squares_equals_scikit_learn(centred, n):
    X, y = rows(5, "correlated", n, 12)
    for support in ([], [3], [1, 4, 7], range(12)):
        fit = least_squares(Gram(12).absorb(X, y), np.array(support, np.intp), centred)
        assert fit.intercept == 0.0 or centred
        if len(support):
            expected = LinearRegression(fit_intercept=centred).fit(X[:, list(support)], y)
            np.testing.assert_allclose(fit.values, expected.coef_, rtol=1e-9)
            np.testing.assert_allclose(fit.intercept, expected.intercept_, rtol=1e-9, atol=1e-12)
    assert fit.coef(12).shape == (12,)


def test_what_the_search_accepts_is_solved_whatever_the_order_of_the_columns():
    """Pivots depend on the order: features that entered one way must not be cut when they are solved another way."""
    rng = np.random.default_rng(0)
    e = np.linalg.qr(rng.standard_normal((500, 4)))[0] * 500**0.5
    columns = [e[:, 0], e[:, 0] + 1e-3 * e[:, 1], e[:, 1] + 1e-3 * e[:, 2]]
    y = 3.0 * e[:, 0] + e[:, 1] - 0.5 * e[:, 2] + 0.1 * rng.standard_normal(500)
    for order in permutations(range(3)):
        X = np.column_stack([columns[j] for j in order])
        model = SparseRegressor().fit(X, y)
        assert ((y - model.predict(X)) ** 2).sum() == pytest.approx(residual(X, y, model.support_), rel=1e-4)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_searches_end_where_collinearity_depends_on_the_order(dtype):
    """Nearly collinear groups, with little noise: residuals of one support differ by how they are computed."""
    for seed in (8277, 9117, 22389, 26427, *range(60)):
        rng = np.random.default_rng(seed)
        n, d, r = int(rng.choice([8, 12, 20, 30])), int(rng.integers(4, 14)), int(rng.integers(1, 4))
        X = rng.standard_normal((n, r)) @ rng.standard_normal((r, d))
        X += 10.0 ** rng.uniform(-5, -1) * rng.standard_normal((n, d))
        y = X @ (rng.standard_normal(d) * (rng.random(d) < 0.5))
        y = y / (y.std() or 1.0) + 10.0 ** rng.uniform(-7, -4.5) * rng.standard_normal(n)
        groups = rng.integers(0, max(d // 2, 1), d)
        for parameters in ({"groups": groups}, {"groups": groups, "sparsity": 1}, {}, {"sparsity": 3}):
            model = SparseRegressor(dtype=dtype, **parameters).fit(X, y)
            assert np.isfinite(model.coef_).all()
            assert len(model.selected_groups_ if "groups" in parameters else model.support_) <= model.sparsity_


def test_least_squares_on_collinear_columns_is_the_shortest_in_units_of_the_scales():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((200, 5))
    X[:, 3] = 10.0 * X[:, 1]
    X[:, 4] = 7.0
    y = X[:, 1] + rng.standard_normal(200)
    fit = least_squares(Gram(5).absorb(X, y), np.arange(5), True)
    scale = X.std(axis=0)
    scale[4] = 1.0
    Z = (X - X.mean(axis=0)) / scale
    np.testing.assert_allclose(fit.values * scale, np.linalg.lstsq(Z, y - y.mean(), rcond=1e-10)[0], atol=1e-9)
    assert fit.values[4] == 0.0


def test_a_path_holds_the_best_support_of_each_size():
    X, y = rows(7, "correlated", 120, 14)
    path = SubsetFamily().path(Gram(14).absorb(X, y), 9)
    assert list(path.sizes) == list(range(10))
    for size in path.sizes:
        support = path.support(size)
        assert len(support) == size
        assert 2.0 * 120 * path.loss[size] == pytest.approx(residual(X, y, support), rel=1e-9)
        coef = path.coef(size)
        np.testing.assert_array_equal(np.flatnonzero(coef), support)
        assert ((y - X @ coef - path.intercept(size)) ** 2).sum() == pytest.approx(residual(X, y, support), rel=1e-9)
    A, b = rows(8, "correlated", 90, 14)
    expected = [np.mean((b - A @ path.coef(size) - path.intercept(size)) ** 2) / 2.0 for size in path.sizes]
    np.testing.assert_allclose(path.loss_on(Gram(14).absorb(A, b)), expected, rtol=1e-9)


def test_a_search_does_not_depend_on_what_is_folded():
    X, y = rows(9, "correlated", 300, 20)
    in_parts = Gram(20).absorb(X, y)
    merged = Gram(20).absorb(X[:100], y[:100]).merge(Gram(20).absorb(X[100:], y[100:]))
    assert in_parts.n_folded == 256 < merged.n_folded == 300
    one, other = (SubsetFamily().path(summary, criterion=Ebic()) for summary in (in_parts, merged))
    assert [set(found.units) for found in one.found] == [set(found.units) for found in other.found]
    np.testing.assert_allclose(one.loss, other.loss, rtol=1e-9)


def test_a_free_search_keeps_all_that_is_not_collinear_and_a_dear_one_nothing():
    X, y = rows(10, "duplicated", 200, 8)
    summary = Gram(8).absorb(X, y)
    free = Subsets().search(summary, Penalty(0.0, np.zeros(9)), 8)
    assert np.linalg.matrix_rank(X - X.mean(axis=0)) == free.sizes[-1]
    dear = Subsets().search(summary, Penalty(1e9, np.zeros(9)), 8)
    assert int(np.argmin(2.0 * dear.loss * 200 + 1e9 * dear.freedom)) == 0


def test_groups_enter_leave_and_swap_whole():
    rng = np.random.default_rng(3)
    n, labels = 600, np.repeat(np.arange(30), 3)
    X = rng.standard_normal((n, 90))
    X[:, 2::3] = 1.0 - X[:, ::3] - X[:, 1::3]  # like one-hot levels: a group has rank two
    y = X[:, :9] @ np.array([1, -1, 0, 0.5, 0.5, 0, -0.7, 0.7, 0]) + rng.standard_normal(n)
    for model in (SparseRegressor(groups=labels).fit(X, y), SparseRegressor(groups=labels).partial_fit(X, y)):
        assert list(model.selected_groups_) == [0, 1, 2]
        assert model.sparsity_ == 3
        assert set(labels[model.support_]) == {0, 1, 2}
    path = SubsetFamily(groups=Groups(labels, 1)).path(Gram(90).absorb(X, y), 4)
    np.testing.assert_array_equal(path.freedom, [0, 2, 4, 6, 8])
    for size in path.sizes:
        columns = path.support(size)
        assert len(columns) == 3 * size
        assert 2 * n * path.loss[size] == pytest.approx(residual(X, y, columns), rel=1e-9)
    assert SparseRegressor(groups=labels).fit(X, rng.standard_normal(n)).sparsity_ == 0


@pytest.mark.parametrize("seed", range(8))
def test_the_best_groups_are_found(seed):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.repeat(np.arange(6), [1, 1, 2, 2, 3, 3]))
    X, y = rows(seed, "correlated", 70, 12)
    for size in (1, 2, 3):
        model = SparseRegressor(size, groups=labels).fit(X, y)
        best = min(residual(X, y, np.flatnonzero(np.isin(labels, chosen))) for chosen in combinations(range(6), size))
        assert residual(X, y, model.support_) <= best * (1.0 + 1e-9)
