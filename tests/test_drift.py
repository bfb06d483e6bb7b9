"""Streams that change: the filter against a few lines of NumPy, and when it is used."""

import copy

import numpy as np
import pytest
from sklearn.base import clone

from oracles import algorithm_1, last
from thresher import SparseRegressor, load
from thresher.model_card import model_card
from thresher.river import SparseRegressor as RiverRegressor


def least_squares(X, y, w, kept, centred):
    """Coefficients of all features, zero but for those kept, and intercept."""
    root = np.sqrt(w)
    A = root[:, None] * np.column_stack([X[:, kept], *[np.ones(len(X))] * centred])
    found, coef = np.linalg.lstsq(A, root * y, rcond=None)[0], np.zeros(X.shape[1])
    coef[kept] = found[: len(kept)]
    return coef, found[-1] if centred else 0.0


class Filter:
    """The filter and the evidence for it, from their definitions: features by number, the intercept by None."""

    def __init__(self, centred):
        self.centred, self.delta, self.usual, self.seen = centred, {}, 0.0, 0.0
        self.gain = self.squares = self.recent = 0.0
        self.used = False

    def units(self, X, w, kept):
        mean = np.average(X, axis=0, weights=w) if self.centred else np.zeros(X.shape[1])
        return mean[kept], np.sqrt(np.average((X - mean) ** 2, axis=0, weights=w))[kept]

    def learn(self, X, y, w, row, response, weight, coef, intercept):
        """Learn a row that X, y and w do not have, from an estimate that has not seen it."""
        weight = min(weight * len(y) / w.sum(), 1.0)
        if weight == 0.0:
            return
        kept = np.flatnonzero(coef)
        mean, spread = self.units(X, w, kept)
        names = [*kept.tolist(), *[None] * self.centred]
        z = np.append((row[kept] - mean) / spread, np.ones(int(self.centred)))
        self.delta = {name: self.delta.get(name, 0.0) for name in names}
        delta = np.array([self.delta[name] for name in names])
        error, usual = response - intercept - row @ coef, self.usual
        center = np.average(y, weights=w) if self.centred else 0.0
        rounding = 1e-12 * np.average((y - center) ** 2, weights=w)
        if usual > rounding:
            error = np.clip(error, -8.0 * np.sqrt(usual), 8.0 * np.sqrt(usual))
        self.seen += weight
        self.usual += max(weight / 1024.0, weight / self.seen) * (error**2 - usual)
        if usual <= rounding:
            return
        left = error - z @ delta
        gain = weight * (error**2 - left**2) / usual
        self.squares = (1.0 - 1.0 / 8192.0) * self.squares + gain**2
        root = np.sqrt(1000.0 + self.squares)
        self.gain = max((1.0 - 1.0 / 8192.0) * self.gain + gain, -root)
        self.recent = (1.0 - 1.0 / 1024.0) * self.recent + gain
        self.used = bool(self.recent > 0.0 and (self.used or self.gain >= 5.0 * root))
        delta = (1.0 - weight / 1024.0) * delta + weight / 16.0 * left * z / (1.0 + z @ z)
        self.delta = dict(zip(names, delta, strict=True))

    def current(self, X, w, coef, intercept):
        if not self.used:
            return coef, intercept
        kept, coef = np.flatnonzero(coef), coef.copy()
        mean, spread = self.units(X, w, kept)
        move = np.array([self.delta.get(j, 0.0) for j in kept.tolist()]) / spread
        coef[kept] += move
        return coef, intercept + self.delta.get(None, 0.0) - (move @ mean if self.centred else 0.0)


def changing(rng, n, d, turn=2.0):
    """Rows whose first coefficient turns round on the way, and so does the intercept."""
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(size=d)) + rng.normal(size=d)
    way = np.linspace(1.0, 1.0 - turn, n)
    return X, way * (X[:, 0] + 1.0) + 0.5 * X[:, 1] + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("centred", [True, False])
@pytest.mark.parametrize("weighted", [True, False])
@pytest.mark.parametrize("sparsity", [4, 2])
def test_estimate_is_least_squares_and_the_filter(centred, weighted, sparsity):
    rng = np.random.default_rng(5)
    X, y = changing(rng, 500, 4, turn=6.0)
    y[100] += 50.0
    w = 7.0 * rng.choice([0.0, 0.2, 1.0, 3.0], len(y)) if weighted else np.ones(len(y))
    w[:12] = 1.0
    model, filter_ = SparseRegressor(sparsity, n_warmup=10, fit_intercept=centred), Filter(centred)
    model.partial_fit(X[:11], y[:11])
    uses, supports = [], set()
    for t in range(11, len(y)):
        # The support is the library's; that it is a good one is tested elsewhere.
        kept = np.flatnonzero(model.overall_coef_)
        filter_.learn(X[:t], y[:t], w[:t], X[t], y[t], w[t], *least_squares(X[:t], y[:t], w[:t], kept, centred))
        model.partial_fit(X[t : t + 1], y[t : t + 1], w[t : t + 1] if weighted else None)
        upto, kept = slice(0, t + 1), np.flatnonzero(model.overall_coef_)
        overall = least_squares(X[upto], y[upto], w[upto], kept, centred)
        np.testing.assert_allclose(model.overall_coef_, overall[0], rtol=1e-7, atol=1e-9)
        coef, intercept = filter_.current(X[upto], w[upto], *overall)
        np.testing.assert_allclose(model.coef_, coef, rtol=1e-7, atol=1e-9)
        assert model.intercept_ == pytest.approx(intercept, rel=1e-7, abs=1e-9)
        assert model.drifts_ == filter_.used
        uses.append(model.drifts_)
        supports.add(tuple(kept))
    assert 20 < sum(uses) < len(uses) - 20  # with and without
    assert (len(supports) > 1) == (sparsity < 4)


