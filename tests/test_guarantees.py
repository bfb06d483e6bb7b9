"""The constants of the theorems from data, the noise constant, the burn-in and the bounds of IHT, by simulation."""

import math
from itertools import combinations

import numpy as np
import pytest

from oracles import keep_largest, keep_rank
from thresher import ConstrainedRegressor, Gram, OnlineHardThresholding, Rank, theory
from thresher.inference.guarantees import guarantee

# -- the noise constant ------------------------------------------------------------------------------------


def normal(rng, size):
    return rng.standard_normal(size)


def signs(rng, size):
    return rng.choice([-1.0, 1.0], size)  # sub-Gaussian with variance proxy one


def heavy(rng, size):
    return rng.standard_t(4, size) / math.sqrt(2.0)  # variance one


@pytest.mark.parametrize("d", [1, 2, 100, (4, 3), (1, 30)])
@pytest.mark.parametrize(("columns", "noise"), [(normal, normal), (signs, heavy), (normal, heavy)])
def test_noise_constant_bounds_the_largest_correlation_with_the_noise(d, columns, noise):
    rng, n, sigma, scale = np.random.default_rng(0), 30, 0.7, 3.0
    X = scale * columns(rng, (400, n, *np.atleast_1d(d)))
    sums = np.einsum("rn...,rn->r...", X, sigma * noise(rng, (400, n))) / math.sqrt(n)
    sizes = np.linalg.norm(sums, 2, axis=(1, 2)) if isinstance(d, tuple) else np.abs(sums).max(axis=1)
    found = math.sqrt((sizes**2).mean())
    bound = theory.noise_constant(d, sigma=sigma, scale=scale)
    assert found < bound < (3.5 if isinstance(d, int) else 8.0) * found
    if columns is normal:
        sharper = theory.noise_constant(d, sigma=sigma, scale=scale, gaussian=True)
        assert found < 1.05 * sharper < 1.05 * bound


def test_noise_that_depends_on_the_rows_has_no_such_constant():
    rng = np.random.default_rng(0)
    for n in (100, 10_000):
        X = rng.standard_normal((n, 5))
        noise = np.sign(X[:, 0])  # mean zero and variance one
        assert abs(X.T @ noise).max() / math.sqrt(n) > 0.7 * math.sqrt(n)
    assert theory.noise_constant(5, sigma=1.0, scale=1.0) < 3.0


# -- the burn-in -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("delta", [0.0, 0.01, 0.5, 0.9, 0.999])
@pytest.mark.parametrize("squared_error", [0.0, 1e-3, 1.0, 1e6])
@pytest.mark.parametrize("t0", [0, 3, 2000])
def test_after_the_burn_in_the_start_adds_no_more_than_the_noise(delta, squared_error, t0):
    known = {"squared_error": squared_error, "delta": delta, "s": 5, "alpha": 0.5, "sigma_x": 0.1, "t0": t0}
    t = np.arange(100_000)
    with np.errstate(divide="ignore", under="ignore"):
        noise = 8 * 5 * 0.1**2 / 0.5**2 / np.maximum(t + t0, 0)
        within = delta ** t.astype(float) * squared_error <= noise
    expected = 0 if within.all() else int(np.flatnonzero(~within)[-1]) + 1
    assert theory.burn_in(**known) == expected


def test_without_noise_there_is_no_statistical_rate():
    with pytest.raises(ValueError, match="sigma_x must be a positive"):
        theory.burn_in(squared_error=1.0, delta=0.5, s=5, alpha=0.5, sigma_x=0.0, t0=0)


# -- iterative hard thresholding ---------------------------------------------------------------------------


def test_iterative_hard_thresholding_stays_below_both_bounds():
    rng, d, s, n = np.random.default_rng(1), 12, 2, 4000
    X = rng.standard_normal((n, d))
    truth = np.zeros(d)
    truth[[2, 7]] = [3.0, -2.0]
    eps = rng.standard_normal(n)
    gram, moment = X.T @ X / n, X.T @ (X @ truth + eps) / n
    supports = np.array(list(combinations(range(d), 3 * s)))
    values = np.linalg.eigvalsh(gram[supports[:, :, None], supports[:, None, :]])
    level = {"alpha": values[:, 0].min(), "smoothness": values[:, -1].max()}
    assert 0.0 < theory.rip_constant(**level) < 1 / math.sqrt(32)
    theta, error = np.zeros(d), float(np.linalg.norm(truth))
    noise = np.abs(X.T @ eps).max() / n
    for k in range(30):
        distance = np.linalg.norm(theta - truth)
        norm = float(np.linalg.norm(eps))
        assert distance <= theory.iht_error_bound(k, error=error, noise_norm=norm, n=n, **level)
        assert distance <= theory.iht_recursion_bound(k, error=error, noise=noise, s=s, **level)
        theta = keep_largest(theta - (gram @ theta - moment), s)
    assert distance <= 6.0 * norm / math.sqrt(n)


def test_the_root_of_s_as_printed_would_be_too_small_for_the_step_of_the_proof():
    # The noise of one step acts on the union of two supports: 2s entries, all of which may be as large as the largest.
    s, noise = 8, 0.5
    on_union = np.full(2 * s, noise)
    assert np.linalg.norm(on_union) > math.sqrt(s) * noise
    assert 2 * np.linalg.norm(on_union) * 2 == theory.iht_recursion_bound(
        10**6, error=0.0, noise=noise, s=s, alpha=1.0, smoothness=1.0
    )


