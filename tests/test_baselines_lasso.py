"""Lassos kept current from summaries, against scikit-learn and plain NumPy on the rows."""

import warnings

import numpy as np
import pytest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import Lasso, LassoCV

from oracles import design
from thresher.baselines import OnlineLasso, OnlineLinearizedLasso, OSLasso


def problem(rng, kind="correlated", n=400, d=25, offset=0.0):
    X = design(rng, kind, n, d) + offset
    return X, X[:, 2] - 1.5 * X[:, 5] + 0.5 * X[:, 6] + 0.7 * rng.standard_normal(n)


def lasso(X, y, penalty, intercept=False):
    return Lasso(penalty, fit_intercept=intercept, tol=1e-14, max_iter=1_000_000).fit(X, y)


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("kind", ["correlated", "scaled", "late", "constant", "duplicated"])
def test_online_lasso_is_the_lasso_on_all_rows_so_far(rng, kind, intercept):
    X, y = problem(rng, kind, offset=3.0 if intercept else 0.0)
    model = OnlineLasso(0.6, noise=0.8, fit_intercept=intercept, tol=1e-13)
    for a, b in ((0, 1), (1, 10), (10, 40), (40, 300), (300, 400)):
        model.partial_fit(X[a:b], y[a:b])
        assert model.penalty_ == pytest.approx(0.6 * 0.8 * np.sqrt(np.log(25) / b), rel=1e-12)
        expected = lasso(X[:b], y[:b], model.penalty_, intercept)
        # Twins, and fewer rows than columns, leave the coefficients open, but never the predictions.
        np.testing.assert_allclose(model.predict(X[:b]), expected.predict(X[:b]), rtol=0, atol=1e-6)
        if kind not in (("duplicated",) if intercept else ("duplicated", "constant")) and b > 25:
            np.testing.assert_allclose(model.coef_, expected.coef_, rtol=0, atol=1e-6)
            assert model.intercept_ == pytest.approx(expected.intercept_, abs=1e-6)


def test_online_lasso_far_from_zero_and_with_many_columns_in_the_descent(rng):
    X, y = problem(rng, "independent", n=600, d=150)
    model = OnlineLasso(0.05, noise=0.7, n_warmup=300, round_size=25, tol=1e-13).partial_fit(X, y)
    assert len(model.support_) > 100
    np.testing.assert_allclose(model.coef_, lasso(X, y, model.penalty_).coef_, rtol=0, atol=1e-7)
    near = OnlineLasso(0.5, fit_intercept=True, noise=0.7).partial_fit(X[:, :20], y)
    far = OnlineLasso(0.5, fit_intercept=True, noise=0.7).partial_fit(X[:, :20] + 1e7, y)
    np.testing.assert_allclose(far.coef_, near.coef_, rtol=0, atol=1e-7)


def test_rounds_of_the_online_lasso(rng):
    X, y = problem(rng)
    model = OnlineLasso(0.6, noise=0.8, n_warmup=50, round_size=20)
    assert not model.partial_fit(X[:69], y[:69]).coef_.any()
    first = model.partial_fit(X[69:70], y[69:70]).coef_
    assert first.any()
    np.testing.assert_array_equal(model.partial_fit(X[70:89], y[70:89]).coef_, first)
    np.testing.assert_allclose(first, lasso(X[:70], y[:70], 0.48 * np.sqrt(np.log(25) / 70)).coef_, atol=1e-6)
    with pytest.raises(ValueError, match="start over"):
        model.set_params(fit_intercept=True).partial_fit(X, y)
    assert model.fit(X, y).intercept_ != 0.0


def test_what_is_not_solved_is_told(rng):
    X, y = problem(rng, "independent", n=300, d=20)
    jumpy = X.copy()
    jumpy[:5] *= 1e6  # a condition number of 1e12
    for rows in (X + 1e4, jumpy):
        with pytest.warns(ConvergenceWarning, match="fit_intercept=True") as caught:
            model = OnlineLasso(0.5, noise=1.0, n_warmup=290).partial_fit(rows, y)
        assert len(caught) == 1
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            model.partial_fit(rows[:3], y[:3])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        OnlineLasso(0.5, noise=1.0, n_warmup=290, fit_intercept=True).partial_fit(X + 1e4, y)


