"""The posterior of a sparse model: against its NumPy twin, against all models enumerated, and at the edges."""

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import norm
from sklearn.covariance import OAS

import thresher
from thresher import Gram, SparseRegressor
from thresher.solvers import posterior_reference
from thresher.solvers._posterior import Chain, Columns
from thresher.solvers.posterior import Posterior

SHARES = np.array([1 / 16, 1 / 8, 1 / 4, 1 / 2, 3 / 4, 15 / 16, 63 / 64, 255 / 256])


def standardised(rng, n, d, coef, noise=1.0):
    X = rng.standard_normal((n, d))
    X[:, 1] = X[:, 0] + 0.3 * rng.standard_normal(n)
    y = X[:, : len(coef)] @ coef + noise * rng.standard_normal(n)
    X, y = X - X.mean(axis=0), y - y.mean()
    return X * np.sqrt(n / (X**2).sum(axis=0)), y * np.sqrt(n / (y**2).sum())


@pytest.mark.parametrize("n", [15, 300])
def test_chain_equals_its_twin_draw_by_draw(n):
    rng = np.random.default_rng(n)
    X, y = standardised(rng, n, 12, [2.0, 0.0, -1.0])
    summary = Gram(12).absorb(X, y)
    prior = np.array([3.0, *[0.3] * len(SHARES)])
    columns = Columns(summary.moments(True), np.ones(12), 1.0)
    chain = Chain(columns, SHARES, prior, n - 1.0, 1e-9, np.zeros(12), np.random.default_rng(7))
    twin = posterior_reference.Chain(X, y, SHARES, prior, n - 1.0, np.random.default_rng(7))
    chain.run(30, 3, True)
    twin.run(30, 3)
    np.testing.assert_array_equal(chain.origin, twin.origin)
    np.testing.assert_allclose(chain.coef, twin.b, rtol=1e-8, atol=1e-12)
    np.testing.assert_allclose(chain.left, X.T @ (y - X @ twin.b), atol=1e-9 * n)
    np.testing.assert_allclose(chain.variance, twin.variance, rtol=1e-8)
    for name in ("mean", "square", "inclusion"):
        np.testing.assert_allclose(getattr(chain, name), getattr(twin, name), rtol=1e-8, atol=1e-12)


def test_sweeps_that_do_not_count_draw_the_same():
    rng = np.random.default_rng(3)
    X, y = standardised(rng, 60, 30, [1.0, 0.5])
    columns = Columns(Gram(30).absorb(X, y).moments(True), np.ones(30), 1.0)
    chains = [
        Chain(columns, SHARES, np.array([5.0, *[0.2] * 8]), 59.0, 1e-9, np.zeros(30), np.random.default_rng(0))
        for _ in range(2)
    ]
    for chain, count in zip(chains, (True, False), strict=True):
        chain.run(50, 2, count)
    np.testing.assert_array_equal(chains[0].coef, chains[1].coef)
    assert (chains[0].n_draws, chains[1].n_draws) == (50, 0)


def exact_inclusion(X, y, share, concentration, freedom):
    """Inclusion probabilities by enumeration of all models, for a prior with a single scale.

    With sigma^2 integrated out, the marginal likelihood of a model of k columns is
    (1 - share)^(k / 2) |K|^(-1/2) (y'y - m)^(-freedom / 2), m = share c' K^-1 c / n, K = (1 - share) I + share G / n.
    """
    n, d = X.shape
    prior0, prior1 = concentration
    logs, models = [], list(itertools.product([0, 1], repeat=d))
    for model in models:
        S = np.flatnonzero(model)
        k = len(S)
        K = (1 - share) * np.eye(k) + share * (X[:, S].T @ X[:, S]) / n
        c = X[:, S].T @ y
        rest = y @ y - (share / n * c @ np.linalg.solve(K, c) if k else 0.0)
        evidence = 0.5 * k * np.log1p(-share) - 0.5 * np.linalg.slogdet(K)[1] - 0.5 * freedom * np.log(rest)
        logs.append(evidence + gammaln(prior1 + k) + gammaln(prior0 + d - k))
    return np.exp(logs - logsumexp(logs)) @ np.array(models)


