"""Models whose rows count less as they age, or leave, against weighted least squares on the rows."""

import copy
import pickle
from datetime import datetime, timedelta

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.base import clone

from thresher import (
    Gram,
    LowRankRegressor,
    MatrixCompleter,
    MultiResponse,
    OnlineHardThresholding,
    ReducedRankRegressor,
    SparseRegressor,
    load,
    posterior,
)
from thresher.io.encoding import decode, encode
from thresher.selection.ebic import Ebic
from thresher.solvers.subsets import Subsets

D = 6
pytestmark = pytest.mark.filterwarnings("ignore:The weights of .* rows sum to")


def rows(seed, n, d=D):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d)) * np.exp(rng.normal(size=d)) + 3.0 * rng.standard_normal(d)
    y = 2.0 * X[:, 1] - X[:, d - 1] + 0.3 * rng.standard_normal(n) + np.where(np.arange(n) > n // 2, X[:, 2], 0.0)
    return X, y


def weighted_least_squares(X, y, a, support):
    """Coefficients and intercept, by NumPy, on rows times the root of their weights."""
    root = np.sqrt(a / a.max())
    design = np.column_stack([np.ones(len(y)), X[:, support]]) * root[:, None]
    solution = np.linalg.lstsq(design, root * y, rcond=None)[0]
    return solution[1:], solution[0]


def in_calls(model, X, y, cuts, times=None, **others):
    for part in np.split(np.arange(len(y)), sorted(cut % (len(y) + 1) for cut in cuts)):
        if len(part):
            model.partial_fit(X[part], y[part], times=None if times is None else times[part], **others)
    return model


MEMORIES = [
    {"half_life": 40.0},
    {"half_life": 7.0},
    {"window": 60},
    {"window": 300},
    {"window": 60, "exact_window": True},
    {"window": 200, "exact_window": True},
]


def weights_of(memory, model, times):
    """The weight of each row, by definition; blocks of a window are taken from what the model says it counts."""
    n = len(times)
    if "half_life" in memory:
        return 2.0 ** (-(times[-1] - times) / memory["half_life"])
    if memory.get("exact_window"):
        return (times > times[-1] - memory["window"]).astype(float)
    m = round(model.summary_.weight)
    assert (times[n - m :] > times[-1] - 1.1 * memory["window"] - 1.0).all()
    assert (times[: n - m] <= times[-1] - memory["window"]).all()
    return (np.arange(n) >= n - m).astype(float)


@pytest.mark.parametrize("duration", [np.timedelta64(1, "h"), pd.Timedelta("1h"), np.timedelta64(3600, "s")])
@pytest.mark.parametrize("name", ["half_life", "window"])
@pytest.mark.parametrize("kind", [SparseRegressor, ReducedRankRegressor])
def test_durations_of_numpy_and_pandas_are_those_of_python(kind, name, duration, tmp_path):
    X, y = rows(4, 300)
    Y = y if kind is SparseRegressor else np.column_stack([y, -y])
    times = 60.0 * np.arange(300)
    expected = kind(**{name: timedelta(hours=1)}).partial_fit(X, Y, times=times)
    unfitted = kind(**{name: duration})
    assert getattr(clone(unfitted), name) is not None
    model = clone(unfitted).partial_fit(X[:200], Y[:200], times=times[:200])
    model.save(tmp_path / "m")
    for other in (model, load(tmp_path / "m"), copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        other.partial_fit(X[200:], Y[200:], times=times[200:])
        np.testing.assert_array_equal(other.coef_, expected.coef_)
        assert encode(other) == encode(expected)
    unfitted.save(tmp_path / "u")
    assert getattr(load(tmp_path / "u"), name) == timedelta(hours=1)
    with pytest.raises(ValueError, match="give times="):
        clone(unfitted).partial_fit(X, Y)


@pytest.mark.parametrize("name", ["half_life", "window"])
def test_durations_that_no_model_takes(name, tmp_path):
    X, y = rows(4, 30)
    for duration in (np.timedelta64(-1, "h"), np.timedelta64(1, "Y"), np.timedelta64("NaT", "s"), pd.Timedelta(0)):
        with pytest.raises(ValueError, match=f"{name} must be"):
            SparseRegressor(**{name: duration}).partial_fit(X, y, times=np.arange(30.0))
    model = SparseRegressor(**{name: np.timedelta64(1500, "ns")}).partial_fit(X, y, times=np.arange(30.0))
    with pytest.raises(TypeError, match="whole microseconds; round it"):
        model.save(tmp_path / "m")


@pytest.mark.parametrize("memory", MEMORIES)
def test_the_size_of_weights_does_not_change_when_to_choose(memory):
    X, y = rows(4, 3000)
    histories = []
    for c in (2.0**-10, 1.0, 2.0**10):
        model = SparseRegressor(2, **memory).partial_fit(X, y, np.full(3000, c))
        histories.append([record.n_samples for record in model.selection_history_])
        assert model._scored.due > 2900
    assert histories[0] == histories[1] == histories[2]
    gaps = np.diff(histories[0])
    assert 1 < gaps[len(gaps) // 2 :].max() < 200


def test_a_change_is_seen_whatever_the_size_of_weights():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40600, 10))
    y = np.where(np.arange(40600) < 40000, X[:, 0], X[:, 1])
    for memory in ({"half_life": 100}, {"window": 200}, {"window": 200, "exact_window": True}):
        for c in (1.0, 1000.0):
            model = SparseRegressor(1, **memory).partial_fit(X, y, np.full(40600, c))
            assert list(model.support_) == [1], (memory, c)


def test_residual_moments_fade_by_rows():
    """How much of them is left does not depend on the unit of the weights."""
    X, y = rows(5, 4000)
    left = [
        SparseRegressor(2, half_life=100.0).partial_fit(X, y, np.full(4000, c))._scored.residual_moments.weight / c
        for c in (2.0**-10, 1.0, 2.0**10)
    ]
    assert left[0] == left[1] == left[2] > 100.0


@given(
    st.integers(0, 50),
    st.integers(30, 500),
    st.sampled_from(MEMORIES),
    st.booleans(),
    st.lists(st.integers(0, 500), max_size=3),
)
def test_coefficients_are_those_of_a_weighted_fit(seed, n, memory, timed, cuts):
    X, y = rows(seed, n)
    times = np.cumsum(np.random.default_rng(seed).exponential(size=n)) if timed else None
    model = in_calls(SparseRegressor(3, **memory), X, y, cuts, times)
    a = weights_of(memory, model, np.arange(1.0, n + 1.0) if times is None else times)
    support = model.support_
    values, intercept = weighted_least_squares(X, y, a, support)
    tolerance = 1e-9 * np.abs(values).max()
    np.testing.assert_allclose(model.coef_[support], values, rtol=1e-9, atol=tolerance)
    np.testing.assert_allclose(model.intercept_, intercept, rtol=1e-9, atol=1e-8)
    np.testing.assert_allclose(model.summary_.weight, a.sum() ** 2 / (a @ a), rtol=1e-9)
    assert model.n_samples_seen_ == n
    # `fit` and `finish` choose as one does on rows that were weighted by hand, with as many of them as are effective.
    fitted = SparseRegressor(3, **memory).fit(X, y, times=times)
    by_hand = Gram(D).absorb(X, y, a * a.sum() / (a @ a))
    expected = Subsets().best(by_hand, 3)[0]
    np.testing.assert_array_equal(fitted.support_, expected)
    np.testing.assert_array_equal(model.finish().support_, expected)


@pytest.mark.parametrize("selection", ["posterior", "ebic"])
@pytest.mark.parametrize("memory", MEMORIES, ids=str)
def test_cuts_files_and_copies_change_no_bit(memory, selection):
    X, y = rows(3, 900)
    for times in (None, np.arange(900.0) // 3):
        whole = SparseRegressor(selection=selection, **memory).partial_fit(X, y, times=times)
        for cuts in ([1, 2, 130, 400], [127, 128, 129, 899], list(range(0, 900, 50))):
            assert encode(in_calls(SparseRegressor(selection=selection, **memory), X, y, cuts, times)) == encode(whole)
        for cut in (5, 333, 700):
            begun = SparseRegressor(selection=selection, **memory).partial_fit(
                X[:cut], y[:cut], times=None if times is None else times[:cut]
            )
            begun.finish().coef_  # noqa: B018  reading and finishing change nothing that comes later
            for other in (decode(encode(begun))[0], pickle.loads(pickle.dumps(begun)), copy.deepcopy(begun)):
                other.partial_fit(X[cut:], y[cut:], times=None if times is None else times[cut:])
                np.testing.assert_array_equal(other.coef_, whole.coef_)
                assert other.summary_.weight == whole.summary_.weight


@pytest.mark.parametrize(
    "memory", [{"half_life": 150.0}, {"window": 400}, {"window": 400, "exact_window": True}], ids=str
)
def test_models_follow_what_changes(memory):
    rng = np.random.default_rng(5)
    X = rng.standard_normal((6000, 20))
    y = np.where(np.arange(6000) < 3000, 3.0 * X[:, 4], -2.0 * X[:, 7]) + 0.3 * rng.standard_normal(6000)
    model, equal = SparseRegressor(**memory).partial_fit(X, y), SparseRegressor(drift=None).partial_fit(X, y)
    assert 7 in model.support_
    assert 4 not in model.support_
    assert abs(model.coef_[7] + 2.0) < 0.1
    assert {4, 7} <= set(equal.support_)
    assert len(model.selection_history_) <= 1000
    # The prequential score is that of all rows, and errors are those of the rows that count.
    assert model.prequential_r2_ > 0.8
    interval = model.confidence_intervals(method="posterior", features=[7])
    assert interval.lower[0] < -2.0 < interval.upper[0]
    assert 0.01 < interval.upper[0] - interval.lower[0] < 0.2
    np.testing.assert_allclose(model.noise_variance(), 0.09, rtol=0.3)
    assert f"of which {model.summary_.weight:,.0f} count" in str(model.summary())
    assert "count" not in str(equal.summary()).splitlines()[1]
    findings = model.diagnose()
    assert findings["rows"].numbers["weight"] == model.summary_.weight
    assert findings["noise"].numbers["explained"] > 0.95 > equal.diagnose()["noise"].numbers["explained"]
    with pytest.raises(ValueError, match="needs rows that count equally"):
        model.confidence_intervals(method="split")


def test_every_criterion_uses_the_effective_number_of_rows():
    X, y = rows(8, 500)
    a = 2.0 ** (-np.arange(500)[::-1] / 60.0)
    n = a.sum() ** 2 / (a @ a)
    model = SparseRegressor(half_life=60.0).fit(X, y)
    same = SparseRegressor().fit(X, y, sample_weight=a * n / a.sum())  # as many rows as are effective
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-7, atol=1e-12)
    np.testing.assert_allclose(model.noise_variance(), same.noise_variance(), rtol=1e-9)
    for method in ("posterior", "debiased"):
        ours, theirs = model.confidence_intervals(method=method), same.confidence_intervals(method=method)
        np.testing.assert_allclose(ours.lower, theirs.lower, rtol=1e-7)
        np.testing.assert_allclose(ours.upper, theirs.upper, rtol=1e-7)
    np.testing.assert_allclose(posterior(model.summary_).coef, posterior(same.summary_).coef, rtol=1e-6, atol=1e-9)
    ebic = SparseRegressor(half_life=60.0, selection=Ebic(1.0)).fit(X, y)
    expected = SparseRegressor(selection=Ebic(1.0)).fit(X, y, sample_weight=a * n / a.sum())
    np.testing.assert_allclose(ebic.selection_.criterion, expected.selection_.criterion, rtol=1e-9)
    # Ten times the weights are ten times the rows, as always.
    ten = SparseRegressor(half_life=60.0).fit(X, y, sample_weight=np.full(500, 10.0))
    np.testing.assert_allclose(ten.summary_.weight, 10.0 * n, rtol=1e-12)


@pytest.mark.parametrize("memory", [{"half_life": 30.0}, {"window": 90}, {"window": 90, "exact_window": True}], ids=str)
def test_reduced_rank_is_that_of_weighted_rows(memory):
    X, y = rows(2, 300)
    Y = np.column_stack([y, 2.0 * y + X[:, 0], X[:, 1]])
    times = np.arange(300.0)
    model = ReducedRankRegressor(2, **memory).partial_fit(X[:170], Y[:170], times=times[:170])
    model.partial_fit(X[170:], Y[170:], times=times[170:])
    a = weights_of(memory, model, times)
    same = ReducedRankRegressor(2).fit(X, Y, sample_weight=a * a.sum() / (a @ a))
    np.testing.assert_allclose(model.coef_, same.coef_, rtol=1e-7, atol=1e-9)
    np.testing.assert_array_equal(model.coef_, ReducedRankRegressor(2, **memory).fit(X, Y, times=times).coef_)
    auto = ReducedRankRegressor(**memory).partial_fit(X, Y)
    assert auto.rank_ == ReducedRankRegressor().fit(X, Y, sample_weight=a * a.sum() / (a @ a)).rank_
    with pytest.raises(ValueError, match="Cross-validation counts all its rows equally"):
        ReducedRankRegressor(selection="cv", **memory).partial_fit(X, Y)


def test_dates_tables_and_frames_have_times():
    pa, pd = pytest.importorskip("pyarrow"), pytest.importorskip("pandas")
    X, y = rows(4, 200)
    stamps = [datetime(2026, 1, 1) + timedelta(minutes=k) for k in range(200)]
    expected = SparseRegressor(half_life=timedelta(hours=1)).fit(X, y, times=60.0 * np.arange(200))
    frame = pd.DataFrame(X, columns=[f"x{j}" for j in range(D)]).assign(y=y, at=stamps, hours=np.arange(200) / 60.0)
    arrays = SparseRegressor(half_life=timedelta(hours=1)).fit(frame[[f"x{j}" for j in range(D)]], y, times=frame["at"])
    np.testing.assert_allclose(arrays.coef_, expected.coef_, rtol=1e-9)
    table = pa.Table.from_pandas(frame)
    for kind in ("fit", "partial_fit"):
        model = getattr(SparseRegressor(half_life=3600), kind)(
            table, "y", features=[f"x{j}" for j in range(D)], times="at"
        )
        np.testing.assert_allclose(model.finish().coef_, expected.coef_, rtol=1e-9)
    for again in (decode(encode(expected))[0], pickle.loads(pickle.dumps(expected))):
        assert again.half_life == timedelta(hours=1)
    by_hours = SparseRegressor(half_life=1.0).fit(table.drop(["at"]), "y", times="hours")
    assert "hours" not in by_hours.feature_names_in_
    np.testing.assert_allclose(by_hours.coef_, expected.coef_, rtol=1e-9)
    gram = Gram(D, half_life=3600).absorb(table, "y", features=[f"x{j}" for j in range(D)], times="at")
    np.testing.assert_allclose(gram.weight, expected.summary_.weight, rtol=1e-9)
    with pytest.raises(ValueError, match="no column 'when'"):
        SparseRegressor(half_life=1.0).fit(table, "y", times="when")
    with pytest.raises(ValueError, match="times must be the name of a column"):
        SparseRegressor(half_life=1.0).fit(table, "y", times=[1.0])
    back = table.take(list(range(100, 200)) + list(range(100)))
    fresh = SparseRegressor(half_life=3600)
    with pytest.raises(ValueError, match=r"Row 101: column 'at' goes back, from .* seconds; sort"):
        fresh.fit(back, "y", features=["x0"], times="at")
    assert not hasattr(fresh, "summary_")


@pytest.mark.parametrize(
    "bad", [{"half_life": 0}, {"half_life": -3.0}, {"window": 0}, {"window": -1}, {"half_life": "1d"}]
)
def test_parameters_that_are_none(bad):
    with pytest.raises(ValueError, match=next(iter(bad))):
        SparseRegressor(**bad).partial_fit(*rows(0, 10))


def test_what_is_refused_leaves_the_model_as_it_was():
    X, y = rows(1, 60)
    for fresh, message in [
        (SparseRegressor(half_life=5, window=6), "give one of them"),
        (SparseRegressor(half_life=5, selection="cv"), "Cross-validation counts all its rows equally"),
        (SparseRegressor(window=timedelta(days=1)), "give times="),
        (SparseRegressor(window=2.5), "no whole number of rows"),
    ]:
        with pytest.raises(ValueError, match=message):
            fresh.partial_fit(X, y)
        assert not hasattr(fresh, "summary_")
    with pytest.raises(ValueError, match="times go with half_life or window"):
        SparseRegressor().partial_fit(X, y, times=np.arange(60.0))
    with pytest.raises(ValueError, match="times go with half_life or window"):
        OnlineHardThresholding(2).partial_fit(X, y, times=np.arange(60.0))
    model = SparseRegressor(half_life=30.0).partial_fit(X, y, times=np.arange(60.0))
    before = encode(model)
    for times, message in [
        (None, "give times="),
        (np.arange(60.0), "times goes back, from 59 in an earlier call to 0"),
    ]:
        with pytest.raises(ValueError, match=message):
            model.partial_fit(X, y, times=times)
    assert encode(model) == before
    for changed in ({"half_life": 31.0}, {"half_life": None}, {"half_life": None, "window": 5}):
        other = decode(before)[0].set_params(**changed)
        with pytest.raises(ValueError, match="cannot change while rows come in"):
            other.partial_fit(X, y, times=60.0 + np.arange(60.0))
        other.fit(X, y)  # begins again


def test_summaries_that_forget_are_taken_over_or_as_they_stand():
    X, y = rows(7, 400)
    gram = Gram(D, half_life=50.0).absorb(X[:300], y[:300])
    model = SparseRegressor(half_life=50.0).fit_summary(gram).partial_fit(X[300:], y[300:])
    np.testing.assert_allclose(model.finish().coef_, SparseRegressor(half_life=50.0).fit(X, y).coef_, rtol=1e-9)
    for other in (Gram(D, half_life=51.0), Gram(D), Gram(D, window=50)):
        with pytest.raises(ValueError, match="they must be the same"):
            SparseRegressor(half_life=50.0).fit_summary(other.absorb(X, y))
    stands = SparseRegressor().fit_summary(gram)
    np.testing.assert_allclose(stands.coef_, SparseRegressor(half_life=50.0).fit(X[:300], y[:300]).coef_, rtol=1e-9)
    assert not stands.partial_fit(X[300:], y[300:]).summary_.forgets
    np.testing.assert_allclose(stands.summary_.weight, gram.weight + 100.0, rtol=1e-12)
    # So do models that go by rounds, of which none forgets.
    a = 2.0 ** (-np.arange(300)[::-1] / 50.0)
    plain = Gram(D).absorb(X[:300], y[:300], a * a.sum() / (a @ a))
    rounds = OnlineHardThresholding(2, n_steps=5).fit_summary(gram)
    np.testing.assert_allclose(rounds.coef_, OnlineHardThresholding(2, n_steps=5).fit_summary(plain).coef_, rtol=1e-6)
    rounds.partial_fit(X[300:], y[300:])
    wide = Gram(D, half_life=50.0).absorb(X[:300], y[:300]).grown(8)
    assert SparseRegressor(half_life=50.0).fit_summary(wide).coef_.shape == (8,)
    Y = np.column_stack([y, -y])
    many = MultiResponse(D, 2, window=80).absorb(X, Y)
    np.testing.assert_array_equal(
        ReducedRankRegressor(1, window=80).fit_summary(many).coef_, ReducedRankRegressor(1, window=80).fit(X, Y).coef_
    )
    low = LowRankRegressor(1).fit(X.reshape(400, 2, 3), y)
    assert low.summary_.forgets is False
    entries = MatrixCompleter(1, shape=(3, 3)).fit([0, 1, 2], [0, 1, 2], [1.0, 2.0, 3.0]).summary_
    assert not MatrixCompleter(1).fit_summary(entries.scaled(0.5)).summary_.forgets


def test_history_stays_short_while_choices_go_on():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8000, 3))
    model = SparseRegressor(half_life=2.0, selection="ebic").partial_fit(X, X[:, 0] + rng.standard_normal(8000))
    assert 400 < len(model.selection_history_) <= 1001
    counts = [record.n_samples for record in model.selection_history_]
    assert counts == sorted(counts)
    assert decode(encode(model))[0].n_samples_seen_ == 8000