def test_a_condition_number_of_143_is_the_limit():
    limit = 1 / math.sqrt(32)
    assert (1 + limit) / (1 - limit) == pytest.approx(1.43, abs=0.005)
    theory.iht_error_bound(1, error=1.0, noise_norm=1.0, n=1, alpha=1 - limit, smoothness=1 + limit)
    with pytest.raises(ValueError, match="isometry constant is"):
        theory.iht_error_bound(1, error=1.0, noise_norm=1.0, n=1, alpha=0.8, smoothness=1.0)


# -- from a Gram -------------------------------------------------------------------------------------------


def test_constants_are_on_the_safe_side_of_all_supports(rng):
    X = rng.standard_normal((3000, 9)) * np.linspace(1.0, 1.15, 9)
    gram = Gram(9).absorb(X, np.zeros(3000))
    found = guarantee(gram, 1)
    second = X.T @ X / 3000
    for size in range(1, 10):
        supports = np.array(list(combinations(range(9), min(2 * size, 9))))
        values = np.linalg.eigvalsh(second[supports[:, :, None], supports[:, None, :]])
        alpha, smoothness = values[:, 0].min(), values[:, -1].max()
        enough = size > (smoothness / alpha) ** 2
        if size == found.s:
            assert found.alpha <= alpha
            assert smoothness <= found.smoothness <= 1.1 * smoothness
            assert found.eta == 1.0 / found.smoothness
            assert found.kappa == found.smoothness / found.alpha >= smoothness / alpha
            assert enough
        if size < found.s:
            assert not enough or size <= (found.smoothness / found.alpha) ** 2 * 1.2
    assert found.minimum_size == found.s
    assert found.applies
    assert found.n_steps > found.critical_steps
    assert found.delta == theory.contraction(
        found.n_steps, s=found.s, s_star=1, eta=found.eta, alpha=found.alpha, smoothness=found.smoothness
    )
    assert str(found).endswith("the theorems apply")


def test_what_is_not_guaranteed_is_said(rng):
    X = rng.standard_normal((3000, 9))
    gram = Gram(9).absorb(X, np.zeros(3000))
    few = guarantee(Gram(9).absorb(X[:5], np.zeros(5)), 1)
    assert (few.applies, few.minimum_size, few.kappa) == (False, None, np.inf)
    assert "more rows" in few.reason
    assert "is not above" in guarantee(gram, 2, s=2).reason
    assert "exceeds 1/L" in guarantee(gram, 1, s=5, eta=2.0).reason
    short = guarantee(gram, 1, s=5, eta=0.5, n_steps=1)
    assert "K = 1 steps do not contract" in short.reason
    assert short.critical_steps >= 1.0
    with pytest.raises(ValueError, match="do not apply: K = 1"):
        short.error_bound(3, squared_error=1.0, sigma_x=1.0)
    with pytest.raises(ValueError, match="exceeds 9"):
        guarantee(gram, 10)
    with pytest.raises(ValueError, match="another product"):
        guarantee(gram, 1, shape=(2, 4))
    ones = guarantee(Gram(2).absorb([[1.0, 0.0]] * 9, [0.0] * 9), 1)
    assert ones.alpha == 0.0  # a column of zeros


@pytest.mark.parametrize("kind", ["vector", "matrix"])
def test_the_bound_from_a_gram_holds_on_200_streams(kind):
    shape, s_star = ((8,), 1) if kind == "vector" else ((3, 3), 1)
    t0, rounds, sigma = 1500, 12, 1.0
    rng = np.random.default_rng(5)
    errors, bounds = np.zeros(rounds + 1), np.zeros(rounds + 1)
    for _ in range(200):
        truth = rng.standard_normal(shape)
        truth = keep_largest(truth, 1) if kind == "vector" else keep_rank(truth, 1)
        X = rng.standard_normal((t0 + rounds, *shape))
        y = (X * truth).reshape(len(X), -1).sum(axis=1) + sigma * rng.standard_normal(len(X))
        rows = X.reshape(len(X), -1)
        batch = Gram(rows.shape[1]).absorb(rows[:t0], y[:t0])
        found = guarantee(batch, s_star, shape=None if kind == "vector" else shape)
        assert found.applies
        parameters = {"n_steps": found.n_steps, "step_size": found.eta, "n_warmup": t0}
        model = (
            OnlineHardThresholding(found.s, **parameters)
            if kind == "vector"
            else ConstrainedRegressor(Rank(found.s), **parameters)
        )
        model.partial_fit(X[:t0], y[:t0])
        start = float((truth**2).sum())
        errors[0] += start / 200
        for t in range(1, rounds + 1):
            model.partial_fit(X[t0 + t - 1 : t0 + t], y[t0 + t - 1 : t0 + t])
            errors[t] += ((model.coef_ - truth) ** 2).sum() / 200
        d = shape[0] if kind == "vector" else shape
        sigma_x = theory.noise_constant(d, sigma=sigma, scale=1.0, gaussian=True)
        bounds += found.error_bound(np.arange(rounds + 1), squared_error=start, sigma_x=sigma_x) / 200
    assert (errors <= bounds).all()
    assert errors[-1] > 0.0005 * bounds[-1]  # so it says something
