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

import thresher._utils.memory
from baseline_contract import check_cuts, check_interrupt, check_saving, check_size
from oracles import keep_rank
from thresher import LowRankRegressor
from thresher.baselines import SVP, NuclearProximal, ScaledGD, svp
from thresher.baselines._single_rows import ABSURD
from thresher.baselines.nuclear_proximal import shrink
from thresher.baselines.scaled_gd import scaled_step
from thresher.online.dense import DenseRounds

# Settings that are not the defaults.
BASELINES = [
    SVP(2, step_size=0.4, fit_intercept=True, tol=1e-6, max_iter=60),
    SVP(2, tol=1e-5),
    ScaledGD(2, step_size=0.3, n_steps=2, n_warmup=37, round_size=7, tol=1e-6, max_iter=50),
    NuclearProximal(0.7, step_size=0.03, noise=0.4),
    NuclearProximal(0.7, noise=0.4),
]
SHAPE = (5, 4)

every_baseline = pytest.mark.parametrize("baseline", BASELINES, ids=lambda baseline: str(baseline).split("(")[0])
may_not_settle = pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")


def problem(rng, n=330, noise=0.5, singular_values=(3.0, 1.0), shape=SHAPE):
    """Matrices, responses and the truth."""
    r = len(singular_values)
    left, right = (np.linalg.qr(rng.standard_normal((side, r)))[0] for side in shape)
    truth = left * singular_values @ right.T
    X = rng.standard_normal((n, *shape))
    return X, (X * truth).sum(axis=(1, 2)) + noise * rng.standard_normal(n), truth


def state(model):
    return pickle.dumps({name: value for name, value in vars(model).items() if name != "_checked_parameters"})


def gradient(X, y, theta):
    """Of half the mean squared residual."""
    return np.einsum("n,nij->ij", (X * theta).sum(axis=(1, 2)) - y, X) / len(y)


def loss(X, y, theta):
    return np.mean(((X * theta).sum(axis=(1, 2)) - y) ** 2) / 2


# -- the contract ----------------------------------------------------------------------------------------------


@every_baseline
@may_not_settle
def test_any_cut_gives_bit_identical_coefficients(rng, baseline):
    X, y, truth = problem(rng)
    whole = check_cuts(baseline, X, y, [1] * 70 + [260], [64, 1, 65, 130, 70], [5, 325])
    assert whole.coef_.shape == SHAPE
    assert np.linalg.norm(whole.coef_ - truth) < 0.3 * np.linalg.norm(truth)


@every_baseline
@may_not_settle
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
@may_not_settle
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
        assert set(vars(broken)) == set(vars(model))
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
@may_not_settle
def test_the_state_does_not_grow(rng, baseline):
    check_size(baseline, *problem(rng, n=2000)[:2])


@every_baseline
@may_not_settle
def test_an_interrupt_falls_between_blocks(rng, baseline):
    check_interrupt(baseline, *problem(rng, n=1024)[:2])


@every_baseline
def test_huge_and_tiny_data_leave_finite_coefficients(rng, baseline):
    X, y, _ = problem(rng, n=200)
    scales = ((1e100, 1.0), (1.0, 1e120), (1e-100, 1.0), (1e60, 1e-60), (1e-160, 1e120), (0.0, 1.0), (1.0, 0.0))
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


@pytest.mark.parametrize("baseline", [ScaledGD(2, step_size=40.0), NuclearProximal(step_size=30.0)], ids=type)
@may_not_settle
def test_divergence_is_reported_and_leaves_finite_coefficients(rng, baseline):
    X, y, _ = problem(rng)
    with pytest.warns(ConvergenceWarning, match=f"{type(baseline).__name__} diverged at row .* step_size"):
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