@pytest.mark.parametrize("moves", [0, 3])
def test_inclusion_probabilities_are_those_of_all_models_enumerated(moves):
    rng = np.random.default_rng(11)
    X, y = standardised(rng, 40, 6, [0.5, 0.0, -0.4], noise=1.5)
    columns = Columns(Gram(6).absorb(X, y).moments(True), np.ones(6), 1.0)
    prior = np.array([2.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0, 0.0, 0.0])  # shares with parameter 0 have probability 0
    chain = Chain(columns, SHARES, prior, 39.0, 1e-9, np.zeros(6), np.random.default_rng(0))
    chain.run(100, moves, False)
    chain.run(40_000, moves, True)
    expected = exact_inclusion(X, y, 15 / 16, (2.0, 1.0), 39.0)
    assert 0.1 < expected.min() < expected.max() < 0.9  # nothing is clear from the start
    np.testing.assert_allclose(chain.inclusion / chain.n_draws, expected, atol=0.02)


def test_posterior_mean_predicts_and_knows_its_error():
    rng = np.random.default_rng(5)
    X = rng.standard_normal((300, 50)) @ np.diag(np.geomspace(1e-3, 1e3, 50)) + 10.0
    coef = np.zeros(50)
    coef[[3, 20, 40]] = np.array([1.0, -1.0, 0.5]) / X.std(axis=0)[[3, 20, 40]]
    y = 1e4 + X @ coef + rng.standard_normal(300)
    result = thresher.posterior(Gram(50).absorb(X, y))
    np.testing.assert_array_equal(np.flatnonzero(result.inclusion_probabilities > 0.9), [3, 20, 40])
    fitted = X @ result.coef + result.intercept
    error = np.mean((fitted - 1e4 - X @ coef) ** 2)
    assert 0.2 * result.risk < error < 3.0 * result.risk
    assert 0.0 < result.monte_carlo_error < 0.1 * result.risk
    assert abs(result.noise_variance - 1.0) < 0.2
    lower, upper = result.intervals().T
    assert np.all((lower <= coef) & (coef <= upper))
    assert np.all(lower[[3, 20, 40]] * upper[[3, 20, 40]] > 0.0)


def test_deviation_of_the_intercept_is_that_of_the_draws():
    rng = np.random.default_rng(14)
    X, y = standardised(rng, 50, 9, [1.0, 0.0, -0.5])
    columns = Columns(Gram(9).absorb(X, y).moments(True), np.ones(9), 1.0)
    direction, prior = 1e6 + rng.standard_normal(9), np.array([3.0, *[0.3] * len(SHARES)])
    chain = Chain(columns, SHARES, prior, 49.0, 1e-9, np.zeros(9), np.random.default_rng(1), direction)
    values = []
    for _ in range(40):
        chain.run(1, 2, True)
        values.append(direction @ chain.coef)
    assert chain.level == pytest.approx(np.mean(values), rel=1e-12)
    assert chain.swing / 40 == pytest.approx(np.var(values), rel=1e-9)


def test_intercepts_are_as_far_from_the_truth_as_stated():
    scores = []
    for seed in range(60):
        rng = np.random.default_rng((15, seed))
        X, coef = 1.0 + rng.standard_normal((150, 30)), np.zeros(30)
        coef[:6] = 0.4 * rng.standard_normal(6)
        result = thresher.posterior(Gram(30).absorb(X, 2.0 + X @ coef + rng.standard_normal(150)))
        scores.append((result.intercept - 2.0) / result.intercept_deviation)
    assert 0.7 < np.std(scores) < 1.3  # its standard error is 0.09
    assert thresher.posterior(Gram(30).absorb(X, X @ coef), fit_intercept=False).intercept_deviation == 0.0


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_risk_on_new_rows_is_that_of_a_shrunken_covariance(fit_intercept):
    rng = np.random.default_rng(12)
    X = (rng.standard_normal((70, 20)) @ rng.standard_normal((20, 20))) * np.geomspace(0.1, 10.0, 20)
    X[:, 4] = 0.0  # a column that says nothing
    X -= X.mean(axis=0)  # so that moments about zero and about the mean are the same
    summary = Gram(20).absorb(X, X[:, 0] + 5.0 * rng.standard_normal(70))
    result = thresher.posterior(summary, fit_intercept=fit_intercept)
    rest = np.delete(np.arange(20), 4)
    share = OAS().fit(X[:, rest] / X[:, rest].std(axis=0)).shrinkage_
    assert 0.05 < share < 0.95
    apart = np.sum((result.standard_deviation * X.std(axis=0)) ** 2)
    expected = (1.0 - share) * result.risk + share * apart + fit_intercept * result.noise_variance / 70
    assert result.prediction_risk(summary, fit_intercept) == pytest.approx(expected, rel=1e-6)
    with pytest.raises(ValueError, match="the summary has 3 features, the posterior 20"):
        result.prediction_risk(Gram(3).absorb(X[:, :3], X[:, 0]))