def prequential_errors(model, X, y, block=10):
    errors, uses = [], []
    for t in range(0, len(y), block):
        if t:
            errors.append(y[t : t + block] - model.predict(X[t : t + block]))
        model.partial_fit(X[t : t + block], y[t : t + block])
        uses.append(model.drifts_)
    return np.mean(np.square(errors)), np.mean(uses)


def test_a_changing_stream_is_predicted_better():
    X, y = changing(np.random.default_rng(0), 3000, 20)
    followed, uses = prequential_errors(SparseRegressor(), X, y)
    plain, _ = prequential_errors(SparseRegressor(follow_drift=False), X, y)
    assert followed < 0.5 * plain
    assert uses > 0.5


@pytest.mark.parametrize(
    "errors",
    [
        lambda rng, x: rng.standard_normal(len(x)),
        lambda rng, x: rng.standard_t(2, len(x)),
        lambda rng, x: rng.standard_normal(len(x)) * (1.0 + 4.0 * (x > 1.0)),
        lambda rng, x: rng.exponential(size=len(x)),
        lambda rng, x: np.exp(1.5 * rng.standard_normal(len(x))),
        lambda rng, x: 2.0 * (rng.random(len(x)) < 0.05),
        lambda rng, x: 0.5 * x**2 + 0.2 * rng.standard_normal(len(x)),
        lambda rng, x: np.exp(1.5 * x),
    ],
    ids=["normal", "t", "uneven", "exponential", "lognormal", "rare", "squares", "curved"],
)
def test_a_stream_that_does_not_change_is_least_squares(errors):
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X = rng.standard_normal((4000, 8))
        y = 1.0 + X[:, 2] - 0.5 * X[:, 4] + errors(rng, X[:, 2])
        model, fixed = SparseRegressor(), SparseRegressor(follow_drift=False)
        for t in range(0, 4000, 50):
            model.partial_fit(X[t : t + 50], y[t : t + 50])
            fixed.partial_fit(X[t : t + 50], y[t : t + 50])
            assert not model.drifts_
            np.testing.assert_array_equal(model.coef_, fixed.coef_)
            assert model.intercept_ == fixed.intercept_


@pytest.mark.parametrize("weight", [1e-6, 10.0, 1000.0])
def test_what_counts_is_what_a_row_weighs_beside_others(weight):
    rng = np.random.default_rng(2)
    X, y = changing(rng, 800, 5, turn=4.0)
    one = SparseRegressor(2).partial_fit(X, y, np.ones(800))
    other = SparseRegressor(2).partial_fit(X, y, np.full(800, weight))
    assert one.drifts_
    assert other.drifts_
    np.testing.assert_allclose(other.coef_, one.coef_, rtol=1e-6)
    noise = X[:, 1] + rng.standard_normal(800)
    assert not SparseRegressor().partial_fit(X, noise, np.full(800, weight)).drifts_
    heavy = np.ones(800)
    heavy[::100] = 1000.0 * weight
    assert not SparseRegressor().partial_fit(X, noise, heavy).drifts_


def test_following_ends_when_the_change_does():
    rng = np.random.default_rng(3)
    X = rng.standard_normal((20_000, 4))
    level = np.where((np.arange(20_000) > 3000) & (np.arange(20_000) < 3400), 4.0, 0.0)
    y = X[:, 0] + level + 0.5 * rng.standard_normal(20_000)
    model = SparseRegressor().partial_fit(X[:3000], y[:3000])
    assert not model.drifts_
    model.partial_fit(X[3000:3300], y[3000:3300])
    assert model.drifts_
    assert model.intercept_ > 2.0
    model.partial_fit(X[3300:], y[3300:])
    assert not model.drifts_
    assert abs(model.intercept_) < 0.1


def test_one_absurd_row_is_no_change_and_hides_none():
    rng = np.random.default_rng(4)
    X = rng.standard_normal((2000, 5))
    y = X[:, 0] + 0.1 * rng.standard_normal(2000) + np.where(np.arange(2000) > 1000, 2.0, 0.0)
    y[500] = 1e4
    model = SparseRegressor(1).partial_fit(X[:500], y[:500])
    for t in range(500, 540):
        model.partial_fit(X[t : t + 1], y[t : t + 1])
        assert not model.drifts_
    model.partial_fit(X[540:1300], y[540:1300])
    assert model.drifts_


