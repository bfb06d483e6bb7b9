"""Algorithm 1 as an estimator: against a dozen lines of NumPy, and everything that an estimator must stand."""

import copy
import pickle
import signal
import subprocess
import sys
import threading
import warnings
from itertools import combinations, pairwise

import numpy as np
import pandas as pd
import polars as pl
import pytest
import scipy.sparse
from hypothesis import example, given, settings
from hypothesis import strategies as st
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError
from sklearn.linear_model import LinearRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from oracles import design, folds_of, keep_groups, keep_largest, shown
from thresher import Cardinality, Gram, Groups, OnlineHardThresholding, load
from thresher.io.sources.synthetic import SparseLinearStream
from thresher.online import reference
from thresher.online.sparse import RULES
from thresher.selection.cross_validation import folds_by_hash
from thresher.sparsity.reciprocal import Reciprocal

CENTRED = {"fit_intercept": True, "standardize": True}


@parametrize_with_checks(
    [
        OnlineHardThresholding(),
        OnlineHardThresholding(3, step_size=0.1, n_steps=2, round_size=4, n_warmup=5, dtype="float32"),
        OnlineHardThresholding(4, n_steps=9, rule="pursuit", **CENTRED),
        OnlineHardThresholding(n_warmup=10, rule="reciprocal", fit_intercept=True),
    ]
)
@pytest.mark.filterwarnings("ignore:sparsity=:UserWarning")  # scikit-learn's data often have two columns
@pytest.mark.filterwarnings("ignore:step_size=:sklearn.exceptions.ConvergenceWarning")
def test_scikit_learn_conventions(estimator, check):
    check(estimator)


def problem(rng, n=600, d=40, active=4):
    X = rng.standard_normal((n, d)) + rng.standard_normal(d)
    coef = np.zeros(d)
    coef[rng.choice(d, active, replace=False)] = rng.choice([-2.0, -1.0, 1.0, 2.0], active)
    return X, X @ coef + 3.0 + rng.standard_normal(n), coef


# -- Algorithm 1 -------------------------------------------------------------------------------------------


def prepared(X, y, w, centred, standardized):
    """Rows and responses about their means, weights that add up to one, and the scales."""
    v = w / w.sum()
    Z, r = (X - v @ X, y - v @ y) if centred else (X, y)
    return Z, r, v, np.sqrt(v @ Z**2) if standardized else np.ones(X.shape[1])


