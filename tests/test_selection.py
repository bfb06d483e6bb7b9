"""Choosing a size: criteria and cross-validation against the rows themselves."""

import math
import signal
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest

from oracles import design, folds_of
from thresher import CrossValidation, Ebic, Gram, NoiseEdge, SparseRegressor
from thresher.selection.criteria import Criterion
from thresher.selection.subset_family import SubsetFamily


def rows(seed, kind, n, d, active=4):
    rng = np.random.default_rng(seed)
    X = design(rng, kind, n, d) + rng.standard_normal(d)
    return X, X[:, :active] @ rng.standard_normal(active) + rng.standard_normal(n)


def residual(X, y, columns, centred):
    """Least squares by lstsq: residual sum of squares, coefficients and intercept."""
    A = np.column_stack([np.ones(len(X))] * centred + [X[:, list(columns)]])
    theta = np.linalg.lstsq(A, y, rcond=None)[0]
    return ((y - A @ theta) ** 2).sum(), theta[int(centred) :], theta[0] if centred else 0.0


@pytest.mark.parametrize(
    ("gamma", "n", "d", "price"),
    [
        (0.8, 120, 15, 0.8),
        ("auto", 120, 15, 1.2 - math.log(120) / (2.0 * math.log(15))),
        ("auto", 120, 10, 0.2),  # log n > 2 log d
        ("auto", 40, 60, 1.2 - math.log(40) / (2.0 * math.log(60))),
    ],
)
def test_extended_bic_equals_its_definition(gamma, n, d, price):
    X, y = rows(1, "correlated", n, d)
    model = SparseRegressor(selection=Ebic(gamma)).fit(X, y)
    path = SubsetFamily().path(model.summary_, criterion=Ebic(gamma))
    sums = [residual(X, y, path.support(size), True)[0] for size in path.sizes]
    expected = [
        n * math.log(rss / n) + k * math.log(n) + 2.0 * price * math.log(math.comb(d, k)) for k, rss in enumerate(sums)
    ]
    np.testing.assert_allclose(model.selection_.criterion, expected, rtol=1e-9)
    assert model.sparsity_ == model.selection_.chosen == int(np.argmin(expected))
    np.testing.assert_array_equal(model.support_, path.support(model.sparsity_))


@pytest.mark.parametrize(("n_folds", "centred", "weighted"), [(5, True, False), (3, False, False), (4, True, True)])
def test_folds_equal_cross_validation_on_the_rows(n_folds, centred, weighted):
    """For every fold: the best supports of all sizes on the other rows, then the mean squared error on its own."""
    X, y = rows(2, "scaled", 203, 14)
    w = np.random.default_rng(0).integers(1, 4, 203) if weighted else np.ones(203, int)
    model = SparseRegressor(selection=CrossValidation(n_folds), fit_intercept=centred)
    model.fit(X, y, sample_weight=w if weighted else None)
    n_sizes = len(model.selection_.sizes)
    errors = np.full((n_folds, n_sizes), np.nan)
    for f in range(n_folds):
        test = folds_of(X, y, n_folds) == f
        A, b = np.repeat(X[~test], w[~test], axis=0), np.repeat(y[~test], w[~test])
        path = SubsetFamily(centred).path(Gram(14).absorb(A, b), n_sizes - 1)
        for k in range(n_sizes):
            _, theta, intercept = residual(A, b, path.support(k), centred)
            error = (y[test] - X[test][:, path.support(k)] @ theta - intercept) ** 2
            errors[f, k] = np.average(error, weights=w[test])
    np.testing.assert_allclose(model.selection_.criterion, errors.mean(axis=0), rtol=1e-8)
    spread = errors.std(axis=0, ddof=1) / math.sqrt(n_folds)
    np.testing.assert_allclose(model.selection_.standard_error, spread, rtol=1e-6)
    best = int(np.argmin(errors.mean(axis=0)))
    assert model.sparsity_ == best
    np.testing.assert_array_equal(model.support_, SparseRegressor(best, fit_intercept=centred).fit(X, y, w).support_)
    careful = SparseRegressor(selection=CrossValidation(n_folds, one_standard_error=True), fit_intercept=centred)
    careful.fit(X, y, sample_weight=w if weighted else None)
    assert careful.sparsity_ == np.flatnonzero(errors.mean(axis=0) <= errors.mean(axis=0)[best] + spread[best])[0]


