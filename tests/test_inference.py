import json
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.linear_model import Lasso

from thresher import Gram, SparseRegressor, posterior
from thresher.inference.correlations import Correlations
from thresher.inference.diagnostics import diagnose
from thresher.inference.intervals import (
    debiased_intervals,
    noise_variance,
    posterior_intervals,
    residual_sum,
    split_intervals,
)
from thresher.inference.nodewise import nodewise


def correlated(rng, n, d, rho=0.5):
    X = rng.standard_normal((n, d))
    for j in range(1, d):
        X[:, j] = rho * X[:, j - 1] + np.sqrt(1 - rho**2) * X[:, j]
    return X


def sparse_fit(X, y, support):
    """Least squares with an intercept on some columns, from the rows."""
    coef = np.zeros(X.shape[1])
    design = np.column_stack([np.ones(len(X)), X[:, support]])
    coef[support] = np.linalg.lstsq(design, y, rcond=None)[0][1:]
    return coef


def textbook(X, y, level, centred):
    """Least squares estimates, standard errors and t intervals, from the rows."""
    design = np.column_stack([np.ones(len(X)), X]) if centred else X
    beta = np.linalg.lstsq(design, y, rcond=None)[0]
    freedom = len(y) - design.shape[1]
    variance = ((y - design @ beta) ** 2).sum() / freedom
    error = np.sqrt(variance * np.diag(np.linalg.inv(design.T @ design)))
    margin = stats.t.ppf(0.5 + level / 2, freedom) * error
    return [part[int(centred) :] for part in (beta, error, beta - margin, beta + margin)]