def algorithm_1(X, y, w, project, K, eta, t0, every, centred, standardized):
    """Algorithm 1 from the rows themselves: coefficients and intercept after each row."""
    theta, intercept = np.zeros(X.shape[1]), 0.0
    for n in range(1, len(X) + 1):
        if n > t0 and (n - t0) % every == 0:
            Z, r, v, scale = prepared(X[:n], y[:n], w[:n], centred, standardized)
            for k in range(K):
                pull = Z.T @ (v * (r - Z @ theta)) / scale
                step = eta((n - t0) // every, k) if callable(eta) else eta
                theta = project(scale * theta + step * pull) / scale
        if centred and (n <= t0 or (n - t0) % every == 0):
            v = w[:n] / w[:n].sum()
            intercept = v @ y[:n] - v @ X[:n] @ theta
        yield theta, intercept


def longest_step(X, y, w, t0, centred, standardized):
    """The inverse of the largest curvature at any round: shorter steps do not amplify rounding errors."""
    largest = 0.0
    for n in range(t0 + 1, len(X) + 1):
        Z, _, v, scale = prepared(X[:n], y[:n], w[:n], centred, standardized)
        largest = max(largest, np.linalg.norm(np.sqrt(v)[:, None] * Z / scale, 2) ** 2)
    return 1.0 / largest


def assert_follows(model, X, y, w, expected, rtol=1e-9):
    """Row after row, coefficients and intercept as expected."""
    for i, (coef, intercept) in enumerate(expected):
        model.partial_fit(X[i : i + 1], y[i : i + 1], None if w is None else w[i : i + 1])
        np.testing.assert_allclose(model.coef_, coef, rtol=0, atol=rtol * max(np.abs(coef).max(), 1e-300))
        np.testing.assert_allclose(model.intercept_, intercept, rtol=0, atol=rtol * np.abs(y).max())


@settings(max_examples=80)
@given(
    seed=st.integers(0, 2**32 - 1),
    kind=st.sampled_from(["independent", "correlated", "scaled"]),
    d=st.integers(2, 30),
    share=st.floats(0.02, 1.0),
    K=st.sampled_from([1, 2, 5, 12]),
    eta=st.floats(0.01, 0.9),
    schedule=st.booleans(),
    t0=st.integers(0, 50),
    every=st.sampled_from([1, 1, 2, 7]),
    weighted=st.booleans(),
    centred=st.booleans(),
    standardized=st.booleans(),
    n_groups=st.sampled_from([0, 0, 3, 8]),
)
@example(1, "correlated", 30, 0.2, 5, 0.5, False, 20, 1, True, True, True, 0)
@example(2, "independent", 30, 1.0, 5, 0.5, True, 0, 7, True, True, False, 0)
@example(3, "scaled", 25, 0.3, 2, 0.9, False, 30, 1, False, False, False, 0)
@example(4, "scaled", 25, 0.5, 3, 0.5, False, 10, 2, True, True, True, 8)
def test_every_row_leaves_the_iterate_of_algorithm_1(
    seed, kind, d, share, K, eta, schedule, t0, every, weighted, centred, standardized, n_groups
):
    rng = np.random.default_rng(seed)
    if standardized:
        t0 += 3  # on one row, or two about their mean, all columns pull equally: ties that rounding breaks
    n = t0 + 100
    X = design(rng, kind, n, d) + rng.standard_normal(d)
    y = X[:, : min(3, d)].sum(axis=1) + 2.0 + rng.standard_normal(n)
    w = rng.choice([0.0, 0.5, 1.0, 3.0], n) if weighted else np.ones(n)
    w[:4] = 1.0
    eta *= longest_step(X, y, w, t0, centred, standardized)
    labels = rng.integers(0, n_groups, d) if n_groups else None
    s = max(1, int(share * (len(set(labels)) if n_groups else d)))
    step = (lambda t, k: eta / (1.0 + 0.02 * t) / (1 + k)) if schedule else eta

    def project(z):
        return keep_groups(z, labels, s) if n_groups else keep_largest(z, s)

    model = OnlineHardThresholding(
        s,
        n_steps=K,
        step_size=step,
        n_warmup=t0,
        round_size=every,
        fit_intercept=centred,
        standardize=standardized,
        groups=labels,
    )
    expected = algorithm_1(X, y, w, project, K, step, t0, every, centred, standardized)
    assert_follows(model, X, y, w if weighted else None, expected)
    assert model.n_rounds_ == (n - t0) // every
    if not callable(step):
        assert model.step_size_ == step


def test_rounds_are_numbered_from_one_and_steps_from_zero(rng):
    X, y, _ = problem(rng, n=30, d=5)
    asked = []

    def schedule(t, k):
        asked.append((t, k))
        return 0.01 / t

    model = OnlineHardThresholding(2, n_steps=3, step_size=schedule, n_warmup=10, round_size=4)
    for a, b in ((0, 17), (17, 18), (18, 30)):
        model.partial_fit(X[a:b], y[a:b])
    assert asked == [(t, k) for t in range(1, 6) for k in range(3)]
    assert model.step_size_ == 0.01 / 5
    model.partial_fit(X[:1], y[:1]).finish()
    assert set(asked[15:]) == {(6, k) for k in range(3)}
    assert model.step_size_ == 0.01 / 6


@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("parameters", [CENTRED, {}], ids=shown)
def test_certified_steps_never_raise_the_loss_of_the_rows_so_far(rng, rule, parameters):
    for kind in ("correlated", "duplicated", "scaled", "late", "constant"):
        X = design(rng, kind, 250, 30) * np.exp(rng.normal(0, 1, 30)) + rng.standard_normal(30)
        y = X @ np.where(np.arange(30) % 6, 0.0, 1.0) + rng.standard_normal(250)
        model = OnlineHardThresholding(4, n_steps=1, rule=rule, **parameters)
        before = np.zeros(30)
        for n in range(1, 251):
            model.partial_fit(X[n - 1 : n], y[n - 1 : n])
            residuals = y[:n, None] - X[:n] @ np.column_stack([before, model.coef_])
            losses = np.mean((residuals - (residuals.mean(axis=0) if parameters else 0.0)) ** 2, axis=0)
            assert losses[1] <= losses[0] * (1.0 + 1e-9) + 1e-12 * np.mean(y[:n] ** 2)
            before = model.coef_


def reference_of(rule, labels, s):
    if labels is not None:
        return Groups(labels, s)
    return Reciprocal(s) if rule == "reciprocal" else Cardinality(s)


@pytest.mark.parametrize("rule", [*RULES, "groups"])
@pytest.mark.parametrize("parameters", [CENTRED, {"fit_intercept": True}, {}], ids=shown)
@pytest.mark.parametrize("step_size", ["auto", lambda t, k: 0.1 / (10 + t + k)], ids=shown)
def test_equals_the_readable_reference(rng, rule, parameters, step_size):
    X = design(rng, "correlated", 160, 12) / 3.0 + 0.2
    y = X[:, :3].sum(axis=1) + rng.standard_normal(160)
    w = rng.uniform(0.5, 2.0, 160)
    labels = np.arange(12) // 2 if rule == "groups" else None
    model = OnlineHardThresholding(3, n_steps=1 if labels is not None else 3, step_size=step_size, n_warmup=20)
    model.set_params(groups=labels, rule="hard" if rule == "groups" else rule, **parameters)
    gram, theta, sparsity = Gram(12), np.zeros(12), reference_of(rule, labels, 3)
    centred, standardized = "fit_intercept" in parameters, "standardize" in parameters
    for i in range(160):
        piece = X[i : i + 1], y[i : i + 1], w[i : i + 1]
        gram.absorb(*piece)
        model.partial_fit(*piece)
        if i >= 20:
            steps = [0.0 if step_size == "auto" else step_size(i - 19, k) for k in range(model.n_steps)]
            if step_size == "auto" and labels is not None:
                steps = [model.step_size_]  # certified steps of groups are found in another way
            theta = reference.run_round(
                theta, gram, sparsity, steps, centred, standardized, "hard" if labels is not None else rule
            )
    tolerance = 1e-7 if rule == "reciprocal" else 1e-9  # at the threshold its slope is that of a square root
    np.testing.assert_allclose(model.coef_, theta, rtol=0, atol=tolerance * np.abs(theta).max())


# -- any cut, any copy -------------------------------------------------------------------------------------


STEP_RULES = ["auto", 0.05, lambda t, k: 0.1 / (1 + k + 0.01 * t)]
SETTINGS = {
    "paper": {"sparsity": 6},
    "centred": {"sparsity": 6, **CENTRED},
    "float32": {"sparsity": 6, "dtype": "float32", **CENTRED},
    "pursuit": {"sparsity": 6, "rule": "pursuit", **CENTRED},
    "reciprocal": {"sparsity": 6, "rule": "reciprocal"},
    "groups": {"sparsity": 3, "groups": np.arange(40) // 3, **CENTRED},
    "auto": {},
    "auto groups": {"groups": np.arange(40) // 8, "fit_intercept": True},
}


# Every pair of a setting, a step rule and a round size, though not every triple.
CUTS = [(name, rule, (1, 7)[(i + j) % 2]) for i, name in enumerate(SETTINGS) for j, rule in enumerate(STEP_RULES)]


@pytest.mark.parametrize(("setting", "step_size", "round_size"), CUTS, ids=shown)
@pytest.mark.filterwarnings("ignore:step_size=:sklearn.exceptions.ConvergenceWarning")
def test_any_cut_gives_bit_identical_coefficients(rng, setting, step_size, round_size):
    X, y, _ = problem(rng, 400)
    w = rng.uniform(0.5, 2.0, len(X))
    w[[0, 1, 2, 100, 101, 399]] = 0.0
    parameters = SETTINGS[setting] | {"step_size": step_size, "round_size": round_size, "n_warmup": 11}
    whole = OnlineHardThresholding(**parameters).partial_fit(X, y, w)
    for sizes in ([1] * 400, [64, 1, 63, 128, 100, 44], [7] * 52 + [36], [5, 395]):
        edges = np.cumsum([0, *sizes])
        pieces = OnlineHardThresholding(**parameters)
        for a, b in pairwise(edges):
            pieces.partial_fit(X[a:b], y[a:b], w[a:b])
        np.testing.assert_array_equal(pieces.coef_, whole.coef_)
        assert pieces.intercept_ == whole.intercept_
        assert pieces.n_rounds_ == whole.n_rounds_ == (400 - 11) // round_size
        assert pieces.n_samples_seen_ == 400
        for mine, theirs in zip(pieces.selection_history_, whole.selection_history_, strict=True):
            assert (mine.n_samples, mine.size) == (theirs.n_samples, theirs.size)
            np.testing.assert_array_equal(mine.values, theirs.values)


def saved_and_loaded(tmp_path):
    def twin(model):
        model.save(tmp_path / "model.thresher")
        return load(tmp_path / "model.thresher")

    return twin


@pytest.mark.parametrize("setting", SETTINGS)
def test_a_copy_made_mid_stream_ends_bit_identical(rng, tmp_path, setting):
    X, y, _ = problem(rng, 420)
    for at in (5, 130, 400):
        model = OnlineHardThresholding(round_size=3, n_warmup=20, **SETTINGS[setting]).partial_fit(X[:at], y[:at])
        others = [copy.deepcopy(model), pickle.loads(pickle.dumps(model)), saved_and_loaded(tmp_path)(model)]
        for other in others:
            np.testing.assert_array_equal(other.coef_, model.coef_)
        model.partial_fit(X[at:], y[at:]).finish()
        for other in others:
            other.partial_fit(X[at:], y[at:]).finish()
            np.testing.assert_array_equal(other.coef_, model.coef_)
            assert other.intercept_ == model.intercept_
            assert other.n_rounds_ == model.n_rounds_


# -- fit ---------------------------------------------------------------------------------------------------


def test_fit_is_least_squares_on_the_support_it_finds(rng):
    X, y, coef = problem(rng)
    w = rng.uniform(0.1, 2.0, len(X))
    model = OnlineHardThresholding(4, **CENTRED).fit(X, y, w)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    oracle = LinearRegression().fit(X[:, model.support_], y, w)
    np.testing.assert_allclose(model.coef_[model.support_], oracle.coef_, rtol=1e-9)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-9)
    np.testing.assert_allclose(model.predict(X), oracle.predict(X[:, model.support_]), rtol=1e-9)
    no_intercept = OnlineHardThresholding(4).fit(X, y, w)
    S = no_intercept.support_
    oracle = LinearRegression(fit_intercept=False).fit(X[:, S], y, w)
    np.testing.assert_allclose(no_intercept.coef_[S], oracle.coef_, rtol=1e-9)
    assert no_intercept.intercept_ == 0.0


def test_fit_is_a_fixed_point_of_hard_thresholding(rng):
    """A further step, in NumPy on the rows, changes nothing: also where a support is not the best one."""
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = design(rng, "correlated", 60, 30)
        y = X[:, ::6].sum(axis=1) + rng.standard_normal(60)
        model = OnlineHardThresholding(5, step_size=0.05).fit(X, y)
        moved = keep_largest(model.coef_ - 0.05 * X.T @ (X @ model.coef_ - y) / 60, 5)
        np.testing.assert_allclose(moved, model.coef_, atol=1e-7)


def test_fit_settles_in_float32_and_at_the_limit_of_reciprocal_thresholding(rng):
    X, y, _ = problem(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for parameters in (CENTRED, {}, {"step_size": 0.02}):
            single, double = (
                OnlineHardThresholding(4, dtype=dtype, **parameters).fit(X, y) for dtype in ("float32", "float64")
            )
            assert single.n_iter_ < 50
            np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-5)
    model = OnlineHardThresholding(4, rule="reciprocal", step_size=0.02, tol=1e-10)
    with pytest.warns(
        ConvergenceWarning, match=r"raised the loss in \d+ of \d+ steps. step_size='auto' finds"
    ) as caught:
        model.fit(X, y)  # shrinking may raise it at any step, so none is called safe
    assert len(caught) == 1
    assert model.n_iter_ < 1000
    # Liu and Barber (2020): what is kept is shrunk by the largest that is not.
    z = model.coef_ - 0.02 * X.T @ (X @ model.coef_ - y) / len(X)
    order = np.argsort(-np.abs(z))
    kept, tau = order[:4], np.abs(z[order[4]])
    np.testing.assert_array_equal(np.sort(kept), model.support_)
    np.testing.assert_allclose(model.coef_[kept], z[kept] / 2 * (1 + np.sqrt(1 - (tau / z[kept]) ** 2)), rtol=1e-7)


def test_fit_ignores_row_order_and_equals_fit_summary(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(6, **CENTRED).fit(X, y)
    order = rng.permutation(len(X))
    again = OnlineHardThresholding(6, **CENTRED).fit(X[order], y[order])
    np.testing.assert_allclose(again.coef_, model.coef_, rtol=1e-9)
    halves = Gram(40).absorb(X[:200], y[:200]).merge(Gram(40).absorb(X[200:], y[200:]))
    of_halves = OnlineHardThresholding(6, **CENTRED).fit_summary(halves)
    np.testing.assert_allclose(of_halves.coef_, model.coef_, rtol=1e-9)
    assert halves.n_samples == 600
    assert model.n_iter_ == model.n_rounds_ >= 1


def test_partial_fit_goes_on_from_fit_and_from_a_summary(rng):
    X, y, coef = problem(rng)
    model = OnlineHardThresholding(4, **CENTRED).fit(X[:300], y[:300]).partial_fit(X[300:], y[300:])
    assert model.n_samples_seen_ == 600
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    np.testing.assert_allclose(model.coef_, OnlineHardThresholding(4, **CENTRED).fit(X, y).coef_, atol=1e-3)
    summary = Gram(40).absorb(X[:300], y[:300])
    resumed = OnlineHardThresholding(4, **CENTRED).fit_summary(summary).partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(resumed.coef_, model.coef_, rtol=1e-9)
    assert summary.n_samples == 300


def test_fit_that_does_not_settle_says_so(rng):
    X, y, _ = problem(rng)
    with pytest.warns(ConvergenceWarning, match="max_iter=1"):
        OnlineHardThresholding(4, max_iter=1, n_steps=1).fit(X, y)


def test_intercept_always_belongs_to_the_coefficients(rng):
    X, y, _ = problem(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        for rounds in range(1, 6):
            model = OnlineHardThresholding(4, max_iter=rounds, n_steps=1, **CENTRED).fit(X, y)
            np.testing.assert_allclose(model.intercept_, y.mean() - X.mean(axis=0) @ model.coef_, rtol=1e-9)
    model = OnlineHardThresholding(4, n_warmup=5000, **CENTRED).fit(X[:400], y[:400]).set_params(sparsity=3)
    model.partial_fit(X[400:401], y[400:401])
    assert len(model.support_) == 3
    np.testing.assert_allclose(model.intercept_, y[:400].mean() - X[:400].mean(axis=0) @ model.coef_, rtol=1e-9)


# -- a size that is chosen ---------------------------------------------------------------------------------


def least_squares(X, y, support, w, centred):
    """Coefficients and intercept on some columns, from the rows."""
    Z = np.column_stack([np.ones(len(X)), X[:, support]]) if centred else X[:, support]
    root = np.sqrt(w)
    solution = np.linalg.lstsq(root[:, None] * Z, root * y, rcond=None)[0]
    return (solution[1:], solution[0]) if centred else (solution, 0.0)


def cross_validated(X, y, w, sizes, centred, units=None, n_folds=5):
    """For every size the mean squared error on the rows left out, of the best subset of the other rows."""
    units = [[j] for j in range(X.shape[1])] if units is None else units
    folds = folds_of(X, y, n_folds)
    errors = np.empty((n_folds, len(sizes)))
    for fold, size in np.ndindex(errors.shape):
        test = folds == fold
        best = np.inf
        for chosen in combinations(range(len(units)), sizes[size]):
            support = [j for unit in chosen for j in units[unit]]
            coef, intercept = least_squares(X[~test], y[~test], support, w[~test], centred)
            rss = w[~test] @ (y[~test] - X[~test][:, support] @ coef - intercept) ** 2
            if rss < best:
                best, fitted = rss, (support, coef, intercept)
        support, coef, intercept = fitted
        errors[fold, size] = np.average((y[test] - X[test][:, support] @ coef - intercept) ** 2, weights=w[test])
    return errors


@pytest.mark.parametrize("centred", [False, True])
@pytest.mark.parametrize("groups", [None, ["a", "b", "a", "c", "d", "d", "e"]])
def test_a_chosen_size_is_that_of_cross_validation_on_the_initial_batch_and_stays(rng, centred, groups):
    n, t0 = 700, 230
    X = rng.standard_normal((n, 7)) + centred
    coef = np.array([1.0, 0.0, -0.8, 0.0, 0.5, 0.5, 0.0])
    y = X @ coef + 2.0 * centred + rng.standard_normal(n)
    y[t0:] += 3.0 * X[t0:, 1] + 2.0 * X[t0:, 3]  # from then on more features would be better
    w = rng.integers(1, 4, n).astype(float)
    model = OnlineHardThresholding(n_warmup=t0, fit_intercept=centred, step_size=0.02, groups=groups)
    model.partial_fit(X[:100], y[:100], w[:100])
    assert not hasattr(model, "selection_")
    assert not model.coef_.any()
    model.partial_fit(X[100:t0], y[100:t0], w[100:t0])
    units = None if groups is None else [[j for j in range(7) if groups[j] == g] for g in "abcde"]
    chosen = model.selection_
    errors = cross_validated(X[:t0], y[:t0], w[:t0], chosen.sizes, centred, units)
    assert list(chosen.sizes) == list(range(8 if groups is None else 6))
    np.testing.assert_allclose(chosen.criterion, errors.mean(axis=0), rtol=1e-8)
    np.testing.assert_allclose(chosen.standard_error, errors.std(axis=0, ddof=1) / np.sqrt(5), rtol=1e-8)
    assert model.sparsity_ == chosen.chosen == np.argmin(errors.mean(axis=0))
    assert (chosen.method, chosen.n_samples) == ("cv", t0)
    model.partial_fit(X[t0:], y[t0:], w[t0:])
    assert model.selection_ is chosen
    assert {record.size for record in model.selection_history_} == {chosen.chosen}
    fixed = clone(model).set_params(sparsity=chosen.chosen).partial_fit(X, y, w)
    np.testing.assert_allclose(model.coef_, fixed.coef_, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.intercept_, fixed.intercept_, rtol=1e-9, atol=1e-12)
    assert model.n_rounds_ == n - t0


def test_without_a_batch_the_size_is_final_after_2000_rows(rng):
    X = rng.standard_normal((3000, 6))
    y = X[:, 0] + 0.5 * X[:, 3] + rng.standard_normal(3000)
    y[2200:] += 3.0 * X[2200:, 1] + 2.0 * X[2200:, 2]
    model, w = OnlineHardThresholding(), np.ones(3000)
    looked = []
    for start in range(0, 3000, 50):
        model.partial_fit(X[start : start + 50], y[start : start + 50])
        looked.append(model.selection_.n_samples)
    at = sorted(set(looked))
    assert all(b > 1.2 * a for a, b in pairwise(at[:-1]))  # again whenever there are a quarter more rows
    n = at[-1]
    assert 2000 <= n <= 2100
    errors = cross_validated(X[:n], y[:n], w[:n], model.selection_.sizes, False)
    np.testing.assert_allclose(model.selection_.criterion, errors.mean(axis=0), rtol=1e-8)
    assert model.sparsity_ == model.selection_.chosen == np.argmin(errors.mean(axis=0))
    assert len(model.support_) == model.sparsity_
    assert {record.size for record in model.selection_history_ if record.n_samples >= n} == {model.sparsity_}


def test_folds_are_those_of_the_values_alone(rng):
    X, y = rng.standard_normal((1000, 4)), rng.integers(0, 3, 1000).astype(float)
    X[:, 2] = np.round(X[:, 2])
    folds = folds_by_hash(X, y, 5)
    np.testing.assert_array_equal(folds, folds_of(X + 0.0, y, 5))
    order = rng.permutation(1000)
    np.testing.assert_array_equal(folds_by_hash(X[order], y[order], 5), folds[order])
    np.testing.assert_array_equal(folds_by_hash(scipy.sparse.csr_array(X), y, 5), folds)
    np.testing.assert_array_equal(folds_by_hash(np.column_stack([X, np.zeros((1000, 3))]), y, 5), folds)
    np.testing.assert_array_equal(folds_by_hash(np.where(X == 0.0, -0.0, X), y, 5), folds)
    for other in (X[:, ::-1], X + np.eye(4)[0], X * (1.0 + 1e-15)):
        assert np.mean(folds_by_hash(other, y, 5) == folds) < 0.3
    for rows in (X, rng.integers(0, 2, (1000, 15)).astype(float)):  # 200 each, with a standard deviation of 12.6
        assert np.all(np.abs(np.bincount(folds_by_hash(rows, y, 5)) - 200) < 50)


def test_weights_are_copies_and_order_does_not_matter_to_a_chosen_size(rng):
    X = rng.standard_normal((150, 12))
    y = X[:, :3] @ [1.0, -0.7, 0.4] + rng.standard_normal(150)
    k = rng.integers(0, 4, 150)
    for parameters in ({}, {"groups": np.arange(12) // 2, "fit_intercept": True}):
        model = OnlineHardThresholding(**parameters).fit(X, y, k)
        copies = rng.permutation(np.repeat(np.arange(150), k))
        repeated = OnlineHardThresholding(**parameters).fit(X[copies], y[copies])
        assert model.sparsity_ == repeated.sparsity_ > 0
        np.testing.assert_allclose(model.selection_.criterion, repeated.selection_.criterion, rtol=1e-9)
        np.testing.assert_allclose(model.coef_, repeated.coef_, rtol=1e-9)


def test_fit_chooses_on_all_rows_and_a_summary_has_none(rng):
    X = rng.standard_normal((300, 6))
    y = X[:, 0] - 0.5 * X[:, 3] + rng.standard_normal(300)
    model = OnlineHardThresholding().fit(X, y)
    errors = cross_validated(X, y, np.ones(300), model.selection_.sizes, False)
    np.testing.assert_allclose(model.selection_.criterion, errors.mean(axis=0), rtol=1e-8)
    assert len(model.support_) == model.sparsity_ == np.argmin(errors.mean(axis=0))
    with pytest.raises(ValueError, match="needs the rows"):
        OnlineHardThresholding().fit_summary(model.summary_)
    given_size = OnlineHardThresholding(2).partial_fit(X, y)
    before = pickle.dumps(given_size)
    with pytest.raises(ValueError, match="needs the rows"):
        given_size.set_params(sparsity="auto").partial_fit(X, y)
    assert pickle.dumps(given_size.set_params(sparsity=2)) == before


# -- groups and float32 ------------------------------------------------------------------------------------


def test_groups_are_kept_or_dropped_together(rng):
    X, y, _ = problem(rng, d=12, active=0)
    labels = np.array(["a", "b", "c", "d"])[np.arange(12) % 4]
    y = y + X @ np.where(np.isin(labels, ["b", "d"]), 0.7, 0.0)
    for fit in ("fit", "partial_fit"):
        model = getattr(OnlineHardThresholding(2, groups=labels, **CENTRED), fit)(X, y)
        assert list(model.selected_groups_) == ["b", "d"]
        np.testing.assert_array_equal(model.support_, np.flatnonzero(np.isin(labels, ["b", "d"])))
    oracle = LinearRegression().fit(X[:, model.support_], y)
    fitted = OnlineHardThresholding(2, groups=labels, **CENTRED).fit(X, y)
    np.testing.assert_allclose(fitted.coef_[fitted.support_], oracle.coef_, rtol=1e-8)
    with pytest.raises(AttributeError, match="needs groups"):
        _ = OnlineHardThresholding(2).partial_fit(X, y).selected_groups_
    with pytest.warns(UserWarning, match="number of groups; using 4"):
        OnlineHardThresholding(7, groups=labels).partial_fit(X, y)
    with pytest.raises(ValueError, match="float64"):
        OnlineHardThresholding(2, groups=labels, dtype="float32").partial_fit(X, y)
    with pytest.raises(ValueError, match="rule='hard'"):
        OnlineHardThresholding(2, groups=labels, rule="pursuit").partial_fit(X, y)


def test_float32_storage_finds_the_same_support(rng):
    X, y, coef = problem(rng)
    single, double = (
        OnlineHardThresholding(4, dtype=dtype, **CENTRED).partial_fit(X, y) for dtype in ("float32", "float64")
    )
    assert single.summary_.dtype == np.float32
    np.testing.assert_array_equal(single.support_, np.flatnonzero(coef))
    np.testing.assert_allclose(single.coef_, double.coef_, atol=1e-5)
    X, y = X.astype(np.float32), y.astype(np.float32)
    model = OnlineHardThresholding(4, n_steps=3, step_size=0.02, n_warmup=40, dtype="float32").partial_fit(X, y)
    X, y = X.astype(float), y.astype(float)
    *_, (expected, _) = algorithm_1(X, y, np.ones(600), lambda z: keep_largest(z, 4), 3, 0.02, 40, 1, False, False)
    np.testing.assert_allclose(model.coef_, expected, atol=1e-5)


# -- rounds ------------------------------------------------------------------------------------------------


def test_rows_short_of_a_round_wait_and_finish_closes_it(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4, round_size=100, **CENTRED).partial_fit(X[:100], y[:100])
    before = model.coef_, model.intercept_
    model.partial_fit(X[100:150], y[100:150])
    np.testing.assert_array_equal(model.coef_, before[0])
    assert model.intercept_ == before[1]
    assert (model.n_samples_seen_, model.n_rounds_) == (150, 1)
    model.finish()
    assert model.n_rounds_ == 2
    assert (model.coef_ != before[0]).any()
    closed = model.coef_
    np.testing.assert_array_equal(model.finish().coef_, closed)
    assert model.n_rounds_ == 2
    model.partial_fit(X[150:250], y[150:250])  # a full round counts from the last one closed
    assert model.n_rounds_ == 3


def test_warmup_predicts_the_mean_then_the_rounds_begin(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4, n_warmup=100, fit_intercept=True).partial_fit(X[:100], y[:100])
    assert not model.coef_.any()
    np.testing.assert_allclose(model.predict(X[:3]), y[:100].mean())
    assert model.n_rounds_ == 0
    model.partial_fit(X[100:103], y[100:103])
    assert model.n_rounds_ == 3
    assert len(model.support_) == 4


def test_a_smaller_round_size_closes_the_overdue_round_first(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4, round_size=7).partial_fit(X[:5], y[:5])
    model.set_params(round_size=3, step_size=lambda t, k: 0.01).partial_fit(X[5:15], y[5:15])
    assert model.n_rounds_ == 1 + (10 - 1) // 3


def test_finish_sees_rows_of_the_warm_up(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4, n_warmup=500).partial_fit(X[:50], y[:50]).finish()
    first = model.coef_
    assert model.n_rounds_ == 1
    model.partial_fit(X[50:80], y[50:80]).finish()
    assert model.n_rounds_ == 2
    assert (model.coef_ != first).any()
    chosen = OnlineHardThresholding(n_warmup=500, **CENTRED).partial_fit(X[:50], y[:50]).finish()
    assert len(chosen.support_) == chosen.sparsity_ == chosen.selection_.chosen > 0
    np.testing.assert_allclose(chosen.intercept_, y[:50].mean() - X[:50].mean(axis=0) @ chosen.coef_, rtol=1e-9)


def test_parameters_may_change_between_calls(rng):
    X, y, coef = problem(rng)
    model = OnlineHardThresholding(12, **CENTRED).partial_fit(X[:400], y[:400])
    model.set_params(sparsity=4).partial_fit(X[400:], y[400:])
    assert model.sparsity_ == 4
    np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
    assert model.n_rounds_ == 600
    model.set_params(rule="pursuit").partial_fit(X[:1], y[:1])
    rows, responses = np.vstack([X, X[:1]]), np.append(y, y[0])
    oracle = LinearRegression().fit(rows[:, model.support_], responses)
    np.testing.assert_allclose(model.coef_[model.support_], oracle.coef_, rtol=1e-8)
    np.testing.assert_allclose(model.intercept_, oracle.intercept_, rtol=1e-8)


def test_history_is_kept_whenever_there_are_a_twentieth_more_rows(rng):
    X, y, _ = problem(rng)
    model, seen = OnlineHardThresholding(4, n_warmup=30), {}
    for i in range(600):
        model.partial_fit(X[i : i + 1], y[i : i + 1])
        seen[i + 1] = model.coef_.copy()
    counts = [record.n_samples for record in model.selection_history_]
    assert counts[0] == 30
    assert all(b == a + 1 + a // 20 for a, b in pairwise(counts))
    for record in model.selection_history_:
        assert record.size == 4
        np.testing.assert_array_equal(record.support, np.flatnonzero(seen[record.n_samples]))
        np.testing.assert_array_equal(record.values, seen[record.n_samples][record.support])
    # Row t counts for t, with the support of the last record.
    rows = np.arange(30, 601)
    kept = np.array([seen[max(n for n in counts if n <= t)] != 0.0 for t in rows])
    np.testing.assert_allclose(model.support_stability(), rows @ kept / rows.sum())


def test_a_smaller_sparsity_keeps_what_matters_not_what_has_large_numbers(rng):
    X = rng.standard_normal((300, 6))
    y = 2.0 * X[:, 0] - 1.0 * X[:, 1] + 0.05 * X[:, 3] + 0.01 * rng.standard_normal(300)
    X[:, 0] *= 1e4
    model = OnlineHardThresholding(3, **CENTRED).partial_fit(X, y).set_params(sparsity=1)
    model.partial_fit(X[:1], y[:1])
    assert list(model.support_) == [0]
    with pytest.warns(UserWarning, match="sparsity=9 exceeds"):
        model.set_params(sparsity=9).partial_fit(X[:1], y[:1])


def test_sparsity_above_d_is_clipped(rng):
    X, y, _ = problem(rng, d=5, active=2)
    with pytest.warns(UserWarning, match="sparsity=8 exceeds the number of columns; using 5"):
        model = OnlineHardThresholding(8).partial_fit(X, y)
    assert model.sparsity_ == 5
    fitted = OnlineHardThresholding(5, fit_intercept=True).fit(X, y)
    np.testing.assert_allclose(fitted.coef_, LinearRegression().fit(X, y).coef_, rtol=1e-8)


def test_a_step_that_raises_the_loss_warns_once_with_a_safe_value(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4, step_size=2.5, **CENTRED)
    with pytest.warns(ConvergenceWarning, match="raised the loss") as caught:
        model.partial_fit(X[:300], y[:300])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    safe = float(str(caught[0].message).split("a step of ")[1].split()[0])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.partial_fit(X[300:], y[300:])
    assert np.isfinite(model.coef_).all()
    # The safe value is below 1/L on every 2s-sparse subspace, and using it on these rows is quiet.
    Z = (X[:300] - X[:300].mean(axis=0)) / X[:300].std(axis=0)
    G = Z.T @ Z / 300
    subsets = [rng.choice(40, 8, replace=False) for _ in range(300)]
    assert safe <= 1.0 / max(np.linalg.eigvalsh(G[np.ix_(s, s)])[-1] for s in subsets)
    with warnings.catch_warnings():
        warnings.simplefilter("error", ConvergenceWarning)
        OnlineHardThresholding(4, step_size=safe, max_iter=10_000, **CENTRED).fit(X[:300], y[:300])


# -- units and odd columns ---------------------------------------------------------------------------------


def test_streaming_intercept_is_exact_over_all_rows(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4, **CENTRED).partial_fit(X + 1e6, y)
    np.testing.assert_allclose(model.intercept_, y.mean() - (X + 1e6).mean(axis=0) @ model.coef_, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e4, 1e-4])
def test_standardized_steps_ignore_the_units_of_a_column(rng, factor):
    X, y, coef = problem(rng)
    scaled = X.copy()
    column = np.flatnonzero(coef)[0]
    scaled[:, column] *= factor
    for fit in ("fit", "partial_fit"):
        a = getattr(OnlineHardThresholding(4, **CENTRED), fit)(X, y)
        b = getattr(OnlineHardThresholding(4, **CENTRED), fit)(scaled, y)
        np.testing.assert_array_equal(a.support_, b.support_)
        np.testing.assert_allclose(a.predict(X), b.predict(scaled), rtol=1e-6, atol=1e-6)


def test_extreme_scales_give_finite_and_right_models(rng):
    X, y, coef = problem(rng, d=12)
    X[:, np.flatnonzero(coef)] *= 10.0 ** np.array([-150.0, 150.0, -100.0, 100.0])
    for fit in ("fit", "partial_fit"):
        model = getattr(OnlineHardThresholding(4, **CENTRED), fit)(X, y)
        np.testing.assert_array_equal(model.support_, np.flatnonzero(coef))
        assert np.isfinite(model.coef_).all()
        assert model.score(X, y) > 0.8


def test_constant_and_duplicated_columns_are_harmless(rng):
    X, y, coef = problem(rng)
    j = np.flatnonzero(coef)[0]
    X = np.column_stack([X, np.full(len(X), 7.0), np.zeros(len(X)), X[:, j]])
    for parameters in (CENTRED, {"standardize": True}, {"fit_intercept": True}):
        for fit in ("fit", "partial_fit"):
            model = getattr(OnlineHardThresholding(6, **parameters), fit)(X, y)
            assert np.isfinite(model.coef_).all()
            assert model.coef_[41] == 0.0
            assert model.score(X, y) > 0.5
    only_constants = OnlineHardThresholding(2, **CENTRED).partial_fit(np.ones((30, 3)), np.arange(30.0))
    assert not only_constants.coef_.any()
    np.testing.assert_allclose(only_constants.intercept_, 14.5)


def test_a_column_too_small_to_square_is_harmless(rng):
    X, y, _ = problem(rng, d=4, active=2)
    X[:, 1] *= 1e-170
    for standardize in (True, False):
        model = OnlineHardThresholding(4, standardize=standardize, fit_intercept=True).fit(X, y)
        assert np.isfinite(model.coef_).all()


# -- what rows may be --------------------------------------------------------------------------------------


def test_pandas_and_polars_keep_names(rng):
    X, y, coef = problem(rng, d=5, active=2)
    names = list("abcde")
    array = OnlineHardThresholding(2, **CENTRED).partial_fit(X, y)
    for frame, series in (
        (pd.DataFrame(X, columns=names), pd.Series(y)),
        (pl.DataFrame(X, schema=names), pl.Series(y)),
    ):
        model = OnlineHardThresholding(2, **CENTRED).partial_fit(frame, series)
        np.testing.assert_array_equal(model.coef_, array.coef_)
        assert list(model.feature_names_in_) == names
        np.testing.assert_array_equal(model.predict(frame), array.predict(X))
        assert list(model.get_feature_names_out()) == [names[j] for j in np.flatnonzero(coef)]
        reordered = frame[list("bacde")]
        before = model.coef_
        with pytest.raises(ValueError, match="eature names"):
            model.partial_fit(reordered, series)
        np.testing.assert_array_equal(model.coef_, before)
    frame = (
        OnlineHardThresholding(2, **CENTRED)
        .set_output(transform="pandas")
        .fit(pd.DataFrame(X, columns=names), y)
        .transform(pd.DataFrame(X, columns=names))
    )
    assert list(frame.columns) == [names[j] for j in np.flatnonzero(coef)]


def test_csr_equals_dense(rng):
    X = scipy.sparse.random(500, 60, density=0.2, format="csr", random_state=1)
    y = X[:, [3]].toarray().ravel() * 4 + 0.1 * rng.standard_normal(500)
    for parameters in ({"sparsity": 3}, {}):
        dense = OnlineHardThresholding(**parameters).partial_fit(X.toarray(), y)
        sparse = OnlineHardThresholding(**parameters).partial_fit(X, y)
        np.testing.assert_array_equal(dense.coef_, sparse.coef_)
        np.testing.assert_allclose(sparse.predict(X), dense.predict(X.toarray()), rtol=1e-12)
        assert sparse.transform(X).shape == (500, len(sparse.support_))


def test_works_in_a_pipeline_and_shows_itself(rng):
    X, y, _ = problem(rng)
    pipeline = make_pipeline(StandardScaler(), OnlineHardThresholding(4, fit_intercept=True), LinearRegression())
    assert pipeline.fit(X, y).score(X, y) > 0.8
    assert "OnlineHardThresholding" in OnlineHardThresholding(4)._repr_html_()
    assert clone(OnlineHardThresholding(4, n_steps=9)).n_steps == 9


def test_inputs_are_left_alone(rng):
    X, y, _ = problem(rng)
    w = np.ones(len(X))
    kept = X.copy(), y.copy(), w.copy()
    for array in (X, y, w):
        array.flags.writeable = False
    for parameters in ({"sparsity": 4}, {}, {"sparsity": 4, "groups": np.arange(40) // 2}):
        OnlineHardThresholding(**parameters).partial_fit(X, y, w).fit(X, y, w).predict(X)
    for mine, theirs in zip((X, y, w), kept, strict=True):
        np.testing.assert_array_equal(mine, theirs)


# -- bad input ---------------------------------------------------------------------------------------------


def spoiled(array, value):
    array = array.copy()
    array[3] = value
    return array


RNG = np.random.default_rng(0)
X0, Y0, _ = problem(RNG, n=50, d=5)
BAD_CALLS = {
    "NaN in X": (spoiled(X0, np.nan), Y0, None, "NaN"),
    "inf in X": (spoiled(X0, np.inf), Y0, None, "inf"),
    "NaN in y": (X0, spoiled(Y0, np.nan), None, "NaN"),
    "NaN in weights": (X0, Y0, spoiled(np.ones(50), np.nan), "sample_weight contains NaN"),
    "inf in weights": (X0, Y0, spoiled(np.ones(50), np.inf), "sample_weight contains infinity"),
    "negative weights": (X0, Y0, spoiled(np.ones(50), -1.0), "sample_weight is negative"),
    "too many columns": (np.ones((50, 6)), Y0, None, "6 features"),
    "different lengths": (X0, Y0[:-1], None, "inconsistent"),
    "weights of another length": (X0, Y0, np.ones(49), "sample_weight has shape"),
    "complex": (X0 * 1j, Y0, None, "[Cc]omplex"),
    "strings": (X0.astype(str).astype(object) + "a", Y0, None, "could not convert"),
    "two responses": (X0, np.column_stack([Y0, Y0]), None, "y should be a 1d array"),
    "empty": (X0[:0], Y0[:0], None, "0 sample"),
    "one dimension": (X0[0], Y0[:1], None, "2D array"),
}


@pytest.mark.parametrize("sparsity", [2, "auto"])
@pytest.mark.parametrize(("X", "y", "w", "message"), BAD_CALLS.values(), ids=BAD_CALLS)
def test_bad_rows_are_named_and_leave_the_model_as_it_was(X, y, w, message, sparsity):
    fitted = OnlineHardThresholding(sparsity).partial_fit(X0, Y0)
    before = pickle.dumps(fitted)
    with pytest.raises(ValueError, match=message):
        fitted.partial_fit(X, y, w)
    assert pickle.dumps(fitted) == before
    if message != "6 features":
        with pytest.raises(ValueError, match=message):
            fitted.fit(X, y, w)
        assert pickle.dumps(fitted) == before
        fresh = OnlineHardThresholding(sparsity)
        with pytest.raises(ValueError, match=message):
            fresh.partial_fit(X, y, w)
        assert {name: value for name, value in vars(fresh).items() if name != "_lock"} == vars(
            OnlineHardThresholding(sparsity)
        )


BAD_PARAMETERS = [
    {"sparsity": 0},
    {"sparsity": 2.5},
    {"sparsity": "few"},
    {"n_steps": 0},
    {"n_steps": "auto"},
    {"step_size": 0.0},
    {"step_size": -1.0},
    {"step_size": np.nan},
    {"step_size": np.inf},
    {"step_size": "large"},
    {"round_size": 0},
    {"round_size": None},
    {"n_warmup": -1},
    {"rule": "soft"},
    {"tol": -1.0},
    {"max_iter": 0},
    {"dtype": "int8"},
    {"groups": [1, 2]},
    {"groups": [[1, 2, 3, 4, 5]]},
    {"step_size": lambda t, k: -1.0},
    {"step_size": lambda t, k: np.nan if t > 1 else 0.1},
]


CALLS = {
    "partial_fit": lambda m: m.partial_fit(X0, Y0),
    "fit": lambda m: m.fit(X0, Y0),
    "fit_summary": lambda m: m.fit_summary(Gram(5).absorb(X0, Y0)),
    "finish": lambda m: m.finish(),
}


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("parameters", BAD_PARAMETERS, ids=shown)
def test_bad_parameters_are_named_and_change_nothing(parameters, call):
    name = next(iter(parameters))
    if call in ("fit", "fit_summary", "finish") and name == "step_size" and callable(parameters[name]):
        parameters = {name: lambda t, k: -1.0}
    good = {"sparsity": 2, "round_size": 20}
    for fitted in (True, False) if call != "finish" else (True,):
        model = OnlineHardThresholding(**good)
        if fitted:
            model.partial_fit(X0[:, :5] + 1.0, Y0)
        before = dict(vars(model))
        state = pickle.dumps(model)
        with pytest.raises((ValueError, TypeError), match=name):
            CALLS[call](model.set_params(**parameters))
        model.set_params(**{key: before[key] for key in parameters})
        assert vars(model).keys() - {"_lock"} == before.keys() - {"_lock"}
        assert pickle.dumps(model) == state


def test_a_failing_schedule_leaves_a_fitted_model_as_it_was():
    model = OnlineHardThresholding(2, step_size=0.01).partial_fit(X0, Y0)
    before = pickle.dumps(model)
    model.set_params(step_size=lambda t, k: 0.01 if t < 70 else -1.0)
    with pytest.raises(ValueError, match=r"step_size\(70, 0\) must be positive"):
        model.partial_fit(X0, Y0)
    assert pickle.dumps(model.set_params(step_size=0.01)) == before


def test_values_and_weights_that_would_overflow_are_refused(rng):
    X, y, _ = problem(rng, d=5, active=2)
    huge = X.copy()
    huge[3, 2] = 1e155
    for arguments in ((huge, y), (X, y * 1e155), (X, y, np.full(600, 1e307)), (X * 1e100, y, np.full(600, 1e150))):
        for model in (OnlineHardThresholding(2), OnlineHardThresholding(2).partial_fit(X, y)):
            before = pickle.dumps(model)
            with pytest.raises(ValueError, match="rescale"):
                model.partial_fit(*arguments)
            assert pickle.dumps(model) == before
    with pytest.raises(ValueError, match="overflow float32"):
        OnlineHardThresholding(2, dtype="float32").partial_fit(X * 1e10, y, np.full(600, 1e20))
    weights = np.r_[0.0, np.ones(599)]
    huge = X.copy()
    huge[0] = 1e150
    for fit in ("fit", "partial_fit"):
        model = getattr(OnlineHardThresholding(2, **CENTRED), fit)(huge, y, weights)
        without = getattr(OnlineHardThresholding(2, **CENTRED), fit)(X[1:], y[1:])
        np.testing.assert_allclose(model.coef_, without.coef_, rtol=1e-9)


def test_numeric_strings_are_refused():
    for strings in (X0.astype(str), X0.astype(str).tolist()):
        with pytest.raises(ValueError, match="strings"):
            OnlineHardThresholding(2).partial_fit(strings, Y0)


def test_not_fitted_is_said():
    for call in (
        lambda m: m.predict(X0),
        lambda m: m.finish(),
        lambda m: m.support_,
        lambda m: m.transform(X0),
        lambda m: m.selection_history_,
        lambda m: m.n_samples_seen_,
    ):
        with pytest.raises((NotFittedError, AttributeError)):
            call(OnlineHardThresholding())
    with pytest.raises(ValueError, match="empty"):
        OnlineHardThresholding(2).fit_summary(Gram(3))
    with pytest.raises(TypeError, match=r"thresher\.Gram"):
        OnlineHardThresholding(2).fit_summary(np.eye(3))


# -- a long run --------------------------------------------------------------------------------------------


LONG_RUNS = {
    "paper": (2_000, {"sparsity": 5}),
    "auto": (2_000, {}),
    "groups": (2_000, {"sparsity": 5, "groups": np.arange(300) // 3}),
}


@pytest.mark.parametrize("kind", LONG_RUNS)
def test_interrupt_falls_between_blocks_and_loses_nothing(kind, interrupt_at_fold):
    n, parameters = LONG_RUNS[kind]
    X, y = SparseLinearStream(300, 5, seed=4).draw(n)
    model = OnlineHardThresholding(round_size=2, **parameters).partial_fit(X[:1], y[:1])
    interrupt_at_fold(5)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[1:], y[1:])
    seen = model.n_samples_seen_
    assert 1 < seen < n
    model.partial_fit(X[seen:], y[seen:])
    whole = OnlineHardThresholding(round_size=2, **parameters).partial_fit(X, y)
    np.testing.assert_array_equal(model.coef_, whole.coef_)
    assert (model.n_rounds_, model.n_samples_seen_) == (whole.n_rounds_, n)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_handler_of_ones_own_sees_the_interrupt(interrupt_at_fold):
    X, y = SparseLinearStream(300, 5, seed=4).draw(3_000)
    model, seen = OnlineHardThresholding(5).partial_fit(X[:1], y[:1]), []
    previous = signal.signal(signal.SIGINT, lambda signum, frame: seen.append(model.summary_.n_samples))
    try:
        interrupt_at_fold(5)
        model.partial_fit(X[1:], y[1:])
    finally:
        signal.signal(signal.SIGINT, previous)
    assert model.n_samples_seen_ == 3_000
    assert len(seen) == 1
    # Where the buffer of 128 rows is folded at d = 300, or where there is a record.
    assert seen[0] % 128 in (0, 3_000 % 128) or seen[0] in {r.n_samples for r in model.selection_history_}


def test_works_outside_the_main_thread(rng):
    X, y, _ = problem(rng)
    model = OnlineHardThresholding(4)
    thread = threading.Thread(target=model.partial_fit, args=(X, y))
    thread.start()
    thread.join()
    np.testing.assert_array_equal(model.coef_, OnlineHardThresholding(4).partial_fit(X, y).coef_)


def test_working_set_is_no_larger_than_the_gram():
    model = OnlineHardThresholding(200).fit(np.random.default_rng(0).standard_normal((400, 200)), np.arange(400.0))
    assert model._rounds.inner._round.work.local.nbytes <= 8 * 200**2


GROWTH = """
import resource
from thresher import OnlineHardThresholding
from thresher.io.sources.synthetic import SparseLinearStream

stream, model, at = SparseLinearStream(200, 10, seed=1), OnlineHardThresholding(20), {}
for n in range(100, 60_001, 100):
    model.partial_fit(*stream.draw(100))
    if n in (10_000, 60_000):
        at[n] = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
print(at[60_000] - at[10_000])
"""


def test_memory_does_not_grow():
    result = subprocess.run([sys.executable, "-c", GROWTH], capture_output=True, text=True, check=True)
    assert int(result.stdout) < 1_000_000


def test_error_decays_like_one_over_t():
    """Statistics with a fixed seed: log error against log t has slope -1, within the noise of ten streams."""
    errors = []
    for seed in range(10):
        stream = SparseLinearStream(100, 5, signal=1.0, seed=seed)
        stream.coef[:5] += np.sign(stream.coef[:5])
        model, row = OnlineHardThresholding(5), []
        for n in (500, 2000, 8000):
            model.partial_fit(*stream.draw(n - (model.n_samples_seen_ if row else 0)))
            row.append(((model.coef_ - stream.coef) ** 2).sum())
        errors.append(row)
    slopes = np.diff(np.log(np.mean(errors, axis=0))) / np.log(4)
    assert np.all(np.abs(slopes + 1.0) < 0.35)


def test_the_diagnosis_names_a_missing_intercept(rng):
    X = rng.standard_normal((500, 8))
    y = 100.0 + 2.0 * X[:, 1] + rng.standard_normal(500)
    found = OnlineHardThresholding(2).fit(X, y).diagnose()["intercept"]
    assert found.severity == "warning"
    assert found.numbers == {"mean": pytest.approx(y.mean()), "deviation": pytest.approx(y.std())}
    assert "fit_intercept=True, or --fit-intercept" in found.sentence
    assert found.sentence in str(OnlineHardThresholding(2).fit(X, y).summary())
    for model, response in (
        (OnlineHardThresholding(2, fit_intercept=True), y),
        (OnlineHardThresholding(2), y - y.mean() + 0.99 * y.std()),
    ):
        assert "intercept" not in model.fit(X, response).diagnose().to_dict()