def test_a_size_by_cross_validation_is_final_after_so_many_rows():
    X, y = rows(3, "correlated", 900, 20)
    early = SparseRegressor(selection=CrossValidation(n_samples=300)).partial_fit(X, y)
    assert 300 <= early.selection_.n_samples < 400
    assert not early._chooser.folds
    sizes = {record.size for record in early.selection_history_ if record.n_samples >= early.selection_.n_samples}
    assert sizes == {early.sparsity_}
    # The support still follows the rows.
    early.finish()
    np.testing.assert_array_equal(early.support_, SparseRegressor(early.sparsity_).fit(X, y).support_)


def test_folds_that_say_nothing_are_left_out():
    X, y = rows(15, "independent", 120, 10)
    w = np.ones(120)
    w[50] = 1e15
    assert np.isfinite(SparseRegressor(selection="cv").partial_fit(X, y, sample_weight=w).coef_).all()
    for wrong in ({"n_folds": 2.5}, {"n_folds": 1}, {"n_samples": -1}):
        with pytest.raises(ValueError, match="must be"):
            CrossValidation(**wrong)
    for wrong in ("x", -1.0, np.nan):
        with pytest.raises(ValueError, match="gamma"):
            Ebic(wrong)


def test_a_summary_has_no_rows_to_cross_validate():
    X, y = rows(9, "independent", 200, 10)
    with pytest.raises(ValueError, match="Cross-validation needs the rows"):
        SparseRegressor(selection="cv").fit_summary(Gram(10).absorb(X, y))
    with pytest.raises(ValueError, match="chooses ranks"):
        SparseRegressor(selection=NoiseEdge()).fit(X, y)


@dataclass(frozen=True)
class Aic(Criterion):
    """A criterion of one's own."""

    name: ClassVar[str] = "aic"

    def penalty(self, weight, freedom, log_models):
        return 2.0 * freedom


def test_a_criterion_of_ones_own_is_minimised():
    X, y = rows(4, "correlated", 300, 12)
    model = SparseRegressor(selection=Aic()).fit(X, y)
    assert model.selection_.method == "aic"
    values = model.selection_.criterion
    assert model.sparsity_ == int(np.argmin(values))
    rss = residual(X, y, model.support_, True)[0]
    assert values.min() == pytest.approx(300 * math.log(rss / 300) + 2 * len(model.support_), rel=1e-9)
    assert model.sparsity_ >= SparseRegressor().fit(X, y).sparsity_


@pytest.mark.parametrize("selection", ["ebic", "cv"])
@pytest.mark.parametrize("place", ["select", "fold", "chooser"])
def test_an_interrupt_in_the_middle_of_a_choice_loses_nothing(selection, place, monkeypatch):
    """Signals while the support is chosen or rows are folded; after each, go on where n_samples_seen_ says."""
    X, y = rows(12, "correlated", 1500, 30)
    expected = SparseRegressor(selection=selection).partial_fit(X, y)
    model = SparseRegressor(selection=selection).partial_fit(X[:1], y[:1])
    owner, name = {
        "select": (SparseRegressor, "_select"),
        "fold": (Gram, "put"),
        "chooser": (type(model._chooser), "choose"),
    }[place]
    original, n_calls = getattr(owner, name), 0

    def disturbed(*arguments):
        nonlocal n_calls
        n_calls += 1
        if n_calls % 6 == 0:
            signal.raise_signal(signal.SIGINT)
        result = original(*arguments)
        if n_calls % 9 == 0:
            signal.raise_signal(signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, disturbed)
    n_caught = 0
    while model.n_samples_seen_ < 1500:
        seen = model.n_samples_seen_
        try:
            model.partial_fit(X[seen:], y[seen:])
        except KeyboardInterrupt:
            n_caught += 1
    assert n_caught > 5
    np.testing.assert_array_equal(model.coef_, expected.coef_)
    np.testing.assert_array_equal(model.selection_.criterion, expected.selection_.criterion)
    counts = [[record.n_samples for record in one.selection_history_] for one in (model, expected)]
    assert counts[0] == counts[1]


def test_an_interrupt_in_finish_leaves_the_model_as_it_was(monkeypatch):
    X, y = rows(13, "correlated", 300, 20)
    model = SparseRegressor().partial_fit(X, y)
    before, history = model.coef_, model.selection_history_

    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr("thresher.estimators.sparse_regressor.note", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.finish()
    np.testing.assert_array_equal(model.coef_, before)
    assert len(model.selection_history_) == len(history)