@pytest.mark.parametrize("baseline", [SVP(2), ScaledGD(2)], ids=type)
def test_ranks_and_memory_are_checked(rng, baseline, monkeypatch):
    X, y, _ = problem(rng)
    with pytest.raises(ValueError, match="at most 4"):
        clone(baseline).set_params(rank=5).fit(X, y)
    model = clone(baseline).fit(X, y)
    before = state(model)
    monkeypatch.setattr(thresher._utils.memory, "SMALL", 0)
    monkeypatch.setattr(thresher._utils.memory, "available_bytes", lambda: 1000)
    with pytest.raises(MemoryError, match=r"SVP|ScaledGD"):
        model.fit(X, y)
    assert state(model) == before


# -- singular value projection ---------------------------------------------------------------------------------


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_svp_takes_the_steps_of_its_definition(rng, fit_intercept):
    X, y, _ = problem(rng, shape=(6, 5), n=150)
    y += 3.0
    X_used, y_used = (X - X.mean(axis=0), y - y.mean()) if fit_intercept else (X, y)
    theta = np.zeros((6, 5))
    for _ in range(9):
        theta = keep_rank(theta - 0.35 * gradient(X_used, y_used, theta), 2)
    model = SVP(2, step_size=0.35, fit_intercept=fit_intercept, tol=0.0, max_iter=9)
    with pytest.warns(ConvergenceWarning, match="max_iter=9"):
        model.partial_fit(X[:70], y[:70])
    with pytest.warns(ConvergenceWarning):
        model.partial_fit(X[70:], y[70:])
    np.testing.assert_allclose(model.coef_, theta, atol=1e-10)
    expected = np.mean(y - (X * theta).sum(axis=(1, 2))) if fit_intercept else 0.0
    assert model.intercept_ == pytest.approx(expected, abs=1e-10)
    assert (model.n_iter_, model.step_size_, model.converged_) == (9, 0.35, False)


def test_svp_recovers_a_matrix_without_noise_and_agrees_with_low_rank_regressor(rng):
    X, y, truth = problem(rng, noise=0.0, n=200, shape=(7, 6))
    model = SVP(2, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, truth, atol=1e-9)
    assert model.converged_
    assert model.step_size_ == pytest.approx(0.75 / np.mean(X**2))
    X, y, _ = problem(rng, noise=0.5, n=200, shape=(7, 6))
    model, same = SVP(2, tol=1e-12).fit(X, y), LowRankRegressor(2, fit_intercept=False, tol=1e-12).fit(X, y)
    np.testing.assert_allclose(model.coef_, same.coef_, atol=1e-8)


def test_svp_finds_the_longest_step_with_which_the_loss_never_rises(rng):
    X, y, truth = problem(rng, n=400)
    X = 3.0 * (X + 1.5 * rng.standard_normal((400, 1, 1)))  # a common part makes one direction steep
    y = (X * truth).sum(axis=(1, 2)) + 0.1 * rng.standard_normal(400)
    model = SVP(2, tol=1e-9, max_iter=20000).fit(X, y)
    assert model.converged_
    halvings = np.log2(0.75 / np.mean(X**2) / model.step_size_)
    assert halvings == pytest.approx(round(halvings), abs=1e-9)
    assert halvings >= 1

    def losses(eta):
        theta, path = np.zeros(SHAPE), []
        for _ in range(50):
            path.append(loss(X, y, theta))
            theta = keep_rank(theta - eta * gradient(X, y, theta), 2)
        return np.array(path)

    assert (np.diff(losses(model.step_size_)) <= 0.0).all()
    assert (np.diff(losses(2.0 * model.step_size_)) > 0.0).any()
    fixed = keep_rank(model.coef_ - model.step_size_ * gradient(X, y, model.coef_), 2)
    np.testing.assert_allclose(fixed, model.coef_, atol=1e-7)


def test_svp_that_diverges_says_nothing_and_recovers(rng):
    X, y, truth = problem(rng, n=600)
    for step_size in (0.8, 1e9):
        model = SVP(2, step_size=step_size)
        with pytest.warns(ConvergenceWarning, match="SVP diverged"):
            model.partial_fit(X[:8], y[:8])
        assert not model.coef_.any()
        assert (model.converged_, model.diverged_) == (False, True)
    model = SVP(2, step_size=0.8)
    with pytest.warns(ConvergenceWarning, match="SVP diverged"):
        model.partial_fit(X[:8], y[:8])
    model.partial_fit(X[8:], y[8:])  # many samples distort less
    assert (model.converged_, model.diverged_) == (True, False)
    assert np.linalg.norm(model.coef_ - truth) < 0.1 * np.linalg.norm(truth)
    model.set_params(rank=1).partial_fit(X[:1], y[:1])
    assert np.linalg.matrix_rank(model.coef_) == model.rank_ == 1