def test_risk_on_new_rows_is_the_error_there():
    ratios = []
    for seed in range(40):
        rng = np.random.default_rng((13, seed))
        X, coef = rng.standard_normal((80, 60)), np.zeros(60)
        X[:, 1::2] += X[:, ::2]
        coef[:8] = rng.standard_normal(8)
        summary = Gram(60).absorb(X, X @ coef + 2.0 * rng.standard_normal(80))
        result = thresher.posterior(summary)
        covariance = np.kron(np.eye(30), [[1.0, 1.0], [1.0, 2.0]])
        miss = result.coef - coef
        ratios.append(result.prediction_risk(summary) / (miss @ covariance @ miss + result.intercept**2))
    # The standard error of the mean of the logarithms is 0.1; the risk on the rows seen is 0.67.
    assert 0.7 < np.exp(np.mean(np.log(ratios))) < 1.4


def test_the_same_seed_gives_the_same_numbers_and_another_does_not():
    rng = np.random.default_rng(6)
    X = rng.standard_normal((80, 20))
    summary = Gram(20).absorb(X, X[:, 0] + rng.standard_normal(80))
    one, two, other = (thresher.posterior(summary, random_state=seed) for seed in (0, 0, 1))
    np.testing.assert_array_equal(one.coef, two.coef)
    assert not np.array_equal(one.coef, other.coef)
    distance = np.mean((X @ (one.coef - other.coef)) ** 2)
    assert distance < 10.0 * (one.monte_carlo_error + other.monte_carlo_error)


def test_scales_and_shifts_of_columns_do_not_matter():
    rng = np.random.default_rng(8)
    X = rng.standard_normal((100, 15))
    y = X[:, 2] + rng.standard_normal(100)
    scale, shift = 2.0 ** rng.integers(-20, 20, 15), rng.standard_normal(15)
    plain = thresher.posterior(Gram(15).absorb(X, y))
    other = thresher.posterior(Gram(15).absorb(scale * (X + shift), 1e6 * y - 3.0))
    np.testing.assert_allclose(other.coef * scale, 1e6 * plain.coef, rtol=1e-5, atol=1e-3)
    np.testing.assert_allclose(other.risk, 1e12 * plain.risk, rtol=1e-5)


def test_copies_of_a_column_share_its_effect():
    rng = np.random.default_rng(9)
    X = rng.standard_normal((200, 10))
    X[:, 7] = X[:, 2]
    y = 2.0 * X[:, 2] + rng.standard_normal(200)
    result = thresher.posterior(Gram(10).absorb(X, y))
    assert result.coef[2] + result.coef[7] == pytest.approx(2.0, abs=0.3)
    assert min(result.inclusion_probabilities[[2, 7]]) > 0.2  # chains change places


@pytest.mark.parametrize("case", ["one row", "two rows", "three rows", "constant y", "perfect", "d = 1"])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_edges(case, fit_intercept):
    rng = np.random.default_rng(1)
    n = {"one row": 1, "two rows": 2, "three rows": 3}.get(case, 30)
    d = 1 if case == "d = 1" else 8
    X = rng.standard_normal((n, d))
    X[:, d - 1] = X[:, d - 1] if d == 1 else 3.0
    y = rng.standard_normal(n)
    if case == "constant y":
        y[:] = 2.0
    if case == "perfect":
        y = 3.0 * X[:, 1] - X[:, 4]
    result = thresher.posterior(Gram(d).absorb(X, y), fit_intercept=fit_intercept)
    arrays = (result.coef, result.inclusion_probabilities, result.standard_deviation, result.intervals())
    assert all(np.isfinite(array).all() for array in arrays)
    assert np.isfinite([result.intercept, result.noise_variance, result.risk, result.monte_carlo_error]).all()
    assert ((result.inclusion_probabilities >= 0.0) & (result.inclusion_probabilities <= 1.0)).all()
    if case == "perfect":
        np.testing.assert_allclose(result.coef, [0, 3, 0, 0, -1, 0, 0, 0], atol=1e-4)
    if case == "constant y" and fit_intercept:
        assert not result.coef.any()
        assert result.intercept == 2.0


