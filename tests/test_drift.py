"""Streams that change: the filter against a few lines of NumPy, and when it is used."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

from oracles import algorithm_1, last
from thresher import SparseRegressor, load
from thresher.river import SparseRegressor as RiverRegressor


def least_squares(X, y, w, centred):
    root = np.sqrt(w)
    A = root[:, None] * np.column_stack([X, *[np.ones(len(X))] * centred])
    found = np.linalg.lstsq(A, root * y, rcond=None)[0]
    return (found[:-1], found[-1]) if centred else (found, 0.0)


def followed(X, y, w, n_warmup, centred):
    """Least squares on all rows after each row, with the filter and the evidence for it, from their definitions."""
    d = X.shape[1]
    delta, scale, evidence, used, n = np.zeros(d + centred), 0.0, 0.0, False, 0
    coef, intercept = least_squares(X[: n_warmup + 1], y[: n_warmup + 1], w[: n_warmup + 1], centred)
    for t in range(n_warmup + 1, len(y)):
        mean = np.average(X[:t], axis=0, weights=w[:t]) if centred else np.zeros(d)
        spread = np.sqrt(np.average((X[:t] - mean) ** 2, axis=0, weights=w[:t]))
        if w[t] > 0.0:
            z = np.append((X[t] - mean) / spread, np.ones(int(centred)))
            error = y[t] - intercept - X[t] @ coef
            left = error - z @ delta
            center_y = np.average(y[:t], weights=w[:t]) if centred else 0.0
            usual = max(scale, 1e-12 * np.average((y[:t] - center_y) ** 2, weights=w[:t]))
            evidence += w[t] * 2.5 * np.log((4.0 * usual + error**2) / (4.0 * usual + left**2))
            evidence = np.clip(evidence, 0.0, 2.0 * np.log(1e6))
            used = bool(evidence >= np.log(1e6) or (used and evidence > 0.0))
            left = np.clip(left, -3.0 * np.sqrt(usual), 3.0 * np.sqrt(usual))
            share = 1.0 - (1.0 - z @ z / 16.0 / (1.0 + z @ z)) ** w[t]
            delta = (1.0 - 1.0 / 1024.0) ** w[t] * delta + share * left * z / (z @ z)
            n += 1
            scale += max(1.0 - (1.0 - 1.0 / 1024.0) ** w[t], 1.0 / n) * (error**2 - scale)
        coef, intercept = least_squares(X[: t + 1], y[: t + 1], w[: t + 1], centred)
        mean = np.average(X[: t + 1], axis=0, weights=w[: t + 1]) if centred else np.zeros(d)
        spread = np.sqrt(np.average((X[: t + 1] - mean) ** 2, axis=0, weights=w[: t + 1]))
        if used:
            move = delta[:d] / spread
            yield coef + move, intercept + (delta[d] - move @ mean if centred else 0.0), used
        else:
            yield coef, intercept, used


def changing(rng, n, d, turn=2.0):
    """Rows whose first coefficient turns round on the way, and so does the intercept."""
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(size=d)) + rng.normal(size=d)
    way = np.linspace(1.0, 1.0 - turn, n)
    return X, way * (X[:, 0] + 1.0) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
def test_estimate_is_least_squares_and_the_filter(centred, weighted):
    rng = np.random.default_rng(5)
    X, y = changing(rng, 260, 3)
    w = rng.choice([0.0, 0.5, 1.0, 2.0], len(y)) if weighted else np.ones(len(y))
    w[:12] = 1.0
    model = SparseRegressor(3, n_warmup=10, fit_intercept=centred)
    model.partial_fit(X[:11], y[:11])
    uses = []
    for t, (coef, intercept, used) in enumerate(followed(X, y, w, 10, centred), start=11):
        model.partial_fit(X[t : t + 1], y[t : t + 1], w[t : t + 1] if weighted else None)
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-7, atol=1e-9)
        assert model.intercept_ == pytest.approx(intercept, rel=1e-7, abs=1e-9)
        assert model.drifts_ == used
        uses.append(used)
    assert 20 < sum(uses) < len(uses) - 20  # with and without


def test_a_changing_stream_is_predicted_better():
    rng = np.random.default_rng(0)
    X, y = changing(rng, 3000, 20)
    errors = {}
    for follow in (True, False):
        model, error = SparseRegressor(follow_drift=follow), []
        for t in range(0, len(y), 10):
            if t:
                error.append(y[t : t + 10] - model.predict(X[t : t + 10]))
            model.partial_fit(X[t : t + 10], y[t : t + 10])
        errors[follow] = np.mean(np.square(error))
        assert model.drifts_ == follow
    assert errors[True] < 0.5 * errors[False]


def test_a_stream_that_does_not_change_is_least_squares():
    # Also with heavy tails and with rows whose noise has another size: nothing there is a change of coefficients.
    for seed in range(20):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((1500, 8))
        plain, heavy = rng.standard_normal(1500), rng.standard_t(2, 1500)
        for errors in (plain, heavy, plain * (1 + 4 * (X[:, 5] > 1))):
            y = 1.0 + X[:, 2] - 0.5 * X[:, 4] + errors
            model, fixed = SparseRegressor(), SparseRegressor(follow_drift=False)
            for t in range(0, 1500, 300):
                model.partial_fit(X[t : t + 300], y[t : t + 300])
                fixed.partial_fit(X[t : t + 300], y[t : t + 300])
                assert not model.drifts_
                np.testing.assert_array_equal(model.coef_, fixed.coef_)
                assert model.intercept_ == fixed.intercept_


def test_following_ends_when_the_change_does():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((40_000, 4))
    level = np.where((np.arange(40_000) > 3000) & (np.arange(40_000) < 3400), 4.0, 0.0)
    y = X[:, 0] + level + 0.5 * rng.standard_normal(40_000)
    model = SparseRegressor().partial_fit(X[:3000], y[:3000])
    assert not model.drifts_
    model.partial_fit(X[3000:3300], y[3000:3300])
    assert model.drifts_
    assert model.intercept_ > 2.0
    model.partial_fit(X[3300:], y[3300:])
    assert not model.drifts_
    assert abs(model.intercept_) < 0.1


def test_one_absurd_row_is_no_change():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((600, 5))
    y = X[:, 0] + 0.1 * rng.standard_normal(600)
    y[500] = 1e6
    model = SparseRegressor().partial_fit(X[:500], y[:500])
    for t in range(500, 600):
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        assert not model.drifts_


def test_exact_rows_are_no_change():
    X = np.random.default_rng(6).standard_normal((500, 6))
    model = SparseRegressor()
    for t in range(0, 500, 50):
        model.partial_fit(X[t : t + 50], 2.0 * X[t : t + 50, 1] - 3.0)
        assert not model.drifts_


@pytest.mark.parametrize(
    "settings", [{}, {"sparsity": 2}, {"round_size": 70}, {"fit_intercept": False, "n_warmup": 30}]
)
def test_cuts_and_copies_do_not_matter(settings, tmp_path):
    rng = np.random.default_rng(7)
    X, y = changing(rng, 1200, 12, turn=4.0)
    whole = SparseRegressor(**settings).partial_fit(X, y)
    assert whole.drifts_
    cut = SparseRegressor(**settings)
    for start, stop in [(0, 1), (1, 40), (40, 41), (41, 700), (700, 701), (701, 1200)]:
        cut.partial_fit(X[start:stop], y[start:stop])
        cut.save(tmp_path / "model")
        cut = copy.deepcopy(load(tmp_path / "model"))
    np.testing.assert_array_equal(cut.coef_, whole.coef_)
    assert (cut.intercept_, cut.drifts_) == (whole.intercept_, whole.drifts_)


def test_columns_may_come_while_the_stream_changes():
    rng = np.random.default_rng(8)
    X, y = changing(rng, 900, 6, turn=4.0)
    X[:500, 4:] = 0.0
    known = SparseRegressor(4)
    grown = RiverRegressor(4)
    for t in range(900):
        known.partial_fit(X[t : t + 1], y[t : t + 1])
        grown.learn_one({f"x{j}": X[t, j] for j in range(6) if X[t, j] != 0.0}, y[t])
    assert known.drifts_
    np.testing.assert_allclose(grown.model.coef_, known.coef_, rtol=1e-9)
    assert grown.intercept == pytest.approx(known.intercept_, rel=1e-9)


def test_where_a_stream_ends_all_rows_count_alike():
    rng = np.random.default_rng(9)
    X, y = changing(rng, 1000, 8, turn=4.0)
    model = SparseRegressor().partial_fit(X, y)
    assert model.drifts_
    overall = clone(model).fit(X, y)
    assert not overall.drifts_
    assert not model.settle().drifts_
    np.testing.assert_allclose(model.coef_, overall.coef_, atol=1e-9)


def test_what_is_said_of_the_model_is_about_all_rows():
    rng = np.random.default_rng(9)
    X, y = changing(rng, 1000, 8, turn=4.0)
    follows = SparseRegressor(2).partial_fit(X, y)
    overall = SparseRegressor(2, follow_drift=False).partial_fit(X, y)
    assert follows.drifts_
    assert not np.allclose(follows.coef_, overall.coef_, atol=0.1)
    assert follows.noise_variance() == overall.noise_variance()
    np.testing.assert_array_equal(follows.confidence_intervals().estimate, overall.confidence_intervals().estimate)
    assert follows.diagnose()["drift"].severity == "note"
    assert "drift" not in overall.diagnose().to_dict()
    assert SparseRegressor().fit(X, y).diagnose()["drift"].severity == "ok"


def test_the_paper_s_iterates_are_what_they_are_in_a_changing_stream():
    X, y = changing(np.random.default_rng(10), 300, 6, turn=4.0)
    model = SparseRegressor(2, step_size=0.01, fit_intercept=False, standardize=False).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, last(algorithm_1(X, y, 2, 5, 0.01, 0)), atol=1e-9)
    assert not model.drifts_


def test_following_may_be_switched_on_the_way():
    X, y = changing(np.random.default_rng(11), 1500, 6, turn=4.0)
    model = SparseRegressor().partial_fit(X[:700], y[:700])
    plain = SparseRegressor(follow_drift=False).partial_fit(X[:700], y[:700])
    assert model.drifts_
    model.set_params(follow_drift=False).partial_fit(X[700:], y[700:])
    plain.partial_fit(X[700:], y[700:])
    assert not model.drifts_
    np.testing.assert_allclose(model.coef_, plain.coef_, rtol=1e-9)