@pytest.mark.parametrize("memory", [{"half_life": 30.0}, {"window": 90}, {"window": 90, "exact_window": True}], ids=str)
def test_river_rows_are_forgotten_as_well(memory):
    pytest.importorskip("river")
    from thresher.integrations.river import SparseRegressor as RiverRegressor

    X, y = rows(6, 300)
    model = RiverRegressor(selection="ebic", **memory)
    for k, (x, value) in enumerate(zip(X, y, strict=True)):
        row = {f"x{j}": float(x[j]) for j in range(D)}
        if k < 150:
            del row["x3"]  # a feature that comes later
        model.learn_one(row, float(value))
    X[:150, 3] = 0.0
    places = [model.features.index(f"x{j}") for j in range(D)]
    same = SparseRegressor(selection="ebic", **memory).partial_fit(X, y)
    np.testing.assert_allclose(model.model.summary_.weight, same.summary_.weight, rtol=1e-12)
    values = weighted_least_squares(X, y, weights_of(memory, same, np.arange(1.0, 301.0)), same.support_)[0]
    np.testing.assert_allclose(same.coef_[same.support_], values, rtol=1e-8)
    np.testing.assert_allclose(
        model.model.summary_.comoment()[np.ix_(places, places)], same.summary_.comoment(), rtol=1e-8, atol=1e-8
    )
    with pytest.raises(ValueError, match="no times"):
        RiverRegressor(half_life=timedelta(hours=1))