def test_weights_are_repeats():
    rng = np.random.default_rng(2)
    X = rng.standard_normal((50, 10))
    y = X[:, 1] + rng.standard_normal(50)
    repeats = rng.integers(0, 3, 50)
    weighted = thresher.posterior(Gram(10).absorb(X, y, repeats))
    repeated = thresher.posterior(Gram(10).absorb(np.repeat(X, repeats, axis=0), np.repeat(y, repeats)))
    np.testing.assert_allclose(weighted.coef, repeated.coef, rtol=1e-6, atol=1e-9)


def test_intervals_are_quantiles_of_a_point_mass_and_a_normal():
    share, mean, spread = (
        np.array([0.5, 0.97, 1.0, 0.01]),
        np.array([1.0, -2.0, 3.0, 5.0]),
        np.array([1.0, 0.5, 2.0, 1.0]),
    )
    second = share * (mean**2 + spread**2)
    first = share * mean
    result = Posterior(first, 0.0, 0.0, share, np.sqrt(second - first**2), 1.0, 1.0, 0.0, 1)
    rng = np.random.default_rng(0)
    draws = np.where(rng.random((200_000, 4)) < share, mean + spread * rng.standard_normal((200_000, 4)), 0.0)
    np.testing.assert_allclose(result.intervals(0.9), np.quantile(draws, [0.05, 0.95], axis=0).T, atol=0.03)
    np.testing.assert_allclose(result.intervals(0.9)[2], 3.0 + 2.0 * norm.ppf([0.05, 0.95]))
    with pytest.raises(ValueError, match="level must lie between 0 and 1"):
        result.intervals(1.0)


def test_float32_and_columns_read_from_the_buffer():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((500, 20)).astype(np.float32)
    y = X[:, 3] - X[:, 9] + rng.standard_normal(500)
    double, single = (thresher.posterior(Gram(20, dtype).absorb(X, y)) for dtype in (np.float64, np.float32))
    np.testing.assert_allclose(single.coef, double.coef, atol=0.03)


def test_what_is_wrong_is_refused():
    with pytest.raises(ValueError, match="The summary is empty"):
        thresher.posterior(Gram(5))
    with pytest.raises(ValueError, match="tolerance must be positive"):
        thresher.posterior(Gram(1).absorb([[1.0]], [1.0]), tolerance=0.0)
    summary = Gram(5).absorb(np.eye(5), np.arange(5.0))
    columns = Columns(summary.moments(True), np.ones(5), 1.0)
    rng, prior = np.random.default_rng(0), np.ones(9)
    with pytest.raises(ValueError, match="scales of shape"):
        Columns(summary.moments(True), np.ones(4), 1.0)
    with pytest.raises(ValueError, match="wrong shape"):
        Chain(columns, SHARES, prior, 4.0, 1e-9, np.zeros(4), rng)
    with pytest.raises(ValueError, match="wrong shape"):
        Chain(columns, SHARES, prior[:8], 4.0, 1e-9, np.zeros(5), rng)
    with pytest.raises(ValueError, match="coefficients"):
        columns.residual(np.zeros(6), 0.0)
    with pytest.raises(ValueError, match="Feature 7 does not exist"):
        thresher.posterior(summary, start=[7])


def test_intervals_may_be_asked_for_more_features_than_there_are_rows(rng):
    X = rng.standard_normal((40, 60))
    model = SparseRegressor().fit(X, 3.0 * X[:, 5] + rng.standard_normal(40))
    every = model.confidence_intervals(method="posterior", features=range(60))
    assert len(every) == 60
    few = model.confidence_intervals(method="posterior", features=[5, 7])
    np.testing.assert_array_equal(few.lower, every.lower[[5, 7]])
    assert few.degrees_of_freedom == every.degrees_of_freedom == 40 - 1 - 1
