"""s by cross-validation of Algorithm 1 itself: against thresholding of the rows themselves, fold by fold."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone

from oracles import folds_of, keep_groups, keep_largest
from thresher import LowRankRegressor, OnlineHardThresholding, load
from thresher.selection.thresholded_family import sizes_up_to


def problem(rng, n=400, d=7):
    X = rng.standard_normal((n, d))
    X[:, 1] += 0.7 * X[:, 0]
    return X, X[:, :4] @ [1.0, -0.8, 0.5, 0.3] + rng.standard_normal(n)


def thresholded(X, y, project, eta, start, n_steps=1500):
    """Iterative hard thresholding in NumPy, until nothing moves."""
    theta = project(np.array(start, float))
    for _ in range(n_steps):
        before, theta = theta, project(theta - eta * X.T @ (X @ theta - y) / len(y))
        if np.array_equal(before, theta):
            break
    return theta


def validated(X, y, sizes, project, eta, start):
    """The mean squared error on each fold of what the others give, by size."""
    folds = folds_of(X, y, 5)
    errors = np.empty((5, len(sizes)))
    for fold in range(5):
        test = folds == fold
        for i, size in enumerate(sizes):
            theta = thresholded(X[~test], y[~test], lambda z, size=size: project(z, size), eta, start)
            errors[fold, i] = ((y[test] - X[test] @ theta) ** 2).mean()
    return errors


@pytest.mark.parametrize("groups", [None, ["a", "b", "a", "c", "d", "d", "e"]])
@pytest.mark.parametrize("start", [None, [0.0, 0.0, 0.0, 0.0, 3.0, -3.0, 2.0]])
@pytest.mark.parametrize("eta", [0.1, 0.4])
def test_the_size_is_that_of_algorithm_1_on_the_other_folds(rng, groups, start, eta):
    X, y = problem(rng)
    model = OnlineHardThresholding(
        selection="algorithm", step_size=eta, n_steps=3, n_warmup=90, start=start, groups=groups, max_iter=5000
    )
    model.partial_fit(X, y)

    def project(z, size):
        return keep_largest(z, size) if groups is None else keep_groups(z, groups, size)

    chosen = model.selection_
    errors = validated(X[:90], y[:90], chosen.sizes, project, eta, np.zeros(7) if start is None else start)
    np.testing.assert_allclose(chosen.criterion, errors.mean(axis=0), rtol=1e-5)
    assert model.sparsity_ == chosen.chosen == chosen.sizes[np.argmin(errors.mean(axis=0))]
    assert (chosen.method, chosen.n_samples) == ("cv", 90)  # the batch as it is, though it has less than 100 rows
    assert len(model.path().sizes) >= len(chosen.sizes)  # which is still that of the best subsets


def test_a_choice_depends_neither_on_cuts_nor_on_a_file(rng, tmp_path):
    X, y = problem(rng, n=300)
    model = OnlineHardThresholding(selection="algorithm", step_size=0.2, start=np.eye(7)[2], max_iter=40)
    whole = clone(model).partial_fit(X, y)
    for n in (1, 130, 131):
        part = clone(model).partial_fit(X[:n], y[:n])
        part.save(tmp_path / "m")
        np.testing.assert_array_equal(load(tmp_path / "m").partial_fit(X[n:], y[n:]).coef_, whole.coef_)
    np.testing.assert_allclose(clone(model).fit(X, y).coef_, clone(model).fit(X[::-1], y[::-1]).coef_, rtol=1e-6)


def test_other_steps_from_the_next_choice_on(rng):
    X, y = problem(rng)
    model = OnlineHardThresholding(selection="algorithm", step_size=0.2).partial_fit(X[:200], y[:200])
    model.set_params(step_size=0.05, n_steps=2).partial_fit(X[200:], y[200:])
    n = model.selection_.n_samples
    assert n > 200
    errors = validated(X[:n], y[:n], model.selection_.sizes, keep_largest, 0.05, np.zeros(7))
    np.testing.assert_allclose(model.selection_.criterion, errors.mean(axis=0), rtol=1e-5)


@pytest.mark.parametrize("model", [OnlineHardThresholding(), LowRankRegressor(selection="cv", shape=(7, 1))], ids=repr)
def test_a_batch_that_is_too_small_to_split_is_said_and_left_to_the_early_rounds(rng, model):
    X, y = problem(rng)
    with pytest.warns(UserWarning, match="n_warmup=9 rows is too small to split into 5 folds"):
        model = clone(model).set_params(n_warmup=9).partial_fit(X, y)
    assert model.selection_.n_samples > 300
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = clone(model).set_params(n_warmup=10).partial_fit(X, y)
    assert model.selection_.n_samples == 10


def test_candidates_are_every_size_and_then_some():
    assert sizes_up_to(0).tolist() == [0]
    assert sizes_up_to(19).tolist() == list(range(20))
    far = sizes_up_to(1000)
    assert far[:21].tolist() == list(range(21))
    assert far[-1] == 1000
    assert len(far) < 60
    assert (np.diff(far)[20:] >= 3).all()