def test_svp_that_finds_no_step_says_what_can_be_done(rng, monkeypatch):
    X, y, _ = problem(rng, n=400)
    X += 3.0 * rng.standard_normal((400, 1, 1))  # a common part makes one direction steep
    monkeypatch.setattr(svp, "MOST_HALVINGS", 0)
    with pytest.warns(ConvergenceWarning, match="SVP diverged .* tries none that is shorter; bring the entries"):
        model = SVP(2).fit(X, y)
    assert model.diverged_
    with pytest.warns(ConvergenceWarning, match="SVP diverged .* or step_size='auto'"):
        SVP(2, step_size=model.step_size_).fit(X, y)


def test_svp_that_is_interrupted_keeps_its_estimate(rng, monkeypatch):
    X, y, _ = problem(rng)
    model = SVP(2, fit_intercept=True).partial_fit(X[:200], y[:200])
    before, n_settled = dict(vars(model)), []
    settle = DenseRounds.settle

    def interrupted(rounds, *arguments):
        n_settled.append(1)
        if len(n_settled) == 5:
            raise KeyboardInterrupt
        return settle(rounds, *arguments)

    monkeypatch.setattr(DenseRounds, "settle", interrupted)
    with pytest.raises(KeyboardInterrupt):
        model.partial_fit(X[200:], y[200:])
    assert model.n_samples_seen_ == 330
    for name in ("coef_", "intercept_", "rank_", "n_iter_", "step_size_", "converged_", "diverged_"):
        assert getattr(model, name) is before[name], name
    n_settled.clear()
    fresh = SVP(2)
    with pytest.raises(KeyboardInterrupt):
        fresh.partial_fit(X, y)
    assert not fresh.coef_.any()
    assert fresh.factors_[1].shape == (2,)
    monkeypatch.undo()
    model.partial_fit(X[:1], y[:1])
    whole = SVP(2, fit_intercept=True).fit(np.concatenate([X, X[:1]]), np.append(y, y[0]))
    np.testing.assert_allclose(model.coef_, whole.coef_, rtol=1e-10)


# -- scaled gradient descent -----------------------------------------------------------------------------------


def step_of_product(theta, Z, eta, r):
    """A scaled step in terms of L R' alone: theta - eta (Z P_R + P_L Z) + eta^2 Z theta^+ Z."""
    u, _, vt = np.linalg.svd(theta)
    inside_left, inside_right = u[:, :r] @ u[:, :r].T, vt[:r].T @ vt[:r]
    return theta - eta * (Z @ inside_right + inside_left @ Z) + eta**2 * Z @ np.linalg.pinv(theta, rcond=1e-10) @ Z


def test_scaled_gd_takes_the_steps_of_its_definition(rng):
    X, y, _ = problem(rng, n=150, shape=(6, 5))
    X *= 2.0
    v = np.mean(X[:40] ** 2)
    theta = keep_rank(np.einsum("n,nij->ij", y[:40], X[:40]) / (40 * v), 2)
    model = ScaledGD(2, step_size=0.3, n_steps=3, n_warmup=40, round_size=25).partial_fit(X[:39], y[:39])
    assert not model.coef_.any()
    np.testing.assert_allclose(model.partial_fit(X[39:64], y[39:64]).coef_, theta, atol=1e-12)
    assert model.n_rounds_ == 0
    for n in (65, 90, 115, 140):
        for _ in range(3):
            theta = step_of_product(theta, gradient(X[:n], y[:n], theta), 0.3 / np.mean(X[:n] ** 2), 2)
    model.partial_fit(X[64:], y[64:])
    np.testing.assert_allclose(model.coef_, theta, atol=1e-9)
    np.testing.assert_allclose(model.left_ @ model.right_.T, theta, atol=1e-9)
    assert model.n_rounds_ == 4