@pytest.mark.parametrize("intercept", [False, True])
def test_estimated_noise_is_that_of_one_step_ahead_predictions(rng, intercept):
    X, y = problem(rng, n=60, d=8)
    model, errors = OnlineLasso(0.9, fit_intercept=intercept), []
    for t in range(1, 61):
        # The best intercept for no rows is whatever fits the first.
        prediction = model.predict(X[t - 1 : t])[0] if t > 1 else y[0] if intercept else 0.0
        errors.append(y[t - 1] - prediction)
        model.partial_fit(X[t - 1 : t], y[t - 1 : t])
    columns = X.var(axis=0) if intercept else (X**2).mean(axis=0)
    expected = 0.9 * np.sqrt(np.mean(np.square(errors)) * columns.mean() * np.log(8) / 60)
    assert model.penalty_ == pytest.approx(expected, rel=1e-8)


def test_estimated_noise_of_the_linearised_lasso(rng):
    X, y = problem(rng, n=100, d=8)
    model, errors = OnlineLinearizedLasso(0.9, n_warmup=30, n_wait=10), []
    model.partial_fit(X[:30], y[:30])
    spread = np.sqrt((y[:30] ** 2).mean() * (X[:30] ** 2).mean())
    assert model.penalty_ == pytest.approx(0.9 * spread * np.sqrt(np.log(8) / 30))
    for i in range(30, 100):
        errors.append(y[i] - X[i] @ model.coef_)
        model.partial_fit(X[i : i + 1], y[i : i + 1])
    spread = np.sqrt(np.mean(np.square(errors)) * (X[30:] ** 2).mean())
    assert model.penalty_ == pytest.approx(0.9 * spread * np.sqrt(np.log(8) / 70), rel=1e-9)


def linearised(X, y, t0, wait, K, C, sigma, share=1.0, tol=1e-14, most=5000):
    """By proximal gradient steps on each surrogate, from its definition."""
    d = X.shape[1]
    X0, y0 = X[:t0], y[:t0]
    theta = lasso(X0, y0, C * sigma * np.sqrt(np.log(d) / t0)).coef_
    step = share / np.linalg.eigvalsh(X0.T @ X0 / t0)[-1]
    for t in range(wait + 1, len(X) - t0 + 1):
        Xt, yt = X[t0 : t0 + t], y[t0 : t0 + t]
        level = C * sigma * np.sqrt(np.log(d) / t)
        short = tol * np.sqrt((yt**2).mean() / (X0**2).mean())
        for _ in range(K):
            tilt = Xt.T @ (Xt @ theta - yt) / t - X0.T @ (X0 @ theta - y0) / t0
            for _ in range(most):
                z = theta - step * (X0.T @ (X0 @ theta - y0) / t0 + tilt)
                moved = np.sign(z) * np.maximum(np.abs(z) - step * level, 0.0)
                done = np.linalg.norm(moved - theta) <= short
                theta = moved
                if done:
                    break
    return theta


@pytest.mark.parametrize("K", [1, 3])
def test_online_linearized_lasso_solves_its_surrogates(rng, K):
    X, y = problem(rng, n=85, d=10)
    settings = {"penalty": 0.8, "noise": 0.9, "n_warmup": 40, "n_wait": 12, "n_steps": K}
    model = OnlineLinearizedLasso(**settings, step_size=1.0, tol=1e-13, max_sweeps=10_000)
    expected = linearised(X, y, 40, 12, K, 0.8, 0.9)
    np.testing.assert_allclose(model.partial_fit(X, y).coef_, expected, rtol=0, atol=1e-8)
    assert model.penalty_ == pytest.approx(0.8 * 0.9 * np.sqrt(np.log(10) / 45))
    early = OnlineLinearizedLasso(**settings, step_size=0.3, tol=1e-3, max_sweeps=7)
    # The start, the lasso of the batch, is found to the same tolerance; here it has to be exact.
    early.set_params(tol=1e-14, max_sweeps=10_000).partial_fit(X[:40], y[:40])
    early.set_params(tol=1e-3, max_sweeps=7).partial_fit(X[40:], y[40:])
    stopped = linearised(X, y, 40, 12, K, 0.8, 0.9, share=0.3, tol=1e-3, most=7)
    np.testing.assert_allclose(early.coef_, stopped, rtol=0, atol=1e-8)
    assert np.abs(stopped - expected).max() > 1e-4