@pytest.mark.parametrize("memory", [{"window": 100}, {"half_life": 1e-3}])
def test_models_can_be_saved_where_nothing_counts_any_more(memory):
    from thresher.io.checkpoint import from_bytes
    from thresher.io.encoding import encode

    rng = np.random.default_rng(0)
    X = rng.standard_normal((600, 3))
    model = SparseRegressor(**memory).partial_fit(X[:300], X[:300, 0])
    model.partial_fit(X[300:], X[300:, 0], np.zeros(300))
    assert from_bytes(encode(model)).n_samples_seen_ == 600
    if "window" in memory:
        np.testing.assert_array_equal(model.coef_, 0.0)
        assert len(model.selection_history_[-1].support) == 0


@pytest.mark.parametrize("weight", [1e-5, 0.5, 0.99, 1.0, 1.0 + 1e-9, 1.5, 1.99, 2.0, 2.5])
def test_nothing_is_known_without_a_degree_of_freedom(weight):
    from thresher import Gram, posterior

    rng = np.random.default_rng(3)
    X = rng.standard_normal((200, 5))
    y, w = X[:, 0] + rng.standard_normal(200), rng.random(200)
    for centred in (True, False):
        gram = Gram(5).absorb(X, y, weight * w / w.sum())
        found = posterior(gram, fit_intercept=centred)
        assert np.isfinite(found.coef).all()
        assert (found.coef == 0.0).all() == (weight - centred < 1.0)
        model = SparseRegressor(fit_intercept=centred).fit_summary(gram)
        assert np.isfinite(model.coef_).all()


def test_gaps_much_longer_than_the_half_life_leave_one_row():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((300, 5))
    model = SparseRegressor(half_life=60.0).partial_fit(X, X[:, 0], times=1200.0 * np.arange(300))
    np.testing.assert_array_equal(model.coef_, 0.0)
    np.testing.assert_allclose(model.intercept_, X[-1, 0], rtol=1e-4)