def assert_intervals(found, expected, rtol=1e-8):
    for name, values in zip(("estimate", "standard_error", "lower", "upper"), expected, strict=True):
        np.testing.assert_allclose(getattr(found, name), values, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("n", [150, 700])  # in the buffer alone, and folded
def test_rows_of_correlations_are_those_of_the_rows(rng, centred, n):
    X = 3.0 + correlated(rng, n, 12) * np.exp(rng.normal(size=12))
    X[:, 4] = 2.0 if centred else 0.0
    found = Correlations(Gram(12).absorb(X, X[:, 0]), centred)
    C = X - X.mean(axis=0) * centred
    norms = np.linalg.norm(C, axis=0)
    expected = C.T @ C / np.outer(norms + (norms == 0), norms + (norms == 0))
    np.testing.assert_allclose(found.rows([7, 4, 0]), expected[[7, 4, 0]], atol=1e-12)
    np.testing.assert_allclose(found.rows(range(12)), expected, atol=1e-12)
    np.testing.assert_allclose(found.scale, norms / np.sqrt(n), atol=1e-12)


@pytest.mark.parametrize("centred", [True, False])
def test_noise_variance_is_that_of_repeated_rows(rng, centred):
    X, w = rng.standard_normal((60, 5)), rng.integers(0, 4, 60)
    y = X[:, 1] + rng.standard_normal(60) + 2.0
    coef = np.array([0.0, 0.9, 0.0, -0.1, 0.0])
    summary = Gram(5).absorb(X, y, w.astype(float))
    residual = np.repeat(y - X @ coef, w)
    residual = residual - residual.mean() * centred
    np.testing.assert_allclose(residual_sum(summary, coef, centred), residual @ residual, rtol=1e-12)
    expected = residual @ residual / (w.sum() - 2 - centred)
    np.testing.assert_allclose(noise_variance(summary, coef, centred), expected, rtol=1e-12)


def test_without_degrees_of_freedom_the_error_says_what_to_do(rng):
    summary = Gram(4).absorb(rng.standard_normal((3, 4)), rng.standard_normal(3))
    noise_variance(summary, [1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"weight 3 .*2 coefficient.*wait for 4 rows"):
        noise_variance(summary, [1.0, 1.0, 0.0, 0.0])
    with pytest.raises(ValueError, match="degree of freedom"):
        debiased_intervals(summary, np.ones(4), [0])


@pytest.mark.parametrize("weight", [1.0, 1.0 + 1e-15, 1.999, 2.0])
def test_with_less_than_one_degree_of_freedom_the_noise_is_unknown(rng, weight):
    X, y, w = rng.standard_normal((200, 3)), rng.standard_normal(200), rng.random(200)
    summary = Gram(3).absorb(X, y, w * (weight / w.sum()))
    if summary.weight >= 2.0:
        assert noise_variance(summary, np.zeros(3)) > 0.0
        return
    for unknown in (
        lambda: noise_variance(summary, np.zeros(3)),
        lambda: debiased_intervals(summary, np.zeros(3), [0]),
        lambda: split_intervals(summary),
        lambda: posterior_intervals(summary, posterior(summary), np.arange(3)),
    ):
        with pytest.raises(ValueError, match="less than one degree of freedom for the noise"):
            unknown()
    found = diagnose(summary, np.zeros(3), 1)["noise"]
    assert (found.severity, found.numbers["noise"]) == ("warning", None)
    assert "Unknown" in found.sentence


# -- a frozen support ----------------------------------------------------------------------------------


@pytest.mark.parametrize("centred", [True, False])
def test_split_intervals_are_those_of_least_squares_on_the_later_rows(rng, centred):
    X = correlated(rng, 900, 30) * np.exp(rng.normal(size=30)) + 4.0
    y = X[:, 3] - 0.5 * X[:, 4] + rng.standard_normal(900) + 1.0
    support = [3, 4, 20]
    summary = Gram(30).absorb(X[:350], y[:350])
    frozen = summary.select(support)
    later = summary.absorb(X[350:], y[350:]).select(support).subtract(frozen)
    found = split_intervals(later, 0.9, centred, features=support, names=["a", "b", "c"])
    assert_intervals(found, textbook(X[350:][:, support], y[350:], 0.9, centred))
    assert len(found) == 3
    assert found.features.tolist() == support
    assert (found.level, found.method, found.degrees_of_freedom) == (0.9, "split", 547 - centred)


def test_split_intervals_need_later_rows(rng):
    X, y = rng.standard_normal((54, 3)), rng.standard_normal(54)
    with pytest.raises(ValueError, match="wait for 5 rows"):
        split_intervals(Gram(3).absorb(X[:50], y[:50]).subtract(Gram(3).absorb(X[:50], y[:50])))
    split_intervals(Gram(3).absorb(X[:5], y[:5]))
    with pytest.raises(ValueError, match="wait for 5 rows or a total weight of as many, or keep fewer"):
        split_intervals(Gram(3).absorb(X[:4], y[:4]))


def test_split_intervals_of_collinear_columns_are_infinite_and_the_others_are_not(rng):
    X = rng.standard_normal((200, 5))
    X[:, 4] = X[:, 1] - 2.0 * X[:, 2]
    y = X[:, 0] + X[:, 1] + rng.standard_normal(200)
    found = split_intervals(Gram(5).absorb(X, y))
    assert np.isinf(found.standard_error).tolist() == [False, True, True, False, True]
    expected = textbook(X[:, :4], y, 0.95, True)
    others = split_intervals(Gram(4).absorb(X[:, :4], y))
    assert_intervals(others, expected)
    np.testing.assert_allclose(found.lower[[0, 3]], expected[2][[0, 3]], rtol=1e-9)
    noiseless = split_intervals(Gram(5).absorb(X, X[:, 0]))  # no noise: an unknown is still unknown
    assert np.isinf(noiseless.upper).tolist() == [False, True, True, False, True]


# -- the nodewise regression ---------------------------------------------------------------------------


def standardised(X):
    C = X - X.mean(axis=0)
    return C / np.sqrt((C**2).mean(axis=0))


@pytest.mark.parametrize("free", [[], [3, 8]])
@pytest.mark.parametrize("rho", [0.0, 0.5, 0.9])
def test_nodewise_regression_is_a_lasso_with_a_penalty_that_fits_its_residual(rng, free, rho):
    X = correlated(rng, 300, 40, rho) * np.exp(rng.normal(size=40))
    Z, j, level = standardised(X), 5, np.sqrt(2 * np.log(40) / 300)
    found = nodewise(Correlations(Gram(40).absorb(X, X[:, 0]), True), j, np.array(free, np.intp), level)
    residual = Z[:, j] - Z[:, found.others] @ found.weights
    sigma = np.sqrt((residual**2).mean())

    # Columns free of penalty are the same as columns projected out of all others.
    others = np.setdiff1d(np.arange(40), [j, *free])
    projected = Z - Z[:, free] @ np.linalg.lstsq(Z[:, free], Z, rcond=None)[0]
    lasso = Lasso(alpha=level * sigma, fit_intercept=False, tol=1e-14, max_iter=100_000)
    expected = np.zeros(40)
    expected[others] = lasso.fit(projected[:, others], projected[:, j]).coef_
    rest = Z[:, j] - Z @ expected
    expected[free] = np.linalg.lstsq(Z[:, free], rest, rcond=None)[0]
    weights = np.zeros(40)
    weights[found.others] = found.weights
    np.testing.assert_allclose(weights, expected, atol=1e-6)
    np.testing.assert_allclose(found.products, Z.T @ residual / 300, atol=1e-10)


def test_scaled_lasso_minimises_its_convex_loss(rng):
    Z = standardised(correlated(rng, 200, 6))
    matrix, target, level = Z[:, 1:].T @ Z[:, 1:] / 200, Z[:, 1:].T @ Z[:, 0] / 200, 0.1
    found = nodewise(Correlations(Gram(6).absorb(Z, Z[:, 0]), True), 0, np.zeros(0, np.intp), level)
    coef = np.zeros(5)
    coef[found.others - 1] = found.weights
    sigma = np.sqrt(1.0 - 2.0 * target @ coef + coef @ matrix @ coef)

    def loss(c, s):
        return (1.0 - 2.0 * target @ c + c @ matrix @ c) / (2.0 * s) + s / 2.0 + level * np.abs(c).sum()

    best = loss(coef, sigma)
    for _ in range(500):
        move = 10.0 ** rng.uniform(-6, -1) * rng.standard_normal(6)
        assert loss(coef + move[1:], sigma * np.exp(move[0])) >= best - 1e-13


def test_tied_columns_enter_the_path_together():
    """A balanced two-level design, whose columns are all tied: the weights minimise the convex loss."""
    F = np.tile(np.array(list(product([-1.0, 1.0], repeat=6))), (10, 1))
    X = np.column_stack([F[:, :5], F[:, :5].sum(axis=1) + F[:, 5]])
    correlations, level = Correlations(Gram(6).absorb(X, X[:, 0]), True), 0.05
    found = nodewise(correlations, 5, np.zeros(0, np.intp), level)
    coef = np.zeros(6)
    coef[found.others] = found.weights
    C = np.corrcoef(X.T)

    def loss(w):
        sigma = np.sqrt(1.0 - 2.0 * w @ C[5] + w @ C @ w)
        return sigma + level * np.abs(w).sum()

    rng, best = np.random.default_rng(0), loss(coef)
    assert len(found.others) == 5
    for _ in range(500):
        move = 10.0 ** rng.uniform(-6, -1) * rng.standard_normal(6) * (np.arange(6) != 5)
        assert loss(coef + move) >= best - 1e-12


def test_intervals_of_one_hot_columns_are_infinite_or_finite_but_there():
    for seed in range(60):
        rng = np.random.default_rng(seed)
        A = rng.integers(0, 3, (100, 2))
        first, second = A[:, [0]] == np.arange(3), A[:, [1]] == np.arange(3)
        X = np.column_stack([first, second, first & (A[:, [1]] == 0)]).astype(float)
        found = debiased_intervals(Gram(9).absorb(X, X[:, 0] + rng.standard_normal(100)), np.eye(9)[0], range(9))
        assert not np.isnan(found.lower).any()


# -- debiased intervals --------------------------------------------------------------------------------


def test_debiased_intervals_are_least_squares_when_every_column_is_kept(rng):
    X = correlated(rng, 120, 6) + 2.0
    y = X @ rng.standard_normal(6) + rng.standard_normal(120)
    coef = sparse_fit(X, y, np.arange(6))
    found = debiased_intervals(Gram(6).absorb(X, y), coef, np.arange(6))
    assert_intervals(found, textbook(X, y, 0.95, True))


def test_debiased_estimate_is_a_regression_on_what_others_leave_of_a_column(rng):
    X = correlated(rng, 500, 30)
    y = X[:, 3] + 0.3 * X[:, 5] + rng.standard_normal(500)
    coef = sparse_fit(X, y, [3])
    coef[3] *= 0.9  # an iterate on the way
    summary = Gram(30).absorb(X, y)
    found = debiased_intervals(summary, coef, [3, 5, 20])
    Z, scale = standardised(X), X.std(axis=0)
    correlations, level = Correlations(summary, True), np.sqrt(2 * np.log(30) / 500)
    for place, j in enumerate((3, 5, 20)):
        free = np.setdiff1d([3], [j]).astype(np.intp)
        picked = np.union1d(free, nodewise(correlations, j, free, level).others)
        residual = nodewise(correlations, j, picked, level)
        z = Z[:, j] - Z[:, residual.others] @ residual.weights
        others = np.arange(30) != j
        rest = (y - y.mean()) - (X - X.mean(axis=0))[:, others] @ coef[others]
        np.testing.assert_allclose(found.estimate[place], z @ rest / (z @ X[:, j]), rtol=1e-9)
        error = np.sqrt(noise_variance(summary, coef) * (z @ z)) / (z @ Z[:, j] * scale[j])
        np.testing.assert_allclose(found.standard_error[place], error, rtol=1e-9)


@pytest.mark.parametrize("factor", [1e4, 1e-150, -1e120])
def test_a_column_in_other_units_has_its_interval_in_other_units(rng, factor):
    X = correlated(rng, 300, 20) + 1.0
    y = X[:, 3] + X[:, 4] + rng.standard_normal(300)
    coef, wanted = sparse_fit(X, y, [3, 4]), [2, 3, 5, 15]
    plain = debiased_intervals(Gram(20).absorb(X, y), coef, wanted)
    units = np.ones(20)
    units[[3, 5]] = factor
    scaled = debiased_intervals(Gram(20).absorb(X * units, y), coef / units, wanted)
    np.testing.assert_allclose(scaled.estimate * units[wanted], plain.estimate, rtol=1e-7)
    np.testing.assert_allclose(scaled.standard_error * np.abs(units[wanted]), plain.standard_error, rtol=1e-7)
    shifted = debiased_intervals(Gram(20).absorb(X + 1e3, 7.0 * y + 5.0), 7.0 * coef, wanted)
    np.testing.assert_allclose(shifted.lower, 7.0 * plain.lower, rtol=1e-6)


def test_weights_are_repeats(rng):
    X, w = correlated(rng, 200, 15), rng.integers(0, 3, 200)
    y = X[:, 2] + rng.standard_normal(200)
    coef = sparse_fit(X, y, [2])
    weighted = debiased_intervals(Gram(15).absorb(X, y, w.astype(float)), coef, [1, 2])
    repeated = debiased_intervals(Gram(15).absorb(np.repeat(X, w, axis=0), np.repeat(y, w)), coef, [1, 2])
    np.testing.assert_allclose(weighted.lower, repeated.lower, rtol=1e-8)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_twins_get_infinite_intervals_and_the_others_do_not(rng, dtype):
    X = rng.standard_normal((400, 20))
    X[:, 9] = -3.0 * X[:, 4]
    X[:, 12] = X[:, 10] + X[:, 11]
    y = X[:, 4] + X[:, 10] + rng.standard_normal(400)
    coef = sparse_fit(X, y, [4, 10])
    found = debiased_intervals(Gram(20, dtype).absorb(X, y), coef, [4, 9, 10, 11, 12, 0])
    assert np.isinf(found.lower).tolist() == [True] * 5 + [False]
    np.testing.assert_array_equal(found.estimate[:5], coef[[4, 9, 10, 11, 12]])
    assert found.standard_error[5] == pytest.approx(0.05, rel=0.3)


def test_a_feature_whose_near_twin_was_kept_is_still_covered(rng):
    # A penalty on the twin would give column 0 a narrow interval about zero.
    X = rng.standard_normal((1000, 30))
    X[:, 1] = X[:, 0] + 0.05 * rng.standard_normal(1000)
    y = X[:, 0] + rng.standard_normal(1000)
    found = debiased_intervals(Gram(30).absorb(X, y), sparse_fit(X, y, [1]), [0, 1])
    exact = textbook(X[:, :2], y, 0.95, True)
    np.testing.assert_allclose(found.standard_error, exact[1], rtol=0.1)
    assert found.lower[0] < 1.0 < found.upper[0]
    assert found.lower[1] < 0.0 < found.upper[1]


def test_faults_are_named(rng):
    X, y = rng.standard_normal((50, 4)), rng.standard_normal(50)
    X[:, 2] = 7.0
    summary, coef = Gram(4).absorb(X, y), np.array([1.0, 0.0, 0.0, 0.0])
    with pytest.raises(ValueError, match=r"Column x2 is constant \(1 such column in all\).*leave it out"):
        debiased_intervals(summary, coef, [0, 2])
    with pytest.raises(ValueError, match="Column x2 is constant"):
        split_intervals(summary)
    debiased_intervals(summary, coef, [0, 2], centred=False)
    with pytest.raises(ValueError, match="Feature 4 does not exist; columns are numbered 0 to 3"):
        debiased_intervals(summary, coef, [4])
    with pytest.raises(ValueError, match="flatnonzero"):
        debiased_intervals(summary, coef, np.array([True, False, False, False]))
    with pytest.raises(ValueError, match="level is 95; pass a share"):
        debiased_intervals(summary, coef, [0], level=95)
    with pytest.raises(ValueError, match="2 names for 1 features"):
        debiased_intervals(summary, coef, [0], names=["a", "b"])
    with pytest.raises(ValueError, match="features has 2 entries"):
        split_intervals(summary.select([0, 1, 3]), features=[0, 1])
    with pytest.raises(ValueError, match="coef has shape"):
        debiased_intervals(summary, coef[:3], [0])


def test_one_column_or_a_constant_among_others(rng):
    X = rng.standard_normal((50, 1))
    y = X[:, 0] + rng.standard_normal(50)
    assert_intervals(debiased_intervals(Gram(1).absorb(X, y), sparse_fit(X, y, [0]), [0]), textbook(X, y, 0.95, True))
    wide = np.column_stack([X, np.full(50, 3.0)])
    found = debiased_intervals(Gram(2).absorb(wide, y), np.append(sparse_fit(X, y, [0]), 0.0), 0)
    assert_intervals(found, textbook(X, y, 0.95, True))


def test_intervals_read_as_a_table(rng):
    X = rng.standard_normal((80, 3))
    y = X[:, 0] + rng.standard_normal(80)
    found = debiased_intervals(Gram(3).absorb(X, y), [1.0, 0.0, 0.0], [0, 2], names=["age", "income"])
    lines = str(found).split("\n")
    assert lines[0] == "95 % intervals, debiased, 78 degrees of freedom"
    assert [line.split()[0] for line in lines[1:]] == ["feature", "age", "income"]
    assert len({len(line) for line in lines[1:]}) == 1
    assert repr(found) == str(found)
    saved = json.loads(json.dumps(found.to_dict()))
    assert saved["names"] == ["age", "income"]
    assert saved["lower"] == found.lower.tolist()
    with pytest.raises(ValueError, match="read-only"):
        found.estimate[0] = 2.0
    assert len(debiased_intervals(Gram(3).absorb(X, y), [1.0, 0.0, 0.0], [])) == 0


def test_intervals_cover_what_they_should():
    # Margins are four binomial standard deviations: 0.95 +- 0.039 for active features, +- 0.015 for the others. What
    # intervals of a run share, above all a noise level that is off by 3 %, adds less than a tenth to that.
    runs, d, n, truth = 100, 40, 400, np.zeros(40)
    truth[[0, 8, 16, 24, 32]] = [1.0, -0.4, 0.25, 0.1, -0.05]  # the last two are hardly ever found
    covered = np.empty((runs, d), bool)
    for seed in range(runs):
        rng = np.random.default_rng(seed)
        X = correlated(rng, n, d)
        y = X @ truth + rng.standard_normal(n)
        support = np.argsort(-np.abs(X.T @ y))[:1]  # screening by what is left over, five features in all
        for _ in range(4):
            left = y - X @ sparse_fit(X, y, support)
            support = np.append(support, np.argmax(np.abs(X.T @ (left - left.mean()))))
        found = debiased_intervals(Gram(d).absorb(X, y), sparse_fit(X, y, support), np.arange(d))
        covered[seed] = (found.lower <= truth) & (truth <= found.upper)
    for kind in (truth != 0.0, truth == 0.0):
        margin = 4.0 * np.sqrt(0.95 * 0.05 / (runs * kind.sum()))
        assert abs(covered[:, kind].mean() - 0.95) < margin


def test_intervals_are_a_data_frame(rng):
    X = rng.standard_normal((200, 6))
    y = X[:, 2] + rng.standard_normal(200)
    frame = pd.DataFrame(X, columns=list("abcdef"))
    for rows, names in ((X, ["x4", "x2"]), (frame, ["e", "c"])):
        found = SparseRegressor().fit(rows, y).confidence_intervals(features=[4, 2])
        table = found.to_frame()
        assert (table.index.name, table.index.tolist()) == ("name", names)
        assert table.columns.tolist() == ["feature", "estimate", "standard_error", "lower", "upper"]
        assert table["feature"].tolist() == [4, 2]
        assert table["upper"].tolist() == found.upper.tolist()
