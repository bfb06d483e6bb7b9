"""Baselines that estimate a matrix: the contract they share, and each against its definition in plain NumPy."""

import copy
import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import scipy.sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from baseline_contract import check_cuts, check_interrupt, check_saving, check_size
from thresher.baselines import NuclearProximal
from thresher.baselines.nuclear_proximal import shrink

# Settings that are not the defaults.
BASELINES = [
    NuclearProximal(0.7, step_size=0.03, noise=0.4),
    NuclearProximal(0.7, noise=0.4),
]
SHAPE = (5, 4)

every_baseline = pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: str(baseline).split("(")[0])


def problem(rng, n=330, noise=0.5, singular_values=(3.0, 1.0), shape=SHAPE):
    """Matrices, responses and the truth."""
    r = len(singular_values)
    left, right = (np.linalg.qr(rng.standard_normal((side, r)))[0] for side in shape)
    truth = left * singular_values @ right.T
    X = rng.standard_normal((n, *shape))
    return X, (X * truth).sum(axis=(1, 2)) + noise * rng.standard_normal(n), truth


def state(model):
    return pickle.dumps(
        {name: value for name, value in vars(model).items() if name not in ("_checked_parameters", "_lock")}
    )


# -- the contract ----------------------------------------------------------------------------------------------


@every_baseline
def test_any_cut_gives_bit_identical_coefficients(rng, baseline):
    X, y, truth = problem(rng)
    whole = check_cuts(baseline, X, y, [1] * 70 + [260], [64, 1, 65, 130, 70], [5, 325])
    assert whole.coef_.shape == SHAPE
    assert np.linalg.norm(whole.coef_ - truth) < 0.3 * np.linalg.norm(truth)


@every_baseline
def test_saving_in_the_middle_and_kinds_of_input_change_nothing(rng, baseline):
    X, y, _ = problem(rng)
    X[np.abs(X) < 0.7] = 0.0
    whole = check_saving(baseline, X, y)
    rows = X.reshape(330, 20)
    for other_rows in (rows, scipy.sparse.csr_array(rows), pd.DataFrame(rows), np.asfortranarray(rows), X.tolist()):
        other = clone(baseline).set_params(shape=SHAPE).partial_fit(other_rows, y)
        np.testing.assert_array_equal(other.coef_, whole.coef_)
        np.testing.assert_allclose(other.predict(other_rows), whole.predict(X), rtol=1e-12)
        assert other.n_features_in_ == 20
    np.testing.assert_allclose(whole.predict(X), rows @ whole.coef_.ravel() + whole.intercept_, rtol=1e-9, atol=1e-12)
    u, s, vt = whole.factors_
    assert s.shape == (whole.rank_,)
    np.testing.assert_allclose((u * s) @ vt, whole.coef_, atol=1e-12)
    assert whole.score(X, y) > 0.8


@every_baseline
def test_rejected_input_changes_nothing(rng, baseline):
    X, y, _ = problem(rng)
    model = clone(baseline).partial_fit(X[:200], y[:200])
    before = state(model)
    bad = X[200:].copy()
    bad[3, 4, 1] = np.nan
    for matrices, responses, message in (
        (bad, y[200:], "NaN"),
        (X[200:, :3], y[200:], r"shape \(3, 4\); expected \(5, 4\)"),
        (X[200:].reshape(130, 20)[:, :12], y[200:], "12 columns"),
        (X[200:], y[200:300], "inconsistent"),
        (1e200 * X[200:], y[200:], "rescale"),
    ):
        with pytest.raises(ValueError, match=message):
            model.partial_fit(matrices, responses)
    for name in model.get_params():
        setattr(broken := copy.deepcopy(model), name, object())
        with pytest.raises((ValueError, TypeError), match=name):
            broken.partial_fit(X[200:], y[200:])
        with pytest.raises((ValueError, TypeError), match=name):
            broken.fit(X[200:], y[200:])
        assert set(vars(broken)) | {"_checked_parameters"} == set(vars(model))
        np.testing.assert_array_equal(broken.coef_, model.coef_)
    model.set_params(shape=(4, 5))
    with pytest.raises(ValueError, match="contradicts"):
        model.partial_fit(X[200:], y[200:])
    with pytest.raises(ValueError, match="expected"):
        model.fit(X[200:], y[200:])
    assert state(model.set_params(shape=None)) == before
    for fresh in (clone(baseline), clone(baseline).set_params(shape=(3, 4))):
        with pytest.raises(NotFittedError):
            fresh.predict(X)
        with pytest.raises(ValueError, match="shape"):
            fresh.partial_fit(X.reshape(330, 20), y)
        assert not hasattr(fresh, "coef_")
    other = model.fit(np.swapaxes(X, 1, 2), y)  # fit may take another shape
    assert other.coef_.shape == (4, 5)


@every_baseline
def test_the_state_does_not_grow(rng, baseline):
    check_size(baseline, *problem(rng, n=2000)[:2])


@every_baseline
def test_an_interrupt_falls_between_blocks(rng, baseline):
    check_interrupt(baseline, *problem(rng, n=1024)[:2])