def test_scaled_steps_are_simultaneous(rng):
    L, R, Z = rng.standard_normal((6, 2)), rng.standard_normal((5, 2)), rng.standard_normal((6, 5))
    after = scaled_step(L, R, Z, 0.3)
    for factor, other, slope, moved in ((L, R, Z, after[0]), (R, L, Z.T, after[1])):
        np.testing.assert_allclose((factor - moved) @ (other.T @ other), 0.3 * slope @ other, atol=1e-12)
    for _ in range(20):  # nor can one that is zero to rounding
        flat_left, flat_right = (np.outer(factor[:, 0], rng.standard_normal(2)) for factor in (L, R))
        left, right = scaled_step(flat_left, flat_right, Z, 0.3)
        by_right, by_left = np.linalg.pinv(flat_right, rcond=1e-8), np.linalg.pinv(flat_left, rcond=1e-8)
        np.testing.assert_allclose(left, flat_left - 0.3 * Z @ by_right.T, rtol=1e-9, atol=1e-9)
        np.testing.assert_allclose(right, flat_right - 0.3 * Z.T @ by_left.T, rtol=1e-9, atol=1e-9)
    rank_one = np.outer(np.ones(6), [1.0, 0.0]), np.outer(np.ones(5), [1.0, 0.0])  # a direction that cannot move
    left, right = scaled_step(*rank_one, Z, 0.3)
    assert np.isfinite(left).all()
    assert not left[:, 1].any()
    assert not right[:, 1].any()


def test_scaled_gd_does_not_depend_on_the_choice_of_factors(rng):
    X, y, _ = problem(rng, n=300)
    plain = ScaledGD(2, n_steps=3, n_warmup=60, round_size=20).partial_fit(X[:100], y[:100])
    other = copy.deepcopy(plain)
    Q = np.array([[30.0, 1.0], [-2.0, 0.1]])
    other.left_, other.right_ = other.left_ @ Q, other.right_ @ np.linalg.inv(Q).T
    np.testing.assert_allclose(
        other.partial_fit(X[100:], y[100:]).coef_, plain.partial_fit(X[100:], y[100:]).coef_, rtol=1e-8, atol=1e-9
    )
    assert np.abs(other.left_ - plain.left_).max() > 1.0


def test_scaled_gd_is_as_fast_on_ill_conditioned_matrices():
    steps = []
    for smallest in (1.0, 0.1, 0.01):
        X, y, truth = problem(np.random.default_rng(3), n=3000, noise=0.0, singular_values=(1.0, smallest))
        model = ScaledGD(2, tol=1e-10).fit(X, y)
        np.testing.assert_allclose(model.coef_, truth, atol=1e-8)
        steps.append(model.n_iter_)
    assert max(steps) < 60
    assert max(steps) < 1.5 * min(steps)


def test_scaled_gd_reaches_the_optimum_that_svp_reaches(rng):
    X, y, _ = problem(rng, n=400, noise=0.5)
    svp, offline = SVP(2, tol=1e-11).fit(X, y), ScaledGD(2, tol=1e-11).fit(X, y)
    np.testing.assert_allclose(offline.coef_, svp.coef_, atol=1e-8)
    online = ScaledGD(2).partial_fit(X, y)
    np.testing.assert_allclose(online.coef_, svp.coef_, atol=0.02)
    assert online.n_rounds_ == 400 - 2 * 2 * 9
    with pytest.warns(ConvergenceWarning, match="max_iter=3"):
        assert ScaledGD(2, max_iter=3).fit(X, y).n_iter_ == 3