def test_a_fixed_point_of_the_linearised_lasso_is_the_lasso_of_the_stream(rng):
    X, y = problem(rng, n=300)
    model = OnlineLinearizedLasso(0.5, n_warmup=100, n_wait=199, n_steps=1000, tol=1e-14, max_sweeps=10_000)
    model.partial_fit(X, y)
    slope = X[100:].T @ (X[100:] @ model.coef_ - y[100:]) / 200
    active = model.coef_ != 0.0
    assert 3 <= active.sum() < 25
    np.testing.assert_allclose(slope[active], -model.penalty_ * np.sign(model.coef_[active]), atol=1e-9)
    assert np.abs(slope[~active]).max() <= model.penalty_ * (1 + 1e-9)
    np.testing.assert_allclose(model.coef_, lasso(X[100:], y[100:], model.penalty_).coef_, atol=1e-8)


def test_a_surrogate_without_minimum_is_reported(rng):
    X, y = problem(rng, "independent", n=400, d=200)
    with pytest.warns(ConvergenceWarning, match="larger batch"):
        model = OnlineLinearizedLasso(0.1, noise=0.7, n_warmup=20, n_wait=5, step_size=1.0).partial_fit(X, y)
    assert model.diverged_at_ > 20
    assert np.isfinite(model.coef_).all()


def test_os_lasso_by_hand(rng):
    X, y = problem(rng, n=200)
    start = LassoCV(cv=4, fit_intercept=False, random_state=0).fit(X[:50], y[:50]).coef_
    F = np.flatnonzero(start)
    assert 2 < len(F) < 25
    theta = start[F]
    for n in range(51, 201):
        for _ in range(3):
            A, b = X[:n, F].T @ X[:n, F], X[:n, F].T @ y[:n]
            theta = theta - 0.04 * (A @ theta - b) / n
    model = OSLasso(50, n_steps=3, step_size=0.04, cv=4).partial_fit(X, y)
    np.testing.assert_array_equal(model.support_, F)
    np.testing.assert_allclose(model.coef_[F], theta, rtol=1e-8, atol=1e-10)


def test_os_lasso_by_samples(rng):
    X, y = problem(rng, n=200)
    start = LassoCV(cv=5, fit_intercept=False, random_state=0).fit(X[:50], y[:50]).coef_
    F = np.flatnonzero(start)
    theta, iterates = start[F], []
    for n in range(50, 200):
        theta = theta - 0.01 * (X[n, F] @ theta - y[n]) * X[n, F]
        iterates.append(theta)
    for average, expected in ((False, theta), (True, np.mean(iterates, axis=0))):
        model = OSLasso(50, step_size=0.01, update="samples", average=average)
        np.testing.assert_allclose(model.partial_fit(X[:50], y[:50]).coef_, start, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(model.partial_fit(X[50:], y[50:]).coef_[F], expected, rtol=1e-8)


def test_os_lasso_with_too_long_a_step_or_nothing_to_find(rng):
    X, y = problem(rng)
    for update in ("rounds", "samples"):
        with pytest.warns(ConvergenceWarning, match="smaller step_size"):
            model = OSLasso(50, step_size=2.0, update=update).partial_fit(X, y)
        assert np.isfinite(model.coef_).all()
        assert 50 < model.diverged_at_ < 400
    noise = rng.standard_normal((300, 5))
    assert not OSLasso(20, cv=2).partial_fit(noise, np.zeros(300)).coef_.any()
    with pytest.raises(ValueError, match="larger n_warmup"):
        OSLasso(4).partial_fit(X, y)


def test_a_batch_that_fails_is_not_counted(rng, monkeypatch):
    X, y = problem(rng, n=100)
    expected = OSLasso(30, step_size=0.05).partial_fit(X, y).coef_
    model = OSLasso(30, step_size=0.05).partial_fit(X[:20], y[:20])
    with monkeypatch.context() as patch:
        patch.setattr(LassoCV, "fit", lambda *_: (_ for _ in ()).throw(MemoryError()))
        with pytest.raises(MemoryError):
            model.partial_fit(X[20:], y[20:])
    assert model.n_samples_seen_ == 20
    np.testing.assert_array_equal(model.partial_fit(X[20:], y[20:]).coef_, expected)