@every_baseline
def test_huge_and_tiny_data_leave_finite_coefficients(rng, baseline):
    X, y, _ = problem(rng, n=200)
    scales = ((1e100, 1.0), (1.0, 1e120), (1e-100, 1.0), (1e60, 1e-60), (1e-150, 1e120), (0.0, 1.0), (1.0, 0.0))
    for scale_x, scale_y in scales:
        with warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            warnings.simplefilter("ignore", ConvergenceWarning)
            for model in (
                clone(baseline).partial_fit(scale_x * X, scale_y * y),
                clone(baseline).fit(scale_x * X, scale_y * y),
            ):
                assert np.isfinite(model.coef_).all()
                assert model.n_samples_seen_ == 200
                if scale_x == 0.0 or scale_y == 0.0:
                    assert not model.coef_.any()


@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_divergence_is_reported_and_leaves_finite_coefficients(rng):
    X, y, _ = problem(rng)
    baseline = NuclearProximal(step_size=30.0)
    with pytest.warns(ConvergenceWarning, match="NuclearProximal diverged at row .* step_size"):
        baseline.partial_fit(X, y)
    assert 0 < baseline.diverged_at_ < 330
    assert np.isfinite(baseline.coef_).all()
    kept = baseline.coef_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        baseline.partial_fit(X, y)
    np.testing.assert_array_equal(baseline.coef_, kept)
    assert baseline.n_samples_seen_ == 660
    pieces = clone(baseline)
    for a in range(0, 330, 30):
        pieces.partial_fit(X[a : a + 30], y[a : a + 30])
    assert pieces.diverged_at_ == baseline.diverged_at_
    np.testing.assert_array_equal(pieces.coef_, kept)
    assert baseline.set_params(step_size=0.01).fit(X, y).diverged_at_ is None


# -- proximal steps --------------------------------------------------------------------------------------------


def test_singular_value_thresholding_solves_its_problem(rng):
    for shape in ((6, 4), (4, 6), (5, 5), (1, 3)):
        A = rng.standard_normal(shape)
        threshold = 0.6 * np.linalg.norm(A, 2)
        P, n_left = shrink(A, threshold)
        # 0 is in P - A + threshold d||P||_*: (A - P) / threshold = U V' + W with W orthogonal to both and |W| <= 1.
        assert 1 <= n_left <= min(shape)
        u, s, vt = np.linalg.svd(P)
        assert s[n_left - 1] > 1e-3
        np.testing.assert_allclose(s[n_left:], 0.0, atol=1e-12)
        W = (A - P) / threshold - u[:, :n_left] @ vt[:n_left]
        np.testing.assert_allclose(u[:, :n_left].T @ W, 0.0, atol=1e-12)
        np.testing.assert_allclose(W @ vt[:n_left].T, 0.0, atol=1e-12)
        assert np.linalg.norm(W, 2) <= 1.0 + 1e-12
        nothing, n_left = shrink(A, 1.01 * np.linalg.norm(A, 2))
        assert n_left == 0
        assert not nothing.any()


@pytest.mark.parametrize("step_size", ["auto", 0.02])
def test_nuclear_proximal_takes_the_steps_of_its_definition(rng, step_size):
    X, y, _ = problem(rng, n=40, shape=(6, 3))
    X[0] = 0.0
    theta = np.zeros((6, 3))
    for t in range(1, 41):
        longest = np.max(np.sum(X[:t] ** 2, axis=(1, 2)))
        eta = (1.0 / max(longest, 1e-9) if step_size == "auto" else 0.02) / (1.0 + t / 36.0)
        if t > 1:
            target = theta - eta * (np.sum(X[t - 1] * theta) - y[t - 1]) * X[t - 1]
            u, s, vt = np.linalg.svd(target, full_matrices=False)
            s = np.maximum(s - eta * 0.8 * 1.5 * np.sqrt(9.0 / t), 0.0)
            theta = (u * s) @ vt
    model = NuclearProximal(0.8, noise=1.5, step_size=step_size).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, theta, atol=1e-12)
    assert model.rank_ == np.sum(s > 0.0)


def test_nuclear_proximal_without_penalty_is_stochastic_gradient_descent_and_with_much_is_zero(rng):
    X, y, _ = problem(rng, n=50)
    theta = np.zeros(SHAPE)
    for t in range(1, 51):
        theta = theta - 0.03 / (1.0 + t / 40.0) * (np.sum(X[t - 1] * theta) - y[t - 1]) * X[t - 1]
    np.testing.assert_allclose(NuclearProximal(0.0, step_size=0.03).partial_fit(X, y).coef_, theta, atol=1e-12)
    nothing = NuclearProximal(1e6).partial_fit(X, y)
    assert not nothing.coef_.any()
    assert nothing.rank_ == 0
    assert [part.shape for part in nothing.factors_] == [(5, 0), (0,), (0, 4)]


def test_nuclear_proximal_learns_better_with_a_penalty():
    errors = {0.0: [], 0.5: []}
    for seed in range(3):
        X, y, truth = problem(np.random.default_rng(seed), 1500, 2.0, (2.0, 1.5), (15, 12))
        for penalty, found in errors.items():
            found.append(np.linalg.norm(NuclearProximal(penalty, noise=2.0).partial_fit(X, y).coef_ - truth))
    assert np.mean(errors[0.5]) < 0.9 * np.mean(errors[0.0])
    assert np.mean(errors[0.5]) < 0.4 * np.linalg.norm(truth)