def test_rows_whose_squares_overflow_say_nothing():
    model = SparseRegressor(1, fit_intercept=False)
    for x, y in [(1.0, 1200.0), (1e151, 0.0), (1.0, 1200.0), (1.0, 1200.0)]:
        model.partial_fit([[x]], [y])
    model.partial_fit(np.ones((600, 1)), np.arange(600.0))
    assert np.isfinite(model._rounds._drift.numbers).all()
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("settings", [{}, {"round_size": 64}, {"round_size": 20, "dtype": "float32"}])
def test_an_uneventful_beginning_hides_no_change(settings):
    rng = np.random.default_rng(13)
    X = rng.standard_normal((2000, 3))
    y = X[:, 0] + 0.3 * rng.standard_normal(2000) + np.where(np.arange(2000) > 1200, 4.0, 0.0)
    y[:5] = y[0]
    weights = np.ones(2000)
    weights[10:150] = 0.0
    for w in (None, weights, weights[::-1]):
        model = SparseRegressor(1, **settings).partial_fit(X[:1600], y[:1600], None if w is None else w[:1600])
        assert model.drifts_
    nothing = np.zeros(2000)
    nothing[300:] = 1.0
    model = SparseRegressor(1, **settings).partial_fit(X[:1600], y[:1600], nothing[:1600])
    assert model.drifts_


def test_exact_rows_are_no_change():
    X = np.random.default_rng(6).standard_normal((500, 6))
    for scale in (1.0, 1e-100, 1e100):
        model = SparseRegressor()
        for t in range(0, 500, 50):
            model.partial_fit(X[t : t + 50], scale * (2.0 * X[t : t + 50, 1] - 3.0))
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


@pytest.mark.parametrize("finish", [True, False])
def test_what_a_long_round_learns_is_not_counted_twice(finish):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((2000, 4))
    y = (1.0 + (np.arange(2000) >= 1000)) * X[:, 0] + 10.0 * (np.arange(2000) >= 1000) + 0.3 * rng.standard_normal(2000)
    model = SparseRegressor(round_size=1000).partial_fit(X[:1999], y[:1999])
    before = model.coef_, model.intercept_
    assert model.drifts_
    if finish:
        model.finish()
    else:
        model.partial_fit(X[1999:], y[1999:])
    assert abs(model.overall_coef_[0] - 1.0) > 0.3
    np.testing.assert_allclose(model.coef_[0], before[0][0], atol=0.05)
    assert model.intercept_ == pytest.approx(before[1], abs=0.1)


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
    X, y = changing(np.random.default_rng(9), 1000, 8, turn=4.0)
    model = SparseRegressor().partial_fit(X, y)
    assert model.drifts_
    overall = clone(model).fit(X, y)
    assert not overall.drifts_
    assert not model.settle().drifts_
    np.testing.assert_allclose(model.coef_, overall.coef_, atol=1e-9)


def test_what_is_said_of_the_model_is_about_all_rows():
    X, y = changing(np.random.default_rng(9), 1000, 8, turn=4.0)
    follows = SparseRegressor(2, round_size=30).partial_fit(X, y)
    overall = SparseRegressor(2, round_size=30, follow_drift=False).partial_fit(X, y)
    assert follows.drifts_
    assert not np.allclose(follows.coef_, overall.coef_, atol=0.1)
    np.testing.assert_array_equal(follows.overall_coef_, overall.coef_)
    assert follows.noise_variance() == overall.noise_variance()
    np.testing.assert_array_equal(follows.confidence_intervals().estimate, overall.confidence_intervals().estimate)
    ours, theirs = model_card(follows), model_card(overall)
    assert (ours.features, ours.r2, ours.intercept) == (theirs.features, theirs.r2, theirs.intercept)
    assert follows.diagnose()["drift"].severity == "note"
    assert "drift" not in overall.diagnose().to_dict()
    assert SparseRegressor().fit(X, y).diagnose()["drift"].severity == "ok"


def test_the_paper_s_iterates_are_what_they_are_in_a_changing_stream():
    X, y = changing(np.random.default_rng(10), 300, 6, turn=4.0)
    model = SparseRegressor(2, step_size=0.01, fit_intercept=False, standardize=False).partial_fit(X, y)
    np.testing.assert_allclose(model.coef_, last(algorithm_1(X, y, 2, 5, 0.01, 0)), atol=1e-9)
    assert not model.drifts_


@pytest.mark.parametrize("change", [{"follow_drift": False}, {"fit_intercept": False}])
def test_parameters_may_change_on_the_way(change):
    X, y = changing(np.random.default_rng(11), 1500, 6, turn=4.0)
    model = SparseRegressor(2).partial_fit(X[:700], y[:700])
    assert model.drifts_
    fixed = SparseRegressor(2, **change).partial_fit(X[:700], y[:700])
    model.set_params(**change).finish()
    assert not model.drifts_  # nothing is carried over into other units
    model.partial_fit(X[700:], y[700:])
    fixed.partial_fit(X[700:], y[700:])
    np.testing.assert_allclose(model.overall_coef_, fixed.overall_coef_, rtol=1e-9)