def test_scaled_gd_goes_on_after_fit_and_keeps_its_rank(rng):
    X, y, truth = problem(rng, n=400)
    model = ScaledGD(2, n_warmup=10**6).fit(X[:200], y[:200])
    fitted = model.coef_.copy()
    np.testing.assert_array_equal(model.partial_fit(X[200:], y[200:]).coef_, fitted)  # still warming up
    model.set_params(n_warmup=36)
    model.partial_fit(X[:40], y[:40])
    assert model.n_rounds_ == 40
    assert np.linalg.norm(model.coef_ - truth) < 0.1 * np.linalg.norm(truth)
    before = state(model)
    with pytest.raises(ValueError, match="start over with fit"):
        model.set_params(rank=1).partial_fit(X, y)
    assert state(model.set_params(rank=2)) == before
    assert model.set_params(rank=1).fit(X, y).left_.shape == (5, 1)


@pytest.mark.parametrize("step_size", [1.2, 1.5, 50.0])
def test_scaled_gd_does_not_take_a_rest_for_an_optimum(rng, step_size):
    X, y, truth = problem(rng, n=2000, noise=0.3)
    model = ScaledGD(2, step_size=step_size)
    with pytest.warns(ConvergenceWarning, match="diverged at row 1999"):
        model.fit(X, y)
    assert not model.coef_.any()
    assert not model.left_.any()
    model.set_params(step_size=0.9).fit(X, y)
    assert np.linalg.norm(model.coef_ - truth) < 0.03 * np.linalg.norm(truth)


def test_scaled_gd_stops_when_predictions_are_absurd(rng):
    X, y, _ = problem(rng, singular_values=(3.0,))
    u, s, vt = np.linalg.svd(np.einsum("n,nij->ij", y[:40], X[:40]) / (40 * np.mean(X[:40] ** 2)))
    left, right = u[:, 0] * np.sqrt(s[0]), vt[0] * np.sqrt(s[0])
    excess, n = 0.0, 40
    while excess <= ABSURD:
        n += 1
        theta = np.outer(left, right)
        excess = np.linalg.norm((X[:n] * theta).sum(axis=(1, 2))) / np.linalg.norm(y[:n])
        Z, eta = gradient(X[:n], y[:n], theta), 6.0 / np.mean(X[:n] ** 2)
        left, right = left - eta * Z @ right / (right @ right), right - eta * Z.T @ left / (left @ left)
    model = ScaledGD(1, step_size=6.0, n_warmup=40)
    with pytest.warns(ConvergenceWarning, match=f"diverged at row {n - 1} "):
        model.partial_fit(X, y)
    assert model.diverged_at_ == n - 1 < 100
    np.testing.assert_allclose(model.coef_, theta, rtol=1e-5)


def test_scaled_gd_waits_for_a_response_that_is_not_zero(rng):
    X, y, truth = problem(rng, n=600)
    y[:100] = 0.0
    model = ScaledGD(2, n_warmup=50, round_size=5).partial_fit(X[:100], y[:100])
    assert not model.coef_.any()
    model.partial_fit(X[100:], y[100:])
    assert np.linalg.norm(model.coef_ - truth) < 0.4 * np.linalg.norm(truth)


# -- proximal steps --------------------------------------------------------------------------------------------


def test_singular_value_thresholding_solves_its_problem(rng):
    for shape in ((6, 4), (4, 6), (5, 5), (1, 3)):
        A = rng.standard_normal(shape)
        threshold = 0.6 * np.linalg.norm(A, 2)
        P = np.empty(shape)
        n_left = shrink(A, threshold, P)
        # 0 is in P - A + threshold d||P||_*: (A - P) / threshold = U V' + W with W orthogonal to both and |W| <= 1.
        assert 1 <= n_left <= min(shape)
        u, s, vt = np.linalg.svd(P)
        assert s[n_left - 1] > 1e-3
        np.testing.assert_allclose(s[n_left:], 0.0, atol=1e-12)
        W = (A - P) / threshold - u[:, :n_left] @ vt[:n_left]
        np.testing.assert_allclose(u[:, :n_left].T @ W, 0.0, atol=1e-12)
        np.testing.assert_allclose(W @ vt[:n_left].T, 0.0, atol=1e-12)
        assert np.linalg.norm(W, 2) <= 1.0 + 1e-12
        assert shrink(A, 1.01 * np.linalg.norm(A, 2), P) == 0
        assert not P.any()


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
