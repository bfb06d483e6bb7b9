"""A long list of features gives way to a much shorter one: when, and when not."""

from dataclasses import dataclass

import numpy as np
import pytest

from thresher import Ebic, ReducedRankRegressor, SparseRegressor
from thresher.selection.path import Path


def explained(X, y, features):
    fit = X[:, features] @ np.linalg.lstsq(X[:, features], y, rcond=None)[0]
    return float(fit @ fit)


def crumbs(rng, n=20_000):
    """Rows whose columns are orthogonal, so that the path goes by |x'y|; three features matter, and fourteen hardly."""
    X = np.linalg.qr(rng.standard_normal((n, 40)))[0] * np.sqrt(n)
    coef = np.r_[1.0, -0.8, 0.6, np.full(14, 0.03), np.zeros(23)]
    return X, X @ coef + 0.5 * rng.standard_normal(n), np.flatnonzero(coef)


def test_crumbs_are_left_out():
    X, y, everything = crumbs(np.random.default_rng(1))
    largest = sorted(everything, key=lambda j: -abs(X[:, j] @ y))
    every = SparseRegressor(selection=Ebic(parsimony=0.0), fit_intercept=False).fit(X, y)
    assert every.support_.tolist() == everything.tolist()
    assert explained(X, y, largest[:3]) > 0.99 * explained(X, y, everything) > explained(X, y, largest[:2])
    short = SparseRegressor(fit_intercept=False).fit(X, y)  # three would do; seven are few
    assert set(short.support_) == set(largest[:7])
    assert (short.selection_.chosen, short.selection_.best) == (short.sparsity_, 17) == (7, 17)
    assert "chosen=7 of 0.." in repr(short.selection_)
    assert "best=17" in repr(short.selection_)
    assert "best" not in repr(every.selection_)
    some = SparseRegressor(selection=Ebic(parsimony=0.0025), fit_intercept=False).fit(X, y)
    assert some.sparsity_ == 10
    assert set(some.support_) == set(largest[:10])
    assert explained(X, y, largest[:10]) >= 0.9975 * explained(X, y, everything) > explained(X, y, largest[:9])


def test_crumbs_are_left_out_of_a_stream_however_it_is_cut():
    X, y, _ = crumbs(np.random.default_rng(1))
    rows = np.random.default_rng(2).permutation(20_000)
    X, y = X[rows], y[rows]
    whole, cut = SparseRegressor().partial_fit(X, y), SparseRegressor()
    for start in range(0, 20_000, 777):
        cut.partial_fit(X[start : start + 777], y[start : start + 777])
    assert whole.sparsity_ == 7
    np.testing.assert_array_equal(whole.coef_, cut.coef_)
    assert SparseRegressor().fit(X, y).support_.tolist() == whole.support_.tolist()


@dataclass(frozen=True, eq=False)
class FakePath(Path):
    def coef(self, size):
        return np.zeros(1)


@pytest.mark.parametrize(
    ("best", "loss", "spread", "short"),
    [
        # With `best` features a loss of 0.1 is left; `loss` is what `short` features leave, fewer leave far more.
        (20, 0.1089, 1.0, 12),  # 0.0099 of what is explained
        (20, 0.1091, 1.0, None),  # 0.0101
        (20, 0.1989, 10.0, 12),  # up to 0.199 by parsimony, and not yet twice as much unexplained
        (20, 0.1991, 10.0, None),
        (20, 0.1999, 1000.0, 12),
        (20, 0.2001, 1000.0, None),
        (16, 0.105, 1.0, 10),
        (17, 0.105, 1.0, 11),  # more than five eighths
        (17, 0.105, 1.0, 10),
        (12, 0.105, 1.0, 7),
        (11, 0.105, 1.0, 6),
        (12, 0.105, 1.0, 3),  # seven stay
        (11, 0.105, 1.0, 3),
        (20, 0.105, 0.05, 12),  # nothing is explained
        (20, 0.105, 0.0, 12),  # sizes that are no numbers of features
    ],
)
@pytest.mark.parametrize("first", [0, 1])
def test_when_a_list_is_shortened(best, loss, spread, short, first):
    sizes = np.arange(first, 31)
    losses = np.full(31, 5000.0)
    losses[12 if short is None else short :] = loss
    losses[best:] = 0.1
    path = FakePath(sizes, losses[first:], 0.0 * sizes, 0.0 * sizes, 50.0, spread=spread)
    shortened = spread > 0.1 and short is not None and max(short, 7) <= 0.625 * best
    assert Ebic().select(path, 50).chosen == (max(short, 7) if shortened else best)
    assert Ebic(parsimony=0.0).select(path, 50).chosen == best
    assert Ebic().select(path, 50).best == best


def test_the_mean_is_no_merit_of_features():
    rng = np.random.default_rng(3)
    X = np.column_stack([np.ones(20_000), rng.standard_normal((20_000, 29))])
    y = 100.0 + X[:, 1:16] @ np.full(15, 2.0) + 10.0 * rng.standard_normal(20_000)
    assert set(range(16)) <= set(SparseRegressor(fit_intercept=False).fit(X, y).support_)


def test_groups_are_shortened_too():
    X, y, _ = crumbs(np.random.default_rng(4))
    groups = np.repeat(np.arange(20), 2)
    assert SparseRegressor(groups=groups).fit(X, y).sparsity_ == 9  # nine groups of which two would do
    assert SparseRegressor(groups=np.arange(40)).fit(X, y).sparsity_ == 7
    assert SparseRegressor(groups=np.arange(40), selection=Ebic(parsimony=0.0)).fit(X, y).sparsity_ == 17


def test_ranks_are_not_shortened():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((4000, 20))
    left, right = (np.linalg.qr(rng.standard_normal((20, 15)))[0] for _ in range(2))
    Y = X @ (left * np.r_[np.full(3, 6.0), np.full(12, 0.3)]) @ right.T + 0.5 * rng.standard_normal((4000, 20))
    assert ReducedRankRegressor(selection="ebic").fit(X, Y).rank_ == 15


@pytest.mark.parametrize("selection", ["folds", "prequential"])
def test_other_ways_to_choose_keep_what_they_find(selection):
    X, y, everything = crumbs(np.random.default_rng(6))
    assert set(everything) <= set(SparseRegressor(selection=selection, fit_intercept=False).fit(X, y).support_)


@pytest.mark.parametrize(
    ("values", "noise"),
    [
        (np.full(15, 0.2), 1.0),  # all matter alike
        (np.r_[1.0, np.full(10, 0.03)], 0.2),  # eleven features are few
        (np.r_[1.0, np.full(14, 0.02)], 0.0),  # without noise, coefficients are exact
        (np.r_[1.0, np.full(14, 0.02)], 0.02),  # leaving them out would leave far more unexplained
        (np.r_[np.full(11, 0.5), np.full(6, 0.02)], 0.3),  # a list shorter by a third is not worth a hundredth
    ],
)
def test_what_is_not_a_crumb_stays(values, noise):
    rng = np.random.default_rng(2)
    X = rng.standard_normal((20_000, 30))
    y = X[:, : len(values)] @ values + noise * rng.standard_normal(20_000)
    model = SparseRegressor(fit_intercept=False).fit(X, y)
    assert model.support_.tolist() == list(range(len(values)))


@pytest.mark.parametrize("wrong", [-0.1, 1.1, float("nan"), "much"])
def test_parsimony_is_a_share(wrong):
    with pytest.raises(ValueError, match="parsimony must be a share, from 0 to 1"):
        Ebic(parsimony=wrong)
